"""The words and number forms that every report shares."""

from __future__ import annotations

from typing import Final

AXIS_WORDS: Final = {
    "function_selection": "function",
    "argument_accuracy": "arguments",
    "arabic_preservation": "Arabic kept",
    "dialect_understanding": "dialect",
    "error_handling": "errors",
}
"""Axis → its short name in tables."""


def number(value: float | None) -> str:
    """A score or a number of points with four decimals; a dash where there is none."""
    return "–" if value is None else f"{value:.4f}"


def coverage_line(scored: int, total: int, reasons: dict[str, int], worst_case: float | None = None) -> str:
    """How many answers were judged, why the others were not, and what counting failures as wrong would give."""
    line = f"{scored:,} of {total:,} answers judged"
    if not reasons:
        return line
    line += "; unscored: " + ", ".join(f"{count:,} × {reason}" for reason, count in reasons.items())
    return line if worst_case is None else f"{line}; counted as wrong: {number(worst_case)}"


def argument_names(names: dict[str, int], most: int = 4) -> str:
    """The arguments in which a cause occurred, the most frequent first."""
    shown = [f"{name} ×{times}" for name, times in list(names.items())[:most]]
    return ", ".join(shown) + (", …" if len(names) > most else "")
