"""What the runner costs beside the waiting: ``aae run`` against a local server that answers after a fixed time."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from arabic_agent_eval.bundled import find_items, find_tools
from arabic_agent_eval.items import ItemSet
from arabic_agent_eval.world import is_conversation

IN_FLIGHT = 64
DELAY = 0.2
_ANSWER = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "fixed",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": "get_weather", "arguments": '{"city": "الرياض"}'},
                        }
                    ],
                },
            }
        ],
        "usage": {"prompt_tokens": 900, "completion_tokens": 20, "total_tokens": 920},
    },
    ensure_ascii=False,
).encode()
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(_ANSWER)


async def _serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line)
            await reader.readexactly(length)
            await asyncio.sleep(DELAY)
            writer.write(_HEAD + _ANSWER)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def _serve() -> None:
    server = await asyncio.start_server(_serve_one, "127.0.0.1", 0, limit=1 << 20, backlog=256)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


def write_items(folder: Path, count: int) -> Path:
    """So many items of one question each, from the starter set under new ids, with its tools beside."""
    items = [item for item in ItemSet.read(find_items("starter")).values() if not is_conversation(item)]
    rows = {json.loads(line)["id"]: json.loads(line) for line in find_items("starter").read_bytes().splitlines()}
    path = folder / "items.jsonl"
    with path.open("w", encoding="utf-8") as stream:
        for number in range(count):
            row = rows[items[number % len(items)].id]
            stream.write(json.dumps({**row, "id": f"{row['id']}-{number}"}, ensure_ascii=False) + "\n")
    tools = find_tools("starter", None)
    assert tools is not None
    (folder / "tools.json").write_bytes(tools.read_bytes())
    return path


def running(count: int, environment: dict[str, str]) -> list[tuple[str, str, str]]:
    """Wall time, processor time and memory of a run of so many items."""
    with (
        tempfile.TemporaryDirectory() as name,
        subprocess.Popen([sys.executable, "-m", "benchmarks.running"], stdout=subprocess.PIPE, text=True) as server,
    ):
        try:
            folder = Path(name)
            items = write_items(folder, count)
            assert server.stdout is not None
            port = server.stdout.readline().strip()
            command = [
                *(sys.executable, "-m", "arabic_agent_eval", "run", "--items", str(items)),
                *("--model", "openai-chat/fixed", "--base-url", f"http://127.0.0.1:{port}/v1"),
                *("--concurrency", str(IN_FLIGHT), "--run", str(folder / "run"), "--json"),
            ]
            wall, cpu, peak = _measure(command, environment)
        finally:
            server.kill()
    ideal = -(-count // IN_FLIGHT) * DELAY
    what = f"{count:,} items, {IN_FLIGHT} in flight, answers after {DELAY * 1000:.0f} ms"
    return [
        (f"{what}: wall time against the ideal", f"{wall / ideal:.2f} × (of {ideal:.1f} s)", "≤ 1.1 ×"),
        (f"{what}: processor time an item", f"{cpu / count * 1000:.2f} ms", "≤ 5 ms"),
        (f"{what}: peak memory", f"{peak / 1024:.0f} MB", "< 300 MB"),
    ]


def _measure(command: list[str], environment: dict[str, str]) -> tuple[float, float, float]:
    """Seconds on the wall and of the processor, and kilobytes at most, of a command in a process of its own."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    asyncio.run(_serve())
