"""How often intervals hold the truth and tests cry wolf: ``python -m benchmarks.statistics_simulation [--quick]``.

Prints the tables of ``docs/design/statistics.md``. Everything is seeded; a full run takes some minutes on one core.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy import special

from arabic_agent_eval.statistics import mean_interval, paired_difference

LEVEL, TAIL = 0.95, 0.025
WEIGHTS = np.array([0.2, 0.2, 0.2, 0.15, 0.15, 0.1])
SIZES = np.array([0.25, 0.2, 0.2, 0.15, 0.12, 0.08])
EASE = np.array([0.05, 0.02, -0.08, -0.05, 0.04, 0.02])
ALIKE = 0.3  # correlation of the hidden abilities of items in a cluster
SHARED = 0.6  # correlation of two models on an item

# what an item can score, and how often when it does not score 1: the rest of the mean is made of ones or zeros
SCORES = {
    "graded": ([0, 0.3, 0.6, 0.9, 1], [0.41, 0.12, 0.35, 0.12, 0]),
    "all or nothing": ([0, 1], [1, 0]),
    "mostly 0.6": ([0, 0.6, 1], [0.1, 0.9, 0]),
    "0.9, rarely 0": ([0, 0.9, 1], [0.15, 0.85, 0]),
}


@dataclass(frozen=True)
class Layout:
    """Which items there are: the number of clusters' items, their strata and the weights of the strata."""

    name: str
    size: np.ndarray
    stratum: np.ndarray
    weight: np.ndarray

    @property
    def cluster(self) -> np.ndarray:
        """Cluster of each item."""
        return np.repeat(np.arange(self.size.size), self.size)

    def labels(self) -> dict:
        """The arguments that the library takes for it."""
        strata = np.array(list("abcdef"))[self.stratum[self.cluster]]
        return {"clusters": self.cluster, "strata": strata, "weights": dict(zip("abcdef", self.weight, strict=False))}


def lay_out(items: int, strata: int, largest: int, random: np.random.Generator) -> Layout:
    rows = np.round(items * SIZES).astype(int) if strata > 1 else np.array([items])
    size, stratum = [], []
    for layer, count in enumerate(rows):
        placed = 0
        while placed < count:
            size.append(min(count - placed, int(random.integers(1, largest + 1))))
            stratum.append(layer)
            placed += size[-1]
    weight = WEIGHTS if strata > 1 else np.ones(1)
    clusters = "items alone" if largest == 1 else f"{len(size)} clusters"
    return Layout(f"{items} items, {clusters}, {strata} strata", np.array(size), np.array(stratum), weight)


def distribution(mean: float, kind: str) -> tuple[np.ndarray, np.ndarray]:
    scores, rates = map(np.array, SCORES[kind])
    middle = scores @ rates
    rates = rates * ((1 - mean) / (1 - middle) if mean >= middle else mean / middle)
    rates[-1 if mean >= middle else 0] += 1 - rates.sum()
    return scores, rates


def draw(
    layout: Layout, means: list[np.ndarray], kind: str, sets: int, random: np.random.Generator
) -> list[np.ndarray]:
    """Scores of each model, a row for each repetition; means are those of the strata."""
    cluster = layout.cluster

    def hidden() -> np.ndarray:
        common = random.standard_normal((sets, layout.size.size))[:, cluster]
        return np.sqrt(ALIKE) * common + np.sqrt(1 - ALIKE) * random.standard_normal((sets, cluster.size))

    both, models = hidden(), []
    for mean in means:
        rank = special.ndtr(np.sqrt(SHARED) * both + np.sqrt(1 - SHARED) * hidden())
        scores = np.empty_like(rank)
        for layer, value in enumerate(mean):
            levels, rates = distribution(value, kind)
            here = layout.stratum[cluster] == layer
            scores[:, here] = levels[np.searchsorted(np.cumsum(rates)[:-1], rank[:, here])]
        models.append(scores)
    return models


def strata_means(layout: Layout, mean: float) -> np.ndarray:
    ease = EASE[: layout.weight.size] if layout.weight.size > 1 else np.zeros(1)
    return np.clip(mean + ease * min(1, 4 * (1 - mean)), 0.01, 0.995)


def overall(layout: Layout, means: np.ndarray) -> float:
    return float(means @ layout.weight / layout.weight.sum())


class Bootstrap:
    """Cluster bootstrap of many data sets with one set of resamples, and the intervals that people make of it."""

    def __init__(self, layout: Layout, scores: np.ndarray, resamples: int, random: np.random.Generator) -> None:
        starts = np.cumsum(layout.size) - layout.size
        sums, weight = np.add.reduceat(scores, starts, axis=1), layout.weight / layout.weight.sum()
        self.estimate, self.deviation = np.zeros(len(scores)), np.zeros_like(sums)
        self.means, variances = np.zeros((2, len(scores), resamples))
        own = np.zeros(len(scores))
        for layer, share in enumerate(weight):
            here = np.flatnonzero(layout.stratum == layer)
            size, part = layout.size[here], sums[:, here]
            times = random.multinomial(here.size, np.full(here.size, 1 / here.size), resamples).T
            mean = part.sum(axis=1) / size.sum()
            again, drawn = size @ times, part @ times
            centre = drawn / again
            squares = part**2 @ times - 2 * centre * ((part * size) @ times) + centre**2 * (size**2 @ times)
            correction = here.size / max(1, here.size - 1)
            self.estimate += share * mean
            self.means += share * centre
            variances += share**2 * correction * np.maximum(squares, 0) / again**2
            self.deviation[:, here] = share / size.sum() * (part - size * mean[:, None])
            own += correction * (self.deviation[:, here] ** 2).sum(axis=1)
        self.error, self.errors = np.sqrt(own), np.sqrt(variances)

    def normal(self) -> tuple[np.ndarray, np.ndarray]:
        """Estimate and 1.96 standard errors."""
        half = special.ndtri(1 - TAIL) * self.error
        return self.estimate - half, self.estimate + half

    def percentile(self) -> tuple[np.ndarray, np.ndarray]:
        """What lies between the percentiles of the resampled means."""
        low, high = np.quantile(self.means, [TAIL, 1 - TAIL], axis=1)
        return low, high

    def corrected(self) -> tuple[np.ndarray, np.ndarray]:
        """BCa."""
        gap, quantile = self.means - self.estimate[:, None], special.ndtri(1 - TAIL)
        below = (gap < -1e-12).mean(axis=1) + (np.abs(gap) <= 1e-12).mean(axis=1) / 2
        bias = special.ndtri(below.clip(1e-3, 1 - 1e-3))
        square = (self.deviation**2).sum(axis=1)
        skew = (self.deviation**3).sum(axis=1) / (6 * np.maximum(square, 1e-18) ** 1.5)
        ordered = np.sort(self.means, axis=1)
        ends = []
        for shift in (bias - quantile, bias + quantile):
            rank = special.ndtr(bias + shift / (1 - skew * shift)) * ordered.shape[1]
            ends.append(ordered[np.arange(len(rank)), rank.astype(int).clip(0, ordered.shape[1] - 1)])
        return ends[0], ends[1]

    def studentized(self) -> tuple[np.ndarray, np.ndarray]:
        """Bootstrap-t; a resample without spread puts the end beyond any value."""
        gap = self.means - self.estimate[:, None]
        far = np.where(np.abs(gap) < 1e-12, 0.0, np.sign(gap) * 1e9)
        scaled = np.where(self.errors > 1e-9, gap / np.maximum(self.errors, 1e-9), far)
        low, high = np.quantile(scaled, [TAIL, 1 - TAIL], axis=1)
        return self.estimate - high * self.error, self.estimate - low * self.error


def ours(layout: Layout, scores: np.ndarray, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    labels = layout.labels()
    found = [mean_interval(row, **labels, **options) for row in scores]
    return np.array([interval.low for interval in found]), np.array([interval.high for interval in found])


def coverage_row(layout: Layout, kind: str, mean: float, sets: int, random: np.random.Generator) -> list[str]:
    means = strata_means(layout, mean)
    (scores,) = draw(layout, [means], kind, sets, random)
    truth, boot = overall(layout, means), Bootstrap(layout, scores, 999, random)
    rivals = [boot.normal(), boot.percentile(), boot.corrected(), boot.studentized()]
    widened = ours(layout, scores[: sets // 4], method="bootstrap", resamples=1000)
    cells = []
    for low, high in [ours(layout, scores), *rivals, widened]:
        covered = (low <= truth + 1e-9) & (truth - 1e-9 <= high)
        width = (high.clip(0, 1) - low.clip(0, 1)).mean()
        cells.append(f"{100 * covered.mean():.1f} ({width:.3f})")
    return [layout.name, kind, f"{mean}", *cells]


def pair_row(
    layout: Layout, kind: str, first: float, second: float, sets: int, random: np.random.Generator
) -> tuple[list[str], float]:
    """A row of the table, and the detectable difference."""
    means = [strata_means(layout, first), strata_means(layout, second)]
    truth, labels = overall(layout, means[1]) - overall(layout, means[0]), layout.labels()
    models = draw(layout, means, kind, sets, random)
    found = [
        paired_difference(a, b, **labels, resamples=1000, seed=seed)
        for seed, (a, b) in enumerate(zip(*models, strict=True))
    ]
    rejected = 100 * np.mean([pair.p_value <= 1 - LEVEL for pair in found])
    covered = 100 * np.mean([pair.low - 1e-9 <= truth <= pair.high + 1e-9 for pair in found])
    moved = np.mean([pair.n - pair.ties for pair in found])
    detectable = float(np.mean([pair.detectable or 0 for pair in found]))
    cells = [f"{truth:+.3f}", f"{moved:.0f}", f"{rejected:.1f}", f"{covered:.1f}", f"{detectable:.3f}"]
    return [layout.name, kind, f"{first:.2f}", *cells], detectable


def print_table(heads: list[str], rows: list[list[str]]) -> None:
    for row in [heads, ["---"] * len(heads), *rows]:
        print("|", " | ".join(row), "|")
    print(flush=True)


def simulate_means(layouts: list[Layout], sets: int, random: np.random.Generator) -> None:
    means = (0.3, 0.6, 0.9, 0.97)
    cells = [
        (layout, kind, mean)
        for layout, kind, mean in product(layouts, SCORES, means)
        if kind in {"graded", "all or nothing"} or mean > 0.5
    ]
    heads = ["design", "scores", "mean", "score", "normal", "percentile", "BCa", "bootstrap-t", "widened percentile"]
    print_table(heads, [coverage_row(*cell, sets, random) for cell in cells])


def simulate_pairs(layouts: list[Layout], sets: int, random: np.random.Generator) -> None:
    rows = []
    for layout, kind in product(layouts, ("graded", "all or nothing")):
        rows += [pair_row(layout, kind, mean, mean, sets, random)[0] for mean in (0.3, 0.6, 0.9, 0.97)]
        rows += [pair_row(layout, kind, *pair, sets, random)[0] for pair in ((0.3, 0.9), (0.9, 0.97))]
        detectable = pair_row(layout, kind, 0.5, 0.5, 200, random)[1]
        rows.append(pair_row(layout, kind, 0.5, 0.5 + detectable, sets, random)[0])
    print_table(
        ["design", "scores", "mean of a", "difference", "items that differ", "rejected %", "covered %", "detectable"],
        rows,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a twentieth of the repetitions, and fewer designs")
    quick = parser.parse_args().quick
    sets, random = (100 if quick else 2000), np.random.default_rng(20261201)
    shapes = [(60, 6, 1), (60, 6, 5), (60, 1, 5), (150, 6, 5), (600, 6, 5)]
    layouts = [lay_out(*shape, random) for shape in (shapes[:2] if quick else shapes)]
    print(f"Coverage in % of 95 % intervals (mean width), {sets} repetitions\n")
    simulate_means(layouts, sets, random)
    print(f"Paired differences, {sets} repetitions\n")
    simulate_pairs(layouts[:2] if quick else [layouts[0], layouts[1], layouts[3], layouts[4]], sets, random)


if __name__ == "__main__":
    main()
