"""One expected value against one actual: the ladder of rulings 1 to 7. No input raises."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from arabic_agent_eval.rules import CANONICAL, Rules
from arabic_agent_eval.strictjson import number_text
from arabic_agent_eval.text import fold_letters, has_arabic, normalize_arabic

_SCALARS: Final = frozenset({str, int, float, bool, type(None)})
_CONTAINERS: Final = (dict, list, tuple, Mapping)

EXACT: Final = 1.0
NORMALIZED: Final = 0.9
CASELESS: Final = 0.8
"""The rungs of the ladder (ruling 5); everything else is 0."""


def scalar_text(value: Any, rules: Rules = CANONICAL) -> str:
    """The text of a scalar (ruling 1): a string is itself, numbers as canonical JSON, ``true`` and ``false``."""
    if isinstance(value, str):
        return value
    if rules.value_text == "python":
        return _python_text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return number_text(value)
    return "null" if value is None else _python_text(value)


def _python_text(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - an integer beyond Python's limit for decimal text, or a caller's own object
        return hex(value) if isinstance(value, int) else repr(type(value))


def is_container(value: Any) -> bool:
    """Whether a value has members: an object or a list."""
    return type(value) not in _SCALARS and isinstance(value, _CONTAINERS)


def strings_in(value: Any) -> Iterable[str]:
    """Every string value inside, the value itself included; keys of objects are names, not values."""
    waiting = [value]
    while waiting:
        member = waiting.pop()
        if isinstance(member, str):
            yield member
        elif isinstance(member, Mapping):
            waiting.extend(member.values())
        elif isinstance(member, list | tuple):
            waiting.extend(member)


def holds_arabic(value: Any, rules: Rules = CANONICAL) -> bool:
    """Whether a value, or any string inside a container, holds Arabic (rulings 3, 10)."""
    if isinstance(value, str):
        return has_arabic(value)
    if not is_container(value):
        return False
    if rules.containers == "text":
        return has_arabic(_python_text(value))
    return any(map(has_arabic, strings_in(value)))


def rung(expected: Any, actual: Any, rules: Rules = CANONICAL) -> float:
    """How well an actual value matches an expected one: 1.0, 0.9, 0.8 or 0.0.

    Args:
        expected: the right value, not a wildcard; null is matched by null alone, as inside a list.
        actual: the value that was given.
        rules: the rule set.

    >>> rung("مكة", "مكه"), rung(["جدة"], ["جده"]), rung(2, "2.0")
    (0.9, 0.9, 0.0)
    """
    if type(expected) is str and type(actual) is str:
        return _text_rung(expected, actual, rules)
    if expected is None or actual is None:
        return EXACT if expected is actual else 0.0
    if rules.containers == "members" and (is_container(expected) or is_container(actual)):
        return _member_rung(expected, actual, rules)
    return _text_rung(scalar_text(expected, rules), scalar_text(actual, rules), rules)


def _text_rung(expected: str, actual: str, rules: Rules) -> float:
    """The ladder (ruling 5), first hit wins."""
    expected, actual = expected.strip(), actual.strip()
    if expected == actual:
        return EXACT
    if expected.isascii() and actual.isascii():
        return NORMALIZED if expected.lower() == actual.lower() else 0.0
    normal = _normal_form(expected, rules)
    if normal == _normal_form(actual, rules) and (normal or rules.empty_matches):
        return NORMALIZED
    return CASELESS if expected.lower() == actual.lower() else 0.0


def _normal_form(text: str, rules: Rules) -> str:
    if rules.lower_case == "after":
        return normalize_arabic(text)
    return (fold_letters(text) if has_arabic(text) else text.lower()).strip()


def _member_rung(expected: Any, actual: Any, rules: Rules) -> float:
    """The lowest rung of the members (ruling 6); 0 where the shapes differ."""
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        pairs = [(member, actual.get(name)) for name, member in expected.items() if member is not None]
    elif isinstance(expected, list | tuple) and isinstance(actual, list | tuple) and len(expected) == len(actual):
        pairs = list(zip(expected, actual, strict=True))
    else:
        return 0.0
    lowest = EXACT
    for member, other in pairs:
        lowest = min(lowest, rung(member, other, rules))
        if lowest == 0.0:
            break
    return lowest
