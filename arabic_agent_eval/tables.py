"""What all tables share: their words, how numbers are written in them, and a table as HTML for notebooks."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from arabic_agent_eval.text import name_invisible

AXIS_WORDS: Final = {
    "function_selection": "function",
    "argument_accuracy": "arguments",
    "arabic_preservation": "Arabic kept",
    "dialect_understanding": "dialect",
    "error_handling": "errors",
}
"""Axis → its short name in tables."""
NO_REPLY: Final = "no reply in the file"
"""Why an item that no row answers is unscored."""


def number(value: float | None) -> str:
    """A score or a number of points with four decimals; a dash where there is none."""
    return "–" if value is None else f"{value:.4f}"


def coverage_line(scored: int, total: int, reasons: dict[str, int], worst_case: float | None = None) -> str:
    """How many answers were judged, why the others were not, and what counting failures as wrong would give."""
    line = f"{scored:,} of {total:,} answers judged"
    if not reasons:
        return line
    line += "; unscored: " + ", ".join(f"{count:,} × {reason.rstrip('.')}" for reason, count in reasons.items())
    if worst_case is None:
        return line
    counted = "failures" if NO_REPLY in reasons else "these"  # an item without a reply is no failure
    return f"{line}; with {counted} counted as wrong the score is {number(worst_case)}"


def score_line(overall: float | None, grade: str | None, scored: int, unscored: int) -> str:
    """The score and its letter, which means little while answers are missing; why there is none, where it is so."""
    if overall is None:
        return "– (every category has a weight of 0)" if scored else "– (nothing scored)"
    return f"{number(overall)} ({grade}{', incomplete' if unscored else ''})"


def not_arabic_line(items: int) -> str:
    """How Arabic preservation counts where nothing Arabic was expected (rulings 10, 15)."""
    return (
        f"{items:,} of these items expect nothing Arabic: their calls count 1 under Arabic kept, missing and extra "
        "calls 0."
    )


def argument_list(names: dict[str, int], most: int = 4) -> list[str]:
    """The arguments in which a cause occurred, each with how often, the most frequent first."""
    shown = [f"{name} ×{times}" for name, times in list(names.items())[:most]]
    return [*shown, "…"] if len(names) > most else shown


def argument_names(names: dict[str, int]) -> str:
    """The same in a line."""
    return ", ".join(argument_list(names))


_NARROW = 0.02


def interval(ends: tuple[float, float] | None) -> str:
    """The two ends with two decimals, or four where they are close together; a dash where there is none."""
    return "–" if ends is None else "–".join(f"{end:.{_decimals(*ends)}f}" for end in ends)


def signed(value: float, decimals: int = 4) -> str:
    """A difference with its sign; 0 has none."""
    size = f"{abs(value):.{decimals}f}"
    return size if not float(size) else f"{'−' if value < 0 else '+'}{size}"


def signed_interval(low: float, high: float) -> str:
    """The two ends of the interval of a difference; an end that is not 0 is never shown as 0."""
    vanishes = any(0 < abs(end) < 0.005 for end in (low, high))  # noqa: PLR2004 - what two decimals show as 0
    decimals = 4 if vanishes else _decimals(low, high)
    return f"{signed(low, decimals)} to {signed(high, decimals)}"


def _decimals(low: float, high: float) -> int:
    return 4 if high - low < _NARROW else 2


def probability(p_value: float | None) -> str:
    """A p-value with four decimals; what is smaller is not 0."""
    return "–" if p_value is None else "< 0.0001" if p_value < 0.00005 else f"{p_value:.4f}"  # noqa: PLR2004


def attempts_shown(most: int) -> set[int]:
    """Which k a table of repeated attempts shows, of all up to the most: 1, 2, 5, 10, 20 and so on, and the last."""
    few = 10
    return {k for k in range(1, most + 1) if k <= few or k == most or int(str(k).rstrip("0")) in {1, 2, 5}}


# --- notebooks -----------------------------------------------------------------------------------------------

_ROWS = 100  # of a table in a notebook; the rest are counted
_LONGEST = 200  # characters of a text in it
_LEFT, _RIGHT = "text-align:left", "text-align:right"


class Grid(NamedTuple):
    """A table: its heads, its rows, and how many of the first columns hold words and not numbers."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int = 1


def notebook_block(lines: Iterable[str], grids: Iterable[Grid] = ()) -> str:
    """Lines and tables as a piece of HTML that a notebook shows: no script, no class, nothing from elsewhere.

    Args:
        lines: stand above the tables, the first one in bold.
        grids: the tables; those without rows are left out.
    """
    first, *others = [_shown(line) for line in lines]
    parts = [f'<p dir="auto"><b>{first}</b></p>', *(f'<p dir="auto">{line}</p>' for line in others)]
    return "\n".join(["<div>", *parts, *(_table(grid) for grid in grids if grid.rows), "</div>"])


def _table(grid: Grid) -> str:
    head = "".join(_cell("th", text, place, grid.words) for place, text in enumerate(grid.heads))
    rows = [
        "".join(_cell("td", text, place, grid.words) for place, text in enumerate(row)) for row in grid.rows[:_ROWS]
    ]
    if len(grid.rows) > _ROWS:
        rows.append(f'<td colspan="{len(grid.heads)}">and {len(grid.rows) - _ROWS:,} more</td>')
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def _cell(tag: str, text: str, place: int, words: int) -> str:
    """Whatever it holds runs as its own letters do; numbers stand to the right."""
    return f'<{tag} dir="auto" style="{_LEFT if place < words else _RIGHT}">{_shown(text)}</{tag}>'


def _shown(text: str) -> str:
    """Text from elsewhere: invisible characters named, marks escaped, of very long ones the beginning."""
    named = name_invisible(text[:_LONGEST], spaces=True)
    return html.escape(named + ("…" if len(text) > _LONGEST else ""))
