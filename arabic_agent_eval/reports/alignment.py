"""Two texts letter by letter: where they differ, and the names of the characters that do."""

from __future__ import annotations

import difflib
import unicodedata
from itertools import islice
from typing import Final, NamedTuple

COMPARED: Final = 400
"""Characters of a value that are shown and compared letter by letter."""
_NAMED = 6  # differing characters that are named


class Stretch(NamedTuple):
    """A part of two texts: the same in both, or what the one has in place of the other."""

    same: bool
    expected: str
    actual: str


def align(expected: str, actual: str) -> list[Stretch]:
    """Both texts in stretches.

    Texts longer than some hundred characters are cut; none are returned for texts that share little, since marks
    would hide more than they show.
    """
    expected, actual = expected[:COMPARED], actual[:COMPARED]
    matcher = difflib.SequenceMatcher(None, expected, actual, autojunk=False)
    if matcher.ratio() < 0.5:  # noqa: PLR2004 - below half of the letters
        return []
    return [Stretch(kind == "equal", expected[i:j], actual[k:m]) for kind, i, j, k, m in matcher.get_opcodes()]


def differences(stretches: list[Stretch]) -> list[str]:
    """What stands in place of what, by code point and name; of very many the first."""
    return [f"{there or 'nothing'} → {here or 'nothing'}" for there, here in character_pairs(stretches)]


def character_pairs(stretches: list[Stretch]) -> list[tuple[str, str]]:
    """The names of differing characters, those expected and those in their place; either may be none."""
    apart = (stretch for stretch in stretches if not stretch.same)
    return [(character_names(one.expected), character_names(one.actual)) for one in islice(apart, _NAMED)]


def character_names(text: str) -> str:
    """The first characters of a text by code point and name."""
    return " ".join(f"U+{ord(char):04X} {unicodedata.name(char, '')}".strip() for char in text[:_NAMED])
