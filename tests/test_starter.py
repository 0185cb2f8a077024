"""The bundled set "starter": every dialect in every category, fair, and answerable by its own expected calls."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter, defaultdict
from datetime import date, datetime, timedelta

import msgspec
import pytest

from arabic_agent_eval.bundled import find_items, find_tools, set_names
from arabic_agent_eval.checks import check_items
from arabic_agent_eval.field_checks import check_fields
from arabic_agent_eval.items import CATEGORIES, DIALECTS, ItemSet
from arabic_agent_eval.text import has_arabic
from arabic_agent_eval.tools import Toolbox

ITEMS = ItemSet.read(find_items("starter"))
SCHEMAS = json.loads(find_tools("starter", None).read_text(encoding="utf-8"))
TOOLS = Toolbox.from_schemas(SCHEMAS)
FOLDER = find_items("starter").parent
CARD = (FOLDER / "README.md").read_text(encoding="utf-8")

LANGUAGES = {
    "msa": {"arb"},
    "gulf": {"afb", "ars"},
    "egyptian": {"arz"},
    "levantine": {"apc"},
    "maghrebi": {"ary", "arq"},
}
OFFERED = {"tool_selection": range(6, 11)}
"""How many tools are offered where it is not four to seven."""

DAYS_FROM_NOW = {
    r"بعد (غد|بكرة|بكرا)|عقب باجر": 2,
    r"(?<!بعد )(?<!عقب )\b(غدًا|غدا|باجر|بكرة|بكرا)\b": 1,
}
WEEKDAYS = {
    r"\b(التلات)\b": 1,
    r"\b(الأربعاء|الاربعاء|الأربعا|لاربعا|الأربع)\b": 2,
    r"\b(الخميس)\b": 3,
    r"\b(السبت)\b": 5,
}
MONTHS = {r"نوفمبر|نونبر|تشرين التاني": 11, r"يناير|جانفي": 1}

per_item = pytest.mark.parametrize("item", ITEMS.values(), ids=list(ITEMS))
per_error = pytest.mark.parametrize("name", [name for name in ITEMS if ITEMS[name].category == "error_recovery"])


def dates(item):
    """The days among the expected arguments."""
    values = [call.arguments.get(name) for call in item.expected_calls for name in ("date", "check_in")]
    return {date.fromisoformat(value) for value in values if value is not None}


def meant_days(item):
    """The days that the words of the instruction mean at the item's moment."""
    now = datetime.fromisoformat(item.context["now"]).date()
    for words, distance in DAYS_FROM_NOW.items():
        if re.search(words, item.instruction):
            yield now + timedelta(days=distance)
    for words, weekday in WEEKDAYS.items():
        if re.search(words, item.instruction):
            yield now + timedelta(days=(weekday - now.weekday() - 1) % 7 + 1)
    for words, month in MONTHS.items():
        if found := re.search(rf"(\d+) ({words})", item.instruction):
            yield date(now.year, month, int(found[1]))


def test_the_set_is_bundled_and_balanced():
    """Two items a category and dialect."""
    assert "starter" in set_names()
    cells = Counter((item.category, item.dialect) for item in ITEMS.values())
    assert cells == {(category, dialect): 2 for category in CATEGORIES for dialect in DIALECTS}


def test_ids_say_the_dialect_and_repeat_nothing():
    """Ids are unique and numbered by dialect; no instruction stands twice."""
    lines = find_items("starter").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["id"] for line in lines] == [
        f"start-{dialect}-{number:02}" for dialect in DIALECTS for number in range(1, 13)
    ]
    assert all(item.id.split("-")[1] == item.dialect for item in ITEMS.values())
    assert len({" ".join(item.instruction.split()) for item in ITEMS.values()}) == len(ITEMS)


def test_the_data_check_is_clean():
    """Every right answer can be known and fits its tool, and no field is misspelt."""
    assert check_items(ITEMS.values(), TOOLS) == []
    assert check_fields(ITEMS.unknown_fields()) == []


def test_the_card_gives_the_true_counts():
    """The table of the card, the varieties and the numbers of items and tools are those of the files."""
    cells = Counter((item.category, item.dialect) for item in ITEMS.values())
    for category in CATEGORIES:
        counts = " | ".join(str(cells[category, dialect]) for dialect in DIALECTS)
        assert f"| {category} | {counts} |" in CARD
    languages = Counter(item.language for item in ITEMS.values())
    assert {name: int(n) for name, n in re.findall(r"\(`(\w+)`\)\s+(\d+)", CARD)} == languages
    assert (len(ITEMS), len(TOOLS)) == (60, 23)
    assert "Sixty requests" in CARD
    assert "twenty-three tools" in CARD
    assert "reviewed by none but models" in CARD


def test_one_intent_of_each_category_is_shared_by_all_dialects():
    """Half of the items are parallel: five dialects, the same tools in the same order, as many tools offered."""
    groups = defaultdict(list)
    for item in ITEMS.values():
        groups[item.intent].append(item)
    shared = [group for group in groups.values() if len(group) > 1]
    assert {group[0].category for group in shared} == set(CATEGORIES)
    for group in shared:
        assert [item.dialect for item in group] == list(DIALECTS)
        assert len({(item.category, item.difficulty, item.offered) for item in group}) == 1
        assert len({tuple((call.function, *call.arguments) for call in item.expected_calls) for item in group}) == 1
    assert sum(map(len, shared)) == len(ITEMS) / 2


def test_each_dialect_has_a_request_without_a_call():
    """Five items want no call; they have the tag and a note that says why."""
    silent = [item for item in ITEMS.values() if not item.expected_calls]
    assert sorted(item.dialect for item in silent) == sorted(DIALECTS)
    assert all("no_call" in item.tags and item.notes for item in silent)
    assert all("no_call" not in item.tags for item in ITEMS.values() if item.expected_calls)


def test_tools_are_described_twice_closed_and_used():
    """Tools and parameters speak English and Arabic, schemas are closed, and some item expects each tool."""
    assert all(has_arabic(tool.name_ar) and has_arabic(tool.description_ar) for tool in TOOLS.values())
    for tool in TOOLS.values():
        assert re.fullmatch("[a-z_]+", tool.name)
        assert tool.parameters["additionalProperties"] is False
        for name, schema in tool.properties.items():
            assert re.fullmatch("[a-z_]+", name)
            assert schema["description"].strip()
            assert has_arabic(schema["description_ar"])
    assert {call.function for item in ITEMS.values() for call in item.expected_calls} == set(TOOLS)


@per_item
def test_an_item_is_whole(item):
    """Variety, intent and difficulty are named, and there is a fair choice of tools, none of them twice."""
    assert item.language in LANGUAGES[item.dialect]
    assert item.intent
    assert item.difficulty in {"easy", "medium", "hard"}
    assert len(item.offered) in OFFERED.get(item.category, range(4, 8))
    assert len(item.offered) == len(item.available_functions)


@per_item
def test_several_calls_run_as_a_conversation(item):
    """Where more than one call is wanted every one has a result; where one is, none has."""
    several = len(item.expected_calls) > 1
    assert all((call.result is not msgspec.UNSET) == several for call in item.expected_calls)
    assert several or item.category not in {"multi_step", "error_recovery"}
    assert item.ordered or several


@per_item
def test_days_are_those_that_the_words_mean(item):
    """Every day in the user's words is expected, and every expected day comes from them or from a result."""
    if item.context is None:
        assert dates(item) == set()
        return
    meant = set(meant_days(item))
    answered = json.dumps([call.result for call in item.expected_calls if call.result is not msgspec.UNSET])
    assert meant <= dates(item)
    assert {day for day in dates(item) - meant if day.isoformat() not in answered} == set()


@per_error
def test_an_error_is_answered_first_and_then_overcome(name):
    """The first result is the Arabic error, also as the item's error; then the same tool with other arguments works."""
    item = ITEMS[name]
    first, second = item.expected_calls
    assert first.result == item.error_response
    assert re.fullmatch("[A-Z_]+", item.error_response["error"]["code"])
    assert has_arabic(item.error_response["error"]["message"])
    assert first.function == second.function
    assert first.arguments != second.arguments
    assert "error" not in second.result


@pytest.mark.parametrize("name", ["items.jsonl", "tools.json", "README.md"])
def test_files_are_plain_readable_arabic(name):
    r"""UTF-8 in logical order: no escapes for letters, no control or invisible characters, no presentation forms."""
    text = (FOLDER / name).read_text(encoding="utf-8")
    assert "\\u" not in text
    odd = {"Cc", "Cf", "Co", "Cs", "Cn"}
    assert not [char for char in text if unicodedata.category(char) in odd and char != "\n"]
    assert unicodedata.normalize("NFC", text) == text
    assert not [char for char in text if "\ufb50" <= char <= "\ufdff" or "\ufe70" <= char <= "\ufeff"]
