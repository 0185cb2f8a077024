"""How a command ends when somebody else ends it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys

import pytest

from arabic_agent_eval.cli import steps
from tests.test_cli import aae, files, many_items

PROGRAM = """
import signal, sys, time, weakref
from arabic_agent_eval import cli
from arabic_agent_eval.cli.guard import guarded

class Thing:
    pass

@guarded
def command():
    thing = Thing()
    watched = weakref.ref(thing, lambda _: signal.raise_signal(signal.{name}))
    del thing
    time.sleep(20)
    print("nobody interrupted")

signal.signal(signal.{name}, signal.default_int_handler)  # whatever the tests were started with
cli.app = command
cli.main()
"""


@pytest.mark.parametrize("name", [name for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)])
def test_an_interrupt_is_never_lost(name):
    """One that comes inside a callback of a weak reference, where Python drops it, still ends the command."""
    program = [sys.executable, "-c", PROGRAM.replace("{name}", name)]

    done = subprocess.run(program, capture_output=True, encoding="utf-8", timeout=60, check=False)

    assert done.stdout == ""
    assert (done.returncode, done.stderr) == (130, "aae: interrupted; nothing was written.\n")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("grade", "--items", "sample", "--replies", "sample", "--json", "--fail-under", "0.99"), 1),
        (("grade", "--items", "sample", "--replies", "sample", "--fail-under", "0.99"), 1),
        (("grade", "--items", "sample", "--replies", "sample"), 0),
        (("data", "list", "core"), 0),
    ],
)
def test_a_gate_is_judged_though_nobody_reads(arguments, code):
    """Whoever has closed the other end of stdout, a gate fails as it would, and what succeeds succeeds."""
    read, write = os.pipe()
    os.close(read)

    done = subprocess.run(
        [sys.executable, "-m", "arabic_agent_eval", *arguments],
        stdout=write, stderr=subprocess.PIPE, encoding="utf-8", timeout=60, check=False,
    )  # fmt: skip
    os.close(write)

    assert done.returncode == code
    assert done.stderr == ("aae: The score 0.8254 is below --fail-under 0.99.\n" if code else "")


def test_a_closed_stdin_is_said():
    """Replies from a standard input that was closed before the command began."""
    command = f"exec {shlex.quote(sys.executable)} -m arabic_agent_eval grade --items sample --replies - <&-"

    done = subprocess.run(["sh", "-c", command], capture_output=True, encoding="utf-8", timeout=60, check=False)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "aae: standard input is closed; name a file with --replies.\n"


def test_a_stream_that_nobody_reads(tmp_path, monkeypatch):
    """What is printed there goes nowhere, and it is known; another stream is read as before."""
    with (tmp_path / "out").open("w", encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert steps.is_read()
        steps.let_go()
        stream.write("lost")
        assert not steps.is_read()
    monkeypatch.undo()

    assert steps.is_read()
    assert (tmp_path / "out").read_text(encoding="utf-8") == ""


def test_no_more_answers_are_shown_than_are_read(tmp_path, monkeypatch):
    """Once nobody reads any more, the next answer is not put in words."""
    items = many_items(3)
    rows = tmp_path / "rows.jsonl"
    aae("grade", *files(tmp_path, items, [{"id": row["id"], "calls": []} for row in items]), "--out", rows)
    monkeypatch.setattr(steps, "is_read", lambda: False)

    assert len(aae("show", rows, "--lost", "--json").out.splitlines()) == 1
