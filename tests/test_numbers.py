"""Numbers in digits and in words: what is read, what is left alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arabic_agent_eval.numbers import digits_for_words, number_words_in, read_number

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "cases" / "numbers.json").read_text("utf-8"))
READ = [pytest.param(case, id=case["id"]) for case in CASES if "read" in case]
REWRITE = [pytest.param(case, id=case["id"]) for case in CASES if "rewrite" in case]
SYSTEMS = ("0123456789", "٠١٢٣٤٥٦٧٨٩", "۰۱۲۳۴۵۶۷۸۹")
WORDS = sorted({word for case in CASES for word in (case.get("read") or case.get("rewrite") or "").split()})
UNITS = "واحد اثنان ثلاثة أربعة خمسة ستة سبعة ثمانية تسعة عشرة"
TENS = "عشرون ثلاثون أربعون خمسون ستون سبعون ثمانون تسعون"
HUNDREDS = "مئة مئتان ثلاثمئة أربعمئة خمسمئة ستمئة سبعمئة ثمانمئة تسعمئة"


def in_words(number: int) -> str:
    """A slow, plain speller of 1 … 999,999 in MSA: the second implementation that the reader must agree with."""
    units, tens, hundreds = UNITS.split(), TENS.split(), HUNDREDS.split()
    if number >= 1000:
        count, rest = divmod(number, 1000)
        head = {1: "ألف", 2: "ألفان"}.get(count) or f"{in_words(count)} {'آلاف' if count <= 10 else 'ألف'}"
        return f"{head} و{in_words(rest)}" if rest else head
    if number >= 100:
        head, rest = hundreds[number // 100 - 1], number % 100
        return f"{head} و{in_words(rest)}" if rest else head
    if number <= 10:
        return units[number - 1]
    if number < 20:
        return {11: "أحد عشر", 12: "اثنا عشر"}.get(number) or f"{units[number - 11]} عشر"
    unit, ten = number % 10, tens[number // 10 - 2]
    return f"{units[unit - 1]} و{ten}" if unit else ten


@pytest.mark.parametrize("case", READ)
def test_read_number_reads_the_whole_text_or_nothing(case: dict[str, Any]) -> None:
    """A text is the number of the table, as an int where it is whole, or no number at all."""
    number = read_number(case["read"])
    assert number == case["number"], case["why"]
    assert type(number) is type(case["number"])


@pytest.mark.parametrize("case", REWRITE)
def test_digits_for_words_rewrites_phrases_and_nothing_else(case: dict[str, Any]) -> None:
    """Each number phrase becomes digits; every other character stays where it was."""
    assert digits_for_words(case["rewrite"]) == case["text"], case["why"]


def test_thirds_are_read() -> None:
    """A third is the closest float to a third."""
    assert read_number("ثلث") == pytest.approx(1 / 3)
    assert read_number("خمسة وتلت") == pytest.approx(16 / 3)
    assert read_number("ثلثين") == pytest.approx(2 / 3)


def test_number_words_in_gives_spans_in_words() -> None:
    """Spans count words from 0 and end after the last word; digits alone are not listed."""
    text = "حول ألف ومئتين ريال إلى شقة 5 الدور وثلاثة"
    assert number_words_in(text) == [(1, 3, 1200), (8, 9, 3)]
    assert number_words_in("5 6 ٧") == []


@given(st.integers(-(10**18), 10**18), st.sampled_from(SYSTEMS))
def test_digits_of_every_system_are_read(number: int, system: str) -> None:
    """The digits of n in any of the three systems read as n."""
    assert read_number(str(number).translate(str.maketrans(SYSTEMS[0], system))) == number


@given(st.integers(1, 999_999))
def test_spelled_numbers_are_read(number: int) -> None:
    """A number that a plain speller wrote in MSA reads as itself, alone and inside a text."""
    assert read_number(in_words(number)) == number
    assert digits_for_words(f"شقة {in_words(number)} هنا") == f"شقة {number} هنا"


@given(st.one_of(st.text(), st.lists(st.sampled_from(WORDS)).map(" ".join)))
def test_no_text_raises_and_spans_are_in_order(text: str) -> None:
    """Any text is read without an exception; spans neither overlap nor leave the text."""
    read_number(text)
    digits_for_words(text)
    ends = [0]
    for first, after, _ in number_words_in(text):
        assert ends[-1] <= first < after <= len(text.split())
        ends.append(after)


@given(st.lists(st.sampled_from(WORDS), min_size=1).map(" ".join))
def test_a_text_that_is_a_number_is_one_phrase(text: str) -> None:
    """What read_number reads, digits_for_words writes: rewriting a number gives text that reads as that number."""
    number = read_number(text)
    if number is not None and number == int(number):
        assert read_number(digits_for_words(text)) == number


@pytest.mark.parametrize("text", ["خمسة" * 10**5, "خمسة " * 2 * 10**4, "1" * 10**6, "\ud800 خمسة", "و " * 10**4])
def test_hostile_texts_are_no_numbers(text: str) -> None:
    """Long, endless or broken texts are no number and do not raise."""
    assert read_number(text) is None
    digits_for_words(text)
