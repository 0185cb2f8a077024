"""Rows become replies and replies become calls; each mistake is put to the account of the one who made it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arabic_agent_eval.errors import DataError, UnknownFormat
from arabic_agent_eval.formats import FORMATS, Reply, read_calls, read_reply, reply_text
from arabic_agent_eval.tools import Call

CASES = json.loads((Path(__file__).parent / "cases" / "formats.json").read_text(encoding="utf-8"))
SHARED = Path(__file__).parents[1] / ".." / "shared" / "data"
needs_shared = pytest.mark.skipif(not SHARED.exists(), reason="the shared data is not here")
ANSWERS = [case for case in CASES if "calls" in case]
FAILURES = [case for case in CASES if "says" in case]
MISTAKES = [case for case in CASES if "wrong" in case]


def name(case):
    """What a case is called in the test report."""
    return case["id"]


def read(case):
    """The reply that a case's row is."""
    return read_reply(case["row"], format=case.get("format", "auto"))


def as_rows(calls: tuple[Call, ...]) -> list[dict[str, object]]:
    """Calls as the table writes them."""
    rows = []
    for call in calls:
        error = {"error": call.error} if call.error else {}
        rows.append({"function": call.function, "arguments": call.arguments, **error})
    return rows


def test_table_is_whole():
    """Every case is of one sort, and none hides another."""
    assert len(ANSWERS) + len(FAILURES) + len(MISTAKES) == len(CASES) == len({case["id"] for case in CASES})


@pytest.mark.parametrize("case", ANSWERS, ids=name)
def test_answer(case):
    """An answer has its kind, its item, its epoch and exactly its calls."""
    reply = read(case)
    assert (reply.kind, reply.failure) == (case["kind"], None), case["why"]
    assert reply.item_id == case.get("item_id", reply.item_id)
    assert reply.epoch == case.get("epoch", 0)
    assert as_rows(read_calls(reply, frozenset(case.get("offered", ())))) == case["calls"], case["why"]


@pytest.mark.parametrize("case", FAILURES, ids=name)
def test_failure(case):
    """An answer that never came is a failure with a reason, and makes no call (ruling 17)."""
    reply = read(case)
    assert (reply.kind, reply.payload) == ("failure", None), case["why"]
    assert case["says"] in reply.failure
    assert read_calls(reply) == ()


@pytest.mark.parametrize("case", MISTAKES, ids=name)
def test_mistake_in_a_row(case):
    """A row that is not what it should be raises, and the message names the field and the remedy."""
    with pytest.raises(DataError) as caught:
        read(case)
    assert caught.value.field == case["field"], case["why"]
    assert case["wrong"] in str(caught.value)
    assert (caught.value.path, caught.value.line) == (None, None)


@pytest.mark.parametrize("field", ["calls", "actual_calls", "text", "response", "tool_called"])
def test_remedy_says_how_to_mark_a_failed_request(field):
    """A value of the wrong type is answered with what to write instead."""
    with pytest.raises(DataError, match=r"Write .*'error' if the request failed") as caught:
        read_reply({"id": 1, field: 1.5})
    assert caught.value.field == field


def test_unknown_format():
    """A format that nobody wrote a reader for is refused with the names that there are."""
    with pytest.raises(UnknownFormat, match=r"'xml'.*auto, calls, tool_calls, response, text, submission"):
        read_reply({"id": 1, "text": ""}, format="xml")
    assert FORMATS == ("auto", "calls", "tool_calls", "response", "text", "submission")


@pytest.mark.parametrize("row", [None, [], "x", 5])
def test_row_must_be_an_object(row):
    """A row that is not an object is a mistake in the file."""
    with pytest.raises(DataError, match="must be a JSON object"):
        read_reply(row)


def test_rows_from_memory():
    """Mappings, calls and non-finite numbers that no JSON file can hold are read or refused like the others."""
    call = Call("f", {"x": 1})
    assert read_calls(read_reply({"id": 1, "calls": [call]})) == (call,)
    with pytest.raises(DataError, match="the number nan"):
        read_reply({"id": math.nan, "calls": []})
    assert "inf" in read_reply({"id": 1, "error": math.inf}).failure


def test_reply_from_text():
    """A model's raw text is a reply by itself."""
    reply = reply_text('[TOOL_CALLS]f[ARGS]{"x": "م"}', "a")
    assert reply == Reply("a", "text", '[TOOL_CALLS]f[ARGS]{"x": "م"}')
    assert read_calls(reply) == (Call("f", {"x": "م"}),)


def test_reason_is_safe_to_print():
    """A reason is one line of at most 200 characters without control characters and keys."""
    hostile = "bad\x1b[2J\n\u202ekey sk-proj-abcdef123456 and Bearer abc.def \ud800 AIzaSyA-123456 " + "x" * 1_000_000
    for row in ({"error": hostile}, {"response": {"error": {"message": hostile}}}):
        reason = read_reply({"id": 1, **row}).failure
        assert len(reason) == 200
        assert reason.endswith("…")
        assert "⟨U+001B⟩" in reason
        assert "⟨U+202E⟩" in reason
        assert not {"\n", "\x1b", "\u202e", "\ud800"} & set(reason)
        assert "abcdef" not in reason
        assert "abc.def" not in reason
        assert "SyA" not in reason


def test_page_is_not_quoted():
    """The body of an answer that is no JSON never gets into the reason."""
    assert "secret" not in read_reply({"id": 1, "response": "<html>secret</html>"}).failure


def test_many_calls_are_all_kept():
    """A reply may hold a hundred thousand calls; none is merged or lost."""
    entry = {"function": "f", "arguments": '{"x": "م"}'}
    wrapped = {"type": "function", "function": {"name": "f", "arguments": '{"x": "م"}'}}
    for row in ({"calls": [entry] * 100_000}, {"tool_calls": [wrapped] * 100_000}):
        calls = read_calls(read_reply({"id": 1, **row}))
        assert len(calls) == 100_000
        assert set(map(repr, calls)) == {repr(Call("f", {"x": "م"}))}


@pytest.mark.parametrize("depth", [65, 500, 10_000])
def test_deep_nesting_is_malformed(depth):
    """Arguments nested deeper than 64 levels are malformed and keep the name, as text or as a value (ruling 13)."""
    value: dict[str, object] = {}
    for _ in range(depth - 1):
        value = {"a": value}
    text = '{"a":' * (depth - 1) + "{}" + "}" * (depth - 1)
    for arguments in (value, text):
        rows = [
            {"calls": [{"function": "f", "arguments": arguments}]},
            {"tool_calls": [{"function": {"name": "f", "arguments": arguments}}]},
            {"tool_called": "f", "arguments": arguments},
            {
                "response": {
                    "choices": [{"message": {"tool_calls": [{"function": {"name": "f", "arguments": arguments}}]}}]
                }
            },
            {
                "response": {
                    "candidates": [{"content": {"parts": [{"functionCall": {"name": "f", "args": arguments}}]}}]
                }
            },
            {"response": {"role": "assistant", "content": [{"type": "tool_use", "name": "f", "input": arguments}]}},
        ]
        for row in rows:
            (call,) = read_calls(read_reply({"id": 1, **row}))
            assert (call.function, call.arguments, call.error) == ("f", {}, "malformed_arguments")


def test_deep_response_text_is_a_failure():
    """An answer nested beyond what can be decoded is no answer, not a crash."""
    assert read_reply({"id": 1, "response": '{"a":' * 10_000 + "{}" + "}" * 10_000}).kind == "failure"
    assert read_reply({"id": 1, "error": {"error": {"error": {}}}}).failure.endswith("no reason was given.")


def test_large_id_keeps_its_digits():
    """Ids are compared as text, whatever their size."""
    assert read_reply({"id": 10**30, "calls": []}).item_id == "1" + "0" * 30


KEYS = [
    *("function", "name", "arguments", "tool_calls", "message", "content", "role", "type", "choices", "candidates"),
    *("output", "parts", "functionCall", "args", "error", "status_code", "body", "delta", "custom", "input"),
    *("tool_use", "function_call", "promptFeedback", "finishReason"),
]
FIELDS = [
    *("calls", "actual_calls", "tool_calls", "response", "text", "tool_called", "arguments", "message", "role"),
    *("content", "function_call", "error", "epoch"),
]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(FIELDS), json_values, max_size=4), st.sampled_from(FORMATS))
def test_any_row_is_read_or_refused(row, form):
    """Whatever a row holds, it is read or refused with a DataError, and reading its calls never raises."""
    try:
        reply = read_reply({"id": 1, **row}, format=form)
    except DataError:
        return
    calls = read_calls(reply)
    assert all(call.function or call.error == "malformed_call" for call in calls)
    assert (reply.failure is None) == (reply.kind != "failure")
    assert not (reply.failure and calls)


shapes = ["choices", "output", "candidates", "content"]


@given(st.sampled_from(shapes), st.lists(json_values, min_size=1, max_size=3))
def test_any_response_is_read(shape, entries):
    """Whatever stands inside a raw answer, reading it and its calls never raises."""
    for form in ("response", "text"):
        reply = read_reply({"id": 1, "response": {"role": "assistant", shape: entries}}, format=form)
        read_calls(reply)


@needs_shared
def test_shared_cases_are_read():
    """The worked cases give as many calls as their grading supposes, and the malformed ones say so."""
    errors = {"malformed_arguments", "malformed_call", "double_encoded_arguments"}
    lines = (SHARED / "cases" / "replies.jsonl").read_text(encoding="utf-8").splitlines()
    for line in lines:
        case = json.loads(line)
        answer = case["reply"]
        row = {"text": answer} if isinstance(answer, str) else answer
        calls = read_calls(read_reply({"id": case["id"], **row}))
        missing = {"no_call": -1, "extra_call": 1}.get(case["cause"], 0)
        assert len(calls) == len(case["expected_calls"]) + missing, case["id"]
        assert {call.error for call in calls} - {None} == {case["cause"]} & errors, case["id"]


@needs_shared
def test_shared_submission_is_read():
    """Every row of a real AISA-ArabicFC submission is an answer whose arguments are an object."""
    lines = (SHARED / "aisa" / "submission.jsonl").read_text(encoding="utf-8").splitlines()
    for line in lines:
        row = json.loads(line)
        reply = read_reply(row)
        assert (reply.item_id, reply.kind) == (str(row["id"]), "submission")
        expected = () if row["tool_called"] == "none" else (Call(row["tool_called"], row["arguments"]),)
        assert read_calls(reply) == expected


@needs_shared
def test_published_runs_are_read():
    """Every row of the published runs is an answer in the plain shape."""
    for path in sorted((SHARED / "published" / "runs").glob("*.json")):
        for row in json.loads(path.read_text(encoding="utf-8"))["results"]:
            reply = read_reply(row)
            assert (reply.item_id, reply.kind) == (row["item_id"], "failure" if row["error"] else "calls")
            assert len(read_calls(reply)) == (0 if row["error"] else len(row["actual_calls"]))
