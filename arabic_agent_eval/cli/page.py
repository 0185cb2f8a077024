"""The HTML file that ``--html`` asks for: it sees every row while they are counted, and is written whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from arabic_agent_eval.cli import steps
from arabic_agent_eval.cli.options import PageLanguage

if TYPE_CHECKING:
    from arabic_agent_eval.items import Category
    from arabic_agent_eval.rows import GradedRow
    from arabic_agent_eval.scores import Scores
    from arabic_agent_eval.summary import Summary
    from arabic_agent_eval.uncertainty import Uncertainty


class Page:
    """A page to be written."""

    def __init__(self, path: Path, language: PageLanguage, failures: int, source: Path) -> None:
        """Prepare it.

        Args:
            path: the file to write.
            language: of the page.
            failures: how many of them to show at most.
            source: the run or the rows that it is made from.

        Raises:
            UsageError: the file is what the page is made from.
        """
        from arabic_agent_eval.reports.evidence import Evidence

        steps.keep_apart(path, *(source.iterdir() if source.is_dir() else [source]), option="--html")
        self._path = path
        self._language = language
        self._evidence = Evidence(failures)

    def beside(self, each: Callable[[GradedRow], None]) -> Callable[[GradedRow], None]:
        """Something that shows a row to the page and to somebody else."""

        def tell(row: GradedRow) -> None:
            each(row)
            self._evidence.add(row)

        return tell

    def write(
        self,
        summary: Summary,
        scores: Scores,
        known: Uncertainty,
        title: str,
        categories: Mapping[str, Category],
    ) -> None:
        """Write it, and say where.

        Raises:
            OutputError: it could not be written.
        """
        from arabic_agent_eval.files import write_whole
        from arabic_agent_eval.reports.html import html_page

        text = html_page(
            summary,
            self._evidence,
            scores=scores,
            known=known,
            title=title,
            languages=self._language.pages,
            categories=categories,
        )
        write_whole(self._path, text.encode())
        steps.say(f"Report written to {self._path}.")
