"""What a run costs and tells: limits on the cost, the cache, and the progress."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from arabic_agent_eval import runner as runner_module
from arabic_agent_eval.costs import Cache, Price
from arabic_agent_eval.errors import OutputError
from arabic_agent_eval.models.model import Failure
from arabic_agent_eval.pacing import Pace
from arabic_agent_eval.regrading import grade_run
from tests.chats import (
    Pretence,
    Provider,
    ask,
    charging,
    completion,
    grades_of,
    hasten,
    right,
    rows_of,
    run_in,
    statuses,
)


@pytest.fixture(autouse=True)
def waits(monkeypatch):
    """Nobody waits long for another attempt; the times that were meant."""
    return hasten(monkeypatch)


# --- money ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("workers", "asked"), [(1, 5), (4, 5), (8, 8)])
def test_a_limit_on_the_cost(tmp_path, workers, asked):
    """The sum is not exceeded once the price of an answer is known; what was under way before is paid for and kept."""
    run = run_in(tmp_path / "run", rows_of(30, conversations=0))
    model = charging(1.0, delay=0.01)

    ending = ask(run, model, workers=workers, max_cost=5.5)

    assert ending.why == "cost"
    assert len(model.asked) == asked
    assert statuses(run) == ["answered"] * asked
    assert grade_run(run)[1].cost == asked


def test_who_waits_for_leave_looks_again_at_the_cost(tmp_path):
    """A request that had to wait does not spend what others have spent meanwhile."""
    run = run_in(tmp_path / "run", rows_of(30, conversations=0))
    model = charging(1.0, delay=0.01)

    assert ask(run, model, workers=8, pace=Pace(2), max_cost=3.5).why == "cost"
    assert len(model.asked) == 3


def test_who_may_not_pay_does_not_wait_for_leave(tmp_path):
    """When the money is spent nobody waits for a minute to be over to learn it."""
    run = run_in(tmp_path / "run", rows_of(3, conversations=0))
    assert ask(run, charging(1.0), workers=1, pace=Pace(1, rpm=1), max_cost=1.5, deadline=20).why == "cost"
    assert statuses(run) == ["answered"]


@pytest.mark.parametrize("workers", [1, 3])
def test_a_cost_that_nobody_counts(tmp_path, workers):
    """An answer whose price is not known is kept, and no further one is asked for."""
    run = run_in(tmp_path / "run", rows_of(9, conversations=0))
    model = Pretence(lambda _: completion(text="لا", usage=None))

    ending = ask(run, model, workers=workers, max_cost=1.0)

    assert ending.why == "cost"
    assert "What an answer cost is not known" in ending.message
    assert statuses(run) == ["answered"] * len(model.asked)
    assert len(model.asked) <= workers
    assert grade_run(run)[1].cost is None


# --- the cache -----------------------------------------------------------------------------------------------


def test_a_cache_saves_asking(tmp_path):
    """A second run of the same takes every answer from the cache; another epoch, model or address does not."""
    rows, cache = rows_of(3), Cache(tmp_path / "cache")
    ask(run_in(tmp_path / "first", rows), right(rows), cache=cache)

    same = right(rows)
    second = run_in(tmp_path / "second", rows, epochs=2)
    ask(second, same, cache=cache)
    assert len(same.asked) == 2 + 3
    assert grades_of(second) == [1.0] * 6
    assert {turn.latency for record in second.records() if record.epoch == 0 for turn in record.turns} == {None}

    for place, other in enumerate([{"name": "openai-chat/other"}, {"address": "http://b/v1"}]):
        model = right(rows, **other)
        ask(run_in(tmp_path / str(place), rows), model, cache=cache)
        assert len(model.asked) == 5


def test_a_model_on_this_machine_has_no_cache(tmp_path):
    """Requests to what is on this machine do not say all that they ask, so their answers are not remembered."""
    rows, cache = rows_of(3), Cache(tmp_path / "cache")
    for name in ("first", "second"):
        model = right(rows, address="")
        ask(run_in(tmp_path / name, rows), model, cache=cache)
        assert len(model.asked) == 5
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"error": {"message": "x"}}', b"[" * 100_000])
def test_a_damaged_cache(tmp_path, content):
    """What is no answer is asked for again, and replaced."""
    rows, cache = rows_of(1), Cache(tmp_path / "cache")
    ask(run_in(tmp_path / "first", rows), right(rows), cache=cache)
    [path] = (tmp_path / "cache").rglob("*.json")
    path.write_bytes(content)

    model = right(rows)
    ask(run_in(tmp_path / "second", rows), model, cache=cache)

    assert len(model.asked) == 1
    assert path.read_bytes() == Provider(rows).answer(model.asked[0])


@pytest.mark.parametrize("rows", [rows_of(3, conversations=0), rows_of(3, conversations=1)])
def test_a_cache_that_cannot_be_written(tmp_path, rows):
    """The answer that did not fit into the cache is paid for: it is in the journal before the reason is said."""
    (tmp_path / "cache").write_bytes(b"")
    run, model = run_in(tmp_path / "run", rows), right(rows)

    with pytest.raises(OutputError, match="answers cannot be kept there: "):
        ask(run, model, workers=1, cache=Cache(tmp_path / "cache"))

    assert len(model.asked) == 1
    again = right(rows)
    ask(run, again, workers=1)
    assert model.asked[0] not in again.asked
    assert grades_of(run) == [1.0] * 3


# --- progress ------------------------------------------------------------------------------------------------


def test_progress_is_told(tmp_path, monkeypatch):
    """What is done, failed and under way, what waits and why, and what it has cost so far."""
    monkeypatch.setattr(runner_module, "_TICK", 0.001)
    rows = rows_of(6, conversations=0)
    run, counted = run_in(tmp_path / "run", rows), itertools.count()
    told: list[Any] = []

    async def say(_: bytes) -> Any:
        await asyncio.sleep(0.005)
        number = next(counted)
        if number == 0:
            return Failure("server", "خلل.", retry=True, wait=20.0)
        return Failure("request", "لا.") if number == 1 else completion(text="لا")

    def tell(progress: Any) -> None:
        told.append((progress.done, progress.failed, progress.in_flight, dict(progress.waiting), progress.seconds > 0))

    ask(run, Pretence(say), workers=2, price=Price(100.0, 0.0), tell=tell)

    assert told[-1] == (6, 1, 0, {}, False)
    assert {one[2] for one in told} <= {0, 1, 2}
    assert any(one[2] == 2 for one in told)
    assert any(one[3] == {"server error": 1} and one[4] for one in told)


def test_progress_tells_of_the_pace(tmp_path, monkeypatch):
    """Requests that wait for leave are told with the option that holds them up."""
    monkeypatch.setattr(runner_module, "_TICK", 0.001)
    rows, told = rows_of(6, conversations=0), []
    run = run_in(tmp_path / "run", rows)

    ask(run, right(rows), workers=3, pace=Pace(3, rpm=2), deadline=0.2, tell=lambda now: told.append(dict(now.waiting)))

    assert {"--rpm": 3} in told
    assert statuses(run) == ["answered", "answered"]


def test_nothing_to_ask(tmp_path):
    """A finished run asks nothing, and tells so once."""
    rows, told = rows_of(1), []
    run = run_in(tmp_path / "run", rows)
    ask(run, right(rows))
    ask(run, right(rows), tell=lambda now: told.append((now.total, now.done)))
    assert told[-1] == (0, 0)
