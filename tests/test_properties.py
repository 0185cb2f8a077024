"""Laws of the grader that hold for every input, under both sets of rules."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from arabic_agent_eval.diagnosis import CALL_CAUSES, diagnose
from arabic_agent_eval.differences import CAUSES
from arabic_agent_eval.formats import read_reply
from arabic_agent_eval.grading import Expectation, expected_call
from arabic_agent_eval.items import Item, item_from_row
from arabic_agent_eval.rules import AXES, CANONICAL, RULES, composition
from arabic_agent_eval.scoring import Score, evaluate_reply, normalize_arabic, score_calls, score_function_call
from arabic_agent_eval.text import has_arabic
from arabic_agent_eval.tools import Call
from tests.strategies import (
    answered,
    arguments,
    calls,
    categories,
    json_values,
    names,
    python_objects,
    related,
    sent_calls,
)

rule_sets = st.sampled_from(list(RULES.values()))
EXACT = 1e-9
UNREADABLE = "not a call"


def axes(score: Score) -> list[float]:
    """The axes that a score has, and its total."""
    return [value for value in (*score.axes.values(), score.total) if value is not None]


def assert_never_higher(after: Score, before: Score) -> None:
    """No axis and no total of the one exceeds that of the other."""
    assert all(new <= old + EXACT for new, old in zip(axes(after), axes(before), strict=True)), (after, before)


# --- text ----------------------------------------------------------------------------------------------------


@settings(max_examples=500)
@given(st.text(st.characters(), max_size=30))
def test_normalising_twice_is_normalising_once(text):
    """The normal form of a normal form is itself, for any text, lone surrogates included (ruling 4)."""
    once = normalize_arabic(text)

    assert normalize_arabic(once) == once
    assert once == once.strip()
    assert has_arabic(once) or once == once.lower()


@given(st.text("اأإآىيةهـ\u0640 Aaé", max_size=10))
def test_spellings_of_one_normal_form_are_worth_a_tenth_less(text):
    """A text and its normal form are the same value or differ by a spelling: never less than 0.9, if any is left."""
    normal = normalize_arabic(text)

    _, rung, _ = score_function_call("f", "f", {"a": text}, {"a": normal})
    assert rung in ({1.0, 0.9} if normal or not text.strip() else {0.0})


# --- bounds, perfection, identity ----------------------------------------------------------------------------


@given(related(), categories, st.booleans(), rule_sets)
def test_every_number_lies_between_0_and_1(pair, category, ordered, rules):
    """Every axis and total is in [0, 1], and the total is the weighted sum of the axes."""
    score = score_calls(*pair, category=category, ordered=ordered, rules=rules)

    assert all(0.0 <= value <= 1.0 + EXACT for value in axes(score))
    (function, argument, arabic, own), _ = composition(category)
    parts = [(function + own) * score.function_selection, argument * score.argument_accuracy]
    assert score.total == pytest.approx(math.fsum([*parts, arabic * score.arabic_preservation]), abs=EXACT)


@given(answered(), categories, st.booleans(), st.randoms(use_true_random=False))
def test_a_perfect_answer_scores_1(pair, category, ordered, random):
    """The right calls, with accepted values, extra keys, nulls and anything for a wildcard, score exactly 1."""
    expected, actual = pair
    if not ordered:
        random.shuffle(actual)

    score = score_calls(expected, actual, category=category, ordered=ordered)
    assert score.exact
    assert score.total == pytest.approx(1.0, abs=EXACT)


@given(related(), categories, st.booleans(), rule_sets)
def test_grading_twice_is_grading_once(pair, category, ordered, rules):
    """The same input has the same score, from a fresh item and from one that has seen it before."""
    expected, actual = pair
    first = score_calls(expected, actual, category=category, ordered=ordered, rules=rules)
    assert score_calls(expected, actual, category=category, ordered=ordered, rules=rules) == first

    item = Expectation(map(expected_call, expected), category=category, ordered=ordered, rules=rules)
    made, right = tuple(map(Call.of, actual)), tuple(map(Call.of, expected))
    for calls_made in (made, right, made, list(made)):
        verdict = item.judge(calls_made)
    assert (verdict.function, verdict.argument, verdict.arabic) == (
        first.function_selection,
        first.argument_accuracy,
        first.arabic_preservation,
    )


@given(related(), st.booleans(), rule_sets)
def test_evidence_changes_no_number(pair, ordered, rules):
    """The numbers of a verdict are the same with and without its evidence."""
    expected, actual = pair
    made = tuple(map(Call.of, actual))
    verdicts = [
        Expectation(map(expected_call, expected), category="multi_step", ordered=ordered, rules=rules).judge(
            made, evidence=evidence
        )
        for evidence in (True, False)
    ]

    first, second = ((found.function, found.argument, found.arabic, found.slots, found.called) for found in verdicts)
    assert first == second


# --- what makes a score fall ---------------------------------------------------------------------------------


@given(related(), calls, categories, rule_sets)
def test_a_surplus_call_never_raises_a_score(pair, call, category, rules):
    """One more call than expected, at the end of an ordered answer, raises no axis and no total."""
    expected, actual = pair
    assume(len(actual) >= len(expected))

    before = score_calls(expected, actual, category=category, rules=rules)
    after = score_calls(expected, [*actual, call], category=category, rules=rules)
    assert_never_higher(after, before)


@given(related(), categories, rule_sets, st.integers(0, 8))
def test_a_surplus_call_never_raises_a_score_without_order(pair, category, rules, place):
    """Where order is free, a surplus call that answers nothing never raises the total, wherever it stands.

    One that answers an expected call better than those before takes its place: that is not surplus.
    """
    expected, actual = pair
    assume(len(actual) >= len(expected))

    before = score_calls(expected, actual, category=category, ordered=False, rules=rules)
    longer = [*actual[:place], UNREADABLE, *actual[place:]]
    after = score_calls(expected, longer, category=category, ordered=False, rules=rules)
    assert after.total <= before.total + EXACT
    slots = max(len(actual), 1)
    if expected:
        assert after.total == pytest.approx(before.total * slots / (slots + 1), abs=1e-8)


@given(answered(), calls, categories, st.booleans(), st.integers(0, 5))
def test_a_surplus_call_beside_a_perfect_answer_costs_its_share(pair, call, category, ordered, place):
    """A perfect answer of n calls and any further one score n / (n + 1) on every axis."""
    expected, actual = pair
    place = len(actual) if ordered else place
    longer = [*actual[:place], call, *actual[place:]]

    score = score_calls(expected, longer, category=category, ordered=ordered)

    share = len(expected) / (len(expected) + 1)
    assert axes(score) == pytest.approx([share] * len(axes(score)), abs=1e-8)


@given(answered(), categories, st.data())
def test_dropping_a_right_call_never_raises_a_score(pair, category, data):
    """A right call that was not made costs its share: the last one in order, any one where order is free."""
    expected, actual = pair
    assume(actual)

    ordered = score_calls(expected, actual[:-1], category=category)
    place = data.draw(st.integers(0, len(actual) - 1))
    free = score_calls(expected, actual[:place] + actual[place + 1 :], category=category, ordered=False)

    share = 1 - 1 / len(expected)
    for score in (ordered, free):
        assert axes(score) == pytest.approx([share] * len(axes(score)), abs=1e-8)


@given(related(), categories, st.data())
def test_dropping_any_call_never_raises_a_score(pair, category, data):
    """Where no call is surplus, one call fewer never raises a score: the last in order, any where order is free."""
    expected, actual = pair
    actual = actual[: len(expected)]
    assume(actual)

    assert_never_higher(
        score_calls(expected, actual[:-1], category=category), score_calls(expected, actual, category=category)
    )
    place = data.draw(st.integers(0, len(actual) - 1))
    fewer = score_calls(expected, actual[:place] + actual[place + 1 :], category=category, ordered=False)
    assert fewer.total <= score_calls(expected, actual, category=category, ordered=False).total + 1e-8


@given(related(), categories, st.data())
def test_mending_a_call_never_lowers_a_score(pair, category, data):
    """A call that is replaced by the expected one raises the total or leaves it, in order and where order is free."""
    expected, actual = pair
    assume(expected and actual)
    place = data.draw(st.integers(0, min(len(expected), len(actual)) - 1))
    mended = [*actual[:place], expected[place], *actual[place + 1 :]]
    # The expected call is a right answer to itself only without wildcards, which stand for other things.
    assume(expected[place]["function"] != "*")

    before, after = (score_calls(expected, made, category=category) for made in (actual, mended))
    assert_never_higher(before, after)


@given(related(), categories, rule_sets, st.randoms(use_true_random=False))
def test_order_is_free_where_it_is_free(pair, category, rules, random):
    """Without order, the order of the calls that were made changes nothing in the total."""
    expected, actual = pair
    before = score_calls(expected, actual, category=category, ordered=False, rules=rules)

    random.shuffle(actual)
    assert score_calls(expected, actual, category=category, ordered=False, rules=rules).total == pytest.approx(
        before.total, abs=1e-8
    )


@given(related(), categories, rule_sets)
def test_free_order_is_never_worse(pair, category, rules):
    """The best assignment is at least as good as the one by place."""
    by_place, best = (score_calls(*pair, category=category, ordered=ordered, rules=rules) for ordered in (True, False))

    assert best.total >= by_place.total - 1e-8


# --- losses --------------------------------------------------------------------------------------------------


@given(related(), st.lists(sent_calls, max_size=2), categories, st.booleans(), rule_sets)
def test_losses_add_up(pair, more, category, ordered, rules):
    """The points lost are positive, for known causes, on axes of the category, and sum to 1 − total."""
    expected, actual = pair
    item = Expectation(map(expected_call, expected), category=category, ordered=ordered, rules=rules)
    made = tuple(map(Call.of, [*actual, *more]))
    verdict = item.judge(made)
    total = Score("", category, verdict.function, verdict.argument, verdict.arabic).total

    losses = diagnose(verdict, item, made)

    assert math.fsum(loss.points for loss in losses) == pytest.approx(1 - total, abs=EXACT)
    _, own = composition(category)
    for loss in losses:
        assert loss.points > 0
        assert loss.cause in (*CALL_CAUSES, *CAUSES)
        assert loss.axis in {*AXES[:3], own}
        assert loss.count >= 1


@given(related(), st.lists(sent_calls, max_size=2), categories, st.booleans(), rule_sets)
def test_losses_of_one_axis_add_up(pair, more, category, ordered, rules):
    """On each axis alone the points lost sum to what the axis lacks, times its weight."""
    expected, actual = pair
    item = Item("1", category, list(map(expected_call, expected)), ordered=ordered)
    made = [*actual, *more]
    result = evaluate_reply(item, read_reply({"id": "1", "calls": made}), rules=rules)

    assert result.score is not None
    (function, argument, arabic, own), own_axis = composition(category)
    weights = dict(zip(AXES[:3], (function, argument, arabic), strict=True)) | ({own_axis: own} if own_axis else {})
    for axis, weight in weights.items():
        lost = math.fsum(loss.points for loss in result.losses if loss.axis == axis)
        assert lost == pytest.approx(weight * (1 - getattr(result.score, axis)), abs=EXACT)


# --- one door ------------------------------------------------------------------------------------------------


@given(calls, calls)
def test_one_call_agrees_with_an_item_of_one_call(expected, actual):
    """The function of one call gives the axes of the item that holds just that call."""
    score = score_calls([expected], [actual], category="x")

    found = score_function_call(expected["function"], actual["function"], expected["arguments"], actual["arguments"])
    assert found == (score.function_selection, score.argument_accuracy, score.arabic_preservation)


@given(related(), categories, st.booleans(), rule_sets)
def test_every_way_in_gives_the_same_score(pair, category, ordered, rules):
    """Calls as objects, as calls of a row, as OpenAI's with JSON text, and as a raw answer are graded alike."""
    expected, actual = pair
    direct = score_calls(expected, actual, category=category, ordered=ordered, rules=rules, item_id="1")
    item = item_from_row({"id": "1", "category": category, "expected_calls": expected, "ordered": ordered})
    wired = [
        {"type": "function", "function": {"name": call["function"], "arguments": json.dumps(call["arguments"])}}
        for call in actual
    ]
    rows: list[dict[str, Any]] = [
        {"actual_calls": actual},
        {"tool_calls": wired},
        {"response": {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": wired}}]}},
    ]

    for row in rows:
        for causes in (True, False):
            assert evaluate_reply(item, read_reply({"id": "1"} | row), rules=rules, causes=causes).score == direct


# --- no input raises -----------------------------------------------------------------------------------------


@given(related(), st.lists(sent_calls, max_size=4), categories, st.booleans(), rule_sets)
def test_no_answer_raises(pair, made, category, ordered, rules):
    """Whatever JSON stands in a list of calls is graded and explained."""
    score = score_calls(pair[0], made, category=category, ordered=ordered, rules=rules)
    item = Item("1", category, list(map(expected_call, pair[0])), ordered=ordered)

    result = evaluate_reply(item, read_reply({"id": "1", "tool_calls": made}), rules=rules)

    assert all(0.0 <= value <= 1.0 + EXACT for value in axes(score))
    assert result.status == "scored"


@given(names, arguments, names | st.none(), json_values | st.text(max_size=20) | python_objects)
def test_no_arguments_raise(expected_fn, expected_args, actual_fn, actual_args):
    """Whatever a caller hands over as arguments, one call has three numbers between 0 and 1."""
    found = score_function_call(expected_fn, actual_fn, expected_args, actual_args)

    assert len(found) == 3
    assert all(0.0 <= value <= 1.0 for value in found)


object_calls = st.builds(Call, names, st.dictionaries(names, python_objects))


@given(st.lists(calls, max_size=3), st.lists(python_objects | object_calls, max_size=4), st.booleans(), rule_sets)
def test_no_object_raises(expected, made, ordered, rules):
    """Calls that hold a caller's own objects, or are such objects, are graded and explained too."""
    item = Expectation(map(expected_call, expected), category="x", ordered=ordered, rules=rules)
    read = tuple(map(Call.of, made))

    losses = diagnose(item.judge(read), item, read)
    assert all(loss.points > 0 for loss in losses)


@given(related(), st.sampled_from(["", "a category of one's own", "multi_step"]))
def test_any_category_can_be_graded(pair, category):
    """A category without a declared weight is graded by the standard composition (ruling 19)."""
    assert (
        score_calls(*pair, category=category).total == score_calls(*pair, category="multi_step", rules=CANONICAL).total
    )
