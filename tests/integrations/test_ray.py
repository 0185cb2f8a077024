"""Ray grades what is larger than one machine, and every number is that of one process."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="grading on Ray needs the extra 'ray'")
pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

from arabic_agent_eval.bundled import find_items  # noqa: E402
from arabic_agent_eval.items import ItemSet  # noqa: E402
from benchmarks.scale import WORKER, processes_under  # noqa: E402
from benchmarks.workload import write_epochs  # noqa: E402
from tests.integrations.test_arrow import as_text  # noqa: E402
from tests.integrations.test_counts import SAMPLE, mixed  # noqa: E402

AAE = [sys.executable, "-m", "arabic_agent_eval", "grade", "--items", "sample", "--json", "--allow-unknown"]
CLUSTER = """
import sys, ray
begun = ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=1 << 28)
print(begun.address_info["address"])
sys.stdout.flush()
sys.stdin.read()
"""
"""A program that is a small cluster until its standard input ends."""

QUIET = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}  # the small cluster is ours alone


def grade(*arguments: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*AAE, *map(str, arguments)], capture_output=True, check=False, env=QUIET)


def said(done: subprocess.CompletedProcess[bytes]) -> list[str]:
    """What the command said on stderr; nothing there is of anybody else."""
    lines = done.stderr.decode().splitlines()
    assert [line for line in lines if not line.startswith("aae: ")] == []
    return lines


@pytest.fixture(scope="module")
def cluster():
    """The address of a cluster of two processors."""
    with subprocess.Popen(
        [sys.executable, "-c", CLUSTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=QUIET
    ) as head:
        assert head.stdout is not None
        address = head.stdout.readline().decode().strip()
        assert address
        yield address
        head.communicate()


def write_lines(path: Path, rows: list[dict]) -> Path:
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def write_table(path: Path, rows: list[dict]) -> Path:
    path.parent.mkdir(exist_ok=True, parents=True)
    pq.write_table(pa.Table.from_batches([as_text(rows)]), path, row_group_size=20)
    return path


@pytest.fixture
def folder(tmp_path):
    """A folder of JSONL and Parquet with epochs, failures and unknown items, and all of it as one file of JSONL."""
    rows = mixed(10**6, 5)
    third = len(rows) // 3
    write_lines(tmp_path / "replies" / "a" / "1.jsonl", rows[:third])
    write_table(tmp_path / "replies" / "b.parquet", rows[third : 2 * third])
    write_lines(tmp_path / "replies" / "c.ndjson", rows[2 * third :])
    return tmp_path / "replies", write_lines(tmp_path / "all.jsonl", rows)


def test_one_machine_by_itself(folder, tmp_path):
    """Started on this machine alone, Ray prints what one process prints, ends as it does, and adds no word."""
    _, everything = folder
    alone = grade("--replies", everything)

    on_ray = grade("--replies", everything, "--engine", "ray", "--jobs", 2)

    assert on_ray.stdout == alone.stdout != b""
    assert on_ray.returncode == alone.returncode == 3  # some replies failed
    assert said(on_ray) == said(alone)


def test_a_folder_on_a_cluster(cluster, folder, tmp_path):
    """A folder of several kinds of files on a cluster comes to what one process says of all its rows."""
    replies, everything = folder
    alone = grade("--replies", everything, "--out", tmp_path / "rows.jsonl")
    expected = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text(encoding="utf-8").splitlines()]
    ray = ["--replies", replies, "--engine", "ray", "--ray-address", cluster, "--out", tmp_path / "out"]

    first, again = grade(*ray), grade(*ray)

    assert first.stdout == again.stdout == alone.stdout != b"", first.stderr.decode()
    assert first.returncode == again.returncode == alone.returncode
    assert said(again)[0] == "aae: 3 of 3 blocks were graded before and are unchanged."
    assert said(again)[1:] == said(first)
    rows = pq.read_table(tmp_path / "out").to_pylist()
    assert sorted((row["item_id"], row["epoch"], str(row["total"]), str(row["reason"])) for row in rows) == sorted(
        (row["item_id"], row["epoch"], str(row["total"]), str(row["reason"])) for row in expected
    )
    assert {row["file"] for row in rows} == {"a/1.jsonl", "b.parquet", "c.ndjson", None}


def test_a_failing_block_does_not_lose_the_rest(cluster, tmp_path):
    """Failures name file and row, the rest is kept, and when they are put right only they are graded."""
    items = list(ItemSet.read(find_items("sample")))
    replies, answers = tmp_path / "replies", [{**row, "id": item} for row, item in zip(SAMPLE, items, strict=True)]
    write_lines(replies / "1.jsonl", answers[:5])
    write_lines(replies / "2.jsonl", [*answers[5:9], {"id": "gulf"}])
    write_table(replies / "3.parquet", [*answers[10:12], {"id": items[0], "epoch": -3, "text": ""}])
    (replies / "4.parquet").write_bytes(b"nothing of the kind")
    write_lines(replies / "5.jsonl", [*answers[12:], answers[1]])
    ray = ["--replies", replies, "--engine", "ray", "--ray-address", cluster, "--out", tmp_path / "out"]

    first = grade(*ray)

    assert (first.returncode, first.stdout) == (2, b"")
    lines = said(first)
    assert any(f"{replies}/2.jsonl, line 5: the row holds no answer" in line for line in lines)
    assert any(f"{replies}/3.parquet, row 3, field 'epoch'" in line for line in lines)
    assert any(f"{replies}/4.parquet: the file cannot be read" in line for line in lines)
    where = f"{replies}/5.jsonl, line 13, field 'id': item {items[1]!r} is answered twice in epoch 0"
    assert any(f"{where} (first {replies}/1.jsonl, line 2)" in line for line in lines)
    assert len(lines) == 5

    write_lines(replies / "2.jsonl", answers[5:10])
    write_table(replies / "3.parquet", answers[10:12])
    (replies / "4.parquet").unlink()
    write_lines(replies / "5.jsonl", answers[12:])
    again, alone = grade(*ray), grade("--replies", write_lines(tmp_path / "all.jsonl", answers))

    assert again.stdout == alone.stdout != b""
    assert again.returncode == 0
    assert said(again)[0] == "aae: 1 of 4 blocks were graded before and are unchanged."


def workers_of(command: subprocess.Popen[bytes]) -> list[int]:
    """The workers that a command of ours has under it, by what they call themselves."""
    return [pid for pid, line in processes_under(command.pid) if line.startswith(WORKER)]


def interrupted(command: list[str], out: Path, harm) -> bytes:
    """Run a command, do harm once its first rows are there, and wait for its end."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=QUIET) as running:
        while running.poll() is None and not list(out.glob("*.parquet")):
            time.sleep(0.02)
        assert running.poll() is None, "it ended before anything could be done to it"
        harm(running)
        printed, complaints = running.communicate()
    return printed, complaints, running.returncode


@pytest.fixture
def many(tmp_path):
    """A file of three blocks and more."""
    _, path = write_epochs(tmp_path, 250_000)
    return path


def test_a_killed_worker_changes_nothing(many, tmp_path):
    """A worker that is killed in the middle of its block costs time, and nothing else."""
    out = tmp_path / "out"
    killed = []

    def harm(running: subprocess.Popen[bytes]) -> None:
        killed.append(random.choice(workers_of(running)))
        os.kill(killed[0], signal.SIGKILL)

    command = [*AAE, "--replies", str(many), "--engine", "ray", "--jobs", "2", "--out", str(out)]
    printed, _, code = interrupted(command, out, harm)

    assert killed
    assert printed == grade("--replies", many).stdout
    assert code == 0
    assert sum(pq.read_metadata(part).num_rows for part in out.glob("*.parquet")) == 250_000


def test_an_interrupted_run_goes_on(many, tmp_path):
    """Ctrl-C keeps the blocks that are done; the same command grades the others and comes to the same."""
    out = tmp_path / "out"
    command = [*AAE, "--replies", str(many), "--engine", "ray", "--jobs", "2", "--out", str(out)]

    printed, complaints, code = interrupted(command, out, lambda running: running.send_signal(signal.SIGINT))
    again = subprocess.run(command, capture_output=True, check=False, env=QUIET)

    assert (printed, code) == (b"", 130)
    assert f"what was graded is kept in {out}" in complaints.decode()
    assert again.stdout == grade("--replies", many).stdout
    assert "blocks were graded before and are unchanged" in again.stderr.decode()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--replies", "-"], "standard input cannot be cut into blocks"),
        (["--replies", "nowhere"], "there is no such file"),
        (["--replies", ".", "--out", "out"], "lies in the folder of the replies"),
        (["--replies", "empty"], "the folder holds no file of replies"),
        (["--replies", "nothing.jsonl"], "there are no replies to grade"),
        (["--replies", "sample", "--format", "xml"], "no reply format 'xml'"),
    ],
)
def test_mistakes_cost_no_start_of_ray(arguments, message, tmp_path, monkeypatch):
    """A mistake in the options is said at once, without starting anything."""
    import ray
    from typer.testing import CliRunner

    from arabic_agent_eval import cli

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ray, "init", None)
    (tmp_path / "empty").mkdir()
    (tmp_path / "nothing.jsonl").touch()

    done = CliRunner().invoke(cli.app, ["grade", "--items", "sample", "--engine", "ray", *arguments])

    assert message in str(done.exception)


def test_a_cluster_that_is_not_there_is_a_mistake(tmp_path):
    """An address where nobody answers is said in a sentence."""
    done = grade("--replies", "sample", "--engine", "ray", "--ray-address", "nonsense://here")

    assert done.returncode == 2
    assert done.stdout == b""
    assert "Ray cannot be reached at nonsense://here" in done.stderr.decode()


def test_a_block_that_kills_every_worker_is_given_up(tmp_path, monkeypatch):
    """A block on which one worker after another dies becomes a failure that names it, and the others count."""
    from arabic_agent_eval.integrations import ray as door

    first, second = (
        write_lines(tmp_path / "r" / "1.jsonl", SAMPLE[:9]),
        write_lines(tmp_path / "r" / "2.jsonl", SAMPLE[9:]),
    )
    starts = door._Starts()
    monkeypatch.setattr(door.ray, "get", lambda value: value)
    starts.begin = type("Remote", (), {"remote": staticmethod(starts.begin)})

    def results(task, blocks, workers):
        for number, block in enumerate(blocks):
            worker = door._Worker(task, starts)
            for _ in range(3 if block.path == str(first) else 0):
                starts.begin.remote(number)
            yield worker({"number": number, "path": block.path, "block": door.msgspec.json.encode(block)})

    monkeypatch.setattr(door, "_results", results)
    monkeypatch.setattr(door, "_ray", lambda *_: door.contextmanager(lambda: iter([2]))())
    graded = door.grade_files(ItemSet.index(find_items("sample")), tmp_path / "r")

    (failure,) = graded.failures
    assert str(failure).startswith(
        f"{first}: the workers that graded bytes 0 to {first.stat().st_size:,} were killed 3"
    )
    assert graded.batch.tally.answered() == 15
    assert second.exists()
