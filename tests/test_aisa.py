"""The development split of AISA-ArabicFC and one system's submission, from parquet to the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.test_cli import aae, read

AISA = Path(__file__).parents[1] / ".." / "shared" / "data" / "aisa"


pytestmark = pytest.mark.skipif(not AISA.is_dir(), reason="the shared data is not here")


@pytest.fixture
def items(tmp_path):
    """The 545 rows, converted by the command."""
    pytest.importorskip("pyarrow", reason="reading parquet needs the extra 'arrow'")
    path = tmp_path / "aisa.jsonl"
    found = aae("data", "convert", AISA / "dev.parquet", "--out", path)
    assert (found.code, found.out) == (0, "")
    assert "545 items written to" in found.err
    return path


def test_a_submission_is_graded(tmp_path, items):
    """The submission calls the right function in 543 of 545 rows, and the lost points sum to 1 − overall."""
    rows = tmp_path / "rows.jsonl"
    options = ("grade", "--items", items, "--replies", AISA / "submission.jsonl", "--json")

    found = aae(*options, "--out", rows)
    summary = found.json

    assert found.code == 0
    assert summary["right_function"] == {"right": 543, "of": 545}
    assert summary["coverage"] == {"scored": 545, "unscored": 0, "total": 545}
    assert sum(summary["lost"].values()) == pytest.approx(1 - summary["overall"], abs=1e-12)
    assert 0.5 < summary["overall"] < 1.0
    assert len(read(rows)) == 545
    for extra in (("--jobs", 2), ("--format", "auto")):
        assert aae(*options, *extra).out == found.out
    assert aae("report", rows, "--json").graded == {key: value for key, value in summary.items() if key != "aisa"}


def test_the_right_answers_are_right(tmp_path, items):
    """The expected calls themselves, as a submission, score exactly 1 on every axis, silence included."""
    replies = tmp_path / "right.jsonl"
    lines = []
    for row in read(items):
        call = (row["expected_calls"] or [{"function": "none"}])[0]
        answer = {"id": int(row["id"]), "tool_called": call["function"], "arguments": call.get("arguments", {})}
        lines.append(json.dumps(answer, ensure_ascii=False) + "\n")
    replies.write_text("".join(lines), encoding="utf-8")

    found = aae("grade", "--items", items, "--replies", replies, "--json").json

    assert (found["overall"], found["exact_match"], found["lost"]) == (1.0, 1.0, {})
    assert (found["aisa"]["track_a"], found["aisa"]["argument_match_as_written"]) == (1.0, 1.0)
    assert found["aisa"]["gap"] == {"tool_accuracy": 0.0, "argument_match": 0.0}


def test_the_terminal_report_of_a_submission(items):
    """The report for people names the score, the dialects of the set and the causes."""
    found = aae("grade", "--items", items, "--replies", AISA / "submission.jsonl")

    assert found.code == 0
    assert "Right function in 543 of 545 answers" in found.out
    for word in ("msa", "gulf", "egyptian", "levantine", "maghrebi", "Where the points went", "Signature"):
        assert word in found.out
    assert "AISA-ArabicFC: the shared task's own figures" in found.out
    assert "Track A 0.8977; argument match as written 0.8280." in found.out


def test_the_figures_of_the_task(items):
    """The submission has the right name 543 times of 545 and the right arguments 416 times of 500."""
    found = aae("grade", "--items", items, "--replies", AISA / "submission.jsonl", "--json").json["aisa"]

    assert (found["n"], found["positives"], found["missing"]) == (545, 500, 0)
    assert (found["tool_accuracy"], found["argument_match"]) == (543 / 545, 416 / 500)
    assert found["argument_match_as_written"] == 414 / 500
    assert found["track_a"] == pytest.approx(0.4 * 543 / 545 + 0.6 * 416 / 500)
    assert list(found["dialects"]) == ["msa", "gulf", "egyptian", "levantine", "maghrebi"]
    assert [one["n"] for one in found["dialects"].values()] == [323, 75, 66, 75, 6]
    assert found["gap"]["argument_match"] == pytest.approx(252 / 289 - 47 / 66)
