"""Pages for people: nothing hostile reaches a terminal or breaks out of a table, and no page computes."""

from __future__ import annotations

import io
import json
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from arabic_agent_eval.reports.item import compare_letters
from arabic_agent_eval.reports.markdown import markdown, plain
from arabic_agent_eval.reports.terminal import print_summary, safe
from arabic_agent_eval.scoring import Signature
from arabic_agent_eval.summary import summarize
from arabic_agent_eval.tables import argument_names, coverage_line, number
from arabic_agent_eval.tally import Example, ItemFacts, Outcome, Tally
from tests.test_cli import ITEMS, aae, files, item, many_items, replies_to

HOSTILE = [
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\u202egnp.exe\u202c",
    "\u2066isolated\u2069",
    "one\ntwo\r\nthree",
    "tab\tand\x0bmore",
    "nul\x00",
    "\x9b31m",
    "line\u2028and\u2029paragraph",
    "\ufeffbom\u200b",
    "[bold red]markup[/] :smile:",
    "<script>alert(1)</script>",
    "| a | b |\n|---|---|",
    "`code` ``more`` ```",
    "](http://x) ![x](y) <http://x>",
    "# head\n* list\n> quote",
    "\\| \\` \\\\",
    "&lt;b&gt; &amp;",
    "~~x~~ _y_ *z*",
]
LABELS = "\n".join(HOSTILE)


def hostile_rows(text):
    """An item and a reply with the text in every place that an outsider fills."""
    same = {"same " + text: text}
    expected = {"function": text + "f", "arguments": {text: "قيمة " + text, "other": "جدة"} | same}
    row = item("id " + text, text, text, [expected], instruction="سؤال " + text)
    calls = [{"function": text, "arguments": {text: text, "extra " + text: text, "other": "جده"} | same}] * 2
    return row, [{"id": row["id"], "calls": calls}, {"id": row["id"], "epoch": 1, "error": text}]


def hostile_files(tmp_path, text):
    row, replies = hostile_rows(text)
    weights = tmp_path / "weights.json"
    weights.write_text(json.dumps({text: 1.0}), encoding="utf-8")
    options = files(tmp_path, [row], replies)
    (tmp_path / "items.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    (tmp_path / "replies.jsonl").write_text("".join(json.dumps(one) + "\n" for one in replies), encoding="utf-8")
    return (*options, "--categories", weights), row["id"]


def dangerous(text):
    """The characters that a terminal acts upon or an eye cannot see."""
    return {char for char in text if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and char != "\n"}


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_hostile_reaches_the_terminal(tmp_path, text):
    """Ids, categories, dialects, names, values and reasons are printed without control or invisible characters."""
    options, item_id = hostile_files(tmp_path, text)
    rows = tmp_path / "rows.jsonl"

    pages = [
        aae("grade", *options, "--out", rows),
        aae("report", rows, *options[4:]),
        aae("show", rows, item_id),
        aae("data", "list", options[1]),
        aae("data", "check", options[1]),
        aae("report", rows),
        aae("show", rows, text),
        aae("grade", *options[:4]),
    ]

    assert [page.code for page in pages] == [3, 3, 0, 0, 1, 2, 2, 2]
    for page in pages:
        assert dangerous(page.out) == set()
    for line in aae("data", "list", options[1]).out.splitlines():
        assert line.startswith("id ")


def test_names_and_reasons_are_harmless_too(tmp_path):
    """The name of a file stands in the signature, and a row may hold any reason: both are made harmless."""
    options = files(tmp_path, ITEMS, [{"id": "قيم", "error": "x"}])
    odd = options[1].rename(tmp_path / "\x1b[31m\u202e.jsonl")
    rows = tmp_path / "rows.jsonl"
    graded = aae("grade", "--items", odd, *options[2:], "--out", rows)
    lines = rows.read_text(encoding="utf-8").replace("The request failed: x", "\\u001b[31m\\u202e")
    rows.write_text(lines, encoding="utf-8")

    pages = [graded, aae("report", rows), aae("report", rows, "--format", "markdown"), aae("show", rows, "قيم")]

    assert "items:__31m_@" in graded.out
    for page in pages[1:]:
        assert "⟨U\\+001B⟩" in page.out or "⟨U+001B⟩" in page.out
    for page in pages:
        assert dangerous(page.out) == set()


@pytest.mark.parametrize("text", HOSTILE)
def test_messages_on_stderr_are_harmless(tmp_path, text):
    """What an error quotes from a file or an argument is one line without control characters."""
    options, _ = hostile_files(tmp_path, text)
    (tmp_path / "other.jsonl").write_text(json.dumps({"id": "z" + text, "calls": []}), encoding="utf-8")

    for found in (
        aae("grade", *options[:4]),
        aae("grade", *options[:2], "--replies", tmp_path / "other.jsonl"),
        aae("grade", *options, "--format", text),
    ):
        assert found.code == 2
        assert dangerous(found.err) == set()
        assert found.err.startswith("aae: ")


def cells(line):
    """The cells of a row of a Markdown table, split at bars that are not escaped."""
    return re.split(r"(?<!\\)(?:\\\\)*\|", line)[1:-1]


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_cannot_be_broken_out_of(tmp_path, text):
    """Every table keeps its columns and lines, and no HTML, link, code or heading comes from outside."""
    options, _ = hostile_files(tmp_path, text)
    rows = tmp_path / "rows.jsonl"
    aae("grade", *options, "--out", rows)
    usual = aae("report", rows, "--format", "markdown", *options[4:])

    page = usual.out
    assert usual.code == 3
    assert dangerous(page) == set()
    assert re.findall(r"<|(?<!\\)[][*_~!]|\]\(", page) == []
    assert [line for line in page.splitlines() if line.startswith("#")] == [
        line for line in page.splitlines() if re.match(r"#{1,2} (Arabic|Categories|Dialects|Where)", line)
    ]
    tables = [line for line in page.splitlines() if line.startswith("|")]
    assert {len(cells(line)) for line in tables} <= {5, 6, 7, 8}
    assert len(tables) == 2 + 1 + 2 + 1 + 2 + len(aae("report", rows, "--json", *options[4:]).json["lost"])
    assert page.count("`") - page.count("\\`") == 2  # the signature


@given(st.text())
def test_plain_text_stays_in_its_cell(text):
    """Any text is one line of escaped marks; what is harmless stays as it is."""
    shown = plain(text)

    assert dangerous(shown) == set()
    assert "\n" not in shown
    assert re.findall(r"(?<!\\)(?:\\\\)*[|`*_\[\]<>#~!]", shown) == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("مرحبا", "مرحبا"),
        ("a|b", "a\\|b"),
        ("a\\|b", "a\\\\\\|b"),
        ("<b>", "&lt;b&gt;"),
        ("a & b", "a &amp; b"),
        ("&lt;", "&amp;lt;"),
        ("x\ny", "x⟨U\\+000A⟩y"),
        ("- item", "\\- item"),
        ("1. x", "1. x"),
    ],
)
def test_plain(text, shown):
    """Marks are escaped, HTML is written as entities, invisible characters are named."""
    assert plain(text) == shown


# --- the numbers ---------------------------------------------------------------------------------------------


def numbers_in(value):
    """Every number in a JSON value, rounded as reports round."""
    if isinstance(value, dict):
        return {found for member in value.values() for found in numbers_in(member)}
    if isinstance(value, list):
        return {found for member in value for found in numbers_in(member)}
    return {f"{value:.4f}"} if isinstance(value, int | float) else set()


@pytest.mark.parametrize("extra", [(), ("--no-causes",), ("--rules", "v0.1")])
@pytest.mark.parametrize("seed", range(3))
def test_no_page_computes(tmp_path, extra, seed):
    """Every number with four decimals on a page stands in the JSON, and every group's numbers are on the page."""
    items = many_items(5)
    rows = tmp_path / "rows.jsonl"
    options = files(tmp_path, items, replies_to(items, seed))
    found = aae("grade", *options, "--json", "--out", rows, *extra).json
    known = numbers_in(found)

    for page in (aae("grade", *options, *extra), aae("report", rows), aae("report", rows, "--format", "markdown")):
        assert page.code == 0
        printed = re.findall(r"\d\.\d{4}", page.out)
        assert len(printed) > 40
        assert set(printed) <= known
        for name, group in [*found["categories"].items(), *found["dialects"].items()]:
            line = next(line for line in page.out.replace("\\", "").splitlines() if name in line)
            axes = ("score", "function_selection", "argument_accuracy", "arabic_preservation")
            assert re.findall(r"\d\.\d{4}", line) == [f"{group[axis]:.4f}" for axis in axes]
        for cause, points in found.get("lost", {}).items():
            assert f"{points:.4f}" in page.out
            assert cause in page.out.replace("\\", "")
        assert f"{found['overall']:.4f} ({found['grade']})" in page.out
        assert ("Where the points went" in page.out) is ("lost" in found)


def test_pages_of_a_perfect_run(tmp_path):
    """A run that lost nothing says so instead of an empty table."""
    items = [item("أ", "multi_step", None, [])]
    rows = tmp_path / "rows.jsonl"
    options = files(tmp_path, items, [{"id": "أ", "calls": []}])

    terminal, page = aae("grade", *options, "--out", rows).out, aae("report", rows, "--format", "markdown").out

    for text in (terminal, page):
        assert "No points were lost." in text
        assert "1.0000 (A)" in text
        assert "1 of 1 answers judged" in text
    assert "Nothing was expected and nothing was called." in aae("show", rows, "أ").out


def test_pages_of_nothing(tmp_path):
    """A run without a scored answer has dashes for numbers and says why."""
    rows = tmp_path / "rows.jsonl"
    options = files(tmp_path, ITEMS[:2], [{"id": row["id"], "error": "quota | `x`"} for row in ITEMS[:2]])

    terminal, page = aae("grade", *options, "--out", rows).out, aae("report", rows, "--format", "markdown").out

    assert "Score  – (nothing scored)" in terminal
    assert "0 of 2 answers judged; unscored: 2 × The request failed: quota | `x`" in terminal
    assert "# Arabic agent evaluation: – (nothing scored)" in page
    assert "2 × The request failed: quota \\| \\`x\\`" in page
    assert "Unscored: The request failed: quota | `x`" in aae("show", rows, "بسيط").out


def summary_with(causes):
    """A summary in which many causes lost points."""
    tally = Tally()
    lost = tuple((f"cause_{n:02}", "argument_accuracy", 0.35 / causes) for n in range(causes))
    tally.add("a", Outcome(ItemFacts("multi_step", "msa", True), 1.0, 0.0, 1.0, lost))
    tally.examples = {"cause_00": [Example("a", "city", "جدة", "Jeddah")], "cause_01": [Example("a", None, "f", "g")]}
    tally.arguments.update({("cause_00", f"argument_{n}"): 9 - n for n in range(6)})
    return summarize(tally, due=1, signature=Signature("s@0", 1, "canonical-1"), rules="canonical")


def printed(show, *arguments, **options):
    stream = io.StringIO()
    show(*arguments, Console(file=stream, width=120, highlight=False, markup=False, emoji=False, **options))
    return stream.getvalue()


def test_pages_say_what_was_not_applicable(tmp_path):
    """Items that expect nothing Arabic count 1 under Arabic kept, and a reader is told how many they are."""
    rows = tmp_path / "rows.jsonl"
    found = aae("grade", *files(tmp_path), "--json", "--out", rows).json

    said = "2 of these items expect nothing Arabic: their calls count 1 under Arabic kept, missing and extra calls 0."
    assert (found["arabic_applicable"], found["not_arabic"]) == (6, 2)
    assert said in aae("report", rows).out
    assert said in aae("report", rows, "--format", "markdown").out


def test_many_causes_are_not_hidden():
    """The table shows the largest causes; the others stand below it with their points."""
    found = printed(print_summary, summary_with(20))

    assert "and cause_16 0.0175, cause_17 0.0175, cause_18 0.0175, cause_19 0.0175" in found
    assert "argument_0 ×9, argument_1 ×8, argument_2 ×7, argument_3 ×6, …" in found
    assert "city: expected جدة, actual Jeddah" in found
    assert "expected f, actual g" in found
    assert "and cause" not in printed(print_summary, summary_with(16))


def test_markdown_shows_all_causes():
    """Markdown has room for every cause, with its arguments and an example."""
    page = markdown(summary_with(20))

    assert page.count("| cause\\_") == 20
    names = "argument\\_0 ×9, argument\\_1 ×8, argument\\_2 ×7, argument\\_3 ×6, …"
    assert f"| cause\\_00 | 0.0175 | {names} | جدة | Jeddah |" in page


def test_arabic_is_isolated_on_a_terminal_only():
    """Right-to-left text cannot reorder its neighbours on a terminal, and a file holds no marks for that."""
    terminal, file = Console(file=io.StringIO(), force_terminal=True), Console(file=io.StringIO())

    assert safe("جدة: x", terminal) == "\u2068جدة: x\u2069"
    assert safe("جدة: x", file) == "جدة: x"
    assert safe("plain", terminal) == "plain"
    assert "expected \u2068جدة\u2069, actual Jeddah" in printed(
        print_summary, summary_with(1), force_terminal=True, color_system=None
    )


def test_words():
    """The forms that all pages share."""
    assert [number(value) for value in (None, 0, 1.0, 0.123456, 1 / 3)] == ["–", "0.0000", "1.0000", "0.1235", "0.3333"]
    assert coverage_line(1234, 5678, {}) == "1,234 of 5,678 answers judged"
    assert coverage_line(1, 1003, {"a": 1000, "b": 2}) == "1 of 1,003 answers judged; unscored: 1,000 × a, 2 × b"
    assert argument_names({}) == ""
    assert argument_names({"a": 5, "b": 4, "c": 3, "d": 2, "e": 1}) == "a ×5, b ×4, c ×3, d ×2, …"


# --- one item ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "actual", "left", "right", "named"),
    [
        ("جدة", "جده", "جد[ة]", "جد[ه]", "U+0629 ARABIC LETTER TEH MARBUTA → U+0647 ARABIC LETTER HEH"),
        ("الأحد", "\u200fالأحد", "الأحد", "[\u200f]الأحد", "nothing → U+200F RIGHT-TO-LEFT MARK"),
        ("مدرســة", "مدرسة", "مدرس[ــ]ة", "مدرسة", "U+0640 ARABIC TATWEEL U+0640 ARABIC TATWEEL → nothing"),
        ("same", "same", "same", "same", ""),
        ("جدة", "Jeddah", "جدة", "Jeddah", ""),
        ("a\x00bc", "abc", "a[\x00]bc", "abc", "U+0000 → nothing"),
        ("", "", "", "", ""),
        ("مدرس", "مدرّس", "مدرس", "مدر[◌ّ]س", "nothing → U+0651 ARABIC SHADDA"),
    ],
)
def test_letters_that_differ_are_marked(expected, actual, left, right, named):
    """Differing stretches are bracketed and named by code point; texts that share little are left alone."""
    assert compare_letters(expected, actual) == (left, right, named)


def test_long_values_are_cut():
    """A value of a megabyte is compared by its beginning, and only some differences are named."""
    left, right, named = compare_letters("اب" * 500_000, "اج" * 500_000)

    assert len(left) <= 400 * 3
    assert (left.count("["), right.count("[")) == (200, 200)
    assert named.count(";") == 5
    assert compare_letters("a" * 10**6, "b" * 10**6)[2] == ""


def shown(tmp_path, expected, calls, *extra, **more):
    """What ``aae show`` prints of one answer."""
    options = files(tmp_path, [item("س", "multi_step", "msa", expected, **more)], [{"id": "س", "calls": calls}])
    aae("grade", *options, "--out", tmp_path / "rows.jsonl")
    found = aae("show", tmp_path / "rows.jsonl", "س", *extra)
    assert (found.code, found.err) == (0, "")
    return found.out


def test_show_marks_and_names(tmp_path):
    """Expected and actual stand below each other, what differs is marked and named, and the cause is in words."""
    page = shown(
        tmp_path,
        [("f", {"city": "جدة", "day": "الأحد", "n": 2, "gone": "x", "same": "نعم", "none": None})],
        [{"function": "f", "arguments": {"city": "جده", "day": "\u200fالأحد", "n": 3.0, "same": "نعم", "more": [1]}}],
    )

    for line in (
        "س · multi_step · msa",
        "سؤال س",
        "1. expected f   actual f",
        "   ≠ city",
        "       expected جد[ة]",
        "       actual   جد[ه]",
        "       differs  U+0629 ARABIC LETTER TEH MARBUTA → U+0647 ARABIC LETTER HEH",
        "       actual   [⟨U+200F⟩]الأحد",
        "       differs  nothing → U+200F RIGHT-TO-LEFT MARK",
        "       actual   (missing)",
        "   = same: نعم",
        "   + more: [1] (not expected, ignored)",
    ):
        assert line in page.splitlines()
    for cause in ("spelling: ", "invisible_character: ", "wrong_value: ", "missing: "):
        assert re.search(rf"^       −0\.\d{{4}} {cause}\w+", page, re.MULTILINE)


def test_show_aligns_calls(tmp_path):
    """Calls that were not made, nobody asked for or could not be read are shown as such, with what was sent."""
    page = shown(
        tmp_path,
        [("f", {"n": None, "x": 1}), ("g", {})],
        [{"function": "f", "arguments": "{broken"}, {"function": "h", "arguments": {"y": "ي"}}, 5, {"function": "k"}],
    )

    for line in (
        "1. expected f   actual f",
        "   sent: {broken",
        "2. expected g   actual h",
        "   + y: ي (not expected, ignored)",
        "3. expected (nothing expected)   actual (could not be read)",
        "   sent: 5",
        "4. expected (nothing expected)   actual k",
    ):
        assert line in page.splitlines()
    assert re.search(r"−0\.\d{4} malformed_arguments: ", page)
    assert re.search(r"−0\.\d{4} wrong_function: ", page)
    assert page.count(" extra_call ×2: ") == 1
    missing = shown(tmp_path, [("f", {"x": "جدة"})], [])
    assert "1. expected f   actual (not called)" in missing
    assert " no_call: " in missing


def test_show_pairs_as_it_was_graded(tmp_path):
    """Where the order is free, each expected call stands beside the one that it was graded with."""
    calls = [{"function": "g", "arguments": {"x": "س"}}, {"function": "f", "arguments": {}}]

    page = shown(tmp_path, [("f", {}), ("g", {"x": "س"})], calls, ordered=False)

    assert "1. expected f   actual f" in page
    assert "2. expected g   actual g" in page
    assert "   = x: س" in page


def test_show_surplus_arguments_of_a_surplus_call(tmp_path):
    """Arguments of a call that nobody asked for are listed without a remark."""
    page = shown(tmp_path, [], [{"function": "f", "arguments": {"x": "س"}}])

    assert "   + x: س\n" in page
    assert "1. expected (nothing expected)   actual f" in page


def test_show_calls_that_do_not_belong_together(tmp_path):
    """Where the order explains the loss, the arguments of strangers are not compared letter by letter."""
    calls = [{"function": "g", "arguments": {"x": "س"}}, {"function": "f", "arguments": {"x": "ص"}}]

    page = shown(tmp_path, [("f", {"x": "ص"}), ("g", {"x": "س"})], calls)

    assert page.count(" wrong_order: ") == 2
    assert '       expected {"x":"ص"}\n       actual   {"x":"س"}\n' in page
    assert "≠" not in page


def test_show_what_counts_and_what_does_not(tmp_path):
    """Another accepted value, an answer of the simulated tool and preservation that is not applicable are named."""
    call = {"function": "f", "arguments": {"x": "one", "y": "two"}, "accept": {"x": ["1"]}, "result": {"خبر": "تم"}}

    page = shown(tmp_path, [call], [{"function": "f", "arguments": {"x": "1", "y": "two"}}])

    for line in ("   = x: 1 (accepted)", "   = y: two", '   the tool answers: {"خبر":"تم"}'):
        assert line in page.splitlines()
    assert "Score 1.0000: function 1.0000, arguments 1.0000, Arabic kept not applicable\n" in page


def test_show_does_not_print_for_ever(tmp_path):
    """Of very many calls the first are shown, and how many more there are."""
    page = shown(tmp_path, [("f", {})], [{"function": "f"}] * 1200)

    assert page.count(". expected ") == 50
    assert page.endswith("\n… and 1,150 more calls.\n")


def test_show_epochs(tmp_path):
    """All answers to an item are shown, or the one of an epoch."""
    replies = [{"id": "بسيط", "epoch": epoch, "calls": []} for epoch in (4, 2)]
    aae("grade", *files(tmp_path, ITEMS, replies), "--out", tmp_path / "rows.jsonl")
    show = ("show", tmp_path / "rows.jsonl", "بسيط")

    assert re.findall(r"epoch \d", aae(*show).out) == ["epoch 4", "epoch 2"]
    assert re.findall(r"epoch \d", aae(*show, "--epoch", 2).out) == ["epoch 2"]
    rows = [json.loads(line) for line in aae(*show, "--json").out.splitlines()]
    assert [row["epoch"] for row in rows] == [4, 2]
    missing = aae(*show, "--epoch", 0)
    assert (missing.code, missing.out) == (2, "")
    assert "holds no item 'بسيط' in epoch 0." in missing.err


# --- known faults --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["cause", "rules"])
def test_hostile_rows_reach_no_terminal(tmp_path, field):
    """Rows come from files as well: their causes and rules are as foreign as their values."""
    rules = "\x1b[32m" if field == "rules" else "canonical"
    row = {
        "item_id": "a", "category": "multi_step", "rules": "canonical-1", "total": 0.6, "function_selection": 0.0,
        "argument_accuracy": 1.0, "arabic_preservation": 1.0, "expected_calls": [{"function": "f"}],
        "losses": [{"cause": "\x1b[31m" if field == "cause" else "no_call", "axis": "function_selection",
                    "points": 0.4, "call": 0}],
        "signature": f"items:s@0|n:1|rules:{rules}-1|format:auto|v:0",
    }  # fmt: skip
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row), encoding="utf-8")

    assert dangerous(aae("report", path).out + aae("show", path, "a").out) == set()


def right_answers(count: int) -> tuple[list[dict], list[dict]]:
    """Items of one category, and right answers to them."""
    items = [item(f"i{number}", "multi_step", "msa", [("book_table", {"place": "جدة"})]) for number in range(count)]
    return items, [{"id": row["id"], "calls": row["expected_calls"]} for row in items]


def test_failures_counted_as_wrong(tmp_path):
    """The worst case counts failures; items without a reply are none, and the sentence says so."""
    items, right = right_answers(10)
    failed = {"id": "i9", "error": "timeout"}

    some = aae("grade", *files(tmp_path, items, [right[0], failed]), "--json").json
    said = aae("grade", *files(tmp_path, items, [right[0], failed])).out
    said_of_all = aae("grade", *files(tmp_path, items, [*right[:9], failed])).out

    assert (some["overall"], some["worst_case"]) == (1.0, pytest.approx(0.5))
    assert "with failures counted as wrong the score is 0.5000" in " ".join(said.split())
    assert "with these counted as wrong the score is 0.9000" in " ".join(said_of_all.split())


def test_an_epoch_without_a_row_is_missing(tmp_path):
    """Rows that hold fewer epochs of one item than of another are incomplete in every command."""
    items, right = right_answers(2)
    replies = [reply | {"epoch": epoch} for epoch in range(2) for reply in right][:3]
    for name in ("rows.jsonl", "more.jsonl"):
        aae("grade", *files(tmp_path, items, replies), "--out", tmp_path / name)

    report = aae("report", tmp_path / "rows.jsonl", "--json").json
    compared = aae("compare", tmp_path / "rows.jsonl", tmp_path / "more.jsonl")
    ranked = aae("leaderboard", tmp_path / "rows.jsonl", tmp_path / "more.jsonl", "--json").json

    assert report["coverage"] == {"scored": 3, "unscored": 1, "total": 4}
    assert compared.code == 3
    assert [ranked["entries"][0]["coverage"][name] for name in ("scored", "total")] == [3, 4]
