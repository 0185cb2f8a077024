"""lm-evaluation-harness: its tasks ask in one text, and give the scores of ``aae grade`` on the same texts."""

from __future__ import annotations

import json
import runpy
import sys

import pytest

from arabic_agent_eval.batch import grade_file
from arabic_agent_eval.bundled import DATA, find_categories, find_items, find_replies
from arabic_agent_eval.errors import DataError, MissingExtra
from arabic_agent_eval.formats import read_calls, read_reply
from arabic_agent_eval.integrations.lm_eval import FOLDER, task
from arabic_agent_eval.items import ItemSet
from arabic_agent_eval.rows import read_rows
from arabic_agent_eval.summary import summarize
from arabic_agent_eval.world import is_conversation

TASKS = sorted(FOLDER.glob("*.yaml"))


def written(row):
    """An answer of the sample as a model would write it without an interface for calls."""
    if "text" in row:
        return row["text"]
    calls = [{"name": call.function, "arguments": call.raw if call.error else call.arguments}
             for call in read_calls(read_reply(row))]  # fmt: skip
    return "\n".join(f"<tool_call>{json.dumps(call, ensure_ascii=False)}</tool_call>" for call in calls)


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """Item → text of an answer, for the sample's items of one question; and what grading a file of them gives."""
    folder = tmp_path_factory.mktemp("sample")
    items = [item for item in ItemSet.read(find_items("sample")).values() if not is_conversation(item)]
    rows = map(json.loads, find_replies("sample").read_text(encoding="utf-8").splitlines())
    texts = {row["id"]: written(row) for row in rows if row["id"] in {item.id for item in items}}
    (folder / "items.jsonl").write_bytes(b"".join(ItemSet(items).lines()))
    lines = (json.dumps({"id": item_id, "text": text}, ensure_ascii=False) for item_id, text in texts.items())
    (folder / "replies.jsonl").write_text("\n".join(lines), encoding="utf-8")
    index, out = ItemSet.index(folder / "items.jsonl"), folder / "rows.jsonl"
    batch = grade_file(index, folder / "replies.jsonl", out=out)
    summary = summarize(batch.tally, due=batch.due, signature=batch.signature, rules="canonical")
    return texts, {row.item_id: row for row in read_rows(out)}, summary


def test_scores_are_those_of_the_command(sample):
    """Every axis of every answer, and the overall score, are those that grading the texts as a file gives."""
    texts, graded, summary = sample
    found = {doc["id"]: task.process_results(doc, [texts[doc["id"]]]) for doc in task.documents("sample")}

    assert found.keys() == graded.keys()
    for item_id, metrics in found.items():
        row = graded[item_id]
        assert metrics["aae_function_selection"] == row.function_selection
        assert metrics["aae_argument_accuracy"] == row.argument_accuracy
        assert metrics["aae_arabic_preservation"] == row.arabic_preservation
        assert metrics["aae_exact"] == float(row.total > 1 - 1e-12)
    assert 0 < summary.overall < 1
    assert task.overall([metrics["aae_score"] for metrics in found.values()]) == pytest.approx(
        summary.overall, abs=1e-12
    )


def test_one_question_holds_everything():
    """A prompt has the context, the tools and what was said so far, and ends with the question."""
    items = ItemSet.read(find_items("core"))
    docs = task.documents("core")

    assert {doc["id"] for doc in docs} == {item.id for item in items.values() if not is_conversation(item)}
    for doc in docs[:50]:
        item = items[doc["id"]]
        assert doc["prompt"].endswith(f"المستخدم: {item.instruction}")
        assert all(f'{{"name":"{name}"' in doc["prompt"] for name in item.offered)
        assert (item.context or {}).get("now", "") in doc["prompt"]


def test_earlier_messages_are_told(tmp_path):
    """What was said and called before stands in the prompt, each by its speaker."""
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": "جدة"}'}}
    item = {
        "id": "x", "category": "multi_step", "instruction": "والآن؟", "expected_calls": [], "available_functions": [],
        "messages": [
            {"role": "user", "content": "كيف الجو؟"},
            {"role": "assistant", "content": "لحظة", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "content": "حار"},
        ],
    }  # fmt: skip
    (tmp_path / "items.jsonl").write_text(json.dumps(item, ensure_ascii=False), encoding="utf-8")

    [doc] = task.documents(str(tmp_path / "items.jsonl"))

    said = doc["prompt"].split("\n\n")[-4:]
    assert said[0] == "المستخدم: كيف الجو؟"
    assert said[1] == 'المساعد: لحظة\n<tool_call>{"name": "f", "arguments": {"a": "جدة"}}</tool_call>'
    assert "حار" in said[2]
    assert said[3] == "المستخدم: والآن؟"


@pytest.mark.parametrize("text", [None, "", "\ud83d", "<tool_call>" * 1000, '{"name": "get_prayer_times"', "لا أعرف"])
def test_nothing_that_a_model_writes_raises(text):
    """Whatever came, and be it nothing, is judged."""
    doc = task.documents("sample")[0]

    assert task.process_results(doc, [text])["aae_exact"] == 0.0


def test_declared_categories_keep_their_weights():
    """A set with categories of its own is weighted by them, and one without documents has the overall score 0."""
    declared = json.loads(find_categories("core-tracks").read_text(encoding="utf-8"))
    docs = task.documents("core-tracks")

    weights = {json.loads(doc["item"])["category"]: doc["weight"] for doc in docs}
    assert {name: weights[name] for name in declared if name in weights} == {
        name: one["weight"] for name, one in declared.items() if name in weights
    }
    assert weights.keys() & declared.keys()
    assert task.overall([]) == 0.0
    with pytest.raises(DataError, match="no such file"):
        task.documents("nothing")


def test_the_folder_is_printed(capsys):
    """The module run as a program prints what ``--include_path`` takes."""
    runpy.run_path(str(FOLDER / "__main__.py"), run_name="__main__")

    assert capsys.readouterr().out == f"{FOLDER}\n"


def test_without_the_harness_it_says_what_to_install(monkeypatch):
    """Documents in the harness's own form need its packages, and the message names the command."""
    monkeypatch.setitem(sys.modules, "datasets", None)

    with pytest.raises(MissingExtra, match=r'pip install "lm-eval\[api\]"'):
        task.dataset(items="sample")


def test_every_file_is_a_task_of_a_bundled_set():
    """A file is named after its set, and the functions that it names are those of the module beside it."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")

    class Loader(yaml.SafeLoader):
        """Reads a function as the harness does: module and name."""

    Loader.add_constructor("!function", lambda loader, node: getattr(task, loader.construct_scalar(node).split(".")[1]))
    for path in TASKS:
        read = yaml.load(path.read_text(encoding="utf-8"), Loader)
        assert read["task"] == f"arabic_agent_eval_{path.stem}"
        assert read["dataset_kwargs"]["items"].replace("-", "_") == path.stem
        assert (DATA / read["dataset_kwargs"]["items"]).is_dir()
        assert (read["custom_dataset"], read["process_results"]) == (task.dataset, task.process_results)
        metrics = task.process_results(task.documents("sample")[0], [""])
        assert [metric["metric"] for metric in read["metric_list"]] == list(metrics)
        assert read["metric_list"][0]["aggregation"] is task.overall
        assert read["generation_kwargs"]["until"] == []
    assert [path.stem for path in TASKS] == ["core", "core_en", "starter"]


@pytest.mark.filterwarnings("ignore")  # the harness's own
def test_the_harness_itself(sample, tmp_path):
    """Run by the harness, a task asks the prompts and gives the overall score of the command."""
    pytest.importorskip("lm_eval", reason="lm-evaluation-harness is not installed")
    from lm_eval import simple_evaluate
    from lm_eval.api.model import LM
    from lm_eval.tasks import TaskManager

    texts, _, summary = sample
    asked = []

    class Sample(LM):
        """Answers with the sample's texts."""

        def generate_until(self, requests, disable_tqdm=False):
            asked.extend(request.args for request in requests)
            return [texts[request.doc["id"]] for request in requests]

        def loglikelihood(self, requests):
            raise NotImplementedError

        loglikelihood_rolling = loglikelihood

    own = {"include": str(FOLDER / "starter.yaml"), "task": "own", "dataset_kwargs": {"items": "sample"}}
    (tmp_path / "own.yaml").write_text(json.dumps(own), encoding="utf-8")

    ran = simple_evaluate(
        model=Sample(), tasks=["own"], task_manager=TaskManager(include_path=str(tmp_path)), bootstrap_iters=0
    )

    found = ran["results"]["own"]
    assert found["aae_score,none"] == pytest.approx(summary.overall, abs=1e-12)
    assert found["aae_exact,none"] == pytest.approx(summary.exact_match)
    assert {prompt for prompt, _ in asked} == {doc["prompt"] for doc in task.documents("sample")}
    assert all(options["until"] == [] for _, options in asked)
    names = TaskManager(include_path=str(FOLDER)).all_tasks
    assert {f"arabic_agent_eval_{path.stem}" for path in TASKS} <= set(names)
