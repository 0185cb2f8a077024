"""Other benchmarks' data sets as items: AISA-ArabicFC (parquet) and BFCL (questions and accepted answers).

What cannot be graded as calls is refused with a reason and never half-converted. The converted items stand on their
own: their tools are inline, so they need no registry.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from arabic_agent_eval.checks import TYPE_NAMES
from arabic_agent_eval.errors import DataError, MissingExtra, UsageError
from arabic_agent_eval.files import WholeFile, json_type, numbered_lines, open_lines, read_json, read_json_line
from arabic_agent_eval.items import Item, item_from_row
from arabic_agent_eval.strictjson import MalformedJSON, decode, number_text, replace_surrogates, too_deep
from arabic_agent_eval.text import has_arabic

KINDS = ("auto", "aisa", "bfcl")
"""The data sets that can be converted; ``auto`` tells them apart by the file's first bytes."""


def convert(
    source: Path, *, kind: str = "auto", answers: Path | None = None, category: str | None = None
) -> list[Item]:
    """Another data set as items.

    Args:
        source: a parquet file of AISA-ArabicFC, or a file of BFCL questions (JSONL, or a JSON list).
        kind: one of :data:`KINDS`.
        answers: BFCL's file of accepted answers; not needed where no call is right, or the questions hold them.
        category: the category of every item, instead of the one that follows from the data.

    Raises:
        UsageError: the kind is unknown, or answers are given for a data set that has its own.
        DataError: a file is not what it should be, or its questions cannot be graded as calls.
        MissingExtra: the source is parquet and pyarrow is not installed.
    """
    if kind not in KINDS:
        raise UsageError(f"There is no data set kind {kind!r}; the kinds are {', '.join(KINDS)}.")
    if kind == "auto":
        with open_lines(source) as stream:
            kind = "aisa" if stream.read(4) == b"PAR1" else "bfcl"
    if kind == "bfcl":
        return _bfcl_items(source, answers, category)
    if answers is not None:
        raise UsageError("An AISA-ArabicFC file holds its own answers; leave the answer file out.")
    return list(_aisa_items(source, category or "simple_function_calling"))


def item_rows(items: Iterable[Item]) -> Iterator[bytes]:
    """Each item as one line of JSON in UTF-8 with its line end; Arabic stays readable, lone surrogates do not."""
    for item in items:
        try:
            yield msgspec.json.encode(item) + b"\n"
        except UnicodeEncodeError:
            yield msgspec.json.encode(replace_surrogates(msgspec.to_builtins(item))) + b"\n"


def write_items(path: Path, items: Iterable[Item]) -> None:
    """Write an item file (JSONL); the file appears complete or not at all.

    Raises:
        OutputError: it could not be written; a file that was there is unchanged.
    """
    with WholeFile(path) as file:
        for row in item_rows(items):
            file.write(row)


def _need(value: Any, kind: type, field: str) -> Any:
    """The value, if it is of the type that its field must have."""
    if type(value) is kind:
        return value
    wanted = {str: "text", list: "a list", dict: "an object", bool: "true or false"}[kind]
    raise DataError(f"expected {wanted}, found {json_type(value)}.", field=field or None)


class _Place(NamedTuple):
    """Where a row stands: a line of JSONL, or a member of a list."""

    path: Path
    line: int | None = None
    member: int | None = None

    @contextlib.contextmanager
    def named(self) -> Iterator[None]:
        """Errors about the row get its place."""
        try:
            yield
        except DataError as error:
            parts = [None if self.member is None else f"[{self.member}]", error.field]
            field = ".".join(part for part in parts if part) or None
            raise DataError(error.what, path=str(self.path), line=self.line, field=field, remedy=error.remedy) from None


# --- AISA-ArabicFC -------------------------------------------------------------------------------------------

_AISA_COLUMNS = ("requires_function", "messages", "tools_sampled", "dialect", "negative_category")
_BATCH = 256  # rows in memory at a time: a row holds every parameter of every tool
_NOW = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}")
_MAX_WHOLE = 2**53


def _aisa_items(source: Path, category: str) -> Iterator[Item]:
    for number, row in enumerate(_parquet_rows(source, _AISA_COLUMNS)):
        with _Place(source, member=number).named():
            item = item_from_row(_aisa_row(number, row, category))
        yield item


def _parquet_rows(source: Path, columns: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    try:
        import pyarrow as pa  # noqa: PLC0415 - heavy, and an extra
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ImportError:
        raise MissingExtra(
            'Reading parquet needs pyarrow; install it with: pip install "arabic-agent-eval[arrow]"'
        ) from None
    try:
        with pq.ParquetFile(source) as file:
            _need_columns(file.schema_arrow.names, columns, source)
            for batch in file.iter_batches(batch_size=_BATCH, columns=list(columns)):
                yield from batch.to_pylist()
    except DataError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise DataError(f"the parquet file cannot be read: {reason}.", path=str(source)) from None


def _need_columns(names: list[str], columns: tuple[str, ...], source: Path) -> None:
    for column in columns:
        if column not in names:
            raise DataError(
                f"the column is missing; an AISA-ArabicFC file has {', '.join(columns)}.",
                path=str(source),
                field=column,
            )


def _aisa_row(number: int, row: dict[str, Any], category: str) -> dict[str, Any]:
    messages = [_need(turn, dict, f"messages[{i}]") for i, turn in enumerate(_need(row["messages"], list, "messages"))]
    required = _need(row["requires_function"], bool, "requires_function")
    now, earlier, instruction, calls = _conversation(messages)
    if required and not calls:
        raise DataError("a function is required, but no message calls one.", field="messages")
    tools = _need(row["tools_sampled"], list, "tools_sampled")
    item = {
        "id": str(number),
        "category": category,
        "instruction": instruction,
        "dialect": row["dialect"],
        "expected_calls": calls if required else [],
        "tools": [_aisa_tool(tool, f"tools_sampled[{i}]") for i, tool in enumerate(tools)],
        "context": {"now": now} if now else None,
        "messages": earlier or None,
        "tags": [] if required or row["negative_category"] is None else [row["negative_category"]],
    }
    return {key: value for key, value in item.items() if value is not None}


def _conversation(turns: list[dict[str, Any]]) -> tuple[str | None, list[dict[str, Any]], str, list[dict[str, Any]]]:
    """The time that was given, the turns before the question, the question, and the calls that answer it."""
    last = max((i for i, turn in enumerate(turns) if turn.get("role") == "user"), default=None)
    if last is None:
        raise DataError("there is no message of the user.", field="messages")
    now: str | None = None
    earlier: list[dict[str, Any]] = []
    for i, turn in enumerate(turns[:last]):
        text = _need(turn.get("content") or "", str, f"messages[{i}].content")
        moment = _NOW.search(text) if turn.get("role") == "developer" else None
        if moment is not None:
            now = moment[0]
        elif text:
            role = "system" if turn.get("role") == "developer" else turn.get("role")
            earlier.append({"role": role, "content": text})
    calls = [
        _aisa_call(call, f"messages[{i}].tool_calls[{j}]")
        for i, turn in enumerate(turns)
        if i > last
        for j, call in enumerate(_need(turn.get("tool_calls") or [], list, f"messages[{i}].tool_calls"))
    ]
    return now, earlier, _need(turns[last].get("content"), str, f"messages[{last}].content"), calls


def _aisa_call(call: Any, field: str) -> dict[str, Any]:
    function = _need(_need(call, dict, field).get("function"), dict, f"{field}.function")
    arguments = function.get("arguments") or {}
    if isinstance(arguments, str):
        try:
            arguments = decode(arguments)
        except MalformedJSON as error:
            raise DataError(f"the arguments cannot be read: {error}.", field=f"{field}.function.arguments") from None
    _need(arguments, dict, f"{field}.function.arguments")
    name = _need(function.get("name"), str, f"{field}.function.name")
    return {"function": name, "arguments": _without_padding(arguments, f"{field}.function.arguments")}


def _without_padding(value: Any, field: str) -> Any:
    """The value without the nulls that a columnar file puts where a row has nothing; whole doubles as integers."""
    if isinstance(value, dict):
        members = {key: _without_padding(member, f"{field}.{key}") for key, member in value.items()}
        return {key: member for key, member in members.items() if member is not None}
    if isinstance(value, list):
        return [_without_padding(member, f"{field}[{i}]") for i, member in enumerate(value)]
    if isinstance(value, float):
        if math.isinf(value):
            raise DataError("infinity is not a JSON number.", field=field)
        if math.isnan(value):
            return None
        return int(value) if value.is_integer() and abs(value) < _MAX_WHOLE else value
    if value is None or isinstance(value, str | int):
        return value
    raise DataError(f"a {type(value).__name__} is not a JSON value.", field=field)


def _aisa_tool(tool: Any, field: str) -> dict[str, Any]:
    entry = _need(tool, dict, field)
    function = _without_empty(_without_padding(_need(entry.get("function", entry), dict, field), field))
    return _openai_tool(function, _plain(function.get("parameters", {}), TYPE_NAMES), field)


def _without_empty(value: Any) -> Any:
    """A schema without what is left of padding: nulls in lists, empty lists, and parameters without a schema."""
    if isinstance(value, list):
        return [_without_empty(member) for member in value if member is not None]
    if not isinstance(value, dict):
        return value
    members = {key: _without_empty(member) for key, member in value.items()}
    return {key: member for key, member in members.items() if member or not isinstance(member, dict | list)}


_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_NESTED = frozenset({"items", "additionalProperties", "not", "anyOf", "oneOf", "allOf", "prefixItems", "contains"})


def _plain(schema: Any, names: Mapping[str, str | None], other: str | None = None) -> Any:
    """A schema with the type names of JSON Schema, where a type stands and never where a parameter is called so.

    ``other`` stands for a name that ``names`` lacks; by default it stays as it is. A name for any type is dropped.
    """
    if isinstance(schema, list):
        return [_plain(member, names, other) for member in schema]
    if not isinstance(schema, dict):
        return schema
    copy = dict(schema)
    for key, value in schema.items():
        if key in _MAPS and isinstance(value, dict):
            copy[key] = {name: _plain(member, names, other) for name, member in value.items()}
        elif key in _NESTED:
            copy[key] = _plain(value, names, other)
        elif key == "type" and isinstance(value, str):
            copy[key] = names.get(value.strip().lower(), other or value)
            if copy[key] is None:
                del copy[key]
    return copy


def _openai_tool(function: dict[str, Any], parameters: Any, field: str) -> dict[str, Any]:
    shape = {"type": "object", "properties": {}}
    schema = shape | _need(parameters, dict, f"{field}.parameters")
    name = _need(function.get("name"), str, f"{field}.name")
    description = _need(function.get("description") or "", str, f"{field}.description")
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


# --- BFCL ----------------------------------------------------------------------------------------------------

_JAVA_NAMES: dict[str, str | None] = {
    "hashmap": "object", "map": "object", "arraylist": "array", "list": "array", "array": "array", "set": "array",
    "long": "integer", "short": "integer", "byte": "integer", "bigint": "integer",
}  # fmt: skip
_BFCL_NAMES = TYPE_NAMES | _JAVA_NAMES
_MAX_PRODUCT = 64  # alternatives made of one nested value

_CATEGORIES = (
    ("multi_turn", None),
    ("irrelevance", "irrelevance"),
    ("relevance", None),
    ("parallel", "parallel"),
    ("multiple", "tool_selection"),
    ("simple", "simple_function_calling"),
    ("java", "simple_function_calling"),
)
"""Part of a BFCL id or file name → what its items become, the first that fits; None is refused.

Parallel calls, of one function or of several, are ``tool_selection`` in any order.
"""

_REFUSALS = {
    "multi_turn": "multi-turn questions are not supported: they need BFCL's simulated APIs.",
    "relevance": "relevance questions cannot be graded as calls: any call is right and no answer is given.",
}


def _bfcl_items(source: Path, answers: Path | None, category: str | None) -> list[Item]:
    known = _by_id(answers) if answers is not None else {}
    found = []
    for name, (row, place) in _by_id(source).items():
        if name in known:
            answer, answer_place = known[name]
            with answer_place.named():
                row |= {"ground_truth": _need(answer.get("ground_truth"), list, "ground_truth")}
        with place.named():
            found.append(item_from_row(_bfcl_row(row, source.name, category)))
    if not found:
        raise DataError("the file holds no questions.", path=str(source))
    return found


def _by_id(path: Path) -> dict[str, tuple[dict[str, Any], _Place]]:
    found: dict[str, tuple[dict[str, Any], _Place]] = {}
    for row, place in _rows(path):
        with place.named():
            value = row.get("id")
            name = number_text(value) if type(value) is int else _need(value, str, "id")
            if name in found:
                raise DataError(f"the id {name!r} stands twice; ids must be unique.", field="id")
        found[name] = row, place
    return found


def _rows(path: Path) -> Iterator[tuple[dict[str, Any], _Place]]:
    first = next((line for _, line in numbered_lines(path)), b"")
    if first.lstrip()[:1] != b"[":
        for number, line in numbered_lines(path):
            yield read_json_line(line, str(path), number), _Place(path, line=number)
        return
    for member, row in enumerate(read_json(path)):
        place = _Place(path, member=member)
        with place.named():
            _need(row, dict, "")
        yield row, place


def _bfcl_row(row: dict[str, Any], file_name: str, category: str | None) -> dict[str, Any]:
    if too_deep(row):
        raise DataError("the question is nested deeper than 64 levels.")
    kind = _bfcl_kind(str(row["id"]), file_name)
    turns = _bfcl_turns(row.get("question"))
    instruction = turns[-1]["content"]
    functions = row.get("function", [])
    functions = _need([functions] if isinstance(functions, dict) else functions, list, "function")
    notes: dict[str, Any] = {}
    calls = [] if kind == "irrelevance" else _bfcl_calls(row.get("ground_truth"), notes)
    several = kind == "parallel" or len(calls) > 1
    chosen = "tool_selection" if several or len(functions) > 1 else "simple_function_calling"
    item: dict[str, Any] = {
        "id": row["id"],
        "category": category or (kind if kind in {"tool_selection", "simple_function_calling"} else chosen),
        "instruction": instruction,
        "expected_calls": calls,
        "tools": [_bfcl_tool(tool, f"function[{place}]") for place, tool in enumerate(functions)],
        "tags": ["irrelevance"] if kind == "irrelevance" else [],
    }
    item |= {"dialect": "msa"} if has_arabic(instruction) else {"language": "en"}
    item |= {"ordered": False} if several else {}
    item |= {"messages": turns[:-1]} if turns[:-1] else {}
    return item | ({"notes": notes} if notes else {})


def _bfcl_kind(item_id: str, file_name: str) -> str | None:
    for text in (item_id, file_name):
        for part, kind in _CATEGORIES:
            if part in text and kind is None:
                raise DataError(_REFUSALS[part], field="id")
            if part in text:
                return kind
    return None


def _bfcl_turns(question: Any) -> list[dict[str, Any]]:
    """The messages of all turns, the user's question last."""
    if isinstance(question, str):
        return [{"role": "user", "content": question}]
    turns: list[dict[str, Any]] = []
    for i, turn in enumerate(_need(question, list, "question")):
        messages = turn if isinstance(turn, list) else [turn]
        for j, message in enumerate(messages):
            field = f"question[{i}][{j}]" if isinstance(turn, list) else f"question[{i}]"
            role = _need(_need(message, dict, field).get("role"), str, f"{field}.role")
            turns.append({"role": role, "content": _need(message.get("content"), str, f"{field}.content")})
    if not turns or turns[-1]["role"] != "user":
        raise DataError("the last message must be the user's.", field="question")
    return turns


def _bfcl_tool(function: Any, field: str) -> dict[str, Any]:
    schema = _need(function, dict, field).get("parameters") or {}
    return _openai_tool(function, _plain(schema, _BFCL_NAMES, "string"), field)


def _bfcl_calls(truth: Any, notes: dict[str, Any]) -> list[dict[str, Any]]:
    if truth is None:
        raise DataError(
            "no accepted answer is known for this question.",
            field="ground_truth",
            remedy="Give the answer file that belongs to the questions.",
        )
    calls = []
    for place, entry in enumerate(_need(truth, list, "ground_truth")):
        field = f"ground_truth[{place}]"
        if len(_need(entry, dict, field)) != 1:
            raise DataError("expected an object with one function.", field=field)
        ((name, arguments),) = entry.items()
        calls.append(_bfcl_call(name, _need(arguments, dict, f"{field}.{name}"), f"{field}.{name}", notes))
    return calls


def _bfcl_call(name: str, arguments: dict[str, Any], field: str, notes: dict[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    accept: dict[str, list[Any]] = {}
    for argument, listed in arguments.items():
        accepted = _need(listed, list, f"{field}.{argument}")
        if _may_be_absent(accepted):
            # Ruling 9: an absent expected argument costs a point, an extra one costs nothing.
            notes.setdefault("may_be_absent", []).append(f"{name}.{argument}")
            continue
        choices: dict[bytes, Any] = {}
        for value in accepted:
            expanded = list(itertools.islice(_alternatives(value), _MAX_PRODUCT + 1))
            if len(expanded) > _MAX_PRODUCT:
                notes.setdefault("alternatives_left_out", []).append(f"{name}.{argument}")
            for choice in expanded[:_MAX_PRODUCT]:
                choices.setdefault(msgspec.json.encode(choice, order="sorted"), choice)
        if "*" in choices.values():  # ruling 7: in an item this is a wildcard, and nothing can escape it
            notes.setdefault("star_accepts_anything", []).append(f"{name}.{argument}")
        values[argument], *others = choices.values()
        accept |= {argument: others} if others else {}
    return {"function": name, "arguments": values} | ({"accept": accept} if accept else {})


def _may_be_absent(accepted: list[Any]) -> bool:
    return not accepted or any(value is None or (isinstance(value, str) and not value) for value in accepted)


def _alternatives(value: Any) -> Iterator[Any]:
    """Every value that an accepted value stands for: inside it, an object lists the right values of each member."""
    if isinstance(value, list) and any(isinstance(member, dict) for member in value):
        yield from map(list, itertools.product(*(list(_bounded(member)) for member in value)))
    elif isinstance(value, dict):
        listed = {key: choices for key, choices in value.items() if not _is_optional(choices)}
        choices = [choices if isinstance(choices, list) else [choices] for choices in listed.values()]
        for combination in itertools.product(*choices):
            yield dict(zip(listed, combination, strict=True))
    else:
        yield value


def _bounded(value: Any) -> Iterator[Any]:
    return itertools.islice(_alternatives(value), _MAX_PRODUCT)


def _is_optional(choices: Any) -> bool:
    return isinstance(choices, list) and _may_be_absent(choices)
