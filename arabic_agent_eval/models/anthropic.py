"""Anthropic's Messages."""

from __future__ import annotations

from typing import Any

from arabic_agent_eval.asking import Exchange, Request, written_results
from arabic_agent_eval.formats import objects
from arabic_agent_eval.models.model import Answer, Failure, Settings
from arabic_agent_eval.models.reading import (
    join_url,
    made_calls,
    name_or_none,
    read_body,
    read_tokens,
    spoken,
    text_or_empty,
)
from arabic_agent_eval.models.turns import (
    Turn,
    described_by,
    earlier_turns,
    numbered_exchanges,
    replay,
    schema_of,
    system_text,
    text_part,
)
from arabic_agent_eval.tools import read_arguments

VERSION = "2023-06-01"
"""The version of the interface that is asked for.

The newer one, 2026-10-21, differs for us only in refusing every temperature, and servers of others know this one.
"""

DEFAULT_MAX_TOKENS = 16_384
"""The limit on length where the settings name none: this interface must have one, and since Claude 5 most models think
without being asked to, within the same limit."""

_CUT = ("max_tokens", "model_context_window_exceeded")


class Anthropic:
    """Anthropic's Messages.

    Messages of one role that follow one another become one, system messages join the system prompt, and texts that
    are empty are left out, because the interface refuses them. The model's blocks, thinking and its signatures
    included, go back as they came.
    """

    name = "anthropic"
    base_url = "https://api.anthropic.com/v1"
    key_variable = "ANTHROPIC_API_KEY"
    ignores: frozenset[str] = frozenset({"seed"})
    """Settings that the interface does not have."""

    def url(self, base_url: str, model: str) -> str:  # noqa: ARG002 - the protocol's
        """The address to post to."""
        return join_url(base_url, "messages")

    def headers(self, key: str | None) -> dict[str, str]:
        """The key and the version of the interface."""
        return {**({"x-api-key": key} if key else {}), "anthropic-version": VERSION}

    def body(self, request: Request, settings: Settings) -> dict[str, Any]:
        """What to send."""
        turns = earlier_turns(request)
        system = system_text(request, turns)
        tools = [{**described_by(tool), "input_schema": schema_of(tool)} for tool in request.tools]
        temperature = settings.temperature
        return {
            "model": settings.model,
            "max_tokens": DEFAULT_MAX_TOKENS if settings.max_tokens is None else settings.max_tokens,
            **({"system": system} if system else {}),
            "messages": _messages(request, turns),
            **({"tools": tools} if tools else {}),
            **({"temperature": temperature} if temperature is not None else {}),
            **settings.parameters,
        }

    def read(self, body: dict[str, Any]) -> Answer | Failure:
        """What a decoded body with status 200 says."""
        reply = read_body(body, _fits)
        if isinstance(reply, Failure):
            return reply
        stop = text_or_empty(body.get("stop_reason"))
        return Answer(
            made_calls(reply, [block.get("id") for block in objects(body["content"]) if _is_call(block)]),
            spoken(body),
            stop,
            stop in _CUT,
            read_tokens(
                body.get("usage"),
                # What is read from or written into the cache is not among the input tokens here.
                read=["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"],
                written=["output_tokens"],
                cached=["cache_read_input_tokens"],
                reasoning=["output_tokens_details.thinking_tokens"],
            ),
        )


def _fits(body: dict[str, Any]) -> bool:
    others = ("choices", "output", "candidates", "promptFeedback", "prompt_feedback", "tool_calls", "function_call")
    return isinstance(body.get("content"), str | list) and not any(body.get(name) for name in others)


def _is_call(block: dict[str, Any]) -> bool:
    return block.get("type") == "tool_use"


def _messages(request: Request, turns: list[Turn]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for turn in turns:
        if turn.role == "tool":
            _add(messages, "user", [_result(turn.call_id, turn.text)])
        elif turn.role != "system":
            _add(messages, turn.role, _without_blank([*turn.parts, *_earlier_calls(turn)]))
    for before, exchange in numbered_exchanges(request):
        asked, answered = _spoken_exchange(exchange) if request.written else _exchange(exchange, before)
        _add(messages, "assistant", asked)
        _add(messages, "user", answered)
    return messages


def _add(messages: list[dict[str, Any]], role: str, blocks: list[dict[str, Any]]) -> None:
    """Add blocks to the last message if it has the role, else as a new one; results stand before all words."""
    if not blocks:
        return
    if not messages or messages[-1]["role"] != role:
        messages.append({"role": role, "content": []})
    messages[-1]["content"] += blocks
    if role == "user":
        messages[-1]["content"].sort(key=lambda block: block.get("type") != "tool_result")


def _earlier_calls(turn: Turn) -> list[dict[str, Any]]:
    return [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": read_arguments(call.arguments)[0]}
        for call in turn.calls
    ]


def _result(call_id: str, content: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


def _spoken_exchange(exchange: Exchange) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    return _words(spoken(exchange.answer)), _words(written_results(exchange.results))


def _words(text: str) -> list[dict[str, Any]]:
    return _without_blank([text_part(text)])


def _without_blank(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The model can write empty texts, and the interface refuses them, as it does texts of white space alone."""
    return [block for block in blocks if block.get("type") != "text" or text_or_empty(block.get("text")).strip()]


def _exchange(exchange: Exchange, before: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    content = exchange.answer.get("content")
    blocks = [text_part(content)] if isinstance(content, str) else objects(content)
    replayed = replay(_without_blank(blocks), exchange, before, is_call=_is_call, with_id=_with_id)
    results = [_result(call_id, result.content) for call_id, result in replayed.answered]
    return replayed.entries, results + _words(replayed.told)


def _with_id(block: dict[str, Any], known: str | None, number: str) -> tuple[str, dict[str, Any]] | None:
    """A call that can be sent back: it needs an id, a name, and an input that is an object."""
    given = block.get("input")
    if name_or_none(block.get("name")) is None or not isinstance(given, dict | None):
        return None
    call_id = name_or_none(block.get("id")) or known or number
    return call_id, {**block, "id": call_id, "input": given or {}}
