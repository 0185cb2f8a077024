"""Files that only grow: whole after any crash, written by one process, and as they were when there is no room."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time

import pytest

from arabic_agent_eval import journal as journal_module
from arabic_agent_eval.errors import DataError, OutputError, UsageError
from arabic_agent_eval.journal import REPLIES, TURNS, Journal, line_number, open_growing, whole_lines

LONG = b"x" * ((1 << 16) + 7)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b""),
        (b"torn", b""),
        (b"\n", b"\n"),
        (b"one\n", b"one\n"),
        (b"one\ntorn", b"one\n"),
        (b"one\ntwo\n\0\0\0\0", b"one\ntwo\n"),
        (LONG, b""),
        (b"one\n" + LONG, b"one\n"),
        (b"one\n" + LONG + LONG, b"one\n"),
        (LONG + b"\n" + LONG, LONG + b"\n"),
        (b"one\r", b""),
    ],
)
def test_a_torn_line_is_dropped(tmp_path, before, after):
    """What follows the last line end never was durable; nothing else is touched, however long the line is."""
    for name in (REPLIES, TURNS):
        (tmp_path / name).write_bytes(before)
    with Journal(tmp_path) as journal:
        journal.append({TURNS: b"new\n"})
    assert (tmp_path / REPLIES).read_bytes() == after
    assert (tmp_path / TURNS).read_bytes() == after + b"new\n"


def test_lines_are_added_to_both_files(tmp_path):
    """Lines go to the end of their files, whoever wrote before."""
    for number in (1, 2):
        with Journal(tmp_path) as journal:
            journal.append({REPLIES: b"a%d\nb\n" % number, TURNS: b"c\n"})
            journal.append({})
    assert (tmp_path / REPLIES).read_bytes() == b"a1\nb\na2\nb\n"
    assert (tmp_path / TURNS).read_bytes() == b"c\nc\n"


def test_a_short_write_is_finished(tmp_path, monkeypatch):
    """The system may take a line in pieces."""
    usual = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: usual(handle, data[:3]))
    with Journal(tmp_path) as journal:
        journal.append({REPLIES: b"a long line\n"})
    assert (tmp_path / REPLIES).read_bytes() == b"a long line\n"


@pytest.mark.parametrize("broken", ["write", "fsync"])
@pytest.mark.parametrize("stuck", [False, True])
def test_no_room(tmp_path, monkeypatch, broken, stuck):
    """A line that cannot be made durable is taken back; where that fails too, the next session takes it back."""
    usual = os.write

    def fail(handle, data=b""):
        if broken == "write":
            usual(handle, data[:4])
            monkeypatch.setattr(os, "write", refuse)
            return 4
        return refuse()

    def refuse(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with Journal(tmp_path) as journal:
        journal.append({REPLIES: b"kept\n"})
        monkeypatch.setattr(os, broken, fail)
        if stuck:
            monkeypatch.setattr(os, "ftruncate", refuse)
        with pytest.raises(OutputError, match=r"replies\.jsonl: an answer could not be kept: no space left on device"):
            journal.append({REPLIES: b"lost line\n"})
    if not stuck:
        assert (tmp_path / REPLIES).read_bytes() == b"kept\n"
    monkeypatch.undo()
    with Journal(tmp_path):
        pass
    assert (tmp_path / REPLIES).read_bytes() == b"kept\n" + (b"lost line\n" if stuck and broken == "fsync" else b"")


@pytest.mark.parametrize(
    ("room", "kept"), [(0, b""), (3, b""), (4, b"one\n"), (7, b"one\n"), (8, b"one\ntwo\n"), (9, b"one\ntwo\n")]
)
def test_what_still_fits_is_kept(tmp_path, monkeypatch, room, kept):
    """Of several answers those are kept for which there is room: they are paid for."""
    usual, left = os.write, room

    def write(handle, data):
        nonlocal left
        if not left:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = usual(handle, data[:left])
        left -= written
        return written

    with Journal(tmp_path) as journal:
        monkeypatch.setattr(os, "write", write)
        with pytest.raises(OutputError, match="no space left on device"):
            journal.append({REPLIES: b"one\ntwo\nthree\n"})
    assert (tmp_path / REPLIES).read_bytes() == kept


def test_closing_waits_for_what_is_being_written(tmp_path, monkeypatch):
    """Who closes the journal while a thread writes into it waits until the line is there."""
    usual, begun = os.write, threading.Event()

    def write(handle, data):
        begun.set()
        time.sleep(0.05)
        return usual(handle, data)

    with Journal(tmp_path) as journal:
        monkeypatch.setattr(os, "write", write)
        thread = threading.Thread(target=journal.append, args=({REPLIES: b"kept\n"},))
        thread.start()
        assert begun.wait(60)
    monkeypatch.undo()
    thread.join(60)
    assert (tmp_path / REPLIES).read_bytes() == b"kept\n"


def test_one_process_at_a_time(tmp_path):
    """A second writer is refused, in this process and from another, until the first is done or dead."""
    script = "import sys; from pathlib import Path; from arabic_agent_eval.journal import Journal\n"
    script += "with Journal(Path(sys.argv[1])): print('in', flush=True); sys.stdin.read()"
    other = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        cwd=os.path.dirname(os.path.dirname(journal_module.__file__)),  # noqa: PTH120
    )  # fmt: skip
    assert other.stdout is not None
    assert other.stdout.readline() == b"in\n"
    with pytest.raises(UsageError, match="is being written by another process; wait for it, or stop it"):
        Journal(tmp_path).__enter__()
    other.kill()
    other.communicate(timeout=60)

    with Journal(tmp_path) as journal:
        with pytest.raises(UsageError, match="is being written by another process"):
            Journal(tmp_path).__enter__()
        journal.append({REPLIES: b"still open\n"})
    with Journal(tmp_path):
        pass


@pytest.mark.parametrize("missing", ["locks", "module"])
def test_where_there_are_no_locks(tmp_path, monkeypatch, missing):
    """On a file system or a system without locks the files are written all the same."""

    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    if missing == "locks":
        monkeypatch.setattr(journal_module.fcntl, "flock", refuse)
    else:
        monkeypatch.setattr(journal_module, "fcntl", None)
    with Journal(tmp_path) as journal:
        journal.append({REPLIES: b"kept\n"})
    assert (tmp_path / REPLIES).read_bytes() == b"kept\n"


def test_folders_that_cannot_be_synced(tmp_path, monkeypatch):
    """Some systems cannot make a name durable, and need not."""
    usual = os.fsync

    def fsync(handle):
        if os.path.isdir(f"/proc/self/fd/{handle}"):  # noqa: PTH112
            raise OSError(errno.EINVAL, "Invalid argument")
        usual(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    with Journal(tmp_path) as journal:
        journal.append({REPLIES: b"kept\n"})
    assert (tmp_path / REPLIES).read_bytes() == b"kept\n"


@pytest.mark.parametrize("name", ["", ".lock", REPLIES, TURNS])
def test_places_that_cannot_be_written(tmp_path, name):
    """A place that is no folder, or a folder in a file's place, is a sentence, and no file stays open."""
    folder = tmp_path / "run"
    if name:
        (folder / name).mkdir(parents=True)
    else:
        folder.write_bytes(b"")
    before = sorted(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else []  # noqa: PTH112, PTH208
    with pytest.raises(OutputError, match="run: the answers cannot be kept there: "):
        Journal(folder).__enter__()
    if before:
        assert len(os.listdir("/proc/self/fd")) == len(before)  # noqa: PTH208


def test_reading_what_grows(tmp_path):
    """Whole lines and where they begin; a line that is being written is not there yet; no file is no lines."""
    path = tmp_path / REPLIES
    assert list(whole_lines(path)) == []
    path.write_bytes(b"one\n\ntwo\ntorn")
    assert list(whole_lines(path)) == [(0, b"one\n"), (4, b"\n"), (5, b"two\n")]
    assert [line_number(path, start) for start in (0, 4, 5)] == [1, 2, 3]
    with pytest.raises(DataError, match="the file cannot be read: is a directory"):
        open_growing(tmp_path)
