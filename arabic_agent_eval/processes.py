"""Grading the ranges of a file in several processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from arabic_agent_eval.errors import DataError, UsageError
from arabic_agent_eval.items import ItemSet
from arabic_agent_eval.ranges import Options, RangeGrader, RangeResult

_grader: RangeGrader | None = None


def _start_process(grader: RangeGrader | None, items: Path | None, replies: Path, options: Options) -> None:
    """Prepare a process: the items come with the fork, or are read again where processes start afresh."""
    global _grader  # noqa: PLW0603 - a process of a pool keeps its state in its module
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    _grader = grader or RangeGrader(ItemSet.index(items or Path()), replies, options)


def _leave_with_parent() -> None:
    """Nobody is left to wait for the work of a process whose parent was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(start: int, end: int) -> RangeResult | DataError:
    assert _grader is not None  # noqa: S101 - set by the initializer
    return _grader.try_range(start, end)


def grade_in_processes(
    items: ItemSet, replies: Path, options: Options, ranges: Iterable[tuple[int, int]], jobs: int
) -> Iterator[RangeResult | DataError]:
    """Grade ranges in several processes, in order, with a bounded number under way."""
    fork = "fork" in multiprocessing.get_all_start_methods() and threading.active_count() == 1
    if not fork and items.path is None:
        raise UsageError("several jobs need items that were read from a file.")
    len(items)  # read to the end before the processes part, so that none has to
    grader = RangeGrader(items, replies, options) if fork else None
    context = multiprocessing.get_context("fork" if fork else "spawn")
    pool = ProcessPoolExecutor(jobs, context, _start_process, (grader, items.path, replies, options))
    waiting: deque[Future[RangeResult | DataError]] = deque()
    try:
        for start, end in ranges:
            waiting.append(pool.submit(_work, start, end))
            if len(waiting) > 2 * jobs:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        remedy = "Use fewer --jobs."
        what = "a grading process was killed, perhaps because memory ran out."
        raise DataError(what, path=str(replies), remedy=remedy) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
