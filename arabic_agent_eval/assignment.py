"""The assignment problem: who meets whom, so that the sum of what the pairs are worth is largest (ruling 14)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import permutations

_FEW = 120


def assign(worth: list[list[int]]) -> Iterable[tuple[int, int]]:
    """Pairs (column, row) of the best assignment.

    Args:
        worth: for every row what it is worth with every column, as whole numbers, so that sums are exact; at least one
            row and one column.
    """
    sizes = sorted((len(worth), len(worth[0])))
    return _try_all(worth) if math.perm(sizes[1], sizes[0]) <= _FEW else _solve(worth)


def _try_all(worth: list[list[int]]) -> Iterable[tuple[int, int]]:
    """Every assignment of a few: cheaper than loading a solver, which takes a third of a second."""
    rows, columns = range(len(worth)), range(len(worth[0]))
    if len(rows) >= len(columns):
        orders = (list(zip(columns, order, strict=True)) for order in permutations(rows, len(columns)))
    else:
        orders = (list(zip(order, rows, strict=True)) for order in permutations(columns, len(rows)))
    return max(orders, key=lambda pairs: sum(worth[row][column] for column, row in pairs))


def _solve(worth: list[list[int]]) -> Iterable[tuple[int, int]]:
    """In polynomial time: a reply may hold thousands of calls."""
    import numpy as np  # noqa: PLC0415
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415

    rows, columns = linear_sum_assignment(np.array(worth, dtype=float), maximize=True)
    return zip(columns.tolist(), rows.tolist(), strict=True)
