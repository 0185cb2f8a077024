"""Every ruling, by a table of cases."""

from __future__ import annotations

import pytest

from arabic_agent_eval.rules import RULES
from arabic_agent_eval.scoring import score_calls, score_function_call
from tests.conftest import CASES, read_cases


@pytest.mark.parametrize("case", read_cases("rulings"))
def test_rulings(case):
    """A case of a ruling has the axes, and where it says so the total, that the ruling gives it."""
    score = score_calls(
        case["expected"],
        case["actual"],
        category=case.get("category", "simple_function_calling"),
        ordered=case.get("ordered", True),
        rules=RULES[case.get("rules", "canonical")],
    )

    axes = [score.function_selection, score.argument_accuracy, score.arabic_preservation]
    assert case["axes"] == pytest.approx(axes, abs=1e-12)
    if "total" in case:
        assert case["total"] == pytest.approx(score.total, abs=1e-12)


@pytest.mark.parametrize("case", read_cases("rulings"))
def test_one_call_agrees(case):
    """The function of one call gives the same three numbers as the item that holds just that call."""
    expected, actual = case["expected"], case["actual"]
    if case.get("rules") or len(expected) != 1 or len(actual) != 1 or "accept" in expected[0]:
        pytest.skip("not one canonical call against one")
    if not isinstance(actual[0], dict) or not isinstance(actual[0]["function"], str):
        pytest.skip("the call cannot be read")

    axes = score_function_call(
        expected[0]["function"], actual[0]["function"], expected[0]["arguments"], actual[0].get("arguments")
    )

    assert tuple(case["axes"]) == pytest.approx(axes, abs=1e-12)


def test_every_ruling_has_cases():
    """The table covers the rulings that concern one item: 1 to 16, 19, and the older rules."""
    text = (CASES / "rulings.json").read_text(encoding="utf-8")

    for ruling in [*range(1, 17), 19, '"v0.1"']:
        assert f'"ruling": {ruling},' in text, ruling
