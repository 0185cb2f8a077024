"""Item sets: list, check, convert."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arabic_agent_eval.cli import steps
from arabic_agent_eval.cli.guard import GATE_FAILED, guarded
from arabic_agent_eval.cli.options import CategoriesOption, JsonOption

data = typer.Typer(help="Item sets: list, check, convert.", no_args_is_help=True, rich_markup_mode=None)


@data.command("list")
@guarded
def data_list(
    items: Annotated[str | None, typer.Argument(metavar="[FILE|SET]", help="List its items; else the sets.")] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """List the bundled item sets, or the items of one set."""
    from msgspec import json

    from arabic_agent_eval.reports.listing import item_lines, set_lines

    lines = set_lines() if items is None else item_lines(steps.items(items))
    for line in lines:
        steps.write(json.encode(line) + b"\n" if as_json else line.text.encode() + b"\n")


@data.command("check")
@guarded
def data_check(
    items: Annotated[str, typer.Argument(metavar="FILE|SET", help="The items to check.")],
    *,
    tools: Annotated[str | None, typer.Option("--tools", metavar="FILE", help="The tool registry (JSON).")] = None,
    categories: CategoriesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find what makes an item unfair. Exit 1 when anything is found."""
    from msgspec import json

    from arabic_agent_eval.checks import check_items
    from arabic_agent_eval.field_checks import check_fields
    from arabic_agent_eval.reports.listing import print_findings

    item_set = steps.items(items)
    registry = steps.registry(items, tools)
    declared = steps.declared(categories, items=items)
    findings = check_fields(item_set.unknown_fields())
    findings += check_items(item_set.values(), registry)
    findings = [
        one for one in findings if one.rule != "unknown_category" or item_set[one.item_id].category not in declared
    ]
    if as_json:
        steps.write(json.encode({"items": len(item_set), "findings": findings}) + b"\n")
    else:
        print_findings(findings, len(item_set), steps.console())
    if findings:
        raise typer.Exit(GATE_FAILED)


@data.command("convert")
@guarded
def data_convert(
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="AISA-ArabicFC parquet, or BFCL questions.")],
    *,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the items go (JSONL).")],
    kind: Annotated[str, typer.Option("--from", help="auto, aisa or bfcl.")] = "auto",
    answers: Annotated[Path | None, typer.Option("--answers", metavar="FILE", help="BFCL's answers.")] = None,
    category: Annotated[str | None, typer.Option("--category", help="One category for all items.")] = None,
) -> None:
    """Convert a foreign data set into items."""
    from arabic_agent_eval.conversion import convert, write_items

    steps.keep_apart(out, source, answers)
    items = convert(source, kind=kind, answers=answers, category=category)
    write_items(out, items)
    steps.say(f"{len(items):,} items written to {out}.")
