"""The oracle and the silent model: replayed through the whole of a run, with the simulated tools."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from arabic_agent_eval.bundled import find_items, set_names
from arabic_agent_eval.cli import app
from arabic_agent_eval.items import ItemSet


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
    """The calls that the item expects."""
    return [{"function": call.function, "arguments": call.arguments} for call in item.expected_calls]


@pytest.mark.parametrize("name", set_names())
def test_the_oracle_scores_one_on_every_item(tmp_path, name):
    """Who makes the expected calls loses nothing anywhere, conversations included."""
    items, found = replayed(tmp_path, name, expected)

    assert (found["overall"], found["exact_match"], found["lost"]) == (1.0, 1.0, {})
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
