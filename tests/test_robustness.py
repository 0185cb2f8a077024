"""Bad files, odd files, full disks, interrupts and killed processes: a sentence and an exit code, never a traceback."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import time
from pathlib import Path

import pytest

from arabic_agent_eval import batch
from arabic_agent_eval import files as files_module
from tests.conftest import read_cases
from tests.test_cli import ITEMS, aae, files, item, many_items, read, replies_to, start

TWO = [item(name, "multi_step", "msa", [("f", {"city": "جدة"})]) for name in "ab"]
RIGHT = [{"function": "f", "arguments": {"city": "جدة"}}]


def content(case, name, default):
    """The bytes of a case's file."""
    if f"{name}_hex" in case:
        return bytes.fromhex(case[f"{name}_hex"])
    return case.get(name, default).encode()


def lines(rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


@pytest.mark.parametrize("case", read_cases("bad_files"))
@pytest.mark.parametrize("way", ["", "rows", "jobs", "no causes"])
def test_bad_files(tmp_path, monkeypatch, case, way):
    """A file that is not what it should be ends in one sentence with its place, by every way of grading."""
    monkeypatch.setattr(batch, "_SMALLEST_RANGE", 1)
    paths = {}
    for name, default in (("items", lines(TWO)), ("replies", lines({"id": one, "calls": RIGHT} for one in "ab"))):
        paths[name] = tmp_path / f"{name}.jsonl"
        paths[name].write_bytes(content(case, name, default))
    options = ["--items", paths["items"], "--replies", paths["replies"], *case.get("args", [])]
    if "categories" in case:
        (tmp_path / "categories.json").write_text(case["categories"], encoding="utf-8")
        options += ["--categories", tmp_path / "categories.json"]
    options += {"rows": ["--out", tmp_path / "rows"], "jobs": ["-j", 2], "no causes": ["--no-causes"]}.get(way, [])

    found = aae("grade", *options)

    assert (found.code, found.out) == (2, "")
    assert found.err.startswith("aae: ")
    assert found.err.count("\n") == 1
    assert "Traceback" not in found.err
    for words in case["says"]:
        assert words in found.err
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["items.jsonl", "replies.jsonl", *(["categories.json"] if "categories" in case else [])]
    )


@pytest.mark.parametrize(
    ("items", "replies", "says"),
    [
        ("gone", None, "gone: there is no such file, and no bundled set of that name"),
        (None, "gone", "gone: there is no such file, and no bundled set of that name"),
        (".", None, "a file of items is needed, not a folder."),
        (None, ".", "a file of replies is needed, not a folder."),
        ("x\0y", None, ""),
        ("x" * 5000, None, ""),
    ],
)
def test_missing_files(tmp_path, monkeypatch, items, replies, says):
    """A file that is not there, and a folder in its place, are named."""
    usual = files(tmp_path)
    monkeypatch.chdir(tmp_path)

    found = aae("grade", "--items", items or usual[1], "--replies", replies or usual[3])

    assert (found.code, found.out) == (2, "")
    assert says in found.err
    assert found.err.count("\n") == 1


def test_a_file_without_permission(tmp_path, monkeypatch):
    """A file that is there and cannot be opened is a sentence."""
    usual = files(tmp_path)

    def fail(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(files_module.Path, "open", fail)
    found = aae("grade", *usual)

    assert (found.code, found.out) == (2, "")
    assert "items.jsonl: the file cannot be read: permission denied." in found.err


# --- odd but good files --------------------------------------------------------------------------------------


def unsigned(found):
    """A printed summary without its signature, which names the bytes of the items."""
    return {key: value for key, value in found.json.items() if key != "signature"}


SHAPES = {
    "byte order mark": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "CRLF": lambda text: text.replace("\n", "\r\n").encode(),
    "no line end": lambda text: text[:-1].encode(),
    "blank lines": lambda text: ("\n \n" + text.replace("\n", "\n\t\n\r\n") + "\n  ").encode(),
    "spaces around": lambda text: text.replace("{\"id\"", "   {\"id\"").replace("\n", "  \n").encode(),
    "a list": lambda text: json.dumps([json.loads(line) for line in text.splitlines()]).encode(),
    "a list with a mark": lambda text: b"\xef\xbb\xbf\n " + SHAPES["a list"](text),
    "escaped": lambda text: "".join(json.dumps(json.loads(line)) + "\n" for line in text.splitlines()).encode(),
    "a pretty list": lambda text: json.dumps([json.loads(line) for line in text.splitlines()], indent=4).encode(),
    "other line separators": lambda text: text.replace('"calls"', '"\u2028note\u0085": "\u2029", "calls"').encode(),
}  # fmt: skip


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_odd_files_are_read(tmp_path, monkeypatch, shape, jobs):
    """Marks, line ends, blanks and JSON in place of lines change no number and no row, in items and in replies."""
    monkeypatch.setattr(batch, "_SMALLEST_RANGE", 1 << 7)
    options = files(tmp_path)
    rows = tmp_path / "rows.jsonl"
    expected = unsigned(aae("grade", *options, "--json", "--out", rows))
    for path in (options[3], options[1]):
        path.write_bytes(SHAPES[shape](path.read_text(encoding="utf-8")))
        found = aae("grade", *options, "--json", "-j", jobs)
        with_rows = aae("grade", *options, "--json", "-j", jobs, "--out", rows)
        assert found.code == with_rows.code == 0, found.err + with_rows.err
        assert found.out == with_rows.out
        assert unsigned(found) == expected
        assert aae("report", rows, "--json").graded == found.json


def test_ids_may_be_numbers(tmp_path):
    """Ids are compared as text, so 7 and "7" are one item, whichever file has which."""
    items = [TWO[0] | {"id": 7}, TWO[1] | {"id": "8"}]
    replies = [{"id": "7", "calls": RIGHT}, {"item_id": 8, "actual_calls": RIGHT}]

    found = aae("grade", *files(tmp_path, items, replies), "--json")

    assert found.json["overall"] == 1.0
    assert found.json["coverage"]["scored"] == 2


def test_items_without_replies_and_failures(tmp_path):
    """Both are unscored and said; only failures change the exit code."""
    replies = [{"id": "بسيط", "calls": []}, {"id": "قيم", "error": {"message": "rate limit"}}]

    found = aae("grade", *files(tmp_path, ITEMS, replies))

    assert found.code == 3
    assert "6 of 8 items have no reply (" in found.err
    assert "1 of 8 answers judged; unscored: 6 × no reply in the file, 1 × The request failed: rate limit" in found.out


# --- hostile replies -----------------------------------------------------------------------------------------


def graded_both_ways(tmp_path, replies):
    """The summary of replies to two items, which must be the same with and without rows; and the rows."""
    options = files(tmp_path, TWO, [])
    options[3].write_bytes(replies)
    found = aae("grade", *options, "--json")
    with_rows = aae("grade", *options, "--json", "--out", tmp_path / "rows.jsonl")
    assert found.code == with_rows.code == 0, found.err + with_rows.err
    assert found.out == with_rows.out
    assert aae("report", tmp_path / "rows.jsonl", "--json").graded == found.json
    return found.json, read(tmp_path / "rows.jsonl")


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ('{"function": "f", "arguments": {"city": DEEP}}', "malformed_arguments"),
        ('{"function": "f", "arguments": DEEP}', "malformed_arguments"),
        ('{"function": "f", "arguments": "DEEP"}', "malformed_arguments"),
        ('{"function": DEEP, "arguments": {}}', "malformed_call"),
        ("DEEP", "malformed_call"),
        ('{"function": "f", "arguments": "{\\"city\\": \\"\\\\ud83d\\"}"}', None),
        ('{"function": "f", "arguments": "{} {}"}', "malformed_arguments"),
        ('{"function": "f", "arguments": "\\"{}\\""}', "double_encoded_arguments"),
        ('{"function": "f", "arguments": {"city": "x", "city": "جدة"}}', None),
        ('{"function": "f\\u0000\\ud800", "arguments": {"\\ud800": "\\udfff"}}', None),
        ('{"function": "f", "arguments": {"city": %s}}' % ("9" * 5000), None),
        ('{"function": "f", "arguments": {"city": 1e308}}', None),
        ('{"function": "f", "arguments": {"city": "%s"}}' % ("\\u0000\\u202e" * 9999), None),
    ],
)
def test_one_hostile_call_costs_itself(tmp_path, call, error):
    """Whatever a model wrote as a call is graded; the rest of the file is not touched."""
    call = call.replace("DEEP", "[" * 10_000 + "]" * 10_000)
    replies = f'{{"id": "a", "calls": [{call}]}}\n' + json.dumps({"id": "b", "calls": RIGHT})

    found, rows = graded_both_ways(tmp_path, replies.encode())

    assert aae("show", tmp_path / "rows.jsonl", "a").code == 0
    [made] = rows[0]["actual_calls"]
    assert made["error"] == error
    assert rows[1]["total"] == 1.0
    assert 0 <= rows[0]["total"] <= 1
    assert sum(found["lost"].values()) == pytest.approx(1 - found["overall"], abs=1e-12)


def test_the_last_of_a_repeated_key_counts(tmp_path):
    """Of a repeated key the last value counts, in a row as in arguments."""
    replies = (
        '{"id": "b", "id": "a", "calls": [], "calls": [{"function": "f", "arguments": {"city": 1, "city": "جدة"}}]}'
    )

    found, _ = graded_both_ways(tmp_path, replies.encode())

    assert found["overall"] == 1.0


def test_a_hundred_thousand_calls(tmp_path):
    """Surplus calls cost the item its points and no more than time in proportion."""
    calls = RIGHT + [{"function": "f", "arguments": {"city": "جده"}}] * 99_999
    replies = lines([{"id": "a", "calls": calls}, {"id": "b", "calls": RIGHT}])

    found, rows = graded_both_ways(tmp_path, replies.encode())

    assert rows[0]["total"] == pytest.approx(1e-5)
    assert len(rows[0]["losses"]) == 3
    assert found["lost"] == {"extra_call": pytest.approx(0.5, abs=1e-4)}


@pytest.mark.parametrize("field", ["text", "note", "arguments"])
def test_a_line_of_twenty_megabytes(tmp_path, field):
    """A very long line is read and graded, whichever field is long."""
    long = "س" * 10_000_000
    row = {
        "text": {"id": "a", "text": long},
        "note": {"id": "a", "note": long, "calls": RIGHT},
        "arguments": {"id": "a", "calls": [{"function": "f", "arguments": {"city": long}}]},
    }[field]

    _, rows = graded_both_ways(tmp_path, lines([row, {"id": "b", "calls": RIGHT}]).encode())

    assert (tmp_path / "replies.jsonl").stat().st_size > 20_000_000
    assert rows[0]["total"] == {"text": 0.0, "note": 1.0, "arguments": 0.65}[field]
    assert rows[1]["total"] == 1.0


@pytest.mark.parametrize("jobs", [1, 2])
def test_lines_longer_than_a_range(tmp_path, monkeypatch, jobs):
    """Lines that cover whole ranges are graded once."""
    monkeypatch.setattr(batch, "_SMALLEST_RANGE", 1 << 6)
    monkeypatch.setattr(batch, "_LARGEST_RANGE", 1 << 6)
    items = many_items(8)
    replies = [reply | {"note": "س" * (place % 5) * 300} for place, reply in enumerate(replies_to(items))]
    expected = aae("grade", *files(tmp_path, items, replies_to(items)), "--json").out

    assert aae("grade", *files(tmp_path, items, replies), "--json", "-j", jobs).out == expected


# --- full disks ----------------------------------------------------------------------------------------------


def long_grading(tmp_path):
    """Options for grading into a file of rows that was there before."""
    rows = tmp_path / "rows.jsonl"
    rows.write_text("old", encoding="utf-8")
    items = many_items(60)
    return ["grade", *files(tmp_path, items, replies_to(items)), "--json", "--out", rows], rows


def is_untouched(rows):
    """Whether the old rows are whole and nothing half-written stands beside them."""
    names = sorted(path.name for path in rows.parent.iterdir())
    return rows.read_text(encoding="utf-8") == "old" and names == ["items.jsonl", "replies.jsonl", "rows.jsonl"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_full_disk_keeps_the_old_rows(tmp_path, jobs):
    """When the rows cannot be written the old file stays, and a sentence says so."""
    options, rows = long_grading(tmp_path)
    limit = 1 << 16

    process = start(
        *options, "-j", jobs, stdout=subprocess.PIPE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )  # fmt: skip
    out, err = process.communicate(timeout=60)

    assert (process.returncode, out) == (2, b"")
    assert err.decode() == (
        f"aae: {rows}: the result could not be written: file too large. The file that was there is unchanged.\n"
    )
    assert is_untouched(rows)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("extra", [("--json",), ()])
def test_a_full_standard_output(tmp_path, extra):
    """A result that does not fit on stdout is an error, not a silent loss."""
    with Path("/dev/full").open("wb") as full:
        process = start("grade", *files(tmp_path), *extra, stdout=full)
        _, err = process.communicate(timeout=60)

    assert process.returncode == 2
    assert err.decode() == "aae: the result could not be written: no space left on device.\n"


def test_no_room_for_standard_input(tmp_path, monkeypatch):
    """Standard input that cannot be kept is an error, and its beginning is removed."""
    (tmp_path / "kept").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "kept"))

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files_module.shutil, "copyfileobj", fail)
    found = aae("grade", *files(tmp_path)[:2], "--replies", "-", stdin=b"{}")

    assert found.code == 2
    assert "standard input could not be kept in" in found.err
    assert list((tmp_path / "kept").iterdir()) == []


@pytest.mark.parametrize("command", [("grade", "--json"), ("grade",), ("list",), ("list", "--json")])
def test_a_closed_standard_output_is_quiet(tmp_path, command):
    """``aae … | head -1`` says nothing on stderr, however early the reader leaves."""
    items = many_items(600)
    options = files(tmp_path, items, replies_to(items))
    arguments = (
        ("grade", *options, *command[1:]) if command[0] == "grade" else ("data", "list", options[1], *command[1:])
    )
    for wait in (True, False):
        reader, writer = os.pipe()
        process = start(*arguments, stdout=writer)
        os.close(writer)
        if wait:
            assert os.read(reader, 10)
        os.close(reader)
        _, err = process.communicate(timeout=60)
        assert err == b""
        assert process.returncode in {0, 1, 141}


# --- interrupts and killed processes -------------------------------------------------------------------------

SLOW = """
import pathlib, time, os
from arabic_agent_eval import batch, ranges
batch._SMALLEST_RANGE = 1 << 14
graded = ranges.RangeGrader.grade_range
def slowly(self, start, end):
    open(os.environ["MARK"] + "." + str(os.getpid()), "w").close()
    time.sleep(0.7)
    return graded(self, start, end)
ranges.RangeGrader.grade_range = slowly
"""
"""Makes every range take a while and leave a mark, so that a signal arrives in the middle."""


@contextlib.contextmanager
def slow_grading(tmp_path, *extra):
    """A grading in a session of its own that is under way; nothing of it is left running."""
    options, rows = long_grading(tmp_path)
    marks = tmp_path.parent / f"{tmp_path.name} marks"
    marks.mkdir()
    process = start(
        *options, *extra, before=SLOW, env={"MARK": str(marks / "mark")}, stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        wait_until(lambda: any(marks.iterdir()))
        yield process, rows, marks
    finally:
        if process.poll() is None:  # pragma: no cover - a test failed
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def wait_until(true, seconds=30):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def members(session):
    """The processes of a session that still run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, owner = path.read_text().rpartition(")")[2].split()[:4]
            if int(owner) == session and state != "Z":
                found.append(int(path.parent.name))
    return found


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are counted in /proc")


@needs_proc
@pytest.mark.parametrize("jobs", [1, 2, 6])
@pytest.mark.parametrize("everyone", [True, False])
def test_an_interrupt_leaves_nothing_behind(tmp_path, jobs, everyone):
    """Ctrl-C ends with 130; the old rows are whole, no part of new ones is left, and no process."""
    with slow_grading(tmp_path, "-j", jobs) as (process, rows, _):
        assert process.pid in members(process.pid)
        (os.killpg if everyone else os.kill)(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=30)

        assert (process.returncode, out) == (130, b"")
        assert b"Traceback" not in err
        assert is_untouched(rows)
        wait_until(lambda: not members(process.pid), 5)


@needs_proc
def test_a_killed_worker_is_a_sentence(tmp_path):
    """When the system kills a grading process the command ends with a sentence, and does not wait for ever."""
    with slow_grading(tmp_path, "-j", 2) as (process, rows, marks):
        worker = int(next(marks.iterdir()).suffix[1:])
        assert worker != process.pid
        os.kill(worker, signal.SIGKILL)
        out, err = process.communicate(timeout=30)

        assert (process.returncode, out) == (2, b"")
        assert err.decode() == (
            f"aae: {tmp_path / 'replies.jsonl'}: a grading process was killed, perhaps because memory ran out. "
            "Use fewer --jobs.\n"
        )
        assert is_untouched(rows)
        wait_until(lambda: not members(process.pid), 5)


def test_an_error_in_a_late_range_keeps_the_old_rows(tmp_path, monkeypatch):
    """Nothing half-graded is left when the last line of a file cannot be read."""
    monkeypatch.setattr(batch, "_SMALLEST_RANGE", 1 << 10)
    options, rows = long_grading(tmp_path)
    with (tmp_path / "replies.jsonl").open("ab") as file:
        file.write(b"{")

    for jobs in (1, 2):
        assert aae(*options, "-j", jobs).code == 2
        assert is_untouched(rows)


@pytest.mark.parametrize("place", [1, 3])
def test_rows_never_replace_what_they_are_made_from(tmp_path, place):
    """An output that names an input is refused, and the input stays."""
    options = files(tmp_path)
    before = options[place].read_bytes()

    found = aae("grade", *options, "--out", options[place])

    assert found.code == 2
    assert "is one of the inputs" in found.err
    assert options[place].read_bytes() == before


def test_rows_that_never_were(tmp_path):
    """A failure to write where nothing stood before leaves nothing, and claims nothing of an old file."""
    found = aae("grade", *files(tmp_path), "--out", tmp_path / "gone" / "rows.jsonl")

    assert found.code == 2
    assert "rows.jsonl: the result could not be written: no such file or directory.\n" in found.err


# --- known faults --------------------------------------------------------------------------------------------


def test_an_interrupt_is_said(tmp_path):
    """Who interrupts is told that nothing was written."""
    with slow_grading(tmp_path) as (process, _, _):
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)

        assert err == b"aae: interrupted; nothing was written.\n"


def test_a_closed_standard_output_is_no_failed_gate(tmp_path):
    """A reader that has seen enough is no failure, and above all not the failure of a gate."""
    reader, writer = os.pipe()
    os.close(reader)
    process = start("grade", *files(tmp_path), "--json", stdout=writer)
    os.close(writer)
    process.communicate(timeout=60)

    assert process.returncode != 1


def test_a_pipe_is_no_file_of_items(tmp_path):
    """What can be read only once is refused with the way out, and nothing waits for it."""
    pipe = tmp_path / "items.jsonl"
    os.mkfifo(pipe)
    (tmp_path / "others").mkdir()
    options = files(tmp_path / "others")
    holder = os.open(pipe, os.O_RDWR)
    try:
        found = aae("grade", "--items", pipe, *options[2:])
    finally:
        os.close(holder)

    assert found.code == 2
    assert "this is a pipe" in found.err
    assert "--replies -" in found.err


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_workers_leave_with_their_parent(tmp_path, how):
    """A parent that is ended leaves no process behind that would hold its files and pipes."""
    with slow_grading(tmp_path, "--jobs", "2") as (process, rows, _):
        before = rows.read_bytes() if rows.exists() else None
        os.kill(process.pid, how)
        process.communicate(timeout=30)
        wait_until(lambda: not members(process.pid))

    assert (rows.read_bytes() if rows.exists() else None) == before
    if how == signal.SIGTERM:
        assert process.returncode == 130
        assert not list(tmp_path.glob("**/*.part"))
