"""Why an answer lost its points, as every door says it: in either language, about anything, on lines of their own."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arabic_agent_eval.causes import CAUSE_WORDS
from arabic_agent_eval.errors import UsageError
from arabic_agent_eval.integrations.explanations import explain, written
from arabic_agent_eval.integrations.handover import item_of, reply_of, words_in
from arabic_agent_eval.scoring import V0_1, evaluate_reply

ITEM = item_of({"expected_calls": [{"function": "f", "arguments": {"a": "جدة", "b": "*"}}]}, "x")


def explained(output, language="en", item=ITEM, **options):
    """What is said of an output."""
    return explain(item, evaluate_reply(item, reply_of(output), **options), language, said=words_in(output))


def test_a_right_answer_lost_nothing():
    """Of a right answer both languages say so, English first."""
    right = [{"function": "f", "arguments": {"a": "جدة", "b": 1}}]

    assert explained(right, "both") == (
        "Score 1.0000: Function selection 1.0000, Argument accuracy 1.0000, Arabic preservation 1.0000\n"
        "No points were lost.\n\n"
        "الدرجة 1.0000: اختيار الدالة 1.0000، دقة المعاملات 1.0000، الحفاظ على العربية 1.0000\n"
        "لم تضع أي نقطة."
    )


def test_points_and_causes_add_up():
    """The points that are named add up to what is missing of the score, and every cause stands in words."""
    text = explained([{"function": "g", "arguments": {"a": "Jeddah"}}, {"function": "f"}, {"function": "f"}])

    score = float(re.search(r"Score (\d\.\d+)", text)[1])
    points = [float(found) for found in re.findall(r"−(\d\.\d+)", text)]
    assert sum(points) == pytest.approx(1 - score, abs=1e-3)
    for cause in re.findall(r"−\d\.\d+ (\w+)", text):
        assert CAUSE_WORDS[cause][0] in text
    assert "Call 1 (f) · b: " in text
    assert "  Expected: any value\n  Actual: nothing" in text
    assert "extra_call ×2: A call was made that nobody asked for.\n  Expected: nothing\n  Actual: f" in text


def test_what_could_not_be_read_is_shown_as_sent():
    """Arguments that are no object stand as they came, beside those that were expected."""
    text = explained([{"function": "f", "arguments": '{"a": "جدة"'}])

    assert 'malformed_arguments: The arguments are not one JSON object.\n  Expected: {"a":"جدة","b":"*"}' in text
    assert '  Actual: {"a": "جدة"' in text


def test_nothing_arabic_is_not_said_to_be_kept():
    """Where nothing Arabic was expected, preservation is not applicable, in either language."""
    item = item_of({"expected_calls": [{"function": "f", "arguments": {"n": 1}}]}, "x")

    assert "Arabic preservation not applicable" in explained([], "en", item)
    assert "الحفاظ على العربية لا ينطبق" in explained([], "ar", item)


def test_an_answer_that_never_came_has_a_reason_and_no_losses():
    """The provider's words are all that is said of it."""
    assert explained({"error": "timeout\nkey\u200f"}) == "Answers not judged: The request failed: timeout key⟨U+200F⟩"


def test_a_loss_of_no_call_in_particular():
    """Under rules that give nothing for silence, the loss belongs to no call."""
    item = item_of({"expected_calls": []}, "x")

    assert explained("لا", item=item, rules=V0_1).splitlines()[1:] == [
        "−1.0000 no_call: No function was called.",
        "  Expected: nothing",
        "  Actual: nothing",
        "The model said: لا",
    ]


def test_very_many_reasons_are_counted():
    """Fifty reasons are written out, and the others counted."""
    item = item_of({"expected_calls": [{"function": "f", "arguments": {f"a{n}": n + 1 for n in range(120)}}]}, "x")

    text = explained([{"function": "f", "arguments": {}}], item=item)

    assert text.count("missing: ") == 50
    assert text.endswith("and 70 more")


@pytest.mark.parametrize("language", ["fr", "", None, 3])
def test_there_are_two_languages(language):
    """Another language is refused, and the message names those that there are."""
    with pytest.raises(UsageError, match="one of en, ar, both"):
        explained([], language)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES, VALUES)
def test_anything_can_be_explained(name, value):
    """Whatever a model sent is said on harmless lines, and with the same points in both languages."""
    output = [{"function": name, "arguments": value}, {"function": "f", "arguments": {"a": value}}, value]

    english, arabic = explained(output, "en"), explained(output, "ar")

    for text in (english, arabic):
        assert text.isprintable() or all(line.isprintable() for line in text.split("\n"))
        text.encode()
    assert re.findall(r"−\d\.\d{4} \w+", english) == re.findall(r"−\d\.\d{4} \w+", arabic)


@pytest.mark.parametrize(
    ("value", "text"),
    [("جدة", "جدة"), ([1, "جدة"], '[1,"جدة"]'), (1j, "1j"), (["\ud83d"], r"['\ud83d']"), ([10**5000], "…")],
)
def test_values_are_written_as_json_where_they_can_be(value, text):
    """Text stands as it is, JSON as JSON, and what is neither as Python writes it, if it does."""
    assert written(value) == text


def test_what_nests_without_end_is_not_written():
    """A value that no reader could read is shown as an ellipsis."""
    deep = []
    for _ in range(100_000):
        deep = [deep]

    assert written(deep) == "…"
    with pytest.raises(RecursionError):
        msgspec.json.encode(deep)
