"""Comparing expected with actual calls: verdicts, their evidence, pairing, and what a compiled item remembers."""

from __future__ import annotations

from collections import UserDict

import pytest

from arabic_agent_eval.errors import DataError
from arabic_agent_eval.grading import (
    ArgumentMatch,
    CallMatch,
    Expectation,
    compare_arguments,
    compare_value,
    expected_call,
)
from arabic_agent_eval.items import ExpectedCall, Item
from arabic_agent_eval.rules import CANONICAL, V0_1
from arabic_agent_eval.tools import Call

WEATHER = ExpectedCall("get_weather", {"city": "جدة", "days": 3})


def expectation(*calls: ExpectedCall, ordered: bool = True, rules=CANONICAL) -> Expectation:
    """A compiled item."""
    return Expectation(calls, category="multi_step", ordered=ordered, rules=rules)


def axes(verdict) -> tuple[float, float, float]:
    """The three axes of a verdict."""
    return verdict.function, verdict.argument, verdict.arabic


# --- one value, one call -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "actual", "accepted", "expected"),
    [
        ("جدة", "جدة", (), (1.0, True, "جدة")),
        ("جدة", "جده", (), (0.9, True, "جدة")),
        ("جدة", "Jeddah", (), (0.0, False, "جدة")),
        ("جدة", None, (), (0.0, False, "جدة")),
        ("VIP", "vip", (), (0.9, None, "VIP")),
        ("*", "x", (), (1.0, None, "*")),
        ("*", None, (), (0.0, None, "*")),
        ("*", False, (), (1.0, None, "*")),
        ("جدة", "Jeddah", ("Jeddah",), (1.0, True, "Jeddah")),
        ("جدة", "jeddah", ("Mecca", "Jeddah"), (0.9, True, "Jeddah")),
        ("جدة", "جده", ("جده",), (1.0, True, "جده")),
        ("جدة", "جده", ("مكة",), (0.9, True, "جدة")),
        ("جدة", "Riyadh", (None, "Jeddah"), (0.0, False, "جدة")),
        ("Jeddah", "جدة", ("جدة",), (1.0, None, "جدة")),
        (["جدة"], ["Jeddah"], (["Jeddah"],), (1.0, True, ["Jeddah"])),
        ({"a": "جدة"}, {"a": 5, "b": "ب"}, (), (0.0, True, {"a": "جدة"})),
    ],
)
def test_one_value(value, actual, accepted, expected):
    """The best rung over the right value and the accepted ones, whether Arabic was kept, and what came closest."""
    assert compare_value(value, actual, accepted) == expected


def test_missing_arabic_differs_between_rules():
    """A missing Arabic value is lost under the canonical rules and left out under v0.1 (ruling 10)."""
    assert compare_value("جدة", None, rules=CANONICAL) == (0.0, False, "جدة")
    assert compare_value("جدة", None, rules=V0_1) == (0.0, None, "جدة")


def test_arguments_with_their_evidence():
    """Accuracy is over the expected keys that are not null, preservation over the Arabic-valued ones."""
    evidence: list[ArgumentMatch] = []
    expected = {"city": "جدة", "name": "أحمد", "n": 3, "none": None}

    found = compare_arguments(expected, {"city": "جده", "name": "Ahmad", "extra": 1}, evidence=evidence)

    assert found == (pytest.approx(0.3), 0.5)
    assert evidence == [
        ArgumentMatch("city", "جدة", "جده", 0.9, True),
        ArgumentMatch("name", "أحمد", "Ahmad", 0.0, False),
        ArgumentMatch("n", 3, None, 0.0, None),
    ]


def test_no_expected_arguments():
    """Without expected keys extra ones are ignored; v0.1 gave half for them (ruling 9)."""
    assert compare_arguments({}, {"x": 1}) == compare_arguments({"a": None}, {"x": 1}) == (1.0, None)
    assert compare_arguments({}, {"x": 1}, V0_1) == (0.5, None)
    assert compare_arguments({}, {}, V0_1) == (1.0, None)


def test_remembered_comparisons_are_those_that_were_made():
    """A memo changes no result: it holds texts only, one entry an argument and text, and never grows beyond bounds."""
    memo: dict = {}
    expected, accept = {"a": "جدة", "b": "جدة"}, {"b": ["Jeddah"]}
    for given in ({"a": "Jeddah", "b": "Jeddah"}, {"a": "جده", "b": 5}, {"a": "ب" * 500, "b": "Jeddah"}) * 2:
        assert compare_arguments(expected, given, accept=accept, memo=memo) == compare_arguments(
            expected, given, accept=accept
        )
    assert set(memo) == {("a", "Jeddah"), ("b", "Jeddah"), ("a", "جده")}

    for number in range(2000):
        compare_arguments({"a": "جدة"}, {"a": str(number)}, memo=memo)
    assert len(memo) <= 512


# --- one item ------------------------------------------------------------------------------------------------


def test_verdict_holds_every_slot():
    """Expected and actual calls are paired by place; missing and surplus ones have slots of their own."""
    item = expectation(WEATHER, ExpectedCall("f"), ExpectedCall("g"))

    verdict = item.judge([Call("get_weather", {"city": "جدة", "days": "3"}), Call("x")])
    assert [(match.expected, match.actual) for match in verdict.matches] == [(0, 0), (1, 1), (2, None)]
    assert (verdict.slots, verdict.called) == (3, 2)
    assert verdict.matches[0].arguments[1] == ArgumentMatch("days", 3, "3", 1.0, None)

    verdict = item.judge([Call("get_weather", WEATHER.arguments)] * 5)
    assert [(match.expected, match.actual) for match in verdict.matches[3:]] == [(None, 3), (None, 4)]
    assert (verdict.slots, verdict.called) == (5, 5)


def test_nothing_expected():
    """To abstain is right and any call is surplus; v0.1 gave nothing for abstaining (ruling 15)."""
    assert axes(expectation().judge(())) == (1.0, 1.0, 1.0)
    assert axes(expectation(rules=V0_1).judge(())) == (0.0, 0.0, 0.0)
    for ordered in (True, False):
        verdict = expectation(ordered=ordered).judge((Call("a"), Call("b")))
        assert axes(verdict) == (0.0, 0.0, 0.0)
        assert verdict.matches == (CallMatch(None, 0, 0.0, 0.0, 0.0), CallMatch(None, 1, 0.0, 0.0, 0.0))
        assert verdict.slots == 2


def test_unordered_takes_the_best_sum():
    """The assignment maximises the sum over all calls, not the first that fits; ties keep calls in their places."""
    item = expectation(ExpectedCall("f", {"a": 1, "b": 1}), ExpectedCall("f", {"a": 1, "b": 2}), ordered=False)

    verdict = item.judge([Call("f", {"a": 1, "b": 2}), Call("f", {"a": 9, "b": 9})])
    assert [(match.expected, match.actual) for match in verdict.matches] == [(0, 1), (1, 0)]

    same = expectation(ExpectedCall("f"), ExpectedCall("f"), ExpectedCall("f"), ordered=False)
    places = [(match.expected, match.actual) for match in same.judge([Call("f"), Call("f")]).matches]
    assert places == [(0, 0), (1, 1), (2, None)]
    places = [(match.expected, match.actual) for match in same.judge([Call("f")] * 5).matches]
    assert places == [(0, 0), (1, 1), (2, 2), (None, 3), (None, 4)]


@pytest.mark.parametrize(("expected", "made"), [(2, 2), (4, 5), (5, 4), (5, 5), (6, 6), (3, 9), (9, 3), (30, 40)])
def test_ties_keep_calls_in_their_places(expected, made):
    """Among equally good assignments the one by place is taken, for few calls and for many."""
    item = expectation(*[ExpectedCall("f", {"n": 7})] * expected, ordered=False)

    matches = item.judge([Call("f", {"n": 7})] * made).matches

    shared = min(expected, made)
    paired = [(match.expected, match.actual) for match in matches]
    assert paired[:shared] == [(place, place) for place in range(shared)]


@pytest.mark.parametrize("more", [0, 4])
def test_ties_prefer_places_over_what_comes_first(more):
    """Where two calls fit two places equally well, the one that stands in its place stays there."""
    numbers = [1, 1, 3, *range(10, 10 + more)]
    item = expectation(*[ExpectedCall("f", {"n": number}) for number in numbers], ordered=False)

    matches = item.judge([Call("f", {"n": number}) for number in [3, 1, 1, *numbers[3:]]]).matches

    assert [match.actual for match in matches][:3] == [2, 1, 0]


def test_unordered_with_one_call_or_none():
    """One expected call against one, and any against none, need no assignment."""
    item = expectation(WEATHER, ordered=False)

    assert axes(item.judge([Call("get_weather", {"city": "جده"})])) == (1.0, 0.45, 1.0)
    assert axes(item.judge([])) == (0.0, 0.0, 0.0)
    assert item.pair([Call("get_weather", WEATHER.arguments)])[0].argument == 1.0


def test_unordered_accepts_a_caller_s_own_objects():
    """Arguments that are no JSON are compared all the same."""
    odd = [Call("get_weather", {"city": object()}), Call("get_weather", {"city": {1, 2}, 5: "x"})]

    assert axes(expectation(WEATHER, WEATHER, ordered=False).judge(odd))[0] == 1.0


@pytest.mark.parametrize("arguments", [{"city": "جدة", "days": 3}, {"city": "جدة", "days": 3.0}, {"city": "جدة"}])
@pytest.mark.parametrize("kind", [list, tuple])
def test_an_item_that_learned_judges_as_before(arguments, kind):
    """A compiled item that has seen right calls gives each later reply the verdict that a fresh one gives."""
    item = expectation(ExpectedCall("get_weather", {"city": "جدة", "days": 3}))
    replies = [
        {"city": "جدة", "days": True},
        {"city": "جدة", "days": 3},
        {"city": "جده", "days": 3},
        {"city": "جدة", "days": 3.0},
        {"city": "جدة", "days": "3"},
        {"city": "جدة", "days": 3, "more": 1},
        {"city": "جدة", "days": 3},
    ]
    item.judge(kind([Call("get_weather", arguments)]))
    for given in replies:
        calls = kind([Call("get_weather", given)])
        fresh = expectation(ExpectedCall("get_weather", {"city": "جدة", "days": 3}))
        assert axes(item.judge(calls)) == axes(fresh.judge(calls)), given
    assert axes(item.judge(kind([Call("Get_weather", arguments)])))[0] == 0.0
    assert axes(item.judge(kind([Call("get_weather", {}, "malformed_arguments")]))) == (1.0, 0.0, 0.0)


@pytest.mark.parametrize(("expected", "trap"), [(1, True), (0, False), (1, 1.5), (2**53, float(2**53 + 2))])
def test_python_s_equality_is_not_the_rulings(expected, trap):
    """Python calls 1 and True equal; an item that has learned the right number still tells them apart."""
    item = expectation(ExpectedCall("f", {"n": expected}))

    assert axes(item.judge((Call("f", {"n": expected}),))) == (1.0, 1.0, 1.0)
    assert axes(item.judge((Call("f", {"n": trap}),))) == (1.0, 0.0, 1.0)
    assert axes(item.judge((Call("f", {"n": expected}),))) == (1.0, 1.0, 1.0)


def test_right_at_sight_needs_no_evidence():
    """Calls that were right before are recognised: the verdict then has the numbers without the slots."""
    item = expectation(WEATHER, ExpectedCall("f"))
    calls = (Call("get_weather", WEATHER.arguments), Call("f"))

    first, second = item.judge(calls), item.judge(calls)

    assert axes(first) == axes(second) == (1.0, 1.0, 1.0)
    assert (first.slots, first.called) == (second.slots, second.called) == (2, 2)


def test_item_is_compiled_with_its_own_order():
    """The category, the order and the calls of an item decide; whether Arabic is expected is known beforehand."""
    item = Item("1", "dialect_handling", [WEATHER, ExpectedCall("f", {"x": "*"})], ordered=False)

    compiled = Expectation.of(item, V0_1)

    assert (compiled.category, compiled.ordered, compiled.rules, compiled.size) == ("dialect_handling", False, V0_1, 2)
    assert compiled.arabic
    assert not expectation(ExpectedCall("f", {"x": "*", "y": ["VIP"]})).arabic


# --- what a caller expects -----------------------------------------------------------------------------------


def test_expected_calls_of_every_kind():
    """A call, a mapping and an expected call say the same; null arguments are none."""
    as_mapping = expected_call({"function": "f", "arguments": {"a": 1}, "accept": {"a": (2, 3)}})

    assert as_mapping == ExpectedCall("f", {"a": 1}, {"a": [2, 3]})
    assert expected_call(as_mapping) is as_mapping
    assert expected_call(Call("f", {"a": 1})).arguments == {"a": 1}
    assert expected_call({"function": "f"}).arguments == expected_call({"function": "f", "arguments": None}).arguments
    assert expected_call(UserDict(function="f", arguments=UserDict(a=1))).arguments == {"a": 1}


@pytest.mark.parametrize(
    ("call", "field"),
    [
        ({}, "function"),
        ({"function": 5}, "function"),
        ({"function": None, "arguments": {}}, "function"),
        (Call(None, error="malformed_call"), "function"),
        ({"function": "f", "arguments": "{}"}, "arguments"),
        ({"function": "f", "arguments": []}, "arguments"),
    ],
)
def test_what_is_no_expected_call(call, field):
    """A caller's mistake in what is expected is an error with its field."""
    with pytest.raises(DataError) as raised:
        expected_call(call)
    assert raised.value.field == field


def test_expected_arguments_too_deep():
    """Expected arguments nest at most 64 levels, as those of an item do."""
    deep: list = []
    for _ in range(64):
        deep = [deep]

    with pytest.raises(DataError, match="64 levels"):
        expected_call({"function": "f", "arguments": {"a": deep}})


def test_large_replies_take_a_moment():
    """Repeated surplus calls of an unordered item are compared once, not once each."""
    item = expectation(*[ExpectedCall("f", {"city": f"مدينة {place}" * 50}) for place in range(20)], ordered=False)

    verdict = item.judge([Call("f", {"city": "ب" * 2000})] * 3000)
    assert verdict.slots == 3000
