"""The worked cases that came with the specification: values with score and cause, replies with axes and cause."""

from __future__ import annotations

import json
from typing import Any

import pytest

from arabic_agent_eval.formats import Reply, read_reply
from arabic_agent_eval.items import item_from_row
from arabic_agent_eval.scoring import evaluate_reply, score_function_call
from tests.conftest import SHARED


def shared_cases(name: str) -> list[Any]:
    """The lines of a file of shared cases, or one skipped case where the file is absent."""
    path = SHARED / "cases" / f"{name}.jsonl"
    if not path.is_file():
        return [pytest.param({}, marks=pytest.mark.skip(reason="the shared cases are not part of a plain checkout"))]
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [pytest.param(row, id=row["id"]) for row in rows]


def reply_of(case: dict[str, Any]) -> Reply:
    """The reply of a case: an assistant's message, or raw text."""
    field = "text" if isinstance(case["reply"], str) else "message"
    return read_reply({"id": case["id"], field: case["reply"]})


@pytest.mark.parametrize("case", shared_cases("arguments"))
def test_arguments(case):
    """Each pair of values has the score and the preservation of its case, and loses its points for that one cause."""
    calls = [{"function": "f", "arguments": {"value": case["expected"]}}]
    item = item_from_row({"id": "1", "category": "tool_selection", "expected_calls": calls})
    actual = {"value": case["actual"]}

    result = evaluate_reply(item, read_reply({"id": "1", "calls": [{"function": "f", "arguments": actual}]}))

    preserved = case["arabic_preserved"]
    axes = (1.0, case["score"], 1.0 if preserved is None else float(preserved))
    assert score_function_call("f", "f", calls[0]["arguments"], actual) == axes
    assert result.score is not None
    assert result.score.argument_accuracy == case["score"]
    assert result.arabic_applicable is (preserved is not None)
    assert {loss.cause for loss in result.losses} == ({case["cause"]} if case["cause"] else set())


@pytest.mark.parametrize("case", shared_cases("replies"))
def test_replies(case):
    """Each reply has the axes of its case, and where a cause is given, loses its points for that one."""
    row = {"id": case["id"], "category": "multi_step", "available_functions": offered(case)}
    item = item_from_row(row | {"expected_calls": case["expected_calls"], "ordered": case["ordered"]})

    result = evaluate_reply(item, reply_of(case))

    assert result.score is not None
    for axis in ("function_selection", "argument_accuracy", "arabic_preservation"):
        assert round(getattr(result.score, axis), 6) == case[axis], axis
    if case["cause"]:
        assert {loss.cause for loss in result.losses} == {case["cause"]}
    assert sum(loss.points for loss in result.losses) == pytest.approx(1 - result.score.total, abs=1e-9)


def offered(case: dict[str, Any]) -> list[str]:
    """The tools that the model had: those that are expected."""
    return [call["function"] for call in case["expected_calls"]]


def test_there_are_shared_cases(shared):
    """Every line of both files is a case with an id of its own."""
    for name, least in (("arguments", 44), ("replies", 19)):
        lines = (shared / "cases" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        assert len({json.loads(line)["id"] for line in lines}) == len(lines) >= least
