"""A failed answer as a page shows it: texts in parts that can be marked, calls side by side, points that add up."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import groupby, islice
from typing import Any, Final, NamedTuple

import msgspec

from arabic_agent_eval.diagnosis import Loss
from arabic_agent_eval.items import ExpectedCall
from arabic_agent_eval.reports.alignment import COMPARED, Stretch, align, character_pairs
from arabic_agent_eval.rows import GradedRow, pairs
from arabic_agent_eval.text import name_invisible
from arabic_agent_eval.tool_choices import Absent, Name
from arabic_agent_eval.tools import Call

SLOTS: Final = 50
"""Calls of an answer that are shown."""
ARGUMENTS: Final = 100
"""Arguments of a call that are shown."""
_JSON_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)(?:"|\\?$)', re.DOTALL)
UNITS: Final = 10_000
"""A point in the smallest units that are printed."""


class Piece(NamedTuple):
    """A part of a text: ``plain``, ``named`` (a character that has no glyph) or ``cut`` (how much is not shown)."""

    kind: str
    text: str


class Part(NamedTuple):
    """Pieces that differ from the other text, or do not."""

    marked: bool
    pieces: list[Piece]


class Run(NamedTuple):
    """Parts of a value that belong together; ``inside`` is a text within JSON, which has a direction of its own."""

    inside: bool
    parts: list[Part]


class Shown(NamedTuple):
    """A value; ``code`` is JSON, which runs from left to right whatever it holds."""

    code: bool
    runs: list[Run]


class Note(NamedTuple):
    """Points lost for a cause, in the smallest printed units, and how many surplus calls that is."""

    cause: str
    units: int
    times: int = 1


class Argument(NamedTuple):
    """An argument: ``right``, ``accepted``, ``wrong``, ``missing``, ``surplus`` (of a surplus call) or ``ignored``.

    ``expected`` is None where nothing was expected, or anything. ``named`` are the characters that differ: those
    expected and those in their place, each may be none.
    """

    name: str
    kind: str
    expected: Shown | None
    actual: Shown | None
    named: list[tuple[str, str]]
    notes: list[Note]


class Slot(NamedTuple):
    """An expected call beside the actual one.

    ``sent`` is what could not be read as arguments; ``apart`` are the arguments of calls that are not compared.
    """

    number: int
    expected: Name
    called: Name
    arguments: list[Argument]
    sent: Shown | None
    apart: tuple[Shown | None, Shown | None] | None
    notes: list[Note]
    hidden: int


class Step(NamedTuple):
    """A call of a conversation and what the simulated tool answered."""

    name: Name
    arguments: Shown
    answer: Shown | None


class Card(NamedTuple):
    """A failed answer. ``hidden`` counts the calls that are not shown; ``notes`` belong to no call that is."""

    row: GradedRow
    units: int
    slots: list[Slot]
    hidden: int
    notes: list[Note]
    steps: list[Step]

    @property
    def causes(self) -> list[str]:
        """Its causes, each once."""
        return list(dict.fromkeys(loss.cause for loss in self.row.losses or ()))

    @property
    def tools(self) -> list[str]:
        """The names of the tools that were expected or called in what is shown, each once."""
        names = (name for slot in self.slots for name in (slot.expected, slot.called))
        return list(dict.fromkeys(name for name in names if isinstance(name, str)))


def pieces(text: str, limit: int = COMPARED) -> list[Piece]:
    """A text with what the eye would miss named, and its end cut off where it is too long."""
    if len(text) <= limit and text.isascii() and text.isprintable():
        return [Piece("plain", text)]
    found = []
    for named, run in groupby(text[:limit], _is_invisible):
        shown = "".join(run)
        found.append(Piece("named", name_invisible(shown, spaces=True)) if named else Piece("plain", shown))
    if len(text) > limit:
        found.append(Piece("cut", f"… (+{len(text) - limit:,})"))
    return found


def _is_invisible(char: str) -> bool:
    return name_invisible(char, spaces=True) != char


def apportion(values: Sequence[float], units: int) -> list[int]:
    """Whole units that are as near to the values as can be and add up: printed parts of a printed sum.

    Args:
        values: the parts, in points.
        units: their sum in the smallest printed units.
    """
    exact = [value * UNITS for value in values]
    found = [math.floor(value + 1e-9) for value in exact]
    missing = units - sum(found)
    order = sorted(range(len(exact)), key=lambda place: found[place] - exact[place])
    step = 1 if missing > 0 else -1
    for turn in range(min(abs(missing), len(order))):
        found[order[turn] if step > 0 else order[-1 - turn]] += step
    return found


def lost_units(score: float) -> int:
    """1 − score in the smallest printed units, so that it and the printed score make 1."""
    return UNITS - round(score * UNITS)


def card_of(row: GradedRow) -> Card:
    """A failed answer as it is shown."""
    units = lost_units(row.total or 0.0)
    ledger = _Ledger(row.losses or (), units)
    places = pairs(row)
    slots = [_slot(row, place, other, ledger) for place, other in places[:SLOTS]]
    return Card(row, units, slots, len(places) - len(slots), ledger.rest(), _steps(row))


class _Ledger:
    """The losses of an answer; each of them is taken once, so that everything shown adds up."""

    def __init__(self, losses: Sequence[Loss], units: int) -> None:
        groups: dict[tuple[bool, int | None, str | None, str], list[Loss]] = {}
        for loss in losses:
            key = (loss.cause == "extra_call", loss.call, loss.argument, loss.cause)
            groups.setdefault(key, []).append(loss)
        shares = apportion([math.fsum(loss.points for loss in several) for several in groups.values()], units)
        self._left: dict[tuple[bool, int | None], dict[str | None, list[tuple[Note, Any]]]] = {}
        for ((surplus, call, argument, cause), several), share in zip(groups.items(), shares, strict=True):
            note = Note(cause, share, max(loss.count for loss in several))
            taken = self._left.setdefault((surplus, call), {}).setdefault(argument, [])
            taken.append((note, several[0].expected))

    def of_argument(self, place: int, name: str) -> tuple[list[Note], Any]:
        """Take what an argument lost, and the value that it was compared with."""
        found = self._left.get((False, place), {}).pop(name, [])
        return [note for note, _ in found], found[0][1] if found else None

    def of_slot(self, place: int | None, other: int | None) -> list[Note]:
        """Take what else a slot lost."""
        return _merged([self._left.pop((True, other) if place is None else (False, place), {})])

    def causes_of(self, place: int | None) -> set[str]:
        """The causes that concern the whole call."""
        return {note.cause for note, _ in self._left.get((False, place), {}).get(None, [])}

    def rest(self) -> list[Note]:
        """What nobody took."""
        return _merged(self._left.values())


def _merged(groups: Iterable[dict[str | None, list[tuple[Note, Any]]]]) -> list[Note]:
    """One note a cause."""
    found: dict[str, Note] = {}
    for note, _ in (entry for group in groups for several in group.values() for entry in several):
        before = found.get(note.cause, Note(note.cause, 0))
        found[note.cause] = Note(note.cause, before.units + note.units, max(before.times, note.times))
    return list(found.values())


def _slot(row: GradedRow, place: int | None, other: int | None, ledger: _Ledger) -> Slot:
    expected = None if place is None else row.expected_calls[place]
    actual = None if other is None or row.actual_calls is None else row.actual_calls[other]
    called: Name = Absent.NOTHING if actual is None else actual.function or Absent.UNREADABLE
    arguments: list[Argument] = []
    sent: Shown | None = None
    apart, hidden = None, 0
    if actual is not None and actual.error is not None:
        sent = _code(actual.raw)
    elif actual is None or ledger.causes_of(place) & {"wrong_order", "missing_call"}:
        apart = (_written_call(expected), _written_call(actual))
    else:
        arguments, hidden = _arguments(expected, actual, place, ledger)
    return Slot(
        number=(place if place is not None else other or 0) + 1,
        expected=Absent.NOTHING if expected is None else expected.function,
        called=called,
        arguments=arguments,
        sent=sent,
        apart=apart,
        notes=ledger.of_slot(place, other),
        hidden=hidden,
    )


def _written_call(call: ExpectedCall | Call | None) -> Shown | None:
    return None if call is None else _code(call.arguments)


def _arguments(
    expected: ExpectedCall | None, actual: Call, place: int | None, ledger: _Ledger
) -> tuple[list[Argument], int]:
    """The arguments that are shown, the expected ones first, and how many are not."""
    wanted = {} if expected is None else {name: one for name, one in expected.arguments.items() if one is not None}
    others = [name for name in actual.arguments if name not in wanted]
    found = []
    for name in islice(wanted, ARGUMENTS):
        notes, compared = ledger.of_argument(place or 0, name)
        value = wanted[name] if compared is None else compared
        found.append(_argument(name, value, actual.arguments.get(name), notes))
    kind = "surplus" if expected is None else "ignored"
    shown = others[: ARGUMENTS - len(found)]
    found += [Argument(name, kind, None, _value(actual.arguments[name]), [], []) for name in shown]
    return found, len(wanted) + len(others) - len(found)


def _argument(name: str, expected: Any, actual: Any, notes: list[Note]) -> Argument:
    if not notes and actual is not None:
        kind = "right" if expected in (actual, "*") else "accepted"
        return Argument(name, kind, _value(expected), _value(actual), [], [])
    if actual is None:
        return Argument(name, "missing", None if expected == "*" else _value(expected), None, [], notes)
    stretches = align(written(expected), written(actual))
    if not stretches:
        return Argument(name, "wrong", _value(expected), _value(actual), [], notes)
    marked = _whole_letters(stretches)
    left = _value(expected, [(not one.same, one.expected) for one in marked])
    right = _value(actual, [(not one.same, one.actual) for one in marked])
    return Argument(name, "wrong", left, right, character_pairs(stretches), notes)


def _code(value: Any) -> Shown:
    """Something that is shown as code, although it may be a text."""
    return _value(value)._replace(code=True) if not isinstance(value, str) else Shown(code=True, runs=_runs(value))


def _value(value: Any, segments: Sequence[tuple[bool, str]] | None = None) -> Shown:
    """A value, with marks where segments are given: the beginning of its text, each marked or not."""
    text, code = written(value), not isinstance(value, str)
    return Shown(code, _runs(text, segments, code=code))


def _runs(text: str, segments: Sequence[tuple[bool, str]] | None = None, *, code: bool = True) -> list[Run]:
    segments = [(False, text[:COMPARED])] if segments is None else segments
    spans = [found.span(1) for found in _JSON_TEXT.finditer(text[:COMPARED])] if code else []
    bounds = [*(bound for span in spans for bound in span), COMPARED]
    inside, found, start = False, [Run(inside=False, parts=[])], 0
    for marked, segment in segments:
        end = start + len(segment)
        while start < end:
            # Bounds of the texts in JSON come in pairs: here one begins, there it ends.
            while bounds[0] <= start:
                del bounds[0]
                inside = not inside
                found.append(Run(inside, []))
            stop = min(bounds[0], end)
            found[-1].parts.append(Part(marked, pieces(text[start:stop])))
            start = stop
    if len(text) > COMPARED:
        found.append(Run(inside=False, parts=[Part(marked=False, pieces=pieces(text)[-1:])]))
    return [run for run in found if run.parts]


def _whole_letters(stretches: list[Stretch]) -> list[Stretch]:
    """Marks begin at a letter and not at a sign upon it, which could not be seen alone."""
    found: list[Stretch] = []
    for stretch in stretches:
        hangs = any(text and unicodedata.combining(text[0]) for text in (stretch.expected, stretch.actual))
        if hangs and not stretch.same and found and found[-1].same:
            base = _last_letter(found[-1].expected)
            kept = found.pop().expected.removesuffix(base)
            if kept:
                found.append(Stretch(same=True, expected=kept, actual=kept))
            found.append(Stretch(same=False, expected=base + stretch.expected, actual=base + stretch.actual))
        else:
            found.append(stretch)
    return found


def _last_letter(text: str) -> str:
    """The last letter with the signs upon it."""
    start = len(text) - 1
    while start > 0 and unicodedata.combining(text[start]):
        start -= 1
    return text[start:]


def _steps(row: GradedRow) -> list[Step]:
    """The conversation; nothing where the item was one question and one answer."""
    if row.results is msgspec.UNSET:
        return []
    answers = [*row.results[:SLOTS], *[""] * SLOTS]
    calls = (row.actual_calls or [])[:SLOTS]
    return [
        Step(call.function or Absent.UNREADABLE, _code(call.arguments), _code(answer) if answer else None)
        for call, answer in zip(calls, answers, strict=False)
    ]


def written(value: Any) -> str:
    """A value as it is shown: text as it stands, all else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
