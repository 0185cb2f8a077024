"""Logs of Inspect AI: what becomes of them gives the same scores again."""

from __future__ import annotations

import json
import math

import pytest

pytest.importorskip("inspect_ai", reason="Inspect AI is not installed; it is the extra 'inspect'")

from inspect_ai.log import read_eval_log

from arabic_agent_eval.batch import grade_file
from arabic_agent_eval.bundled import find_items, find_tools
from arabic_agent_eval.errors import DataError, UsageError
from arabic_agent_eval.formats import read_reply
from arabic_agent_eval.integrations import inspect as door
from arabic_agent_eval.integrations.inspect_logs import replies_of_log, run_of_log, write_replies
from arabic_agent_eval.items import ItemSet
from arabic_agent_eval.regrading import grade_run
from arabic_agent_eval.runs import Run
from arabic_agent_eval.scoring import evaluate_reply
from arabic_agent_eval.summary import summarize
from tests.integrations.from_table import BROKEN, ITEMS, asked, chat, grade_sample, made_up, sample_table
from tests.pages import DOCS
from tests.test_docs import blocks

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


@pytest.fixture(scope="module")
def raw_log(tmp_path_factory):
    """The sample set, answered with the sample replies as a provider would send them."""
    logs = tmp_path_factory.mktemp("logs")
    return asked("arabic_agent_eval/sample", sample_table(), logs)[0]


def rows_of(run):
    """Item and epoch → total, and the reason where there is none."""
    found = {}
    grade_run(run, each=lambda row: found.update({(row.item_id, row.epoch): (row.total, row.reason)}))
    return found


@pytest.mark.parametrize("where", ["file", "memory"])
def test_a_log_becomes_replies_and_a_run(raw_log, tmp_path, where):
    """Graded as replies and as a run folder, the answers of a log give the numbers of ``aae grade``."""
    log = raw_log.location if where == "file" else read_eval_log(raw_log.location)

    write_replies(log, tmp_path / "replies.jsonl")
    run = run_of_log(log, tmp_path / "run")

    summary = grade_sample()
    batch = grade_file(ItemSet.read(find_items("sample")), tmp_path / "replies.jsonl")
    graded, figures = grade_run(run)
    for found in (batch, graded):
        numbers = summarize(found.tally, due=found.due, signature=found.signature, rules="canonical")
        assert (numbers.overall, numbers.lost) == (summary.overall, summary.lost)
    assert run.items.fingerprint == ITEMS.fingerprint
    assert (figures.model, figures.attempts >= len(ITEMS)) == ("from_table/model", True)
    results = [result for record in run.records() for turn in record.turns for result in turn.results]
    assert results
    assert all(json.loads(result) for result in results)


def test_a_log_with_failures_and_broken_calls_becomes_a_run(tmp_path):
    """Failures stay unscored and broken calls broken, in rows and in the run, whether raw answers are there or not."""
    answers = {name: chat(text) for name, text in BROKEN.items()} | {"raises": RuntimeError("no"), "silent": chat()}
    items, table = made_up(tmp_path, answers)
    task = door.item_task(items)

    for kept in (None, False):
        log, _ = asked(task, table, tmp_path / "logs", epochs=2, log_model_api=kept)
        run = run_of_log(log, tmp_path / f"run-{kept}")
        wanted = {
            (sample.id, sample.epoch - 1): None if math.isnan(value := sample.scores["canonical"].value) else value
            for sample in log.samples
        }
        graded = rows_of(run)
        assert {pair: total for pair, (total, _) in graded.items()} == wanted
        known = ItemSet.read(items)
        for row in replies_of_log(log):
            again = evaluate_reply(known[row["id"]], read_reply(json.loads(json.dumps(row)))).score
            assert (None if again is None else again.total) == wanted[row["id"], row["epoch"]]
        assert "no" in graded["raises", 1][1]


def test_a_part_of_a_set_becomes_a_run_of_that_part(tmp_path):
    """A log of the first items, or of some, becomes a run that asks just them."""
    first, _ = asked(door.item_task("sample"), sample_table(), tmp_path, limit=3)
    some, _ = asked(door.item_task("sample"), sample_table(), tmp_path, sample_id=list(ITEMS)[5:7])

    assert list(run_of_log(first, tmp_path / "first").items) == list(ITEMS)[:3]
    assert list(run_of_log(some, tmp_path / "some").items) == list(ITEMS)[5:7]


def test_logs_that_cannot_become_runs_are_refused(raw_log, tmp_path):
    """Other items, none, other tools or a log without samples are named, before anything is written."""
    other, _ = made_up(tmp_path, {name: chat() for name in ITEMS})
    header = read_eval_log(raw_log.location, header_only=True)
    with pytest.raises(DataError, match="not the items that were asked"):
        run_of_log(raw_log, tmp_path / "run", items=other)
    with pytest.raises(DataError, match="not the tools that were asked"):
        run_of_log(raw_log, tmp_path / "run", tools=str(find_tools("starter", None)))
    with pytest.raises(DataError, match="no samples"):
        list(replies_of_log(header))
    bare = raw_log.model_copy(deep=True)
    bare.eval.metadata = None
    with pytest.raises(UsageError, match="name them with items="):
        run_of_log(bare, tmp_path / "run")
    with pytest.raises(DataError, match="no item '"):
        run_of_log(bare, tmp_path / "run", items="starter")
    assert not (tmp_path / "run").exists()
    assert run_of_log(bare, tmp_path / "run", items="sample").items.fingerprint == ITEMS.fingerprint


def test_the_page_is_true(tmp_path, monkeypatch, capsys):
    """What the page of this door shows in Python runs offline in an empty folder, and makes what it says."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}

    for line, source in blocks(DOCS / "integrations" / "inspect.md", "py"):
        exec(compile("\n" * line + source, "inspect.md", "exec"), names)

    assert float(capsys.readouterr().out) == 1.0
    assert len((tmp_path / "replies.jsonl").read_text(encoding="utf-8").splitlines()) == 1
    assert list(rows_of(Run.read(tmp_path / "runs" / "inspect")).values()) == [(1.0, None)]
