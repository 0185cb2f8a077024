"""Grading the ranges of a file in several processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from arabic_agent_eval.errors import DataError, UsageError
from arabic_agent_eval.files import collector_paused
from arabic_agent_eval.items import ItemSet
from arabic_agent_eval.ranges import Options, RangeGrader, RangeResult
from arabic_agent_eval.windows import ItemWindow, OutOfOrder

_T = TypeVar("_T")

_Ranges = Sequence[tuple[int, int]]
_Outcome = RangeResult | DataError
_Found = tuple[_Outcome | None, list[str]]
"""What a process found in a range: the outcome, or None where the whole of the items is needed; and ids of items."""

_grader: RangeGrader | None = None
_Windows = tuple[Path, str, int, Path, int, Options]
_windows: _Windows | None = None
_LOOK = 1.0  # seconds after which a pool is looked at
_ending: list[threading.Thread] = []
"""Threads that wait for the processes of an earlier file to end."""


def _prepare_process() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _start_process(grader: RangeGrader | None, items: Path | None, replies: Path, options: Options) -> None:
    """Prepare a process: the items come with the fork, or are read again where processes start afresh."""
    global _grader  # noqa: PLW0603 - a process of a pool keeps its state in its module
    _prepare_process()
    _grader = grader or RangeGrader(ItemSet.index(items or Path()), replies, options)


def _start_window_process(windows: _Windows) -> None:
    global _windows  # noqa: PLW0603 - as above
    _prepare_process()
    _windows = windows


def _leave_with_parent() -> None:
    """Nobody is left to wait for the work of a process whose parent was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(start: int, end: int) -> _Outcome:
    assert _grader is not None  # noqa: S101 - set by the initializer
    return _grader.try_range(start, end)


def _work_in_window(start: int, end: int) -> _Found:
    """Grade a range with the items of the same part of their file."""
    assert _windows is not None  # noqa: S101 - set by the initializer
    items, name, items_size, replies, replies_size, options = _windows
    first, last = (bound * items_size // replies_size for bound in (start, end))
    window = ItemWindow(items, name, first, last)
    try:
        with collector_paused():
            outcome = RangeGrader(window, replies, options).try_range(start, end)
            window.finish()
    except OutOfOrder:
        return None, []
    return outcome, window.ids


def grade_in_processes(
    items: ItemSet, replies: Path, options: Options, ranges: _Ranges, jobs: int
) -> Iterator[_Outcome]:
    """Grade ranges in several processes, in order, with a bounded number under way.

    Every process reads the items of its own ranges, as long as replies stand about where their items do. From the
    first range on where they do not, the items are read here and every process has all of them.
    """
    done = 0
    ids: dict[str, None] = {}
    read = 0
    if items.is_unread and items.path is not None:
        windows = (items.path, items.name, items.path.stat().st_size, replies, ranges[-1][1], options)
        prepare, work, look = _start_window_process, _work_in_window, partial(items.glance, count=False)
        for outcome, found in _outcomes(prepare, (windows,), work, ranges, jobs, replies, look):
            if outcome is None or isinstance(outcome, DataError):  # the error that counts may stand before it
                break
            ids.update(dict.fromkeys(found))  # while the other processes work, not when all of them have finished
            read += len(found)
            done += 1
            yield outcome
        items.vouch(list(ids) if done == len(ranges) and len(ids) == read else None)
    if done < len(ranges):
        yield from _grade_with_all(items, replies, options, ranges[done:], jobs)


def _grade_with_all(items: ItemSet, replies: Path, options: Options, ranges: _Ranges, jobs: int) -> Iterator[_Outcome]:
    if not _forks() and items.path is None:
        raise UsageError("several jobs need items that were read from a file.")
    len(items)  # read to the end before the processes part, so that none has to
    grader = RangeGrader(items, replies, options) if _forks() else None
    yield from _outcomes(_start_process, (grader, items.path, replies, options), _work, ranges, jobs, replies)


def _result(pool: ProcessPoolExecutor, future: Future[_T]) -> _T:
    """The result of a future.

    The pool notices by itself when a process dies, but not when one dies in the midst of handing over a result: it then
    waits for the other half for ever. So it is looked at now and then.

    Raises:
        BrokenProcessPool: a process died.
    """
    while True:
        try:
            return future.result(timeout=_LOOK)
        except TimeoutError:
            if not _has_lost_one(pool):
                continue
        with suppress(TimeoutError):
            return future.result(timeout=_LOOK)  # which the pool may be about to notice
        for process in _members(pool):
            process.kill()
        if (results := getattr(pool, "_result_queue", None)) is not None:
            results._writer.close()  # noqa: SLF001 - the last end that could still write: whoever reads there is told
        raise BrokenProcessPool


def _members(pool: ProcessPoolExecutor) -> list[Any]:
    return list((getattr(pool, "_processes", None) or {}).values())


def _has_lost_one(pool: ProcessPoolExecutor) -> bool:
    return any(process.exitcode is not None for process in _members(pool))


def _end(pool: ProcessPoolExecutor) -> None:
    """Let the processes end while their caller goes on."""
    thread = threading.Thread(target=pool.shutdown)
    thread.start()
    _ending.append(thread)


def _forks() -> bool:
    """Whether processes can be forked; other threads forbid it, but not those that wait for an earlier file."""
    for thread in tuple(_ending):
        thread.join()
    _ending.clear()
    return "fork" in multiprocessing.get_all_start_methods() and threading.active_count() == 1


def _outcomes(
    prepare: Callable[..., None],
    arguments: tuple[Any, ...],
    work: Callable[[int, int], _T],
    ranges: _Ranges,
    jobs: int,
    replies: Path,
    meanwhile: Callable[[], None] = lambda: None,
) -> Iterator[_T]:
    """What the processes found in the ranges, in order; ``meanwhile`` is done here while they begin."""
    forks = _forks()
    context = multiprocessing.get_context("fork" if forks else "spawn")
    pool = ProcessPoolExecutor(jobs, context, prepare, arguments)
    waiting: deque[Future[_T]] = deque()
    try:
        for number, (start, end) in enumerate(ranges):
            waiting.append(pool.submit(work, start, end))
            if number == min(2 * jobs, len(ranges)) - 1:
                meanwhile()
            if len(waiting) > 2 * jobs:
                yield _result(pool, waiting.popleft())
        while waiting:
            yield _result(pool, waiting.popleft())
        _end(pool)
    except BrokenProcessPool:
        pool.shutdown()
        what = "a grading process was killed, perhaps because memory ran out."
        remedy = "Use fewer --jobs."
        if not forks:
            what = "a grading process was killed, perhaps because memory ran out, or could not start."
            remedy += " A script that asks for several jobs must do so under: if __name__ == '__main__'."
        raise DataError(what, path=str(replies), remedy=remedy) from None
    except BaseException:
        pool.shutdown(wait=True, cancel_futures=True)
        raise
