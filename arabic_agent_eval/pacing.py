"""How fast to ask: how many requests at once, how many in a minute, and how long to wait after a failure.

Nothing here sends anything. Time comes from a clock and a sleep that the caller may give.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

import msgspec

from arabic_agent_eval.errors import UsageError

LONGEST_WAIT = 600.0
"""Seconds that a provider may ask to wait; who asks for more is not waited for."""

COOLDOWN = 15.0
"""Seconds in which all rate limits count as one: requests that were on their way together meet the same limit."""

_SHRINK = 0.8
_MINUTE = 60.0
_FIRST_STEP, _LONGEST_STEP, _STEPS = 1.0, 60.0, 6
_SHORTEST_NAP, _LONGEST_NAP = 0.001, 1.0  # seconds; a longer nap would miss tokens that came in cheaper than estimated

Why = Literal["", "slots", "pause", "requests", "tokens"]
"""What the next request waits for: nothing, a free slot, the end of a pause, the cap on requests or on tokens."""


def backoff(
    attempt: int, wait: float | None, random: Callable[[], float], *, longest: float = LONGEST_WAIT
) -> float | None:
    """Seconds to wait before the next attempt: exponential with full jitter, on top of what the provider asked for.

    Args:
        attempt: how many attempts have failed so far, from 1; the bound is 1 second then, and doubles up to 60.
        wait: seconds that the provider asked to wait, or None.
        random: gives numbers in [0, 1).
        longest: seconds beyond which the provider's wish means giving up.

    Returns:
        None where there is no point in waiting.
    """
    asked = wait if wait is not None and wait > 0 else 0.0
    if asked > longest:
        return None
    step = _FIRST_STEP * 2.0 ** min(max(attempt - 1, 0), _STEPS)
    return asked + random() * min(step, _LONGEST_STEP)


class PaceState(msgspec.Struct, frozen=True):
    """What a pace is doing at a moment.

    Attributes:
        in_flight: slots that are taken; waiting: how many want one.
        allowed: slots that may be taken now; limit: the most that may ever be.
        why: what the next request waits for.
        seconds: until that is over where it is known, else 0.
    """

    in_flight: int
    waiting: int
    allowed: int
    limit: int
    why: Why
    seconds: float


@dataclass(eq=False)
class _Charge:
    """What one request took out of a minute."""

    at: float
    amount: int
    counted: bool = True


class _Minute:
    """A cap on what is spent in any 60 seconds."""

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._charges: deque[_Charge] = deque()
        self._spent = 0

    def delay(self, amount: int, now: float) -> float:
        """Seconds until the amount fits; one that never fits waits until nothing else is counted."""
        self._forget(now)
        excess = self._spent + amount - self._cap
        delay = 0.0
        for charge in self._charges:
            if excess <= 0:
                break
            excess -= charge.amount
            delay = charge.at + _MINUTE - now
        return delay

    def charge(self, amount: int, now: float) -> _Charge:
        charge = _Charge(now, amount)
        self._charges.append(charge)
        self._spent += amount
        return charge

    def settle(self, charge: _Charge, amount: int) -> None:
        if charge.counted:
            self._spent += amount - charge.amount
            charge.amount = amount

    def _forget(self, now: float) -> None:
        while self._charges and self._charges[0].at + _MINUTE <= now:
            old = self._charges.popleft()
            old.counted = False
            self._spent -= old.amount


class Slot:
    """Leave to send one request."""

    def __init__(self, tokens: _Minute | None, charge: _Charge | None) -> None:
        self._tokens, self._charge = tokens, charge

    def settle(self, tokens: int) -> None:
        """Say how many tokens the request took in truth; without this, the estimate stands."""
        if self._tokens is not None and self._charge is not None:
            self._tokens.settle(self._charge, max(tokens, 0))


class Pace:
    """Decides when the next request may go, in the order of asking.

    At most ``allowed`` requests are under way; that starts at ``limit``, shrinks to four fifths when a provider says
    that it was too much, and grows back by one with every round of successes. Optional caps bound requests and tokens
    in any 60 seconds. It belongs to one event loop. Wait for a retry outside of a slot, or the wait takes up the slot.
    """

    def __init__(
        self,
        limit: int,
        *,
        rpm: int | None = None,
        tpm: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Begin with all slots free.

        Args:
            limit: requests at once, at least 1.
            rpm: requests in a minute, at least 1; None for no cap.
            tpm: tokens in a minute, at least 1; None for no cap. A request that is larger goes when no other counts.
            clock: seconds that never go backwards.
            sleep: waits for some of the clock's seconds.

        Raises:
            UsageError: a number below 1.
        """
        for name, value in (("limit", limit), ("rpm", rpm), ("tpm", tpm)):
            if value is not None and value < 1:
                raise UsageError(f"{name} is {value}; give a whole number from 1, or leave it out for none.")
        self._limit, self._allowed, self._in_flight = limit, limit, 0
        self._requests = _Minute(rpm) if rpm is not None else None
        self._tokens = _Minute(tpm) if tpm is not None else None
        self._clock, self._sleep = clock, sleep
        self._held_until = self._shrunk_at = -math.inf
        self._successes = 0
        self._queue: deque[_Ticket] = deque()

    @contextlib.asynccontextmanager
    async def slot(self, estimate: int = 0) -> AsyncIterator[Slot]:
        """Wait for leave to send one request, and give the slot back afterwards whatever happens.

        Args:
            estimate: the tokens that it may take; a third of its bytes is a fair guess.
        """
        slot = await self._enter(max(estimate, 0))
        try:
            yield slot
        finally:
            self._in_flight -= 1
            self._wake()

    def succeeded(self) -> None:
        """An answer came: after as many as are allowed at once, one more is allowed."""
        if self._allowed < self._limit:
            self._successes += 1
            if self._successes >= self._allowed:
                self._successes = 0
                self._allowed += 1
                self._wake()

    def limited(self, wait: float | None = None) -> None:
        """A rate limit was met: fewer at once, and a pause for all where the provider asked for one.

        Args:
            wait: seconds that it asked to wait, or None.
        """
        now = self._clock()
        if now - self._shrunk_at >= COOLDOWN:
            self._shrunk_at = now
            self._allowed = max(1, int(self._allowed * _SHRINK))
        self._successes = 0
        self.hold(wait or 0.0)

    def hold(self, seconds: float) -> None:
        """Let nobody start for some seconds, at most 600; a longer pause that is under way stays."""
        if seconds > 0:
            self._held_until = max(self._held_until, self._clock() + min(seconds, LONGEST_WAIT))

    def state(self) -> PaceState:
        """What is under way, for a line of progress."""
        why, seconds = self._obstacle(self._queue[0].estimate) if self._queue else ("", 0.0)
        return PaceState(self._in_flight, len(self._queue), self._allowed, self._limit, why, seconds)

    async def _enter(self, estimate: int) -> Slot:
        if self._queue or self._obstacle(estimate)[0]:
            await self._queue_up(estimate)
        now = self._clock()
        self._in_flight += 1
        if self._requests is not None:
            self._requests.charge(1, now)
        return Slot(self._tokens, self._tokens.charge(estimate, now) if self._tokens is not None else None)

    async def _queue_up(self, estimate: int) -> None:
        """Wait at the end of the queue until this is the first and nothing stands in its way."""
        ticket = _Ticket(estimate)
        self._queue.append(ticket)
        try:
            while (why := self._obstacle_of(ticket))[0]:
                if why[0] == "slots":
                    await ticket.wait()
                else:
                    await self._sleep(min(max(why[1], _SHORTEST_NAP), _LONGEST_NAP))
        finally:
            # Whoever leaves, called or cancelled, makes another the first; nothing has been handed over before.
            self._queue.remove(ticket)
            self._wake()

    def _obstacle_of(self, ticket: _Ticket) -> tuple[Why, float]:
        return self._obstacle(ticket.estimate) if ticket is self._queue[0] else ("slots", 0.0)

    def _obstacle(self, estimate: int) -> tuple[Why, float]:
        """What a request has to wait for now, and for how many seconds where that is known."""
        now = self._clock()
        if now < self._held_until:
            return "pause", self._held_until - now
        if self._in_flight >= self._allowed:
            return "slots", 0.0
        if self._requests is not None and (delay := self._requests.delay(1, now)) > 0:
            return "requests", delay
        if self._tokens is not None and (delay := self._tokens.delay(estimate, now)) > 0:
            return "tokens", delay
        return "", 0.0

    def _wake(self) -> None:
        if self._queue:
            self._queue[0].wake()


class _Ticket:
    """A place in the queue."""

    def __init__(self, estimate: int) -> None:
        self.estimate = estimate
        self._called: asyncio.Future[None] | None = None

    async def wait(self) -> None:
        self._called = asyncio.get_running_loop().create_future()
        await self._called

    def wake(self) -> None:
        if self._called is not None and not self._called.done():
            self._called.set_result(None)
