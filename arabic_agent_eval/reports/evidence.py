"""What a page shows besides the numbers, gathered while the rows go by: the failures, and which tool met which."""

from __future__ import annotations

import heapq
from collections import Counter
from enum import Enum
from typing import Final, NamedTuple

from arabic_agent_eval.rows import GradedRow, pairs

FAILURES: Final = 200
"""Failures that a page shows unless it is told otherwise; the rest are counted."""
_FULL = 1 - 1e-12


class Absent(Enum):
    """What stands in place of a tool's name."""

    NOTHING = "nothing"
    UNREADABLE = "unreadable"


Name = str | Absent


class Confusion(NamedTuple):
    """One expected tool: how often it was expected and called, and what was called in its place how often."""

    expected: Name
    times: int
    right: int
    instead: list[tuple[Name, int]]

    @property
    def wrong(self) -> int:
        """How often something else was called, or nothing."""
        return self.times - self.right


class Evidence:
    """Collects from graded rows in any number; of the failures those that lost most are kept."""

    def __init__(self, most: int = FAILURES) -> None:
        """Collect.

        Args:
            most: failures to keep, 0 or more.
        """
        self.failed = 0
        self._most = most
        self._kept: list[tuple[float, int, GradedRow]] = []
        self._met: Counter[tuple[Name, Name]] = Counter()

    def add(self, row: GradedRow) -> None:
        """Count a row; one that was not judged says nothing of the model."""
        if row.total is None:
            return
        for place, other in pairs(row):
            called: Name = Absent.NOTHING
            if other is not None and row.actual_calls:
                called = row.actual_calls[other].function or Absent.UNREADABLE
            self._met[Absent.NOTHING if place is None else row.expected_calls[place].function, called] += 1
        if row.total < _FULL:
            # Of two that lost the same, the earlier one is kept.
            entry = (1 - row.total, -self.failed, row)
            self.failed += 1
            if len(self._kept) < self._most:
                heapq.heappush(self._kept, entry)
            elif self._kept:
                heapq.heappushpop(self._kept, entry)

    @property
    def failures(self) -> list[GradedRow]:
        """The kept rows in the order in which they came."""
        return [row for _, _, row in sorted(self._kept, key=lambda entry: -entry[1])]

    def confusions(self) -> list[Confusion]:
        """Every expected tool, those with most wrong calls first; surplus calls stand where nothing was expected."""
        found: dict[Name, Counter[Name]] = {}
        for (expected, called), times in self._met.items():
            found.setdefault(expected, Counter())[called] += times
        rows = [_confusion(expected, called) for expected, called in found.items()]
        return sorted(rows, key=lambda row: (-row.wrong, -row.times, str(row.expected)))


def _confusion(expected: Name, called: Counter[Name]) -> Confusion:
    right = sum(times for name, times in called.items() if _is_right(expected, name))
    instead = [(name, times) for name, times in called.most_common() if not _is_right(expected, name)]
    return Confusion(expected, called.total(), right, instead)


def _is_right(expected: Name, called: Name) -> bool:
    return expected == called or (expected == "*" and called is not Absent.NOTHING)
