"""Reply formats: one row of a file of answers → a :class:`Reply`, and a reply → the calls that it makes.

A row that is not what it should be is a user's mistake and raises; whatever is wrong inside a list of calls is the
model's mistake and becomes a malformed call; an answer that never came is the provider's failure and leaves the item
unscored (ruling 17).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal, NoReturn, get_args

import msgspec

from arabic_agent_eval.errors import DataError, UnknownFormat
from arabic_agent_eval.files import json_type
from arabic_agent_eval.markup import read_text
from arabic_agent_eval.readers import OwnFormat, Unread
from arabic_agent_eval.reasons import message_of, safe_line
from arabic_agent_eval.strictjson import MalformedJSON, decode_any_depth, number_text, replace_surrogates
from arabic_agent_eval.tools import Call

Format = Literal["auto", "calls", "tool_calls", "response", "text", "submission"]
FORMATS: tuple[str, ...] = get_args(Format)
"""The names that a reply format can be given by; ``auto`` recognises the others."""

_EXPECTED = (
    "'actual_calls' or 'calls', 'tool_calls', 'response', 'text', 'tool_called' with 'arguments', or a message with "
    "'role' and 'content'"
)
_UNSCORED = "or give the row an 'error' if the request failed."


class Reply(msgspec.Struct, frozen=True):
    """One answer to one item.

    Attributes:
        item_id: the item that it answers.
        kind: how the payload is written: one of :data:`FORMATS` without ``auto``, an installed format, or ``failure``.
        payload: what was sent; None when nothing came.
        epoch: which of several answers to the item it is, from 0.
        failure: why there is no answer, one sentence that is safe to print; the item is then unscored (ruling 17).
    """

    item_id: str
    kind: str
    payload: Any = None
    epoch: int = 0
    failure: str | None = None


class _Failure(Exception):
    """The provider gave no answer; the message says why."""


def reply_text(text: str, item_id: str = "") -> Reply:
    """The reply that a model's raw text is."""
    return Reply(item_id, "text", text)


def read_reply(row: Mapping[str, Any], *, format: str | OwnFormat = "auto") -> Reply:  # noqa: A002 - the option's name
    """One row of a file of answers; ``docs/formats.md`` describes the fields.

    Args:
        row: a decoded JSON object with the item's id and one answer.
        format: one of :data:`FORMATS`. ``auto`` takes the first field that is there, in the order of that list, and
            a message last; ``text`` also reads the text inside a response or message. A format that is not built in
            is what ``plugins.find_format`` gives.

    Raises:
        DataError: the row is not such an object; the message names the field, the caller adds file and line. Or the
            reader of a format that is not built in failed.
        UnknownFormat: no format has that name.
    """
    if not isinstance(format, OwnFormat) and format not in FORMATS:
        raise UnknownFormat(f"there is no reply format {format!r}; there are {', '.join(FORMATS)}.")
    if not isinstance(row, Mapping):
        raise DataError(f"a reply must be a JSON object, not {json_type(row)}.")
    item_id, epoch = _item_id(row), _epoch(row)
    try:
        kind, payload = _answer(row, format)
    except _Failure as failure:
        return Reply(item_id, "failure", None, epoch, safe_line(str(failure)))
    return Reply(item_id, kind, payload, epoch)


def words_of(row: Mapping[str, Any]) -> str:
    """What an answer says in words, empty where it says nothing; for showing, and for finding calls written as text."""
    try:
        return _text(row)
    except (DataError, _Failure):
        return ""


def _item_id(row: Mapping[str, Any]) -> str:
    # In a batch of OpenAI's, ``id`` is the request's and ``custom_id`` the item's.
    field = next((name for name in ("custom_id", "item_id", "id") if row.get(name) is not None), None)
    if field is None:
        raise DataError("the row does not say which item it answers.", field="id", remedy="Add the item's 'id'.")
    value = row[field]
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return number_text(value)
    raise DataError(f"an id must be text or a whole number, not {_type(value)}.", field=field)


def _epoch(row: Mapping[str, Any]) -> int:
    value = row.get("epoch", 0)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise DataError("an epoch must be a whole number of at least 0.", field="epoch")
    return value


def _type(value: object) -> str:
    return f"the number {value}" if isinstance(value, float) else json_type(value)


def _answer(row: Mapping[str, Any], wanted: str | OwnFormat) -> tuple[str, Any]:
    """The kind of the answer in a row and its payload."""
    if row.get("error"):
        raise _Failure(f"The request failed: {message_of(row['error'])}")
    row = _without_padding(row)
    if isinstance(wanted, OwnFormat):
        return _own(row, wanted)
    if wanted == "text":
        return "text", _text(row)
    if wanted in {"auto", "calls"} and (field := _first(row, "actual_calls", "calls")):
        return "calls", _list(row, field)
    if wanted in {"auto", "tool_calls"} and "tool_calls" in row and not _is_older(row):
        return "tool_calls", [] if row["tool_calls"] is None else _list(row, "tool_calls")
    if wanted in {"auto", "response"} and "response" in row:
        return "response", _response(row["response"])
    if wanted == "auto" and "text" in row:
        return "text", _text(row)
    if wanted in {"auto", "submission"} and "tool_called" in row:
        return "submission", _submission(row)
    if wanted in {"auto", "tool_calls"} and (message := _message_of(row)) is not None:
        return "response", message
    return _refuse(wanted, row)


def _own(row: Mapping[str, Any], wanted: OwnFormat) -> tuple[str, Any]:
    """The answer for a reader that is not built in; beside ``auto`` only what it recognises and nobody else reads."""
    if not wanted.beside_auto:
        return wanted.name, Unread(wanted, row if wanted.takes == "row" else replace_surrogates(_text(row)))
    if wanted.takes == "row":
        return (wanted.name, Unread(wanted, row)) if wanted.recognises(row) else _answer(row, "auto")
    kind, payload = _answer(row, "auto")
    if kind == "text" or not read_calls(Reply("", kind, payload)):
        words = replace_surrogates(words_of(row))
        if words and wanted.recognises(words):
            return wanted.name, Unread(wanted, words)
    return kind, payload


def _without_padding(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A table that was written row by row has a null in every column that a row does not use."""
    used = {field: value for field, value in row.items() if value is not None or field not in _ANSWERS}
    return used if _ANSWERS & used.keys() else row


_ANSWERS = frozenset({"actual_calls", "calls", "tool_calls", "response", "text", "tool_called", "message", "content"})


def _is_older(row: Mapping[str, Any]) -> bool:
    """A message of OpenAI's first interface has its one call under another name, and null under today's."""
    return row["tool_calls"] is None and bool(row.get("function_call"))


def _refuse(wanted: str, row: Mapping[str, Any]) -> NoReturn:
    names = {
        "auto": _EXPECTED,
        "calls": "'actual_calls' or 'calls'",
        "tool_calls": "'tool_calls' or a message",
        "response": "'response'",
        "text": "'text', or a 'response' or message with text in it",
        "submission": "'tool_called' and 'arguments'",
    }
    remedy = f"Add the answer, {_UNSCORED}"
    if raw := next((field for field in ("choices", "candidates", "output") if field in row), None):
        remedy = (
            f"With {raw!r} it looks like a provider's whole answer: put that under 'response', beside the item's 'id'."
        )
    raise DataError(f"the row holds no answer: expected {names[wanted]}.", remedy=remedy)


def _first(row: Mapping[str, Any], *fields: str) -> str | None:
    return next((field for field in fields if field in row), None)


def _list(row: Mapping[str, Any], field: str) -> list[Any]:
    value = row[field]
    if not isinstance(value, list):
        raise DataError(
            f"the calls must be a list, not {json_type(value)}.",
            field=field,
            remedy=f"Write [] where no tool was called, {_UNSCORED}",
        )
    return value


def _submission(row: Mapping[str, Any]) -> dict[str, Any]:
    name = row["tool_called"]
    if name is not None and not isinstance(name, str):
        raise DataError(
            f"the tool's name must be text, not {json_type(name)}.",
            field="tool_called",
            remedy=f'Write "none" where no tool was called, {_UNSCORED}',
        )
    return {"tool_called": name, "arguments": row.get("arguments")}


_MESSAGE_FIELDS = ("role", "content", "function_call", "tool_calls")


def _message_of(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """The assistant's message that a row is or holds, without what is no part of a message."""
    message = row.get("message", row)
    if not isinstance(message, Mapping):
        raise DataError(f"a message must be an object, not {json_type(message)}.", field="message")
    if message is row and "content" not in row and "function_call" not in row:
        return None
    return {field: message[field] for field in _MESSAGE_FIELDS if field in message}


def _text(row: Mapping[str, Any]) -> str:
    """The text of an answer: its own field, or what a response or message says in words."""
    if "text" in row:
        if isinstance(row["text"], str):
            return row["text"]
        raise DataError(
            f"the text must be text, not {json_type(row['text'])}.",
            field="text",
            remedy=f'Write "" for an empty answer, {_UNSCORED}',
        )
    if "response" in row:
        return _text_of_response(row["response"])
    message = _message_of(row)
    return _refuse("text", row) if message is None else _words(message.get("content"))


def _text_of_response(response: Any) -> str:
    # Many logs keep the bare text of the model under this name.
    if isinstance(response, str) and not isinstance(_decoded(response), dict):
        return response
    return _spoken(_response(response))


def _decoded(text: str) -> Any:
    try:
        return decode_any_depth(text)
    except MalformedJSON:
        return None


# --- raw answers of four interfaces --------------------------------------------------------------------------


def _response(response: Any) -> dict[str, Any]:
    """The body of a raw answer.

    Raises:
        _Failure: it is none: an error, a refusal before the model, something that is not an answer at all.
        DataError: the field holds neither an object nor text.
    """
    if isinstance(response, str):
        response = _parsed(response)
    elif not isinstance(response, dict | list):
        raise DataError(
            f"a response must be an object or its JSON text, not {json_type(response)}.",
            field="response",
            remedy=f"Write the provider's whole answer, {_UNSCORED}",
        )
    if isinstance(response, dict) and "body" in response and "status_code" in response:
        response = _unwrapped(response)
    if not isinstance(response, dict):
        raise _Failure("The response is a list of parts, as streaming gives it; only whole answers can be read.")
    _check_error(response)
    _check_answer(response)
    return response


def _parsed(text: str) -> Any:
    if text.lstrip().startswith("data:"):
        raise _Failure("The response is a stream of events; only whole answers can be read.")
    value = _decoded(text)
    if not isinstance(value, dict | list):
        raise _Failure("The response is text that is not a JSON object.")
    return value


def _unwrapped(batch: dict[str, Any]) -> Any:
    """The body inside OpenAI's batch wrapper."""
    status, body = batch["status_code"], batch["body"]
    if isinstance(body, str):
        body = _decoded(body)
    if isinstance(status, int) and status >= 400:  # noqa: PLR2004 - where HTTP's errors begin
        error = body.get("error") if isinstance(body, dict) else None
        raise _Failure(f"The provider answered with status {number_text(status)}: {message_of(error)}")
    if not isinstance(body, dict):
        raise _Failure("The response has no body that is a JSON object.")
    return body


def _check_error(body: dict[str, Any]) -> None:
    if body.get("error") or body.get("type") == "error":
        raise _Failure(f"The provider answered with an error: {message_of(body.get('error'))}")
    if str(body.get("object")).endswith(".chunk"):
        raise _Failure("The response is one part of a stream; only whole answers can be read.")


def _check_answer(body: dict[str, Any]) -> None:
    """Raise unless the body is an answer in one of the four shapes, or an assistant's message."""
    shape = _shape(body)
    if shape == "chat":
        _check_choice(body["choices"])
    elif shape == "responses":
        if body.get("status") in ("failed", "cancelled", "queued", "in_progress"):
            raise _Failure(f"The provider's answer has the status {body['status']}.")
    elif shape == "gemini":
        _check_candidate(body)
    elif shape is None:
        raise _Failure("The response is in none of the shapes of OpenAI chat, OpenAI Responses, Anthropic or Gemini.")


def _shape(body: dict[str, Any]) -> str | None:
    if isinstance(body.get("choices"), list):
        return "chat"
    if isinstance(body.get("output"), list):
        return "responses"
    if "candidates" in body or "promptFeedback" in body or "prompt_feedback" in body:
        return "gemini"
    if "role" in body or body.get("type") == "message":
        return "message" if {"content", "tool_calls", "function_call"} & body.keys() else None
    return None


def _check_choice(choices: list[Any]) -> None:
    if not choices:
        raise _Failure("The provider's answer has no choices.")
    choice = choices[0] if isinstance(choices[0], dict) else {}
    if choice.get("error"):
        raise _Failure(f"The provider answered with an error: {message_of(choice['error'])}")
    if "delta" in choice:
        raise _Failure("The response is one part of a stream; only whole answers can be read.")
    if not isinstance(choice.get("message"), dict):
        raise _Failure("The provider's answer has no message.")


def _check_candidate(body: dict[str, Any]) -> None:
    candidates = body.get("candidates")
    if isinstance(candidates, list) and candidates and isinstance(candidates[0], dict):
        return
    feedback = either(body, "promptFeedback", "prompt_feedback")
    reason = either(feedback, "blockReason", "block_reason") if isinstance(feedback, dict) else None
    if reason:
        raise _Failure(f"The provider refused the request: {message_of(reason)}")
    raise _Failure("The provider's answer has no candidates.")


def either(holder: dict[str, Any], camel: str, snake: str) -> Any:
    """A field that JSON spells one way and Python's client another."""
    return holder[camel] if camel in holder else holder.get(snake)


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects in a list that should hold nothing else; nothing where there is no list."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _gemini_parts(body: dict[str, Any]) -> list[dict[str, Any]]:
    content = body["candidates"][0].get("content")
    return objects(content.get("parts")) if isinstance(content, dict) else []


def _spoken(body: dict[str, Any]) -> str:
    """What a raw answer says in words."""
    shape = _shape(body)
    if shape == "chat":
        return _words(body["choices"][0]["message"].get("content"))
    if shape == "responses":
        return "".join(_words(entry.get("content")) for entry in objects(body["output"]) if "content" in entry)
    if shape == "gemini":
        return _words([part for part in _gemini_parts(body) if not part.get("thought")])
    return _words(body.get("content"))


def _words(content: Any) -> str:
    """The text of a message's content, which is text or a list of parts."""
    if isinstance(content, str):
        return content
    # Responses: a reasoning entry holds parts as well, of another type than what is said.
    return "".join(
        part["text"]
        for part in objects(content)
        if isinstance(part.get("text"), str) and part.get("type") in (None, "text", "output_text")
    )


# --- calls ---------------------------------------------------------------------------------------------------


def read_calls(reply: Reply, offered: Collection[str] = frozenset()) -> tuple[Call, ...]:
    """The calls that a reply makes, in their order; a failure makes none.

    Args:
        reply: what :func:`read_reply` gave.
        offered: the names of the tools that the model could call; it matters for JSON in plain text only, and
            perhaps for a format that is not built in.

    Raises:
        DataError: the reader of a format that is not built in failed.
    """
    payload = reply.payload
    if reply.kind == "calls":
        return tuple(map(_plain_call, payload))
    if reply.kind == "tool_calls":
        return tuple(map(_tool_call, payload))
    if reply.kind == "text":
        return read_text(payload, offered)
    if reply.kind == "submission":
        return _submitted(payload)
    if reply.kind == "response":
        return tuple(_response_calls(payload))
    return payload.calls(offered) if isinstance(payload, Unread) else ()


def _plain_call(entry: Any) -> Call:
    """``{function, arguments}``; ``name`` may stand for ``function``, and the OpenAI shape is read too."""
    if not isinstance(entry, dict):
        return Call.of(entry)
    function = entry.get("function")
    if isinstance(function, dict):
        return _tool_call(entry)
    return _call(entry.get("name") if function is None else function, entry.get("arguments"))


def _tool_call(entry: Any) -> Call:
    """``{id, type, function: {name, arguments}}``, or OpenAI's custom tool with its text as ``input``."""
    if not isinstance(entry, dict):
        return Call(None, error="malformed_call", raw=entry)
    if isinstance(function := entry.get("function"), dict):
        return _call(function.get("name"), function.get("arguments"))
    if isinstance(custom := entry.get("custom"), dict):
        return _call(custom.get("name"), custom.get("input"))
    return Call(None, error="malformed_call", raw=entry)


def _call(name: Any, arguments: Any) -> Call:
    # An empty name names nothing.
    return Call.read(None if name == "" else name, arguments)


def _submitted(payload: dict[str, Any]) -> tuple[Call, ...]:
    name = payload["tool_called"]
    if not name or name.lower() == "none":
        return ()
    return (Call.read(name, payload["arguments"]),)


def _response_calls(body: dict[str, Any]) -> list[Call]:
    """The structured calls of a raw answer; text that looks like a call was not made through the interface."""
    shape = _shape(body)
    if shape == "chat":
        return _message_calls(body["choices"][0]["message"])
    if shape == "responses":
        return [_output_call(entry) for entry in objects(body["output"]) if entry.get("type") in tuple(_OUTPUT_CALLS)]
    if shape == "gemini":
        return _gemini_calls(body)
    return _message_calls(body)


_OUTPUT_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}


def _output_call(entry: dict[str, Any]) -> Call:
    return _call(entry.get("name"), entry.get(_OUTPUT_CALLS[entry["type"]]))


def _message_calls(message: dict[str, Any]) -> list[Call]:
    """The calls of an assistant's message: OpenAI's, its older single one, or Anthropic's blocks."""
    if calls := message.get("tool_calls"):
        return list(map(_tool_call, calls if isinstance(calls, list) else [calls]))
    if function_call := message.get("function_call"):
        return [_tool_call({"function": function_call})]
    blocks = [block for block in objects(message.get("content")) if block.get("type") == "tool_use"]
    return [_call(block.get("name"), block.get("input")) for block in blocks]


def _gemini_calls(body: dict[str, Any]) -> list[Call]:
    parts = [either(part, "functionCall", "function_call") for part in _gemini_parts(body)]
    calls = [_call(part.get("name"), part.get("args")) for part in parts if isinstance(part, dict)]
    reason = str(either(body["candidates"][0], "finishReason", "finish_reason"))
    if not calls and reason.endswith(("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL")):
        return [Call(None, error="malformed_call", raw=reason)]
    return calls
