"""Reading lines of JSON whatever wrote them, and writing files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import resource
import tempfile
from pathlib import Path

import msgspec
import pytest

from arabic_agent_eval.errors import DataError, OutputError
from arabic_agent_eval.files import (
    BOM,
    WholeFile,
    collector_paused,
    json_type,
    numbered_lines,
    open_lines,
    read_json,
    read_json_line,
    spooled,
    validation_error,
    write_whole,
)


@contextlib.contextmanager
def full_disk(size: int = 1000):
    """A place where no file can grow beyond so many bytes, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def written(folder: Path, data: bytes) -> Path:
    """A file with these bytes."""
    path = folder / "ملف.jsonl"
    path.write_bytes(data)
    return path


# --- reading -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"\n\n", []),
        (b"a", [(1, b"a")]),
        (b"a\nb\n", [(1, b"a\n"), (2, b"b\n")]),
        (b"a\r\n\r\nb\r\n", [(1, b"a\r\n"), (3, b"b\r\n")]),
        (BOM + b"a\n \t\nb", [(1, b"a\n"), (3, b"b")]),
        (BOM, []),
        (b"ab", [(1, b"ab")]),
        ("جدة\u2028مكة\n".encode(), [(1, "جدة\u2028مكة\n".encode())]),
    ],
    ids=["empty", "blank", "no line end", "lines", "CRLF", "BOM", "only a BOM", "shorter than a BOM", "U+2028"],
)
def test_lines_keep_their_numbers(tmp_path, data, lines):
    """Blank lines are passed over and counted; a byte order mark is no part of the first line."""
    assert list(numbered_lines(written(tmp_path, data))) == lines


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_is_refused_with_a_remedy(tmp_path, encoding):
    """A file that an old editor saved as UTF-16 is named for what it is, with what to do."""
    path = written(tmp_path, "\ufeff{}".encode(encoding))

    with pytest.raises(DataError, match=r"UTF-16.*Save it as UTF-8") as raised:
        read_json(path)
    assert raised.value.path == str(path)


@pytest.mark.parametrize(("name", "why"), [("absent.jsonl", "no such file"), (".", "is a directory")])
def test_what_cannot_be_opened_is_named(tmp_path, name, why):
    """A missing file and a folder are a user's mistake, said with the path."""
    path = tmp_path / name

    with pytest.raises(DataError, match=why) as raised:
        open_lines(path)
    assert str(raised.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"[1]", "must be a JSON object, not a list"),
        (b"null", "must be a JSON object, not null"),
        (b"{", "cannot be read: it is not JSON: it ends too early"),
        (b'{"a": "\xff"}', "not valid UTF-8"),
        (b'{"a": NaN}', "NaN is not JSON"),
    ],
)
def test_bad_line_says_file_and_line(line, why):
    """What is wrong with a line is said with its place."""
    with pytest.raises(DataError, match=why) as raised:
        read_json_line(line, "a.jsonl", 7)
    assert str(raised.value).startswith("a.jsonl, line 7: ")


def test_good_lines_and_files_are_read(tmp_path):
    """Objects come back as they are, past a byte order mark, and over-deep members are cut, not refused."""
    assert read_json_line('{"مدينة": "جدة"}\r\n'.encode(), "a", 1) == {"مدينة": "جدة"}
    assert read_json(written(tmp_path, BOM + b' [1, "\\ud800"]\n')) == [1, "\ufffd"]
    assert read_json_line(b'{"a": ' + b"[" * 9000 + b"]" * 9000 + b', "b": 1}', "a", 1)["b"] == 1


def test_bad_file_says_which(tmp_path):
    """A whole file that is not JSON is refused by name."""
    path = written(tmp_path, b"{} {}")

    with pytest.raises(DataError, match="trailing") as raised:
        read_json(path)
    assert raised.value.path == str(path)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (None, "null"),
        (True, "a boolean"),
        (1, "a number"),
        (1.5, "a number"),
        ("", "text"),
        ([], "a list"),
        ({}, "an object"),
        ((), "tuple"),
    ],
)
def test_json_types_have_names(value, name):
    """Messages name a value's type as JSON does."""
    assert json_type(value) == name


class Row(msgspec.Struct):
    """Something to decode."""

    id: str
    calls: list[dict[str, int]] = []
    note: str | None = None
    share: float = 0.0
    on: bool = True


@pytest.mark.parametrize(
    ("line", "field", "why"),
    [
        (b"{}", "id", "the field is missing."),
        (b'{"id": true}', "id", "expected text, found true or false."),
        (b'{"id": "a", "calls": 5}', "calls", "expected a list, found a whole number."),
        (b'{"id": "a", "calls": [{"n": "x"}]}', "calls[0][...]", "expected a whole number, found text."),
        (b'{"id": "a", "note": []}', "note", "expected text, found a list."),
        (b'{"id": "a", "share": {}}', "share", "expected a number, found an object."),
        (b'{"id": "a", "on": null}', "on", "expected true or false, found null."),
        (b"[]", None, "expected an object, found a list."),
    ],
)
def test_decoder_errors_become_sentences(line, field, why):
    """What a typed decoder found wrong is said with the JSON names of the types and the field's place."""
    with pytest.raises(msgspec.ValidationError) as raised:
        msgspec.json.decode(line, type=Row)

    error = validation_error(raised.value, "a.jsonl", 2)
    assert (error.path, error.line, error.field, error.what) == ("a.jsonl", 2, field, why)


def test_missing_field_of_a_member_has_its_whole_path():
    """A field that is missing inside another is named from the top."""
    with pytest.raises(msgspec.ValidationError) as raised:
        msgspec.json.decode(b'[{"id": "a"}, {}]', type=list[Row])

    assert validation_error(raised.value).field == "[1].id"


def test_other_decoder_errors_keep_their_words():
    """An error of another form is passed on as it is."""
    error = validation_error(msgspec.ValidationError("Invalid enum value 'x' - at `$.kind`"))

    assert (error.what, error.field) == ("Invalid enum value 'x'.", "kind")


@pytest.mark.parametrize("enabled", [True, False])
def test_collector_is_left_as_it_was(enabled):
    """The cycle collector rests inside and is afterwards as before, also after an error."""
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with pytest.raises(KeyError), collector_paused():
            {True: 1}[gc.isenabled()]
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()


# --- writing -------------------------------------------------------------------------------------------------


def test_new_file_is_written_whole(tmp_path):
    """The file appears under its name with all its bytes, readable by whom the umask lets, and nothing else stays."""
    path = tmp_path / "نتيجة.jsonl"
    mask = os.umask(0o027)
    try:
        write_whole(path, b"1\n2\n")
    finally:
        os.umask(mask)

    assert path.read_bytes() == b"1\n2\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_replaced_file_keeps_its_mode(tmp_path):
    """A file that was private or shared stays so."""
    path = written(tmp_path, b"old")
    path.chmod(0o604)

    write_whole(path, b"new")

    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o604


def test_file_appears_at_the_end_only(tmp_path):
    """Until the block is left the old file stands, however much was written."""
    path = written(tmp_path, b"old")

    with WholeFile(path) as file:
        file.write(b"x" * 3_000_000)
        assert path.read_bytes() == b"old"
        file.write(b"y")

    assert path.stat().st_size == 3_000_001


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit, MemoryError])
@pytest.mark.parametrize("existed", [True, False])
def test_interrupted_file_leaves_the_old_one(tmp_path, kind, existed):
    """Whatever ends the block early, the old file stands, none appears where none was, and no part stays behind."""
    path = written(tmp_path, b"old") if existed else tmp_path / "new.jsonl"

    def write_half():
        with WholeFile(path) as file:
            file.write(b"half")
            raise kind

    with pytest.raises(kind):
        write_half()

    assert list(tmp_path.iterdir()) == ([path] if existed else [])
    assert not existed or path.read_bytes() == b"old"


@pytest.mark.parametrize("size", [3_000, 3_000_000], ids=["seen when the file is closed", "seen while writing"])
def test_full_disk_leaves_the_old_file(tmp_path, size):
    """A disk that is full is said with the path and the reason; the old file stands and no part stays behind."""
    path = written(tmp_path, b"old")

    with full_disk(), pytest.raises(OutputError, match=r"file too large.*is unchanged") as raised:
        write_whole(path, b"x" * size)

    assert str(raised.value).startswith(f"{path}: ")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_folder_that_is_missing_is_named(tmp_path):
    """Where the file cannot be begun, the message names it and claims nothing about an older one."""
    path = tmp_path / "absent" / "out.jsonl"

    with pytest.raises(OutputError, match="no such file") as raised:
        write_whole(path, b"x")
    assert str(path) in str(raised.value)
    assert "unchanged" not in str(raised.value)


def test_folder_is_not_replaced(tmp_path):
    """A folder of the name stays, and no part is left beside it."""
    path = tmp_path / "out"
    path.mkdir()

    with pytest.raises(OutputError, match="folder"):
        write_whole(path, b"x")
    assert path.is_dir()
    assert list(tmp_path.iterdir()) == [path]


def test_long_names_can_be_written(tmp_path):
    """A name as long as the system allows leaves room for the temporary one."""
    path = tmp_path / ("a" * 249 + ".jsonl")

    write_whole(path, b"x")

    assert path.read_bytes() == b"x"


# --- standard input ------------------------------------------------------------------------------------------


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """A folder of its own for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_stream_is_kept_for_a_while(scratch):
    """What came in can be read as a file, and the file goes with the block, also after an error."""

    def read_and_fail():
        with spooled(io.BytesIO(b"x" * 3_000_000)) as path:
            assert path.read_bytes() == b"x" * 3_000_000
            assert path.suffix == ".jsonl"
            raise KeyError

    with pytest.raises(KeyError):
        read_and_fail()
    assert list(scratch.iterdir()) == []


def test_stream_without_room_is_an_output_error(scratch):
    """A full temporary folder is said so, and what was kept is removed."""
    with (
        full_disk(),
        pytest.raises(OutputError, match=r"standard input.*file too large"),
        spooled(io.BytesIO(b"x" * 9000)),
    ):
        pass

    assert list(scratch.iterdir()) == []
