"""The shapes of what was written: every file is checked once, when it is read, and all faults are told together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, TypeGuard

from rapidfuzz.process import extractOne

from arabic_agent_eval.errors import DataError
from arabic_agent_eval.items import ExpectedCall, Item, item_from_row
from arabic_agent_eval.tools import Toolbox
from authoring.sources import (
    CATEGORIES,
    DIALECTS,
    PREFIXES,
    SHORT,
    TRACKS,
    VARIETIES,
    Fault,
    Files,
    Report,
    Rows,
    Sources,
)

INTENT: Final = (
    "intent", "category", "difficulty", "tags", "context", "available_functions", "ordered", "expected_calls",
    "error_response", "meaning", "for_writers", "dialect_hints", "typed", "en", "notes",
)  # fmt: skip
SINGLE: Final = (
    "id", "category", "difficulty", "instruction", "dialect", "language", "context", "messages", "available_functions",
    "ordered", "expected_calls", "error_response", "tags", "notes",
)  # fmt: skip
CALL: Final = ExpectedCall.__struct_fields__
LINE: Final = ("instruction", "language", "messages")
ENGLISH: Final = ("instruction", "values")
DIFFICULTIES: Final = ("easy", "medium", "hard")
ROLES: Final = ("user", "assistant")
_ELSEWHERE: Final = {
    "instruction": "it belongs to the lines, authoring/core/lines/<dialect>/<category>.json",
    "language": "it belongs to the lines, authoring/core/lines/<dialect>/<category>.json",
    "messages": "they belong to the lines, authoring/core/lines/<dialect>/<category>.json",
    "dialect": "the folder of the lines says it",
    "id": "it is made of the intent and the dialect",
    "tools": "name tools of arabic_agent_eval/data/core/tools.json in 'available_functions'",
}
_NAME: Final = re.compile(r"[a-z0-9_]+")
_ALIKE: Final = 60.0


def read_sources(files: Files) -> Sources:
    """Everything that was written.

    Raises:
        Fault: something is not in shape; it holds a sentence for each fault.
    """
    report = Report()
    tools = read_tools(files, report)
    tracks = _tracks(files, report)
    intents = read_intents(files, report)
    lines = {dialect: _Lines(files, dialect, intents, report).read() for dialect in DIALECTS}
    singles = _singles(files, report)
    _strangers(files, report)
    if report:
        raise Fault(*report.sentences)
    return Sources({name: rows or [] for name, rows in intents.items()}, lines, singles, tools, tracks)


def read_tools(files: Files, report: Report) -> Toolbox:
    """The registry; an empty one where it cannot be read."""
    path = files.data / "core" / "tools.json"
    document = files.read(path, report)
    try:
        return Toolbox.from_schemas([] if document is None else document)
    except DataError as error:
        report.add(files.shown(path), f"{error} Correct the registry.")
        return Toolbox.from_schemas([])


def _both(home: str, path: str) -> str:
    """Where a name stands besides."""
    return "twice in the file" if home == path else f"in {home} as well"


def read_intents(files: Files, report: Report) -> dict[str, Rows | None]:
    """Category → its intents; None where the file cannot be read as a list of objects."""
    found: dict[str, Rows | None] = {}
    homes: dict[str, str] = {}
    for category in PREFIXES:
        path = files.intents(category)
        rows = _rows(files, path, report, "intent")
        for name, row in rows or ():
            _Entry(files.shown(path), name, row, report).check_intent(category)
            said = row.get("intent")
            if isinstance(said, str) and said in homes:
                both = _both(homes[said], files.shown(path))
                report.add(files.shown(path), said, "intent", f"the name stands {both}: give each intent its own.")
            elif isinstance(said, str):
                homes[said] = files.shown(path)
        found[category] = None if rows is None else [row for _, row in rows]
    return found


def _rows(files: Files, path: Path, report: Report, key: str) -> list[tuple[str, dict[str, Any]]] | None:
    """The entries of a file that holds a list of objects, each with the name by which messages call it."""
    value = files.read(path, report)
    if value is None:
        return None
    if not isinstance(value, list):
        report.add(files.shown(path), f"it must be a list of objects and is {_kind(value)}: write [{{…}}].")
        return None
    if not value:
        report.add(files.shown(path), "the list is empty: write an entry, or put the file back.")
    found = []
    for number, row in enumerate(value, 1):
        if not isinstance(row, dict):
            report.add(files.shown(path), f"entry {number}", f"it must be an object and is {_kind(row)}: write {{…}}.")
        else:
            said = row.get(key)
            found.append((said if is_text(said) else f"entry {number}", row))
    return found


class _Entry:
    """One intent or single item, and the report about it."""

    def __init__(self, path: str, name: str, row: dict[str, Any], report: Report) -> None:
        self.path, self.name, self.row, self.report = path, name, row, report
        self._before = len(report)

    def add(self, field: str, sentence: str) -> None:
        self.report.add(self.path, self.name, field, sentence)

    def check_intent(self, category: str) -> None:
        """All that must hold of an intent, whatever its lines are."""
        self._known("", self.row, INTENT)
        said, prefix = self.row.get("intent"), PREFIXES[category]
        if not is_text(said):
            self.add("intent", f"it must be a name, such as '{prefix}room_by_the_sea': write one.")
        elif not (said.startswith(prefix) and said != prefix and _NAME.fullmatch(said)):
            self.add("intent", f"the name must be {prefix!r} and then a-z, 0-9 and _: rename it, in the lines as well.")
        if self.row.get("category") != category:
            self.add("category", f"it must be {category!r}, as the file is called: write that, or move the intent.")
        self._texts("meaning", needed=True)
        for field in ("for_writers", "typed"):
            self._texts(field, needed=False)
        self._hints()
        self._common()
        self._english(category)
        self._item({"id": said, "dialect": "msa", "instruction": self.row.get("meaning")})

    def check_single(self, dialect: str) -> None:
        """All that must hold of an item that exists in one dialect only."""
        self._known("", self.row, SINGLE)
        said, ending = self.row.get("id"), f".{SHORT[dialect]}"
        if not is_text(said):
            self.add("id", f"it must be a name, such as 'sg_way_to_the_sea{ending}': write one.")
        elif not (said.endswith(ending) and _NAME.fullmatch(said.removesuffix(ending))):
            self.add("id", f"it must be a-z, 0-9 and _, and end in {ending!r}, the dialect of the file: rename it.")
        if self.row.get("category") not in CATEGORIES:
            self.add("category", f"it must be one of {', '.join(CATEGORIES)}: write one of them.")
        self._texts("instruction", needed=True)
        if self.row.get("dialect", dialect) != dialect:
            self.add("dialect", f"it must be {dialect!r}, as the file is called: remove it, or move the item.")
        check_language(self.path, self.name, self.row.get("language", DIALECTS[dialect]), dialect, self.report)
        check_messages(self.path, self.name, self.row, self.report)
        self._common()
        self._item({"dialect": dialect})

    def _known(self, place: str, value: dict[str, Any], known: Iterable[str]) -> None:
        for name, sentence in unknown(value, known):
            self.add(f"{place}.{name}" if place else name, sentence)

    def _texts(self, field: str, *, needed: bool) -> None:
        if not is_text(self.row.get(field)) and (needed or field in self.row):
            self.add(field, _wrong(self.row, field, "text"))

    def _hints(self) -> None:
        hints = self.row.get("dialect_hints", {})
        if not isinstance(hints, dict):
            self.add("dialect_hints", _wrong(self.row, "dialect_hints", "an object, dialect → text"))
            return
        self._known("dialect_hints", hints, DIALECTS)
        for dialect, hint in hints.items():
            if not is_text(hint):
                self.add(f"dialect_hints.{dialect}", _wrong(hints, dialect, "text"))

    def _common(self) -> None:
        if self.row.get("difficulty") not in DIFFICULTIES:
            self.add("difficulty", _wrong(self.row, "difficulty", "'easy', 'medium' or 'hard'"))
        offered = self.row.get("available_functions")
        if not isinstance(offered, list) or not offered or not all(map(is_text, offered)):
            self.add("available_functions", _wrong(self.row, "available_functions", "a list of names of tools"))
        calls = self.row.get("expected_calls")
        if not isinstance(calls, list):
            self.add("expected_calls", _wrong(self.row, "expected_calls", "a list of calls, [] where none is right"))
            return
        for number, call in enumerate(calls):
            place = f"expected_calls[{number}]"
            if not isinstance(call, dict):
                self.add(place, f"it must be an object and is {_kind(call)}: write function and arguments.")
                continue
            self._known(place, call, CALL)
            if not is_text(call.get("function")):
                self.add(f"{place}.function", _wrong(call, "function", "the name of a tool"))
            if not isinstance(call.get("arguments"), dict):
                self.add(f"{place}.arguments", _wrong(call, "arguments", "an object, name → right value"))
            if not isinstance(call.get("accept", {}), dict):
                self.add(f"{place}.accept", _wrong(call, "accept", "an object, name → list of other right values"))

    def _english(self, category: str) -> None:
        if category in TRACKS:
            if "en" in self.row:
                self.add("en", f"the track {category} has no English control: remove it.")
            return
        english = self.row.get("en")
        if not isinstance(english, dict):
            self.add("en", _wrong(self.row, "en", "an object with instruction and values"))
            return
        self._known("en", english, ENGLISH)
        if not is_text(english.get("instruction")):
            self.add("en.instruction", _wrong(english, "instruction", "the request in English"))
        values = english.get("values")
        if not isinstance(values, dict):
            self.add("en.values", _wrong(english, "values", "an object, Arabic value → English value; {} for none"))
            return
        for name, value in values.items():
            if not (is_text(name) and is_text(value)):
                self.add(f"en.values.{name}", _wrong(values, name, "text in Arabic → text in English"))

    def _item(self, more: dict[str, Any]) -> None:
        """What the reader of items says; asked only where nothing else is wrong, so that nothing is told twice."""
        if len(self.report) > self._before:
            return
        row = {name: value for name, value in self.row.items() if name in Item.__struct_fields__} | more
        try:
            item_from_row(row)
        except DataError as error:
            self.add(error.field or "", f"{error.what}{f' {error.remedy}' if error.remedy else ''} Correct it.")


# --- lines ---------------------------------------------------------------------------------------------------


class _Lines:
    """The lines of a dialect."""

    def __init__(self, files: Files, dialect: str, intents: dict[str, Rows | None], report: Report) -> None:
        self._files, self._dialect, self._report = files, dialect, report
        self._home = {
            row["intent"]: category
            for category, rows in intents.items()
            for row in rows or ()
            if isinstance(row.get("intent"), str)
        }
        self._unread = any(rows is None for rows in intents.values())
        self._wanted = intents

    def read(self) -> dict[str, dict[str, Any]]:
        """Intent → line; what is missing or stands in the wrong place is in the report."""
        held: dict[str, dict[str, Any] | None] = {}
        for category in PREFIXES:
            path = self._files.lines(self._dialect, category)
            value = self._files.read(path, self._report) if path.exists() or self._wanted[category] is None else {}
            if not path.exists() and (wanted := self._wanted[category]):
                sentence = f"the file is not there: write it, intent → line, {len(wanted)} in all."
                self._report.add(self._files.shown(path), sentence)
                value = None
            elif value is not None and not isinstance(value, dict):
                sentence = f"it must be an object, intent → line, and is {_kind(value)}: write {{…}}."
                self._report.add(self._files.shown(path), sentence)
                value = None
            held[category] = value
        places: dict[str, list[str]] = {}
        for category, lines in held.items():
            for name in lines or ():
                places.setdefault(name, []).append(category)
        self._misplaced(places)
        self._missing(places, held)
        return {
            name: line
            for category, lines in held.items()
            for name, said in (lines or {}).items()
            if (line := self._line(category, name, said)) is not None
        }

    def _shown(self, category: str) -> str:
        return self._files.shown(self._files.lines(self._dialect, category))

    def _misplaced(self, places: dict[str, list[str]]) -> None:
        for name, categories in places.items():
            home = self._home.get(name)
            if len(categories) > 1:
                others = ", ".join(map(self._shown, categories[1:]))
                keep = f"keep it in {self._shown(home)}" if home else "keep one of them"
                self._report.add(self._shown(categories[0]), name, f"the line stands in {others} as well: {keep}.")
            elif home is None and not self._unread:
                near = _near(name, self._home)
                self._report.add(self._shown(categories[0]), name, f"no intent has this name: {_rename(near)}")
            elif home is not None and categories != [home]:
                sentence = f"the intent is one of {home}: move the line to {self._shown(home)}."
                self._report.add(self._shown(categories[0]), name, sentence)

    def _missing(self, places: dict[str, list[str]], held: dict[str, dict[str, Any] | None]) -> None:
        for name, category in self._home.items():
            if name not in places and held[category] is not None:
                self._report.add(self._shown(category), name, f"there is no line in {self._dialect}: write one.")

    def _line(self, category: str, name: str, said: Any) -> dict[str, Any] | None:
        path, report = self._shown(category), self._report
        line = {"instruction": said} if isinstance(said, str) else said
        if not isinstance(line, dict):
            report.add(path, name, f"the line must be text, or an object with instruction, and is {_kind(said)}.")
            return None
        for field, sentence in unknown(line, LINE):
            report.add(path, name, field, sentence)
        if not is_text(line.get("instruction")):
            report.add(path, name, "instruction", _wrong(line, "instruction", "text in the dialect"))
        check_language(path, name, line.get("language", DIALECTS[self._dialect]), self._dialect, report)
        check_messages(path, name, line, report)
        return line


def check_language(path: str, name: str, language: Any, dialect: str, report: Report) -> None:
    """A variety must be one of its dialect that the card knows."""
    known = VARIETIES[dialect]
    if not isinstance(language, str) or language not in known:
        codes = " or ".join(f"{code!r} ({said})" for code, said in known.items())
        sentence = f"a line in {dialect} is written in {codes}: write that, or add the variety in authoring/sources.py."
        report.add(path, name, "language", sentence)


def check_messages(path: str, name: str, line: dict[str, Any], report: Report) -> None:
    """Earlier turns must each say who speaks and what."""
    messages = line.get("messages", [])
    if not isinstance(messages, list):
        report.add(path, name, "messages", _wrong(line, "messages", "a list of earlier turns"))
        return
    for number, turn in enumerate(messages):
        right = isinstance(turn, dict) and turn.get("role") in ROLES and is_text(turn.get("content"))
        if not right or turn.keys() != {"role", "content"}:
            sentence = "a turn is {'role': 'user' or 'assistant', 'content': text}: write it so."
            report.add(path, name, f"messages[{number}]", sentence)


# --- single items, tracks, files that nobody reads -----------------------------------------------------------


def _singles(files: Files, report: Report) -> dict[str, Rows]:
    found: dict[str, Rows] = {}
    homes: dict[str, str] = {}
    for dialect in DIALECTS:
        path = files.singles(dialect)
        rows = _rows(files, path, report, "id")
        for name, row in rows or ():
            _Entry(files.shown(path), name, row, report).check_single(dialect)
            if is_text(row.get("id")) and name in homes:
                both = _both(homes[name], files.shown(path))
                report.add(files.shown(path), name, "id", f"the id stands {both}: give each item its own.")
            homes.setdefault(name, files.shown(path))
        found[dialect] = [row for _, row in rows or ()]
    return found


def _tracks(files: Files, report: Report) -> dict[str, Any]:
    path = files.here / "tracks.json"
    value = files.read(path, report)
    shown = files.shown(path)
    if value is None:
        return {}
    if not isinstance(value, dict) or value.keys() != set(TRACKS):
        report.add(shown, f"it must be an object with {' and '.join(map(repr, TRACKS))} and no other: correct it.")
        return {}
    for name, track in value.items():
        if not isinstance(track, dict) or track.keys() != {"name_ar"} or not is_text(track["name_ar"]):
            report.add(shown, name, "it must be an object with the text 'name_ar' and no other: correct it.")
    return value


def _strangers(files: Files, report: Report) -> None:
    """Files and folders that stand where sources stand, and that nothing reads."""
    categories = [f"{name}.json" for name in PREFIXES]
    dialects = [f"{name}.json" for name in DIALECTS]
    folders = {files.here / "intents": categories, files.here / "singles": dialects, files.here / "lines": [*DIALECTS]}
    folders |= {files.here / "lines" / dialect: categories for dialect in DIALECTS}
    for folder, known in folders.items():
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if path.name not in known and not path.name.startswith(".") and not path.name.endswith("~"):
                report.add(files.shown(path), f"nothing reads this: {_rename(_near(path.name, known))}")


# --- words ---------------------------------------------------------------------------------------------------


def is_text(value: Any) -> TypeGuard[str]:
    """Tell whether a value is text that says something."""
    return isinstance(value, str) and bool(value.strip())


def unknown(value: dict[str, Any], known: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each field that is not known, and what to do about it."""
    known = tuple(known)
    for name in value:
        if name not in known:
            if name in _ELSEWHERE and not _near(name, known, 90):
                yield name, f"it does not belong here, for {_ELSEWHERE[name]}: remove it."
            else:
                yield name, f"no reader knows this field, so it has no effect: {_rename(_near(name, known))}"


def _near(name: str, known: Iterable[str], alike: float = _ALIKE) -> str:
    found = extractOne(name.lower()[:60], list(known), score_cutoff=alike)
    return found[0] if found else ""


def _rename(near: str) -> str:
    return f"rename it or remove it. Did you mean {near!r}?" if near else "rename it or remove it."


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def _wrong(row: dict[str, Any], field: str, wanted: str) -> str:
    """What a field must be, and what it is instead."""
    if field not in row:
        return f"it is missing: write {wanted}."
    value = row[field]
    if isinstance(value, str) and not value.strip():
        return f"it is empty: write {wanted}."
    is_now = repr(value) if isinstance(value, str) and len(value) <= 40 else _kind(value)  # noqa: PLR2004
    return f"it must be {wanted}, and is {is_now}: correct it."
