"""Scores, aggregation, and the door by which every reply is judged."""

from __future__ import annotations

import dataclasses
from types import MappingProxyType

import numpy as np
import pytest

from arabic_agent_eval.errors import DataError, UnknownCategory, UsageError
from arabic_agent_eval.formats import Reply, read_reply
from arabic_agent_eval.items import AnswerKey, ExpectedCall, Item
from arabic_agent_eval.rules import CANONICAL, COMPOSITIONS, RULES, STANDARD, V0_1, composition
from arabic_agent_eval.scoring import (
    CategoryScore,
    Grader,
    Result,
    Score,
    compute_overall_score,
    evaluate_reply,
    grade,
    score_calls,
    score_function_call,
)
from arabic_agent_eval.tools import Call

ITEM = Item("7", "dialect_handling", [ExpectedCall("get_weather", {"city": "جدة"})], "gulf")


def score(total: float, category: str = "multi_step", item_id: str = "1") -> Score:
    """A score with this total."""
    return Score(item_id, category, total, total, total)


# --- one call ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected_fn", "actual_fn", "expected_args", "actual_args", "axes"),
    [
        ("f", "f", {"city": "جدة"}, {"city": "جدة"}, (1.0, 1.0, 1.0)),
        ("f", "f", {"city": "جدة"}, {"city": "جده"}, (1.0, 0.9, 1.0)),
        ("f", "f", {"city": "جدة"}, {"city": "Jeddah"}, (1.0, 0.0, 0.0)),
        ("f", "g", {"city": "جدة"}, {"city": "جدة"}, (0.0, 1.0, 1.0)),
        ("f", "F", {}, {}, (0.0, 1.0, 1.0)),
        ("*", "g", {"city": "جدة"}, {"city": "جدة"}, (1.0, 1.0, 1.0)),
        ("*", None, {}, {}, (0.0, 0.0, 0.0)),
        ("f", None, {"city": "جدة"}, {"city": "جدة"}, (0.0, 0.0, 0.0)),
        (None, None, None, None, (1.0, 1.0, 1.0)),
        (None, "f", None, {}, (0.0, 0.0, 0.0)),
        ("f", "f", None, None, (1.0, 1.0, 1.0)),
        ("f", "f", None, {"x": 1}, (1.0, 1.0, 1.0)),
        ("f", "f", {"x": None}, {}, (1.0, 1.0, 1.0)),
        ("f", "f", {"x": "*"}, {"x": 0}, (1.0, 1.0, 1.0)),
        ("f", "f", {"x": "*"}, {"x": None}, (1.0, 0.0, 1.0)),
        ("f", "f", {"x": 1}, {"x": True}, (1.0, 0.0, 1.0)),
        ("f", "f", {"x": True}, {"x": 1}, (1.0, 0.0, 1.0)),
        ("f", "f", {"x": 2}, {"x": 2.0}, (1.0, 1.0, 1.0)),
        ("f", "f", {"x": "2"}, {"x": 2}, (1.0, 1.0, 1.0)),
        ("f", "f", {"x": ["جدة"]}, {"x": ["جده"]}, (1.0, 0.9, 1.0)),
        ("f", "f", {"city": "جدة"}, '{"city": "جدة"}', (1.0, 1.0, 1.0)),
        ("f", "f", {"city": "جدة"}, '"{}"', (1.0, 0.0, 0.0)),
        ("f", "f", {"city": "VIP"}, "{", (1.0, 0.0, 1.0)),
        ("f", "f", {"city": "جدة"}, "", (1.0, 0.0, 0.0)),
        ("f", "f", MappingProxyType({"city": "جدة"}), MappingProxyType({"city": "جدة"}), (1.0, 1.0, 1.0)),
        ("f", 5, {"city": "جدة"}, {"city": "جدة"}, (0.0, 0.0, 0.0)),
        ("*", 5, {"city": "جدة"}, {"city": "جدة"}, (0.0, 0.0, 0.0)),
        ("*", ["f"], {"city": "جدة"}, {"city": "جدة"}, (0.0, 0.0, 0.0)),
    ],
)
def test_score_function_call(expected_fn, actual_fn, expected_args, actual_args, axes):
    """The three numbers of one call, by position as the specification writes them."""
    assert score_function_call(expected_fn, actual_fn, expected_args, actual_args) == pytest.approx(axes, abs=1e-12)


def nested(depth: int) -> list:
    """Lists inside one another."""
    value: list = []
    for _ in range(depth - 1):
        value = [value]
    return value


@pytest.mark.parametrize(("depth", "argument"), [(16, 1.0), (17, 1.0), (63, 1.0), (64, 0.0), (100_000, 0.0)])
def test_arguments_that_nest_too_deep(depth, argument):
    """Objects of more than 64 levels are malformed, as JSON text and as Python's own (ruling 13)."""
    expected = {"x": nested(min(depth, 63))}

    for wanted in (expected, {"x": "*"}):
        assert score_function_call("f", "f", wanted, {"x": nested(depth)}) == (1.0, argument, 1.0)
    text = '{"x": ' + "[" * depth + "]" * depth + "}"
    assert score_function_call("f", "f", expected, text) == (1.0, argument, 1.0)


@pytest.mark.parametrize(
    ("expected", "actual", "argument"),
    [
        ((1,), (True,), 0.0),
        ([1], [True], 0.0),
        ({"n": 0}, {"n": False}, 0.0),
        ([1, 2], np.array([1, 2]), 0.0),
        ("[1 2]", np.array([1, 2]), 1.0),
        (2, np.float64(2), 1.0),
        ("جدة", np.str_("جدة"), 1.0),
        ({"a": (1, "ب")}, {"a": [1, "ب"]}, 1.0),
    ],
)
def test_a_caller_s_own_objects(expected, actual, argument):
    """Python's tuples and numpy's values are compared by the rulings, not by Python's equality."""
    assert score_function_call("f", "f", {"x": expected}, {"x": actual})[1] == argument
    item = score_calls([{"function": "f", "arguments": {"x": expected}}], [Call("f", {"x": actual})], category="x")
    assert item.argument_accuracy == argument


@pytest.mark.parametrize(("expected_fn", "expected_args"), [(5, {}), ("f", []), ("f", "{}"), (5, {"x": 1})])
def test_a_caller_s_mistake_is_an_error(expected_fn, expected_args):
    """What is expected must be a call: anything else is refused, whatever the model did."""
    with pytest.raises(DataError):
        score_function_call(expected_fn, expected_fn, expected_args, {"x": 1})


# --- scores --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("category", "total"),
    [
        ("simple_function_calling", 0.40 * 1 + 0.35 * 0.5 + 0.25 * 0.2),
        ("error_recovery", 0.30 * 1 + 0.20 * 0.5 + 0.20 * 0.2 + 0.30 * 1),
        ("dialect_handling", 0.30 * 1 + 0.20 * 0.5 + 0.20 * 0.2 + 0.30 * 1),
        ("a category of one's own", 0.40 * 1 + 0.35 * 0.5 + 0.25 * 0.2),
    ],
)
def test_total(category, total):
    """The total composes the axes as the specification does for the category."""
    assert Score("1", category, 1.0, 0.5, 0.2).total == pytest.approx(total, abs=1e-15)


def test_weights_add_up():
    """Every composition sums to 1, so that a perfect item scores 1."""
    for weights in (STANDARD, *(weights for weights, _ in COMPOSITIONS.values())):
        assert sum(weights) == pytest.approx(1.0, abs=1e-15)
    assert composition("anything") == (STANDARD, None)


def test_own_axis_follows_function_selection():
    """Ruling 16: the category's own axis equals function selection unless it is given, and is absent elsewhere."""
    dialect = Score("1", "dialect_handling", 0.5, 1.0, 1.0)
    assert (dialect.dialect_understanding, dialect.error_handling) == (0.5, None)
    recovery = Score("1", "error_recovery", 0.5, 1.0, 1.0)
    assert (recovery.dialect_understanding, recovery.error_handling) == (None, 0.5)
    given = Score("1", "dialect_handling", 0.5, 1.0, 1.0, dialect_understanding=1.0)
    assert given.total == pytest.approx(0.3 * 0.5 + 0.2 + 0.2 + 0.3)
    plain = Score("1", "multi_step", 0.5, 1.0)
    assert plain.axes == {
        "function_selection": 0.5,
        "argument_accuracy": 1.0,
        "arabic_preservation": 0.0,
        "dialect_understanding": None,
        "error_handling": None,
    }


def test_scores_are_frozen():
    """A score cannot be changed after it is made."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        score(1.0).function_selection = 0.0
    assert score(1.0) == score(1.0)


def test_exact():
    """A score is exact when every axis that it has is 1, a rounding error aside."""
    assert score(1.0).exact
    assert score(1.0 - 1e-13, "dialect_handling").exact
    assert not score(1.0 - 1e-9).exact
    assert not Score("1", "dialect_handling", 1.0, 1.0, 1.0, dialect_understanding=0.0).exact


def test_score_calls_keeps_what_it_was_told():
    """Item and category stand in the score; calls may be mappings, calls or expected calls."""
    expected, actual = ExpectedCall("f", {"x": "جدة"}), {"function": "f", "arguments": '{"x": "جده"}'}

    found = score_calls([expected], [actual], category="error_recovery", item_id="7")

    assert (found.item_id, found.category, found.error_handling) == ("7", "error_recovery", 1.0)
    assert found == score_calls(
        [Call("f", {"x": "جدة"})], [Call("f", {"x": "جده"})], category="error_recovery", item_id="7"
    )
    with pytest.raises(DataError):
        score_calls([{"function": None}], [], category="x")


# --- aggregation ---------------------------------------------------------------------------------------------


def test_category_score():
    """A category has the means of its scores, on the axes that they have."""
    found = CategoryScore(
        "dialect_handling", [Score("1", "dialect_handling", 1.0, 0.5, 0.2), score(0.5, "dialect_handling")]
    )

    assert found.count == 2
    assert found.weight == 0.15
    assert found.avg_total == pytest.approx((0.74 + 0.5) / 2)
    assert (found.avg_function_selection, found.avg_argument_accuracy) == (0.75, 0.5)
    assert found.avg_arabic_preservation == pytest.approx(0.35)
    assert (found.avg_dialect_understanding, found.avg_error_handling) == (0.75, None)
    assert "dialect_handling" in repr(found)
    assert "avg_total=0.62" in repr(found)


def test_empty_category():
    """A category without scores has zeros for numbers and None for the axes that only some have."""
    empty = CategoryScore("multi_step", iter(()))

    assert (empty.count, empty.avg_total, empty.avg_function_selection) == (0, 0.0, 0.0)
    assert (empty.avg_argument_accuracy, empty.avg_arabic_preservation) == (0.0, 0.0)
    assert (empty.avg_dialect_understanding, empty.avg_error_handling) == (None, None)


@pytest.mark.parametrize("weight", [-0.1, float("nan"), float("inf"), -1])
def test_weights_must_make_sense(weight):
    """A weight is a finite number of at least 0."""
    with pytest.raises(UsageError, match="finite number of at least 0"):
        CategoryScore("multi_step", [], weight)


def test_unknown_category_needs_a_weight_only_where_it_counts():
    """Ruling 19: another category can be made and averaged; its weight, and the overall score, are an error."""
    own = CategoryScore("my_own", [score(0.5, "my_own")])

    assert own.avg_total == pytest.approx(0.5)
    with pytest.raises(UnknownCategory, match="'my_own' has no declared weight"):
        _ = own.weight
    with pytest.raises(UnknownCategory):
        compute_overall_score([CategoryScore("multi_step", [score(1.0)]), own])
    assert CategoryScore("my_own", [], 0).weight == 0
    assert CategoryScore("multi_step", [], 0.7).weight == 0.7


def test_overall_score():
    """Only categories with scores count, by their weights; without any the score is 0 (ruling 18)."""
    full, half = (
        CategoryScore("multi_step", [score(1.0)]),
        CategoryScore("error_recovery", [score(0.5, "error_recovery")]),
    )
    empty = CategoryScore("tool_selection", [])

    assert compute_overall_score([full, half, empty]) == pytest.approx((0.2 * 1 + 0.1 * 0.5) / 0.3)
    assert compute_overall_score(iter([full, empty])) == pytest.approx(1.0)
    assert compute_overall_score([]) == compute_overall_score([empty]) == 0.0
    assert compute_overall_score([CategoryScore("my_own", []), full]) == pytest.approx(1.0)
    declared = CategoryScore("my_own", [score(0.0, "my_own")], 0.6)
    assert compute_overall_score([declared, full]) == pytest.approx(0.25)
    assert compute_overall_score([CategoryScore("my_own", [score(1.0, "my_own")], 0)]) == 0.0


@pytest.mark.parametrize(
    ("value", "letter"),
    [
        (1.0, "A"),
        (0.9, "A"),
        (0.9 - 1e-13, "A"),
        (0.9 - 1e-9, "B"),
        (0.8, "B"),
        (0.8 - 1e-13, "B"),
        (0.8 - 1e-9, "C"),
        (0.7, "C"),
        (0.7 - 1e-9, "D"),
        (0.6, "D"),
        (0.6 - 1e-13, "D"),
        (0.6 - 1e-9, "F"),
        (0.0, "F"),
    ],
)
def test_letters(value, letter):
    """Ruling 20: the bounds belong to the better letter, also when rounding has left them a hair below."""
    assert grade(value) == letter


def test_mean_of_equal_scores_keeps_its_letter():
    """Many scores of 0.9 average to an A, whatever the rounding of their sum."""
    for count in range(1, 60):
        assert grade(compute_overall_score([CategoryScore("multi_step", [score(0.9)] * count)])) == "A"


# --- the door ------------------------------------------------------------------------------------------------


def test_result():
    """A result says which item and asking, the axes, the causes, and the calls that were read."""
    reply = read_reply({"id": "7", "epoch": 2, "calls": [{"function": "get_weather", "arguments": {"city": "جده"}}]})

    result = evaluate_reply(ITEM, reply)

    assert (result.item_id, result.category, result.dialect, result.epoch) == ("7", "dialect_handling", "gulf", 2)
    assert (result.status, result.reason, result.arabic_applicable) == ("scored", None, True)
    assert result.score == Score("7", "dialect_handling", 1.0, 0.9, 1.0)
    assert [(loss.cause, loss.axis) for loss in result.losses] == [("spelling", "argument_accuracy")]
    assert result.calls == (Call("get_weather", {"city": "جده"}),)
    assert evaluate_reply(ITEM, reply, causes=False).losses == ()
    assert evaluate_reply(ITEM, reply, causes=False).score == result.score


@pytest.mark.parametrize("value", ["جدة", "Jeddah"])
def test_an_item_without_an_answer_is_judged_as_a_failed_reply(value):
    """Both say the same of the item, what was expected included; the reason is the caller's."""
    item = Item("7", "dialect_handling", [ExpectedCall("get_weather", {"city": value})], "gulf")

    failed = evaluate_reply(item, Reply("7", "failure", None, 1, "no reply"))
    assert Result.unscored(item, 1, "no reply") == failed
    assert failed.arabic_applicable is (value == "جدة")


def test_failure_is_unscored():
    """Ruling 17: where the provider failed there is no score and no loss; v0.1 counted nothing for it."""
    failed = Reply("7", "failure", None, 1, "The request failed: timeout")

    result = evaluate_reply(ITEM, failed)
    assert (result.status, result.score, result.losses, result.calls) == ("unscored", None, (), ())
    assert (result.reason, result.epoch, result.arabic_applicable) == ("The request failed: timeout", 1, True)

    older = evaluate_reply(ITEM, failed, rules=V0_1)
    assert older.score is not None
    assert (older.status, older.score.total, older.reason) == ("scored", 0.0, None)
    assert {loss.cause for loss in older.losses} == {"no_call"}


def test_a_grader_serves_many_replies():
    """One compiled item judges each reply as if it were the first."""
    grader = Grader(ITEM)
    rows = [
        {"id": "7", "calls": [{"function": "get_weather", "arguments": {"city": city}}]}
        for city in ("جدة", "مكة", "جدة")
    ]

    totals = [grader.evaluate(read_reply(row)).score for row in rows]

    assert totals == [evaluate_reply(ITEM, read_reply(row)).score for row in rows]
    assert grader.arabic


def test_offered_tools_matter_for_plain_text():
    """JSON in plain text is a call where it names an offered tool; an answer key alone offers none."""
    text = '{"name": "get_weather", "arguments": {"city": "جدة"}}'
    item = Item("7", "multi_step", ITEM.expected_calls, available_functions=["get_weather"])
    reply = read_reply({"id": "7", "text": text})

    assert Grader(item).offered == {"get_weather"}
    assert Grader(item).evaluate(reply).calls == (Call("get_weather", {"city": "جدة"}),)
    assert Grader(AnswerKey("7", "multi_step", ITEM.expected_calls)).offered == frozenset()
    other = Item("7", "multi_step", ITEM.expected_calls, available_functions=["search"])
    assert Grader(other).evaluate(reply).calls == ()


def test_rules_have_names():
    """Both rule sets are found by their names, and say their version."""
    assert RULES == {"canonical": CANONICAL, "v0.1": V0_1}
    assert CANONICAL.tag == f"canonical-{CANONICAL.version}"
    assert V0_1.tag == f"v0.1-{V0_1.version}"


def test_what_is_remembered_is_a_copy():
    """A caller may change its own arguments after they were right; they are compared anew."""
    grader = Grader(Item("w", "multi_step", [ExpectedCall("f", {"city": "جدة", "n": [1]})]))
    args = {"city": "جدة", "n": [1]}
    call = {"id": "w", "calls": [{"function": "f", "arguments": args}]}
    assert grader.evaluate(read_reply(call)).score.total == 1.0

    args["n"][0] = True
    assert grader.evaluate(read_reply(call)).score.argument_accuracy == 0.5
    args["n"], args["city"] = [1], "دبي"
    assert grader.evaluate(read_reply(call)).score.argument_accuracy == 0.5


@pytest.mark.parametrize("arguments", [{"a": 1}, '{"a": 1}'])
@pytest.mark.parametrize("wanted", ["f", "*"])
def test_an_empty_name_is_no_call(wanted, arguments):
    """A call without a name cannot be read, however its arguments are written."""
    assert score_function_call(wanted, "", {"a": 1}, arguments) == (0.0, 0.0, 0.0)


def test_nulls_are_no_surplus_arguments():
    """Null is as absent (ruling 1), also where the older rules count arguments that nobody expected."""
    expected, actual = [{"function": "f", "arguments": {"a": None}}], [{"function": "f", "arguments": {"a": None}}]
    assert score_calls(expected, actual, category="multi_step", rules=V0_1).total == 1.0


def test_a_grader_wants_items_and_replies():
    """What is neither is refused in a sentence, and a reply to another item is not graded by mistake."""
    item = Item("w", "multi_step", [ExpectedCall("f")], available_functions=["f"])
    grader = Grader(item)
    assert grader.evaluate('<tool_call>{"name": "f", "arguments": {}}</tool_call>').score.total == 1.0
    with pytest.raises(UsageError, match="not 'w'"):
        grader.evaluate(read_reply({"id": "other", "text": ""}))
    with pytest.raises(UsageError, match="a reply is"):
        grader.evaluate(5)
    with pytest.raises(UsageError, match="made from an Item"):
        Grader("w")
