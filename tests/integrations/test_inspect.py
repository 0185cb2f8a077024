"""Inspect AI: its tasks ask what ``aae run`` asks, and its scorer gives the scores of ``aae grade``."""

from __future__ import annotations

import json
import logging
import math
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytest.importorskip("inspect_ai", reason="Inspect AI is not installed; it is the extra 'inspect'")

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from inspect_ai import Task, score
from inspect_ai import eval as inspect_eval
from inspect_ai.dataset import Sample
from inspect_ai.event import ModelEvent
from inspect_ai.log import read_eval_log
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    GenerateConfig,
    ModelCall,
    ModelOutput,
    get_model,
)
from inspect_ai.scorer import SampleScore, Score
from inspect_ai.solver import generate
from inspect_ai.tool import ToolCall

from arabic_agent_eval.asking import Offer, request_for
from arabic_agent_eval.bundled import find_items, find_tools, set_names
from arabic_agent_eval.causes import words
from arabic_agent_eval.errors import DataError, UsageError
from arabic_agent_eval.formats import read_calls, read_reply
from arabic_agent_eval.integrations import inspect as door
from arabic_agent_eval.integrations.inspect_answers import WITHOUT_RAW, read_answers, warn_without_raw
from arabic_agent_eval.integrations.inspect_asking import tool_info
from arabic_agent_eval.items import ItemSet, item_from_row
from arabic_agent_eval.scoring import Loss, Result, evaluate_reply
from arabic_agent_eval.statistics import mean_interval
from arabic_agent_eval.tools import Toolbox
from tests.integrations.from_table import (
    BROKEN,
    CALLS,
    ITEMS,
    ROWS,
    USAGE,
    asked,
    body_of,
    chat,
    grade_sample,
    made_up,
    metrics_of,
    sample_table,
    scores_of,
)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")

TOOLS = Toolbox.from_schemas(json.loads(find_tools("sample", None).read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def raw_log(tmp_path_factory):
    """The sample set, answered with the sample replies as a provider would send them."""
    logs = tmp_path_factory.mktemp("logs")
    return asked("arabic_agent_eval/sample", sample_table(), logs)[0]


# --- scores --------------------------------------------------------------------------------------------------


def assert_same_numbers(metrics, summary):
    assert metrics["overall"] == pytest.approx(summary.overall, abs=1e-12)
    for name, group in {**summary.categories, **summary.dialects}.items():
        assert metrics[name] == pytest.approx(group.score, abs=1e-12)


def test_scores_are_those_of_grade(raw_log):
    """Each total, loss and mean equals that of ``aae grade`` on the same answers, found through the entry point."""
    for row in ROWS:
        score = scores_of(raw_log)[row["id"]]
        result = evaluate_reply(ITEMS[row["id"]], read_reply(row))
        assert score.value == result.score.total
        assert [(loss["cause"], loss["points"]) for loss in score.metadata["losses"]] == [
            (loss.cause, loss.points) for loss in result.losses
        ]
        assert score.metadata["raw_arguments"]
        assert "warning" not in score.metadata
    assert raw_log.status == "success"
    assert_same_numbers(metrics_of(raw_log), grade_sample())


def test_the_mock_model_gives_the_same_scores_with_a_warning(tmp_path, caplog):
    """Inspect's mock model gives no raw answers: its calls are graded as parsed, and a warning says so, once."""
    by_instruction = {item.instruction: item for item in ITEMS.values()}

    def answer(input, tools, tool_choice, config):  # noqa: A002 - the host's name
        item = by_instruction[[message.text for message in input if message.role == "user"][-1]]
        calls = () if input[-1].role == "tool" else CALLS[item.id]
        made = [
            ToolCall(f"c{place}", call.function, call.arguments, "unreadable" if call.error else None)
            for place, call in enumerate(calls)
        ]
        message = ChatMessageAssistant(content="", tool_calls=made or None, source="generate")
        return ModelOutput(model="mock", choices=[ChatCompletionChoice(message=message)], usage=USAGE)

    warn_without_raw.cache_clear()
    model = get_model("mockllm/model", custom_outputs=answer, memoize=False)
    with caplog.at_level(logging.WARNING):
        log = inspect_eval("arabic_agent_eval/sample", model=model, display="none", log_dir=str(tmp_path))[0]

    assert_same_numbers(metrics_of(log), grade_sample())
    assert {score.metadata["warning"] for score in scores_of(log).values()} == {WITHOUT_RAW}
    assert sum(WITHOUT_RAW in record.getMessage() for record in caplog.records) == 1


def test_arguments_are_graded_as_they_were_sent(tmp_path):
    """What Inspect would repair is graded unrepaired; long arguments, which its log keeps apart, are found."""
    items, table = made_up(tmp_path, {name: chat(text) for name, text in BROKEN.items()})

    log, _ = asked(door.item_task(items), table, tmp_path / "logs")

    known, saved = ItemSet.read(items), read_eval_log(log.location)
    again = score(saved, door.canonical(), action="overwrite", display="none")
    repaired = [sample.id for sample in log.samples
                if any(not call.parse_error for call in sample.output.message.tool_calls)]  # fmt: skip
    assert {"bare word", "list", "trailing quotes"} <= set(repaired)
    for name, bodies in table.items():
        wanted = evaluate_reply(known[name], read_reply({"id": name, "response": bodies[0]}))
        for found in (log, again):
            assert scores_of(found)[name].value == wanted.score.total, name
            assert [one["cause"] for one in scores_of(found)[name].metadata["losses"]] == [
                loss.cause for loss in wanted.losses
            ]


def test_failures_of_the_provider_are_unscored(tmp_path):
    """They leave the others as they are, count in no mean, and say why without secrets; the log tells of an error."""
    items, table = made_up(
        tmp_path,
        {
            "right": chat(BROKEN["right"]),
            "wrong": chat('{"city": "جدة"}'),
            "raises": RuntimeError("503 for key sk-abcdef1234567890"),
            "error in the body": chat() | {"error": {"message": "overloaded"}},
        },
    )

    log, _ = asked(door.item_task(items), table, tmp_path / "logs")

    scores = scores_of(log)
    assert {name for name, score in scores.items() if math.isnan(score.value)} == {"raises", "error in the body"}
    assert metrics_of(log)["overall"] == (scores["right"].value + scores["wrong"].value) / 2
    assert (log.results.scores[0].scored_samples, log.results.scores[0].unscored_samples) == (2, 2)
    assert "503" in scores["raises"].explanation
    assert "sk-abc" not in scores["raises"].explanation
    assert "overloaded" in scores["error in the body"].explanation
    assert log.status == "error"


# --- asking --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["ar", "en", "both"])
def test_a_model_is_asked_what_a_run_asks(tmp_path, language):
    """System prompt, context, earlier messages and tools are those of ``aae run``, in the language of choice."""
    _, api = asked(door.item_task("sample", tool_language=language), sample_table(), tmp_path, limit=10)

    offer = Offer(TOOLS, language)
    by_instruction = {item.instruction: item for item in ITEMS.values()}
    for messages, tools in api.seen:
        item = by_instruction[[message.text for message in messages if message.role == "user"][-1]]
        request = request_for(item, offer)
        assert messages[0].text == request.system
        assert [message.role for message in messages[1 : len(request.messages) + 1]] == [
            message["role"] for message in request.messages
        ]
        assert [(tool.name, tool.description) for tool in tools] == [
            (tool.name, tool.description) for tool in request.tools
        ]
        assert tools == [tool_info(tool) for tool in request.tools]


def test_earlier_messages_keep_their_calls_and_pictures(tmp_path):
    """Earlier turns come in one form: system texts joined, calls and results paired; what is no text is a picture."""
    messages = [
        {"role": "system", "content": "كن موجزًا"},
        {"role": "user", "content": [{"type": "text", "text": "ما هذا؟"},
                                     {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]},
        {"role": "assistant", "tool_calls": [{"function": {"name": "get_weather", "arguments": '{"city": "مكة"}'}}]},
        {"role": "tool", "content": "حار"},
        {"role": "system", "content": "لا تطل"},
    ]  # fmt: skip
    items, _ = made_up(tmp_path, {"والرياض؟": chat()}, messages=messages)

    sample = door.item_task(items).dataset[0]

    assert [message.role for message in sample.input] == ["system", "user", "assistant", "tool", "system", "user"]
    assert sample.input[0].text.endswith("\n\nكن موجزًا")
    assert [part.type for part in sample.input[1].content] == ["text", "image"]
    call = sample.input[2].tool_calls[0]
    assert (call.function, call.arguments, sample.input[3].tool_call_id) == ("get_weather", {"city": "مكة"}, call.id)


def test_what_cannot_be_asked_is_refused(tmp_path):
    """A message that Inspect cannot take, tools that are none, and settings that there are not, name their remedy."""
    sound = [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": ""}}]}]
    items, _ = made_up(tmp_path, {"x": chat()}, messages=sound)
    with pytest.raises(DataError, match=r"'x' cannot be asked by Inspect AI.*other than text"):
        door.item_task(items)
    items, _ = made_up(tmp_path, {"x": chat()}, tools=[{"name": "f", "parameters": {"type": "array"}}])
    with pytest.raises(DataError, match="the tool 'f' are no schema"):
        door.item_task(items)
    items, _ = made_up(tmp_path, {"x": chat()}, tools=None, available_functions=["f"])
    with pytest.raises(DataError, match="the tool 'f' of item 'x' is in no registry"):
        door.item_task(items)
    for wrong in ({"tool_language": "fr"}, {"max_turns": 0}):
        with pytest.raises(UsageError, match="tool_language"):
            door.item_task("sample", **wrong)


def test_a_conversation_goes_on_with_the_simulated_tools(tmp_path):
    """Each call gets the result that the item holds, until the model stops; all calls are graded as one list."""
    item = next(item for item in ITEMS.values() if item.ordered and len(item.expected_calls) > 1)
    turns = [{"function": call.function, "arguments": call.arguments} for call in item.expected_calls]
    bodies = [body_of(read_calls(read_reply({"id": item.id, "calls": [turn]}))) for turn in turns]

    log, _ = asked("arabic_agent_eval/sample", {item.instruction: [*bodies, chat(content="تم")]}, tmp_path,
                   sample_id=item.id)  # fmt: skip

    sample = log.samples[0]
    results = [json.loads(message.text) for message in sample.messages if message.role == "tool"]
    assert results == [call.result for call in item.expected_calls]
    assert sample.scores["canonical"].value == 1.0
    assert sample.messages[-1].text == "تم"


def test_a_conversation_ends_at_the_limit_of_turns(tmp_path):
    """A model that never stops is stopped, and what it called is graded as far as it came."""
    call = {"function": "get_weather", "arguments": {"city": "الرياض"}, "result": {"sky": "صافٍ"}}
    items, table = made_up(tmp_path, {"again": chat(BROKEN["right"])}, expected_calls=[call])

    log, api = asked(door.item_task(items, max_turns=3), table, tmp_path / "logs")

    assert len(api.seen) == 3
    result = evaluate_reply(ItemSet.read(items)["again"], read_reply({"id": "again", "calls": [call] * 3}))
    assert scores_of(log)["again"].value == result.score.total < 1.0


def test_what_inspect_does_not_log_is_warned_of(tmp_path):
    """By default Inspect keeps the first five raw answers of a sample; ``log_model_api`` keeps all of them."""
    call = {"function": "get_weather", "arguments": {"city": "الرياض"}, "result": {"sky": "صافٍ"}}
    items, table = made_up(tmp_path, {"again": chat(BROKEN["right"])}, expected_calls=[call])

    few, _ = asked(door.item_task(items, max_turns=7), table, tmp_path / "few")
    every, _ = asked(door.item_task(items, max_turns=7), table, tmp_path / "all", log_model_api=True)

    assert scores_of(few)["again"].metadata["warning"] == WITHOUT_RAW
    assert "warning" not in scores_of(every)["again"].metadata
    assert scores_of(few)["again"].value == scores_of(every)["again"].value


def test_a_call_that_inspect_dropped_is_answered_in_words(tmp_path):
    """Its result has no id to go by; the model is told in words, and the call is graded."""
    call = {"function": "get_weather", "arguments": {"city": "الرياض"}, "result": {"sky": "صافٍ"}}
    items, table = made_up(tmp_path, {"x": [chat(BROKEN["right"]), chat(content="تم")]}, expected_calls=[call])

    table['<tool_response>{"sky":"صافٍ"}</tool_response>'] = table["x"]
    log, _ = asked(door.item_task(items), table, tmp_path / "logs", drops=True)

    told = [message.text for message in log.samples[0].messages if message.role == "user"]
    assert told == ["x", '<tool_response>{"sky":"صافٍ"}</tool_response>']
    assert scores_of(log)["x"].value == 1.0


def test_every_bundled_set_has_a_task():
    """Each set has a task of its name, and a sample for each of its items."""
    assert list(door.TASKS) == set_names()
    assert [sample.id for sample in door.TASKS["starter"]().dataset] == list(ItemSet.read(find_items("starter")))


@pytest.mark.parametrize("name", ["sample", "starter"])
def test_samples_hold_their_items(name):
    """The item that a log keeps is the item, whatever becomes of the file."""
    for item in ItemSet.read(find_items(name)).values():
        kept = json.loads(json.dumps(msgspec.to_builtins(item)))
        assert item_from_row(kept) == item


# --- scoring a log -------------------------------------------------------------------------------------------


def test_a_saved_log_is_scored_by_the_command(raw_log, tmp_path):
    """``inspect score`` finds the scorer by its name and adds the same scores to the log."""
    out = tmp_path / "scored.eval"
    command = [Path(sys.executable).with_name("inspect"), "score", raw_log.location, "--scorer",
               "arabic_agent_eval/canonical", "-S", "language=ar", "--action", "append", "--output-file", out,
               "--model", "none"]  # fmt: skip

    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, cwd=tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    log = read_eval_log(str(out))
    assert metrics_of(log, 1) == pytest.approx(metrics_of(raw_log))
    for sample in log.samples:
        first, second = sample.scores.values()
        assert second.value == first.value
    assert any("الاستدعاء 1" in [*sample.scores.values()][1].explanation for sample in log.samples)


def test_a_log_of_another_task_is_scored_with_named_items(tmp_path):
    """Samples whose ids are those of items need nothing else; without items the scorer says how to name them."""
    items, table = made_up(tmp_path, {"a": chat(BROKEN["right"]), "b": chat(BROKEN["list"])})
    task = Task(dataset=[Sample(id=name, input=name) for name in table], solver=generate(tool_calls="none"))
    log, _ = asked(task, table, tmp_path / "logs")

    found = score(log, door.canonical(items=items), display="none")
    assert {name: one.value for name, one in scores_of(found).items()} == {"a": 1.0, "b": 0.4}
    with pytest.raises(UsageError, match="-S items="):
        score(log, door.canonical(), display="none")
    with pytest.raises(DataError, match="no item 'a'"):
        score(log, door.canonical(items="sample"), display="none")


# --- means ---------------------------------------------------------------------------------------------------


def judged(value, category, cluster, weight=1.0, dialect="msa"):
    facts = {"category": category, "cluster": cluster, "weight": weight, "dialect": dialect}
    return SampleScore(score=Score(value=value, metadata=facts))


def test_means_are_weighted_and_their_errors_clustered():
    """A category counts by its weight, one without weight not at all; what hangs together is counted once."""
    scores = [judged(1.0, "a", "1", 0.3), judged(0.5, "a", "1", 0.3), judged(0.0, "a", "2", 0.3),
              judged(0.8, "b", "3", 0.1), judged(0.0, "c", "4", 0.0)]  # fmt: skip

    found = door.overall()(scores)
    alone = door.overall()([judged(one.score.value, "a", str(place)) for place, one in enumerate(scores[:3])])

    assert found["overall"] == pytest.approx((0.5 * 0.3 + 0.8 * 0.1) / 0.4)
    assert found["overall_stderr"] > 0
    assert door.by_category()(scores)["a"] == 0.5
    assert door.by_category()(scores)["b_stderr"] is None
    assert door.by_category()(scores)["a_stderr"] > alone["overall_stderr"]
    assert math.isnan(door.overall()([])["overall"])
    assert math.isnan(door.overall()([scores[-1]])["overall"])


def test_the_standard_error_is_that_of_the_intervals(raw_log):
    """It is the error that the intervals of a report are made with: they hold the mean plus and minus it."""
    metrics = metrics_of(raw_log)
    found = mean_interval(
        [one.value for one in scores_of(raw_log).values()],
        [one.metadata["cluster"] for one in scores_of(raw_log).values()],
        strata=[one.metadata["category"] for one in scores_of(raw_log).values()],
        weights={one.metadata["category"]: one.metadata["weight"] for one in scores_of(raw_log).values()},
    )
    low, high = (metrics["overall"] + sign * metrics["overall_stderr"] for sign in (-1, 1))
    assert found.estimate == pytest.approx(metrics["overall"])
    assert found.low < low < high < found.high


def test_items_of_one_intent_hang_together(tmp_path):
    """The cluster of an item is its intent, and its own id where it has none; both epochs of an item are one."""
    items, table = made_up(tmp_path, {"a": chat(BROKEN["right"]), "b": chat(BROKEN["list"])}, intent="weather")

    log, _ = asked(door.item_task(items), table, tmp_path / "logs", epochs=2)

    assert {one.metadata["cluster"] for one in scores_of(log).values()} == {"intent:weather"}
    assert metrics_of(log) == pytest.approx({"overall": 0.7, "simple_function_calling": 0.7, "(none)": 0.7})
    assert (
        scores_of(asked(door.item_task("sample"), sample_table(), tmp_path, limit=1)[0])
        .popitem()[1]
        .metadata["cluster"]
        .startswith("item:")
    )


# --- explanations --------------------------------------------------------------------------------------------


def test_causes_are_explained_in_words():
    """Each cause is one line with its points, its place, a sentence and the values, in either language."""
    item = ITEMS["simple-gulf"]
    result = evaluate_reply(item, read_reply(next(row for row in ROWS if row["id"] == item.id)))
    lost = math.fsum(loss.points for loss in result.losses)

    english, arabic = door.explain(result), door.explain(result, language="ar")

    assert english.startswith(f"−{lost:.4f} translated, call 1, ")
    assert words("translated") in english
    assert words("translated", "ar") in arabic
    assert [text in english for text in ("الرياض", "Riyadh")] == [True, True]
    silent = evaluate_reply(item, read_reply({"id": item.id, "calls": []}))
    assert door.explain(silent, "لا أدري").endswith("لا أدري\u2069")


def test_hostile_values_are_harmless():
    """What a model sent is shown on one line, cut, with what cannot be seen named."""
    hostile = "\u202e\n\x1b[31m" + "x" * 10_000
    loss = Loss("wrong_value", "argument_accuracy", 0.5, 0, hostile, hostile, {"k": "\ud83d", "big": 2**80})
    shown = door.explain(Result("i", "c", None, 0, None, None, True, (loss,), ()))

    assert not {"\n", "\x1b", "\u202e"} & set(shown)
    assert "⟨U+202E⟩" in shown
    assert len(shown) < 1000
    shown.encode()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("attachment://x"),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["choices", "message", "tool_calls", "function", "name", "arguments", "output",
                                       "content", "type", "candidates", "error", "role"]), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(response=st.dictionaries(st.sampled_from(["choices", "output", "candidates", "content", "role", "error"]),
                                json_values, max_size=3), kept=json_values)  # fmt: skip
def test_no_answer_raises(response, kept):
    """Whatever a provider's answer and a log hold, something can be graded or there is a reason why not."""
    message = ChatMessageAssistant(content="", source="generate", tool_calls=[ToolCall("1", "f", {"x": kept})])
    output = ModelOutput(model="m", choices=[ChatCompletionChoice(message=message)])
    event = ModelEvent(model="m", input=[], tools=[], tool_choice="auto", config=GenerateConfig(), output=output,
                       call=ModelCall(request={}, response=response))  # fmt: skip

    answered = read_answers([message], [event], {}, {message.id: kept})

    result = evaluate_reply(ITEMS["simple-msa"], answered.reply("simple-msa", 0))
    assert (result.score is None) == (answered.failure is not None)


# --- over the wire -------------------------------------------------------------------------------------------


class Server(BaseHTTPRequestHandler):
    """A provider of OpenAI's interface that answers each instruction of the sample set with its sample reply."""

    def do_POST(self):
        """Answer one request."""
        messages = json.loads(self.rfile.read(int(self.headers["content-length"])))["messages"]
        instruction = [message["content"] for message in messages if message["role"] == "user"][-1]
        answers = sample_table()[instruction]
        body = answers[1] if messages[-1]["role"] == "tool" else answers[0]
        usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
        choice = {"index": 0, "finish_reason": "stop", **body["choices"][0]}
        for place, call in enumerate(choice["message"].get("tool_calls") or []):
            call["id"] = f"c{place}"
        head = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "usage": usage}
        data = json.dumps({**head, "choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format, *args):  # noqa: A002 - the host's name
        """Say nothing."""


def test_the_command_asks_a_provider(tmp_path):
    """``inspect eval arabic_agent_eval/sample`` asks a server through Inspect's own client; scores are the same."""
    pytest.importorskip("openai", reason="Inspect's client for this interface is not installed")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    command = [Path(sys.executable).with_name("inspect"), "eval", "arabic_agent_eval/sample", "--model",
               "openai-api/local/m", "--model-base-url", f"http://127.0.0.1:{server.server_port}/v1", "--display",
               "none", "--log-dir", tmp_path / "logs"]  # fmt: skip
    environment = os.environ | {"LOCAL_API_KEY": "none"}

    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, cwd=tmp_path, env=environment)
    server.shutdown()
    server.server_close()

    assert done.returncode == 0, done.stdout + done.stderr
    log = read_eval_log(str(next((tmp_path / "logs").glob("*.eval"))))
    assert_same_numbers(metrics_of(log), grade_sample())
    assert all(one.metadata["raw_arguments"] for one in scores_of(log).values())
