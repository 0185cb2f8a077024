"""``aae compare``: what it prints, what it refuses, and how it ends."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console

from arabic_agent_eval.comparison import compare, compare_all
from arabic_agent_eval.reports.comparison import letter, markdown_comparisons, print_comparisons
from tests.answers import answer, column, scores
from tests.pages import DOCS
from tests.test_cli import aae, files, item, write
from tests.test_docs import MORE, blocks
from tests.test_published import PUBLISHED, RUNS
from tests.test_reports import HOSTILE, cells, dangerous, hostile_files

ITEMS = [
    item(f"i{n}", "multi_step" if n % 2 else "tool_selection", "msa" if n % 3 else "gulf",
         [("f", {"place": "جدة", "day": "غدا"})], intent=f"said {n}")
    for n in range(12)
]  # fmt: skip
RIGHT, WRONG = [{"function": "f", "arguments": {"place": "جدة", "day": "غدا"}}], []
NEAR = [{"function": "f", "arguments": {"place": "جده", "day": "غدا"}}]


def rows_of(folder: Path, name: str, answers: list, items: list = ITEMS, *options: object) -> Path:
    """Graded rows; an answer is a list of calls, or a text for a failure."""
    place, rows = folder / name, folder / f"{name}.jsonl"
    place.mkdir()
    replies = [
        {"id": row["id"], "error": given} if isinstance(given, str) else {"id": row["id"], "calls": given}
        for row, given in zip(items, answers, strict=False)
    ]
    aae("grade", *files(place, items, replies), "--out", rows, *options)
    return rows


@pytest.fixture
def pair(tmp_path):
    """A good run and one that fails in seven items, in ways that lose unequally."""
    good = rows_of(tmp_path, "good", [RIGHT] * 12)
    bad = rows_of(tmp_path, "bad", [WRONG] * 6 + [NEAR] + [RIGHT] * 5)
    return good, bad


# --- how it ends ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("margin", "turned", "code"),
    [((), False, 0), (("0",), False, 1), (("0.1",), False, 1), (("0.9",), False, 0), (("0",), True, 0)],
)
def test_a_gate(pair, margin, turned, code):
    """--fail-if-worse fails when the whole interval is below minus the margin, and never a better run."""
    runs = reversed(pair) if turned else pair
    options = ("--fail-if-worse", *margin) if margin else ()

    found = aae("compare", *runs, *options, "--json")

    [comparison] = found.json["comparisons"]
    assert found.code == code
    assert comparison["overall"]["verdict"] == ("better" if turned else "worse")
    assert ("is worse than" in found.err) is (code == 1)
    if margin and not turned:
        assert (comparison["overall"]["high"] < -float(margin[0])) is (code == 1)


def test_a_gate_that_nothing_shows(tmp_path, pair):
    """A loss that chance explains does not fail the gate."""
    almost = rows_of(tmp_path, "almost", [WRONG] + [RIGHT] * 11)

    found = aae("compare", pair[0], almost, "--fail-if-worse", 0, "--json")

    assert found.code == 0
    assert found.json["comparisons"][0]["overall"]["difference"] < 0


def test_a_gate_looks_at_every_run(tmp_path, pair):
    """One of several later runs is enough to fail it; the message names which."""
    good, bad = pair
    same = rows_of(tmp_path, "same", [RIGHT] * 12)

    found = aae("compare", good, same, bad, "--fail-if-worse", 0)

    assert found.code == 1
    assert f"{bad} is worse than {good}" in found.err


def test_a_gate_without_an_overall_score(tmp_path, pair):
    """Where no category has a weight, the gate cannot be met."""
    weights = write(tmp_path / "weights.json", [{"multi_step": 0, "tool_selection": 0}])

    found = aae("compare", *pair, "--categories", weights, "--fail-if-worse", 0.5)

    assert found.code == 1
    assert "no overall score" in found.err
    assert "share no judged item of a category with a weight" in found.out
    assert aae("compare", *pair, "--categories", weights).code == 0


@pytest.mark.parametrize("margin", ["nan", "-0.1", "1.5", "x"])
def test_margins_that_are_none(pair, margin):
    """A margin is a number from 0 to 1."""
    assert aae("compare", *pair, "--fail-if-worse", margin).code == 2


@pytest.mark.parametrize("answers", [[RIGHT] * 11 + ["HTTP 503"], [RIGHT] * 11])
def test_answers_that_are_missing(tmp_path, pair, answers):
    """What one side was not judged on is left out and said, and the code is 3: after a failure and without a reply."""
    partial = rows_of(tmp_path, "partial", answers)

    found = aae("compare", pair[0], partial, "--fail-if-worse", 0)

    assert found.code == 3
    assert "Some answers were not judged on both sides" in found.err
    assert "11 items compared of 12; the others were not judged on both sides." in found.out
    assert "B has 1 answers that were not judged" in found.out


def test_what_does_not_compare(tmp_path, pair):
    """Other items, other rules, a missing file and a single run are refused with code 2."""
    fewer = rows_of(tmp_path, "fewer", [RIGHT] * 9, ITEMS[:9])
    old = rows_of(tmp_path, "old", [RIGHT] * 12, ITEMS, "--rules", "v0.1")

    refused = [
        (("compare", pair[0], fewer), "the items differ: items@"),
        (("compare", pair[0], old), "canonical-1"),
        (("compare", pair[0], old, "--common"), "v0.1-1"),
        (("compare", pair[0], tmp_path / "gone.jsonl"), "gone.jsonl"),
        (("compare", pair[0]), "two runs or more"),
        (("compare",), ""),
    ]
    for arguments, said in refused:
        found = aae(*arguments)
        assert (found.code, found.out) == (2, "")
        assert said in found.err


def test_common_items(tmp_path, pair):
    """With --common the items that both hold are compared, and the page says what is left."""
    fewer = rows_of(tmp_path, "fewer", [RIGHT] * 9, ITEMS[:9])

    found = aae("compare", pair[1], fewer, "--common")

    assert found.code == 0
    assert "9 items compared." in found.out
    assert "3 items of A are not compared: the other side does not hold them." in found.out
    assert "those with the same id and category are compared" in found.out


# --- what it prints ------------------------------------------------------------------------------------------


def test_one_glance(pair):
    """The line after the list of runs says who is better, by how much and how sure that is; then come tables."""
    found = aae("compare", *pair)

    [line] = [line for line in found.out.splitlines() if "than A" in line]
    assert re.fullmatch(
        r"B is worse than A: 0\.\d{4} against 1\.0000, −0\.\d{4}, 95 %: −0\.\d+ to −0\.\d+; p = 0\.0156\.", line
    )
    assert "B is better in 0, as good in 5, worse in 7." in found.out
    for head in ("Category", "Dialect", "Where B lost most", "p (Holm)", "A true difference of"):
        assert head in found.out
    assert "gained most" not in found.out
    assert "cannot be told apart" in aae("compare", pair[0], pair[0]).out


def test_json(pair):
    """JSON holds what the library computes, nothing more and nothing less."""
    found = aae("compare", *pair, pair[0], "--json").json

    assert set(found) == {"comparisons"}
    first, second = found["comparisons"]
    assert first["overall"]["adjusted"] == pytest.approx(2 / 64)
    assert [change["item_id"] for change in first["regressed"]] == ["i0", "i1", "i2", "i3", "i4"]
    assert second["overall"]["p_value"] == 1
    listed = aae("compare", *pair, "--json", "--show", 7).json["comparisons"][0]["regressed"]
    assert [change["item_id"] for change in listed] == ["i0", "i1", "i2", "i3", "i4", "i5", "i6"]


def test_several_runs(tmp_path, pair):
    """Each later run has its letter, its line and its tables; the first is read once and stands for A."""
    third = rows_of(tmp_path, "third", [RIGHT] * 11 + [NEAR])

    terminal = aae("compare", *pair, third, "--show", 1).out
    page = aae("compare", *pair, third, "--show", 1, "--format", "markdown").out

    for shown in (terminal, page):
        assert shown.count("(Holm).") == 2
        assert shown.index("C and A cannot") < shown.index("B and A") < shown.rindex("C and A")
        assert "i0 · tool" in shown
        assert "i11 · multi" in shown
    assert page.count("\n## ") == 2


@pytest.mark.parametrize("layout", ["terminal", "markdown"])
def test_side_by_side(tmp_path, layout):
    """--show prints what was asked and expected, and what both answered, with causes; the largest change first."""
    a = rows_of(tmp_path, "a", [RIGHT] * 12)
    said = [[{"function": "f", "arguments": "["}], [{"function": "f", "arguments": {}}] * 12]
    b = rows_of(tmp_path, "b", [WRONG, NEAR, *said, *[RIGHT] * 8])

    out = aae("compare", a, b, "--show", 4, "--format", layout).out

    out = re.sub(r"\\(.)", r"\1", out)
    shown = out[out.index("i0 · tool_selection · gulf: A 1.0000, B 0.0000 (−1.0000)") :]
    order = [shown.index(f"{name} · ") for name in ("i0", "i3", "i2", "i1")]
    assert order == sorted(order)
    for text in ("سؤال i0", 'f(place="جدة", day="غدا")', "(no call)", "− no_call", "(could not be read)",
                 "… and 2 more calls", "− spelling"):  # fmt: skip
        assert text in shown
    assert "epoch" not in shown


def test_side_by_side_of_epochs(tmp_path):
    """Of an item asked several times the first judged answer is shown, and the page says which that is."""
    items = ITEMS[:1]
    rows = {}
    for name, given in (("a", [RIGHT, RIGHT, RIGHT]), ("b", ["HTTP 500", WRONG, RIGHT])):
        place = tmp_path / name
        place.mkdir()
        replies = [
            {"id": "i0", "epoch": n} | ({"error": one} if isinstance(one, str) else {"calls": one})
            for n, one in reversed(list(enumerate(given)))
        ]
        rows[name] = tmp_path / f"{name}.jsonl"
        aae("grade", *files(place, items, replies), "--out", rows[name])

    found = aae("compare", rows["a"], rows["b"], "--show", 1)

    assert found.code == 3
    assert "A 1.0000, B 0.5000 (−0.5000); shown: epoch 0 of A, 1 of B" in found.out


def test_words_instead_of_calls(tmp_path):
    """Where a model said something instead of calling, that is shown; a long call is cut."""
    long = [{"function": "f", "arguments": {"place": "س" * 1000}}]
    a = rows_of(tmp_path, "a", [long], ITEMS[:1])
    place = tmp_path / "b"
    place.mkdir()
    b = tmp_path / "b.jsonl"
    reply = {"id": "i0", "response": {"choices": [{"message": {"role": "assistant", "content": "لا أستطيع"}}]}}
    aae("grade", *files(place, ITEMS[:1], [reply]), "--out", b)

    out = aae("compare", a, b, "--show", 1).out

    assert "said: لا أستطيع" in out
    assert "س…" in re.sub(r"\s+", "", out)


def test_run_folders(tmp_path):
    """Run folders compare by the rules that are asked for, with themselves and with their rows."""
    folder, rows = tmp_path / "run", tmp_path / "rows.jsonl"
    aae("run", "--items", "starter", "--limit", 8, "--run", folder, "--out", rows)

    both = aae("compare", folder, folder, "--rules", "v0.1", "--show", 2)
    mixed = aae("compare", folder, rows, "--json")
    refused = aae("compare", folder, rows, "--rules", "v0.1")

    assert (both.code, mixed.code, refused.code) == (0, 0, 2)
    assert "baseline" in both.out
    assert "rules:v0.1-1" not in mixed.out
    assert mixed.json["comparisons"][0]["overall"]["p_value"] == 1


def test_a_narrow_terminal():
    """Where the whole table has no room, scores and counts are left out and no number is cut."""
    found = compare_all([column([0.5] * 8), column([1.0] * 6 + [0.5] * 2)])
    console = Console(file=io.StringIO(), width=80)

    print_comparisons(found, console)

    shown = console.file.getvalue()
    assert "won/same/lost" not in shown
    assert "+0.3750" in shown
    assert "…" not in shown


def test_intents_are_counted():
    """Where items share an intent, the page says how many independent groups they are."""
    a, b = (scores(*(answer(f"i{n}", total, intent=f"said {n // 2}") for n in range(8))) for total in (0.0, 1.0))

    assert "4 independent groups" in markdown_comparisons(compare_all([a, b]))


def test_runs_without_one_score_of_the_first():
    """With --common A may have another score against each run; then the list of runs shows none."""
    a = scores(answer("x", 1.0), answer("y", 0.0))
    pages = compare_all([a, scores(answer("x", 0.5), name="b"), scores(answer("y", 0.5), name="c")], common=True)

    page = markdown_comparisons(pages)

    assert "| A | model | – | 1 | model.jsonl |" in page
    assert "0.5000 against 1.0000" in page
    assert "0.5000 against 0.0000" in page


def test_letters():
    """Runs beyond the alphabet have numbers."""
    assert [letter(0), letter(25), letter(26)] == ["A", "Z", "#27"]


# --- hostile text --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_hostile_is_printed(tmp_path, text):
    """Names, ids, questions and calls from files reach neither the terminal nor Markdown as anything but text."""
    options, _ = hostile_files(tmp_path, text)
    rows, other = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    aae("grade", *options, "--out", rows)
    empty = (
        json.dumps({"id": "id " + text, "calls": []}) + "\n" + json.dumps({"id": "id " + text, "epoch": 1, "calls": []})
    )
    (tmp_path / "replies.jsonl").write_text(empty, encoding="utf-8")
    aae("grade", *options, "--out", other)

    terminal = aae("compare", other, rows, *options[4:], "--show", 3)
    page = aae("compare", other, rows, *options[4:], "--show", 3, "--format", "markdown")

    assert (terminal.code, page.code) == (3, 3)
    assert dangerous(terminal.out) == dangerous(page.out) == set()
    assert re.findall(r"<(?!br>)|(?<!\\)[][_~!]|\]\(", page.out) == []
    heads = [line for line in page.out.splitlines() if line.startswith("#")]
    assert len(heads) == 1 + page.out.count("### ")
    assert {len(cells(line)) for line in page.out.splitlines() if line.startswith("|")} <= {3, 5, 6, 9}


def test_hostile_names():
    """The name of a model and of a file are text too."""
    found = [compare(column([1.0, 0.5], name), column([0.5, 0.5], name)) for name in HOSTILE]
    console = Console(file=io.StringIO(), width=120)

    for one in found:
        print_comparisons([one], console)
        assert dangerous(markdown_comparisons([one])) == set()
    assert dangerous(console.file.getvalue()) == set()


# --- the published runs --------------------------------------------------------------------------------------


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the shared data is not here")
def test_the_published_runs(tmp_path, monkeypatch):
    """The published runs compare at once, one of them is worse beyond chance, and the page shows two as they are."""
    monkeypatch.chdir(tmp_path)  # the tables break long paths
    rows = []
    for name in RUNS:
        rows.append(Path(f"{name}.jsonl"))
        options = ("--items", PUBLISHED / "items.jsonl", "--replies", PUBLISHED / "runs" / f"{name}.json")
        aae("grade", *options, "--out", rows[-1])

    found = aae("compare", *rows, "--json", "--fail-if-worse", 0)

    verdicts = {one["b"]["name"]: one["overall"]["verdict"] for one in found.json["comparisons"]}
    assert verdicts == {"glm-5.1": "unclear", "gpt-5.4": "worse", "qwen3.6-plus": "unclear"}
    assert found.code == 1
    assert "gpt-5.4.jsonl is worse" in found.err
    pair = aae("compare", *(rows[RUNS.index(name)] for name in ("glm-5.1", "qwen3.6-plus"))).out
    [(_, shown)] = blocks(DOCS / "comparing.md", "text")
    lines = {" ".join(line.split()) for line in pair.splitlines()}
    assert [line for line in shown.splitlines() if line != MORE and " ".join(line.split()) not in lines] == []


# --- matched by intent ---------------------------------------------------------------------------------------


def test_controls_are_matched_by_intent(tmp_path):
    """Each item stands against the mean of the other's items with its intent and category; the rest is left out."""
    spoken = [
        item(f"{name}-{dialect}", "multi_step", dialect, [("f", {"place": "جدة", "day": "غدا"})], intent=name)
        for name in ("trip", "visit", "alone")
        for dialect in ("msa", "gulf")
    ]
    control = [
        item(f"{name}-en", "multi_step", "english", [("f", {"place": "جدة", "day": "غدا"})], intent=name)
        for name in ("trip", "visit", "other")
    ]
    a = rows_of(tmp_path, "arabic", [RIGHT, WRONG, RIGHT, RIGHT, WRONG, WRONG], spoken)
    b = rows_of(tmp_path, "english", [RIGHT, RIGHT, WRONG], control)

    done = aae("compare", a, b, "--by-intent", "--json")

    [found] = json.loads(done.out)["comparisons"]
    assert done.code == 0, done.err
    assert (found["compared"], found["overall"]["difference"]) == (4, pytest.approx(0.25))
    assert {name: group["difference"] for name, group in found["dialects"].items()} == {
        "msa": 0.0, "gulf": pytest.approx(0.5)
    }  # fmt: skip


def test_controls_get_nothing_for_expecting_no_arabic(tmp_path):
    """Where only one side expects anything Arabic its axis is left out on both, so the same mistake costs the same."""
    spoken = [item("trip-msa", "multi_step", "msa", [("f", {"place": "جدة"})], intent="trip")]
    control = [item("trip-en", "multi_step", "english", [("f", {"place": "Jeddah"})], intent="trip")]
    wrong = [{"function": "f", "arguments": {"place": "x"}}]
    a, b = rows_of(tmp_path, "arabic", [wrong], spoken), rows_of(tmp_path, "english", [wrong], control)

    alone = [aae("report", path, "--json").json["overall"] for path in (a, b)]
    [found] = json.loads(aae("compare", a, b, "--by-intent", "--json").out)["comparisons"]

    assert alone == [pytest.approx(0.4), pytest.approx(0.65)]
    assert (found["overall"]["a"], found["overall"]["b"]) == (pytest.approx(0.4 / 0.75), pytest.approx(0.4 / 0.75))
    assert "In 1 of them only one side expects anything Arabic" in found["notes"][-1]
    assert "those with the same intent and category are compared" in found["notes"][0]


def test_several_controls_count_with_their_mean(tmp_path):
    """Two controls of one intent stand for it with the mean of both, whatever their order."""
    spoken = [item("trip-msa", "multi_step", "msa", [("f", {"place": "جدة", "day": "غدا"})], intent="trip")]
    control = [
        item(f"trip-{n}", "multi_step", "english", [("f", {"place": "جدة", "day": "غدا"})], intent="trip") for n in "ab"
    ]
    a = rows_of(tmp_path, "arabic", [RIGHT], spoken)
    for name, answers in (("first", [RIGHT, WRONG]), ("second", [WRONG, RIGHT])):
        done = aae("compare", a, rows_of(tmp_path, name, answers, control), "--by-intent", "--json")
        assert json.loads(done.out)["comparisons"][0]["overall"]["difference"] == -0.5


def test_what_cannot_be_matched_by_intent(tmp_path, pair):
    """Sets without a common intent, and answers side by side, are refused with a sentence."""
    apart = rows_of(tmp_path, "apart", [RIGHT], [item("x", "multi_step", "msa", [("f", {})], intent="unheard")])

    none, shown = aae("compare", pair[0], apart, "--by-intent"), aae("compare", *pair, "--by-intent", "--show", 1)

    assert (none.code, shown.code) == (2, 2)
    assert "have no intent in common" in none.err
    assert "leave it out with --by-intent" in shown.err
