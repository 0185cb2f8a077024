"""What a model answered in one sample of Inspect AI, as its provider sent it.

Inspect repairs arguments before anybody sees them: a bare word, a list or a fenced block becomes an object. The answer
of the provider itself stands in the sample's model events; it is read here as any other reply is, and only where it
cannot be had do Inspect's own calls take its place.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from arabic_agent_eval.errors import MissingExtra
from arabic_agent_eval.formats import Reply, read_calls, read_reply
from arabic_agent_eval.tools import Call

try:
    from inspect_ai.event import ErrorEvent, Event, ModelEvent, SpanBeginEvent
    from inspect_ai.model import ChatMessage, ChatMessageAssistant
    from inspect_ai.tool import ToolCall
except ImportError:
    raise MissingExtra(
        'This needs Inspect AI, 0.3.285 or later; install it with: pip install "arabic-agent-eval[inspect]"'
    ) from None

WITHOUT_RAW = (
    "The provider's own answer is not in the log, so arguments are graded as Inspect AI parsed them, and Inspect may "
    "have repaired them. Run with --log-model-api, which keeps every answer; some providers give none."
)
"""What is said where Inspect's own calls had to be taken."""

KEPT = "arabic_agent_eval:calls"
"""Where the solver keeps the calls of each answer as they were sent: Inspect hides long texts of a log from scorers."""

_SCORERS, _ATTACHMENT = "scorers", "attachment://"
_NO_ANSWER = "The model gave no answer."
_logger = logging.getLogger(__name__)


class Turn(NamedTuple):
    """One answer of the model.

    Attributes:
        message: as Inspect keeps it.
        calls: the calls that it makes.
        is_raw: whether they are as the provider sent them; else they are Inspect's.
        response: the provider's own answer where it is there and could be read, else None.
        event: the model call that brought it, or None.
    """

    message: ChatMessageAssistant
    calls: tuple[Call, ...]
    is_raw: bool
    response: dict[str, Any] | None
    event: ModelEvent | None


class Answered(NamedTuple):
    """What came of one sample.

    Attributes:
        turns: the answers in their order.
        failure: why there is nothing to grade, or None.
        events: every call of the model, failed ones too.
    """

    turns: tuple[Turn, ...]
    failure: str | None
    events: tuple[ModelEvent, ...]

    @property
    def calls(self) -> list[Call]:
        """The calls of all turns as one list."""
        return [call for turn in self.turns for call in turn.calls]

    @property
    def words(self) -> str:
        """What was said in all turns."""
        return "\n".join(turn.message.text for turn in self.turns if turn.message.text)

    @property
    def is_raw(self) -> bool:
        """Whether every turn was read from the provider's own answer."""
        return all(turn.is_raw for turn in self.turns)

    def reply(self, item_id: str, epoch: int) -> Reply:
        """The reply that the grader takes.

        Args:
            item_id: the item.
            epoch: which asking of it, from 0.
        """
        if self.failure is not None:
            return read_reply({"id": item_id, "epoch": epoch, "error": self.failure})
        return Reply(item_id, "calls", self.calls, epoch)


def read_answers(
    messages: Iterable[ChatMessage],
    events: Iterable[Event],
    attachments: Mapping[str, str] | None = None,
    kept: object = None,
) -> Answered:
    """What a model answered in a conversation.

    Args:
        messages: the conversation; what the model generated in it counts.
        events: the transcript; what scorers did in it does not count.
        attachments: long texts that stand elsewhere, as a transcript that is being written has them.
        kept: what a sample's store holds under :data:`KEPT`.
    """
    kept = kept if isinstance(kept, Mapping) else {}
    own, failure = list(_of_solver(events)), None
    for event in own:
        if isinstance(event, ModelEvent):
            failure = _failure_of(event, attachments or {})
        elif isinstance(event, ErrorEvent):
            failure = failure or event.error.message
    made = tuple(event for event in own if isinstance(event, ModelEvent))
    by_message = {event.output.message.id: event for event in made if event.output.choices}
    turns = tuple(
        _read_turn(message, by_message.get(message.id), attachments or {}, kept.get(message.id))
        for message in messages
        if isinstance(message, ChatMessageAssistant) and message.source == "generate"
    )
    return Answered(turns, None if failure is None and turns else plain_reason(failure or _NO_ANSWER), made)


def plain_reason(error: Any) -> str:
    """Why there is no answer, on one line, cut and without secrets.

    Args:
        error: a text, or a body that holds one.
    """
    return (read_reply({"id": "", "error": error}).failure or "").removeprefix("The request failed: ")


@cache
def warn_without_raw() -> None:
    """Say once that Inspect's own calls are graded."""
    _logger.warning(WITHOUT_RAW)


def _of_solver(events: Iterable[Event]) -> Iterator[Event]:
    """The finished events outside of scorers, which may ask models too."""
    inside: set[str] = set()
    for event in events:
        if isinstance(event, SpanBeginEvent) and (event.name == _SCORERS or event.parent_id in inside):
            inside.add(event.id)
        elif event.span_id not in inside and not event.pending:
            yield event


def _failure_of(event: ModelEvent, attachments: Mapping[str, str]) -> str | None:
    """Why a call of the model brought no answer; None where it did."""
    error: str | None = event.error or event.output.error
    if error:
        return error
    response = _response_of(event, attachments)
    if event.call is not None and event.call.error:
        return plain_reason(response or "The provider refused the request.")
    if response is not None and _has_known_shape(response):
        failure = read_reply({"id": "", "response": response}).failure
        if failure is not None:
            return failure
    return None if event.output.choices else "The provider's answer has no choices."


def _has_known_shape(response: Mapping[str, Any]) -> bool:
    """Whether an answer is meant to be in a shape that is read here, so that what is wrong with it is the provider's.

    Amazon's has an object under ``output``, and Inspect's mock model has a shape of its own.
    """
    return bool(response.get("error")) or any(
        isinstance(response.get(field), list) for field in ("choices", "output", "candidates")
    )


def _read_turn(
    message: ChatMessageAssistant, event: ModelEvent | None, attachments: Mapping[str, str], kept: object
) -> Turn:
    parsed = tuple(map(_as_parsed, message.tool_calls or ()))
    response = None if event is None else _response_of(event, attachments)
    if response is not None:
        reply = read_reply({"id": "", "response": response})
        calls = read_calls(reply)
        # Fewer calls than Inspect has: it read them from the text, and for them its reading is the only one.
        if reply.failure is None and len(calls) >= len(parsed) and not _is_cut(list(map(as_row, calls))):
            return Turn(message, calls, is_raw=True, response=response, event=event)
    if isinstance(kept, list):
        return Turn(message, read_calls(Reply("", "calls", kept)), is_raw=True, response=None, event=event)
    return Turn(message, parsed, is_raw=False, response=None, event=event)


def as_row(call: Call) -> Any:
    """A call as a row of replies holds it, from which the same call is read again."""
    if call.error == "malformed_call":
        return call.raw
    return {"function": call.function, "arguments": call.arguments if call.error is None else call.raw}


def _is_cut(value: Any) -> bool:
    """Whether a long text stands elsewhere, where it cannot be had."""
    if isinstance(value, dict | list):
        return any(map(_is_cut, value.values() if isinstance(value, dict) else value))
    return isinstance(value, str) and value.startswith(_ATTACHMENT)


def _as_parsed(call: ToolCall) -> Call:
    """A call as Inspect read it; its sentence about arguments that it could not read quotes them."""
    if call.parse_error is not None and call.function:
        return Call(call.function, {}, "malformed_arguments", call.parse_error)
    return Call.read(call.function, call.arguments)


def _response_of(event: ModelEvent, attachments: Mapping[str, str]) -> dict[str, Any] | None:
    if event.call is None or event.call.response is None:
        return None
    response: dict[str, Any] = _resolved(event.call.response, attachments)
    return response


def _resolved(value: Any, attachments: Mapping[str, str]) -> Any:
    """A value with its long texts, which a transcript keeps apart."""
    if not attachments:
        return value
    if isinstance(value, str) and value.startswith(_ATTACHMENT):
        return attachments.get(value.removeprefix(_ATTACHMENT), value)
    if isinstance(value, dict):
        return {name: _resolved(member, attachments) for name, member in value.items()}
    if isinstance(value, list):
        return [_resolved(member, attachments) for member in value]
    return value
