"""Numbers as people type them: digits of three systems, and number words of MSA, four dialect groups and English.

The reading is for naming a difference between two values (cause ``number_words``); it never earns a point.
Words are looked up after the folds of :mod:`arabic_agent_eval.text`, so diacritics, tatweel, alef and ta marbuta do
not matter. A hamza that stands alone is kept: without it the letter name «فاء» with its article would be «ألفا».
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from arabic_agent_eval.text import (
    fold_diacritics,
    fold_digits,
    fold_invisible,
    fold_letters,
    fold_unicode,
    fold_variants,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST_TEXT = 200
_LONGEST_WORD = 64


class _Atom(NamedTuple):
    """One word of a number. ``joined``: an «و» or "and" stands before it."""

    kind: str
    value: int | float
    english: bool = False
    joined: bool = False


class _Part(NamedTuple):
    """What a rule of the grammar read: its value, the scale that it counts in, the position after it."""

    value: int | float
    scale: int
    end: int


def _fold_word(word: str) -> str:
    """The spelling under which a word stands in the tables."""
    if word.isascii():
        return word.lower()
    word = fold_variants(fold_diacritics(fold_invisible(fold_unicode(word))))
    return fold_letters(word).replace("ئ", "ي").lower()


# --- the tables ----------------------------------------------------------------------------------------------

_UNITS = """
0 صفر زيرو
1 واحد واحدة واحدا وحدة وحده
2 اثنان اثنين اثنتان اثنتين إثنان اتنين اتنان تنين ثنين تنتين ثنتين جوج زوج زوز
3 ثلاثة ثلاث ثلاثا تلاتة تلات تلاتا
4 أربعة أربع أربعا ربعة
5 خمسة خمس خمسا
6 ستة ست ستا
7 سبعة سبع سبعا
8 ثمانية ثماني ثمان ثمانيا تمانية تماني تمان تمنية تمن ثمنية
9 تسعة تسع تسعا تسعود
"""
_BOUND_UNITS = "1 أحد إحدى\n2 اثنا اثني اثنتا اثنتي اتنا اتني"
_TEENS = """
11 أحدعشر احداشر حداشر احدعش حدعش حداعش احداعش إدعش ايدعش حداش حضاش
12 اثناعشر اثنعشر اثناشر اتناشر اطناشر طناشر طناش اثنعش اثناعش تنعش تناعش اتنعش اطنعش طنعش ثنعش
"""
_TENS = """
20 عشرون عشرين
30 ثلاثون ثلاثين تلاتين
40 أربعون أربعين ربعين
50 خمسون خمسين
60 ستون ستين
70 سبعون سبعين
80 ثمانون ثمانين تمانين تمنين ثمنين
90 تسعون تسعين
"""
_HUNDREDS = "200 مئتان مئتين مئتا مئتي مائتان مائتين مائتا مائتي ميتين ميتان"
_SCALES = """
1000 ألف ألفا
1000000 مليون مليونا
1000000000 مليار مليارا بليون بليونا
1000000000000 تريليون ترليون تريليونا
"""
_PLURAL_SCALES = """
1000 آلاف تلاف تالاف
1000000 ملايين
1000000000 مليارات بلايين
1000000000000 تريليونات ترليونات
"""
_DUAL_SCALES = "1000 ألفان ألفين ألفي\n1000000 مليونان مليونين مليوني\n1000000000 ملياران مليارين ملياري بليونين"
_FRACTIONS = {1 / 2: "نص نصف", 1 / 3: "ثلث تلت", 1 / 4: "ربع", 2 / 3: "ثلثان ثلثين تلتين"}

_STEMS = {
    3: "ثلاث تلات ثلث تلت", 4: "أربع ربع", 5: "خمس", 6: "ست", 7: "سبع", 8: "ثمان ثماني ثمن تمان تماني تمن", 9: "تسع",
}  # fmt: skip
_TEEN_STEMS = {3: "ثل تل", 6: "س"}
_TEEN_ENDINGS = "طعش تعش طعشر تعشر تاعش طاعش تاشر طاشر تاش طاش عشر عشرة"

_ENGLISH_SMALL = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen"""
_ENGLISH_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ENGLISH_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}

# In a longer text each of these alone is more often a text, a spouse, a unit, a price, a quarter of a town.
_SHY_WORDS = "نص نصف ثلث تلت ربع ثلثان ثلثين تلتين زوج زوز وحده تمن half quarter"
_SHY = frozenset(_SHY_WORDS.split())


def _rows(kind: str, table: str) -> dict[str, _Atom]:
    """Atoms of a table whose lines are a value and its spellings."""
    lines = (line.split() for line in table.strip().splitlines())
    return {_fold_word(word): _Atom(kind, int(value)) for value, *words in lines for word in words}


def _compounds() -> dict[str, _Atom]:
    """Words written as one: خمستاشر, خمسمئة, خمسميت (before a scale), خمستلاف."""
    atoms: dict[str, _Atom] = {}
    for unit, stems in _STEMS.items():
        for stem in map(_fold_word, stems.split()):
            atoms |= {stem + ending: _Atom("hundreds", unit * 100) for ending in ("ميه", "مايه")}
            atoms[stem + "ميت"] = _Atom("construct", unit * 100)
            atoms |= {stem + ending: _Atom("thousands", unit * 1000) for ending in ("تلاف", "تالاف")}
        for stem in f"{stems} {_TEEN_STEMS.get(unit, '')}".split():
            atoms |= {_fold_word(stem + ending): _Atom("teen", 10 + unit) for ending in _TEEN_ENDINGS.split()}
    return atoms


def _english() -> dict[str, _Atom]:
    """English words, with the hyphenated forms such as twenty-five."""
    small, tens = _ENGLISH_SMALL.split(), _ENGLISH_TENS.split()
    kinds = ["unit"] * 10 + ["ten"] + ["teen"] * 9
    atoms = {
        word: _Atom(kind, value, english=True) for value, (word, kind) in enumerate(zip(small, kinds, strict=True))
    }
    for row, word in enumerate(tens, start=2):
        atoms[word] = _Atom("tens", row * 10, english=True)
        atoms |= {f"{word}-{unit}": _Atom("teen", row * 10 + n, english=True) for n, unit in enumerate(small[1:10], 1)}
    atoms |= {word: _Atom("scale", value, english=True) for word, value in _ENGLISH_SCALES.items()}
    atoms["hundred"] = _Atom("hundred", 100, english=True)
    atoms |= {"half": _Atom("fraction", 0.5, english=True), "quarter": _Atom("fraction", 0.25, english=True)}
    return atoms | {"and": _Atom("and", 0), "minus": _Atom("minus", 0), "point": _Atom("point", 0)}


def _lexicon() -> dict[str, _Atom]:
    """Folded word → what it contributes to a number."""
    atoms = _compounds() | _english()
    for kind, table in (
        ("unit", _UNITS), ("bound", _BOUND_UNITS), ("teen", _TEENS), ("tens", _TENS), ("hundreds", _HUNDREDS),
        ("ten", "10 عشرة عشر عشرا"), ("hundred", "100 مئة مائة مية ميا"), ("construct", "100 ميت"),
        ("scale", _SCALES), ("scales", _PLURAL_SCALES), ("dual", _DUAL_SCALES),
        ("and", "0 و"), ("minus", "0 سالب ناقص"), ("point", "0 فاصلة"), ("except", "0 إلا"),
        ("quarters", "0 أرباع تربع"),
    ):  # fmt: skip
        atoms |= _rows(kind, table)
    for value, words in _FRACTIONS.items():
        atoms |= {_fold_word(word): _Atom("fraction", value) for word in words.split()}
    return atoms


_WORDS = _lexicon()
_ONE = _WORDS["واحد"]
_DIGITS = re.compile(r"[+-]?(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+|(?=\.[0-9]))(?:\.[0-9]+)?")
_IDENTIFIER = re.compile(r"[+-]?0[0-9,]{2}")
_SIGNS = str.maketrans({"−": "-", "،": ","})
_EDGES = "()[]{}«»<>\"'“”‘’,،;؛:؟?!.…"


# --- from words to atoms -------------------------------------------------------------------------------------


def _read_digits(word: str) -> int | float | None:
    """The number that one word of digits says; None for an identifier such as 0501234567."""
    word = fold_digits(fold_invisible(word)).translate(_SIGNS)
    if _DIGITS.fullmatch(word) is None or _IDENTIFIER.match(word) is not None:
        return None
    word = word.replace(",", "")
    return _tidy(float(word)) if "." in word else int(word)


def _tidy(value: float) -> int | float:
    """The value as an int where it is whole (ruling 1)."""
    return int(value) if value == int(value) else value


def _read_atom(word: str) -> _Atom | None:
    """What one word contributes, or None when it is no part of a number."""
    if len(word) > _LONGEST_WORD:
        return None
    folded = _fold_word(word)
    atom = _WORDS.get(folded)
    if atom is not None:
        return atom
    joined = folded.startswith("و") and len(folded) > 1
    if joined and (atom := _WORDS.get(folded[1:])) is not None:
        return atom._replace(joined=True)
    value = _read_digits(fold_diacritics(fold_invisible(word))[1:] if joined else word)
    return None if value is None else _Atom("digits", value, joined=joined)


# --- the grammar: each rule reads from a position and returns what it read, or None ---------------------------


def _at(atoms: list[_Atom], index: int, *kinds: str) -> _Atom | None:
    """The atom at the position when it is of one of the kinds."""
    return atoms[index] if index < len(atoms) and atoms[index].kind in kinds else None


def _joins(atoms: list[_Atom], index: int) -> bool:
    """Tell whether the atom there may be added to what precedes it: Arabic needs «و», English does not."""
    if index >= len(atoms):
        return False
    # «وأحد عشر» and «واحد» fold to the same word, so a one before a ten may hold the «و» that is needed.
    hidden = atoms[index] == _ONE and index + 1 < len(atoms) and atoms[index + 1].kind in ("ten", "tens")
    return hidden or atoms[index].joined or (atoms[index].english and atoms[index - 1].english)


def _follows(atoms: list[_Atom], index: int, *kinds: str) -> _Atom | None:
    """The atom at the position when it is of one of the kinds and no «و» stands before it."""
    atom = _at(atoms, index, *kinds)
    return None if atom is None or atom.joined else atom


def _read_unit(atoms: list[_Atom], index: int) -> int | None:
    """3 … 9 before a hundred or a plural scale, where تلت and ربع are three and four, not fractions."""
    atom = _at(atoms, index, "unit", "fraction")
    if atom is None or _follows(atoms, index + 1, "hundred", "scales") is None:
        return None
    if atom.kind == "unit":
        return int(atom.value)
    return {1 / 3: 3, 1 / 4: 4}.get(atom.value)


def _below_hundred(atoms: list[_Atom], index: int) -> _Part | None:
    """خمسة · خمسة عشر · خمسة وعشرين · عشرين · twenty five."""
    atom = _at(atoms, index, "unit", "bound", "ten", "teen", "tens")
    if atom is None:
        return None
    following = atoms[index + 1] if index + 1 < len(atoms) else None
    if following is not None and atom.value and not atom.english and atom.kind in ("unit", "bound"):
        ends = following.kind == "ten" and not following.joined
        if (ends or (following.kind == "tens" and following.joined)) and not following.english:
            return _Part(atom.value + following.value, 1, index + 2)
    if atom.kind == "tens" and atom.english:
        unit = _follows(atoms, index + 1, "unit")
        if unit is not None and unit.english and unit.value:
            return _Part(atom.value + unit.value, 1, index + 2)
    return None if atom.kind == "bound" else _Part(atom.value, 1, index + 1)


def _below_thousand(atoms: list[_Atom], index: int) -> _Part | None:
    """ثلاثمئة وخمسين · تلات مية · مية وخمسة وعشرين · two hundred and five."""
    unit = _read_unit(atoms, index)
    if unit is not None and _at(atoms, index + 1, "hundred"):
        hundreds, end = unit * 100, index + 2
    elif atom := _at(atoms, index, "hundred", "hundreds"):
        hundreds, end = int(atom.value), index + 1
    elif unit is not None:
        return _Part(unit, 1, index + 1)
    else:
        return _below_hundred(atoms, index)
    rest = _below_hundred(atoms, end) if _joins(atoms, end) else None
    return _Part(hundreds, 1, end) if rest is None else _Part(hundreds + rest.value, 1, rest.end)


def _read_group(atoms: list[_Atom], index: int) -> _Part | None:
    """A count and its scale, or either: خمسين ألف · ألفين · 2.5 مليون · ميت ألف · خمسة."""
    atom = atoms[index]
    if atom.kind in ("scale", "dual", "thousands"):
        scale = 1000 if atom.kind == "thousands" else int(atom.value)
        return _Part(atom.value * 2 if atom.kind == "dual" else atom.value, scale, index + 1)
    if atom.kind in ("digits", "construct"):
        count: _Part | None = _Part(atom.value, 1, index + 1)
    else:
        count = _below_thousand(atoms, index)
    scale_atom = None if count is None else _follows(atoms, count.end, "scale", "scales")
    if count is not None and scale_atom is not None:
        return _Part(count.value * scale_atom.value, int(scale_atom.value), count.end + 1)
    return None if atom.kind == "construct" else count


def _read_fraction(atoms: list[_Atom], index: int) -> _Part | None:
    """نص · ثلاثة أرباع · نص مليون."""
    atom = _at(atoms, index, "fraction")
    if atom is not None and _read_unit(atoms, index) is None:
        scale = _follows(atoms, index + 1, "scale")
        return _Part(atom.value * scale.value, 1, index + 2) if scale else _Part(atom.value, 1, index + 1)
    three = _at(atoms, index, "unit")
    if three is not None and three.value == 3 and _follows(atoms, index + 1, "quarters"):  # noqa: PLR2004
        return _Part(0.75, 1, index + 2)
    return None


def _read_sum(atoms: list[_Atom], index: int) -> _Part | None:
    """Groups of falling scale: مليون وميتين ألف وخمسة."""
    total = _read_group(atoms, index)
    while total is not None and total.scale > 1 and _joins(atoms, total.end):
        group = _read_group(atoms, total.end)
        if group is None or group.scale >= total.scale:
            break
        total = _Part(total.value + group.value, group.scale, group.end)
    return total


def _read_tail(atoms: list[_Atom], body: _Part) -> _Part:
    """What may follow a number: ونص · إلا ربع · ونص مليون · فاصلة خمسة. A fraction counts in the last scale."""
    index = body.end
    if _at(atoms, index, "except") and (atom := _follows(atoms, index + 1, "fraction")):
        return _Part(body.value - atom.value * body.scale, 1, index + 2)
    if (atom := _at(atoms, index, "point")) and not atom.joined:
        decimals = _read_group(atoms, index + 1) if _follows(atoms, index + 1, "unit", "tens", "teen", "ten") else None
        if decimals is not None and decimals.scale == 1 and isinstance(body.value, int):
            return _Part(float(f"{body.value}.{decimals.value}"), 1, decimals.end)
    atom = _at(atoms, index, "fraction")
    if atom is None or not atom.joined or _read_unit(atoms, index):
        return body
    scale = _follows(atoms, index + 1, "scale") if body.scale == 1 else None
    if scale is not None:
        return _Part((body.value + atom.value) * scale.value, 1, index + 2)
    return _Part(body.value + atom.value * body.scale, 1, index + 1)


def _read_phrase(atoms: list[_Atom], index: int) -> _Part | None:
    """The longest number that begins at the position."""
    if atoms[index].kind == "minus":
        inner = _read_phrase(atoms, index + 1) if _follows(atoms, index + 1, "unit", "ten", "teen", "tens") else None
        return None if inner is None else inner._replace(value=-inner.value)
    fraction = _read_fraction(atoms, index)
    if fraction is not None:
        return fraction
    body = _read_sum(atoms, index)
    return None if body is None else _read_tail(atoms, body)


# --- the public readers --------------------------------------------------------------------------------------


def read_number(text: str) -> int | float | None:
    """The number that the whole text says, in digits or in words; None when any part of it is something else.

    Whole numbers come back as ``int``. Strict: a unit, a percent sign, punctuation or a leading «و» makes it None.
    Digits with a leading zero are a number up to two digits (``05``); longer ones are an identifier (a telephone).
    Texts longer than 200 characters are None.

    >>> read_number("خمسة وعشرون"), read_number("٣٫٥"), read_number("تلات تلاف"), read_number("خمسة ريال")
    (25, 3.5, 3000, None)
    """
    if len(text) > _LONGEST_TEXT:
        return None
    atoms: list[_Atom] = []
    conjunction = False
    for word in text.split():
        atom = _read_atom(word)
        if atom is None or (conjunction and (atom.joined or atom.kind == "and")):
            return None
        if atom.kind != "and":
            atoms.append(atom._replace(joined=True) if conjunction else atom)
        conjunction = atom.kind == "and"
    if not atoms or conjunction or atoms[0].joined:
        return None
    part = _read_phrase(atoms, 0)
    return None if part is None or part.end != len(atoms) else _tidy(part.value)


def number_words_in(text: str) -> list[tuple[int, int, int | float]]:
    """The maximal number phrases that hold a number word, as (first word, word after the last, value).

    Words are those of ``text.split()``; punctuation at the edges of a word is ignored but ends a phrase. An «و» on
    the first word belongs to the span and not to the number. A lone نص, ربع, زوج, وحدة or تمن inside a longer text is
    passed over: there it is usually something else. Digits alone are not listed.
    """
    words = text.split()
    return [phrase for run in _runs(words) for phrase in _phrases(run, words)]


def digits_for_words(text: str) -> str:
    """The text with each number phrase of :func:`number_words_in` in ASCII digits; other digits become ASCII too.

    An «و» on the first word stays, grouping commas go, white space and other words stay as they are.

    >>> digits_for_words("شقة خمسة"), digits_for_words("الدور ٣، شقة مية وخمسين")
    ('شقة 5', 'الدور 3، شقة 150')
    """
    places = [match.span() for match in re.finditer(r"\S+", text)]
    written, done, next_word = [], 0, 0
    for first, after, value in [*number_words_in(text), (len(places), len(places), 0)]:
        for start, end in places[next_word:first]:
            written += [text[done:start], _write_word(text[start:end])]
            done = end
        if first < after:
            opening, closing = (
                text[places[first][0] : places[first][1]],
                text[places[after - 1][0] : places[after - 1][1]],
            )
            written += [text[done : places[first][0]], _write_phrase(opening, value, closing)]
            done = places[after - 1][1]
        next_word = after
    return "".join([*written, text[done:]])


def _runs(words: list[str]) -> Iterator[list[tuple[int, _Atom]]]:
    """Neighbouring words that may form numbers, each with its place; punctuation and other words part them."""
    run: list[tuple[int, _Atom]] = []
    conjunction = False
    for place, word in enumerate(words):
        atom = _read_atom(word.strip(_EDGES))
        if atom is None or word[0] in _EDGES:
            yield run
            run, conjunction = [], False
        if atom is not None and atom.kind != "and":
            run.append((place, atom._replace(joined=True) if conjunction else atom))
        conjunction = atom is not None and atom.kind == "and"
        if word[-1] in _EDGES:
            yield run
            run, conjunction = [], False
    yield run


def _phrases(run: list[tuple[int, _Atom]], words: list[str]) -> Iterator[tuple[int, int, int | float]]:
    """The number phrases of a run, from the left; digits alone and shy words alone are passed over."""
    atoms = [atom for _, atom in run]
    index = 0
    while index < len(atoms):
        part = _read_phrase(atoms, index)
        end = index + 1 if part is None else part.end
        first, last = run[index][0], run[end - 1][0]
        if part is not None and (end - index > 1 or not _stands_back(atoms[index], words, first)):
            yield first, last + 1, _tidy(part.value)
        index = end


def _stands_back(atom: _Atom, words: list[str], place: int) -> bool:
    """Tell whether a phrase of one word is left as it is."""
    folded = _fold_word(words[place].strip(_EDGES))
    return atom.kind == "digits" or (len(words) > 1 and (folded in _SHY or folded.removeprefix("و") in _SHY))


def _write_word(word: str) -> str:
    """A word outside the phrases: only its digits change, and the commas of a grouped number go."""
    folded = fold_digits(word)
    return folded.replace(",", "") if _DIGITS.fullmatch(folded) else folded


def _write_phrase(opening: str, value: float, closing: str) -> str:
    """The digits of a phrase, with the punctuation and the «و» that stood at its edges."""
    before = opening[: len(opening) - len(opening.lstrip(_EDGES))]
    after = closing[len(closing.rstrip(_EDGES)) :]
    atom = _read_atom(opening.strip(_EDGES))
    return f"{before}{'و' if atom is not None and atom.joined else ''}{value}{after}"
