"""How far the numbers of one model can be trusted: the intervals of a report, and what repeated askings show.

The methods are those of :mod:`arabic_agent_eval.statistics`, which loads numpy and scipy; only commands that print
intervals load this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from arabic_agent_eval import statistics
from arabic_agent_eval.groups import grouped
from arabic_agent_eval.items import CATEGORIES, DIALECTS
from arabic_agent_eval.rules import AXES
from arabic_agent_eval.scores import weights_of
from arabic_agent_eval.summary import NO_DIALECT, Ends, weight_of

if TYPE_CHECKING:
    from arabic_agent_eval.items import Category
    from arabic_agent_eval.scores import ItemScores, Scores

LEVEL: Final = 0.95
"""The confidence of every interval that a command prints."""


class Intervals(msgspec.Struct, frozen=True):
    """The intervals that belong to the numbers of a summary, each from 0 to 1.

    Attributes:
        overall: of the overall score; None where it is None.
        categories, dialects: name → interval of the group's score.
        axes: axis → interval, of the axes that some category with a weight has.
        exact_match: of the share of items that are right in every respect; None when nothing was scored.
        level: their confidence.
    """

    overall: Ends | None
    categories: dict[str, Ends]
    dialects: dict[str, Ends]
    axes: dict[str, Ends]
    exact_match: Ends | None
    level: float = LEVEL


class Estimate(msgspec.Struct, frozen=True):
    """A probability with its interval, all from 0 to 1."""

    estimate: float
    low: float
    high: float


class Repeats(msgspec.Struct, frozen=True):
    """What k askings of an item bring; a success is an answer that is right in every respect.

    Attributes:
        k: how many askings.
        n: items that were judged so often at least; the others are left out.
        pass_at_k: the probability that one or more of k askings succeed, mean over these items.
        pass_hat_k: the probability that all k succeed (pass^k), mean over these items.
    """

    k: int
    n: int
    pass_at_k: Estimate
    pass_hat_k: Estimate


class Uncertainty(msgspec.Struct, frozen=True):
    """What a report says besides the summary: intervals, and where items were asked several times what that brings."""

    intervals: Intervals
    repeated: list[Repeats]

    def document(self) -> dict[str, Any]:
        """What the JSON of a report says of it; ``repeated`` only where items were asked several times."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        if not self.repeated:
            del found["repeated"]
        return found


def intervals(scores: Scores, categories: Mapping[str, Category] | None = None, *, level: float = LEVEL) -> Intervals:
    """The intervals of a model's scores, weighted and grouped as a summary is.

    Args:
        scores: of single items.
        categories: declared categories; the canonical ones are always known.
        level: confidence, 0.5 to 0.999.

    Raises:
        UnknownCategory: a scored category has no declared weight (ruling 19).
        UsageError: the level is out of its range.
    """
    declared = categories or {}
    judged = scores.judged()
    weights = weights_of(scores, lambda name: weight_of(name, declared))
    by_category = grouped(judged, lambda item: item.category, [*CATEGORIES, *declared])
    by_dialect = grouped(judged, lambda item: item.dialect or NO_DIALECT, DIALECTS)

    def weighted(value: Callable[[ItemScores], float], items: Iterable[ItemScores]) -> Ends | None:
        counted = [item for item in items if item.category in weights]
        return _ends(counted, value, level, weights) if counted else None

    by_axis = {axis: weighted(_axis(axis), (item for item in judged if axis in item.axes)) for axis in AXES}
    return Intervals(
        overall=weighted(lambda item: item.mean, judged),
        categories={name: _ends(items, lambda item: item.mean, level) for name, items in by_category.items()},
        dialects={name: _ends(items, lambda item: item.mean, level) for name, items in by_dialect.items()},
        axes={axis: ends for axis, ends in by_axis.items() if ends is not None},
        exact_match=_exact_match(judged, level) if judged else None,
        level=level,
    )


def repeats(scores: Scores, *, level: float = LEVEL) -> list[Repeats]:
    """pass@k and pass^k for every k up to the number of epochs; none where each item was asked once.

    Raises:
        UsageError: the level is out of its range.
    """
    most = max((len(item.totals) for item in scores.items.values()), default=0)
    return [_repeats(scores, k, level) for k in range(1, most + 1)] if most > 1 else []


def uncertainty(scores: Scores, categories: Mapping[str, Category] | None = None) -> Uncertainty:
    """Both for a report.

    Raises:
        UnknownCategory: as :func:`intervals`.
    """
    return Uncertainty(intervals(scores, categories), repeats(scores))


def _axis(axis: str) -> Callable[[ItemScores], float]:
    return lambda item: item.axes[axis]


def _clusters(items: Iterable[ItemScores]) -> list[str]:
    return [item.cluster for item in items]


def _ends(
    items: Sequence[ItemScores],
    value: Callable[[ItemScores], float],
    level: float,
    weights: Mapping[str, float] | None = None,
) -> Ends:
    """The interval of a mean; weighted by category where there are weights."""
    found = statistics.mean_interval(
        # Weights of axes are decimal fractions, and their sum may come out a rounding error above 1.
        [min(value(item), 1.0) for item in items],
        _clusters(items),
        strata=None if weights is None else [item.category for item in items],
        weights=weights,
        level=level,
    )
    return found.low, found.high


def _exact_match(items: Sequence[ItemScores], level: float) -> Ends:
    """Wilson's interval where items are independent and asked once; else the one that knows clusters."""
    if len(set(_clusters(items))) == len(items) and all(len(item.totals) == 1 for item in items):
        found = statistics.wilson(sum(item.exact for item in items), len(items), level)
        return found.low, found.high
    return _ends(items, lambda item: item.exact / len(item.totals), level)


def _repeats(scores: Scores, k: int, level: float) -> Repeats:
    often = scores.judged(lambda item: len(item.totals) >= k)
    found = statistics.repeated(
        [item.exact for item in often], [len(item.totals) for item in often], k, _clusters(often), level=level
    )
    some, every = found.pass_at_k, found.pass_hat_k
    return Repeats(k, len(often), Estimate(some.estimate, some.low, some.high),
                   Estimate(every.estimate, every.low, every.high))  # fmt: skip
