"""OpenAI's Chat Completions, and all that speak it: vLLM, Ollama, llama.cpp, OpenRouter and other servers."""

from __future__ import annotations

import re
from typing import Any

from arabic_agent_eval.asking import Exchange, Request, written_results
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
    calls_of,
    can_go_back,
    described_by,
    earlier_turns,
    is_text,
    numbered_exchanges,
    replay,
    schema_of,
)

_OWN_MODELS = re.compile(r"(?:ft:)?(?:o\d|gpt-\d|chatgpt-)")
"""Names of OpenAI's own models. Since o1 they refuse ``max_tokens``, which is the only name that Ollama knows."""

_ANSWER_ONLY = frozenset({"annotations", "audio", "function_call", "tool_calls", "role", "content"})
_NOT_OF_A_RESULT = frozenset({"role", "tool_call_id", "tool_calls", "function_call"})


class OpenAIChat:
    """OpenAI's Chat Completions.

    The limit on length is sent as ``max_completion_tokens`` to models with a name of OpenAI's (``gpt-5``, ``o3``) and
    as ``max_tokens`` to all others; ``parameters`` can hold either instead.

    An answer's message goes back as it came, its reasoning and any field that is not in OpenAI's interface included:
    DeepSeek, Kimi and Gemini refuse a continuation without theirs. Left out is only what is null, and the fields
    ``annotations`` and ``audio``, which requests do not have.
    """

    name = "openai-chat"
    base_url = "https://api.openai.com/v1"
    key_variable = "OPENAI_API_KEY"
    ignores: frozenset[str] = frozenset()
    """Settings that the interface does not have."""

    def url(self, base_url: str, model: str) -> str:  # noqa: ARG002 - the protocol's
        """The address to post to."""
        return join_url(base_url, "chat/completions")

    def headers(self, key: str | None) -> dict[str, str]:
        """The key as a bearer token."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, request: Request, settings: Settings) -> dict[str, Any]:
        """What to send."""
        limit = "max_completion_tokens" if _OWN_MODELS.match(settings.model) else "max_tokens"
        options = {"temperature": settings.temperature, "seed": settings.seed, limit: settings.max_tokens}
        tools = [
            {"type": "function", "function": {**described_by(tool), "parameters": schema_of(tool)}}
            for tool in request.tools
        ]
        return {
            "model": settings.model,
            "messages": _messages(request),
            **({"tools": tools} if tools else {}),
            **{name: value for name, value in options.items() if value is not None},
            **settings.parameters,
        }

    def read(self, body: dict[str, Any]) -> Answer | Failure:
        """What a decoded body with status 200 says."""
        reply = read_body(body, _fits)
        if isinstance(reply, Failure):
            return reply
        choice = body["choices"][0]
        stop = text_or_empty(choice.get("finish_reason"))
        return Answer(
            made_calls(reply, [entry.get("id") for entry in calls_of(choice["message"])]),
            spoken(body),
            stop,
            stop == "length",
            read_tokens(
                body.get("usage"),
                read=["prompt_tokens"],
                written=["completion_tokens"],
                cached=["prompt_tokens_details.cached_tokens"],
                reasoning=["completion_tokens_details.reasoning_tokens"],
            ),
            read_cost(member(body, "usage", "cost")),
        )


def _fits(body: dict[str, Any]) -> bool:
    return isinstance(body.get("choices"), list)


def _messages(request: Request) -> list[dict[str, Any]]:
    turns = earlier_turns(request)
    earlier: list[dict[str, Any]]
    if request.written:
        earlier = [{"role": turn.role, "content": _content(turn)} for turn in turns]
    else:
        earlier = [_earlier(message, turn) for message, turn in zip(request.messages, turns, strict=True)]
    system = [request.system] if request.system else []
    # Some chat templates take one system message, and only at the beginning.
    while earlier and earlier[0].get("role") == "system" and isinstance(earlier[0].get("content"), str):
        system.append(earlier.pop(0)["content"])
    messages: list[dict[str, Any]] = [{"role": "system", "content": "\n\n".join(system)}] if system else []
    messages += earlier
    for before, exchange in numbered_exchanges(request):
        messages += _spoken_exchange(exchange) if request.written else _exchange(exchange, before)
    return _alternating(messages) if request.written else messages


def _alternating(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Texts of a user that follow one another as one: templates of models without tools often take turns only."""
    joined: list[dict[str, Any]] = []
    for message in messages:
        before = joined[-1] if joined and joined[-1]["role"] == message["role"] == "user" else {}
        first, second = before.get("content"), message["content"]
        if isinstance(first, str) and isinstance(second, str):
            joined[-1] = {"role": "user", "content": f"{first}\n{second}"}
        else:
            joined.append(message)
    return joined


def _content(turn: Turn) -> str | list[dict[str, Any]]:
    return turn.text if all(is_text(part) for part in turn.parts) else turn.parts


def _earlier(message: dict[str, Any], turn: Turn) -> dict[str, Any]:
    """An earlier message as it is, but for calls and results without an id, and what can only be told in words."""
    if turn.role == "tool":
        others = {name: value for name, value in message.items() if name not in _NOT_OF_A_RESULT}
        content = message.get("content")
        content = content if isinstance(content, list) else turn.text
        return {"role": "tool", "tool_call_id": turn.call_id, **others, "content": content}
    if message.get("role") in ("tool", "function"):
        return {"role": turn.role, "content": _content(turn)}
    entries = calls_of(message) if turn.role == "assistant" else []
    if not entries:
        return {name: value for name, value in message.items() if name != "tool_calls"}
    ids = iter(turn.calls)
    sent = [_with_id(entry, None, next(ids).id) for entry in entries if _goes_back(entry)]
    content = message.get("content") if len(sent) == len(entries) else _content(turn)
    return _sent_back({**message, "content": content}, [one[1] for one in sent if one is not None])


def _spoken_exchange(exchange: Exchange) -> list[dict[str, Any]]:
    messages = [{"role": "assistant", "content": spoken(exchange.answer)}]
    if exchange.results:
        messages.append({"role": "user", "content": written_results(exchange.results)})
    return messages


def _exchange(exchange: Exchange, before: int) -> list[dict[str, Any]]:
    choices = exchange.answer.get("choices")
    message = member(choices[0], "message") if isinstance(choices, list) and choices else None
    message = message if isinstance(message, dict) else {}
    replayed = replay(calls_of(message), exchange, before, is_call=lambda _: True, with_id=_with_id)
    messages = [_sent_back(message, replayed.entries)]
    messages += [
        {"role": "tool", "tool_call_id": call_id, "content": result.content} for call_id, result in replayed.answered
    ]
    if replayed.told:
        messages.append({"role": "user", "content": replayed.told})
    return messages


def _sent_back(message: dict[str, Any], calls: list[dict[str, Any]]) -> dict[str, Any]:
    """The message of an answer as a message of a request."""
    others = {name: value for name, value in message.items() if value is not None and name not in _ANSWER_ONLY}
    # Without calls a message must say something, if only nothing.
    content = message.get("content") if calls else message.get("content") or ""
    return {"role": "assistant", "content": content, **({"tool_calls": calls} if calls else {}), **others}


def _goes_back(entry: dict[str, Any]) -> bool:
    return can_go_back(member(entry, "function", "name"), member(entry, "function", "arguments"))


def _with_id(entry: dict[str, Any], known: str | None, number: str) -> tuple[str, dict[str, Any]] | None:
    """A call that can be sent back: it needs an id, a type, a name, and arguments that are the text of an object."""
    call_id = name_or_none(entry.get("id")) or known or number
    function, custom = entry.get("function"), entry.get("custom")
    if isinstance(function, dict) and _goes_back(entry):
        function = {**function, "arguments": arguments_text(function.get("arguments"))}
        return call_id, {**entry, "id": call_id, "type": "function", "function": function}
    if isinstance(custom, dict) and name_or_none(custom.get("name")):
        return call_id, {**entry, "id": call_id}
    return None
