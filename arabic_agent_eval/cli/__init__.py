"""The ``aae`` command: read arguments, one library call, one render call.

Results go to stdout, everything else to stderr. Exit codes: 0 done; 1 a gate failed; 2 usage or data error;
3 provider failures left answers unscored; 130 interrupted.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from arabic_agent_eval.cli import steps
from arabic_agent_eval.cli.guard import (
    BAD_INPUT,
    DONE,
    GATE_FAILED,
    INTERRUPTED,
    UNSCORED,
    Interrupted,
    NobodyReads,
    interrupt_again,
)
from arabic_agent_eval.errors import EvalError, OutputError

if TYPE_CHECKING:
    from arabic_agent_eval.cli.commands import app
else:

    def __getattr__(name: str) -> Any:
        """The commands, loaded when they are asked for: an interrupt while they load is caught by :func:`main`."""
        if name == "app":
            from arabic_agent_eval.cli.commands import app

            return app
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["BAD_INPUT", "DONE", "GATE_FAILED", "INTERRUPTED", "UNSCORED", "app", "main"]


def main() -> None:
    """Run the command; a mistake of the user is one sentence on stderr, never a traceback."""
    try:
        _prepare()
        from arabic_agent_eval.cli import app

        app()
    except EvalError as error:
        _fail(str(error), BAD_INPUT)
    except (Interrupted, KeyboardInterrupt):
        _fail("interrupted; nothing was written.", INTERRUPTED)
    except NobodyReads:
        steps.let_go()
        sys.exit(DONE)
    except MemoryError:
        _fail("memory ran out. Grade fewer items at a time.", BAD_INPUT)
    except OSError as error:
        _fail(
            str(OutputError(f"the result could not be written: {(error.strerror or str(error)).lower()}.")), BAD_INPUT
        )


def _prepare() -> None:
    sys.unraisablehook = interrupt_again
    for name in ("SIGTERM", "SIGHUP"):  # whoever ends the command leaves no half-written file
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:  # as nohup leaves it
            signal.signal(number, signal.default_int_handler)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed before the command began
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123
        getattr(sys, name).reconfigure(encoding="utf-8", errors="backslashreplace")


def _fail(message: str, code: int) -> None:
    steps.say(message)
    sys.exit(code)
