"""A provider that always answers right, and small runs to ask it, for tests of whatever asks."""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import msgspec

from arabic_agent_eval import pacing
from arabic_agent_eval import runner as runner_module
from arabic_agent_eval.asking import SYSTEM_PROMPT, Request
from arabic_agent_eval.items import ItemSet, item_from_row
from arabic_agent_eval.journal import Journal
from arabic_agent_eval.models.model import Attempt, Failure, Settings
from arabic_agent_eval.models.openai_chat import OpenAIChat
from arabic_agent_eval.models.wire import HTTPModel
from arabic_agent_eval.pacing import Pace
from arabic_agent_eval.regrading import graded_rows
from arabic_agent_eval.runner import Ending, Limits, Runner
from arabic_agent_eval.runs import Asked, Run, fingerprint_of
from tests import faults

GUARD = 60  # seconds after which something hangs
_CATEGORIES = ("simple_function_calling", "parameter_extraction", "multi_step")
TOOLS = [
    {
        "name": name,
        "description": f"{about} | {name}",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
    }
    for name, about in (("find_road", "يجد الطريق"), ("book_table", "يحجز طاولة"))
]


def rows_of(count: int, *, conversations: int = 3) -> list[dict[str, Any]]:
    """Items, of which every so many-th is a conversation of three answers; with 0 none is."""
    return [_row(place, talks=bool(conversations) and place % conversations == conversations - 1)
            for place in range(count)]  # fmt: skip


def _row(place: int, *, talks: bool) -> dict[str, Any]:
    calls: list[dict[str, Any]] = [{"function": "find_road", "arguments": {"place": f"حي {place}"}}]
    if talks:
        calls[0]["result"] = {"road": "طريق الملك"}
        calls.append({"function": "book_table", "arguments": {"place": f"مطعم {place}"}, "result": {"booked": True}})
    category = _CATEGORIES[2 if talks else place % 2]
    return {
        "id": f"بند {place}", "category": category, "instruction": f"سؤال {place}", "dialect": "msa",
        "available_functions": ["find_road", "book_table"], "expected_calls": calls,
    }  # fmt: skip


def completion(*calls: dict[str, Any], text: str | None = None, usage: Any = ...) -> bytes:
    """A chat completion with these calls, as OpenAI gives it."""
    made = [
        {
            "id": f"call_{place}",
            "type": "function",
            "function": {
                "name": call["function"],
                "arguments": json.dumps(call["arguments"], ensure_ascii=False),
            },
        }
        for place, call in enumerate(calls)
    ]
    message = {"role": "assistant", "content": text, **({"tool_calls": made} if made else {})}
    counted = {"prompt_tokens": 900, "completion_tokens": 20} if usage is ... else usage
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if made else "stop"}
    body = {"id": "c", "choices": [choice], **({"usage": counted} if counted is not None else {})}
    return json.dumps(body, ensure_ascii=False).encode()


class Provider:
    """The script of a server that gives every item its expected calls, one in each answer of a conversation.

    Args:
        rows: the items that are asked.
        first: what the first request of every turn meets in place of an answer, or None.
        delay: seconds before each answer.
    """

    def __init__(self, rows: list[dict[str, Any]], *, first: faults.Reply | None = None, delay: float = 0.0) -> None:
        self._rows = {row["instruction"]: row for row in rows}
        self._first, self._delay = first, delay
        self.asked: Counter[bytes] = Counter()

    def __call__(self, seen: faults.Seen) -> faults.Reply:
        """What this request meets."""
        self.asked[seen.body] += 1
        if self._first is not None and self.asked[seen.body] == 1:
            return self._first
        return slowly(faults.ok(self.answer(seen.body)), self._delay)

    def answer(self, body: bytes) -> bytes:
        """The right answer to a request."""
        messages = json.loads(body)["messages"]
        row = next(self._rows[one["content"]] for one in messages if one["role"] == "user")
        calls = row["expected_calls"]
        if "result" not in calls[0]:
            return completion(*calls)
        turn = sum(one["role"] == "assistant" for one in messages)
        return completion(calls[turn]) if turn < len(calls) else completion(text="تم الحجز.")


def slowly(reply: faults.Reply, delay: float) -> faults.Reply:
    """The reply after so many seconds."""

    async def act(peer: faults.Peer) -> bool:
        await asyncio.sleep(delay)
        return await reply.act(peer)

    return faults.Reply(f"slow {reply.name}", act) if delay else reply


OFFERED = json.dumps(TOOLS, ensure_ascii=False).encode()


def asked_of(rows: list[dict[str, Any]], **more: Any) -> Asked:
    """What a run of these items asks; more settings replace those that a plain run has."""
    plain = Asked(
        items="قليل", fingerprint=set_of(rows).fingerprint, count=len(rows), tools=fingerprint_of(OFFERED),
        model="openai-chat/m",
        address="http://127.0.0.1:1/v1", system=SYSTEM_PROMPT, tool_language="both", written=False, temperature=None,
        seed=None, max_tokens=None, parameters={}, epochs=1, max_turns=10,
    )  # fmt: skip
    return msgspec.structs.replace(plain, **more)


def set_of(rows: list[dict[str, Any]]) -> ItemSet:
    """The items as a set."""
    return ItemSet((item_from_row(row) for row in rows), name="قليل")


def run_in(folder: Path, rows: list[dict[str, Any]], **more: Any) -> Run:
    """A new run folder."""
    return Run.create(folder, asked_of(rows, **more), set_of(rows), OFFERED, created="2026-11-09T20:30:00+00:00")


def model_at(url: str, **options: Any) -> HTTPModel:
    """A model behind Chat Completions at this address."""
    settings = options.pop("settings", Settings("m"))
    usual: dict[str, Any] = {"timeout": 20.0, "max_answer": 1 << 20}
    if url.startswith("http://"):  # to read all certificates takes longer than a whole run
        usual["transport"] = httpx2.AsyncHTTPTransport(verify=False)
    return HTTPModel(OpenAIChat(), settings, base_url=url, **usual | options)


class Pretence:
    """A model in this process that is asked as one behind Chat Completions; ``say`` gives an answer or a failure."""

    def __init__(self, say: Callable[[bytes], Any], *, name: str = "openai-chat/m", address: str = "http://a/v1"):
        self.name, self.address = name, address
        self._say, self._codec = say, OpenAIChat()
        self.asked: list[bytes] = []
        self.closed = False

    def encode(self, request: Request) -> bytes:
        """As the codec does."""
        return msgspec.json.encode(self._codec.body(request, Settings("m")))

    async def attempt(self, body: bytes) -> Attempt:
        """What was prepared, which may take time."""
        self.asked.append(body)
        said = self._say(body)
        said = await said if asyncio.iscoroutine(said) else said
        return Attempt(b"", said, None, 0.0) if isinstance(said, Failure) else Attempt(said, None, 200, 0.5)

    def read(self, body: dict[str, Any]) -> Any:
        """As the codec does."""
        return self._codec.read(body)

    async def close(self) -> None:
        """Remember it."""
        self.closed = True


def right(rows: list[dict[str, Any]], **more: Any) -> Pretence:
    """A model that answers everything rightly."""
    return Pretence(Provider(rows).answer, **more)


def charging(dollars: float, *, delay: float = 0.0) -> Pretence:
    """A model whose every answer costs so much, as the provider says."""

    async def say(_: bytes) -> bytes:
        await asyncio.sleep(delay)
        return completion(text="لا", usage={"prompt_tokens": 1, "completion_tokens": 1, "cost": dollars})

    return Pretence(say)


def statuses(run: Run) -> list[str]:
    """How every item ended that did."""
    return [record.status for record in run.records()]


def ask(run: Run, model: Any, *, workers: int = 2, attempts: int = 2, pace: Pace | None = None, **more: Any) -> Ending:
    """Ask what is missing of a run; a guard ends what hangs."""
    limits = Limits(attempts, more.pop("deadline", None), more.pop("max_cost", None))

    async def go() -> Ending:
        async with asyncio.timeout(GUARD):
            with Journal(run.folder) as journal:
                runner = Runner(run, journal, model, pace or Pace(workers), limits=limits, **more)
                return await runner.ask_async(workers)

    return asyncio.run(go())


def ask_server(run: Run, script: faults.Script, *, model: dict[str, Any] | None = None, **more: Any) -> tuple[
    Ending, faults.FaultServer
]:  # fmt: skip
    """Ask a server with this script."""
    with faults.FaultServer(script) as server:
        return ask(run, model_at(f"{server.url}/v1", **(model or {})), **more), server


def grades_of(run: Run) -> list[float | None]:
    """The total of every answer in the order of asking; None where there is none."""
    return [row.total for row in graded_rows(run)]


def hasten(monkeypatch: Any) -> list[float | None]:
    """Let waits before another attempt take a thousandth of their time, and the disk none; gives the true waits."""
    waits: list[float | None] = []
    usual = pacing.backoff

    def backoff(*arguments: Any) -> float | None:
        waits.append(usual(*arguments))
        return None if waits[-1] is None else waits[-1] / 1000

    monkeypatch.setattr(runner_module, "backoff", backoff)
    monkeypatch.setattr(os, "fsync", lambda _: None)
    return waits


def lines_of(path: Path) -> list[dict[str, Any]]:
    """The lines of a growing file."""
    return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []
