"""A summary as Markdown, for pull requests and model cards. Text from elsewhere cannot leave its cell."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

from arabic_agent_eval.reports.provenance import provenance
from arabic_agent_eval.rules import AXES
from arabic_agent_eval.tables import (
    AXIS_WORDS,
    argument_names,
    attempts_shown,
    coverage_line,
    interval,
    not_arabic_line,
    number,
    score_line,
)
from arabic_agent_eval.text import name_invisible

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from arabic_agent_eval.runs import Manifest
    from arabic_agent_eval.summary import Group, Summary
    from arabic_agent_eval.uncertainty import Repeats, Uncertainty

_MARKS = re.compile(r"([\\`*_{}\[\]()#+!|~<>@-])")


def plain(text: str) -> str:
    """Text from elsewhere as Markdown that shows just that text: no markup, no HTML, no line ends."""
    shown = name_invisible(text, spaces=True).replace("\n", " ")
    return html.escape(_MARKS.sub(r"\\\1", shown), quote=False).replace("\\&lt;", "&lt;").replace("\\&gt;", "&gt;")


def markdown(
    summary: Summary, title: str = "", known: Uncertainty | None = None, manifest: Manifest | None = None
) -> str:
    """The whole summary as one Markdown document.

    Args:
        summary: the numbers.
        title: what was graded, for the head.
        known: how far the numbers can be trusted.
        manifest: of the run, for its date and settings.
    """
    ends = None if known is None else known.intervals
    coverage, right = summary.coverage, summary.right_function
    reasons = {plain(reason): count for reason, count in summary.unscored_reasons.items()}
    covered = coverage_line(coverage.scored, coverage.total, reasons, summary.worst_case)
    head = (
        f"{covered}. Right function in {right['right']:,} of {right['of']:,} answers; "
        f"exact match {number(summary.exact_match)}; rules {plain(summary.rules)}."
    )
    score = score_line(summary.overall, summary.grade, coverage.scored, coverage.unscored)
    if ends is not None and ends.overall is not None:
        head = f"95 % interval of the score: {interval(ends.overall)}. {head}"
    parts = [
        f"# {plain(title) or 'Arabic agent evaluation'}: {score}",
        head,
        *([] if manifest is None else [plain(provenance(manifest))]),
        "## Categories",
        _groups(summary.categories, None if ends is None else ends.categories, weights=True),
        "## Dialects",
        _groups(summary.dialects, None if ends is None else ends.dialects, weights=False),
    ]
    if known is not None and known.repeated:
        parts += ["## Asked several times", _repeats(known.repeated)]
    if summary.not_arabic:
        parts.append(not_arabic_line(summary.not_arabic))
    if summary.lost is not None and summary.overall is not None:
        parts += ["## Where the points went", _losses(summary)]
    parts.append(f"Signature: `{name_invisible(summary.signature, spaces=True).replace('`', '')}`")
    return "\n\n".join(parts) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1, left: Container[str] = ()) -> str:
    """A Markdown table; its first columns and those named ``left`` hold words, the others numbers, to the right."""
    align = ["---" if place < words or name in left else "---:" for place, name in enumerate(head)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, align, *rows))


def _repeats(repeats: Sequence[Repeats]) -> str:
    note = "An exact answer in one of k askings at least (pass@k), and in all k (pass^k)."
    shown = attempts_shown(repeats[-1].k)
    rows = [
        [str(one.k), f"{one.n:,}", *(text for found in (one.pass_at_k, one.pass_hat_k)
                                     for text in (number(found.estimate), interval((found.low, found.high))))]
        for one in repeats if one.k in shown
    ]  # fmt: skip
    return note + "\n\n" + table(["k", "n", "pass@k", "95 %", "pass^k", "95 %"], rows)


def _groups(groups: dict[str, Group], ends: Mapping[str, tuple[float, float]] | None, *, weights: bool) -> str:
    axes, own = [AXIS_WORDS[axis] for axis in AXES[:3]], ["95 %"] if ends is not None else []
    head = ["", "n", "score", *own, *axes, *(["weight"] if weights else [])]
    rows = []
    for name, group in groups.items():
        row = [plain(name), f"{group.n:,}", number(group.score)]
        row += [interval(ends.get(name))] if ends is not None else []
        row += [number(getattr(group, axis)) for axis in AXES[:3]]
        if weights:
            row.append("–" if group.weight is None else f"{group.weight:g}")
        rows.append(row)
    return table(head, rows)


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
    return note + "\n\n" + table(["cause", "points", "where (how often)", "an example: expected", "actual"], rows)
