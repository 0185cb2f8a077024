"""Grading files of replies: any size, one process or several, every number the same.

A file is cut into ranges of bytes; each range is graded to a tally and its rows; ranges are merged in order.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from arabic_agent_eval.diagnosis import diagnose
from arabic_agent_eval.errors import DataError, EvalError, UsageError
from arabic_agent_eval.files import WholeFile, collector_paused, json_type, open_lines, read_json, read_json_line
from arabic_agent_eval.formats import FORMATS, Reply, read_reply
from arabic_agent_eval.grading import expects_arabic, survey
from arabic_agent_eval.items import AnswerKey, ExpectedCall, ItemSet
from arabic_agent_eval.rows import row_line, row_of
from arabic_agent_eval.rules import CANONICAL, RULES, Rules
from arabic_agent_eval.scoring import Grader, Result, Signature
from arabic_agent_eval.strictjson import MAX_DEPTH
from arabic_agent_eval.summary import NO_REPLY, ItemFacts
from arabic_agent_eval.tally import Ledger, LossKey, Outcome, Tally
from arabic_agent_eval.tools import Call

_SMALLEST_RANGE, _LARGEST_RANGE = 1 << 18, 1 << 24
_LARGEST_DOCUMENT = 1 << 31

Progress = Callable[[int, int], None]
"""Called with the bytes read so far and in all."""


@dataclass(frozen=True)
class Options:
    """How replies are graded."""

    signature: Signature
    rules: str = CANONICAL.name
    format: str = "auto"
    causes: bool = True
    rows: bool = False
    allow_unknown: bool = False


@dataclass
class GradedBatch:
    """The outcome of grading a file.

    Attributes:
        tally: outcomes by item.
        facts: what is known of every item that was answered.
        due: how many items the set has.
        signature: of the numbers to come, epochs aside.
        failures: replies that carried a provider's failure; unknown: replies to no item of the set.
    """

    tally: Tally
    facts: dict[str, ItemFacts]
    due: int
    signature: Signature
    failures: int = 0
    unknown: int = 0

    @property
    def silent(self) -> int:
        """How many items have no reply at all."""
        return self.due - len(self.facts)


def grade_file(
    items: ItemSet,
    replies: Path,
    *,
    rules: Rules = CANONICAL,
    format: str = "auto",  # noqa: A002 - the option's name
    jobs: int = 1,
    causes: bool = True,
    out: Path | None = None,
    allow_unknown: bool = False,
    progress: Progress | None = None,
) -> GradedBatch:
    """Grade a file of replies against an item set.

    Args:
        items: the items.
        replies: JSONL, or JSON with a list of rows or a published run file.
        rules: the rule set.
        format: one of ``formats.FORMATS``.
        jobs: processes; the numbers do not depend on it.
        causes: whether to explain lost points.
        out: a file for the graded rows, written whole or not at all.
        allow_unknown: count replies to unknown items instead of refusing the file.
        progress: called now and then.

    Raises:
        DataError: a row cannot be read, answers twice, or answers no item.
        OutputError: the rows could not be written.
        UsageError: an option makes no sense.
    """
    if format not in FORMATS:
        raise UsageError(f"there is no reply format {format!r}; choose one of {', '.join(FORMATS)}.")
    if jobs < 1:
        raise UsageError("the number of jobs must be at least 1.")
    signature = Signature(f"{items.name}@{items.fingerprint}", len(items), rules.tag, format)
    options = Options(signature, rules.name, format, causes, out is not None, allow_unknown)
    parts = _parts(items, replies, options, jobs, progress)
    with collector_paused():
        batch = GradedBatch(Tally(), {}, len(items), signature)
        if out is None:
            _merge(batch, parts, replies, None)
        else:
            with WholeFile(out) as file:
                _merge(batch, parts, replies, file)
                _write_silent(items, batch, options, file)
        for item_id in items:
            if item_id not in batch.facts:
                items.answer_key(item_id)  # a bad line is an error even where nobody answered it
    return batch


def _merge(batch: GradedBatch, parts: Iterable[_Part], replies: Path, file: WholeFile | None) -> None:
    ledger = Ledger()
    for part in parts:
        twice = ledger.add_all(part.ids, part.epochs)
        if twice is not None:
            raise _answered_twice(replies, part.ids[twice], part.epochs[twice])
        batch.tally.merge(part.tally)
        batch.facts.update(part.facts)
        batch.failures += part.failures
        batch.unknown += part.unknown
        if file is not None:
            file.write(bytes(part.rows))


def _answered_twice(replies: Path, item_id: str, epoch: int) -> DataError:
    """Only now look for the lines: the error is rare and the file may be long."""
    lines = []
    if not is_document(replies):
        for number, line in enumerate(open_lines(replies), 1):
            if item_id.encode() in line or item_id.isdigit():
                reply = _readable(line)
                if reply is not None and (reply.item_id, reply.epoch) == (item_id, epoch):
                    lines.append(number)
    where = f" (lines {lines[0]} and {lines[1]})" if len(lines) > 1 else ""
    return DataError(
        f"item {item_id!r} is answered twice in epoch {epoch}{where}.",
        path=str(replies),
        line=lines[1] if len(lines) > 1 else None,
        field="id",
        remedy="Give repeated answers different numbers in 'epoch'.",
    )


def _readable(line: bytes) -> Reply | None:
    try:
        return read_reply(read_json_line(line, "", 0))
    except EvalError:
        return None


def _write_silent(items: ItemSet, batch: GradedBatch, options: Options, file: WholeFile) -> None:
    """Items without any reply get a row that says so, so that coverage survives in the rows."""
    for item in items.values():
        if item.id not in batch.tally.outcomes and item.id not in batch.tally.unscored:
            result = Result(
                item.id, item.category, item.dialect, 0, None, NO_REPLY, batch.facts[item.id].arabic, (), ()
            )
            file.write(row_line(row_of(item, result, options.signature, causes=options.causes)))


# --- one range -----------------------------------------------------------------------------------------------


@dataclass
class _Part:
    """What one range came to."""

    tally: Tally = field(default_factory=Tally)
    facts: dict[str, ItemFacts] = field(default_factory=dict)
    ids: list[str] = field(default_factory=list)
    epochs: list[int] = field(default_factory=list)
    rows: bytearray = field(default_factory=bytearray)
    lines: int = 0
    failures: int = 0
    unknown: int = 0


class _NamedFunction(msgspec.Struct):
    name: str
    arguments: str


class _ToolCall(msgspec.Struct):
    function: _NamedFunction


class _PlainRow(msgspec.Struct):
    """A row of calls in a plain shape; any other row fails to decode as this and is read field by field.

    Calls have the type of expected ones, so that a right answer is recognised by comparing two lists.
    """

    id: str | int | None = None
    item_id: str | int | None = None
    epoch: int = 0
    error: None = None
    custom_id: None = None
    calls: list[ExpectedCall] | None = None
    actual_calls: list[ExpectedCall] | None = None
    tool_calls: list[_ToolCall] | None = None


_decode_plain = msgspec.json.Decoder(_PlainRow).decode
_decode_arguments = msgspec.json.Decoder(dict[str, Any]).decode


def _written_calls(tool_calls: Iterable[_ToolCall]) -> list[ExpectedCall] | None:
    """The calls whose arguments are the text of an object; None where any is not."""
    try:
        return [ExpectedCall(call.function.name, _decode_arguments(call.function.arguments)) for call in tool_calls]
    except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError):
        return None


_PLAIN_FIELDS = {
    "auto": frozenset({"calls", "tool_calls"}),
    "calls": frozenset({"calls"}),
    "tool_calls": frozenset({"tool_calls"}),
}


class _Worker:
    """Grades ranges of one file; each process has one."""

    def __init__(self, items: ItemSet, replies: Path, options: Options) -> None:
        self.items = items
        self.replies = replies
        self.options = options
        self.rules = RULES[options.rules]
        self.graders: dict[str, Grader] = {}
        self.known_facts: dict[tuple[str, str | None, bool], ItemFacts] = {}

    def grade_range(self, start: int, end: int) -> _Part:
        """Grade the lines that begin in a range of bytes; line numbers in errors count from the range's start."""
        part = _Part()
        with open_lines(self.replies) as stream:
            lines = _lines_between(stream, start, end)
            fields = _PLAIN_FIELDS.get(self.options.format)
            if fields and not self.options.rows:
                self._grade_plain(lines, part, fields)
            else:
                for line in lines:
                    self._grade_line(line, part)
        return part

    def _grade_plain(self, lines: Iterable[bytes], part: _Part, fields: frozenset[str]) -> None:
        """The short way: rows of a plain shape are decoded to calls at once; any other goes the long way.

        This loop is what grading a large file costs, so what it does for every row is kept to a minimum.
        """
        outcomes, facts, add_id, add_epoch = part.tally.outcomes, part.facts, part.ids.append, part.epochs.append
        known, key_of, causes, rules = self.items.ids, self.items.answer_key, self.options.causes, self.rules
        key: AnswerKey | None
        from_calls, from_tool_calls = "calls" in fields, "tool_calls" in fields
        for line in lines:
            try:
                row = _decode_plain(line)
            except (msgspec.MsgspecError, RecursionError):
                self._grade_line(line, part)
                continue
            calls = row.calls if row.actual_calls is None else row.actual_calls
            if calls is None and from_tool_calls and row.tool_calls is not None:
                calls = _written_calls(row.tool_calls)
            elif not from_calls:
                calls = None
            given = row.id if row.item_id is None else row.item_id
            item_id = given if isinstance(given, str) else str(given)
            if calls is None or given is None or row.epoch < 0 or item_id not in known:
                self._grade_line(line, part)
                continue
            part.lines += 1
            add_id(item_id)
            add_epoch(row.epoch)
            if item_id not in facts:
                key = key_of(item_id)
                plain, arabic = survey(key.expected_calls, rules)
                facts[item_id] = self._facts(key.category, key.dialect, arabic)
                if not plain:
                    self.items[item_id]  # containers and the like: check the whole line first
                # Most items are answered once and most answers are right: compiling such an item never pays.
                if plain and key.expected_calls == calls:
                    outcomes[item_id] = _PERFECT
                    continue
                if not calls and key.expected_calls and not causes:
                    outcomes[item_id] = _NOTHING
                    continue
            else:
                key = None
            deep = line.count(b"{") + line.count(b"[") > MAX_DEPTH
            outcome = self._judge(item_id, key, calls, part, deep=deep)
            if item_id in outcomes:
                part.tally.add(item_id, outcome)
            else:
                outcomes[item_id] = outcome

    def _facts(self, category: str, dialect: str | None, arabic: bool) -> ItemFacts:  # noqa: FBT001
        """One object for each value: a million items have a few dozen different facts."""
        key = category, dialect, arabic
        facts = self.known_facts.get(key)
        if facts is None:
            facts = self.known_facts[key] = ItemFacts(*key)
        return facts

    def _judge(
        self, item_id: str, key: AnswerKey | None, calls: Sequence[ExpectedCall], part: _Part, *, deep: bool
    ) -> Outcome:
        grader = self.graders.get(item_id)
        if grader is None:
            grader = Grader(key or self.items.answer_key(item_id), self.rules)
            if key is None:
                self.graders[item_id] = grader  # asked again, and so perhaps a third time
        if deep:
            made = [Call.read(call.function, call.arguments) for call in calls]
        else:
            made = [Call(call.function, call.arguments) for call in calls]
        verdict = grader.expectation.judge(made)
        lost: tuple[LossKey, ...] = ()
        if self.options.causes and verdict.matches:
            lost = part.tally.add_losses(item_id, diagnose(verdict, grader.expectation, made))
        return verdict.function, verdict.argument, verdict.arabic, lost

    def _grade_line(self, line: bytes, part: _Part) -> None:
        """The long way: any row, field by field."""
        part.lines += 1
        if not line.isspace():
            self.grade_row(read_json_line(line, str(self.replies), part.lines), part, part.lines)

    def grade_row(self, row: Mapping[str, Any], part: _Part, number: int | None, place: str | None = None) -> None:
        """Grade one decoded row."""
        try:
            reply = read_reply(row, format=self.options.format)
        except DataError as error:
            raise _placed(error, str(self.replies), number, place) from None
        if reply.item_id not in self.items:
            if not self.options.allow_unknown:
                raise _placed(self._unknown(reply.item_id), str(self.replies), number, place)
            part.unknown += 1
            return
        item = self.items[reply.item_id]
        if item.id not in part.facts:
            part.facts[item.id] = self._facts(item.category, item.dialect, expects_arabic(item.expected_calls))
        result = Grader(item, self.rules).evaluate(reply, causes=self.options.causes)
        part.ids.append(reply.item_id)
        part.epochs.append(reply.epoch)
        part.failures += reply.failure is not None
        _count(result, part.tally)
        if self.options.rows:
            part.rows += row_line(row_of(item, result, self.options.signature, causes=self.options.causes))

    def _unknown(self, item_id: str) -> DataError:
        shown = item_id if len(item_id) <= 80 else item_id[:80] + "…"  # noqa: PLR2004
        return DataError(
            f"there is no item {shown!r} in {self.items.name}.",
            field="id",
            remedy="Check that the replies belong to these items, or pass --allow-unknown to leave such rows out.",
        )


_PERFECT: Outcome = (1.0, 1.0, 1.0, ())
_NOTHING: Outcome = (0.0, 0.0, 0.0, ())


def _count(result: Result, tally: Tally) -> None:
    score = result.score
    if score is None:
        tally.add_unscored(result.item_id, result.reason or "unscored")
        return
    lost = tally.add_losses(result.item_id, result.losses) if result.losses else ()
    tally.add(result.item_id, (score.function_selection, score.argument_accuracy, score.arabic_preservation, lost))


def _placed(error: DataError, path: str, number: int | None, place: str | None) -> DataError:
    found = error.at(path, number)
    if place is not None:
        found.field = f"{place}.{found.field}" if found.field else place
    return found


def _lines_between(stream: Any, start: int, end: int) -> Iterator[bytes]:
    """The lines whose first byte lies in [start, end)."""
    position = stream.tell()  # past a byte order mark
    if start > position:
        stream.seek(start - 1)
        position = start - 1 + len(stream.readline())
    while position < end:
        lines = stream.readlines(min(end - position, 1 << 20))
        if not lines:
            return
        for line in lines:
            if position >= end:
                return
            yield line
            position += len(line)


# --- all ranges ----------------------------------------------------------------------------------------------


def is_document(path: Path) -> bool:
    """Whether the file is one JSON value (a list, or an object over several lines or with ``results``)."""
    with open_lines(path) as stream:
        first = next((line for line in stream if not line.isspace()), b"")
    if first.lstrip()[:1] == b"[":
        return True
    try:
        row = msgspec.json.decode(first)
    except (msgspec.MsgspecError, RecursionError):
        return _parses_whole(path)
    return isinstance(row, dict) and isinstance(row.get("results"), list)


def _parses_whole(path: Path) -> bool:
    if path.stat().st_size > _LARGEST_DOCUMENT:
        return False
    try:
        read_json(path)
    except DataError:
        return False
    return True


def _parts(items: ItemSet, replies: Path, options: Options, jobs: int, progress: Progress | None) -> Iterator[_Part]:
    if is_document(replies):
        yield _document_part(_Worker(items, replies, options), replies)
        return
    size = replies.stat().st_size
    step = max(_SMALLEST_RANGE, min(_LARGEST_RANGE, size // (jobs * 8) + 1))
    ranges = [(start, min(start + step, size)) for start in range(0, size, step)]
    if not size:
        raise DataError("the file is empty: there is nothing to grade.", path=str(replies))
    lines = 0
    graded = _one_process(items, replies, options, ranges) if jobs == 1 or len(ranges) == 1 else None
    for (_, end), outcome in zip(ranges, graded or _processes(items, replies, options, ranges, jobs), strict=True):
        if isinstance(outcome, DataError):
            raise outcome.at() if outcome.line is None else _shifted(outcome, lines)
        lines += outcome.lines
        if progress is not None:
            progress(end, size)
        yield outcome


def _shifted(error: DataError, lines: int) -> DataError:
    """The error with its line counted from the start of the file."""
    found = error.at()
    found.line = (error.line or 0) + lines
    return found


def _one_process(
    items: ItemSet, replies: Path, options: Options, ranges: Iterable[tuple[int, int]]
) -> Iterator[_Part | DataError]:
    worker = _Worker(items, replies, options)
    for start, end in ranges:
        yield _try_range(worker, start, end)


def _try_range(worker: _Worker, start: int, end: int) -> _Part | DataError:
    try:
        return worker.grade_range(start, end)
    except DataError as error:
        return error


def _document_part(worker: _Worker, replies: Path) -> _Part:
    document, place = read_json(replies), ""
    if isinstance(document, dict):
        document, place = document.get("results", [document]), "results"
    if not isinstance(document, list) or not document:
        raise DataError("the file holds no replies.", path=str(replies), field=place or None)
    part = _Part()
    for number, row in enumerate(document):
        where = f"{place}[{number}]"
        if not isinstance(row, dict):
            raise DataError(f"a reply must be an object, not {json_type(row)}.", path=str(replies), field=where)
        worker.grade_row(row, part, None, where)
    return part


_worker: _Worker | None = None


def _start_worker(worker: _Worker | None, items: Path | None, replies: Path, options: Options) -> None:
    """Prepare a process: the items come with the fork, or are read again where processes start afresh."""
    global _worker  # noqa: PLW0603 - a process of a pool keeps its state in its module
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    _worker = worker or _Worker(ItemSet.index(items or Path()), replies, options)


def _work(start: int, end: int) -> _Part | DataError:
    assert _worker is not None  # noqa: S101 - set by the initializer
    return _try_range(_worker, start, end)


def _processes(
    items: ItemSet, replies: Path, options: Options, ranges: Iterable[tuple[int, int]], jobs: int
) -> Iterator[_Part | DataError]:
    """Grade ranges in several processes, in order, with a bounded number under way."""
    fork = "fork" in multiprocessing.get_all_start_methods() and threading.active_count() == 1
    context = multiprocessing.get_context("fork" if fork else "spawn")
    if not fork and items.path is None:
        raise UsageError("several jobs need items that were read from a file.")
    worker = _Worker(items, replies, options) if fork else None
    pool = ProcessPoolExecutor(jobs, context, _start_worker, (worker, items.path, replies, options))
    waiting: deque[Future[_Part | DataError]] = deque()
    try:
        for start, end in ranges:
            waiting.append(pool.submit(_work, start, end))
            if len(waiting) > 2 * jobs:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        raise DataError(
            "a grading process was killed, perhaps because memory ran out.",
            path=str(replies),
            remedy="Use fewer --jobs.",
        ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def available_cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
