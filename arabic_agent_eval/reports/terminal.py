"""A summary on a terminal. Text that came from a model or a file is made harmless before it is printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

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
from arabic_agent_eval.text import has_arabic, name_invisible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from arabic_agent_eval.summary import Group, Summary
    from arabic_agent_eval.tally import Example
    from arabic_agent_eval.uncertainty import Repeats, Uncertainty

_FIRST_STRONG_ISOLATE, _POP_ISOLATE = "\u2068", "\u2069"
_CAUSES_SHOWN = 16


def safe(text: str, console: Console) -> str:
    """Text from elsewhere: control and invisible characters named; Arabic isolated, on a terminal only."""
    shown = name_invisible(text, spaces=True)
    if console.is_terminal and has_arabic(shown):
        return f"{_FIRST_STRONG_ISOLATE}{shown}{_POP_ISOLATE}"
    return shown


def table_of(heads: Sequence[str], left: set[str], *, fold: bool = False) -> Table:
    """An empty table: words on the left, numbers on the right, which break where they must or not at all."""
    made = Table(box=SIMPLE, pad_edge=False, header_style="bold")
    for head in heads:
        if head in left:
            made.add_column(head, overflow="fold")
        else:
            made.add_column(Text(head), justify="right", no_wrap=not fold, overflow="fold" if fold else "ellipsis")
    return made


def print_summary(summary: Summary, console: Console, known: Uncertainty | None = None) -> None:
    """Print the score, the groups, and where the points went; with how far that can be trusted, where it is known."""
    _print_head(summary, console, known)
    if summary.coverage.scored:
        _print_groups(summary, console, known)
    console.print(Text(f"Signature  {name_invisible(summary.signature, spaces=True)}", style="dim"), soft_wrap=True)


def _print_groups(summary: Summary, console: Console, known: Uncertainty | None) -> None:
    ends = None if known is None else known.intervals
    console.print(
        _groups("Category", summary.categories, console, None if ends is None else ends.categories, weights=True)
    )
    console.print(_groups("Dialect", summary.dialects, console, None if ends is None else ends.dialects, weights=False))
    if known is not None and known.repeated:
        _print_repeats(known.repeated, console)
    _print_applicable(summary, console)
    if summary.lost is not None and summary.overall is not None:
        _print_losses(summary, console)


def _print_head(summary: Summary, console: Console, known: Uncertainty | None) -> None:
    head = Text("Score  ", style="bold")
    head.append(
        score_line(summary.overall, summary.grade, summary.coverage.scored, summary.coverage.unscored),
        style="bold cyan",
    )
    if known is not None and known.intervals.overall is not None:
        head.append(f"  95 %: {interval(known.intervals.overall)}")
    console.print(head)
    coverage = summary.coverage
    reasons = _safe_keys(summary.unscored_reasons)
    console.print(Text(coverage_line(coverage.scored, coverage.total, reasons, summary.worst_case)))
    if not coverage.scored:
        return
    right = summary.right_function
    console.print(
        Text(f"Right function in {right['right']:,} of {right['of']:,} answers; exact match ")
        .append(number(summary.exact_match))
        .append(f"; rules {name_invisible(summary.rules, spaces=True)}")
    )


def _print_applicable(summary: Summary, console: Console) -> None:
    """Preservation is 1 where nothing Arabic was expected (ruling 10), and a reader must know how often."""
    if summary.not_arabic:
        console.print(Text(f"{not_arabic_line(summary.not_arabic)}\n", style="dim"))


def _safe_keys(reasons: dict[str, int]) -> dict[str, int]:
    return {name_invisible(reason, spaces=True): count for reason, count in reasons.items()}


def _print_repeats(repeats: Sequence[Repeats], console: Console) -> None:
    console.print("Asked several times: an exact answer in one of k askings at least, and in all k")
    table = Table(box=SIMPLE, pad_edge=False, header_style="bold")
    for column in ("k", "n", "pass@k", "95 %", "pass^k", "95 %"):
        table.add_column(column, justify="right", no_wrap=True)
    shown = attempts_shown(repeats[-1].k)
    for one in repeats:
        if one.k in shown:
            cells = [text for found in (one.pass_at_k, one.pass_hat_k)
                     for text in (number(found.estimate), interval((found.low, found.high)))]  # fmt: skip
            table.add_row(str(one.k), f"{one.n:,}", *cells)
    console.print(table)


def _groups(
    title: str,
    groups: dict[str, Group],
    console: Console,
    ends: Mapping[str, tuple[float, float]] | None,
    *,
    weights: bool,
) -> Table:
    table = Table(box=SIMPLE, pad_edge=False, title_justify="left", header_style="bold")
    table.add_column(title, overflow="fold")
    axes, own = [AXIS_WORDS[axis] for axis in AXES[:3]], ["95 %"] if ends is not None else []
    columns = ["n", "score", *own, *axes, *(["weight"] if weights else [])]
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    for name, group in groups.items():
        cells = [f"{group.n:,}", number(group.score)]
        cells += [interval(ends.get(name))] if ends is not None else []
        cells += [number(getattr(group, axis)) for axis in AXES[:3]]
        if weights:
            cells.append(f"{group.weight:g}" if group.weight is not None else "–")
        table.add_row(Text(safe(name, console)), *cells)
    return table


def _print_losses(summary: Summary, console: Console) -> None:
    lost = summary.lost or {}
    if not lost:
        console.print("No points were lost.\n")
        return
    console.print(Text(f"Where the points went (points of the score; all causes sum to 1 − {number(summary.overall)})"))
    table = Table(box=SIMPLE, pad_edge=False, header_style="bold")
    table.add_column("Cause", no_wrap=True)
    table.add_column("points", justify="right", no_wrap=True)
    table.add_column("where (how often) · an example", overflow="fold")
    for cause in list(lost)[:_CAUSES_SHOWN]:
        table.add_row(Text(safe(cause, console)), number(lost[cause]), _evidence(summary, cause, console))
    console.print(table)
    hidden = list(lost)[_CAUSES_SHOWN:]
    if hidden:
        rest = ", ".join(f"{cause} {number(lost[cause])}" for cause in hidden)
        console.print(Text(safe(f"and {rest}", console) + "\n"))


def _evidence(summary: Summary, cause: str, console: Console) -> Text:
    names = (summary.lost_arguments or {}).get(cause, {})
    parts = [safe(argument_names(names), console)] if names else []
    examples = (summary.examples or {}).get(cause, [])
    if examples:
        parts.append(_example(examples[0], console))
    return Text(" · ".join(parts))


def _example(example: Example, console: Console) -> str:
    name = f"{example.argument}: " if example.argument else ""
    # Latin words between the two keep them apart where a terminal runs Arabic on from right to left.
    wanted, given = safe(example.expected, console), safe(example.actual, console)
    return f"{name_invisible(name, spaces=True)}expected {wanted}, actual {given} ({safe(example.item_id, console)})"
