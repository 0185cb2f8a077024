"""Grading one range of a file of replies: what a process does for its share of the work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import msgspec

from arabic_agent_eval.diagnosis import diagnose
from arabic_agent_eval.errors import DataError
from arabic_agent_eval.files import lines_between, open_lines, read_json_line
from arabic_agent_eval.formats import Reply, read_reply, words_of
from arabic_agent_eval.grading import Expectation, is_identical
from arabic_agent_eval.items import AnswerKey, Category, ExpectedCall, Item, ItemSet
from arabic_agent_eval.markup import read_text
from arabic_agent_eval.readers import OwnFormat
from arabic_agent_eval.rules import CANONICAL, RULES
from arabic_agent_eval.scoring import Grader, Result, Signature
from arabic_agent_eval.shortcuts import Called, compare_in_any_order, compare_in_order, survey
from arabic_agent_eval.strictjson import MAX_DEPTH, too_deep
from arabic_agent_eval.summary import weight_of
from arabic_agent_eval.tally import ItemFacts, LossKey, Outcome, Tally
from arabic_agent_eval.tools import Call

_FEW_CALLS = 8
_LONGEST_SHOWN = 80
SAID = 2_000
"""So many characters of what a reply says in words are kept."""


@dataclass(frozen=True)
class Options:
    """How replies are graded.

    Attributes:
        rules: the name of the rule set.
        format: one of ``formats.FORMATS``, or the reader of one that is not built in.
        causes: whether to explain lost points.
        signature: of the rows to write; None when none are written.
        allow_unknown: whether replies to unknown items are left out instead of refused.
        categories: declared categories; an item of any other but the canonical ones is refused. None: no check.
    """

    rules: str = CANONICAL.name
    format: str | OwnFormat = "auto"
    causes: bool = True
    signature: Signature | None = None
    allow_unknown: bool = False
    categories: Mapping[str, Category] | None = None


@dataclass
class RangeResult:
    """What one range came to.

    Attributes:
        tally: outcomes by item.
        first: the items that were answered the short way, in epoch 0; again: item and epoch of all other answers.
        rows: the graded rows as lines, where they are wanted.
        lines: how many lines the range has.
        failures: answers that a provider's failure left unscored; unknown: answers to unknown items that were left out.
        written: answers without a call whose words hold one: perhaps read with the wrong format.
    """

    tally: Tally = field(default_factory=Tally)
    first: list[str] = field(default_factory=list)
    again: list[tuple[str, int]] = field(default_factory=list)
    rows: bytearray = field(default_factory=bytearray)
    lines: int = 0
    failures: int = 0
    unknown: int = 0
    written: int = 0


class _WrittenCall(msgspec.Struct, gc=False):
    """A call whose arguments are the text of an object; it is read in place, since every object made costs time."""

    function: Annotated[str, msgspec.Meta(min_length=1)] = msgspec.field(name="name")
    text: str = msgspec.field(name="arguments")
    arguments: dict[str, Any] = msgspec.field(name="", default=None)  # type: ignore[arg-type]  # filled in when read


class _ToolCall(msgspec.Struct, gc=False):
    function: _WrittenCall


class _PlainRow(msgspec.Struct, gc=False):
    """A row of calls in a plain shape; any other row fails to decode as this and is read field by field."""

    id: str | int | None = None
    item_id: str | int | None = None
    epoch: int = 0
    error: None = None
    custom_id: None = None
    calls: list[ExpectedCall] | None = None
    actual_calls: list[ExpectedCall] | None = None
    tool_calls: list[_ToolCall] | None = None
    text: msgspec.Raw | None = None
    content: msgspec.Raw | None = None
    message: msgspec.Raw | None = None
    response: msgspec.Raw | None = None


def _is_silent(row: _PlainRow) -> bool:
    """Whether a row without calls says nothing in words either: words would have to be looked into."""
    return row.text is row.content is row.message is row.response is None


_PLAIN_FIELDS = {
    "auto": frozenset({"calls", "tool_calls"}),
    "calls": frozenset({"calls"}),
    "tool_calls": frozenset({"tool_calls"}),
}
_decode_plain = msgspec.json.Decoder(_PlainRow).decode
_decode_arguments = msgspec.json.Decoder(dict[str, Any]).decode


def _written_calls(tool_calls: Iterable[_ToolCall]) -> Sequence[Called] | None:
    """The calls whose arguments are the text of an object; None where any is not, or may nest too deep."""
    calls = []
    try:
        for tool_call in tool_calls:
            call = tool_call.function
            text = call.text
            # Nothing nests deeper than it has opening brackets, and each needs one that closes.
            if len(text) > 2 * MAX_DEPTH and text.count("{") + text.count("[") > MAX_DEPTH:
                return None
            call.arguments = _decode_arguments(text)
            calls.append(call)
    except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError):
        return None
    return calls


class RangeGrader:
    """Grades ranges of one file; each process has one."""

    def __init__(self, items: ItemSet, replies: Path, options: Options) -> None:
        self.items = items
        self.replies = replies
        self.options = options
        self.rules = RULES[options.rules]
        self.expectations: dict[str, tuple[Expectation, ItemFacts]] = {}
        self.same: dict[Outcome, Outcome] = {}
        self.outcomes: dict[tuple[str, str | None, bool], tuple[Outcome, Outcome]] = {}

    def grade_range(self, start: int, end: int) -> RangeResult:
        """Grade the lines that begin in a range of bytes.

        Raises:
            DataError: a row cannot be read or answers no item; its line is counted from the start of the range.
        """
        part = RangeResult()
        with open_lines(self.replies) as stream:
            lines = lines_between(stream, start, end)
            fields = _PLAIN_FIELDS.get(str(self.options.format))
            if fields and self.options.signature is None:
                self._grade_plain(lines, part, fields)
            else:
                for line in lines:
                    self._grade_line(line, part)
        return part

    def try_range(self, start: int, end: int) -> RangeResult | DataError:
        """Like :meth:`grade_range`, with an error as a value: another process can hand it on."""
        try:
            return self.grade_range(start, end)
        except DataError as error:
            return error

    def _grade_plain(  # noqa: C901, PLR0912 - one loop, kept in one place for its speed
        self, lines: Iterable[bytes], part: RangeResult, fields: frozenset[str]
    ) -> None:
        """The short way: rows of a plain shape are decoded to calls at once; any other goes the long way.

        This loop is what grading a large file costs, so what it does for every row is kept to a minimum: replies in
        the order of the items are met by the next item, and what is right or silent is never compiled.
        """
        outcomes, add_first, known = part.tally.outcomes, part.first.append, self.outcomes
        latest, causes = self.items.latest, self.options.causes
        from_calls, from_tool_calls, rules = "calls" in fields, "tool_calls" in fields, self.rules
        for line in lines:
            try:
                row = _decode_plain(line)
            except (msgspec.MsgspecError, RecursionError):
                self._grade_line(line, part)
                continue
            calls: Sequence[Called] | None = row.calls if row.actual_calls is None else row.actual_calls
            if calls is None and from_tool_calls and row.tool_calls is not None:
                calls = _written_calls(row.tool_calls) if row.tool_calls or _is_silent(row) else None
            elif not from_calls:
                calls = None
            item_id = row.id if row.item_id is None else row.item_id
            if calls is None or type(item_id) is not str or row.epoch or item_id in outcomes:
                self._grade_repeated(item_id, calls, row.epoch, line, part)
                continue
            key = latest.get(item_id)
            if key is None:
                try:
                    key = self.items.answer_key(item_id)
                except KeyError:
                    self._grade_line(line, part)
                    continue
                latest = self.items.latest
            part.lines += 1
            add_first(key.id)
            plain, arabic = survey(key.expected_calls, rules)
            perfect, nothing = known.get((key.category, key.dialect, arabic)) or self._outcomes(key, arabic)
            expected = key.expected_calls
            right = len(expected) == len(calls)
            if right:
                for wanted, call in zip(expected, calls, strict=True):
                    if wanted.arguments != call.arguments or wanted.function != call.function:
                        right = False
                        break
            if right and (plain or self._is_identical(key, calls)):
                outcomes[key.id] = perfect
            elif not calls and not causes and expected:
                outcomes[key.id] = nothing
            else:
                if not plain and any(too_deep([call.arguments, call.accept], MAX_DEPTH + 1) for call in expected):
                    self.items[item_id]  # which refuses it, and says where it stands
                outcomes[key.id] = self._compare(key, calls, line, part, perfect.facts)

    def _compare(
        self, key: AnswerKey, calls: Sequence[Called], line: bytes, part: RangeResult, facts: ItemFacts
    ) -> Outcome:
        """The outcome of an answer that is not right at sight; without causes it is compared without evidence."""
        expected = key.expected_calls
        if self.options.causes or not expected or len(calls) > _FEW_CALLS or _may_be_deep(line):
            return self._judge(Expectation.of(key, self.rules), key.id, calls, line, part, facts)
        if key.ordered or not calls:
            axes = compare_in_order(expected, calls, self.rules)
        else:
            axes = compare_in_any_order(expected, calls, key.category, self.rules)
        return self._one_object(Outcome(facts, *axes))

    def _is_identical(self, key: AnswerKey, calls: Sequence[Called]) -> bool:
        """Whether calls that Python calls equal are right: it also says so of 1 and true."""
        if not calls and self.rules.nothing_expected != "abstain":
            return False
        for expected, call in zip(key.expected_calls, calls, strict=True):
            if not is_identical(expected.arguments, call.arguments):
                return False
        return True

    def _grade_repeated(
        self, item_id: object, calls: Sequence[Called] | None, epoch: int, line: bytes, part: RangeResult
    ) -> None:
        """A row whose item was met before or has a number for its id, or that is no plain row after all."""
        given = str(item_id) if type(item_id) is int else item_id
        if calls is None or not isinstance(given, str) or epoch < 0 or given not in self.items:
            self._grade_line(line, part)
            return
        part.lines += 1
        part.again.append((given, epoch))
        found = self.expectations.get(given)
        if found is None:
            item = self.items[given]  # checked whole, and worth compiling and keeping if it is asked often
            facts = self._facts(item)
            found = self.expectations[given] = Expectation.of(item, self.rules), facts
        part.tally.add(given, self._judge(found[0], given, calls, line, part, found[1]))

    def _outcomes(self, item: AnswerKey, arabic: bool) -> tuple[Outcome, Outcome]:  # noqa: FBT001
        """The outcomes of a right and of a silent answer: one object each for all items with the same facts."""
        found = self.outcomes.get((item.category, item.dialect, arabic))
        if found is None:
            facts = ItemFacts(item.category, item.dialect, arabic)
            if self.options.categories is not None:
                weight_of(item.category, self.options.categories)
            found = self.outcomes[facts] = Outcome(facts, 1.0, 1.0, 1.0), Outcome(facts, 0.0, 0.0, 0.0)
        return found

    def _facts(self, item: AnswerKey) -> ItemFacts:
        return self._outcomes(item, survey(item.expected_calls, self.rules)[1])[0].facts

    def _judge(
        self,
        expectation: Expectation,
        item_id: str,
        calls: Sequence[Called],
        line: bytes,
        part: RangeResult,
        facts: ItemFacts,
    ) -> Outcome:
        read = Call.read if _may_be_deep(line) else Call
        made = [read(call.function, call.arguments) for call in calls]
        causes = self.options.causes
        verdict = expectation.judge(made, evidence=causes)
        lost: tuple[LossKey, ...] = ()
        if causes and (verdict.matches or not verdict.function):
            lost = part.tally.add_losses(item_id, diagnose(verdict, expectation, made))
        return self._one_object(Outcome(facts, verdict.function, verdict.argument, verdict.arabic, lost))

    def _one_object(self, outcome: Outcome) -> Outcome:
        """Equal outcomes as one object, which a process hands to its parent once and not a thousand times."""
        return self.same.setdefault(outcome, outcome)

    def _grade_line(self, line: bytes, part: RangeResult) -> None:
        """The long way: any row, field by field."""
        part.lines += 1
        if not line.isspace():
            self.grade_row(read_json_line(line, str(self.replies), part.lines), part, part.lines)

    def grade_row(self, row: Mapping[str, Any], part: RangeResult, number: int | None, place: str = "") -> None:
        """Grade one decoded row.

        Raises:
            DataError: the row cannot be read or answers no item; the message names its line or place.
        """
        try:
            reply = read_reply(row, format=self.options.format)
            item = self._item(reply.item_id)
            if item is None:
                part.unknown += 1
            else:
                self.grade_reply(item, reply, lambda: words_of(row), part)
        except DataError as error:
            raise _placed(error, str(self.replies), number, place) from None

    def grade_reply(self, item: Item, reply: Reply, words: Callable[[], str], part: RangeResult) -> None:
        """Grade one reply to an item.

        Args:
            item: the item.
            reply: the reply to it.
            words: what the reply says in words; asked for only where it makes no call.
            part: what the outcome is added to.
        """
        result = Grader(item, self.rules).evaluate(reply, causes=self.options.causes)
        said = words()[:SAID] if result.score is not None and not result.calls else ""
        self.count(item, result, said, part)
        if self.options.signature is not None:
            from arabic_agent_eval.rows import row_line, row_of  # noqa: PLC0415 - only who writes rows needs them

            causes, signature = self.options.causes, self.options.signature
            part.rows += row_line(row_of(item, result, signature, causes=causes, said=said or None))

    def count(self, item: Item, result: Result, said: str, part: RangeResult) -> None:
        """Count a judged reply.

        Args:
            item: the item.
            result: what the reply came to.
            said: the beginning of what a reply without a call says in words.
            part: what the outcome is added to.
        """
        part.again.append((result.item_id, result.epoch))
        part.failures += result.score is None
        part.written += bool(said) and self.options.format != "text" and bool(read_text(said, item.offered))
        self._count(result, self._facts(item), part.tally)

    def _item(self, item_id: str) -> Item | None:
        try:
            return self.items[item_id]
        except KeyError:
            if self.options.allow_unknown:
                return None
        shown = item_id if len(item_id) <= _LONGEST_SHOWN else item_id[:_LONGEST_SHOWN] + "…"
        raise DataError(
            f"there is no item {shown!r} in {self.items.name}.",
            field="id",
            remedy="Check that the replies belong to these items, or pass --allow-unknown to leave such rows out.",
        )

    def _count(self, result: Result, facts: ItemFacts, tally: Tally) -> None:
        score = result.score
        if score is None:
            tally.add_unscored(result.item_id, result.reason or "unscored", facts=facts)
            return
        lost = tally.add_losses(result.item_id, result.losses) if result.losses else ()
        axes = score.function_selection, score.argument_accuracy, score.arabic_preservation
        tally.add(result.item_id, self._one_object(Outcome(facts, *axes, lost)))


def _may_be_deep(line: bytes) -> bool:
    """Whether a line has enough brackets to nest too deep."""
    return line.count(b"{") + line.count(b"[") > MAX_DEPTH


def _placed(error: DataError, path: str, number: int | None, place: str) -> DataError:
    found = error.at(path, number)
    if place and number is None:
        found.field = f"{place}.{found.field}" if found.field else place
    return found
