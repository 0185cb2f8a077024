"""Everything that a network and a provider can do to a run: it ends, it says why, and it can be gone on with."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import time
from collections import Counter
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any

import pytest

from arabic_agent_eval.models.model import Settings
from arabic_agent_eval.pacing import Pace
from arabic_agent_eval.regrading import grade_run
from arabic_agent_eval.runs import Run
from tests import faults
from tests.chats import (
    GUARD,
    Provider,
    ask,
    ask_server,
    completion,
    grades_of,
    hasten,
    lines_of,
    model_at,
    rows_of,
    run_in,
)
from tests.faults import FaultServer

ROWS = rows_of(4)
REQUESTS = 6  # three items with one answer, and a conversation of three
SHORT = {"timeout": 0.25}
GOOD = completion(*ROWS[0]["expected_calls"])


def error(code: int, message: str, /, **more: Any) -> faults.Reply:
    """An error as OpenAI words it."""
    return faults.status(code, json.dumps({"error": {"message": message, **more}}, ensure_ascii=False).encode())


def limited(headers: dict[str, str]) -> faults.Reply:
    """A rate limit."""
    return faults.status(429, b'{"error": {"message": "slow down"}}', headers)


@dataclass(frozen=True)
class Fault:
    """A fault, the kind of failure that it is, and whether asking again may help."""

    reply: faults.Reply
    kind: str
    again: bool = True


FAULTS = {
    "rate limit with a time": Fault(limited({"retry-after": "0.03"}), "rate_limit"),
    "rate limit in milliseconds": Fault(limited({"retry-after-ms": "30"}), "rate_limit"),
    "rate limit until a date": Fault(limited({"retry-after": formatdate(0, usegmt=True)}), "rate_limit"),
    "rate limit without a time": Fault(limited({}), "rate_limit"),
    "rate limit with nonsense": Fault(limited({"retry-after": "-1; غدا".encode().decode("latin-1")}), "rate_limit"),
    "rate limit until next month": Fault(limited({"retry-after": "2592000"}), "rate_limit", again=False),
    "server error": Fault(error(500, "خلل في الخادم"), "server"),
    "bad gateway": Fault(faults.page(502), "server"),
    "overloaded": Fault(error(529, "Overloaded"), "server"),
    "timeout of a gateway": Fault(faults.status(408), "server"),
    "silence": Fault(faults.silence(), "timeout"),
    "slow drip": Fault(faults.drip(GOOD, 1, 0.05), "timeout"),
    "reset": Fault(faults.hang_up(reset=True), "connection"),
    "hang up": Fault(faults.hang_up(), "connection"),
    "cut": Fault(faults.cut(GOOD, 40), "connection"),
    "cut by a reset": Fault(faults.cut(GOOD, 40, reset=True), "connection"),
    "cut between chunks": Fault(faults.chunked(GOOD[:40], last=False), "connection"),
    "not HTTP": Fault(faults.raw(b"220 mail.example ESMTP\r\n\r\n"), "malformed"),
    "half a header": Fault(faults.raw(b"HTTP/1.1 200 OK\r\ncontent-le"), "connection"),
    "a length below nothing": Fault(faults.raw(b"HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\n"), "malformed"),
    "an error with status 200": Fault(
        faults.ok(b'{"error": {"message": "overloaded", "type": "server_error"}}'), "server"
    ),
    "a rate limit with status 200": Fault(faults.ok(b'{"error": {"message": "slow down", "code": 429}}'), "rate_limit"),
    "web page": Fault(faults.page(), "malformed"),
    "nothing": Fault(faults.ok(b""), "malformed"),
    "status 204": Fault(faults.status(204), "malformed"),
    "half an object": Fault(faults.ok(GOOD[:40]), "malformed"),
    "a list": Fault(faults.ok(b"[]"), "malformed"),
    "no choices": Fault(faults.ok(b'{"choices": []}'), "malformed"),
    "not UTF-8": Fault(faults.ok(GOOD.replace(b"call_0", b"\xff")), "malformed"),
    "compressed twice": Fault(faults.zipped(GOOD, "br"), "malformed"),
    "quota": Fault(error(429, "You exceeded your quota", code="insufficient_quota"), "quota", again=False),
    "key": Fault(error(401, "Incorrect API key provided"), "key", again=False),
    "no such model": Fault(error(404, "no such model"), "not_found", again=False),
    "bad request": Fault(error(400, "max_tokens is too large"), "request", again=False),
    "redirect": Fault(faults.redirect(301, "https://elsewhere.example/"), "redirect", again=False),
    "redirect to nowhere": Fault(faults.redirect(302, None), "redirect", again=False),
    "content filter": Fault(error(400, "filtered", code="content_filter"), "filtered", again=False),
    "endless": Fault(faults.endless(), "too_large", again=False),
    "endless error": Fault(faults.endless(500), "server"),
}  # fmt: skip
HOPELESS = {"quota", "key", "not_found", "redirect"}


@pytest.fixture(autouse=True)
def waits(monkeypatch):
    """Nobody waits long for another attempt; the times that were meant."""
    return hasten(monkeypatch)


def by_pair(run: Run) -> dict[Any, Any]:
    return {(record.id, record.epoch): record for record in run.records()}


def attempts_in(run: Run) -> list[dict[str, Any]]:
    """Every attempt that the journal tells of."""
    return [attempt for line in lines_of(run.folder / "replies.jsonl") for attempt in line["attempts"]]


def assert_all_right(run: Run) -> None:
    """Every item was answered in the end, in each epoch, and rightly."""
    records = by_pair(run)
    assert list(records) == list(run.due())
    assert {record.status for record in records.values()} == {"answered"}
    assert grades_of(run) == [1.0] * len(records)


PATIENCE = Counter({"rate_limit": 4})
"""How often a kind of failure may be met beyond the number of attempts, in multiples of it."""


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_that_passes(tmp_path, name):
    """What may help is tried again at once; what cannot fails its items with a reason; then everything is answered."""
    fault, run = FAULTS[name], run_in(tmp_path / "run", ROWS)
    provider = Provider(ROWS, first=fault.reply)

    with FaultServer(provider) as server:
        ending = ask(run, model_at(f"{server.url}/v1", **SHORT), workers=1, attempts=4)
        attempts = attempts_in(run)

        assert len(attempts) == len(server.seen)
        assert {attempt["kind"] for attempt in attempts if "kind" in attempt} == {fault.kind}
        assert all(attempt["message"] for attempt in attempts if "kind" in attempt)
        if fault.again:
            assert ending.why == "done"
            assert len(server.seen) == 2 * REQUESTS
        else:
            assert ending.why == ("hopeless" if fault.kind in HOPELESS else "done")
            assert {record.status for record in by_pair(run).values()} >= {"failed"}
            for _ in range(REQUESTS):  # each request meets its fault once, and hopeless ones end a session
                ask(run, model_at(f"{server.url}/v1", **SHORT), workers=1)
    assert_all_right(run)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_that_stays(tmp_path, name, waits):
    """Every item fails with its reason, or asking stops early; the journal tells of all attempts; then it goes on."""
    fault, run = FAULTS[name], run_in(tmp_path / "run", ROWS)

    ending, server = ask_server(run, fault.reply, model=SHORT, workers=1, attempts=2)

    failed = by_pair(run)
    assert {record.status for record in failed.values()} == {"failed"}
    assert len(failed) == (1 if fault.kind in HOPELESS else len(ROWS))
    assert ending.why == ("hopeless" if fault.kind in HOPELESS else "done")
    for record in failed.values():
        assert record.error is not None
        assert record.error.startswith((record.attempts[0].message or "?").rstrip("."))
        assert {attempt.kind for attempt in record.attempts} == {fault.kind}
        assert len(record.attempts) == (2 * (1 + PATIENCE[fault.kind]) if fault.again else 1)
    assert sum(len(record.attempts) for record in failed.values()) == len(server.seen)
    assert set(grades_of(run)) == {None}
    _, figures = grade_run(run)
    assert figures.attempts == len(server.seen)

    ending, server = ask_server(run, Provider(ROWS), workers=3)

    assert ending.why == "done"
    assert len(server.seen) == REQUESTS
    assert_all_right(run)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_mid_conversation(tmp_path, name):
    """A conversation that breaks after its first answer is not begun again: that answer is kept and asked once."""
    fault, rows = FAULTS[name], rows_of(1, conversations=1)
    run, provider = run_in(tmp_path / "run", rows), Provider(rows)

    def breaking(seen: faults.Seen) -> faults.Reply:
        return fault.reply if b'"tool_call_id"' in seen.body else provider(seen)

    ask_server(run, breaking, model=SHORT, attempts=1)
    [record] = run.records()
    assert (record.status, len(record.turns), [one.turn for one in record.attempts]) == (
        "failed",
        1,
        [0] + [1] * (1 + PATIENCE[fault.kind] * fault.again),
    )

    ask_server(run, provider)
    assert_all_right(run)
    assert sorted(provider.asked.values()) == [1, 1, 1]


def test_nobody_listens(tmp_path):
    """A refused connection is a reason; when somebody listens there later, everything is answered."""
    run = run_in(tmp_path / "run", ROWS)
    with faults.closed_port() as port:
        ask(run, model_at(f"http://127.0.0.1:{port}/v1"))
    assert {record.error for record in run.records()} == {
        f"127.0.0.1:{port} refused the connection; check that a server is running there, and its port (2 attempts)."
    }
    assert len(attempts_in(run)) == 2 * len(ROWS)

    ask_server(run, Provider(ROWS))
    assert_all_right(run)


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("http://nobody.invalid/v1", "nobody.invalid"),
        ("https://127.0.0.1:{port}/v1", "127.0.0.1"),
        ("http://[::1]:1/v1", "[::1]:1"),
    ],
)
def test_no_connection_comes_about(tmp_path, address, says):
    """An unknown host, a server without TLS and a closed port fail every item with a sentence that names the host."""
    run = run_in(tmp_path / "run", ROWS)
    with FaultServer(Provider(ROWS)) as server:
        ask(run, model_at(address.format(port=server.port), connect_timeout=5.0, timeout=10.0), attempts=1)
        assert not server.seen
    for record in run.records():
        assert record.status == "failed"
        assert record.error is not None
        assert says in record.error

    ask_server(run, Provider(ROWS))
    assert_all_right(run)


@pytest.mark.parametrize("script", [["x" * 10_000_000, "application/json"], ["قصير", "text/plain"], ["", ""]])
def test_odd_answers_that_count(tmp_path, script):
    """Ten megabytes, and another or no content type, are answers all the same."""
    text, content_type = script
    run = run_in(tmp_path / "run", ROWS[:1])

    ask_server(run, faults.ok(completion(text=text), content_type), model={"max_answer": 1 << 25})

    [record] = run.records()
    assert record.status == "answered"
    _, said = run.reply(record)
    assert said == text


def test_a_storm_of_rate_limits(tmp_path):
    """Two of three requests are refused for a while: with many at once everything is answered, and fewer go at once."""
    rows = rows_of(30)
    run, provider, pace = run_in(tmp_path / "run", rows), Provider(rows), Pace(16)
    numbers = itertools.count()
    most = 0

    def stormy(seen: faults.Seen) -> faults.Reply:
        nonlocal most
        most = max(most, pace.state().in_flight)
        return limited({"retry-after": "0.02"}) if next(numbers) % 3 else provider(seen)

    ending, server = ask_server(run, stormy, workers=16, attempts=60, pace=pace)

    assert ending.why == "done"
    assert most <= 16
    assert pace.state().allowed < 16
    assert len(attempts_in(run)) == len(server.seen)
    assert_all_right(run)


@pytest.mark.parametrize("seed", range(3))
def test_a_mix_of_everything(tmp_path, seed):
    """Half of all requests meet some fault: everything is answered in the end, and every attempt is told of."""
    chance, rows = random.Random(seed), rows_of(24)
    run, provider = run_in(tmp_path / "run", rows, epochs=2), Provider(rows)
    passing = [fault.reply for fault in FAULTS.values() if fault.again and fault.kind != "timeout"]

    ending, server = ask_server(
        run,
        lambda seen: chance.choice(passing) if chance.random() < 0.5 else provider(seen),
        workers=8,
        attempts=100,
    )

    assert ending.why == "done"
    assert len(attempts_in(run)) == len(server.seen)
    assert_all_right(run)


def test_who_asks_for_a_month_does_not_hold_up_the_others(tmp_path):
    """One item is told to wait for a month: it fails at once, and nobody waits ten minutes for its sake."""
    run, provider = run_in(tmp_path / "run", ROWS), Provider(ROWS)

    def refusing(seen: faults.Seen) -> faults.Reply:
        first = ROWS[0]["instruction"].encode() in seen.body
        return limited({"retry-after": "2592000"}) if first else provider(seen)

    ending, _ = ask_server(run, refusing, workers=2, attempts=3)

    assert ending.why == "done"
    assert [record.status for record in run.records()] == ["failed", "answered", "answered", "answered"]


@pytest.mark.parametrize("jump", [1e6, -1e6, 4e9, -2e9])
def test_clocks_that_jump(tmp_path, monkeypatch, jump):
    """The wall clock may go back and forth: waits by date, times and ends do not depend on it."""
    run, numbers = run_in(tmp_path / "run", ROWS), itertools.count()
    usual = time.time
    monkeypatch.setattr(time, "time", lambda: usual() + (jump if next(numbers) % 2 else 0))
    in_a_moment = limited({"retry-after": formatdate(usual() + 1, usegmt=True)})

    first, _ = ask_server(run, Provider(ROWS, first=in_a_moment), attempts=4, deadline=30)
    assert first.why == "done"  # a date that seems far away is not waited for, and its item fails
    ask_server(run, Provider(ROWS), attempts=4, deadline=30)

    assert_all_right(run)


def test_a_server_that_dies_and_comes_back(tmp_path):
    """A server that is gone for a while in mid-run costs attempts and nothing else."""
    rows = rows_of(12)
    run, provider = run_in(tmp_path / "run", rows, epochs=2), Provider(rows, delay=0.005)

    async def go() -> None:
        server = FaultServer(provider)
        async with server:
            asking = asyncio.create_task(asyncio.to_thread(ask, run, model_at(f"{server.url}/v1"), attempts=10_000))
            while len(server.seen) < 12:
                await asyncio.sleep(0.001)
        await asyncio.sleep(0.05)
        async with server:
            ending = await asyncio.wait_for(asking, GUARD)
            assert ending.why == "done"

    asyncio.run(go())
    assert_all_right(run)
    assert {attempt["kind"] for attempt in attempts_in(run) if "kind" in attempt} == {"connection"}


def test_a_server_that_stays_away(tmp_path):
    """After twenty items in a row without an answer asking stops and says why; a later session finishes the run."""
    rows = rows_of(60, conversations=0)
    run, provider = run_in(tmp_path / "run", rows), Provider(rows)

    def dying(seen: faults.Seen) -> faults.Reply:
        return faults.hang_up() if len(provider.asked) >= 10 else provider(seen)

    ending, _ = ask_server(run, dying, workers=4)

    assert ending.why == "hopeless"
    assert ending.message.startswith("Asking was stopped (20 items in a row failed): 127.0.0.1:")
    statuses = [record.status for record in run.records()]
    assert (statuses.count("answered"), statuses.count("failed")) == (10, 20)
    ask_server(run, Provider(rows))
    assert_all_right(run)


HOSTILE = {
    "deep": b'{"place": ' + b"[" * 20_000 + b"]" * 20_000 + b"}",
    "half a pair": b'{"place": "\\ud83d"}',
    "a long number": b'{"place": ' + b"9" * 5_000 + b"}",
    "a number out of range": b'{"place": 1e300}',
    "controls": b'{"place": "\\u0000\\u001b[31m\\u202e\\u2028"}',
    "line breaks": b'\r\n\t{\r\n"place":\r"x"\n}\n',
    "twice": b'{"place": 1, "place": 2}',
    "no object": b"null",
}


@pytest.mark.parametrize("shape", ["object", "text"])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_answers_are_kept_and_graded(tmp_path, name, shape):
    """Whatever a model writes as arguments, its answer is kept, sent back, read again on resuming, and graded."""
    rows = rows_of(2, conversations=2)
    run = run_in(tmp_path / "run", rows)
    written = HOSTILE[name] if shape == "object" else json.dumps(HOSTILE[name].decode()).encode()
    spoilt = completion({"function": "find_road", "arguments": "HERE"}).replace(rb'"\"HERE\""', written)
    asked = 0

    def hostile(seen: faults.Seen) -> faults.Reply:
        nonlocal asked
        asked += 1
        return faults.ok(spoilt) if asked < 4 else error(400, "enough")

    with FaultServer(hostile) as server:
        model = {"settings": Settings("m", parameters={"user": "سارة"})}
        ask(run, model_at(f"{server.url}/v1", **model), workers=1, attempts=1)
        assert [record.status for record in Run.read(run.folder).records()] == ["answered", "failed"]
        assert asked == 4
        ask(run, model_at(f"{server.url}/v1", **model), workers=1, attempts=1)
        assert asked == 5  # the two answers of the conversation that are there were not asked for again

    first, second = grades_of(Run.read(run.folder))
    assert first is not None
    assert 0 <= first <= 1
    assert second is None
