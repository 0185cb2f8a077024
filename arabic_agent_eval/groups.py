"""Members of a whole by a name that each of them bears, such as its category or dialect."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

_Member = TypeVar("_Member")


def grouped(
    members: Iterable[_Member], key: Callable[[_Member], str], order: Iterable[str]
) -> dict[str, list[_Member]]:
    """Name → its members; no group is empty.

    Args:
        members: in the order that they keep within their group.
        key: the name that a member bears.
        order: the names that come first; others follow as they are met.
    """
    found: dict[str, list[_Member]] = {name: [] for name in order}
    for member in members:
        found.setdefault(key(member), []).append(member)
    return {name: several for name, several in found.items() if several}
