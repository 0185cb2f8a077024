"""Graded rows: what --out writes, and reading it back without grading again."""

from __future__ import annotations

import json

import msgspec
import pytest

from arabic_agent_eval.errors import DataError
from arabic_agent_eval.rows import GradedRow, count_rows, pairs, read_rows, row_line
from tests.test_cli import ITEMS, aae, files, item, many_items, read, replies_to, write

ROW = {
    "item_id": "a",
    "category": "multi_step",
    "rules": "canonical-1",
    "signature": "items:set@0|n:1|rules:canonical-1|format:auto|v:0",
}
ZERO = {"total": 0.0, "function_selection": 0.0, "argument_accuracy": 0.0, "arabic_preservation": 0.0}


def graded(tmp_path, items, replies, *extra):
    """The summary that grading prints, and the file of rows that it writes."""
    rows = tmp_path / "rows.jsonl"
    found = aae("grade", *files(tmp_path, items, replies), "--json", "--out", rows, *extra)
    assert found.code in {0, 3}, found.err
    return found, rows


def mixed_replies(items):
    """Epochs in mixed order, unequal between items, with failures and silence."""
    replies = []
    for epoch in (2, 0, 5):
        some = replies_to(items[: len(items) - epoch * 3], seed=epoch)
        replies += [reply | {"epoch": epoch} for reply in some]
    for place in range(0, len(replies), 7):
        replies[place] = {"id": replies[place]["id"], "epoch": replies[place]["epoch"], "error": f"status {place % 2}"}
    return replies[::2] + replies[1::2]


@pytest.mark.parametrize("rules", ["canonical", "v0.1"])
@pytest.mark.parametrize("extra", [(), ("--no-causes",), ("--allow-unknown",), ("--format", "calls")])
def test_a_report_repeats_the_grading(tmp_path, rules, extra):
    """A report on the rows begins with the very bytes that the grading printed: epochs, failures, silence included."""
    items = many_items(6)

    found, rows = graded(tmp_path, items, mixed_replies(items[:-2]), "--rules", rules, *extra)
    reported = aae("report", rows, "--json")

    assert (reported.code, reported.err) == (found.code, "")
    assert reported.out.startswith(found.out.removesuffix("\n}\n"))
    assert found.json["coverage"]["unscored"] > 0


def test_a_report_repeats_declared_weights(tmp_path):
    """A report needs the declared weights again, and has the same numbers with them."""
    items = [row | {"category": "شعر"} for row in ITEMS[:3]] + ITEMS[3:]
    weights = write(tmp_path / "weights.json", [{"شعر": 0.7}])
    found, rows = graded(tmp_path, items, replies_to(items), "--categories", weights)

    assert aae("report", rows, "--json", "--categories", weights).graded == found.json
    refused = aae("report", rows)
    assert (refused.code, refused.out) == (2, "")
    assert "'شعر' has no declared weight" in refused.err


def test_rows_hold_what_is_promised(tmp_path):
    """Each row says which answer it judged, by which rules, with axes and losses that add up; Arabic is readable."""
    replies = replies_to(ITEMS, seed=5)
    _, rows = graded(tmp_path, ITEMS, replies)

    text = rows.read_text(encoding="utf-8")
    assert "\\u" not in text
    assert "مطعم القلعة" in text
    for row, asked, reply in zip(read(rows), ITEMS, replies, strict=True):
        assert row["item_id"] == asked["id"] == reply["id"]
        assert (row["category"], row["dialect"], row["epoch"]) == (asked["category"], asked["dialect"], 0)
        assert row["instruction"] == asked["instruction"]
        assert [call["function"] for call in row["actual_calls"]] == [call["function"] for call in reply["calls"]]
        assert sum(loss["points"] for loss in row["losses"]) == pytest.approx(1 - row["total"], abs=1e-12)
        for loss in row["losses"]:
            assert {"cause", "axis", "points"} <= loss.keys()
        assert row["rules"] == "canonical-1"
        assert row["signature"].startswith("items:items@")
        assert "epochs" not in row["signature"]
        assert (row["dialect_understanding"] is None) == (row["category"] != "dialect_handling")
        assert (row["error_handling"] is None) == (row["category"] != "error_recovery")


def test_rows_without_causes_have_none(tmp_path):
    """Rows that were graded without causes have no losses, and a report on them says nothing of causes."""
    found, rows = graded(tmp_path, ITEMS, replies_to(ITEMS, seed=5), "--no-causes")

    assert {row["losses"] for row in read(rows)} == {None}
    assert "lost" not in found.json
    assert aae("report", rows, "--json").graded == found.json


def test_a_report_on_nothing_scored_repeats_the_grading(tmp_path):
    """Where every answer failed the report still knows whether the causes were asked for."""
    for extra in ((), ("--no-causes",)):
        found, rows = graded(tmp_path, ITEMS[:1], [{"id": ITEMS[0]["id"], "error": "quota"}], *extra)
        assert aae("report", rows, "--json").graded == found.json


def test_a_failure_is_unscored_in_its_row(tmp_path):
    """A provider's failure is a row without numbers; by the rules v0.1 it counts as zero."""
    replies = [{"id": "قيم", "error": {"message": "quota"}}]
    for rules, status, total in (("canonical", "unscored", None), ("v0.1", "scored", 0.0)):
        _, rows = graded(tmp_path, ITEMS, replies, "--rules", rules)
        row = read(rows)[0]
        assert (row["status"], row["total"]) == (status, total)
        assert row["reason"] == ("The request failed: quota" if total is None else None)


def test_a_row_survives_writing_and_reading(tmp_path):
    """Every row that grading writes is read back as the same row."""
    _, rows = graded(tmp_path, many_items(3), mixed_replies(many_items(3)))

    found = list(read_rows(rows))

    assert b"".join(map(row_line, found)) == rows.read_bytes()
    assert msgspec.json.decode(row_line(found[0]), type=GradedRow) == found[0]


BAD_ROWS = [
    ("", "the file holds no rows."),
    ("\n \n", "the file holds no rows."),
    ("\n{", "line 2: the line cannot be read: it is not JSON: it ends too early."),
    ("[]", "line 1: each line must be a JSON object, not a list."),
    ('{"id": "a", "calls": []}', "line 1, field 'item_id': the field is missing. Graded rows are what"),
    (ROW | {"total": "1"}, "line 1, field 'total': expected "),
    (ROW | {"losses": [{"cause": "missing"}]}, "line 1, field 'losses[0].axis': the field is missing."),
    (ROW | {"instruction": None}, "line 1, field 'instruction': expected text, found null."),
    ('{"item_id": "a", "x": %s}' % ("[" * 9999 + "]" * 9999), "line 1"),
]


@pytest.mark.parametrize(("content", "message"), BAD_ROWS)
@pytest.mark.parametrize("command", ["report", "show"])
def test_what_is_no_row_is_refused(tmp_path, content, message, command):
    """A file that --out did not write is refused with line and field by both commands that read rows."""
    path = tmp_path / "rows.jsonl"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")

    found = aae(command, path, *(["a"] if command == "show" else []))

    assert (found.code, found.out) == (2, "")
    assert found.err.count("\n") == 1
    if command == "report" or "holds no rows" not in message:
        assert message in found.err
    else:
        assert "holds no item 'a'" in found.err


def test_a_row_that_is_too_deep_is_refused(tmp_path):
    """A row whose values the typed decoder gives up on is a sentence with its line."""
    path = tmp_path / "rows.jsonl"
    row = json.dumps(ROW | {"expected_calls": [{"function": "f", "arguments": {"x": "DEEP"}}]})
    path.write_text(row.replace('"DEEP"', "[" * 5000 + "]" * 5000), encoding="utf-8")

    with pytest.raises(DataError, match="nested too deeply") as caught:
        list(read_rows(path))
    assert caught.value.line == 1


def test_mixed_signatures_are_refused(tmp_path):
    """Rows of different gradings are not comparable and do not make one report."""
    path = write(tmp_path / "rows.jsonl", [ROW, ROW | {"item_id": "b", "signature": ROW["signature"] + "1"}])

    found = aae("report", path)

    assert found.code == 2
    assert "field 'signature': rows with different signatures are mixed" in found.err
    assert "Grade the replies with the same items, rules and version, or report on them apart." in found.err


def test_an_answer_that_stands_twice_is_refused(tmp_path):
    """The same item and epoch twice would count twice."""
    path = write(tmp_path / "rows.jsonl", [ROW | ZERO, ROW | ZERO | {"epoch": 1}, ROW | ZERO])

    with pytest.raises(DataError, match="item 'a', epoch 0, stands twice") as caught:
        count_rows(path)
    assert caught.value.line == 3


def test_what_is_no_signature_is_refused(tmp_path):
    """A signature from elsewhere is refused."""
    path = write(tmp_path / "rows.jsonl", [ROW | ZERO | {"signature": "items:x"}])

    with pytest.raises(DataError, match="not a signature of this package"):
        count_rows(path)


def test_half_a_row_is_no_score(tmp_path):
    """A row that lacks a number is not counted as judged."""
    half = ROW | ZERO | {"argument_accuracy": None}
    path = write(tmp_path / "rows.jsonl", [half, half | {"item_id": "b", "reason": "cut short"}])

    found = count_rows(path)

    assert found.tally.outcomes == {}
    assert found.tally.unscored == {"b": {"cut short": 1}}
    assert found.due == 2


CALLS = [{"function": "f", "arguments": {"n": 1}}, {"function": "g", "arguments": {"n": 2}}]


@pytest.mark.parametrize(
    ("ordered", "actual", "expected"),
    [
        (True, CALLS, [(0, 0), (1, 1)]),
        (True, CALLS[:1], [(0, 0), (1, None)]),
        (True, [*CALLS, CALLS[0]], [(0, 0), (1, 1), (None, 2)]),
        (True, None, [(0, None), (1, None)]),
        (False, CALLS[::-1], [(0, 1), (1, 0)]),
        (False, CALLS[1:], [(0, None), (1, 0)]),
        (False, [CALLS[1], {"function": "h"}, CALLS[0]], [(0, 2), (1, 0), (None, 1)]),
        (False, [], [(0, None), (1, None)]),
    ],
)
@pytest.mark.parametrize("rules", ["canonical-1", "v0.1-1"])
def test_pairs(ordered, actual, expected, rules):
    """A row shows the pairs that were graded: by place, or the best ones where the order is free."""
    row = msgspec.convert(
        ROW | {"ordered": ordered, "expected_calls": CALLS, "actual_calls": actual, "rules": rules}, GradedRow
    )

    assert pairs(row) == expected


def test_rows_keep_hostile_values(tmp_path):
    """Numbers beyond 64 bits, lone surrogates and deep or repeated arguments are written as readable rows."""
    calls = (
        '[{"function": "f", "arguments": {"n": 123456789012345678901234567890, "s": "\\ud800", "n2": 1, "n2": 2}},'
        ' {"function": "f", "arguments": {"deep": %s}}, 5, null, {"function": ["x"], "arguments": "{"}]'
    ) % ("[" * 10_000 + "]" * 10_000)
    options = files(tmp_path, [item("a", "multi_step", None, [("f", {"n": 10**29})])], [])
    (tmp_path / "replies.jsonl").write_text('{"id": "a", "calls": ' + calls + "}", encoding="utf-8")

    found = aae("grade", *options, "--out", tmp_path / "rows.jsonl", "--json")

    [row] = read(tmp_path / "rows.jsonl")
    errors = [call["error"] for call in row["actual_calls"]]
    assert found.code == 0
    assert row["actual_calls"][0]["arguments"] == {"n": 123456789012345678901234567890, "s": "\ufffd", "n2": 2}
    assert errors == [None, "malformed_arguments", "malformed_call", "malformed_call", "malformed_call"]
    assert aae("report", tmp_path / "rows.jsonl", "--json").graded == found.json


# --- known faults --------------------------------------------------------------------------------------------


def test_any_file_name_survives_the_signature(tmp_path):
    """The report has the grading's signature whatever the file of items is called."""
    options = files(tmp_path)
    odd = tmp_path / "a|n:5.jsonl"
    options[1].rename(odd)
    found = aae("grade", "--items", odd, *options[2:], "--json", "--out", tmp_path / "rows.jsonl")

    assert aae("report", tmp_path / "rows.jsonl", "--json").graded == found.json


def test_lines_of_repeated_rows_are_those_of_the_file(tmp_path):
    """The line that is named is the one that an editor shows."""
    path = write(tmp_path / "rows.jsonl", [ROW | ZERO, ROW | ZERO])
    path.write_bytes(b"\n\n" + path.read_bytes())

    assert "line 4" in aae("report", path).err


def test_rows_with_unknown_rules_are_refused(tmp_path):
    """Rows of a rule set that this version does not know are an error of the file, not a traceback."""
    row = ROW | ZERO | {"rules": "later-1", "ordered": False, "expected_calls": CALLS, "actual_calls": []}
    path = write(tmp_path / "rows.jsonl", [row])

    assert aae("show", path, "a").code == 2


def test_a_bad_signature_names_its_file(tmp_path):
    """A signature that cannot be read is an error with file and field."""
    path = write(tmp_path / "rows.jsonl", [ROW | ZERO | {"signature": "items:x"}])

    assert "rows.jsonl" in aae("report", path).err
