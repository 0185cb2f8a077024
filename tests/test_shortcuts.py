"""Shortcuts: what is said of an answer without compiling its item is what the compiled expectation says."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arabic_agent_eval.grading import Expectation, expected_call
from arabic_agent_eval.items import ExpectedCall
from arabic_agent_eval.rules import CANONICAL, V0_1
from arabic_agent_eval.shortcuts import compare_in_any_order, compare_in_order, expects_arabic, survey
from arabic_agent_eval.tools import Call
from tests.strategies import categories, related


@given(related(), categories, st.sampled_from([CANONICAL, V0_1]), st.booleans())
def test_the_axes_are_those_of_the_expectation(pair, category, rules, ordered):
    """In order or in any order, the three numbers are the same to the last bit."""
    expected = [expected_call(call) for call in pair[0]]
    made = [ExpectedCall(call["function"], call["arguments"]) for call in pair[1]]
    if not expected or (not made and not ordered):
        return
    compiled = Expectation(expected, category=category, ordered=ordered, rules=rules)

    in_any_order = partial(compare_in_any_order, category=category)
    axes = (compare_in_order if ordered else in_any_order)(expected, made, rules=rules)

    verdict = compiled.judge([Call(call.function, call.arguments) for call in made])
    assert axes == (verdict.function, verdict.argument, verdict.arabic)


@pytest.mark.parametrize(
    ("arguments", "plain", "arabic"),
    [
        ({}, True, False),
        ({"a": "x"}, True, False),
        ({"a": "جدة"}, True, True),
        ({"a": 7}, True, False),
        ({"a": 7.5}, False, False),
        ({"a": 1}, False, False),
        ({"a": 0.0}, False, False),
        ({"a": True}, False, False),
        ({"a": 2**53}, False, False),
        ({"a": ["جدة"]}, False, True),
        ({"a": {"b": "x"}}, False, False),
        ({"a": None}, False, False),
        ({"a": "جدة", "b": ["ب"], "c": "مكة"}, False, True),
    ],
)
def test_survey(arguments, plain, arabic):
    """One look tells whether Python's equality decides, and whether anything Arabic is expected."""
    calls = (ExpectedCall("f", arguments),)

    assert survey(calls) == (plain, arabic)
    assert expects_arabic(calls) is arabic
    assert survey((ExpectedCall("f", {"n": 7}),), V0_1) == (False, False)


def test_survey_of_nothing():
    """Abstaining is right at sight only where abstaining is right."""
    assert survey(()) == (True, False)
    assert survey((), V0_1) == (False, False)
