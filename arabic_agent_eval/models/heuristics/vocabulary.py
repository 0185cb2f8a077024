"""Words as the baseline understands them: light stems, and the topics and dictionary entries that a word may mean.

The table of topics in ``data/baseline.json`` is general vocabulary of assistants, in English, standard Arabic and
dialects; it knows no tool and no item. Everything is a hint: two words that share a feature may be about one thing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

from arabic_agent_eval.lexicon import WORDS, load_lexicon
from arabic_agent_eval.text import (
    fold_diacritics,
    fold_digits,
    fold_hamza,
    fold_invisible,
    fold_letters,
    fold_unicode,
    fold_variants,
)

_LONGEST_WORD = 40
EDGES: Final = "()[]{}«»<>\"'“”‘’,،;؛:؟?!.…ـ*`"
"""Punctuation that may stand at the ends of a word."""

_PROCLITICS = ("و", "ف")
_PREPOSITIONS = ("ب", "ل", "ك", "ع", "ه", "ح", "س")
_SUFFIXES = (
    "تني", "ولي", "يلي", "هالي", "ني", "لي", "لنا", "لك", "له", "لها", "ها", "هم", "كم", "نا", "ات", "ين", "ون", "يه",
    "تي", "تك", "ته", "وا", "ه", "ي", "ك", "ا", "و", "ت",
)  # fmt: skip
_VERBAL = ("است", "ا", "ي", "ت", "ن", "م", "ك", "ب")
_WEAK = str.maketrans("", "", "اوي")
_SHORTEST = 3
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PARTS = str.maketrans("_|/", "   ")
_WORD = re.compile(r"\S+")


def without_tanween(word: str) -> str:
    """A word without the alef that only carries tanween: «ريالًا» becomes «ريال»."""
    return word[:-2] if len(word) > 4 and word.endswith(("\u064bا", "ا\u064b")) else word  # noqa: PLR2004


@lru_cache(maxsize=16_384)
def fold_word(word: str) -> str:
    """The spelling under which words are compared: no marks, plain letters, ASCII digits, small Latin letters."""
    if word.isascii():
        return word.lower()
    word = fold_variants(fold_diacritics(fold_invisible(fold_unicode(without_tanween(word)))))
    return fold_digits(fold_hamza(fold_letters(word))).lower()


class Word(NamedTuple):
    """A word of a text.

    Attributes:
        text: as written, without the punctuation around it.
        folded: the spelling for looking up.
        closes: the punctuation after it.
    """

    text: str
    folded: str
    closes: str


def words_of(text: str) -> list[Word]:
    """The words of a text; what is only punctuation belongs to the word before it."""
    found: list[Word] = []
    for token in _WORD.findall(text):
        inner = token.strip(EDGES)
        if inner:
            start = token.find(inner)
            found.append(Word(inner, fold_word(inner[:200]), token[start + len(inner) :]))
        elif found:
            found[-1] = found[-1]._replace(closes=found[-1].closes + token)
    return found


def bare_forms(word: str) -> Iterator[str]:
    """A folded word, and what is left of it without conjunction, preposition and article."""
    yield word
    for first in (word, *(word[1:] for one in _PROCLITICS if word.startswith(one) and len(word) > _SHORTEST)):
        if first is not word:
            yield first
        yield from _without_preposition(first)
        if first.startswith("ال") and len(first) > 3:  # noqa: PLR2004 - the article and two letters
            yield first[2:]


def _without_preposition(word: str) -> Iterator[str]:
    if len(word) <= _SHORTEST or word[0] not in _PREPOSITIONS:
        return
    rest = word[1:]
    yield rest
    if word.startswith("لل"):
        yield word[2:]
    elif rest.startswith("ال") and len(rest) > 3:  # noqa: PLR2004
        yield rest[2:]


@lru_cache(maxsize=16_384)
def stems_of(word: str) -> tuple[str, ...]:
    """The light stems of a folded word, itself first; a Latin word is stripped of its usual endings."""
    if word.isascii():
        return tuple(dict.fromkeys([word, *_english_stems(word)]))
    forms = list(bare_forms(word))
    for form in list(forms):
        forms += [form[: -len(end)] for end in _SUFFIXES if form.endswith(end) and len(form) - len(end) >= _SHORTEST]
    return tuple(dict.fromkeys(forms))


def _english_stems(word: str) -> Iterator[str]:
    for end, instead in (("ies", "y"), ("es", ""), ("s", ""), ("ing", ""), ("ing", "e"), ("ed", ""), ("ed", "e")):
        if word.endswith(end) and len(word) - len(end) >= _SHORTEST:
            yield word[: len(word) - len(end)] + instead


def _without_person(stems: Iterable[str]) -> Iterator[str]:
    """Verbs without the letter that says whose they are: «تذكر» and «يحول» as «ذكر» and «حول»."""
    return (stem[1:] for stem in stems if stem[0] in "يتنا" and len(stem) > _SHORTEST)


def _roots(stems: Iterable[str]) -> Iterator[str]:
    """What is left of Arabic stems without verbal prefixes and weak letters: three letters or four."""
    for stem in stems:
        for form in (
            stem,
            *(stem[len(p) :] for p in _VERBAL if stem.startswith(p) and len(stem) - len(p) >= _SHORTEST),
        ):
            root = form[:1] + form[1:].translate(_WEAK)
            if _SHORTEST <= len(root) <= 4:  # noqa: PLR2004
                yield root


@cache
def _tables() -> dict[str, Any]:
    tables: dict[str, Any] = json.loads(files("arabic_agent_eval").joinpath("data/baseline.json").read_text("utf-8"))
    return tables


def listed(name: str) -> frozenset[str]:
    """The folded words and phrases of one of the lists in ``data/baseline.json``."""
    return frozenset(map(fold_word, _tables()["words"][name]))


def spelt() -> dict[str, str]:
    """Folded dialect spellings of words about time, and how the reader of dates knows them."""
    return dict(_tables()["spelt"])


@cache
def _topics() -> dict[str, str]:
    """Word → its topics, parted by spaces."""
    found: dict[str, str] = {}
    for topic, words in _tables()["topics"].items():
        for word in map(fold_word, words.split()):
            found[word] = f"{found[word]} {topic}" if word in found else topic
    return found


@lru_cache(maxsize=16_384)
def features_of(word: str) -> frozenset[str]:
    """What a folded word may have in common with another: topics, dictionary entries, stems and roots."""
    if len(word) < 2 or len(word) > _LONGEST_WORD or word in EMPTY:  # noqa: PLR2004
        return frozenset()
    stems = stems_of(word)
    spoken = (*stems, *(_without_person(stems) if not word.isascii() else ()))
    found = {f"topic {topic}" for stem in spoken for topic in _topics().get(stem, "").split()}
    found |= set(_entries(stems, arabic=not word.isascii()))
    found |= {f"stem {stem}" for stem in stems if len(stem) >= _SHORTEST and stem not in EMPTY}
    if not word.isascii():
        found |= {f"root {root}" for root in _roots(stems)}
    return frozenset(found)


@lru_cache(maxsize=16_384)
def ordered_features(word: str) -> tuple[str, ...]:
    """The same in an order that does not depend on the process, where the first of equals is taken."""
    return tuple(sorted(features_of(word)))


def _entries(stems: Iterable[str], *, arabic: bool) -> Iterator[str]:
    """The dictionary's nouns and the groups of dialect words."""
    lexicon = load_lexicon()
    table = lexicon.arabic if arabic else lexicon.english
    for stem in stems:
        for entry in table.get(stem, ()):
            if lexicon.kinds[entry] in WORDS:
                yield f"noun {entry}"
        for group in lexicon.dialects.get(stem, ()) if arabic else ():
            yield f"dialect {group}"


WEIGHTS: Final = {"topic": 1.0, "stem": 1.0, "noun": 0.8, "dialect": 0.8, "root": 0.5}
"""Kind of feature → how much sharing it says."""


def features_in(text: str, limit: int = 60) -> frozenset[str]:
    """The features of the first words of a text, names with low lines or inner capitals included."""
    return _features_in(text[:1000], limit)


@lru_cache(maxsize=4_096)
def _features_in(text: str, limit: int) -> frozenset[str]:
    words = words_of(_CAMEL.sub(" ", text).translate(_PARTS))
    return frozenset().union(*(features_of(word.folded) for word in words[:limit]))


EMPTY: Final = listed("empty")
"""Words that say nothing about what is wanted."""
