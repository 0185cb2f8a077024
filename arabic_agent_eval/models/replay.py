"""Replay: a model that gives answers which exist already, from a file of replies or a run folder.

It runs a whole evaluation without a model: to test a set-up, to see what a perfect or a silent model would score, or
to hold the same conversations again with other simulated tools.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from arabic_agent_eval.asking import Request
from arabic_agent_eval.errors import DataError
from arabic_agent_eval.files import numbered_lines, read_json_line
from arabic_agent_eval.formats import Reply, read_reply
from arabic_agent_eval.markup import read_text
from arabic_agent_eval.models.model import Answer, Attempt, Failure
from arabic_agent_eval.models.reading import made_calls, read_body, spoken
from arabic_agent_eval.strictjson import encode
from arabic_agent_eval.tools import Call

_SILENCE: dict[str, Any] = {"role": "assistant", "content": ""}


class Replay:
    """Answers from a file of replies, one row an item and epoch, or from the ``replies.jsonl`` of a run.

    A row gives all its calls in the first turn; a run gives the turns that it had. Afterwards there is silence. An
    item that has no row in the asked epoch is answered from epoch 0.
    """

    address = ""

    def __init__(self, path: Path) -> None:
        """Read the answers.

        Args:
            path: a JSONL file of replies, or a run folder.

        Raises:
            DataError: it cannot be read; the message names file and line.
        """
        self.name = f"replay/{path}"
        self._answers: dict[tuple[str, int], _Turns] = {}
        file = path / "replies.jsonl" if path.is_dir() else path
        for number, line in numbered_lines(file):
            row = read_json_line(line, str(file), number)
            try:
                item_id, epoch, turns = _turns(row)
            except DataError as error:
                raise error.at(str(file), number) from None
            if not isinstance(turns, str) or (item_id, epoch) not in self._answers:
                self._answers[item_id, epoch] = turns
        if not self._answers:
            raise DataError("the file holds no replies.", path=str(file))

    def encode(self, request: Request) -> bytes:
        """What is looked up: item, epoch and turn; and the tools' names, by which calls in plain text are known."""
        sent = {
            "item": request.item_id,
            "epoch": request.epoch,
            "turn": len(request.exchanges),
            "tools": [tool.name for tool in request.tools],
        }
        return encode(sent)

    async def attempt(self, body: bytes) -> Attempt:
        """Look it up."""
        sent = msgspec.json.decode(body)
        turns = self._answers.get((sent["item"], sent["epoch"]), self._answers.get((sent["item"], 0)))
        if turns is None:
            return Attempt(b"", Failure("request", "The replayed file has no reply to this item."), None, 0.0)
        if isinstance(turns, str):
            return Attempt(b"", Failure("request", turns), None, 0.0)
        if isinstance(turns, Reply):
            turns = [_spoken(turns.payload, sent["tools"])]
        answer = turns[sent["turn"]] if sent["turn"] < len(turns) else _chat(_SILENCE)
        return Attempt(encode(answer), None, 200, 0.0)

    def read(self, body: dict[str, Any]) -> Answer | Failure:
        """What an answer says, in whichever provider's shape it is."""
        reply = read_body(body, lambda _: True)
        return reply if isinstance(reply, Failure) else Answer(made_calls(reply, []), spoken(body))

    async def close(self) -> None:
        """There is nothing to let go of."""


_Turns = list[dict[str, Any]] | Reply | str
"""The bodies of the answers in turn; an answer in raw text; or why there is none."""


def _turns(row: dict[str, Any]) -> tuple[str, int, _Turns]:
    """Item, epoch and answers."""
    if isinstance(turns := row.get("turns"), list) and "status" in row:
        head = read_reply({"id": row.get("id"), "epoch": row.get("epoch", 0), "calls": []})
        if row["status"] != "answered":
            return head.item_id, head.epoch, str(row.get("error") or "The request failed.")
        return head.item_id, head.epoch, [turn["response"] for turn in _answers(turns)]
    reply = read_reply(row)
    if reply.failure is not None:
        return reply.item_id, reply.epoch, reply.failure
    return reply.item_id, reply.epoch, reply if reply.kind == "text" else [_body(reply)]


def _answers(turns: list[Any]) -> Iterator[dict[str, Any]]:
    for place, turn in enumerate(turns):
        if not isinstance(turn, dict) or not isinstance(turn.get("response"), dict):
            raise DataError("a turn must hold a response.", field=f"turns[{place}]")
        yield turn


def _body(reply: Reply) -> dict[str, Any]:
    """A reply as the body of an answer; what was written stays as it was written."""
    if reply.kind == "response" and isinstance(reply.payload, dict):
        body: dict[str, Any] = reply.payload
        return body if "role" not in body else _chat(body)
    if reply.kind == "submission":
        named = reply.payload["tool_called"]
        calls = [] if not named or named.lower() == "none" else [_written(named, reply.payload["arguments"], 0)]
        return _chat({**_SILENCE, "tool_calls": calls})
    calls = [_tool_call(call, place) for place, call in enumerate(reply.payload)]
    return _chat({**_SILENCE, "tool_calls": calls})


def _spoken(text: str, offered: list[str]) -> dict[str, Any]:
    """A raw text as a message with the calls in it; the text alone where the tools stand in the prompt."""
    calls = [_as_sent(call, place) for place, call in enumerate(read_text(text, frozenset(offered)) if offered else ())]
    return _chat({"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})})


def _as_sent(call: Call, place: int) -> Any:
    """A call that was read as it would have come from a provider, with what could not be read of it."""
    if call.function is None:
        return {"id": f"call_{place}", "type": "function", "function": {"name": None, "arguments": call.raw}}
    return _written(call.function, call.arguments if call.error is None else call.raw, place)


def _tool_call(call: Any, place: int) -> Any:
    """A call of a reply in OpenAI's shape; what is no call is passed on as it is."""
    if not isinstance(call, dict) or isinstance(call.get("function"), dict):
        return call
    name = call.get("name") if call.get("function") is None else call["function"]
    return _written(name, call.get("arguments"), place)


def _written(name: Any, arguments: Any, place: int) -> dict[str, Any]:
    text = arguments if isinstance(arguments, str) or arguments is None else encode(arguments).decode()
    return {"id": f"call_{place}", "type": "function", "function": {"name": name, "arguments": text}}


def _chat(message: dict[str, Any]) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
