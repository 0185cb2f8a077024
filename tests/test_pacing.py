"""How fast to ask, in a time that passes at once."""

from __future__ import annotations

import asyncio
import selectors
from random import Random

import pytest

from arabic_agent_eval.errors import UsageError
from arabic_agent_eval.pacing import COOLDOWN, LONGEST_WAIT, Pace, PaceState, backoff


class Leap(selectors.DefaultSelector):
    """Where nothing happens for some seconds, they have passed."""

    now = 0.0

    def select(self, timeout=None):
        """Leap, or fail where nobody waits for a time: nothing would ever happen."""
        assert timeout is not None, "everybody waits for somebody"
        self.now += max(timeout, 0)
        return super().select(0)


class LeapingLoop(asyncio.SelectorEventLoop):
    """An event loop whose time leaps to the next event."""

    def __init__(self):
        self.leap = Leap()
        super().__init__(self.leap)

    def time(self):
        """Seconds since the loop began."""
        return self.leap.now


def run(scenario):
    """Run ``scenario(new_pace)`` in leaping time; ``new_pace`` takes the options of Pace."""
    with asyncio.Runner(loop_factory=LeapingLoop) as runner:
        clock = runner.get_loop().time
        return runner.run(scenario(lambda *args, **options: Pace(*args, clock=clock, **options)))


def now():
    return asyncio.get_running_loop().time()


async def send(pace, seconds=1.0, estimate=0, spent=None, log=None, name=None):
    """One request that takes so long; when it started."""
    async with pace.slot(estimate) as slot:
        started = now()
        if log is not None:
            log.append((name, started))
        await asyncio.sleep(seconds)
        if spent is not None:
            slot.settle(spent)
    return started


# --- at once ---------------------------------------------------------------------------------------------------


def test_never_more_at_once_than_allowed():
    """Ten requests of a second in three slots start in rounds, in the order of asking."""

    async def scenario(new_pace):
        pace, log = new_pace(3), []
        await asyncio.gather(*(send(pace, log=log, name=name) for name in range(10)))
        return log, pace.state()

    log, state = run(scenario)

    assert log == [(name, float(name // 3)) for name in range(10)]
    assert state == PaceState(0, 0, 3, 3, "", 0.0)


def test_a_rate_limit_shrinks_once_in_a_cooldown():
    """Many limits together count once; the next after the cooldown counts again; one slot always stays."""

    async def scenario(new_pace):
        pace, seen = new_pace(10), []
        for _ in range(9):
            for _ in range(5):
                pace.limited()
            seen.append(pace.state().allowed)
            await asyncio.sleep(COOLDOWN)
        return seen

    assert run(scenario) == [8, 6, 4, 3, 2, 1, 1, 1, 1]


def test_what_is_under_way_is_left_alone_when_fewer_are_allowed():
    """After shrinking, nobody starts until fewer are under way than allowed."""

    async def scenario(new_pace):
        pace, log = new_pace(5), []
        first = [asyncio.create_task(send(pace, seconds)) for seconds in (1, 2, 3, 4, 5)]
        await asyncio.sleep(0.5)
        pace.limited()
        await asyncio.gather(*first, *(send(pace, 10, log=log, name=name) for name in range(3)))
        return log

    assert run(scenario) == [(0, 2.0), (1, 3.0), (2, 4.0)]


def test_rounds_of_successes_grow_back_to_the_limit():
    """After as many successes as are allowed at once, one more is; a limit in between starts the round anew."""

    async def scenario(new_pace):
        pace, seen = new_pace(5), []
        for _ in range(3):
            pace.limited()
            await asyncio.sleep(COOLDOWN)
        assert pace.state().allowed == 2
        pace.succeeded()
        pace.limited()
        assert pace.state().allowed == 1
        for _ in range(20):
            pace.succeeded()
            seen.append(pace.state().allowed)
        return seen

    assert run(scenario) == [2, 2, 3, 3, 3, 4, 4, 4, 4, *[5] * 11]


def test_a_limit_within_the_cooldown_still_starts_the_round_anew():
    """Successes before a limit do not count after it, even where nothing shrinks."""

    async def scenario(new_pace):
        pace, seen = new_pace(5), []
        pace.limited()
        for _ in range(3):
            pace.succeeded()
        pace.limited()
        for _ in range(4):
            pace.succeeded()
            seen.append(pace.state().allowed)
        return seen

    assert run(scenario) == [4, 4, 4, 5]


def test_a_slot_that_grows_back_is_given_at_once():
    """A waiting request starts when one more is allowed, without anybody finishing."""

    async def scenario(new_pace):
        pace = new_pace(2)
        pace.limited()
        first = asyncio.create_task(send(pace, 100))
        second = asyncio.create_task(send(pace, 1))
        await asyncio.sleep(3)
        pace.succeeded()
        return await second, await first

    assert run(scenario) == (3.0, 0.0)


# --- pauses ----------------------------------------------------------------------------------------------------


def test_everybody_waits_for_the_provider():
    """A pause holds all who have not started; the longest of several counts; then they go in order."""

    async def scenario(new_pace):
        pace, log = new_pace(10), []
        pace.limited(20.0)
        pace.hold(5.0)
        tasks = [asyncio.create_task(send(pace, log=log, name=name)) for name in range(3)]
        await asyncio.sleep(1)
        state = pace.state()
        await asyncio.gather(*tasks)
        return log, state

    log, state = run(scenario)

    assert [name for name, _ in log] == [0, 1, 2]
    assert all(20.0 <= started < 20.01 for _, started in log)
    assert state == PaceState(0, 3, 8, 10, "pause", 19.0)


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0, 0), (-5, 0), (float("nan"), 0), (float("inf"), LONGEST_WAIT), (1e300, LONGEST_WAIT)]
)
def test_a_pause_has_an_end(seconds, expected):
    """No wish of a provider holds a run for more than ten minutes, and nonsense holds it for nothing."""

    async def scenario(new_pace):
        pace = new_pace(1)
        pace.hold(seconds)
        return await send(pace)

    assert expected <= run(scenario) < expected + 0.01


# --- in a minute -----------------------------------------------------------------------------------------------


def test_requests_in_a_minute_are_capped():
    """Of seven requests with a cap of three, three go in each minute."""

    async def scenario(new_pace):
        pace = new_pace(100, rpm=3)
        tasks = [asyncio.create_task(send(pace)) for _ in range(7)]
        await asyncio.sleep(10)
        state = pace.state()
        return await asyncio.gather(*tasks), state

    started, state = run(scenario)

    assert [int(one) // 60 for one in started] == [0, 0, 0, 1, 1, 1, 2]
    assert (state.why, state.seconds) == ("requests", 50.0)


def test_tokens_in_a_minute_are_capped_by_estimate_and_settled_in_truth():
    """Estimates count until the truth is known; what came in cheaper lets the next one go earlier."""

    async def scenario(new_pace):
        pace = new_pace(100, tpm=1000)
        tasks = [
            asyncio.create_task(send(pace, 5, estimate=600, spent=100)),
            asyncio.create_task(send(pace, 5, estimate=600, spent=900)),
            asyncio.create_task(send(pace, 5, estimate=600)),
        ]
        await asyncio.sleep(1)
        why = pace.state().why
        return await asyncio.gather(*tasks), why

    (first, second, third), why = run(scenario)

    assert why == "tokens"
    assert first == 0
    assert 5 <= second <= 6
    assert 65 <= third <= 66


def test_a_request_larger_than_the_cap_goes_alone():
    """A cap below one request slows it down and does not stop the run."""

    async def scenario(new_pace):
        pace = new_pace(100, tpm=10)
        return await asyncio.gather(*(send(pace, estimate=estimate) for estimate in (50, 50, 1)))

    first, second, third = run(scenario)

    assert first == 0
    assert 60 <= second < 62
    assert 120 <= third < 123


def test_settling_late_changes_nothing():
    """Tokens of more than a minute ago are forgotten, whatever they turn out to be; negative ones are none."""

    async def scenario(new_pace):
        pace = new_pace(100, tpm=10)
        late = asyncio.create_task(send(pace, 100, estimate=10, spent=10**9))
        await asyncio.sleep(61)
        await send(pace, 39, estimate=5)
        await late
        await send(pace, 0, estimate=5, spent=-5)
        return await send(pace, 0, estimate=5)

    assert run(scenario) == 100


def test_without_a_cap_on_tokens_nobody_counts_them():
    """Estimates and true numbers may be given anyway."""

    async def scenario(new_pace):
        return await send(new_pace(1), estimate=10**12, spent=10**12)

    assert run(scenario) == 0


# --- leaving ---------------------------------------------------------------------------------------------------


def test_slots_come_back_whatever_happens():
    """An exception or a cancellation inside gives the slot back."""

    async def scenario(new_pace):
        pace = new_pace(1)
        with pytest.raises(ZeroDivisionError):
            async with pace.slot():
                raise ZeroDivisionError
        task = asyncio.create_task(send(pace, 100))
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return await send(pace)

    assert run(scenario) == 1


@pytest.mark.parametrize("cancelled", [(1,), (2,), (1, 2), (2, 1), (1, 2, 3), (3, 1)])
def test_who_leaves_the_queue_holds_up_nobody(cancelled):
    """Wherever in the queue somebody gives up, the others keep their order."""

    async def scenario(new_pace):
        pace, log = new_pace(1), []
        tasks = [asyncio.create_task(send(pace, log=log, name=name)) for name in range(5)]
        await asyncio.sleep(0.5)
        for name in cancelled:
            tasks[name].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return log

    assert [name for name, _ in run(scenario)] == [name for name in range(5) if name not in cancelled]


def test_who_is_called_and_cancelled_at_once_passes_the_call_on():
    """A waiter cancelled in the moment in which it may start takes no slot with it."""

    async def scenario(new_pace):
        pace = new_pace(1)
        first = asyncio.create_task(send(pace, 1))
        second, third = asyncio.create_task(send(pace)), asyncio.create_task(send(pace))
        first.add_done_callback(lambda _: second.cancel())
        await asyncio.gather(first, second, third, return_exceptions=True)
        return third.result(), second.cancelled(), pace.state().in_flight

    assert run(scenario) == (1.0, True, 0)


def test_who_is_cancelled_in_a_pause_leaves_the_rest_waiting():
    """The first of the queue naps for all; when it goes, the next one naps."""

    async def scenario(new_pace):
        pace = new_pace(5)
        pace.hold(10)
        tasks = [asyncio.create_task(send(pace)) for _ in range(3)]
        await asyncio.sleep(2)
        tasks[0].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return [task.result() for task in tasks[1:]]

    assert all(10 <= started < 10.01 for started in run(scenario))


@pytest.mark.parametrize("seed", range(30))
def test_any_traffic_keeps_the_rules(seed):
    """Whatever comes, fails and leaves: the caps hold in every minute, the order stands, and all slots come back."""
    random = Random(seed)

    async def scenario(new_pace):
        pace, log, tokens = new_pace(4, rpm=20, tpm=3_000), [], []

        async def one(name):
            estimate = random.randint(0, 400)
            async with pace.slot(estimate) as slot:
                assert pace.state().in_flight <= 4
                log.append((name, now()))
                tokens.append([now(), estimate])
                spent = tokens[-1]
                await asyncio.sleep(random.random() * 5)
                spent[1] = random.randint(0, estimate)
                slot.settle(spent[1])
                pace.limited(random.choice([None, 3.0])) if random.random() < 0.1 else pace.succeeded()

        tasks = []
        for name in range(150):
            tasks.append(asyncio.create_task(one(name)))
            if random.random() < 0.2:
                random.choice(tasks).cancel()
            await asyncio.sleep(random.choice([0, 0, 0.3]))
        await asyncio.gather(*tasks, return_exceptions=True)
        return log, tokens, pace.state()

    log, tokens, state = run(scenario)
    started = [at for _, at in log]

    assert [name for name, _ in log] == sorted(name for name, _ in log)
    assert all(later - earlier >= 59.999 for earlier, later in zip(started, started[20:], strict=False))
    assert all(sum(n for other, n in tokens if at <= other < at + 59.999) <= 3_000 for at, _ in tokens)
    assert (state.in_flight, state.waiting) == (0, 0)


# --- waiting for the next attempt ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attempt", "wait", "draw", "expected"),
    [
        (1, None, 0.0, 0.0),
        (1, None, 0.5, 0.5),
        (2, None, 0.5, 1.0),
        (6, None, 0.5, 16.0),
        (7, None, 0.5, 30.0),
        (10**9, None, 0.5, 30.0),
        (0, None, 0.5, 0.5),
        (1, 7.0, 0.0, 7.0),
        (3, 7.0, 0.5, 9.0),
        (1, -7.0, 0.5, 0.5),
        (1, float("nan"), 0.5, 0.5),
        (1, 600.0, 0.5, 600.5),
        (1, 600.1, 0.5, None),
        (1, float("inf"), 0.5, None),
    ],
)
def test_the_wait_before_the_next_attempt(attempt, wait, draw, expected):
    """Half of the bound at a draw of one half, never less than what was asked for, and no wait beyond the longest."""
    assert backoff(attempt, wait, lambda: draw) == expected


def test_the_longest_wait_can_be_chosen():
    """A caller may be less patient."""
    assert backoff(1, 61.0, lambda: 0.0, longest=60.0) is None


@pytest.mark.parametrize("options", [{"limit": 0}, {"limit": 1, "rpm": 0}, {"limit": 1, "tpm": -1}])
def test_numbers_below_one_are_refused(options):
    """No request could ever go."""
    with pytest.raises(UsageError, match="give a whole number from 1"):
        Pace(**options)
