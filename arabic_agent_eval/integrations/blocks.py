"""Blocks of replies: files of JSONL or Parquet cut into parts that one worker grades alone, and what it keeps of them.

A block is a range of bytes of a JSONL file or some row groups of a Parquet file. With a folder for results, a graded
block is a Parquet file of rows and, under ``_state``, its counts with the fingerprint of all that they follow from; a
block whose fingerprint still holds is not graded again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from arabic_agent_eval.batch import is_document
from arabic_agent_eval.errors import DataError, EvalError, OutputError
from arabic_agent_eval.files import collector_paused, lines_between, open_lines, read_json_line, reason_of, write_whole
from arabic_agent_eval.formats import read_reply
from arabic_agent_eval.integrations.arrow import SCHEMA, Columns, RowGrader, check_columns, reply_rows
from arabic_agent_eval.integrations.counts import Twice, write_counts
from arabic_agent_eval.items import ItemSet
from arabic_agent_eval.ranges import Options, RangeGrader, RangeResult
from arabic_agent_eval.readers import OwnFormat
from arabic_agent_eval.scoring import Result, Signature
from arabic_agent_eval.tables import NO_REPLY

import pyarrow as pa  # isort: skip - arrow, above, says how to install it
import pyarrow.parquet as pq  # isort: skip

LINES, PARQUET = (".jsonl", ".ndjson"), (".parquet",)
"""The endings of files in a folder that are read; a single file may have any other, and then holds JSONL."""

STATE = "_state"
"""The folder beside the graded rows; tools that read a folder of Parquet pass over a name that begins so."""

SILENT = "no-reply.parquet"
"""The rows of items without any reply."""

_VERSION = 1  # of what is kept under STATE
_BLOCK = 1 << 24  # bytes of JSONL, or of compressed Parquet
_ROWS = 4096  # of a Parquet file in memory at a time, and of graded rows until they become columns
_KEPT = 20_000  # compiled items, so that a set of any size takes bounded memory


class Block(msgspec.Struct, frozen=True):
    """A part of a file.

    Attributes:
        path: the file, as every machine finds it; ``name``: as results call it, its place in the folder of replies.
        number: of the block in its file, from 0.
        start, end: bytes of a JSONL file, or row groups of a Parquet file.
        size: in bytes, for showing how far the work is.
        before: rows of a Parquet file before this block.
        parquet: whether it is one.
    """

    path: str
    name: str
    number: int
    start: int
    end: int
    size: int
    before: int = 0
    parquet: bool = False

    @property
    def part(self) -> str:
        """The name of the file of its graded rows: the same in every run, and no other file's."""
        digest = hashlib.sha256(self.name.encode("utf-8", "surrogateescape")).hexdigest()[:8]
        stem = "".join(mark if mark.isalnum() or mark in "-_." else "_" for mark in Path(self.name).stem[:40])
        return f"{stem.lstrip('_.') or 'replies'}-{digest}-{self.number:05d}.parquet"


@dataclass(frozen=True)
class Task:
    """What is done to every block.

    Attributes:
        items: the file of the items; ``name``: what they are called.
        signature: of grading them.
        options: how replies are graded.
        out: the folder for graded rows and what is kept; None: only the counts are wanted.
    """

    items: Path
    name: str
    signature: Signature
    options: Options
    out: Path | None

    def fingerprint(self, block: Block) -> str:
        """Of all that the results of a block follow from: its bytes, the items, the rules, this version.

        Raises:
            DataError: the file cannot be read.
        """
        options = self.options
        known = sorted(options.categories) if options.categories is not None else None
        about = [_VERSION, self.signature.of_grading, options.causes, options.allow_unknown, known, block.name]
        digest = hashlib.sha256(msgspec.json.encode(about))
        for piece in _bytes_of(block):
            digest.update(piece)
        return digest.hexdigest()


class Kept(msgspec.Struct, frozen=True):
    """What is kept of a graded block under :data:`STATE`.

    Attributes:
        fingerprint: of all that it follows from.
        size: of the file of its rows, in bytes.
        counts: as ``write_counts`` gave them.
    """

    fingerprint: str
    size: int
    counts: msgspec.Raw


# --- cutting -------------------------------------------------------------------------------------------------


def find_files(replies: Path) -> tuple[list[Path], int]:
    """The files of replies: the one that is named, or those under a folder in the order of their paths.

    Returns:
        The files, and how many others lie in the folder. Names that begin with ``.`` or ``_`` are passed over.

    Raises:
        DataError: there are none.
    """
    if not replies.is_dir():
        return [replies], 0
    inside = sorted(path for path in replies.rglob("*") if path.is_file())
    shown = [path for path in inside if not any(part[0] in "._" for part in path.relative_to(replies).parts)]
    found = [path for path in shown if path.suffix.lower() in LINES + PARQUET]
    if not found:
        what = f"the folder holds no file of replies: none ends in {', '.join(LINES + PARQUET)}."
        raise DataError(what, path=str(replies))
    return found, len(shown) - len(found)


def blocks_of(path: Path, name: str, size: int = _BLOCK) -> list[Block]:
    """A file as blocks of about this many bytes; none for an empty one.

    Raises:
        DataError: it cannot be read, or is one JSON document.
    """
    if path.suffix.lower() in PARQUET:
        with _parquet(path) as file:
            return list(_row_groups(file, path, name, size))
    with open_lines(path):
        total = path.stat().st_size
    if total and is_document(path):
        remedy = "Write one row a line (JSONL), or leave out --engine."
        raise DataError(
            "the file is one JSON document, which cannot be cut into blocks.", path=str(path), remedy=remedy
        )
    return [
        Block(str(path), name, number, start, min(start + size, total), min(size, total - start))
        for number, start in enumerate(range(0, total, size))
    ]


def _row_groups(file: pq.ParquetFile, path: Path, name: str, size: int) -> Iterator[Block]:
    check_columns(file.schema_arrow)
    number = first = before = rows = taken = 0
    last = file.metadata.num_row_groups - 1
    for place in range(last + 1):
        group = file.metadata.row_group(place)
        rows += group.num_rows
        taken += sum(group.column(column).total_compressed_size for column in range(group.num_columns))
        if taken >= size or place == last:
            yield Block(str(path), name, number, first, place + 1, taken, before, parquet=True)
            number, first, before, rows, taken = number + 1, place + 1, before + rows, 0, 0


@contextmanager
def _parquet(path: Path) -> Iterator[pq.ParquetFile]:
    """A Parquet file, with its faults as errors of the data."""
    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            yield file
    except EvalError as error:
        raise (error.at(str(path)) if isinstance(error, DataError) else error) from None
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else str(error)
        what = f"the file cannot be read: {reason.splitlines()[0].rstrip('.')}."
        raise DataError(what, path=str(path)) from None


def _bytes_of(block: Block) -> Iterator[bytes]:
    """What of its file a block follows from."""
    if block.parquet:
        with _parquet(Path(block.path)) as file:
            groups = [file.metadata.row_group(place) for place in range(block.start, block.end)]
            ends = [_extent(group.column(column)) for group in groups for column in range(group.num_columns)]
            yield f"{file.schema_arrow}{[group.num_rows for group in groups]}".encode()
        start, end = min((start for start, _ in ends), default=0), max((end for _, end in ends), default=0)
    else:
        start, end = block.start, block.end
    with open_lines(Path(block.path)) as stream:
        stream.seek(max(start - 1, 0))  # the byte before says whether a line begins here
        yield stream.read(end - max(start - 1, 0))
        if not block.parquet:
            yield stream.readline()


def _extent(column: Any) -> tuple[int, int]:
    """Where the pages of a column of a row group begin and end."""
    start = min(offset for offset in (column.dictionary_page_offset, column.data_page_offset) if offset)
    return start, start + column.total_compressed_size


# --- grading -------------------------------------------------------------------------------------------------


class BlockGrader:
    """Grades one block after another; each worker has one.

    Raises:
        DataError: the items are not those of the task.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self._items = ItemSet.index(task.items, name=task.name)
        if f"{self._items.fingerprint}" != task.signature.items.rpartition("@")[2]:
            what = "the items have changed, or are others on this machine."
            raise DataError(what, path=str(task.items), remedy="Every machine must see the same files.")
        self._quick = RangeGrader(self._items, Path(), task.options)
        self._columns = None if task.out is None else Columns(task.signature, causes=task.options.causes)
        self._rows = RowGrader(self._items, Path(), task.options, self._columns)

    def grade(self, block: Block) -> tuple[bytes, bool]:
        """Grade a block, or take over what is kept of it.

        Returns:
            Its counts, as ``Sum.add`` takes them, and whether they were kept.

        Raises:
            DataError: a row cannot be read or answers no item, or an item is answered twice; nothing is kept then.
            OutputError: the rows cannot be written.
        """
        out = self.task.out
        if out is None:
            return self._count(block)[0], False
        fingerprint = self.task.fingerprint(block)
        kept = read_kept(out, block.part)
        if kept is not None and kept.fingerprint == fingerprint:
            return bytes(kept.counts), True
        forget(out, block.part)
        counts, rows = self._count(block)
        write_whole(out / block.part, rows, durable=False)
        state = msgspec.json.encode(Kept(fingerprint, len(rows), msgspec.Raw(counts)))
        write_whole(out / STATE / f"{block.part}.json", state, durable=False)
        return counts, False

    def _count(self, block: Block) -> tuple[bytes, bytes]:
        """The counts of a block, and its rows as a Parquet file, empty where none are wanted."""
        try:
            with collector_paused():
                part, batches = self._read(block)
                return write_counts(part), b"" if self._columns is None else parquet_of(batches, block.name)
        except Twice as twice:
            raise answered_twice(twice, [(block, row) for row in rows_of(block, twice)]) from None
        except DataError as error:
            raise _placed(error, block) from None
        finally:
            if self._columns is not None:
                self._columns.take()  # of a block that failed

    def _read(self, block: Block) -> tuple[RangeResult, list[pa.RecordBatch]]:
        path = Path(block.path)
        if self._columns is None and not block.parquet:
            if len(self._quick.expectations) > _KEPT:
                self._quick = RangeGrader(self._items, path, self.task.options)
            self._quick.replies = path
            return self._quick.grade_range(block.start, block.end), []
        part = RangeResult()
        self._rows.replies = path
        return part, [columns.take() for columns in self._steps(block, part) if columns is not None]

    def _steps(self, block: Block, part: RangeResult) -> Iterator[Columns | None]:
        """Grade the rows of a block, a bounded number a step, whose columns are to be taken."""
        if block.parquet:
            for batch in _batches(block, self.task.options.format):
                self._rows.grade_columns(batch, part)
                yield self._columns
            return
        with open_lines(Path(block.path)) as stream:
            lines = lines_between(stream, block.start, block.end)
            while step := list(islice(lines, _ROWS)):
                for line in step:
                    self._rows.grade_line(line, part)
                yield self._columns


def _batches(block: Block, format: str | OwnFormat = "auto") -> Iterator[pa.RecordBatch]:  # noqa: A002 - the option's name
    with _parquet(Path(block.path)) as file:
        columns, groups = check_columns(file.schema_arrow, format), range(block.start, block.end)
        yield from file.iter_batches(_ROWS, row_groups=list(groups), columns=columns, use_threads=False)


def _placed(error: DataError, block: Block) -> DataError:
    """The error with its line or row counted from the start of the file; an error of the items keeps its own."""
    found = error.at(block.path)
    if found.path != block.path or found.line is None:
        return found
    if block.parquet:
        return replaced(found, f"{block.path}, row {block.before + found.line}", None)
    return replaced(found, block.path, found.line + _lines_before(block))


def replaced(error: DataError, path: str | None, line: int | None) -> DataError:
    """The error at another place."""
    return DataError(error.what, path=path, line=line, field=error.field, remedy=error.remedy)


def _lines_before(block: Block) -> int:
    """Counted only where there is an error to explain."""
    with open_lines(Path(block.path)) as stream:
        return sum(1 for _ in lines_between(stream, 0, block.start))


# --- answered twice ------------------------------------------------------------------------------------------


def rows_of(block: Block, twice: Twice) -> list[int]:
    """The lines of a block, or the rows of its Parquet file, that answer an item in an epoch."""
    wanted = twice.item_id, twice.epoch
    if block.parquet:
        rows = (row for batch in _batches(block) for row in reply_rows(batch))
        return [number for number, row in enumerate(rows, block.before + 1) if _answers(row) == wanted]
    with open_lines(Path(block.path)) as stream:
        lines = enumerate(lines_between(stream, block.start, block.end), 1)
        found = [number for number, line in lines if not line.isspace() and _answers(line) == wanted]
    return [number + _lines_before(block) for number in found]


def _answers(row: bytes | dict[str, Any]) -> tuple[str, int] | None:
    try:
        given = read_json_line(row, "", 0) if isinstance(row, bytes) else {**row, "epoch": row.get("epoch") or 0}
        reply = read_reply({**given, "error": "only who answers is asked for"})
    except EvalError:
        return None
    return reply.item_id, reply.epoch


def answered_twice(twice: Twice, rows: Iterable[tuple[Block, int]]) -> DataError:
    """The error that an item is answered twice in an epoch, and where."""
    places = [f"{block.path}, {'row' if block.parquet else 'line'} {row}" for block, row in rows][:2]
    return DataError(
        f"item {twice.item_id!r} is answered twice in epoch {twice.epoch}{f' (first {places[0]})' if places else ''}.",
        path=places[-1] if places else None,
        field="id",
        remedy="Give repeated answers different numbers in 'epoch', and grade different models apart.",
    )


# --- what is kept --------------------------------------------------------------------------------------------


def parquet_of(batches: list[pa.RecordBatch], file: str | None) -> bytes:
    """Judged replies as a Parquet file, with a last column that names the file of the replies."""
    table = pa.Table.from_batches(batches, SCHEMA)
    table = table.append_column("file", pa.repeat(pa.scalar(file, pa.string()), table.num_rows))
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue())


def read_kept(out: Path, part: str) -> Kept | None:
    """What is kept of a block; None where anything of it is missing or was changed."""
    try:
        kept = msgspec.json.decode((out / STATE / f"{part}.json").read_bytes(), type=Kept)
        return kept if (out / part).stat().st_size == kept.size else None
    except (OSError, msgspec.MsgspecError):
        return None


def forget(out: Path, part: str) -> None:
    """Remove what is kept of a block.

    Raises:
        OutputError: it cannot be removed.
    """
    try:
        (out / part).unlink(missing_ok=True)
        (out / STATE / f"{part}.json").unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"{out / part}: the old rows cannot be removed: {reason_of(error)}.") from None


def prepare(out: Path, blocks: Iterable[Block]) -> None:
    """Make the folder of results, and remove from it what an earlier run left of files that are gone.

    Raises:
        OutputError: it cannot be written, or holds something else.
    """
    try:
        is_ours = not out.exists() or (out / STATE).is_dir() or (out.is_dir() and not any(out.iterdir()))
    except OSError:
        is_ours = False
    if not is_ours:
        raise OutputError(f"{out}: the results need a folder of their own, and this holds something else.")
    try:
        (out / STATE).mkdir(parents=True, exist_ok=True)
        wanted = {block.part for block in blocks}
        for state in (out / STATE).glob("*.parquet.json"):
            if state.name.removesuffix(".json") not in wanted:
                forget(out, state.name.removesuffix(".json"))
        for torn in (*out.glob(".*.part"), *(out / STATE).glob(".*.part")):
            torn.unlink(missing_ok=True)
        (out / SILENT).unlink(missing_ok=True)
    except OutputError:
        raise  # which is an OSError too
    except OSError as error:
        raise OutputError(f"{out}: the results cannot be written there: {reason_of(error)}.") from None


def write_silent(task: Task, items: ItemSet, silent: Iterable[str]) -> None:
    """Write rows for items without any reply, so that coverage survives in the rows.

    Raises:
        OutputError: they cannot be written.
    """
    assert task.out is not None  # noqa: S101 - who wants rows gave a folder
    columns, batches = Columns(task.signature, causes=task.options.causes), []
    for item_id in silent:
        columns.add(Result.unscored(items[item_id], 0, NO_REPLY))
        if len(columns) == _ROWS:
            batches.append(columns.take())
    if batches or len(columns):
        write_whole(task.out / SILENT, parquet_of([*batches, columns.take()], None))
