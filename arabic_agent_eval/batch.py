"""Grading files of replies: any size, one process or several, every number the same.

A file is cut into ranges of bytes; each range is graded to a tally and its rows; ranges are merged in order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import msgspec

from arabic_agent_eval.errors import DataError, EvalError, UsageError
from arabic_agent_eval.files import WholeFile, collector_paused, json_type, open_lines, read_json, read_json_line
from arabic_agent_eval.formats import Reply, read_reply
from arabic_agent_eval.items import Category, ItemSet
from arabic_agent_eval.plugins import find_format
from arabic_agent_eval.ranges import Options, RangeGrader, RangeResult
from arabic_agent_eval.readers import OwnFormat
from arabic_agent_eval.rules import CANONICAL, Rules
from arabic_agent_eval.scoring import Result, Signature
from arabic_agent_eval.tables import NO_REPLY
from arabic_agent_eval.tally import Ledger, Tally

_SMALLEST_RANGE, _LARGEST_RANGE = 1 << 18, 1 << 24
_LARGEST_DOCUMENT = 1 << 31
_NAMED = 5

Progress = Callable[[int, int], None]
"""Called with the bytes read so far and in all."""


@dataclass
class GradedBatch:
    """The outcome of grading a file.

    Attributes:
        signature: of the numbers to come, epochs aside.
        due: how many items the set has.
        tally: outcomes by item.
        failures: replies that a provider's failure left unscored; unknown: replies to no item of the set.
        written: replies without a call whose words hold one.
        silent_ids: the first items without any reply.
    """

    signature: Signature
    due: int
    tally: Tally = field(default_factory=Tally)
    failures: int = 0
    unknown: int = 0
    written: int = 0
    silent_ids: tuple[str, ...] = ()

    @property
    def silent(self) -> int:
        """How many items have no reply at all."""
        return self.due - self.tally.answered()


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
    categories: Mapping[str, Category] | None = None,
    progress: Progress | None = None,
) -> GradedBatch:
    """Grade a file of replies against an item set.

    Args:
        items: the items; ``ItemSet.index`` reads them as they are needed.
        replies: JSONL, or JSON with a list of rows or a published run file.
        rules: the rule set.
        format: one of ``formats.FORMATS``, or the name of one that an installed package offers.
        jobs: processes; the numbers do not depend on it.
        causes: whether to explain lost points.
        out: a file for the graded rows, written whole or not at all.
        allow_unknown: count replies to unknown items instead of refusing the file.
        categories: declared categories; with them, an item of an unknown category is refused at once.
        progress: called now and then.

    Raises:
        DataError: an item or a row cannot be read, a row answers twice or answers no item.
        OutputError: the rows could not be written.
        UnknownCategory: see ``categories``.
        UsageError: an option makes no sense.
    """
    form = find_format(format)
    if jobs < 1:
        raise UsageError("the number of jobs must be at least 1.")
    with collector_paused():
        if jobs > 1 and out is not None:
            items.glance()
        signature = None if out is None else signature_of(items, rules, form)
        options = Options(rules.name, form, causes, signature, allow_unknown, categories)
        file = None if out is None else WholeFile(out)
        batch = _grade(items, replies, options, jobs, file, progress)
        batch.signature, batch.due = signature or signature_of(items, rules, form), len(items)
        if batch.silent:
            answered = batch.tally.outcomes.keys() | batch.tally.unscored.keys()
            batch.silent_ids = tuple(islice((item_id for item_id in items if item_id not in answered), _NAMED))
    return batch


def signature_of(items: ItemSet, rules: Rules, format: str | OwnFormat) -> Signature:  # noqa: A002
    """The signature of grading these items by these rules, epochs aside."""
    name = re.sub(r"[^\w.+-]", "_", items.name)  # a file name must not speak for the rest of the signature
    return Signature(f"{name}@{items.fingerprint}", len(items), rules.tag, str(format))


def _grade(
    items: ItemSet, replies: Path, options: Options, jobs: int, file: WholeFile | None, progress: Progress | None
) -> GradedBatch:
    batch = GradedBatch(Signature("", 0, ""), 0)
    parts = _parts(items, replies, options, jobs, progress)
    if file is None:
        _merge(batch, parts, replies, None)
    else:
        with file:
            _merge(batch, parts, replies, file)
            _write_silent(items, batch, options, file)
    return batch


def _merge(batch: GradedBatch, parts: Iterable[RangeResult], replies: Path, file: WholeFile | None) -> None:
    ledger = Ledger()
    for part in parts:
        twice = ledger.add_all(part.first, part.again)
        if twice is not None:
            raise _answered_twice(replies, *twice)
        batch.tally.merge(part.tally)
        batch.failures += part.failures
        batch.unknown += part.unknown
        batch.written += part.written
        if file is not None:
            file.write(bytes(part.rows))


def _answered_twice(replies: Path, item_id: str, epoch: int) -> DataError:
    """Only now look for the lines: the error is rare and the file may be long."""
    lines = [] if is_document(replies) else _lines_of(replies, item_id, epoch)
    where = f" (lines {lines[0]} and {lines[1]})" if len(lines) > 1 else ""
    return DataError(
        f"item {item_id!r} is answered twice in epoch {epoch}{where}.",
        path=str(replies),
        line=lines[1] if len(lines) > 1 else None,
        field="id",
        remedy="Give repeated answers different numbers in 'epoch'.",
    )


def _lines_of(replies: Path, item_id: str, epoch: int) -> list[int]:
    found = []
    with open_lines(replies) as stream:
        for number, line in enumerate(stream, 1):
            reply = None if line.isspace() else _readable(line)
            if reply is not None and (reply.item_id, reply.epoch) == (item_id, epoch):
                found.append(number)
    return found


def _readable(line: bytes) -> Reply | None:
    try:
        return read_reply({**read_json_line(line, "", 0), "error": "only who answers is asked for"})
    except EvalError:
        return None


def _write_silent(items: ItemSet, batch: GradedBatch, options: Options, file: WholeFile) -> None:
    """Items without any reply get a row that says so, so that coverage survives in the rows."""
    from arabic_agent_eval.rows import row_line, row_of  # noqa: PLC0415 - only who writes rows needs them

    assert options.signature is not None  # noqa: S101 - rows are written, so there is one
    for item_id in items:
        if item_id not in batch.tally.outcomes and item_id not in batch.tally.unscored:
            item = items[item_id]
            result = Result.unscored(item, 0, NO_REPLY)
            file.write(row_line(row_of(item, result, options.signature, causes=options.causes)))


# --- ranges --------------------------------------------------------------------------------------------------


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


def _parts(
    items: ItemSet, replies: Path, options: Options, jobs: int, progress: Progress | None
) -> Iterator[RangeResult]:
    if is_document(replies):
        yield _document_part(RangeGrader(items, replies, options), replies)
        return
    size = replies.stat().st_size
    if not size:
        raise DataError("the file is empty: there is nothing to grade.", path=str(replies))
    ranges = _ranges(size, jobs)
    if jobs == 1 or len(ranges) == 1:
        results = _here(items, replies, options, ranges)
        if jobs > 1:
            items.vouch(None)  # a glance at them was enough for others only
    else:
        from arabic_agent_eval.processes import grade_in_processes  # noqa: PLC0415 - one process needs none of it

        results = grade_in_processes(items, replies, options, ranges, jobs)
    lines, answers = 0, 0
    for (_, end), outcome in zip(ranges, results, strict=True):
        if isinstance(outcome, DataError):
            raise _shifted(outcome, replies, lines)
        lines += outcome.lines
        answers += len(outcome.first) + len(outcome.again) + outcome.unknown
        if progress is not None:
            progress(end, size)
        yield outcome
    if not answers:
        raise DataError("the file holds no replies.", path=str(replies))


def _ranges(size: int, jobs: int) -> list[tuple[int, int]]:
    """Ranges that grow smaller, so that no process is left with a long one when the others have finished."""
    ranges, start = [], 0
    while start < size:
        step = max(_SMALLEST_RANGE, min(_LARGEST_RANGE, (size - start) // (jobs * 4) + 1))
        ranges.append((start, min(start + step, size)))
        start += step
    return ranges


def _shifted(error: DataError, replies: Path, lines: int) -> DataError:
    """The error with its line counted from the start of the file; an error of the items keeps its own line."""
    found = error.at()
    if found.line is not None and found.path == str(replies):
        found.line += lines
    return found


def _here(
    items: ItemSet, replies: Path, options: Options, ranges: Iterable[tuple[int, int]]
) -> Iterator[RangeResult | DataError]:
    grader = RangeGrader(items, replies, options)
    for start, end in ranges:
        yield grader.try_range(start, end)


def _document_part(grader: RangeGrader, replies: Path) -> RangeResult:
    document, place = read_json(replies), ""
    if isinstance(document, dict):
        document, place = document.get("results", [document]), "results"
    if not isinstance(document, list) or not document:
        raise DataError("the file holds no replies.", path=str(replies), field=place or None)
    part = RangeResult()
    for number, row in enumerate(document):
        where = f"{place}[{number}]"
        if not isinstance(row, dict):
            raise DataError(f"a reply must be an object, not {json_type(row)}.", path=str(replies), field=where)
        grader.grade_row(row, part, None, where)
    return part
