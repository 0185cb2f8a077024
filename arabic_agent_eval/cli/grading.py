"""Grade answers that exist, report on graded rows, and show single answers."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Annotated, Any

import typer

from arabic_agent_eval.cli import steps
from arabic_agent_eval.cli.guard import guarded
from arabic_agent_eval.cli.options import (
    CategoriesOption,
    Engine,
    EngineOption,
    FailUnder,
    FailuresOption,
    FormatOption,
    HtmlOption,
    ItemsOption,
    JobsOption,
    JsonOption,
    JUnitOption,
    LanguageOption,
    Layout,
    PageLanguage,
    RayAddressOption,
    RepliesOption,
    RowsOption,
    RuleName,
    RulesOption,
)
from arabic_agent_eval.errors import UsageError


@guarded
def grade(
    *,
    items: ItemsOption,
    replies: RepliesOption,
    rules: RulesOption = RuleName.CANONICAL,
    format: FormatOption = "auto",  # noqa: A002 - the option's name
    jobs: JobsOption = None,
    engine: EngineOption = Engine.LOCAL,
    ray_address: RayAddressOption = None,
    no_causes: Annotated[bool, typer.Option("--no-causes", help="Do not explain lost points: faster.")] = False,
    categories: CategoriesOption = None,
    allow_unknown: Annotated[bool, typer.Option("--allow-unknown", help="Leave out replies to unknown items.")] = False,
    as_json: JsonOption = False,
    out: RowsOption = None,
    fail_under: FailUnder = None,
) -> None:
    """Grade answers that exist already."""
    from arabic_agent_eval.aisa import figures_of
    from arabic_agent_eval.batch import grade_file
    from arabic_agent_eval.cli.scaling import grade_on_ray
    from arabic_agent_eval.rules import RULES
    from arabic_agent_eval.summary import summarize

    steps.keep_apart(out, items, replies, categories)
    gc.disable()  # nothing that grading makes has cycles, and the process ends with the command
    item_set, declared = steps.items(items, checked=False), steps.declared(categories, items=items)
    ways: dict[str, Any] = {
        "rules": RULES[rules],
        "format": format,
        "causes": not no_causes,
        "out": out,
        "allow_unknown": allow_unknown,
        "categories": declared,
    }
    if ray_address is not None and engine is not Engine.RAY:
        raise UsageError("--ray-address needs --engine ray.")
    task = None
    with steps.progress() as progress:
        if engine is Engine.RAY:
            batch = grade_on_ray(item_set, replies, **ways, address=ray_address, workers=jobs, progress=progress)
        else:
            with steps.replies(replies) as path:
                batch = grade_file(item_set, path, **ways, jobs=jobs or 1, progress=progress)
                task = figures_of(item_set, path, format)
    summary = summarize(
        batch.tally,
        due=batch.due,
        signature=batch.signature,
        rules=rules,
        categories=declared,
        causes=not no_causes,
    )
    steps.notes(batch, out)
    steps.show(summary, as_json=as_json, task=task)
    steps.finish(summary, fail_under)


@guarded
def report(
    rows: Annotated[Path, typer.Argument(metavar="RUN|ROWS", help="A run folder, or what --out wrote.")],
    *,
    layout: Annotated[Layout, typer.Option("--format", help="terminal or markdown.")] = Layout.TERMINAL,
    title: Annotated[str, typer.Option("--title", help="What was graded, for the head of the report.")] = "",
    html: HtmlOption = None,
    junit: JUnitOption = None,
    language: LanguageOption = PageLanguage.BOTH,
    failures: FailuresOption = 200,
    categories: CategoriesOption = None,
    as_json: JsonOption = False,
    fail_under: FailUnder = None,
) -> None:
    """Report on a run or on graded rows: score, groups, intervals, and where the points went."""
    from arabic_agent_eval.cli.page import Pages
    from arabic_agent_eval.results import open_results

    with Pages(rows, categories, html=html, junit=junit, language=language, failures=failures) as pages:
        results = open_results(rows, categories=categories, each=pages.each)
        pages.write(results, title)
    steps.show_results(results, layout, as_json=as_json, title=title)
    steps.finish_results(results, fail_under)


@guarded
def show(
    rows: Annotated[Path, typer.Argument(metavar="RUN|ROWS", help="A run folder, or what --out wrote.")],
    item: Annotated[str | None, typer.Argument(metavar="[ITEM]", help="The id of the item.")] = None,
    *,
    epoch: Annotated[int | None, typer.Option("--epoch", help="Which asking; all of them by default.")] = None,
    cause: Annotated[str | None, typer.Option("--cause", help="All answers that lost points for this cause.")] = None,
    lost: Annotated[bool, typer.Option("--lost", help="All answers that lost points.")] = False,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", min=1, help="Show the first N of them.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show answers: expected and actual aligned, what differs marked, the causes in words."""
    from arabic_agent_eval.causes import CAUSE_WORDS
    from arabic_agent_eval.reports.item import print_row
    from arabic_agent_eval.rows import pairs, row_line
    from arabic_agent_eval.scores import read_graded

    if item is None and cause is None and not lost:
        raise UsageError("which answers? Give the id of an item, or --cause NAME, or --lost.")
    if cause is not None and cause not in CAUSE_WORDS:
        raise UsageError(f"there is no cause {cause[:60]!r}; there are {', '.join(CAUSE_WORDS)}.")
    console, shown = steps.console(), 0
    for row in read_graded(rows):
        losses = row.losses or []
        if (
            item in {None, row.item_id}
            and epoch in {None, row.epoch}
            and (cause is None or any(loss.cause == cause for loss in losses))
            and (not lost or losses)
        ):
            if as_json:
                steps.write(row_line(row))
            else:
                if shown:
                    console.print()
                print_row(row, pairs(row), console)
            shown += 1
            if shown == limit or not steps.is_read():
                break
    if not shown:
        what = f"item {item!r}" if item is not None else "answer"
        what += f" in epoch {epoch}" if epoch is not None else ""
        what += f" that lost points for {cause!r}" if cause is not None else " that lost points" if lost else ""
        raise UsageError(f"{rows} holds no {what}.")
