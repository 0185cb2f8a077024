"""The files that ``--html`` and ``--junit`` ask for: they see every row while it is counted, and are written whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Self

from arabic_agent_eval.cli import steps
from arabic_agent_eval.cli.options import PageLanguage

if TYPE_CHECKING:
    from arabic_agent_eval.reports.failures import Failures
    from arabic_agent_eval.reports.junit import JUnitCases
    from arabic_agent_eval.results import Results
    from arabic_agent_eval.rows import GradedRow


class Pages:
    """The files to be written; used as a context manager.

    Attributes:
        each: what is to be told every row.
    """

    def __init__(
        self,
        source: Path,
        categories: Path | None,
        *,
        html: Path | None,
        junit: Path | None,
        language: PageLanguage,
        failures: int,
    ) -> None:
        """Prepare them.

        Args:
            source: the run or the rows that they are made from.
            categories: the file that declares their categories.
            html: the page, if one is wanted.
            junit: the test cases, if they are wanted.
            language: of the page.
            failures: how many of them the page shows at most.

        Raises:
            UsageError: a file is what it would be made from, or is both.
        """
        from arabic_agent_eval.errors import UsageError

        inputs = [*(source.iterdir() if source.is_dir() else [source]), categories]
        steps.keep_apart(html, *inputs, option="--html")
        steps.keep_apart(junit, *inputs, option="--junit")
        if html is not None and junit is not None and html.resolve() == junit.resolve():
            raise UsageError(f"--html and --junit are both {html}; name two files.")
        self._html, self._junit, self._language = html, junit, language
        self._failures: Failures | None = None
        self._cases: JUnitCases | None = None
        self.each: list[Callable[[GradedRow], None]] = []
        if html is not None:
            from arabic_agent_eval.reports.failures import Failures

            self._failures = Failures(failures)
            self.each.append(self._failures.add)
        if junit is not None:
            from arabic_agent_eval.reports.junit import JUnitCases

            self._cases = JUnitCases()
            self.each.append(self._cases.add)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._cases is not None:
            self._cases.close()

    def write(self, results: Results, title: str) -> None:
        """Write them, and say where.

        Raises:
            OutputError: one could not be written.
        """
        if self._html is not None:
            results.html(self._html, title=title, languages=self._language.pages, kept=self._failures)
            steps.say(f"Report written to {self._html}.")
        if self._junit is not None:
            results.junit(self._junit, title=title, cases=self._cases)
            steps.say(f"Test cases written to {self._junit}.")
