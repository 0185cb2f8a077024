"""The failures that a page shows, gathered while the rows go by."""

from __future__ import annotations

import heapq
from typing import Final

from arabic_agent_eval.rows import GradedRow
from arabic_agent_eval.tally import FULL

FAILURES: Final = 200
"""Failures that a page shows unless it is told otherwise; the rest are counted."""


class Failures:
    """Collects from graded rows in any number; of the failures those that lost most are kept."""

    def __init__(self, most: int = FAILURES) -> None:
        """Collect.

        Args:
            most: failures to keep, 0 or more.
        """
        self._failed = 0
        self._most = most
        self._kept: list[tuple[float, int, GradedRow]] = []

    def add(self, row: GradedRow) -> None:
        """Look at a row; one that was not judged says nothing of the model."""
        if row.total is None or row.total >= FULL:
            return
        # Of two that lost the same, the earlier one is kept.
        entry = (1 - row.total, -self._failed, row)
        self._failed += 1
        if len(self._kept) < self._most:
            heapq.heappush(self._kept, entry)
        elif self._kept:
            heapq.heappushpop(self._kept, entry)

    @property
    def kept(self) -> list[GradedRow]:
        """The kept rows in the order in which they came."""
        return [row for _, _, row in sorted(self._kept, key=lambda entry: -entry[1])]
