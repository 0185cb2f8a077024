"""How a command ends when somebody else ends it."""

from __future__ import annotations

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

cli.app = command
cli.main()
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_an_interrupt_is_never_lost(name):
    """One that comes inside a callback of a weak reference, where Python drops it, still ends the command."""
    program = [sys.executable, "-c", PROGRAM.replace("{name}", name)]

    done = subprocess.run(program, capture_output=True, encoding="utf-8", timeout=60, check=False)

    assert done.stdout == ""
    assert (done.returncode, done.stderr) == (130, "aae: interrupted; nothing was written.\n")
