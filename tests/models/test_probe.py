"""Asking once tells whether a model is set up, and what is wrong where it is not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from arabic_agent_eval.asking import Request
from arabic_agent_eval.models.model import Answer, Attempt, Failure, Settings
from arabic_agent_eval.models.openai_chat import OpenAIChat
from arabic_agent_eval.probe import probe


class Canned:
    """A model with one answer, by way of a real interface."""

    name = "openai-chat/m"
    address = "http://localhost/v1"

    def __init__(self, body: dict[str, Any] | None, failure: Failure | None = None) -> None:
        self._attempt = Attempt(b"" if body is None else msgspec.json.encode(body), failure, 200, 0.12345)
        self.sent: list[dict[str, Any]] = []
        self.closed = False

    def encode(self, request: Request) -> bytes:
        """The body that is sent."""
        return msgspec.json.encode(OpenAIChat().body(request, Settings("m")))

    async def attempt(self, body: bytes) -> Attempt:
        """The same whatever is sent."""
        self.sent.append(msgspec.json.decode(body))
        return self._attempt

    def read(self, body: dict[str, Any]) -> Answer | Failure:
        """As the interface reads it."""
        return OpenAIChat().read(body)

    async def close(self) -> None:
        """Remember that it was closed."""
        self.closed = True


def calling(name: str, arguments: str) -> dict[str, Any]:
    """An answer with one call."""
    call = {"id": "a", "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"choices": [{"message": {"content": None, "tool_calls": [call]}}]}


def saying(text: str) -> dict[str, Any]:
    """An answer in words."""
    return {"choices": [{"message": {"content": text}}]}


ANSWERS = [
    (calling("get_weather", '{"city":" الرياض"}'), True, 'calls tools: get_weather {"city":" الرياض"}'),
    (calling("get_weather", '{"city":"\\u0627\\ud800\\u202e"}'), True, '{"city":"ا\ufffd⟨U+202E⟩"}'),
    (calling("get_weather", "{}"), False, "its call is wrong: get_weather (no city in {})."),
    (calling("get_weather", '{"city":["جدة"]}'), False, 'wrong: get_weather (no city in {"city":["جدة"]}).'),
    (calling("get_weather", '{"city":" "}'), False, "no city"),
    (calling("get_weather", '{"city":'), False, "wrong: get_weather (malformed_arguments)."),
    (calling("search\x1b[31m", "{}"), False, "wrong: search⟨U+001B⟩[31m (another tool)."),
    (saying(" حار\n\x1b[2J جدًا "), False, "made no tool call (it said: حار ⟨U+001B⟩[2J جدًا); if it has no tools"),
    (saying(""), False, "made no tool call and said nothing; if it has no tools of its own, use --prompt-tools."),
    ({"error": {"message": "nope", "code": 500}}, False, "nope"),
]


@pytest.mark.parametrize(("body", "works", "says"), ANSWERS)
def test_answers(body, works, says):
    """Only a call of the tool that names a city works, and whatever a model says is harmless in a terminal."""
    model = Canned(body)

    found = probe(model)

    assert (found.model, found.works, found.latency) == ("openai-chat/m", works, 0.123)
    assert says in found.message
    assert "\x1b" not in found.message
    assert model.closed


def test_failure():
    """Where no answer came, the finding says why in the failure's words."""
    found = probe(Canned(None, Failure("key", "The provider refuses the key (status 401).")))

    assert (found.works, found.message) == (False, "The provider refuses the key (status 401).")


def test_what_is_asked():
    """One request is sent: a question in Arabic and one tool."""
    model = Canned(saying(""))
    probe(model)

    assert len(model.sent) == 1
    assert model.sent[0]["messages"] == [{"role": "user", "content": "كيف حالة الطقس في الرياض؟"}]
    assert [tool["function"]["name"] for tool in model.sent[0]["tools"]] == ["get_weather"]
