"""promptfoo: a Python assertion that grades tool calls, and the item sets as tests.

promptfoo takes a file of yours and not this one, whose neighbours have the names of packages:

    # grade.py
    from arabic_agent_eval.integrations.promptfoo import generate_tests, get_assert

    # promptfooconfig.yaml
    tests: file://grade.py
    defaultTest: {assert: [{type: python, value: file://grade.py}]}

``evaluate_reply`` decides every score. ``docs/integrations/promptfoo.md`` says more.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from arabic_agent_eval.asking import Offer, request_for
from arabic_agent_eval.bundled import find_items, find_tools
from arabic_agent_eval.errors import UsageError
from arabic_agent_eval.integrations.explanations import explain
from arabic_agent_eval.integrations.handover import item_of, reply_of, words_in
from arabic_agent_eval.items import ItemSet
from arabic_agent_eval.models.model import Settings
from arabic_agent_eval.models.openai_chat import OpenAIChat
from arabic_agent_eval.scoring import evaluate_reply
from arabic_agent_eval.tools import Toolbox
from arabic_agent_eval.world import is_conversation

_TOLERANCE = 1e-12


def get_assert(output: Any, context: Mapping[str, Any]) -> dict[str, Any]:
    """Judge one output, as promptfoo calls a Python assertion.

    Args:
        output: what the provider made of the answer: a list of tool calls, a message, Gemini's parts, or text.
        context: ``test.metadata`` says what is right, with the fields of an item: ``expected_calls``, and perhaps
            ``category``, ``ordered`` or ``available_functions``. ``config`` may hold ``min_score`` (1 by default) and
            ``language`` of the reason: ``en``, ``ar`` or ``both``.

    Returns:
        promptfoo's result: ``pass``, ``score`` (the total), ``reason``, and the axes as ``namedScores``.

    Raises:
        DataError: the metadata does not say what is right.
        UsageError: an option makes no sense.
    """
    options = _mapping(context.get("config"))
    least = options.get("min_score", 1.0)
    if isinstance(least, bool) or not isinstance(least, int | float) or not 0 <= least <= 1:
        raise UsageError(f"min_score must be a number from 0 to 1, not {least!r}.")
    item = item_of(_mapping(_mapping(context.get("test")).get("metadata")), "")
    answer = answer_of(output)
    result = evaluate_reply(item, reply_of(answer, item.id))
    reason = explain(item, result, options.get("language", "both"), said=words_in(answer))
    total = 0.0 if result.score is None else result.score.total
    axes = {} if result.score is None else result.score.axes
    return {
        "pass": result.score is not None and total >= least - _TOLERANCE,
        "score": total,
        "reason": reason,
        "namedScores": {axis: value for axis, value in axes.items() if value is not None},
    }


def answer_of(output: Any) -> Any:
    """An output in the shapes of promptfoo's providers as an answer; JSON that is no call is what the model wrote.

    promptfoo parses what some models wrote as JSON, so an object may be text as well as a message.
    """
    if isinstance(output, list):
        if any(isinstance(entry, Mapping) and isinstance(entry.get("functionCall"), Mapping) for entry in output):
            return {"response": {"candidates": [{"content": {"parts": output}}]}}
        if any(isinstance(entry, Mapping) and entry.get("type") == "tool_use" for entry in output):
            return {"role": "assistant", "content": output}
        return output
    if isinstance(output, Mapping):
        if isinstance(output.get("tool_calls"), list) or isinstance(output.get("function_call"), Mapping):
            fields = ("role", "content", "tool_calls", "function_call")
            return {field: output[field] for field in fields if field in output}
        if isinstance(output.get("functionCall"), Mapping):
            return answer_of([output])
        if output.keys() == {"name", "arguments"}:  # OpenAI's older single call
            return [output]
    return output if isinstance(output, str) else _as_text(output)


def _as_text(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return ""


def generate_tests(config: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """The items of a set as promptfoo's tests.

    The variable ``messages`` is the conversation so far, for a prompt of ``{{ messages | dump }}``; the offered tools
    are options of each test, which OpenAI's providers take; the metadata is the item.

    Args:
        config: ``items`` (a bundled set or a file; ``starter`` by default), and perhaps ``tools`` (the registry; by
            default the one beside the items) and ``tool_language`` (``ar``, ``en`` or ``both``).

    Raises:
        DataError: the items or tools cannot be read.
        UsageError: there is no such language.
    """
    options = _mapping(config)
    name = str(options.get("items", "starter"))
    offer = Offer(Toolbox.read(find_tools(name, options.get("tools"))), options.get("tool_language", "both"))
    tests = []
    for item in ItemSet.read(find_items(name)).values():
        if not is_conversation(item):
            body = OpenAIChat().body(request_for(item, offer), Settings(""))
            tests.append(
                {
                    "description": item.id,
                    "vars": {"messages": body["messages"]},
                    "options": {"tools": body["tools"]} if "tools" in body else {},
                    "metadata": msgspec.to_builtins(item),
                }
            )
    return tests


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
