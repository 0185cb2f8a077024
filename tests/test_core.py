"""The bundled set ``core``: balanced, parallel, fair, and put together from what was written for it."""

from __future__ import annotations

import json
from collections import Counter, defaultdict

import pytest

from arabic_agent_eval.bundled import find_items, find_tools
from arabic_agent_eval.checks import check_items
from arabic_agent_eval.field_checks import check_fields
from arabic_agent_eval.formats import read_reply
from arabic_agent_eval.items import CATEGORIES, DIALECTS, ItemSet, read_categories
from arabic_agent_eval.scoring import evaluate_reply
from arabic_agent_eval.text import has_arabic
from arabic_agent_eval.tools import Toolbox
from authoring.__main__ import main
from authoring.assembly import CANARY, core, english, tracks
from authoring.card import filled
from authoring.players import PLAYERS
from authoring.rules import OFFERED, STEPS
from authoring.shapes import read_sources
from authoring.sources import Files
from tests.test_cli import aae

NAMES = ("core", "core-en", "core-tracks")
SETS = {name: ItemSet.read(find_items(name)) for name in NAMES}
CORE = SETS["core"]
TOOLS = Toolbox.from_schemas(json.loads(find_tools("core", None).read_text(encoding="utf-8")))
FOLDER = find_items("core").parent
PARALLEL = {item.intent for item in CORE.values() if item.intent is not None}


@pytest.mark.parametrize(("name", "make"), [("core", core), ("core-en", english), ("core-tracks", tracks)])
def test_the_files_are_what_was_written(name, make):
    """The bundled items are those that the sources make, line by line."""
    held = find_items(name).read_text(encoding="utf-8").splitlines()
    assert held == [json.dumps(row, ensure_ascii=False) for row in make(read_sources(Files()))]


def test_the_sources_have_no_fault(capsys):
    """``python -m authoring check`` finds nothing: no fault of shape, content or the whole set."""
    assert main(["check"]) == 0, capsys.readouterr().out


@pytest.mark.parametrize("name", NAMES)
def test_no_check_of_single_items_finds_anything(name):
    """Every key obeys the schemas and can be derived; every field has a reader."""
    expected = {"unknown_category"} if name == "core-tracks" else set()
    findings = [*check_fields(SETS[name].unknown_fields()), *check_items(SETS[name].values(), TOOLS)]
    assert [one for one in findings if one.rule not in expected] == []


def test_balance():
    """600 items or more; no dialect has fewer than 100, no category fewer than 60, and every cell is filled."""
    assert len(CORE) >= 600
    dialects, categories = (Counter(getattr(item, name) for item in CORE.values()) for name in ("dialect", "category"))
    cells = Counter((item.dialect, item.category) for item in CORE.values())
    assert set(dialects) == set(DIALECTS)
    assert set(categories) == set(CATEGORIES)
    assert min(dialects.values()) >= 100
    assert min(categories.values()) >= 60
    assert len(cells) == len(DIALECTS) * len(CATEGORIES)
    assert max(dialects.values()) == min(dialects.values())


def test_parallel_intents():
    """At least 100 intents exist in all five dialects, with one category, offer, context and key."""
    assert len(PARALLEL) >= 100
    held = defaultdict(list)
    for item in CORE.values():
        if item.intent is not None:
            held[item.intent].append(item)
    for intent, items in held.items():
        assert sorted(item.dialect for item in items) == sorted(DIALECTS), intent
        alike = {
            json.dumps(
                [item.category, item.available_functions, item.context, item.ordered,
                 [[call.function, call.arguments] for call in item.expected_calls]],
                sort_keys=True,
            )
            for item in items
        }  # fmt: skip
        assert len(alike) == 1, intent


def test_tools():
    """Forty tools or more, ASCII names and keys, described in Arabic and English, each needed by some item."""
    assert len(TOOLS) >= 40
    for tool in TOOLS.values():
        names = [tool.name, *tool.parameters["properties"]]
        assert all(name.isascii() for name in names)
        assert tool.description
        assert has_arabic(tool.description_ar)
        for schema in tool.parameters["properties"].values():
            assert schema["description"]
            assert has_arabic(schema["description_ar"])
    called = {call.function for item in CORE.values() for call in item.expected_calls}
    assert set(TOOLS) - called == set()


def test_categories_have_substance():
    """Steps depend on results, selection offers many tools, and recovery has an error to recover from."""
    for item in CORE.values():
        calls = item.expected_calls
        if item.category == "multi_step":
            assert STEPS[0] <= len(calls) <= STEPS[1], item.id
        if item.category == "tool_selection":
            assert OFFERED[0] <= len(item.available_functions) <= OFFERED[1], item.id
        if item.category == "error_recovery":
            assert "error" in calls[0].result, item.id
            assert item.error_response == calls[0].result, item.id


def test_calls_of_conversations_have_results():
    """Each of several calls, and every call of a recovery, has a result in the file."""
    rows = [json.loads(line) for line in find_items("core").read_text(encoding="utf-8").splitlines()]
    without = {
        row["id"]
        for row in rows
        if len(row["expected_calls"]) > 1 or row["category"] == "error_recovery"
        if any("result" not in call for call in row["expected_calls"])
    }
    assert without == set()


def test_english_controls():
    """Each parallel intent has one control in English, with the same calls but for the spelling of names."""
    controls = {item.intent: item for item in SETS["core-en"].values()}
    assert controls.keys() == PARALLEL
    arabic = {item.intent: item for item in CORE.values() if item.dialect == "msa"}
    for intent, item in controls.items():
        assert (item.language, item.dialect, item.category) == ("en", "english", arabic[intent].category)
        assert item.available_functions == arabic[intent].available_functions
        pairs = zip(item.expected_calls, arabic[intent].expected_calls, strict=True)
        assert all(mine.function == theirs.function and mine.arguments.keys() == theirs.arguments.keys()
                   for mine, theirs in pairs)  # fmt: skip


def test_tracks_enter_no_score():
    """The tracks are declared with a weight of 0 and are no categories of the set itself."""
    declared = read_categories(find_items("core-tracks").with_name("categories.json"))
    assert {name: one.weight for name, one in declared.items()} == {"no_call": 0.0, "adversarial": 0.0}
    assert {item.category for item in SETS["core-tracks"].values()} == set(declared)
    wanted = Counter((item.category, bool(item.expected_calls)) for item in SETS["core-tracks"].values())
    assert set(wanted) == {("no_call", False), ("adversarial", True)}


def test_the_card():
    """The card says who wrote it and its licence; what is counted in it is as it is."""
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert "CC-BY-4.0" in card
    assert "reviewed by none but language models" in card
    assert filled(card, Files()) == card


@pytest.mark.parametrize("name", NAMES)
def test_the_canary_stands_in_every_set(name):
    """The notes of the first item hold the line by which a model that has seen the set is known."""
    assert next(iter(SETS[name].values())).notes == CANARY


@pytest.mark.parametrize("player", sorted(PLAYERS))
def test_no_skill_no_item(player):
    """Neither silence nor the first tool solves any item of the set."""
    for item in CORE.values():
        result = evaluate_reply(item, read_reply({"id": item.id, "calls": PLAYERS[player](item, TOOLS)}))
        assert not result.score.exact, item.id


def test_a_report_on_tracks(tmp_path):
    """A run of the tracks has no overall score, and its report says so and shows both tracks, in every form."""
    folder, page = tmp_path / "run", tmp_path / "page.html"
    ran = aae("run", "--items", "core-tracks", "--run", folder)
    report = aae("report", folder, "--html", page, "--format", "markdown")

    for done in (ran, report):
        assert done.code == 0, done.err
        assert "every category has a weight of 0" in done.out
        assert "no_call" in done.out.replace("\\", "")
    html = page.read_text(encoding="utf-8")
    assert "No overall score: every category has a weight of 0." in html
    assert "no_call" in html
    assert "لا توجد نتيجة إجمالية" in html
