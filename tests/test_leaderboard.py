"""``aae leaderboard``: ranks and gaps by hand, every format, hostile names, and what is refused."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import msgspec
import pytest
from rich.console import Console

from arabic_agent_eval.errors import UnknownCategory, UsageError
from arabic_agent_eval.items import Category
from arabic_agent_eval.leaderboard import dialect_gap, leaderboard
from arabic_agent_eval.reports.leaderboard import (
    csv_leaderboard,
    harmless,
    json_leaderboard,
    markdown_leaderboard,
    print_leaderboard,
)
from arabic_agent_eval.statistics import paired_difference
from arabic_agent_eval.uncertainty import intervals
from tests.answers import SIGNATURE, answer, column, scores
from tests.test_cli import aae, write
from tests.test_compare_command import ITEMS, NEAR, RIGHT, WRONG, rows_of
from tests.test_reports import HOSTILE, cells, dangerous

FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "＝1+1", '=HYPERLINK("http://x";"y")', "a,b\n=1"]
STEPS = [0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5]


def ranks(found):
    """Each model's name and rank, in the order of the table."""
    return [(entry.name, entry.rank) for entry in found.entries]


def printed(found, width=120):
    """What the terminal shows."""
    console = Console(file=io.StringIO(), width=width)
    print_leaderboard(found, console)
    return console.file.getvalue()


def table_of(found):
    """The CSV as a list of objects."""
    return list(csv.DictReader(io.StringIO(csv_leaderboard(found), newline="")))


# --- ranks ---------------------------------------------------------------------------------------------------


def test_clear_winners_and_ties():
    """One that loses on every item is below both of those that differ on two items only, which share the first rank."""
    low = column([1 - step for step in STEPS], "low")
    top, near = column([1.0] * 10, "top"), column([0.9, 0.95] + [1.0] * 8, "near")

    found = leaderboard([low, near, top])

    assert ranks(found) == [("top", 1), ("near", 1), ("low", 3)]
    assert found.entries[2].overall.score == pytest.approx(0.725)
    assert found.complete


def test_a_rank_counts_those_that_are_better():
    """Three models that differ on every item have ranks 1, 2 and 3, whatever their order on the command line."""
    runs = [column([1 - times * step for step in STEPS], f"m{times}") for times in (2, 0, 1)]

    assert ranks(leaderboard(runs)) == [("m0", 1), ("m1", 2), ("m2", 3)]
    assert ranks(leaderboard(runs[::-1])) == [("m0", 1), ("m1", 2), ("m2", 3)]


def test_pairs_are_tested_together():
    """A p-value of 1/32 parts two models; with a third there are three pairs, and Holm makes it 3/32."""
    low, top = column([1 - step for step in STEPS[:6]], "low"), column([1.0] * 6, "top")
    between = column([1 - step / 2 for step in STEPS[:6]], "between")

    assert ranks(leaderboard([low, top])) == [("top", 1), ("low", 2)]
    assert ranks(leaderboard([low, top, between])) == [("top", 1), ("between", 1), ("low", 1)]


def test_a_small_p_value_is_not_enough():
    """Where all items changed by the same, the interval holds 0 although the p-value is small: no verdict, one rank."""
    found = leaderboard([column([0.9] * 10, "low"), column([1.0] * 10, "top")])

    assert ranks(found) == [("top", 1), ("low", 1)]


def test_being_better_is_no_order():
    """Two that cannot be told apart have different ranks where only one of them is beaten by a third."""
    top, low = column([1.0] * 10, "top"), column([1 - step for step in STEPS], "low")
    wild = column([0.0, 0.0, 0.0, *[1.0] * 7], "wild")

    assert ranks(leaderboard([top, low, wild])) == [("top", 1), ("wild", 1), ("low", 2)]


def test_without_an_overall_score():
    """Where no category has a weight, there is no score and no rank, and every format says so."""
    runs = [column([1.0, 0.5], name) for name in ("b", "a")]

    found = leaderboard(runs, categories={"multi_step": Category("multi_step", 0.0)})

    assert ranks(found) == [("a", None), ("b", None)]
    assert "| – | a | – | – | 2/2 |" in markdown_leaderboard(found)
    assert [row["rank"] + row["score"] for row in table_of(found)] == ["", ""]


def test_scores_and_intervals_are_those_of_a_report():
    """The overall score weighs categories, groups are plain means, and intervals are those of a report."""
    one = scores(answer("a", 1.0, dialect=None), *(answer(f"b{n}", n / 4, category="tool_selection") for n in range(4)))

    entry = leaderboard([one, one]).entries[0]

    assert entry.overall.score == pytest.approx((0.2 * 1 + 0.15 * 0.375) / 0.35)
    assert entry.categories["tool_selection"].score == pytest.approx(0.375)
    assert (entry.dialects["msa"].n, entry.dialects["(none)"].n, entry.overall.n) == (4, 1, 5)
    ends = intervals(one)
    assert (entry.overall.low, entry.overall.high) == ends.overall
    assert {name: (part.low, part.high) for name, part in entry.categories.items()} == ends.categories


def test_known_groups_keep_their_order():
    """Columns stand in the order of every report, declared categories after the canonical ones."""
    one = scores(answer("a", 1.0, category="own", dialect="gulf"), answer("b", 1.0), answer("c", 1.0, dialect="x"))

    found = leaderboard([one, one], categories={"own": Category("own", 0.5)})

    assert found.categories == ["multi_step", "own"]
    assert found.dialects == ["msa", "gulf", "x"]
    with pytest.raises(UnknownCategory):
        leaderboard([one, one])


# --- dialects ------------------------------------------------------------------------------------------------


def spoken(dialect, totals, first=0):
    """One item an intent."""
    return [
        answer(f"{dialect}{n}", total, dialect=dialect, intent=f"said {n}") for n, total in enumerate(totals, first)
    ]


def test_the_gap_by_hand():
    """Egyptian loses 0.05 to 0.35 on seven shared intents, Gulf 0.1 on one: the worst is Egyptian, at −0.2."""
    items = spoken("msa", [1.0] * 8) + spoken("gulf", [0.9])
    items += spoken("egyptian", [1 - step for step in STEPS[:7]]) + spoken("egyptian", [0.0], first=50)

    gap = dialect_gap(items)

    expected = paired_difference([1.0] * 7, [1 - step for step in STEPS[:7]])
    assert (gap.dialect, gap.intents) == ("egyptian", 7)
    assert gap.difference == pytest.approx(-0.2)
    assert (gap.low, gap.high, gap.p_value) == (expected.low, expected.high, 2 / 2**7)
    assert gap.high < 0


def test_an_intent_counts_once():
    """Two items that say the same in a dialect are one observation, with their mean."""
    items = [*spoken("msa", [1.0, 0.5]), *spoken("gulf", [0.5, 0.5]), answer("more", 0.0, dialect="gulf",
             intent="said 0")]  # fmt: skip

    gap = dialect_gap(items)

    assert (gap.intents, gap.difference) == (2, pytest.approx(-0.375))


@pytest.mark.parametrize(
    "items",
    [
        [],
        spoken("msa", [1.0]),
        spoken("gulf", [1.0]),
        spoken("msa", [1.0]) + spoken("gulf", [0.0], first=1),
        [answer("a", 1.0), answer("b", 0.0, dialect="gulf")],
        [*spoken("msa", [1.0]), answer("a", 0.0, dialect=None, intent="said 0")],
    ],
)
def test_no_gap(items):
    """Where nothing was said both in MSA and in a dialect, there is no gap."""
    assert dialect_gap(items) is None


def test_gaps_are_shown():
    """The gap stands in every format, and a dash or an empty cell where there is none."""
    items = [*spoken("msa", [1.0, 1.0]), *spoken("gulf", [0.5, 0.75])]
    shown, hidden = leaderboard([scores(*items)] * 2), leaderboard([column([1.0])] * 2)

    assert "| gulf | −0.3750 | −1.00 to +1.00 | 2 |" in markdown_leaderboard(shown)
    assert "| – | – | – | – |" in markdown_leaderboard(hidden)
    assert "−0.3750" in printed(shown)
    assert [(row["gap dialect"], row["gap difference"]) for row in table_of(shown)] == [("gulf", "-0.375")] * 2
    assert [row["gap dialect"] for row in table_of(hidden)] == ["", ""]


# --- hostile names -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*HOSTILE, *FORMULAS, "lone \udc80"])
def test_hostile_names(name):
    """A name is text in every format: no control characters, no further cells or lines, no formula."""
    found = leaderboard([column([1.0, 0.5], name), column([0.5, 0.5], name)])

    page, sheet = markdown_leaderboard(found), csv_leaderboard(found)
    for text in (page, sheet, printed(found)):
        assert dangerous(text) == set()
        assert text.encode("utf-8")
    assert {len(cells(line)) for line in page.splitlines() if line.startswith("|")} <= {10, 2, 6}
    rows = list(csv.reader(io.StringIO(sheet, newline="")))
    assert [len(row) for row in rows] == [len(rows[0])] * 3
    assert len(sheet.splitlines()) == 3
    assert not [cell for row in rows for cell in row if cell[:1] in tuple("=+-@＝＋－＠\t\r") and not number(cell)]
    assert len(json.loads(json_leaderboard(found))["entries"]) == 2


def number(cell):
    """Whether a cell is a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return cell[0] != "+"


@pytest.mark.parametrize(
    ("text", "cell"),
    [("=1", "'=1"), ("-1", "'-1"), ("＝1", "'＝1"), ("\t=1", "'⟨U+0009⟩=1"), ("a=1", "a=1"), ("", ""), ("جدة", "جدة")],
)
def test_cells(text, cell):
    """A text that a spreadsheet would compute begins with an apostrophe; others stand as they are."""
    assert harmless(text) == cell


def test_hostile_categories():
    """Names of categories and dialects are made harmless too, in heads and in cells."""
    for name in [*HOSTILE, *FORMULAS]:
        items = [answer("a", 1.0, category=name, intent="x"), answer("b", 0.5, category=name, dialect=name, intent="x")]
        found = leaderboard([scores(*items)] * 2, categories={name: Category(name, 1.0)})

        for text in (markdown_leaderboard(found), csv_leaderboard(found), printed(found)):
            assert dangerous(text) == set()
        assert {row["gap dialect"] for row in table_of(found)} == {harmless(name)}


def test_six_categories_fit():
    """On 120 columns no number of a full table is cut."""
    from arabic_agent_eval.items import CATEGORIES, DIALECTS

    items = [
        answer(f"{name}{place}", 0.1234, category=name, dialect=dialect, intent="x")
        for name in CATEGORIES
        for place, dialect in enumerate(DIALECTS)
    ]
    shown = printed(leaderboard([scores(*items, name="provider/a-model-2026")] * 2))

    assert "…" not in shown
    assert shown.count("0.1234") == 2 * (1 + len(CATEGORIES) + len(DIALECTS))


# --- the command ---------------------------------------------------------------------------------------------


@pytest.fixture
def runs(tmp_path):
    """A good run and one that fails in seven items."""
    good = rows_of(tmp_path, "good", [RIGHT] * 12)
    bad = rows_of(tmp_path, "bad", [WRONG] * 6 + [NEAR] + [RIGHT] * 5)
    return bad, good


def test_every_format(runs):
    """The four formats say the same, and --json is --format json."""
    plain, page, sheet, whole = (
        aae("leaderboard", *runs, "--format", layout) for layout in ("terminal", "markdown", "csv", "json")
    )

    assert [found.code for found in (plain, page, sheet, whole)] == [0] * 4
    assert [(entry["name"], entry["rank"]) for entry in whole.json["entries"]] == [("good", 1), ("bad", 2)]
    rows = list(csv.DictReader(io.StringIO(sheet.out)))
    assert [(row["rank"], row["model"], row["judged"]) for row in rows] == [("1", "good", "12"), ("2", "bad", "12")]
    score = whole.json["entries"][1]["overall"]["score"]
    assert float(rows[1]["score"]) == pytest.approx(score, abs=1e-6)
    assert f"| 2 | bad | {score:.4f} |" in page.out
    assert f"{score:.4f}" in plain.out
    assert aae("leaderboard", *runs, "--json").out == whole.out
    assert whole.json["entries"][1]["overall"]["score"] == pytest.approx(
        aae("report", runs[0], "--json").json["overall"]
    )


def test_a_mark_for_excel(runs):
    """--excel puts a byte order mark before the CSV, and nothing else; with other formats it is a mistake."""
    usual, marked = (aae("leaderboard", *runs, "--format", "csv", *more).out for more in ((), ("--excel",)))

    assert marked == "\ufeff" + usual
    refused = aae("leaderboard", *runs, "--excel")
    assert (refused.code, refused.out) == (2, "")
    assert "--format csv" in refused.err


def test_what_is_refused(tmp_path, runs):
    """A single run, other items, other rules and a missing file are mistakes, as when comparing."""
    fewer = rows_of(tmp_path, "fewer", [RIGHT] * 9, ITEMS[:9])
    old = rows_of(tmp_path, "old", [RIGHT] * 12, ITEMS, "--rules", "v0.1")

    for last, said in ((fewer, "the items differ"), (old, "v0.1-1"), (tmp_path / "gone.jsonl", "gone.jsonl")):
        found = aae("leaderboard", *runs, last)
        assert (found.code, found.out) == (2, "")
        assert said in found.err
    assert "two runs or more" in aae("leaderboard", runs[0]).err
    assert aae("leaderboard").code == 2


def test_weights(tmp_path, runs):
    """--categories weighs as in a report."""
    weights = write(tmp_path / "weights.json", [{"multi_step": 1, "tool_selection": 0}])

    entries = aae("leaderboard", *runs, "--categories", weights, "--json").json["entries"]

    assert entries[1]["overall"]["score"] == entries[1]["categories"]["multi_step"]["score"]


def test_answers_that_are_missing(tmp_path, runs):
    """An incomplete run is ranked on what it answered, the coverage says so, and the code is 3."""
    partial = rows_of(tmp_path, "partial", [RIGHT] * 11 + ["HTTP 503"])

    found = aae("leaderboard", *runs, partial, "--format", "markdown")

    assert found.code == 3
    assert "| 11/12 |" in found.out
    assert "Some answers were not judged" in found.err


def test_run_folders(tmp_path):
    """A run folder brings its tokens and costs where they are known, and its rules are those that are asked for."""
    folder = tmp_path / "run"
    aae("run", "--items", "starter", "--limit", 8, "--run", folder)

    found = aae("leaderboard", folder, folder, "--rules", "v0.1", "--json")

    assert found.code == 0
    assert [entry["rank"] for entry in found.json["entries"]] == [1, 1]
    assert "rules:v0.1-1" in found.json["entries"][0]["signature"]


def test_what_a_run_took():
    """Tokens, cost and the median time are shown where known; times of answers that were replayed are not."""
    from arabic_agent_eval.models.model import Tokens
    from arabic_agent_eval.regrading import Latency, RunFigures

    took = RunFigures("run", "m", Tokens(12_000, 345), 0.5, Latency(1.0, 0.75, 2.0), 8, 0, 0)
    replayed = msgspec.structs.replace(took, tokens=None, cost=None, latency=Latency(0.0, 0.0, 0.0))
    one, other = (
        msgspec.structs.replace(column([total] * 3, "m"), figures=figures)
        for total, figures in ((1.0, took), (0.5, replayed))
    )

    found = leaderboard([one, other])

    assert "| 3/3 | 12,000 | 345 | 0.5000 | 0.75 | m.jsonl |" in markdown_leaderboard(found)
    assert "| 3/3 | – | – | – | – | m.jsonl |" in markdown_leaderboard(found)
    assert table_of(found)[0]["latency_median_s"] == "0.75"


def test_notes_are_said_once():
    """What a reader should know of the runs stands below the tables, once."""
    runs = [column([1.0, 0.5], name) for name in "abc"]
    runs[2] = msgspec.structs.replace(runs[2], signature=replace(SIGNATURE, epochs=3))

    found = leaderboard(runs)

    assert len(found.notes) == 1
    assert markdown_leaderboard(found).count("not asked equally often") == 1
    assert "not asked equally often" in printed(found)
    with pytest.raises(UsageError, match="two runs"):
        leaderboard(runs[:1])
