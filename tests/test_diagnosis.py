"""Every lost point has one cause, and the points add up."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import PurePath

import pytest

from arabic_agent_eval.diagnosis import CALL_CAUSES, Loss, diagnose
from arabic_agent_eval.differences import CAUSES
from arabic_agent_eval.grading import Expectation, expected_call
from arabic_agent_eval.rules import AXES, CANONICAL, V0_1, Rules
from arabic_agent_eval.scoring import score_calls
from arabic_agent_eval.tools import Call
from tests.conftest import read_cases


def losses_of(
    expected: list, actual: list, category: str, *, ordered: bool = True, rules: Rules = CANONICAL
) -> tuple[Loss, ...]:
    """The losses of one item."""
    expectation = Expectation(map(expected_call, expected), category=category, ordered=ordered, rules=rules)
    calls = [Call.of(call) for call in actual]
    return diagnose(expectation.judge(calls), expectation, calls)


def call(function: str = "get_weather", **arguments: object) -> dict:
    """A call."""
    return {"function": function, "arguments": arguments}


@pytest.mark.parametrize("case", read_cases("losses"))
def test_losses(case):
    """A case loses just the points that it names, for those causes, on those axes, at those places."""
    found = losses_of(case["expected"], case["actual"], case["category"], ordered=case["ordered"])

    assert [[*loss[:2], *loss[3:]] for loss in case["losses"]] == [
        [loss.cause, loss.axis, loss.call, loss.argument] for loss in found
    ], case["why"]
    assert [loss[2] for loss in case["losses"]] == pytest.approx([loss.points for loss in found], abs=1e-11)


@pytest.mark.parametrize("case", read_cases("losses"))
def test_losses_of_the_table_add_up(case):
    """In the table itself the points of a case sum to 1 − total."""
    score = score_calls(case["expected"], case["actual"], category=case["category"], ordered=case["ordered"])

    assert math.fsum(loss[2] for loss in case["losses"]) == pytest.approx(1 - score.total, abs=1e-9)


def test_table_covers_every_cause_of_a_call():
    """Each of the eight causes that concern a whole call has at least two cases, and each axis loses somewhere."""
    cases = [parameter.values[0] for parameter in read_cases("losses")]

    causes = Counter(cause for case in cases for cause in {loss[0] for loss in case["losses"]})
    assert all(causes[cause] >= 2 for cause in CALL_CAUSES)
    assert {loss[1] for case in cases for loss in case["losses"]} == set(AXES)
    assert len({case["id"] for case in cases}) == len(cases)
    assert not set(CALL_CAUSES) & set(CAUSES)


def test_a_loss_shows_what_was_wrong():
    """A loss holds the right value and what came instead: names for a call, values for an argument, raw text else."""
    (missing,) = [loss for loss in losses_of([call(city="جدة")], [], "x") if loss.axis == "function_selection"]
    assert (missing.expected, missing.actual, missing.count) == ("get_weather", None, 1)

    wrong, *_ = losses_of([call(city="جدة")], [call("search", city="جدة")], "x")
    assert (wrong.expected, wrong.actual) == ("get_weather", "search")

    spelled, *_ = losses_of([call(city="جدة")], [call(city="جده")], "x")
    assert (spelled.expected, spelled.actual) == ("جدة", "جده")

    unread, *_ = losses_of([call(city="جدة")], ["get_weather(جدة)"], "x")
    assert (unread.cause, unread.actual) == ("malformed_call", "get_weather(جدة)")

    torn, *_ = losses_of([call(city="جدة")], [{"function": "get_weather", "arguments": '{"city"'}], "x")
    assert (torn.cause, torn.actual) == ("malformed_arguments", '{"city"')


def test_surplus_calls_are_counted():
    """However many calls are too many, they are one loss an axis, which says how many and shows the first."""
    found = losses_of([call(city="جدة")], [call(city="جدة"), "?", *[call()] * 998], "dialect_handling")

    assert [(loss.cause, loss.count, loss.call, loss.actual) for loss in found] == [("extra_call", 999, 1, "?")] * 4
    assert math.fsum(loss.points for loss in found) == pytest.approx(0.999, abs=1e-12)


def test_older_rules_have_causes_too():
    """Under v0.1 surplus arguments are a wrong value, abstaining is no call, and a missing value keeps its Arabic."""
    (surplus,) = losses_of([call()], [call(city="جدة")], "x", rules=V0_1)
    assert (surplus.cause, surplus.axis, surplus.points) == ("wrong_value", "argument_accuracy", pytest.approx(0.175))
    assert surplus.actual == {"city": "جدة"}

    abstained = losses_of([], [], "x", rules=V0_1)
    assert [(loss.cause, loss.points, loss.call) for loss in abstained] == [
        ("no_call", 0.40, None),
        ("no_call", 0.35, None),
        ("no_call", 0.25, None),
    ]

    (missing,) = losses_of([call(city="جدة")], [call()], "x", rules=V0_1)
    assert (missing.cause, missing.axis) == ("missing", "argument_accuracy")


def test_what_is_right_can_still_lose_its_script():
    """A caller's own object that reads as the right text is no text, and so loses its Arabic and nothing else."""
    (loss,) = losses_of([call(city="جدة")], [call(city=PurePath("جدة"))], "x")

    assert (loss.axis, loss.points, loss.argument) == ("arabic_preservation", 0.25, "city")


def test_order_explains_only_right_calls():
    """A call that only resembles another expected one is not said to be in the wrong place."""
    expected = [call("a", x="1", y="1"), call("b", x="2", y="1")]

    found = losses_of(expected, [call("b", x="3", y="1"), call("a", x="4", y="1")], "x")

    assert {loss.cause for loss in found} == {"wrong_function", "wrong_value"}


def test_one_call_is_home_to_one_place():
    """One right call in another place explains one slot, not every slot that expects the same."""
    found = losses_of([call("a"), call("b"), call("b")], [call("b"), call("c"), call("d")], "x")

    assert [loss.cause for loss in found if loss.axis == "function_selection"] == [
        "missing_call",
        "wrong_order",
        "wrong_function",
    ]


def test_a_wrong_call_where_order_does_not_matter():
    """Without order no loss is blamed on it."""
    found = losses_of([call("a"), call("b")], [call("b"), call("c")], "x", ordered=False)

    assert {loss.cause for loss in found} == {"wrong_function"}


def test_a_hundred_displaced_calls_are_not_searched_for():
    """Where very many slots are flawed, each keeps its own cause: order is looked for among 64 calls at most."""
    expected = [call(str(place)) for place in range(65)]
    actual = expected[1:] + expected[:1]

    assert {loss.cause for loss in losses_of(expected, actual, "x")} == {"wrong_function"}
    assert {loss.cause for loss in losses_of(expected[:64], actual[:63] + expected[:1], "x")} == {"wrong_order"}


def test_thousands_of_calls_are_explained_at_once():
    """Explaining is not quadratic in the number of calls."""
    expected = [call(city=f"مدينة {place}") for place in range(2000)]
    actual = [call(city=f"مدينة {place + 1}") for place in range(4000)]

    found = losses_of(expected, actual, "multi_step")
    score = score_calls(expected, actual, category="multi_step")
    assert math.fsum(loss.points for loss in found) == pytest.approx(1 - score.total, abs=1e-9)
