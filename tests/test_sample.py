"""The bundled set "sample": balanced, fair, and a tour of what can go wrong."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from datetime import date, datetime, timedelta

import msgspec
import pytest

from arabic_agent_eval.bundled import find_items, find_replies, find_tools, set_names
from arabic_agent_eval.checks import check_items
from arabic_agent_eval.formats import read_reply
from arabic_agent_eval.items import CATEGORIES, DIALECTS, ItemSet
from arabic_agent_eval.scoring import evaluate_reply
from arabic_agent_eval.text import has_arabic
from arabic_agent_eval.tools import Toolbox

ITEMS = ItemSet.read(find_items("sample"))
TOOLS = Toolbox.from_schemas(json.loads(find_tools("sample", None).read_text(encoding="utf-8")))
REPLIES = [json.loads(line) for line in find_replies("sample").read_text(encoding="utf-8").splitlines()]
FOLDER = find_items("sample").parent

SHOWN = {
    "translated", "transliterated", "spelling", "diacritics", "digits", "date_or_time", "missing", "dialect_word",
    "wrong_function", "extra_call", "no_call", "wrong_order", "double_encoded_arguments",
}  # fmt: skip
"""The causes that the card promises."""

DAYS_FROM_NOW = {
    **dict.fromkeys(("اليوم", "الليلة"), 0),
    **dict.fromkeys(("بكرة", "بكرا", "غدوة", "غداً", "غدًا", "غدا"), 1),
    **dict.fromkeys(("عقب باكر", "بعد غد"), 2),
}
FRIDAY = 4

per_item = pytest.mark.parametrize("item", ITEMS.values(), ids=list(ITEMS))


def results():
    """The judgement of every sample reply."""
    return [evaluate_reply(ITEMS[row["id"]], read_reply(row)) for row in REPLIES]


def test_the_set_is_bundled_and_balanced():
    """Four items a category, each in another dialect; four or five a dialect."""
    assert "sample" in set_names()
    cells = Counter((item.category, item.dialect) for item in ITEMS.values())
    assert set(cells.values()) == {1}
    assert Counter(category for category, _ in cells) == dict.fromkeys(CATEGORIES, 4)
    assert Counter(dialect for _, dialect in cells) == dict.fromkeys(DIALECTS, 5) | {"msa": 4}


def test_the_set_shows_what_items_can_be():
    """One item without calls, two in any order, and results wherever there are several ordered calls."""
    assert [name for name, item in ITEMS.items() if not item.expected_calls] == ["simple-levantine"]
    assert [name for name, item in ITEMS.items() if not item.ordered] == ["dialect-levantine", "tool-egyptian"]
    several = [item for item in ITEMS.values() if item.ordered and len(item.expected_calls) > 1]
    assert {item.category for item in several} == {"multi_step", "error_recovery"}
    assert all(call.result is not msgspec.UNSET for item in several for call in item.expected_calls)


def test_the_data_check_is_clean():
    """Every right answer can be known and fits its tool."""
    assert check_items(ITEMS.values(), TOOLS) == []


def test_tools_are_described_in_arabic_and_used():
    """Twelve tools; each has an Arabic name and description, and some item expects it."""
    assert len(TOOLS) == 12
    assert all(has_arabic(tool.name_ar) and has_arabic(tool.description_ar) for tool in TOOLS.values())
    assert {call.function for item in ITEMS.values() for call in item.expected_calls} == set(TOOLS)


@per_item
def test_there_is_a_choice_of_tools(item):
    """Four to eight tools are offered, none of them twice."""
    assert 4 <= len(item.offered) <= 8
    assert len(item.offered) == len(item.available_functions)


@per_item
def test_words_for_days_mean_the_expected_date(item):
    """A date that is also accepted as a word is the day that the word means at the item's moment."""
    for call in item.expected_calls:
        for word in (call.accept or {}).get("date", ()):
            expected = date.fromisoformat(call.arguments["date"])
            if "الجمعة" in word:
                assert expected.weekday() == FRIDAY
            else:
                now = datetime.fromisoformat(item.context["now"])
                assert expected == now.date() + timedelta(days=DAYS_FROM_NOW[word])


@pytest.mark.parametrize("name", [name for name, item in ITEMS.items() if item.category == "error_recovery"])
def test_an_error_is_answered_by_another_call(name):
    """The first call gets the Arabic error, and what follows is the same tool with other arguments."""
    item = ITEMS[name]
    first, second = item.expected_calls
    assert first.result == item.error_response
    assert has_arabic(item.error_response["error"])
    assert first.function == second.function
    assert first.arguments != second.arguments


def test_every_item_has_one_reply_and_all_are_scored():
    """Coverage is full, in four formats, with thirteen right replies, as the card says."""
    assert [row["id"] for row in REPLIES] == list(ITEMS)
    assert {read_reply(row).kind for row in REPLIES} == {"tool_calls", "text", "response", "calls"}
    assert [result.status for result in results()] == ["scored"] * len(ITEMS)
    assert sum(result.score.exact for result in results()) == 13


def test_replies_show_the_causes_that_the_card_names():
    """All promised causes occur, no other, and the points of each reply add up."""
    assert {loss.cause for result in results() for loss in result.losses} == SHOWN
    for result in results():
        assert sum(loss.points for loss in result.losses) == pytest.approx(1 - result.score.total)


@pytest.mark.parametrize("name", ["items.jsonl", "tools.json", "replies.jsonl", "README.md"])
def test_files_are_plain_readable_arabic(name):
    r"""UTF-8 in logical order: no escapes for letters, no invisible characters, no presentation forms."""
    text = (FOLDER / name).read_text(encoding="utf-8")
    assert "\\u0" not in text
    assert not [char for char in text if unicodedata.category(char) in {"Cf", "Co", "Cs"}]
    assert unicodedata.normalize("NFC", text) == text
    assert not [char for char in text if "\ufb50" <= char <= "\ufdff" or "\ufe70" <= char <= "\ufeff"]
