"""Converting AISA-ArabicFC and BFCL: every field arrives, and what cannot be graded is refused with its place."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from arabic_agent_eval import conversion
from arabic_agent_eval.checks import check_items
from arabic_agent_eval.conversion import KINDS, convert, item_rows, write_items
from arabic_agent_eval.errors import DataError, MissingExtra, OutputError, UsageError
from arabic_agent_eval.items import Item, ItemSet

SHARED = Path(__file__).parents[1] / ".." / "shared" / "data"

DEVELOPER = "التاريخ والوقت الحالي بصيغة YYYY-MM-DDTHH:MM:SS: 2024-06-22T17:14:38\nاليوم هو السبت\n"


def padded_tool(name: str, **properties) -> dict:
    """A tool as a columnar file holds it: every parameter of every tool, null where it has none."""
    nothing = {"city": None, "days": None, "tags": None}
    return {
        "function": {
            "name": name,
            "description": "أداة",
            "parameters": {"type": "object", "properties": nothing | properties, "required": [None]},
        }
    }


def openai_tool(name: str, description: str, **properties) -> dict:
    """A tool as items hold it."""
    parameters = {"type": "object", "properties": properties}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def aisa_row(**changes) -> dict:
    """A row of AISA-ArabicFC, with its padding."""
    arguments = {"city": "جدة", "days": 7.0, "rate": 2.5, "items": ["أ"], "none": None}
    row = {
        "requires_function": True,
        "messages": [
            {"role": "developer", "content": DEVELOPER, "tool_calls": None},
            {"role": "user", "content": "طقس جدة لأسبوع", "tool_calls": None},
            {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "w", "arguments": arguments}}]},
        ],
        "tools_sampled": [
            padded_tool("w", city={"description": "المدينة", "type": "string", "items": None}),
            padded_tool("n", tags={"description": None, "type": "array", "items": {"type": "string"}}),
        ],
        "dialect": "gulf",
        "negative_category": None,
    }
    return row | changes


def parquet(folder: Path, *rows: dict) -> Path:
    """A parquet file of these rows."""
    path = folder / "rows.parquet"
    pq.write_table(pa.Table.from_pylist(list(rows)), path)
    return path


def bfcl(folder: Path, *rows: dict, name: str = "BFCL_v4_simple_python.json") -> Path:
    """A file of BFCL lines."""
    path = folder / name
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n", encoding="utf-8")
    return path


def question(item_id: str = "simple_python_0", text: object = "Weather in Paris?", **more) -> dict:
    """A BFCL question with one function."""
    schema = {"type": "dict", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    ask = [[{"role": "user", "content": text}]] if isinstance(text, str) else text
    return {"id": item_id, "question": ask, "function": [{"name": "geo.weather", "parameters": schema}]} | more


def answer(*calls: dict, item_id: str = "simple_python_0") -> dict:
    """The accepted answers to a question."""
    return {"id": item_id, "ground_truth": list(calls)}


def one(folder: Path, row: dict, *calls: dict, **options) -> Item:
    """The item that one question and its answer become."""
    answers = bfcl(folder, answer(*calls, item_id=row["id"]), name="answers.json") if calls else None
    [item] = convert(bfcl(folder, row), answers=answers, **options)
    return item


# --- AISA-ArabicFC


def test_a_row_becomes_an_item(tmp_path):
    """Every field of a row has its place in the item, and no padding is left anywhere."""
    [item] = convert(parquet(tmp_path, aisa_row()))
    assert msgspec.to_builtins(item) == {
        "id": "0",
        "category": "simple_function_calling",
        "instruction": "طقس جدة لأسبوع",
        "dialect": "gulf",
        "context": {"now": "2024-06-22T17:14:38"},
        "expected_calls": [{"function": "w", "arguments": {"city": "جدة", "days": 7, "rate": 2.5, "items": ["أ"]}}],
        "tools": [
            openai_tool("w", "أداة", city={"description": "المدينة", "type": "string"}),
            openai_tool("n", "أداة", tags={"type": "array", "items": {"type": "string"}}),
        ],
    }
    assert type(item.expected_calls[0].arguments["days"]) is int


def test_a_row_that_requires_nothing_expects_no_call(tmp_path):
    """Its negative category becomes a tag, and a call in its messages is not expected."""
    rows = [aisa_row(requires_function=False, negative_category="off_domain"), aisa_row(requires_function=False)]
    items = convert(parquet(tmp_path, *rows), category="tool_selection")
    assert [(item.id, item.expected_calls, item.tags) for item in items] == [("0", [], ["off_domain"]), ("1", [], [])]
    assert {item.category for item in items} == {"tool_selection"}


def test_earlier_turns_become_messages(tmp_path):
    """The last user's message is the instruction; a developer's message without a time stays as a system message."""
    turns = [
        {"role": "developer", "content": "كن مختصرا", "tool_calls": None},
        {"role": "user", "content": "مرحبا", "tool_calls": None},
        {"role": "assistant", "content": "أهلا", "tool_calls": None},
        {"role": "assistant", "content": None, "tool_calls": None},
        *aisa_row()["messages"][1:],
    ]
    [item] = convert(parquet(tmp_path, aisa_row(messages=turns)))
    assert item.messages == [
        {"role": "system", "content": "كن مختصرا"},
        {"role": "user", "content": "مرحبا"},
        {"role": "assistant", "content": "أهلا"},
    ]
    assert (item.instruction, item.context) == ("طقس جدة لأسبوع", None)


def test_arguments_as_text_are_read(tmp_path):
    """A column of JSON text holds the same arguments; not-a-number is what is left of a null."""
    call = [{"function": {"name": "w", "arguments": '{"city": "جدة", "days": 7.0}'}}]
    turns = [aisa_row()["messages"][1], {"role": "assistant", "content": None, "tool_calls": call}]
    [item] = convert(parquet(tmp_path, aisa_row(messages=turns)))
    assert item.expected_calls[0].arguments == {"city": "جدة", "days": 7}
    assert repr(conversion._without_padding({"a": float("nan"), "b": 2.0**60}, "x")) == "{'b': 1.152921504606847e+18}"


@pytest.mark.parametrize("column", ["requires_function", "messages", "tools_sampled", "dialect", "negative_category"])
def test_a_missing_column_is_named(tmp_path, column):
    """A parquet file of something else is refused by the name of what it lacks."""
    row = aisa_row()
    del row[column]
    with pytest.raises(DataError, match="the column is missing") as caught:
        convert(parquet(tmp_path, row))
    assert caught.value.field == column


def _turn(role: str = "assistant", content: object = "x", arguments: object = None, name: object = "w") -> dict:
    return {"role": role, "content": content, "tool_calls": [{"function": {"name": name, "arguments": arguments}}]}


@pytest.mark.parametrize(
    ("change", "field", "what"),
    [
        ({"requires_function": None}, "[1].requires_function", "expected true or false, found null."),
        ({"messages": None}, "[1].messages", "expected a list, found null."),
        ({"messages": [None]}, "[1].messages[0]", "expected an object, found null."),
        ({"messages": [_turn()]}, "[1].messages", "there is no message of the user."),
        ({"messages": [_turn("user", None)]}, "[1].messages[0].content", "expected text, found null."),
        ({"messages": [_turn("user")]}, "[1].messages", "a function is required, but no message calls one."),
        ({"messages": [_turn("user"), _turn(name=None)]}, "[1].messages[1].tool_calls[0].function.name",
         "expected text, found null."),
        ({"messages": [_turn("user"), _turn(arguments='{"a"')]}, "[1].messages[1].tool_calls[0].function.arguments",
         "the arguments cannot be read: it is not JSON: it ends too early."),
        ({"messages": [_turn("user"), _turn(arguments="[1]")]}, "[1].messages[1].tool_calls[0].function.arguments",
         "expected an object, found a list."),
        ({"tools_sampled": None}, "[1].tools_sampled", "expected a list, found null."),
        ({"tools_sampled": [{"function": {"name": None}}]}, "[1].tools_sampled[0].name", "expected text, found null."),
    ],
)  # fmt: skip
def test_a_wrong_row_is_named(tmp_path, change, field, what):
    """The message names the row (from 0) and the field."""
    good = {"requires_function": False, "messages": [_turn("user")], "tools_sampled": []}
    with pytest.raises(DataError) as caught:
        convert(
            parquet(
                tmp_path,
                aisa_row(**good),
                aisa_row(**(good | {"requires_function": "tools_sampled" not in change} | change)),
            )
        )
    assert (caught.value.field, caught.value.what) == (field, what)
    assert caught.value.path == str(tmp_path / "rows.parquet")


@pytest.mark.parametrize(("value", "what"), [(float("inf"), "infinity"), (b"x", "a bytes is not a JSON value.")])
def test_a_value_that_json_lacks_is_refused(value, what):
    """Infinity and bytes have no form in an item."""
    with pytest.raises(DataError, match=what) as caught:
        conversion._without_padding({"a": [{"b": value}]}, "x")
    assert caught.value.field == "x.a[0].b"


def test_a_parquet_file_is_read_in_batches(tmp_path, monkeypatch):
    """Row numbers go on over the batches."""
    monkeypatch.setattr(conversion, "_BATCH", 2)
    items = convert(parquet(tmp_path, *[aisa_row()] * 5), kind="aisa")
    assert [item.id for item in items] == ["0", "1", "2", "3", "4"]


def test_a_broken_parquet_file_is_a_data_error(tmp_path):
    """The first line of the reader's complaint is passed on, without a traceback."""
    path = tmp_path / "x.parquet"
    path.write_bytes(b"PAR1 and nothing else")
    with pytest.raises(DataError, match=r"^[^\n]+: the parquet file cannot be read: [^\n]+\.$"):
        convert(path)


def test_pyarrow_is_needed_for_parquet_only(tmp_path, monkeypatch):
    """Without pyarrow a parquet file is refused with the command that installs it, and BFCL still converts."""
    path = parquet(tmp_path, aisa_row())
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r'pip install "arabic-agent-eval\[arrow\]"'):
        convert(path)
    assert one(tmp_path, question("irrelevance_0")).expected_calls == []


# --- BFCL


def test_a_question_and_its_answer_become_an_item(tmp_path):
    """The first accepted value is expected, the others are accepted; names keep their dots; types are JSON Schema's."""
    properties = {
        "type": {"type": "float"}, "at": {"type": "tuple", "items": {"type": "float"}}, "x": {"type": "any"},
        "map": {"type": "HashMap", "properties": {"n": {"type": "long"}}}, "class": {"type": "Foo.Bar"},
    }  # fmt: skip
    standard = {
        "type": {"type": "number"}, "at": {"type": "array", "items": {"type": "number"}}, "x": {},
        "map": {"type": "object", "properties": {"n": {"type": "integer"}}}, "class": {"type": "string"},
    }  # fmt: skip
    accept = {"type": [2], "x": ["París"]}
    function = {"name": "geo.weather", "description": "d", "parameters": {"type": "dict", "properties": properties}}
    item = one(tmp_path, question(function=function), {"geo.weather": {"type": [1.5, 2, 1.5], "x": ["Paris", "París"]}})
    assert msgspec.to_builtins(item) == {
        "id": "simple_python_0",
        "category": "simple_function_calling",
        "instruction": "Weather in Paris?",
        "language": "en",
        "expected_calls": [{"function": "geo.weather", "arguments": {"type": 1.5, "x": "Paris"}, "accept": accept}],
        "tools": [openai_tool("geo.weather", "d", **standard)],
    }
    assert check_items([item], {}) == []


def test_optional_arguments_are_left_out_and_counted(tmp_path):
    """Empty text or null among the accepted values: an absent argument must not cost a point (ruling 9)."""
    arguments = {"city": ["Paris"], "unit": ["metric", ""], "t": ["", None], "u": [None], "v": []}
    item = one(tmp_path, question(), {"geo.weather": arguments})
    assert item.expected_calls[0].arguments == {"city": "Paris"}
    assert item.notes == {"may_be_absent": ["geo.weather.unit", "geo.weather.t", "geo.weather.u", "geo.weather.v"]}


def test_true_and_one_stay_apart(tmp_path):
    """Alternatives that Python calls equal may differ for the grader (ruling 1); exact repeats are dropped."""
    call = one(tmp_path, question(), {"f": {"a": [1, True, 1, [1, 2], [1, 2], "1"]}}).expected_calls[0]
    assert [repr(value) for value in [call.arguments["a"], *call.accept["a"]]] == ["1", "True", "[1, 2]", "'1'"]
    same = {"a": [{"x": [1], "y": [2]}, {"y": [2], "x": [1]}]}
    assert one(tmp_path, question(), {"f": same}).expected_calls[0].accept is None


def test_alternatives_inside_objects_are_multiplied_out(tmp_path):
    """An accepted object lists the right values of each member; members that may be absent are left out."""
    spec = {"a": [1, 2], "b": ["x"], "c": ["", 5], "d": "literal", "e": [{"deep": [1]}]}
    call = one(tmp_path, question(), {"f": {"o": [spec], "l": [[{"k": [1, 2]}, {"k": [3]}, 4]]}}).expected_calls[0]
    rest = {"b": "x", "d": "literal", "e": {"deep": [1]}}
    assert call.arguments == {"o": {"a": 1} | rest, "l": [{"k": 1}, {"k": 3}, 4]}
    assert call.accept == {"o": [{"a": 2} | rest], "l": [[{"k": 2}, {"k": 3}, 4]]}


def test_alternatives_are_bounded(tmp_path):
    """A product of alternatives ends at 64, and the notes say where some were left out."""
    many = {f"k{i}": list(range(10)) for i in range(30)}
    item = one(tmp_path, question(), {"f": {"o": [many], "l": [[many, many]], "s": [*range(100)]}})
    call = item.expected_calls[0]
    assert {name: len(values) for name, values in call.accept.items()} == {"o": 63, "l": 63, "s": 99}
    assert item.notes == {"alternatives_left_out": ["f.o", "f.l"]}


def test_a_star_is_noted(tmp_path):
    """A literal star becomes the wildcard (ruling 7), which the notes do not hide."""
    assert one(tmp_path, question(), {"f": {"a": ["*"]}}).notes == {"star_accepts_anything": ["f.a"]}


@pytest.mark.parametrize(
    ("item_id", "functions", "calls", "expected"),
    [
        ("simple_python_0", 1, 1, ("simple_function_calling", True)),
        ("simple_java_3", 1, 1, ("simple_function_calling", True)),
        ("javascript_3", 1, 1, ("simple_function_calling", True)),
        ("live_simple_0-0-0", 2, 1, ("simple_function_calling", True)),
        ("multiple_9", 2, 1, ("tool_selection", True)),
        ("live_multiple_9-1-1", 1, 1, ("tool_selection", True)),
        ("parallel_1", 1, 2, ("tool_selection", False)),
        ("parallel_1", 1, 1, ("tool_selection", False)),
        ("parallel_multiple_1", 2, 2, ("tool_selection", False)),
        ("q1", 1, 1, ("simple_function_calling", True)),
        ("q1", 2, 1, ("tool_selection", True)),
        ("q1", 1, 2, ("tool_selection", False)),
    ],
)
def test_the_category_follows_from_the_id(tmp_path, item_id, functions, calls, expected):
    """The id decides, else the numbers of functions and calls; several calls may come in any order."""
    row = question(item_id, function=question()["function"] * functions)
    path = bfcl(tmp_path, row | answer(*[{"geo.weather": {}}] * calls, item_id=item_id), name="questions.jsonl")
    [item] = convert(path)
    assert (item.category, item.ordered) == expected
    assert convert(path, category="multi_step")[0].category == "multi_step"


def test_the_file_name_decides_where_the_id_says_nothing(tmp_path):
    """Numbered questions take the category of their file, and numbers become text."""
    [item] = convert(bfcl(tmp_path, question() | answer({"f": {}}) | {"id": 7}, name="BFCL_v4_multiple.json"))
    assert (item.id, item.category) == ("7", "tool_selection")
    [item] = convert(bfcl(tmp_path, question() | {"id": 8}, name="BFCL_v4_live_irrelevance.json"))
    assert (item.expected_calls, item.tags, item.category) == ([], ["irrelevance"], "simple_function_calling")


@pytest.mark.parametrize(
    ("item_id", "what"),
    [
        ("multi_turn_base_0", "not supported: they need BFCL's simulated APIs"),
        ("live_relevance_0-0-0", "cannot be graded as calls"),
        ("simple_python_0", "no accepted answer is known for this question. Give the answer file"),
    ],
)
def test_what_has_no_answer_is_refused(tmp_path, item_id, what):
    """Questions whose right calls are not known are refused with the reason, the file and the line."""
    path = bfcl(tmp_path, question("irrelevance_0"), question(item_id))
    with pytest.raises(DataError) as caught:
        convert(path)
    assert what in str(caught.value)
    assert (caught.value.path, caught.value.line) == (str(path), 2)


def test_turns_and_arabic(tmp_path):
    """System messages and earlier turns become messages; an Arabic instruction is called MSA, for want of more."""
    turns = [[{"role": "system", "content": "s"}, {"role": "user", "content": "مرحبا"}],
             [{"role": "assistant", "content": "a"}, {"role": "user", "content": "طقس باريس"}]]  # fmt: skip
    item = one(tmp_path, question(text=turns), {"f": {}})
    assert [turn["content"] for turn in item.messages] == ["s", "مرحبا", "a"]
    assert (item.instruction, item.dialect, item.language) == ("طقس باريس", "msa", None)
    flat = one(tmp_path, question(text=turns[1]), {"f": {}})
    assert (flat.instruction, flat.messages) == ("طقس باريس", turns[1][:1])
    assert one(tmp_path, question() | {"question": "Hi"}, {"f": {}}).instruction == "Hi"


def test_a_json_list_is_read_as_well(tmp_path):
    """A JSON list of questions gives what the lines give, and errors name the member."""
    lines = bfcl(tmp_path, question(), question("simple_python_1"))
    answers = bfcl(tmp_path, answer({"f": {}}), answer({"f": {}}, item_id="simple_python_1"), name="a.json")
    whole = tmp_path / "list.json"
    whole.write_text(json.dumps([question(), question("simple_python_1")]), encoding="utf-8")
    assert convert(whole, answers=answers) == convert(lines, answers=answers)
    whole.write_text(json.dumps([question(), 5]), encoding="utf-8")
    with pytest.raises(DataError) as caught:
        convert(whole)
    assert (caught.value.field, caught.value.what) == ("[1]", "expected an object, found a number.")


def _deep() -> list:
    value: list = []
    for _ in range(70):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"id": None}, "id"),
        ({"id": True}, "id"),
        ({"question": 5}, "question"),
        ({"question": []}, "question"),
        ({"question": [[{"role": "assistant", "content": "x"}]]}, "question"),
        ({"question": [[{"role": "user"}]]}, "question[0][0].content"),
        ({"question": [{"content": "x"}]}, "question[0].role"),
        ({"question": [[5]]}, "question[0][0]"),
        ({"function": "f"}, "function"),
        ({"function": [5]}, "function[0]"),
        ({"function": [{"name": 5}]}, "function[0].name"),
        ({"function": [{"name": "f", "description": 5}]}, "function[0].description"),
        ({"function": [{"name": "f", "parameters": [5]}]}, "function[0].parameters"),
        ({"ground_truth": "f()"}, "ground_truth"),
        ({"ground_truth": ["f()"]}, "ground_truth[0]"),
        ({"ground_truth": [{"f": {}, "g": {}}]}, "ground_truth[0]"),
        ({"ground_truth": [{"f": [1]}]}, "ground_truth[0].f"),
        ({"ground_truth": [{"f": {"a": 1}}]}, "ground_truth[0].f.a"),
        ({"ground_truth": [{"f": {"a": _deep()}}]}, None),
    ],
)
def test_a_wrong_line_is_named(tmp_path, change, field):
    """The message names file, line and field."""
    path = bfcl(tmp_path, question("irrelevance_9"), question() | answer({"f": {}}) | change)
    with pytest.raises(DataError) as caught:
        convert(path)
    assert (caught.value.path, caught.value.line, caught.value.field) == (str(path), 2, field)


def test_a_wrong_answer_file_is_named(tmp_path):
    """Errors in the answers name the answer file; ids must not repeat in either file."""
    path = bfcl(tmp_path, question())
    for rows, line, field in (([{"id": "simple_python_0"}], 1, "ground_truth"), ([answer()] * 2, 2, "id")):
        answers = bfcl(tmp_path, *rows, name="answers.json")
        with pytest.raises(DataError) as caught:
            convert(path, answers=answers)
        assert (caught.value.path, caught.value.line, caught.value.field) == (str(answers), line, field)
    with pytest.raises(DataError, match="stands twice"):
        convert(bfcl(tmp_path, question(), question()))


def test_what_is_no_data_set_is_refused(tmp_path):
    """An unknown kind, answers for AISA, an empty file, a folder and a broken line each say what is wrong."""
    path = parquet(tmp_path, aisa_row())
    with pytest.raises(UsageError, match="the kinds are auto, aisa, bfcl"):
        convert(path, kind="csv")
    with pytest.raises(UsageError, match="holds its own answers"):
        convert(path, answers=path)
    empty = tmp_path / "empty.jsonl"
    empty.write_bytes(b"\n")
    with pytest.raises(DataError, match="holds no questions"):
        convert(empty)
    with pytest.raises(DataError, match="cannot be read"):
        convert(tmp_path)
    empty.write_bytes(b"{}\n{\n")
    with pytest.raises(DataError, match="line 1, field 'id'"):
        convert(empty, kind="bfcl")
    assert KINDS == ("auto", "aisa", "bfcl")


# --- writing


def test_written_items_read_back(tmp_path):
    """What is written is UTF-8 with its letters, one item a line, and reads back as the same items."""
    items = convert(parquet(tmp_path, aisa_row(), aisa_row(requires_function=False)))
    write_items(tmp_path / "items.jsonl", items)
    assert list(ItemSet.read(tmp_path / "items.jsonl").values()) == items
    text = (tmp_path / "items.jsonl").read_text(encoding="utf-8")
    assert "طقس جدة" in text
    assert "\\u06" not in text
    assert text.count("\n") == 2


def test_surrogates_are_replaced_when_written():
    """A lone surrogate has no form in UTF-8 and becomes U+FFFD; nothing else changes."""
    [row] = item_rows([Item("\ud800", "x", [], instruction="جدة")])
    assert json.loads(row) == {"id": "\ufffd", "category": "x", "expected_calls": [], "instruction": "جدة"}


def test_a_failed_write_leaves_what_was_there(tmp_path):
    """The old file stands until the new one is whole."""
    path = tmp_path / "items.jsonl"
    path.write_text("old", encoding="utf-8")

    def items():
        yield Item("1", "x", [])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_items(path, items())
    assert path.read_text(encoding="utf-8") == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["items.jsonl"]
    with pytest.raises(OutputError):
        write_items(tmp_path / "nowhere" / "items.jsonl", [])


def test_the_published_aisa_rows_convert():
    """All rows of the published file become items: with and without calls, of the known dialects, and checkable."""
    path = SHARED / "aisa" / "dev.parquet"
    if not path.exists():
        pytest.skip("the shared data is not here")
    items = convert(path)
    assert len(items) == 545
    assert Counter(bool(item.expected_calls) for item in items) == {True: 500, False: 45}
    assert Counter(item.dialect for item in items) == {
        "msa": 323, "gulf": 75, "levantine": 75, "egyptian": 66, "maghrebi": 6,
    }  # fmt: skip
    assert all((item.context and item.tags == []) or not item.expected_calls for item in items)
    findings = check_items(items, {})
    assert {finding.rule for finding in findings} == {"underivable"}
    assert [finding.item_id for finding in findings] == ["15", "68", "127", "206", "218", "296", "471", "502", "544"]
    assert b"null" not in b"".join(item_rows(items))
