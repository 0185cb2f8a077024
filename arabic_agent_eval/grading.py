"""Comparing expected with actual calls: compile the expected side once, then match → Verdict.

A verdict is evidence: which expected call met which actual one, and how each argument compared. It holds no
weights and no causes. There is one grader; a :class:`Rules` value holds all that differs between rule sets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from arabic_agent_eval.errors import DataError
from arabic_agent_eval.items import AnswerKey, ExpectedCall
from arabic_agent_eval.ladder import EXACT, AnyValue, Right, compile_value, holds_arabic
from arabic_agent_eval.rules import CANONICAL, Rules, Weights, composition
from arabic_agent_eval.strictjson import too_deep
from arabic_agent_eval.text import find_arabic, has_arabic
from arabic_agent_eval.tools import Call

WILDCARD: Final = "*"
"""As a name or a value it accepts anything that is there (rulings 7, 8)."""


class ArgumentMatch(msgspec.Struct, frozen=True):
    """How one expected argument compared.

    Attributes:
        name: the argument.
        expected: the right value that came closest; ``actual``: what was given, None when missing.
        rung: 1.0, 0.9, 0.8 or 0.0.
        preserved: whether Arabic was kept; None where nothing Arabic was expected or the rules leave it out.
    """

    name: str
    expected: Any
    actual: Any
    rung: float
    preserved: bool | None


class _Argument:
    """One expected argument, compiled when an actual value first differs from it."""

    __slots__ = ("accepted", "arabic", "right", "rules", "value")

    def __init__(self, value: Any, accept: Sequence[Any], rules: Rules) -> None:
        self.value = value
        self.rules = rules
        self.arabic = value != WILDCARD and holds_arabic(value, rules)
        self.right: Right = AnyValue() if value == WILDCARD else compile_value(value, rules)
        self.accepted = [(compile_value(other, rules), other) for other in accept if other is not None]

    def match(self, actual: Any) -> tuple[float, bool | None, Any]:
        """The rung, whether Arabic was kept, and the right value that came closest."""
        best, closest, accepted = self.right.rung(actual), self.value, False
        if best < EXACT:
            for other, other_value in self.accepted:
                rung = other.rung(actual)
                accepted = accepted or rung > 0.0
                if rung > best:
                    best, closest = rung, other_value
        # A value that the item accepts is right, whatever its script, so it cannot have lost the Arabic.
        preserved = accepted or holds_arabic(actual, self.rules) if self.arabic else None
        return best, preserved, closest


# --- one call ------------------------------------------------------------------------------------------------


class CallMatch(msgspec.Struct, frozen=True):
    """How one slot compared: an expected call, an actual one, or both.

    Attributes:
        expected: place of the expected call in the item, or None for a surplus call.
        actual: place of the actual call in the reply, or None for a missing one.
        function: 0 or 1; ``argument``: 0 to 1.
        arabic: 0 to 1, None where no Arabic-valued argument was expected.
        arguments: the comparisons behind it; empty for a call that could not be compared by its arguments, or
            where no evidence was asked for.
    """

    expected: int | None
    actual: int | None
    function: float
    argument: float
    arabic: float | None
    arguments: tuple[ArgumentMatch, ...] = ()


class _CompiledCall:
    """One expected call; what is dear to make is made when first needed."""

    __slots__ = ("_compiled", "accept", "any_function", "arguments", "function", "plain", "rules")

    def __init__(self, call: ExpectedCall, rules: Rules) -> None:
        self.function = call.function
        self.any_function = call.function == WILDCARD
        arguments = call.arguments
        if None in arguments.values():
            arguments = {name: value for name, value in arguments.items() if value is not None}
        self.arguments = arguments
        self.accept = call.accept or {}
        self.rules = rules
        self.plain: bool | None = None
        self._compiled: dict[str, _Argument] = {}

    @property
    def arabic(self) -> bool:
        """Whether any expected argument is Arabic-valued."""
        return any(value != WILDCARD and holds_arabic(value, self.rules) for value in self.arguments.values())

    def is_perfect(self, call: Call) -> bool:
        """The shortcut: equal objects of plain values are a full match; anything else needs a closer look."""
        if call.arguments != self.arguments or call.error is not None or not self._is_named(call):
            return False
        if self.plain is None:
            self.plain = survey((ExpectedCall(self.function, self.arguments),), self.rules)[0]
        return self.plain

    def _is_named(self, call: Call) -> bool:
        return call.function == self.function or (self.any_function and call.function is not None)

    def match(self, call: Call, expected: int, actual: int, *, evidence: bool = True) -> CallMatch:
        if call.error == "malformed_call":
            return CallMatch(expected, actual, 0.0, 0.0, 0.0)
        function = EXACT if self._is_named(call) else 0.0
        if call.error is not None:
            return CallMatch(expected, actual, function, 0.0, 0.0 if self.arabic else None)
        given = call.arguments
        if not self.arguments:
            argument = self.rules.surplus_arguments if given else EXACT
            return CallMatch(expected, actual, function, argument, None)
        credit, kept, measured, matches = 0.0, 0, 0, []
        for name, value in self.arguments.items():
            other = given.get(name)
            rung, preserved, closest = self._compare(name, value, other)
            credit += rung
            if preserved is not None:
                measured += 1
                kept += preserved
            if evidence:
                matches.append(ArgumentMatch(name, closest, other, rung, preserved))
        arabic = kept / measured if measured else None
        return CallMatch(expected, actual, function, credit / len(self.arguments), arabic, tuple(matches))

    def _compare(self, name: str, value: Any, actual: Any) -> tuple[float, bool | None, Any]:
        if type(actual) is str and actual == value:
            return EXACT, True if value != WILDCARD and has_arabic(value) else None, value
        if actual is None:
            lost = value != WILDCARD and holds_arabic(value, self.rules) and self.rules.missing_arabic == "lost"
            return 0.0, False if lost else None, value
        compiled = self._compiled.get(name)
        if compiled is None:
            accept = self.accept.get(name) or ()
            compiled = self._compiled[name] = _Argument(value, accept, self.rules)
        return compiled.match(actual)


def survey(calls: Sequence[ExpectedCall], rules: Rules = CANONICAL) -> tuple[bool, bool]:
    """Look over expected calls once: (plain, arabic).

    Plain: every axis is 1 whenever Python finds the actual calls equal to these. Arabic: preservation is applicable.
    """
    plain, arabic = bool(calls) or rules.nothing_expected == "abstain", False
    for call in calls:
        for value in call.arguments.values():
            if type(value) is str:
                if not arabic and not value.isascii():
                    arabic = find_arabic(value) is not None
            elif not _is_plain_number(value, rules):
                plain = False
                arabic = arabic or holds_arabic(value, rules)
    return plain, arabic


def expects_arabic(calls: Sequence[ExpectedCall]) -> bool:
    """Whether any expected argument is Arabic-valued: else preservation is not applicable (ruling 10)."""
    return survey(calls)[1]


_UNSAFE_NUMBERS = (0, 1)  # Python calls these equal to False and True
_SAFE_LIMIT = 2**53


def _is_plain_number(value: Any, rules: Rules) -> bool:
    """Whether Python's equality with this number is that of the rulings."""
    kind = type(value)
    if kind is not int and kind is not float:
        return False
    return rules.value_text == "json" and value not in _UNSAFE_NUMBERS and -_SAFE_LIMIT < value < _SAFE_LIMIT


# --- one item ------------------------------------------------------------------------------------------------


class Verdict(msgspec.Struct, frozen=True):
    """How a reply's calls compared with the expected ones.

    Attributes:
        function, argument, arabic: the three axes, averaged over max(expected, actual) slots (ruling 15);
            a slot without Arabic-valued arguments counts 1.0 in ``arabic`` (ruling 10).
        matches: the slots that did not match in every respect.
        slots: the denominator; at least 1.
        called: how many calls were made.
    """

    function: float
    argument: float
    arabic: float
    matches: tuple[CallMatch, ...]
    slots: int
    called: int


_PERFECT: Final = tuple(Verdict(1.0, 1.0, 1.0, (), max(n, 1), n) for n in range(16))


class Expectation:
    """The expected calls of an item, compiled for one rule set.

    Args:
        calls: the expected calls in order.
        category: decides the weights when calls may come in any order (ruling 14).
        ordered: False takes the best pairing instead of the places.
        rules: the rule set.

    Raises:
        DataError: an expected value is nested deeper than 64 levels.
    """

    __slots__ = ("calls", "category", "ordered", "rules", "size")

    def __init__(
        self, calls: Iterable[ExpectedCall], *, category: str, ordered: bool = True, rules: Rules = CANONICAL
    ) -> None:
        self.calls = [_CompiledCall(call, rules) for call in calls]
        self.size = len(self.calls)
        self.category = category
        self.ordered = ordered or self.size == 0
        self.rules = rules

    @classmethod
    def of(cls, item: AnswerKey, rules: Rules = CANONICAL) -> Expectation:
        """The compiled expectation of an item."""
        return cls(item.expected_calls, category=item.category, ordered=item.ordered, rules=rules)

    @property
    def arabic(self) -> bool:
        """Whether preservation is applicable: some expected argument is Arabic-valued (ruling 10)."""
        return any(call.arabic for call in self.calls)

    def judge(self, calls: Sequence[Call], *, evidence: bool = True) -> Verdict:
        """Compare the calls that were made with the expected ones.

        Args:
            calls: the calls in order.
            evidence: whether to keep how each argument compared; the numbers do not depend on it.
        """
        size = len(calls)
        if size == self.size < len(_PERFECT):
            for expected, call in zip(self.calls, calls, strict=True):
                if not expected.is_perfect(call):
                    break
            else:
                if size or self.rules.nothing_expected == "abstain":
                    return _PERFECT[size]
        if not self.size:
            return self._nothing_expected(size)
        if size == self.size == 1:
            match = self.calls[0].match(calls[0], 0, 0, evidence=evidence)
            arabic = 1.0 if match.arabic is None else match.arabic
            return Verdict(match.function, match.argument, arabic, (match,), 1, 1)
        return _verdict(self.pair(calls), size)

    def pair(self, calls: Sequence[Call]) -> list[CallMatch]:
        """Every slot: by place, or by the best pairing where calls may come in any order (ruling 14)."""
        return self._by_place(calls) if self.ordered else self._best_pairing(calls)

    def _nothing_expected(self, size: int) -> Verdict:
        if not size and self.rules.nothing_expected == "abstain":
            return _PERFECT[0]
        return Verdict(0.0, 0.0, 0.0, tuple(_surplus(place) for place in range(size)), max(size, 1), size)

    def _by_place(self, calls: Sequence[Call]) -> list[CallMatch]:
        shared = min(self.size, len(calls))
        matches = [self.calls[place].match(calls[place], place, place) for place in range(shared)]
        matches.extend(CallMatch(place, None, 0.0, 0.0, 0.0) for place in range(shared, self.size))
        matches.extend(_surplus(place) for place in range(shared, len(calls)))
        return matches

    def _best_pairing(self, calls: Sequence[Call]) -> list[CallMatch]:
        """The assignment with the largest sum of weighted totals (ruling 14)."""
        if not calls:
            return self._by_place(calls)
        weights, _ = composition(self.category)
        table = self._compare_all(calls)
        taken: dict[int, CallMatch] = {}
        used = set()
        for expected, actual in _assign(table, weights):
            match = table[actual][expected]
            taken[expected] = msgspec.structs.replace(match, actual=actual)
            used.add(actual)
        matches = [taken.get(place) or CallMatch(place, None, 0.0, 0.0, 0.0) for place in range(self.size)]
        matches.extend(_surplus(place) for place in range(len(calls)) if place not in used)
        return matches

    def _compare_all(self, calls: Sequence[Call]) -> list[list[CallMatch]]:
        """For every actual call its comparison with every expected one; repeated calls are compared once."""
        seen: dict[Any, list[CallMatch]] = {}
        table = []
        for place, call in enumerate(calls):
            key = _identity(call)
            column = seen.get(key)
            if column is None:
                column = [expected.match(call, number, place) for number, expected in enumerate(self.calls)]
                seen[key] = column
            table.append(column)
        return table


def _identity(call: Call) -> Any:
    try:
        return call.function, call.error, msgspec.json.encode(call.arguments)
    except (TypeError, ValueError, UnicodeError, RecursionError):
        return id(call)  # arguments that are no JSON, from a caller's own objects


def _surplus(place: int) -> CallMatch:
    return CallMatch(None, place, 0.0, 0.0, 0.0)


def _verdict(matches: list[CallMatch], called: int) -> Verdict:
    slots = len(matches)
    function = sum([match.function for match in matches]) / slots
    argument = sum([match.argument for match in matches]) / slots
    arabic = sum([1.0 if match.arabic is None else match.arabic for match in matches]) / slots
    return Verdict(function, argument, arabic, tuple(matches), slots, called)


def _assign(table: list[list[CallMatch]], weights: Weights) -> Iterable[tuple[int, int]]:
    """Pairs (expected, actual) of the best assignment; among equals, calls stay in their places."""
    if len(table) == 1 == len(table[0]):
        return [(0, 0)]
    # Only unordered items with several calls need these, and scipy takes a third of a second to load.
    import numpy as np  # noqa: PLC0415
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415

    total = _totals(weights)
    # Whole numbers, so that sums are exact and ties are broken by place and not by rounding.
    worth = np.array([[round(total(match) * 1e9) * 4 for match in column] for column in table], dtype=float)
    diagonal = np.arange(min(worth.shape))
    worth[diagonal, diagonal] += 1
    actual, expected = linear_sum_assignment(worth, maximize=True)
    return zip(expected.tolist(), actual.tolist(), strict=True)


def _totals(weights: Weights) -> Callable[[CallMatch], float]:
    function, argument, arabic, own = weights
    function += own

    def total(match: CallMatch) -> float:
        kept = 1.0 if match.arabic is None else match.arabic
        return function * match.function + argument * match.argument + arabic * kept

    return total


def expected_call(call: ExpectedCall | Call | Mapping[str, Any]) -> ExpectedCall:
    """An expected call from a mapping with ``function``, ``arguments`` and perhaps ``accept``.

    Raises:
        DataError: the caller's expected call is not one.
    """
    if isinstance(call, ExpectedCall):
        return call
    if isinstance(call, Call):
        call = {"function": call.function, "arguments": call.arguments}
    function, arguments = call.get("function"), call.get("arguments")
    arguments = {} if arguments is None else arguments
    if not isinstance(function, str):
        raise DataError("an expected call needs the name of a function.", field="function")
    if not isinstance(arguments, Mapping) or too_deep(arguments):
        raise DataError("expected arguments must be an object, at most 64 levels deep.", field="arguments")
    accept = call.get("accept") or {}
    return ExpectedCall(function, dict(arguments), {name: list(values) for name, values in accept.items()})


def is_full(value: float) -> bool:
    """Whether an axis is 1, floating-point error aside."""
    return math.isclose(value, 1.0, rel_tol=0.0, abs_tol=1e-12)
