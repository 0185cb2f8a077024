"""Words that tell one kind of Arabic from another: question words, negations, particles, pronouns, common verbs.

The lists are in ``data/dialect_markers.json``, written for this package and read once, when first needed. They are
there to check item sets and never take part in a score.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

from arabic_agent_eval.lexicon import fold_short
from arabic_agent_eval.text import fold_all

TANWEEN: Final = "\u064b"
_QUOTED: Final = re.compile(r'«[^«»]*»|"[^"]*"|“[^“”]*”')
_LONGEST: Final = 3  # words of a phrase
_STEM = 3  # letters that are left of a word without its article, at least


class Marker(NamedTuple):
    """A word of a text that marks its kind of Arabic.

    Attributes:
        word: as the lists have it or, for a verb, as the text has it; folded.
        dialects: the kinds of Arabic in which it is at home, ``msa`` among them.
        sure: whether it is at home in no other one: always one dialect then.
    """

    word: str
    dialects: frozenset[str]
    sure: bool


@dataclass(frozen=True, slots=True)
class MarkerLists:
    """The lists, with folded keys.

    Attributes:
        words: a word or phrase → what it marks.
        openings: the first words of phrases.
        bodies: verbs without what stands before them.
        forms: what may stand before a verb, and what that marks.
        beginnings: what may stand before any word of three letters or more.
        negated: what verbs are negated with, before and after, and what that marks.
        whole: words that are not taken apart.
    """

    words: dict[str, Marker]
    openings: frozenset[str]
    bodies: frozenset[str]
    forms: dict[str, Marker]
    beginnings: dict[str, Marker]
    negated: tuple[str, str, frozenset[str]]
    whole: frozenset[str]


@cache
def load_markers() -> MarkerLists:
    """The lists of the package, read once."""
    source = json.loads(files("arabic_agent_eval").joinpath("data/dialect_markers.json").read_text("utf-8"))
    verbs, beginnings, whole = source.pop("verbs"), source.pop("beginnings"), source.pop("whole")
    homes: dict[str, set[str]] = {}
    for dialect, lists in source.items():
        for word in (*lists["only"], *lists["also"]):
            homes.setdefault(_key(word), set()).add(dialect)
    sure = {_key(word) for lists in source.values() for word in lists["only"]}
    words = {word: Marker(word, frozenset(dialects), word in sure) for word, dialects in homes.items()}
    return MarkerLists(
        words=words,
        openings=frozenset(word.partition(" ")[0] for word in words if " " in word),
        bodies=frozenset(stem + ending for stem in verbs["stems"] for ending in verbs["endings"]),
        forms={
            before: Marker(before, frozenset(form["marks"]), form["sure"])
            for form in verbs["forms"]
            for before in form["before"]
        },
        beginnings={one["before"]: Marker(one["before"], frozenset(one["marks"]), sure=False) for one in beginnings},
        negated=(verbs["negated"]["before"], verbs["negated"]["after"], frozenset(verbs["negated"]["marks"])),
        whole=frozenset(map(fold_all, whole)),
    )


def find_markers(text: str, names: frozenset[str] = frozenset()) -> list[Marker]:
    """The words of a text that mark its kind of Arabic, in order; what is quoted is not the speaker's own.

    Args:
        text: what is said; its length costs linear time.
        names: folded words that mark nothing here, as they are parts of names.
    """
    lists, words = load_markers(), list(spoken_words(text))
    found, place = [], 0
    while place < len(words):
        marker, length = _marker_at(words, place, names, lists)
        if marker is not None:
            found.append(marker)
        place += length
    return found


def _key(word: str) -> str:
    folded = fold_all(word)
    return folded + TANWEEN if TANWEEN in word and " " not in word else folded


def spoken_words(text: str) -> Iterator[tuple[str, bool]]:
    """Each folded word outside quotation marks, and whether it has tanween, as «غداً» (tomorrow), not «غدا» (lunch)."""
    for raw in _QUOTED.sub(" ", text).split():
        folded = fold_short(raw).split()
        tanween = len(folded) == 1 and TANWEEN in raw
        for word in folded:
            yield word, tanween


def _marker_at(
    words: list[tuple[str, bool]], place: int, names: frozenset[str], lists: MarkerLists
) -> tuple[Marker | None, int]:
    """What stands at a place, and how many words it has."""
    word, tanween = words[place]
    forms = list(_forms(word, lists.whole))
    if not names.isdisjoint(forms):
        return None, 1
    for form in forms:
        for length in range(_LONGEST, 1, -1) if form in lists.openings else ():
            phrase = " ".join([form, *(following for following, _ in words[place + 1 : place + length])])
            if phrase in lists.words:
                return lists.words[phrase], phrase.count(" ") + 1
        marker = (lists.words.get(form + TANWEEN) if tanween else None) or lists.words.get(form)
        if marker is not None:
            return marker, 1
    if word in lists.whole:
        return None, 1
    following = words[place + 1][0] if place + 1 < len(words) else ""
    for form in forms:
        marker = _joined(form, lists)
        if marker is not None:
            return marker, 1
        marker = _negated(form, following, lists)
        if marker is not None:
            return marker, marker.word.count(" ") + 1
    return None, 1


def _forms(word: str, whole: frozenset[str]) -> Iterator[str]:
    """The word as it stands, without «and», and without its article; what is left is long enough to mean something."""
    yield word
    if word in whole:
        return
    bare = word
    if (word[0] == "و" and word[2:]) or (word[0] == "ف" and word[3:]):
        bare = word[1:]
        yield bare
    for article in ("ال", "بال", "فال", "لل"):
        if bare.startswith(article) and len(bare) - len(article) > _STEM:
            yield bare[len(article) :]


def _joined(form: str, lists: MarkerLists) -> Marker | None:
    """A verb with a particle, as «هيوصل» or «كنشوف», or a word with a demonstrative, as «هالاسبوع»."""
    for length in range(3, 0, -1):
        before, rest = form[:length], form[length:]
        marker = lists.forms.get(before) if rest in lists.bodies else None
        if marker is None and len(rest) >= _STEM:
            marker = lists.beginnings.get(before)
        if marker is not None:
            return marker._replace(word=form)
    return None


def _negated(form: str, following: str, lists: MarkerLists) -> Marker | None:
    """A verb between two parts of a negation, as «مايقدرش» or «ما يقدرش»."""
    before, after, marks = lists.negated
    verb, word = (following, f"{form} {following}") if form == before else (form[len(before) :], form)
    negated = form.startswith(before) and verb.endswith(after) and len(verb) > _STEM and verb[0] != "ا"
    return Marker(word, marks, sure=False) if negated else None
