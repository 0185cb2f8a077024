"""The skeleton comparison of Arabic and Latin spellings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arabic_agent_eval.romanization import LONGEST, TRANSLITERATED, romanization_score

CASES = json.loads((Path(__file__).parent / "cases" / "romanization.json").read_text("utf-8"))
MIXED = st.text(st.sampled_from("ابتةقعوىشء َـ٣3 -'aeghkslxyzqABé2789"), max_size=30)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_threshold_tells_romanisations_from_other_text(case):
    """A spelling by sound reaches the threshold; a translation, another name or a code does not."""
    score = romanization_score(case["arabic"], case["latin"])
    assert (score >= TRANSLITERATED) is case["same"], f"{case['why']}: {score}"


def test_table_is_balanced():
    """Half of the table are traps, and no pair stands in it twice."""
    pairs = {(case["arabic"], case["latin"]) for case in CASES}
    negatives = sum(not case["same"] for case in CASES)
    assert len(pairs) == len(CASES) >= 60
    assert 0.4 < negatives / len(CASES) < 0.6


@pytest.mark.parametrize(
    ("arabic", "latin", "score"),
    [("الرياض", "ar-riyāḍ", 1.0), ("كازابلانكا", "Casablanca", 4 / 6), ("بيتزا", "pizza", 2 / 3), ("سلم", "", 0.0)],
)
def test_score_is_the_share_of_consonants(arabic, latin, score):
    """The score is one less the unmatched consonants divided by those of the Arabic word."""
    assert romanization_score(arabic, latin) == pytest.approx(score)


def test_zay_is_z_and_not_s():
    """«ز» accepts z alone."""
    assert romanization_score("زيد", "Zayd") == 1.0
    assert romanization_score("زيد", "Sayd") < TRANSLITERATED


def test_long_values_are_not_compared():
    """Beyond 80 characters on either side the score is 0."""
    assert romanization_score("بت" * (LONGEST // 2), "bt" * (LONGEST // 2)) == 1.0
    assert romanization_score("ب" * (LONGEST + 1), "b") == 0.0
    assert romanization_score("ب", "b" * (LONGEST + 1)) == 0.0


@given(MIXED, MIXED)
def test_score_is_a_share(arabic, latin):
    """Whatever the texts, the score is between 0 and 1 and the same when asked again."""
    score = romanization_score(arabic, latin)
    assert 0.0 <= score <= 1.0
    assert romanization_score(arabic, latin) == score


@given(st.sampled_from([case for case in CASES if case["same"]]))
def test_case_and_marks_do_not_matter(case):
    """Capitals in the Latin text and harakat in the Arabic one change nothing."""
    score = romanization_score(case["arabic"], case["latin"])
    assert romanization_score(case["arabic"], case["latin"].upper()) == score
    assert romanization_score("".join(f"{char}\u064e" for char in case["arabic"]), case["latin"]) == score
