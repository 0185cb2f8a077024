"""``aae leaderboard``."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from arabic_agent_eval.cli import steps
from arabic_agent_eval.cli.guard import UNSCORED, guarded
from arabic_agent_eval.cli.options import (
    CategoriesOption,
    HtmlOption,
    JsonOption,
    LanguageOption,
    PageLanguage,
    RuleName,
    RulesOption,
)
from arabic_agent_eval.errors import UsageError

if TYPE_CHECKING:
    from arabic_agent_eval.items import Category
    from arabic_agent_eval.leaderboard import Leaderboard


class TableLayout(StrEnum):
    """How a leaderboard is laid out."""

    TERMINAL = "terminal"
    MARKDOWN = "markdown"
    CSV = "csv"
    JSON = "json"


def _append(path: Path, found: Leaderboard) -> None:
    from datetime import UTC, datetime

    from arabic_agent_eval.publishing import append_results

    added = append_results(path, found, date=datetime.now(UTC).isoformat(timespec="seconds"))
    known = len(found.entries) - added
    also = f"; {known:,} stood there already" if known else ""
    steps.say(f"{added:,} {'result' if added == 1 else 'results'} added to {path}{also}.")


def _write_page(path: Path, found: Leaderboard, language: PageLanguage, categories: Mapping[str, Category]) -> None:
    from arabic_agent_eval.files import write_whole
    from arabic_agent_eval.reports.html_leaderboard import leaderboard_page

    write_whole(path, leaderboard_page(found, languages=language.pages, categories=categories).encode())
    steps.say(f"Leaderboard written to {path}.")


_BOM = b"\xef\xbb\xbf"


@guarded
def leaderboard(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN…", help="Two or more run folders or graded rows, on the same items.")
    ],
    *,
    rules: RulesOption = RuleName.CANONICAL,
    categories: CategoriesOption = None,
    layout: Annotated[
        TableLayout, typer.Option("--format", help="terminal, markdown, csv or json.")
    ] = TableLayout.TERMINAL,
    as_json: JsonOption = False,
    excel: Annotated[
        bool, typer.Option("--excel", help="Begin CSV with a byte order mark, so that Excel reads it as UTF-8.")
    ] = False,
    html: HtmlOption = None,
    language: LanguageOption = PageLanguage.BOTH,
    append: Annotated[
        Path | None,
        typer.Option("--append", metavar="FILE", help="Add each model's result to this file too (JSONL), once."),
    ] = None,
) -> None:
    """Rank models on the same items: how many are better with certainty, scores, categories, dialects, costs."""
    from arabic_agent_eval.leaderboard import leaderboard as rank
    from arabic_agent_eval.rules import RULES
    from arabic_agent_eval.scores import read_scores

    layout = TableLayout.JSON if as_json else layout
    if excel and layout is not TableLayout.CSV:
        raise UsageError("--excel is about CSV; use it with --format csv.")
    for path in runs:
        inputs = [*(path.iterdir() if path.is_dir() else [path]), categories]
        steps.keep_apart(append, *inputs, option="--append")
        steps.keep_apart(html, *inputs, append, option="--html")
    declared = steps.declared(categories, runs=runs)
    found = rank([read_scores(path, rules=RULES[rules]) for path in runs], categories=declared)
    if append is not None:
        _append(append, found)

    if html is not None:
        _write_page(html, found, language, declared)

    from arabic_agent_eval.reports import leaderboard as report

    if layout is TableLayout.TERMINAL:
        report.print_leaderboard(found, steps.console())
    elif layout is TableLayout.MARKDOWN:
        steps.write(report.markdown_leaderboard(found).encode())
    elif layout is TableLayout.CSV:
        steps.write((_BOM if excel else b"") + report.csv_leaderboard(found).encode())
    else:
        steps.write(report.json_leaderboard(found))
    if not found.complete:
        steps.say("Some answers were not judged; each pair was compared on the items that both were judged on.")
        raise typer.Exit(UNSCORED)
