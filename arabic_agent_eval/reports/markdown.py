"""A summary as Markdown, for pull requests and model cards. Text from elsewhere cannot leave its cell."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

from arabic_agent_eval.reports.wording import AXIS_WORDS, argument_names, coverage_line, number
from arabic_agent_eval.rules import AXES
from arabic_agent_eval.text import name_invisible

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from arabic_agent_eval.summary import Group, Summary

_MARKS = re.compile(r"([\\`*_{}\[\]()#+!|~<>@-])")


def plain(text: str) -> str:
    """Text from elsewhere as Markdown that shows just that text: no markup, no HTML, no line ends."""
    shown = name_invisible(text, spaces=True).replace("\n", " ")
    return html.escape(_MARKS.sub(r"\\\1", shown), quote=False).replace("\\&lt;", "&lt;").replace("\\&gt;", "&gt;")


def markdown(summary: Summary, title: str = "") -> str:
    """The whole summary as one Markdown document.

    Args:
        summary: the numbers.
        title: what was graded, for the head.
    """
    coverage, right = summary.coverage, summary.right_function
    reasons = {plain(reason): count for reason, count in summary.unscored_reasons.items()}
    covered = coverage_line(coverage.scored, coverage.total, reasons, summary.worst_case)
    head = (
        f"{covered}. Right function in {right['right']:,} of {right['of']:,} answers; "
        f"exact match {number(summary.exact_match)}."
    )
    score = f"{number(summary.overall)} ({summary.grade or 'nothing scored'})"
    parts = [
        f"# {plain(title) or 'Arabic agent evaluation'}: {score}",
        head,
        "## Categories",
        _groups(summary.categories, weights=True),
        "## Dialects",
        _groups(summary.dialects, weights=False),
    ]
    if summary.not_arabic:
        parts.append(f"{summary.not_arabic:,} of these items expect nothing Arabic and count 1 under Arabic kept.")
    if summary.lost is not None:
        parts += ["## Where the points went", _losses(summary)]
    parts.append(f"Signature: `{name_invisible(summary.signature, spaces=True).replace('`', '')}`")
    return "\n\n".join(parts) + "\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    align = ["---", *("---:" for _ in head[1:])]
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, align, *rows))


def _groups(groups: dict[str, Group], *, weights: bool) -> str:
    head = ["", "n", "score", *(AXIS_WORDS[axis] for axis in AXES[:3]), *(["weight"] if weights else [])]
    rows = []
    for name, group in groups.items():
        row = [plain(name), f"{group.n:,}", number(group.score), *(number(getattr(group, a)) for a in AXES[:3])]
        if weights:
            row.append("–" if group.weight is None else f"{group.weight:g}")
        rows.append(row)
    return _table(head, rows)


def _losses(summary: Summary) -> str:
    lost = summary.lost or {}
    if not lost:
        return "No points were lost."
    rows = []
    for cause, points in lost.items():
        names = (summary.lost_arguments or {}).get(cause, {})
        examples = (summary.examples or {}).get(cause, [])
        example = [plain(examples[0].expected), plain(examples[0].actual)] if examples else ["", ""]
        rows.append([plain(cause), number(points), plain(argument_names(names)), *example])
    note = f"Points of the score; all causes sum to 1 − {number(summary.overall)}."
    return note + "\n\n" + _table(["cause", "points", "where (how often)", "an example: expected", "actual"], rows)
