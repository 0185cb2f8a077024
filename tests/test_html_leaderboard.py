"""A leaderboard as one HTML file: its numbers are those of the JSON, and it stands alone."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from arabic_agent_eval.leaderboard import leaderboard
from arabic_agent_eval.reports.html_charts import two_decimals
from arabic_agent_eval.reports.html_leaderboard import leaderboard_page
from arabic_agent_eval.tables import signed
from tests.answers import answer, column, scores
from tests.test_cli import aae
from tests.test_compare_command import NEAR, RIGHT, WRONG, rows_of
from tests.test_html import read
from tests.test_reports import HOSTILE, dangerous


@pytest.fixture
def rows(tmp_path):
    """Two models that answered the same items."""
    good = rows_of(tmp_path, "good", [RIGHT, RIGHT, NEAR, RIGHT, RIGHT, RIGHT, RIGHT, RIGHT])
    return good, rows_of(tmp_path, "bad", [WRONG, RIGHT, NEAR, WRONG, WRONG, WRONG, WRONG, WRONG])


def test_numbers_are_those_of_the_json(rows, tmp_path):
    """Ranks, scores, intervals, groups and gaps are on both pages as the JSON has them."""
    found = aae("leaderboard", *rows, "--json").json
    done = aae("leaderboard", *rows, "--html", tmp_path / "page.html")
    page = read((tmp_path / "page.html").read_text(encoding="utf-8"))

    assert f"Leaderboard written to {tmp_path / 'page.html'}." in " ".join(done.err.split())
    table = page.cells["ranking"]
    english = table[1 : len(table) // 2]
    for entry, (rank, name, score, ends, _, judged, *_) in zip(found["entries"], english, strict=True):
        overall = entry["overall"]
        assert (int(rank), name.strip(), score) == (entry["rank"], entry["name"], f"{overall['score']:.4f}")
        assert ends == f"{overall['low']:.4f} to {overall['high']:.4f}"
        assert judged == f"{entry['judged']} of {found['items']}"
    assert table[len(table) // 2 + 1][3].startswith("من ")
    heat = page.cells["heatmap"]
    categories, dialects = heat[1 : 1 + len(found["entries"])], heat[2 + len(found["entries"]) :]
    for entry, cells in zip(found["entries"], categories, strict=True):
        means = [entry["categories"][name] for name in found["categories"]]
        assert cells[1:] == [f"{two_decimals(one['score'])} n = {one['n']}" for one in means]
    for entry, cells in zip(found["entries"], dialects, strict=False):
        means = [entry["dialects"][name] for name in found["dialects"]]
        assert cells[1 : 1 + len(means)] == [f"{two_decimals(one['score'])} n = {one['n']}" for one in means]
        assert cells[1 + len(means) :] == ["–"] * 4  # these items share no intent


def test_a_gap_on_the_page():
    """The worst dialect, how far it lies from MSA, and over how many requests."""
    said = [
        answer(f"{intent}-{dialect}", total, dialect=dialect, intent=intent)
        for intent in ("a", "b", "c")
        for dialect, total in (("msa", 1.0), ("gulf", 0.5))
    ]
    board = leaderboard([scores(*said, name="one"), scores(*said, name="two")])

    page = read(leaderboard_page(board, languages=["en"]))

    row = [cell.strip() for cell in page.cells["heatmap"][-1]]
    assert row[:3] == ["two", "1.00 n = 3", "0.50 n = 3"]
    gap = board.entries[1].gap
    assert row[3:] == ["Gulf", "−0.5000", f"{signed(gap.low)} to {signed(gap.high)}", "3"]


def test_runs_of_one_model_are_told_apart():
    """Where several runs have one name, each has its folder beside it, and all are named at the end."""
    several = [replace(column([1.0, total], "m"), path=f"run {place}") for place, total in enumerate((0.5, 0.4))]

    page = read(leaderboard_page(leaderboard(several), languages=["en"]))

    assert [row[1].split() for row in page.cells["ranking"][1:]] == [["m", "run", "0"], ["m", "run", "1"]]
    assert [row[1].strip() for row in page.cells["origins"][1:]] == ["run 0", "run 1"]


def test_the_page_stands_alone():
    """No address, no script, and a policy that allows none; names are shown inertly."""
    names = [f"{place} {name}" for place, name in enumerate(HOSTILE)]
    found = leaderboard([column([1.0, 0.5, 0.25], name) for name in names])

    source = leaderboard_page(found, title="".join(names))
    page = read(source)

    assert not re.search(r"url\(|@import", source)
    assert page.all("script") == page.all("img") == []
    policy = next(given["content"] for given in page.all("meta") if "http-equiv" in given)
    assert "script-src 'none';" in policy
    assert not dangerous("".join(page.text))
    ids = [given["id"] for _, given in page.elements if "id" in given]
    assert len(ids) == len(set(ids))
    assert {given["href"].removeprefix("#") for given in page.all("a")} <= set(ids)


def test_an_input_is_not_overwritten(rows):
    """The page is not written over what it is made from."""
    before = rows[0].read_bytes()

    done = aae("leaderboard", *rows, "--html", rows[0])

    assert (done.code, rows[0].read_bytes()) == (2, before)
