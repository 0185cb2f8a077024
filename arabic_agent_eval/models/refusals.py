"""Why a provider gave no answer: its status, headers and error body → a :class:`Failure` with one sentence.

The same table serves OpenAI and everything compatible, Anthropic and Gemini: their words for one trouble differ, and
none of them uses another's word for something else. Nothing here knows which environment variable holds the key; who
sends the request adds that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from arabic_agent_eval.formats import objects
from arabic_agent_eval.models.model import Failure, FailureKind
from arabic_agent_eval.redaction import redact
from arabic_agent_eval.text import fold_space, name_invisible

_MAX_MESSAGE = 300
_MAX_HOST = 100
_LOOKED_AT = 2_000  # characters of an error in which its kind is looked for
_MAX_NESTING = 8

_QUOTA = frozenset(
    {
        *("insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "billing_error"),
        *("insufficient_balance", "insufficient_credits", "payment_required"),
    }
)
_FILTERED = frozenset(
    {
        *("content_filter", "content_policy_violation", "responsibleaipolicyviolation", "invalid_prompt"),
        *("image_content_policy_violation", "content_policy", "moderation_error", "refusal"),
    }
)
_KEY = frozenset({"invalid_api_key", "api_key_invalid", "authentication_error", "unauthenticated", "permission_error"})
_NOT_FOUND = frozenset({"model_not_found", "not_found_error", "not_found", "model_not_available", "invalid_model"})
_STATUS_OF = {
    **dict.fromkeys(("rate_limit_exceeded", "rate_limit_error", "resource_exhausted", "too_many_requests"), 429),
    **dict.fromkeys(("overloaded_error", "server_error", "api_error", "internal", "unavailable", "timeout_error"), 500),
    **dict.fromkeys(("invalid_request_error", "invalid_argument", "failed_precondition", "badrequesterror"), 400),
    "permission_denied": 403,
}
"""What an error calls itself → the status that it would have had; only for errors that came with status 200."""

_NO_CREDIT = re.compile(r"credit balance is too low|insufficient (?:balance|credits|funds)|out of credits")
_NO_TOOLS = re.compile(
    r"not support(?:ed)? (?:tool|function)|support tool use|--enable-auto-tool-choice|--tool-call-parser|--jinja"
    r"|unsupported param(?:eter)?: \W?tools|(?:tools?|(?:tool|function)[ _](?:calling|use|choice))\W*"
    r"(?:param )?(?:is|are) (?:not|un)\s?(?:fully )?(?:supported|enabled)"
)
_NO_PAGE = re.compile(r"(?:404 )?(?:(?:file|page|route|endpoint|resource) )?not found\W*|cannot post .*|", re.DOTALL)
"""What servers say of an address that they do not have; of a model that they do not have, they say its name."""

_SENTENCES: dict[FailureKind, str] = {
    "rate_limit": "The provider's rate limit is reached (status {status})",
    "quota": "The quota or credit at the provider is used up (status {status})",
    "key": "The provider refuses the key (status {status})",
    "not_found": "The provider knows no such model or no such address (status {status})",
    "request": "The provider refuses the request (status {status})",
    "filtered": "The provider's content filter stopped the request (status {status})",
    "server": "The provider is in trouble (status {status})",
    "malformed": "The provider answered with status {status} and no answer",
}
_RETRIED = frozenset({"rate_limit", "server", "malformed"})


def explain_error(status: int, body: Any, headers: Mapping[str, str], now: float) -> Failure:
    """Why a status other than 200 came.

    Args:
        status: of HTTP.
        body: decoded where it is JSON, else its text or None.
        headers: of the answer, in any case.
        now: Unix time in seconds; a date in ``Retry-After`` is measured from it.

    Returns:
        A failure whose message is one sentence on one line, without secrets, of at most 300 characters.
    """
    if 300 <= status < 400:  # noqa: PLR2004 - HTTP's redirects
        return Failure("redirect", _redirect_message(status, headers))
    said, marks = _said(body), _marks(body)
    kind = _kind(status, said[:_LOOKED_AT].lower(), marks)
    head = _SENTENCES[kind].format(status=status)
    if kind == "request" and _NO_TOOLS.search(said[:_LOOKED_AT].lower()):
        head += "; if the model has no tools of its own, try --prompt-tools"
    elif kind == "not_found" and _NO_PAGE.fullmatch(said[:_LOOKED_AT].strip().lower()):
        head += "; check that the base URL ends as the provider's own does, most often in /v1"
    retry = kind in _RETRIED
    return Failure(kind, _sentence(head, said), retry, _wait(headers, body, now) if retry else None)


def explain_body(body: dict[str, Any], reason: str) -> Failure:
    """Why a body with status 200 is no answer.

    Args:
        body: the decoded body, which the reader of reply formats calls a failure.
        reason: what that reader says, one sentence that is safe to print.
    """
    error = _error_in(body)
    if error is None:
        return _without_error(body, reason)
    marks = _marks(error)
    kind = _kind(_status_in(marks), _said(error)[:_LOOKED_AT].lower(), marks)
    retry = kind in _RETRIED
    return Failure(kind, reason, retry, _wait({}, error, 0.0) if retry else None)


def _error_in(body: dict[str, Any]) -> Any:
    if body.get("error") or body.get("type") == "error":
        return {"error": body.get("error")}
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return {"error": first["error"]} if isinstance(first, dict) and first.get("error") else None


def _without_error(body: dict[str, Any], reason: str) -> Failure:
    feedback = body.get("promptFeedback", body.get("prompt_feedback"))
    if isinstance(feedback, dict) and (feedback.get("blockReason") or feedback.get("block_reason")):
        return Failure("filtered", reason)
    # A Responses body whose status is "failed" or "cancelled" came from a server that did not finish.
    kind: FailureKind = "server" if isinstance(body.get("output"), list) else "malformed"
    return Failure(kind, reason, retry=True)


# --- which sort of trouble -----------------------------------------------------------------------------------


def _kind(status: int, said: str, marks: frozenset[str]) -> FailureKind:
    by_words = _kind_by_words(status, said, marks)
    if by_words is not None:
        return by_words
    if status in {401, 403}:
        return "key"
    if status == 404:  # noqa: PLR2004
        return "not_found"
    if status == 429:  # noqa: PLR2004
        return "rate_limit"
    if status in {408, 409} or status >= 500:  # noqa: PLR2004
        return "server"
    return "request" if status >= 400 else "malformed"  # noqa: PLR2004


def _kind_by_words(status: int, said: str, marks: frozenset[str]) -> FailureKind | None:
    """What the error says of itself goes before its status: empty accounts and bad keys come as 400 and 429 too."""
    if status == 402 or marks & _QUOTA or _NO_CREDIT.search(said):  # noqa: PLR2004
        return "quota"
    if marks & _FILTERED:
        return "filtered"
    if marks & _NOT_FOUND or "not a valid model id" in said:
        return "not_found"
    if marks & _KEY:
        return "key"
    # llama.cpp's server refuses tools with status 500.
    return "request" if _NO_TOOLS.search(said) and status not in {401, 403, 429} else None


def _status_in(marks: frozenset[str]) -> int:
    """The status that an error inside an answer would have had: as it says, or as its name implies."""
    numbers = [int(mark) for mark in marks if re.fullmatch(r"[45]\d\d", mark, re.ASCII)]
    named = [_STATUS_OF[mark] for mark in marks if mark in _STATUS_OF]
    return max(numbers or named, default=500)


def _layers(body: Any) -> Iterator[dict[str, Any]]:
    """An error body and the objects inside it that describe the same error, from the outside in."""
    for _ in range(_MAX_NESTING):
        if isinstance(body, list):  # Gemini's streaming address wraps its error so
            body = body[0] if body else None
        if not isinstance(body, dict):
            return
        yield body
        body = next((body[name] for name in ("error", "innererror", "detail") if body.get(name)), None)


def _marks(body: Any) -> frozenset[str]:
    """The codes and types that an error gives itself, in lower case."""
    found: set[str] = set()
    for layer in _layers(body):
        found |= {_mark(layer.get(name)) for name in ("code", "type", "status", "error_type")}
        for detail in _details(layer):
            found.add(_mark(detail.get("reason")))
            if any("perday" in _mark(one.get("quotaId")) for one in objects(detail.get("violations"))):
                found.add("insufficient_quota")  # a day's quota comes back tomorrow: nobody waits for that
        metadata = layer.get("metadata")
        if isinstance(metadata, dict) and "flagged_input" in metadata:
            found.add("content_filter")
    return frozenset(found - {""})


def _mark(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    return value[:_LOOKED_AT].lower() if isinstance(value, str) else str(min(max(value, 0), 999))


def _details(layer: dict[str, Any]) -> list[dict[str, Any]]:
    return objects(layer.get("details"))


# --- what is said --------------------------------------------------------------------------------------------


def _said(body: Any) -> str:
    """The provider's own words: a message, else whatever comes nearest to one; a page of markup says nothing."""
    if isinstance(body, str):
        return "" if body.lstrip()[:1] in {"<", "{", "["} else body
    raw = next((_raw(layer) for layer in _layers(body) if _raw(layer)), "")
    value = body
    for _ in range(_MAX_NESTING):
        if isinstance(value, list):
            value = value[0] if value else None
        if not isinstance(value, dict):
            break
        found = (value.get(name) for name in ("message", "error", "detail", "msg", "code", "type"))
        value = next((one for one in found if one and isinstance(one, str | dict | list)), None)
    words = value if isinstance(value, str) else ""
    return f"{words}: {raw}" if words and raw else words or raw


def _raw(layer: dict[str, Any]) -> str:
    """What a provider behind OpenRouter said; its own message is only that the provider returned an error."""
    metadata = layer.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    return raw if isinstance(raw, str) else ""


def _sentence(head: str, said: str) -> str:
    said = _clean(said, _MAX_MESSAGE - len(head) - len(": .")).rstrip(" .")
    if not said:
        return f"{head}."
    return f"{head}: {said}" if said.endswith(("…", "!", "?", "؟")) else f"{head}: {said}."


def _clean(text: str, limit: int) -> str:
    """A text on one line without secrets and control characters, cut to a length."""
    shown = name_invisible(fold_space(redact(text[: 4 * _MAX_MESSAGE])), spaces=True)
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def _redirect_message(status: int, headers: Mapping[str, str]) -> str:
    where = _header(headers, "location")
    try:
        host = urlsplit(where).hostname or ""
    except ValueError:
        host = ""
    goal = f"to {_clean(host, _MAX_HOST)}" if host else "elsewhere"
    return (
        f"The address redirects {goal} (status {status}), and no redirect is followed, since it would take the key "
        "along; give the right address with --base-url."
    )


# --- how long to wait ----------------------------------------------------------------------------------------

_NUMBER = re.compile(r"\s*(\d{1,12}(?:\.\d{1,12})?)\s*", re.ASCII)
_DELAY = re.compile(r"(\d{1,12}(?:\.\d{1,12})?)s", re.ASCII)


def _header(headers: Mapping[str, str], name: str) -> str:
    return next((value for key, value in headers.items() if key.lower() == name), "")


def _wait(headers: Mapping[str, str], body: Any, now: float) -> float | None:
    """Seconds that the provider asks to wait; None where it does not say, or says something in the past."""
    if match := _NUMBER.fullmatch(_header(headers, "retry-after-ms")):
        return float(match[1]) / 1000
    after = _header(headers, "retry-after")
    if match := _NUMBER.fullmatch(after):
        return float(match[1])
    if after and (seconds := _seconds_until(after, now)) is not None:
        return seconds
    return next((float(match[1]) for match in _delays(body)), None)


def _seconds_until(date: str, now: float) -> float | None:
    try:
        seconds = parsedate_to_datetime(date[:100]).timestamp() - now
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return seconds if seconds >= 0 else None


def _delays(body: Any) -> Iterator[re.Match[str]]:
    """Gemini's RetryInfo."""
    for layer in _layers(body):
        for detail in _details(layer):
            delay = detail.get("retryDelay")
            if isinstance(delay, str) and (match := _DELAY.fullmatch(delay)):
                yield match
