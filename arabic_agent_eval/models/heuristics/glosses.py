"""Values of enumerations in the user's words: by the value itself, its gloss in the description, and the dictionary."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from arabic_agent_eval.lexicon import NAMES, code_key, load_lexicon, name_key
from arabic_agent_eval.models.heuristics.mentions import Reading
from arabic_agent_eval.models.heuristics.vocabulary import (
    bare_forms,
    features_in,
    features_of,
    fold_word,
    listed,
    without_tanween,
    words_of,
)
from arabic_agent_eval.strictjson import number_text

_MOST_VALUES = 200
_REGION = re.compile(r"[-_]([A-Z]{2})\b")
_GLOSS = re.compile(r"[^،,;؛|()]{1,60}")
_FILLER = listed("gloss")


class Choice(NamedTuple):
    """A value of an enumeration, the words that say it, and how surely they do."""

    value: Any
    places: range
    score: float


def region_of(locale: str) -> str:
    """The country of a locale: ``EG`` of ``ar-EG``; "" where it names none."""
    match = _REGION.search(locale)
    return match[1] if match else ""


def choices_in(reading: Reading, span: range, schema: Mapping[str, Any], region: str) -> list[Choice]:
    """The values that words of the span say, in the order of the words; the best value for each word."""
    values = [value for value in schema.get("enum", ())[:_MOST_VALUES] if isinstance(value, str | int | float)]
    description = schema.get("description")
    gloss = description[:4000] if isinstance(description, str) else ""
    senses = [_senses(value, gloss) for value in values]
    found: list[Choice] = []
    place = span.start
    while place < span.stop:
        choice = None
        for after in (place + 2, place + 1):
            if after <= span.stop and not any(taken in {"quote", "moment"} for taken in reading.taken[place:after]):
                choice = choice or _best(reading, range(place, after), values, senses, region)
        if choice is not None:
            found.append(choice)
        place = choice.places.stop if choice is not None else place + 1
    return found


class _Senses(NamedTuple):
    """What a value may mean: features of words, entries of the dictionary, whole words of its gloss."""

    features: frozenset[str]
    entries: frozenset[int]
    glosses: frozenset[str]


@lru_cache(maxsize=2_048)
def _senses(value: str | float, description: str) -> _Senses:
    text = value if isinstance(value, str) else number_text(value)
    spoken = text.replace("_", " ").replace("-", " ")[:100]
    lexicon = load_lexicon()
    entries = lexicon.codes.get(code_key(text[:100]), frozenset()) | lexicon.find(spoken).english
    named = frozenset(entry for entry in entries if lexicon.kinds[entry] in NAMES)
    glosses = list(_glosses(text, description))
    own = features_in(spoken) if not text.isupper() else frozenset()
    features = own | features_in(" ".join(glosses))
    stems = {form for gloss in glosses for word in words_of(gloss) for form in bare_forms(word.folded)}
    return _Senses(features, named, frozenset({fold_word(spoken), *stems} - {""}))


def _glosses(value: str, description: str) -> Iterator[str]:
    """What stands beside a value in a description: «double مزدوجة», «suite is جناح», «business (رجال الأعمال)»."""
    for match in list(re.finditer(rf"(?<![A-Za-z0-9]){re.escape(value[:60])}(?![A-Za-z0-9])", description))[:4]:
        rest = description[match.end() :].lstrip(" :=(–-→«\"'")
        gloss = _GLOSS.match(rest)
        if gloss is not None and not description[match.end() :].lstrip().startswith(("،", ",", "؛", ";", "|")):
            words = [word for word in words_of(gloss[0])[:5] if word.folded not in _FILLER and not word.text.isascii()]
            yield " ".join(word.text for word in words[:3])


def _best(
    reading: Reading, places: range, values: list[Any], senses: list[_Senses], region: str
) -> Choice | None:  # fmt: skip
    words = [reading.words[place].folded for place in places]
    features = features_of(words[0]) if len(words) == 1 else frozenset()
    entries = _entries(" ".join(reading.words[place].text for place in places))
    best = None
    for value, sense in zip(values, senses, strict=True):
        score = _score(words, features, entries, sense)
        if score and region and isinstance(value, str) and value.startswith(region):
            score += 0.25
        if score and (best is None or score > best.score):
            best = Choice(value, places, score)
    return best


def _score(words: list[str], features: frozenset[str], entries: frozenset[int], sense: _Senses) -> float:
    if sense.entries & entries:
        return 2.0 * len(words)
    if len(words) == 1 and not sense.glosses.isdisjoint(bare_forms(words[0])):
        return 2.0
    common = features & sense.features
    if any(feature.startswith(("topic", "noun")) for feature in common):
        return 1.5
    return 1.0 if any(feature.startswith(("stem", "dialect")) for feature in common) else 0.0


@lru_cache(maxsize=16_384)
def _entries(text: str) -> frozenset[int]:
    """The names that a word or two may be, without the preposition of the first."""
    lexicon = load_lexicon()
    first, _, second = " ".join(map(without_tanween, text.split())).partition(" ")
    found: frozenset[int] = frozenset()
    for form in bare_forms(first[:60]):
        whole = f"{form} {second}" if second else form
        found |= lexicon.arabic.get(name_key(whole[:90]), frozenset()) | lexicon.codes.get(code_key(whole), frozenset())
    return frozenset(entry for entry in found if lexicon.kinds[entry] in NAMES)


@lru_cache(maxsize=16_384)
def kinds_of(word: str) -> frozenset[str]:
    """The sections of the dictionary in which a word names something."""
    lexicon = load_lexicon()
    return frozenset(lexicon.kinds[entry] for entry in _entries(word))
