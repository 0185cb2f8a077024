"""Graded answers as a JUnit XML file, which systems for continuous integration show as tests.

A category is a suite, an answer a test: one that lost points has failed, one that a provider's failure prevented is an
error, and one that was not asked for, or has no reply, was skipped. Text from elsewhere is escaped, and before that all
that is invisible in it is named, which includes every character that XML 1.0 forbids.
"""

from __future__ import annotations

import html
import math
import re
from collections import Counter
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING, Final, NamedTuple, Self

from arabic_agent_eval.causes import words
from arabic_agent_eval.errors import OutputError
from arabic_agent_eval.files import WholeFile, reason_of
from arabic_agent_eval.items import CATEGORIES
from arabic_agent_eval.reports.side_by_side import call_lines
from arabic_agent_eval.summary import NO_DIALECT, NOT_ASKED
from arabic_agent_eval.tables import NO_REPLY, number
from arabic_agent_eval.tally import FULL
from arabic_agent_eval.text import name_invisible

if TYPE_CHECKING:
    from pathlib import Path

    from arabic_agent_eval.rows import GradedRow

_IN_MEMORY: Final = 1 << 24  # bytes; what is more waits in a temporary file
_LONGEST: Final = 2_000  # characters of an instruction and of what was said
_NAME: Final = 200  # characters of a name
# Stands around the epoch in a name that is to be left out where each item was asked once; no text can hold it.
_MARK: Final = b"\x00"
_EPOCH: Final = re.compile(rb"\x00[^\x00]*\x00")


class _Place(NamedTuple):
    """Where the cases of a category stand in the temporary file, one after another."""

    start: int
    end: int


class JUnitCases:
    """Collects test cases from graded rows in any order and number; used as a context manager.

    Of every row only its place is kept in memory; neighbours of one category share one.
    """

    def __init__(self) -> None:
        self._kept: IO[bytes] = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - closed by close
        self._places: dict[str, list[_Place]] = {}
        self._counts: dict[str, Counter[str]] = {}
        self._last = ""
        self._several = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of what was collected."""
        self._kept.close()

    def add(self, row: GradedRow) -> None:
        """Add a row.

        Raises:
            OutputError: there is no room for it.
        """
        kind, inside = _outcome(row)
        self._several = self._several or row.epoch > 0
        self._counts.setdefault(row.category, Counter())[kind] += 1
        name = _shown(row.item_id[:_NAME]).encode() + _MARK + f" · epoch {row.epoch}".encode() + _MARK
        place = f'<testcase classname="{_shown((row.dialect or NO_DIALECT)[:_NAME])}" name="'.encode()
        case = place + name + (f'">\n{inside}\n</testcase>\n' if inside else '"/>\n').encode()
        start = self._kept.tell()
        try:
            self._kept.write(case)
        except OSError as error:
            raise OutputError(f"the test cases could not be kept: {reason_of(error)}.") from None
        places = self._places.setdefault(row.category, [])
        if places and self._last == row.category:
            start = places.pop().start
        places.append(_Place(start, self._kept.tell()))
        self._last = row.category

    def write(self, path: Path, *, name: str, signature: str) -> None:
        """Write the file, whole or not at all.

        Args:
            path: the file.
            name: what was graded.
            signature: what the scores were computed from.

        Raises:
            OutputError: it could not be written.
        """
        total: Counter[str] = Counter()
        for counts in self._counts.values():
            total.update(counts)
        known = [category for category in CATEGORIES if category in self._counts]
        with WholeFile(path) as file:
            file.write(b'<?xml version="1.0" encoding="UTF-8"?>\n')
            file.write(f'<testsuites name="{_shown(name[:_NAME])}"{_numbers(total)}>\n'.encode())
            for category in dict.fromkeys([*known, *self._counts]):
                suite = f'<testsuite name="{_shown(category[:_NAME])}"{_numbers(self._counts[category])}>\n'
                stated = f'<property name="signature" value="{_shown(signature)}"/>'
                file.write(f"{suite}<properties>{stated}</properties>\n".encode())
                for place in self._places[category]:
                    self._copy(place, file)
                file.write(b"</testsuite>\n")
            file.write(b"</testsuites>\n")
        self._kept.seek(0, 2)

    def _copy(self, place: _Place, file: WholeFile) -> None:
        self._kept.seek(place.start)
        left = place.end - place.start
        while left > 0 and (line := self._kept.readline(left)):
            left -= len(line)
            file.write(line.replace(_MARK, b"") if self._several else _EPOCH.sub(b"", line))


def _numbers(counts: Counter[str]) -> str:
    kinds = "".join(f' {name}="{counts[kind]}"' for name, kind in _COUNTED.items())
    return f' tests="{counts.total()}"{kinds}'


_COUNTED: Final = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def _outcome(row: GradedRow) -> tuple[str, str]:
    """What became of an answer, and the element that says so; nothing where it is right."""
    if row.total is None:
        kind = "skipped" if row.reason in {NOT_ASKED, NO_REPLY} else "error"
        return kind, f'<{kind} message="{_shown((row.reason or "no reason given")[:_LONGEST])}"/>'
    if row.total >= FULL:
        return "passed", ""
    causes = list(dict.fromkeys(loss.cause for loss in row.losses or ()))
    kind = f' type="{_shown(causes[0][:_NAME])}"' if causes else ""
    return "failure", f'<failure message="{_shown(_message(row, causes))}"{kind}>{_text(row)}</failure>'


def _message(row: GradedRow, causes: list[str]) -> str:
    """The score, and the causes in words with their points."""
    parts = []
    for cause in causes:
        points = math.fsum(loss.points for loss in row.losses or () if loss.cause == cause)
        parts.append(f"−{number(points)} {cause}: {words(cause)}"[:_LONGEST])
    return " ".join([f"Score {number(row.total)}.", *parts])


def _text(row: GradedRow) -> str:
    """Instruction, expected and actual calls, and what was said instead, each on lines of its own."""
    lines = []
    if row.instruction:
        lines += ["Instruction:", f"  {row.instruction[:_LONGEST]}"]
    for head, calls in (("Expected:", row.expected_calls), ("Actual:", row.actual_calls or [])):
        lines += [head, *(f"  {line}" for line in call_lines(calls) or ["(no call)"])]
    if row.said:
        lines += ["Said:", f"  {row.said[:_LONGEST]}"]
    return "\n".join(_shown(line) for line in lines)


def _shown(text: str) -> str:
    """Text from elsewhere, on one line, with everything invisible named and every mark escaped."""
    return html.escape(name_invisible(text, spaces=True))
