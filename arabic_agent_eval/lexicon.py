"""Words that a difference is explained with: names in two languages, codes, dialect words.

The tables are in ``data/lexicon.json``, written for this package and read once, when first needed. They are hints
for naming a cause and never take part in a score.
"""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

from arabic_agent_eval.text import fold_all, fold_invisible

NAMES: Final = ("countries", "places", "currencies", "languages", "months", "weekdays")
"""Sections whose entries name one thing each: two entries of such a section are never the same."""
WORDS: Final = ("titles", "nouns")
"""Sections of words with a meaning or several."""

_LONGEST_KEY = 100  # characters: no entry is longer
_FREE_WORDS = frozenset({"the"})
_NONE: Final[frozenset[int]] = frozenset()
_PLAIN_ARABIC = re.compile("[ ء-ي0-9]*").fullmatch


class Senses(NamedTuple):
    """What a text may name: numbers of entries, by the column of the lexicon that it stands in."""

    arabic: frozenset[int]
    english: frozenset[int]
    codes: frozenset[int]

    @property
    def all(self) -> frozenset[int]:
        """The entries of all three columns."""
        return self.arabic | self.english | self.codes


_NO_SENSES: Final = Senses(_NONE, _NONE, _NONE)


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The tables, with folded keys.

    Attributes:
        kinds: the section of each entry.
        arabic: folded Arabic name without its article → entries; ``english`` and ``codes`` likewise.
        dialects: folded word or phrase → groups of words that mean the same.
        openings: first words of the keys that have several.
        placeholders: what stands for "no value", lower-cased and folded.
        truths: words for true and false.
        negations: folded words that turn a meaning round.
    """

    kinds: tuple[str, ...]
    arabic: dict[str, frozenset[int]]
    english: dict[str, frozenset[int]]
    codes: dict[str, frozenset[int]]
    dialects: dict[str, frozenset[int]]
    openings: frozenset[str]
    placeholders: frozenset[str]
    truths: dict[str, bool]
    negations: frozenset[str]

    def find(self, text: str) -> Senses:
        """Everything that the whole text may name; articles and spelling do not matter."""
        if len(text) > _LONGEST_KEY:
            return _NO_SENSES
        key = name_key(text)
        arabic = self.arabic.get(key, _NONE)
        return Senses(arabic, self.english.get(key, _NONE), self.codes.get(code_key(text), _NONE))

    def names(self, entries: frozenset[int]) -> dict[str, frozenset[int]]:
        """The entries that name one thing each, by section."""
        found: dict[str, set[int]] = {}
        for entry in entries:
            if self.kinds[entry] in NAMES:
                found.setdefault(self.kinds[entry], set()).add(entry)
        return {kind: frozenset(members) for kind, members in found.items()}


_fold_cached = lru_cache(maxsize=16_384)(fold_all)
_fold_recent = lru_cache(maxsize=16)(fold_all)  # one pair is folded by several tests


def fold_short(text: str) -> str:
    """``fold_all``, remembered for short texts: an expected value is compared with many actual ones."""
    return _fold_cached(text) if len(text) <= _LONGEST_KEY else _fold_recent(text)


def strip_article(word: str) -> str:
    """A folded Arabic word without «ال»; the rest has at least two letters."""
    return word[2:] if len(word) > 3 and word.startswith("ال") else word  # noqa: PLR2004


@lru_cache(maxsize=16_384)
def name_key(text: str) -> str:
    """The form under which a name is looked up: every fold, no articles, Latin letters without marks."""
    folded = fold_short(text)
    if not (folded.isascii() or _PLAIN_ARABIC(folded)):
        folded = "".join(char for char in unicodedata.normalize("NFKD", folded) if not unicodedata.combining(char))
    words = [strip_article(word) for word in folded.split()]
    return " ".join([word for word in words if word not in _FREE_WORDS] or words)


def code_key(text: str) -> str:
    """The form under which a code or sign is looked up: case, invisible marks and a last point do not matter."""
    return fold_invisible(text).strip().rstrip(".").casefold()


@cache
def load_lexicon() -> Lexicon:
    """The lexicon of the package, read once."""
    source = json.loads(files("arabic_agent_eval").joinpath("data/lexicon.json").read_text("utf-8"))
    entries = [(kind, entry) for kind in (*NAMES, *WORDS) for entry in source[kind]]
    columns = {name: _index(entries, name) for name in ("ar", "en")}
    codes = _index(entries, "codes", code_key)
    for key, members in _index(entries, "signs", code_key).items():
        codes[key] = codes.get(key, _NONE) | members
    dialects = _index([("dialects", {"ar": group}) for group in source["dialects"]], "ar", fold_all)
    return Lexicon(
        kinds=tuple(kind for kind, _ in entries),
        arabic=columns["ar"],
        english=columns["en"],
        codes=codes,
        dialects=dialects,
        openings=frozenset(
            key.partition(" ")[0] for table in (*columns.values(), dialects) for key in table if " " in key
        ),
        placeholders=frozenset(form for text in source["placeholders"] for form in placeholder_forms(text)),
        truths={fold_all(text): name == "true" for name in ("true", "false") for text in source[name]},
        negations=frozenset(map(fold_all, source["negations"])),
    )


def placeholder_forms(text: str) -> tuple[str, ...]:
    """The forms under which a placeholder is looked up: as it stands, and folded unless nothing is left then."""
    plain = fold_invisible(text).strip().casefold()
    folded = fold_short(text)
    return (plain, folded) if folded else (plain,)


def _index(entries: list[tuple[str, dict[str, Any]]], column: str, key: Any = name_key) -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for number, (_, entry) in enumerate(entries):
        for text in entry.get(column, ()):
            found.setdefault(key(text), set()).add(number)
    return {text: frozenset(members) for text, members in found.items()}
