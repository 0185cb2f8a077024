"""Several processes that read the items together: whatever the order and shape of both files, they are as one.

Where replies stand about where their items do, no process reads all items; everywhere else that is noticed.
"""

from __future__ import annotations

import json
import random

import pytest

from arabic_agent_eval import batch, processes, windows
from arabic_agent_eval.batch import grade_file
from arabic_agent_eval.errors import DataError
from arabic_agent_eval.items import ItemSet
from arabic_agent_eval.windows import ItemWindow, OutOfOrder

COUNT = 400


def item_line(number, note=""):
    """An item with an id that tells its place."""
    call = {"function": "احجز", "arguments": {"city": "جدة", "n": number}}
    row = {"id": f"i{number}", "category": "multi_step", "dialect": "msa", "expected_calls": [call], "notes": note}
    return json.dumps(row, ensure_ascii=False)


def reply_line(number):
    """A reply to it: every third one is wrong, every seventh is read the long way."""
    arguments = {"city": "جده" if number % 3 == 0 else "جدة", "n": number}
    if number % 7 == 0:
        return json.dumps({"id": f"i{number}", "text": "لا أعرف"}, ensure_ascii=False)
    return json.dumps({"id": f"i{number}", "calls": [{"function": "احجز", "arguments": arguments}]}, ensure_ascii=False)


def outcome(tmp_path, item_lines, reply_lines, jobs, *, rows=False):
    """What grading comes to, in comparable form."""
    items, replies, out = (tmp_path / name for name in ("items.jsonl", "replies.jsonl", f"rows-{jobs}.jsonl"))
    items.write_text("\n".join(item_lines) + "\n", encoding="utf-8")
    replies.write_text("\n".join(reply_lines) + "\n", encoding="utf-8")
    try:
        found = grade_file(ItemSet.index(items), replies, jobs=jobs, out=out if rows else None)
    except DataError as error:
        return str(error)
    written = out.read_bytes() if rows else b""
    return found.tally.outcomes, found.tally.examples, found.signature, found.due, found.silent_ids, written


def shuffled(lines):
    """The lines in another order, always the same."""
    mixed = list(lines)
    random.Random(7).shuffle(mixed)
    return mixed


ITEMS = [item_line(number) for number in range(COUNT)]
REPLIES = [reply_line(number) for number in range(COUNT)]
SKEWED = [item_line(number, "ا" * (4_000 if number < 200 else 0)) for number in range(COUNT)]
FILES = {
    "in order": (ITEMS, REPLIES, True),
    "in another order": (ITEMS, shuffled(REPLIES), False),
    "half of it in order": (ITEMS, [*REPLIES[:200], *shuffled(REPLIES[200:])], False),
    "long items first": (SKEWED, REPLIES, False),
    "a blank line": ([*ITEMS[:50], "", "  ", *ITEMS[50:]], REPLIES, True),
    "items without a reply": (ITEMS, [line for place, line in enumerate(REPLIES) if place % 5], True),
    "items at the end without a reply": (ITEMS, REPLIES[:390], True),
    "an id twice, far apart": ([*ITEMS, item_line(3)], REPLIES, False),
    "an id twice, near": ([*ITEMS[:40], item_line(39), *ITEMS[40:]], REPLIES, False),
    "a line that is no item": ([*ITEMS[:300], "nonsense", *ITEMS[300:]], REPLIES, False),
    "a number as id": ([*ITEMS[:300], '{"id": 7, "category": "multi_step", "expected_calls": []}', *ITEMS[300:]],
                       [*REPLIES[:300], '{"id": 7, "calls": []}', *REPLIES[300:]], False),
    "a reply to no item": (ITEMS, [*REPLIES[:350], reply_line(9_999), *REPLIES[350:]], False),
    "an answer twice": (ITEMS, [*REPLIES, reply_line(2)], False),
    "a reply that cannot be read": (ITEMS, [*REPLIES[:200], "{", *REPLIES[200:]], False),
}  # fmt: skip


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("name", FILES)
def test_two_jobs_are_as_one(tmp_path, monkeypatch, name, rows):
    """Numbers, examples, rows and errors are the same, and only files that need it are read as a whole."""
    item_lines, reply_lines, together = FILES[name]
    monkeypatch.setattr(batch, "_SMALLEST_RANGE", 1 << 11)
    monkeypatch.setattr(windows, "_AROUND", 1 << 11)
    whole = []
    read_whole = processes._grade_with_all
    monkeypatch.setattr(processes, "_grade_with_all", lambda *given: whole.append(given) or read_whole(*given))

    one, two = (outcome(tmp_path, item_lines, reply_lines, jobs, rows=rows) for jobs in (1, 2))

    assert two == one
    if together:
        assert whole == []


def test_a_window_knows_only_what_is_near(tmp_path, monkeypatch):
    """Items of the range and around it are found; asking for another says that the whole is needed."""
    monkeypatch.setattr(windows, "_AROUND", 300)
    path = tmp_path / "items.jsonl"
    path.write_text("\n".join(ITEMS), encoding="utf-8")
    size = path.stat().st_size
    window = ItemWindow(path, "items", size // 2, size * 3 // 4)

    assert window["i250"].id == "i250"
    assert window.answer_key("i302").id == "i302"
    assert window.answer_key("i200").id == "i200"
    assert "i201" in window
    for ask in (window.__getitem__, window.answer_key, window.__contains__):
        with pytest.raises(OutOfOrder):
            ask("i5")
    window.finish()
    assert (window.ids[0], window.ids[-1], len(window.ids)) == ("i201", "i300", 100)
