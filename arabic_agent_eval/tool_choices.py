"""Which tool was called where which was expected, counted while the rows go by."""

from __future__ import annotations

from collections import Counter
from enum import Enum

import msgspec

from arabic_agent_eval.rows import GradedRow, pairs


class Absent(Enum):
    """What stands in place of a tool's name."""

    NOTHING = "nothing"
    UNREADABLE = "unreadable"


Name = str | Absent


class ToolChoice(msgspec.Struct, frozen=True):
    """What was called where one tool was expected.

    Attributes:
        expected: the tool, ``*`` for any; None for calls that nobody asked for.
        times: how often it was expected; of calls that nobody asked for, how many there were.
        right: how often it was called there.
        instead: other tool → how often it was called there, the most frequent first.
        nothing: how often nothing was called there.
        unreadable: how often the call that stood there names no tool.
    """

    expected: str | None
    times: int
    right: int
    instead: dict[str, int]
    nothing: int
    unreadable: int

    @property
    def wrong(self) -> int:
        """How often something else was called, or nothing."""
        return self.times - self.right

    @property
    def in_its_place(self) -> list[tuple[Name, int]]:
        """All that stood there but the tool itself, the most frequent first."""
        found: list[tuple[Name, int]] = [*self.instead.items()]
        found += [(Absent.NOTHING, self.nothing), (Absent.UNREADABLE, self.unreadable)]
        return sorted([one for one in found if one[1]], key=lambda one: -one[1])


class ToolChoices:
    """Counts the calls of graded rows in any number."""

    def __init__(self) -> None:
        self._met: dict[Name, Counter[Name]] = {}

    def add(self, row: GradedRow) -> None:
        """Count the calls of a row; one that was not judged says nothing of the model."""
        if row.total is None:
            return
        for place, other in pairs(row):
            called: Name = Absent.NOTHING
            if other is not None and row.actual_calls:
                called = row.actual_calls[other].function or Absent.UNREADABLE
            expected = Absent.NOTHING if place is None else row.expected_calls[place].function
            self._met.setdefault(expected, Counter())[called] += 1

    def counted(self) -> list[ToolChoice]:
        """Every tool that was expected, those with most wrong calls first."""
        found = [_choice(expected, called) for expected, called in self._met.items()]
        return sorted(found, key=lambda one: (-one.wrong, -one.times, str(one.expected)))


def _choice(expected: Name, called: Counter[Name]) -> ToolChoice:
    right = sum(times for name, times in called.items() if _is_right(expected, name))
    others = {name: times for name, times in called.most_common()
              if isinstance(name, str) and not _is_right(expected, name)}  # fmt: skip
    return ToolChoice(
        expected=expected if isinstance(expected, str) else None,
        times=called.total(),
        right=right,
        instead=others,
        nothing=called[Absent.NOTHING],
        unreadable=called[Absent.UNREADABLE],
    )


def _is_right(expected: Name, called: Name) -> bool:
    return expected == called or (expected == "*" and isinstance(called, str))
