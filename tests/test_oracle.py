"""The oracle and the silent model: item by item, and replayed through the whole of a run with the simulated tools."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from arabic_agent_eval.bundled import find_items, set_names
from arabic_agent_eval.cli import app
from arabic_agent_eval.formats import read_reply
from arabic_agent_eval.items import ItemSet
from arabic_agent_eval.scoring import evaluate_reply


def replayed(tmp_path, name, calls_of):
    """What ``aae run`` says of a model that makes these calls."""
    items = ItemSet.read(find_items(name))
    rows = [{"id": item.id, "calls": calls_of(item)} for item in items.values()]
    path = tmp_path / "replies.jsonl"
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    options = ["run", "--items", name, "--model", f"replay/{path}", "--run", str(tmp_path / "run"), "--json"]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 0, result.output
    return items, json.loads(result.stdout)


def expected(item):
    """The expected calls as a model would send them."""
    return [{"function": call.function, "arguments": call.arguments} for call in item.expected_calls]


@pytest.mark.parametrize("name", set_names())
def test_the_oracle_scores_one_on_every_item(tmp_path, name):
    """Who makes the expected calls loses nothing anywhere, conversations included."""
    items, found = replayed(tmp_path, name, expected)

    overall = 1.0 if any(group["weight"] for group in found["categories"].values()) else None  # tracks have none
    assert (found["overall"], found["exact_match"], found["lost"]) == (overall, 1.0, {})
    assert found["coverage"] == {"scored": len(items), "unscored": 0, "total": len(items)}
    assert found["worst_case"] is None


@pytest.mark.parametrize("name", set_names())
def test_a_silent_model_scores_what_abstention_earns(tmp_path, name):
    """Who never calls is right exactly where nothing was expected."""
    items, found = replayed(tmp_path, name, lambda _: [])

    for category, group in found["categories"].items():
        members = [item for item in items.values() if item.category == category]
        abstained = sum(not item.expected_calls for item in members)
        assert group["score"] == pytest.approx(abstained / len(members))
        assert group["exact_match"] == pytest.approx(abstained / len(members))


per_set = pytest.mark.parametrize("items", [ItemSet.read(find_items(name)) for name in set_names()], ids=set_names())


def graded(item, calls):
    """The judgement of these calls, by the way that a file of replies takes."""
    return evaluate_reply(item, read_reply({"id": item.id, "actual_calls": calls}))


@per_set
def test_the_expected_calls_score_one(items):
    """An oracle reaches exactly 1.0 on every item and loses nothing."""
    for item in items.values():
        result = graded(item, expected(item))
        assert (result.score.total, result.losses) == (1.0, ()), item.id


@per_set
def test_accepted_values_score_one(items):
    """Every other right value is as good as the first."""
    accepted = (
        (item, place, name, value)
        for item in items.values()
        for place, call in enumerate(item.expected_calls)
        for name, values in (call.accept or {}).items()
        for value in values
    )
    for item, place, name, value in accepted:
        calls = expected(item)
        calls[place]["arguments"] = calls[place]["arguments"] | {name: value}
        assert graded(item, calls).score.exact, (item.id, value)


@per_set
def test_silence_is_right_only_where_nothing_is_expected(items):
    """No item gives points for calling nothing, save those that want no call."""
    for item in items.values():
        assert graded(item, []).score.total == (0.0 if item.expected_calls else 1.0), item.id
