"""Expected values that a model loses points for copying word for word from what the user said.

Attached particles of one letter are not the fault: tools say that they are to be dropped, and the rest is the value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from arabic_agent_eval.checks import Finding, path_text, shown
from arabic_agent_eval.derivation import bare_forms, leaves_of, stems_of, texts_in
from arabic_agent_eval.errors import DataError
from arabic_agent_eval.grading import compare_value
from arabic_agent_eval.items import ExpectedCall, Item
from arabic_agent_eval.ladder import EXACT
from arabic_agent_eval.lexicon import fold_short, load_lexicon
from arabic_agent_eval.text import has_arabic
from arabic_agent_eval.tools import Tool

RULE: Final = "verbatim_loses"
_WORD: Final = re.compile(r"[^\s«»\"'“”،,؛;:؟?!.…()\[\]]+")
_PARTICLES: Final = re.compile("[وف]?[بلكعه]?")
_MOST_WORDS, _MOST_PLACES = 40, 20  # words of a value; places where it may stand

_Place = tuple[str, int, int]
"""A text, and where a value begins and ends in it."""
_Copies = dict[tuple[str | int, ...], list[str]]
"""A place inside a value → how the user says what stands there."""


def check_copies(item: Item, tools: Mapping[str, Tool]) -> list[Finding]:
    """A finding for each Arabic value that stands in the user's words in a form that the item does not count in full.

    The grader compares the copy with the value and with what is accepted. A value that stands nowhere as a whole cannot
    be copied, and one that an earlier result, the context or the tool's schema holds as it is can be copied from there.
    """
    said, other = _Texts(spoken_texts(item)), _Texts(_other_texts(item))
    found = []
    for place, call in enumerate(item.expected_calls):
        for name, value in call.arguments.items():
            field = f"expected_calls[{place}].arguments.{name}"
            copies = {} if value == "*" else _copies(value, said, other)
            if copies and not (_counts(call, name, copies) or _in_schema(item, call, name, tools, copies)):
                found += [
                    Finding(item.id, RULE, path_text(field, path), _message(max(copied, key=len), _at(value, path)))
                    for path, copied in copies.items()
                ]
    return found


def spoken_texts(item: Item) -> list[str]:
    """What the user says: the user's messages, then the instruction."""
    turns = [turn.get("content") for turn in item.messages or () if turn.get("role") == "user"]
    return [text for text in (*turns, item.instruction) if isinstance(text, str) and text.strip()]


def _other_texts(item: Item) -> list[str]:
    return list(texts_in([item.context, item.error_response, [call.result for call in item.expected_calls]]))


def _copies(value: Any, said: _Texts, other: _Texts) -> _Copies:
    """The places inside a value where a copy differs from it."""
    found: _Copies = {}
    for path, leaf in leaves_of(value):
        if isinstance(leaf, str) and has_arabic(leaf) and not (said.hold(leaf) or other.hold(leaf)):
            copied = said.copies(leaf)
            if copied:
                found[path] = copied
    return found


def _counts(call: ExpectedCall, name: str, copies: _Copies) -> bool:
    """Tell whether one way of copying counts in full."""
    value, accepted = call.arguments[name], (call.accept or {}).get(name, ())
    tried = (
        _replaced(value, {path: found[min(turn, len(found) - 1)] for path, found in copies.items()})
        for turn in range(max(map(len, copies.values())))
    )
    return any(compare_value(value, copied, accepted)[0] == EXACT for copied in tried)


def _in_schema(item: Item, call: ExpectedCall, name: str, tools: Mapping[str, Tool], copies: _Copies) -> bool:
    try:
        tool = (tools if item.tools is None else item.own_tools).get(call.function)
    except (DataError, RecursionError):
        return False
    schema = tool.properties.get(name) if tool is not None and isinstance(tool.parameters, dict) else None
    held = _Texts(list(texts_in(schema)))
    return all(held.hold(_at(call.arguments[name], path)) for path in copies)


def _message(copy: str, value: str) -> str:
    return (
        f"The user says {shown(copy)} where {shown(value)} is expected, so a copy of the user's words loses points: "
        "expect or accept the words as they are said, or have the user say the value."
    )


def _replaced(value: Any, copies: dict[tuple[str | int, ...], str], path: tuple[str | int, ...] = ()) -> Any:
    if path in copies:
        return copies[path]
    if isinstance(value, dict) and copies:
        return {key: _replaced(member, copies, (*path, key)) for key, member in value.items()}
    if isinstance(value, list) and copies:
        return [_replaced(member, copies, (*path, place)) for place, member in enumerate(value)]
    return value


def _at(value: Any, path: tuple[str | int, ...]) -> str:
    for step in path:
        value = value[step]
    return str(value)


class _Texts:
    """Texts in which values are looked for, word by word."""

    def __init__(self, texts: list[str]) -> None:
        self._texts = texts
        self._words: list[list[re.Match[str]]] | None = None
        self._places: dict[str, list[tuple[int, int]]] = {}

    def hold(self, value: str) -> bool:
        """Tell whether the value stands there as it is, between the ends of words, after particles at most."""
        value = value.strip()
        return any(self._ends(text, value) for text in self._texts)

    @staticmethod
    def _ends(text: str, value: str) -> bool:
        start = text.find(value)
        for _ in range(_MOST_PLACES):
            if start < 0:
                return False
            # Two particles at most stand before it, and before them the word begins.
            before = _letters_before(text, start)
            if before is not None and _PARTICLES.fullmatch(before) and not _is_letter(text, start + len(value)):
                return True
            start = text.find(value, start + 1)
        return False

    def copies(self, value: str) -> list[str]:
        """How a value is said, particles dropped and then not; empty where it is not said as a whole."""
        words = fold_short(value).split()[:_MOST_WORDS]
        wanted = [(bare_forms(word), stems_of(word)) for word in words]
        named = bool(load_lexicon().names(load_lexicon().find(value).arabic))
        found: dict[str, None] = {}
        for text, start, end in self._spans(wanted) if wanted else ():
            copy = text[start:end]
            particles = _PARTICLES.match(copy)
            for cut in range(particles.end() if particles else 0, -1, -1):
                found[copy[cut:]] = None
            if copy.startswith("لل"):
                found[copy[2:]] = None
                if named:  # the article is a part of the name of a city or a country
                    found["ال" + copy[2:]] = None
        return list(found)

    def _spans(self, wanted: list[tuple[set[str], set[str]]]) -> Iterator[_Place]:
        lines = self._read()
        places = {place for form in wanted[0][0] | wanted[0][1] for place in self._places.get(form, ())}
        for line, first in sorted(places)[:_MOST_PLACES]:
            matches = lines[line][first : first + len(wanted)]
            if len(matches) == len(wanted) and all(map(_alike, matches, wanted)):
                yield self._texts[line], matches[0].start(), matches[-1].end()

    def _read(self) -> list[list[re.Match[str]]]:
        if self._words is None:
            self._words = [list(_WORD.finditer(text)) for text in self._texts]
            for line, matches in enumerate(self._words):
                for place, match in enumerate(matches):
                    for form in stems_of(fold_short(match[0])):
                        self._places.setdefault(form, []).append((line, place))
        return self._words


def _alike(match: re.Match[str], wanted: tuple[set[str], set[str]]) -> bool:
    word, (bare, stems) = fold_short(match[0]), wanted
    return not (bare.isdisjoint(stems_of(word)) and stems.isdisjoint(bare_forms(word)))


def _letters_before(text: str, end: int) -> str | None:
    """The letters between the beginning of a word and a place in it; None where they are more than two."""
    start = end
    while _is_letter(text, start - 1):
        start -= 1
        if end - start > 2:  # noqa: PLR2004
            return None
    return text[start:end]


def _is_letter(text: str, place: int) -> bool:
    return 0 <= place < len(text) and _WORD.fullmatch(text[place]) is not None
