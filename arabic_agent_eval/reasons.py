"""Why there is no answer, in one line that is safe to print: what an error says of itself, without secrets."""

from __future__ import annotations

from typing import Any

from arabic_agent_eval.redaction import redact
from arabic_agent_eval.strictjson import number_text
from arabic_agent_eval.text import fold_space, name_invisible

_MAX_REASON = 200


def message_of(error: Any) -> str:
    """What a provider's error says of itself, in whatever shape it comes."""
    while isinstance(error, dict):
        error = next((error[key] for key in ("message", "error", "detail", "code", "type") if error.get(key)), None)
    if isinstance(error, str) and error.strip():
        return error
    if isinstance(error, int | float) and not isinstance(error, bool):
        return number_text(error)
    return "no reason was given."


def safe_line(reason: str) -> str:
    """A reason on one line, without secrets, cut to 200 characters."""
    reason = fold_space(redact(reason[: 4 * _MAX_REASON]))
    shown = name_invisible(reason, spaces=True)
    return shown if len(shown) <= _MAX_REASON else shown[: _MAX_REASON - 1] + "…"


def exception_line(error: BaseException) -> str:
    """The kind of an exception and what it says, as :func:`safe_line`; also where it cannot say anything."""
    try:
        said = str(error)
    except Exception:  # noqa: BLE001 - the exception is somebody else's, and so is what it does when it is asked
        said = ""
    return safe_line(f"{type(error).__name__}: {said}" if said.strip() else type(error).__name__)
