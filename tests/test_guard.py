"""How a command ends when somebody else ends it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys

import pytest

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
