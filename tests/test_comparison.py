"""Two models on the same items: numbers made by hand, laws, and what is refused."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arabic_agent_eval.comparison import compare, compare_all
from arabic_agent_eval.errors import UnknownCategory, UsageError
from arabic_agent_eval.items import Category
from arabic_agent_eval.rules import RULES
from arabic_agent_eval.scores import Scores, read_scores
from tests.answers import SIGNATURE, answer, column, drawn, scores
from tests.test_cli import aae, files, write
from tests.test_published import PUBLISHED, RUNS


def signed_as(found, **changed):
    """The same scores under another signature."""
    return msgspec.structs.replace(found, signature=replace(SIGNATURE, **changed))


# --- by hand -------------------------------------------------------------------------------------------------


def test_one_category_by_hand():
    """Six of eight items gained 0.5 and two stayed: +0.375, and 2 of 2⁶ exchanges are as extreme."""
    found = compare(column([0.5] * 8), column([1.0] * 6 + [0.5] * 2)).overall

    assert (found.a, found.b, found.difference) == pytest.approx((0.5, 0.875, 0.375))
    assert found.p_value == 2 / 64
    assert (found.wins, found.ties, found.losses, found.n, found.clusters) == (6, 2, 0, 8, 8)
    assert 0 < found.low < 0.375 < found.high
    assert found.verdict == "better"
    assert found.adjusted is None


def test_the_detectable_difference_by_hand():
    """(t of 0.975 + t of 0.8) standard errors of eight changes, six of 0.5 and two of 0."""
    found = compare(column([0.5] * 8), column([1.0] * 6 + [0.5] * 2)).overall

    error = math.sqrt((6 * 0.125**2 + 2 * 0.375**2) / 7 / 8)
    assert found.detectable == pytest.approx((2.364624 + 0.896030) * error, abs=1e-6)


def test_categories_weigh_as_in_the_score():
    """0.2 × 1 and 0.15 × 0.4 over 0.35, although the second category has four times the items."""
    a = [answer("a", 0.0), *(answer(f"b{n}", 0.6, category="tool_selection") for n in range(4))]
    b = [answer("a", 1.0), *(answer(f"b{n}", 1.0, category="tool_selection") for n in range(4))]

    found = compare(scores(*a), scores(*b))

    assert found.overall.difference == pytest.approx((0.2 * 1 + 0.15 * 0.4) / 0.35)
    assert found.overall.a == pytest.approx(0.15 * 0.6 / 0.35)
    assert found.categories["tool_selection"].difference == pytest.approx(0.4)
    assert found.dialects["msa"].difference == pytest.approx((1 + 4 * 0.4) / 5)


def test_intents_are_exchanged_whole():
    """Eight items of two intents are two groups: no p-value below 1/2, and nothing can be told."""
    a, b = (scores(*(answer(f"i{n}", total, intent=f"said {n % 2}") for n in range(8))) for total in (0.0, 1.0))

    found = compare(a, b).overall

    assert (found.n, found.clusters, found.p_value, found.verdict) == (8, 2, 0.5, "unclear")


def test_epochs_count_once():
    """An item asked often is its mean; what was not judged is left out of it."""
    a = scores(answer("x", 1.0, 0.0, 0.5), answer("y", 0.5))
    b = scores(answer("x", 0.7, unscored=2), answer("y", 0.5, 0.5))

    found = compare(a, b)

    assert [(one.item_id, one.a, one.b) for one in found.improved] == [("x", 0.5, 0.7)]
    assert (found.overall.wins, found.overall.ties) == (1, 1)
    assert (found.a.unscored, found.b.unscored, found.is_complete) == (0, 2, False)


def test_holm_over_categories_and_dialects():
    """Smallest p-value times the number of groups, the next times one less; the overall one stands as it is."""
    facts = [("multi_step", "msa")] * 6 + [("tool_selection", "gulf")] * 3
    a, b = (
        scores(*(answer(f"i{n}", (0.3 + n / 10) * (gain and n < 6), category=category, dialect=dialect)
                 for n, (category, dialect) in enumerate(facts)))
        for gain in (False, True)
    )  # fmt: skip

    found = compare(a, b)

    groups = found.categories | found.dialects
    assert {name: group.p_value for name, group in groups.items()} == {
        "multi_step": 1 / 32, "tool_selection": 1.0, "msa": 1 / 32, "gulf": 1.0,
    }  # fmt: skip
    assert {name: group.adjusted for name, group in groups.items()} == {
        "multi_step": 4 / 32, "tool_selection": 1.0, "msa": 4 / 32, "gulf": 1.0,
    }  # fmt: skip
    assert found.categories["multi_step"].low > 0
    assert found.categories["multi_step"].verdict == "unclear"
    assert (found.overall.p_value, found.overall.adjusted) == (1 / 32, None)


def test_holm_over_models():
    """With two models against the first, the smaller overall p-value is doubled; with one it is not touched."""
    first = column([0.5] * 8)
    better, alike = column([1.0] * 6 + [0.5] * 2), column([1.0, 0.0] + [0.5] * 6)

    found = compare_all([first, better, alike])

    assert [one.overall.p_value for one in found] == [2 / 64, 1.0]
    assert [one.overall.adjusted for one in found] == [4 / 64, 1.0]
    assert [one.overall.verdict for one in found] == ["unclear", "unclear"]
    assert found[0].overall.low == compare(first, better).overall.low > 0
    # two groups of each of two models are four tests
    assert found[0].categories["multi_step"].adjusted == 4 * 2 / 64


def test_what_changed_most():
    """The largest losses and gains come first, equal ones by id, and no more of them than were asked for."""
    a = column([0.5] * 9)
    b = column([0.0, 0.1, 0.0, 0.5, 1.0, 0.6, 0.5, 0.9, 0.5])

    found = compare(a, b, listed=2)

    assert [one.item_id for one in found.regressed] == ["i0", "i2"]
    assert [(one.item_id, one.difference) for one in found.improved] == [("i4", 0.5), ("i7", 0.4)]
    assert (found.regressed[0].category, found.regressed[0].dialect) == ("multi_step", "msa")
    assert len(compare(a, b).regressed) == 3


# --- coverage ------------------------------------------------------------------------------------------------


def test_items_that_one_side_has_not_judged():
    """They are left out of all numbers, and counted; an item that one file lacks is one of them."""
    a = scores(answer("x", 0.5), answer("y", 0.5), answer("z", unscored=1))
    b = scores(answer("x", 1.0), answer("z", 1.0))

    found = compare(a, b)

    assert (found.items, found.compared, found.left_out) == (3, 1, 2)
    assert (found.overall.n, found.overall.difference) == (1, 0.5)
    assert (found.a.judged, found.b.judged, found.a.unscored, found.b.unscored) == (2, 2, 1, 0)
    assert not found.is_complete


def test_categories_without_weight():
    """They are not in the overall difference; where there are no others, there is none."""
    a = scores(answer("x", 0.5), answer("y", 0.0, category="شعر"))
    b = scores(answer("x", 0.5), answer("y", 1.0, category="شعر"))
    declared = {"شعر": Category("شعر", 0.0)}

    assert compare(a, b, categories=declared).overall.difference == 0
    assert compare(a, b, categories=declared).categories["شعر"].difference == 1
    lone = [scores(one.items["y"]) for one in (a, b)]
    assert compare(*lone, categories=declared).overall is None
    with pytest.raises(UnknownCategory, match="شعر"):
        compare(a, b)


# --- what does not compare -----------------------------------------------------------------------------------

REFUSED = {
    "rules": ({"rules": "v0.1-1"}, ["canonical-1", "v0.1-1", "Grade both by the same"]),
    "items": ({"items": "set@ffffffffffff"}, ["set@0123456789ab", "set@ffffffffffff", "--common"]),
    "format": ({"format": "text"}, ["format auto", "text", "--common"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    """Other rules, items or formats are refused with both values; --common allows all but other rules."""
    changed, said = REFUSED[name]
    a, b = column([0.5] * 3), signed_as(column([1.0] * 3, "other"), **changed)

    with pytest.raises(UsageError) as refusal:
        compare(a, b)

    assert all(text in str(refusal.value) for text in [*said, "model.jsonl", "other.jsonl"])
    if name == "rules":
        with pytest.raises(UsageError, match=r"v0\.1-1"):
            compare(a, b, common=True)
    else:
        notes = compare(a, b, common=True).notes
        assert len(notes) == 1
        assert notes[0].startswith("The ")
        assert said[1] in notes[0]


@pytest.mark.parametrize(
    ("changed", "note"),
    [
        ({"version": "9.9"}, "different versions of this package"),
        ({"epochs": 5}, "not asked equally often: 1 and 5"),
        ({"items": "renamed@0123456789ab"}, None),
    ],
)
def test_what_is_said(changed, note):
    """Other versions and epochs compare, with a note; another name of the same items needs none."""
    found = compare(column([0.5] * 3), signed_as(column([1.0] * 3), **changed))

    assert len(found.notes) == (note is not None)
    assert note is None or note in found.notes[0]


def test_common_items():
    """Only items that both hold under the same id and category are compared; the others are counted on each side."""
    a = scores(answer("x", 0.5), answer("y", 0.5), answer("z", 0.5), answer("q", 0.5))
    b = signed_as(scores(answer("x", 1.0), answer("y", 1.0, category="tool_selection"), answer("w", 1.0)), items="b@1")

    found = compare(a, b, common=True)

    assert (found.items, found.compared, found.left_out) == (1, 1, 0)
    assert (found.a.alone, found.b.alone) == (3, 2)
    assert found.is_complete


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([answer("x", 0.5)], [answer("y", 0.5)], "have no item in common"),
        ([answer("x", 0.5)], [answer("x", unscored=1)], "no item was judged both in"),
    ],
)
def test_nothing_to_compare(a, b, message):
    """Without an item that both were judged on there is nothing to say."""
    with pytest.raises(UsageError, match=message):
        compare(scores(*a), scores(*b), common=True)


def test_one_run_is_no_comparison():
    """Two runs are needed."""
    with pytest.raises(UsageError, match="two runs or more"):
        compare_all([column([1.0])])


# --- laws ----------------------------------------------------------------------------------------------------


def differences(found):
    """All differences of a comparison."""
    return [found.overall, *found.categories.values(), *found.dialects.values()]


@given(st.integers(0, 1000))
@settings(max_examples=20)
def test_a_model_against_itself(seed):
    """Everything is a tie, no p-value is below 1, nothing can be told, and no item has changed."""
    found = compare(drawn(seed), drawn(seed))

    assert (found.regressed, found.improved, found.notes) == ([], [], [])
    for one in differences(found):
        assert (one.difference, one.p_value, one.adjusted or 1.0, one.verdict) == (0, 1, 1, "unclear")
        assert (one.wins, one.ties, one.losses) == (0, one.n, 0)
        assert one.low < 0 < one.high


@given(st.integers(0, 1000), st.integers(0, 1000))
@settings(max_examples=20)
def test_the_other_way_round(one, other):
    """Exchanging the two mirrors everything: intervals, verdicts and lists change sides, p-values stay."""
    a, b = drawn(one), drawn(other)

    there, back = compare(a, b), compare(b, a)

    opposite = {"better": "worse", "worse": "better", "unclear": "unclear"}
    for left, right in zip(differences(there), differences(back), strict=True):
        assert (left.p_value, left.adjusted, left.detectable) == (right.p_value, right.adjusted, right.detectable)
        assert (left.difference, left.low, left.high) == pytest.approx((-right.difference, -right.high, -right.low))
        assert (left.wins, left.ties, left.losses) == (right.losses, right.ties, right.wins)
        assert left.verdict == opposite[right.verdict]
    assert [(c.item_id, c.a, c.b) for c in there.regressed] == [(c.item_id, c.b, c.a) for c in back.improved]
    assert (there.a, there.b) == (back.b, back.a)


@given(st.integers(0, 1000), st.randoms())
@settings(max_examples=20)
def test_the_order_of_rows_does_not_matter(seed, chance):
    """However the rows of a file are ordered, the comparison is the same to the last bit."""
    a, b = drawn(seed), drawn(seed + 1)

    def shuffled(found: Scores) -> Scores:
        items = list(found.items.values())
        chance.shuffle(items)
        return scores(*items)

    assert compare(shuffled(a), shuffled(b)) == compare(a, b)


@given(st.integers(0, 1000))
@settings(max_examples=20)
def test_adjusted_values_and_verdicts(seed):
    """An adjusted p-value is never smaller, and a verdict never stands against its interval."""
    for found in compare_all([drawn(seed), drawn(seed + 1), drawn(seed + 2)]):
        for one in differences(found):
            assert one.p_value <= one.adjusted <= 1
            assert one.low <= one.difference <= one.high
            assert one.verdict == "unclear" or (one.low > 0) is (one.verdict == "better")
            assert one.verdict == "unclear" or one.adjusted <= 0.05 + 1e-9


def test_a_large_difference_is_found():
    """Forty items that all gain are shown; whether better or worse depends on the side."""
    a = column([0.2] * 40)
    chance = random.Random(1)
    b = column([0.5 + 0.5 * chance.random() for _ in range(40)])

    assert (compare(a, b).overall.verdict, compare(b, a).overall.verdict) == ("better", "worse")


# --- the published runs --------------------------------------------------------------------------------------


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the shared data is not here")
def test_every_pair_of_the_published_runs_compares(tmp_path):
    """All fifty-one items of every pair are compared; the differences are those of the published scores."""
    found = {}
    for name in RUNS:
        rows = tmp_path / f"{name}.jsonl"
        options = ("--items", PUBLISHED / "items.jsonl", "--replies", PUBLISHED / "runs" / f"{name}.json")
        overall = aae("grade", *options, "--json", "--out", rows).json["overall"]
        found[name] = (overall, read_scores(rows))

    for one, other in itertools.permutations(RUNS, 2):
        result = compare(found[one][1], found[other][1])
        assert (result.compared, result.left_out, result.is_complete) == (51, 0, True)
        assert (result.overall.a, result.overall.b) == pytest.approx((found[one][0], found[other][0]))
        assert result.overall.difference == pytest.approx(found[other][0] - found[one][0])
        wanted = "better" if other == "glm-5.1" and one != "claude-opus-4.7" else None
        assert wanted is None or result.overall.verdict == wanted


# --- scores of single items ----------------------------------------------------------------------------------


def test_scores_of_a_file(tmp_path):
    """Epochs come in their order whatever the order of the rows; what was not judged is counted."""
    items = [{"id": "x", "category": "multi_step", "dialect": "gulf", "intent": "go",
              "expected_calls": [{"function": "f", "arguments": {"a": "جدة"}}]}]  # fmt: skip
    values = {2: "جدة", 0: "مكة", 1: "جده"}
    replies = [
        {"id": "x", "epoch": n, "calls": [{"function": "f", "arguments": {"a": text}}]} for n, text in values.items()
    ]
    replies.append({"id": "x", "epoch": 3, "error": "timeout"})
    rows = tmp_path / "rows.jsonl"
    aae("grade", *files(tmp_path, items, replies), "--out", rows)

    found = read_scores(rows)

    [one] = found.items.values()
    assert (one.category, one.dialect, one.intent, one.cluster) == ("multi_step", "gulf", "go", "intent:go")
    assert one.totals == pytest.approx((0.5, 0.965, 1.0), abs=0.2)
    assert list(one.totals) == sorted(one.totals)
    assert (one.exact, one.unscored, one.arabic) == (1, 1, True)
    assert one.axes["argument_accuracy"] == pytest.approx(1.9 / 3)
    assert "error_handling" not in one.axes
    assert (found.name, found.path, found.signature.epochs, found.figures) == ("rows", str(rows), 4, None)


def test_scores_of_a_run_are_those_of_its_rows(tmp_path):
    """A run folder gives the scores of the rows that regrading writes, and what it took besides."""
    folder, rows = tmp_path / "run", tmp_path / "rows.jsonl"
    aae("run", "--items", "starter", "--limit", 5, "--run", folder)
    aae("regrade", folder, "--out", rows, "--rules", "v0.1")

    of_run, of_rows = read_scores(folder, rules=RULES["v0.1"]), read_scores(rows)

    assert of_run.items == of_rows.items
    assert of_run.signature == of_rows.signature
    assert (of_run.name, of_run.figures.model) == ("baseline", "baseline")


def test_scores_of_a_damaged_file(tmp_path):
    """Rows of several gradings, an answer that stands twice and a file without rows are refused by name."""
    rows = tmp_path / "rows.jsonl"
    aae("grade", *files(tmp_path), "--out", rows)
    lines = [msgspec.json.decode(line) for line in rows.read_bytes().splitlines()]
    other = lines[0] | {"item_id": "other", "signature": lines[0]["signature"].replace("v:", "v:9")}

    for damaged, message in (([*lines, other], "are mixed"), ([*lines, lines[0]], "stands twice"), ([], "no rows")):
        found = aae("compare", write(rows, damaged), rows)
        assert found.code == 2
        assert str(rows) in found.err
        assert message in found.err
