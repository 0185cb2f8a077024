"""Commands as processes of their own, dozens of them in little time, and what tests of ``aae run`` share.

They are forked from a process that has loaded everything already.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from arabic_agent_eval.runs import Run
from tests.chats import GUARD, TOOLS, lines_of
from tests.faults import FaultServer
from tests.test_cli import ROOT, write

_SESSION = """
import json, os, resource, sys
import arabic_agent_eval.cli.running, arabic_agent_eval.models.wire, arabic_agent_eval.regrading
from arabic_agent_eval import runner
from arabic_agent_eval.cli import commands, main
for line in sys.stdin:
    order = json.loads(line)
    pid = os.fork()
    if pid == 0:
        os.chdir(order["folder"])
        for stream, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
        os.environ.update(order["env"])
        if order["room"]:
            resource.setrlimit(resource.RLIMIT_FSIZE, (order["room"], order["room"]))
        runner.backoff = lambda tries, wait, chance: wait or 0.01
        sys.argv = ["aae", *order["arguments"]]
        sys.exit(main())
    print(pid, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


class Nursery:
    """Starts commands one after another, each as a process of its own; ``pid`` is that of the last."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.pid = folder, 0
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SESSION], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._orders, self._news = self._process.stdin, self._process.stdout

    def start(self, *arguments: Any, room: int = 0, env: dict[str, str] | None = None) -> None:
        """Start a command, with so many bytes of room for each file."""
        order = {"arguments": [*map(str, arguments)], "folder": str(self.folder), "room": room, "env": env or {}}
        self._orders.write(json.dumps(order) + "\n")
        self.pid = int(self._news.readline())

    def wait(self) -> Ended:
        """Wait until it ends; what hangs is killed."""
        guard = threading.Timer(GUARD, os.kill, (self.pid, signal.SIGKILL))
        guard.start()
        code = int(self._news.readline())
        guard.cancel()
        out, err = ((self.folder / name).read_text(encoding="utf-8") for name in ("stdout", "stderr"))
        return Ended(code, out, err)

    def run(self, *arguments: Any, **more: Any) -> Ended:
        """Both."""
        self.start(*arguments, **more)
        return self.wait()

    def close(self) -> None:
        """There are no more commands."""
        self._orders.close()
        self._process.wait(GUARD)
        self._news.close()


def material(folder: Path, rows: list[dict[str, Any]]) -> tuple[Any, ...]:
    """The options that name items and tools."""
    (folder / "tools.json").write_text(json.dumps(TOOLS, ensure_ascii=False), encoding="utf-8")
    return ("--items", write(folder / "items.jsonl", rows), "--tools", folder / "tools.json")


def asking(server: FaultServer, options: tuple[Any, ...], *more: Any) -> tuple[Any, ...]:
    """The arguments of a new run."""
    return ("run", "--model", "openai-chat/m", "--base-url", f"{server.url}/v1", *options, *more)


def wait_until(true: Any) -> None:
    """Wait for something that another process or thread brings about."""
    end = time.monotonic() + GUARD
    while not true():
        assert time.monotonic() < end, "it hangs"
        time.sleep(0.001)


def assert_each_once(folder: Path, epochs: int) -> None:
    """One answer that counts for every item and epoch, and no second one beside it."""
    run = Run.read(folder)
    lines = lines_of(folder / "replies.jsonl")
    answered = Counter((line["id"], line["epoch"]) for line in lines if line["status"] == "answered")
    assert answered == Counter((item_id, epoch) for epoch in range(epochs) for item_id in run.items)
    assert [(record.id, record.epoch) for record in run.records()] == list(run.due())
