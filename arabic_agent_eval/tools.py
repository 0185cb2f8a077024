"""Tool calls and the tools that they name.

A call that a model got wrong is still a :class:`Call`: its ``error`` says what was wrong, and nothing repairs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from arabic_agent_eval.errors import DataError
from arabic_agent_eval.files import read_json
from arabic_agent_eval.strictjson import MalformedJSON, decode, too_deep

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

CallError = Literal["malformed_call", "malformed_arguments", "double_encoded_arguments"]


class Call(msgspec.Struct, frozen=True):
    """One tool call as it was made.

    Attributes:
        function: the tool's name, exactly as written; None when no name could be read.
        arguments: the arguments that could be read; empty when there are none or they are malformed.
        error: what was wrong with the call (ruling 12), or None.
        raw: what was sent where it could not be read, for showing only.
    """

    function: str | None
    arguments: dict[str, Any] = {}
    error: CallError | None = None
    raw: Any = None

    @classmethod
    def read(cls, function: object, arguments: object) -> Self:
        """A call from a name and arguments as they came: an object, JSON text, or nothing (ruling 12)."""
        if not isinstance(function, str) or not function:
            return cls(None, error="malformed_call", raw={"function": function, "arguments": arguments})
        if type(arguments) is dict and not too_deep(arguments):
            return cls(function, arguments)
        read, error = read_arguments(arguments)
        return cls(function, read, error, arguments if error else None)

    @classmethod
    def of(cls, call: object) -> Call:
        """A call from a :class:`Call` or a mapping with ``function`` and ``arguments``; anything else is malformed."""
        if isinstance(call, Call):
            return call
        if not isinstance(call, Mapping):
            return cls(None, error="malformed_call", raw=call)
        return cls.read(call.get("function"), call.get("arguments"))


def read_arguments(value: object) -> tuple[dict[str, Any], CallError | None]:
    """Arguments as they came → the object and what was wrong (ruling 12); nothing is repaired."""
    if isinstance(value, str):
        return _read_text(value)
    if value is None:
        return {}, None
    if isinstance(value, Mapping) and not too_deep(value):
        return dict(value), None
    return {}, "malformed_arguments"


def _read_text(text: str) -> tuple[dict[str, Any], CallError | None]:
    if not text:
        return {}, None
    try:
        value = decode(text)
    except MalformedJSON:
        return {}, "malformed_arguments"
    if isinstance(value, dict):
        return value, None
    if value is None:
        return {}, None
    if isinstance(value, str) and _is_object(value):
        return {}, "double_encoded_arguments"
    return {}, "malformed_arguments"


def _is_object(text: str) -> bool:
    try:
        return isinstance(decode(text), dict)
    except MalformedJSON:
        return False


class Tool(msgspec.Struct, frozen=True):
    """A tool that is offered to a model: an OpenAI function schema, with optional Arabic name and description."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}
    name_ar: str | None = None
    description_ar: str | None = None

    @property
    def properties(self) -> Mapping[str, Any]:
        """Parameter name → its schema; empty when the schema names none."""
        found = self.parameters.get("properties")
        return found if isinstance(found, dict) else {}

    @property
    def required(self) -> Sequence[str]:
        """The names of the parameters that every call must give."""
        found = self.parameters.get("required")
        return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


class Toolbox(Mapping[str, Tool]):
    """Tools by name, in the order in which they were given."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = {tool.name: tool for tool in tools}

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __iter__(self) -> Any:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    @classmethod
    def read(cls, path: Path | None) -> Toolbox:
        """The tools of a registry in a file; none where there is no file.

        Raises:
            DataError: the file cannot be read, or an entry is not an OpenAI function schema.
        """
        if path is None:
            return cls(())
        try:
            return cls.from_schemas(read_json(path))
        except DataError as error:
            raise error.at(str(path)) from None

    @classmethod
    def from_schemas(cls, document: Any) -> Toolbox:
        """Tools from a registry: a list of schemas, or an object with ``functions`` or ``tools``.

        Raises:
            DataError: an entry is not an OpenAI function schema; the message names its place.
        """
        if isinstance(document, dict):
            document = document.get("functions", document.get("tools", document))
        if not isinstance(document, list):
            raise DataError(
                "a tool registry is a list of OpenAI function schemas, or an object with such a list under "
                "'functions' or 'tools'."
            )
        tools = [read_tool(entry, f"[{place}]") for place, entry in enumerate(document)]
        seen: set[str] = set()
        for place, tool in enumerate(tools):
            if tool.name in seen:
                raise DataError(f"the tool {tool.name!r} stands there twice; names must be unique.", field=f"[{place}]")
            seen.add(tool.name)
        return cls(tools)


def read_tool(entry: Any, field: str) -> Tool:
    """One OpenAI function schema, bare or inside ``{"type": "function", "function": …}``.

    Raises:
        DataError: it has no name, or a field has another type than the schema wants.
    """
    if isinstance(entry, dict) and isinstance(entry.get("function"), dict):
        entry = entry["function"]
    try:
        return msgspec.convert(entry, Tool)
    except msgspec.ValidationError as error:
        raise DataError(f"this is not an OpenAI function schema: {error}.", field=field) from None
