"""One expected value against one actual: the ladder of rulings 1 to 7.

An expected value is compiled once and asked for the rung of many actual ones. No input raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from arabic_agent_eval.rules import CANONICAL, Rules
from arabic_agent_eval.strictjson import number_text
from arabic_agent_eval.text import fold_letters, has_arabic, normalize_arabic

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
    except ValueError:  # an integer beyond Python's limit for decimal text
        return hex(value)


def _normal_form(text: str, rules: Rules) -> str:
    if rules.lower_case == "after":
        return normalize_arabic(text)
    return (fold_letters(text) if has_arabic(text) else text.lower()).strip()


def _is_container(value: Any) -> bool:
    return isinstance(value, Mapping | list | tuple)


def _strings(value: Any) -> Iterable[str]:
    """Every string value inside, the value itself included; keys of objects are names, not values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for member in value.values():
            yield from _strings(member)
    elif isinstance(value, list | tuple):
        for member in value:
            yield from _strings(member)


def holds_arabic(value: Any, rules: Rules) -> bool:
    """Whether a value, or any string inside a container, holds Arabic (rulings 3, 10)."""
    if isinstance(value, str):
        return has_arabic(value)
    if not _is_container(value):
        return False
    if rules.containers == "text":
        return has_arabic(_python_text(value))
    return any(map(has_arabic, _strings(value)))


class TextValue:
    """One right text, with the forms that the ladder asks for, each made when first needed."""

    __slots__ = ("_lower", "_normal", "rules", "stripped")

    def __init__(self, text: str, rules: Rules) -> None:
        self.rules = rules
        self.stripped = text.strip()
        self._normal: str | None = None
        self._lower: str | None = None

    @property
    def normal(self) -> str:
        """The canonical normal form."""
        if self._normal is None:
            self._normal = _normal_form(self.stripped, self.rules)
        return self._normal

    @property
    def lower(self) -> str:
        """The text without case."""
        if self._lower is None:
            self._lower = self.stripped.lower()
        return self._lower

    def rung(self, actual: Any) -> float:
        """The ladder (ruling 5), first hit wins."""
        if type(actual) is not str:
            if _is_container(actual) and self.rules.containers == "members":
                return 0.0
            actual = scalar_text(actual, self.rules)
        stripped = actual.strip()
        if stripped == self.stripped:
            return EXACT
        normal = _normal_form(stripped, self.rules)
        if normal == self.normal and (normal or self.rules.empty_matches):
            return NORMALIZED
        return CASELESS if stripped.lower() == self.lower else 0.0


class AnyValue:
    """The wildcard as a value: any present value is right (ruling 7)."""

    __slots__ = ()

    def rung(self, actual: Any) -> float:
        """1.0 for anything that is there."""
        return 0.0 if actual is None else EXACT


class MemberValues:
    """A list or an object: the lowest rung of its members (ruling 6)."""

    __slots__ = ("members", "size")

    def __init__(self, value: Any, rules: Rules) -> None:
        self.members: list[Right] | dict[Any, Right]
        if isinstance(value, Mapping):
            self.members = {key: compile_value(member, rules) for key, member in value.items() if member is not None}
        else:
            self.members = [compile_value(member, rules) for member in value]

    def rung(self, actual: Any) -> float:
        """The lowest rung of the members, 0.0 when the shapes differ."""
        members = self.members
        if isinstance(members, dict):
            if not isinstance(actual, Mapping):
                return 0.0
            pairs: Iterable[tuple[Right, Any]] = ((right, actual.get(key)) for key, right in members.items())
        else:
            if not isinstance(actual, list | tuple) or len(actual) != len(members):
                return 0.0
            pairs = zip(members, actual, strict=True)
        lowest = EXACT
        for right, member in pairs:
            rung = 0.0 if member is None and not isinstance(right, NullValue) else right.rung(member)
            if rung == 0.0:
                return 0.0
            lowest = min(lowest, rung)
        return lowest


class NullValue:
    """A null inside a list: matched by null alone."""

    __slots__ = ()

    def rung(self, actual: Any) -> float:
        """1.0 for null alone."""
        return EXACT if actual is None else 0.0


Right = TextValue | AnyValue | MemberValues | NullValue


def compile_value(value: Any, rules: Rules) -> Right:
    """The compiled form of an expected value; null inside a list is matched by null alone."""
    if value is None:
        return NullValue()
    if _is_container(value):
        return MemberValues(value, rules) if rules.containers == "members" else TextValue(_python_text(value), rules)
    return TextValue(scalar_text(value, rules), rules)
