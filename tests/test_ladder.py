"""The ladder: one expected value against one actual (rulings 1 to 7)."""

from __future__ import annotations

from decimal import Decimal
from types import MappingProxyType

import pytest
from hypothesis import given

from arabic_agent_eval.ladder import holds_arabic, is_container, rung, scalar_text, strings_in
from arabic_agent_eval.rules import CANONICAL, V0_1
from tests import reference
from tests.strategies import scalars, texts, values


class Unprintable:
    """An object of a caller that cannot even be written."""

    def __str__(self) -> str:
        raise RuntimeError

    __repr__ = __str__


@pytest.mark.parametrize(
    ("expected", "actual", "canonical", "older"),
    [
        ("الرياض", "الرياض", 1.0, 1.0),
        ("الرياض", " الرياض\n", 1.0, 1.0),
        ("جدة", "جده", 0.9, 0.9),
        ("VIP", "vip", 0.9, 0.9),
        ("مكتب VIP", "مكتب vip", 0.8, 0.8),
        ("شقة VIP", "شقه vip", 0.0, 0.0),
        ("الرياض", "Riyadh", 0.0, 0.0),
        ("\u0640", "", 0.0, 0.9),
        ("\u0640", " \u0640 ", 1.0, 1.0),
        ("", " ", 1.0, 1.0),
        ("VIP\u0640", "vip", 0.9, 0.0),
        (2, 2.0, 1.0, 0.0),
        (2, "2", 1.0, 1.0),
        (2.0, "2", 1.0, 0.0),
        (2.0, "2.0", 0.0, 1.0),
        (True, "true", 1.0, 0.9),
        (True, "True", 0.9, 1.0),
        (True, 1, 0.0, 0.0),
        (0, False, 0.0, 0.0),
        (None, None, 1.0, 1.0),
        (None, "null", 0.0, 0.0),
        ("None", None, 0.0, 0.0),
        (["جدة"], ["جده"], 0.9, 0.9),
        (["جدة", "x"], ["جده", "y"], 0.0, 0.0),
        ([1, 2], [2, 1], 0.0, 0.0),
        ([1], (1,), 1.0, 0.0),
        ([], [], 1.0, 1.0),
        ([], {}, 0.0, 0.0),
        ([None], [None], 1.0, 1.0),
        ([None], ["x"], 0.0, 0.0),
        (["x"], [None], 0.0, 0.0),
        ([1, 2], "[1, 2]", 0.0, 1.0),
        ({"a": 1}, {"a": 1, "b": 2}, 1.0, 0.0),
        ({"a": 1, "b": None}, {"a": "1"}, 1.0, 0.0),
        ({"a": 1}, {"a": None}, 0.0, 0.0),
        ({"a": 1}, {}, 0.0, 0.0),
        ({"a": 1}, MappingProxyType({"a": 1}), 1.0, 1.0),
        ({"a": [{"ب": "جدة"}]}, {"a": [{"ب": "جده"}]}, 0.9, 0.9),
        ({"a": "VIP ب", "b": "جدة"}, {"a": "vip ب", "b": "جده"}, 0.8, 0.0),
        (["*"], ["x"], 0.0, 0.0),
        (Decimal("1.5"), 1.5, 1.0, 1.0),
    ],
)
def test_rung(expected, actual, canonical, older):
    """Each pair stands on its rung, under the canonical rules and under those of v0.1."""
    assert rung(expected, actual) == canonical
    assert rung(expected, actual, V0_1) == older


@given(values, values)
def test_agrees_with_the_letter_by_letter_reading(expected, actual):
    """The second implementation finds the same rung for any two values."""
    if expected is not None and actual is not None:
        assert rung(expected, actual) == reference.rung(expected, actual)


@given(texts, texts)
def test_ladder_is_symmetric_for_texts(one, other):
    """It does not matter which of two texts was expected."""
    for rules in (CANONICAL, V0_1):
        assert rung(one, other, rules) == rung(other, one, rules)


@given(values)
def test_a_value_matches_itself(value):
    """Every value is its own exact match, with white space around every text too."""
    assert rung(value, value) == rung(value, value, V0_1) == 1.0


@given(scalars)
def test_a_scalar_matches_its_text(value):
    """A scalar and its text are the same value under each set of rules."""
    for rules in (CANONICAL, V0_1):
        assert rung(value, scalar_text(value, rules), rules) == 1.0


@pytest.mark.parametrize(
    ("value", "canonical", "older"),
    [
        ("جدة ", "جدة ", "جدة "),
        (True, "true", "True"),
        (False, "false", "False"),
        (None, "null", "None"),
        (2.0, "2", "2.0"),
        (1e21, "1e+21", "1e+21"),
        (7, "7", "7"),
        (Decimal("1.50"), "1.50", "1.50"),
    ],
)
def test_scalar_text(value, canonical, older):
    """Ruling 1 writes scalars as JSON does; v0.1 wrote them as Python does."""
    assert scalar_text(value) == canonical
    assert scalar_text(value, V0_1) == older


def test_what_cannot_be_written_does_not_raise():
    """An integer beyond Python's limit, or an object whose own text fails, is still some text."""
    assert rung(10**6000, 10**6000, V0_1) == 1.0
    assert rung(10**6000, 10**6000 + 1, V0_1) == 0.0
    assert rung("x", Unprintable()) == 0.0
    assert rung(["x"], [Unprintable()], V0_1) == 0.0


@pytest.mark.parametrize(
    ("value", "canonical", "older"),
    [
        ("جدة", True, True),
        ("Jeddah", False, False),
        ("ﺟﺪﺓ", False, False),
        (["x", {"a": ["جدة"]}], True, True),
        (("x", "جدة"), True, True),
        ({"مدينة": "Jeddah"}, False, True),
        ([], False, False),
        (5, False, False),
        (None, False, False),
    ],
)
def test_holds_arabic(value, canonical, older):
    """Arabic is in a text or in any text inside a container; the keys of an object are names, not values."""
    assert holds_arabic(value) is canonical
    assert holds_arabic(value, V0_1) is older


def test_strings_inside():
    """Every text inside a value is found, however it is nested."""
    assert sorted(strings_in({"a": ["x", ("y",)], "b": {"c": "z"}, "d": 5})) == ["x", "y", "z"]
    assert list(strings_in("x")) == ["x"]
    assert list(strings_in(5)) == []


def test_containers():
    """Objects and lists have members; texts and numbers have not."""
    assert all(map(is_container, ({}, [], (), MappingProxyType({}))))
    assert not any(map(is_container, ("", 0, None, set())))


def test_deep_values_are_searched_without_recursion():
    """Very deep containers, which only a caller's own objects can be, do not exhaust the stack."""
    deep: list = ["جدة"]
    for _ in range(50_000):
        deep = [deep]

    assert holds_arabic(deep)
    assert not is_container("x")
