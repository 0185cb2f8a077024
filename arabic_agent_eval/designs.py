"""Which items stand or fall together, what each weighs, and how far their weighted mean can be trusted.

The errors are those of a user who calls ``statistics``; the sources of the formulas are named there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .errors import UsageError

Floats: TypeAlias = NDArray[np.float64]
Numbers: TypeAlias = Sequence[float] | NDArray[np.generic]
Labels: TypeAlias = Sequence[str | int | None] | NDArray[np.generic]

ROUNDING = 1e-12  # sums of thousands of scores differ by less for no other reason


@dataclass(frozen=True, slots=True)
class Design:
    """Which item stands with which. A cell is what a cluster has in a stratum; seldom more than one."""

    item_cell: NDArray[np.intp]
    cluster: NDArray[np.intp]  # of each cell, like the next three
    stratum: NDArray[np.intp]
    size: Floats
    share: Floats  # of its stratum
    weight: Floats  # of each stratum; adds up to 1
    clusters: int

    def mean(self, values: Floats) -> float:
        """The weighted mean of the strata's means."""
        mean = self.weight @ self.means(self.sums(values))
        return float(np.clip(mean, values.min(), values.max()))  # rounding takes it out of the range of its values

    def sums(self, values: Floats) -> Floats:
        """Sum of the values in each cell."""
        return _add(self.item_cell, values, self.size.size)

    def means(self, sums: Floats) -> Floats:
        """Mean of each stratum."""
        layers = self.weight.size
        return _add(self.stratum, sums, layers) / _add(self.stratum, self.size, layers)

    def parts(self, sums: Floats) -> Floats:
        """What each cluster contributes to the estimate, from the sums of the cells."""
        return _add(self.cluster, self.weight[self.stratum] * self.share / self.size * sums, self.clusters)

    def shares(self) -> Floats:
        """What each cluster weighs in the estimate; adds up to 1."""
        return self.parts(self.size)

    def effective(self) -> float:
        """Kish's number of equally heavy clusters."""
        return float(1 / (self.shares() ** 2).sum())

    def leverages(self) -> tuple[NDArray[np.bool_], Floats]:
        """Cells that are alone in their stratum, and how much of its centre each cell has made itself."""
        alone = np.bincount(self.stratum)[self.stratum] == 1
        return alone, np.minimum(np.where(alone, self.weight[self.stratum], self.share), 1 - ROUNDING)

    def deviations(self, values: Floats, *, corrected: bool = True) -> Floats:
        """What each cluster adds to the error of the estimate; the squares add up to its variance."""
        sums = self.sums(values)
        means = self.means(sums)
        alone, leverage = self.leverages()
        centre = np.where(alone, self.weight @ means, means[self.stratum])
        parts = self.weight[self.stratum] * self.share * (sums / self.size - centre)
        return _add(self.cluster, parts / np.sqrt(1 - leverage) if corrected else parts, self.clusters)

    def standard_error(self, values: Floats) -> float | None:
        """Of the weighted mean; None where all items are one cluster, so that there is no spread to judge by."""
        return None if self.clusters == 1 else norm(self.deviations(values))

    def freedom(self) -> float:
        """Satterthwaite's degrees of freedom of that variance if items were alike and independent."""
        alone, leverage = self.leverages()
        variance = (self.weight[self.stratum] * self.share) ** 2 / self.size
        pull = np.where(alone, 0.0, leverage**2 / (1 - leverage))
        # two cells of a stratum are correlated through its mean: weight⁴ / items² · pull · pull
        layers = self.weight.size
        rows = _add(self.stratum, self.size, layers)
        crossed = _add(self.stratum, pull, layers) ** 2 - _add(self.stratum, pull**2, layers)
        spread = (variance**2).sum() + (self.weight**4 / rows**2 * crossed).sum()
        return float(np.clip(variance.sum() ** 2 / spread, 1.0, self.clusters - 1))

    def groups(self) -> Iterator[tuple[NDArray[np.intp], range]]:
        """Clusters to be resampled together, with the strata that they are in: all, where one is in several."""
        layers = range(self.weight.size)
        if self.cluster.size > self.clusters:
            yield np.arange(self.clusters), layers
            return
        for layer in layers:
            yield self.cluster[self.stratum == layer], range(layer, layer + 1)


def read_design(n: int, clusters: Labels | None, strata: Labels | None, weights: Mapping[str, float] | None) -> Design:
    """The design of n items; the labels are checked."""
    groups = list(range(n)) if clusters is None else _read_labels(clusters, n, "clusters")
    layers = [0] * n if strata is None else _read_labels(strata, n, "strata")
    cells: dict[object, int] = {}
    item_cell = np.array([cells.setdefault(pair, len(cells)) for pair in zip(groups, layers, strict=True)], np.intp)
    first = np.unique(item_cell, return_index=True)[1]
    size = np.bincount(item_cell).astype(np.float64)
    stratum = np.array([layers[index] for index in first], np.intp)
    rows = _add(stratum, size, max(layers) + 1)
    return Design(
        item_cell=item_cell,
        cluster=np.array([groups[index] for index in first], np.intp),
        stratum=stratum,
        size=size,
        share=size / rows[stratum],
        weight=_read_weights(weights, strata, rows),
        clusters=max(groups) + 1,
    )


def _read_numbers(values: object, name: str) -> Floats:
    """Finite numbers as floats, in the shape that they have."""
    try:
        array = np.asarray(values)
    except (ValueError, TypeError):
        array = np.asarray(None)
    if array.dtype.kind not in "biuf":
        raise UsageError(f"{name} must be numbers; texts, None and nested lists of different lengths are not.")
    if not array.size:
        raise UsageError(f"{name} is empty; there is nothing to measure.")
    if not np.isfinite(array).all():
        raise UsageError(f"{name} holds NaN or an infinity; leave out what was not measured.")
    return array.astype(np.float64)


def read_values(values: object, name: str, lowest: float) -> Floats:
    """One number for each item, from ``lowest`` to 1."""
    array = _read_numbers(values, name)
    if array.ndim != 1:
        raise UsageError(f"{name} must be one list of numbers, one for each item.")
    if array.min() < lowest or array.max() > 1:
        raise UsageError(f"{name} must be within [{lowest:g}, 1]; they go from {array.min():g} to {array.max():g}.")
    return array


def read_counts(counts: object, name: str) -> list[int]:
    """A list, one count for each item; that they are whole is for the formula to check."""
    plain = counts.tolist() if isinstance(counts, np.ndarray) else counts
    if not isinstance(plain, list | tuple):
        raise UsageError(f"{name} must be a list of whole numbers, one for each item.")
    return list(plain)


def _read_labels(labels: object, n: int, name: str) -> list[int]:
    """A number from 0 for each item, equal where the labels are; None is unlike everything."""
    plain = labels.tolist() if isinstance(labels, np.ndarray) else labels
    if not isinstance(plain, list | tuple):
        raise UsageError(f"{name} must be a list of labels, one for each item, and not {type(labels).__name__}.")
    if len(plain) != n:
        raise UsageError(f"{name} has {len(plain)} labels for {n} items; give each item one.")
    allowed = (str, int) if name == "strata" else (str, int, type(None))
    if not all(isinstance(label, allowed) for label in plain):
        raise UsageError(f"{name} must be texts or whole numbers (in clusters also None: the item stands alone).")
    codes: dict[object, int] = {}
    return [codes.setdefault((place,) if label is None else label, len(codes)) for place, label in enumerate(plain)]


def _read_weights(weights: Mapping[str, float] | None, strata: Labels | None, rows: Floats) -> Floats:
    """The weight of each stratum in the order in which they appear; adds up to 1."""
    if weights is None:
        by_size: Floats = rows / rows.sum()
        return by_size
    if strata is None:
        raise UsageError("weights belong to strata; give each item its stratum.")
    if not isinstance(weights, Mapping):
        raise UsageError("weights must map each stratum to a number.")
    names = list(dict.fromkeys(strata.tolist() if isinstance(strata, np.ndarray) else strata))
    missing = [name for name in names if name not in weights]
    if missing:
        raise UsageError(f"The stratum {missing[0]!r} has no weight; declare one.")
    chosen = _read_numbers([weights[name] for name in names], "weights")
    if chosen.ndim != 1 or (chosen <= 0).any():
        raise UsageError("Every weight must be a number above 0.")
    scaled: Floats = chosen / chosen.sum()
    return scaled


def _add(index: NDArray[np.intp], values: Floats, length: int) -> Floats:
    """Sums of the values that have the same index."""
    return np.bincount(index, values, length).astype(np.float64, copy=False)


def is_flat(deviations: Floats) -> bool:
    """Whether the clusters do not differ, rounding aside."""
    return norm(deviations) < ROUNDING


def norm(deviations: Floats) -> float:
    """The standard error that deviations make."""
    return float(np.sqrt((deviations**2).sum()))
