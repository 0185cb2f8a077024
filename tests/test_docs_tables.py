"""The tables of the documentation say what the code says."""

from __future__ import annotations

import dataclasses
import json
import re
import typing

import pytest

from arabic_agent_eval import cli
from arabic_agent_eval.bundled import set_names
from arabic_agent_eval.causes import CAUSE_WORDS
from arabic_agent_eval.checks import RULES as CHECKS
from arabic_agent_eval.comparison import Change, Comparison, Difference, Side
from arabic_agent_eval.diagnosis import CALL_CAUSES, Loss
from arabic_agent_eval.differences import CAUSES, explain
from arabic_agent_eval.errors import EvalError
from arabic_agent_eval.formats import FORMATS
from arabic_agent_eval.items import CATEGORIES, ExpectedCall, Item
from arabic_agent_eval.leaderboard import Entry, Gap, Leaderboard, leaderboard
from arabic_agent_eval.leaderboard import Score as LeaderboardScore
from arabic_agent_eval.models.anthropic import DEFAULT_MAX_TOKENS
from arabic_agent_eval.models.catalogue import DEFAULT_TIMEOUT, ignored_settings, providers
from arabic_agent_eval.models.model import FailureKind, Tokens
from arabic_agent_eval.models.wire import MAX_ANSWER
from arabic_agent_eval.pacing import COOLDOWN, LONGEST_WAIT
from arabic_agent_eval.publishing import published
from arabic_agent_eval.regrading import RunFigures
from arabic_agent_eval.rows import GradedRow
from arabic_agent_eval.rules import CANONICAL, COMPOSITIONS, STANDARD, V0_1, Rules
from arabic_agent_eval.runner import ATTEMPTS
from arabic_agent_eval.runs import Asked, AttemptRecord, KeptTurn, Manifest, ReplyRecord, TurnRecord
from arabic_agent_eval.summary import Group, Summary
from arabic_agent_eval.tools import Tool
from arabic_agent_eval.uncertainty import Intervals, Repeats
from tests.answers import column
from tests.pages import firsts, page, table


def test_causes_in_words():
    """The page of causes says every cause in the words that the package has for it."""
    stated = {name.strip("`"): (english, arabic) for name, english, arabic in table("causes.md", "cause", "English")}

    assert stated == CAUSE_WORDS
    assert set(stated) == {*CALL_CAUSES, *CAUSES}


def test_examples_of_causes():
    """Each example on the page of causes has the cause that it stands for, and every cause has one."""
    rows = table("causes.md", "cause", "expected")
    for name, expected, actual, _ in rows:
        values = [json.loads(cell.strip("`")) for cell in (expected, actual)]
        assert explain(*values) == name.strip("`"), (expected, actual)

    assert {row[0].strip("`") for row in rows} == set(CAUSES)


def test_causes_of_calls():
    """The page of causes explains every cause of a call."""
    assert firsts("causes.md", "cause", "when") == set(CALL_CAUSES)


def test_check_rules():
    """The page of item sets lists the rules of the check as the package words them."""
    assert {name.strip("`"): meaning for name, meaning in table("data.md", "rule")} == CHECKS


def test_fields_of_files():
    """The page of formats names every field of items, calls, rows and losses, and no other."""
    fields = table("formats.md", "field", "type")
    names = [re.findall(r"`([^`]+)`", row[0])[0] for row in fields]
    items = len(Item.__struct_fields__)

    assert set(names[:items]) == set(Item.__struct_fields__)
    assert set(names[items:]) == set(ExpectedCall.__struct_fields__)
    assert firsts("formats.md", "field", "meaning") >= {*GradedRow.__struct_fields__, *Loss.__struct_fields__}
    assert all(f"`{field}`" in page("formats.md") for field in Tool.__struct_fields__)


def test_fields_of_a_run():
    """The page of runs names every field of the manifest and of the lines of a run, and no other."""
    kinds = (Manifest, Asked, ReplyRecord, TurnRecord, AttemptRecord, KeptTurn, Tokens)

    assert firsts("runs.md", "field") == {field for kind in kinds for field in kind.__struct_fields__}


def test_kinds_of_failures():
    """The page of runs explains every kind of failure."""
    assert firsts("runs.md", "kind") == {*typing.get_args(FailureKind)}


def test_providers():
    """The page of models has every provider with its key, its address, and the settings that it lacks."""
    rows = {row[0].strip("`"): row for row in table("models.md", "provider", "lacks")}

    assert set(rows) == {one.name for one in providers()}
    for one in providers():
        options = (name.replace("_", "-").replace("parameters", "parameter") for name in ignored_settings(one.example))
        lacks = {f"`--{option}`" for option in options}
        assert one.address in rows[one.name][2]
        assert one.key_variable in rows[one.name][3]
        assert {cell for cell in rows[one.name][4].split(", ") if cell.startswith("`")} == lacks


NUMBERS = {
    "runs.md": {
        f"`--attempts` times at most ({ATTEMPTS})": "attempts",
        f"`--timeout` ({DEFAULT_TIMEOUT:g} seconds)": "timeout",
        f"more than {LONGEST_WAIT / 60:.0f} minutes".replace("10", "ten"): "longest wait",
        f"once in {COOLDOWN:g} seconds": "cooldown",
        f"more than {MAX_ANSWER >> 20} MiB": "largest answer",
    },
    "models.md": {f"it is {DEFAULT_MAX_TOKENS:,} tokens": "Anthropic's limit"},
}
"""Page → what it says with a number of the code → what that is."""


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_of_the_code(name):
    """The pages about runs and models state the numbers that the code has."""
    text = " ".join(page(name).split())

    assert [what for said, what in NUMBERS[name].items() if said not in text] == []


def test_bundled_sets():
    """The page of item sets has a row for every set that comes with the package."""
    assert firsts("data.md", "set") == set(set_names())


def test_keys_of_the_report():
    """The page of formats names every key of the JSON of a report and of its groups."""
    assert firsts("formats.md", "key") == set(Summary.__struct_fields__)
    assert firsts("formats.md", "key of a run") == set(RunFigures.__struct_fields__)
    assert firsts("formats.md", "key of intervals") == set(Intervals.__struct_fields__)
    assert firsts("formats.md", "key of repeats") == set(Repeats.__struct_fields__)
    axes = {"function_selection", "argument_accuracy", "arabic_preservation", "dialect_understanding", "error_handling"}
    assert all(f"`{key}`" in page("formats.md") for key in set(Group.__struct_fields__) - axes)


def test_keys_of_a_comparison():
    """The page of formats names every key of the JSON of a comparison."""
    for head, kind in (("comparison", Comparison), ("side", Side), ("difference", Difference)):
        assert firsts("formats.md", f"key of a {head}") == set(kind.__struct_fields__)
    assert all(f"`{key}`" in page("formats.md") for key in Change.__struct_fields__)


def test_keys_of_a_leaderboard():
    """The page of formats names every key of the JSON of a leaderboard, and every field of a published result."""
    kinds = {"leaderboard": Leaderboard, "model": Entry, "score": LeaderboardScore, "gap": Gap}
    for head, kind in kinds.items():
        assert firsts("formats.md", f"key of a {head}") == set(kind.__struct_fields__)
    entry = leaderboard([column([1.0] * 3), column([0.5] * 3)]).entries[0]
    assert firsts("formats.md", "field of a result") == set(published(entry, "2026-12-01T00:00:00+00:00"))


def test_reply_formats():
    """The page of formats has a row for every reply format."""
    assert firsts("formats.md", "`--format`") == {*FORMATS} - {"auto"}


def test_exit_codes():
    """The page of formats lists the exit codes that the command has."""
    codes = {cli.DONE, cli.GATE_FAILED, cli.BAD_INPUT, cli.UNSCORED, cli.INTERRUPTED}

    assert {int(row[0]) for row in table("formats.md", "code")} == codes


def test_weights():
    """The page of grading has the weights and compositions of the code."""
    weights = {row[0].strip("`"): float(row[1]) for row in table("grading.md", "category", "weight")}
    composed = {row[0].strip("`"): row[1:] for row in table("grading.md", "category", "function")}

    assert weights == {name: category.weight for name, category in CATEGORIES.items()}
    for name, (shares, own) in COMPOSITIONS.items():
        assert [float(cell.split()[0]) for cell in composed[name]] == list(shares)
        assert own in composed[name][-1]
    assert [float(cell) for cell in composed["every other category"][:3]] == list(STANDARD[:3])


def test_fields_of_rules():
    """The page of grading names every field in which the rule sets differ, with both values."""
    rows = {row[0].strip("`"): row[1:] for row in table("grading.md", "field of `Rules`")}
    fields = {field.name for field in dataclasses.fields(Rules)} - {"name", "version"}

    assert set(rows) == fields
    for name in fields:
        for cell, rules in zip(rows[name], (CANONICAL, V0_1), strict=True):
            assert f"`{getattr(rules, name)}`" in cell, name


def test_every_ruling_is_stated():
    """The page of grading states the twenty rulings, each under its number."""
    stated = [int(number) for number in re.findall(r"^\*\*(\d+)\. ", page("grading.md"), re.MULTILINE)]

    assert stated == list(range(1, 21))


def test_exceptions():
    """The page of the Python interface names every exception of the package."""
    found = {kind.__name__ for kind in subclasses(EvalError)}

    assert found == {name.rpartition(".")[2] for name in firsts("api.md", "", "raised when")}


def subclasses(kind: type[BaseException]) -> set[type[BaseException]]:
    return {child for direct in kind.__subclasses__() for child in {direct, *subclasses(direct)}}
