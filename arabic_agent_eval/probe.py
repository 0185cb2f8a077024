"""Asking a model one thing, to see whether everything is set up: key, address, name, and whether it calls tools."""

from __future__ import annotations

import asyncio

import msgspec

from arabic_agent_eval.asking import Request
from arabic_agent_eval.models.model import Answer, Failure, Model
from arabic_agent_eval.strictjson import decode_clipped
from arabic_agent_eval.tools import Tool

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
        said = read.text.strip()
        words = f" (it said: {said[:80]})" if said else " and said nothing"
        return False, f"it answers, but made no tool call{words}; if it has no tools of its own, use --prompt-tools."
    call = read.calls[0].call
    if call.function != _WEATHER.name or call.error is not None:
        return False, f"it answers, but its call is wrong: {call.function} ({call.error or 'another tool'})."
    arguments = msgspec.json.encode(call.arguments).decode()
    return True, f"it answers and calls tools: {call.function} {arguments[:200]}"
