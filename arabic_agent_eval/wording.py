"""Two short texts compared by their words: names and codes, numbers, dates, the other script, dialects, rewording.

The second half of :mod:`arabic_agent_eval.differences`, which asks it when neither the ladder nor a fold explains
a difference. Every function takes the expected text and the actual one and returns a cause or None.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from rapidfuzz.fuzz import ratio

from arabic_agent_eval.causes import Cause
from arabic_agent_eval.dates import same_moment
from arabic_agent_eval.lexicon import NAMES, Senses, fold_short, load_lexicon, name_key, strip_article
from arabic_agent_eval.numbers import digits_for_words, read_number
from arabic_agent_eval.romanization import TRANSLITERATED, romanization_score
from arabic_agent_eval.text import fold_digits, fold_unicode

_FEW_WORDS = 12
_MANY_WORDS = 60
_LONGEST_DATE = 120
_LONGEST_PHRASE = 5  # words
_ARABIZI_SCORE = 0.75  # a digit among the letters speaks for a romanisation too
_SIMILAR = 80  # rapidfuzz ratio of two forms of one word, inside longer text only

_ARABIC_LETTER = re.compile("[\u0620-\u064a\u0671-\u06d3\u0750-\u077f]")
_LATIN_LETTER = re.compile("[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
_ARABIZI = re.compile(r"[A-Za-z][2356789]|[2356789]['’]?[A-Za-z]")
_DIGIT_RUN = re.compile(r"\d+")
_NUMBER = re.compile(r"\d[\d.,:/-]*")
_ARTICLE = re.compile("^([وفبك]?)ال(?=..)")
_JOINED_ARTICLE = re.compile("^(و?)لل(?=..)")
_CLITIC = re.compile("^[وف]?(?:[بك]?ال|لل)(?=..)")
_PREFIX = re.compile("^[وبل](?=....)")

_STOP_WORDS = frozenset(
    {
        *("في", "من", "على", "الي", "عن", "مع", "ب", "ل", "و", "او", "ان", "يا"),
        *("the", "a", "an", "of", "in", "on", "at", "to", "for", "and", "by", "with", "is", "from"),
    }
)
_CHANGES_NEXT = frozenset(
    {
        *("بعد", "قبل", "عقب", "نصف", "نص", "ربع", "ثلث", "شبه"),
        *("after", "before", "half", "quarter"),
    }
)
"""Words that make another value of the word after them: «بعد غد» is not «غد»."""
_DIRECTIONS = frozenset({"من", "الي", "from", "to"})
_TELLING: Final[tuple[Cause, ...]] = (
    "translated", "transliterated", "code", "date_or_time", "dialect_word", "reworded", "extra_words",
    "definite_article",
)  # fmt: skip
"""When several words differ, for different causes, the first of these is named."""


def in_other_script(expected: str, actual: str) -> bool:
    """Tell whether one text has Arabic letters and the other has Latin letters and no Arabic one."""
    arabic, latin = sorted((fold_unicode(expected), fold_unicode(actual)), key=_has_arabic, reverse=True)
    return _has_arabic(arabic) and not _has_arabic(latin) and _LATIN_LETTER.search(latin) is not None


def _has_arabic(text: str) -> bool:
    return _ARABIC_LETTER.search(text) is not None


# --- names, codes, numbers -----------------------------------------------------------------------------------


def compare_names(expected: str, actual: str) -> Cause | None:
    """Known names and words as a whole: a code, a translation, or the name of something else."""
    lexicon = load_lexicon()
    one, other = lexicon.find(expected), lexicon.find(actual)
    if cause := _shared_sense(one, other):
        return cause
    if one.all and other.all and (bool(one.arabic) != bool(other.arabic)):
        kinds, others = lexicon.names(one.all), lexicon.names(other.all)
        if not kinds.keys().isdisjoint(others):
            return "wrong_value"
    return _compare_amounts(expected, actual)


def _shared_sense(one: Senses, other: Senses) -> Cause | None:
    if one.codes & other.all or one.all & other.codes:
        return "code"
    return "translated" if one.arabic & other.english or one.english & other.arabic else None


def _compare_amounts(expected: str, actual: str) -> Cause | None:
    """One number on each side, the same, and a code or sign for the name beside it: 100$ / 100 دولار."""
    one, other = fold_digits(expected), fold_digits(actual)
    numbers = _NUMBER.findall(one), _NUMBER.findall(other)
    if len(numbers[0]) != 1 or numbers[0] != numbers[1]:
        return None
    lexicon = load_lexicon()
    rests = [lexicon.find(_NUMBER.sub(" ", text).strip()) for text in (one, other)]
    return "code" if _shared_sense(*rests) == "code" else None


def compare_numbers(expected: str, actual: str) -> Cause | None:
    """The same number in other digits, separators or words, alone or inside a phrase; two numbers are different."""
    one, other = read_number(expected), read_number(actual)
    if one is None or other is None:
        written = _written(expected), _written(actual)
        return "number_words" if written[0] == written[1] != "" else None
    texts = [fold_digits(text).strip() for text in (expected, actual)]
    if one != other:
        return "wrong_value"
    if any(re.search(r"[^\W\d]", text) for text in texts):
        return "number_words"
    bare = [re.sub(r"[\s,+%]", "", text) for text in texts]
    return "punctuation" if bare[0] == bare[1] else "digits"


@lru_cache(maxsize=4096)
def _written(text: str) -> str:
    """The folded text with digits for its number words."""
    return fold_short(digits_for_words(text))


# --- words ---------------------------------------------------------------------------------------------------


class _Unit(NamedTuple):
    """A word, or a phrase that the lexicon knows as one; ``word`` is folded."""

    word: str
    bare: str
    groups: frozenset[int]

    @property
    def base(self) -> str:
        """The word without article and what is written together with it."""
        return _CLITIC.sub("", self.word)


_NO_GROUPS: Final[frozenset[int]] = frozenset()


@lru_cache(maxsize=16_384)
def _unit(word: str) -> _Unit:
    bare = _JOINED_ARTICLE.sub(r"\1ل", _ARTICLE.sub(r"\1", word))
    dialects = load_lexicon().dialects
    forms = (word, bare, strip_article(word), _CLITIC.sub("", word))
    groups = next((dialects[form] for form in forms if form in dialects), _NO_GROUPS)
    return _Unit(word, bare, groups)


def _alike(one: _Unit, other: _Unit) -> bool:
    same = one.word == other.word or one.bare == other.bare or one.base == other.base
    return same or not one.groups.isdisjoint(other.groups)


def _units(words: Sequence[str]) -> list[_Unit]:
    """The words of a folded text, with those joined that the lexicon knows as one phrase."""
    units, place = [], 0
    while place < len(words):
        width = _phrase_width(words, place)
        units.append(_unit(" ".join(words[place : place + width])))
        place += width
    return units


def _phrase_width(words: Sequence[str], place: int) -> int:
    lexicon = load_lexicon()
    opening = words[place]
    if opening not in lexicon.openings and strip_article(opening) not in lexicon.openings:
        return 1
    for width in range(min(_LONGEST_PHRASE, len(words) - place), 1, -1):
        phrase = " ".join(words[place : place + width])
        if phrase in lexicon.dialects or (key := name_key(phrase)) in lexicon.arabic or key in lexicon.english:
            return width
    return 1


def compare_wording(expected: str, actual: str) -> Cause | None:
    """Everything that takes the words one by one: the other script, dialects, articles, additions, rewording."""
    one, other = _written(expected).split(), _written(actual).split()
    if in_other_script(expected, actual):
        return _across(expected, actual, one, other)
    if not one or not other:
        return None
    if _turns(one) == _turns(other) and (cause := _added(one, other)):
        return cause
    if cause := _word_by_word(one, other):
        return cause
    if _same_moment(expected, actual):
        return "date_or_time"
    if _turns(one) != _turns(other) or _numbers_conflict(one, other) or _turned_round(one, other):
        return None
    return _reworded(one, other)


def _turns(words: Iterable[str]) -> int:
    """How many words turn the meaning round: «لا تحجز» is not «احجز»."""
    negations = load_lexicon().negations
    return sum(word in negations for word in words)


def _turned_round(one: Sequence[str], other: Sequence[str]) -> bool:
    """Tell whether a way goes elsewhere: «من الرياض إلى جدة» is not «من جدة إلى الرياض»."""
    goals = dict(pairwise(one))
    return any(
        word in _DIRECTIONS and word in goals and not _alike(_unit(goals[word]), _unit(goal))
        for word, goal in pairwise(other)
    )


def _numbers_conflict(one: Sequence[str], other: Sequence[str]) -> bool:
    """Tell whether each side has a number that the other lacks."""
    runs, others = (Counter(run for word in words for run in _DIGIT_RUN.findall(word)) for words in (one, other))
    return bool(runs - others) and bool(others - runs)


def _same_moment(expected: str, actual: str) -> bool:
    return max(len(expected), len(actual)) <= _LONGEST_DATE and same_moment(expected, actual)


def _added(one: Sequence[str], other: Sequence[str]) -> Cause | None:
    """One text is the other with words added, before, after or between."""
    short, long = sorted(([_unit(word) for word in words] for words in (one, other)), key=len)
    if len(short) == len(long) or all(unit.word in _STOP_WORDS for unit in short):
        return None
    kept: list[bool] = []
    place = 0
    for unit in long:
        same = place < len(short) and _alike(short[place], unit)
        if same and kept and not kept[-1] and long[len(kept) - 1].word in _CHANGES_NEXT:
            return None
        kept.append(same)
        place += same
    added = [unit.word for unit, same in zip(long, kept, strict=True) if not same]
    if place < len(short) or all(word.isdecimal() for word in (*added, *(unit.word for unit in short))):
        return None
    return "extra_words"


def _word_by_word(one: Sequence[str], other: Sequence[str]) -> Cause | None:
    """Each word, or what differs in the middle as a whole, explained by one cause; the most telling is named."""
    if cause := _pairwise([_unit(word) for word in one], [_unit(word) for word in other]):
        return cause
    if max(len(one), len(other)) > _MANY_WORDS:
        return None
    units, others = _units(one), _units(other)
    if cause := _pairwise(units, others):
        return cause
    start = _agreeing(units, others)
    end = _agreeing(units[start:][::-1], others[start:][::-1])
    rest, rest_other = (
        " ".join(unit.word for unit in side[start : len(side) - end]) for side in (units, others)
    )  # the part between what both begin and what both end with
    if (start or end) and rest and rest_other and in_other_script(rest, rest_other):
        cause = _across(rest, rest_other, rest.split(), rest_other.split())
        return None if cause == "latin_script" else cause
    return None


def _pairwise(units: Sequence[_Unit], others: Sequence[_Unit]) -> Cause | None:
    if len(units) != len(others):
        return None
    found: set[Cause] = set()
    for unit, other in zip(units, others, strict=True):
        if unit.word != other.word:
            cause = _unit_cause(unit, other)
            if cause is None:
                return None
            found.add(cause)
    return next((cause for cause in _TELLING if cause in found), None)


def _agreeing(units: Sequence[_Unit], others: Sequence[_Unit]) -> int:
    count = 0
    for unit, other in zip(units, others, strict=False):
        if not _alike(unit, other):
            break
        count += 1
    return count


def _unit_cause(unit: _Unit, other: _Unit) -> Cause | None:
    if unit.bare == other.bare:
        return "definite_article"
    if unit.base == other.base:
        return "extra_words"
    if not unit.groups.isdisjoint(other.groups):
        return "dialect_word"
    lexicon = load_lexicon()
    one, two = lexicon.find(unit.word), lexicon.find(other.word)
    if cause := _shared_sense(one, two):
        return cause
    if shared := (one.arabic & two.arabic) | (one.english & two.english):
        dated = all(lexicon.kinds[entry] in {"months", "weekdays"} for entry in shared)
        return "date_or_time" if dated else "reworded"
    if _sounds_alike(unit.word, other.word):
        return "transliterated"
    hours = sorted((unit.word, other.word), key=len)
    return "date_or_time" if hours[0].isdecimal() and hours[1] == hours[0] + ":00" else None


def _sounds_alike(one: str, other: str) -> bool:
    if not in_other_script(one, other):
        return False
    arabic, latin = (one, other) if _has_arabic(one) else (other, one)
    score = romanization_score(arabic, latin)
    return score >= TRANSLITERATED or (score >= _ARABIZI_SCORE and _ARABIZI.search(latin) is not None)


def _reworded(one: Sequence[str], other: Sequence[str]) -> Cause | None:
    """Most of the content is the same, in another order or form; a single word put for another is another value."""
    sides = [[unit for unit in map(_unit, words) if unit.word not in _STOP_WORDS] for words in (one, other)]
    if min(map(len, sides)) < 2 or max(map(len, sides)) > _MANY_WORDS:  # noqa: PLR2004 - no order without two
        return None
    left, left_other = (Counter(map(_canonical, side)) for side in sides)
    shared = left & left_other
    rest, rest_other = (_beyond(side, shared) for side in sides)
    if shared.total() >= 2:  # noqa: PLR2004
        rest, rest_other = _without_similar(rest, rest_other)
    matched, most = len(sides[0]) - len(rest), max(map(len, sides))
    if not rest and not rest_other:
        return "reworded"
    if _names_conflict(rest, rest_other):
        return None
    if not rest or not rest_other:
        return "reworded" if matched >= 2 and 2 * matched >= most else None  # noqa: PLR2004
    replaced = len(rest) == len(rest_other) == 1
    return "reworded" if matched >= 4 and 3 * matched >= 2 * most and not replaced else None  # noqa: PLR2004


def _beyond(side: Sequence[_Unit], shared: Mapping[str, int]) -> list[str]:
    """The words of one side that the other has not."""
    left, rest = dict(shared), []
    for unit in side:
        key = _canonical(unit)
        if left.get(key, 0):
            left[key] -= 1
        else:
            rest.append(_PREFIX.sub("", unit.base))
    return rest


def _canonical(unit: _Unit) -> str:
    """One text for all words that are alike."""
    return str(min(unit.groups)) if unit.groups else _PREFIX.sub("", unit.base)


def _without_similar(one: list[str], other: list[str]) -> tuple[list[str], list[str]]:
    """Both lists without pairs of words that are forms of one word; numbers have no forms."""
    rest, rest_other = [], list(other)
    for word in one:
        found = next((seen for seen in rest_other if _is_form(word, seen)), None)
        if found is None:
            rest.append(word)
        else:
            rest_other.remove(found)
    return rest, rest_other


def _is_form(word: str, other: str) -> bool:
    return not (word.isdecimal() or other.isdecimal()) and ratio(word, other) >= _SIMILAR


def _names_conflict(one: Iterable[str], other: Iterable[str]) -> bool:
    """Tell whether what is left on the two sides are different names of one kind: two cities, two days."""
    lexicon = load_lexicon()
    kinds = [{lexicon.kinds[entry] for word in side for entry in lexicon.find(word).all} for side in (one, other)]
    return not kinds[0].isdisjoint(kinds[1] & set(NAMES))


# --- the other script ----------------------------------------------------------------------------------------


class _Match(NamedTuple):
    """How the words of an Arabic and a Latin text fit, in any order."""

    same: int
    translated: int
    romanised: int
    codes: int
    fewest: int
    most: int

    @property
    def total(self) -> int:
        return self.same + self.translated + self.romanised + self.codes


def _across(expected: str, actual: str, one: Sequence[str], other: Sequence[str]) -> Cause | None:
    """One text is Arabic and the other Latin: lexicon, dates, sound, then part of the words (4.3 of the research)."""
    if _numbers_conflict(one, other) and not _same_moment(expected, actual):
        return "wrong_value"
    match = _match(one, other) if _has_arabic(expected) else _match(other, one)
    if match is not None and match.total == match.most and match.translated + match.codes:
        return "translated" if match.translated else "code"
    if _same_moment(expected, actual):
        return "date_or_time"
    if _sounds_alike(expected, actual):
        return "transliterated"
    if match is not None and 2 * match.total >= match.fewest:
        if match.translated:
            return "translated"
        if match.romanised and match.total == match.fewest:
            return "transliterated"
    return "latin_script"


def _match(arabic: Sequence[str], latin: Sequence[str]) -> _Match | None:
    if max(len(arabic), len(latin)) > _FEW_WORDS:
        return None
    units, others = ([unit.word for unit in _units(words) if unit.word not in _STOP_WORDS] for words in (arabic, latin))
    counts = Counter[str]()
    free = list(others)
    for word in units:
        kinds = ((kind, place) for place, seen in enumerate(free) if (kind := _word_match(word, seen)))
        if best := min(kinds, key=lambda pair: _KINDS.index(pair[0]), default=None):
            counts[best[0]] += 1
            del free[best[1]]
    fewest, most = sorted((len(units), len(others)))
    return _Match(counts["same"], counts["translated"], counts["romanised"], counts["codes"], fewest, most)


_KINDS = ("same", "translated", "romanised", "codes")


def _word_match(arabic: str, latin: str) -> str:
    if arabic == latin:
        return "same"
    lexicon = load_lexicon()
    one, other = lexicon.find(arabic), lexicon.find(latin)
    sounds = _sounds_alike(arabic, latin)
    if shared := one.arabic & other.english:
        # A title inside a name is part of the name when it is written by sound: Al-Malik.
        by_sound = sounds and all(lexicon.kinds[entry] == "titles" for entry in shared)
        return "romanised" if by_sound else "translated"
    if sounds:
        return "romanised"
    return "codes" if one.arabic & other.codes else ""
