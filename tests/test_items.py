"""Items and item sets: reading them line by line, refusing what is no item, and their fingerprint."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from arabic_agent_eval.errors import DataError
from arabic_agent_eval.items import (
    CATEGORIES,
    DIALECTS,
    AnswerKey,
    ExpectedCall,
    Item,
    ItemSet,
    item_from_row,
    read_categories,
    read_item,
)
from arabic_agent_eval.tools import Tool, Toolbox

BOM = b"\xef\xbb\xbf"


def row(item_id: object = "a", **changes) -> dict:
    """A row of a file of items."""
    calls = [{"function": "get_weather", "arguments": {"city": "جدة"}}]
    return {"id": item_id, "category": "multi_step", "expected_calls": calls, "dialect": "gulf"} | changes


def line(item_id: object = "a", **changes) -> bytes:
    """The same as a line."""
    return json.dumps(row(item_id, **changes), ensure_ascii=False).encode() + b"\n"


def written(folder: Path, *lines: bytes, name: str = "items.jsonl") -> Path:
    """A file of these lines."""
    path = folder / name
    path.write_bytes(b"".join(lines))
    return path


def nested(depth: int) -> list:
    """Lists inside one another."""
    value: list = []
    for _ in range(depth - 1):
        value = [value]
    return value


# --- one item ------------------------------------------------------------------------------------------------


def test_every_field_arrives():
    """The published fields and the optional additions are all there, and unknown ones are passed over."""
    full = row(
        instruction="ما الطقس؟",
        available_functions=["get_weather"],
        difficulty="easy",
        error_response={"error": "timeout"},
        intent="weather",
        ordered=False,
        context={"now": "2025-03-01"},
        messages=[{"role": "user", "content": "سلام"}],
        language="afb",
        tools=[{"name": "get_weather"}],
        tags=["x"],
        notes={"free": 1},
        surprise=5,
    )
    full["expected_calls"][0] |= {"accept": {"city": ["Jeddah"]}, "result": None}

    item = read_item(json.dumps(full).encode())

    assert item == item_from_row(full)
    for field in ("intent", "ordered", "context", "messages", "language", "tools", "tags", "notes", "error_response"):
        assert getattr(item, field) == full[field]
    assert item.expected_calls == [ExpectedCall("get_weather", {"city": "جدة"}, {"city": ["Jeddah"]}, None)]


def test_fields_that_may_be_absent():
    """An item needs an id, a category and the expected calls; the rest is inert when absent."""
    item = read_item(b'{"id": "a", "category": "x", "expected_calls": []}')

    assert item == Item("a", "x", [])
    assert (item.ordered, item.dialect, item.offered, item.tools) == (True, None, frozenset(), None)
    assert ExpectedCall("f").result is msgspec.UNSET


@pytest.mark.parametrize(
    ("number", "text"), [(7, "7"), (0, "0"), (-1, "-1"), (10**40, "1" + "0" * 40), (2**63, str(2**63))]
)
def test_ids_as_numbers_are_text(number, text):
    """Ids are compared as text, so a whole number is its digits."""
    assert read_item(line(number)).id == item_from_row(row(number)).id == text


@pytest.mark.parametrize(
    ("changes", "field", "why"),
    [
        ({"id": None}, "id", "expected text, found null."),
        ({"id": 1.5}, "id", "expected text, found a number."),
        ({"id": True}, "id", "expected text, found true or false."),
        ({"category": 5}, "category", "expected text, found a whole number."),
        ({"expected_calls": {}}, "expected_calls", "expected a list, found an object."),
        ({"expected_calls": [5]}, "expected_calls[0]", "expected an object, found a whole number."),
        ({"expected_calls": [{}]}, "expected_calls[0].function", "the field is missing."),
        ({"expected_calls": [{"function": 5}]}, "expected_calls[0].function", "expected text, found a whole number."),
        ({"ordered": "no"}, "ordered", "expected true or false, found text."),
        ({"available_functions": [5]}, "available_functions[0]", "expected text, found a whole number."),
        ({"tools": {}}, "tools", "expected a list, found an object."),
        (
            {"expected_calls": [{"function": "f"}, {"function": "f", "arguments": {"a": nested(64)}}]},
            "expected_calls[1].arguments",
            "the expected arguments are nested deeper than 64 levels.",
        ),
        (
            {"expected_calls": [{"function": "f", "accept": {"a": nested(64)}}]},
            "expected_calls[0].arguments",
            "the expected arguments are nested deeper than 64 levels.",
        ),
    ],
)
def test_bad_item_has_its_field(tmp_path, changes, field, why):
    """What is no item is refused with file, line and field, from a file of lines and from a list alike."""
    path = written(tmp_path, line("before"), b"\n", line(**changes))
    with pytest.raises(DataError) as raised:
        ItemSet.read(path)
    found = raised.value
    assert (found.path, found.line, found.field, found.what) == (str(path), 3, field, why)

    path = written(tmp_path, json.dumps([row("before"), row(**changes)]).encode(), name="items.json")
    with pytest.raises(DataError) as raised:
        ItemSet.read(path)
    found = raised.value
    assert (found.path, found.line, found.field, found.what) == (str(path), None, f"[1].{field}", why)


@pytest.mark.parametrize("missing", ["id", "category", "expected_calls"])
def test_missing_field_is_named(missing):
    """A required field that is absent is said by name."""
    incomplete = row()
    del incomplete[missing]

    with pytest.raises(DataError, match="the field is missing") as raised:
        read_item(json.dumps(incomplete).encode())
    assert raised.value.field == missing


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (b"{", "ends too early"),
        (b'{"id": "a"} x', "trailing"),
        (b"5", "must be a JSON object"),
        (b"[]", "must be a JSON object"),
        (b'{"id": NaN}', "NaN is not JSON"),
        (b'{"id": "\xff"}', "not valid UTF-8"),
        (b'{"id": 1e999}', "too large"),
        (b"[" * 100_000, "deeper than 64"),
    ],
)
def test_line_that_is_no_object(tmp_path, bad, why):
    """A line that is not a JSON object is refused with file and line."""
    path = written(tmp_path, line(), bad)

    with pytest.raises(DataError, match=why) as raised:
        ItemSet.read(path)
    assert (raised.value.path, raised.value.line) == (str(path), 2)


def test_ten_thousand_levels_are_refused_and_not_fatal(tmp_path):
    """An item that nests very deeply, where it matters or elsewhere, is an error with its place."""
    deep = b"[" * 10_000 + b"]" * 10_000
    for bad in (line(notes="@").replace(b'"@"', deep), line(expected_calls="@").replace(b'"@"', deep)):
        path = written(tmp_path, line("before"), bad)
        with pytest.raises(DataError, match="nested") as raised:
            ItemSet.read(path)
        assert raised.value.line == 2


def test_lone_surrogates_are_mended_while_reading():
    """A lone surrogate in any text becomes U+FFFD, as in replies (ruling 13)."""
    item = read_item(rb'{"id": "\ud800", "category": "x", "expected_calls": [], "notes": ["\udc00"]}')

    assert (item.id, item.notes) == ("\ufffd", ["\ufffd"])


def test_huge_integers_are_kept():
    """An expected integer of any size keeps its digits."""
    digits = "9" * 5000
    item = read_item(
        b'{"id": "a", "category": "x", "expected_calls": [{"function": "f", "arguments": {"n": %s}}]}' % digits.encode()
    )

    assert item.expected_calls[0].arguments["n"] == digits


# --- tools of an item ----------------------------------------------------------------------------------------


def test_offered_names():
    """Inline tools are offered instead of the names of a registry; what is no schema offers nothing."""
    inline = [{"name": "a"}, {"type": "function", "function": {"name": "b"}}, {"function": 5}, 7, {"name": None}]

    assert Item("1", "x", [], available_functions=["c", "d"]).offered == {"c", "d"}
    assert Item("1", "x", [], available_functions=["c"], tools=inline).offered == {"a", "b"}
    assert Item("1", "x", [], available_functions=["c"], tools=[]).offered == frozenset()


def test_toolbox_of_an_item():
    """The tools come from the item itself, else from the registry, where unknown names are left out."""
    registry = Toolbox([Tool("a"), Tool("b"), Tool("c")])

    assert list(Item("1", "x", [], available_functions=["c", "z", "a"]).toolbox(registry)) == ["c", "a"]
    assert list(Item("1", "x", [], available_functions=["c"], tools=[{"name": "own"}]).toolbox(registry)) == ["own"]
    assert dict(Item("1", "x", []).own_tools) == {}


def test_bad_inline_tool_is_named():
    """An inline tool that is no schema is refused with its place in the item."""
    with pytest.raises(DataError, match="not an OpenAI function schema") as raised:
        _ = Item("1", "x", [], tools=[{"name": "a"}, {}]).own_tools
    assert raised.value.field == "tools[1]"


# --- files of items ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (line("a") + line("b"), "s.jsonl"),
        (BOM + line("a") + b"\n  \n" + line("b").rstrip(b"\n"), "s.jsonl"),
        ((line("a") + line("b")).replace(b"\n", b"\r\n"), "s.jsonl"),
        (json.dumps([row("a"), row("b")]).encode(), "s.json"),
        (BOM + b"\n" + json.dumps([row("a"), row("b")], indent=1).encode(), "s.jsonl"),
    ],
    ids=["lines", "BOM and blank lines", "CRLF", "a list", "a list over many lines"],
)
def test_files_of_items(tmp_path, data, name):
    """Lines and lists, whatever saved them, give the same items in their order."""
    path = written(tmp_path, data, name=name)

    items = ItemSet.read(path)

    assert (items.name, items.path, len(items), list(items)) == ("s", path, 2, ["a", "b"])
    assert list(items.values()) == [item_from_row(row("a")), item_from_row(row("b"))]
    assert ItemSet.read(path, name="sample").name == ItemSet.index(str(path), name="sample").name == "sample"


@pytest.mark.parametrize("data", [b"", b"\n \n", BOM])
def test_file_without_items_is_refused(tmp_path, data):
    """A file that holds nothing is a mistake, not an empty benchmark."""
    path = written(tmp_path, data)

    with pytest.raises(DataError, match="holds no items") as raised:
        ItemSet.index(path)
    assert raised.value.path == str(path)


@pytest.mark.parametrize("data", [b"[]", b"[1]", b"[{}]", b"[", b'[{"id": "a"}] x'])
def test_bad_list_is_refused(tmp_path, data):
    """A JSON list that is empty, torn or holds something else is refused with its name, and so is no file at all."""
    path = written(tmp_path, data, name="items.json")

    with pytest.raises(DataError) as raised:
        ItemSet.index(path)
    assert raised.value.path == str(path)
    with pytest.raises(DataError, match="no such file"):
        ItemSet.read(tmp_path / "absent.jsonl")


@pytest.mark.parametrize(("first", "second"), [("a", "a"), (7, "7"), ("7", 7)])
def test_ids_that_stand_twice(tmp_path, first, second):
    """An id that stands twice, as text or as a number, is refused with both lines."""
    path = written(tmp_path, line("before"), b"\n", line(first), line("between"), line(second))

    with pytest.raises(DataError, match=f"the id '{first}' stands already on line 3; ids must be unique") as raised:
        ItemSet.read(path)
    assert (raised.value.path, raised.value.line, raised.value.field) == (str(path), 5, "id")


def test_ids_that_stand_twice_in_a_list(tmp_path):
    """In a list, and in a set made from items, a repeated id is refused too."""
    path = written(tmp_path, json.dumps([row(1), row("b"), row("1")]).encode(), name="items.json")
    with pytest.raises(DataError, match="stands twice") as raised:
        ItemSet.read(path)
    assert raised.value.field == "[2].id"

    item = item_from_row(row())
    with pytest.raises(DataError, match="'a' stands twice") as raised:
        ItemSet([item, item], name="mine")
    assert (raised.value.path, raised.value.field) == ("mine", "id")


def test_items_are_read_only_as_far_as_needed(tmp_path):
    """A bad line is met when an item at or after it is asked for, and not before."""
    path = written(tmp_path, line("a"), line("b"), line("c"), b"nonsense\n", line("d"))
    items = ItemSet.index(path)

    assert items["b"].id == "b"
    assert items["a"].id == "a"
    assert "b" in items
    assert items.answer_key("c").category == "multi_step"
    with pytest.raises(DataError, match="cannot be read") as raised:
        items["d"]
    assert raised.value.line == 4


@pytest.mark.parametrize("order", ["abcd", "dcba", "bdac"])
@pytest.mark.parametrize("numbers", [False, True])
def test_items_in_any_order(tmp_path, order, numbers):
    """Items are found wherever they stand, whatever was asked before, as items and as answer keys."""
    ids = {letter: str(place) if numbers else letter for place, letter in enumerate("abcd")}
    lines = [line(int(name) if numbers else name) for name in ids.values()]
    items = ItemSet.index(written(tmp_path, *lines))

    for letter in order:
        key = items.answer_key(ids[letter])
        assert isinstance(key, AnswerKey)
        assert items[ids[letter]] == item_from_row(row(ids[letter]))
        assert (key.id, key.expected_calls) == (ids[letter], items[ids[letter]].expected_calls)
        assert items.answer_key(ids[letter]) == key
    assert list(items) == list(ids.values())


@pytest.mark.parametrize("as_list", [False, True])
def test_unknown_id(tmp_path, as_list):
    """An id that is not there is a KeyError, as of any mapping."""
    data = json.dumps([row("a")]).encode() if as_list else line("a")
    items = ItemSet.index(written(tmp_path, data))

    assert "z" not in items
    assert items.get("z") is None
    for ask in (items.__getitem__, items.answer_key):
        with pytest.raises(KeyError):
            ask("z")
    assert "a" in items
    assert items.answer_key("a").id == "a"


def test_bad_item_that_was_indexed_is_refused_when_asked(tmp_path):
    """A line whose answer key is right but whose rest is not is refused, with its line, when the item is read."""
    path = written(tmp_path, line("a"), line("b", tags=5))
    items = ItemSet.index(path)

    assert items.answer_key("b").id == "b"
    with pytest.raises(DataError) as raised:
        items["b"]
    assert (raised.value.path, raised.value.line, raised.value.field) == (str(path), 2, "tags")


def test_items_of_memory_have_no_place():
    """A set made in memory reads, filters and looks up like one of a file."""
    items = ItemSet([item_from_row(row(name, dialect=dialect)) for name, dialect in (("a", "msa"), ("b", "gulf"))])

    assert (items.name, items.path, len(items)) == ("items", None, 2)
    assert items.answer_key("b") is items["b"]
    kept = items.filter(lambda item: item.dialect == "gulf")
    assert list(kept) == ["b"]
    assert kept.fingerprint != items.fingerprint
    assert kept.name == items.name


def test_a_line_of_memory_has_no_number():
    """Without a file there is no line to name."""
    items = ItemSet([])
    items._entries["a"] = line("a", tags=5)

    with pytest.raises(DataError) as raised:
        items["a"]
    assert raised.value.line is None


# --- fingerprints --------------------------------------------------------------------------------------------


def test_fingerprint_is_of_the_content(tmp_path):
    """The same lines keep their fingerprint whatever system saved them, however they are read."""
    text = line("a") + b"\n" + line("b")
    files = {"lf": text, "crlf": text.replace(b"\n", b"\r\n"), "bom": BOM + text, "end": text.rstrip(b"\n")}
    prints = set()
    for name, data in files.items():
        path = written(tmp_path, data, name=f"{name}.jsonl")
        index = ItemSet.index(path)
        prints |= {ItemSet.read(path).fingerprint, index.fingerprint, index.fingerprint}
        partly = ItemSet.index(path)
        partly.answer_key("a")
        prints.add(partly.fingerprint)

    assert len(prints) == 1
    assert len(prints.pop()) == 12


@pytest.mark.parametrize(
    "other",
    [
        line("a") + line("c"),
        line("b") + line("a"),
        line("a") + line("b", category="tool_selection"),
        line("a") + line("b", expected_calls=[]),
        line("a") + line("b", notes="x"),
        line("a"),
        line("a") + line("b") + line("c"),
    ],
    ids=["id", "order", "category", "calls", "notes", "fewer", "more"],
)
def test_fingerprint_changes_with_any_item(tmp_path, other):
    """Whatever changes in an item, or in their order, changes the fingerprint, in lines and in memory."""
    first = ItemSet.read(written(tmp_path, line("a"), line("b"), name="first.jsonl"))
    second = ItemSet.read(written(tmp_path, other, name="second.jsonl"))

    assert first.fingerprint != second.fingerprint
    assert ItemSet(first.values()).fingerprint != ItemSet(second.values()).fingerprint


def test_fingerprint_is_pinned(tmp_path):
    """The fingerprint of known bytes never changes: published signatures hold it."""
    assert ItemSet.read(written(tmp_path, line("a"))).fingerprint == "90fe0e1e824d"
    assert ItemSet([item_from_row(row("a"))]).fingerprint == "f5382cd9f447"


def test_large_files_are_read_in_blocks(tmp_path):
    """Line numbers and fingerprints are right beyond the first block of a long file."""
    lines = [line(str(number), notes="x" * 1000) for number in range(3000)]
    path = written(tmp_path, *lines, line("7"))

    with pytest.raises(DataError, match="line 8;") as raised:
        ItemSet.read(path)
    assert raised.value.line == 3001
    small = written(tmp_path, *lines, name="crlf.jsonl")
    expected = ItemSet.read(small).fingerprint
    small.write_bytes(b"".join(lines).replace(b"\n", b"\r\n"))
    assert ItemSet.read(small).fingerprint == expected


# --- categories ----------------------------------------------------------------------------------------------


def test_canonical_categories():
    """Ruling 18: six categories whose weights add up to 1; every one has an Arabic name."""
    assert {name: category.weight for name, category in CATEGORIES.items()} == {
        "simple_function_calling": 0.20,
        "parameter_extraction": 0.20,
        "multi_step": 0.20,
        "dialect_handling": 0.15,
        "tool_selection": 0.15,
        "error_recovery": 0.10,
    }
    assert all(category.name == name and category.name_ar for name, category in CATEGORIES.items())
    assert DIALECTS == ("msa", "gulf", "egyptian", "levantine", "maghrebi")


def test_declared_categories(tmp_path):
    """A file of categories gives a weight to each name, alone or with an Arabic name."""
    data = json.dumps({"a": 1, "b": {"weight": 0.5, "name_ar": "باء"}, "c": {"weight": 0}}).encode()

    found = read_categories(written(tmp_path, data))

    assert {name: (category.weight, category.name_ar) for name, category in found.items()} == {
        "a": (1.0, ""),
        "b": (0.5, "باء"),
        "c": (0.0, ""),
    }


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ([], None),
        ({"a": "1"}, "a.weight"),
        ({"a": -1}, "a.weight"),
        ({"a": True}, "a.weight"),
        ({"a": None}, "a.weight"),
        ({"a": {"weight": "1"}}, "a.weight"),
        ({"a": {}}, "a.weight"),
    ],
)
def test_bad_categories(tmp_path, document, field):
    """A document or weight that is none is refused with its place."""
    path = written(tmp_path, json.dumps(document).encode(), name="categories.json")

    with pytest.raises(DataError) as raised:
        read_categories(path)
    assert (raised.value.path, raised.value.field) == (str(path), field)


def test_published_files_load(shared):
    """The published items and categories load unchanged."""
    items = ItemSet.read(shared / "published" / "items.jsonl")

    assert len(items) == 51
    assert {item.category for item in items.values()} == set(CATEGORIES)
    assert sum(item.ordered for item in items.values()) == 51
