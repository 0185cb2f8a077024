"""The figures of the shared task AISA-ArabicFC, of a submission to it: what its own evaluation says, beside ours.

The definitions are those of the card of the data set, version 1.2 (TuwaiqAcademy/AISA-ArabicFC); ``docs/formats.md``
says them in words. They are counted from the submission itself and owe nothing to the rules of this package. The task's
evaluation also takes some names for each other, from a table that the card does not give: its figure may be higher.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from arabic_agent_eval.batch import is_document
from arabic_agent_eval.files import numbered_lines, open_lines, read_json, read_json_line
from arabic_agent_eval.formats import Reply, read_reply
from arabic_agent_eval.items import DIALECTS, ExpectedCall, ItemSet
from arabic_agent_eval.strictjson import number_text
from arabic_agent_eval.summary import NO_DIALECT
from arabic_agent_eval.text import fold_diacritics, fold_digits, fold_letters, fold_space
from arabic_agent_eval.tools import Call

_HEAD = 1 << 16  # a submission shows itself in its first row
_LONGEST = 200  # longer texts say more than a number
_NO_CALL = "none"
_LISTS = frozenset({"items", "country"})
_BETWEEN = re.compile(r"\s*[,،;؛]\s*|\s+و\s+")
_TOOL_WEIGHT, _ARGUMENT_WEIGHT = 0.40, 0.60


class DialectFigures(msgspec.Struct, frozen=True):
    """The task's figures of one dialect, as :class:`Figures` has them of all."""

    n: int
    positives: int
    tool_accuracy: float
    argument_match: float | None


class Gap(msgspec.Struct, frozen=True):
    """The best dialect less the worst, of each figure; None where no dialect has it."""

    tool_accuracy: float | None
    argument_match: float | None


class Figures(msgspec.Struct, frozen=True):
    """What the task's evaluation says of a submission.

    Attributes:
        n: items; positives: those where a tool is to be called; missing: those without an answer, which are wrong.
        tool_accuracy: the share of items with the right name, ``none`` being the right one of an item without a call.
        argument_match: the share of positives whose arguments are all the same once numbers, spelling, number words and
            the order of lists are set aside; None without positives.
        argument_match_as_written: the same with nothing but the value of numbers set aside.
        track_a: 0.40 of the tool accuracy and 0.60 of the argument match; None without positives.
        dialects: name → its figures; gap: between the best and the worst of them.
    """

    n: int
    positives: int
    missing: int
    tool_accuracy: float
    argument_match: float | None
    argument_match_as_written: float | None
    track_a: float | None
    dialects: dict[str, DialectFigures]
    gap: Gap


class _Count:
    """What is counted of a dialect."""

    __slots__ = ("answered", "equal", "n", "positives", "tool", "written")

    def __init__(self) -> None:
        self.n = self.positives = self.answered = self.tool = self.equal = self.written = 0


def figures_of(items: ItemSet, replies: Path, format: str = "auto") -> Figures | None:  # noqa: A002
    """The task's figures of a file of replies that was graded; None where it is no submission to the task.

    It is one when every row has ``tool_called`` and answers once, and no item expects more than one call. Any other
    file costs no more than a look at its head.

    Args:
        items: the items.
        replies: a file of which every row can be read.
        format: how it was graded.
    """
    if format not in {"auto", "submission"} or not _looks_like_one(replies):
        return None
    counts = _due(items)
    if counts is None:
        return None
    for row in _rows(replies):
        reply = read_reply(row, format=format)
        if reply.kind not in {"submission", "failure"} or reply.epoch:
            return None
        if reply.kind == "submission" and reply.item_id in items:
            key = items.answer_key(reply.item_id)
            _judge(counts[_dialect(key.dialect)], reply, key.expected_calls)
    return _figures(counts)


def _looks_like_one(replies: Path) -> bool:
    with open_lines(replies) as stream:
        return b'"tool_called"' in stream.read(_HEAD)


def _rows(replies: Path) -> Iterator[Mapping[str, Any]]:
    if is_document(replies):
        document = read_json(replies)
        yield from document.get("results", [document]) if isinstance(document, dict) else document
    else:
        for number, line in numbered_lines(replies):
            yield read_json_line(line, str(replies), number)


def _dialect(name: str | None) -> str:
    return (name or NO_DIALECT).lower()


def _due(items: ItemSet) -> dict[str, _Count] | None:
    """How many items each dialect has; None where one expects several calls, of which the task knows nothing."""
    counts: dict[str, _Count] = {}
    for item_id in items:
        key = items.answer_key(item_id)
        if len(key.expected_calls) > 1:
            return None
        count = counts.setdefault(_dialect(key.dialect), _Count())
        count.n += 1
        count.positives += len(key.expected_calls)
    return counts


def _judge(count: _Count, reply: Reply, expected: list[ExpectedCall]) -> None:
    name = (reply.payload["tool_called"] or "").strip() or _NO_CALL
    count.answered += 1
    count.tool += name == (expected[0].function if expected else _NO_CALL)
    if expected:  # whichever tool was named
        call = Call.read(name, reply.payload["arguments"])
        right, given = _present(expected[0].arguments), _present(call.arguments)
        if call.error is None and right.keys() == given.keys():
            as_written = _agree(right, given, _as_written)
            count.written += as_written
            count.equal += as_written or _agree(right, given, _canonical)


def _present(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value is not None and value != ""}


def _agree(right: Mapping[str, Any], given: Mapping[str, Any], form: Callable[[str, Any], object]) -> bool:
    return all(form(name, value) == form(name, given[name]) for name, value in right.items())


def _as_written(name: str, value: Any) -> str:  # noqa: ARG001 - the other form asks for it
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number_text(value)
    return msgspec.json.encode(value, order="deterministic").decode()


def _canonical(name: str, value: Any) -> object:
    """The form in which the card calls two values the same."""
    if name not in _LISTS:
        return _folded(_as_written(name, value))
    members = value if isinstance(value, list) else [value]
    return sorted(_folded(part) for one in members for part in _BETWEEN.split(_as_written(name, one)) if part)


def _folded(text: str) -> str:
    from arabic_agent_eval.numbers import digits_for_words, read_number  # noqa: PLC0415 - its tables take a while

    text = fold_space(fold_letters(fold_diacritics(fold_digits(text))))
    if len(text) > _LONGEST:
        return text
    number = read_number(text)
    return digits_for_words(text) if number is None else number_text(number)


# --- from counts to figures ----------------------------------------------------------------------------------


def _figures(counts: Mapping[str, _Count]) -> Figures:
    order = sorted(counts, key=lambda name: (DIALECTS.index(name) if name in DIALECTS else len(DIALECTS), name))
    dialects = {name: _of_dialect(counts[name]) for name in order}
    n, positives = _sum(counts, "n"), _sum(counts, "positives")
    tool, argument = _sum(counts, "tool") / n, _share(_sum(counts, "equal"), positives)
    return Figures(
        n=n,
        positives=positives,
        missing=n - _sum(counts, "answered"),
        tool_accuracy=tool,
        argument_match=argument,
        argument_match_as_written=_share(_sum(counts, "written"), positives),
        track_a=None if argument is None else _TOOL_WEIGHT * tool + _ARGUMENT_WEIGHT * argument,
        dialects=dialects,
        gap=Gap(
            _spread([one.tool_accuracy for one in dialects.values()]),
            _spread([one.argument_match for one in dialects.values()]),
        ),
    )


def _of_dialect(count: _Count) -> DialectFigures:
    return DialectFigures(count.n, count.positives, count.tool / count.n, _share(count.equal, count.positives))


def _sum(counts: Mapping[str, _Count], name: str) -> int:
    return sum(getattr(count, name) for count in counts.values())


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _spread(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return max(known) - min(known) if known else None
