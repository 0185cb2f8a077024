"""Calls as they came, and tools as registries describe them."""

from __future__ import annotations

from collections import OrderedDict
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arabic_agent_eval.errors import DataError
from arabic_agent_eval.tools import Call, Tool, Toolbox, read_arguments, read_tool
from tests.strategies import values

DEEP: list = []
for _ in range(70):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("value", "arguments", "error"),
    [
        ({"a": "جدة"}, {"a": "جدة"}, None),
        (OrderedDict(a=1), {"a": 1}, None),
        (MappingProxyType({"a": 1}), {"a": 1}, None),
        (None, {}, None),
        ("", {}, None),
        ("null", {}, None),
        (" {} ", {}, None),
        ('{"a": "جدة"}', {"a": "جدة"}, None),
        ('"{\\"a\\": 1}"', {}, "double_encoded_arguments"),
        ('"\\"{}\\""', {}, "malformed_arguments"),
        ('"text"', {}, "malformed_arguments"),
        ('""', {}, "malformed_arguments"),
        ("text", {}, "malformed_arguments"),
        (" ", {}, "malformed_arguments"),
        ("[]", {}, "malformed_arguments"),
        ("5", {}, "malformed_arguments"),
        ("false", {}, "malformed_arguments"),
        ('{"a": 1} {"b": 2}', {}, "malformed_arguments"),
        ("{'a': 1}", {}, "malformed_arguments"),
        ('{"a": ' + "[" * 70 + "]" * 70 + "}", {}, "malformed_arguments"),
        ({"a": DEEP}, {}, "malformed_arguments"),
        ([], {}, "malformed_arguments"),
        ([{"a": 1}], {}, "malformed_arguments"),
        (5, {}, "malformed_arguments"),
        (False, {}, "malformed_arguments"),
        (b'{"a": 1}', {}, "malformed_arguments"),
    ],
)
def test_arguments(value, arguments, error):
    """Ruling 12: one object, its JSON text, or nothing; everything else is named and nothing is repaired."""
    assert read_arguments(value) == (arguments, error)
    call = Call.read("book", value)
    assert (call.function, call.arguments, call.error) == ("book", arguments, error)
    assert call.raw == (value if error else None)


@pytest.mark.parametrize("function", [None, 5, ["book"], {"name": "book"}, True, b"book"])
def test_name_that_is_not_text(function):
    """A call whose name cannot be read is malformed and keeps what was sent, for showing."""
    call = Call.read(function, {"a": 1})

    assert (call.function, call.arguments, call.error) == (None, {}, "malformed_call")
    assert call.raw == {"function": function, "arguments": {"a": 1}}


@pytest.mark.parametrize("value", [None, "book", 5, [], ["book", {}], object])
def test_what_is_no_call_is_malformed(value):
    """Something that is neither a call nor a mapping is an attempt that cannot be read."""
    assert Call.of(value) == Call(None, error="malformed_call", raw=value)


def test_calls_are_taken_as_they_are():
    """A call stays itself, and any mapping with a function is read."""
    call = Call("book", {"a": 1})

    assert Call.of(call) is call
    assert Call.of({"function": "book", "arguments": '{"a": 1}', "id": 7}) == call
    assert Call.of(MappingProxyType({"function": "book"})) == Call("book")
    assert Call.of({}).error == "malformed_call"


@given(values, st.text(max_size=5) | values)
def test_reading_never_raises(arguments, function):
    """Whatever JSON a model sends, it becomes a call; only text that is not empty is a name."""
    call = Call.of({"function": function, "arguments": arguments})

    named = isinstance(function, str) and function != ""
    assert (call.function is None) == (not named) == (call.error == "malformed_call")
    assert isinstance(call.arguments, dict)


# --- tools ---------------------------------------------------------------------------------------------------

BARE = {
    "name": "get_weather",
    "description": "Weather of a city.",
    "name_ar": "الطقس",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "strict": True,
}


@pytest.mark.parametrize(
    "document",
    [
        [BARE],
        [{"type": "function", "function": BARE}],
        {"functions": [BARE]},
        {"tools": [BARE], "version": 1},
        {"functions": [BARE], "tools": 5},
    ],
)
def test_registries(document):
    """A registry is a list of schemas, bare or wrapped, alone or under its name; unknown fields are passed over."""
    tools = Toolbox.from_schemas(document)

    assert list(tools) == ["get_weather"]
    tool = tools["get_weather"]
    assert (tool.name_ar, tool.description_ar, tool.description) == ("الطقس", None, "Weather of a city.")
    assert tool.properties == {"city": {"type": "string"}}
    assert tool.required == ["city"]


@pytest.mark.parametrize("document", [None, 5, "tools", {}, {"name": "x"}, {"functions": {}}, {"tools": None}])
def test_what_is_no_registry(document):
    """A document of another shape is refused with the shapes that there are."""
    with pytest.raises(DataError, match="a list of OpenAI function schemas, or an object"):
        Toolbox.from_schemas(document)


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({}, "missing required field `name`"),
        ({"function": {}}, "missing required field `name`"),
        ({"name": 5}, "Expected `str`"),
        ({"name": "x", "parameters": []}, "Expected `object`"),
        (5, "Expected `object`"),
        (None, "Expected `object`"),
        ({"name": "x", "function": "y", "description": []}, "Expected `str`"),
    ],
)
def test_entry_that_is_no_schema_has_its_place(entry, why):
    """A bad entry is refused with its number in the list."""
    with pytest.raises(DataError, match=why) as raised:
        Toolbox.from_schemas([BARE, entry])
    assert raised.value.field == "[1]"


@pytest.mark.parametrize(
    "parameters",
    [{}, {"properties": None, "required": None}, {"properties": [], "required": "city"}, {"required": [None, 5]}],
)
def test_schema_without_usable_parameters(parameters):
    """A schema that names no parameters, or in a wrong way, has none."""
    tool = Tool("x", parameters=parameters)

    assert dict(tool.properties) == {}
    assert list(tool.required) == []


def test_toolbox_is_a_mapping_in_its_order():
    """Tools are found by name in the order given, and of a name given twice the last counts."""
    tools = Toolbox([Tool("b"), Tool("a"), Tool("b", "again")])

    assert list(tools) == ["b", "a"]
    assert len(tools) == 2
    assert tools["b"].description == "again"
    assert "c" not in tools
    assert read_tool(BARE, "tools[0]").name == "get_weather"
