"""The fast grader and the slow, obvious one agree; and where brute force ends, planted answers are found."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arabic_agent_eval.grading import Expectation, expected_call
from arabic_agent_eval.scoring import Score, score_calls
from arabic_agent_eval.tools import Call
from tests import reference
from tests.strategies import answered, arguments, calls, categories, related, values


def axes(score: Score) -> tuple[float, float, float]:
    """The three axes that the reference knows."""
    return score.function_selection, score.argument_accuracy, score.arabic_preservation


def agree(expected: list[Any], actual: list[Any], category: str) -> None:
    """Fail unless both graders give the same axes, place by place."""
    found = score_calls(expected, actual, category=category)

    assert axes(found) == pytest.approx(reference.item(expected, actual), abs=1e-12)
    assert found.total == pytest.approx(reference.total(axes(found), category), abs=1e-12)


def call(number: int, **more: Any) -> dict[str, Any]:
    """One of many calls that differ in each argument."""
    return {"function": "book", "arguments": {"n": number, "city": f"مدينة {number}"} | more}


@settings(max_examples=250)
@given(related(), categories)
def test_related_calls(pair, category):
    """On calls that resemble each other, mixed scripts and nested values included, the axes agree."""
    agree(*pair, category)


@given(answered(), st.lists(calls, max_size=2), categories)
def test_accepted_values(pair, more, category):
    """With other accepted values the axes agree too, for perfect answers and for others."""
    expected, actual = pair

    agree(expected, actual, category)
    agree(expected, more + actual[1:], category)


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), values, min_size=1), arguments, st.data())
def test_nested_values(expected, extra, data):
    """Each argument changed, left out or nulled alone, in whatever it holds, is credited alike."""
    given_ = {name: data.draw(st.sampled_from([value, None]) | values) for name, value in expected.items()}

    agree([{"function": "f", "arguments": expected}], [{"function": "f", "arguments": extra | given_}], "x")


@given(related(), categories)
def test_unordered_calls(pair, category):
    """The best assignment has the best total that brute force finds, and the axes of one that reaches it."""
    expected, actual = pair
    candidates = reference.best(expected, actual, category)

    found = score_calls(expected, actual, category=category, ordered=False)

    assert found.total == pytest.approx(max(reference.total(axes, category) for axes in candidates), abs=1e-8)
    assert any(axes(found) == pytest.approx(candidate, abs=1e-8) for candidate in candidates)


@given(
    st.lists(calls, min_size=1, max_size=2), st.lists(st.integers(0, 1), max_size=6), st.integers(1, 4), st.booleans()
)
def test_repeated_calls(pool, picks, times, ordered):
    """Calls that are made again and again are counted each time."""
    expected = (pool * times)[:4]
    actual = [pool[pick % len(pool)] for pick in picks]
    if ordered:
        agree(expected, actual, "multi_step")
        return

    found = score_calls(expected, actual, category="multi_step", ordered=False)
    candidates = reference.best(expected, actual, "multi_step")
    assert found.total == pytest.approx(reference.total(candidates[0], "multi_step"), abs=1e-8)


# --- thousands of calls --------------------------------------------------------------------------------------


def test_thousands_of_calls_in_order():
    """Three thousand expected and three thousand actual calls, every third wrong in its own way, agree."""
    expected = [call(number) for number in range(3000)]
    wrong = [{"city": "City"}, {"city": "مدينه"}, {"n": "x"}, {"n": None}, {"city": ["مدينة"]}]
    actual = [call(number, **(wrong[number % 5] if number % 3 == 0 else {})) for number in range(3000)]

    agree(expected, actual, "multi_step")
    agree(expected, actual[1:], "error_recovery")
    agree(expected[:10], actual, "dialect_handling")


def test_two_calls_among_thousands():
    """Two expected calls are found wherever they stand among five thousand; all others are surplus."""
    expected = [call(4999), call(7)]
    actual = [call(number) for number in range(5000)]

    found = score_calls(expected, actual, category="multi_step", ordered=False)
    assert axes(found) == pytest.approx((2 / 5000,) * 3, abs=1e-12)


def test_thousands_of_calls_for_one_expected():
    """A repeated call answers as many expected ones as there are, and every further one is surplus."""
    found = score_calls([call(1)] * 3, [call(1)] * 5000, category="multi_step", ordered=False)

    assert axes(found) == pytest.approx((3 / 5000,) * 3, abs=1e-12)


@pytest.mark.parametrize("spelling", ["مدينة", "مدينه"])
def test_planted_permutation(spelling):
    """Four hundred calls in a known other order are paired as they were shuffled.

    Each call differs from every other in both arguments, so its own place is worth more than any other, and the
    planted permutation is the only best one.
    """
    order = list(range(400))
    random.Random(7).shuffle(order)
    expected = [call(number) for number in range(400)]
    actual = [call(number, city=f"{spelling} {number}") for number in order]
    item = Expectation(map(expected_call, expected), category="multi_step", ordered=False)

    matches = item.pair([Call.of(made) for made in actual])

    assert [(match.expected, match.actual) for match in matches] == [
        (number, order.index(number)) for number in range(400)
    ]
    rung = 1.0 if spelling == "مدينة" else 0.9
    assert {match.argument for match in matches} == {(1.0 + rung) / 2}


def test_planted_permutation_with_gaps():
    """Where some calls are missing and some surplus, the rest still find their places."""
    order = [*range(100, 200), *(number for number in range(100) if number % 2)]
    random.Random(8).shuffle(order)
    expected = [call(number) for number in range(100)]

    found = score_calls(expected, [call(number) for number in order], category="multi_step", ordered=False)

    # Half of the expected calls are found; each of the others takes a surplus one, whose name and script are right.
    assert found.function_selection == pytest.approx(100 / 150)
    assert found.argument_accuracy == pytest.approx(50 / 150)
    assert found.arabic_preservation == pytest.approx(100 / 150)
