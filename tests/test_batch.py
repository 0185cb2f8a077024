"""Grading files: the numbers do not depend on processes, order or shape, and an answer counts once."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from types import SimpleNamespace

import pytest

from arabic_agent_eval import batch, processes
from arabic_agent_eval.batch import grade_file, is_document
from arabic_agent_eval.errors import DataError, UnknownCategory, UsageError
from arabic_agent_eval.items import Category, ItemSet
from arabic_agent_eval.ranges import RangeGrader
from arabic_agent_eval.scoring import RULES
from tests.test_cli import ITEMS, aae, answer, files, item, many_items, read, replies_to


def written(calls):
    return [{"type": "function", "function": {"name": call["function"], "arguments": dumped(call["arguments"])}}
            for call in calls]  # fmt: skip


def dumped(value):
    return json.dumps(value, ensure_ascii=False)


def chat(calls):
    return {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": written(calls)}}]}


def shape_text(calls):
    marked = [{"name": call["function"], "arguments": call["arguments"]} for call in calls]
    return {"text": "\n".join(f"<tool_call>\n{dumped(call)}\n</tool_call>" for call in marked)}


def shape_responses(calls):
    output = [
        {"type": "function_call", "name": call["function"], "arguments": dumped(call["arguments"])} for call in calls
    ]
    return {"response": {"object": "response", "status": "completed", "output": output}}


def shape_anthropic(calls):
    blocks = [{"type": "tool_use", "name": call["function"], "input": call["arguments"]} for call in calls]
    return {"response": {"type": "message", "role": "assistant", "content": blocks}}


def shape_gemini(calls):
    parts = [{"functionCall": {"name": call["function"], "args": call["arguments"]}} for call in calls]
    return {"response": {"candidates": [{"content": {"parts": parts}}]}}


SHAPES = {
    "calls": ("calls", lambda calls: {"calls": calls}),
    "actual_calls": ("calls", lambda calls: {"actual_calls": calls}),
    "openai inside calls": ("calls", lambda calls: {"calls": written(calls)}),
    "tool_calls": ("tool_calls", lambda calls: {"tool_calls": written(calls)}),
    "message": ("tool_calls", lambda calls: {"role": "assistant", "content": "", "tool_calls": written(calls)}),
    "chat": ("response", lambda calls: {"response": chat(calls)}),
    "chat as text": ("response", lambda calls: {"response": dumped(chat(calls))}),
    "responses": ("response", shape_responses),
    "anthropic": ("response", shape_anthropic),
    "gemini": ("response", shape_gemini),
    "text": ("text", shape_text),
    "custom_id": ("response", lambda calls: {"response": {"status_code": 200, "body": chat(calls)}}),
    "submission": ("submission", lambda calls: {"tool_called": calls[0]["function"] if calls else "none",
                                                "arguments": calls[0]["arguments"] if calls else {}}),
}  # fmt: skip


def shaped(replies, shape):
    """Replies in another shape; only a batch of OpenAI's names its items by ``custom_id``."""
    name = "custom_id" if shape == "custom_id" else "id"
    request = {"id": "request-1"} if shape == "custom_id" else {}
    return [request | {name: reply["id"]} | SHAPES[shape][1](reply["calls"]) for reply in replies]


def unsigned(summary):
    """A summary without its signature, which names the format, and without the figures that only submissions have."""
    return {key: value for key, value in summary.items() if key not in {"signature", "aisa"}}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_gives_the_same_numbers(tmp_path, shape):
    """The same calls have the same numbers in every shape, recognised or named, by the short way and the long way."""
    items = [row for row in many_items(4) if len(row["expected_calls"]) < 2]
    replies = [reply | {"calls": reply["calls"][:1]} for reply in replies_to(items)]
    expected = unsigned(aae("grade", *files(tmp_path, items, replies), "--json").json)
    options = files(tmp_path, items, shaped(replies, shape))

    for extra in ((), ("--format", SHAPES[shape][0]), ("--out", tmp_path / "rows.jsonl")):
        found = aae("grade", *options, "--json", *extra)
        assert found.code == 0, found.err
        assert unsigned(found.json) == expected


@pytest.mark.parametrize("shape", [name for name in SHAPES if name != "submission"])
def test_every_shape_keeps_the_order_of_calls(tmp_path, shape):
    """Replies with several calls have the same numbers in every shape that can hold them."""
    replies = replies_to(ITEMS, seed=3)
    expected = unsigned(aae("grade", *files(tmp_path, ITEMS, replies), "--json").json)

    found = aae("grade", *files(tmp_path, ITEMS, shaped(replies, shape)), "--json")

    assert unsigned(found.json) == expected


@pytest.mark.parametrize("rules", ["canonical", "v0.1"])
def test_jobs_change_nothing(tmp_path, monkeypatch, rules):
    """One, two and three processes, over other ranges each, print the same bytes and write the same rows."""
    items = many_items(700)
    chance = random.Random(7)
    replies = [*replies_to(items), *({"id": row["id"], "epoch": 1, "error": "timeout"} for row in items[:40])]
    chance.shuffle(replies)
    options = ("grade", *files(tmp_path, items, replies), "--json", "--rules", rules)
    assert (tmp_path / "replies.jsonl").stat().st_size > 2 * batch._SMALLEST_RANGE

    seen, rows = set(), set()
    for jobs, smallest in ((1, 1 << 18), (2, 1 << 18), (3, 1 << 12), (1, 1 << 30)):
        monkeypatch.setattr(batch, "_SMALLEST_RANGE", smallest)
        found = aae(*options, "--jobs", jobs)
        kept = aae(*options, "--jobs", jobs, "--out", tmp_path / "rows.jsonl")
        assert found.code == kept.code == (3 if rules == "canonical" else 0), found.err + kept.err
        seen |= {found.out, kept.out}
        rows.add((tmp_path / "rows.jsonl").read_bytes())

    assert len(seen) == len(rows) == 1
    assert len(rows.pop().splitlines()) == len(replies)


def test_order_changes_nothing(tmp_path):
    """Replies in any order have the same numbers; only the examples and the order of the rows follow the file."""
    items = many_items(30)
    replies = [
        {"id": row["id"], "epoch": epoch, "calls": answer(row, random.Random(f"{row['id']} {epoch}"))}
        for row in items
        for epoch in range(4)
    ]
    found = []
    for seed in range(3):
        random.Random(seed).shuffle(replies)
        summary = aae("grade", *files(tmp_path, items, replies), "--json", "--out", tmp_path / "rows.jsonl").json
        assert summary.pop("examples")
        found.append((summary, sorted((tmp_path / "rows.jsonl").read_bytes().splitlines())))

    assert found[0] == found[1] == found[2]


def test_an_item_counts_once_whatever_its_epochs(tmp_path):
    """An item asked often counts as much as one asked once, with the mean of its epochs."""
    items = [item(name, "multi_step", "msa", [("f", {})]) for name in "ab"]
    right, wrong = [{"function": "f"}], [{"function": "g"}]
    replies = [{"id": "a", "epoch": epoch, "calls": right if epoch == 2 else wrong} for epoch in (5, 2, 0, 9)]

    found = aae("grade", *files(tmp_path, items, [*replies, {"id": "b", "calls": right}]), "--json").json

    # a: right once in four, else 0.6 for arguments and preservation: 0.7. b: 1.
    assert found["overall"] == pytest.approx((0.7 + 1.0) / 2)
    assert found["categories"]["multi_step"]["n"] == 2
    assert found["exact_match"] == pytest.approx((0.25 + 1) / 2)
    assert found["right_function"] == {"right": 2, "of": 5}
    assert found["coverage"] == {"scored": 5, "unscored": 3, "total": 8}
    assert found["unscored_reasons"] == {"no reply in the file": 3}
    assert found["lost"] == {"wrong_function": pytest.approx(0.15)}
    assert "epochs:4" in found["signature"]


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("out", [False, True])
@pytest.mark.parametrize("distance", [2, 900])
def test_an_answer_that_stands_twice_is_refused(tmp_path, monkeypatch, jobs, out, distance):
    """The same item in the same epoch twice is an error that names both lines, however far apart they stand."""
    monkeypatch.setattr(batch, "_SMALLEST_RANGE", 1 << 12)
    items = many_items(120)
    replies = replies_to(items)
    replies[distance] = replies[distance] | {"id": replies[0]["id"]}
    options = files(tmp_path, items, replies)
    rows = ["--out", tmp_path / "rows.jsonl"] if out else []

    found = aae("grade", *options, "--jobs", jobs, *rows)

    assert (found.code, found.out) == (2, "")
    assert f"line {distance + 1}, field 'id'" in found.err
    assert f"'بسيط 0' is answered twice in epoch 0 (lines 1 and {distance + 1})" in found.err
    assert not (tmp_path / "rows.jsonl").exists()


def test_a_pair_that_stands_twice_among_epochs_is_refused(tmp_path, monkeypatch):
    """Blank lines and unreadable ones of a later range do not confuse the search for the two lines."""
    monkeypatch.setattr(batch, "_SMALLEST_RANGE", 1 << 6)
    replies = [{"id": "لهجة", "epoch": epoch, "calls": []} for epoch in (3, 1, 2, 1)]
    options = files(tmp_path, ITEMS, replies)
    path = tmp_path / "replies.jsonl"
    path.write_bytes(b"\n \n" + path.read_bytes() + b"\n" * 64 + b"later, and not read before\n")

    found = aae("grade", *options)

    assert "line 6, field 'id'" in found.err
    assert "in epoch 1 (lines 4 and 6)" in found.err


def test_a_pair_that_stands_twice_in_a_document_is_refused(tmp_path):
    """In one JSON document there are no lines to name."""
    options = files(tmp_path)
    rows = [{"id": "لهجة", "calls": []}] * 2
    (tmp_path / "replies.jsonl").write_text(json.dumps(rows, indent=1), encoding="utf-8")

    found = aae("grade", *options)

    assert found.code == 2
    assert "'لهجة' is answered twice in epoch 0. Give" in found.err


@pytest.mark.parametrize(
    ("text", "document"),
    [
        ("[]", True),
        (' \n\n [{"id": "a"}]', True),
        ('{"results": []}', True),
        ('{"results": 5}', False),
        ('{\n"id": "a"}', True),
        ('{"id": "a"}\n{"id": "b"}', False),
        ('{"id": \n{"id": "b"}', False),
        ("", False),
        ("\n\n", False),
        ("5", False),
        ("[" * 5000, True),
        ('{"a":' * 5000 + "1" + "}" * 5000, True),
    ],
)
def test_documents_are_told_from_lines(tmp_path, text, document):
    """A list, a run file or an object over several lines is one document; anything else is read line by line."""
    path = tmp_path / "replies"
    path.write_text(text, encoding="utf-8")

    assert is_document(path) is document


def test_a_huge_file_is_not_tried_as_a_document(tmp_path, monkeypatch):
    """A file that starts badly is not loaded whole when it is too large for memory."""
    path = tmp_path / "replies"
    path.write_text('{\n"id": "a"}', encoding="utf-8")
    monkeypatch.setattr(batch, "_LARGEST_DOCUMENT", 5)

    assert not is_document(path)


@pytest.mark.parametrize("wrap", [lambda rows: rows, lambda rows: {"model": "m", "results": rows}])
@pytest.mark.parametrize("indent", [None, 1])
def test_documents_are_graded_like_lines(tmp_path, wrap, indent):
    """A JSON list and a run file, in one line or pretty-printed, have the numbers and rows of the same JSONL."""
    replies = replies_to(ITEMS, seed=1)
    options = ("grade", *files(tmp_path, ITEMS, replies), "--json", "--out", tmp_path / "rows.jsonl")
    expected, rows = aae(*options).out, (tmp_path / "rows.jsonl").read_bytes()
    text = json.dumps(wrap(replies), ensure_ascii=False, indent=indent)
    (tmp_path / "replies.jsonl").write_text(text, encoding="utf-8")

    found = aae(*options, "--jobs", 2)

    assert (found.code, found.out) == (0, expected)
    assert (tmp_path / "rows.jsonl").read_bytes() == rows


def test_one_object_over_several_lines_is_one_reply(tmp_path):
    """A single pretty-printed reply is graded."""
    options = files(tmp_path)
    (tmp_path / "replies.jsonl").write_text(json.dumps({"id": "سكوت", "calls": []}, indent=2), encoding="utf-8")

    found = aae("grade", *options, "--json")

    assert found.json["coverage"] == {"scored": 1, "unscored": len(ITEMS) - 1, "total": len(ITEMS)}


def test_rows_say_which_items_have_no_reply(tmp_path):
    """Every item without a reply gets a row, so that a report has the coverage of the grading."""
    options = files(tmp_path, ITEMS, replies_to(ITEMS)[:3])

    found = aae("grade", *options, "--json", "--out", tmp_path / "rows.jsonl")

    silent = [row for row in read(tmp_path / "rows.jsonl") if row["status"] == "unscored"]
    assert found.code == 0
    assert "5 of 8 items have no reply (" in found.err
    assert [row["item_id"] for row in silent] == [row["id"] for row in ITEMS[3:]]
    assert {row["reason"] for row in silent} == {"no reply in the file"}
    assert [row["arabic_applicable"] for row in silent] == [True, True, False, True, False]


def test_unknown_items_are_refused_or_left_out(tmp_path):
    """A reply to an unknown item stops the grading, or with --allow-unknown is counted and left out."""
    replies = [*replies_to(ITEMS), {"id": "غريب " * 40, "calls": []}]
    options = ("grade", *files(tmp_path, ITEMS, replies), "--json")
    without = aae("grade", *files(tmp_path), "--json").json
    options = ("grade", *files(tmp_path, ITEMS, replies), "--json")

    refused, left_out = aae(*options), aae(*options, "--allow-unknown")

    assert refused.code == 2
    assert "line 9, field 'id': there is no item 'غريب" in refused.err
    assert "… in items" not in refused.err
    assert "…' in items. Check that" in refused.err
    assert left_out.code == 0
    assert "1 replies to unknown items were left out." in left_out.err
    assert left_out.json == without


def test_only_unknown_items_is_nothing_scored(tmp_path):
    """A file of replies to other items is no empty file."""
    found = aae("grade", *files(tmp_path, ITEMS, [{"id": "x", "calls": []}]), "--json", "--allow-unknown")

    assert found.code == 0
    assert found.json["overall"] is None
    assert found.json["grade"] is None


def test_bad_options_are_refused(tmp_path):
    """A library caller is told what is wrong with a format or a number of jobs."""
    _, items, _, replies = files(tmp_path)

    with pytest.raises(UsageError, match="there is no reply format 'xml'; choose one of auto, calls"):
        grade_file(ItemSet.index(items), replies, format="xml")
    with pytest.raises(UsageError, match="at least 1"):
        grade_file(ItemSet.index(items), replies, jobs=0)


def test_several_jobs_without_fork(tmp_path, monkeypatch):
    """Where processes start afresh they read the items themselves; items that are in no file are refused there."""
    monkeypatch.setattr(batch, "_SMALLEST_RANGE", 1 << 9)
    monkeypatch.setattr(processes.multiprocessing, "get_all_start_methods", lambda: ["spawn"])
    _, items, _, replies = files(tmp_path)

    found = grade_file(ItemSet.index(items), replies, jobs=2)

    assert found.tally.outcomes == grade_file(ItemSet.index(items), replies).tally.outcomes
    with pytest.raises(UsageError, match="items that were read from a file"):
        grade_file(ItemSet(ItemSet.read(items).values()), replies, jobs=2)


def test_a_killed_process_is_said(tmp_path, monkeypatch):
    """When a grading process dies the error says so, and the caller goes on."""
    monkeypatch.setattr(batch, "_SMALLEST_RANGE", 1 << 9)
    options = files(tmp_path)

    monkeypatch.setattr(RangeGrader, "try_range", lambda *_: os._exit(9))
    found = aae("grade", *options, "--jobs", 2)

    assert (found.code, found.out) == (2, "")
    assert "a grading process was killed, perhaps because memory ran out. Use fewer --jobs." in found.err


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="processes cannot be forked here")
def test_one_file_after_another_is_forked(tmp_path, monkeypatch):
    """The processes of the first file, which may still be ending, do not make those of the second start afresh."""
    monkeypatch.setattr(batch, "_SMALLEST_RANGE", 1 << 9)
    _, items, _, replies = files(tmp_path)
    started, get_context = [], multiprocessing.get_context
    monkeypatch.setattr(multiprocessing, "get_context", lambda way: (started.append(way), get_context(way))[1])

    for _ in range(3):
        grade_file(ItemSet.index(items), replies, jobs=2)

    assert set(started) == {"fork"}


def test_a_process_that_dies_while_it_hands_over_its_result(monkeypatch):
    """The pool would wait for the other half for ever: the others are ended, and whoever reads is told."""
    monkeypatch.setattr(processes, "_LOOK", 0.01)
    done: list[str] = []
    dead = SimpleNamespace(exitcode=-9, kill=lambda: done.append("dead"))
    alive = SimpleNamespace(exitcode=None, kill=lambda: done.append("alive"))
    writer = SimpleNamespace(close=lambda: done.append("closed"))
    pool = SimpleNamespace(_processes={1: dead, 2: alive}, _result_queue=SimpleNamespace(_writer=writer))

    with pytest.raises(BrokenProcessPool):
        processes._result(pool, Future())
    assert done == ["dead", "alive", "closed"]


def test_a_result_that_takes_long_is_waited_for(monkeypatch):
    """As long as all processes live, and also where the pool is about to hand over what a dead one had finished."""
    monkeypatch.setattr(processes, "_LOOK", 0.02)
    future: Future[int] = Future()
    looks: list[int | None] = [None, None, -9]

    class Process:
        """One that has finished its work and dies at the third look."""

        @property
        def exitcode(self):
            if looks[0] is not None:
                future.set_result(7)
            return looks.pop(0) if len(looks) > 1 else looks[0]

    assert processes._result(SimpleNamespace(_processes={1: Process()}), future) == 7


def test_few_ranges_are_under_way_at_once(tmp_path, monkeypatch):
    """However long the file, memory holds the outcomes of a few ranges that wait for their turn."""
    under_way, most = 0, 0

    class Pool:
        """Grades when it is asked for the result."""

        def __init__(self, _jobs, _context, prepare, arguments):
            prepare(*arguments)

        def submit(self, work, *arguments):
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            return SimpleNamespace(result=lambda timeout: self.finish(work, arguments))

        def finish(self, work, arguments):
            nonlocal under_way
            under_way -= 1
            return work(*arguments)

        def shutdown(self, **_):
            """There is nothing to end."""

    monkeypatch.setattr(processes, "ProcessPoolExecutor", Pool)
    monkeypatch.setattr(processes.signal, "signal", lambda *_: None)
    monkeypatch.setattr(batch, "_SMALLEST_RANGE", 1 << 6)
    monkeypatch.setattr(batch, "_LARGEST_RANGE", 1 << 6)
    options = files(tmp_path)

    found = aae("grade", *options, "--jobs", 3, "--json")

    assert found.out == aae("grade", *options, "--json").out
    assert (under_way, most) == (0, 7)


def test_items_in_memory_are_graded_by_several_jobs(tmp_path, monkeypatch):
    """Where processes are forked the items come along, from a file or not."""
    monkeypatch.setattr(batch, "_SMALLEST_RANGE", 1 << 9)
    _, items, _, replies = files(tmp_path)
    in_memory = ItemSet(ItemSet.read(items).values(), name="items")

    one, two = (grade_file(in_memory, replies, jobs=jobs, rules=RULES["v0.1"]) for jobs in (1, 2))

    assert one.tally.outcomes == two.tally.outcomes
    assert one.signature == two.signature
    assert one.silent == two.silent == 0


def test_progress_is_told(tmp_path, monkeypatch):
    """Progress comes in bytes, in order, and ends at the size of the file."""
    monkeypatch.setattr(batch, "_SMALLEST_RANGE", 1 << 9)
    _, items, _, replies = files(tmp_path)
    told = []

    grade_file(ItemSet.index(items), replies, progress=lambda done, size: told.append((done, size)))

    size = replies.stat().st_size
    assert len(told) == -(-size // 512)
    assert told == sorted(told)
    assert told[-1] == (size, size)


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_in_a_later_range_names_its_line(tmp_path, monkeypatch, jobs):
    """Lines are counted from the start of the file, whichever process met the error; the first one is told."""
    monkeypatch.setattr(batch, "_SMALLEST_RANGE", 1 << 10)
    items = many_items(20)
    options = files(tmp_path, items)
    path = tmp_path / "replies.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[100], lines[140] = b"{}\n", b"[]\n"
    path.write_bytes(b"\n" + b"".join(lines))

    found = aae("grade", *options, "--jobs", jobs)

    assert found.code == 2
    assert "line 102, field 'id': the row does not say which item it answers." in found.err


def test_an_error_in_the_items_keeps_its_line(tmp_path, monkeypatch):
    """An item that cannot be read names its own file and line, not those of the reply that asked for it."""
    monkeypatch.setattr(batch, "_SMALLEST_RANGE", 1 << 7)
    options = files(tmp_path)
    path = tmp_path / "items.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[6] = b'{"id": "z", "category": 5, "expected_calls": []}\n'
    path.write_bytes(b"\n" + b"".join(lines))

    for jobs in (1, 2):
        found = aae("grade", *options, "--jobs", jobs)
        assert found.err == f"aae: {path}, line 8, field 'category': expected text, found a whole number.\n"


def test_declared_categories_are_checked_at_once(tmp_path):
    """With a table of categories the first item of an unknown one is refused; without one nothing is checked."""
    rows = [item("a", "poetry", "msa", [("f", {})])]
    _, items, _, replies = files(tmp_path, rows, [{"id": "a", "calls": []}])

    with pytest.raises(UnknownCategory, match="'poetry' has no declared weight"):
        grade_file(ItemSet.index(items), replies, categories={})
    for categories in (None, {"poetry": Category("poetry", 1.0)}):
        assert grade_file(ItemSet.index(items), replies, categories=categories).tally.answered() == 1


def test_a_document_that_holds_nothing_is_refused(tmp_path):
    """A caller who names an empty list or a run without results is told so."""
    _, items, _, replies = files(tmp_path)
    for text, field in (("[]", None), ('{"results": []}', "results")):
        replies.write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match="holds no replies") as caught:
            grade_file(ItemSet.index(items), replies)
        assert caught.value.field == field
