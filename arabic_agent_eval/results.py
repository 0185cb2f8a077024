"""A run or a file of graded rows, with all there is to say of it: what ``aae report`` prints, for Python and notebooks.

results = open_results("mini")
results.summary.overall, results.uncertainty.intervals.overall
results.html("mini.html")
compare(results, open_results("sonnet"))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from arabic_agent_eval.bundled import kept_categories
from arabic_agent_eval.errors import UsageError
from arabic_agent_eval.files import is_same_file, write_whole
from arabic_agent_eval.items import Category, read_categories
from arabic_agent_eval.rows import GradedRow, count_rows, read_rows
from arabic_agent_eval.rules import CANONICAL, RULES, Rules
from arabic_agent_eval.scores import Scores, Sheet
from arabic_agent_eval.strictjson import replace_surrogates
from arabic_agent_eval.summary import Summary, summarize, summary_block, summary_json
from arabic_agent_eval.tables import coverage_line, score_line
from arabic_agent_eval.tool_choices import ToolChoice, ToolChoices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arabic_agent_eval.comparison import Comparison
    from arabic_agent_eval.leaderboard import Leaderboard
    from arabic_agent_eval.regrading import Ahead, RunFigures
    from arabic_agent_eval.reports.failures import Failures
    from arabic_agent_eval.reports.html_words import Language
    from arabic_agent_eval.reports.junit import JUnitCases
    from arabic_agent_eval.runs import Run
    from arabic_agent_eval.uncertainty import Uncertainty

Categories = Mapping[str, Category] | str | Path | None
"""Declared categories by name, or the file that declares them; None for those that a run keeps."""
Each = Iterable[Callable[[GradedRow], None]]
"""What is told every graded row while it goes by."""


@dataclass(frozen=True, eq=False, repr=False)
class Results:
    """All there is to say of a run or of graded rows.

    Attributes:
        path: the run folder or the file.
        summary: score, groups, and where the points went.
        scores: of single items.
        tools: what was called where which tool was expected, those with most wrong calls first.
        rules: by which the run was graded; None for graded rows, which keep theirs.
        categories: that were declared.
        causes: whether lost points were explained.
        run: the run; None for graded rows.
        written: answers without a call that hold one written as text; 0 for graded rows.
    """

    path: Path
    summary: Summary
    scores: Scores
    tools: Sequence[ToolChoice] = ()
    rules: Rules | None = None
    categories: Mapping[str, Category] = field(default_factory=dict)
    causes: bool = True
    run: Run | None = None
    written: int = 0

    @property
    def name(self) -> str:
        """The model of a run, or the name of the file."""
        return self.scores.name

    @property
    def figures(self) -> RunFigures | None:
        """What the run took; None for graded rows."""
        return self.scores.figures

    @cached_property
    def uncertainty(self) -> Uncertainty:
        """Intervals, and what repeated askings show; computed when first asked for, which loads numpy and scipy."""
        from arabic_agent_eval.uncertainty import uncertainty  # noqa: PLC0415

        return uncertainty(self.scores, self.categories)

    def rows(self) -> Iterator[GradedRow]:
        """The graded rows, read again: those of a run that was asked on meanwhile say more than the summary."""
        if self.run is None:
            return read_rows(self.path)
        from arabic_agent_eval.regrading import graded_rows  # noqa: PLC0415 - rows need neither runs nor models

        return graded_rows(self.run, rules=self.rules or CANONICAL, causes=self.causes)

    def json(self) -> bytes:
        """What ``aae report --json`` prints."""
        took = {} if self.figures is None else replace_surrogates(msgspec.to_builtins(self.figures))
        return summary_json(self.summary, {"tools": self.tools, **self.uncertainty.document(), **took})

    def markdown(self, title: str = "") -> str:
        """The report as Markdown; without a title the model of a run heads it."""
        from arabic_agent_eval.reports.markdown import markdown  # noqa: PLC0415 - each form loads what it needs

        manifest = None if self.run is None else self.run.manifest
        heading = title or ("" if self.run is None else self.name)
        return markdown(self.summary, heading, self.uncertainty, manifest)

    def html(
        self,
        path: str | Path,
        *,
        title: str = "",
        languages: Sequence[Language] = ("en", "ar"),
        failures: int = 200,
        kept: Failures | None = None,
    ) -> None:
        """Write the report as one HTML file.

        Args:
            path: the file.
            title: what was graded.
            languages: ``en``, ``ar`` or both, the one that is shown first before the other.
            failures: how many to show at most.
            kept: has seen every row already; else the rows are read again.

        Raises:
            OutputError: it could not be written.
            UsageError: the file is what the report is made from.
        """
        from arabic_agent_eval.reports.failures import Failures  # noqa: PLC0415
        from arabic_agent_eval.reports.html import html_page  # noqa: PLC0415

        self._keep_apart(path)
        if kept is None:
            kept = Failures(failures)
            for row in self.rows():
                kept.add(row)
        page = html_page(
            self.summary, self.tools, kept, scores=self.scores, known=self.uncertainty, title=title,
            languages=languages, categories=self.categories,
        )  # fmt: skip
        write_whole(Path(path), page.encode())

    def junit(self, path: str | Path, *, title: str = "", cases: JUnitCases | None = None) -> None:
        """Write the answers as JUnit XML: a category is a suite, an answer a test.

        Args:
            path: the file.
            title: what was graded.
            cases: were told every row already; else the rows are read again.

        Raises:
            OutputError: it could not be written.
            UsageError: the file is what the report is made from.
        """
        from arabic_agent_eval.reports.junit import JUnitCases  # noqa: PLC0415

        self._keep_apart(path)
        named = {"name": title or self.name, "signature": self.summary.signature}
        if cases is not None:
            cases.write(Path(path), **named)
            return
        with JUnitCases() as collected:
            for row in self.rows():
                collected.add(row)
            collected.write(Path(path), **named)

    def _keep_apart(self, path: str | Path) -> None:
        sources = self.path.iterdir() if self.path.is_dir() else [self.path]
        if any(is_same_file(Path(path), one) for one in sources):
            raise UsageError(f"{path} is what the report is made from; write it to another file.")

    def __repr__(self) -> str:
        summary, coverage = self.summary, self.summary.coverage
        score = score_line(summary.overall, summary.grade, coverage.scored, coverage.unscored)
        return f"<Results of {self.name}: score {score}, {coverage_line(coverage.scored, coverage.total, {})}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the summary with its intervals."""
        ends = self.uncertainty.intervals
        return summary_block(
            self.summary, name=self.name, overall=ends.overall, categories=ends.categories, dialects=ends.dialects
        )


def open_results(
    path: str | Path, *, rules: Rules | str | None = None, categories: Categories = None, each: Each = ()
) -> Results:
    """Read a run folder, whose answers are graded anew, or a file of graded rows; nobody is asked.

    Args:
        path: the folder or the file.
        rules: the rules for a run, or their name, ``canonical`` by default. Graded rows keep theirs.
        categories: see :data:`Categories`.
        each: is told every graded row.

    Raises:
        DataError: it is neither, or is damaged.
        UsageError: there are no such rules, or the rows were graded by others.
        UnknownCategory: a scored category has no declared weight (ruling 19).
    """
    place = Path(path)
    wanted = _rules(rules)
    if place.is_dir():
        from arabic_agent_eval.runs import Run  # noqa: PLC0415 - rows need no runs

        return results_of_run(Run.read(place), rules=wanted or CANONICAL, categories=categories, each=each)
    return _results_of_rows(place, wanted, _declared(place, categories), each)


def results_of_run(
    run: Run,
    *,
    rules: Rules = CANONICAL,
    categories: Categories = None,
    causes: bool = True,
    out: Path | None = None,
    each: Each = (),
    ahead: Ahead | None = None,
) -> Results:
    """Grade what a run holds, once.

    Args:
        run: the run.
        rules: the rule set.
        categories: see :data:`Categories`.
        causes: whether to explain lost points.
        out: a file for the graded rows, written whole or not at all.
        each: is told every graded row.
        ahead: what was judged already by the same rules, with causes.

    Raises:
        DataError: a line of the run is damaged.
        OutputError: the rows could not be written.
        UnknownCategory: an item's category has no declared weight (ruling 19).
    """
    from arabic_agent_eval.regrading import grade_run  # noqa: PLC0415 - rows need neither runs nor models

    sheet, choices, declared = Sheet(), ToolChoices(), _declared(run.folder, categories)
    batch, figures = grade_run(
        run, rules=rules, causes=causes, out=out, categories=declared,
        each=_all_of([sheet.add, choices.add, *each]), ahead=ahead,
    )  # fmt: skip
    summary = summarize(
        batch.tally, due=len(run.items), signature=batch.signature, rules=rules.name, categories=declared,
        causes=causes, epochs=run.manifest.asked.epochs,
    )  # fmt: skip
    scores = sheet.scores(figures.model, str(run.folder), figures, run.manifest.created)
    return Results(run.folder, summary, scores, choices.counted(), rules, declared, causes, run, batch.written)


def _results_of_rows(path: Path, wanted: Rules | None, declared: Mapping[str, Category], each: Each) -> Results:
    sheet, choices = Sheet(), ToolChoices()
    file = count_rows(path, _all_of([sheet.add, choices.add, *each]))
    theirs = file.signature.rules
    if wanted is not None and theirs != wanted.tag:
        raise UsageError(f"{path} was graded by the rules {theirs}; to have {wanted.tag}, grade the replies again.")
    summary = summarize(
        file.tally, due=file.due, signature=file.signature, rules=theirs.rpartition("-")[0], categories=declared,
        causes=file.causes,
    )  # fmt: skip
    return Results(path, summary, sheet.scores(path.stem, str(path)), choices.counted(), None, declared, file.causes)


def _all_of(several: Sequence[Callable[[GradedRow], None]]) -> Callable[[GradedRow], None]:
    """One that tells all of them."""

    def tell(row: GradedRow) -> None:
        for one in several:
            one(row)

    return tell


def _rules(named: Rules | str | None) -> Rules | None:
    if named is None or isinstance(named, Rules):
        return named
    if named not in RULES:
        raise UsageError(f"there are no rules {named!r}; there are {', '.join(RULES)}.")
    return RULES[named]


def _declared(path: Path, categories: Categories) -> Mapping[str, Category]:
    if isinstance(categories, Mapping):
        return categories
    file = kept_categories(path) if categories is None else Path(categories)
    return {} if file is None else read_categories(file)


# --- several -------------------------------------------------------------------------------------------------


def compare(a: Results, b: Results, *, common: bool = False) -> Comparison:
    """Compare b with a, item by item, as ``aae compare`` does.

    Args:
        a: whom the other is compared with.
        b: the other.
        common: compare the items that both hold, where the sets or the formats differ.

    Raises:
        UnknownCategory: a scored category has no declared weight (ruling 19).
        UsageError: the two do not compare.
    """
    from arabic_agent_eval.comparison import compare as compare_scores  # noqa: PLC0415 - it loads numpy and scipy

    return compare_scores(a.scores, b.scores, categories=_weights([a, b]), common=common)


def rank(*several: Results) -> Leaderboard:
    """Rank two or more models that answered the same items, as ``aae leaderboard`` does.

    Raises:
        UnknownCategory: a scored category has no declared weight (ruling 19).
        UsageError: fewer than two, or two that do not compare.
    """
    from arabic_agent_eval.leaderboard import leaderboard  # noqa: PLC0415 - it loads numpy and scipy

    return leaderboard([one.scores for one in several], categories=_weights(several))


def _weights(several: Sequence[Results]) -> dict[str, Category]:
    """The categories that any of them declares, none by two weights."""
    found: dict[str, Any] = {}
    for one in several:
        for name, category in one.categories.items():
            if found.setdefault(name, category).weight != category.weight:
                raise UsageError(f"{one.path} declares another weight of the category {name!r} than those before it.")
    return found
