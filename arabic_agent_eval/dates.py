"""Moments as people write them: dates of two calendars, weekdays, relative days and clock times, Arabic and English.

The reading is for naming a difference between two values (cause ``date_or_time``); it never earns a point.
A text can have several readings (5 o'clock is 5 or 17, 01/02/2025 begins with the day or with the month); two texts
are the same moment when one reading of each agrees.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from itertools import product
from typing import Any, NamedTuple

from hijridate import Hijri

from arabic_agent_eval.timewords import PART_HOURS, SUFFIX_ERAS, SUFFIX_PARTS, Item, read_items

_LONGEST_TEXT = 100
_HIJRI_YEARS = range(1343, 1501)
_AGREED_HIJRI_YEARS = range(1420, 1450)  # outside these the published calendar tables differ by a day
_GREGORIAN_YEARS = range(1800, 2200)
_FIRST_YEAR = 1000
_PIVOT = 70  # of two-digit years: 69 is 2069, 70 is 1970
_NOON = 12
_ERA_LETTER = "م"
_ZERO = "صفر"  # alone it is a number, rather than the month Safar
_LAST_HOUR = 23
_LAST_MINUTE = 59


@dataclass(frozen=True, slots=True)
class Moment:
    """One reading of a text as a moment; what the text does not say is None.

    Attributes:
        year, month, day: in the Gregorian calendar.
        weekday: 0 is Monday; always set when the date is complete.
        hour, minute, second: on the 24-hour clock; minute and second are 0 where an hour is given without them.
        offset: minutes east of UTC.
        relative: days from today: 0 today, 1 tomorrow, -1 yesterday.
        period: ``week``, ``month`` or ``year``, counted from now by ``which``.
        which: ``next``, ``last`` or ``this``, of the weekday, month or period.
        part: the part of the day, when there is no hour (tomorrow morning).
        hijri: year, month, day as written, when the text used the Hijri calendar. Without all three of them the
            Gregorian fields stay None.
        convention: ``dmy`` or ``mdy`` where the text can be read both ways.
    """

    year: int | None = None
    month: int | None = None
    day: int | None = None
    weekday: int | None = None
    hour: int | None = None
    minute: int | None = None
    second: int | None = None
    offset: int | None = None
    relative: int | None = None
    period: str | None = None
    which: str | None = None
    part: str | None = None
    hijri: tuple[int | None, int, int | None] | None = None
    convention: str = ""


class _Clock(NamedTuple):
    """A time as written. ``exact``: on the 24-hour clock. ``sure``: no number could be written so."""

    hour: int
    minute: int = 0
    second: int = 0
    offset: int | None = None
    exact: bool = False
    sure: bool = False


# --- from numbers to dates -----------------------------------------------------------------------------------


def _hijri_dates(year: int | None, month: int, day: int | None) -> list[Moment]:
    """Readings of a Hijri date; a day on either side too where the calendar tables differ."""
    if year is None or day is None:
        in_range = (day is None or 1 <= day <= 30) and (year is None or year in _HIJRI_YEARS)  # noqa: PLR2004
        return [Moment(hijri=(year, month, day))] if in_range and 1 <= month <= _NOON else []
    try:
        there = Hijri(year, month, day).to_gregorian()
    except (ValueError, OverflowError):
        return []
    first = date(there.year, there.month, there.day)
    shifts = (0,) if year in _AGREED_HIJRI_YEARS else (0, -1, 1)
    days = (first + timedelta(days=shift) for shift in shifts)
    return [Moment(d.year, d.month, d.day, d.weekday(), hijri=(year, month, day)) for d in days]


def _gregorian_dates(year: int | None, month: int, day: int | None, convention: str = "") -> list[Moment]:
    """The reading of a Gregorian date, complete or not; none when there is no such day."""
    if year is not None and year not in _GREGORIAN_YEARS:
        return []
    try:
        there = date(2000 if year is None else year, month, 1 if day is None else day)
    except ValueError:
        return []
    weekday = None if year is None or day is None else there.weekday()
    return [Moment(year, month, day, weekday, convention=convention)]


def _numeric_dates(groups: tuple[str, ...], era: str) -> list[Moment]:
    """Readings of 2025-03-01, 1/3/2025, 1446/9/1: a Hijri year is known by its size or by the era."""
    first, separator, second, third, suffix = groups
    era = era or SUFFIX_ERAS.get(suffix, "")
    year_first = len(first) == 4 and len(third) <= 2  # noqa: PLR2004
    if not year_first and (len(first) > 2 or len(third) == 3 or len(third) == 1):  # noqa: PLR2004
        return []
    y, m, d = map(int, (first, second, third) if year_first else (third, second, first))
    if len(third) == 2 and not year_first:  # noqa: PLR2004
        y = 0 if separator != "/" else y + (2000 if y < _PIVOT else 1900)
    if era == "hijri" or (not era and y in _HIJRI_YEARS):
        return _hijri_dates(y, m, d)
    if year_first or m == d:
        return _gregorian_dates(y, m, d)
    # Where only one order makes a date, the text says that one and nothing is left to choose.
    both = _gregorian_dates(y, m, d, "dmy") + _gregorian_dates(y, d, m, "mdy")
    return both if len(both) > 1 else [replace(moment, convention="") for moment in both]


def _numeric_month(groups: tuple[str, ...], era: str) -> list[Moment]:
    """The reading of 2025-03 or 3/2025."""
    year, month = int(groups[0] or groups[3]), int(groups[1] or groups[2])
    hijri = era == "hijri" or (not era and year in _HIJRI_YEARS)
    return (_hijri_dates if hijri else _gregorian_dates)(year, month, None)


# --- from items to readings ----------------------------------------------------------------------------------


class _Reader:
    """Reads the items from left to right; each field is said at most once, in any order."""

    def __init__(self, items: list[Item]) -> None:
        self.items = items
        self.at = 0
        self.said: dict[str, Item] = {}
        self.dates: list[Moment] | None = None
        self.clock: _Clock | None = None

    def readings(self) -> list[Moment]:
        """Every reading of the whole text, the likeliest first; none when it is not a moment."""
        while self.at < len(self.items):
            if not self._step():
                return []
        return self._combine() if self._complete() else []

    def _take(self, *kinds: str) -> Item | None:
        """The next item, passed, when it is of one of the kinds."""
        if self.at >= len(self.items) or self.items[self.at].kind not in kinds:
            return None
        self.at += 1
        return self.items[self.at - 1]

    def _say(self, item: Item) -> bool:
        """Note a field; False when it has been said before."""
        if item.kind in self.said:
            return False
        self.said[item.kind] = item
        return True

    def _step(self) -> bool:
        """Read one part of the moment; False when the next item makes no sense where it stands."""
        if self._take("filler", "day"):
            return True
        if self._take("clockmark"):
            return self._read_clock(sure=True)
        if item := self._take("which", "period", "part", "weekday", "relative"):
            return self._say(item)
        if self._take("tonight"):
            return self._say(Item("relative")) and self._say(Item("part", name="night"))
        if item := self._take("fixed"):
            return self._read_fixed(item.number)
        if item := self._take("after"):
            return self._read_distance(item.number)
        return self._read_date() or self._read_clock(sure=False)

    def _read_distance(self, sign: int) -> bool:
        """بعد ثلاثة أيام · in 2 weeks."""
        count, unit = self._take("int", "ten"), self._take("unit", "day", "period")
        if count is None or unit is None or (unit.kind == "period" and unit.name != "week"):
            return False
        days = {"unit": unit.number, "day": 1, "period": 7}[unit.kind]
        return self._say(Item("relative", sign * count.number * days))

    def _read_date(self) -> bool:
        """A numeric date, or day, month and year around a month's name."""
        start = self.at
        if self.dates is not None:
            return False
        if item := self._take("date", "year_month"):
            read = _numeric_dates if item.kind == "date" else _numeric_month
            self.dates = read(item.groups, self._read_era())
            return True
        day = self._read_day()
        month = self._take("month", "hijri_month")
        if month is None:
            self.at = start
            return False
        day = self._read_day() if day is None else day
        year = self._take("int") if self._sees_year() else None
        era = "" if year is None else SUFFIX_ERAS.get(year.name, "") or self._read_era()
        number = None if year is None else year.number
        if (era == "hijri") > (month.kind == "hijri_month"):
            return False
        self.dates = (_hijri_dates if month.kind == "hijri_month" else _gregorian_dates)(number, month.number, day)
        return True

    def _sees_year(self) -> bool:
        return self.at < len(self.items) and self.items[self.at].number in range(_FIRST_YEAR, _GREGORIAN_YEARS.stop)

    def _read_day(self) -> int | None:
        """5 · 5th · خمسة وعشرين · الخامس عشر من · الحادي والثلاثين."""
        item = None if self._sees_year() else self._take("int", "ordinal", "ten")
        if item is None:
            return None
        tens = (item.kind == "ordinal" and self._take("ten")) or self._take("plus")
        day = item.number + (tens.number if tens else 0)
        while self._take("filler"):
            pass
        return day

    def _read_era(self) -> str:
        """هـ or م after a year; the «م» is not the one of the clock there."""
        if item := self._take("era"):
            return item.name
        if self.at < len(self.items) and self.items[self.at].token == _ERA_LETTER:
            self.at += 1
            return "gregorian"
        return ""

    def _read_fixed(self, hour: int) -> bool:
        """Noon or midnight, alone or after a twelve."""
        if self.clock is not None and self.clock.hour != _NOON:
            return False
        self.clock = _Clock(hour, exact=True, sure=True)
        return True

    def _read_clock(self, *, sure: bool) -> bool:
        """An hour and what is added to it or taken from it: خمسة ونص · الثامنة إلا الربع · 17:00."""
        clock = self._read_hour() if self.clock is None else None
        if clock is None:
            return False
        sure, minute = sure or clock.sure, clock.minute
        while item := self._take("plus", "except", "minutes", "clockmark"):
            if item.kind == "except":
                taken = self._take("fraction", "int", "ten")
                if taken is None:
                    return False
                item = taken._replace(name=taken.kind, number=-taken.number)
            sure = sure or item.name == "fraction" or item.kind == "clockmark"
            minute += item.number
        self.clock = clock._replace(minute=minute, sure=sure)
        return -_LAST_MINUTE <= minute <= _LAST_MINUTE

    def _read_hour(self) -> _Clock | None:
        """The hour as written, with minutes and seconds when it is in digits."""
        if item := self._take("clock"):
            return self._read_time(item.groups)
        item = self._take("int", "ten", "ordinal")
        if item is None:
            return None
        hour = item.number + (10 if item.kind == "ordinal" and self._take("ten") else 0)
        if item.name in SUFFIX_PARTS and not self._say(Item("part", name=SUFFIX_PARTS[item.name])):
            return None
        ok = item.name in ("", "word", "h") or item.name in SUFFIX_PARTS
        return (
            _Clock(hour, exact=hour == 0 or hour > _NOON, sure=item.name == "h") if ok and hour <= _LAST_HOUR else None
        )

    def _read_time(self, groups: tuple[str, ...]) -> _Clock | None:
        """17:00 · 5:30pm · 10:00:00Z. Two digits before the colon are read on the 24-hour clock."""
        text, separator, minute, second, offset, suffix = groups
        hour = int(text)
        if hour > _LAST_HOUR or int(minute) > _LAST_MINUTE or int(second or 0) > _LAST_MINUTE:
            return None
        if suffix and not self._say(Item("part", name=SUFFIX_PARTS[suffix])):
            return None
        exact = len(text) == 2 or hour == 0  # noqa: PLR2004
        return _Clock(hour, int(minute), int(second or 0), _read_offset(offset), exact, separator != ".")

    def _complete(self) -> bool:
        """Tell whether what was said makes a moment, and could not be a plain number or a lone adjective."""
        if len(self.items) == 1 and self.items[0].token == _ZERO:
            return False
        day = self.dates is not None or bool(self.said.keys() & {"weekday", "relative"})
        if ("period" in self.said) > ("which" in self.said) or ("which" in self.said) > (day or "period" in self.said):
            return False
        if self.clock is not None:
            return self.clock.sure or "part" in self.said
        return day or ("period" in self.said and "part" not in self.said)

    def _combine(self) -> list[Moment]:
        """Each date with each hour; a weekday that contradicts the date leaves none."""
        found = []
        for there, hour in product([Moment()] if self.dates is None else self.dates, self._hours()):
            weekday = self.said["weekday"].number if "weekday" in self.said else there.weekday
            if there.weekday in (None, weekday):
                found.append(replace(there, weekday=weekday, **self._rest(hour)))
        return found

    def _hours(self) -> tuple[int | None, ...]:
        """The hours of the day that may be meant."""
        if self.clock is None:
            return (None,)
        hour, part = self.clock.hour, self.said.get("part")
        if part is None and self.clock.exact:
            return (hour,)
        morning = hour % _NOON
        both = (hour,) if hour == 0 or hour > _NOON else (_NOON, 0) if morning == 0 else (hour, hour + _NOON)
        return both if part is None else tuple(each for each in both if each in PART_HOURS[part.name])

    def _rest(self, hour: int | None) -> dict[str, Any]:
        """The fields beside the date."""
        names: dict[str, Any] = {kind: self.said[kind].name for kind in ("period", "which") if kind in self.said}
        relative = {"relative": self.said["relative"].number} if "relative" in self.said else {}
        if hour is None or self.clock is None:
            part = {"part": self.said["part"].name} if "part" in self.said else {}
            return {**names, **relative, **part}
        minutes = (hour * 60 + self.clock.minute) % (24 * 60)
        clock = {
            "hour": minutes // 60,
            "minute": minutes % 60,
            "second": self.clock.second,
            "offset": self.clock.offset,
        }
        return {**names, **relative, **clock}


def _read_offset(text: str) -> int | None:
    """Z or +03:00 as minutes east of UTC."""
    if text in ("", "z"):
        return 0 if text else None
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    return -minutes if text[0] == "-" else minutes


# --- the public readers --------------------------------------------------------------------------------------


def _readings(text: str) -> list[Moment]:
    """Every reading of a text as a moment."""
    if not 1 < len(text) <= _LONGEST_TEXT:
        return []
    items = read_items(text)
    return _Reader(items).readings() if items else []


def read_moment(text: str) -> Moment | None:
    """The likeliest reading of a text as a date, a time or both; None when it is no moment.

    Plain numbers are no moments, nor are texts longer than 100 characters.

    >>> read_moment("١ رمضان ١٤٤٦").day, read_moment("٨ المساء").hour, read_moment("بعد بكرة").relative
    (1, 20, 2)
    """
    readings = _readings(text)
    return readings[0] if readings else None


def same_moment(a: str, b: str) -> bool:
    """Tell whether two texts are moments and can mean the same one: cause ``date_or_time``.

    Both must say the same fields: a date is not the same as that date with a time, nor day and month the same as day,
    month and year, nor «الخميس» the same as «الخميس القادم». A weekday beside a complete date adds nothing. A zone
    offset counts when both have one. Hijri dates outside 1420–1449 equal the Gregorian date and its neighbours,
    because the calendar tables differ there. Two numeric dates must be read in one order, day or month first.
    """
    first = _readings(a)
    second = _readings(b) if first else []
    return any(_agree(one, other) for one, other in product(first, second))


def _agree(a: Moment, b: Moment) -> bool:
    """Tell whether two readings are one moment."""
    if a.convention and b.convention and a.convention != b.convention:
        return False
    if a.hijri != b.hijri and ((a.hijri and b.hijri) or None in (a.hijri or b.hijri or ())):
        return False
    return _fields(a, instant=b.offset is not None) == _fields(b, instant=a.offset is not None)


def _fields(moment: Moment, *, instant: bool) -> Moment:
    """The fields that are compared; the same instant in UTC when both sides have an offset."""
    m = replace(moment, hijri=None, convention="", offset=None)
    if not instant or moment.offset is None or m.hour is None or m.minute is None:
        return m
    known = m.year is not None and m.month is not None and m.day is not None
    there = datetime(m.year or 2000, m.month or 1, m.day or 1, m.hour, m.minute) - timedelta(minutes=moment.offset)
    if not known:
        return replace(m, hour=there.hour, minute=there.minute)
    return Moment(there.year, there.month, there.day, there.weekday(), there.hour, there.minute, m.second, part=m.part)
