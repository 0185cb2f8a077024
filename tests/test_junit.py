"""Graded answers as JUnit XML: what is read back from it, hostile text, files that are whole or not there at all."""

from __future__ import annotations

import errno
import unicodedata
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arabic_agent_eval.causes import words
from arabic_agent_eval.diagnosis import Loss
from arabic_agent_eval.errors import OutputError
from arabic_agent_eval.items import CATEGORIES, ExpectedCall
from arabic_agent_eval.reports import junit
from arabic_agent_eval.reports.junit import JUnitCases
from arabic_agent_eval.rows import GradedRow
from arabic_agent_eval.summary import NOT_ASKED
from arabic_agent_eval.tables import NO_REPLY
from arabic_agent_eval.tools import Call
from tests.test_cli import ITEMS, aae, files, replies_to, write
from tests.test_reports import HOSTILE, dangerous, hostile_files

FORBIDDEN = ["\x00", "\x01", "\x0b", "\x1f", "\x7f", "\x85", "\ufffe", "\uffff", "]]>", "\"'><!--", "&#0;", "\u202e"]


def row(item_id="a", total=1.0, category="multi_step", **more):
    """A graded row."""
    return GradedRow(item_id=item_id, category=category, total=total, rules="canonical-1", signature="s", **more)


def tree_of(tmp_path, *rows, name="model", signature="s"):
    """The XML of rows, parsed, and its text."""
    path = tmp_path / "junit.xml"
    with JUnitCases() as cases:
        for one in rows:
            cases.add(one)
        cases.write(path, name=name, signature=signature)
    text = path.read_bytes().decode("utf-8")
    return ET.fromstring(text), text


def cases_of(tree):
    """Suite → class and name → what stands inside: kind, message, text."""
    return {
        suite.get("name"): {
            (case.get("classname"), case.get("name")): [(one.tag, one.get("message"), one.text) for one in case]
            for case in suite.iter("testcase")
        }
        for suite in tree
    }


# --- what stands in it ---------------------------------------------------------------------------------------


def test_a_category_is_a_suite_and_an_answer_a_test(tmp_path):
    """Suites stand in the order of every report, cases in that of the rows, whatever order categories come in."""
    rows = [row("1", category="own"), row("2"), row("3", category="own", dialect="gulf"), row("4", dialect="msa")]

    tree, _ = tree_of(tmp_path, *rows)

    assert [(suite.get("name"), suite.get("tests")) for suite in tree] == [("multi_step", "2"), ("own", "2")]
    assert list(cases_of(tree)["own"]) == [("(none)", "1"), ("gulf", "3")]
    assert list(cases_of(tree)["multi_step"]) == [("(none)", "2"), ("msa", "4")]


@pytest.mark.parametrize(
    ("total", "reason", "kind"),
    [
        (1.0, None, None), (1 - 1e-13, None, None), (0.99, None, "failure"), (0.0, None, "failure"),
        (None, "The request failed: HTTP 503", "error"), (None, NOT_ASKED, "skipped"), (None, NO_REPLY, "skipped"),
        (None, None, "error"),
    ],
)  # fmt: skip
def test_what_became_of_an_answer(tmp_path, total, reason, kind):
    """Lost points are a failure, a provider's failure an error, and what was not asked is skipped; each is counted."""
    status = "scored" if total is not None else "unscored"

    tree, _ = tree_of(tmp_path, row(total=total, status=status, reason=reason), row("right"))

    [inside, right] = cases_of(tree)["multi_step"].values()
    assert [one[0] for one in inside] == ([] if kind is None else [kind])
    assert right == []
    counts = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    for holder in (tree, tree[0]):
        assert holder.get("tests") == "2"
        assert {name: holder.get(name) for name in counts} == {
            name: str(int(of == kind)) for name, of in counts.items()
        }


def test_a_failure_says_why(tmp_path):
    """Its message names the score, and each cause in words with its points; its text instruction and calls."""
    losses = [Loss("translated", "argument_accuracy", 0.1), Loss("translated", "arabic_preservation", 0.1),
              Loss("missing_call", "function_selection", 0.25)]  # fmt: skip
    failed = row(
        total=0.55, losses=losses, instruction="احجز لي رحلة", said="تم", dialect="gulf",
        expected_calls=[ExpectedCall("search", {"to": "دبي"}), ExpectedCall("book", {})],
        actual_calls=[Call("search", {"to": "Dubai"}), Call(None, error="malformed_call")],
    )  # fmt: skip

    tree, _ = tree_of(tmp_path, failed)

    failure = tree[0].find("testcase/failure")
    assert failure.get("type") == "translated"
    assert failure.get("message") == (
        f"Score 0.5500. −0.2000 translated: {words('translated')} −0.2500 missing_call: {words('missing_call')}"
    )
    assert failure.text.split("\n") == [
        "Instruction:", "  احجز لي رحلة", "Expected:", '  search(to="دبي")', "  book()",
        "Actual:", '  search(to="Dubai")', "  (could not be read)", "Said:", "  تم",
    ]  # fmt: skip


def test_nothing_was_called_and_nothing_explained(tmp_path):
    """Rows without causes, and answers without calls, say so."""
    tree, _ = tree_of(tmp_path, row(total=0.0, losses=None, actual_calls=[]))

    failure = tree[0].find("testcase/failure")
    assert (failure.get("message"), failure.get("type")) == ("Score 0.0000.", None)
    assert failure.text.split("\n") == ["Expected:", "  (no call)", "Actual:", "  (no call)"]


def test_epochs_are_named_where_there_are_several(tmp_path):
    """Of an item that was asked several times each asking is a case of its own; with one asking the id is enough."""
    once, _ = tree_of(tmp_path, row("a"), row("b"))
    several, _ = tree_of(tmp_path, row("a"), row("b"), row("a", epoch=1))

    assert [name for _, name in cases_of(once)["multi_step"]] == ["a", "b"]
    assert [name for _, name in cases_of(several)["multi_step"]] == ["a · epoch 0", "b · epoch 0", "a · epoch 1"]


# --- hostile text --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [*HOSTILE, *FORBIDDEN])
def test_nothing_hostile_breaks_out(tmp_path, text):
    """Any text in any place is text when it is read back: well-formed, nothing invisible, no further elements."""
    more = {"dialect": text, "instruction": text, "said": text, "expected_calls": [ExpectedCall(text, {text: text})]}
    calls = [Call(text, {text: text, "b": [text]}), Call(text, {})]
    failed = row(text, 0.5, text, losses=[Loss(text, "x", 0.5)], actual_calls=calls, **more)
    error = row(text + "2", None, text, reason=text, status="unscored")

    tree, source = tree_of(tmp_path, failed, error, name=text, signature=text)

    assert dangerous(source) == set()
    assert [one.tag for one in tree.iter()] == [
        "testsuites", "testsuite", "properties", "property", "testcase", "failure", "testcase", "error",
    ]  # fmt: skip
    assert len(tree[0].find("testcase/failure").text.split("\n")) == 9


@given(st.text(), st.text())
def test_any_text_is_well_formed(tmp_path_factory, name, said):
    """Whatever characters a model sends, the file can be read, and what is harmless comes back as it was."""
    tree, _ = tree_of(tmp_path_factory.mktemp("x"), row(name, 0.5, said=said))

    [(_, shown)] = cases_of(tree)["multi_step"]
    if name.isprintable() and len(name) <= 200:
        assert shown == name
    assert all(unicodedata.category(char)[0] != "C" for char in shown)


def test_forbidden_characters_are_named(tmp_path):
    """A character that XML forbids, or that turns the direction of a text, stands there by its code point."""
    tree, _ = tree_of(tmp_path, row("a\x00b\u202ec\uffff"))

    assert [*cases_of(tree)["multi_step"]] == [("(none)", "a⟨U+0000⟩b⟨U+202E⟩c⟨U+FFFF⟩")]


def test_very_long_answers_are_cut(tmp_path):
    """Names, instructions, calls and messages have an end."""
    long = "ط" * 100_000
    failed = row(long, 0.0, long, instruction=long, said=long, losses=[Loss(long, "x", 1.0)],
                 expected_calls=[ExpectedCall("f", {"a": long})] * 1_000)  # fmt: skip

    _, source = tree_of(tmp_path, failed, name=long)

    assert len(source) < 20_000
    assert "… and 990 more calls" in source


# --- files ---------------------------------------------------------------------------------------------------


def test_many_rows_wait_on_the_disk(tmp_path, monkeypatch):
    """What does not fit in memory waits in a temporary file; the result is the same."""
    rows = [row(str(place), place % 3 / 2, list(CATEGORIES)[place % 4]) for place in range(200)]
    _, usual = tree_of(tmp_path, *rows)

    monkeypatch.setattr(junit, "_IN_MEMORY", 10)

    assert tree_of(tmp_path, *rows)[1] == usual


def test_a_file_is_whole_or_unchanged(tmp_path, monkeypatch):
    """Where there is no room, what stood there stands, nothing lies beside it, and a sentence says so."""
    path = tmp_path / "junit.xml"
    path.write_text("old", encoding="utf-8")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with JUnitCases() as cases:
        cases.add(row())
        with pytest.raises(OutputError, match="no space left"):
            cases.write(path, name="m", signature="s")

    assert [one.name for one in tmp_path.iterdir()] == ["junit.xml"]
    assert path.read_text(encoding="utf-8") == "old"


def test_no_room_for_what_waits():
    """A temporary folder that is full is a sentence too."""
    with JUnitCases() as cases:
        cases._kept.write = lambda _: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device"))

        with pytest.raises(OutputError, match="test cases could not be kept: no space left"):
            cases.add(row())


# --- the command ---------------------------------------------------------------------------------------------


def test_of_rows_and_of_a_run(tmp_path):
    """Rows and run folders alike: as many failures as answers that lost points; what is printed stays the same."""
    rows, out = tmp_path / "rows.jsonl", tmp_path / "junit.xml"
    aae("grade", *files(tmp_path, ITEMS, replies_to(ITEMS, 3)), "--out", rows)
    aae("run", "--items", "sample", "--model", "replay/sample", "--run", tmp_path / "run")

    for source in (rows, tmp_path / "run"):
        usual, found = aae("report", source, "--json"), aae("report", source, "--json", "--junit", out)
        tree = ET.parse(out).getroot()
        lost = len(aae("show", source, "--lost", "--json").out.splitlines())
        assert (found.code, found.out) == (0, usual.out)
        assert f"Test cases written to {out}." in found.err
        assert (int(tree.get("failures")), int(tree.get("tests"))) == (lost, usual.json["coverage"]["total"])
        assert {suite.get("name") for suite in tree} == set(usual.json["categories"])
        assert tree.find("testsuite/properties/property").get("value") == usual.json["signature"]
        assert tree.get("name") == ("rows" if source == rows else "replay/sample")


def test_answers_that_never_came(tmp_path):
    """A failed row is an error, an item without a reply is skipped, and the exit code is that of the report."""
    rows, out = tmp_path / "rows.jsonl", tmp_path / "junit.xml"
    replies = [{"id": ITEMS[0]["id"], "error": "HTTP 503"}, *replies_to(ITEMS[1:-1])]
    aae("grade", *files(tmp_path, ITEMS, replies), "--out", rows)

    found = aae("report", rows, "--junit", out)

    tree = ET.parse(out).getroot()
    assert found.code == 3
    assert (tree.get("errors"), tree.get("skipped"), tree.get("tests")) == ("1", "1", str(len(ITEMS)))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_files(tmp_path, text):
    """What comes from files is harmless in the XML as well."""
    options, _ = hostile_files(tmp_path, text)
    aae("grade", *options, "--out", tmp_path / "rows.jsonl")

    found = aae("report", tmp_path / "rows.jsonl", *options[4:], "--junit", tmp_path / "junit.xml")

    source = (tmp_path / "junit.xml").read_text(encoding="utf-8")
    assert found.code == 3
    assert dangerous(source) == set()
    assert {one.tag for one in ET.fromstring(source).iter("testcase")} == {"testcase"}


def test_what_is_refused(tmp_path):
    """The rows are never overwritten, nor a file of the run, and two reports need two files."""
    rows = tmp_path / "rows.jsonl"
    aae("grade", "--items", "sample", "--replies", "sample", "--out", rows)
    aae("run", "--items", "sample", "--run", tmp_path / "run")
    before = rows.read_bytes()

    weights = write(tmp_path / "weights.json", [{"multi_step": 1}])
    for options in (
        (rows, "--junit", rows),
        (rows, "--categories", weights, "--junit", weights),
        (tmp_path / "run", "--junit", tmp_path / "run" / "replies.jsonl"),
        (rows, "--junit", tmp_path / "x", "--html", tmp_path / "x"),
    ):
        found = aae("report", *options)
        assert (found.code, found.out) == (2, "")
        assert "--junit" in found.err
    assert rows.read_bytes() == before
    assert not (tmp_path / "x").exists()
    assert aae("report", write(tmp_path / "bad.jsonl", [{}]), "--junit", tmp_path / "x").code == 2
    assert not (tmp_path / "x").exists()
