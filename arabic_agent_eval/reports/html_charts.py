"""The geometry of the two charts of the HTML report; the template draws them as SVG beside the same numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from arabic_agent_eval.reports.html_cards import UNITS

_SHADES: Final = (0.5, 0.7, 0.85, 0.95)  # below the first: the strongest colour; from the last on: none


class Span(NamedTuple):
    """Where a dot and the line around it lie, as percentages of the width."""

    dot: str
    low: str
    high: str


class Bar(NamedTuple):
    """A part of a stacked bar, as percentages of the width."""

    axis: str
    start: str
    width: str


def percent(share: float) -> str:
    """A share of the width for SVG."""
    return f"{min(max(share, 0.0), 1.0) * 100:.3f}%"


def span(score: float, ends: tuple[float, float] | None) -> Span:
    """A score with its interval; the line has no length where there is none."""
    low, high = ends or (score, score)
    return Span(percent(score), percent(low), percent(high))


def stack(parts: Mapping[str, int], longest: int) -> list[Bar]:
    """Parts in printed units beside each other, in a width that the longest bar fills."""
    found, start = [], 0
    for axis, units in parts.items():
        if units > 0:
            found.append(Bar(axis, percent(start / longest), percent(units / longest)))
            start += units
    return found


def shade(score: float) -> int:
    """How strong the colour of a cell is: 0 (none) for a score near 1, to 4."""
    return len(_SHADES) - sum(score >= limit - 1e-12 for limit in _SHADES)


def two_decimals(score: float) -> str:
    """A score for a small cell; only what is exactly 1 is shown as 1."""
    return f"{score:.2f}" if score > 1 - 1e-12 else f"{min(score, 0.99):.2f}"


def printed(units: int) -> str:
    """Printed units as points with four decimals."""
    return f"{units / UNITS:.4f}"
