"""Files to measure on: the bundled sample set, its items and replies repeated under new ids.

Of four answers to an item three are the expected calls and one is the sample's own reply, which is wrong in about half
of the items: together a model that is right on some nine items in ten.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from arabic_agent_eval.bundled import find_items, find_replies
from arabic_agent_eval.formats import read_calls, read_reply
from arabic_agent_eval.items import ItemSet

RIGHT_OF_FOUR = 3


def right_calls(row: dict[str, Any]) -> list[dict[str, Any]]:
    """The expected calls of an item, as a model that is right would make them."""
    return [{"function": c["function"], "arguments": c.get("arguments", {})} for c in row["expected_calls"]]


def answers() -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Items with answers, four to each item."""
    rows, replies = sample()
    return [
        (row, right_calls(row) if turn < RIGHT_OF_FOUR else reply)
        for turn in range(RIGHT_OF_FOUR + 1)
        for row, reply in zip(rows, replies, strict=True)
    ]


def sample() -> tuple[list[dict[str, Any]], list[list[dict[str, Any]]]]:
    """The sample items as rows, and the calls of the sample reply to each."""
    rows = [json.loads(line) for line in find_items("sample").read_text(encoding="utf-8").splitlines()]
    items = ItemSet.read(find_items("sample"))
    calls: dict[str, list[dict[str, Any]]] = {}
    for line in find_replies("sample").read_text(encoding="utf-8").splitlines():
        reply = read_reply(json.loads(line))
        made = read_calls(reply, items[reply.item_id].offered)
        calls[reply.item_id] = [{"function": c.function or "", "arguments": c.arguments} for c in made]
    return rows, [calls[row["id"]] for row in rows]


def _line(row: dict[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


def write_pair(folder: Path, count: int) -> tuple[Path, Path, Path]:
    """``count`` items, and a reply to each as calls and as OpenAI tool calls: three paths."""
    pairs = answers()
    paths = folder / "items.jsonl", folder / "calls.jsonl", folder / "tool_calls.jsonl"
    streams = [path.open("w", encoding="utf-8") for path in paths]
    for number in range(count):
        row, made = pairs[number % len(pairs)]
        id_ = f"{row['id']}-{number}"
        streams[0].write(_line({**row, "id": id_}))
        streams[1].write(_line({"id": id_, "actual_calls": made}))
        streams[2].write(_line({"id": id_, "tool_calls": [_tool_call(call, n) for n, call in enumerate(made)]}))
    for stream in streams:
        stream.close()
    return paths


def _tool_call(call: dict[str, Any], number: int) -> dict[str, Any]:
    arguments = json.dumps(call["arguments"], ensure_ascii=False)
    return {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": call["function"], "arguments": arguments},
    }


def write_epochs(folder: Path, replies: int) -> tuple[Path, Path]:
    """The sample items, and this many replies to them in as many epochs as that takes."""
    pairs = answers()
    items = len(pairs) // (RIGHT_OF_FOUR + 1)
    path = folder / f"epochs-{replies}.jsonl"
    with path.open("w", encoding="utf-8") as stream:
        for number in range(replies):
            row, made = pairs[number % len(pairs)]
            stream.write(_line({"id": row["id"], "epoch": number // items, "actual_calls": made}))
    return find_items("sample"), path
