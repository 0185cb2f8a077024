"""How a command ends: the exit codes, and what a command raises when somebody else ends it."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import ParamSpec

_P = ParamSpec("_P")

DONE, GATE_FAILED, BAD_INPUT, UNSCORED, INTERRUPTED = 0, 1, 2, 3, 130


class Interrupted(Exception):
    """Somebody pressed Ctrl-C: an exception of our own, since typer ends on its own without a word."""


class NobodyReads(Exception):
    """The reader of stdout has gone, which is no failure."""


def guarded(command: Callable[_P, None]) -> Callable[_P, None]:
    """A command whose interrupt and closed stdout reach :func:`arabic_agent_eval.cli.main`."""

    @functools.wraps(command)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> None:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except KeyboardInterrupt:
            raise Interrupted from None
        except BrokenPipeError:
            raise NobodyReads from None

    return run
