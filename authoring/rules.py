"""What must hold of the content of intents, lines and single items, beside the rules of ``aae data check``."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from arabic_agent_eval.derivation import leaves_of
from arabic_agent_eval.tools import Toolbox
from authoring.sources import DIALECTS, PREFIXES, SHORT, Files, Report, Rows, Sources

STEPS: Final = (2, 5)
"""How many calls an item of ``multi_step`` has."""
OFFERED: Final = (8, 15)
"""How many tools an item of ``tool_selection`` offers."""

_DATE: Final = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_MOMENT: Final = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2})?(Z|[+-]\d{2}:\d{2})", re.ASCII)
_MONTHS, _LONGEST_HIJRI_MONTH = 12, 30
_Fact = tuple[str, str]
"""A field, and what is wrong with it."""


def check_content(sources: Sources, files: Files, report: Report) -> None:
    """All that can be seen before items are made."""
    for category, rows in sources.intents.items():
        check_intents(rows, files.shown(files.intents(category)), sources.tools, report)
    for dialect, rows in sources.singles.items():
        path = files.shown(files.singles(dialect))
        for row in rows:
            turns = [row["instruction"], *(turn["content"] for turn in row.get("messages", ()))]
            for field, sentence in _facts(row, "\n".join(turns), sources.tools):
                report.add(path, row["id"], field, sentence)
    _equal_lines(sources, files, report)
    _built_ids(sources, files, report)
    _balance(sources, files, report)


def _built_ids(sources: Sources, files: Files, report: Report) -> None:
    """No single item has the id that an item of an intent gets."""
    endings = [*SHORT.values(), "en"]
    built = {f"{row['intent']}.{end}" for rows in sources.intents.values() for row in rows for end in endings}
    for dialect, rows in sources.singles.items():
        for row in rows:
            if row["id"] in built:
                path = files.shown(files.singles(dialect))
                report.add(path, row["id"], "id", "an item of an intent gets this id: give this one another name.")


def _balance(sources: Sources, files: Files, report: Report) -> None:
    most = max(map(len, sources.singles.values()))
    for dialect, rows in sources.singles.items():
        if len(rows) < most:
            sentence = f"single items here: {len(rows)}, in another dialect: {most}; write {most - len(rows)} more."
            report.add(files.shown(files.singles(dialect)), sentence)


def check_intents(rows: Rows, path: str, tools: Toolbox, report: Report) -> None:
    """All that can be seen of intents before there are lines."""
    for row in rows:
        facts = [*_facts(row, row["meaning"], tools), *_english(row)]
        for field, sentence in facts:
            report.add(path, row["intent"], field, sentence)


def _facts(row: dict[str, Any], said: str, tools: Toolbox) -> Iterator[_Fact]:
    yield from _calls(row)
    yield from _offer(row)
    yield from _now(row)
    yield from _dates(row, said, tools)


def _calls(row: dict[str, Any]) -> Iterator[_Fact]:
    category, calls = row["category"], row["expected_calls"]
    if category == "no_call" and calls:
        yield "expected_calls", "no call is right in no_call: write [], or move the intent to another category."
    if category != "no_call" and not calls:
        yield "expected_calls", f"a call is right in {category}: write it, or move the intent to no_call."
    least, most = STEPS
    if category == "multi_step" and calls and not least <= len(calls) <= most:
        yield "expected_calls", f"multi_step has {least} to {most} calls and here are {len(calls)}: add or remove some."
    if len(calls) > 1 or category == "error_recovery":
        for number, call in enumerate(calls):
            if "result" not in call:
                why = "of several" if len(calls) > 1 else "of error_recovery"
                sentence = f"a call {why} needs what the simulated tool answers: write a result."
                yield f"expected_calls[{number}].result", sentence
    if category == "error_recovery" and calls and "result" in calls[0]:
        first = calls[0]["result"]
        if not isinstance(first, dict) or "error" not in first:
            sentence = 'the first call fails in error_recovery: write {"error": {"code": …, "message": …}}.'
            yield "expected_calls[0].result", sentence
        if row.get("error_response") != first:
            yield "error_response", "it must be the result of the first call: copy that result."


def _offer(row: dict[str, Any]) -> Iterator[_Fact]:
    offered = row["available_functions"]
    for name in dict.fromkeys(name for name in offered if offered.count(name) > 1):
        yield "available_functions", f"the tool {name!r} stands twice: remove one."
    least, most = OFFERED
    if row["category"] == "tool_selection" and not least <= len(set(offered)) <= most:
        sentence = (
            f"tool_selection offers {least} to {most} tools and here are {len(set(offered))}: add or remove some."
        )
        yield "available_functions", sentence


# --- days ----------------------------------------------------------------------------------------------------


def _now(row: dict[str, Any]) -> Iterator[_Fact]:
    context = row.get("context") or {}
    if "now" not in context:
        return
    now = context["now"]
    try:
        right = isinstance(now, str) and _MOMENT.fullmatch(now) and dt.datetime.fromisoformat(now).tzinfo
    except ValueError:
        right = None
    if not right:
        sentence = (
            "it must be a day and time that exist, with the offset, such as '2027-03-09T10:15:00+02:00': correct it."
        )
        yield "context.now", sentence


class _Day(NamedTuple):
    field: str
    text: str
    accepted: bool
    hijri: bool


def _dates(row: dict[str, Any], said: str, tools: Toolbox) -> Iterator[_Fact]:
    known = "now" in (row.get("context") or {})
    earlier = {*_texts(row.get("error_response"))}
    for number, call in enumerate(row["expected_calls"]):
        for day in _days(call, f"expected_calls[{number}]", tools):
            if not _exists(day):
                yield day.field, f"the day {day.text} does not exist in the calendar: correct it."
            elif not (known or day.accepted or day.text in earlier or _in_digits(day.text, said)):
                sentence = f"the day {day.text} is not said in digits, so it needs to be known which day it is: "
                yield day.field, f"{sentence}write context.now, or say the day in digits."
        earlier.update(_texts(call.get("result")))


def _days(call: dict[str, Any], place: str, tools: Toolbox) -> Iterator[_Day]:
    """The days among the values of a call, by the pattern that their parameter has."""
    tool = tools.get(call["function"])
    properties = tool.properties if tool is not None else {}
    hijri = call["arguments"].get("to") == "gregorian"  # convert_date: the calendar that is wanted is the other one
    for name, schema in properties.items():
        if isinstance(schema, dict) and schema.get("pattern") == _DATE:
            given = [(f"arguments.{name}", call["arguments"].get(name), False)]
            others = (call.get("accept") or {}).get(name, ())
            given += [(f"accept.{name}[{turn}]", other, True) for turn, other in enumerate(others)]
            for field, value, accepted in given:
                if isinstance(value, str) and re.fullmatch(_DATE.strip("^$"), value, re.ASCII):
                    yield _Day(f"{place}.{field}", value, accepted, hijri)


def _exists(day: _Day) -> bool:
    if day.hijri:
        _, month, number = map(int, day.text.split("-"))
        return 1 <= month <= _MONTHS and 1 <= number <= _LONGEST_HIJRI_MONTH
    try:
        dt.date.fromisoformat(day.text)
    except ValueError:
        return False
    return True


def _in_digits(day: str, said: str) -> bool:
    """Tell whether a text says year and day of the month in digits; the month may be a word."""
    year, _, number = map(int, day.split("-"))
    return {year, number} <= {int(digits) for digits in re.findall(r"\d+", said) if len(digits) <= len("2027")}


def _texts(value: Any) -> Iterator[str]:
    return (leaf for _, leaf in leaves_of(value) if isinstance(leaf, str))


# --- English and the lines -----------------------------------------------------------------------------------


def _english(row: dict[str, Any]) -> Iterator[_Fact]:
    if "en" not in row:
        return
    english = row["en"]
    expected = {text for call in row["expected_calls"] for text in _texts(call["arguments"])}
    others = ((call.get("accept"), call.get("result")) for call in row["expected_calls"])
    held = expected | {text for pair in others for text in _texts(list(pair))}
    for arabic, value in english["values"].items():
        field = f"en.values.{arabic}"
        if arabic not in held:
            yield field, "no argument, accepted value or result is this, so it has no effect: correct or remove it."
        elif (
            arabic in expected
            and arabic in row["meaning"]
            and value.casefold() not in english["instruction"].casefold()
        ):
            yield field, f"en.instruction does not say {value!r}: say it there word for word, or correct the value."


def _equal_lines(sources: Sources, files: Files, report: Report) -> None:
    for spoken in (_arabic(sources, files), _controls(sources, files)):
        seen: dict[str, tuple[str, str]] = {}
        for path, name, line in spoken:
            before = seen.setdefault(line.strip(), (path, name))
            if before != (path, name):
                where = f"{before[1]} in {before[0]}"
                report.add(path, name, f"the line is the same as that of {where}: say one of them in another way.")


def _arabic(sources: Sources, files: Files) -> Iterable[tuple[str, str, str]]:
    homes = {row["intent"]: category for category in PREFIXES for row in sources.intents[category]}
    for dialect in DIALECTS:
        for name, line in sources.lines[dialect].items():
            yield files.shown(files.lines(dialect, homes[name])), name, line["instruction"]
        for row in sources.singles[dialect]:
            yield files.shown(files.singles(dialect)), row["id"], row["instruction"]


def _controls(sources: Sources, files: Files) -> Iterable[tuple[str, str, str]]:
    for category, rows in sources.intents.items():
        for row in rows:
            if "en" in row:
                yield files.shown(files.intents(category)), row["intent"], row["en"]["instruction"]
