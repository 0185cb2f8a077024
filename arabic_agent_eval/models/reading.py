"""What the four interfaces have in common when an answer is read: the grader's own readers, ids, counts, addresses.

Calls and words come from :mod:`arabic_agent_eval.formats` alone: what the runner reads is what the grader grades.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from arabic_agent_eval.asking import MadeCall
from arabic_agent_eval.formats import Reply, read_calls, read_reply, words_of
from arabic_agent_eval.models.model import Failure, Tokens
from arabic_agent_eval.models.refusals import explain_body

_MOST = 2**53  # beyond this no count is one


def read_body(body: Any, fits: Callable[[dict[str, Any]], bool]) -> Reply | Failure:
    """The reply that a body with status 200 is, or why it is no answer.

    Args:
        body: the decoded body.
        fits: whether an answer has the shape of this interface; one of another would be graded, but not continued.
    """
    if not isinstance(body, dict):  # whoever decodes may have met anything
        return Failure("malformed", "The provider's answer is not a JSON object.", retry=True)
    reply = read_reply({"id": "", "response": body})
    if reply.failure is not None:
        return explain_body(body, reply.failure)
    if "status_code" in body or not fits(body):
        return Failure(
            "malformed", "The answer has the shape of another interface; check the provider's name and the address."
        )
    return reply


def made_calls(reply: Reply, ids: Iterable[Any]) -> tuple[MadeCall, ...]:
    """The calls that the grader will read, each with its id; an id that is not text or is empty is none."""
    calls = read_calls(reply)
    known = [name_or_none(entry) for entry in ids]
    known += [None] * (len(calls) - len(known))
    return tuple(MadeCall(known[place], call) for place, call in enumerate(calls))


def spoken(body: dict[str, Any]) -> str:
    """What an answer says in words; "" where it says nothing or is no answer."""
    return words_of({"response": body})


def member(value: Any, *path: str) -> Any:
    """What stands at the end of a path through objects; None where the path ends early."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def name_or_none(value: Any) -> str | None:
    """A text that is not empty, or None."""
    return value if isinstance(value, str) and value else None


def text_or_empty(value: Any) -> str:
    """A text, or "" where there is none."""
    return value if isinstance(value, str) else ""


def read_tokens(
    usage: Any,
    *,
    read: Sequence[str],
    written: Sequence[str],
    cached: Sequence[str],
    reasoning: Sequence[str],
) -> Tokens | None:
    """The provider's counts; None where it did not count, or a count is no whole number of at least 0.

    Args:
        usage: the part of the answer that holds the counts.
        read: the paths, with dots, of the counts that add up to the tokens read.
        written: the same for the tokens written.
        cached: the same for those read at the lower price.
        reasoning: the same for those thought and not said.
    """
    if not isinstance(usage, dict) or all(usage.get(path) is None for path in (*read, *written)):
        return None
    sums = [_sum(usage, paths) for paths in (read, written, cached, reasoning)]
    counts = [one for one in sums if one is not None]
    return Tokens(*counts) if len(counts) == len(sums) else None


def _sum(usage: dict[str, Any], paths: Sequence[str]) -> int | None:
    total = 0
    for path in paths:
        count = member(usage, *path.split("."))
        if count is None:
            continue
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count < _MOST:
            return None
        total += count
    return total


def read_cost(value: Any) -> float | None:
    """An amount in US dollars, or None where it is no finite number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _MOST:
        return None
    return float(value) if math.isfinite(value) else None


def join_url(base_url: str, path: str, *, ending: str | None = None) -> str:
    """The address of an endpoint; an address that is complete already is left as it is, a query stays at the end.

    Args:
        base_url: with or without a slash at its end.
        path: what comes after it, without a slash at its beginning.
        ending: how an address ends that is complete already; a slash and the path by default.

    >>> join_url("http://localhost:8000/v1/", "chat/completions")
    'http://localhost:8000/v1/chat/completions'
    >>> join_url("https://a.example/openai?api-version=2", "chat/completions")
    'https://a.example/openai/chat/completions?api-version=2'
    """
    place, mark, query = base_url.partition("?")
    place = place.rstrip("/")
    if place.endswith(ending or f"/{path}"):
        return base_url
    return f"{place}/{path}{mark}{query}"
