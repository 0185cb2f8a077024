"""Intervals hold the truth as often as they say, tests cry wolf as seldom, and bad input is named."""

from __future__ import annotations

import json
import math
import tracemalloc
from itertools import combinations, pairwise, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from arabic_agent_eval import designs, statistics
from arabic_agent_eval.errors import UsageError
from arabic_agent_eval.statistics import (
    cluster_standard_error,
    holm,
    mean_interval,
    paired_difference,
    pass_at_k,
    pass_hat_k,
    repeated,
    wilson,
)
from benchmarks import statistics_simulation as simulation

CASES = json.loads((Path(__file__).parent / "cases" / "statistics.json").read_text(encoding="utf-8"))
VALUES = [pytest.param(case, id=case["id"]) for case in CASES if "message" not in case]
MISTAKES = [pytest.param(case, id=case["id"]) for case in CASES if "message" in case]

SCORES = st.sampled_from([0.0, 0.3, 0.6, 0.9, 1.0])
ITEMS = st.lists(st.tuples(SCORES, SCORES, st.integers(0, 9), st.sampled_from("abc")), min_size=1, max_size=30)
"""Score of a, score of b, cluster, stratum; a cluster may lie in several strata."""

WEIGHTS = {"a": 0.5, "b": 0.3, "c": 0.2, "absent": 4}
UNEVEN = [0, 0, 0, 1, 2, 2, 3, 4, 4, 5, 5, 5, 6, 7, 7]
LAYERS = list("aaaaaa") + list("bbbbbbbbb")
MIXED = [1, 0.6, 1, 0, 0.9, 1, 1, 0.3, 0.6, 1, 0, 0, 1, 0.9, 0.6]


def call(case: dict) -> object:
    """What the function of a case makes of its arguments."""
    return getattr(statistics, case["call"])(*case["args"], **case.get("options", {}))


@pytest.mark.parametrize("case", VALUES)
def test_values_by_hand(case):
    """What can be computed by hand comes out as by hand."""
    result = call(case)
    if "fields" in case:
        assert {name: getattr(result, name) for name in case["fields"]} == pytest.approx(case["fields"], abs=1e-9)
    else:
        assert result == pytest.approx(case["value"], abs=1e-12)


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_are_named(case):
    """Input that makes no sense is a UsageError whose sentence says what is wrong."""
    with pytest.raises(UsageError) as caught:
        call(case)
    assert case["message"] in str(caught.value)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_are_finite(number):
    """NaN and infinities are refused wherever numbers are taken."""
    for attempt in (
        lambda: mean_interval([0.5, number]),
        lambda: paired_difference([0.5, 1], [0.5, number]),
        lambda: cluster_standard_error([number]),
        lambda: holm({"a": number}),
        lambda: mean_interval([1, 0], strata=["a", "b"], weights={"a": 1, "b": number}),
    ):
        with pytest.raises(UsageError, match="NaN or an infinity"):
            attempt()
    with pytest.raises(UsageError, match="level is"):
        wilson(1, 2, number)


def test_arrays_are_taken():
    """Arrays and lists, texts and numbers as labels, give the same."""
    listed = mean_interval([1, 0, 1, 0.6], [1, 1, 2, 3], strata=list("aabb"), weights=WEIGHTS)
    arrays = mean_interval(
        np.array([1, 0, 1, 0.6]), np.array(["x", "x", "y", "z"]), strata=np.array(list("aabb")), weights=WEIGHTS
    )
    assert listed == arrays
    assert mean_interval([True, False]) == mean_interval(np.array([1, 0]))


def test_none_stands_alone():
    """An item without an intent is a cluster of its own, whatever the others are called."""
    lone = mean_interval(MIXED[:5], ["x", None, "x", None, 0])
    assert lone == mean_interval(MIXED[:5], [1, 2, 1, 3, 4])
    assert lone.clusters == 4


def test_the_estimate_is_the_weighted_mean_of_means():
    """Strata count by their weights, absent ones not at all; without weights by their items."""
    expected = (0.5 * np.mean(MIXED[:6]) + 0.3 * np.mean(MIXED[6:])) / 0.8
    assert mean_interval(MIXED, strata=LAYERS, weights=WEIGHTS).estimate == pytest.approx(expected, abs=1e-12)
    assert mean_interval(MIXED, strata=LAYERS).estimate == pytest.approx(np.mean(MIXED), abs=1e-12)
    assert mean_interval(MIXED, UNEVEN).estimate == pytest.approx(np.mean(MIXED), abs=1e-12)


def bell_mccaffrey(values: list, clusters: list, strata: list, weight: dict) -> tuple[float, float]:
    """Standard error and degrees of freedom by their definition, with matrices: CR2 of a regression on the strata."""
    names = sorted(set(strata))
    table = np.array([[float(label == name) for name in names] for label in strata])
    contrast = np.array([weight[name] for name in names]) / sum(weight[name] for name in names)
    inverse = np.linalg.inv(table.T @ table)
    residual = np.eye(len(values)) - table @ inverse @ table.T
    rows = []
    for cluster in sorted(set(clusters)):
        here = [place for place, label in enumerate(clusters) if label == cluster]
        roots, vectors = np.linalg.eigh(residual[np.ix_(here, here)])
        scaled = vectors @ np.diag(roots.clip(1e-12) ** -0.5) @ vectors.T
        rows.append(contrast @ inverse @ table[here].T @ scaled @ residual[here])
    lines = np.array(rows)
    inner = lines @ lines.T
    return float(np.linalg.norm(lines @ np.array(values))), float(np.trace(inner) ** 2 / np.trace(inner @ inner))


def test_standard_error_by_its_definition():
    """The closed forms agree with the matrices that define them, for uneven clusters in two strata and in one."""
    for strata, weights in ((LAYERS, WEIGHTS), (["a"] * 15, {"a": 1})):
        error, freedom = bell_mccaffrey(MIXED, UNEVEN, strata, weights)
        design = designs.read_design(15, UNEVEN, strata, weights)
        assert cluster_standard_error(MIXED, UNEVEN, strata=strata, weights=weights) == pytest.approx(error, rel=1e-6)
        assert design.freedom() == pytest.approx(freedom, rel=1e-6)


def test_standard_error_of_items_alone_is_the_textbook_one():
    """Without clusters it is the standard deviation over the root of n, with n - 1 degrees of freedom."""
    assert cluster_standard_error(MIXED) == pytest.approx(stats.sem(MIXED), rel=1e-12)
    assert designs.read_design(15, None, None, None).freedom() == pytest.approx(14, rel=1e-12)


def test_clusters_that_cross_strata():
    """Where every cluster has one item in each stratum, it is the textbook standard error of the cluster's means."""
    first, second = MIXED[:7], MIXED[7:14]
    error = cluster_standard_error(first + second, list(range(7)) * 2, strata=["a"] * 7 + ["b"] * 7, weights=WEIGHTS)
    means = (0.5 * np.array(first) + 0.3 * np.array(second)) / 0.8
    assert error == pytest.approx(stats.sem(means), rel=1e-12)


def test_a_lone_cluster_is_measured_against_the_overall_mean():
    """A stratum with one cluster has no spread of its own, and yet does not count as certain."""
    error = cluster_standard_error([1, 0.6, 0], [0, 1, 2], strata=list("aab"), weights={"a": 3, "b": 1})
    alone = 0.25 * (0 - 0.6) / math.sqrt(1 - 0.25)
    assert error == pytest.approx(math.hypot(0.75 * 0.2, alone), rel=1e-12)
    assert mean_interval([1, 0], strata=["a", "b"], weights={"a": 1, "b": 1e-30}).low < 1


def test_one_cluster_has_no_standard_error():
    """One cluster says nothing of others: no standard error, the widest interval, no rejection."""
    assert cluster_standard_error([1, 0], ["a", "a"]) is None
    for method in ("score", "bootstrap"):
        lone = mean_interval([1, 0.8], ["a", "a"], method=method)
        assert (lone.estimate, lone.low, lone.high, lone.n, lone.clusters) == (0.9, 0, 1, 2, 1)
    pair = paired_difference([0, 0], [1, 1], ["a", "a"])
    assert (pair.low, pair.high, pair.p_value, pair.detectable) == (-1, 1, 1, None)


def test_the_score_interval_solves_its_equation():
    """Its ends are the means whose distance from the estimate is t of their own standard errors."""
    error, freedom = bell_mccaffrey(MIXED, UNEVEN, LAYERS, WEIGHTS)
    found = mean_interval(MIXED, UNEVEN, strata=LAYERS, weights=WEIGHTS)
    mean, quantile = found.estimate, stats.t.ppf(0.975, freedom)
    largest = mean * (1 - mean) / designs.read_design(15, UNEVEN, LAYERS, WEIGHTS).effective()
    variance = (freedom * error**2 + 0.15 * largest) / (freedom + 0.15)

    def gap(end: float) -> float:
        return (mean - end) ** 2 - quantile**2 * variance * end * (1 - end) / (mean * (1 - mean))

    assert found.low == pytest.approx(optimize.brentq(gap, 0, mean), abs=1e-6)
    assert found.high == pytest.approx(optimize.brentq(gap, mean, 1), abs=1e-6)


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_all_alike_is_clopper_pearson(level):
    """Where every score is 1 or every score is 0, the interval is the exact one of as many clusters."""
    exact = stats.binomtest(20, 20).proportion_ci(level, method="exact")
    for method in ("score", "bootstrap"):
        ones = mean_interval([1] * 40, [place // 2 for place in range(40)], level=level, method=method)
        assert (ones.low, ones.high) == pytest.approx((exact.low, 1), abs=1e-9)
    zeros = mean_interval([0] * 20, level=level)
    assert (zeros.low, zeros.high) == pytest.approx((0, 1 - exact.low), abs=1e-9)


def test_all_alike_within_the_range():
    """Clusters that all score 0.6 leave room for a share of zeros below and of ones above."""
    share = 1 - 0.025 ** (1 / 30)
    found = mean_interval([0.6] * 30)
    assert found.estimate == 0.6
    assert (found.low, found.high) == pytest.approx((0.6 - 0.6 * share, 0.6 + 0.4 * share), abs=1e-9)
    assert mean_interval([1, 0.2] * 30, [place // 2 for place in range(60)]) == statistics.Interval(
        0.6, pytest.approx(found.low), pytest.approx(found.high), 60, 30
    )


def test_rare_failures_that_were_not_seen():
    """One score of 0.9 among ones does not make zeros impossible."""
    found = mean_interval([1] * 59 + [0.9])
    share = 1 - math.sqrt(0.05) ** (1 / 60)
    assert found.low == pytest.approx(found.estimate * (1 - share), abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(ITEMS, st.sampled_from(["score", "bootstrap"]), st.sampled_from([0.5, 0.9, 0.95, 0.999]))
def test_intervals_are_never_points(items, method, level):
    """Whatever the items, the interval is within [0, 1], holds the estimate and has a length."""
    values, _, clusters, strata = map(list, zip(*items, strict=True))
    found = mean_interval(values, clusters, strata=strata, weights=WEIGHTS, level=level, method=method, resamples=1000)
    assert 0 <= found.low <= found.estimate <= found.high <= 1
    assert found.low < found.high
    assert (found.n, found.clusters) == (len(items), len(set(clusters)))


@settings(max_examples=60, deadline=None)
@given(ITEMS)
def test_the_score_interval_is_symmetrical(items):
    """Failures are counted as successes are, and the order of items and the names of clusters do not matter."""
    values, _, clusters, strata = map(list, zip(*items, strict=True))
    found = mean_interval(values, clusters, strata=strata, weights=WEIGHTS)
    mirrored = mean_interval([1 - value for value in values], clusters, strata=strata, weights=WEIGHTS)
    assert (mirrored.low, mirrored.high) == pytest.approx((1 - found.high, 1 - found.low), abs=1e-9)
    turned = mean_interval(
        values[::-1], [f"intent {label}" for label in clusters[::-1]], strata=strata[::-1], weights=WEIGHTS
    )
    assert (turned.low, turned.high) == pytest.approx((found.low, found.high), abs=1e-9)


def test_more_confidence_is_wider_and_more_items_are_narrower():
    """Intervals nest by level, and shrink with the number of clusters."""
    widths = [mean_interval(MIXED, level=level) for level in (0.5, 0.8, 0.95, 0.999)]
    assert all(a.low > b.low and a.high < b.high for a, b in pairwise(widths))
    few, many = mean_interval(MIXED * 2), mean_interval(MIXED * 20)
    assert many.high - many.low < (few.high - few.low) / 3


def test_the_bootstrap_agrees_with_scipy():
    """Without clusters it is the percentile interval, moved out by t and n / (n - 1)."""
    values = np.resize(MIXED, 60)
    tail = stats.norm.cdf(-stats.t.ppf(0.975, 59) * math.sqrt(60 / 59))
    theirs = stats.bootstrap(
        (values,), np.mean, confidence_level=1 - 2 * tail, method="percentile", rng=np.random.default_rng(5)
    ).confidence_interval
    found = mean_interval(values, method="bootstrap")
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=0.012)


def test_the_bootstrap_follows_its_seed(monkeypatch):
    """One seed gives one interval, and another seed or smaller chunks one that is hardly different."""
    options = {"clusters": UNEVEN, "strata": LAYERS, "weights": WEIGHTS, "method": "bootstrap"}
    found = mean_interval(MIXED, seed=7, **options)
    assert found == mean_interval(MIXED, seed=7, **options)
    other = mean_interval(MIXED, seed=8, **options)
    monkeypatch.setattr(statistics, "_CHUNK", 50)
    chunked = mean_interval(MIXED, seed=9, **options)
    for again in (other, chunked):
        assert (again.low, again.high) != (found.low, found.high)
        assert (again.low, again.high) == pytest.approx((found.low, found.high), abs=0.03)


def test_the_bootstrap_keeps_crossing_clusters_whole():
    """A cluster in two strata is drawn with all that it has, so its two halves move together."""
    values, strata = [1, 0, 0.6, 1, 0, 0.9] * 5, ["a"] * 30
    twice = mean_interval(
        values * 2, list(range(30)) * 2, strata=strata + ["b"] * 30, weights=WEIGHTS, method="bootstrap"
    )
    once = mean_interval(values, method="bootstrap")
    assert (twice.low, twice.high) == pytest.approx((once.low, once.high), abs=0.015)


def brute_force(a: list, b: list, clusters: list, shift: float) -> float:
    """p-value of "b is better by ``shift``": every exchange of the models in whole clusters, one by one."""
    moved = [
        sum(y - x - shift for x, y, label in zip(a, b, clusters, strict=True) if label == name)
        for name in sorted(set(clusters))
    ]
    sums = [
        abs(sum(sign * part for sign, part in zip(signs, moved, strict=True)))
        for signs in product((1, -1), repeat=len(moved))
    ]
    return float(np.mean([total >= abs(sum(moved)) - 1e-9 for total in sums]))


FIRST = [0.6, 0, 1, 1, 0.3, 0, 0.6, 1, 0.9, 0, 0.6, 0.3, 1, 0, 0]
SECOND = [1, 0.6, 1, 1, 0.9, 0.6, 0.6, 0.9, 1, 0.6, 1, 0.3, 1, 0.9, 0]


def test_the_exact_test_and_its_interval():
    """With few clusters the p-value counts every exchange, and the interval is what that test does not reject."""
    found = paired_difference(FIRST, SECOND, UNEVEN)
    assert found.p_value == pytest.approx(brute_force(FIRST, SECOND, UNEVEN, 0), abs=1e-12)
    assert (found.wins, found.ties, found.losses, found.n, found.clusters) == (8, 6, 1, 15, 8)
    for inside, outside in ((found.low + 1e-6, found.low - 1e-6), (found.high - 1e-6, found.high + 1e-6)):
        assert brute_force(FIRST, SECOND, UNEVEN, inside) > 0.05 >= brute_force(FIRST, SECOND, UNEVEN, outside)


def test_the_exact_test_of_right_and_wrong_is_mcnemars():
    """With scores 0 and 1 and items alone, the p-value is the exact one of McNemar, however many items are tied."""
    a, b = [0] * 10 + [1] * 2 + [1] * 50, [1] * 10 + [0] * 2 + [1] * 50
    assert paired_difference(a, b).p_value == pytest.approx(stats.binomtest(2, 12).pvalue, abs=1e-12)


def test_the_sampled_test_agrees_with_scipy():
    """With many clusters the p-value is that of as many random exchanges, and is never 0."""
    a, b = FIRST * 3, np.roll(SECOND * 3, 2)
    theirs = stats.permutation_test((b - np.array(a),), np.mean, permutation_type="samples", n_resamples=20_000)
    assert paired_difference(a, b).p_value == pytest.approx(theirs.pvalue, abs=0.02)
    assert paired_difference([0] * 60, [1, 0.6] * 30).p_value == pytest.approx(1 / 10_001)


def test_the_sampled_interval_is_near_the_one_of_t():
    """With many items and no stratum the interval is hardly different from the usual one."""
    change = np.resize([0.4, -0.4, 0, 0, 0.6, 0.1, -0.3, 0], 200)
    found = paired_difference(np.full(200, 0.4), 0.4 + change)
    half = stats.t.ppf(0.975, 199) * stats.sem(change)
    assert (found.low, found.high) == pytest.approx((change.mean() - half, change.mean() + half), abs=0.006)


@settings(max_examples=80, deadline=None)
@given(ITEMS, st.sampled_from([0.8, 0.95]))
def test_the_interval_goes_with_the_test(items, level):
    """Where the clusters differ, 0 is outside the interval exactly when the test rejects."""
    a, b, clusters, strata = map(list, zip(*items, strict=True))
    found = paired_difference(a, b, clusters, strata=strata, weights=WEIGHTS, level=level, resamples=1000)
    assert -1 <= found.low <= found.difference <= found.high <= 1
    assert found.low < found.high
    assert 0 < found.p_value <= 1
    assert found.wins + found.ties + found.losses == found.n == len(items)
    if found.p_value > 1 - level + 1e-9:
        assert found.low <= 1e-9
        assert found.high >= -1e-9
    elif found.detectable is not None:
        assert found.low > -1e-9 or found.high < 1e-9


@settings(max_examples=60, deadline=None)
@given(ITEMS)
def test_exchanging_the_models_changes_the_sign(items):
    """Model b against a is a against b with the other sign."""
    a, b, clusters, strata = map(list, zip(*items, strict=True))
    there, back = (
        paired_difference(*pair, clusters, strata=strata, weights=WEIGHTS, resamples=1000) for pair in ((a, b), (b, a))
    )
    assert (back.difference, back.low, back.high) == pytest.approx(
        (-there.difference, -there.high, -there.low), abs=1e-9
    )
    assert (back.p_value, back.wins, back.losses) == (there.p_value, there.losses, there.wins)


def test_equal_scores_are_ties():
    """Rounding is no difference; equal models have p = 1 and an interval that is not a point."""
    found = paired_difference([0.3] * 30, [0.1 + 0.2] * 30)
    share = 1 - 0.025 ** (1 / 30)
    assert (found.difference, found.p_value, found.ties, found.detectable) == (0, 1, 30, None)
    assert (found.low, found.high) == pytest.approx((-share, share), abs=1e-9)


def test_a_difference_that_is_everywhere():
    """A model that is better by 1 on every item is significantly so, and its interval is not a point."""
    found = paired_difference([0] * 20, [1] * 20)
    share = 1 - 0.025 ** (1 / 20)
    assert (found.difference, found.high, found.wins) == (1, 1, 20)
    assert found.low == pytest.approx(1 - 2 * share, abs=1e-9)
    assert found.p_value == pytest.approx(1 / 10_001)


def test_five_clusters_cannot_reject():
    """The smallest p-value of five clusters is 2 / 32, so their interval excludes nothing; six clusters can."""
    five = paired_difference([0] * 5, [1, 1, 1, 0.9, 0.9])
    assert (five.p_value, five.low, five.high) == (0.0625, -1, 1)
    six = paired_difference([0] * 6, [1, 1, 1, 0.9, 0.9, 0.9])
    assert six.p_value == 2 / 64
    assert six.low > 0


def test_detectable_by_hand():
    """It is (t of 0.975 + t of 0.8) standard errors, for items alone with n - 1 degrees of freedom."""
    change = np.array(SECOND) - np.array(FIRST)
    quantiles = stats.t.ppf(0.975, 14) + stats.t.ppf(0.8, 14)
    assert paired_difference(FIRST, SECOND).detectable == pytest.approx(quantiles * stats.sem(change), rel=1e-9)


def test_paired_follows_its_seed():
    """One seed gives one result, another hardly a different one."""
    a, b = FIRST * 3, SECOND * 3
    assert paired_difference(a, b, seed=1) == paired_difference(a, b, seed=1)
    assert paired_difference(a, b, seed=1) != paired_difference(a, b, seed=2)
    assert paired_difference(a, b, seed=1).low == pytest.approx(paired_difference(a, b, seed=2).low, abs=0.02)


def test_holm_keeps_names_and_order():
    """The result has the names in their order, and no p-value becomes smaller."""
    given_ = {"z": 0.2, "a": 0.001, "m": 0.2, "b": 0.04}
    adjusted = holm(given_)
    assert list(adjusted) == list(given_)
    assert adjusted == pytest.approx({"z": 0.4, "a": 0.004, "m": 0.4, "b": 0.12})


@pytest.mark.parametrize(("n", "successes"), [(n, successes) for n in range(1, 7) for successes in range(n + 1)])
def test_pass_at_k_counts_every_choice(n, successes):
    """Both estimators are shares of all choices of k attempts out of n."""
    attempts = [place < successes for place in range(n)]
    for k in range(1, n + 1):
        choices = list(combinations(attempts, k))
        assert pass_at_k(successes, n, k) == pytest.approx(np.mean([any(choice) for choice in choices]), abs=1e-12)
        assert pass_hat_k(successes, n, k) == pytest.approx(np.mean([all(choice) for choice in choices]), abs=1e-12)


def test_repeated_is_the_mean_over_items():
    """Items are averaged with the intervals of their estimates; numbers of attempts may differ."""
    successes, attempts = [3, 5, 0, 2], [5, 5, 4, 3]
    options = {"clusters": [1, 1, 2, 3], "strata": list("aabb"), "weights": WEIGHTS, "level": 0.9}
    found = repeated(successes, attempts, 2, **options)
    some = [pass_at_k(*pair, 2) for pair in zip(successes, attempts, strict=True)]
    every = [pass_hat_k(*pair, 2) for pair in zip(successes, attempts, strict=True)]
    assert found == statistics.Repeated(2, mean_interval(some, **options), mean_interval(every, **options))
    assert repeated(np.array([1, 2]), 3, 2) == repeated([1, 2], np.array([3, 3]), 2)
    assert found.pass_hat_k.estimate <= found.pass_at_k.estimate


@pytest.mark.parametrize("kind", list(simulation.SCORES))
@pytest.mark.parametrize("mean", [0.6, 0.95])
def test_intervals_cover(kind, mean):
    """In 300 seeded repetitions 60 items in clusters are covered about 95 times in 100; the limits are wide."""
    random = np.random.default_rng(11)
    row = simulation.coverage_row(simulation.lay_out(60, 6, 5, random), kind, mean, 300, random)
    assert 89 <= float(row[3].split()[0]) <= 100


@pytest.mark.parametrize("kind", ["graded", "all or nothing"])
def test_equal_models_are_seldom_told_apart(kind):
    """Of 400 seeded pairs of equal models about 5 % are rejected; the limits are wide."""
    random = np.random.default_rng(12)
    layout = simulation.lay_out(150, 6, 5, random)
    row, detectable = simulation.pair_row(layout, kind, 0.6, 0.6, 400, random)
    assert 1.5 <= float(row[5]) <= 9
    powerful, _ = simulation.pair_row(layout, kind, 0.6, 0.6 + detectable, 200, random)
    assert 65 <= float(powerful[5]) <= 95


def test_large_runs_fit_into_memory():
    """600 items and 10,000 resamples need a few dozen megabytes at most."""
    values = np.resize(MIXED, 600)
    tracemalloc.start()
    mean_interval(values, method="bootstrap")
    paired_difference(values, values[::-1])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 * 2**20


def test_agreement_with_statsmodels():
    """Where statsmodels is installed, its Wilson interval, Holm correction and clustered errors are the same."""
    pytest.importorskip("statsmodels")
    from statsmodels.regression.linear_model import OLS
    from statsmodels.stats.multitest import multipletests
    from statsmodels.stats.proportion import proportion_confint

    assert (wilson(7, 19).low, wilson(7, 19).high) == pytest.approx(proportion_confint(7, 19, method="wilson"))
    p_values = {"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.2}
    assert list(holm(p_values).values()) == pytest.approx(multipletests(list(p_values.values()), method="holm")[1])
    clusters = np.repeat(np.arange(5), 3)
    theirs = OLS(MIXED, np.ones(15)).fit(cov_type="cluster", cov_kwds={"groups": clusters})
    assert cluster_standard_error(MIXED, clusters) == pytest.approx(theirs.bse[0])
