"""The one cause of a difference between two values."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arabic_agent_eval.causes import CAUSE_WORDS
from arabic_agent_eval.differences import CAUSES, explain
from arabic_agent_eval.text import normalize_arabic

CASES = json.loads((Path(__file__).parent / "cases" / "differences.json").read_text("utf-8"))
FORGIVEN = {"spelling", "latin_case"}  # what the ladder itself forgives: the rungs 0.9 and 0.8
SHARED = Path(__file__).parents[1] / ".." / "shared" / "data" / "cases" / "arguments.jsonl"

LETTERS = "ابتةىءأئـ َ\u200f٣35,،-.$%&#\\u06xA zé😀"
TEXTS = st.one_of(st.text(max_size=20), st.text(st.sampled_from(LETTERS), max_size=40))
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=12,
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_cause(case):
    """Each pair of the table has exactly its cause."""
    assert explain(case["expected"], case["actual"]) == case["cause"], case["why"]


def test_table_covers_every_cause():
    """At least four cases for each cause, and no pair twice."""
    counts = Counter(case["cause"] for case in CASES)
    assert set(counts) == set(CAUSES)
    assert min(counts.values()) >= 4
    pairs = Counter(json.dumps([case["expected"], case["actual"]]) for case in CASES)
    assert max(pairs.values()) == 1


@pytest.mark.skipif(not SHARED.exists(), reason="the shared cases are not part of a plain checkout")
def test_shared_cases():
    """Every shared case that loses points has the cause that it names."""
    cases = [json.loads(line) for line in SHARED.read_text("utf-8").splitlines()]
    lost = [case for case in cases if case["score"] < 1]
    assert len(lost) > 30
    assert [explain(case["expected"], case["actual"]) for case in lost] == [case["cause"] for case in lost]


def test_causes_are_those_of_the_words():
    """Every cause can be said to people, and what the ladder forgives are causes."""
    assert set(CAUSES) < set(CAUSE_WORDS)
    assert set(CAUSES) > FORGIVEN


@given(VALUES.filter(lambda value: value is not None), VALUES)
def test_any_values_have_a_known_cause(expected, actual):
    """No input raises, and the answer is one of the causes."""
    assert explain(expected, actual) in CAUSES


@given(TEXTS, TEXTS)
def test_what_the_ladder_forgives_is_named_so(expected, actual):
    """A pair on the rung 0.9 is never blamed on a cause that earns nothing."""
    normal = normalize_arabic(expected)
    if normal.strip("\u200f") and normal == normalize_arabic(actual) and expected.strip() != actual.strip():
        assert explain(expected, actual) in FORGIVEN


@given(st.sampled_from([case for case in CASES if case["cause"] == "wrong_value"]), st.sampled_from(["\u200f", "  "]))
def test_marks_at_the_end_do_not_explain_a_wrong_value(case, mark):
    """A value that is wrong stays wrong with invisible marks or spaces around it."""
    if isinstance(case["expected"], str) and isinstance(case["actual"], str):
        assert explain(case["expected"], case["actual"] + mark) == "wrong_value"


@pytest.mark.parametrize(
    ("expected", "actual", "cause"),
    [
        ("كلمة " * 300_000, "كلمه " * 300_000 + "أخرى", "extra_words"),
        ("أ" + "ب" * 1_000_000, "ا" + "ب" * 1_000_000, "spelling"),
        ("ab " * 300_000, "AB " * 300_000, "latin_case"),
        ("بَ" * 500_000, "ب" * 500_000, "diacritics"),
        ("كلمة " * 2_000, "كَلمة " * 2_000, "diacritics"),
        ("نص " * 1_000 + "عيادَة", "نص " * 1_000 + "عيادة", "diacritics"),
        ("نص " * 1_000 + "خمسة", "نص " * 1_000 + "ستة", "wrong_value"),
        ("نص " * 1_000, "text " * 1_000, "latin_script"),
        ("ب" * 1_000_000, "ت" * 1_000_000, "wrong_value"),
        ("الرياض", "الرياض " + "ب" * 1_000_000, "extra_words"),
        ("الرياض", "ـ" * 1_000_000, "missing"),
        ("الرياض", "\\u06" * 250_000, "latin_script"),
        ("." * 1_000_000, "," * 1_000_000, "wrong_value"),
        ("ب", "%" * 1_900, "wrong_value"),
        ("ا ب ت " * 320, "ب ت ا " * 320, "wrong_value"),
        ("كلمة " * 70, "لفظة " * 70, "wrong_value"),
        (["أ"] * 50_000, ["ب"] * 50_000, "wrong_value"),
        ({"a": 1}, "[" * 1_000_000, "wrong_value"),
    ],
)
def test_long_values_are_judged_in_bounded_time(expected, actual, cause):
    """Values of a megabyte get a cheap and sensible verdict; a quadratic step would take minutes."""
    assert explain(expected, actual) == cause


def test_deep_nesting_is_a_wrong_value():
    """Containers deeper than JSON allows are not walked through."""
    deep: list = []
    for _ in range(10_000):
        deep = [deep]
    assert explain(deep, ["x"]) == explain("x", deep) == "wrong_value"


def test_objects_of_another_kind_are_compared_by_what_they_print():
    """What is not JSON at all does not raise."""
    assert explain("x", object()) == "wrong_value"
    assert explain(float("nan"), 10**5000) == "wrong_value"


def test_forgiven_member_hides_no_other():
    """In a container the member on the lowest rung gives the cause, wherever it stands."""
    assert explain(["أحمد", "غداً"], ["احمد", "غدا"]) == "diacritics"
    assert explain({"a": "أحمد", "b": {"c": "٣"}}, {"a": "احمد", "b": {"c": "3"}}) == "digits"
    assert explain({"a": [None, "أ"], "b": None}, {"a": [None, "ا"]}) == "spelling"
    assert explain([None, "x"], ["y", "x"]) == "wrong_value"
