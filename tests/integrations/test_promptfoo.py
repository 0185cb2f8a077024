"""promptfoo: its call to a Python file, answered with the scores of ``aae grade``."""

from __future__ import annotations

import importlib.util
import json
import sys

import pytest

from arabic_agent_eval.asking import Offer, request_for
from arabic_agent_eval.batch import grade_file
from arabic_agent_eval.bundled import find_items, find_replies, find_tools
from arabic_agent_eval.errors import DataError, UsageError
from arabic_agent_eval.integrations.promptfoo import answer_of, get_assert
from arabic_agent_eval.items import ItemSet
from arabic_agent_eval.models.model import Settings
from arabic_agent_eval.models.openai_chat import OpenAIChat
from arabic_agent_eval.rows import read_rows
from arabic_agent_eval.tools import Toolbox
from tests.pages import DOCS
from tests.test_docs import blocks

PAGE = DOCS / "integrations" / "promptfoo.md"
RIGHT = [{"function": "get_weather", "arguments": {"city": "جدة"}}]
NATIVE = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "جدة"}'}}


@pytest.fixture
def promptfoo(tmp_path, monkeypatch):
    """Calls a function of the page's file as promptfoo's wrapper does: a path, a name, and arguments from JSON.

    The call was read from promptfoo 0.121.20: the folder stands first on the path, data are JSON files in UTF-8.
    """
    [(_, source), *_] = blocks(PAGE, "python")
    script = tmp_path / "grade.py"
    script.write_text(source, encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    def call(name, *arguments):
        spec = importlib.util.spec_from_file_location("grade", script)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        result = getattr(module, name)(*json.loads(json.dumps(arguments)))
        sent = json.dumps({"type": "final_result", "data": result}, ensure_ascii=False).encode()
        return json.loads(sent)["data"]

    return call


def context(expected=RIGHT, config=None, **metadata):
    """The context of an assertion, with the members that promptfoo gives it."""
    given = {
        "prompt": "[]",
        "vars": {"question": "كيف الجو في جدة؟"},
        "test": {"vars": {}, "metadata": {"expected_calls": expected, **metadata}, "assert": [{"type": "python"}]},
        "provider": {},
        "providerResponse": {"output": "", "cached": False},
    }
    return given if config is None else given | {"config": config}


def is_grading_result(result):
    """What promptfoo asks of an object that an assertion returns."""
    return (
        isinstance(result["pass"], bool)
        and isinstance(result["score"], int | float)
        and isinstance(result["reason"], str)
        and all(isinstance(value, int | float) for value in result["namedScores"].values())
    )


def test_scores_are_those_of_the_command(promptfoo, tmp_path):
    """On the sample's answers, as OpenAI's provider hands them over, every score and axis is that of the command."""
    grade_file(ItemSet.index(find_items("sample")), find_replies("sample"), out=tmp_path / "rows.jsonl")
    graded = {row.item_id: row for row in read_rows(tmp_path / "rows.jsonl")}
    items = {
        item["id"]: item for item in map(json.loads, find_items("sample").read_text(encoding="utf-8").splitlines())
    }
    for line in find_replies("sample").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        message = row["response"]["choices"][0]["message"] if "response" in row else row
        [output] = [message[field] for field in ("tool_calls", "text", "actual_calls") if field in message]

        result = promptfoo("get_assert", output, {"test": {"metadata": items[row["id"]]}})

        assert is_grading_result(result)
        assert result["score"] == graded[row["id"]].total
        assert result["pass"] == (graded[row["id"]].total == 1.0)
        for axis, value in result["namedScores"].items():
            assert value == getattr(graded[row["id"]], axis)


def test_the_reason_says_what_differs(promptfoo):
    """The reason is in both languages unless one is named."""
    output = [NATIVE | {"function": {"name": "get_weather", "arguments": '{"city": "جده"}'}}]

    both = promptfoo("get_assert", output, context())["reason"]
    arabic = promptfoo("get_assert", output, context(config={"language": "ar"}))["reason"]

    assert "Actual: جد[ه]" in both
    assert arabic in both
    assert arabic.startswith("الدرجة 0.9650")
    assert "Actual" not in arabic


@pytest.mark.parametrize(("least", "passes"), [(None, False), (0.965, True), (0.97, False), (0, True)])
def test_a_test_passes_from_its_least_score_on(promptfoo, least, passes):
    """Without an option only a perfect answer passes."""
    output = [{"function": "get_weather", "arguments": {"city": "جده"}}]
    config = None if least is None else {"min_score": least}

    assert promptfoo("get_assert", output, context(config=config))["pass"] is passes


@pytest.mark.parametrize(
    "output",
    [
        [NATIVE],
        {"role": "assistant", "content": "لحظة", "tool_calls": [NATIVE]},
        {"name": "get_weather", "arguments": '{"city": "جدة"}'},
        {"content": "لحظة", "function_call": {"name": "get_weather", "arguments": '{"city": "جدة"}'}},
        '{"type":"tool_use","id":"toolu_1","name":"get_weather","input":{"city":"جدة"}}',
        'لحظة\n\n{"type":"tool_use","id":"toolu_1","name":"get_weather","input":{"city":"جدة"}}',
        [{"type": "text", "text": "لحظة"}, {"type": "tool_use", "name": "get_weather", "input": {"city": "جدة"}}],
        [{"text": "لحظة"}, {"functionCall": {"name": "get_weather", "args": {"city": "جدة"}}}],
        {"functionCall": {"name": "get_weather", "args": {"city": "جدة"}}},
        '<tool_call>{"name": "get_weather", "arguments": {"city": "جدة"}}</tool_call>',
        {"tool": "get_weather", "parameters": {"city": "جدة"}},
    ],
    ids=[
        "openai", "message", "older", "older message", "anthropic", "anthropic with words", "blocks", "gemini",
        "gemini part", "text", "parsed json",
    ],
)  # fmt: skip
def test_outputs_of_providers(promptfoo, output):
    """The same calls in the shapes in which promptfoo's providers hand them over have the same score."""
    result = promptfoo("get_assert", output, context(available_functions=["get_weather"]))

    assert (result["pass"], result["score"]) == (True, 1.0), result["reason"]


@pytest.mark.parametrize(
    "output",
    [None, 3, True, [], {}, [None], [[]], {"tool_calls": 3}, {"function_call": []}, {"role": 1}, {"error": "x"},
     {"id": 1.5, "text": 2}, {"functionCall": {}}, [{"functionCall": None}], [{"type": "tool_use"}], "\ud83d", "{",
     {"a": "\ud83d"}, {"tool_calls": [{"function": {"name": "f", "arguments": "\ud83d"}}]}],
)  # fmt: skip
def test_nothing_that_a_model_sends_raises(promptfoo, output):
    """Whatever a provider hands over is judged, and the result can be written as promptfoo writes it."""
    result = promptfoo("get_assert", output, context())

    assert is_grading_result(result)
    assert result["pass"] is False


def test_deep_json_is_text():
    """JSON that nests too deeply to be written again is no call."""
    deep = {}
    for _ in range(5000):
        deep = {"a": deep}

    assert answer_of(deep) == ""


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({}, DataError, "nothing says which calls are right"),
        ({"test": {"metadata": None}}, DataError, "nothing says which calls are right"),
        (context(expected=[{"name": "f"}]), DataError, "expected_calls"),
        (context(config={"min_score": "high"}), UsageError, "min_score must be a number"),
        (context(config={"min_score": 2}), UsageError, "from 0 to 1, not 2"),
        (context(config={"language": "fr"}), UsageError, "one of en, ar, both, not 'fr'"),
        (context(config={"language": []}), UsageError, "one of en, ar, both"),
    ],
)
def test_mistakes_in_a_configuration_say_what_to_do(given, error, says):
    """What the writer of a configuration got wrong raises, which promptfoo shows as the reason of a failure."""
    with pytest.raises(error, match=says):
        get_assert("لا", given)


def test_tests_ask_what_a_run_asks(promptfoo):
    """A generated test has the messages and tools that the command would send, and its item as metadata."""
    items = ItemSet.read(find_items("starter"))
    tools = Toolbox.from_schemas(json.loads(find_tools("starter", None).read_text(encoding="utf-8")))

    tests = promptfoo("generate_tests", {"items": "starter", "tool_language": "en"})

    assert 0 < len(tests) < len(items)
    for one in tests:
        item = items[one["description"]]
        body = OpenAIChat().body(request_for(item, Offer(tools, "en")), Settings("m"))
        assert one["vars"] == {"messages": body["messages"]}
        assert one["options"]["tools"] == body["tools"]
        right = [{"function": call.function, "arguments": call.arguments} for call in item.expected_calls]
        assert promptfoo("get_assert", right, {"test": one})["pass"] is True
    assert [one["description"] for one in promptfoo("generate_tests")] == [one["description"] for one in tests]


def test_the_configurations_of_the_page_fit(promptfoo):
    """The page's YAML names the page's file, and what is right in it can be read."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    whole, own = (yaml.safe_load(source) for _, source in blocks(PAGE, "yaml"))

    assert whole["tests"] == [{"path": "file://grade.py", "config": {"items": "starter"}}]
    [assertion] = whole["defaultTest"]["assert"]
    assert (assertion["type"], assertion["value"]) == ("python", "file://grade.py")
    [test] = own["tests"]
    assert promptfoo("get_assert", RIGHT, {"test": test})["score"] == 1.0
    assert promptfoo("get_assert", "لا", {"test": test, "config": assertion["config"]})["pass"] is False
