"""The baseline: a deterministic caller of tools without a language model, to know what a score is worth.

It compares the words of a request with the words of the offered tools, and reads dates, numbers, quotations and names
with rules. It learns nothing and understands nothing, and it knows no item and no tool in advance. It is a floor, not a
rival: a model that scores below it does not use what stands in the request.

Its rules and words were chosen with the sets ``starter`` and ``sample`` at hand, so its score on those flatters it; on
another set, ``core`` among them, it is lower. A set on which it does well is one in which words alone go far.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from arabic_agent_eval.asking import Request
from arabic_agent_eval.errors import DataError
from arabic_agent_eval.formats import read_calls, reply_text
from arabic_agent_eval.models.heuristics.conversing import Made, Next, decoded, next_calls
from arabic_agent_eval.models.heuristics.moments import read_clock
from arabic_agent_eval.models.model import Answer, Attempt, Failure, Settings
from arabic_agent_eval.models.openai_chat import OpenAIChat
from arabic_agent_eval.models.turns import content_text
from arabic_agent_eval.strictjson import MalformedJSON, decode_any_depth, encode, too_deep
from arabic_agent_eval.tools import Tool, read_arguments, read_tool

_DONE: Final = "تم تنفيذ ما طلبته."
_NOTHING: Final = "لم أجد أداة تناسب هذا الطلب، أو تنقصه معلومة لا بد منها."
_RESULT: Final = "<tool_response>"
_LONGEST_LINE = 100_000


class Baseline:
    """The model named ``baseline``; nothing leaves this machine, and the same request gets the same answer."""

    name = "baseline"
    address = ""

    def __init__(self) -> None:
        self._codec = OpenAIChat()

    def encode(self, request: Request) -> bytes:
        """The request in the shape of OpenAI's Chat Completions: all that the baseline looks at."""
        return encode(self._codec.body(request, Settings("baseline")))

    async def attempt(self, body: bytes) -> Attempt:
        """Answer at once: an OpenAI chat completion with the calls to make, or a sentence where there are none."""
        try:
            request = decode_any_depth(body)
        except MalformedJSON:
            request = None
        if not isinstance(request, dict):
            return Attempt(b"", Failure("request", "The request is not a JSON object."), None, 0.0)
        return Attempt(msgspec.json.encode(_answer(request)), None, 200, 0.0)

    def read(self, body: dict[str, Any]) -> Answer | Failure:
        """What a decoded answer says."""
        return self._codec.read(body)

    async def close(self) -> None:
        """Nothing is held."""


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    """A chat completion for a chat request."""
    messages = [message for message in _listed(request.get("messages")) if isinstance(message, dict)]
    system = "\n".join(content_text(one.get("content")) for one in messages if one.get("role") == "system")
    tools = list(_tools(_listed(request.get("tools"))))
    written = [] if tools else list(_written_tools(system))
    text, made = _conversation(messages)
    calls = next_calls(text, tools or written, read_clock(system), made) if text else []
    said = None if calls else (_DONE if made else _NOTHING)
    message: dict[str, Any] = {"role": "assistant", "content": said}
    if calls and written:
        message["content"] = "\n".join(f"<tool_call>{_text(_named(call))}</tool_call>" for call in calls)
    elif calls:
        message["tool_calls"] = [_tool_call(call, len(made) + place) for place, call in enumerate(calls, start=1)]
    stop = "tool_calls" if "tool_calls" in message else "stop"
    choice = {"index": 0, "message": message, "finish_reason": stop}
    return {"object": "chat.completion", "model": "baseline", "choices": [choice]}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _named(call: Next) -> dict[str, Any]:
    return {"name": call.name, "arguments": call.arguments}


def _tool_call(call: Next, number: int) -> dict[str, Any]:
    function = {"name": call.name, "arguments": _text(call.arguments)}
    return {"id": f"call_{number}", "type": "function", "function": function}


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _tools(entries: list[Any]) -> Iterator[Tool]:
    """The offered tools; what is no function schema, or nests too deeply, is not offered."""
    for entry in entries:
        if isinstance(entry, dict) and not too_deep(entry):
            try:
                tool = read_tool(entry, "")
            except DataError:
                continue
            if tool.name:
                yield tool


def _written_tools(system: str) -> Iterator[Tool]:
    """Tools that stand in the system prompt, one JSON object a line."""
    for line in system.splitlines():
        if line.startswith("{") and len(line) <= _LONGEST_LINE:
            try:
                yield from _tools([decode_any_depth(line)])
            except MalformedJSON:
                continue


# --- the conversation so far ---------------------------------------------------------------------------------


def _conversation(messages: list[dict[str, Any]]) -> tuple[str, list[Made]]:
    """The user's last words, and the calls made since with their results."""
    last = max((place for place, one in enumerate(messages) if _is_asked(one)), default=-1)
    if last < 0:
        return "", []
    calls: dict[str, tuple[str, dict[str, Any]]] = {}
    results: dict[str, Any] = {}
    for message in messages[last + 1 :]:
        content = content_text(message.get("content"))
        if message.get("role") == "assistant":
            calls |= dict(_calls(message, content, len(calls)))
        elif message.get("role") == "tool":
            results[str(message.get("tool_call_id"))] = decoded(content)
        elif content.startswith(_RESULT):
            unanswered = (key for key in calls if key not in results)
            results |= dict(zip(unanswered, _written_results(content), strict=False))
    made = [Made(name, arguments, results.get(key)) for key, (name, arguments) in calls.items()]
    return content_text(messages[last].get("content")), made


def _is_asked(message: dict[str, Any]) -> bool:
    if message.get("role") != "user":
        return False
    text = content_text(message.get("content"))
    return bool(text.strip()) and not text.startswith(_RESULT)


def _written_results(content: str) -> Iterator[Any]:
    for part in content.split(_RESULT)[1:]:
        yield decoded(part.partition("</tool_response>")[0].strip())


def _calls(message: dict[str, Any], content: str, before: int) -> Iterator[tuple[str, tuple[str, dict[str, Any]]]]:
    """The calls of an assistant's message by their ids; those that are written as text are numbered."""
    for entry in _listed(message.get("tool_calls")):
        function = entry.get("function") if isinstance(entry, dict) else None
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            yield str(entry.get("id")), (function["name"], read_arguments(function.get("arguments"))[0])
    for place, call in enumerate(read_calls(reply_text(content)) if "<tool_call>" in content else ()):
        yield f"written {before + place}", (call.function or "", call.arguments)
