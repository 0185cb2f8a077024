"""Intervals, paired tests and repeated trials, on plain arrays.

Scores are numbers in [0, 1], one for an item. Items that share a cluster (the paraphrases of one intent) are not
independent, so nothing here counts items where it should count clusters. Strata are the categories: the estimate is
the weighted mean of their means, as the overall score is. Every function is pure: equal input, equal output.

The choice of methods, with simulated coverage and rejection rates, is in ``docs/design/statistics.md``. Sources:

    Wilson 1927, JASA 22:209                        the score interval of a rate
    Clopper & Pearson 1934, Biometrika 26:404       the bound where nothing varies
    Kish 1965, Survey Sampling                      effective number of clusters
    Holm 1979, Scand. J. Statist. 6:65              several tests at once
    Bloom 1995, Evaluation Review 19:547            the smallest difference that a design detects
    Garthwaite 1996, Biometrics 52:1387             intervals from randomisation tests
    Korn & Graubard 1998, Survey Methodology 24:193 a score interval on an effective sample size
    Bell & McCaffrey 2002, Survey Methodology 28:169  standard errors and degrees of freedom with few clusters
    Phipson & Smyth 2010, SAGMB 9:39                sampled p-values that are never 0
    Hesterberg 2015, American Statistician 69:371   the widened bootstrap percentile interval
    Chen et al. 2021, arXiv:2107.03374              pass@k
    Yao et al. 2024, arXiv:2406.12045               pass^k
    Miller 2024, arXiv:2411.00640                   clustered and paired comparison of language models
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from .designs import ROUNDING, Design, Floats, Labels, Numbers, is_flat, norm, read_counts, read_design, read_values
from .errors import UsageError

_TIE = 1e-9  # scores are sums of a few decimal fractions: what differs by less is the same score
_PRIOR = 0.15  # degrees of freedom that "every cluster is right or wrong as a whole" adds to the observed spread
_ENUMERATED = 14  # clusters whose sign flips are all tried
_CHUNK = 1 << 20  # numbers in memory at once while resampling
_FEWEST = 1000
_LEVELS = 0.5, 0.999


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and how far it can be trusted.

    Attributes:
        estimate: the mean, rate or probability, in [0, 1].
        low: lower end; 0 ≤ low ≤ estimate.
        high: upper end; estimate ≤ high ≤ 1.
        n: number of items.
        clusters: number of independent groups among them; n where each item stands alone.
    """

    estimate: float
    low: float
    high: float
    n: int
    clusters: int


@dataclass(frozen=True, slots=True)
class Paired:
    """Two models on the same items.

    Attributes:
        difference: score of b less score of a, in [-1, 1].
        low: lower end of its interval.
        high: upper end of its interval.
        p_value: two-sided, in (0, 1]: how often models that are equal on every item would differ by this much.
        n: number of items.
        clusters: number of independent groups among them.
        wins: items where b is better.
        ties: items where the scores differ by less than 1e-9.
        losses: items where a is better.
        detectable: the true difference that these items would have shown in 80 of 100 repetitions, tested at two-sided
            5 %; None where the clusters do not differ among themselves, or are one, so that there is no spread to
            judge by.
    """

    difference: float
    low: float
    high: float
    p_value: float
    n: int
    clusters: int
    wins: int
    ties: int
    losses: int
    detectable: float | None


@dataclass(frozen=True, slots=True)
class Repeated:
    """Items that were tried several times.

    Attributes:
        k: number of attempts that is asked about.
        pass_at_k: probability that at least one of k attempts succeeds, mean over the items.
        pass_hat_k: probability that all of k attempts succeed (pass^k), mean over the items.
    """

    k: int
    pass_at_k: Interval
    pass_hat_k: Interval


def mean_interval(
    values: Numbers,
    clusters: Labels | None = None,
    *,
    strata: Labels | None = None,
    weights: Mapping[str, float] | None = None,
    level: float = 0.95,
    method: Literal["score", "bootstrap"] = "score",
    resamples: int = 10_000,
    seed: int = 0,
) -> Interval:
    """The mean score with its interval.

    ``score`` is Wilson's interval on the effective number of observations (Korn & Graubard), with the standard error
    of ``cluster_standard_error`` and a t quantile. It reaches at least as far as clusters would take it that were
    missed by chance: a share so small that the sample holds none of them with probability sqrt(1 - level). It needs no
    random numbers. ``bootstrap`` resamples clusters within their strata (all together where a cluster lies in several)
    and takes widened percentiles (Hesterberg); it covers too seldom near 0 and 1 and is there for comparison.

    An interval is never a point. Where clusters or resamples do not differ, it is what a share p of clusters unlike
    them could change, p being the Clopper-Pearson bound for none seen; with all values 1 that is the Clopper-Pearson
    interval on the effective number of clusters. One cluster alone says nothing of others: its interval is [0, 1].

    Args:
        values: one score in [0, 1] for each item.
        clusters: a label for each item; items with one label stand or fall together, None stands alone. Without it
            every item stands alone.
        strata: a label for each item, its category. Without it all items are of one.
        weights: the weight of each stratum, above 0; those of absent strata do not count. Without it a stratum weighs
            as much as it has items, and the estimate is the plain mean.
        level: confidence, 0.5 to 0.999.
        method: ``score`` or ``bootstrap``.
        resamples: for ``bootstrap``, 1000 or more.
        seed: for ``bootstrap``, 0 or more.

    Raises:
        UsageError: the input is empty, not finite, outside its range or of different lengths.
    """
    scores = read_values(values, "values", 0.0)
    _check_options(level, resamples, seed)
    if method not in {"score", "bootstrap"}:
        raise UsageError(f"The method {method!r} is not known; it is 'score' or 'bootstrap'.")
    design = read_design(scores.size, clusters, strata, weights)
    estimate = design.mean(scores)
    if design.clusters == 1:
        low, high = 0.0, 1.0
    elif is_flat(design.deviations(scores)):
        low, high = _unseen(estimate, (1 - level) / 2, design, 0.0)
    elif method == "score":
        low, high = _score_ends(design, scores, level)
    else:
        low, high = _bootstrap_ends(design, scores, level, resamples, np.random.default_rng(seed))
        if high - low < ROUNDING:  # every stratum is one cluster, or nearly all resamples are alike
            low, high = _unseen(estimate, (1 - level) / 2, design, 0.0)
    return _interval(estimate, low, high, scores.size, design.clusters)


def wilson(successes: int, n: int, level: float = 0.95) -> Interval:
    """Wilson's interval for a rate of independent successes; n is 1 or more, level 0.5 to 0.999.

    Raises:
        UsageError: the counts are not whole, or successes are not within 0 and n.
    """
    _check_options(level)
    _check_counts(successes, n, 1)
    low, high = _wilson_ends(successes / n, n, float(special.ndtri((1 + level) / 2)))
    return _interval(successes / n, low, high, n, n)


def paired_difference(
    a: Numbers,
    b: Numbers,
    clusters: Labels | None = None,
    *,
    strata: Labels | None = None,
    weights: Mapping[str, float] | None = None,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Paired:
    """How much better b is than a on the same items, with an interval and a test.

    The test exchanges the two models in whole clusters. Where at most 14 clusters differ, every exchange is tried;
    otherwise ``resamples`` random ones are, and the p-value is (1 + as extreme) / (1 + tried). The interval holds the
    differences that the same exchanges do not reject at 1 - level (Garthwaite), so it holds 0 when the p-value is
    above 1 - level. Five clusters or fewer can never reject at 5 %: their interval is [-1, 1]. Where the clusters do
    not differ among themselves, it is never a point: it reaches what a share of unlike clusters could change, as in
    ``mean_interval``. One cluster alone: [-1, 1] and a p-value of 1.

    ``detectable`` is (t(0.975) + t(0.8)) · standard error (Bloom), t with the degrees of freedom of the standard error.

    Args:
        a: one score in [0, 1] for each item, of the first model.
        b: the scores of the second model, in the same order.
        clusters: as in ``mean_interval``.
        strata: as in ``mean_interval``.
        weights: as in ``mean_interval``.
        level: confidence, 0.5 to 0.999.
        resamples: 1000 or more.
        seed: 0 or more.

    Raises:
        UsageError: the input is empty, not finite, outside its range or of different lengths.
    """
    first, second = read_values(a, "a", 0.0), read_values(b, "b", 0.0)
    _check_options(level, resamples, seed)
    if first.size != second.size:
        raise UsageError(f"A paired comparison needs the same items: a has {first.size} scores and b {second.size}.")
    design = read_design(first.size, clusters, strata, weights)
    change = np.where(np.abs(second - first) < _TIE, 0.0, second - first)
    difference, p_value, low, high = design.mean(change), 1.0, -1.0, 1.0
    if design.clusters > 1:
        p_value, low, high = _exchange(design, change, level, resamples, np.random.default_rng(seed))
        if is_flat(design.deviations(change)):
            ends = _unseen(difference, (1 - level) / 2, design, -1.0)
            low, high = min(low, ends[0]), max(high, ends[1])
    return Paired(
        difference=difference,
        low=max(-1.0, min(low, difference)),
        high=min(1.0, max(high, difference)),
        p_value=p_value,
        n=first.size,
        clusters=design.clusters,
        wins=int((change > 0).sum()),
        ties=int((change == 0).sum()),
        losses=int((change < 0).sum()),
        detectable=_detectable(design, change),
    )


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Holm's adjusted p-values, under the same names in the same order; none is less than what it was, or above 1.

    Raises:
        UsageError: a p-value is not a number in [0, 1].
    """
    if not p_values:
        return {}
    read_values(list(p_values.values()), "p_values", 0.0)
    adjusted: dict[str, float] = {}
    floor = 0.0
    for rank, name in enumerate(sorted(p_values, key=lambda name: p_values[name])):
        floor = max(floor, min(1.0, (len(p_values) - rank) * float(p_values[name])))
        adjusted[name] = floor
    return {name: adjusted[name] for name in p_values}


def pass_at_k(successes: int, n: int, k: int) -> float:
    """Probability that at least one of k attempts succeeds, estimated without bias from n attempts (pass@k).

    Args:
        successes: how many of the n attempts succeeded, 0 to n.
        n: attempts, 1 or more.
        k: 1 to n.

    Returns:
        1 - C(n - successes, k) / C(n, k), in [0, 1].

    Raises:
        UsageError: a number is not whole or outside its range.
    """
    _check_counts(successes, n, k)
    return 1 - math.comb(n - successes, k) / math.comb(n, k)


def pass_hat_k(successes: int, n: int, k: int) -> float:
    """Probability that all of k attempts succeed, estimated without bias from n attempts (pass^k).

    Arguments and errors are those of ``pass_at_k``; the result is C(successes, k) / C(n, k), in [0, 1].
    """
    _check_counts(successes, n, k)
    return math.comb(successes, k) / math.comb(n, k)


def repeated(
    successes: Sequence[int] | NDArray[np.integer],
    n: int | Sequence[int] | NDArray[np.integer],
    k: int,
    clusters: Labels | None = None,
    *,
    strata: Labels | None = None,
    weights: Mapping[str, float] | None = None,
    level: float = 0.95,
) -> Repeated:
    """pass@k and pass^k over items, with the intervals of ``mean_interval`` over the items' estimates.

    Args:
        successes: for each item, how many of its attempts succeeded.
        n: attempts: one number, or one for each item.
        k: from 1 to the smallest n.
        clusters: as in ``mean_interval``.
        strata: as in ``mean_interval``.
        weights: as in ``mean_interval``.
        level: confidence, 0.5 to 0.999.

    Raises:
        UsageError: as ``pass_at_k`` and ``mean_interval`` say.
    """
    hits = read_counts(successes, "successes")
    tries = [n] * len(hits) if isinstance(n, int) else read_counts(n, "n")
    if len(tries) != len(hits):
        raise UsageError(
            f"There are {len(hits)} counts of successes and {len(tries)} of attempts; give as many of both."
        )
    some, every = (
        mean_interval(
            [estimate(*counts, k) for counts in zip(hits, tries, strict=True)],
            clusters,
            strata=strata,
            weights=weights,
            level=level,
        )
        for estimate in (pass_at_k, pass_hat_k)
    )
    return Repeated(k, some, every)


def cluster_standard_error(
    values: Numbers,
    clusters: Labels | None = None,
    *,
    strata: Labels | None = None,
    weights: Mapping[str, float] | None = None,
) -> float | None:
    """Standard error of the weighted mean of the strata's means, from how clusters spread about them.

    Each cluster's deviation is divided by sqrt(1 - its share of the stratum) (Bell & McCaffrey's CR2), which is the
    textbook standard error where clusters are of one size. A stratum with a single cluster has no spread of its own:
    that cluster is measured against the overall mean instead.

    Args:
        values: one number in [-1, 1] for each item: scores, or differences of scores.
        clusters: as in ``mean_interval``.
        strata: as in ``mean_interval``.
        weights: as in ``mean_interval``.

    Returns:
        0 or more; None where all items are one cluster.

    Raises:
        UsageError: the input is empty, not finite, outside its range or of different lengths.
    """
    numbers = read_values(values, "values", -1.0)
    return read_design(numbers.size, clusters, strata, weights).standard_error(numbers)


def _score_ends(design: Design, scores: Floats, level: float) -> tuple[float, float]:
    """Wilson's interval on the effective number of observations, widened for clusters that chance has missed."""
    mean, freedom, effective = design.mean(scores), design.freedom(), design.effective()
    spread = mean * (1 - mean)
    dispersion = norm(design.deviations(scores)) ** 2 * effective / spread
    mixed = (freedom * dispersion + _PRIOR) / (freedom + _PRIOR)
    quantile = float(special.stdtrit(freedom, (1 + level) / 2))
    low, high = _wilson_ends(mean, effective / mixed, quantile)
    least, most = _unseen(mean, math.sqrt(1 - level), design, 0.0)
    return min(low, least), max(high, most)


def _wilson_ends(rate: float, n: float, quantile: float) -> tuple[float, float]:
    """The rates whose distance from the one observed is ``quantile`` of their own standard errors."""
    extra = quantile**2 / n
    centre = (rate + extra / 2) / (1 + extra)
    half = math.sqrt(extra * rate * (1 - rate) + extra**2 / 4) / (1 + extra)
    return centre - half, centre + half


def _unseen(mean: float, chance: float, design: Design, lowest: float) -> tuple[float, float]:
    """How far the mean moves if clusters at either end exist, so few that the sample has none with this chance."""
    share = 1 - chance ** (1 / design.effective())
    return mean - share * (mean - lowest), mean + share * (1 - mean)


def _bootstrap_ends(
    design: Design, scores: Floats, level: float, resamples: int, random: np.random.Generator
) -> tuple[float, float]:
    """Percentiles of resampled estimates, moved out as far as a t interval is wider than a plain one."""
    shape = (design.clusters, design.weight.size)
    sums, sizes = np.zeros(shape), np.zeros(shape)
    sums[design.cluster, design.stratum] = design.sums(scores)
    sizes[design.cluster, design.stratum] = design.size
    own = design.means(design.sums(scores))
    estimates = np.zeros(resamples)
    for members, layers in design.groups():
        for start, rows in _chunks(resamples, members.size):
            drawn = members[random.integers(0, members.size, (rows, members.size))]
            for layer in layers:
                count = sizes[drawn, layer].sum(axis=1)
                mean = np.where(count > 0, sums[drawn, layer].sum(axis=1) / np.maximum(count, 1), own[layer])
                estimates[start : start + rows] += design.weight[layer] * mean
    widening = norm(design.deviations(scores)) / norm(design.deviations(scores, corrected=False))
    tail = special.ndtr(-special.stdtrit(design.freedom(), (1 + level) / 2) * widening)
    low, high = np.quantile(estimates, [tail, 1 - tail])
    return float(low), float(high)


def _exchange(
    design: Design, change: Floats, level: float, resamples: int, random: np.random.Generator
) -> tuple[float, float, float]:
    """The p-value of no difference, and the least and the greatest difference that is not rejected.

    With signs s, a true difference d is as extreme as observed when ``|observed - d| ≤ |Σ s·moved - d·Σ s·share|``,
    which holds between two values of d that lie on either side of the observed one.
    """
    shares = design.shares()
    moved = design.parts(design.sums(change))
    observed, tail = float(moved.sum()), 1 - level
    flipped, kept, exact = _flip(moved, shares, resamples, random)
    count, tries = int((np.abs(flipped) >= abs(observed) - ROUNDING).sum()), flipped.size
    always = np.abs(kept) > 1 - ROUNDING  # no model exchanged, or both in every cluster
    with np.errstate(divide="ignore", invalid="ignore"):
        one = np.where(always, -math.inf, (observed - flipped) / (1 - kept))
        other = np.where(always, math.inf, (observed + flipped) / (1 + kept))
    rank = math.floor(tail * tries + _TIE) if exact else math.floor(tail * (tries + 1) + _TIE) - 1
    low = float(np.partition(np.minimum(one, other), rank)[rank])
    high = float(np.partition(np.maximum(one, other), tries - 1 - rank)[tries - 1 - rank])
    return (count / tries if exact else (count + 1) / (tries + 1)), low, high


def _flip(moved: Floats, shares: Floats, resamples: int, random: np.random.Generator) -> tuple[Floats, Floats, bool]:
    """Signed sums over clusters of what moved and of the shares; whether every exchange that matters was tried."""
    listed = np.arange(moved.size) if moved.size <= _ENUMERATED else np.flatnonzero(moved)
    if listed.size > _ENUMERATED:
        flipped, kept = _flip_at_random(np.column_stack([moved, shares]), resamples, random).T
        return flipped, kept, False
    patterns = 1.0 - 2.0 * (np.arange(1 << listed.size)[:, None] >> np.arange(listed.size) & 1)
    rest = np.delete(shares, listed)
    # clusters that did not move cannot change the p-value; for the interval their signs are drawn
    repeats = math.ceil(resamples / len(patterns)) if rest.size else 1
    drawn = _flip_at_random(rest[:, None], repeats * len(patterns), random)[:, 0]
    return np.tile(patterns @ moved[listed], repeats), np.tile(patterns @ shares[listed], repeats) + drawn, True


def _flip_at_random(columns: Floats, tries: int, random: np.random.Generator) -> Floats:
    """Sums of each column with random signs, a row for each try."""
    sums = np.zeros((tries, columns.shape[1]))
    for start, rows in _chunks(tries, max(1, len(columns))):
        signs = random.integers(0, 2, (rows, len(columns)), dtype=np.int8)
        sums[start : start + rows] = (1.0 - 2.0 * signs) @ columns
    return sums


def _chunks(rows: int, width: int) -> Iterator[tuple[int, int]]:
    """First row and number of rows of each part that fits into memory."""
    step = max(1, _CHUNK // width)
    for start in range(0, rows, step):
        yield start, min(step, rows - start)


def _detectable(design: Design, change: Floats) -> float | None:
    """The smallest true difference with 80 % power at two-sided 5 %."""
    if design.clusters == 1 or is_flat(design.deviations(change)):
        return None
    freedom = design.freedom()
    quantiles = special.stdtrit(freedom, 0.975) + special.stdtrit(freedom, 0.8)
    return float(quantiles * norm(design.deviations(change)))


def _interval(estimate: float, low: float, high: float, n: int, clusters: int) -> Interval:
    """An interval within [0, 1] that holds its estimate whatever rounding did."""
    return Interval(estimate, max(0.0, min(low, estimate)), min(1.0, max(high, estimate)), n, clusters)


def _check_counts(successes: int, n: int, k: int) -> None:
    """Counts of attempts."""
    for name, count, least in (("successes", successes, 0), ("n", n, 1), ("k", k, 1)):
        if isinstance(count, bool) or not isinstance(count, int) or count < least:
            raise UsageError(f"{name} is {count!r}; it must be a whole number from {least}.")
    if successes > n:
        raise UsageError(f"There cannot be {successes} successes in {n} attempts.")
    if k > n:
        raise UsageError(
            f"k is {k}, but an item has only {n} attempts; ask for a smaller k or repeat the run more often."
        )


def _check_options(level: float, resamples: int = _FEWEST, seed: int = 0) -> None:
    """Options that are alike in several functions."""
    if not isinstance(level, int | float) or not _LEVELS[0] <= level <= _LEVELS[1]:
        raise UsageError(f"level is {level!r}; it must be a number from 0.5 to 0.999.")
    if isinstance(resamples, bool) or not isinstance(resamples, int) or resamples < _FEWEST:
        raise UsageError(f"resamples is {resamples!r}; it must be a whole number from {_FEWEST}.")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise UsageError(f"seed is {seed!r}; it must be a whole number from 0.")
