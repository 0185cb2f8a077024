"""A second grader: slow and obvious, written from the rulings alone, letter by letter and by brute force."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

FOLD = {"\u0640": "", "آ": "ا", "أ": "ا", "إ": "ا", "ى": "ي", "ة": "ه"}


def is_arabic(char: str) -> bool:
    return 0x0600 <= ord(char) <= 0x06FF or 0x0750 <= ord(char) <= 0x077F


def any_arabic(text: str) -> bool:
    return any(is_arabic(char) for char in text)


def normal(text: str) -> str:
    folded = "".join(FOLD.get(char, char) for char in text)
    if not any_arabic(folded):
        folded = folded.lower()
    return folded.strip()


def text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return json.dumps(value)


def rung(expected: Any, actual: Any) -> float:
    if isinstance(expected, dict):
        if not isinstance(actual, dict):
            return 0.0
        wanted = {key: value for key, value in expected.items() if value is not None}
        if any(actual.get(key) is None for key in wanted):
            return 0.0
        return min([rung(value, actual[key]) for key, value in wanted.items()], default=1.0)
    if isinstance(expected, list):
        if not isinstance(actual, list) or len(actual) != len(expected):
            return 0.0
        return min([rung(one, other) for one, other in zip(expected, actual, strict=True)], default=1.0)
    if expected is None or actual is None:
        return 1.0 if expected is actual else 0.0
    if isinstance(actual, dict | list):
        return 0.0
    left, right = text_of(expected), text_of(actual)
    if left.strip() == right.strip():
        return 1.0
    if normal(left) == normal(right) and normal(left) != "":
        return 0.9
    if left.strip().lower() == right.strip().lower():
        return 0.8
    return 0.0


def strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for member in value.values() for text in strings(member)]
    if isinstance(value, list):
        return [text for member in value for text in strings(member)]
    return []


def holds_arabic(value: Any) -> bool:
    return any(any_arabic(text) for text in strings(value))


def one_argument(expected: Any, given: Any, accepted: list[Any]) -> tuple[float, float | None]:
    """The credit of one argument and whether its Arabic was kept, None where nothing Arabic was expected."""
    if expected == "*" and isinstance(expected, str):
        return (0.0 if given is None else 1.0), None
    if given is None:
        return 0.0, 0.0 if holds_arabic(expected) else None
    others = [rung(other, given) for other in accepted if other is not None]
    credit = max([rung(expected, given), *others])
    if not holds_arabic(expected):
        return credit, None
    # An accepted value counts only where the expected one is not there already.
    is_accepted = rung(expected, given) < 1.0 and any(other > 0.0 for other in others)
    return credit, 1.0 if is_accepted or holds_arabic(given) else 0.0


def one_call(expected: dict[str, Any], actual: dict[str, Any]) -> tuple[float, float, float]:
    function = 1.0 if expected["function"] in {"*", actual["function"]} else 0.0
    wanted = {key: value for key, value in expected["arguments"].items() if value is not None}
    accept = expected.get("accept", {})
    found = [one_argument(value, actual["arguments"].get(key), accept.get(key, [])) for key, value in wanted.items()]
    kept = [share for _, share in found if share is not None]
    argument = sum(credit for credit, _ in found) / len(found) if found else 1.0
    return function, argument, sum(kept) / len(kept) if kept else 1.0


def total(axes: tuple[float, float, float], category: str) -> float:
    function, argument, arabic = axes
    if category in {"dialect_handling", "error_recovery"}:
        return 0.30 * function + 0.20 * argument + 0.20 * arabic + 0.30 * function
    return 0.40 * function + 0.35 * argument + 0.25 * arabic


def by_place(expected: list[Any], actual: list[Any]) -> list[tuple[float, float, float]]:
    slots = []
    for place in range(max(len(expected), len(actual))):
        if place < len(expected) and place < len(actual):
            slots.append(one_call(expected[place], actual[place]))
        else:
            slots.append((0.0, 0.0, 0.0))
    return slots


Axes = tuple[float, float, float]


def mean(slots: list[Axes]) -> Axes:
    function, argument, arabic = (math.fsum(column) / len(slots) for column in zip(*slots, strict=True))
    return function, argument, arabic


def item(expected: list[Any], actual: list[Any]) -> Axes:
    """The three axes of an item whose calls are compared place by place."""
    if not expected:
        return (0.0, 0.0, 0.0) if actual else (1.0, 1.0, 1.0)
    return mean(by_place(expected, actual))


def best(expected: list[Any], actual: list[Any], category: str) -> list[Axes]:
    """The axes of every assignment whose total is the best there is, by trying every order of the actual calls."""
    if not expected:
        return [item(expected, actual)]
    size = max(len(expected), len(actual))
    table = [[one_call(wanted, call) for call in actual] for wanted in expected]
    found = []
    for order in itertools.permutations(range(size)):
        slots = [(0.0, 0.0, 0.0)] * size
        for place, other in enumerate(order):
            if place < len(expected) and other < len(actual):
                slots[place] = table[place][other]
        found.append(mean(slots))
    highest = max(total(axes, category) for axes in found)
    return [axes for axes in found if total(axes, category) > highest - 1e-8]
