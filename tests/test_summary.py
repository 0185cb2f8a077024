"""The numbers of a report, against examples that were worked out by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arabic_agent_eval.errors import UnknownCategory
from arabic_agent_eval.items import CATEGORIES, Category
from arabic_agent_eval.scoring import CategoryScore, Score, Signature, compute_overall_score
from arabic_agent_eval.summary import Cell, summarize, weight_of
from arabic_agent_eval.tally import ItemFacts, Outcome, Tally
from tests.test_cli import ITEMS, aae, files, item, write

SIGNATURE = Signature("set@0", 1, "canonical-1")


def summary_of(*counted, due=None, unscored=(), **options):
    """The summary of outcomes: (item, category, dialect, axes, losses…)."""
    tally = Tally()
    for item_id, category, dialect, axes, *lost in counted:
        facts = ItemFacts(category, dialect, item_id != "plain")
        tally.add(item_id, Outcome(facts, *axes, tuple(lost)))
    for item_id, reason in unscored:
        tally.add_unscored(item_id, reason)
    return summarize(
        tally, due=tally.answered() if due is None else due, signature=SIGNATURE, rules="canonical", **options
    )


RIGHT = (1.0, 1.0, 1.0)


def test_overall_weighs_categories():
    """Σ mean × weight / Σ weight over the categories that have scored items."""
    found = summary_of(
        ("a", "multi_step", "msa", (1.0, 0.5, 1.0)),
        ("b", "multi_step", "gulf", (0.0, 1.0, 0.0)),
        ("c", "error_recovery", "gulf", (1.0, 0.0, 0.5)),
        ("plain", "tool_selection", None, RIGHT),
    )

    # The totals are 0.825 for a (half of the arguments lost), 0.35 for b and 0.7 for c.
    assert found.categories["multi_step"].score == pytest.approx(0.5875)
    assert found.categories["error_recovery"].score == pytest.approx(0.7)
    assert found.overall == pytest.approx((0.2 * 0.5875 + 0.1 * 0.7 + 0.15) / 0.45)
    assert found.grade == "C"
    assert list(found.categories) == ["multi_step", "tool_selection", "error_recovery"]
    assert [group.weight for group in found.categories.values()] == [0.2, 0.15, 0.1]
    assert [group.n for group in found.categories.values()] == [2, 1, 1]


def test_axes_of_groups_and_of_the_run():
    """A group's axis is the mean of its items; the run's is weighted by category, over those that have the axis."""
    found = summary_of(
        ("a", "dialect_handling", "msa", (1.0, 0.5, 0.0)),
        ("b", "dialect_handling", "msa", (0.0, 0.5, 1.0)),
        ("c", "error_recovery", "msa", (1.0, 1.0, 0.5)),
        ("plain", "multi_step", "msa", (1.0, 0.9, 1.0)),
    )
    dialect, recovery, steps = (found.categories[name] for name in ("dialect_handling", "error_recovery", "multi_step"))

    assert (dialect.function_selection, dialect.argument_accuracy, dialect.arabic_preservation) == (0.5, 0.5, 0.5)
    assert (dialect.dialect_understanding, dialect.error_handling) == (0.5, None)
    assert (recovery.dialect_understanding, recovery.error_handling) == (None, 1.0)
    assert (steps.dialect_understanding, steps.error_handling) == (None, None)
    assert found.axes == {
        "function_selection": pytest.approx((0.15 * 0.5 + 0.1 + 0.2) / 0.45),
        "argument_accuracy": pytest.approx((0.15 * 0.5 + 0.1 + 0.2 * 0.9) / 0.45),
        "arabic_preservation": pytest.approx((0.15 * 0.5 + 0.1 * 0.5 + 0.2) / 0.45),
        "dialect_understanding": 0.5,
        "error_handling": 1.0,
    }


def test_dialects_are_plain_means():
    """A dialect's score is the mean of its items, the known dialects first; items without one are a group."""
    found = summary_of(
        ("a", "multi_step", "نجدي", (0.0, 0.0, 0.0)),
        ("b", "error_recovery", "gulf", RIGHT),
        ("c", "multi_step", "gulf", (0.0, 1.0, 1.0)),
        ("plain", "multi_step", None, RIGHT),
        ("e", "multi_step", "msa", RIGHT),
    )

    assert list(found.dialects) == ["msa", "gulf", "نجدي", "(none)"]
    assert [group.score for group in found.dialects.values()] == [1.0, pytest.approx(0.8), 0.0, 1.0]
    assert {group.weight for group in found.dialects.values()} == {None}
    assert found.dialects["gulf"].dialect_understanding is None


def test_cells_by_hand():
    """A dialect's items in a category; what has none is absent, and epochs count as one item."""
    found = summary_of(
        ("a", "multi_step", "gulf", RIGHT),
        ("a", "multi_step", "gulf", (0.0, 1.0, 1.0)),
        ("b", "multi_step", "gulf", RIGHT),
        ("c", "error_recovery", "gulf", RIGHT),
        ("d", "multi_step", None, (0.0, 0.0, 0.0)),
        unscored=[("e", "timeout")],
    )

    total = found.categories["multi_step"].score * 3
    assert {name: list(row) for name, row in found.cells.items()} == {
        "gulf": ["multi_step", "error_recovery"],
        "(none)": ["multi_step"],
    }
    assert found.cells["gulf"]["multi_step"] == Cell(2, pytest.approx(total / 2))
    assert found.cells["gulf"]["error_recovery"] == Cell(1, 1.0)
    assert found.cells["(none)"]["multi_step"] == Cell(1, 0.0)


def test_exact_match_and_right_function():
    """Exact match counts items with every axis 1; right function counts answers whose every slot has it."""
    found = summary_of(
        ("a", "multi_step", "msa", RIGHT),
        ("a", "multi_step", "msa", RIGHT),
        ("a", "multi_step", "msa", (1.0, 0.9, 1.0)),
        ("b", "multi_step", "msa", (0.5, 1.0, 1.0)),
        ("plain", "multi_step", "msa", (1.0, 1 - 1e-15, 1.0)),
        unscored=[("b", "timeout")],
    )

    assert found.exact_match == pytest.approx((2 / 3 + 0 + 1) / 3)
    assert found.categories["multi_step"].exact_match == found.exact_match
    assert found.right_function == {"right": 4, "of": 5}
    assert found.failed == 2
    assert found.arabic_applicable == found.categories["multi_step"].arabic_applicable == 2


def test_losses_by_hand():
    """Causes are weighed as the score is, largest first, and split by axis; they sum to one minus the score."""
    function, argument = ("wrong_function", "function_selection", 0.4), ("spelling", "argument_accuracy", 0.035)
    digits = ("digits", "arabic_preservation", 0.25)
    found = summary_of(
        ("a", "multi_step", "msa", (0.0, 1.0, 1.0), function),
        ("b", "multi_step", "gulf", RIGHT),
        ("b", "multi_step", "gulf", (1.0, 0.9, 0.0), argument, digits),
        ("c", "error_recovery", "gulf", (1.0, 0.9, 1.0), ("spelling", "argument_accuracy", 0.02)),
    )

    spelling = (0.2 * 0.035 / 4 + 0.1 * 0.02) / 0.3
    assert found.lost == {
        "wrong_function": pytest.approx(0.2 * 0.2 / 0.3),
        "digits": pytest.approx(0.2 * 0.0625 / 0.3),
        "spelling": pytest.approx(spelling),
    }
    assert list(found.lost) == ["wrong_function", "digits", "spelling"]
    assert found.lost_by_axis["digits"] == {"arabic_preservation": pytest.approx(0.2 * 0.0625 / 0.3)}
    assert math.fsum(found.lost.values()) == pytest.approx(1 - found.overall, abs=1e-12)
    assert found.categories["error_recovery"].lost == {"spelling": 0.02}
    for group in (*found.categories.values(), *found.dialects.values()):
        assert math.fsum(group.lost.values()) == pytest.approx(1 - group.score, abs=1e-12)


def test_causes_with_equal_points_stand_by_name():
    """The order of causes depends on their points and names alone."""
    lost = [(cause, "function_selection", 0.2) for cause in ("no_call", "extra_call", "digits")]

    found = summary_of(("a", "multi_step", "msa", (0.0, 1.0, 1.0), *lost))

    assert list(found.lost) == ["digits", "extra_call", "no_call"]


def test_without_causes_nothing_is_said_of_them():
    """Numbers without causes leave out everything about losses."""
    found = summary_of(("a", "multi_step", "msa", (0.0, 1.0, 1.0)), causes=False)

    assert (found.lost, found.lost_by_axis, found.lost_arguments, found.examples) == (None, None, None, None)
    assert found.categories["multi_step"].lost is None


@pytest.mark.parametrize(
    ("asked", "unscored", "due", "coverage", "reasons"),
    [
        ("ab", [], 2, (2, 0, 2), {}),
        ("ab", [], 5, (2, 3, 5), {"no reply in the file": 3}),
        ("aab", [], 2, (3, 1, 4), {"no reply in the file": 1}),
        ("aab", [("b", "timeout")], 2, (3, 1, 4), {"timeout": 1}),
        ("ab", [("b", "timeout"), ("b", "quota"), ("c", "quota")], 4, (2, 10, 12),
         {"no reply in the file": 7, "quota": 2, "timeout": 1}),
        ("", [("a", "timeout"), ("a", "timeout")], 3, (0, 6, 6), {"no reply in the file": 4, "timeout": 2}),
        ("", [], 3, (0, 3, 3), {"no reply in the file": 3}),
        ("aaa", [("b", "quota")], 2, (3, 3, 6), {"no reply in the file": 2, "quota": 1}),
    ],
)  # fmt: skip
def test_coverage(asked, unscored, due, coverage, reasons):
    """Every item is due once an epoch, as often as the item with most answers; what is missing has a reason."""
    found = summary_of(*((name, "multi_step", "msa", RIGHT) for name in asked), unscored=unscored, due=due)

    assert (found.coverage.scored, found.coverage.unscored, found.coverage.total) == coverage
    assert found.unscored_reasons == reasons
    assert sum(reasons.values()) == found.coverage.unscored
    assert f"epochs:{coverage[2] // due}|" in found.signature


def test_nothing_scored_has_no_score():
    """Without a scored answer there is neither a score nor a grade, and no division by zero."""
    found = summary_of(unscored=[("a", "timeout")])

    assert (found.overall, found.grade, found.exact_match) == (None, None, None)
    assert (found.categories, found.dialects, found.lost) == ({}, {}, {})
    assert set(found.axes.values()) == {None}


def test_a_perfect_run_is_exactly_one(tmp_path):
    """No rounding: a perfect run of the command has 1.0 everywhere, whatever the weights and how many items."""
    items = [row | {"id": f"{row['id']} {n}"} for n in range(7) for row in ITEMS]
    replies = [{"id": row["id"], "calls": [{"function": "book_table" if call["function"] == "*" else call["function"],
                                            "arguments": call["arguments"]} for call in row["expected_calls"]]}
               for row in items]  # fmt: skip
    found = aae("grade", *files(tmp_path, items, replies), "--json").json

    assert found["overall"] == 1.0
    assert found["exact_match"] == 1.0
    assert set(found["axes"].values()) == {1.0}
    assert {group["score"] for group in [*found["categories"].values(), *found["dialects"].values()]} == {1.0}
    assert (found["grade"], found["lost"], found["right_function"]) == ("A", {}, {"right": 56, "of": 56})


names = st.sampled_from([*CATEGORIES, "other"])
axes = st.tuples(*[st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0])] * 3)


@given(st.lists(st.tuples(names, axes), min_size=1, max_size=12))
def test_overall_agrees_with_the_public_names(scored):
    """The summary's overall is what the classes that the specification names compute from the same scores."""
    declared = {"other": Category("other", 0.35)}
    found = summary_of(
        *((str(place), category, "msa", values) for place, (category, values) in enumerate(scored)),
        categories=declared,
    )
    by_category = [
        CategoryScore(name, [Score("", name, *values) for one, values in scored if one == name], weight)
        for name, weight in [*((name, None) for name in CATEGORIES), ("other", 0.35)]
    ]

    assert found.overall == pytest.approx(compute_overall_score(by_category), abs=1e-12)
    for one in by_category:
        if one.count:
            group = found.categories[one.category]
            assert group.score == pytest.approx(one.avg_total, abs=1e-12)
            assert group.argument_accuracy == pytest.approx(one.avg_argument_accuracy, abs=1e-12)


def test_unknown_categories_need_a_weight(tmp_path):
    """A category of one's own is refused with a remedy, and counts once it is declared, also with weight 0."""
    items = [item("a", "شعر", "msa", [("f", {})]), item("b", "multi_step", "msa", [("f", {})])]
    replies = [{"id": "a", "calls": []}, {"id": "b", "calls": [{"function": "f"}]}]
    options = ("grade", *files(tmp_path, items, replies), "--json")
    weights = tmp_path / "weights.json"

    refused = aae(*options)
    assert (refused.code, refused.out) == (2, "")
    assert "the category 'شعر' has no declared weight" in refused.err
    assert '{"شعر": {"weight": 0.1}} and pass that with --categories' in refused.err

    weights.write_text('{"شعر": {"weight": 0.6, "name_ar": "شعر"}}', encoding="utf-8")
    declared = aae(*options, "--categories", weights).json
    assert declared["overall"] == pytest.approx(0.2 / 0.8)
    assert list(declared["categories"]) == ["multi_step", "شعر"]

    weights.write_text('{"شعر": 0}', encoding="utf-8")
    ignored = aae(*options, "--categories", weights).json
    assert ignored["overall"] == 1.0
    assert ignored["lost"] == {}
    assert ignored["categories"]["شعر"]["score"] == 0.0
    assert ignored["categories"]["شعر"]["weight"] == 0.0
    assert ignored["categories"]["شعر"]["lost"] == {"no_call": 1.0}

    only = ("grade", *files(tmp_path, items[:1], replies[:1]), "--json", "--categories", weights)
    assert aae(*only).json["overall"] is None


def test_declared_weights_win(tmp_path):
    """A declared weight replaces the canonical one."""
    items = [item("a", "tool_selection", "msa", [("f", {})]), item("b", "multi_step", "msa", [("f", {})])]
    weights = write(tmp_path / "weights.json", [{"multi_step": {"weight": 0.45}}])
    options = files(tmp_path, items, [{"id": "a", "calls": []}, {"id": "b", "calls": [{"function": "f"}]}])

    found = aae("grade", *options, "--json", "--categories", weights).json

    assert found["overall"] == pytest.approx(0.75)
    assert weight_of("tool_selection", {}) == 0.15
    with pytest.raises(UnknownCategory):
        weight_of("", {})
