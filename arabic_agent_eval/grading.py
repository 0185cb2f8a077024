"""Comparing expected with actual calls: compile the expected side once, then match → Verdict.

A verdict is evidence: which expected call met which actual one, and how each argument compared. It holds no
weights and no causes. There is one grader; a :class:`Rules` value holds all that differs between rule sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from arabic_agent_eval.assignment import assign
from arabic_agent_eval.errors import DataError
from arabic_agent_eval.items import AnswerKey, ExpectedCall
from arabic_agent_eval.ladder import EXACT, holds_arabic, rung
from arabic_agent_eval.rules import CANONICAL, Rules, Weights, composition
from arabic_agent_eval.strictjson import too_deep
from arabic_agent_eval.text import find_arabic
from arabic_agent_eval.tools import Call

PLAIN_TYPES: Final = frozenset({str, int})
"""Where both sides hold only values of just these types, Python calls them equal when the rulings do (ruling 1)."""

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


_Compared = tuple[float, bool | None, Any]
"""The rung, whether Arabic was kept (None: not asked), and the right value that came closest."""

_MEMO_SIZE, _MEMO_TEXT = 512, 200


def compare_value(value: Any, actual: Any, accepted: Sequence[Any] = (), rules: Rules = CANONICAL) -> _Compared:
    """Compare one argument with its right value and the other accepted ones; the best rung counts."""
    if value == WILDCARD:
        return (0.0 if actual is None else EXACT), None, value
    arabic = holds_arabic(value, rules)
    if actual is None:
        return 0.0, False if arabic and rules.missing_arabic == "lost" else None, value
    best, closest, is_accepted = rung(value, actual, rules), value, False
    if best < EXACT:
        for other in accepted:
            other_rung = 0.0 if other is None else rung(other, actual, rules)
            is_accepted = is_accepted or other_rung > 0.0
            if other_rung > best:
                best, closest = other_rung, other
    # A value that the item accepts is right, whatever its script, so it cannot have lost the Arabic.
    return best, (is_accepted or holds_arabic(actual, rules)) if arabic else None, closest


def compare_arguments(
    expected: Mapping[str, Any],
    given: Mapping[str, Any],
    rules: Rules = CANONICAL,
    accept: Mapping[str, Sequence[Any]] | None = None,
    evidence: list[ArgumentMatch] | None = None,
    memo: dict[tuple[str, str], _Compared] | None = None,
) -> tuple[float, float | None]:
    """Argument accuracy and Arabic preservation of one call (rulings 9, 10).

    Args:
        expected: name → right value; null is as absent.
        given: what the call gave.
        rules: the rule set.
        accept: name → other right values.
        evidence: receives how each argument compared.
        memo: earlier comparisons of these expected arguments with texts, to be used and added to.

    Returns:
        The accuracy, 0 to 1, and the preservation, 0 to 1 or None where nothing Arabic was expected.
    """
    credit, kept, measured, count = 0.0, 0, 0, 0
    for name, value in expected.items():
        if value is None:
            continue
        actual = given.get(name)
        compared: _Compared | None
        if type(actual) is str and actual == value:
            arabic = not value.isascii() and find_arabic(value) is not None
            compared = EXACT, True if arabic else None, value
        else:
            compared = memo.get((name, actual)) if memo and type(actual) is str else None
            if compared is None:
                accepted = accept.get(name, ()) if accept else ()
                compared = compare_value(value, actual, accepted, rules)
                if memo is not None and type(actual) is str and len(actual) < _MEMO_TEXT and len(memo) < _MEMO_SIZE:
                    memo[name, actual] = compared
        count += 1
        credit += compared[0]
        if compared[1] is not None:
            measured += 1
            kept += compared[1]
        if evidence is not None:
            evidence.append(ArgumentMatch(name, compared[2], actual, compared[0], compared[1]))
    if not count:
        surplus = any(value is not None for value in given.values())
        return (rules.surplus_arguments if surplus else EXACT), None
    return credit / count, kept / measured if measured else None


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
    """One expected call, and what comparing it has taught."""

    __slots__ = ("accept", "any_function", "arguments", "function", "memo", "rules")

    def __init__(self, call: ExpectedCall, rules: Rules) -> None:
        self.function = call.function
        self.any_function = call.function == WILDCARD
        self.arguments = call.arguments
        self.accept = call.accept
        self.rules = rules
        self.memo: dict[tuple[str, str], _Compared] = {}

    @property
    def arabic(self) -> bool:
        """Whether any expected argument is Arabic-valued."""
        return any(value != WILDCARD and holds_arabic(value, self.rules) for value in self.arguments.values())

    def axes(self, call: Call, evidence: list[ArgumentMatch] | None = None) -> tuple[float, float, float | None]:
        """Function, argument and preservation of a call against this one (rulings 8 to 12)."""
        name = call.function
        function = EXACT if name == self.function or (self.any_function and name is not None) else 0.0
        if call.error is None:
            argument, arabic = compare_arguments(
                self.arguments, call.arguments, self.rules, self.accept, evidence, self.memo
            )
            return function, argument, arabic
        if call.error == "malformed_call":
            return 0.0, 0.0, 0.0
        return function, 0.0, 0.0 if self.arabic else None

    def match(self, call: Call, expected: int, actual: int, *, evidence: bool = True) -> CallMatch:
        """The same with the evidence, as a slot."""
        found: list[ArgumentMatch] | None = [] if evidence else None
        function, argument, arabic = self.axes(call, found)
        return CallMatch(expected, actual, function, argument, arabic, tuple(found or ()))


_SHALLOW = 16
_JSON_SCALARS = frozenset({str, int, float, bool, type(None)})  # a caller's own objects may say anything of equality


def _is_right(calls: Sequence[Call], right: tuple[Call, ...], *, plain: bool) -> bool:
    """Whether calls are those that were right before.

    Python also calls 1 and true equal, and a caller's own objects may answer anything, so kinds are compared first.
    """
    if plain:
        return all(map(_is_plain, calls)) and calls == right
    return len(calls) == len(right) and all(
        call.function == one.function and call.error is None and is_identical(one.arguments, call.arguments)
        for one, call in zip(right, calls, strict=True)
    )


def _is_plain(call: Call) -> bool:
    return PLAIN_TYPES.issuperset(map(type, call.arguments.values()))


def _copied(value: Any, depth: int) -> Any:
    """A copy of a JSON value that nests little.

    Raises:
        TypeError: it is something else.
    """
    kind = type(value)
    if depth <= _SHALLOW:
        if kind is dict:
            return {name: _copied(member, depth + 1) for name, member in value.items()}
        if kind is list:
            return [_copied(member, depth + 1) for member in value]
    if kind not in _JSON_SCALARS:
        raise TypeError
    return value


def is_identical(expected: Any, actual: Any, depth: int = 0) -> bool:
    """Whether two JSON values are the same in kind and content, so that they match in full under any rules.

    False says nothing of values that differ in kind only (2 and 2.0) or nest deeply.
    """
    kind = type(expected)
    if kind is not type(actual) or depth > _SHALLOW:
        return False
    if kind is dict:
        if expected.keys() != actual.keys():
            return False
        for name, value in expected.items():  # noqa: SIM110 - a generator costs as much as what it compares
            if not is_identical(value, actual[name], depth + 1):
                return False
        return True
    if kind is list:
        if len(expected) != len(actual):
            return False
        for one, other in zip(expected, actual, strict=True):  # noqa: SIM110
            if not is_identical(one, other, depth + 1):
                return False
        return True
    return kind in _JSON_SCALARS and bool(expected == actual)


# --- one item ------------------------------------------------------------------------------------------------


class Verdict(msgspec.Struct, frozen=True):
    """How a reply's calls compared with the expected ones.

    Attributes:
        function, argument, arabic: the three axes, averaged over max(expected, actual) slots (ruling 15);
            a slot without Arabic-valued arguments counts 1.0 in ``arabic`` (ruling 10).
        matches: the slots; empty where everything was right at sight, or where no evidence was asked for.
        slots: the denominator; at least 1.
        called: how many calls were made.
    """

    function: float
    argument: float
    arabic: float
    matches: tuple[CallMatch, ...]
    slots: int
    called: int


class Expectation:
    """The expected calls of an item, compiled for one rule set.

    Args:
        calls: the expected calls in order.
        category: decides the weights when calls may come in any order (ruling 14).
        ordered: False takes the best pairing instead of the places.
        rules: the rule set.
    """

    __slots__ = ("_right", "calls", "category", "ordered", "rules", "size")

    def __init__(
        self, calls: Iterable[ExpectedCall], *, category: str, ordered: bool = True, rules: Rules = CANONICAL
    ) -> None:
        self.calls = [_CompiledCall(call, rules) for call in calls]
        self.size = len(self.calls)
        self.category = category
        self.ordered = ordered or self.size == 0
        self.rules = rules
        # Calls that are right, whether they are plain, and their verdict: set at once, since threads share a grader.
        self._right: tuple[tuple[Call, ...], bool, Verdict] | None = None

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
            calls: the calls in order; a tuple is compared fastest.
            evidence: whether to keep how each argument compared; the numbers do not depend on it.
        """
        if (known := self._right) is not None and _is_right(calls, known[0], plain=known[1]):
            return known[2]
        size = len(calls)
        if not self.size:
            return self._nothing_expected(size)
        if size == self.size == 1:
            verdict = self._judge_one(calls[0], evidence=evidence)
        else:
            verdict = _verdict(self.pair(calls, evidence=evidence), size)
        if self._right is None and verdict.function == verdict.argument == verdict.arabic == 1.0:
            self._learn(calls)
        return verdict

    def _judge_one(self, call: Call, *, evidence: bool) -> Verdict:
        found: list[ArgumentMatch] | None = [] if evidence else None
        function, argument, arabic = self.calls[0].axes(call, found)
        matches = (CallMatch(0, 0, function, argument, arabic, tuple(found)),) if found is not None else ()
        return Verdict(function, argument, 1.0 if arabic is None else arabic, matches, 1, 1)

    def _learn(self, calls: Sequence[Call]) -> None:
        """Remember calls that were right in every respect, so that the same ones are recognised at sight.

        A copy of them, since a caller may change its own; what is not plain JSON is not remembered.
        """
        try:
            right = tuple([Call(call.function, _copied(call.arguments, 0)) for call in calls])
        except TypeError:
            return
        perfect = Verdict(1.0, 1.0, 1.0, (), max(len(calls), 1), len(calls))
        self._right = right, all(map(_is_plain, calls)), perfect

    def pair(self, calls: Sequence[Call], *, evidence: bool = True) -> list[CallMatch]:
        """Every slot: by place, or by the best pairing where calls may come in any order (ruling 14)."""
        return self._by_place(calls, evidence) if self.ordered else self._best_pairing(calls, evidence)

    def _nothing_expected(self, size: int) -> Verdict:
        if not size and self.rules.nothing_expected == "abstain":
            return Verdict(1.0, 1.0, 1.0, (), 1, 0)
        return Verdict(0.0, 0.0, 0.0, tuple(_surplus(place) for place in range(size)), max(size, 1), size)

    def _by_place(self, calls: Sequence[Call], evidence: bool) -> list[CallMatch]:  # noqa: FBT001
        shared = min(self.size, len(calls))
        matches = [self.calls[place].match(calls[place], place, place, evidence=evidence) for place in range(shared)]
        matches.extend(CallMatch(place, None, 0.0, 0.0, 0.0) for place in range(shared, self.size))
        matches.extend(_surplus(place) for place in range(shared, len(calls)))
        return matches

    def _best_pairing(self, calls: Sequence[Call], evidence: bool) -> list[CallMatch]:  # noqa: FBT001
        """The assignment with the largest sum of weighted totals (ruling 14)."""
        if not calls:
            return self._by_place(calls, evidence)
        weights, _ = composition(self.category)
        table = self._compare_all(calls, evidence)
        taken: dict[int, CallMatch] = {}
        used = set()
        for expected, actual in _assign(table, weights):
            match = table[actual][expected]
            taken[expected] = msgspec.structs.replace(match, actual=actual)
            used.add(actual)
        matches = [taken.get(place) or CallMatch(place, None, 0.0, 0.0, 0.0) for place in range(self.size)]
        matches.extend(_surplus(place) for place in range(len(calls)) if place not in used)
        return matches

    def _compare_all(self, calls: Sequence[Call], evidence: bool) -> list[list[CallMatch]]:  # noqa: FBT001
        """For every actual call its comparison with every expected one; repeated calls are compared once."""
        seen: dict[Any, list[CallMatch]] = {}
        table = []
        for place, call in enumerate(calls):
            key = _identity(call)
            column = seen.get(key)
            if column is None:
                column = [
                    expected.match(call, number, place, evidence=evidence) for number, expected in enumerate(self.calls)
                ]
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
    total = _totals(weights)
    # Whole numbers, so that sums are exact and ties are broken by place and not by rounding.
    worth = [
        [round(total(match) * 1e9) * 4 + (actual == expected) for expected, match in enumerate(column)]
        for actual, column in enumerate(table)
    ]
    return assign(worth)


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
    if not isinstance(call, Mapping):
        raise DataError("an expected call must be a Call or a mapping with 'function' and 'arguments'.")
    function, arguments = call.get("function"), call.get("arguments")
    arguments = {} if arguments is None else arguments
    if not isinstance(function, str) or not function:
        raise DataError("an expected call needs the name of a function.", field="function")
    if not isinstance(arguments, Mapping) or too_deep(arguments):
        raise DataError("expected arguments must be an object, at most 64 levels deep.", field="arguments")
    accept = call.get("accept") or {}
    if not isinstance(accept, Mapping) or not all(isinstance(values, list | tuple) for values in accept.values()):
        raise DataError("accepted values must be an object of argument name → list of values.", field="accept")
    return ExpectedCall(function, dict(arguments), {name: list(values) for name, values in accept.items()} or None)
