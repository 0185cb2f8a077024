"""Items, categories and item sets: what is asked and which calls are right."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import IO, Annotated, Any

import msgspec

from arabic_agent_eval.errors import DataError
from arabic_agent_eval.files import (
    collector_paused,
    numbered_lines,
    open_lines,
    read_json,
    validation_error,
)
from arabic_agent_eval.strictjson import MalformedJSON, decode_any_depth, number_text, too_deep
from arabic_agent_eval.tools import Tool, Toolbox, read_tool

DIALECTS = ("msa", "gulf", "egyptian", "levantine", "maghrebi")
"""The dialects that reports list first, in this order."""


class Category(msgspec.Struct, frozen=True):
    """A category of items.

    Attributes:
        name: as items name it.
        weight: its share in the overall score (ruling 18); at least 0.
        name_ar: its Arabic name, for reports.
    """

    name: str
    weight: float
    name_ar: str = ""


CATEGORIES: Mapping[str, Category] = {
    category.name: category
    for category in (
        Category("simple_function_calling", 0.20, "استدعاء بسيط"),
        Category("parameter_extraction", 0.20, "استخراج المعاملات"),
        Category("multi_step", 0.20, "خطوات متعددة"),
        Category("dialect_handling", 0.15, "فهم اللهجات"),
        Category("tool_selection", 0.15, "اختيار الأداة"),
        Category("error_recovery", 0.10, "التعافي من الأخطاء"),
    )
}
"""The six canonical categories and their weights (ruling 18)."""


class ExpectedCall(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A call that the item expects.

    Attributes:
        function: the tool's name; ``"*"`` accepts any (ruling 8).
        arguments: name → right value; ``"*"`` accepts any present value (ruling 7), null is as absent.
        accept: name → other right values; the best rung over the value and these counts. None: there are no others.
        result: what the simulated tool answers; unset when the item runs without tools.
    """

    function: Annotated[str, msgspec.Meta(min_length=1)]
    arguments: dict[str, Any] = {}
    accept: dict[str, list[Any]] | None = None
    result: Any = msgspec.UNSET


class AnswerKey(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The part of an item that grading needs.

    Attributes:
        id: unique in its set; compared as text.
        category: decides the weights.
        expected_calls: the right calls; empty when nothing should be called.
        dialect: of the instruction, or None.
        ordered: False when the expected calls may come in any order (ruling 14).
    """

    id: str
    category: str
    expected_calls: list[ExpectedCall]
    dialect: str | None = None
    ordered: bool = True


class Item(AnswerKey, frozen=True, omit_defaults=True):
    """One question of a benchmark with the calls that answer it; the fields are those of ``docs/formats.md``."""

    instruction: str = ""
    available_functions: list[str] = []
    difficulty: str | None = None
    error_response: Any = None
    intent: str | None = None
    context: dict[str, Any] | None = None
    messages: list[dict[str, Any]] | None = None
    language: str | None = None
    tools: list[Any] | None = None
    tags: list[str] = []
    notes: Any = None

    @property
    def offered(self) -> frozenset[str]:
        """The names of the tools that the model could call; empty when the item names none."""
        if self.tools is None:
            return frozenset(self.available_functions)
        schemas = (tool.get("function", tool) for tool in self.tools if isinstance(tool, dict))
        names = (schema.get("name") for schema in schemas if isinstance(schema, dict))
        return frozenset(name for name in names if isinstance(name, str))

    @property
    def own_tools(self) -> Toolbox:
        """The tools that the item carries inline.

        Raises:
            DataError: one of them is not a function schema.
        """
        return Toolbox(read_tool(tool, f"tools[{place}]") for place, tool in enumerate(self.tools or ()))

    def toolbox(self, registry: Mapping[str, Tool]) -> Toolbox:
        """The offered tools: inline ones, else those of the registry; unknown names are left out."""
        if self.tools is not None:
            return self.own_tools
        return Toolbox(registry[name] for name in self.available_functions if name in registry)


_decode_item = msgspec.json.Decoder(Item).decode
_decode_key = msgspec.json.Decoder(AnswerKey).decode


def read_item(line: bytes) -> Item:
    """One line of an item file.

    Raises:
        DataError: it is not an item; the message names the field, the caller adds file and line.
    """
    try:
        item = _decode_item(line)
    except (msgspec.MsgspecError, RecursionError):
        return item_from_row(_read_row(line))
    _check_depth(item)
    return item


def item_from_row(row: Any) -> Item:
    """An item from a decoded JSON object.

    Raises:
        DataError: it is not an item; the message names the field, the caller adds file and line.
    """
    if not isinstance(row, dict):
        raise DataError("an item must be a JSON object.")
    if type(row.get("id")) is int:
        row = row | {"id": number_text(row["id"])}
    try:
        item = msgspec.convert(row, Item)
    except msgspec.ValidationError as error:
        raise validation_error(error) from None
    _check_depth(item)
    return item


def _read_row(line: bytes) -> Any:
    try:
        return decode_any_depth(line)
    except MalformedJSON as error:
        raise DataError(f"the line cannot be read: {error}.") from None


def _check_depth(item: AnswerKey) -> None:
    for place, call in enumerate(item.expected_calls):
        if too_deep(call.arguments) or too_deep(call.accept):
            raise DataError(
                "the expected arguments are nested deeper than 64 levels.", field=f"expected_calls[{place}].arguments"
            )


class ItemSet(Mapping[str, Item]):
    """Items by id, in the order of their file.

    A set that is read from lines keeps the lines, and an item is decoded each time that it is asked for: that takes
    less time and memory than keeping millions of small values. :meth:`index` reads on only as far as it must, so
    that replies in the order of the items are graded in one pass over both files.

    Attributes:
        name: what reports call the set, usually the file's name without its ending.
        path: where it was read from, or None.
        latest: the answer keys of the lines that were read last, by id.

    Raises:
        DataError: an id stands twice.
    """

    def __init__(self, items: Iterable[Item], *, name: str = "items", path: Path | None = None) -> None:
        self._entries: dict[str, Item | bytes] = {}
        self._unread: Iterator[dict[str, AnswerKey]] = iter(())
        self.latest: dict[str, AnswerKey] = {}
        self._fingerprint: str | None = None
        self._count: int | None = None
        self._order: list[str] | None = None
        self.name = name
        self.path = path
        for item in items:
            if item.id in self._entries:
                raise DataError(f"the id {item.id!r} stands twice; ids must be unique.", path=name, field="id")
            self._entries[item.id] = item

    def __getitem__(self, item_id: str) -> Item:
        entry = self._entries.get(item_id)
        if entry is None:
            self._read_on(item_id)
            entry = self._entries[item_id]
        if not isinstance(entry, bytes):
            return entry
        try:
            return read_item(entry)
        except DataError as error:
            raise error.at(str(self.path), self._line_number(entry)) from None

    def __iter__(self) -> Iterator[str]:
        if self._order is not None:
            return iter(self._order)
        self._read_rest()
        return iter(self._entries)

    def __len__(self) -> int:
        if self._count is not None:
            return self._count
        self._read_rest()
        return len(self._entries)

    def __contains__(self, item_id: object) -> bool:
        if item_id not in self._entries:
            self._read_rest()
        return item_id in self._entries

    def answer_key(self, item_id: str) -> AnswerKey:
        """The part of an item that grading needs, at half the price of the whole; its depth is not checked.

        Raises:
            KeyError: there is no such item.
            DataError: a line on the way is not an item.
        """
        entry = self._entries.get(item_id)
        if entry is None:
            return self._read_on(item_id)
        if not isinstance(entry, bytes):
            return entry
        try:
            return _decode_key(entry)
        except (msgspec.MsgspecError, RecursionError):
            return self[item_id]  # whose id is a number, or which surprises the fast decoder

    def _read_on(self, item_id: str) -> AnswerKey:
        for keys in self._unread:
            self.latest = keys
            if item_id in keys:
                return keys[item_id]
        raise KeyError(item_id)

    def _read_rest(self) -> None:
        with collector_paused():
            for keys in self._unread:
                self.latest = keys

    def _line_number(self, entry: bytes) -> int | None:
        """Where a line stands: looked for only when there is an error to explain."""
        if self.path is None:
            return None
        return next((number for number, line in numbered_lines(self.path) if line == entry), None)

    @property
    def fingerprint(self) -> str:
        """Twelve hexadecimal digits of a SHA-256 over the lines; they change when any item does."""
        if self._count is None:
            self._read_rest()
        if self._fingerprint is None:
            self._fingerprint = hashlib.sha256(b"".join(self.lines())).hexdigest()[:12]
        return self._fingerprint

    @property
    def is_unread(self) -> bool:
        """Whether the set is a file of lines of which none was read yet."""
        return self.path is not None and not self._entries and self._order is None

    def glance(self, *, count: bool = True) -> None:
        """Learn the fingerprint, and the number of items, from the lines before any is read as an item.

        Args:
            count: whether to count them; the fingerprint alone takes half the time.
        """
        if not self.is_unread or self._fingerprint is not None or self.path is None:
            return
        digest, counted = hashlib.sha256(), 0
        with open_lines(self.path) as stream:
            while lines := stream.readlines(_BLOCK) if count else _whole_block(stream):
                counted += len(lines) - sum(map(bytes.isspace, lines)) if count else 0
                digest.update(_content(lines))
        self._fingerprint, self._count = digest.hexdigest()[:12], counted if count else None

    def vouch(self, ids: list[str] | None) -> None:
        """Take over the ids that other processes read from all the lines; None, or too few, and they are read here.

        Args:
            ids: in the order of the file, none twice.

        Raises:
            DataError: a line is not an item, or an id stands twice.
        """
        if ids is not None and self._count in {None, len(ids)}:
            self._order, self._count = ids, len(ids)
        else:
            self._count = None
            self._read_rest()

    def lines(self) -> Iterator[bytes]:
        """The items as lines of a file: those of the file that they were read from, blank ones aside."""
        self._read_rest()
        for entry in self._entries.values():
            line = entry if isinstance(entry, bytes) else msgspec.json.encode(entry)
            yield line.rstrip(b"\r\n") + b"\n"

    @classmethod
    def read(cls, path: str | Path, *, name: str | None = None) -> ItemSet:
        """Read a JSONL file of items, or a JSON file with a list of them, and check every one.

        Args:
            path: the file.
            name: what reports call the set; the file's name without its ending by default.

        Raises:
            DataError: the file or any line is not what it should be; nothing half-read is returned.
        """
        found = cls.index(path, name=name)
        for item_id in found:
            found[item_id]
        return found

    @classmethod
    def index(cls, path: str | Path, *, name: str | None = None) -> ItemSet:
        """Open a file of items; a line is read and checked when an item at or after it is first asked for.

        Args:
            path: the file.
            name: what reports call the set; the file's name without its ending by default.

        Raises:
            DataError: the file cannot be read or holds nothing.
        """
        path = Path(path)
        found = cls((), name=name or path.stem, path=path)
        first = next((line for _, line in numbered_lines(path)), None)
        if first is None:
            raise DataError("the file holds no items.", path=str(path))
        # A file is a JSON list when its first mark is a bracket; a line of JSONL starts with a brace.
        if first.lstrip()[:1] == b"[":
            found._entries.update(_read_list(path))
        else:
            found._unread = found._read_lines(path)
        return found

    def _read_lines(self, path: Path) -> Iterator[dict[str, AnswerKey]]:
        """Read the file into the set; gives the answer keys of a block of lines at a time."""
        digest, before = hashlib.sha256(), 0
        with open_lines(path) as stream:
            while lines := stream.readlines(_BLOCK):
                keys = self._read_block(lines)
                if keys is None:
                    yield from self._read_one_by_one(lines, path, before)
                else:
                    yield keys
                before += len(lines)
                digest.update(_content(lines))
        self._fingerprint = digest.hexdigest()[:12]

    def _read_block(self, lines: list[bytes]) -> dict[str, AnswerKey] | None:
        """Read lines that are all plain and new; None, and nothing is read, where any is not."""
        try:
            keys = {key.id: key for key in map(_decode_key, lines)}
        except (msgspec.MsgspecError, RecursionError):
            return None
        if len(keys) != len(lines) or not self._entries.keys().isdisjoint(keys):
            return None
        self._entries.update(zip(keys, lines, strict=True))
        return keys

    def _read_one_by_one(self, lines: list[bytes], path: Path, before: int) -> Iterator[dict[str, AnswerKey]]:
        """Read lines of which some are blank or wrong: an error comes when its line is reached, not before."""
        for number, line in enumerate(lines, before + 1):
            if line.isspace():
                continue
            key = _read_key(line, path, number)
            if key.id in self._entries:
                raise self._stands_twice(key.id, number)
            self._entries[key.id] = line
            yield {key.id: key}

    def _stands_twice(self, item_id: str, number: int) -> DataError:
        entry = self._entries[item_id]
        before = self._line_number(entry) if isinstance(entry, bytes) else None
        what = f"the id {item_id!r} stands already on line {before}; ids must be unique."
        return DataError(what, path=str(self.path), line=number, field="id")

    def unknown_fields(self) -> Iterator[tuple[str, str]]:
        """Item and path of every field of a file's lines that no reader knows, and that therefore has no effect."""
        for item_id in self:
            entry = self._entries[item_id]
            if isinstance(entry, bytes):
                row = _read_row(entry)
                yield from ((item_id, name) for name in row if name not in Item.__struct_fields__)
                for place, call in enumerate(row["expected_calls"]):
                    unknown = (name for name in call if name not in ExpectedCall.__struct_fields__)
                    yield from ((item_id, f"expected_calls[{place}].{name}") for name in unknown)

    def first(self, count: int) -> ItemSet:
        """The first items, as a set of its own with its own fingerprint."""
        found = ItemSet((), name=self.name, path=self.path)
        found._entries.update(islice(((item_id, self._entries[item_id]) for item_id in self), min(count, 1 << 62)))
        return found

    def filter(self, keep: Callable[[Item], bool]) -> ItemSet:
        """The items for which ``keep`` holds, as a set of its own with its own fingerprint."""
        return ItemSet((item for item in self.values() if keep(item)), name=self.name, path=self.path)


def _read_key(line: bytes, path: Path, number: int) -> AnswerKey:
    try:
        return _decode_key(line)
    except (msgspec.MsgspecError, RecursionError):
        pass
    try:
        return read_item(line)
    except DataError as error:
        raise error.at(str(path), number) from None


_BLOCK = 1 << 16  # what is decoded of it stays in a processor's nearest memory


def _whole_block(stream: IO[bytes]) -> list[bytes]:
    """A block that ends with a line, without looking for the lines in it; nothing at the end of the file."""
    block = stream.read(_BLOCK)
    return [block + stream.readline()] if block else []


def _content(lines: list[bytes]) -> bytes:
    """The lines without what is no content, so that the same items saved on another system keep their fingerprint."""
    block = b"".join(lines)
    if b"\r" in block:  # one byte is found much faster than two
        block = block.replace(b"\r\n", b"\n")
    return block if block.endswith(b"\n") else block + b"\n"


def _read_list(path: Path) -> dict[str, Item]:
    rows = read_json(path)
    if not isinstance(rows, list) or not rows:
        raise DataError("a JSON file of items must be a list with at least one item.", path=str(path))
    items: dict[str, Item] = {}
    for place, row in enumerate(rows):
        try:
            item = item_from_row(row)
        except DataError as error:
            field = f"[{place}].{error.field}" if error.field else f"[{place}]"
            raise DataError(error.what, path=str(path), field=field) from None
        if item.id in items:
            what = f"the id {item.id!r} stands twice; ids must be unique."
            raise DataError(what, path=str(path), field=f"[{place}].id")
        items[item.id] = item
    return items


def _is_weight(value: float) -> bool:
    """Far smaller or larger weights would be lost to rounding."""
    return value == 0 or 1e-6 <= value <= 1e6  # noqa: PLR2004


def read_categories(path: Path) -> dict[str, Category]:
    """Declared categories: a JSON object, name → ``{"weight": 0.2, "name_ar": "…"}``.

    Raises:
        DataError: the file is not such an object, or a weight is not a number of at least 0.
    """
    document = read_json(path)
    if not isinstance(document, dict):
        raise DataError("a file of categories must be an object of name → {weight, name_ar}.", path=str(path))
    found = {}
    for name, entry in document.items():
        weight = entry.get("weight") if isinstance(entry, dict) else entry
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not _is_weight(weight):
            what = "a weight must be 0, or a number from 0.000001 to 1000000."
            raise DataError(what, path=str(path), field=f"{name}.weight")
        name_ar = entry.get("name_ar", "") if isinstance(entry, dict) else ""
        found[name] = Category(name, float(weight), str(name_ar))
    return found
