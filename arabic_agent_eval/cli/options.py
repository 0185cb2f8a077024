"""The options that several commands share, and the names that they may be given."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer


class RuleName(StrEnum):
    """The named rule sets."""

    CANONICAL = "canonical"
    V0_1 = "v0.1"


class Engine(StrEnum):
    """What grades: processes of this machine, or workers of Ray."""

    LOCAL = "local"
    RAY = "ray"


class Layout(StrEnum):
    """How a report is laid out."""

    TERMINAL = "terminal"
    MARKDOWN = "markdown"


class PageLanguage(StrEnum):
    """The languages of an HTML report."""

    BOTH = "both"
    ENGLISH = "en"
    ARABIC = "ar"

    @property
    def pages(self) -> list[Literal["en", "ar"]]:
        """The languages, the one that is shown first before the other."""
        return {"en": ["en"], "ar": ["ar"]}.get(self.value, ["en", "ar"])  # type: ignore[return-value]


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
JobsOption = Annotated[
    int | None,
    typer.Option("--jobs", "-j", min=1, help="Processes to grade with; by default 1, with Ray one a processor."),
]
EngineOption = Annotated[
    Engine, typer.Option("--engine", help="With ray, --replies may be a folder, and Parquet, of any size.")
]
RayAddressOption = Annotated[
    str | None,
    typer.Option("--ray-address", metavar="ADDRESS", help="A cluster for --engine ray; without it, this machine."),
]
RowsOption = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE|DIR", help="Write graded rows: JSONL; with Ray a folder of Parquet."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
CategoriesOption = Annotated[
    Path | None, typer.Option("--categories", metavar="FILE", help="Weights of categories of your own (JSON).")
]
HtmlOption = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Write the report as one HTML file too.")
]
JUnitOption = Annotated[
    Path | None, typer.Option("--junit", metavar="FILE", help="Write each answer as a test in JUnit XML too, for CI.")
]
LanguageOption = Annotated[
    PageLanguage, typer.Option("--language", help="Of the HTML report; with both, readers switch between them.")
]
FailuresOption = Annotated[
    int, typer.Option("--failures", min=0, help="How many failures the HTML report shows: those that lost most.")
]


def number(value: float | None) -> float | None:
    """Refuse NaN, which lies in every range, since nothing is below it or above."""
    if value is not None and value != value:  # noqa: PLR0124
        raise typer.BadParameter("nan is no score.")
    return value


FailUnder = Annotated[
    float | None,
    typer.Option("--fail-under", metavar="SCORE", min=0.0, max=1.0, callback=number, help="Exit 1 below this score."),
]
