"""Replay: answers that exist already, asked for as if a model gave them, are worth what they are to the grader."""

from __future__ import annotations

import asyncio
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from arabic_agent_eval.asking import Request
from arabic_agent_eval.cli import app
from arabic_agent_eval.errors import DataError
from arabic_agent_eval.formats import read_calls, read_reply
from arabic_agent_eval.models.model import Answer, Failure
from arabic_agent_eval.models.replay import Replay
from arabic_agent_eval.strictjson import decode_clipped
from arabic_agent_eval.tools import Call, Tool
from tests.strategies import sent_calls

WEATHER = Tool("get_weather")
CITY = {"city": "أبها"}
CALL = {"function": "get_weather", "arguments": CITY}
PART = {"functionCall": {"name": "get_weather", "args": CITY}}
MARKED = '<tool_call>{"name": "get_weather", "arguments": {"city": "أبها"}}</tool_call>'
CHAT = {"choices": [{"message": {"role": "assistant", "content": "حاضر", "tool_calls": []}, "finish_reason": "stop"}]}


def written(tmp_path, *rows):
    """A file of replies."""
    path = tmp_path / "replies.jsonl"
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def asked(model, item_id="a", epoch=0, turns=0, tools=(WEATHER,)):
    """What the model says to a request."""
    request = Request(item_id, epoch, "", (), tools, exchanges=(None,) * turns)
    attempt = asyncio.run(model.attempt(model.encode(request)))
    return attempt.failure or model.read(decode_clipped(attempt.body))


def calls_of(answer):
    """Names and arguments of the calls of an answer."""
    return [(made.call.function, made.call.arguments, made.call.error) for made in answer.calls]


@pytest.mark.parametrize(
    "answer",
    [
        {"calls": [CALL]},
        {"actual_calls": [{"name": "get_weather", "arguments": '{"city": "أبها"}'}]},
        {"tool_calls": [{"function": {"name": "get_weather", "arguments": '{"city": "أبها"}'}}]},
        {"tool_called": "get_weather", "arguments": {"city": "أبها"}},
        {"text": MARKED},
        {"response": {"role": "assistant", "content": [{"type": "tool_use", "name": "get_weather", "input": CITY}]}},
        {"response": {"candidates": [{"content": {"parts": [PART]}}]}},
    ],
)  # fmt: skip
def test_every_shape_of_reply_is_replayed(tmp_path, answer):
    """A reply in any shape makes its calls in the first turn and is silent afterwards."""
    model = Replay(written(tmp_path, {"id": "a"} | answer))

    assert calls_of(asked(model)) == [("get_weather", {"city": "أبها"}, None)]
    assert asked(model, turns=1).calls == ()


def test_text_stays_text_where_the_tools_stand_in_the_prompt(tmp_path):
    """With --prompt-tools no tools are offered, and the run itself reads the text."""
    answer = asked(Replay(written(tmp_path, {"id": "a", "text": MARKED})), tools=())

    assert (answer.calls, answer.text) == ((), MARKED)


def test_what_cannot_be_read_stays_unreadable(tmp_path):
    """Malformed calls of a text are malformed calls of the replay."""
    broken = '<function=get_weather>{"city": </function>'
    model = Replay(written(tmp_path, {"id": "a", "text": broken}, {"id": "b", "text": "<tool_call>[1</tool_call>"}))

    assert calls_of(asked(model)) == [("get_weather", {}, "malformed_arguments")]
    assert [made.call.error for made in asked(model, "b").calls] == ["malformed_call"]


def test_epochs_failures_and_items_without_a_row(tmp_path):
    """Every epoch has its own answer, else that of epoch 0; a failure stays one; an item without a row has none."""
    rows = {"id": "a", "calls": []}, {"id": "a", "epoch": 1, "calls": [CALL]}, {"id": "b", "error": "cut off"}
    model = Replay(written(tmp_path, *rows))

    assert [len(asked(model, epoch=epoch).calls) for epoch in (0, 1, 2)] == [0, 1, 0]
    assert asked(model, "b") == Failure("request", "The request failed: cut off")
    assert asked(model, "c") == Failure("request", "The replayed file has no reply to this item.")
    asyncio.run(model.close())


def test_a_run_is_replayed_turn_by_turn(tmp_path):
    """The journal of a run gives its turns in their order; of two rows for one item the answered one counts."""
    first = {"choices": [{"message": {"role": "assistant", "tool_calls": [{"id": "x", "type": "function",
             "function": {"name": "get_weather", "arguments": "{}"}}]}}]}  # fmt: skip
    done = {"id": "a", "epoch": 0, "status": "answered", "turns": [{"response": first}, {"response": CHAT}]}
    failed = {"id": "a", "epoch": 0, "status": "failed", "turns": [], "error": "late"}
    model = Replay(written(tmp_path, failed, done, failed).parent)

    assert [len(asked(model, turns=turn).calls) for turn in (0, 1, 2)] == [1, 0, 0]
    assert asked(model, turns=1).text == "حاضر"
    assert asked(Replay(written(tmp_path, failed)), "a") == Failure("request", "late")


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], "holds no replies"),
        ([{"id": "a"}], "line 1: the row holds no answer"),
        ([{"id": "a", "status": "answered", "turns": [5]}], r"line 1, field 'turns\[0\]': a turn must hold a response"),
        ([{"id": "a", "status": "answered", "turns": [{}]}], "a turn must hold a response"),
    ],
)
def test_bad_files_are_refused(tmp_path, rows, words):
    """A file that is none of replies is refused with its line and field."""
    with pytest.raises(DataError, match=words):
        Replay(written(tmp_path, *rows))


@given(st.lists(sent_calls, max_size=3))
def test_calls_are_worth_the_same_to_the_grader(calls):
    """Whatever stands in a list of calls, the replayed answer makes the same calls, wrong ones included."""
    row = json.loads(msgspec.json.encode({"id": "a", "calls": calls}))
    model = Replay.__new__(Replay)
    from arabic_agent_eval.models.replay import _turns

    model._answers = {("a", 0): _turns(row)[2]}
    answer = asked(model)

    assert isinstance(answer, Answer)
    expected = [(call.function, call.arguments, call.error) for call in read_calls(read_reply(row))]
    assert [Call(*one) for one in calls_of(answer)] == [Call(*one) for one in expected]


def test_a_replayed_set_scores_what_grading_it_scores(tmp_path):
    """The bundled replies give one report, graded from the file or replayed through a run."""
    run = ["run", "--items", "sample", "--model", "replay/sample", "--run", str(tmp_path / "run"), "--json"]
    grade = ["grade", "--items", "sample", "--replies", "sample", "--json"]

    found, graded = (json.loads(CliRunner().invoke(app, options).stdout) for options in (run, grade))

    same = set(graded) - {"signature", "examples"}
    assert {key: found[key] for key in same} == {key: graded[key] for key in same}
