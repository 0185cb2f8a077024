"""Unfair items: what the checks must find, and what they must leave alone."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arabic_agent_eval import checks
from arabic_agent_eval.checks import RULES, Finding, check_items
from arabic_agent_eval.field_checks import check_fields
from arabic_agent_eval.items import ExpectedCall, Item, ItemSet, item_from_row
from arabic_agent_eval.tools import Tool, Toolbox

SHARED = Path(__file__).parents[1] / ".." / "shared" / "data"
CASES = json.loads((Path(__file__).parent / "cases" / "checks.json").read_text(encoding="utf-8"))

BASE = {
    "id": "x", "category": "simple_function_calling", "instruction": "ما الطقس في جدة؟", "dialect": "msa",
    "available_functions": ["get_weather"],
    "expected_calls": [{"function": "get_weather", "arguments": {"city": "جدة"}}],
}  # fmt: skip
WEATHER = {
    "type": "object",
    "required": ["city"],
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
        "note": {"type": "string", "maxLength": 6},
    },
}
TOOLS = Toolbox(
    [
        Tool("get_weather", parameters=WEATHER),
        Tool("get_time", parameters={"type": "object", "properties": {}}),
        Tool("broken", parameters={"type": "object", "properties": []}),
    ]
)


def found(*rows: dict, tools=TOOLS) -> list[list[str]]:
    """The rule and the place of each finding on the base item with these changes."""
    return [[f.rule, f.field] for f in check_items([item_from_row(BASE | row) for row in rows], tools)]


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Any attempt to reach the network fails the test."""

    def refuse(*_args, **_kwargs):
        pytest.fail("a check reached for the network")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_each_unfairness_is_found_at_its_place(case):
    """Exactly the listed facts are found, one finding each."""
    assert found(case["item"]) == case["findings"], case["why"]


def test_every_rule_has_a_case_or_a_test_of_its_own():
    """No rule is documented without being tried."""
    tried = {rule for case in CASES for rule, _ in case["findings"]}
    assert tried | {"duplicate_id", "contradictory", "unknown_field"} == set(RULES)


@pytest.mark.parametrize("case", [case for case in CASES if case["findings"]], ids=lambda case: case["id"])
def test_messages_are_one_sentence_with_a_remedy(case):
    """A message ends as a sentence does, on one line, and leaves no gap unfilled."""
    for finding in check_items([item_from_row(BASE | case["item"])], TOOLS):
        assert finding.item_id == "x"
        assert finding.message.endswith(".")
        assert "\n" not in finding.message
        assert len(finding.message) < 400
        assert finding.message == case.get("message", finding.message)
        assert not {"{kind}", "{name}", "{value}", "{tool}"} & set(finding.message.split())


def test_ids_must_not_repeat():
    """The second item of an id is named, and only that one."""
    assert found({}, {"id": "y"}, {"instruction": "جدة"}) == [["duplicate_id", "id"]]


def test_one_question_has_one_answer():
    """The same question with other calls is a contradiction; another dialect, tool or time is another question."""
    other = {"id": "y", "expected_calls": []}
    assert found({}, other) == [["contradictory", "expected_calls"]]
    assert check_items([item_from_row(BASE), item_from_row(BASE | other)], TOOLS)[0].message == (
        "The item 'x' asks the same and expects other calls, so no model can be right on both: correct one, or accept "
        "both answers in each."
    )
    assert found({}, {"id": "y"}) == []
    for change in ({"dialect": "gulf"}, {"available_functions": []}, {"context": {"now": "1"}}, {"tools": []}):
        assert found({}, other | change) == []


def test_a_null_registry_entry_makes_no_difference_to_inline_tools():
    """Items with tools of their own need no registry."""
    inline = {"tools": [{"type": "function", "function": {"name": "get_weather", "parameters": WEATHER}}]}
    assert found(inline | {"available_functions": ["nowhere"]}, tools={}) == []


def test_hostile_items_from_memory_are_checked_too():
    """Lone surrogates, endless nesting and values that are no JSON end in findings, never in an exception."""
    deep: list = []
    for _ in range(3000):
        deep = [deep]
    call = ExpectedCall("t\ud800", {"a": "\ud800جدة", "b": deep}, {"b": [deep, "\udfff"]})
    tools = [{"name": "t\ud800", "parameters": {"type": "object", "properties": {"a": {}, "b": {"items": {}}}}}]
    items = [Item("\ud800", "x", [call], tools=tools), Item("2", "x", [call], messages=[{"role": "user", "c": deep}])]
    rules = {finding.rule for finding in check_items(items, {"t": Tool("t", parameters=None)})}
    assert {"bad_schema", "underivable", "no_instruction", "unknown_category"} <= rules


def test_a_tool_without_an_object_of_parameters_is_reported():
    """A tool made in memory may hold anything as its schema."""
    broken = Tool("get_weather", parameters=None)
    assert found({}, tools={"get_weather": broken}) == [["bad_schema", "available_functions[0]"]]


def test_each_call_has_a_budget_of_its_own(monkeypatch):
    """Many calls to one tool do not use up the steps that a hostile schema is allowed."""
    monkeypatch.setattr(checks, "_MAX_STEPS", 30)
    assert found({"expected_calls": BASE["expected_calls"] * 50}) == []


def test_long_texts_are_not_quadratic():
    """A megabyte of text, and ten thousand names, are checked in the time of a few passes."""
    text = "جدة ومكة " * 20_000
    names = {f"p{i}": i for i in range(2_000)}
    schema = {"type": "object", "properties": {name: {"type": "string", "pattern": "a*b*c*$"} for name in names}}
    row = {"instruction": text, "tools": [{"name": "t", "parameters": schema}]}
    assert len(found(row | {"expected_calls": [{"function": "t", "arguments": names}]})) == len(names)
    assert found({"instruction": text, "expected_calls": [{"function": "*", "arguments": {"a": text[:-1]}}]}) == []


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.sampled_from(["*", "جدة", "#"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "properties", "$ref", "enum", "items", "anyOf", "required", "pattern", "a"]), inner
        )
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(schema=st.dictionaries(st.sampled_from(["type", "properties", "$ref", "allOf", "required"]), _JSON), value=_JSON)
def test_no_schema_and_no_value_raises(schema, value):
    """Whatever the schema and the expected value are, the answer is a list of findings whose rules are documented."""
    item = Item("1", "multi_step", [ExpectedCall("t", {"a": value}, {"a": [value]})], instruction="؟", dialect="msa")
    tool = Tool("t", parameters=schema)
    for findings in (check_items([item], {"t": tool}), check_items([item], {})):
        assert all(isinstance(finding, Finding) and finding.rule in RULES for finding in findings)


def test_published_items_leave_out_required_arguments():
    """On the published set the checks name the expected calls that their own tools would refuse, and nothing untrue."""
    folder = SHARED / "published"
    if not folder.exists():
        pytest.skip("the shared data is not here")
    tools = Toolbox.from_schemas(json.loads((folder / "functions.json").read_text(encoding="utf-8")))
    findings = check_items(ItemSet.read(folder / "items.jsonl").values(), tools)
    missing = [(f.item_id, f.field) for f in findings if f.rule == "missing_required"]
    assert len(missing) == 16
    assert ("multi_002", "expected_calls[1].arguments.date") in missing
    assert ("error_005", "expected_calls[0].arguments.passport_number") in missing
    assert [(f.item_id, f.field) for f in findings if f.rule != "missing_required"] == [
        ("simple_008", "expected_calls[0].arguments.datetime"),
        ("dialect_001", "expected_calls[0].arguments.check_in"),
    ]


def test_unknown_fields_are_found(tmp_path):
    """A misspelt field of an item or of an expected call is named, with the field that was meant."""
    row = BASE | {"id": "x", "orderd": False, "expected_calls": [{"function": "f", "args": {"a": 1}}]}
    path = tmp_path / "items.jsonl"
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")

    found = {one.field: one.message for one in check_fields(ItemSet.read(path).unknown_fields())}

    assert set(found) == {"orderd", "expected_calls[0].args"}
    assert found["orderd"].endswith("Did you mean 'ordered'?")
    assert "'args'" in found["expected_calls[0].args"]
    assert not check_fields(ItemSet([]).unknown_fields())
