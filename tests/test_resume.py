"""``aae run`` ended in every way: nothing that was kept is lost or asked for again, and the end is the same.

Most commands are forked from a process that has loaded everything already: dozens of them are killed here.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import faults
from tests.chats import GUARD, Provider, rows_of
from tests.faults import FaultServer, closed_port
from tests.nursery import Nursery, asking, assert_each_once, material, wait_until
from tests.test_cli import ROOT, aae, start

KILLS, RUNS = 50, 5


@pytest.fixture(scope="module")
def nursery(tmp_path_factory) -> Iterator[Nursery]:
    """One for all tests."""
    made = Nursery(tmp_path_factory.mktemp("nursery"))
    yield made
    made.close()


def durable(folder: Path) -> Counter[str]:
    """Request → how many answers to it the journal holds."""
    held: dict[Any, dict[str, Any]] = {}
    for name in ("turns.jsonl", "replies.jsonl"):
        for line in whole_lines(folder / name):
            turns = [line["turn"]] if "turn" in line else line["turns"]
            for turn in turns:
                held.setdefault((line["id"], line["epoch"]), {})[key_of(turn["request"])] = turn
    return Counter(request for answers in held.values() for request in answers)


def whole_lines(path: Path) -> list[Any]:
    """The lines of a file, without one that was cut off."""
    data = path.read_bytes() if path.exists() else b""
    return [json.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]


def key_of(request: Any) -> str:
    """A request as something to count by."""
    return json.dumps(request, ensure_ascii=False, sort_keys=True)


def without_times(printed: str) -> dict[str, Any]:
    """A printed report without what may differ between two runs of the same."""
    return {name: value for name, value in json.loads(printed).items() if name not in {"run", "latency", "attempts"}}


# --- kill -9 -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(RUNS))
def test_killed_at_any_moment(tmp_path, nursery, seed):
    """However often a run is killed: what was durable is asked once, and the report is that of a run left alone."""
    chance, rows, epochs = random.Random(seed), rows_of(14 + seed), 3
    prices = tmp_path / "prices.json"
    prices.write_text('{"m": {"input": 1, "output": 4}}', encoding="utf-8")
    always = ("--concurrency", 1 + 2 * seed, "--prices", prices, "--json")
    options = (*material(tmp_path, rows), "--epochs", epochs, *always)
    folder, left_alone = tmp_path / "run", tmp_path / "alone"
    ended, kills = None, 0

    with FaultServer(Provider(rows, delay=0.004)) as server:
        alone = nursery.run(*asking(server, options, "--run", left_alone))
        assert alone.code == 0
        while ended is None or ended.code != 0:
            held, before = durable(folder), len(server.seen)
            if (folder / "manifest.json").exists():
                nursery.start("run", "--resume", folder, *always)
            else:
                nursery.start(*asking(server, options, "--run", folder))
            if kills < KILLS // RUNS:
                kills += 1
                more = chance.choice([0, 0, 1, 3, 5, 8])
                wait_until(lambda b=before, m=more: len(server.seen) >= b + m)
                time.sleep(chance.uniform(0, 0.02 if more else 0.06))
                os.kill(nursery.pid, signal.SIGKILL)
            ended = nursery.wait()
            assert ended.code in {0, -signal.SIGKILL}, ended.err
            asked = Counter(key_of(json.loads(seen.body)) for seen in server.seen[before:])
            again = {request: asked[request] + held[request] for request in asked}
            assert max(again.values(), default=0) <= epochs, "an answer that was durable was asked for again"

    assert kills == KILLS // RUNS
    assert_each_once(folder, epochs)
    assert without_times(ended.out) == without_times(alone.out)


def test_a_torn_last_line_never_counted(tmp_path, nursery):
    """What a crash left of a line is dropped, and its item is asked again; a reader does not mind it either."""
    rows = rows_of(6)
    folder = tmp_path / "run"
    with FaultServer(Provider(rows)) as server:
        alone = nursery.run(*asking(server, material(tmp_path, rows), "--json", "--run", folder, "--concurrency", 1))
        for name in ("replies.jsonl", "turns.jsonl"):
            data = (folder / name).read_bytes()
            (folder / name).write_bytes(data[:-20])
        assert "1 answers are missing" in nursery.run("regrade", folder).err
        before = len(server.seen)
        ended = nursery.run("run", "--resume", folder, "--json")

    # Of the last item, a conversation, the second answer and the third were torn.
    assert len(server.seen) - before == 2
    assert without_times(ended.out) == without_times(alone.out)
    assert_each_once(folder, 1)


def test_a_server_that_was_started_again(tmp_path, nursery):
    """Another port of the same host is the same server; another host, scheme or path is not."""
    rows = rows_of(6)
    folder = tmp_path / "run"
    with FaultServer(Provider(rows)) as server:
        nursery.run(*asking(server, material(tmp_path, rows), "--run", folder, "--concurrency", 1))
        path = folder / "replies.jsonl"
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:4]))
        url = server.url
    with closed_port() as port:
        away = f"http://127.0.0.1:{port}/v1"
        gone = nursery.run("run", "--resume", folder, "--base-url", away, "--attempts", 1)
    assert gone.code == 3
    assert f"aae run --resume {folder} --base-url {away}" in gone.err
    with FaultServer(Provider(rows)) as server:
        assert server.url != url
        refused = [
            nursery.run("run", "--resume", folder, "--base-url", other)
            for other in (f"{server.url}/v1".replace("127.0.0.1", "localhost"), f"{server.url}/v2", "http://[::1")
        ]
        assert len(server.seen) == 0
        ended = nursery.run("run", "--resume", folder, "--base-url", f"{server.url}/v1", "--json")
        asked = len(server.seen)
        done = nursery.run("run", "--resume", folder, "--base-url", f"{server.url}/v1")

    assert (done.code, len(server.seen)) == (0, asked)
    assert f"every item of {folder} has its answer; nothing is asked." in done.err
    assert [one.code for one in refused] == [2, 2, 2]
    assert all("asked something else" in one.err for one in refused)
    assert (ended.code, json.loads(ended.out)["coverage"]) == (0, {"scored": 6, "unscored": 0, "total": 6})
    assert asked >= 2
    assert f"at {server.url}/v1," in ended.err
    assert_each_once(folder, 1)


@pytest.mark.parametrize("name", ["replies.jsonl", "turns.jsonl"])
def test_a_damaged_line_is_named(tmp_path, nursery, name):
    """A line that is damaged in the midst of a file is no crash's doing: it is named, and nothing is asked."""
    rows = rows_of(6)
    folder = tmp_path / "run"
    with FaultServer(Provider(rows)) as server:
        nursery.run(*asking(server, material(tmp_path, rows), "--run", folder))
        path = folder / name
        path.write_bytes(path.read_bytes().replace(b'"', b"", 1))
        before = len(server.seen)
        ended = nursery.run("run", "--resume", folder)
        assert len(server.seen) == before

    assert ended.code == 2
    assert f"{name}, line 1: " in ended.err
    assert "Traceback" not in ended.err


# --- no room -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", [0.15, 0.5, 0.9])
def test_a_full_disk(tmp_path, nursery, part):
    """When there is no room for an answer the run ends with a sentence; with room again it goes on where it was."""
    rows, folder = rows_of(20), tmp_path / "run"
    options = (*material(tmp_path, rows), "--parameter", f"user={'س' * 2_000}", "--concurrency", 1)
    with FaultServer(Provider(rows)) as server:
        alone = nursery.run(*asking(server, options, "--json", "--run", tmp_path / "alone"))
        size = (tmp_path / "alone" / "replies.jsonl").stat().st_size
        full = nursery.run(*asking(server, options, "--json", "--run", folder), room=int(size * part))
        held, before = durable(folder), len(server.seen)
        ended = nursery.run("run", "--resume", folder, "--json")

    assert (full.code, full.out) == (2, "")
    assert full.err.splitlines()[-1] == (
        f"aae: {folder / 'replies.jsonl'}: an answer could not be kept: file too large. "
        f"When that is mended, go on with: aae run --resume {folder} --concurrency 1"
    )
    assert "Traceback" not in full.err
    assert held
    assert not {key_of(json.loads(seen.body)) for seen in server.seen[before:]} & held.keys()
    assert without_times(ended.out) == without_times(alone.out)
    assert_each_once(folder, 1)


@pytest.mark.parametrize("name", ["run", "run/manifest.json", "run/replies.jsonl", "run/.lock"])
def test_a_place_that_cannot_be_written(tmp_path, nursery, name):
    """A file in the folder's place, or a folder in a file's, is a sentence before anything is asked."""
    rows, folder = rows_of(2), tmp_path / "run"
    options = material(tmp_path, rows)
    with FaultServer(Provider(rows)) as server:
        if name == "run":
            folder.write_bytes(b"")
            ended = nursery.run(*asking(server, options, "--run", folder))
        else:
            nursery.run(*asking(server, options, "--run", folder))
            server.seen.clear()
            (tmp_path / name).unlink()
            (tmp_path / name).mkdir()
            ended = nursery.run("run", "--resume", folder)
        assert not server.seen

    assert ended.code == 2
    assert ended.err.startswith(f"aae: {folder}") or ended.err.splitlines()[-1].startswith(f"aae: {folder}")
    assert "Traceback" not in ended.err


def test_two_processes_on_one_run(tmp_path, nursery):
    """The second is refused as long as the first asks, whether it resumes or begins; reading is free."""
    rows, folder = rows_of(6), tmp_path / "run"
    options = material(tmp_path, rows)
    with FaultServer(Provider(rows, delay=0.2)) as server:
        nursery.start(*asking(server, options, "--run", folder, "--concurrency", 1))
        wait_until(lambda: server.seen)
        second = aae("run", "--resume", folder)
        third = aae(*asking(server, options, "--run", folder))
        reading = aae("regrade", folder, "--json")
        first = nursery.wait()

    assert second.code == third.code == 2
    assert f"{folder} is being written by another process; wait for it, or stop it." in second.err
    assert f"{folder} is not empty" in third.err
    assert reading.json["coverage"]["total"] == len(rows)
    assert first.code == 0
    assert len(server.seen) == len(rows) + 2 * 2
    assert_each_once(folder, 1)


# --- signals -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("requests", [1, 9])
def test_interrupted(tmp_path, nursery, name, requests):
    """Ctrl-C and a request to end: code 130, a report of what is there, the command that goes on, nothing lost."""
    rows, folder = rows_of(12), tmp_path / "ما كان"
    with FaultServer(Provider(rows, delay=0.05)) as server:
        options = material(tmp_path, rows)
        nursery.start(*asking(server, options, "--run", folder, "--json", "--concurrency", 2))
        wait_until(lambda: len(server.seen) >= requests)
        os.kill(nursery.pid, getattr(signal, name))
        ended = nursery.wait()
        complete = {key_of(json.loads(seen.body)) for seen in server.seen if seen.complete}
        held, before = durable(folder), len(server.seen)
        resumed = nursery.run("run", "--resume", folder, "--json")

    assert ended.code == 130
    assert ended.err.splitlines()[-1] == (
        "aae: Interrupted. Everything that was answered is kept. "
        f"Go on with: aae run --resume '{folder}' --concurrency 2"
    )
    assert json.loads(ended.out)["coverage"]["total"] == len(rows)
    assert complete - held.keys() == set() or len(complete - held.keys()) <= 2  # sent while the signal came
    assert not {key_of(json.loads(seen.body)) for seen in server.seen[before:]} & held.keys()
    assert resumed.code == 0
    assert_each_once(folder, 1)


def test_interrupted_while_everybody_waits(tmp_path, nursery):
    """Waits for a minute, for leave or for another attempt, do not keep an interrupt waiting."""
    rows, folder = rows_of(3), tmp_path / "run"
    with FaultServer(faults.status(429, headers={"retry-after": "500"})) as server:
        options = (*material(tmp_path, rows), "--rpm", 60, "--concurrency", 4, "--run", folder)
        nursery.start(*asking(server, options))
        wait_until(lambda: server.seen)
        os.kill(nursery.pid, signal.SIGINT)
        ended = nursery.wait()

    assert ended.code == 130
    assert f"Go on with: aae run --resume {folder}" in ended.err


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("between", [0.0, 0.002, 0.02])
def test_interrupted_twice(tmp_path, nursery, name, between):
    """A second interrupt may come at once; the way to go on is said, and the run goes on."""
    rows, folder = rows_of(30), tmp_path / "run"
    number = getattr(signal, name)
    with FaultServer(Provider(rows, delay=0.01)) as server:
        nursery.start(*asking(server, material(tmp_path, rows), "--run", folder))
        wait_until(lambda: len(server.seen) > 12)
        for _ in range(2):
            os.kill(nursery.pid, number)
            time.sleep(between)
        ended = nursery.wait()
        resumed = nursery.run("run", "--resume", folder)

    assert ended.code in {130, -number}  # the latter when the second comes after everything was said
    assert f"Go on with: aae run --resume {folder}" in ended.err
    assert "Traceback" not in ended.err
    assert resumed.code == 0
    assert_each_once(folder, 1)


def test_interrupted_while_the_report_is_made(tmp_path):
    """After the last answer an interrupt loses nothing either, and says so."""
    rows, folder = rows_of(2), tmp_path / "run"
    slow = "import time, arabic_agent_eval.regrading as r\n"
    slow += "r.grade_run = lambda *_, **__: (print('now', flush=True), time.sleep(60))"
    with FaultServer(Provider(rows)) as server:
        process = start(*asking(server, material(tmp_path, rows), "--run", folder), before=slow, stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"now\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=GUARD)

    assert process.returncode == 130
    assert err.decode().endswith(f"Everything that was answered is kept. Go on with: aae run --resume {folder}\n")
    assert_each_once(folder, 1)


def test_the_reader_of_progress_goes_away(tmp_path, nursery):
    """A closed stderr ends no run."""
    rows, folder = rows_of(4), tmp_path / "run"
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETFD, 0)
    os.close(reading)
    before = "import arabic_agent_eval.reports.progress as p; p._APART = 0.0"
    with FaultServer(Provider(rows, delay=0.1)) as server:
        script = f"{before}\nfrom arabic_agent_eval.cli import main\nmain()"
        arguments = asking(server, material(tmp_path, rows), "--run", folder, "--json", "--concurrency", 1)
        # The first sentence goes to a reader; then only the progress has none.
        quiet = f"import arabic_agent_eval.cli.steps as s; s.say = lambda _: None\n{script}"
        process = subprocess.run(
            [sys.executable, "-c", quiet, *map(str, arguments)], stderr=writing, stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(ROOT)}, timeout=GUARD, check=False,
        )  # fmt: skip
    os.close(writing)

    assert process.returncode == 0
    assert_each_once(folder, 1)
