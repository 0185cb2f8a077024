"""Where JSON may stand in a text that holds other things: its brackets, strings left aside, and no program code."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

# A line end breaks a string, because strict JSON has none inside: one stray quote cannot swallow what follows it.
_MARK = re.compile(r'[{}\[\]]|"(?:[^"\\\n]++|\\.)*+(")?')
_FENCE = re.compile(r"^[ \t]*+```++[ \t]*+([^\s`{\[]*+)", re.MULTILINE)
_DATA_FENCES = frozenset({"", "json", "jsonc", "text", "tool_call", "tool_calls", "function_call"})
_CANDIDATE = re.compile(r'\{[ \t\r\n]*+"|\[[ \t\r\n]*+\{')


def partner(text: str, start: int, limit: int) -> int | None:
    """Where the bracket that stands at ``start`` is closed, strings left aside; None when it is not."""
    depth = 0
    for mark in _MARK.finditer(text, start, limit):
        char = text[mark.start()]
        if char in "{[":
            depth += 1
        elif char in "}]":
            depth -= 1
            if not depth:
                return mark.end()
    return None


def spans(text: str, start: int, limit: int) -> Iterator[tuple[int, int]]:
    """The largest balanced objects and lists, in one pass; a bracket that is never closed is passed over."""
    place = start
    while opener := _CANDIDATE.search(text, place, limit):
        found, place = _balanced(text, opener.start(), limit)
        yield from found


def _balanced(text: str, start: int, limit: int) -> tuple[list[tuple[int, int]], int]:
    """The span of the bracket at ``start``, or, when it is not closed, those inside it that are not its data."""
    opened: list[int] = []
    closed: list[tuple[int, int]] = []
    after_string, data_depth = -1, sys.maxsize
    for mark in _MARK.finditer(text, start, limit):
        place, char = mark.start(), text[mark.start()]
        if char == '"':
            if mark[1] is None:
                return closed, mark.end()
            after_string = mark.end()
            continue
        if char in "{[":
            # The value of a key belongs to its object: if that is broken, so is the value.
            if after_string >= 0 and text[after_string:place].strip() == ":":
                data_depth = min(data_depth, len(opened))
            opened.append(place)
        else:
            first = opened.pop()
            while closed and closed[-1][0] > first:
                closed.pop()
            if len(opened) < data_depth:
                closed.append((first, mark.end()))
            if not opened:
                return closed, mark.end()
            if len(opened) == data_depth:
                data_depth = sys.maxsize
        after_string = -1
    return closed, limit


def outside_code(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The parts of a range that do not stand in a code block of a programming language."""
    place, inside, is_code = start, False, False
    for fence in _FENCE.finditer(text, start, end):
        inside = bool(fence[1]) or not inside
        was_code, is_code = is_code, inside and fence[1].lower() not in _DATA_FENCES
        if is_code and not was_code:
            yield place, fence.start()
        elif was_code and not is_code:
            place = fence.end()
    if not is_code:
        yield place, end
