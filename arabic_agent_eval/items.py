"""Items, categories and item sets: what is asked and which calls are right."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from arabic_agent_eval.errors import DataError
from arabic_agent_eval.files import numbered_lines, read_json, read_json_line, validation_error
from arabic_agent_eval.strictjson import number_text, too_deep
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


class ExpectedCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """A call that the item expects.

    Attributes:
        function: the tool's name; ``"*"`` accepts any (ruling 8).
        arguments: name → right value; ``"*"`` accepts any present value (ruling 7), null is as absent.
        accept: name → other right values; the best rung over the value and these counts.
        result: what the simulated tool answers; unset when the item runs without tools.
    """

    function: str
    arguments: dict[str, Any] = {}
    accept: dict[str, list[Any]] = {}
    result: Any = msgspec.UNSET


class Item(msgspec.Struct, frozen=True, omit_defaults=True):
    """One question of a benchmark with the calls that answer it; the fields are those of ``docs/formats.md``."""

    id: str
    category: str
    expected_calls: list[ExpectedCall]
    instruction: str = ""
    dialect: str | None = None
    available_functions: list[str] = []
    difficulty: str | None = None
    error_response: Any = None
    intent: str | None = None
    ordered: bool = True
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
        return frozenset(self.own_tools)

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


def read_item(line: bytes, path: str, number: int) -> Item:
    """One line of an item file.

    Raises:
        DataError: it is not an item; the message names file, line and field.
    """
    try:
        item = _decode_item(line)
    except (msgspec.MsgspecError, RecursionError):
        return item_from_row(read_json_line(line, path, number), path, number)
    _check_depth(item, path, number)
    return item


def item_from_row(row: Any, path: str | None = None, number: int | None = None) -> Item:
    """An item from a decoded JSON object.

    Raises:
        DataError: it is not an item; the message names the field.
    """
    if not isinstance(row, dict):
        raise DataError("an item must be a JSON object.", path=path, line=number)
    if type(row.get("id")) is int:
        row = row | {"id": number_text(row["id"])}
    try:
        item = msgspec.convert(row, Item)
    except msgspec.ValidationError as error:
        raise validation_error(error, path, number) from None
    except RecursionError:
        raise DataError("the item is nested too deeply.", path=path, line=number) from None
    _check_depth(item, path, number)
    return item


def _check_depth(item: Item, path: str | None, number: int | None) -> None:
    for place, call in enumerate(item.expected_calls):
        for value in call.arguments.values():
            if (type(value) is dict or type(value) is list) and too_deep(call.arguments):
                raise DataError(
                    "the expected arguments are nested deeper than 64 levels.",
                    path=path,
                    line=number,
                    field=f"expected_calls[{place}].arguments",
                )


class ItemSet(Mapping[str, Item]):
    """Items by id, in the order of their file.

    Attributes:
        name: what reports call the set, usually the file's name without its ending.
        path: where it was read from, or None.
        fingerprint: twelve hexadecimal digits of a SHA-256 over its lines; it changes when any item does.
    """

    def __init__(
        self,
        items: Iterable[Item],
        *,
        name: str = "items",
        path: Path | None = None,
        fingerprint: str | None = None,
    ) -> None:
        self._items: dict[str, Item] = {}
        for item in items:
            if item.id in self._items:
                raise DataError(
                    f"the id {item.id!r} stands twice; ids must be unique.", path=name, field="id"
                )
            self._items[item.id] = item
        self.name = name
        self.path = path
        self._fingerprint = fingerprint

    def __getitem__(self, item_id: str) -> Item:
        return self._items[item_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    @property
    def fingerprint(self) -> str:
        """Twelve hexadecimal digits that change when any item changes."""
        if self._fingerprint is None:
            digest = hashlib.sha256()
            for item in self.values():
                digest.update(msgspec.json.encode(item) + b"\n")
            self._fingerprint = digest.hexdigest()[:12]
        return self._fingerprint

    @classmethod
    def read(cls, path: str | Path) -> ItemSet:
        """Read a JSONL file of items, or a JSON file with a list of them.

        Raises:
            DataError: the file or any line is not what it should be; nothing half-read is returned.
        """
        path = Path(path)
        items, fingerprint = _read_list(path) if _is_list(path) else _read_lines(path)
        if not items:
            raise DataError("the file holds no items.", path=str(path))
        found = cls((), name=path.stem, path=path, fingerprint=fingerprint)
        found._items = items
        return found

    def filter(self, keep: Callable[[Item], bool]) -> ItemSet:
        """The items for which ``keep`` holds, as a set of its own with its own fingerprint."""
        return ItemSet((item for item in self.values() if keep(item)), name=self.name, path=self.path)


def _is_list(path: Path) -> bool:
    """A file is a JSON list when its first mark is a bracket; a line of JSONL starts with a brace."""
    for _, line in numbered_lines(path):
        return line.lstrip()[:1] == b"["
    return False


def _read_lines(path: Path) -> tuple[dict[str, Item], str]:
    items: dict[str, Item] = {}
    name, digest = str(path), hashlib.sha256()
    first_seen: dict[str, int] = {}
    for number, line in numbered_lines(path):
        item = read_item(line, name, number)
        if item.id in items:
            before = first_seen.get(item.id) or _line_of(path, item.id)
            raise DataError(
                f"the id {item.id!r} stands already on line {before}; ids must be unique.",
                path=name, line=number, field="id",
            )  # fmt: skip
        items[item.id] = item
        digest.update(line.strip())
        digest.update(b"\n")
    return items, digest.hexdigest()[:12]


def _line_of(path: Path, item_id: str) -> int:
    """The first line with this id: looked for only when there is an error to explain."""
    return next(n for n, line in numbered_lines(path) if read_item(line, str(path), n).id == item_id)


def _read_list(path: Path) -> tuple[dict[str, Item], str]:
    rows = read_json(path)
    if not isinstance(rows, list):
        raise DataError("a JSON file of items must be a list.", path=str(path))
    items: dict[str, Item] = {}
    for place, row in enumerate(rows):
        try:
            item = item_from_row(row, str(path))
        except DataError as error:
            field = f"[{place}].{error.field}" if error.field else f"[{place}]"
            raise DataError(error.what, path=str(path), field=field) from None
        if item.id in items:
            raise DataError(
                f"the id {item.id!r} stands twice; ids must be unique.", path=str(path), field=f"[{place}].id"
            )
        items[item.id] = item
    return items, ItemSet(items.values()).fingerprint


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
        if isinstance(weight, bool) or not isinstance(weight, int | float) or weight < 0:
            raise DataError(
                "a weight must be a number of at least 0.", path=str(path), field=f"{name}.weight"
            )
        name_ar = entry.get("name_ar", "") if isinstance(entry, dict) else ""
        found[name] = Category(name, float(weight), str(name_ar))
    return found
