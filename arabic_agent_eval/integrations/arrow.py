"""Arrow: a batch of replies in, a batch of judged replies out.

Every row is read by ``read_reply`` and judged by the same grader as a file of replies; here its columns are only taken
apart and put together. ``docs/integrations/arrow.md`` describes both schemas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from arabic_agent_eval.batch import signature_of
from arabic_agent_eval.diagnosis import Loss
from arabic_agent_eval.errors import DataError, MissingExtra, UsageError
from arabic_agent_eval.formats import Reply
from arabic_agent_eval.items import Category, Item, ItemSet
from arabic_agent_eval.plugins import find_format
from arabic_agent_eval.ranges import SAID, Options, RangeGrader, RangeResult
from arabic_agent_eval.readers import OwnFormat
from arabic_agent_eval.rules import AXES, CANONICAL, RULES, Rules
from arabic_agent_eval.scoring import Grader, Result, Signature
from arabic_agent_eval.strictjson import MalformedJSON, decode_clipped
from arabic_agent_eval.tools import Call

try:
    import pyarrow as pa
except ImportError:
    raise MissingExtra('This needs pyarrow; install it with: pip install "arabic-agent-eval[arrow]"') from None

LOSS_TYPE = pa.struct(
    [
        ("cause", pa.string()),
        ("axis", pa.string()),
        ("points", pa.float64()),
        ("call", pa.int64()),
        ("argument", pa.string()),
        ("expected", pa.string()),
        ("actual", pa.string()),
        ("count", pa.int64()),
    ]
)
"""A loss; ``expected`` and ``actual`` are JSON text, since they can be any value."""

CALL_TYPE = pa.struct(
    [("function", pa.string()), ("arguments", pa.string()), ("error", pa.string()), ("raw", pa.string())]
)
"""A call that was read; ``arguments`` and ``raw`` are JSON text."""

SCHEMA = pa.schema(
    [
        pa.field("item_id", pa.string(), nullable=False),
        pa.field("category", pa.string(), nullable=False),
        pa.field("dialect", pa.string()),
        pa.field("epoch", pa.int64(), nullable=False),
        pa.field("status", pa.string(), nullable=False),
        pa.field("reason", pa.string()),
        pa.field("total", pa.float64()),
        *(pa.field(axis, pa.float64()) for axis in AXES),
        pa.field("arabic_applicable", pa.bool_(), nullable=False),
        pa.field("losses", pa.list_(LOSS_TYPE)),
        pa.field("actual_calls", pa.list_(CALL_TYPE)),
        pa.field("said", pa.string()),
        pa.field("rules", pa.string(), nullable=False),
        pa.field("signature", pa.string(), nullable=False),
    ]
)
"""The columns of judged replies; the fields are those of graded rows in ``docs/formats.md``."""

_KEPT = 20_000  # compiled items, so that a set of any size takes bounded memory
_LARGEST_EPOCH = 2**63 - 1

_Batch = TypeVar("_Batch", "pa.RecordBatch", "pa.Table")


def grade_batch(
    batch: _Batch,
    items: ItemSet,
    *,
    rules: Rules = CANONICAL,
    format: str = "auto",  # noqa: A002 - the option's name
    causes: bool = True,
    allow_unknown: bool = False,
) -> _Batch:
    """Judge a batch of replies.

    Args:
        batch: a record batch, or a table, with the columns of ``docs/integrations/arrow.md``; others are ignored.
        items: the items; to grade many batches against them, keep an :class:`ArrowGrader`.
        rules: one of ``RULES``.
        format: one of ``formats.FORMATS``, or the name of one that an installed package offers.
        causes: whether to explain lost points; without it ``losses`` is null.
        allow_unknown: leave out replies to unknown items instead of refusing the batch.

    Returns:
        The judged replies in their order, in :data:`SCHEMA`, as the kind of batch that was given.

    Raises:
        DataError: a row cannot be read or answers no item, or a column has a type that JSON does not have.
        UsageError: there are no such rules, or no such format.
    """
    return ArrowGrader(items, rules=rules, format=format, causes=causes, allow_unknown=allow_unknown).grade(batch)


class Columns:
    """Judged replies, column by column."""

    def __init__(self, signature: Signature, *, causes: bool) -> None:
        self._signature = signature.of_grading
        self._rules = signature.rules
        self._causes = causes
        self._rows: list[dict[str, Any]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, result: Result, said: str = "") -> None:
        """Add a judged reply."""
        score = result.score
        self._rows.append(
            {
                "item_id": result.item_id,
                "category": result.category,
                "dialect": result.dialect,
                "epoch": result.epoch,
                "status": result.status,
                "reason": result.reason,
                "total": None if score is None else score.total,
                **({} if score is None else score.axes),
                "arabic_applicable": result.arabic_applicable,
                "losses": list(map(_loss, result.losses)) if self._causes else None,
                "actual_calls": None if score is None else list(map(_call, result.calls)),
                "said": said or None,
                "rules": self._rules,
                "signature": self._signature,
            }
        )

    def take(self) -> pa.RecordBatch:
        """The rows added since the last time, as a record batch."""
        rows, self._rows = self._rows, []
        return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


class RowGrader(RangeGrader):
    """Judges rows one by one into columns; items that are answered often are compiled once.

    Attributes:
        columns: receives what was judged; None where it is only counted.
    """

    def __init__(self, items: ItemSet, replies: Path, options: Options, columns: Columns | None = None) -> None:
        super().__init__(items, replies, options)
        self.columns = columns
        self._graders: dict[str, Grader] = {}

    def grade_columns(self, batch: pa.RecordBatch | pa.Table, part: RangeResult) -> None:
        """Judge the rows of a batch.

        Raises:
            DataError: see :func:`grade_batch`; its line is the row, counted from the first one of the part.
        """
        for row in reply_rows(batch, self.options.format):
            part.lines += 1
            try:
                decoded = _decoded(row)
            except DataError as error:
                raise error.at(str(self.replies), part.lines) from None
            self.grade_row(decoded, part, part.lines)

    def grade_line(self, line: bytes, part: RangeResult) -> None:
        """Judge a line of JSONL.

        Raises:
            DataError: see :meth:`RangeGrader.grade_range`.
        """
        self._grade_line(line, part)

    def grade_row(self, row: Mapping[str, Any], part: RangeResult, number: int | None, place: str = "") -> None:
        """Judge one decoded row; see :meth:`RangeGrader.grade_row`.

        Raises:
            DataError: also where its epoch does not fit into the column.
        """
        epoch = row.get("epoch")
        if self.columns is not None and type(epoch) is int and epoch > _LARGEST_EPOCH:
            field = f"{place}.epoch" if place and number is None else "epoch"
            raise DataError("an epoch must be below 2^63.", path=str(self.replies), line=number, field=field)
        super().grade_row(row, part, number, place)

    def grade_reply(self, item: Item, reply: Reply, words: Callable[[], str], part: RangeResult) -> None:
        """Judge and count one reply; see :meth:`RangeGrader.grade_reply`."""
        result = self._grader(item).evaluate(reply, causes=self.options.causes)
        said = words()[:SAID] if result.score is not None and not result.calls else ""
        self.count(item, result, said, part)
        if self.columns is not None:
            self.columns.add(result, said)

    def _item(self, item_id: str) -> Item | None:
        known = self._graders.get(item_id)
        if known is not None and isinstance(known.item, Item):
            return known.item
        return super()._item(item_id)

    def _grader(self, item: Item) -> Grader:
        found = self._graders.get(item.id)
        if found is None:
            if len(self._graders) >= _KEPT:
                self._graders.clear()
            found = self._graders[item.id] = Grader(item, self.rules)
        return found


class ArrowGrader:
    """Judges many batches of replies against the same items, compiled once.

    Args:
        items: the items.
        rules: one of ``RULES``.
        format: one of ``formats.FORMATS``, or the name of one that an installed package offers.
        causes: whether to explain lost points.
        allow_unknown: leave out replies to unknown items instead of refusing the batch.
        categories: declared categories; with them, an item of an unknown category is refused.

    Raises:
        UsageError: there are no such rules, or no such format.
    """

    def __init__(
        self,
        items: ItemSet,
        *,
        rules: Rules = CANONICAL,
        format: str = "auto",  # noqa: A002 - the option's name
        causes: bool = True,
        allow_unknown: bool = False,
        categories: Mapping[str, Category] | None = None,
    ) -> None:
        form = find_format(format)
        if RULES.get(rules.name) != rules:
            raise UsageError(f"a batch is judged by one of the named rules: {', '.join(RULES)}.")
        options = Options(rules.name, form, causes, None, allow_unknown, categories)
        self._columns = Columns(signature_of(items, rules, form), causes=causes)
        self._rows = RowGrader(items, _BATCH, options, self._columns)

    def grade(self, batch: _Batch) -> _Batch:
        """Judge one batch; see :func:`grade_batch`."""
        try:
            self._rows.grade_columns(batch, RangeResult())
        except DataError as error:
            raise _placed(error) from None
        finally:
            judged = self._columns.take()
        return pa.Table.from_batches([judged]) if isinstance(batch, pa.Table) else judged


_BATCH = Path("batch")


def _placed(error: DataError) -> DataError:
    """The error with its row as a place in the batch; an error of the items keeps its own."""
    found = error.at(str(_BATCH))
    if found.path == str(_BATCH) and found.line is not None:
        place, found.line = f"[{found.line - 1}]", None
        found.field = f"{place}.{found.field}" if found.field else place
    return found


# --- columns → rows ------------------------------------------------------------------------------------------

_WRITTEN = ("actual_calls", "calls", "tool_calls", "message", "function_call")
"""Columns whose text is the JSON of what they hold."""

FIELDS = (
    *("custom_id", "item_id", "id", "epoch", "error", "actual_calls", "calls", "tool_calls", "response", "text"),
    *("tool_called", "arguments", "message", "role", "content", "function_call"),
)
"""The columns that are read: the fields of a reply in ``docs/formats.md``."""

_Reader = Callable[[Any], Any]


def reply_rows(batch: pa.RecordBatch | pa.Table, format: str | OwnFormat = "auto") -> Iterator[dict[str, Any]]:  # noqa: A002
    """The rows of a batch, only the columns that are read; texts that hold JSON are still text.

    Raises:
        DataError: see :func:`check_columns`; or a text is not valid UTF-8.
    """
    names = check_columns(batch.schema, format)
    columns = [_values(batch.column(name), name) for name in names]
    for row in zip(*columns, strict=True):
        yield dict(zip(names, row, strict=True))


def _decoded(row: dict[str, Any]) -> dict[str, Any]:
    """A row as a line of JSON would hold it."""
    for name in _WRITTEN:
        if isinstance(text := row.get(name), str):
            try:
                row[name] = decode_clipped(text.encode())
            except MalformedJSON as error:
                remedy = "Such a column holds calls or their JSON text; what the model wrote belongs into 'text'."
                raise DataError(f"the text cannot be read: {error}.", field=name, remedy=remedy) from None
    if row.get("epoch", 0) is None:
        del row["epoch"]
    return row


def check_columns(schema: pa.Schema, format: str | OwnFormat = "auto") -> list[str]:  # noqa: A002 - the option's name
    """The columns of a schema that are read: those of a reply, and others for a format of a package that takes rows.

    Raises:
        DataError: there are none, one stands twice, or one of a reply has a type that JSON does not have.
    """
    names = [name for name in FIELDS if name in schema.names]
    if isinstance(format, OwnFormat) and format.takes == "row":
        names += [name for name in dict.fromkeys(schema.names) if name not in FIELDS and _is_json(schema, name)]
    if not names:
        raise DataError(f"it has none of the columns of a reply: {', '.join(FIELDS)}.")
    for name in names:
        if len(schema.get_all_field_indices(name)) > 1:
            raise DataError("the column stands twice.", field=name)
        _reader(schema.field(name).type, name)
    return names


def _is_json(schema: pa.Schema, name: str) -> bool:
    if len(schema.get_all_field_indices(name)) > 1:
        return False
    try:
        _reader(schema.field(name).type, name)
    except DataError:
        return False
    return True


def _values(column: Any, name: str) -> Iterator[Any]:
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.cast(column.type.storage_type)
    read = _reader(column.type, name)
    try:
        values = column.to_pylist()
    except UnicodeDecodeError:
        raise DataError("a text is not valid UTF-8.", field=name) from None
    return iter(values) if read is None else map(read, values)


def _reader(type_: pa.DataType, name: str) -> _Reader | None:
    """What makes a value of JSON of a value of a type; None where it is one already.

    Raises:
        DataError: JSON has nothing of the kind.
    """
    kinds = pa.types
    if isinstance(type_, pa.BaseExtensionType):
        return _reader(type_.storage_type, name)
    if kinds.is_dictionary(type_):
        return _reader(type_.value_type, name)
    if kinds.is_struct(type_):
        members = [type_.field(place) for place in range(type_.num_fields)]
        if len({member.name for member in members}) < len(members):
            raise DataError("two members of the column have one name.", field=name)
        return _struct_reader({member.name: _reader(member.type, f"{name}.{member.name}") for member in members})
    if kinds.is_map(type_):
        if not _is_text(type_.key_type):
            raise DataError(f"the keys of an object must be text, not {type_.key_type}.", field=name)
        return _map_reader(_reader(type_.item_type, name))
    if kinds.is_list(type_) or kinds.is_large_list(type_) or kinds.is_fixed_size_list(type_):
        return _list_reader(_reader(type_.value_type, name))
    if _is_text(type_) or any(
        test(type_) for test in (kinds.is_null, kinds.is_boolean, kinds.is_integer, kinds.is_floating)
    ):
        return None
    remedy = "Write such values as text or numbers, or the whole column as JSON text."
    raise DataError(f"the column has the type {type_}, which JSON does not have.", field=name, remedy=remedy)


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_))


def _struct_reader(members: Mapping[str, _Reader | None]) -> _Reader:
    """An object without its nulls: a struct has a null for every member that a row does not use."""
    plain = not any(members.values())

    def read(value: dict[str, Any] | None) -> Any:
        if value is None:
            return None
        if plain:
            return {key: member for key, member in value.items() if member is not None}
        found = {}
        for key, member in value.items():
            if member is not None:
                reader = members[key]
                found[key] = member if reader is None else reader(member)
        return found

    return read


def _map_reader(member: _Reader | None) -> _Reader:
    def read(value: list[tuple[str, Any]] | None) -> Any:
        if value is None:
            return None
        return {key: entry if member is None or entry is None else member(entry) for key, entry in value}

    return read


def _list_reader(member: _Reader | None) -> _Reader | None:
    if member is None:
        return None
    return lambda value: None if value is None else [member(entry) for entry in value]


# --- results → columns ---------------------------------------------------------------------------------------

_encode = msgspec.json.Encoder().encode


def _json(value: Any) -> str | None:
    """A value as JSON text; None for nothing."""
    if value is None:
        return None
    try:
        return _encode(value).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        return _encode(repr(value)).decode()


def _loss(loss: Loss) -> dict[str, Any]:
    found = {name: getattr(loss, name) for name in Loss.__struct_fields__}
    return found | {"expected": _json(loss.expected), "actual": _json(loss.actual)}


def _call(call: Call) -> dict[str, Any]:
    return {
        "function": call.function,
        "arguments": _json(call.arguments),
        "error": call.error,
        "raw": _json(call.raw),
    }
