"""Two models, or more, on the same items: what differs, by how much, and whether chance alone could have done it.

The tests are those of :mod:`arabic_agent_eval.statistics`, which loads numpy and scipy; only commands that compare
load this module.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import msgspec

from arabic_agent_eval import statistics
from arabic_agent_eval.errors import UsageError
from arabic_agent_eval.groups import grouped
from arabic_agent_eval.items import CATEGORIES, DIALECTS
from arabic_agent_eval.scores import ItemScores, Scores
from arabic_agent_eval.summary import NO_DIALECT, weight_of
from arabic_agent_eval.tables import Grid, notebook_block, number, probability, signed, signed_interval

if TYPE_CHECKING:
    from arabic_agent_eval.items import Category

Verdict = Literal["better", "worse", "unclear"]
VERDICTS: Final[Mapping[Verdict, str]] = {"better": "better", "worse": "worse", "unclear": "cannot tell"}
"""Verdict → what tables say."""

LEVEL: Final = 0.95
LISTED: Final = 5
"""How many items that changed most are listed each way."""
_TIE = 1e-9
"""Scores are sums of a few decimal fractions: what differs by less is the same score."""


class Difference(msgspec.Struct, frozen=True):
    """What b scores more than a, on all items that both were judged on or on a group of them.

    Attributes:
        a, b: the scores on these items, 0 to 1 (of all: weighted by category).
        difference: b less a, with the ends ``low`` and ``high`` of its interval, all from -1 to 1.
        p_value: how often two models that are equal would differ by this much; in (0, 1].
        adjusted: the p-value corrected by Holm for all that were tested beside it; None where there was one test.
        verdict: ``better`` or ``worse``: b, where the interval lies on one side of 0 and the p-value (the adjusted
            one where there is one) is not above 1 - level; else ``unclear``.
        n: items; clusters: independent groups among them.
        wins, ties, losses: items where b is better, where they are equal, where a is better.
        detectable: the true difference that these items would have shown in 80 of 100 repetitions; None where there
            is no spread to judge by.
    """

    a: float
    b: float
    difference: float
    low: float
    high: float
    p_value: float
    adjusted: float | None
    verdict: Verdict
    n: int
    clusters: int
    wins: int
    ties: int
    losses: int
    detectable: float | None


class Change(msgspec.Struct, frozen=True):
    """An item that the two did not answer equally well: the mean scores over its epochs, and b less a."""

    item_id: str
    category: str
    dialect: str | None
    a: float
    b: float
    difference: float


class Side(msgspec.Struct, frozen=True):
    """One of the two.

    Attributes:
        name, path: who was asked, and where the scores were read from.
        signature: what they were computed with.
        judged: how many of the items of the comparison have a score.
        unscored: how many answers to them have none.
        alone: how many of its items are not in the comparison, because the other side does not hold them.
    """

    name: str
    path: str
    signature: str
    judged: int
    unscored: int
    alone: int


class Comparison(msgspec.Struct, frozen=True):
    """Two models, item by item.

    Attributes:
        level: the confidence of the intervals.
        a, b: the two sides.
        items: the items of the comparison, judged or not: those of the set, or those that both sides hold.
        compared: how many of them both sides have a score for; all numbers are about these.
        left_out: the others.
        overall: the overall scores; None where no compared item is of a category with a weight.
        categories, dialects: name → the same of a group, whose score is the plain mean of its items.
        regressed, improved: the items whose scores fell and rose most, the largest change first.
        notes: what a reader should know of how the two were made, whole sentences.
    """

    level: float
    a: Side
    b: Side
    items: int
    compared: int
    left_out: int
    overall: Difference | None
    categories: dict[str, Difference]
    dialects: dict[str, Difference]
    regressed: list[Change]
    improved: list[Change]
    notes: list[str]

    @property
    def is_complete(self) -> bool:
        """Whether every item of the comparison was judged in every epoch on both sides."""
        return not (self.left_out or self.a.unscored or self.b.unscored)

    def _repr_html_(self) -> str:
        """What a notebook shows: the result in a sentence, the two sides, the groups, and what changed most."""
        overall, n = self.overall, f"{self.compared:,} of {self.items:,} items compared."
        scores = (None, None) if overall is None else (overall.a, overall.b)
        sides = [
            [letter, side.name, side.path, number(score), f"{side.judged:,}"]
            for letter, side, score in zip("AB", (self.a, self.b), scores, strict=True)
        ]
        changes = [
            [one.item_id, one.category, one.dialect or NO_DIALECT, number(one.a), number(one.b), signed(one.difference)]
            for one in (*self.regressed, *self.improved)
        ]
        grids = [
            Grid(["", "run", "from", "score", "judged"], sides, words=3),
            *(_grid(head, groups) for head, groups in (("category", self.categories), ("dialect", self.dialects))),
            Grid(["changed most", "category", "dialect", "A", "B", "B − A"], changes, words=3),
        ]
        return notebook_block([headline(overall, "B"), n, *self.notes], grids)


def headline(found: Difference | None, name: str) -> str:
    """The result in one sentence; ``name`` is the letter of the other."""
    if found is None:
        return (
            f"{name} and A share no judged item of a category with a weight, so there is no overall score to compare."
        )
    size = f"{number(found.b)} against {number(found.a)}, {signed(found.difference)}, "
    size += f"95 %: {signed_interval(found.low, found.high)}"
    p_value = found.p_value if found.adjusted is None else found.adjusted
    said = f"p {'' if p_value < 0.00005 else '= '}{probability(p_value)}"  # noqa: PLR2004
    said += "" if found.adjusted is None else " (Holm)"
    if found.verdict == "unclear":
        return f"{name} and A cannot be told apart: {size}; {said}."
    return f"{name} is {found.verdict} than A: {size}; {said}."


def _grid(head: str, groups: Mapping[str, Difference]) -> Grid:
    rows = [
        [name, f"{one.n:,}", number(one.a), number(one.b), signed(one.difference), signed_interval(one.low, one.high),
         probability(one.p_value if one.adjusted is None else one.adjusted), VERDICTS[one.verdict]]
        for name, one in groups.items()
    ]  # fmt: skip
    return Grid([head, "n", "A", "B", "B − A", "95 %", "p (Holm)", "B is"], rows)


class _Pair(NamedTuple):
    a: ItemScores
    b: ItemScores

    @property
    def difference(self) -> float:
        return self.b.mean - self.a.mean


def compare(
    a: Scores,
    b: Scores,
    *,
    categories: Mapping[str, Category] | None = None,
    common: bool = False,
    level: float = LEVEL,
    listed: int = LISTED,
) -> Comparison:
    """Compare b with a, paired by item; an item asked several times counts once, with its mean.

    The p-values of categories and dialects are adjusted together; the one of the overall scores stands alone.

    Args:
        a: whom the other is compared with.
        b: the other.
        categories: declared categories; the canonical ones are always known.
        common: compare the items that both hold, by id and category, where the sets or the formats differ.
        level: confidence of the intervals, 0.5 to 0.999.
        listed: how many items are listed each way.

    Raises:
        UsageError: the two do not compare, or have no judged item in common, or the level is out of its range.
        UnknownCategory: a category has no declared weight (ruling 19).
    """
    return compare_all([a, b], categories=categories, common=common, level=level, listed=listed)[0]


def compare_all(
    runs: Sequence[Scores],
    *,
    categories: Mapping[str, Category] | None = None,
    common: bool = False,
    by_intent: bool = False,
    level: float = LEVEL,
    listed: int = LISTED,
) -> list[Comparison]:
    """Compare every other with the first.

    With ``by_intent`` the scores are what :func:`~arabic_agent_eval.scores.matched_by_intent` gave.

    The p-values of the overall scores are adjusted over the models where these are more than two, and those of
    categories and dialects over all groups of all models.

    Arguments and errors are those of :func:`compare`; fewer than two runs are a UsageError.
    """
    if len(runs) < 2:  # noqa: PLR2004
        raise UsageError("a comparison needs two runs or more.")
    first, *others = runs
    common, shared = common or by_intent, "intent" if by_intent else "id"
    found = [_compared(first, one, categories or {}, level, listed, common=common, shared=shared) for one in others]
    return _adjusted(found)


def _compared(
    a: Scores,
    b: Scores,
    declared: Mapping[str, Category],
    level: float,
    listed: int,
    *,
    common: bool,
    shared: str = "id",
) -> Comparison:
    notes = _check(a, b, common=common, shared=shared)
    ids = _ids(a, b, common=common)
    if not ids:
        raise UsageError(f"{a.path} and {b.path} have no item in common.")
    pairs = [_Pair(a.items[id_], b.items[id_]) for id_ in ids if _is_judged(a, id_) and _is_judged(b, id_)]
    if not pairs:
        raise UsageError(f"no item was judged both in {a.path} and in {b.path}, so there is nothing to compare.")
    weights = {name: weight_of(name, declared) for name in dict.fromkeys(pair.a.category for pair in pairs)}
    weights = {name: weight for name, weight in weights.items() if weight > 0}
    weighted = [pair for pair in pairs if pair.a.category in weights]
    by_category = grouped(pairs, lambda pair: pair.a.category, [*CATEGORIES, *declared])
    by_dialect = grouped(pairs, lambda pair: pair.a.dialect or NO_DIALECT, DIALECTS)
    return Comparison(
        level=level,
        a=_side(a, ids),
        b=_side(b, ids),
        items=len(ids),
        compared=len(pairs),
        left_out=len(ids) - len(pairs),
        overall=_difference(weighted, level, weights) if weighted else None,
        categories={name: _difference(members, level) for name, members in by_category.items()},
        dialects={name: _difference(members, level) for name, members in by_dialect.items()},
        regressed=_changes(pairs, -1, listed),
        improved=_changes(pairs, 1, listed),
        notes=notes,
    )


def _check(a: Scores, b: Scores, *, common: bool, shared: str) -> list[str]:
    """Refuse what does not compare; what a reader should know of the rest."""
    mine, theirs = a.signature, b.signature
    if mine.rules != theirs.rules:
        raise UsageError(
            f"{a.path} was graded by the rules {mine.rules} and {b.path} by {theirs.rules}. Grade both by the same."
        )
    notes = []
    if _fingerprint(a) != _fingerprint(b):
        what = f"the items differ: {mine.items} in {a.path}, {theirs.items} in {b.path}"
        if not common:
            raise UsageError(f"{what}. To compare what both hold, use --common.")
        notes.append(f"T{what[1:]}; those with the same {shared} and category are compared.")
    if mine.format != theirs.format:
        what = f"the answers were read differently: format {mine.format} in {a.path}, {theirs.format} in {b.path}"
        if not common:
            raise UsageError(f"{what}. To compare them all the same, use --common.")
        notes.append(f"T{what[1:]}.")
    if mine.version != theirs.version:
        notes.append(f"They were graded by different versions of this package: {mine.version} and {theirs.version}.")
    if mine.epochs != theirs.epochs:
        notes.append(f"Items were not asked equally often: {mine.epochs} and {theirs.epochs} times.")
    without = sum("arabic_preservation" not in item.axes for item in a.judged()) if shared == "intent" else 0
    if without:
        what = "only one side expects anything Arabic; these are scored without Arabic preservation."
        notes.append(f"In {without:,} of them {what}")
    return notes


def _fingerprint(scores: Scores) -> str:
    return scores.signature.items.rpartition("@")[2]


def _ids(a: Scores, b: Scores, *, common: bool) -> list[str]:
    """The items of the comparison in the order of their ids, so that none depends on the order of the rows."""
    if not common:
        return sorted(a.items.keys() | b.items.keys())
    return sorted(id_ for id_ in a.items.keys() & b.items.keys() if a.items[id_].category == b.items[id_].category)


def _is_judged(scores: Scores, item_id: str) -> bool:
    return item_id in scores.items and bool(scores.items[item_id].totals)


def _side(scores: Scores, ids: Sequence[str]) -> Side:
    held = [scores.items[id_] for id_ in ids if id_ in scores.items]
    return Side(
        name=scores.name,
        path=scores.path,
        signature=str(scores.signature),
        judged=sum(bool(item.totals) for item in held),
        unscored=sum(item.unscored for item in held),
        alone=len(scores.items) - len(held),
    )


def _difference(pairs: Sequence[_Pair], level: float, weights: Mapping[str, float] | None = None) -> Difference:
    """Of a group by the plain means of its items; with weights, of the weighted means of its categories."""
    first, second = ([min(item.mean, 1.0) for item in side] for side in zip(*pairs, strict=True))
    strata = ["" if weights is None else pair.a.category for pair in pairs]
    weighing = {"": 1.0} if weights is None else weights
    found = statistics.paired_difference(
        first, second, [pair.a.cluster for pair in pairs], strata=strata, weights=weighing, level=level
    )
    return Difference(
        a=_mean(first, strata, weighing),
        b=_mean(second, strata, weighing),
        difference=found.difference,
        low=found.low,
        high=found.high,
        p_value=found.p_value,
        adjusted=None,
        verdict=_verdict(found.low, found.high, found.p_value, level),
        n=found.n,
        clusters=found.clusters,
        wins=found.wins,
        ties=found.ties,
        losses=found.losses,
        detectable=found.detectable,
    )


def _mean(values: Sequence[float], strata: Sequence[str], weights: Mapping[str, float]) -> float:
    """Σ mean of a stratum × its weight / Σ weight."""
    by_stratum: dict[str, list[float]] = {}
    for value, stratum in zip(values, strata, strict=True):
        by_stratum.setdefault(stratum, []).append(value)
    total = math.fsum(weights[name] for name in by_stratum)
    return math.fsum(math.fsum(own) / len(own) * weights[name] for name, own in by_stratum.items()) / total


def _verdict(low: float, high: float, p_value: float, level: float) -> Verdict:
    if p_value > 1 - level + _TIE or low <= 0 <= high:
        return "unclear"
    return "better" if low > 0 else "worse"


def _changes(pairs: Iterable[_Pair], sign: int, most: int) -> list[Change]:
    """The items that changed most in one direction."""
    moved = sorted(
        (pair for pair in pairs if sign * pair.difference > _TIE),
        key=lambda pair: (-sign * pair.difference, pair.a.item_id),
    )
    return [
        Change(pair.a.item_id, pair.a.category, pair.a.dialect, pair.a.mean, pair.b.mean, pair.difference)
        for pair in moved[:most]
    ]


def _adjusted(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons with Holm's p-values: over the models for overall scores, over all groups of all for groups."""
    overall = {str(place): one.overall.p_value for place, one in enumerate(comparisons) if one.overall is not None}
    across = statistics.holm(overall) if len(comparisons) > 1 else {}
    within = statistics.holm(
        {key: group.p_value for place, one in enumerate(comparisons) for key, group in _groups(place, one)}
    )
    return [
        msgspec.structs.replace(
            one,
            overall=_with(one.overall, across.get(str(place)), one.level) if one.overall is not None else None,
            categories={
                name: _with(group, within[f"{place} category {name}"], one.level)
                for name, group in one.categories.items()
            },
            dialects={
                name: _with(group, within[f"{place} dialect {name}"], one.level) for name, group in one.dialects.items()
            },
        )
        for place, one in enumerate(comparisons)
    ]


def _groups(place: int, comparison: Comparison) -> Iterator[tuple[str, Difference]]:
    for name, group in comparison.categories.items():
        yield f"{place} category {name}", group
    for name, group in comparison.dialects.items():
        yield f"{place} dialect {name}", group


def _with(found: Difference, adjusted: float | None, level: float) -> Difference:
    p_value = found.p_value if adjusted is None else adjusted
    return msgspec.structs.replace(found, adjusted=adjusted, verdict=_verdict(found.low, found.high, p_value, level))
