"""How a command ends: the exit codes, and what a command raises when somebody else ends it."""

from __future__ import annotations

import _thread
import functools
import signal
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, ParamSpec

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_P = ParamSpec("_P")

DONE, GATE_FAILED, BAD_INPUT, UNSCORED, INTERRUPTED = 0, 1, 2, 3, 130


class Interrupted(Exception):
    """Somebody pressed Ctrl-C: an exception of our own, since typer ends on its own without a word."""


class NobodyReads(Exception):
    """The reader of stdout has gone, which is no failure."""


_told = sys.unraisablehook


def interrupt_again(lost: UnraisableHookArgs) -> None:
    """A hook for what cannot be raised: an interrupt that came while Python was tidying up comes again at once."""
    if lost.exc_type is KeyboardInterrupt:
        timer = threading.Timer(0.01, _interrupt)
        timer.daemon = True
        timer.start()
    else:
        _told(lost)


def _interrupt() -> None:
    if hasattr(signal, "pthread_kill"):  # which also ends what the main thread waits for
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()


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
