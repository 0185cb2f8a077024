"""``aae leaderboard --append``: a file of results that only grows, each result once, never half a line."""

from __future__ import annotations

import errno
import json
import os
import threading
from pathlib import Path

import pytest

from arabic_agent_eval.errors import OutputError
from arabic_agent_eval.leaderboard import Leaderboard, leaderboard
from arabic_agent_eval.publishing import append_results
from tests.answers import column, drawn
from tests.test_cli import aae, read, write
from tests.test_compare_command import NEAR, RIGHT, WRONG, rows_of

DATE = "2026-12-01T00:00:00+00:00"


@pytest.fixture
def runs(tmp_path):
    """A good run and one that fails in seven items."""
    good = rows_of(tmp_path, "good", [RIGHT] * 12)
    bad = rows_of(tmp_path, "bad", [WRONG] * 6 + [NEAR] + [RIGHT] * 5)
    return bad, good


def board(*totals: float) -> Leaderboard:
    """Models m0, m1 and so on, whose items all have that total."""
    return leaderboard([column([total] * 8, f"m{place}") for place, total in enumerate(totals)])


def test_a_line_is_what_json_prints(tmp_path, runs):
    """Each line is the entry of --json, less rank and path, with the date; standard output stays as it was."""
    path = tmp_path / "results.jsonl"

    usual, found = aae("leaderboard", *runs, "--json"), aae("leaderboard", *runs, "--json", "--append", path)

    assert (found.code, found.out) == (0, usual.out)
    assert f"2 results added to {path}." in found.err
    lines = read(path)
    for line, entry in zip(lines, usual.json["entries"], strict=True):
        date = line.pop("date")
        assert date[10] == "T"
        assert date.endswith("+00:00")
        assert line == {name: value for name, value in entry.items() if name not in {"rank", "path"}}


def test_a_line_is_what_the_report_prints(tmp_path):
    """Scores, intervals, axes, exact match and coverage are those of a report on the same run."""
    for model, name in (("baseline", "one"), ("replay/sample", "other")):
        aae("run", "--items", "sample", "--epochs", "1", "--model", model, "--run", tmp_path / name)
    path = tmp_path / "results.jsonl"

    aae("leaderboard", tmp_path / "one", tmp_path / "other", "--append", path)

    for line in read(path):
        folder = tmp_path / ("one" if line["name"] == "baseline" else "other")
        report = aae("report", folder, "--json").json
        ends = report["intervals"]
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        assert (line["signature"], line["coverage"]) == (report["signature"], report["coverage"])
        assert line["created"] == manifest["created"]
        assert line["rules"] == "canonical-1"
        wanted = {"overall": report["overall"], "exact_match": report["exact_match"]}
        for name, score in wanted.items():
            found = line[name]
            assert [found["score"], found["low"], found["high"]] == pytest.approx([score, *ends[name]])
        for axis, score in report["axes"].items():
            found = line["axes"][axis]
            assert [found["score"], found["low"], found["high"]] == pytest.approx([score, *ends["axes"][axis]])
        for kind in ("categories", "dialects"):
            assert {name: one["score"] for name, one in line[kind].items()} == pytest.approx(
                {name: one["score"] for name, one in report[kind].items()}
            )


def test_the_same_result_is_added_once(tmp_path, runs):
    """Asked again, nothing is added; another result is, behind the others, which stay byte for byte."""
    path = tmp_path / "results.jsonl"
    aae("leaderboard", *runs, "--append", path)
    first = path.read_bytes()

    again = aae("leaderboard", *runs, "--append", path)
    assert "0 results added" in again.err
    assert "2 stood there already" in again.err
    assert path.read_bytes() == first

    third = rows_of(tmp_path, "third", [WRONG] * 3 + [RIGHT] * 9)
    found = aae("leaderboard", *runs, third, "--append", path)
    assert "1 result added" in found.err
    assert path.read_bytes().startswith(first)
    assert [line["name"] for line in read(path)] == ["good", "bad", "third"]


def test_the_same_run_twice(tmp_path):
    """A model that is named twice is added once."""
    path = tmp_path / "results.jsonl"
    same = leaderboard([column([1.0] * 8, "m")] * 2)

    assert append_results(path, same, date=DATE) == 1
    assert append_results(path, same, date="2027-01-01T00:00:00+00:00") == 0
    assert len(read(path)) == 1


def test_other_numbers_signatures_and_names_are_other_results(tmp_path, runs):
    """What differs in a number, a weight or a name stands beside the first."""
    path, weights = tmp_path / "results.jsonl", write(tmp_path / "weights.json", [{"multi_step": 1}])

    assert append_results(path, board(1.0, 0.5), date=DATE) == 2
    assert append_results(path, board(1.0, 0.25), date=DATE) == 1
    aae("leaderboard", *runs, "--append", path)
    aae("leaderboard", *runs, "--append", path, "--categories", weights)
    lines = read(path)
    assert [line["name"] for line in lines] == ["m0", "m1", "m1", "good", "bad", "good", "bad"]
    assert [("|weights:" in line["signature"]) for line in lines[3:]] == [False, False, True, True]


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (b'{"date": "x", "name": "m", "signature": "s"}', "cut off"),
        (b'{"date": "x", "name": "m", "signature": "s"}\n{"date": "x", "na', "line 2: the last line is cut off"),
        (b"not json\n", "no result"),
        (b"[]\n", "no result"),
        (b"\n", "no result"),
        (b'{"id": "w1", "calls": []}\n', "no result"),
        (b'{"date": 1, "name": "m", "signature": "s"}\n', "no result"),
        (b'{"date": "x", "name": "m", "signature": "s"}\n{"item_id": "a"}\n', "line 2: this is no result"),
        (b"\xff\xfe\n", "no result"),
        (b"\x00" * 100, "cut off"),
        (b"[" * 100_000 + b"\n", "no result"),
    ],
)
def test_torn_and_foreign_files_are_refused(tmp_path, runs, before, said):
    """A line that is cut off or is no result is one sentence and code 2; the file stays as it was."""
    path = tmp_path / "results.jsonl"
    path.write_bytes(before)

    found = aae("leaderboard", *runs, "--append", path)

    assert (found.code, found.out) == (2, "")
    assert said in found.err
    assert "nothing was added" in found.err
    assert found.err.count("\n") == 1
    assert path.read_bytes() == before


def test_results_of_other_versions_stay(tmp_path):
    """A result with other fields is a result; it is not compared by fields that it lacks."""
    path = tmp_path / "results.jsonl"
    before = b'{"date": "x", "name": "m0", "signature": "s", "big": 1' + b"0" * 40 + b', "a": "\\ud800"}\n'
    path.write_bytes(before)

    assert append_results(path, board(1.0, 0.5), date=DATE) == 2
    assert path.read_bytes().startswith(before)


def test_the_inputs_are_never_appended_to(tmp_path, runs):
    """--append refuses the rows themselves, a file of a run, and the weights."""
    aae("run", "--items", "sample", "--run", tmp_path / "run")
    weights = write(tmp_path / "weights.json", [{"multi_step": 1}])

    for options in (
        (*runs, "--append", runs[1]),
        (tmp_path / "run", tmp_path / "run", "--append", tmp_path / "run" / "replies.jsonl"),
        (*runs, "--categories", weights, "--append", weights),
    ):
        found = aae("leaderboard", *options)
        assert (found.code, found.out) == (2, "")
        assert "--append" in found.err


def test_places_where_nothing_can_be_added(tmp_path, runs):
    """A folder, a pipe, a device and a folder that is not there are sentences; nothing hangs."""
    os.mkfifo(tmp_path / "pipe")

    for path in (tmp_path, tmp_path / "pipe", Path(os.devnull), tmp_path / "gone" / "results.jsonl"):
        found = aae("leaderboard", *runs, "--append", path)
        assert (found.code, found.out) == (2, "")
        assert "nothing can be added there" in found.err


def test_no_room(tmp_path, monkeypatch):
    """On a full disk no part of a line stays, a sentence says so, and what is missing can be added later."""
    path = tmp_path / "results.jsonl"
    append_results(path, board(1.0, 0.5), date=DATE)
    before, usual, room = path.read_bytes(), os.write, [1_000]

    def full(handle, data):
        if not room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return usual(handle, data[: room.pop()])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OutputError, match="could not be added: no space left"):
            append_results(path, board(0.25, 0.125), date=DATE)

    assert path.read_bytes().startswith(before)
    kept = len(read(path)) - 2
    assert append_results(path, board(0.25, 0.125), date=DATE) == 2 - kept


def test_what_the_disk_does_not_confirm(tmp_path, monkeypatch):
    """Lines that the disk does not take are taken back."""
    path = tmp_path / "results.jsonl"
    append_results(path, board(1.0, 0.5), date=DATE)
    before = path.read_bytes()

    def broken(_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OutputError, match="input/output error"):
        append_results(path, board(0.25, 0.125), date=DATE)

    assert path.read_bytes() == before


def test_it_is_durable(tmp_path, monkeypatch):
    """The disk has the lines before the command says so."""
    seen = []
    usual = os.fsync

    def sync(handle):
        seen.append(os.fstat(handle).st_size)
        usual(handle)

    monkeypatch.setattr(os, "fsync", sync)
    path = tmp_path / "results.jsonl"

    append_results(path, board(1.0, 0.5), date=DATE)

    assert path.stat().st_size in seen


def test_several_at_once(tmp_path):
    """Whoever adds at the same time waits for the others: every line is whole, and each result stands once."""
    path = tmp_path / "results.jsonl"
    boards = [leaderboard([drawn(seed, name=f"m{seed}"), drawn(0, name="same")]) for seed in range(1, 6)]
    several = [threading.Thread(target=append_results, args=(path, one), kwargs={"date": DATE}) for one in boards]

    for one in several:
        one.start()
    for one in several:
        one.join()

    names = [json.loads(line)["name"] for line in path.read_text(encoding="utf-8").splitlines()]
    assert sorted(names) == ["m1", "m2", "m3", "m4", "m5", "same"]


def test_names_that_are_not_utf_8(tmp_path):
    """The name of a file that is not UTF-8 is escaped, as in --json, and found again."""
    path = tmp_path / "results.jsonl"
    odd = leaderboard([column([1.0] * 8, "m\udc80"), column([0.5] * 8, "n")])

    assert (append_results(path, odd, date=DATE), append_results(path, odd, date=DATE)) == (2, 0)
    assert read(path)[0]["name"] == "m\\udc80"
