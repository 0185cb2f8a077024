"""How well a Latin spelling fits an Arabic one by sound: the skeleton comparison.

Unvowelled Arabic cannot be transcribed by rule, so nothing is transcribed. Each Arabic letter stands for the set of
Latin spellings that people use for it (standard, French, English and Arabizi), vowels are free, and what remains
unmatched on either side is the distance. The measure knows sounds, not meanings: «قطن» fits "cotton", so known
translations must be looked up first.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final, NamedTuple

from arabic_agent_eval.text import fold_diacritics, fold_digits, fold_invisible, fold_unicode

TRANSLITERATED: Final = 0.9
"""From this score on, the Latin text is taken for a romanisation of the Arabic one."""
LONGEST: Final = 80
"""Characters; a longer value scores 0."""

_ACCEPTED: Final = {
    "ا": "a e i o u", "آ": "a e", "أ": "a e i o u 2", "إ": "i e a 2", "ٱ": "a e i o u", "ى": "a e i",
    "ء": "2", "ؤ": "2 o u w", "ئ": "2 i e y",
    "ب": "b p", "ت": "t", "ث": "th t s", "ج": "j g dj dg zh", "ح": "h 7", "خ": "kh 5 7 x", "د": "d", "ذ": "dh th z d",
    "ر": "r", "ز": "z", "س": "s c", "ش": "sh ch sch", "ص": "s 9", "ض": "d dh 9 z", "ط": "t th 6", "ظ": "z dh th d 6",
    "ع": "3", "غ": "gh g 8 3", "ف": "f ph v", "ق": "q k g c j 2 8 9", "ك": "k c ck q ch", "ل": "l", "م": "m",
    "ن": "n", "ه": "h", "ة": "h t", "و": "w wh ou oo o u v", "ي": "y i e ee j",
    "پ": "p b", "چ": "ch tch j g", "گ": "g k", "ڤ": "v f", "ژ": "zh j", "ک": "k c ck q", "ی": "y i e",
}  # fmt: skip
_PAIRS: Final = {"تش": "ch tch tsh", "كس": "x ks cks cs", "دج": "j dj dg"}
_FREE: Final = frozenset("اآأإٱىءؤئعةوي")
"""Letters that a Latin spelling may leave out: vowels, hamza, ain and ta marbuta."""
_LONG: Final = frozenset("اآىويةی")
_VOWELS: Final = frozenset("aeiou")

_ARABIC_WORD = re.compile(r"[\u0620-\u064a\u066e-\u06d3]+")
_NUMBER = re.compile(r"(?<![\w'])\d+(?![\w'])")
_ARTICLE = re.compile(r"\b(?:[aeiu]l|a[rnstdz]|ash|adh|ath)[-' ](?=\w)")
_DOUBLED = re.compile(r"(sh|kh|gh|th|dh|ch)(?=\1)|([b-df-hj-np-tv-xz])(?=\2)")
_LATIN_WORD = re.compile("[a-z0-9]+")


class _Letter(NamedTuple):
    """One Arabic letter (or pair): the Latin spellings that match it, and what it costs to leave it out."""

    spellings: tuple[str, ...]
    cost: int


def romanization_score(arabic: str, latin: str) -> float:
    """How well the Latin text spells the sounds of the Arabic one, from 0 (not at all) to 1 (every consonant).

    The order of the arguments is by script, whichever of the two was expected. Pairs that have no chance are given 0
    without being aligned, and so are values longer than :data:`LONGEST`.

    >>> romanization_score("الرياض", "ar-riyāḍ")
    1.0
    >>> romanization_score("دمشق", "Damascus") < TRANSLITERATED
    True
    """
    if len(arabic) > LONGEST or len(latin) > LONGEST:
        return 0.0
    return _score(arabic, latin)


@lru_cache(maxsize=8192)
def _score(arabic: str, latin: str) -> float:
    arabic = fold_diacritics(fold_invisible(fold_unicode(fold_digits(arabic))))
    latin = _plain(latin)
    if not latin or _NUMBER.findall(arabic) != _NUMBER.findall(latin):
        return 0.0
    letters = [letter for word in _ARABIC_WORD.findall(arabic) for letter in _read_word(word)]
    sounds, costs = _read_latin(_NUMBER.sub(" ", latin))
    strong, consonants = sum(letter.cost for letter in letters), sum(costs)
    if not letters or not sounds or strong > 2 * consonants or consonants > 4 * max(strong, 1):
        return 0.0
    if sum(char in _LONG for char in arabic) - _slots(sounds) - _articles(arabic) > 1:
        return 0.0
    return max(0.0, 1.0 - _distance(letters, sounds, costs) / max(strong, 1))


def _plain(latin: str) -> str:
    """Lower-case ASCII letters, digits and spaces; empty when the text holds letters of another script."""
    text = unicodedata.normalize("NFKD", fold_invisible(latin)).casefold()
    text = "".join(char for char in text if not unicodedata.combining(char) and char not in "ʿʾʻʼ’‘`´")
    return "" if any(char.isalpha() and not char.isascii() for char in text) else text


def _slots(sounds: str) -> int:
    """Places where the Latin text can hold an Arabic long vowel."""
    return sum(char in "aeiouyw23" for char in sounds)


def _articles(arabic: str) -> int:
    return sum(word.startswith("ال") for word in _ARABIC_WORD.findall(arabic))


def _read_word(word: str) -> list[_Letter]:
    letters: list[_Letter] = []
    article = len(word) > 3 and word.startswith("ال")  # noqa: PLR2004 - the article and two letters
    index = 0
    while index < len(word):
        if spellings := _PAIRS.get(word[index : index + 2]):
            letters.append(_Letter(tuple(spellings.split()), 1))
            index += 2
            continue
        char = word[index]
        free = char in _FREE or (char == "ه" and index == len(word) - 1) or (article and index == 1)
        free = free or (index > 0 and char == word[index - 1])
        if index == 0 and char in "وي" and len(word) > 1:
            free = False
        letters.append(_Letter(tuple(_ACCEPTED.get(char, "").split()), int(not free)))
        index += 1
    return letters


def _read_latin(latin: str) -> tuple[str, list[int]]:
    """The sounds, and what it costs to leave each out."""
    sounds, costs = "", []
    for word in _LATIN_WORD.findall(_DOUBLED.sub("", _ARTICLE.sub("", latin).replace("'", ""))):
        sounds += word
        costs += [_latin_cost(word, index) for index in range(len(word))]
    return sounds, costs


def _latin_cost(word: str, index: int) -> int:
    char = word[index]
    if char in _VOWELS or char == "2":
        return 0
    if char in "yw":
        return int(index == 0)
    if char == "h" and index == len(word) - 1:
        return int(index == 0 or word[index - 1] not in _VOWELS)
    return 1


def _distance(letters: list[_Letter], sounds: str, costs: list[int]) -> int:
    """The least cost of leaving out letters on both sides so that the rest match in order."""
    size = len(sounds)
    first = [0] * (size + 1)
    for place, cost in enumerate(costs):
        first[place + 1] = first[place] + cost
    rows = [first]
    for letter in letters:
        above, row = rows[-1], [rows[-1][0] + letter.cost]
        matches = _places(letter.spellings, sounds)
        for place in range(1, size + 1):
            best = min(above[place] + letter.cost, row[place - 1] + costs[place - 1])
            for width in matches.get(place, ()):
                best = min(best, above[place - width])
            row.append(best)
        rows.append(row)
    return rows[-1][-1]


def _places(spellings: tuple[str, ...], sounds: str) -> dict[int, list[int]]:
    """Where a spelling ends in the sounds → the lengths of those that do."""
    places: dict[int, list[int]] = {}
    for spelling in spellings:
        start = sounds.find(spelling)
        while start >= 0:
            places.setdefault(start + len(spelling), []).append(len(spelling))
            start = sounds.find(spelling, start + 1)
    return places
