"""pydantic-evals: cases ask what ``aae run`` asks, and the evaluator gives the scores of ``aae grade``."""

from __future__ import annotations

import doctest
import importlib
import json
import sys

import pytest

pytest.importorskip("pydantic_evals", reason="pydantic-evals is not installed; it is the extra 'pydantic-evals'")

from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.tools import DeferredToolRequests
from pydantic_evals import Case, Dataset

from arabic_agent_eval._version import __version__
from arabic_agent_eval.asking import Offer, request_for
from arabic_agent_eval.batch import grade_file
from arabic_agent_eval.bundled import find_items, find_replies, find_tools
from arabic_agent_eval.errors import DataError, MissingExtra, UnknownCategory
from arabic_agent_eval.integrations.pydantic_evals import NOTHING_LOST, Overall, ToolCalls, answer_of, dataset
from arabic_agent_eval.items import ItemSet
from arabic_agent_eval.models.model import Settings
from arabic_agent_eval.models.openai_chat import OpenAIChat
from arabic_agent_eval.rows import read_rows
from arabic_agent_eval.summary import summarize
from arabic_agent_eval.tools import Toolbox
from tests.pages import DOCS
from tests.test_docs import blocks

ROWS = [json.loads(line) for line in find_replies("sample").read_text(encoding="utf-8").splitlines()]
RIGHT = [{"function": "get_weather", "arguments": {"city": "جدة"}}]
SPELLED = [{"function": "get_weather", "arguments": {"city": "جده"}}]


def evaluate(cases, task, **options):
    """The report of cases with this package's evaluators."""
    made = Dataset(name="own", cases=cases, evaluators=[ToolCalls()], report_evaluators=[Overall()])
    return made.evaluate_sync(task, progress=False, **options)


def evaluate_one(output, expected=None, metadata=None):
    """The only case of a report on one output."""
    case = Case(name="one", inputs="?", expected_output=RIGHT if expected is None else expected, metadata=metadata)
    return evaluate([case], lambda _: output).cases[0]


def test_scores_are_those_of_the_command(tmp_path):
    """On the sample's answers every score, every axis and the overall score are those that grading the file gives."""
    batch = grade_file(ItemSet.index(find_items("sample")), find_replies("sample"), out=tmp_path / "rows.jsonl")
    graded = {row.item_id: row for row in read_rows(tmp_path / "rows.jsonl")}
    summary = summarize(batch.tally, due=batch.due, signature=batch.signature, rules="canonical")
    rows = {row["id"]: row for row in ROWS}
    made = dataset("sample", conversations=True)
    asked = {json.dumps(case.inputs): case.name for case in made.cases}

    report = made.evaluate_sync(lambda question: rows[asked[json.dumps(question)]], progress=False)

    assert len(report.cases) == len(graded)
    for case in report.cases:
        row = graded[case.name]
        assert case.scores["score"].value == row.total
        for axis in ("function_selection", "argument_accuracy", "arabic_preservation", "dialect_understanding"):
            assert (case.scores[axis].value if axis in case.scores else None) == getattr(row, axis)
        lost = {loss.cause for loss in row.losses}
        assert case.labels["cause"].value in (lost or {NOTHING_LOST})
    score, categories, dialects = report.analyses
    assert score.value == pytest.approx(summary.overall, abs=1e-12)
    assert score.description == "Grade B; 24 of 24 answers judged; rules canonical-1"
    assert {name: mean for name, _, mean in categories.rows} == pytest.approx(
        {name: group.score for name, group in summary.categories.items()}
    )
    assert {name: mean for name, _, mean in dialects.rows} == pytest.approx(
        {name: group.score for name, group in summary.dialects.items()}
    )


def test_cases_ask_what_a_run_asks():
    """A case's inputs are the body that the command would send, without the model's name."""
    items = ItemSet.read(find_items("starter"))
    tools = Toolbox.from_schemas(json.loads(find_tools("starter", None).read_text(encoding="utf-8")))
    made = dataset("starter", tool_language="ar", system="مساعد")

    assert made.name == "starter"
    assert 0 < len(made.cases) < len(items)
    for case in made.cases:
        body = OpenAIChat().body(request_for(items[case.name], Offer(tools, "ar"), system="مساعد"), Settings("m"))
        assert {"model": "m", **case.inputs} == body
        assert all("result" not in call for call in case.expected_output)
    assert len(dataset("starter", conversations=True).cases) == len(items)


def test_reasons_name_causes_in_both_languages():
    """The score's reason says where points went, letter by letter; the cause is a label with its words."""
    case = evaluate_one(SPELLED)

    assert case.scores["score"].value == pytest.approx(0.965)
    assert "Actual: جد[ه]" in case.scores["score"].reason
    assert "الفعلي: جد[ه]" in case.scores["score"].reason
    assert case.labels["cause"].value == "spelling"
    assert "Written with another alef" in case.labels["cause"].reason
    assert "كُتبت بصورة أخرى" in case.labels["cause"].reason
    assert case.assertions["exact"].value is False
    assert case.labels["cause"].evaluator_version == f"{__version__} canonical-1"


@pytest.mark.parametrize(
    "output",
    [
        RIGHT,
        tuple(RIGHT),
        {"tool_calls": [{"function": {"name": "get_weather", "arguments": '{"city": "جدة"}'}}]},
        '<tool_call>{"name": "get_weather", "arguments": {"city": "جدة"}}</tool_call>',
        [ToolCallPart("get_weather", '{"city": "جدة"}')],
        DeferredToolRequests(calls=[ToolCallPart("get_weather", {"city": "جدة"})]),
        [
            ModelRequest(parts=[UserPromptPart("كيف الجو؟")]),
            ModelResponse(parts=[TextPart("لحظة"), ToolCallPart("get_weather", {"city": "جدة"})]),
            ModelRequest(parts=[ToolReturnPart("get_weather", "حار", "1")]),
            ModelResponse(parts=[TextPart("الجو حار")]),
        ],
    ],
    ids=["calls", "tuple", "row", "text", "parts", "deferred", "messages"],
)
def test_outputs_come_in_many_shapes(output):
    """Plain calls, rows, text, and what pydantic-ai returns hold the same answer."""
    case = evaluate_one(output)

    assert case.evaluator_failures == []
    assert case.assertions["exact"].value is True
    assert case.labels["cause"].value == NOTHING_LOST


def test_arguments_of_an_agent_stay_as_they_were_sent():
    """What pydantic-ai kept of arguments that are no JSON is judged as sent, and never repaired."""
    case = evaluate_one([ToolCallPart("get_weather", '{"city": "جدة"')])

    assert case.labels["cause"].value == "malformed_arguments"
    assert answer_of([ModelResponse(parts=[TextPart("متى "), TextPart("ترجع؟")])]) == "متى ترجع؟"
    assert answer_of([]) == []


@pytest.mark.parametrize("output", ["\ud83d", [None], [{"function": 3}], [ToolCallPart("f", "{")], "<tool_call>" * 500])
def test_nothing_that_a_model_sends_raises(output):
    """Whatever a model sent is judged."""
    case = evaluate_one(output)

    assert case.evaluator_failures == []
    assert 0 <= case.scores["score"].value < 1


def test_a_provider_failure_is_neither_right_nor_wrong():
    """It has no score and a label that says so; the overall score leaves it out and says how many were judged."""
    cases = [Case(name=name, inputs=name, expected_output=RIGHT) for name in ("failed", "right", "broken")]

    def task(name):
        if name == "broken":
            raise TimeoutError
        return RIGHT if name == "right" else {"error": "timeout"}

    report = evaluate(cases, task)

    failed = next(case for case in report.cases if case.name == "failed")
    assert (failed.scores, failed.labels["status"].value) == ({}, "unscored")
    assert "timeout" in failed.labels["status"].reason
    assert report.analyses[0].value == 1.0
    assert report.analyses[0].description.startswith("Grade A; 1 of 3 answers judged")


def test_nothing_judged_has_no_overall_score():
    """Where every answer failed there is no analysis, and not a score of 0."""
    assert evaluate([Case(inputs="", expected_output=RIGHT)], lambda _: {"error": "timeout"}).analyses == []


def test_repeated_answers_are_averaged_first():
    """With repeat, an item counts once, by the mean of its answers."""
    given = iter([RIGHT, [], RIGHT, SPELLED])

    report = evaluate([Case(name="one", inputs="", expected_output=RIGHT)], lambda _: next(given), repeat=4)

    assert report.analyses[0].value == pytest.approx((1 + 0 + 1 + 0.965) / 4)
    assert report.analyses[1].rows[0][:2] == ["simple_function_calling", 1]


def test_own_cases_say_category_and_order():
    """The metadata of a case of one's own may hold the fields of an item, and the weight of a new category."""
    calls = [{"function": "a", "arguments": {}}, {"function": "b", "arguments": {}}]
    metadata = {"category": "mine", "ordered": False, "weight": 2.0}
    cases = [Case(inputs="", expected_output=calls, metadata=metadata)]

    report = evaluate(cases, lambda _: calls[::-1])

    assert report.cases[0].scores["score"].value == 1.0
    assert report.analyses[1].rows == [["mine", 1, 1.0]]


def test_what_the_writer_got_wrong_is_a_failure_of_the_evaluator():
    """A case without right calls, an output that is no answer and a category without weight are reported as such."""
    nothing = evaluate([Case(inputs="")], lambda _: RIGHT).cases[0]
    number = evaluate_one(3)
    unknown = evaluate([Case(inputs="", expected_output=RIGHT, metadata={"category": "mine"})], lambda _: RIGHT)

    assert [failure.error_type for failure in nothing.evaluator_failures] == [DataError.__name__]
    assert "nothing says which calls are right" in nothing.evaluator_failures[0].error_message
    assert "not a number" in number.evaluator_failures[0].error_message
    assert [failure.error_type for failure in unknown.report_evaluator_failures] == [UnknownCategory.__name__]


def test_a_dataset_survives_its_file(tmp_path):
    """Written to a file and read again, a dataset asks and expects the same."""
    made = dataset("sample", language="ar")

    made.to_file(tmp_path / "sample.yaml")
    read = Dataset[dict, object, dict].from_file(
        tmp_path / "sample.yaml", custom_evaluator_types=[ToolCalls], custom_report_evaluator_types=[Overall]
    )

    assert [case.inputs for case in read.cases] == [case.inputs for case in made.cases]
    assert [case.metadata for case in read.cases] == [case.metadata for case in made.cases]
    assert read.evaluators == [ToolCalls(language="ar")]


def test_without_the_extra_it_says_what_to_install(monkeypatch):
    """Where pydantic-evals is missing, the message names the command that installs it."""
    monkeypatch.setitem(sys.modules, "pydantic_evals", None)
    monkeypatch.delitem(sys.modules, "arabic_agent_eval.integrations.pydantic_evals")

    with pytest.raises(MissingExtra, match=r'pip install "arabic-agent-eval\[pydantic-evals\]"'):
        importlib.import_module("arabic_agent_eval.integrations.pydantic_evals")


def test_the_page_is_true():
    """The examples of the page run and print what they say they print."""
    path, names, problems = DOCS / "integrations" / "pydantic_evals.md", {}, []
    found = blocks(path, "py")

    for line, source in found:
        test = doctest.DocTestParser().get_doctest(source, {}, path.name, str(path), line)
        test.globs = names
        doctest.DocTestRunner().run(test, out=problems.append, clear_globs=False)

    assert len(found) == 2
    assert "".join(problems) == ""
