"""The rules of ``aae data check`` on what was made, told where the authors wrote it and not where it ended up."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from arabic_agent_eval.checks import Finding, check_items
from arabic_agent_eval.derivation import leaves_of
from arabic_agent_eval.field_checks import check_fields
from arabic_agent_eval.items import ExpectedCall, Item, item_from_row
from arabic_agent_eval.numbers import number_words_in
from arabic_agent_eval.set_checks import check_any_set, check_whole_set
from arabic_agent_eval.text import fold_digits
from arabic_agent_eval.tools import Toolbox
from authoring.assembly import control
from authoring.sources import DIALECTS, SHORT, TRACKS, Files, Report, Rows

ENGLISH: Final = "english"
_UNDERIVABLE: Final = re.compile(r"The expected value (?P<value>.+) has words that nothing given")
_CODE: Final = re.compile(r"[+A-Za-z-]{0,4}\d[\d -]{2,}")
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")
_LARGE: Final = 100  # smaller numbers are mostly said in words, or not at all
_SUFFIX: Final = re.compile(rf"(?<=[a-z0-9_])\.(?:{'|'.join([*SHORT.values(), 'en'])})(?=')")


class _Told(NamedTuple):
    """What is said of an intent, whichever dialect it was found in."""

    category: str
    intent: str
    rule: str
    field: str
    message: str


def check_sets(made: dict[str, Rows], tools: Toolbox, files: Files, report: Report) -> None:
    """Everything that ``aae data check`` finds in the sets; what is equal in all dialects is told once."""
    found: dict[_Told, set[str]] = {}
    every = {row["id"]: row for rows in made.values() for row in rows}
    # In one go, since each schema is compiled once for a call: most of the time goes there.
    findings = _of_items([*every.values()], tools)
    for name, rows in made.items():
        findings += [finding for row in rows for finding in _unsaid_numbers(row)]
        findings += _of_set(rows, tools, whole=name == "core")
    for finding in findings:
        row = every.get(finding.item_id)
        if row is None:  # it concerns the set and none of its items
            report.add("authoring/core", finding.rule, finding.field, finding.message)
        elif row.get("intent") is None:
            path = files.shown(files.singles(row["dialect"]))
            report.add(path, finding.item_id, finding.rule, finding.field, finding.message)
        else:
            message = _SUFFIX.sub("", finding.message)
            told = _Told(row["category"], row["intent"], finding.rule, finding.field, message)
            found.setdefault(told, set()).add(row["dialect"])
    for told, dialects in found.items():
        _tell(told, dialects, files, report)


def check_intents(rows: Rows, tools: Toolbox, path: str, report: Report) -> None:
    """The rules of single items before any line is written: the meaning stands for the instruction."""
    asked = []
    for intent in rows:
        kept = {name: value for name, value in intent.items() if name in Item.__struct_fields__}
        asked.append(kept | {"id": intent["intent"], "dialect": "msa", "instruction": intent["meaning"]})
    told: set[tuple[str, str, str]] = set()
    for finding in _of_items(asked, tools):
        told.add((finding.item_id, finding.rule, finding.field))
        report.add(path, finding.item_id, finding.rule, finding.field, finding.message)
    for finding in _of_items([control(intent) for intent in rows if "en" in intent], tools):
        name = finding.item_id.removesuffix(".en")
        if (name, finding.rule, finding.field) not in told:
            report.add(path, name, "en", finding.rule, finding.field, finding.message)


def _unsaid_numbers(row: dict[str, Any]) -> Iterator[Finding]:
    """Codes, and numbers of three digits or more, that neither the line nor anything before a call says.

    Of a line that says no such number in digits only a reader can tell, and an error may tell how to correct a code.
    """
    given = [row["instruction"], row.get("context"), row.get("messages")]
    in_digits = re.search(r"\d{3}", fold_digits(row["instruction"])) and not number_words_in(row["instruction"])
    for place, call in enumerate(row["expected_calls"]):
        said = re.sub(r"(?<=\d)[ -](?=\d)", "", fold_digits(json.dumps(given, ensure_ascii=False)))
        corrected = row["category"] == "error_recovery" and place > 0
        for path, value in leaves_of(call["arguments"]):
            code = isinstance(value, str) and _CODE.fullmatch(value) and not (_DAY.fullmatch(value) or corrected)
            number = isinstance(value, int | float) and value >= _LARGE and in_digits
            if (code or number) and re.sub(r"\D", "", str(value).removesuffix(".0")) not in said.replace(".", ""):
                field = ".".join(map(str, (f"expected_calls[{place}].arguments", *path)))
                message = f"Nothing given says the number {value}; say it in the line, or correct the value."
                yield Finding(row["id"], "unsaid_number", field, message)
        given.append(call.get("result"))


def _of_items(rows: Rows, tools: Toolbox) -> list[Finding]:
    tracks = {row["id"] for row in rows if row["category"] in TRACKS}
    found = check_items([item_from_row(row) for row in rows], tools)
    return [one for one in found if not (one.rule == "unknown_category" and one.item_id in tracks)]


def _of_set(rows: Rows, tools: Toolbox, *, whole: bool) -> list[Finding]:
    """What ``aae data check``, for ``core`` with ``--whole``, says of a set beside its single items."""
    items = [item_from_row(row) for row in rows]
    found = [*check_fields(_unknown(rows)), *check_any_set(items)]
    return [*found, *check_whole_set(items, tools)[1]] if whole else found


def _unknown(rows: Rows) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for row in rows:
        found += [(row["id"], name) for name in row if name not in Item.__struct_fields__]
        calls: list[dict[str, Any]] = row["expected_calls"]
        for place, call in enumerate(calls):
            unknown = (name for name in call if name not in ExpectedCall.__struct_fields__)
            found += [(row["id"], f"expected_calls[{place}].{name}") for name in unknown]
    return found


def _tell(told: _Told, dialects: set[str], files: Files, report: Report) -> None:
    intents = files.shown(files.intents(told.category))
    if dialects.issuperset(DIALECTS):
        report.add(intents, told.intent, told.rule, told.field, f"{told.message} (all dialects)")
        return
    unsaid = _UNDERIVABLE.match(told.message) if told.rule == "underivable" else None
    for dialect in DIALECTS:
        if dialect not in dialects:
            continue
        path = files.shown(files.lines(dialect, told.category))
        if unsaid:
            remedy = "say it word for word, or accept what the line says."
            report.add(path, told.intent, f"the line does not say {unsaid['value']}: {remedy}")
        else:
            report.add(path, told.intent, told.rule, told.field, told.message)
    if ENGLISH in dialects:
        if unsaid:
            remedy = "add it to en.values, or say it in en.instruction."
            report.add(intents, told.intent, "en", f"no English is given for {unsaid['value']}: {remedy}")
        else:
            report.add(intents, told.intent, "en", told.rule, told.field, told.message)
