"""Moments as tools want them: a reading of a date or time becomes digits, counted from the conversation's now."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple, Protocol

from arabic_agent_eval.dates import Moment

_NOW = re.compile(r"الوقت الآن: *(\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2})?)?)")
_LOCALE = re.compile(r"الإعدادات المحلية: *([A-Za-z_-]{2,20})")
_DAY = re.compile(r"^(?:يوم|نهار|بتاريخ)\s+")
_WEEK = 7
_EARLY = range(1, 7)
_NOON = 12


class Clock(NamedTuple):
    """The now and the locale that the system prompt gives; None and "" where it gives none."""

    now: datetime | None = None
    locale: str = ""


def read_clock(system: str) -> Clock:
    """What the context lines of a system prompt say; the moment is that of the user's wall clock."""
    now, locale = _NOW.search(system), _LOCALE.search(system)
    try:
        moment = datetime.fromisoformat(now[1]) if now else None
    except ValueError:
        moment = None
    return Clock(moment, locale[1] if locale else "")


class Wanted(Protocol):
    """What is needed of a property: its role and its schema."""

    @property
    def role(self) -> str:
        """``date``, ``time`` or ``moment``."""
        ...

    @property
    def schema(self) -> dict[str, Any]:
        """The schema."""
        ...


def written(moment: Moment, words: str, wanted: Wanted, clock: Clock) -> str | None:
    """A moment as the property wants it, the words where it cannot be counted; None if it says nothing of the kind."""
    if wanted.role == "time":
        return time_of(moment)
    day = day_of(moment, clock)
    time = time_of(moment)
    if wanted.role == "moment":
        if day is None and time is not None and clock.now is not None:
            day = clock.now.date()
        return f"{day.isoformat()}T{time or '00:00'}:00" if day is not None else words
    if day is not None:
        return _in_form(day, wanted.schema)
    return _DAY.sub("", words) if says_day(moment) else None


def _in_form(day: date, schema: Mapping[str, Any]) -> str:
    text = str(schema.get("description", ""))
    if re.search(r"DD[/-]MM[/-]YYYY", text):
        return day.strftime("%d/%m/%Y")
    return day.isoformat()


def says_day(moment: Moment) -> bool:
    """Whether a moment says something of the day."""
    return any(part is not None for part in (moment.day, moment.weekday, moment.relative, moment.period, moment.hijri))


def day_of(moment: Moment, clock: Clock) -> date | None:
    """The day: a weekday is the next one, a date without year the next to come."""
    today = clock.now.date() if clock.now is not None else None
    if moment.month is not None and moment.day is not None:
        return _dated(moment.year, moment.month, moment.day, today)
    if today is None:
        return None
    try:
        if moment.relative is not None:
            return today + timedelta(days=moment.relative)
        if moment.weekday is not None:
            ahead = (moment.weekday - today.weekday()) % _WEEK
            return today + timedelta(days=ahead - _WEEK if moment.which == "last" else ahead or _WEEK)
        if moment.period == "week":
            return today + timedelta(days={"next": _WEEK, "last": -_WEEK}.get(moment.which or "", 0))
    except OverflowError:
        return None
    return None


def _dated(year: int | None, month: int, day: int, today: date | None) -> date | None:
    years = [year] if year is not None else [today.year, today.year + 1, today.year + 2] if today is not None else []
    for each in years:
        try:
            there = date(each, month, day)
        except ValueError:
            continue
        if year is not None or today is None or there >= today:
            return there
    return None


def time_of(moment: Moment, near: str | None = None) -> str | None:
    """The time as HH:MM.

    Args:
        moment: what was read.
        near: a time said before; an hour that can be of the morning or the evening is taken near it.
    """
    if moment.hour is None:
        return None
    hour = moment.hour
    if near is not None and int(near[:2]) >= _NOON > hour:
        hour += _NOON
    return f"{hour:02d}:{moment.minute or 0:02d}"


def likely(moment: Moment, words: str) -> Moment:
    """An hour of the small hours that is said without a part of the day is meant for the afternoon."""
    bare = moment.hour in _EARLY and moment.part is None and not re.search(r"صباح|صبح|فجر|ليل|\d\d:|am", words)
    if not bare or moment.hour is None:
        return moment
    return Moment(**{**{name: getattr(moment, name) for name in moment.__slots__}, "hour": moment.hour + _NOON})
