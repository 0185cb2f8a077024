"""Reading lines of JSON and writing files whole: the one place below the runner that touches the disk."""

from __future__ import annotations

import contextlib
import gc
import os
import re
import shutil
import tempfile
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

import msgspec

from arabic_agent_eval.errors import DataError, OutputError
from arabic_agent_eval.strictjson import MalformedJSON, decode_clipped

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLOCK = 1 << 18
BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def open_lines(path: Path) -> IO[bytes]:
    """Open a file of text lines for reading, past a byte order mark.

    Raises:
        DataError: it is missing, unreadable, a folder, a pipe, or UTF-16.
    """
    try:
        stream = path.open("rb", buffering=1 << 20)
        if not stream.seekable():
            stream.close()
            remedy = "Save it to a file first; replies can also come from standard input, with --replies -."
            raise DataError("this is a pipe, and the file is read more than once.", path=str(path), remedy=remedy)
        head = stream.read(3)
    except OSError as error:
        raise DataError(f"the file cannot be read: {reason_of(error)}.", path=str(path)) from None
    if head[:2] in _UTF16:
        stream.close()
        raise DataError("the file is UTF-16.", path=str(path), remedy="Save it as UTF-8.")
    stream.seek(3 if head == BOM else 0)
    return stream


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file that are not blank, each with its number (from 1).

    Raises:
        DataError: see :func:`open_lines`.
    """
    with open_lines(path) as stream:
        for number, line in enumerate(stream, 1):
            if not line.isspace():
                yield number, line


def lines_between(stream: IO[bytes], start: int, end: int) -> Iterator[bytes]:
    """The lines whose first byte lies in [start, end), so that adjoining ranges share no line and miss none."""
    return chain.from_iterable(_blocks_between(stream, start, end))


def _blocks_between(stream: IO[bytes], start: int, end: int) -> Iterator[list[bytes]]:
    position = stream.tell()  # past a byte order mark
    if start > position:
        stream.seek(start - 1)
        position = start - 1 + len(stream.readline())
    while position < end:
        lines = stream.readlines(min(end - position, _BLOCK))
        if not lines:
            return
        position += sum(map(len, lines))
        while position - len(lines[-1]) >= end:  # some streams give a line more than was asked for
            position -= len(lines.pop())
        yield lines


def read_json_line(line: bytes, path: str, number: int) -> dict[str, Any]:
    """One line as a JSON object.

    Raises:
        DataError: it is not JSON, or not an object; the message names the file and the line.
    """
    try:
        value = decode_clipped(line)
    except MalformedJSON as error:
        raise DataError(f"the line cannot be read: {error}.", path=path, line=number) from None
    if not isinstance(value, dict):
        raise DataError(f"each line must be a JSON object, not {json_type(value)}.", path=path, line=number)
    return value


def json_type(value: object) -> str:
    """The JSON name of a value's type, with its article, for messages."""
    names = {
        bool: "a boolean",
        int: "a number",
        float: "a number",
        str: "text",
        list: "a list",
        dict: "an object",
    }
    return "null" if value is None else names.get(type(value), type(value).__name__)


def read_json(path: Path) -> Any:
    """A whole file as one JSON value.

    Raises:
        DataError: it cannot be read or is not JSON.
    """
    with open_lines(path) as stream:
        data = stream.read()
    try:
        return decode_clipped(data)
    except MalformedJSON as error:
        raise DataError(f"the file cannot be read: {error}.", path=str(path)) from None


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """Pause Python's cycle collector while very many small values without cycles are made.

    It finds nothing then, and looking through all of them again and again takes most of the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class WholeFile:
    """A file that appears complete or not at all: the old one stands until the context is left.

    Used as a context manager; leaving it by an exception or an interrupt removes what was written so far.
    """

    def __init__(self, path: Path, *, durable: bool = True) -> None:
        self.path = path
        self._durable = durable
        self._stream: IO[bytes] | None = None
        self._temporary: str | None = None

    def __enter__(self) -> Self:
        try:
            self.path = self.path.resolve()  # a link keeps pointing, and what it points to is replaced
            taken = self.path.exists() and not self.path.is_file()
        except OSError as error:
            raise OutputError(f"{self.path}: the result cannot be written there: {reason_of(error)}.") from None
        if taken:
            what = "a folder" if self.path.is_dir() else "not a regular file"
            raise OutputError(f"{self.path}: the result cannot be written there: it is {what}.")
        folder = self.path.parent
        try:
            handle, self._temporary = tempfile.mkstemp(prefix=f".{self.path.name[:80]}.", suffix=".part", dir=folder)
            self._stream = os.fdopen(handle, "wb", buffering=1 << 20)
        except OSError as error:
            raise self._failure(error) from None
        return self

    def write(self, data: bytes) -> None:
        """Add bytes to the file to come.

        Raises:
            OutputError: the disk is full or gone.
        """
        assert self._stream is not None  # noqa: S101 - only inside the context
        try:
            self._stream.write(data)
        except OSError as error:
            raise self._failure(error) from None

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._commit()
        finally:
            self._discard()

    def _commit(self) -> None:
        assert self._stream is not None and self._temporary is not None  # noqa: S101, PT018
        try:
            self._stream.flush()
            if self._durable:
                os.fsync(self._stream.fileno())
            self._stream.close()
            mode = self.path.stat().st_mode & 0o777 if self.path.exists() else 0o666 & ~_umask()
            os.chmod(self._temporary, mode)  # noqa: PTH101
            os.replace(self._temporary, self.path)  # noqa: PTH105
            self._temporary = None
        except OSError as error:
            raise self._failure(error) from None

    def _discard(self) -> None:
        if self._stream is not None and not self._stream.closed:
            with contextlib.suppress(OSError):
                self._stream.close()
        if self._temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._temporary)  # noqa: PTH108

    def _failure(self, error: OSError) -> OutputError:
        kept = " The file that was there is unchanged." if self.path.exists() else ""
        return OutputError(f"{self.path}: the result could not be written: {reason_of(error)}.{kept}")


def is_same_file(one: Path, other: str | Path) -> bool:
    """Whether two names lead to one file that is there."""
    try:
        return one.samefile(other)
    except OSError:  # one of them is not there, or no name for a file
        return False


def write_whole(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Write a file completely or not at all.

    Args:
        path: the file.
        data: what it holds.
        durable: whether to wait until the disk has it.

    Raises:
        OutputError: it could not be written; a file that was there is unchanged.
    """
    with WholeFile(path, durable=durable) as file:
        file.write(data)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def reason_of(error: OSError) -> str:
    """What the system says went wrong, in lower case, to stand inside a sentence."""
    return (error.strerror or str(error)).lower()


def validation_error(error: msgspec.ValidationError, path: str | None = None, line: int | None = None) -> DataError:
    """What a typed decoder found wrong, as a sentence with file, line and field."""
    text, _, where = str(error).partition(" - at `")
    field = where.rstrip("`").removeprefix("$").removeprefix(".") or None
    missing = re.fullmatch(r"Object missing required field `(.+)`", text)
    if missing:
        name = f"{field}.{missing[1]}" if field else missing[1]
        return DataError("the field is missing.", path=path, line=line, field=name)
    if text == "Expected `str` of length >= 1":
        return DataError("the text must not be empty.", path=path, line=line, field=field)
    got = re.fullmatch(r"Expected `(.+)`, got `(.+)`", text)
    if got:
        text = f"expected {_JSON_NAMES.get(got[1], got[1])}, found {_JSON_NAMES.get(got[2], got[2])}"
    return DataError(f"{text}.", path=path, line=line, field=field)


_JSON_NAMES = {"str": "text", "int": "a whole number", "float": "a number", "bool": "true or false",
               "array": "a list", "object": "an object", "object | null": "an object", "str | null": "text",
               "array | null": "a list"}  # fmt: skip


@contextlib.contextmanager
def spooled(stream: IO[bytes]) -> Iterator[Path]:
    """What a stream holds, as a temporary file that is removed afterwards.

    Raises:
        OutputError: there is no room for it.
    """
    handle, name = tempfile.mkstemp(suffix=".jsonl")
    try:
        try:
            with os.fdopen(handle, "wb") as file:
                shutil.copyfileobj(stream, file, 1 << 20)
        except OSError as error:
            raise OutputError(f"standard input could not be kept in {name}: {reason_of(error)}.") from None
        yield Path(name)
    finally:
        os.unlink(name)  # noqa: PTH108
