"""Files that only grow: one durable line at a time, by one process at a time, whole after any crash."""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Self

from arabic_agent_eval.errors import DataError, OutputError, UsageError
from arabic_agent_eval.files import reason_of

try:
    import fcntl
except ImportError:  # Windows, where the folder is not locked
    fcntl = None  # type: ignore[assignment]

REPLIES, TURNS = "replies.jsonl", "turns.jsonl"
LOCK = ".lock"
_BLOCK = 1 << 16
_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)  # Windows would change line ends


class Journal:
    """The two append-only files of a run, open for writing by one process.

    Used as a context manager. A line is durable when :meth:`append` returns.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._handles: dict[str, int] = {}
        self._lock: int | None = None
        # An impatient interrupt may close the journal while a thread of the runner still writes.
        self._writing = threading.Lock()

    def __enter__(self) -> Self:
        try:
            self._lock = _locked(self.folder)
            for name in (REPLIES, TURNS):
                self._handles[name] = os.open(self.folder / name, _FLAGS | os.O_APPEND, 0o666)
                _drop_torn_line(self._handles[name])
            _sync_folder(self.folder)
        except OSError as error:
            self.close()
            raise OutputError(f"{self.folder}: the answers cannot be kept there: {reason_of(error)}.") from None
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def append(self, lines: Mapping[str, bytes]) -> None:
        """Add whole lines to the files of these names, each durably or not at all.

        Raises:
            OutputError: there is no room, or the disk is gone; of the lines, the first that still fitted are there.
        """
        with self._writing:
            for name, data in lines.items():
                self._append(name, data)

    def _append(self, name: str, data: bytes) -> None:
        try:
            append_durably(self._handles[name], data)
        except OSError as error:
            raise OutputError(f"{self.folder / name}: an answer could not be kept: {reason_of(error)}.") from None

    def close(self) -> None:
        """Let go of the files and of the lock."""
        with self._writing:
            for handle in (*self._handles.values(), *(() if self._lock is None else (self._lock,))):
                os.close(handle)
            self._handles.clear()
            self._lock = None


def append_durably(handle: int, data: bytes) -> None:
    """Add whole lines to an open file and wait until the disk has them.

    Raises:
        OSError: there is no room, or the disk is gone; the lines that still fitted are there, and no part of another.
    """
    whole = size = os.fstat(handle).st_size
    try:
        written = 0
        while written < len(data):
            written += os.write(handle, data[written:])
            whole = size + data.rfind(b"\n", 0, written) + 1
        whole = size  # what the disk does not confirm may be anything
        os.fsync(handle)
    except OSError:
        with contextlib.suppress(OSError):
            os.ftruncate(handle, whole)
            os.fsync(handle)
        raise


@contextlib.contextmanager
def growing(path: Path) -> Iterator[int]:
    """A file of lines that is read and then appended to, made where there is none, by one process at a time.

    The others wait. It is only read from its beginning, and what stands in it is never changed.

    Raises:
        OutputError: it cannot be opened for writing, or is no regular file.
    """
    is_new = not path.exists()
    try:
        handle = os.open(path, _FLAGS | os.O_APPEND | getattr(os, "O_NONBLOCK", 0), 0o666)
    except OSError as error:
        raise OutputError(f"{path}: nothing can be added there: {reason_of(error)}.") from None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OutputError(f"{path}: nothing can be added there: it is not a regular file.")
        if fcntl is not None:
            with contextlib.suppress(OSError):  # some network file systems have no locks
                fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle
        if is_new:
            _sync_folder(path.parent)
    finally:
        os.close(handle)


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder; no other process can make or write a run there meanwhile.

    Raises:
        UsageError: another process holds it.
    """
    handle = _locked(folder)
    try:
        yield
    finally:
        os.close(handle)


def _locked(folder: Path) -> int:
    handle = os.open(folder / LOCK, _FLAGS, 0o666)
    if fcntl is not None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise UsageError(f"{folder} is being written by another process; wait for it, or stop it.") from None
        except OSError:  # some network file systems have no locks
            pass
    return handle


def _drop_torn_line(handle: int) -> None:
    """Cut off what a crash left of a line: it was not durable, so it never counted."""
    size = end = os.fstat(handle).st_size
    while end > 0:
        start = max(0, end - _BLOCK)
        os.lseek(handle, start, os.SEEK_SET)
        found = os.read(handle, end - start).rfind(b"\n")
        if found >= 0:
            end = start + found + 1
            break
        end = start
    if end < size:
        os.ftruncate(handle, end)


def _sync_folder(folder: Path) -> None:
    """Make the names of new files durable; some systems cannot, and need not."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def open_growing(path: Path) -> IO[bytes]:
    """Open a file for reading.

    Raises:
        DataError: it cannot be read.
    """
    try:
        return path.open("rb", buffering=1 << 20)
    except OSError as error:
        raise DataError(f"the file cannot be read: {reason_of(error)}.", path=str(path)) from None


def whole_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file and where they begin, without one that was cut off; none where there is no file."""
    if not path.exists():
        return
    start = 0
    with open_growing(path) as stream:
        for line in stream:
            if line.endswith(b"\n"):
                yield start, line
            start += len(line)


def line_number(path: Path, start: int) -> int:
    """Which line begins at this byte."""
    with open_growing(path) as stream:
        return stream.read(start).count(b"\n") + 1
