"""The run folder: what is written into it, what is refused, and how it is read again."""

from __future__ import annotations

import json
import os

import msgspec
import pytest

from arabic_agent_eval import runs
from arabic_agent_eval.errors import DataError, OutputError, UsageError
from arabic_agent_eval.models.model import Tokens
from arabic_agent_eval.regrading import grade_run
from arabic_agent_eval.runs import (
    AttemptRecord,
    KeptTurn,
    ReplyRecord,
    Run,
    TurnRecord,
    one_line,
    record_line,
)
from arabic_agent_eval.strictjson import decode_clipped
from tests.chats import asked_of, completion, grades_of, lines_of, rows_of, run_in, set_of

ROWS = rows_of(3)


def answered(item_id: str, epoch: int = 0, text: str = "لا", **more) -> bytes:
    """The line of an item that was answered in words."""
    turn = TurnRecord(msgspec.Raw(b"{}"), msgspec.Raw(completion(text=text)), Tokens(1, 1))
    return record_line(ReplyRecord(item_id, epoch, "answered", [turn], [], **more))


def failed(item_id: str, epoch: int = 0, error: str | None = "خلل.") -> bytes:
    """The line of an item that was not."""
    return record_line(ReplyRecord(item_id, epoch, "failed", [], [AttemptRecord(0, "", 0.1)], error))


# --- making one ----------------------------------------------------------------------------------------------


def test_a_folder_holds_all_that_is_asked(tmp_path):
    """A run can be read and graded wherever it lies: items, tools, and what was asked, in readable Arabic."""
    run = run_in(tmp_path / "a" / "b", ROWS, parameters={"user": "سارة"}, seed=3)
    (tmp_path / "a" / "b").rename(tmp_path / "elsewhere")

    moved = Run.read(tmp_path / "elsewhere")

    assert moved.manifest == run.manifest
    assert list(moved.items) == [row["id"] for row in ROWS]
    assert set(moved.tools) == {"find_road", "book_table"}
    text = (tmp_path / "elsewhere" / "manifest.json").read_text(encoding="utf-8")
    assert "سارة" in text
    assert "\\u06" not in text
    assert sorted(path.name for path in moved.folder.iterdir()) == [
        ".lock",
        "items.jsonl",
        "manifest.json",
        "tools.json",
    ]
    assert list(moved.records()) == []
    assert moved.kept_turns(moved.due()) == {}


def test_a_folder_in_use_is_left_alone(tmp_path):
    """Another run, somebody's files and a folder of items are not written over."""
    folder = tmp_path / "run"
    run_in(folder, ROWS)
    with pytest.raises(UsageError, match="is not empty; name a new folder with --run, or go on"):
        run_in(folder, ROWS)
    (folder / "manifest.json").unlink()
    (folder / "items.jsonl").write_bytes(b"mine\n")
    with pytest.raises(UsageError, match="is not empty"):
        run_in(folder, ROWS)
    assert (folder / "items.jsonl").read_bytes() == b"mine\n"
    (folder / "items.jsonl").unlink()
    (folder / "items.jsonl").mkdir()
    with pytest.raises(UsageError, match="is not empty"):
        run_in(folder, ROWS)


@pytest.mark.parametrize("left", [[], ["items.jsonl"], ["items.jsonl", "tools.json"]])
def test_what_a_killed_process_left_is_no_run(tmp_path, left):
    """A folder that was half made by a process that was killed is made again under the same name."""
    folder = tmp_path / "run"
    run_in(folder, ROWS)
    for name in {"items.jsonl", "tools.json", "manifest.json"} - set(left):
        (folder / name).unlink()
    (folder / ".tools.json.x1_.part").write_bytes(b"[")
    (folder / ".manifest.json.y2.part").write_bytes(b"")
    assert list(run_in(folder, ROWS).items) == [row["id"] for row in ROWS]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OutputError("no room.")])
@pytest.mark.parametrize("name", ["items.jsonl", "tools.json", "manifest.json"])
def test_a_run_that_cannot_be_made_leaves_nothing(tmp_path, monkeypatch, error, name):
    """An interrupt and a full disk leave no half of a folder."""
    usual = runs.write_whole

    def write(path, data):
        if path.name == name:
            raise error
        usual(path, data)

    monkeypatch.setattr(runs, "write_whole", write)
    with pytest.raises((KeyboardInterrupt, OutputError)):
        run_in(tmp_path / "run", ROWS)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["file/run", "file", "x" * 300, "\0"])
def test_places_where_no_run_can_be(tmp_path, place):
    """A place where there can be no folder is a sentence."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises((OutputError, ValueError)):
        run_in(tmp_path / place, ROWS)


def test_names_that_are_no_text(tmp_path):
    """Bytes of a file's name that are no UTF-8 do not keep a run from being kept."""
    run = run_in(tmp_path / os.fsdecode(b"\xff"), ROWS, items="\udcff")
    assert Run.read(run.folder).manifest.asked.items == "\ufffd"
    assert run.manifest.asked.differences(asked_of(ROWS, items="\udcff")) == ['items: "�" in the run, "�" now']


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({}, []),
        ({"seed": 1}, ["seed: null in the run, 1 now"]),
        ({"max_turns": 3, "written": True}, ["written: false in the run, true now", "max turns: 10 in the run, 3 now"]),
    ],
)
def test_differences(more, says):
    """Where two askings differ, field by field."""
    assert asked_of(ROWS).differences(asked_of(ROWS, **more)) == says


def test_long_differences_are_shortened():
    """A long prompt is not shown in full."""
    [line] = asked_of(ROWS).differences(asked_of(ROWS, system="س" * 999))
    assert line.endswith("س… now")
    assert len(line) < 160


# --- reading one ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("manifest.json", None, "this is not a run folder: it has no manifest.json. 'aae run' makes one."),
        ("manifest.json", b"", "manifest.json: the file cannot be read"),
        ("manifest.json", b"{}", "manifest.json, field 'asked': the field is missing."),
        ("manifest.json", b"[]", "manifest.json: expected an object, found a list."),
        ("items.jsonl", None, "items.jsonl: the file cannot be read: no such file"),
        ("items.jsonl", b"", "items.jsonl: the file holds no items."),
        ("items.jsonl", b"other", "items.jsonl, line 1"),
        ("tools.json", None, "tools.json: the file cannot be read: no such file"),
        ("tools.json", b"{", "tools.json: the file cannot be read"),
    ],
)
def test_damaged_folders(tmp_path, name, content, says):
    """What is missing or damaged is named."""
    folder = run_in(tmp_path / "run", ROWS).folder
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    with pytest.raises(DataError) as caught:
        Run.read(folder)
    assert says in str(caught.value)


def test_other_items_are_refused(tmp_path):
    """A run whose items were exchanged is none any more."""
    folder = run_in(tmp_path / "run", ROWS).folder
    (folder / "items.jsonl").write_bytes(b"".join(set_of(rows_of(2)).lines()))
    with pytest.raises(DataError, match="the items are not those that the run asked"):
        Run.read(folder)


def test_which_line_counts(tmp_path):
    """An answer counts before a failure, a later line before an earlier one; lines of nothing asked are no matter."""
    run = run_in(tmp_path / "run", ROWS, epochs=2)
    one, two, three = run.items
    (run.folder / "replies.jsonl").write_bytes(
        b"".join([
            answered(three, 1, "ج"), failed(one), answered(one, 0, "أول"), failed(one), answered(one, 0, "آخر"),
            failed(two), failed(two, 0, "ثان."), answered("gone"), answered(one, 7), answered(two, 1)[:-9],
        ])
    )  # fmt: skip

    found = [(record.id, record.epoch, record.status, run.reply(record)) for record in run.records()]

    assert [entry[:3] for entry in found] == [(one, 0, "answered"), (two, 0, "failed"), (three, 1, "answered")]
    assert [reply[1] for *_, reply in found] == ["آخر", "", "ج"]
    assert found[1][3][0].failure == "ثان."


def test_what_a_failure_says(tmp_path):
    """A failure without words gets some; an answer that says it failed is a failure."""
    run = run_in(tmp_path / "run", ROWS)
    one, two, _ = run.items
    refused = TurnRecord(msgspec.Raw(b"{}"), msgspec.Raw(b'{"error": {"message": "x"}}'))
    (run.folder / "replies.jsonl").write_bytes(
        failed(one, error=None) + record_line(ReplyRecord(two, 0, "answered", [refused], []))
    )
    replies = [run.reply(record)[0] for record in run.records()]
    assert [reply.kind for reply in replies] == ["failure", "failure"]
    assert replies[0].failure == "The request failed."


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"{\n", "the line cannot be read: it is not JSON"),
        (b"\n", "the line cannot be read: it is not JSON"),
        (b"[]\n", "each line must be a JSON object, not a list."),
        (b'{"id": "a"}\n', "field 'epoch': the field is missing."),
        (b'{"id": 1, "epoch": 0}\n', "field 'id': expected text, found a whole number."),
        (b"\xff\n", "the line cannot be read: "),
        (b"[" * 100_000 + b"\n", "the line cannot be read: "),
    ],
)
@pytest.mark.parametrize("name", ["replies.jsonl", "turns.jsonl"])
def test_damaged_lines(tmp_path, name, line, says):
    """A damaged line in the midst is named with its file and number."""
    run = run_in(tmp_path / "run", ROWS)
    (run.folder / name).write_bytes(b'{"id": "a", "epoch": 0, "turn": {"request": 1, "response": 2}}\n' + line)
    with pytest.raises(DataError) as caught:
        _ = run.places() if name == "replies.jsonl" else run.kept_turns(run.due())
    assert f"{name}, line 2" in str(caught.value)
    assert says in str(caught.value)


def test_an_answer_that_was_damaged(tmp_path):
    """Bytes in an answer that are no UTF-8 are named with the file and the item."""
    run = run_in(tmp_path / "run", ROWS)
    one, *_ = run.items
    (run.folder / "replies.jsonl").write_bytes(answered(one, text="HERE").replace(b"HERE", b"\xff"))
    with pytest.raises(DataError) as caught:
        [run.reply(record) for record in run.records()]
    assert "replies.jsonl" in str(caught.value)
    assert "it is not valid UTF-8" in str(caught.value)


def test_grading_a_run_with_gaps(tmp_path):
    """What was not asked yet is unscored in its place, before, between and after what was answered."""
    run = run_in(tmp_path / "run", ROWS, epochs=2)
    _, two, _ = run.items
    (run.folder / "replies.jsonl").write_bytes(answered(two, 1) + failed(two))

    batch, figures = grade_run(run, out=tmp_path / "rows.jsonl")

    rows = lines_of(tmp_path / "rows.jsonl")
    assert [(row["item_id"], row.get("epoch", 0)) for row in rows] == list(run.due())
    assert [total is None for total in grades_of(run)] == [True, True, True, True, False, True]
    assert batch.failures == 1
    assert figures.attempts == 1


HARD = {
    "deep": b'{"a": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    "half a pair": b'{"a": "\\ud83d", "\\udfff": 1}',
    "long number": b'{"a": ' + b"9" * 6_000 + b"}",
    "line breaks": b'\r\n{\n"a":\r1\n}\n',
    "separators": '{"a": "\u2028\u2029\x85"}'.encode(),
}


@pytest.mark.parametrize("name", HARD)
def test_hard_answers_are_read_again(tmp_path, name):
    """An answer is kept as it came, but for line breaks, and whatever it holds, the run can be read."""
    run = run_in(tmp_path / "run", ROWS)
    one, two, _ = run.items
    turn = TurnRecord(msgspec.Raw(b'{"model":"m"}'), one_line(HARD[name]), latency=1.0)
    lines = [record_line(ReplyRecord(one, 0, "answered", [turn], [])), record_line(KeptTurn(two, 0, turn))]
    for file, line in zip(("replies.jsonl", "turns.jsonl"), lines, strict=True):
        assert line.count(b"\n") == 1
        assert HARD[name].translate(bytes.maketrans(b"\r\n", b"  ")) in line
        (run.folder / file).write_bytes(line)

    [record] = run.records()
    [kept] = run.kept_turns(run.due())[two, 0]

    assert bytes(record.turns[0].request) == bytes(kept.request) == b'{"model":"m"}'
    assert record.latency == kept.latency == 1.0
    assert "a" in decode_clipped(bytes(kept.response))


def test_words_that_are_no_text_are_kept(tmp_path):
    """Half a surrogate pair in a message or a result costs that character, not the line."""
    turn = TurnRecord(msgspec.Raw(b'{"a":1}'), msgspec.Raw(b"{}"), results=["\ud800"])
    attempt = AttemptRecord(0, "", 0.0, 500, "server", "\udfff", "x\ud83d")
    line = json.loads(record_line(ReplyRecord("a", 0, "failed", [turn], [attempt], "خلل \ud83d")))
    assert line["error"] == "خلل \ufffd"
    assert line["turns"] == [{"request": {"a": 1}, "response": {}, "results": ["\ufffd"]}]
    assert line["attempts"][0]["message"] == "\ufffd"


def test_sums_of_a_record():
    """Tokens are known where every answer was counted; the time is that of the answers alone."""
    counted = TurnRecord(msgspec.Raw(b"{}"), msgspec.Raw(b"{}"), Tokens(10, 2, 4, 1), 0.5, [], 2.0)
    uncounted = TurnRecord(msgspec.Raw(b"{}"), msgspec.Raw(b"{}"))
    record = ReplyRecord("a", 0, "answered", [counted, counted], [])
    assert record.tokens == Tokens(20, 4, 8, 2)
    assert record.latency == 4.0
    assert ReplyRecord("a", 0, "answered", [counted, uncounted], []).tokens is None


def test_the_order_of_asking(tmp_path):
    """The first epoch of all items goes first, and kept answers are those that are wanted."""
    run = run_in(tmp_path / "run", ROWS, epochs=2)
    assert list(run.due()) == [(row["id"], epoch) for epoch in (0, 1) for row in ROWS]
    turn = TurnRecord(msgspec.Raw(b"{}"), msgspec.Raw(b"{}"))
    (run.folder / "turns.jsonl").write_bytes(
        b"".join(record_line(KeptTurn(item_id, 1, turn)) for item_id in (ROWS[0]["id"], ROWS[0]["id"], "gone"))
    )
    assert {pair: len(turns) for pair, turns in run.kept_turns(run.due()).items()} == {(ROWS[0]["id"], 1): 2}
    assert lines_of(run.folder / "replies.jsonl") == []
