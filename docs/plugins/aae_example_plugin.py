"""An example of a package for arabic-agent-eval: the provider ``rule`` and the reply format ``pythonic``.

aae run --model rule/first-tool
aae grade --items sample --replies replies.jsonl --format pythonic
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Collection, Iterator
from typing import Any

from arabic_agent_eval import Call, UsageError
from arabic_agent_eval.asking import Request
from arabic_agent_eval.models.adapter import Adapter, Opening
from arabic_agent_eval.models.model import Answer, Attempt, Failure, Settings
from arabic_agent_eval.models.openai_chat import OpenAIChat
from arabic_agent_eval.readers import Reader

# --- a provider: rule/first-tool, rule/silent ----------------------------------------------------------------


class Rule:
    """A model that is a rule: it calls the first tool that is offered with the user's words, or nothing.

    It asks and answers in the shape of OpenAI's Chat Completions, one of those that can be graded.
    """

    def __init__(self, opening: Opening) -> None:
        self.name, self.address = opening.name, opening.base_url
        self._calls = {"first-tool": True, "silent": False}.get(opening.settings.model)
        if self._calls is None:
            raise UsageError(f"there is no rule {opening.settings.model!r}; there are first-tool and silent.")

    def encode(self, request: Request) -> bytes:
        """The body to send, as JSON on one line."""
        body = OpenAIChat().body(request, Settings(self.name))
        return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")

    async def attempt(self, body: bytes) -> Attempt:
        """Answer at once; a model behind a network would send the body here, once."""
        began = time.monotonic()
        request = json.loads(body)
        message: dict[str, Any] = {"role": "assistant", "content": ""}
        if self._calls and request.get("tools") and request["messages"][-1]["role"] == "user":
            message["tool_calls"] = [_call(request["tools"][0]["function"], request["messages"][-1]["content"])]
        answer = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        return Attempt(json.dumps(answer, ensure_ascii=False).encode(), None, 200, time.monotonic() - began)

    def read(self, body: dict[str, Any]) -> Answer | Failure:
        """What an answer says, read as it will be graded."""
        return OpenAIChat().read(body)

    async def close(self) -> None:
        """There is nothing to let go of."""


def _call(tool: dict[str, Any], words: Any) -> dict[str, Any]:
    """A call of the tool whose required arguments are all what the user said."""
    arguments = dict.fromkeys(tool.get("parameters", {}).get("required", []), words)
    function = {"name": tool["name"], "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {"id": "call_1", "type": "function", "function": function}


RULE = Adapter(
    open_model=Rule,
    about="An example: calls the first tool, or none",
    example="rule/first-tool",
    ignores=frozenset({"temperature", "seed", "max_tokens", "parameters"}),
)

# --- a reply format: [get_weather(city="جدة", days=2)] ---------------------------------------------------------

_CALL = re.compile(r"(?<!\w)([A-Za-z_]\w*+)\(")  # no text is looked at twice, however a model made it
_NAME = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*")
_NEXT = re.compile(r"\s*([,)])\s*")
_SINGLE = re.compile(r"'((?:[^'\\\n]|\\.)*)'")
_LIST = re.compile(r"\s*\[\s*[A-Za-z_]\w*+\(.*\]\s*", re.DOTALL)
_WORDS = {"True": True, "False": False, "None": None}


def read_pythonic(text: str, offered: Collection[str]) -> Iterator[Call]:
    """Calls written as in Python, with named arguments: ``[get_weather(city="جدة", days=2), get_time()]``.

    In a list of calls each one is an attempt, whatever it names; in prose only what names an offered tool is. A value
    is JSON, a text in single quotes, or True, False or None. Nothing is run and nothing is repaired: what cannot be
    read is an attempt with an error.
    """
    place, is_list = 0, is_pythonic(text)
    while found := _CALL.search(text, place):
        place = found.end()
        if not is_list and offered and found[1] not in offered:
            continue
        try:
            arguments, place = _arguments(text, place)
        except (ValueError, RecursionError):
            yield Call(found[1], error="malformed_arguments", raw=text[found.start() : found.start() + 2000])
            end = text.find("\n", place)  # the rest of the line is part of it
            place = len(text) if end < 0 else end
        else:
            yield Call(found[1], arguments)


def is_pythonic(text: str) -> bool:
    """Whether a text is nothing but a list of calls."""
    return _LIST.fullmatch(text) is not None


def _arguments(text: str, place: int) -> tuple[dict[str, Any], int]:
    """The arguments that begin at a place, and where they end; ValueError: they are not in this notation."""
    arguments: dict[str, Any] = {}
    if (end := _NEXT.match(text, place)) and end[1] == ")":
        return arguments, end.end()
    while name := _NAME.match(text, place):
        value, place = _value(text, name.end())
        end = _NEXT.match(text, place)
        if end is None or name[1] in arguments:
            break
        arguments[name[1]], place = value, end.end()
        if end[1] == ")":
            return arguments, place
    raise ValueError("this is no list of named arguments")


def _value(text: str, place: int) -> tuple[Any, int]:
    if quoted := _SINGLE.match(text, place):
        return re.sub(r"\\(['\\])", r"\1", quoted[1]), quoted.end()
    for word, value in _WORDS.items():
        if text.startswith(word, place):
            return value, place + len(word)
    return _DECODER.raw_decode(text, place)


def _refuse(number: str) -> float:
    raise ValueError(f"{number} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)

PYTHONIC = Reader(read_pythonic, takes="text", recognises=is_pythonic)
