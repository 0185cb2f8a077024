"""Asking a model everything that a run asks: bounded, resumable, and nothing lost whatever the network does.

One owner of retries, one place where time is read. Every answer goes to the journal as soon as it has come; whatever
ends the process, only answers of its last moment can be missing, and they are asked for again.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from arabic_agent_eval.asking import Exchange, MadeCall, Offer, Request, ToolResult, request_for
from arabic_agent_eval.costs import Cache, Price
from arabic_agent_eval.errors import OutputError, UsageError
from arabic_agent_eval.items import Item
from arabic_agent_eval.journal import REPLIES, TURNS, Journal
from arabic_agent_eval.markup import read_text
from arabic_agent_eval.models.model import Answer, Attempt, Failure, FailureKind, Model
from arabic_agent_eval.pacing import LONGEST_WAIT, Pace, backoff
from arabic_agent_eval.runs import (
    AttemptRecord,
    KeptTurn,
    Pair,
    ReplyRecord,
    Run,
    TurnRecord,
    one_line,
    record_line,
)
from arabic_agent_eval.strictjson import MalformedJSON, decode_clipped
from arabic_agent_eval.world import World, is_conversation

ATTEMPTS = 6
"""How often one request is sent at most, by default."""

_TICK = 0.2  # seconds between two looks at the progress
_BYTES_PER_TOKEN = 3
_MOST_UNWRITTEN = 1_000  # lines
_PATIENCE = 5  # a rate limit is no fault, and many requests wait for one quota: it may be met so many times as often
_HOPELESS: frozenset[FailureKind] = frozenset({"key", "quota", "not_found", "redirect"})
"""Failures that every other request would meet as well."""
_HOPELESS_ENOUGH, _FAILED_ENOUGH = 3, 20
"""So many items in a row may fail, hopelessly or otherwise, after the first answer; then asking stops."""


@dataclass(frozen=True)
class Limits:
    """When to stop.

    Attributes:
        attempts: how often one request may fail, at least 1; a rate limit may be met five times as often.
        deadline: seconds for the whole of the asking, or None.
        max_cost: US dollars; no new request is sent that could exceed them, as far as the dearest answer so far tells.

    Raises:
        UsageError: a number is too small, or is none.
    """

    attempts: int = ATTEMPTS
    deadline: float | None = None
    max_cost: float | None = None

    def __post_init__(self) -> None:
        for name, value, least in (("attempts", self.attempts, 1), ("deadline", self.deadline, 0),
                                   ("max_cost", self.max_cost, 0)):  # fmt: skip
            if value is not None and not value >= least:
                raise UsageError(f"{name} is {value}; give a number of at least {least}.")


@dataclass
class Progress:
    """What has happened so far, for a line of progress.

    Attributes:
        total: items to ask in this session; done: of them, finished; failed: of those, without an answer.
        in_flight: requests under way.
        waiting: why → how many requests wait to be sent again or for leave to be sent.
        seconds: until the next of them goes, where it is known.
        elapsed: seconds since the beginning.
        cost: US dollars of this session, as far as they are known.
    """

    total: int
    done: int = 0
    failed: int = 0
    in_flight: int = 0
    waiting: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    elapsed: float = 0.0
    cost: float = 0.0


@dataclass(frozen=True)
class Ending:
    """How the asking ended.

    Attributes:
        why: ``done``, or what stopped it before everything was asked.
        message: a sentence about it; "" when everything was asked.
    """

    why: Literal["done", "interrupted", "deadline", "cost", "hopeless"]
    message: str = ""


class _Stop(Exception):
    """There is no point in going on."""

    def __init__(self, why: Literal["cost", "hopeless"], message: str) -> None:
        super().__init__(message)
        self.ending = Ending(why, message)


_WHY_WAITING = {"rate_limit": "rate limit", "server": "server error", "connection": "connection"}
_WHY_PACED = {"pause": "rate limit", "requests": "--rpm", "tokens": "--tpm"}


class Runner:
    """Asks a model what a run asks.

    Args:
        run: the run folder; journal: the same, open for writing.
        model: who is asked; pace: how fast.
        limits: when to stop.
        price: of the model, for the cost; None where it is not known.
        cache: answers to identical requests, or None.
        tell: called a few times a second with what has happened so far.
        finished: called with every item's record when it has been kept.
    """

    def __init__(
        self,
        run: Run,
        journal: Journal,
        model: Model,
        pace: Pace,
        *,
        limits: Limits = Limits(),
        price: Price | None = None,
        cache: Cache | None = None,
        tell: Callable[[Progress], None] = lambda _: None,
        finished: Callable[[ReplyRecord], None] = lambda _: None,
    ) -> None:
        self._run, self._journal, self._model, self._pace = run, journal, model, pace
        self._limits, self._price, self._cache, self._tell = limits, price, cache, tell
        self._finished = finished
        if not model.address:  # what is on this machine costs nothing, and its requests do not say all that they ask
            self._cache = None
        self._asked = run.manifest.asked
        self._offer = Offer(run.tools, self._asked.tool_language)
        self._lines: asyncio.Queue[tuple[str, bytes] | None] = asyncio.Queue()
        self._kept: dict[Pair, list[TurnRecord]] = {}
        self._waits: dict[object, tuple[str, float]] = {}
        self._answers, self._in_a_row, self._hopeless_in_a_row = 0, 0, 0
        self._dearest, self._uncounted = 0.0, False
        self._broken: OutputError | None = None
        self.progress = Progress(0)

    def ask(self, workers: int) -> Ending:
        """Ask everything that was not answered yet; an interrupt stops it, and nothing that came is lost.

        Args:
            workers: how many items are under way at once.

        Raises:
            OutputError: an answer could not be kept.
            UsageError: ``workers`` is below 1.
        """
        with _undisturbed():
            return asyncio.run(self.ask_async(workers))

    async def ask_async(self, workers: int) -> Ending:
        """The same inside of an event loop that runs already."""
        if workers < 1:
            raise UsageError(f"workers is {workers}; give a whole number from 1.")
        interrupted = asyncio.Event()
        with _interrupts(interrupted):
            finished = {pair for pair, (_, answered) in self._run.places().items() if answered}
            missing = [pair for pair in self._run.due() if pair not in finished]
            self._kept = self._run.kept_turns(missing)
            self.progress = Progress(len(missing))
            return await self._ask_all(missing, workers, interrupted)

    async def _ask_all(self, pairs: list[Pair], workers: int, interrupted: asyncio.Event) -> Ending:
        began = time.monotonic()
        waiting = iter(pairs)
        writer = asyncio.create_task(self._write_lines())
        working = [asyncio.create_task(self._work(waiting)) for _ in range(min(workers, len(pairs)))]
        ticking = asyncio.create_task(self._tick(began))
        stopping = asyncio.create_task(interrupted.wait())
        try:
            ending = await self._watch(working, {writer, ticking, stopping}, stopping)
        finally:
            # In this order: who waits for an answer stops, what came is written, and then everything is let go.
            await _cancel(*working, stopping, ticking)
            self._lines.put_nowait(None)
            await asyncio.gather(writer, return_exceptions=True)
            await self._model.close()
        if writer.exception() is not None:
            raise writer.exception()  # type: ignore[misc]
        self._update(began)
        return ending

    async def _watch(self, working: list[asyncio.Task[None]], others: set[Any], stopping: asyncio.Task[Any]) -> Ending:
        """Wait until everything is asked, or something is in the way."""
        deadline = self._limits.deadline
        until = None if deadline is None else time.monotonic() + deadline
        left: set[asyncio.Task[Any]] = set(working)
        ending = Ending("done")
        while left:
            timeout = None if until is None else max(until - time.monotonic(), 0.0)
            done, _ = await asyncio.wait({*left, *others}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if stopping in done:
                return Ending("interrupted", "Interrupted.")
            if not done:
                return Ending("deadline", f"The deadline of {deadline:g} seconds has passed.")
            for task in done:
                error = task.exception()
                if isinstance(error, _Stop):
                    ending = error.ending
                elif error is not None:
                    raise error
            if ending.why == "hopeless":
                break
            left -= done  # where the money is spent, answers that are under way are paid for and waited for
        return ending

    async def _work(self, pairs: Iterator[Pair]) -> None:
        for item_id, epoch in pairs:
            await self._ask_item(self._run.items[item_id], epoch)
            await asyncio.sleep(0)  # a model on this machine never waits, and others want to go on too

    # --- one item --------------------------------------------------------------------------------------------

    async def _ask_item(self, item: Item, epoch: int) -> None:
        """The conversation with the simulated tools, until the model has finished or no answer comes."""
        asked = self._asked
        request = request_for(item, self._offer, epoch=epoch, system=asked.system, written=asked.written)
        world = World(item, item.toolbox(self._run.tools)) if is_conversation(item) else None
        kept = {bytes(turn.request): turn for turn in self._kept.pop((item.id, epoch), ())}
        turns: list[TurnRecord] = []
        attempts: list[AttemptRecord] = []
        while True:
            body = self._model.encode(request)
            turn = kept.get(body)  # a request holds its whole conversation, so the same one gets the same answer
            answer = None if turn is None else self._read(bytes(turn.response))
            known = answer is not None
            if turn is None or answer is None:
                found = await self._ask(request, body, len(turns), attempts)
                if isinstance(found, Failure):
                    await self._finish(ReplyRecord(item.id, epoch, "failed", turns, attempts, found.message), found)
                    return
                turn, answer = found
            calls = self._calls(answer, item)
            if world is None or not calls or len(turns) + 1 >= asked.max_turns:
                end: Literal["stopped", "max_turns"] = "max_turns" if world is not None and calls else "stopped"
                turns.append(turn)
                await self._finish(ReplyRecord(item.id, epoch, "answered", turns, attempts, None, end, answer.cut))
                return
            results = tuple(ToolResult(made, world.answer(made.call)) for made in calls)
            turns.append(msgspec.structs.replace(turn, results=[result.content for result in results]))
            if not known:
                await self._keep(TURNS, record_line(KeptTurn(item.id, epoch, turns[-1])))
            exchange = Exchange(decode_clipped(bytes(turn.response)), results)
            request = msgspec.structs.replace(request, exchanges=(*request.exchanges, exchange))

    def _read(self, body: bytes) -> Answer | None:
        """What a body says that was kept earlier; None where it is no answer any more."""
        try:
            value = decode_clipped(body)
        except MalformedJSON:
            return None
        read = self._model.read(value) if isinstance(value, dict) else None
        return read if isinstance(read, Answer) else None

    def _calls(self, answer: Answer, item: Item) -> tuple[MadeCall, ...]:
        if not self._asked.written:
            return answer.calls
        return tuple(MadeCall(None, call) for call in read_text(answer.text, item.offered))

    async def _finish(self, record: ReplyRecord, failure: Failure | None = None) -> None:
        await self._keep(REPLIES, record_line(record))
        self._finished(record)
        self.progress.done += 1
        if failure is None:
            return
        self.progress.failed += 1
        self._in_a_row += 1
        self._hopeless_in_a_row += failure.kind in _HOPELESS
        hopeless = self._hopeless_in_a_row >= (_HOPELESS_ENOUGH if self._answers else 1)
        if hopeless or self._in_a_row >= _FAILED_ENOUGH:
            many = "" if self._in_a_row == 1 else f" ({self._in_a_row} items in a row failed)"
            raise _Stop("hopeless", f"Asking was stopped{many}: {failure.message}")

    # --- one request -----------------------------------------------------------------------------------------

    async def _ask(
        self, request: Request, body: bytes, turn: int, attempts: list[AttemptRecord]
    ) -> tuple[TurnRecord, Answer] | Failure:
        """Send a request until an answer comes or there is no point in going on."""
        if (cached := self._cached(request, body)) is not None:
            return cached
        limited = failed = 0
        while True:
            attempt, read = await self._attempt(body, turn, attempts)
            if isinstance(read, Answer):
                return self._answered(request, body, attempt, read), read
            failure = read
            is_limit = failure.kind == "rate_limit"
            limited, failed = limited + is_limit, failed + (not is_limit)
            wait = backoff(limited if is_limit else failed, failure.wait, random.random) if failure.retry else None
            if wait is None or failed >= self._limits.attempts or limited >= self._limits.attempts * _PATIENCE:
                return failure if limited + failed == 1 else _after(failure, limited + failed)
            await self._wait(failure, wait)

    async def _attempt(self, body: bytes, turn: int, attempts: list[AttemptRecord]) -> tuple[Attempt, Answer | Failure]:
        self._check_cost(1)
        async with self._pace.slot(len(body) // _BYTES_PER_TOKEN) as slot:
            self._check_cost(0)  # others may have spent what was left while this one waited
            at = datetime.now(UTC).isoformat(timespec="milliseconds")
            attempt = await self._model.attempt(body)
            read = attempt.failure or self._model.read(decode_clipped(attempt.body))
            if isinstance(read, Answer) and read.tokens is not None:
                slot.settle(read.tokens.input + read.tokens.output)
        kind, message = None, None
        if isinstance(read, Answer):
            self._pace.succeeded()
        else:
            kind, message = read.kind, read.message
            if kind == "rate_limit":
                # Who asks for more than anybody waits for gets no answer, and the others are not held up.
                self._pace.limited(read.wait if (read.wait or 0.0) <= LONGEST_WAIT else None)
        attempts.append(
            AttemptRecord(turn, at, round(attempt.latency, 4), attempt.status, kind, message, attempt.excerpt)
        )
        return attempt, read

    def _answered(self, request: Request, body: bytes, attempt: Attempt, read: Answer) -> TurnRecord:
        self._answers += 1
        self._in_a_row = self._hopeless_in_a_row = 0
        turn = self._turn(body, attempt.body, round(attempt.latency, 4), read)
        if turn.cost is not None:
            self.progress.cost += turn.cost
            self._dearest = max(self._dearest, turn.cost)
        elif self._model.address:  # what is on this machine costs nothing
            self._uncounted = True
        if self._cache is not None:
            try:
                self._cache.keep(self._model.name, self._model.address, request.epoch, body, attempt.body)
            except OutputError as error:
                self._broken = error  # raised when the answer, which is paid for, is in the journal
        return turn

    def _turn(self, body: bytes, answer: bytes, latency: float | None, read: Answer) -> TurnRecord:
        cost = read.cost
        if cost is None and self._price is not None and read.tokens is not None:
            cost = self._price.of(read.tokens)
        return TurnRecord(msgspec.Raw(body), one_line(answer), read.tokens, cost, [], latency)

    def _cached(self, request: Request, body: bytes) -> tuple[TurnRecord, Answer] | None:
        if self._cache is None:
            return None
        found = self._cache.find(self._model.name, self._model.address, request.epoch, body)
        read = None if found is None else self._read(found)
        return None if found is None or read is None else (self._turn(body, found, None, read), read)

    def _check_cost(self, more: int) -> None:
        most = self._limits.max_cost
        if most is None:
            return
        if self._uncounted:
            what = "What an answer cost is not known, so --max-cost cannot be kept; give its price with --prices."
            raise _Stop("cost", what)
        if self.progress.cost + (self._pace.state().in_flight + more) * self._dearest > most:
            raise _Stop("cost", f"The next request could cost more than is left of --max-cost {most:g}.")

    async def _wait(self, failure: Failure, seconds: float) -> None:
        key = object()
        self._waits[key] = _WHY_WAITING.get(failure.kind, failure.kind.replace("_", " ")), time.monotonic() + seconds
        try:
            await asyncio.sleep(seconds)
        finally:
            del self._waits[key]

    # --- writing and telling ---------------------------------------------------------------------------------

    async def _keep(self, name: str, line: bytes) -> None:
        """Hand a line to the writer; who asks does not wait for the disk, unless very much waits for it already."""
        self._lines.put_nowait((name, line))
        if self._broken is not None:
            raise self._broken
        while self._lines.qsize() > _MOST_UNWRITTEN:
            await asyncio.sleep(_TICK)

    async def _write_lines(self) -> None:
        """Write what has come, all that is there at once: making lines durable is what takes the time."""
        entry = await self._lines.get()
        while entry is not None:
            lines: dict[str, bytes] = {}
            while entry is not None:
                lines[entry[0]] = lines.get(entry[0], b"") + entry[1]
                if self._lines.empty():
                    break
                entry = self._lines.get_nowait()
            await asyncio.to_thread(self._journal.append, lines)
            entry = entry and await self._lines.get()

    async def _tick(self, began: float) -> None:
        while True:
            self._update(began)
            await asyncio.sleep(_TICK)

    def _update(self, began: float) -> None:
        state, now, progress = self._pace.state(), time.monotonic(), self.progress
        progress.elapsed, progress.in_flight = now - began, state.in_flight
        progress.waiting = Counter(why for why, _ in self._waits.values())
        until = [end - now for _, end in self._waits.values()]
        if state.why in _WHY_PACED:
            progress.waiting[_WHY_PACED[state.why]] += state.waiting
            until.append(state.seconds)
        progress.seconds = max(min(until, default=0.0), 0.0)
        with contextlib.suppress(OSError):  # a terminal that has gone is no reason to stop
            self._tell(progress)


def _after(failure: Failure, tries: int) -> Failure:
    return msgspec.structs.replace(failure, message=f"{failure.message.rstrip('.')} ({tries} attempts).")


async def _cancel(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.contextmanager
def _handling(handler: Callable[[int, Any], None]) -> Iterator[None]:
    """Let Ctrl-C and a request to end go to the handler; elsewhere than in the main thread they are the caller's."""
    before: dict[signal.Signals, Any] = {}
    with contextlib.suppress(ValueError):
        for name in (signal.SIGINT, signal.SIGTERM):
            before[name] = signal.signal(name, handler)
    try:
        yield
    finally:
        for name, old in before.items():
            signal.signal(name, old)


def _undisturbed() -> contextlib.AbstractContextManager[None]:
    """Let no signal into the making and closing of the loop, which take a moment and would be left half done."""
    return _handling(lambda *_: None)


@contextlib.contextmanager
def _interrupts(event: asyncio.Event) -> Iterator[None]:
    """Ctrl-C and a request to end set the event; after a second one, the next ends the process at once.

    An exception in the midst of the loop, which is what a signal usually is, can leave a task that never wakes.
    """
    loop = asyncio.get_running_loop()
    came = False

    def interrupt(number: int, _: object) -> None:
        nonlocal came
        if came:
            signal.signal(number, signal.SIG_DFL)
        else:
            came = True
            loop.call_soon_threadsafe(event.set)

    with _handling(interrupt):
        yield
