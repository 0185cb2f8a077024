"""Google's Gemini, by its own interface (``generateContent``)."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from arabic_agent_eval.asking import Exchange, Request, written_results
from arabic_agent_eval.formats import either, objects
from arabic_agent_eval.models.model import Answer, Failure, Settings
from arabic_agent_eval.models.reading import (
    join_url,
    made_calls,
    member,
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
    is_text,
    numbered_exchanges,
    replay,
    system_text,
)
from arabic_agent_eval.tools import Tool, read_arguments

_ENDING = ":generateContent"


class Gemini:
    """Google's Gemini.

    The model's content, thoughts and their signatures included, goes back as it came. A result goes back under the
    tool's name, as ``{"output": TEXT}`` because a response must be an object, and under the call's id where it has one.
    ``parameters`` are merged member by member, so that ``{"generationConfig": {"topP": 1}}`` keeps the temperature.
    """

    name = "gemini"
    base_url = "https://generativelanguage.googleapis.com/v1beta"
    key_variable = "GEMINI_API_KEY"
    ignores: frozenset[str] = frozenset()
    """Settings that the interface does not have."""

    def url(self, base_url: str, model: str) -> str:
        """The address to post to: the model is a part of it, the key is not."""
        folder, _, rest = model.partition("/")
        folder, rest = (folder, rest) if folder in ("models", "tunedModels") and rest else ("models", model)
        return join_url(base_url, f"{folder}/{quote(rest, safe='')}{_ENDING}", ending=_ENDING)

    def headers(self, key: str | None) -> dict[str, str]:
        """The key in the header that this interface reads it from."""
        return {"x-goog-api-key": key} if key else {}

    def body(self, request: Request, settings: Settings) -> dict[str, Any]:
        """What to send."""
        turns = earlier_turns(request)
        system = system_text(request, turns)
        options = {
            "temperature": settings.temperature,
            "seed": settings.seed,
            "maxOutputTokens": settings.max_tokens,
        }
        options = {name: value for name, value in options.items() if value is not None}
        declared = [_declaration(tool) for tool in request.tools]
        body = {
            **({"systemInstruction": {"parts": [{"text": system}]}} if system else {}),
            "contents": _contents(request, turns),
            **({"tools": [{"functionDeclarations": declared}]} if declared else {}),
            **({"generationConfig": options} if options else {}),
        }
        return _merged(body, settings.parameters)

    def read(self, body: dict[str, Any]) -> Answer | Failure:
        """What a decoded body with status 200 says."""
        reply = read_body(body, _fits)
        if isinstance(reply, Failure):
            return reply
        candidate = body["candidates"][0]
        stop = text_or_empty(either(candidate, "finishReason", "finish_reason"))
        parts = objects(member(candidate, "content", "parts"))
        return Answer(
            made_calls(reply, [_function_call(part).get("id") for part in parts if _is_call(part)]),
            spoken(body),
            stop,
            stop.endswith("MAX_TOKENS"),
            read_tokens(
                body.get("usageMetadata"),
                read=["promptTokenCount", "toolUsePromptTokenCount"],
                written=["candidatesTokenCount", "thoughtsTokenCount"],
                cached=["cachedContentTokenCount"],
                reasoning=["thoughtsTokenCount"],
            ),
        )


def _fits(body: dict[str, Any]) -> bool:
    return not any(isinstance(body.get(name), list) for name in ("choices", "output")) and "candidates" in body


def _function_call(part: dict[str, Any]) -> dict[str, Any]:
    call = either(part, "functionCall", "function_call")
    return call if isinstance(call, dict) else {}


def _is_call(part: dict[str, Any]) -> bool:
    return isinstance(either(part, "functionCall", "function_call"), dict)


def _declaration(tool: Tool) -> dict[str, Any]:
    # The older field ``parameters`` knows a part of JSON Schema only; a tool without parameters has neither.
    return {**described_by(tool), **({"parametersJsonSchema": tool.parameters} if tool.parameters else {})}


def _merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Both, the new winning; objects under one name are merged in turn."""
    both = dict(old)
    for name, value in new.items():
        before = old.get(name)
        both[name] = _merged(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return both


# --- the conversation ----------------------------------------------------------------------------------------


def _contents(request: Request, turns: list[Turn]) -> list[dict[str, Any]]:
    contents: list[dict[str, Any]] = []
    for turn in turns:
        if turn.role == "tool":
            _add(contents, "user", [_response(turn.name, turn.text)])
        elif turn.role != "system":
            _add(contents, "model" if turn.role == "assistant" else "user", _parts(turn))
    for before, exchange in numbered_exchanges(request):
        if request.written:
            _add(contents, "model", _words(spoken(exchange.answer)))
            _add(contents, "user", _words(written_results(exchange.results)))
        else:
            _add_exchange(contents, exchange, before)
    return contents


def _add(contents: list[dict[str, Any]], role: str, parts: list[dict[str, Any]]) -> None:
    """Add parts to the last content if it has the role, else as a new one."""
    if not parts:
        return
    if contents and contents[-1].get("role") == role:
        contents[-1] = {**contents[-1], "parts": [*contents[-1]["parts"], *parts]}
    else:
        contents.append({"role": role, "parts": parts})


def _parts(turn: Turn) -> list[dict[str, Any]]:
    said = [{"text": part["text"]} if is_text(part) else part for part in turn.parts]
    calls = [{"functionCall": {"name": one.name, "args": read_arguments(one.arguments)[0]}} for one in turn.calls]
    return said + calls


def _response(name: str, content: str, call_id: str | None = None) -> dict[str, Any]:
    response = {"name": name, "response": {"output": content}}
    return {"functionResponse": {"id": call_id, **response} if call_id else response}


def _words(text: str) -> list[dict[str, Any]]:
    return [{"text": text}] if text else []


def _add_exchange(contents: list[dict[str, Any]], exchange: Exchange, before: int) -> None:
    candidates = exchange.answer.get("candidates")
    content = member(candidates[0], "content") if isinstance(candidates, list) and candidates else None
    content = content if isinstance(content, dict) else {}
    parts = [part for part in objects(content.get("parts")) if part]
    replayed = replay(parts, exchange, before, is_call=_is_call, with_id=_with_id)
    if replayed.entries:
        contents.append({**content, "role": name_or_none(content.get("role")) or "model", "parts": replayed.entries})
    results = [
        _response(result.made.call.function or "", result.content, result.made.id) for _, result in replayed.answered
    ]
    _add(contents, "user", results + _words(replayed.told))


def _with_id(part: dict[str, Any], known: str | None, number: str) -> tuple[str, dict[str, Any]] | None:
    """A call that can be sent back: it needs a name, and arguments that are an object; an id is its own affair."""
    call = _function_call(part)
    if name_or_none(call.get("name")) is None or not isinstance(call.get("args"), dict | None):
        return None
    return known or number, part
