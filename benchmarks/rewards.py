"""What a reward costs in training: completions a second on one core, and against calls that were parsed already."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any

from arabic_agent_eval.bundled import find_items
from arabic_agent_eval.formats import Reply
from arabic_agent_eval.integrations.rewards import ToolCallReward
from arabic_agent_eval.items import ItemSet
from arabic_agent_eval.scoring import Grader
from benchmarks import workload

_SILENT = "لا أستطيع ذلك، هل يمكن أن توضح طلبك أكثر؟"


def _hermes(calls: list[dict[str, Any]]) -> str:
    return "\n".join(f"<tool_call>\n{_call(call)}\n</tool_call>" for call in calls) or _SILENT


def _thought(calls: list[dict[str, Any]]) -> str:
    return f"<think>\nيريد المستخدم أن أستدعي أداة واحدة أو أكثر.\n</think>\n\n{_hermes(calls)}<|im_end|>"


def _mistral(calls: list[dict[str, Any]]) -> str:
    return f"[TOOL_CALLS][{', '.join(map(_call, calls))}]</s>" if calls else _SILENT


def _bare(calls: list[dict[str, Any]]) -> str:
    return f"[{', '.join(map(_call, calls))}]" if calls else _SILENT


def _call(call: dict[str, Any]) -> str:
    return json.dumps({"name": call["function"], "arguments": call["arguments"]}, ensure_ascii=False)


def _messages(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    made = [{"type": "function", "function": {"name": c["function"], "arguments": c["arguments"]}} for c in calls]
    return [{"role": "assistant", "content": "", "tool_calls": made}]


_NOTATIONS: dict[str, Callable[[list[dict[str, Any]]], Any]] = {
    "Hermes and Qwen text": _hermes,
    "the same after a thought": _thought,
    "Mistral text": _mistral,
    "bare JSON text": _bare,
    "messages with parsed calls": _messages,
}


def rewards(rounds: int, repeats: int) -> list[tuple[str, str, str]]:
    """The speed of a reward over completions in each notation, and how it compares with grading parsed calls.

    Args:
        rounds: the best of so many counts for each side; sides take turns, since other work comes and goes.
        repeats: how often a round goes through the answers.
    """
    pairs = workload.answers()
    items = ItemSet.read(find_items("sample"))
    graders = {item.id: Grader(item) for item in items.values()}
    reward, ids = ToolCallReward(items), [row["id"] for row, _ in pairs]
    # Every answer is made anew, as it is in training: Python compares an object with itself at once.
    parsed = [(graders[row["id"]], Reply(row["id"], "calls", deepcopy(calls))) for row, calls in pairs]
    written = {name: [write(deepcopy(calls)) for _, calls in pairs] for name, write in _NOTATIONS.items()}

    def grade() -> None:
        for grader, reply in parsed:
            grader.evaluate(reply, causes=False)

    sides: dict[str, Callable[[], object]] = {"": grade}
    for name, completions in written.items():
        sides[name] = partial(reward, completions, ids)
    best = dict.fromkeys(sides, float("inf"))
    for _ in range(rounds):
        for name, work in sides.items():
            began = time.process_time()
            for _ in range(repeats):
                work()
            best[name] = min(best[name], (time.process_time() - began) / repeats / len(pairs))
    rows = [("grading parsed calls without causes, one core", f"{1 / best['']:,.0f} a second", "")]
    for name in written:
        shown = f"{1 / best[name]:,.0f} completions a second, {best[''] / best[name]:.2f} × parsed calls"
        rows.append((f"reward of {name}, one core", shown, "≥ 0.5 ×"))
    return rows
