"""The words of dates and times: a text becomes a list of items, each of which means something to :mod:`.dates`.

Months of both calendars under their MSA, Levantine, Maghrebi and English names, weekdays, relative days, parts of the
day, ordinals, and the shapes that dates and times have in digits. The grammar over these items is in ``dates``.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from arabic_agent_eval.numbers import read_number
from arabic_agent_eval.text import (
    fold_diacritics,
    fold_digits,
    fold_invisible,
    fold_letters,
    fold_unicode,
    fold_variants,
)

_LARGEST_WORD = 59  # a day, an hour or minutes; years in words are not read


class Item(NamedTuple):
    """One meaningful phrase of a text: its kind, its number or name, its folded spelling.

    ``groups`` are the parts of a date or a time in digits, as the patterns below have them.
    """

    kind: str
    number: int = 0
    name: str = ""
    token: str = ""
    groups: tuple[str, ...] = ()


# --- the tables: a value, then its spellings; a low line stands for a space ------------------------------------

_MONTHS = """
1 يناير ينايير جانفي كانون_الثاني كانون_ثاني january jan
2 فبراير فيفري شباط february feb
3 مارس آذار march mar
4 أبريل إبريل أفريل نيسان april apr
5 مايو ماي أيار may
6 يونيو يونيه جوان حزيران june jun
7 يوليو يوليه يوليوز جويلية تموز july jul
8 أغسطس غشت أوت آب august aug
9 سبتمبر شتنبر أيلول september sep sept
10 أكتوبر تشرين_الأول تشرين_أول october oct
11 نوفمبر نونبر تشرين_الثاني تشرين_ثاني november nov
12 ديسمبر دجنبر كانون_الأول كانون_أول december dec
"""
_HIJRI_MONTHS = """
1 محرم المحرم muharram
2 صفر safar
3 ربيع_الأول ربيع_أول rabi_al-awwal
4 ربيع_الثاني ربيع_الآخر ربيع_ثاني rabi_al-thani
5 جمادى_الأولى جمادى_الأول جماد_الأول جماد_أول jumada_al-awwal jumada_al-ula
6 جمادى_الثانية جمادى_الآخرة جمادى_الثاني جماد_الثاني جماد_ثاني jumada_al-thani jumada_al-akhirah
7 رجب rajab
8 شعبان shaban sha'ban
9 رمضان ramadan ramadhan
10 شوال shawwal
11 ذو_القعدة ذي_القعدة ذوالقعدة dhul_qadah dhu_al-qadah
12 ذو_الحجة ذي_الحجة ذوالحجة dhul_hijjah dhu_al-hijjah
"""
_WEEKDAYS = """
0 الاثنين الإثنين الاتنين الثنين التنين لثنين لتنين monday mon
1 الثلاثاء الثلاثا التلاتاء التلاتا الثلاث التلات tuesday tue
2 الأربعاء الأربعا الأربع لاربع wednesday wed
3 الخميس لخميس thursday thu
4 الجمعة جمعة friday fri
5 السبت سبت لسبت saturday sat
6 الأحد الحد لحد sunday sun
"""
_RELATIVES = """
-2 أول_أمس أول_امبارح أول_إمبارح أول_مبارح أول_البارحة أولمبارح قبل_أمس قبل_البارحة قبل_يومين
-2 the_day_before_yesterday day_before_yesterday
-1 أمس إمبارح مبارح البارحة البارح لبارح yesterday
0 اليوم النهارده النهاردة الليوم today
1 غدا غد الغد بكرة بكرا باكر باجر غدوة tomorrow
2 بعد_غد بعد_غدا بعد_الغد بعد_بكرة بعد_بكرا بعد_باكر بعد_باجر عقب_باجر عقب_باكر عقب_بكرة بعد_غدوة بعد_يومين
2 the_day_after_tomorrow day_after_tomorrow after_tomorrow
7 بعد_أسبوع in_a_week
14 بعد_أسبوعين
"""
_PARTS = {
    "dawn": "الفجر فجرا فجر at_dawn dawn",
    "morning": "ص صباحا صباح الصباح الصبح صبح بالصباح الضحى ضحى am in_the_morning morning",
    "noon": "ظهرا الظهر ظهر",
    "afternoon": "العصر عصرا عصر بعد_الظهر بعد_الضهر in_the_afternoon afternoon",
    "sunset": "المغرب مغربا",
    "evening": "م مساء مساءا المساء المسا مسا بالمساء العشاء عشاء العشية عشية لعشية in_the_evening evening",
    "pm": "pm",
    "night": "ليلا الليل بالليل ليل at_night night",
}
PART_HOURS = {
    "dawn": (*range(7),), "morning": (*range(12),), "noon": (*range(10, 17),), "afternoon": (*range(12, 19),),
    "sunset": (*range(16, 21),), "evening": (*range(12, 24), 0), "pm": (*range(12, 24),),
    "night": (*range(18, 24), *range(6)),
}  # fmt: skip
"""Part of the day → the hours that may be said with it. «12 مساءً» is said of noon and of midnight."""

_NAMES = {
    "which": {
        "next": "القادم القادمة الجاي الجاية الجي المقبل المقبلة التالي التالية اللي_جاي اللي_جاية next coming",
        "last": "الماضي الماضية الفائت الفائتة الفايت الفايتة المنصرم اللي_فات اللي_فاتت last",
        "this": "هذا هذه هاد هيدا هاي this",
    },
    "period": {"week": "الأسبوع أسبوع week", "month": "الشهر month", "year": "السنة العام year"},
    "part": _PARTS,
    "era": {"hijri": "ه هجري هجرية ah", "gregorian": "ميلادي ميلادية ad"},
    "day": {"": "يوم نهار"},
    "filler": {"": "في من على at on of the شهر بتاريخ تماما بالضبط"},
    "clockmark": {"": "الساعة ساعة o'clock oclock"},
    "except": {"": "إلا غير"},
    "minutes": {"": "دقيقة دقائق دقايق دقيقه minutes"},
    "tonight": {"": "الليلة tonight"},
}
_ORDINALS = "الأول الثاني الثالث الرابع الخامس السادس السابع الثامن التاسع العاشر"
_FEMININE = "الواحدة الثانية الثالثة الرابعة الخامسة السادسة السابعة الثامنة التاسعة العاشرة"
_NUMBERS = {
    "month": _MONTHS,
    "hijri_month": _HIJRI_MONTHS,
    "weekday": _WEEKDAYS,
    "relative": _RELATIVES,
    "fixed": "0 منتصف_الليل نص_الليل نصف_الليل midnight\n12 منتصف_النهار نص_النهار noon midday",
    "fraction": "30 نص نصف النصف\n15 ربع الربع\n20 ثلث الثلث تلت التلت",
    "after": "1 بعد in\n-1 قبل",
    "ten": "10 عشر عشرة",
    "unit": "1 أيام يوما days\n7 أسابيع weeks",
    "ordinal": "1 الأولى الحادي الحادية\n20 العشرون العشرين\n30 الثلاثون الثلاثين\n"
    + "\n".join(f"{n} {m} {f}" for n, (m, f) in enumerate(zip(_ORDINALS.split(), _FEMININE.split(), strict=True), 1)),
}


def _fold(text: str) -> str:
    """The spelling in which moments are looked up. Standing hamza stays: without it lunch (غداء) is tomorrow."""
    text = text.lower()
    if text.isascii():
        return text
    text = fold_variants(fold_diacritics(fold_invisible(fold_unicode(text))))
    return fold_digits(fold_letters(text))


def _phrases() -> dict[str, Item]:
    """Folded phrase of up to four words → what it means."""
    phrases: dict[str, Item] = {}
    for kind, names in _NAMES.items():
        for name, words in names.items():
            phrases |= {_fold(word): Item(kind, name=name, token=_fold(word)) for word in words.split()}
    for kind, table in _NUMBERS.items():
        for line in table.strip().splitlines():
            number, *spellings = line.split()
            phrases |= {_fold(word): Item(kind, number=int(number), token=_fold(word)) for word in spellings}
    return {phrase.replace("_", " "): item for phrase, item in phrases.items()}


_PHRASES = _phrases()
_LONGEST_PHRASE: dict[str, int] = {}
"""First word of a phrase → the length in words of the longest phrase that begins so."""
for _words in map(str.split, _PHRASES):
    _LONGEST_PHRASE[_words[0]] = max(len(_words), _LONGEST_PHRASE.get(_words[0], 0))
_BOUND_NUMBERS = frozenset(["احد", "احدي", "اثنا", "اثني", "اثنتا", "اثنتي"])

_DATE = re.compile(r"([0-9]{1,4})([/.-])([0-9]{1,2})\2([0-9]{1,4})(ه|م|ah)?")
_YEAR_MONTH = re.compile(r"([0-9]{4})[/-]([0-9]{1,2})|([0-9]{1,2})/([0-9]{4})")
_CLOCK = re.compile(
    r"([0-9]{1,2})([:.h])([0-9]{2})(?::([0-9]{2})(?:\.[0-9]{1,9})?)?(z|[+-][0-9]{2}:?[0-9]{2})?(am|pm|ص|م)?"
)
_INTEGER = re.compile(r"([0-9]{1,4})(st|nd|rd|th|ه|م|ص|am|pm|ah|ad|h)?")
SUFFIX_PARTS = {"am": "morning", "ص": "morning", "pm": "pm", "م": "evening"}
SUFFIX_ERAS = {"ه": "hijri", "ah": "hijri", "م": "gregorian", "ad": "gregorian"}
_SEPARATORS = re.compile(r"[\s,،؛()\[\]]+")
_ISO_T = re.compile(r"(?<=[0-9])t(?=[0-9])")
_POINTS = re.compile(r"(?<![a-z])([ap])\.m\.?(?![a-z])")


# --- from text to items --------------------------------------------------------------------------------------


def _read_tokens(text: str) -> list[str]:
    """The words of a text; an «و» that stands alone is set before the next word."""
    text = _POINTS.sub(r"\1m", _ISO_T.sub(" ", _fold(text))).replace(" / ", "/")
    tokens: list[str] = []
    for token in _SEPARATORS.split(text):
        if tokens and tokens[-1] == "و":
            tokens[-1] += token
        elif token:
            tokens.append(token)
    return tokens


def read_items(text: str) -> list[Item]:
    """The meaning of every phrase of a text; empty when any word means nothing here."""
    tokens = _read_tokens(text)
    items: list[Item] = []
    index = 0
    while index < len(tokens):
        item, length = _read_item(tokens, index)
        if item is None:
            return []
        items.append(item)
        index += length
    return items


def _read_item(tokens: list[str], index: int) -> tuple[Item | None, int]:
    """The phrase that begins at the word, the longest first, and its length in words."""
    token = tokens[index]
    for length in range(min(_LONGEST_PHRASE.get(token, 0), len(tokens) - index), 0, -1):
        item = _PHRASES.get(token if length == 1 else " ".join(tokens[index : index + length]))
        if item is not None:
            return item, length
    if "0" <= token[0] <= "9":
        return _digit_item(token), 1
    number, length = _word_number(tokens, index)
    if number is not None:
        return Item("int", number, "word", token), length
    return (_plus_item(token[1:]), 1) if token[0] == "و" and len(token) > 1 else (None, 1)


def _digit_item(token: str) -> Item | None:
    """A word that begins with a digit: a date, a clock time or a number with or without a suffix."""
    for kind, pattern in (("date", _DATE), ("clock", _CLOCK), ("year_month", _YEAR_MONTH)):
        if match := pattern.fullmatch(token):
            return Item(kind, token=token, groups=match.groups(default=""))
    match = _INTEGER.fullmatch(token)
    return Item("int", int(match[1]), match[2] or "", token) if match else None


def _word_number(tokens: list[str], index: int) -> tuple[int | None, int]:
    """A number of one or two words (خمسة, خمسة عشر) that can be a day, an hour or minutes."""
    value = read_number(tokens[index])
    if value is None and tokens[index] not in _BOUND_NUMBERS:
        return None, 1
    if index + 1 < len(tokens) and not tokens[index + 1].startswith("و"):
        two = read_number(f"{tokens[index]} {tokens[index + 1]}")
        if isinstance(two, int) and 0 <= two <= _LARGEST_WORD:
            return two, 2
    return (value if isinstance(value, int) and 0 <= value <= _LARGEST_WORD else None), 1


def _plus_item(word: str) -> Item | None:
    """What follows an «و»: ونص, والربع, وعشرين, و30."""
    item = _PHRASES.get(word)
    if item is not None and item.kind in ("fraction", "ordinal"):
        return item._replace(kind="plus", name=item.kind)
    number = read_number(word)
    ok = isinstance(number, int) and 0 < number <= _LARGEST_WORD
    return Item("plus", int(number or 0), "minutes") if ok else None
