"""Measure everything that is claimed about speed and memory, and print a table.

Every claim is a ratio of two things measured in this run, or a time on this machine; the best of several rounds is
taken for each side, since noise only ever adds. ``--smoke`` runs small sizes once, to see that all of it works.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from arabic_agent_eval.grading import Expectation
from arabic_agent_eval.items import ExpectedCall
from arabic_agent_eval.scoring import score_function_call
from arabic_agent_eval.tools import Call
from benchmarks import straightforward, workload
from benchmarks.rewards import rewards
from benchmarks.running import running

AAE = [sys.executable, "-m", "arabic_agent_eval"]
USUAL = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""The environment without what would have Python compile the package anew at every start."""


def best_of(rounds: int, work: Callable[[], object]) -> float:
    """The least processor time that the work took, in seconds."""
    times = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times)


def cpu_of(command: list[str], rounds: int) -> float:
    """The least processor time of a whole process and its children, in seconds."""
    times = []
    for _ in range(rounds):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=USUAL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


def wall_of(command: list[str], rounds: int) -> float:
    """The least wall time of a whole process, in seconds."""
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=USUAL)
        times.append(time.perf_counter() - began)
    return min(times)


def functions(rounds: int) -> list[tuple[str, str, str]]:
    """One call at a time: the function, and the compiled path, against the straightforward one."""
    pairs = [
        (expected["function"], call["function"], expected.get("arguments", {}), call["arguments"])
        for row, calls in workload.answers()
        for expected, call in zip(row["expected_calls"], calls, strict=False)
    ]
    compiled = [
        (Expectation([ExpectedCall(wanted, arguments)], category="").judge, (Call(name, given),))
        for wanted, name, arguments, given in pairs
    ]
    repeats = range(200)

    def slow() -> None:
        for _ in repeats:
            for pair in pairs:
                straightforward.score_function_call(*pair)

    def fast() -> None:
        for _ in repeats:
            for pair in pairs:
                score_function_call(*pair)

    def fastest() -> None:
        for _ in repeats:
            for judge, calls in compiled:
                judge(calls)

    plain = best_of(rounds, slow)
    return [
        ("score_function_call against straightforward code", f"{plain / best_of(rounds, fast):.1f} ×", "≥ 3 ×"),
        ("compiled expectation against straightforward code", f"{plain / best_of(rounds, fastest):.1f} ×", "≥ 5 ×"),
    ]


DECODING = """
import sys
import msgspec
decode = msgspec.json.Decoder().decode
for path in sys.argv[1:]:
    with open(path, "rb") as stream:
        for line in stream:
            decode(line)
"""
"""A program that decodes files line by line without types: what any that reads them must at least spend."""


def files(folder: Path, count: int, rounds: int) -> list[tuple[str, str, str]]:
    """Grading many replies against as many items, against decoding the two files: both as whole processes."""
    items, calls, tool_calls = workload.write_pair(folder, count)
    found = []
    for name, replies in (("calls", calls), ("tool_calls", tool_calls)):
        floor = cpu_of([sys.executable, "-c", DECODING, str(items), str(replies)], rounds)
        grade = [*AAE, "grade", "--items", str(items), "--replies", str(replies), "--json"]
        quick, full = cpu_of([*grade, "--no-causes"], rounds), cpu_of(grade, rounds)
        found += [
            (f"{count:,} replies ({name}), --no-causes, whole process", f"{quick / floor:.2f} × decoding", "≤ 3 ×"),
            (f"{count:,} replies ({name}), with causes, whole process", f"{full / floor:.2f} × decoding", "≤ 15 ×"),
        ]
    return found


def jobs(folder: Path, count: int, rounds: int) -> list[tuple[str, str, str]]:
    """Two processes against one, by the clock."""
    items, _, tool_calls = workload.write_pair(folder, count)
    grade = [*AAE, "grade", "--items", str(items), "--replies", str(tool_calls), "--json"]
    found = []
    for name, extra in (("with causes", []), ("with causes and --out", ["--out", str(folder / "rows.jsonl")])):
        one, two = wall_of([*grade, *extra], rounds), wall_of([*grade, *extra, "--jobs", "2"], rounds)
        found.append((f"{count:,} replies, --jobs 2 against one, {name}, wall time", f"{two / one:.2f} ×", "≤ 0.6 ×"))
    return found


def memory(folder: Path, small: int, large: int) -> list[tuple[str, str, str]]:
    """How much more memory many epochs take than few."""
    peaks = []
    for count in (small, large):
        items, replies = workload.write_epochs(folder, count)
        command = [*AAE, "grade", "--items", str(items), "--replies", str(replies), "--json", "--no-causes"]
        code = (
            "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); "
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        )
        done = subprocess.run([sys.executable, "-c", code, *command], check=True, capture_output=True, text=True)
        peaks.append(int(done.stdout) / 1024)
    name = f"peak memory of {large:,} replies above that of {small:,}"
    return [(name, f"{peaks[1] - peaks[0]:.0f} MB (of {peaks[1]:.0f})", "< 100 MB")]


def startup(rounds: int) -> list[tuple[str, str, str]]:
    """What a caller waits before anything happens, the interpreter's own start included."""
    load = wall_of([sys.executable, "-c", "import arabic_agent_eval.scoring"], rounds)
    show = wall_of([*AAE, "--help"], rounds)
    return [
        ("import arabic_agent_eval.scoring", f"{load * 1000:.0f} ms", "< 100 ms"),
        ("aae --help", f"{show * 1000:.0f} ms", "< 400 ms"),
    ]


def main() -> None:
    """Run all of it and print a Markdown table, or JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="small sizes, one round")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    rounds = 1 if options.smoke else 5
    count = 2_000 if options.smoke else 100_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = functions(rounds) + rewards(4 * rounds, 20) + files(folder, count, rounds)
        rows += jobs(folder, count, rounds) + jobs(folder, 4 * count, max(rounds // 2, 1))
        rows += memory(folder, *((1_000, 2_000) if options.smoke else (10_000, 1_000_000))) + startup(rounds)
        rows += running(200 if options.smoke else 10_000, USUAL)
    if options.json:
        print(json.dumps(rows, ensure_ascii=False, indent=1))
        return
    print("| what | measured | wanted |\n|---|---|---|")
    for row in rows:
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
