"""The simulated tools: what meets an expected call gets its result, everything else an honest refusal."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arabic_agent_eval.bundled import DATA
from arabic_agent_eval.grading import Expectation
from arabic_agent_eval.items import Item, ItemSet, item_from_row
from arabic_agent_eval.tools import Call, Toolbox
from arabic_agent_eval.world import World, is_conversation
from tests.strategies import json_values, sent_calls

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "unit": {"type": "string", "enum": ["C", "F"]},
        "kind": {"enum": ["C", 1]},
        "list": {"type": "array"},
        "price": {"type": ["number", "null"]},
        "deep": {
            "type": "array",
            "items": {"type": "object", "properties": {"n": {"type": "boolean"}}, "required": ["n"]},
        },
    },
    "required": ["city"],
    "additionalProperties": False,
}  # fmt: skip
TOOLS = Toolbox.from_schemas([
    {"name": "weather", "parameters": SCHEMA},
    {"name": "book", "parameters": {"type": "object", "properties": {"n": {}}}},
    {"name": "odd", "parameters": {"type": "string"}},
    {"name": "loose", "parameters": {"properties": 5, "required": "city", "enum": None, "type": {}}},
])  # fmt: skip
HIDDEN = "قيمة_سرية"


def expected(function: str, arguments: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """An expected call."""
    return {"function": function, "arguments": arguments or {}, **more}


def item_of(*calls: dict[str, Any], **more: Any) -> Item:
    """An item that expects the calls."""
    return item_from_row({"id": "1", "category": "multi_step", "expected_calls": list(calls), **more})


def world_of(*calls: dict[str, Any], **more: Any) -> World:
    """The world of such an item."""
    return World(item_of(*calls, **more), TOOLS)


def told(world: World, function: Any, arguments: Any = None) -> Any:
    """What the world answers, decoded."""
    return json.loads(world.answer(Call.read(function, arguments)))


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"حالة": "مشمس"}, '{"حالة":"مشمس"}'),
        ("تم", '"تم"'),
        (None, "null"),
        ([1, 2.5, True], "[1,2.5,true]"),
        (10**40, "1" + "0" * 40),
        ("\ud800", '"\ufffd"'),
    ],
)
def test_a_right_call_gets_its_result(result, text):
    """Any JSON value is sent as JSON text, Arabic unescaped; null is a result as well."""
    world = world_of(expected("weather", {"city": "مكة"}, result=result))

    assert world.answer(Call("weather", {"city": "مكه", "unit": "K"})) == text


@pytest.mark.parametrize(
    ("calls", "answer"),
    [
        ([], False),
        ([expected("book")], False),
        ([expected("book"), expected("book", result=None)], True),
        ([expected("book", result={})], True),
    ],
)
def test_conversations_are_known_by_their_results(calls, answer):
    """An item with any result is a conversation, also where that result is null."""
    assert is_conversation(item_of(*calls)) is answer


@pytest.mark.parametrize(
    ("function", "arguments", "code", "named"),
    [
        (None, {}, "malformed_call", ""),
        ("", {}, "malformed_call", ""),
        ("weather", "{'city'", "malformed_arguments", "JSON"),
        ("weather", '"{}"', "malformed_arguments", "مرتين"),
        ("sell\u202e", {}, "unknown_tool", "«sell⟨U+202E⟩»"),
        ("\ud800", {}, "unknown_tool", "⟨U+D800⟩"),
        ("x" * 100_000, {}, "unknown_tool", "«" + "x" * 60 + "…»"),
        ("weather", {}, "invalid_arguments", "معاملات مطلوبة لم تُرسل: city."),
        ("weather", {"city": None}, "invalid_arguments", "معاملات مطلوبة لم تُرسل: city."),
        ("weather", {"city": 5}, "invalid_arguments", "معاملات من نوع غير صحيح: city."),
        ("weather", {"city": "", "days": True}, "invalid_arguments", "معاملات من نوع غير صحيح: days."),
        ("weather", {"city": "", "days": 1.5}, "invalid_arguments", "days"),
        ("weather", {"city": "", "price": "5"}, "invalid_arguments", "price"),
        ("weather", {"city": "", "unit": "K"}, "invalid_arguments", "ليست من القيم المسموح بها: unit."),
        ("weather", {"city": "", "kind": True}, "invalid_arguments", "kind"),
        ("weather", {"city": "", "unit": "k" * 99999}, "invalid_arguments", "unit"),
        ("weather", {"city": "", "when": ""}, "invalid_arguments", "معاملات غير معروفة: when."),
        ("weather", {"city": "", "w" * 99999: ""}, "invalid_arguments", "w" * 60 + "…."),
        ("weather", {"town": "", "days": "x"}, "invalid_arguments", "city؛ معاملات غير معروفة: town؛"),
        ("weather", {"city": "", "deep": [{"n": True}, {}]}, "invalid_arguments", "deep[1].n"),
        ("weather", {"city": "", "deep": [{"n": 1}]}, "invalid_arguments", "deep[0].n"),
        ("weather", {"city": "", "deep": {}}, "invalid_arguments", "deep"),
        ("odd", {"a": 1}, "invalid_arguments", "{}"),
    ],
)  # fmt: skip
def test_a_faulty_call_is_told_what_is_wrong(function, arguments, code, named):
    """A call that a service would refuse gets an error in Arabic that names what is wrong, harmlessly and shortly."""
    world = world_of(expected("weather", {"city": HIDDEN}, result=1))
    text = world.answer(Call.read(function, arguments))
    error = json.loads(text)["error"]

    assert error["code"] == code
    assert named in error["message"]
    assert len(text) < 500
    assert HIDDEN not in text


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("weather", {"city": "جدة"}),
        ("weather", {"city": "جدة", "days": 2.0, "unit": "C", "price": None, "when": None}),
        ("weather", {"city": "جدة", "kind": 1.0, "list": [1]}),
        ("weather", {"city": "جدة", "deep": [{"n": False, "other": None}, {"n": True, "m": 5}]}),
        ("book", {"anything": {"at": "all"}}),
        ("loose", {"city": 5}),
        ("loose", {}),
    ],
)
def test_wrong_values_and_needless_calls_get_one_answer(function, arguments):
    """Neither the answer to wrong values nor the one to a tool that nobody needs tells which of the two it is."""
    world = world_of(expected("weather", {"city": HIDDEN}, result=1))

    assert told(world, function, arguments)["status"] == "no_result"
    assert world.answer(Call(function, arguments)) == world.answer(Call("book", {"n": 1}))


def test_faults_are_few_and_found_in_bounded_time():
    """Thousands of faults are told as a few, and a huge list is not looked through."""
    world = world_of()
    many = told(world, "weather", {"city": "", **{f"p{number}": 1 for number in range(5000)}})
    far = told(world, "weather", {"city": "", "deep": [{"n": True}] * 50_000 + [{}]})

    assert many["error"]["message"].count("، ") == 7
    assert far["status"] == "no_result"


def test_what_the_grader_accepts_is_answered():
    """A call that counts as right is not refused for a type or a surplus argument: it would have to be made again."""
    world = world_of(expected("weather", {"city": "مكة", "days": 5}, result="تم"))

    assert told(world, "weather", {"city": "مكة", "days": "5", "more": 1}) == "تم"


def test_accepted_values_wildcards_and_nulls_meet():
    """Accepted values, wildcards and null, which is as absent, are met as in grading."""
    call = expected("weather", {"city": "غدا", "unit": "*", "price": None}, accept={"city": ["بكرة"]}, result="تم")

    assert told(world_of(call), "weather", {"city": "بكرة", "unit": "F"}) == "تم"
    assert told(world_of(call), "weather", {"city": "بكرة"})["status"] == "no_result"
    assert told(world_of(expected("*", {"n": "*"}, result="تم")), "book", {"n": 0}) == "تم"
    assert told(world_of(expected("*", result="تم")), "sell")["error"]["code"] == "unknown_tool"


def test_later_calls_are_answered_before_earlier_ones():
    """The world does not insist on an order; grading does."""
    world = world_of(expected("weather", {"city": "مكة"}, result=1), expected("book", result=2))

    assert told(world, "book") == 2
    assert told(world, "weather", {"city": "مكة"}) == 1


def test_the_same_call_again():
    """It meets the next expected call of its kind, and when all have been made it gets the same answer again."""
    call = expected("book", {"n": 1})
    world = world_of(call | {"result": "فشل"}, call | {"result": "تم"}, expected("book", {"n": 2}, result="آخر"))

    assert [told(world, "book", {"n": 1}) for _ in range(4)] == ["فشل", "تم", "فشل", "فشل"]
    assert told(world, "book", {"n": 2}) == "آخر"


def test_the_expected_call_with_most_to_fit_is_met():
    """Of several that fit, the most particular one is met, then the closest, then the first."""
    calls = [
        expected("*", result="أي"),
        expected("weather", {"city": "*"}, result="مدينة"),
        expected("weather", {"city": "مكه"}, result="قريب"),
        expected("weather", {"city": "مكة"}, result="تمامًا"),
        expected("weather", {"city": "مكة"}, result="ثانية"),
    ]
    world = world_of(*calls)

    told_all = [told(world, "weather", {"city": "مكة"}) for _ in range(5)]
    assert told_all == ["تمامًا", "ثانية", "قريب", "مدينة", "أي"]


def test_without_a_result_a_right_call_is_done():
    """In a conversation an expected call without result is answered that it is done."""
    world = world_of(expected("book", {"n": 1}), expected("weather", result=1))

    assert told(world, "book", {"n": 1}) == {"status": "ok"}


def test_the_error_comes_first_and_once():
    """An item's error is the first answer to a right call without result of its own, and the next try succeeds."""
    world = world_of(
        expected("book", {"n": 1}), expected("weather", {"city": "مكة"}, result=1), error_response={"error": "مشغول"}
    )

    assert told(world, "weather", {"city": "مكة"}) == 1
    assert told(world, "book", {"n": 9})["status"] == "no_result"
    assert [told(world, "book", {"n": 1}) for _ in range(3)] == [{"error": "مشغول"}, {"status": "ok"}, {"status": "ok"}]


def test_a_result_that_cannot_be_written_is_said_to_be_so():
    """A result that nests without end is no reason to fail."""
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    item = Item("1", "multi_step", item_of(expected("book")).expected_calls)
    item.expected_calls[0] = type(item.expected_calls[0])("book", {}, None, deep)

    assert told(World(item, TOOLS), "book")["error"]["code"] == "internal_error"


def test_the_sample_conversations_can_be_won():
    """Every expected call of the bundled conversations gets the result that stands beside it."""
    registry = Toolbox.from_schemas(json.loads((DATA / "sample" / "tools.json").read_text("utf-8")))
    items = [item for item in ItemSet.read(DATA / "sample" / "items.jsonl").values() if is_conversation(item)]

    assert items
    for item in items:
        world = World(item, item.toolbox(registry))
        for call in item.expected_calls:
            assert told(world, call.function, call.arguments) == call.result


@given(st.lists(sent_calls, max_size=4), st.lists(sent_calls, max_size=6), json_values)
def test_no_call_raises_and_equal_calls_get_equal_answers(wanted, sent, error):
    """Whatever is expected and whatever is sent, every answer is JSON text, and it depends on nothing else."""
    keys = [{"function": "book", "arguments": call} for call in wanted if isinstance(call, dict)]
    item = item_of(*keys, error_response=error)
    calls = [Call.of(call) for call in [*sent, *keys]]
    first, second = World(item, TOOLS), World(item, TOOLS)

    for call in calls:
        text = first.answer(call)
        json.loads(text)
        assert second.answer(call) == text


@given(st.sampled_from(["weather", "book"]), json_values, json_values)
def test_the_world_agrees_with_the_grader(function, right, given_value):
    """A call gets the result exactly where grading finds every argument right."""
    item = item_of(expected(function, {"city": right}, result="تم"))
    call = Call(function, {"city": given_value})
    verdict = Expectation.of(item).judge((call,))
    agrees = all(match.rung >= 0.8 for slot in verdict.matches for match in slot.arguments)

    assert (World(item, TOOLS).answer(call) == '"تم"') is agrees
