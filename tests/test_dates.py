"""Dates and times in different forms and calendars: which texts are moments, and which are the same one."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest
from hijridate import Gregorian
from hypothesis import given
from hypothesis import strategies as st

from arabic_agent_eval.dates import Moment, read_moment, same_moment

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "cases" / "dates.json").read_text("utf-8"))
TEXTS = sorted({case[side] for case in CASES for side in "ab"})
MOMENTS = [text for text in TEXTS if read_moment(text) is not None]
WORDS = sorted({word for text in TEXTS for word in text.split()})
MONTHS = "يناير شباط مارس نيسان ماي حزيران جويلية آب شتنبر أكتوبر نونبر ديسمبر"
SHARED_CASES = Path(__file__).parents[1] / ".." / "shared" / "data" / "cases" / "arguments.jsonl"


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in CASES])
def test_same_moment_holds_for_the_table_in_both_directions(case: dict[str, Any]) -> None:
    """Two texts are the same moment exactly where the table says so, whichever comes first."""
    assert same_moment(case["a"], case["b"]) is case["same"], case["why"]
    assert same_moment(case["b"], case["a"]) is case["same"], case["why"]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2025-03-01", Moment(2025, 3, 1, weekday=5)),
        ("١ رمضان ١٤٤٦", Moment(2025, 3, 1, weekday=5, hijri=(1446, 9, 1))),
        ("رمضان 1446", Moment(hijri=(1446, 9, None))),
        ("1/3/2025", Moment(2025, 3, 1, weekday=5, convention="dmy")),
        ("15 أكتوبر", Moment(month=10, day=15)),
        ("الخميس القادم", Moment(weekday=3, which="next")),
        ("الأسبوع الجاي", Moment(period="week", which="next")),
        ("بعد بكرة", Moment(relative=2)),
        ("الساعة 5", Moment(hour=5, minute=0, second=0)),
        ("غداً 10 صباحاً", Moment(relative=1, hour=10, minute=0, second=0)),
        ("غداً مساءً", Moment(relative=1, part="evening")),
        ("2025-03-01T17:05:09+03:00", Moment(2025, 3, 1, 5, 17, 5, 9, 180)),
        ("خمسة", None),
        ("2025", None),
    ],
)
def test_read_moment_gives_the_likeliest_reading(text: str, moment: Moment | None) -> None:
    """Every field that the text says is set, Gregorian where the date is complete, and no other."""
    assert read_moment(text) == moment


@given(st.dates(dt.date(1999, 5, 1), dt.date(2028, 5, 1)))
def test_every_form_of_a_day_is_the_same_moment(day: dt.date) -> None:
    """ISO, numeric, named and Hijri forms of one day agree with each other."""
    hijri = Gregorian(day.year, day.month, day.day).to_hijri()
    forms = [
        day.isoformat(),
        f"{day.day}/{day.month}/{day.year}",
        f"{day.day} {MONTHS.split()[day.month - 1]} {day.year}",
        f"{day:%B} {day.day}, {day.year}",
        f"{hijri.day}/{hijri.month}/{hijri.year}",
        f"{hijri.year}-{hijri.month:02}-{hijri.day:02} هـ",
    ]
    assert all(same_moment(a, b) for a in forms for b in forms)
    after = day + dt.timedelta(days=1)
    assert not any(same_moment(form, after.isoformat()) for form in forms if "/" not in form)


@given(st.times(), st.sampled_from(["ISO", "12"]))
def test_every_form_of_a_time_is_the_same_moment(time: dt.time, form: str) -> None:
    """The 12-hour form with its half of the day is the same as the 24-hour form, and an hour later is not."""
    half = "صباحاً" if time.hour < 12 else "pm"
    text = time.isoformat("seconds") if form == "ISO" else f"{time.hour % 12 or 12}:{time:%M:%S} {half}"
    assert same_moment(text, f"{time:%H:%M:%S}")
    assert not same_moment(text, f"{(time.hour + 1) % 24:02}:{time:%M:%S}")


@given(st.sampled_from(MOMENTS), st.sampled_from(MOMENTS))
def test_sameness_is_reflexive_and_symmetric(a: str, b: str) -> None:
    """Every moment is the same as itself, and the order of two texts does not matter."""
    assert same_moment(a, a)
    assert same_moment(a, b) == same_moment(b, a)


@given(st.one_of(st.text(), st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)))
def test_no_text_raises(text: str) -> None:
    """Any text is read without an exception, and is the same as itself exactly when it is a moment."""
    assert same_moment(text, text) is (read_moment(text) is not None)


@given(st.integers(0, 10**6), st.sampled_from(["", "-", "+"]))
def test_plain_numbers_are_never_moments(number: int, sign: str) -> None:
    """A number in digits is no date and no time."""
    assert read_moment(f"{sign}{number}") is None


@pytest.mark.parametrize("text", ["الأحد" + " " * 100, "1" * 10**6, "و" * 100, "\ud800 الأحد", "\x00", "٥:\ud800"])
def test_long_or_broken_texts_are_no_moments(text: str) -> None:
    """Texts over 100 characters are no moments, nor is anything broken."""
    assert read_moment(text) is None
    assert not same_moment(text, text)


def test_published_cases_are_told_apart() -> None:
    """Of the worked cases, those with the cause ``date_or_time`` are the same moment and no other pair is."""
    if not SHARED_CASES.exists():
        pytest.skip("the shared data is not beside this checkout")
    for line in SHARED_CASES.read_text("utf-8").splitlines():
        case = json.loads(line)
        expected, actual = case["expected"], case["actual"]
        if isinstance(expected, str) and isinstance(actual, str) and case["cause"] in ("date_or_time", "wrong_value"):
            assert same_moment(expected, actual) is (case["cause"] == "date_or_time"), case["id"]
