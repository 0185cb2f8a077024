"""A request as Inspect AI takes it: its messages and its tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from arabic_agent_eval.asking import Request
from arabic_agent_eval.errors import DataError, MissingExtra
from arabic_agent_eval.models.turns import Turn, earlier_turns, is_text, schema_of
from arabic_agent_eval.tools import Tool, read_arguments

try:
    from inspect_ai.model import (
        ChatMessage,
        ChatMessageAssistant,
        ChatMessageSystem,
        ChatMessageTool,
        ChatMessageUser,
        Content,
        ContentImage,
        ContentText,
    )
    from inspect_ai.tool import ToolCall, ToolInfo, ToolParams
except ImportError:
    raise MissingExtra(
        'This needs Inspect AI, 0.3.285 or later; install it with: pip install "arabic-agent-eval[inspect]"'
    ) from None


def tool_info(tool: Tool) -> ToolInfo:
    """A tool as Inspect offers it; Inspect passes on no ``exclusiveMinimum``, ``minItems`` and other rare keywords.

    Raises:
        DataError: its parameters are not an object's schema.
    """
    try:
        schema = {"additionalProperties": None, **schema_of(tool)}
        return ToolInfo(name=tool.name, description=tool.description, parameters=ToolParams.model_validate(schema))
    except ValueError:
        raise DataError(f"the parameters of the tool {tool.name!r} are no schema that Inspect AI can take.") from None


def messages_of(request: Request) -> list[ChatMessage]:
    """The first request of an item as Inspect's messages.

    Raises:
        DataError: a message holds something other than text and pictures.
    """
    turns, system = earlier_turns(request), [request.system]
    while turns and turns[0].role == "system":
        system.append(turns.pop(0).text)
    text = "\n\n".join(part for part in system if part)
    return [*([ChatMessageSystem(content=text)] if text else ()), *map(_message, turns)]


def _message(turn: Turn) -> ChatMessage:
    content = _content(turn.parts)
    if turn.role == "system":
        return ChatMessageSystem(content=content)
    if turn.role == "tool":
        return ChatMessageTool(content=content, tool_call_id=turn.call_id, function=turn.name)
    if turn.role == "user":
        return ChatMessageUser(content=content)
    calls = [ToolCall(call.id, call.name, read_arguments(call.arguments)[0]) for call in turn.calls]
    return ChatMessageAssistant(content=content, tool_calls=calls or None)


def _content(parts: Sequence[Mapping[str, Any]]) -> str | list[Content]:
    if all(is_text(dict(part)) for part in parts):
        return "".join(part["text"] for part in parts)
    return [_part(part) for part in parts]


def _part(part: Mapping[str, Any]) -> Content:
    if is_text(dict(part)):
        return ContentText(text=part["text"])
    picture = part.get("image_url")
    url = picture.get("url") if isinstance(picture, Mapping) else None
    if not isinstance(url, str):
        raise DataError("a message holds something other than text and pictures.", field="messages")
    return ContentImage(image=url)
