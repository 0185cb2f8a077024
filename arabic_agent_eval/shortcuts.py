"""What can be said of an answer without compiling its item: most answers in a large file need no more.

None of it knows a rule of its own; it agrees with ``grading.Expectation``, which also gives the evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from arabic_agent_eval.assignment import assign
from arabic_agent_eval.grading import WILDCARD, compare_arguments
from arabic_agent_eval.items import ExpectedCall
from arabic_agent_eval.ladder import holds_arabic
from arabic_agent_eval.rules import CANONICAL, Rules, composition
from arabic_agent_eval.text import find_arabic


class Called(Protocol):
    """A name and arguments, in whatever they came."""

    @property
    def function(self) -> str:
        """The tool's name."""
        ...

    @property
    def arguments(self) -> dict[str, Any]:
        """Name → value."""
        ...


def compare_in_order(
    expected: Sequence[ExpectedCall], calls: Sequence[Called], rules: Rules = CANONICAL
) -> tuple[float, float, float]:
    """The three axes of sound calls in the order of the expected ones, without evidence and without compiling.

    Args:
        expected: at least one expected call.
        calls: what was called: names and arguments that could be read.
        rules: the rule set.
    """
    slots = max(len(expected), len(calls))
    met = [_axes(wanted, call, rules) for wanted, call in zip(expected, calls, strict=False)]
    functions, arguments, arabics = zip(*met, strict=True) if met else ((), (), ())
    return sum(functions) / slots, sum(arguments) / slots, sum(arabics) / slots


def compare_in_any_order(
    expected: Sequence[ExpectedCall], calls: Sequence[Called], category: str, rules: Rules = CANONICAL
) -> tuple[float, float, float]:
    """The three axes under the best pairing (ruling 14), without evidence; at least one expected call and one made."""
    (function, argument, arabic, own), _ = composition(category)
    function += own
    found: list[list[tuple[float, float, float]]] = []
    worth: list[list[int]] = []
    for place, call in enumerate(calls):
        axes = [_axes(wanted, call, rules) for wanted in expected]
        found.append(axes)
        totals = [function * one[0] + argument * one[1] + arabic * one[2] for one in axes]
        worth.append([round(total * 1e9) * 4 + (place == number) for number, total in enumerate(totals)])
    met = [found[actual][number] for number, actual in sorted(assign(worth))]
    slots = max(len(expected), len(calls))
    functions, arguments, arabics = zip(*met, strict=True)
    return sum(functions) / slots, sum(arguments) / slots, sum(arabics) / slots


def _axes(wanted: ExpectedCall, call: Called, rules: Rules) -> tuple[float, float, float]:
    argument, arabic = compare_arguments(wanted.arguments, call.arguments, rules, wanted.accept)
    function = 1.0 if wanted.function in (call.function, WILDCARD) else 0.0
    return function, argument, 1.0 if arabic is None else arabic


def survey(calls: Sequence[ExpectedCall], rules: Rules = CANONICAL) -> tuple[bool, bool]:
    """Look over expected calls once: (plain, arabic).

    Plain: every axis is 1 whenever Python finds the actual calls equal to these. Arabic: preservation is applicable.
    """
    plain, arabic = bool(calls) or rules.nothing_expected == "abstain", False
    for call in calls:
        for value in call.arguments.values():
            kind = type(value)
            if kind is str:
                if not arabic and not value.isascii():
                    arabic = _FIRST <= value[0] <= _LAST or find_arabic(value) is not None
            elif kind is not int or rules.value_text != "json" or value in _UNSAFE_NUMBERS or abs(value) >= _SAFE_LIMIT:
                plain = False
                arabic = arabic or holds_arabic(value, rules)
    return plain, arabic


def expects_arabic(calls: Sequence[ExpectedCall]) -> bool:
    """Whether any expected argument is Arabic-valued: else preservation is not applicable (ruling 10)."""
    return survey(calls)[1]


_FIRST, _LAST = "\u0621", "\u064a"  # the letters with which most Arabic texts begin: two comparisons and no search
_UNSAFE_NUMBERS = (0, 1)  # Python calls these equal to False and True
_SAFE_LIMIT = 2**53  # beyond, a whole number and a double that Python calls equal are written differently
