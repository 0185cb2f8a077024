"""OpenAI's Responses, asked without anything being kept on the server."""

from __future__ import annotations

import re
from typing import Any

from arabic_agent_eval.asking import Exchange, Request, written_results
from arabic_agent_eval.formats import objects
from arabic_agent_eval.models.model import Answer, Failure, Settings
from arabic_agent_eval.models.reading import (
    join_url,
    made_calls,
    member,
    name_or_none,
    read_body,
    read_cost,
    read_tokens,
    spoken,
    text_or_empty,
)
from arabic_agent_eval.models.turns import (
    Turn,
    arguments_text,
    can_go_back,
    content_text,
    described_by,
    earlier_turns,
    is_text,
    numbered_exchanges,
    replay,
    schema_of,
)

_NO_REASONING = re.compile(r"(?:ft:)?(?:gpt-[34]|chatgpt-|gpt-\d[\d.]*-chat)")
"""Models that refuse a request for their encrypted reasoning, because they have none."""

_CALLS = ("function_call", "custom_tool_call")


class OpenAIResponses:
    """OpenAI's Responses.

    Nothing is stored, so reasoning is asked for in encrypted form and goes back with the next request; models of
    OpenAI's that do not reason (``gpt-4.1``, ``gpt-5-chat``) refuse to be asked for it and are not.

    Tools are sent with ``strict: false``: by default this interface rewrites schemas, so that every parameter is
    required.
    """

    name = "openai-responses"
    base_url = "https://api.openai.com/v1"
    key_variable = "OPENAI_API_KEY"
    ignores: frozenset[str] = frozenset({"seed"})
    """Settings that the interface does not have."""

    def url(self, base_url: str, model: str) -> str:  # noqa: ARG002 - the protocol's
        """The address to post to."""
        return join_url(base_url, "responses")

    def headers(self, key: str | None) -> dict[str, str]:
        """The key as a bearer token."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, request: Request, settings: Settings) -> dict[str, Any]:
        """What to send."""
        tools = [
            {"type": "function", **described_by(tool), "parameters": schema_of(tool), "strict": False}
            for tool in request.tools
        ]
        options = {"temperature": settings.temperature, "max_output_tokens": settings.max_tokens}
        reasons = not _NO_REASONING.match(settings.model)
        return {
            "model": settings.model,
            **({"instructions": request.system} if request.system else {}),
            "input": _input(request),
            **({"tools": tools} if tools else {}),
            "store": False,
            **({"include": ["reasoning.encrypted_content"]} if reasons else {}),
            **{name: value for name, value in options.items() if value is not None},
            **settings.parameters,
        }

    def read(self, body: dict[str, Any]) -> Answer | Failure:
        """What a decoded body with status 200 says."""
        reply = read_body(body, _fits)
        if isinstance(reply, Failure):
            return reply
        reason = text_or_empty(member(body, "incomplete_details", "reason"))
        status = text_or_empty(body.get("status"))
        return Answer(
            made_calls(reply, [item.get("call_id") for item in objects(body["output"]) if _is_call(item)]),
            spoken(body),
            reason or status,
            status == "incomplete" and reason != "content_filter",
            read_tokens(
                body.get("usage"),
                read=["input_tokens"],
                written=["output_tokens"],
                cached=["input_tokens_details.cached_tokens"],
                reasoning=["output_tokens_details.reasoning_tokens"],
            ),
            read_cost(member(body, "usage", "cost")),
        )


def _fits(body: dict[str, Any]) -> bool:
    return isinstance(body.get("output"), list) and not isinstance(body.get("choices"), list)


def _is_call(item: dict[str, Any]) -> bool:
    return item.get("type") in _CALLS


def _input(request: Request) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for turn in earlier_turns(request):
        items += _earlier(turn)
    for before, exchange in numbered_exchanges(request):
        items += _spoken_exchange(exchange) if request.written else _exchange(exchange, before)
    return items


def _earlier(turn: Turn) -> list[dict[str, Any]]:
    if turn.role == "tool":
        return [_output(turn.call_id, turn.text)]
    items = [_message(turn)] if turn.parts or not turn.calls else []
    items += [
        {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments_text(call.arguments)}
        for call in turn.calls
    ]
    return items


def _message(turn: Turn) -> dict[str, Any]:
    if all(is_text(part) for part in turn.parts):
        return _said(turn.role, turn.text)
    kind = "output_text" if turn.role == "assistant" else "input_text"
    content = [{"type": kind, "text": part["text"]} if is_text(part) else part for part in turn.parts]
    return {"type": "message", "role": turn.role, "content": content}


def _said(role: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": text}


def _output(call_id: str, content: str, kind: str = "function_call") -> dict[str, Any]:
    return {"type": f"{kind}_output", "call_id": call_id, "output": content}


def _spoken_exchange(exchange: Exchange) -> list[dict[str, Any]]:
    texts = {"assistant": spoken(exchange.answer), "user": written_results(exchange.results)}
    return [_said(role, text) for role, text in texts.items() if text]


def _exchange(exchange: Exchange, before: int) -> list[dict[str, Any]]:
    output = objects(exchange.answer.get("output"))
    # Encrypted reasoning is refused without the items that followed it, whatever their arguments.
    with_id = _with_id_as_it_is if any(item.get("encrypted_content") for item in output) else _with_id
    replayed = replay(output, exchange, before, is_call=_is_call, with_id=with_id)
    kinds = {item["call_id"]: item["type"] for item in replayed.entries if _is_call(item)}
    items = [sent for item in replayed.entries if (sent := _sent_back(item)) is not None]
    items += [_output(call_id, result.content, kinds[call_id]) for call_id, result in replayed.answered]
    return [*items, _said("user", replayed.told)] if replayed.told else items


def _sent_back(item: dict[str, Any]) -> dict[str, Any] | None:
    """An item of an answer as an item of a request: verbatim, reasoning excepted.

    Requests refuse the ``status`` of reasoning, and reasoning without content is a reference to what was not stored.
    """
    if item.get("type") != "reasoning":
        return item
    kept = {name: value for name, value in item.items() if name != "status" and value is not None}
    return kept if kept.get("encrypted_content") or kept.get("content") else None


def _with_id(item: dict[str, Any], known: str | None, number: str) -> tuple[str, dict[str, Any]] | None:
    """A call that can be sent back: it needs an id, a name, and arguments that are the text of an object."""
    if item["type"] == "function_call" and not can_go_back(item.get("name"), item.get("arguments")):
        return None
    return _with_id_as_it_is(item, known, number)


def _with_id_as_it_is(item: dict[str, Any], known: str | None, number: str) -> tuple[str, dict[str, Any]] | None:
    """The same whatever the arguments are."""
    if name_or_none(item.get("name")) is None:
        return None
    call_id = name_or_none(item.get("call_id")) or known or number
    if item["type"] == "function_call":
        return call_id, {**item, "call_id": call_id, "arguments": arguments_text(item.get("arguments"))}
    return call_id, {**item, "call_id": call_id, "input": content_text(item.get("input"))}
