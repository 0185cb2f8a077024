"""Grade many replies in every way there is: one process, several, Ray; print throughput and peak memory as a table.

    python -m benchmarks.scale --replies 1000000

The replies are those of ``workload``, in as many epochs as it takes, to items of the sample set under new ids. Every
way must print the same bytes, or nothing is printed here. Linux only: memory is read from ``/proc``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from arabic_agent_eval.batch import signature_of
from arabic_agent_eval.integrations.blocks import BlockGrader, Task, blocks_of
from arabic_agent_eval.integrations.counts import Sum
from arabic_agent_eval.items import ItemSet
from arabic_agent_eval.ranges import Options
from arabic_agent_eval.rules import CANONICAL
from benchmarks import workload

AAE = [sys.executable, "-m", "arabic_agent_eval", "grade", "--json"]
WORKER = "ray::MapWorker"
"""How a worker of Ray that grades begins its name."""


def write_items(path: Path, count: int) -> list[tuple[str, list[str]]]:
    """Write the items; gives each one's id with its four answers as JSON."""
    pairs = workload.answers()
    rows = len(pairs) // 4
    found = []
    with path.open("w", encoding="utf-8") as stream:
        for number in range(count):
            row, id_ = pairs[number % rows][0], f"{pairs[number % rows][0]['id']}-{number}"
            stream.write(json.dumps({**row, "id": id_}, ensure_ascii=False) + "\n")
            calls = [pairs[number % rows + rows * turn][1] for turn in range(4)]
            found.append((id_, [json.dumps(made, ensure_ascii=False) for made in calls]))
    return found


def write_replies(path: Path, items: list[tuple[str, list[str]]], count: int) -> None:
    """Write the replies, all items of an epoch before the next epoch; each item's four answers take turns."""
    with path.open("w", encoding="utf-8", buffering=1 << 22) as stream:
        for number in range(count):
            epoch, place = divmod(number, len(items))
            id_, answers = items[place]
            stream.write(f'{{"id": "{id_}", "epoch": {epoch}, "actual_calls": {answers[(place + epoch) % 4]}}}\n')


# --- memory --------------------------------------------------------------------------------------------------


def processes_under(root: int) -> Iterator[tuple[int, str]]:
    """A process and all that it began, directly or not: their numbers and command lines."""
    parents, found = {}, {root}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    for pid in found:
        try:
            yield pid, Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace").replace("\0", " ")
        except OSError:
            continue


def peak_of(pid: int) -> int:
    """The most memory that a process held so far, in bytes; 0 when it has gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM")), 0)


class Way(NamedTuple):
    """A way to grade, and what it took."""

    name: str
    seconds: float
    command: int
    worker: int
    printed: bytes


def measured(name: str, command: list[str]) -> Way:
    """Run a command; its wall time, and the peak memory of itself and of its largest worker."""
    peaks: dict[int, int] = {}
    workers: set[int] = set()
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(0.25):
                for pid, line in processes_under(running.pid):
                    peaks[pid] = max(peaks.get(pid, 0), peak_of(pid))
                    if line.startswith(WORKER) or (pid != running.pid and "arabic_agent_eval" in line):
                        workers.add(pid)

        watcher = threading.Thread(target=watch)
        watcher.start()
        printed, said = running.communicate()
        seconds = time.perf_counter() - began
        ended.set()
        watcher.join()
    if running.returncode != 0:
        sys.exit(f"{name} ended with code {running.returncode}:\n{said.decode(errors='replace')}")
    own = peaks.get(running.pid, 0)
    return Way(name, seconds, own, max((peaks[pid] for pid in workers), default=own), printed)


# --- the adding machine --------------------------------------------------------------------------------------


def adding(items: Path, replies: Path, most: int = 4) -> tuple[float, float, int]:
    """Seconds to grade a block of replies, seconds to add its counts to a sum, and the replies of a block."""
    found = ItemSet.index(items)
    grader = BlockGrader(Task(items, found.name, signature_of(found, CANONICAL, "auto"), Options(), None))
    blocks = blocks_of(replies, replies.name)[:most]
    grading = time.process_time()
    counts = [grader.grade(block)[0] for block in blocks]
    grading = time.process_time() - grading
    total = Sum()
    began = time.process_time()
    for one in counts:
        total.add(one)
    added = time.process_time() - began
    return grading / len(blocks), added / len(blocks), total.rows // len(blocks)


def main() -> None:
    """Measure, and print two Markdown tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__.partition("\n")[0])
    parser.add_argument("--replies", type=int, default=1_000_000)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes, and workers of Ray")
    parser.add_argument("--rounds", type=int, default=1, help="of which the fastest counts, since noise only adds")
    parser.add_argument("--rows", action="store_true", help="measure writing graded rows too")
    parser.add_argument("--folder", type=Path, help="where the files are made and left; a temporary one by default")
    options = parser.parse_args()
    if options.folder is None:
        with tempfile.TemporaryDirectory() as name:
            measure(options, Path(name))
    else:
        options.folder.mkdir(parents=True, exist_ok=True)
        measure(options, options.folder)


def measure(options: argparse.Namespace, folder: Path) -> None:
    items, replies = folder / "items.jsonl", folder / "replies.jsonl"
    write_replies(replies, write_items(items, options.items), options.replies)
    grade = [*AAE, "--items", str(items), "--replies", str(replies)]
    jobs = ["--jobs", str(options.jobs)]
    wanted = [
        ("one process", grade),
        (f"`--jobs {options.jobs}`", [*grade, *jobs]),
        (f"`--engine ray --jobs {options.jobs}`", [*grade, "--engine", "ray", *jobs]),
    ]
    if options.rows:
        wanted += [
            ("one process, `--out` (JSONL)", [*grade, "--out", str(folder / "scale-rows.jsonl")]),
            (
                f"`--engine ray --jobs {options.jobs}`, `--out` (Parquet)",
                [*wanted[-1][1], "--out", str(folder / "scale-rows")],
            ),
        ]
    ways = []
    for name, command in wanted:
        rounds = []
        for _ in range(options.rounds):
            shutil.rmtree(folder / "scale-rows", ignore_errors=True)  # whose blocks would not be graded again
            rounds.append(measured(name, command))
        ways.append(min(rounds, key=lambda way: way.seconds))
        print(f"{name}: {ways[-1].seconds:.0f} s", file=sys.stderr)
    if len({way.printed for way in ways}) != 1:
        sys.exit("the ways do not print the same.")
    size = replies.stat().st_size / 1e6
    print(
        f"{options.replies:,} replies ({size:,.0f} MB) to {options.items:,} items, best of {options.rounds}; "
        f"{os.cpu_count()} processors, Python {platform.python_version()}, load at the end {os.getloadavg()[1]:.1f}\n"
    )
    print("| way | seconds | replies a second | against one process | peak memory of a worker | of the command |")
    print("|---|---|---|---|---|---|")
    for way in ways:
        base = ways[3] if "--out" in way.name else ways[0]
        rate, ratio = options.replies / way.seconds, base.seconds / way.seconds
        memory = f"{way.worker / 1e6:.0f} MB | {way.command / 1e6:.0f} MB"
        print(f"| {way.name} | {way.seconds:.1f} | {rate:,.0f} | {ratio:.2f} × | {memory} |")
    graded, added, rows = adding(items, replies)
    print(f"\nA block: {rows:,} replies, {graded:.2f} s to grade and {added:.4f} s to add (processor time).")


if __name__ == "__main__":
    main()
