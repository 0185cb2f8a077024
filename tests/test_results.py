"""Results in Python: a few lines say what the command says, and hostile text is harmless in a notebook."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import msgspec
import pytest

import arabic_agent_eval
from arabic_agent_eval import CANONICAL, V0_1, Category, DataError, UsageError, compare, open_results, rank
from arabic_agent_eval.comparison import compare as compare_scores
from arabic_agent_eval.errors import UnknownCategory
from arabic_agent_eval.leaderboard import leaderboard
from arabic_agent_eval.reports.provenance import provenance
from arabic_agent_eval.runs import DEFAULTS, Asked, Manifest
from arabic_agent_eval.tables import Grid, notebook_block
from tests.answers import answer, column, scores
from tests.test_architecture import loaded_by
from tests.test_cli import ITEMS, aae, files, item, replies_to, write
from tests.test_reports import HOSTILE, dangerous, hostile_files


@pytest.fixture(scope="module")
def studied(tmp_path_factory):
    """A folder with two runs on the sample, and the graded rows of one of them."""
    folder = tmp_path_factory.mktemp("studied")
    for name, model in (("baseline", "baseline"), ("sample", "replay/sample")):
        aae("run", "--items", "sample", "--model", model, "--run", folder / name)
    aae("regrade", folder / "sample", "--out", folder / "rows.jsonl")
    return folder


# --- what they say -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sample", "rows.jsonl"])
def test_results_are_what_the_command_says(studied, tmp_path, name):
    """Of a run folder and of rows: JSON, Markdown, page and test cases are byte for byte those of aae report."""
    path, out = studied / name, tmp_path / "out"
    found = open_results(path)
    told = ("--html", out / "a.html", "--junit", out / "a.xml")
    out.mkdir()

    whole, page = aae("report", path, "--json", *told), aae("report", path, "--format", "markdown", "--title", "عنوان")
    found.html(out / "b.html")
    found.junit(out / "b.xml")

    assert (found.json() + b"\n").decode() == whole.out
    assert found.markdown("عنوان") == page.out
    assert found.markdown() == aae("report", path, "--format", "markdown").out
    assert (out / "b.html").read_bytes() == (out / "a.html").read_bytes()
    assert (out / "b.xml").read_bytes() == (out / "a.xml").read_bytes()


def test_a_run_and_its_rows_say_the_same(studied):
    """Rows that a run was graded into have its summary, scores and intervals; a run knows its model besides."""
    run, rows = open_results(studied / "sample"), open_results(str(studied / "rows.jsonl"))

    assert rows.summary == run.summary
    assert rows.scores.items == run.scores.items
    assert rows.uncertainty == run.uncertainty
    assert (run.name, rows.name) == ("replay/sample", "rows")
    assert run.figures is not None
    assert rows.figures is None
    assert [*rows.rows()] == [*run.rows()]
    assert repr(rows) == "<Results of rows: score 0.8254 (B), 24 of 24 answers judged>"


def test_comparing_and_ranking(studied):
    """Both are those of the command, and take what a run declares."""
    paths = [studied / "baseline", studied / "sample"]
    a, b = map(open_results, paths)

    assert msgspec.to_builtins(compare(a, b)) == aae("compare", *paths, "--json").json["comparisons"][0]
    assert msgspec.to_builtins(rank(a, b)) == aae("leaderboard", *paths, "--json").json
    with pytest.raises(UsageError, match="two runs"):
        rank(a)


def test_rules(studied):
    """A run is graded by the rules that are named, its rows too; graded rows keep theirs, and others are refused."""
    old = open_results(studied / "sample", rules="v0.1")

    assert old.summary.rules == "v0.1"
    assert {row.rules for row in old.rows()} == {V0_1.tag}
    assert open_results(studied / "sample", rules=V0_1).summary == old.summary
    assert open_results(studied / "rows.jsonl", rules=CANONICAL).summary.rules == "canonical"
    with pytest.raises(UsageError, match=r"by the rules canonical-1; to have v0\.1-1, grade"):
        open_results(studied / "rows.jsonl", rules=V0_1)
    with pytest.raises(UsageError, match=r"no rules 'strict'; there are canonical, v0\.1"):
        open_results(studied / "sample", rules="strict")


def test_declared_categories(tmp_path):
    """They come as an object or a file, or from the run that keeps them; unknown ones, and two weights, are refused."""
    items = [item(str(place), "own", None, [("f", {})], available_functions=[]) for place in range(2)]
    options = files(tmp_path, items, [{"id": "0", "calls": [{"function": "f"}]}, {"id": "1", "calls": []}])
    weights, rows = write(tmp_path / "weights.json", [{"own": 2}]), tmp_path / "rows.jsonl"
    aae("grade", *options, "--categories", weights, "--out", rows)
    (tmp_path / "replayed").mkdir()
    aae("run", *options[:2], "--model", f"replay/{options[3]}", "--categories", weights, "--run", tmp_path / "run")

    named = open_results(rows, categories={"own": Category("own", 1.0)})
    kept = open_results(tmp_path / "run")

    assert named.summary.overall == open_results(rows, categories=weights).summary.overall == 0.5
    assert kept.summary.overall == 0.5
    assert kept.categories["own"].weight == 2
    assert "|weights:" in rank(kept, kept).entries[0].signature
    with pytest.raises(UnknownCategory):
        open_results(rows)
    with pytest.raises(UsageError, match="another weight of the category 'own'"):
        compare(named, open_results(rows, categories=weights))


def test_what_cannot_be_read(tmp_path):
    """No file, no run and no rows are errors that name the place."""
    (tmp_path / "empty.jsonl").touch()

    for path in (tmp_path / "gone", tmp_path, tmp_path / "empty.jsonl"):
        with pytest.raises(DataError, match=path.name):
            open_results(path)


def test_inputs_are_never_overwritten(studied):
    """A page or test cases in place of what they are made from are refused."""
    run, rows = open_results(studied / "sample"), open_results(studied / "rows.jsonl")

    for found, path in ((rows, rows.path), (run, run.path / "replies.jsonl")):
        before = path.read_bytes()
        for write_to in (found.html, found.junit):
            with pytest.raises(UsageError, match="made from"):
                write_to(path)
        assert path.read_bytes() == before


def test_whoever_listens_hears_every_row(studied):
    """Every row goes by once while results are opened."""
    heard: list[list] = [[], []]

    found = open_results(studied / "rows.jsonl", each=[one.append for one in heard])

    assert heard[0] == heard[1] == [*found.rows()]


def test_the_names_load_little():
    """The names of the package load neither numerics nor templates before they are needed."""
    loaded = loaded_by("from arabic_agent_eval import open_results, compare, rank")

    assert not loaded & {"numpy", "scipy", "jinja2", "rich", "typer", "httpx2"}
    assert arabic_agent_eval.open_results is open_results


# --- notebooks -----------------------------------------------------------------------------------------------


def block_of(shown):
    """A block of HTML, parsed; it holds nothing but paragraphs and tables, and every text has a direction."""
    assert dangerous(shown) == set()
    tree = ET.fromstring(shown.replace("&nbsp;", " "))
    assert {one.tag for one in tree.iter()} <= {"div", "p", "b", "table", "thead", "tbody", "tr", "th", "td"}
    assert {name for one in tree.iter() for name in one.keys()} <= {"dir", "style", "colspan"}  # noqa: SIM118
    for one in tree.iter():
        if one.tag in {"p", "th", "td"} and not one.get("colspan"):
            assert one.get("dir") == "auto"
    return tree


def text_of(tree):
    """All that is written in it."""
    return " ".join(tree.itertext())


def test_notebooks_show_what_tables_show(studied):
    """Summary, results, comparison and leaderboard show their numbers."""
    a, b = (open_results(studied / name) for name in ("baseline", "sample"))

    shown = text_of(block_of(b._repr_html_()))
    assert all(
        text in shown for text in ("replay/sample", "Score 0.8254 (B), 95 %: 0.64–0.93", "24 of 24 answers", "gulf")
    )
    plain = text_of(block_of(b.summary._repr_html_()))
    assert "Score 0.8254 (B)" in plain
    assert "95 %" not in plain
    assert all(cause in plain for cause in b.summary.lost)
    compared = text_of(block_of(compare(a, b)._repr_html_()))
    assert all(
        text in compared for text in ("B is worse than A: 0.8254 against 0.9967", "multi-levantine", "cannot tell")
    )
    ranked = text_of(block_of(rank(a, b)._repr_html_()))
    assert all(text in ranked for text in ("baseline", "0.9967", "24/24", "Rank: 1 +"))


def test_blocks_of_nothing(tmp_path):
    """Where nothing was judged, and where no category has a weight, the blocks say so."""
    aae("grade", *files(tmp_path, ITEMS[:2], [{"id": ITEMS[0]["id"], "error": "x"}]), "--out", tmp_path / "rows.jsonl")

    found = open_results(tmp_path / "rows.jsonl")

    assert "– (nothing scored)" in text_of(block_of(found._repr_html_()))
    nothing = scores(answer("a", 1.0, category="x"), answer("b", 1.0, category="x"))
    weights = {"x": Category("x", 0.0)}
    assert "no overall score to compare" in text_of(
        block_of(compare_scores(nothing, nothing, categories=weights)._repr_html_())
    )
    assert "–" in text_of(block_of(leaderboard([nothing] * 2, categories=weights)._repr_html_()))


@pytest.mark.parametrize("text", [*HOSTILE, '"><img src=x onerror=alert(1)>', "x" * 100_000, "lone \udc80"])
def test_nothing_hostile_reaches_a_notebook(text):
    """Names of models, items, categories and dialects are text there, and not a long one."""
    items = [answer(text, 1.0, category=text, dialect=text, intent="i"), answer("b", 0.5, category=text, intent="i")]
    low = [answer(text, 0.5, category=text, dialect=text, intent="i"), answer("b", 0.5, category=text, intent="i")]
    weights = {text: Category(text, 1.0)}
    runs = [scores(*items, name=text), scores(*low, name=text)]

    for found in (compare_scores(*runs, categories=weights), leaderboard(runs, categories=weights)):
        shown = found._repr_html_()
        block_of(shown)
        assert len(shown) < 20_000


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_files_in_a_notebook(tmp_path, text):
    """Categories, dialects, causes and reasons that come from files are text there too."""
    options, _ = hostile_files(tmp_path, text)
    aae("grade", *options, "--out", tmp_path / "rows.jsonl")

    block_of(open_results(tmp_path / "rows.jsonl", categories=options[-1])._repr_html_())


def test_long_tables_are_counted():
    """Of a table without end the first rows are shown and the others counted; one without rows is left out."""
    shown = notebook_block(["a"], [Grid(["x", "y"], [["r", "1"]] * 150), Grid(["z"], [])])

    tree = block_of(shown)
    assert len(tree.findall(".//tbody/tr")) == 101
    assert "and 50 more" in shown
    assert len(tree.findall(".//table")) == 1


# --- where a run comes from ----------------------------------------------------------------------------------

USUAL = {"items": "s", "fingerprint": "f", "count": 1, "tools": "t", "model": "baseline", "address": "", **DEFAULTS}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "all settings are the defaults"),
        ({"temperature": 0.0}, "settings other than the defaults: temperature 0.0"),
        ({"epochs": 3, "max_turns": 2}, "epochs 3, max turns 2"),
        ({"tool_language": "ar", "written": True}, "tool language ar, tools written into the prompt"),
        ({"system": "سرّي"}, "a system prompt of its own"),
        ({"parameters": {"top": {"k": 1}, "x": "y" * 500}}, 'top {"k":1}, x ' + "y" * 200 + "…"),
        ({"address": "https://user@host"}, "an address of its own"),
        ({"model": "mine/silent", "address": "x"}, "all settings are the defaults"),
    ],
)  # fmt: skip
def test_where_a_run_comes_from(more, said):
    """Model, date, and each setting that is not the default; prompts and addresses are not quoted."""
    shown = provenance(Manifest(Asked(**USUAL | more), "2026-11-30T12:00:00+00:00", {}))

    assert shown.startswith(f"Model {(USUAL | more)['model']}, run of 2026-11-30 12:00:00 UTC; ")
    assert shown.endswith(f"{said}.")
    assert "سرّي" not in shown
    assert "user@host" not in shown


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_settings_stay_text(tmp_path, text):
    """A setting that somebody wrote is text in the Markdown."""
    aae("run", "--items", "sample", "--limit", 1, "--run", tmp_path / "run")
    path = tmp_path / "run" / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["asked"] |= {"parameters": {text: text}}
    manifest["created"] = text
    path.write_text(json.dumps(manifest), encoding="utf-8")

    page = open_results(tmp_path / "run").markdown()

    assert dangerous(page) == set()
    line = next(line for line in page.splitlines() if line.startswith("Model baseline"))
    assert not set("<[`*|") & set(line.replace("\\[", "").replace("\\`", "").replace("\\*", "").replace("\\|", ""))


def test_markdown_names_the_run(studied):
    """The Markdown of a run names model, date and settings, that of rows only the rules."""
    created = json.loads((studied / "sample" / "manifest.json").read_text(encoding="utf-8"))["created"]

    run, rows = open_results(studied / "sample").markdown(), open_results(studied / "rows.jsonl").markdown()

    assert f"Model replay/sample, run of {created[:10]}".replace("-", "\\-") in run
    assert "rules canonical." in run
    assert "rules canonical." in rows
    assert "run of" not in rows


def test_a_board_knows_when_a_run_was_made():
    """The date of a run stands in the leaderboard; of rows there is none."""
    created = "2026-11-30T12:00:00+00:00"
    of_run, of_rows = msgspec.structs.replace(column([1.0] * 3), created=created), column([0.5] * 3)

    assert [one.created for one in leaderboard([of_run, of_rows]).entries] == [created, None]


def test_replies_of_an_unfinished_run_are_named(tmp_path):
    """What was not asked yet is skipped in the test cases, and a report of it says how to go on."""
    options = files(tmp_path, ITEMS, replies_to(ITEMS[:3]))
    tools = write(tmp_path / "tools.json", [[]])
    items = write(tmp_path / "items.jsonl", [row | {"available_functions": []} for row in ITEMS])
    aae("run", "--items", items, "--tools", tools, "--model", f"replay/{options[3]}", "--run", tmp_path / "run")
    replies = tmp_path / "run" / "replies.jsonl"
    replies.write_bytes(b"".join(replies.read_bytes().splitlines(keepends=True)[:3]))

    found = aae("report", tmp_path / "run", "--junit", tmp_path / "junit.xml")

    tree = ET.parse(tmp_path / "junit.xml").getroot()
    assert found.code == 3
    assert "5 answers are missing. Ask for them again with: aae run --resume" in found.err
    assert sum(int(suite.get("skipped")) for suite in tree) == 5
