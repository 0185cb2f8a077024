"""Grade the tool calls of language models that serve Arabic speakers, and explain every lost point.

The names here are the public face; ``arabic_agent_eval.scoring`` holds those that the specification requires.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from arabic_agent_eval._version import __version__
from arabic_agent_eval.errors import DataError, EvalError, MissingExtra, OutputError, UsageError

if TYPE_CHECKING:
    from arabic_agent_eval.formats import Reply, read_calls, read_reply
    from arabic_agent_eval.items import Category, ExpectedCall, Item, ItemSet
    from arabic_agent_eval.results import Results, compare, open_results, rank
    from arabic_agent_eval.rules import CANONICAL, V0_1, Rules
    from arabic_agent_eval.scoring import (
        CategoryScore,
        Grader,
        Loss,
        Result,
        Score,
        Signature,
        compute_overall_score,
        evaluate_reply,
        grade,
        normalize_arabic,
        score_calls,
        score_function_call,
    )
    from arabic_agent_eval.tools import Call, Tool, Toolbox

__all__ = [
    "CANONICAL",
    "V0_1",
    "Call",
    "Category",
    "CategoryScore",
    "DataError",
    "EvalError",
    "ExpectedCall",
    "Grader",
    "Item",
    "ItemSet",
    "Loss",
    "MissingExtra",
    "OutputError",
    "Reply",
    "Result",
    "Results",
    "Rules",
    "Score",
    "Signature",
    "Tool",
    "Toolbox",
    "UsageError",
    "__version__",
    "compare",
    "compute_overall_score",
    "evaluate_reply",
    "grade",
    "normalize_arabic",
    "open_results",
    "rank",
    "read_calls",
    "read_reply",
    "score_calls",
    "score_function_call",
]

_HOMES = {
    name: module
    for module, names in {
        "formats": ["Reply", "read_calls", "read_reply"],
        "items": ["Category", "ExpectedCall", "Item", "ItemSet"],
        "results": ["Results", "compare", "open_results", "rank"],
        "rules": ["CANONICAL", "V0_1", "Rules"],
        "scoring": [
            "CategoryScore", "Grader", "Loss", "Result", "Score", "Signature", "compute_overall_score",
            "evaluate_reply", "grade", "normalize_arabic", "score_calls", "score_function_call",
        ],
        "tools": ["Call", "Tool", "Toolbox"],
    }.items()
    for name in names
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """A public name, whose module is loaded when the name is first asked for: the command starts before all are."""
    from importlib import import_module  # noqa: PLC0415

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
