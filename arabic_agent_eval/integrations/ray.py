"""Ray: files of replies larger than one machine, graded block by block on Ray Data.

Workers read their blocks themselves and hand back counts; here they are added in the order of the blocks, so that every
number is that of one process, bit for bit. ``docs/scale.md`` describes it.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from arabic_agent_eval.batch import GradedBatch, Progress, signature_of
from arabic_agent_eval.errors import DataError, EvalError, MissingExtra, UsageError
from arabic_agent_eval.integrations.blocks import (
    Block,
    BlockGrader,
    Task,
    answered_twice,
    blocks_of,
    find_files,
    prepare,
    read_kept,
    rows_of,
    write_silent,
)
from arabic_agent_eval.integrations.counts import Sum, Twice
from arabic_agent_eval.items import Category, ItemSet
from arabic_agent_eval.plugins import find_format
from arabic_agent_eval.ranges import Options
from arabic_agent_eval.reasons import exception_line
from arabic_agent_eval.rules import CANONICAL, Rules

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # nothing here tells anybody that it runs
os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # stderr is for what the user has to know
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else Ray warns of a change to come
try:
    import ray
    import ray.data
except ImportError:
    raise MissingExtra('This needs Ray; install it with: pip install "arabic-agent-eval[ray]"') from None

_RAY: Any = ray  # whose types say less than its documentation
_STORE = 1 << 28  # bytes of Ray's shared memory: only counts pass through it
_TRIES = 3  # of a block whose worker was killed
_NAMED = 5


@dataclass
class GradedFiles:
    """The outcome of grading files of replies.

    Attributes:
        batch: as one process gives it; of the blocks that could be graded.
        failures: why the others could not, each with its file and row; the numbers say something only without any.
        blocks: how many there were.
        kept: how many of them an earlier run had graded.
        others: files in the folder that hold no replies.
    """

    batch: GradedBatch
    failures: list[DataError] = field(default_factory=list)
    blocks: int = 0
    kept: int = 0
    others: int = 0


def grade_files(
    items: ItemSet,
    replies: Path,
    *,
    rules: Rules = CANONICAL,
    format: str = "auto",  # noqa: A002 - the option's name
    causes: bool = True,
    allow_unknown: bool = False,
    categories: Mapping[str, Category] | None = None,
    out: Path | None = None,
    address: str | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> GradedFiles:
    """Grade a file of replies, or all files under a folder, on Ray.

    Args:
        items: the items, read from a file that every machine sees.
        replies: JSONL or Parquet, or a folder of such files, that every machine sees.
        rules: the rule set.
        format: one of ``formats.FORMATS``, or the name of one that a package offers which every machine has.
        causes: whether to explain lost points.
        allow_unknown: count replies to unknown items instead of refusing their blocks.
        categories: declared categories; with them, an item of an unknown category is refused.
        out: a folder for the graded rows (Parquet), seen by every machine; what it holds already is not graded again.
        address: of a Ray cluster; None starts Ray on this machine alone.
        workers: how many at most; None for one a processor.
        progress: called with the bytes graded so far and in all.

    Raises:
        DataError: there is nothing to grade, or an item cannot be read.
        OutputError: the folder for the rows cannot be used.
        UnknownCategory: see ``categories``.
        UsageError: an option makes no sense, or the cluster cannot be reached.
    """
    form = find_format(format)
    if items.path is None:
        raise UsageError("Ray needs items that were read from a file.")
    signature = signature_of(items, rules, form)
    options = Options(rules.name, form, causes, None, allow_unknown, categories)
    task = Task(items.path.absolute(), items.name, signature, options, None if out is None else out.absolute())
    graded = GradedFiles(GradedBatch(signature, len(items)))
    blocks = _plan(replies, graded)
    if out is not None:
        prepare(out, blocks)
    if blocks:
        with _ray(address, workers) as processors:
            _Adding(graded, task, blocks, progress).run(min(workers or processors, processors, len(blocks)))
    _finish(graded, task, items, replies)
    return graded


def _plan(replies: Path, graded: GradedFiles) -> list[Block]:
    """The blocks of all files; files that cannot be read become failures."""
    files, graded.others = find_files(replies)
    blocks: list[Block] = []
    for path in files:
        name = path.relative_to(replies).as_posix() if replies.is_dir() else path.name
        try:
            blocks += blocks_of(path.absolute(), name)
        except DataError as error:
            graded.failures.append(error)
    graded.blocks = len(blocks)
    return blocks


def _finish(graded: GradedFiles, task: Task, items: ItemSet, replies: Path) -> None:
    batch = graded.batch
    answers = batch.tally.answered() or batch.unknown
    if not answers and not graded.failures:
        raise DataError("there are no replies to grade.", path=str(replies))
    here, there = str(replies), str(replies.absolute())
    for error in graded.failures:  # workers call files by their whole paths, messages as the user does
        error.path = None if error.path is None else error.path.replace(there, here)
    if graded.failures or not batch.silent:
        return
    answered = batch.tally.outcomes.keys() | batch.tally.unscored.keys()
    silent = (item_id for item_id in items if item_id not in answered)
    batch.silent_ids = tuple(islice(silent, _NAMED))
    if task.out is not None:
        write_silent(task, items, (item_id for item_id in items if item_id not in answered))


# --- adding up -----------------------------------------------------------------------------------------------


class _Adding:
    """Counts that come from the workers in any order, added in the order of the blocks."""

    def __init__(self, graded: GradedFiles, task: Task, blocks: list[Block], progress: Progress | None) -> None:
        self.graded = graded
        self.task = task
        self.blocks = blocks
        self.progress = progress
        self.sum = Sum()
        self.waiting: dict[int, bytes | DataError] = {}
        self.next = 0

    def run(self, workers: int) -> None:
        done, size = 0, sum(block.size for block in self.blocks)
        for row in _results(self.task, self.blocks, workers):
            number = row["number"]
            error = None if row["error"] is None else _error(row["error"])
            self.waiting[number] = error or row["counts"] or self._lost(self.blocks[number])
            self.graded.kept += row["kept"]
            self._add_those_in_turn()
            done += self.blocks[number].size
            if self.progress is not None:
                self.progress(done, size)
        batch, total = self.graded.batch, self.sum
        batch.tally, batch.failures = total.tally(), total.failures
        batch.unknown, batch.written = total.unknown, total.written

    def _add_those_in_turn(self) -> None:
        while (found := self.waiting.pop(self.next, None)) is not None:
            block, self.next = self.blocks[self.next], self.next + 1
            if isinstance(found, DataError):
                self.graded.failures.append(found)
            elif self.task.out is not None and read_kept(self.task.out, block.part) is None:
                remedy = "Name a folder for --out that every machine sees under the same path."
                what = "the graded rows of this file were written where this machine does not see them."
                self.graded.failures.append(DataError(what, path=block.path, remedy=remedy))
            elif (twice := self.sum.add(found)) is not None:
                self.graded.failures.append(self._answered_twice(twice))

    def _answered_twice(self, twice: Twice) -> DataError:
        """Only now look for the rows: the error is rare and the files may be many."""
        rows = ((block, row) for block in self.blocks[: self.next] for row in rows_of(block, twice))
        return answered_twice(twice, islice(rows, 2))

    def _lost(self, block: Block) -> DataError:
        unit = "row groups" if block.parquet else "bytes"
        what = f"the workers that graded {unit} {block.start:,} to {block.end:,} were killed {_TRIES} times."
        return DataError(what, path=block.path, remedy="Memory may have run out: use fewer --jobs.")


def _error(written: bytes) -> DataError:
    found = msgspec.json.decode(written)
    return DataError(found.pop("what"), **found)


# --- Ray -----------------------------------------------------------------------------------------------------


class _Starts:
    """Counts how often each block was begun: Ray gives a block to another worker whenever its worker is killed."""

    def __init__(self) -> None:
        self._often: Counter[int] = Counter()

    def begin(self, number: int) -> int:
        """How often the block was begun, this time included."""
        self._often[number] += 1
        return self._often[number]


class _Worker:
    """Grades blocks in a process of Ray."""

    def __init__(self, task: Task, starts: Any) -> None:
        self._task = task
        self._starts = starts
        self._grader: BlockGrader | None = None

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        found = {"number": row["number"], "counts": None, "kept": False, "error": None}
        try:
            if ray.get(self._starts.begin.remote(row["number"])) > _TRIES:
                return found
            if self._grader is None:
                self._grader = BlockGrader(self._task)
            found["counts"], found["kept"] = self._grader.grade(msgspec.json.decode(row["block"], type=Block))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - one bad block must not lose the others
            found["error"] = msgspec.json.encode(_described(error, row["path"]))
        return found


def _described(error: BaseException, path: str) -> dict[str, Any]:
    if isinstance(error, DataError):
        return {name: getattr(error, name) for name in ("what", "path", "line", "field", "remedy")}
    what = "memory ran out." if isinstance(error, MemoryError) else str(error)
    if not isinstance(error, EvalError | OSError | MemoryError):
        what = f"grading it failed: {exception_line(error)}"
    return {"what": what, "path": path}


def _results(task: Task, blocks: list[Block], workers: int) -> Iterator[dict[str, Any]]:
    """What the workers found, in any order."""
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    rows = [
        {"number": number, "path": block.path, "block": msgspec.json.encode(block)}
        for number, block in enumerate(blocks)
    ]
    graded = _RAY.data.from_items(rows, override_num_blocks=len(rows)).map(
        _Worker,
        fn_constructor_args=(task, ray.remote(num_cpus=0)(_Starts).remote()),
        concurrency=workers,
        num_cpus=1,
    )
    yield from graded.iter_rows()


@contextmanager
def _ray(address: str | None, workers: int | None) -> Iterator[int]:
    """Ray, started here or joined there, without a word on stdout; gives its number of processors.

    Raises:
        UsageError: it cannot be reached.
    """
    begun = not ray.is_initialized()
    with _sent(1, to=2):  # it writes there from C++ and from threads, whatever Python's own stdout is
        if begun:
            _begin(address, workers)
        try:
            logging.getLogger("ray").setLevel(logging.ERROR)
            logging.getLogger("ray.data").setLevel(logging.ERROR)
            yield max(int(_RAY.cluster_resources().get("CPU", 1)), 1)
        finally:
            if begun:
                ray.shutdown()


def _begin(address: str | None, workers: int | None) -> None:
    options: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    if address is None:
        options |= {"address": "local", "num_cpus": workers, "include_dashboard": False, "object_store_memory": _STORE}
    else:
        options |= {"address": address}
    stopping = signal.getsignal(signal.SIGTERM)
    try:
        with Path(os.devnull).open("wb") as nowhere, _sent(2, to=nowhere.fileno()):  # its faults are exceptions
            ray.init(**options)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        where = "on this machine" if address is None else f"at {address}"
        raise UsageError(f"Ray cannot be reached {where}: {str(error).partition(chr(10))[0]}") from None
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, stopping)  # Ray has taken it


@contextmanager
def _sent(place: int, *, to: int) -> Iterator[None]:
    """What this process writes to one descriptor goes to another meanwhile."""
    _flush()
    kept = os.dup(place)
    try:
        os.dup2(to, place)
        yield
    finally:
        _flush()
        os.dup2(kept, place)
        os.close(kept)


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
