"""Item sets: list, check, convert."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arabic_agent_eval.cli import steps
from arabic_agent_eval.cli.guard import GATE_FAILED, guarded
from arabic_agent_eval.cli.options import CategoriesOption, JsonOption
from arabic_agent_eval.errors import UsageError

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
    whole: Annotated[bool, typer.Option("--whole", help="Check the set as a benchmark too.")] = False,
    per_dialect: Annotated[
        int | None,
        typer.Option("--per-dialect", metavar="N", min=0, help="With --whole: items that each dialect needs."),
    ] = None,
    per_category: Annotated[
        int | None,
        typer.Option("--per-category", metavar="N", min=0, help="With --whole: items that each category needs."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Find what makes an item unfair, or with --whole a set careless. Exit 1 when anything is found."""
    from msgspec import json

    from arabic_agent_eval.checks import check_items
    from arabic_agent_eval.field_checks import check_fields
    from arabic_agent_eval.items import CATEGORIES
    from arabic_agent_eval.reports.listing import print_findings, print_overview
    from arabic_agent_eval.set_checks import check_any_set, check_whole_set

    if not whole and (per_dialect is not None or per_category is not None):
        raise UsageError("--per-dialect and --per-category are floors of a whole set: add --whole.")
    item_set = steps.items(items)
    registry = steps.registry(items, tools)
    declared = steps.declared(categories, items=items)
    findings = check_fields(item_set.unknown_fields())
    findings += check_items(item_set.values(), registry)
    findings = [
        one for one in findings if one.rule != "unknown_category" or item_set[one.item_id].category not in declared
    ]
    findings += check_any_set(item_set.values())
    overview = None
    if whole:
        overview, more = check_whole_set(
            list(item_set.values()),
            registry,
            per_dialect=per_dialect or 0,
            per_category=per_category or 0,
            categories=declared or CATEGORIES,
        )
        findings += more
    if as_json:
        document = {"items": len(item_set), **({"overview": overview} if overview else {}), "findings": findings}
        steps.write(json.encode(document) + b"\n")
    else:
        if overview is not None:
            print_overview(overview, steps.console())
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
