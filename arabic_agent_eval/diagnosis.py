"""From a verdict to causes: why each point was lost.

Losses add up: over an item their points sum to 1 − total. Causes never change a score.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from arabic_agent_eval.grading import ArgumentMatch, CallMatch, Expectation, Verdict
from arabic_agent_eval.rules import composition
from arabic_agent_eval.tools import Call

CALL_CAUSES = (
    "no_call",
    "missing_call",
    "extra_call",
    "wrong_function",
    "wrong_order",
    "malformed_call",
    "malformed_arguments",
    "double_encoded_arguments",
)
"""The causes that concern a whole call; those of an argument are ``differences.CAUSES``."""

_PAIRS_LIMIT = 4096  # comparisons spent on finding calls that stand in other places


class Loss(msgspec.Struct, frozen=True, omit_defaults=True):
    """Points lost for one cause on one axis.

    Attributes:
        cause: one of the causes of the rulings.
        axis: the axis on which they were lost.
        points: the part of the item's total, above 0.
        call: place of the expected call, or of the first surplus call for ``extra_call``.
        argument: the argument, or None for a whole call.
        expected: the right value or function; ``actual``: what came instead.
        count: how many surplus calls the entry stands for.
    """

    cause: str
    axis: str
    points: float
    call: int | None = None
    argument: str | None = None
    expected: Any = None
    actual: Any = None
    count: int = 1


class _Shares:
    """What one slot is worth on each axis, in points of the item's total."""

    def __init__(self, category: str, slots: int) -> None:
        (function, argument, arabic, own), own_axis = composition(category)
        self.function = [("function_selection", function / slots)]
        if own_axis is not None:
            self.function.append((own_axis, own / slots))
        self.argument = argument / slots
        self.arabic = arabic / slots


def diagnose(verdict: Verdict, expectation: Expectation, calls: Sequence[Call]) -> tuple[Loss, ...]:
    """The losses of one item, in the order of its calls.

    Args:
        verdict: what ``expectation.judge(calls)`` returned.
        expectation: the compiled expected calls.
        calls: the calls that were made.
    """
    shares = _Shares(expectation.category, verdict.slots)
    if not verdict.matches:
        return () if verdict.function == 1.0 else tuple(_whole("no_call", shares, (0.0, 0.0, 0.0), call=None))
    moved = _displaced(verdict, expectation, calls) if expectation.ordered else {}
    losses: list[Loss] = []
    surplus = [match.actual for match in verdict.matches if match.expected is None]
    for match in verdict.matches:
        if match.expected is not None:
            losses.extend(_slot(match, verdict, expectation, calls, shares, moved))
    if surplus and surplus[0] is not None:
        first, count = surplus[0], len(surplus)
        losses.extend(
            _whole("extra_call", shares, (0.0, 0.0, 0.0), call=first, actual=_shown(calls[first]), count=count)
        )
    return tuple(losses)


def _slot(
    match: CallMatch,
    verdict: Verdict,
    expectation: Expectation,
    calls: Sequence[Call],
    shares: _Shares,
    moved: Mapping[int, str],
) -> Iterator[Loss]:
    place = match.expected
    assert place is not None  # noqa: S101 - the caller keeps surplus slots apart
    expected = expectation.calls[place]
    call = None if match.actual is None else calls[match.actual]
    if call is None:
        cause = "no_call" if verdict.called == 0 else "missing_call"
    else:
        cause = "malformed_call" if call.error == "malformed_call" else ""
    cause = moved.get(place, cause)
    if cause:
        had = (match.function, match.argument, _kept(match))
        yield from _whole(cause, shares, had, call=place, expected=expected.function, actual=call and _shown(call))
    elif call is not None:
        if match.function == 0.0:
            for axis, share in shares.function:
                yield Loss("wrong_function", axis, share, place, None, expected.function, call.function)
        yield from _argument_losses(match, call, shares, expected.arguments, expected.accept or {})


def _whole(
    cause: str,
    shares: _Shares,
    had: tuple[float, float, float],
    *,
    call: int | None,
    expected: Any = None,
    actual: Any = None,
    count: int = 1,
) -> Iterator[Loss]:
    """Everything that a slot lost goes to one cause."""
    function, argument, arabic = had
    worth = [(axis, share * (1 - function)) for axis, share in shares.function]
    worth.append(("argument_accuracy", shares.argument * (1 - argument)))
    worth.append(("arabic_preservation", shares.arabic * (1 - arabic)))
    for axis, points in worth:
        if points > 0:
            yield Loss(cause, axis, points * count, call, None, expected, actual, count)


def _argument_losses(
    match: CallMatch,
    call: Call,
    shares: _Shares,
    wanted: Mapping[str, Any],
    accept: Mapping[str, Sequence[Any]],
) -> Iterator[Loss]:
    place = match.expected
    if not match.arguments:
        cause: str = call.error or "wrong_value"  # the latter only under rules that punish surplus arguments
        for axis, points in (
            ("argument_accuracy", shares.argument * (1 - match.argument)),
            ("arabic_preservation", shares.arabic * (1 - _kept(match))),
        ):
            if points > 0:
                given = call.arguments if call.error is None else call.raw
                yield Loss(cause, axis, points, place, None, wanted, given)
        return
    measured = sum(argument.preserved is not None for argument in match.arguments)
    for argument in match.arguments:
        wrong, lost = 1 - argument.rung, argument.preserved is False
        if not wrong and not lost:
            continue
        cause = _cause(argument, accept.get(argument.name) or ())
        if wrong:
            points = shares.argument * wrong / len(match.arguments)
            yield _loss(cause, "argument_accuracy", points, place, argument)
        if lost:
            yield _loss(cause, "arabic_preservation", shares.arabic / measured, place, argument)


def _loss(cause: str, axis: str, points: float, place: int | None, argument: ArgumentMatch) -> Loss:
    return Loss(cause, axis, points, place, argument.name, argument.expected, argument.actual)


def _cause(argument: ArgumentMatch, accepted: Sequence[Any]) -> str:
    """The cause against the right value that came closest, else the first that says more than "wrong"."""
    # Its tables take longer to load than the whole grader, and who asks for no causes never needs them.
    from arabic_agent_eval.differences import explain  # noqa: PLC0415

    cause = explain(argument.expected, argument.actual)
    if cause == "wrong_value" and argument.rung == 0.0:
        causes = (explain(other, argument.actual) for other in accepted if other is not None)
        return next((other for other in causes if other != "wrong_value"), cause)
    return cause


def _kept(match: CallMatch) -> float:
    return 1.0 if match.arabic is None else match.arabic


def _shown(call: Call) -> Any:
    """What a loss shows of a call: its name, or what could not be read."""
    return call.raw if call.function is None else call.function


def _displaced(verdict: Verdict, expectation: Expectation, calls: Sequence[Call]) -> dict[int, str]:
    """Causes of whole slots by expected place, where order explains them.

    ``wrong_order``: the right call stands in another place. ``missing_call``: it was never made, and what stands in
    its place is right for another one.
    """
    flawed = [match for match in verdict.matches if not _is_perfect(match)]
    expected = [match.expected for match in flawed if match.expected is not None]
    actual = [match.actual for match in flawed if match.actual is not None]
    if len(flawed) < 2 or len(expected) * len(actual) > _PAIRS_LIMIT:  # noqa: PLR2004 - order needs two
        return {}
    home: dict[int, int] = {}
    for place in expected:
        for other in actual:
            if other != place and other not in home and _is_right(expectation.calls[place].match(calls[other], 0, 0)):
                home[other] = place
                break
    found = dict.fromkeys(home.values(), "wrong_order")
    lost = {place: "missing_call" for place in expected if place in home and place not in found}
    return found | lost


def _is_perfect(match: CallMatch) -> bool:
    return match.expected is not None and match.function == match.argument == _kept(match) == 1.0


def _is_right(match: CallMatch) -> bool:
    """The right call, spelling aside."""
    return (
        match.function == 1.0
        and match.argument > 0.0
        and _kept(match) == 1.0
        and all(argument.rung > 0.0 for argument in match.arguments)
    )
