"""Asking a model one thing, to see whether everything is set up: key, address, name, and whether it calls tools."""

from __future__ import annotations

import asyncio

import msgspec

from arabic_agent_eval.asking import Request
from arabic_agent_eval.models.model import Answer, Failure, Model
from arabic_agent_eval.strictjson import decode_clipped, replace_surrogates
from arabic_agent_eval.text import name_invisible
from arabic_agent_eval.tools import Call, Tool

_WEATHER = Tool(
    "get_weather",
    "حالة الطقس في مدينة | The weather in a city",
    {"type": "object", "properties": {"city": {"type": "string", "description": "اسم المدينة"}}, "required": ["city"]},
)
_QUESTION = "كيف حالة الطقس في الرياض؟"


class Finding(msgspec.Struct, frozen=True):
    """What asking once showed.

    Attributes:
        model: who was asked.
        works: whether it answered with a call of the tool.
        message: a sentence about it, with what to do where it did not work.
        latency: seconds.
    """

    model: str
    works: bool
    message: str
    latency: float


def probe(model: Model) -> Finding:
    """Ask about the weather in Riyadh, with one tool that can tell; sent once."""
    return asyncio.run(_probe(model))


async def _probe(model: Model) -> Finding:
    request = Request("", 0, "", ({"role": "user", "content": _QUESTION},), (_WEATHER,))
    try:
        attempt = await model.attempt(model.encode(request))
    finally:
        await model.close()
    read = attempt.failure or model.read(decode_clipped(attempt.body))
    works, message = _judged(read)
    return Finding(model.name, works, message, round(attempt.latency, 3))


def _judged(read: Answer | Failure) -> tuple[bool, str]:
    if isinstance(read, Failure):
        return False, read.message
    if not read.calls:
        said = name_invisible(" ".join(read.text[:400].split())[:80])
        words = f" (it said: {said})" if said else " and said nothing"
        return False, f"it answers, but made no tool call{words}; if it has no tools of its own, use --prompt-tools."
    call = read.calls[0].call
    if (fault := _fault(call)) is not None:
        return False, f"it answers, but its call is wrong: {name_invisible(str(call.function)[:80])} ({fault})."
    return True, f"it answers and calls tools: {call.function} {_shown(call)}"


def _fault(call: Call) -> str | None:
    """What keeps a call from being one for the weather in some city; which city is left to the evaluation."""
    if call.error is not None:
        return call.error
    if call.function != _WEATHER.name:
        return "another tool"
    city = call.arguments.get("city")
    return None if isinstance(city, str) and city.strip() else f"no city in {_shown(call)}"


def _shown(call: Call) -> str:
    return name_invisible(msgspec.json.encode(replace_surrogates(call.arguments)).decode()[:200])
