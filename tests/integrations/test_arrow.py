"""Batches of Arrow are judged as files are: the same rows, the same refusals."""

from __future__ import annotations

import copy
import json
import sys

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from arabic_agent_eval import cli
from arabic_agent_eval.bundled import find_items, find_replies
from arabic_agent_eval.errors import DataError, MissingExtra, UsageError
from arabic_agent_eval.formats import read_reply
from arabic_agent_eval.items import ItemSet
from arabic_agent_eval.rules import RULES, V0_1, Rules
from arabic_agent_eval.scoring import evaluate_reply

pa = pytest.importorskip("pyarrow", reason="batches need the extra 'arrow'")

from arabic_agent_eval.integrations.arrow import SCHEMA, ArrowGrader, grade_batch  # noqa: E402

ITEMS = ItemSet.read(find_items("sample"), name="sample")
REPLIES = [json.loads(line) for line in find_replies("sample").read_text(encoding="utf-8").splitlines()]
CALL = {"function": "get_prayer_times", "arguments": {"city": "مكة"}}


def as_text(rows: list[dict]) -> pa.RecordBatch:
    """Rows as columns of text, each value that is not text as its JSON."""
    names = sorted({name for row in rows for name in row})
    columns = {}
    for name in names:
        values = [row.get(name) for row in rows]
        written = [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
        columns[name] = pa.array(values if name == "epoch" else written)
    return pa.record_batch(columns)


def nested(rows: list[dict]) -> pa.RecordBatch:
    """Rows as nested columns; arguments, which differ from row to row, and whole answers stay JSON text."""
    names = sorted({name for row in rows for name in row})
    table = [{name: row.get(name) for name in names} for row in copy.deepcopy(rows)]
    for row in table:
        for call in row["actual_calls"] or ():
            call["arguments"] = json.dumps(call["arguments"])
        if isinstance(row["response"], dict):
            row["response"] = json.dumps(row["response"])
    return pa.RecordBatch.from_pylist(table)


def judged(batch: pa.RecordBatch, **options: object) -> list[dict]:
    """The judged replies of a batch, as rows."""
    return grade_batch(batch, ITEMS, **options).to_pylist()


def written_rows(tmp_path, *options: str) -> list[dict]:
    """What ``aae grade --out`` writes of the sample replies, as the columns would hold it."""
    out = tmp_path / "rows.jsonl"
    done = CliRunner().invoke(
        cli.app, ["grade", "--items", "sample", "--replies", "sample", "--out", str(out), *options]
    )
    assert done.exit_code == 0, done.output
    rows = []
    for line in out.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        row["losses"] = row["losses"] and [
            {name: loss.get(name) for name in ("cause", "axis", "points", "call", "argument")}
            | {name: text_of(loss.get(name)) for name in ("expected", "actual")}
            | {"count": loss.get("count", 1)}
            for loss in row["losses"]
        ]
        row["actual_calls"] = [
            {**call, "arguments": text_of(call["arguments"]), "raw": text_of(call["raw"])}
            for call in row["actual_calls"]
        ]
        rows.append({name: row[name] for name in SCHEMA.names})
    return rows


def text_of(value: object) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


@pytest.mark.parametrize("rules", sorted(RULES))
@pytest.mark.parametrize("columns", [as_text, nested])
def test_rows_are_those_of_the_command(columns, rules, tmp_path):
    """A batch of the sample's replies, as JSON text or nested, is judged as ``aae grade --out`` writes it."""
    assert judged(columns(REPLIES), rules=RULES[rules]) == written_rows(tmp_path, "--rules", rules)


def test_the_schema_is_the_documented_one():
    """What comes out has the schema that the module gives, also when nothing goes in."""
    batch = as_text(REPLIES)

    assert grade_batch(batch, ITEMS).schema == SCHEMA
    assert grade_batch(batch.slice(0, 0), ITEMS).schema == SCHEMA


def test_a_table_gives_a_table():
    """A table, in one piece or several, gives a table with the same rows."""
    batch = as_text(REPLIES)
    table = pa.Table.from_batches([batch.slice(0, 7), batch.slice(7)])

    found = grade_batch(table, ITEMS)

    assert isinstance(found, pa.Table)
    assert found.to_pylist() == judged(batch)


def test_a_grader_is_used_again():
    """One grader judges batch after batch as a fresh one would, also after one that was refused."""
    grader = ArrowGrader(ITEMS)
    batch = as_text(REPLIES)

    with pytest.raises(DataError):
        grader.grade(pa.record_batch({"id": ["simple-msa", "nobody"], "text": ["", ""]}))

    assert [grader.grade(part).to_pylist() for part in (batch.slice(0, 9), batch.slice(9))] == [
        judged(batch)[:9],
        judged(batch)[9:],
    ]


NESTED = pa.struct(
    [("function", pa.string()), ("arguments", pa.struct([("city", pa.string()), ("date", pa.string())]))]
)
MAPS = pa.struct([("function", pa.string()), ("arguments", pa.map_(pa.string(), pa.string()))])

NUMBERED = pa.map_(pa.int64(), pa.string())


@pytest.mark.parametrize(
    ("calls", "why"),
    [
        (pa.array([[CALL]], pa.list_(NESTED)), "a struct whose unused member is null"),
        (pa.array([[{**CALL, "arguments": [("city", "مكة")]}]], pa.list_(MAPS)), "a map"),
        (pa.array([[CALL]], pa.large_list(NESTED)), "a large list"),
        (pa.array([json.dumps([CALL])]), "JSON text"),
        (pa.array([json.dumps([CALL])], pa.large_string()), "large text"),
        (pa.array([json.dumps([CALL])]).dictionary_encode(), "a dictionary of texts"),
        (pa.array([json.dumps([{**CALL, "arguments": json.dumps(CALL["arguments"])}])]), "JSON text in JSON text"),
        (pa.ExtensionArray.from_storage(pa.json_(), pa.array([json.dumps([CALL])])), "Arrow's own type for JSON"),
    ],
)
def test_calls_come_in_many_types(calls, why):
    """The same calls are the same, however the column holds them."""
    (row,) = judged(pa.record_batch({"id": ["simple-msa"], "calls": calls}))

    assert row["actual_calls"] == [
        {"function": "get_prayer_times", "arguments": text_of(CALL["arguments"]), "error": None, "raw": None}
    ], why
    assert row["total"] == 1.0


def test_epochs_failures_and_other_columns():
    """A null epoch is 0, an error leaves a row unscored with its reason, and other columns mean nothing."""
    batch = pa.record_batch(
        {
            "item_id": pa.array(["simple-msa"] * 3),
            "epoch": pa.array([None, 1, 2], pa.int32()),
            "error": pa.array([None, "HTTP 503", None]),
            "calls": pa.array([json.dumps([CALL]), None, "[]"]),
            "when": pa.array([0, 1, 2], pa.timestamp("s")),
        }
    )

    rows = judged(batch)

    assert [(row["epoch"], row["status"], row["total"]) for row in rows] == [
        (0, "scored", 1.0),
        (1, "unscored", None),
        (2, "scored", 0.0),
    ]
    assert rows[1]["reason"] == "The request failed: HTTP 503"
    assert rows[1]["actual_calls"] is None
    assert sum(loss["points"] for loss in rows[2]["losses"]) == pytest.approx(1.0)


def test_without_causes_there_are_no_losses():
    """Without causes the totals stay and the losses are null."""
    batch = as_text(REPLIES)
    rows = judged(batch, causes=False)

    assert [row["total"] for row in rows] == [row["total"] for row in judged(batch)]
    assert {row["losses"] is None for row in rows} == {True}


def test_unknown_items():
    """A reply to an unknown item is refused with its place, or left out."""
    batch = pa.record_batch({"id": ["simple-msa", "nobody"], "text": ["", ""]})

    with pytest.raises(DataError, match=r"^batch, field '\[1\].id': there is no item 'nobody' in sample"):
        grade_batch(batch, ITEMS)
    assert [row["item_id"] for row in judged(batch, allow_unknown=True)] == ["simple-msa"]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"when": pa.array([1])}, "none of the columns of a reply"),
        ({"id": pa.array(["simple-msa"])}, r"'\[0\]': the row holds no answer"),
        ({"id": pa.array(["simple-msa"]), "calls": pa.array(["[oops"])}, r"'\[0\].calls': the text cannot be read"),
        ({"id": pa.array(["simple-msa"]), "calls": pa.array(["{}"])}, r"'\[0\].calls': the calls must be a list"),
        ({"id": pa.array([None], pa.string()), "text": pa.array([""])}, r"'\[0\].id': the row does not say which item"),
        ({"id": pa.array(["simple-msa"]), "epoch": pa.array([-1]), "text": pa.array([""])}, r"'\[0\].epoch'"),
        (
            {"id": pa.array(["simple-msa"]), "epoch": pa.array([2**63], pa.uint64()), "text": pa.array([""])},
            r"'\[0\].epoch': an epoch must be below 2\^63",
        ),
        ({"id": pa.array([b"simple-msa"]), "text": pa.array([""])}, "'id': the column has the type binary"),
        (
            {"id": pa.array(["simple-msa"]), "calls": pa.array([[{"arguments": {"at": 0}}]]).cast(
                pa.list_(pa.struct([("arguments", pa.struct([("at", pa.timestamp("s"))]))])))},
            "'calls.arguments.at': the column has the type timestamp",
        ),
        (
            {"id": pa.array(["simple-msa"]), "calls": pa.array([[[(1, "x")]]], pa.list_(NUMBERED))},
            "'calls': the keys of an object must be text",
        ),
    ],
)  # fmt: skip
def test_what_is_no_batch_of_replies_is_refused(columns, message):
    """A column or a row that is not what it should be is an error of the data that names its place."""
    with pytest.raises(DataError, match=message):
        grade_batch(pa.record_batch(columns), ITEMS)


def test_a_column_that_stands_twice_is_refused():
    """Which of two columns of one name counts is not for us to say."""
    batch = pa.RecordBatch.from_arrays([pa.array(["simple-msa"])] * 2 + [pa.array([""])], names=["id", "id", "text"])

    with pytest.raises(DataError, match="'id': the column stands twice"):
        grade_batch(batch, ITEMS)


def test_only_named_rules_and_formats():
    """Rules or a format that no signature could name are a mistake of the caller."""
    batch = as_text(REPLIES)

    with pytest.raises(UsageError, match="named rules"):
        grade_batch(batch, ITEMS, rules=Rules("canonical", 1, surplus_arguments=0.3))
    with pytest.raises(UsageError, match="no reply format 'xml'"):
        grade_batch(batch, ITEMS, format="xml")
    assert judged(batch, rules=V0_1)[0]["rules"] == "v0.1-1"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
WRITTEN = (
    st.text(max_size=30)
    | JSON.map(json.dumps)
    | st.just("[" * 3_000 + "]" * 3_000)
    | st.sampled_from(
        [
            '<tool_call>{"name": "x"',
            '{"choices": []}',
            '{"candidates": null}',
            "NaN",
            "\ud800".encode("utf-8", "replace").decode(),
        ]
    )
)


@settings(max_examples=150)
@given(st.lists(st.tuples(st.sampled_from(["text", "response"]), WRITTEN), min_size=1, max_size=4), JSON)
def test_nothing_that_a_model_writes_raises(answers, arguments):
    """Whatever text or arguments a model sent are judged, and as ``evaluate_reply`` judges them."""
    rows = [{"id": "simple-msa", "epoch": number, kind: text} for number, (kind, text) in enumerate(answers)]
    rows.append({"id": "simple-msa", "epoch": len(rows), "calls": [{"function": "get_time", "arguments": arguments}]})

    found = judged(as_text(rows))

    for row, each in zip(rows, found, strict=True):
        result = evaluate_reply(ITEMS["simple-msa"], read_reply(row))
        assert each["total"] == (None if result.score is None else result.score.total)
        assert each["reason"] == result.reason
        assert [loss["points"] for loss in each["losses"]] == [loss.points for loss in result.losses]


def test_without_pyarrow_the_command_that_installs_it_is_named(monkeypatch):
    """Where pyarrow is missing, the error says how to install it, and nothing else needs it."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "arabic_agent_eval.integrations.arrow")

    with pytest.raises(MissingExtra, match=r'pip install "arabic-agent-eval\[arrow\]"'):
        import arabic_agent_eval.integrations.arrow  # noqa: F401


def test_members_of_one_name_are_refused():
    """A struct with two members of one name says nothing that can be read."""
    call = pa.StructArray.from_arrays([pa.array(["f"]), pa.array(["g"])], names=["function", "function"])
    table = pa.Table.from_arrays(
        [pa.array(["a"]), pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), call)], names=["id", "calls"]
    )

    with pytest.raises(DataError, match=r"calls': two members of the column have one name\."):
        grade_batch(table, ITEMS)
