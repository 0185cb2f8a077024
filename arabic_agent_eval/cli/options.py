"""The options that several commands share, and the names that they may be given."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class RuleName(StrEnum):
    """The named rule sets."""

    CANONICAL = "canonical"
    V0_1 = "v0.1"


class Layout(StrEnum):
    """How a report is laid out."""

    TERMINAL = "terminal"
    MARKDOWN = "markdown"


ItemsOption = Annotated[
    str, typer.Option("--items", metavar="FILE|SET", help="The items: a JSONL file, or the name of a bundled set.")
]
RepliesOption = Annotated[
    str, typer.Option("--replies", metavar="FILE|-", help="The replies: JSONL, a JSON list or a run file; - is stdin.")
]
RulesOption = Annotated[RuleName, typer.Option("--rules", help="The rule set.")]
FormatOption = Annotated[
    str, typer.Option("--format", help="auto, calls, tool_calls, response, text or submission: where the calls are.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
CategoriesOption = Annotated[
    Path | None, typer.Option("--categories", metavar="FILE", help="Weights of categories of your own (JSON).")
]


def _number(value: float | None) -> float | None:
    """Refuse NaN, which lies in every range, since nothing is below it or above."""
    if value is not None and value != value:  # noqa: PLR0124
        raise typer.BadParameter("nan is no score.")
    return value


FailUnder = Annotated[
    float | None,
    typer.Option("--fail-under", metavar="SCORE", min=0.0, max=1.0, callback=_number, help="Exit 1 below this score."),
]
