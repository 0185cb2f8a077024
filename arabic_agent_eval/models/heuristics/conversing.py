"""What to do next in a conversation: which steps are left, and what their arguments are after the results so far."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import Any, Final, NamedTuple

from arabic_agent_eval.models.heuristics.filling import Filler
from arabic_agent_eval.models.heuristics.mentions import Mention, Reading
from arabic_agent_eval.models.heuristics.moments import Clock, time_of
from arabic_agent_eval.models.heuristics.parameters import (
    Property,
    fitted,
    kind_of,
    name_tokens,
    nominal,
    properties_of,
    role_of,
)
from arabic_agent_eval.models.heuristics.planning import Planner, Step
from arabic_agent_eval.models.heuristics.vocabulary import features_in, features_of, listed
from arabic_agent_eval.strictjson import MalformedJSON, decode
from arabic_agent_eval.tools import Tool

_MOST_CALLS = 8
_ENOUGH = 0.5  # of the required arguments
_MOST_LEAVES = 500
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d")
_NUMBER = re.compile(r"(?<![\d:.-])\d{1,12}(?:\.\d{1,4})?(?![\d:-])")
_WORDS = re.compile(r"[a-z]+")
_SEPARATORS = re.compile(r"[-_/. ]+")
_SAME: Final = listed("same")
_LATER: Final = listed("later")


class Made(NamedTuple):
    """A call that was made in this conversation, and what came back; None where nothing did."""

    name: str
    arguments: dict[str, Any]
    result: Any


class Next(NamedTuple):
    """A call to make."""

    name: str
    arguments: dict[str, Any]


def next_calls(text: str, tools: Sequence[Tool], clock: Clock, made: Sequence[Made] = ()) -> list[Next]:
    """The calls to make now; none when everything is done, or nothing fits, or something is missing.

    Args:
        text: what the user asks for.
        tools: what is offered.
        clock: the moment and the locale of the conversation.
        made: the calls so far with their results; none of them is made again.
    """
    reading = Reading(text)
    steps = Planner(tools, clock).steps(reading)
    if made and _failed(made[-1].result):
        if len(made) > 1 and _failed(made[-2].result) and made[-2].name == made[-1].name:
            return []  # what was to be tried instead failed as well
        found = list(_after_failure(made[-1], reading, steps, tools, clock))[:1]
    else:
        found = list(_pending(reading, steps, clock, made))
    fresh: list[Next] = []
    for one in found[:_MOST_CALLS]:
        if one not in fresh and not any((one.name, one.arguments) == (call.name, call.arguments) for call in made):
            fresh.append(one)
    return fresh


# --- the steps in their order --------------------------------------------------------------------------------


def _pending(reading: Reading, steps: Sequence[Step], clock: Clock, made: Sequence[Made]) -> Iterator[Next]:
    """The calls of the steps that are left, up to the first that must wait for a result."""
    done = list(made)
    end = min((step.span.start for step in steps if step.fallback), default=len(reading.words))
    before: list[tuple[str, dict[str, Any]]] = []
    for step in steps:
        if step.fallback:
            continue
        past = next((call for call in done if call.name == step.tool.name), None)
        if past is not None:
            done.remove(past)
            before.append((past.name, past.arguments))
            continue
        calls = _calls_of(reading, step, clock, made, before, end)
        if not calls and not before:
            continue
        if not calls:
            return
        yield from calls
        before.append((calls[0].name, calls[0].arguments))


def _calls_of(
    reading: Reading,
    step: Step,
    clock: Clock,
    made: Sequence[Made],
    before: Sequence[tuple[str, dict[str, Any]]],
    end: int,
) -> list[Next]:
    """The calls of one step, several where it asks for several places; none where something is missing."""
    filled = Filler(step.tool, reading, step.span, clock).fill()
    arguments = dict(filled.arguments)
    properties = {one.name: one for one in properties_of(step.tool)}
    if filled.missing and not before:
        wider = Filler(step.tool, reading, range(end), clock).fill()
        arguments = {**wider.arguments, **arguments}
    for name in filled.missing:
        one = properties.get(name)
        if one is None or name in arguments:
            continue
        value = _from_results(one, made, reading, step.span)
        if value is None and not _refers_back(reading, step.span, waiting=not made):
            value = next((past[name] for _, past in reversed(before) if name in past), None)
        if value is not None:
            arguments[name] = value
    # What a later step lacks may be in a result; the first will not learn more, so most of it must do.
    wanted = len(step.tool.required)
    if sum(name in arguments for name in step.tool.required) < (wanted if before else wanted * _ENOUGH):
        return []
    first = {name: arguments[name] for name in properties if name in arguments}
    return [Next(step.tool.name, first), *(Next(step.tool.name, {**first, **other}) for other in filled.others)]


def _refers_back(reading: Reading, span: range, *, waiting: bool) -> bool:
    """Whether a step speaks of what an earlier one will have found, so that guessing would be wrong."""
    return waiting and any(reading.words[place].folded in _SAME for place in span)


# --- values from results -------------------------------------------------------------------------------------


def _from_results(one: Property, made: Sequence[Made], reading: Reading, span: range) -> Any:
    """The value in the results whose name or form fits a parameter best; None where none fits."""
    asked: frozenset[str] = frozenset()
    for place in span:
        asked |= nominal(features_of(reading.words[place].folded))
    best, found = 0.0, None
    for call in reversed(made):
        for path, value in _leaves(call.result):
            score = _suits(one, path, value, asked)
            if score > best and (fit := fitted(value, one.schema)) is not None:
                best, found = score, fit
    return found


def _leaves(result: Any) -> Iterator[tuple[str, Any]]:
    """The plain values of a result, each with the names that lead to it."""
    waiting: list[tuple[str, Any]] = [("", result)]
    seen = 0
    while waiting and seen < _MOST_LEAVES:
        path, value = waiting.pop(0)
        seen += 1
        if isinstance(value, dict):
            waiting += [(f"{path} {name}"[-200:], member) for name, member in list(value.items())[:_MOST_LEAVES]]
        elif isinstance(value, list):
            waiting += [(path, member) for member in value[:_MOST_LEAVES]]
        elif value is not None:
            yield path.strip(), value


def _suits(one: Property, path: str, value: Any, asked: frozenset[str]) -> float:
    """How well a value of a result fits a parameter, by kind, form and name."""
    kind = kind_of(one.schema)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if (kind in {"integer", "number"}) != number or isinstance(value, bool):
        return 0.0
    if kind == "enum" and value not in one.schema["enum"]:
        return 0.0
    score = 0.0
    if isinstance(value, str):
        shapes = {"date": _DATE, "time": _TIME}
        for role, shape in shapes.items():
            fits = shape.fullmatch(value) is not None
            if fits != (one.role == role) and (fits or one.role == role):
                return 0.0
            score += 1.0 * fits
    name = path.rpartition(" ")[2]
    mine, theirs = set(name_tokens(one)), set(_WORDS.findall(name.lower()))
    score += 3.0 * (name == one.name) + 2.0 * bool(mine & theirs)
    score += 1.0 * (role_of(name, {}, "string") == one.role != "name") if isinstance(value, str) else 0.0
    return score + (1.5 * bool(asked & nominal(features_in(name, 8))) if score else 0.0)


# --- after a failure -----------------------------------------------------------------------------------------


def _failed(result: Any) -> bool:
    """Whether a result says that the call did not do what it should."""
    if not isinstance(result, dict):
        return False
    status = result.get("status")
    return bool(result.get("error")) or status in {"error", "failed", "failure", "no_result", "rejected"}


def _after_failure(
    failed: Made, reading: Reading, steps: Sequence[Step], tools: Sequence[Tool], clock: Clock
) -> Iterator[Next]:
    """What the user asked for in that case; else the same with its numbers written without separators."""
    tool = next((tool for tool in tools if tool.name == failed.name), None)
    if tool is None:
        return
    for step in steps:
        if step.fallback:
            changed = _instead(tool, failed, reading, step.span, clock)
            if changed != failed.arguments:
                yield Next(tool.name, changed)
                return
    plain = {
        one.name: _SEPARATORS.sub("", failed.arguments[one.name])
        for one in properties_of(tool)
        if one.role == "identifier" and isinstance(failed.arguments.get(one.name), str)
    }
    yield Next(tool.name, {**failed.arguments, **plain})


def _instead(tool: Tool, failed: Made, reading: Reading, span: range, clock: Clock) -> dict[str, Any]:
    """The arguments of a failed call with what the user says to try instead."""
    changed = {**failed.arguments, **Filler(tool, reading, span, clock).fill(guess=False).arguments}
    words = {reading.words[place].folded for place in span}
    later, same = bool(words & _LATER), bool(words & _SAME)
    for one in properties_of(tool):
        past = failed.arguments.get(one.name)
        if not isinstance(past, str):
            continue
        if one.role == "time" and (moment := _first_time(reading.moments, span)) is not None:
            changed[one.name] = time_of(moment.value, past) or past
        if one.role == "date" and later and not same and _DATE.fullmatch(past):
            changed[one.name] = _day_after(past)
    return changed if changed != failed.arguments else {**changed, **_proposed(tool, failed)}


def _proposed(tool: Tool, failed: Made) -> dict[str, Any]:
    """Times and amounts that the failed call's answer names: a later time, a smaller amount."""
    said = " ".join(f" {value} " for _, value in _leaves(failed.result))[:4000]
    found: dict[str, Any] = {}
    for one in properties_of(tool):
        past = failed.arguments.get(one.name)
        if one.role == "time" and isinstance(past, str):
            if later := [match[0] for match in _TIME.finditer(said) if match[0] > past]:
                found[one.name] = later[0]
        elif one.role == "number" and isinstance(past, int | float):
            numbers = (float(text) if "." in text else int(text) for text in _NUMBER.findall(said))
            if smaller := [number for number in numbers if 0 < number < past and fitted(number, one.schema)]:
                found[one.name] = smaller[0]
    return found


def _first_time(moments: Sequence[Mention], span: range) -> Mention | None:
    return next((one for one in moments if one.first in span and one.value.hour is not None), None)


def _day_after(text: str) -> str:
    try:
        return (date.fromisoformat(text) + timedelta(days=1)).isoformat()
    except (ValueError, OverflowError):
        return text


def decoded(content: str) -> Any:
    """A tool's answer as a value; text that is no JSON is itself."""
    try:
        return decode(content)
    except MalformedJSON:
        return content
