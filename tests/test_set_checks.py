"""Careless sets: repeated requests, intents that are not parallel, lines in the wrong dialect, and floors."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arabic_agent_eval.copy_checks import check_copies
from arabic_agent_eval.items import DIALECTS, ExpectedCall, Item, item_from_row
from arabic_agent_eval.set_checks import ANY_SET, WHOLE_SET, check_any_set, check_whole_set
from arabic_agent_eval.tools import Tool
from tests.pages import table
from tests.test_cli import aae, write

BASE = {
    "id": "x", "category": "multi_step", "instruction": "بدي شوف مواعيد القطر من صور لصيدا", "dialect": "levantine",
    "available_functions": ["search_trains"],
    "expected_calls": [{"function": "search_trains", "arguments": {"from_city": "صور", "to_city": "صيدا"}}],
}  # fmt: skip
OTHER = [{"function": "search_trains", "arguments": {"from_city": "بعلبك", "to_city": "زحلة"}}]
FIVE = {
    "msa": "أريد معرفة مواعيد القطار من صور إلى صيدا",
    "gulf": "وش مواعيد القطار من صور لصيدا",
    "egyptian": "عايز مواعيد القطر من صور لصيدا",
    "levantine": "بدي مواعيد القطر من صور لصيدا",
    "maghrebi": "بغيت نعرف وقتاش القطار من صور لصيدا",
}


def rows(*changes: dict) -> list[Item]:
    """The base item with each of these changes, under ids of their own."""
    return [item_from_row(BASE | {"id": f"i{place}"} | change) for place, change in enumerate(changes)]


def found(*changes: dict, whole: bool = True, tools=(), **options) -> list[tuple[str, str, str]]:
    """Item, rule and field of each finding."""
    items = rows(*changes)
    findings = check_any_set(items)
    if whole:
        findings += check_whole_set(items, dict(tools), **options)[1]
    return [(one.item_id, one.rule, one.field) for one in findings]


def said(text: str, dialect: str, **more) -> dict:
    """An item that says a text in a dialect and expects no call."""
    return {"instruction": text, "dialect": dialect, "expected_calls": []} | more


def parallel(**changes) -> list[dict]:
    """One intent in the five dialects; what is given for one of them changes its item."""
    return [
        {"intent": "trains", "dialect": name, "instruction": text} | changes.get(name, {})
        for name, text in FIVE.items()
    ]


# --- repeated requests ---------------------------------------------------------------------------------------

REPEATED = [
    ({}, ["duplicate"], "the same request counts twice in any set"),
    ({"instruction": "بدّي شوف، مواعيد القطر من صور لصيدا!"}, ["duplicate"], "diacritics and punctuation are folded"),
    ({"context": {"now": "2027-03-01"}}, ["near_duplicate"], "at another time it is only too much alike"),
    ({"expected_calls": OTHER}, ["near_duplicate"], "equal words are, whatever is expected"),
    ({"instruction": "مواعيد القطر بدي شوف من صور لصيدا"}, ["near_duplicate"], "in another order of words"),
    ({"instruction": "بدي شوف مواعيد القطار من صور لصيدا"}, ["near_duplicate"], "with one letter more"),
    ({"instruction": "بدي شوف مواعيد القطر من صور لجبيل", "expected_calls": OTHER}, [], "other calls, other request"),
    ({"instruction": "شو مواعيد القطر لصيدا من صور بكرا الصبح؟"}, [], "said otherwise"),
    ({"dialect": "egyptian", "instruction": "عايز " + BASE["instruction"][5:]}, [], "another dialect"),
    ({"messages": [{"role": "user", "content": "مرحبا، كيفك؟ عندي سؤال عن القطارات"}]}, [], "after another talk"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "rules", "why"), REPEATED, ids=[why for _, _, why in REPEATED])
def test_repeated_requests_are_found(change, rules, why):
    """The second of two items is named once, by the rule that fits."""
    assert [rule for name, rule, _ in found({}, change) if name == "i1"] == rules, why


def test_any_set_is_held_to_what_holds_for_any_set():
    """Without the rules of a whole set, only true duplicates are found."""
    changes = [change for change, _, _ in REPEATED]

    assert {rule for _, rule, _ in found({}, *changes, whole=False)} == {"duplicate"}
    assert found({"instruction": ""}, {"instruction": ""}, whole=False) == []


# --- intents -------------------------------------------------------------------------------------------------


def test_a_parallel_intent_is_fine():
    """One request in five dialects with the same key, and other spellings accepted, has no finding."""
    accepts = [{"function": "search_trains", "accept": {"to_city": ["صيدة"]}, "arguments": {"from_city": "صور",
                "to_city": "صيدا"}}]  # fmt: skip
    english = {
        "intent": "trains",
        "dialect": "english",
        "language": "en",
        "instruction": "trains",
        "expected_calls": [],
    }

    assert found(*parallel(gulf={"expected_calls": accepts}), english) == []


def test_a_missing_dialect_is_named():
    """An intent in several dialects lacks the others; an intent of one dialect is alone by design."""
    items = rows(*parallel()[1:4], said("واش نقدر نمشي دابا؟", "maghrebi", intent="alone"))
    [finding] = check_whole_set(items, {})[1]

    assert (finding.item_id, finding.rule, finding.field) == ("i0", "incomplete_intent", "intent")
    assert "'trains' is missing in msa, maghrebi" in finding.message


UNLIKE = [
    ({"category": "tool_selection"}, ["category"]),
    ({"available_functions": ["search_trains", "book_train"]}, ["available_functions"]),
    ({"context": {"now": "2027-03-01"}}, ["context"]),
    ({"expected_calls": [{"function": "book_train", "arguments": {"from_city": "صور"}}]}, ["expected_calls"]),
    ({"expected_calls": [BASE["expected_calls"][0] | {"result": {"trains": []}}]}, ["expected_calls"]),
    ({"ordered": False}, ["expected_calls"]),
    ({"tools": [{"name": "search_trains"}]}, ["tools"]),
    ({"category": "tool_selection", "context": {}}, ["category", "context"]),
    ({"difficulty": "hard", "tags": ["سفر"]}, []),
]


@pytest.mark.parametrize(("change", "fields"), UNLIKE)
def test_unlike_items_of_an_intent_are_found(change, fields):
    """Whatever should be the same in all dialects, and is not, is named."""
    findings = found(*parallel(egyptian=change))

    assert findings == [("i2", "unlike_intent", field) for field in fields]


# --- dialects ------------------------------------------------------------------------------------------------

LINES = [
    ("احجز غرفة في فندق الواحة", "gulf", ["no_dialect_marker"], "it could be any Arabic"),
    ("احجز غرفة في فندق الواحة", "msa", [], "Standard Arabic needs no marker"),
    ("أبغى غرفة في فندق الواحة", "gulf", [], "one marker is enough"),
    ("شو في غرف بالفندق؟", "levantine", [], "a word of two dialects marks each of them"),
    ("شو في غرف بالفندق؟", "gulf", [], "and is no stranger in either"),
    ("عايز غرفة، بدي تكون هادية", "levantine", ["foreign_marker"], "a word of one other dialect"),
    ("دلوقتي دلوقتي يا صاحبي بدي غرفة", "levantine", ["foreign_marker"], "is named once"),
    ("بزاف الغرف", "msa", ["foreign_marker"], "also in Standard Arabic"),
    ("سوف أحتاج غرفة", "egyptian", ["no_dialect_marker", "msa_leakage"], "Standard Arabic in a dialect"),
    ("هل فيه غرف؟ عايز واحدة", "egyptian", ["msa_leakage"], "beside its own words"),
    ("الآن أبغى غرفة فقط", "gulf", [], "words that Standard Arabic shares with speakers are only counted"),
    ("اكتب لها «سوف أتأخر» الحين", "gulf", [], "what is quoted may be in any Arabic"),
    ("3ayez oda f fondo2 el wa7a", "egyptian", [], "Latin letters are not judged"),
    ("I want a room at «فندق الواحة»", "egyptian", [], "nor what has Arabic in a quotation only"),
    ("أي شيء", "other", [], "another dialect is not known here"),
]


@pytest.mark.parametrize(("text", "dialect", "rules", "why"), LINES, ids=[why for *_, why in LINES])
def test_lines_speak_their_dialect(text, dialect, rules, why):
    """A line holds words of its dialect, and none that only another one has."""
    assert [rule for _, rule, _ in found(said(text, dialect))] == rules, why


def test_names_are_no_markers():
    """A word of an expected value does not speak for the dialect, and not against it."""
    calls = [{"function": "order_food", "arguments": {"restaurant": "دابا"}}]

    assert found(said("عايز آكل من مطعم دابا", "egyptian")) == [("i0", "foreign_marker", "instruction")]
    assert found(said("عايز آكل من مطعم دابا", "egyptian", expected_calls=calls)) == []


def test_the_users_turns_are_the_line():
    """Without an instruction the user's messages are read; the assistant's are not."""
    turns = [{"role": "user", "content": "عندي سؤال"}, {"role": "assistant", "content": "عايز ايه؟"}]

    assert found(said("", "egyptian", messages=turns)) == [("i0", "no_dialect_marker", "instruction")]


# --- copies --------------------------------------------------------------------------------------------------

COPIES = [
    ("حولي للدكتورة منى ألف", "الدكتورة منى", [], False, "ل and the article have melted into another word"),
    ("حولي للدكتورة منى ألف", "الدكتورة منى", ["دكتورة منى"], True, "the words without them are accepted"),
    ("حولي للدكتورة منى ألف", "الدكتورة منى", ["للدكتورة منى"], True, "or as they stand"),
    ("حولي للدكتورة منى ألف", "الدكتورة منى", ["منى"], False, "another accepted value is no help"),
    ("الجو بالرياض", "الرياض", [], True, "a particle of one letter is dropped"),
    ("وبالرياض؟", "الرياض", [], True, "and two of them"),
    ("رحلة للرياض", "الرياض", [], True, "the article of a city's name is known"),
    ("الجو في الوادي الجديد", "وادي الجديد", [], False, "the article was left out of the key"),
    ("من مكه", "مكة", [], False, "another spelling counts less"),
    ("من مكه", "مكة", ["مكه"], True, "unless it is accepted"),
    ("إلى مَكّة", "مكة", [], False, "diacritics lose"),
    ("اكتب «خبز، حليب»", "خبز، حليب", [], True, "punctuation inside a value is copied"),
    ("اكتب خبز حليب", "خبز، حليب", [], False, "and missed where it is not there"),
    ("من تمر", "مر", [], True, "a part of a word is no copy"),
    ("منى قالت لسارة الكعبي", "سارة منى", [], True, "words from several places are no copy"),
    ("ما قال شي", "منى", [], True, "what is not said cannot be copied"),
    ("من مكه يا صديقي ثم من مكة", "مكة", [], True, "one place is enough"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value", "accept", "fine", "why"), COPIES, ids=[why for *_, why in COPIES])
def test_copies_of_the_users_words_count(text, value, accept, fine, why):
    """A value that the user says in another form is found, unless the copy counts in full."""
    item = Item("x", "multi_step", [ExpectedCall("f", {"a": value}, {"a": accept})], instruction=text, dialect="gulf")
    findings = check_copies(item, {})

    assert [(one.rule, one.field) for one in findings] == (
        [] if fine else [("verbatim_loses", "expected_calls[0].arguments.a")]
    ), why
    assert all(repr(value) in one.message for one in findings)


def test_copies_inside_lists_and_from_elsewhere():
    """Each place inside a value is named; what a schema, the context or a result holds can be copied from there."""
    value = [{"name": "الكنافة"}, {"name": "شاي"}]
    call = ExpectedCall("f", {"items": value, "n": 3, "all": "*"}, {"items": [[{"name": "كنافة"}, {"name": "شاي"}]]})
    item = Item("x", "multi_step", [call], instruction="كنافه وشاي", dialect="gulf")
    schema = {"type": "object", "properties": {"items": {"enum": ["الكنافة"]}}}

    assert [one.field for one in check_copies(item, {})] == ["expected_calls[0].arguments.items[0].name"]
    assert check_copies(item, {"f": Tool("f", parameters=schema)}) == []
    assert check_copies(item, {"f": Tool("f", parameters=None)}) != []
    for more in ({"context": {"menu": "الكنافة"}}, {"instruction": "كنافة وشاي"}):
        changed = Item("x", "multi_step", [call], **{"instruction": "كنافه وشاي", "dialect": "gulf"} | more)
        assert check_copies(changed, {}) == []


# --- floors and the overview ---------------------------------------------------------------------------------


def test_floors():
    """Each dialect and category below its floor is named, and a category that is wanted but absent; others are not."""
    options = {"per_dialect": 1, "per_category": 5, "categories": ["multi_step", "tool_selection"]}
    items = rows(*parallel(), said("I", "english", category="own", language="en"))
    assert check_whole_set(items, {}, **options | {"per_category": 0})[1] == []
    messages = [one.message for one in check_whole_set(items[1:], {}, **options)[1] if one.rule == "unbalanced"]

    assert [text.split(" and ")[0] for text in messages] == [
        "The dialect 'msa' has 0 items",
        "The category 'multi_step' has 4 items",
        "The category 'tool_selection' has 0 items",
        "The category 'own' has 1 items",
    ]


def test_the_overview_counts():
    """Cells, intents and words are counted; items without a dialect too."""
    items = rows(*parallel(), *parallel(gulf={"dialect": "gulf"})[1:3], {"dialect": None})
    for place, item in enumerate(items[5:7]):
        items[5 + place] = item_from_row(json.loads(json.dumps(BASE)) | {
            "id": item.id, "intent": "again", "dialect": item.dialect, "instruction": item.instruction})  # fmt: skip
    overview = check_whole_set(items, {})[0]

    assert overview.cells == {name: {"multi_step": 1 + (name in {"gulf", "egyptian"})} for name in DIALECTS} | {
        "": {"multi_step": 1}
    }
    assert (overview.complete_intents, overview.partial_intents) == (1, 1)
    gulf, msa = overview.dialects["gulf"], overview.dialects["msa"]
    assert (gulf.items, gulf.marked, gulf.markers, gulf.distinct, gulf.msa_words) == (2, 2, 2, 1, 0)
    assert (msa.items, msa.markers, msa.msa_words) == (1, 1, 1)


def test_every_rule_is_tried_worded_and_documented():
    """Rules have a message that ends as a sentence does, and the page of item sets lists them as they are worded."""
    items = rows({}, {}, {"context": {"now": "1"}}, *parallel(gulf={"category": "x"})[1:], said("غرفة عايز", "gulf"),
                 said("سوف", "gulf"), {"instruction": "بدي من صور لصيدَا"})  # fmt: skip
    findings = check_any_set(items) + check_whole_set(items, {}, per_dialect=1)[1]

    assert {one.rule for one in findings} == {*ANY_SET, *WHOLE_SET}
    assert all(one.message.endswith(".") and "\n" not in one.message for one in findings)
    assert {name.strip("`"): text for name, text in table("data.md", "rule of a set")} == ANY_SET | WHOLE_SET


def test_hostile_items_from_memory_are_checked_too():
    """Lone surrogates, endless nesting and tools that are none end in findings, never in an exception."""
    items = []
    for place in range(3):
        deep: list = []
        for _ in range(3000):
            deep = [deep]
        call = ExpectedCall("t\ud800", {"a": "\ud800جدة", "b": deep, "c": "جدة"}, {"b": [deep]})
        more = {"instruction": "«" * 300 + "جده ورا \ud800", "intent": "\ud800", "context": {"a": deep}}
        items.append(Item(f"\ud800{place}", "x", [call], tools=[5, {"name": 3}], dialect="gulf", **more))

    check_any_set(items)
    assert {one.rule for one in check_whole_set(items, {})[1]} == {
        "no_dialect_marker",
        "verbatim_loses",
        "near_duplicate",
    }


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(DIALECTS), st.text(max_size=12), st.text(max_size=6)), max_size=6))
def test_no_text_raises(lines):
    """Whatever lines and values are, the answer is a list of findings whose rules are documented."""
    items = [
        Item(str(place), "multi_step", [ExpectedCall("f", {"a": value})], instruction=text, dialect=dialect, intent="i")
        for place, (dialect, text, value) in enumerate(lines)
    ]
    overview, findings = check_whole_set(items, {})

    assert {one.rule for one in findings} <= set(WHOLE_SET)
    assert sum(sum(cell.values()) for cell in overview.cells.values()) == len(items)


# --- the command ---------------------------------------------------------------------------------------------


def test_the_command_prints_what_the_set_holds(tmp_path):
    """With --whole the tables come first, then the findings; the JSON has both; without it neither is there."""
    path = write(tmp_path / "items.jsonl", [BASE | {"id": f"i{place}"} | row for place, row in enumerate(parallel())])
    tools = tmp_path / "tools.json"
    schema = {"type": "object", "properties": {"from_city": {"type": "string"}, "to_city": {"type": "string"}}}
    tools.write_text(json.dumps([{"name": "search_trains", "parameters": schema}]), encoding="utf-8")

    plain, whole = aae("data", "check", path), aae("data", "check", path, "--whole")
    floor = aae("data", "check", path, "--whole", "--per-dialect", 2, "--per-category", 1, "--json")

    assert (plain.code, plain.out) == (0, "5 items checked, nothing found.\n")
    assert whole.code == 0
    assert "Intents: 1 in all five dialects, 0 in several but not in all." in whole.out
    assert [line.split() for line in whole.out.splitlines() if "multi_step" in line] == [["multi_step", *"11111", "5"]]
    assert whole.out.splitlines()[-1] == "5 items checked, nothing found."
    assert floor.code == 1
    assert floor.json["overview"]["cells"]["gulf"] == {"multi_step": 1}
    assert [one["rule"] for one in floor.json["findings"]] == ["unbalanced"] * 10
    assert "10 findings in 0 of 5 items: unbalanced 10." in aae(
        "data", "check", path, "--whole", "--per-dialect", 2, "--per-category", 1).out  # fmt: skip


def test_floors_need_the_whole_set(tmp_path):
    """A floor without --whole is refused, and a set whose names are hostile is shown harmlessly."""
    row = BASE | {"category": "c\u202e\x1b[2J", "intent": "i\x1b", "dialect": "d\x1b"}
    path = write(tmp_path / "items.jsonl", [row, row | {"id": "y\x1b", "dialect": "gulf"}])

    refused = aae("data", "check", path, "--per-dialect", 5)
    shown = aae("data", "check", path, "--whole")

    assert refused.code == 2
    assert "add --whole" in refused.err
    assert shown.code == 1
    assert not {"\x1b", "\u202e"} & set(shown.out)
    assert "c⟨U+202E⟩⟨U+001B⟩[2J" in shown.out
