"""The turns before a request, made ready for any interface: earlier messages, and answers with their results.

No interface takes back a call without a name, and hardly any a call whose arguments are no object: two hold arguments
as objects, and of the servers that take them as text, llama.cpp's, vLLM's and Ollama's read it for their templates and
refuse the whole request if they cannot. Nothing is repaired so that they could: such a call is left out of what is sent
back, or written as text where it stood in a message, and its result is told in words.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from arabic_agent_eval.asking import Exchange, Request, ToolResult, written_results
from arabic_agent_eval.formats import objects
from arabic_agent_eval.models.reading import member, name_or_none
from arabic_agent_eval.tools import Tool, read_arguments


class EarlierCall(NamedTuple):
    """A call in an earlier message: its id, the tool's name and the arguments as they stood there."""

    id: str
    name: str
    arguments: Any


class Turn(NamedTuple):
    """An earlier message; ``call_id`` and ``name`` belong to a tool's result."""

    role: Literal["system", "user", "assistant", "tool"]
    parts: list[dict[str, Any]]
    calls: tuple[EarlierCall, ...] = ()
    call_id: str = ""
    name: str = ""

    @property
    def text(self) -> str:
        """What the message says in words."""
        return "".join(part["text"] for part in self.parts if is_text(part))


def earlier_turns(request: Request) -> list[Turn]:
    """The earlier messages in one form, every result after the call that it answers.

    A call without an id is ``call_N``, counted over the conversation, and a result without one answers the first call
    that has none yet. What no interface could take is written as text: calls that cannot go back, results of no call,
    and every call and result where tools are written anyway.

    Args:
        request: its messages, in OpenAI's shape.
    """
    return list(_Earlier(written=request.written).turns(request.messages))


class _Earlier:
    """A walk through messages that remembers which calls were made and which of them have no result yet."""

    def __init__(self, *, written: bool) -> None:
        self._written = written
        self._count = 0
        self._open: deque[EarlierCall] = deque()

    def turns(self, messages: Sequence[dict[str, Any]]) -> Iterator[Turn]:
        for message in messages:
            role = message.get("role")
            if role in ("system", "developer"):
                yield Turn("system", parts_of(message.get("content")))
            elif role == "assistant":
                yield self._assistant(message)
            elif role in ("tool", "function"):
                yield self._result(message)
            else:
                yield Turn("user", parts_of(message.get("content")))

    def _assistant(self, message: dict[str, Any]) -> Turn:
        parts = parts_of(message.get("content"))
        calls: list[EarlierCall] = []
        written: list[str] = []
        self._open.clear()  # a result belongs to the message just before it
        for entry in calls_of(message):
            self._count += 1
            name, arguments = name_or_none(member(entry, "function", "name")), member(entry, "function", "arguments")
            if name is None or self._written or not can_go_back(name, arguments):
                written.append(_written_call(name, arguments))
            else:
                calls.append(EarlierCall(name_or_none(entry.get("id")) or call_number(self._count), name, arguments))
        self._open.extend(calls)
        if written:
            parts.append(text_part("\n" * bool(parts) + "\n".join(written)))
        return Turn("assistant", parts, tuple(calls))

    def _result(self, message: dict[str, Any]) -> Turn:
        call = self._take(name_or_none(message.get("tool_call_id")))
        content = content_text(message.get("content"))
        if call is None:
            return Turn("user", [text_part(f"<tool_response>{content}</tool_response>")])
        return Turn("tool", [text_part(content)], (), call.id, call.name)

    def _take(self, call_id: str | None) -> EarlierCall | None:
        place = next((place for place, call in enumerate(self._open) if call_id in (None, call.id)), None)
        if place is None:
            return None
        call = self._open[place]
        del self._open[place]
        return call


def calls_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The entries of a message's calls as the reader of reply formats counts them; the older single call is one."""
    if calls := message.get("tool_calls"):
        return [entry if isinstance(entry, dict) else {} for entry in (calls if isinstance(calls, list) else [calls])]
    function_call = message.get("function_call")
    return [{"function": function_call}] if function_call else []


def can_go_back(name: Any, arguments: Any) -> bool:
    """Whether a call can stand in a request: it has a name, and arguments that are an object or nothing."""
    return name_or_none(name) is not None and read_arguments(arguments)[1] is None


def _written_call(name: str | None, arguments: Any) -> str:
    """A call as the prompt asks for it: arguments that are an object stand as one, and never as text in quotes."""
    unreadable = read_arguments(arguments)[1] is not None
    shown = _text(arguments) if unreadable else arguments_text(arguments) or "{}"
    return f'<tool_call>{{"name": {_text(name)}, "arguments": {shown}}}</tool_call>'


def call_number(count: int) -> str:
    """The id of a call that came without one."""
    return f"call_{count}"


# --- answers and their results -------------------------------------------------------------------------------


class Replayed(NamedTuple):
    """An answer ready to be sent back.

    Attributes:
        entries: what the model sent, without the calls that the interface cannot take back.
        answered: id and result of the calls that are sent back, in their order.
        told: what is told in words of the results of the other calls; "" where there are none.
    """

    entries: list[dict[str, Any]]
    answered: list[tuple[str, ToolResult]]
    told: str


def numbered_exchanges(request: Request) -> Iterator[tuple[int, Exchange]]:
    """The exchanges of a request, each with how many calls were made before it."""
    count = sum(len(calls_of(message)) for message in request.messages if message.get("role") == "assistant")
    for exchange in request.exchanges:
        yield count, exchange
        count += len(exchange.results)


def replay(
    entries: Sequence[dict[str, Any]],
    exchange: Exchange,
    before: int,
    *,
    is_call: Callable[[dict[str, Any]], bool],
    with_id: Callable[[dict[str, Any], str | None, str], tuple[str, dict[str, Any]] | None],
) -> Replayed:
    """Sort an answer's entries into what is sent back and what is told.

    Args:
        entries: messages, items, blocks or parts of the answer, calls among them.
        exchange: the results belong to the calls by their order.
        before: how many calls were made before this answer.
        is_call: whether an entry is a call.
        with_id: entry, the id known to the runner or None, ``call_N`` → the id that is used and the entry to send
            back, or None where the interface cannot take the call back.
    """
    kept: list[dict[str, Any]] = []
    answered: list[tuple[str, ToolResult]] = []
    told: list[ToolResult] = []
    results = deque(exchange.results)
    for entry in entries:
        if not is_call(entry):
            kept.append(entry)
            continue
        before += 1
        result = results.popleft() if results else None
        sent = with_id(entry, result.made.id if result else None, call_number(before))
        if sent is not None:
            kept.append(sent[1])
        if result is not None and sent is None:
            told.append(result)
        elif result is not None and sent is not None:
            answered.append((sent[0], result))
    return Replayed(kept, answered, written_results([*told, *results]))


# --- contents ------------------------------------------------------------------------------------------------


def parts_of(content: Any) -> list[dict[str, Any]]:
    """A message's content as parts; texts are ``{"type": "text", "text": …}``, and empty ones are left out."""
    if not isinstance(content, list):
        text = content_text(content)
        return [text_part(text)] if text else []
    parts = [text_part(part) if isinstance(part, str) else part for part in content]
    parts = [text_part(part["text"]) if is_text(part) else part for part in objects(parts)]
    return [part for part in parts if not is_text(part) or part["text"]]


def is_text(part: dict[str, Any]) -> bool:
    """Whether a part of a content is text, in any interface's spelling."""
    return isinstance(part.get("text"), str) and part.get("type") in (None, "text", "input_text", "output_text")


def text_part(text: str) -> dict[str, Any]:
    """A text as a part of a content."""
    return {"type": "text", "text": text}


def content_text(content: Any) -> str:
    """A content as text: itself, its texts, or its JSON."""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(part, dict) and is_text(part) for part in content):
        return "".join(part["text"] for part in content)
    return "" if content is None else _text(content)


def arguments_text(arguments: Any) -> str:
    """Arguments as the JSON text that OpenAI's interfaces take: text as it is, an object as JSON, nothing as ``{}``.

    Text is nothing if it is empty or ``null``: OpenAI takes both, and servers with templates take neither.
    """
    if isinstance(arguments, str):
        return "{}" if arguments.strip() in ("", "null") else arguments
    return "{}" if arguments is None else _text(arguments)


def schema_of(tool: Tool) -> dict[str, Any]:
    """A tool's parameters as they are; a tool without any takes an empty object."""
    return tool.parameters or {"type": "object", "properties": {}}


def described_by(tool: Tool) -> dict[str, Any]:
    """Name and description; a tool without a description has none."""
    return {"name": tool.name, **({"description": tool.description} if tool.description else {})}


def system_text(request: Request, turns: Sequence[Turn]) -> str:
    """The system prompt and the system messages among the turns, for interfaces that have one place for them."""
    texts = [request.system, *(turn.text for turn in turns if turn.role == "system")]
    return "\n\n".join(text for text in texts if text)


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()
