"""Several models on the same items, ranked as far as these items can tell them apart.

Ranks come from paired comparisons and intervals from :mod:`arabic_agent_eval.uncertainty`, which load numpy and scipy;
only the command that ranks loads this module.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import msgspec

from arabic_agent_eval import statistics
from arabic_agent_eval.comparison import LEVEL, Comparison, compare
from arabic_agent_eval.errors import UsageError
from arabic_agent_eval.items import CATEGORIES, DIALECTS
from arabic_agent_eval.rules import AXES
from arabic_agent_eval.scores import weights_of
from arabic_agent_eval.summary import NO_DIALECT, Coverage, weight_of, weights_tag
from arabic_agent_eval.tables import Grid, interval, notebook_block, number, signed, signed_interval
from arabic_agent_eval.uncertainty import intervals

if TYPE_CHECKING:
    from arabic_agent_eval.items import Category
    from arabic_agent_eval.scores import ItemScores, Scores

STANDARD: Final = "msa"
"""The dialect that the others are held against."""
_ROUNDING = 1e-9
RANK_MEANS: Final = (
    "Rank: 1 + how many models are better with certainty: all pairs compared item by item, adjusted together (Holm)."
)


class Score(msgspec.Struct, frozen=True):
    """The score of n items, 0 to 1, with its 95 % interval."""

    score: float
    low: float
    high: float
    n: int


class Gap(msgspec.Struct, frozen=True):
    """What a model scores less, or more, in a dialect than in MSA when the same things are said in both.

    Attributes:
        dialect: the dialect.
        difference: the dialect less MSA, with the ends of its 95 % interval, all from -1 to 1.
        p_value: how often a model that does not mind the dialect would differ by this much; in (0, 1].
        intents: how many things were said in both.
    """

    dialect: str
    difference: float
    low: float
    high: float
    p_value: float
    intents: int


class Entry(msgspec.Struct, frozen=True):
    """One model.

    Attributes:
        rank: 1 + how many of the others are better with certainty; None without an overall score.
        name, path: who was asked, and where the scores were read from.
        created: when the run was made, in UTC; None for graded rows.
        rules, signature: what they were computed with.
        overall: the overall score of the items that were judged; None where none is of a category with a weight.
        categories, dialects: name → score of a group, the plain mean of its items; groups without a judged item are
            absent.
        axes: axis → its score, weighted as the overall score; axes that no category with a weight has are absent.
        exact_match: the share of judged items that are right in every respect; None without any.
        coverage: judged answers and all that were due.
        gap: of the dialect that lies furthest below MSA; None where no intent was judged in MSA and in a dialect.
        judged: how many of the items of the leaderboard have a score.
        unscored: how many answers have none.
        tokens_read, tokens_written: of all answers; None where they are not known.
        cost: in US dollars; latency: the median seconds an item; None where they are not known.
    """

    rank: int | None
    name: str
    path: str
    created: str | None
    rules: str
    signature: str
    overall: Score | None
    categories: dict[str, Score]
    dialects: dict[str, Score]
    axes: dict[str, Score]
    exact_match: Score | None
    coverage: Coverage
    gap: Gap | None
    judged: int
    unscored: int
    tokens_read: int | None
    tokens_written: int | None
    cost: float | None
    latency: float | None


class Leaderboard(msgspec.Struct, frozen=True):
    """Models by rank, equal ranks by score.

    Attributes:
        entries: the models.
        items: how many items any of them holds.
        categories, dialects: the groups that some model was judged on, in the order of every report.
        notes: what a reader should know of how the runs were made, whole sentences.
        complete: whether every model was judged on every item in every epoch.
    """

    entries: list[Entry]
    items: int
    categories: list[str]
    dialects: list[str]
    notes: list[str]
    complete: bool

    def as_utf8(self) -> Leaderboard:
        """The same with names of files that are not UTF-8 escaped, so that it can be written as JSON."""
        entries = [msgspec.structs.replace(one, name=_utf8(one.name), path=_utf8(one.path)) for one in self.entries]
        return msgspec.structs.replace(self, entries=entries, notes=[_utf8(note) for note in self.notes])

    def _repr_html_(self) -> str:
        """What a notebook shows: the models by rank, then their categories, then their dialects and gaps."""
        of_all = f"{self.items:,}"
        first = [
            [str(one.rank or "–"), one.name, *_cells(one.overall), f"{one.judged:,}/{of_all}"] for one in self.entries
        ]
        gaps = [[one.name, *_groups(one.dialects, self.dialects), *_gap_cells(one.gap)] for one in self.entries]
        grids = [
            Grid(["rank", "model", "score", "95 %", "judged"], first, words=2),
            Grid(["model", *self.categories],
                 [[one.name, *_groups(one.categories, self.categories)] for one in self.entries]),
            Grid(["model", *self.dialects, "worst dialect", "against MSA", "95 %"], gaps),
        ]  # fmt: skip
        title = f"Leaderboard of {len(self.entries):,} models, {self.items:,} items"
        return notebook_block([title, RANK_MEANS, *self.notes], grids)


def _utf8(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _cells(found: Score | None) -> list[str]:
    return ["–", "–"] if found is None else [number(found.score), interval((found.low, found.high))]


def _groups(scores: Mapping[str, Score], names: Sequence[str]) -> list[str]:
    return [number(scores[name].score) if name in scores else "–" for name in names]


def _gap_cells(gap: Gap | None) -> list[str]:
    if gap is None:
        return ["–"] * 3
    return [gap.dialect, signed(gap.difference), signed_interval(gap.low, gap.high)]


def leaderboard(runs: Sequence[Scores], *, categories: Mapping[str, Category] | None = None) -> Leaderboard:
    """Rank models that answered the same items.

    Each is compared with each, paired by item; the p-values of all pairs are adjusted together (Holm). A model is
    better with certainty where the verdict of the comparison, by the adjusted p-value, is ``better``. Being better with
    certainty is no order: two that cannot be told apart may have different ranks, and, seldom, two of one rank differ.

    Args:
        runs: two or more.
        categories: declared categories; the canonical ones are always known.

    Raises:
        UsageError: fewer than two runs; two of them do not compare, or have no judged item in common.
        UnknownCategory: a category has no declared weight (ruling 19).
    """
    if len(runs) < 2:  # noqa: PLR2004
        raise UsageError("a leaderboard needs two runs or more.")
    declared = categories or {}
    pairs = list(itertools.combinations(range(len(runs)), 2))
    compared = [compare(runs[a], runs[b], categories=declared, listed=0) for a, b in pairs]
    better = _better(pairs, compared, len(runs))
    entries = [_entry(scores, 1 + count, declared) for scores, count in zip(runs, better, strict=True)]
    return Leaderboard(
        entries=sorted(entries, key=_place),
        items=len(set().union(*(scores.items for scores in runs))),
        categories=_known((one.categories for one in entries), [*CATEGORIES, *declared]),
        dialects=_known((one.dialects for one in entries), DIALECTS),
        notes=list(dict.fromkeys(note for one in compared for note in one.notes)),
        complete=all(one.is_complete for one in compared),
    )


def _better(pairs: Sequence[tuple[int, int]], compared: Sequence[Comparison], size: int) -> list[int]:
    """For each model how many are better with certainty."""
    p_values = {str(place): one.overall.p_value for place, one in enumerate(compared) if one.overall is not None}
    adjusted = statistics.holm(p_values)
    better = [0] * size
    for place, ((a, b), one) in enumerate(zip(pairs, compared, strict=True)):
        if one.overall is None or adjusted[str(place)] > 1 - LEVEL + _ROUNDING:
            continue
        if one.overall.verdict != "unclear":
            better[a if one.overall.verdict == "better" else b] += 1
    return better


def _place(entry: Entry) -> tuple[float, float, str, str]:
    if entry.rank is None or entry.overall is None:
        return math.inf, 0.0, entry.name, entry.path
    return entry.rank, -entry.overall.score, entry.name, entry.path


def _known(groups: Iterable[Mapping[str, Score]], order: Iterable[str]) -> list[str]:
    """The groups of all models: known ones in their order, then the others as they came."""
    found = dict.fromkeys(itertools.chain.from_iterable(groups))
    return [name for name in dict.fromkeys([*order, *found]) if name in found]


def _entry(scores: Scores, rank: int, declared: Mapping[str, Category]) -> Entry:
    ends, judged, figures = intervals(scores, declared), scores.judged(), scores.figures
    by_category = _scored(judged, lambda item: item.category, ends.categories)
    weights = weights_of(scores, lambda name: weight_of(name, declared))
    weighted = {name: by_category[name] for name in weights}
    overall = None if ends.overall is None else _weighted(weighted, weights, ends.overall)
    tokens = None if figures is None else figures.tokens
    latency = None if figures is None else figures.latency
    answers = sum(len(item.totals) for item in judged)
    unscored = sum(item.unscored for item in scores.items.values())
    return Entry(
        rank=None if overall is None else rank,
        name=scores.name,
        path=scores.path,
        created=scores.created,
        rules=scores.signature.rules,
        signature=str(replace(scores.signature, weights=weights_tag(declared))),
        overall=overall,
        categories=by_category,
        dialects=_scored(judged, lambda item: item.dialect or NO_DIALECT, ends.dialects),
        axes={axis: _axis(axis, judged, weights, ends.axes[axis]) for axis in AXES if axis in ends.axes},
        exact_match=None if ends.exact_match is None else _exact_match(judged, ends.exact_match),
        coverage=Coverage(answers, unscored, answers + unscored),
        gap=dialect_gap(judged),
        judged=len(judged),
        unscored=unscored,
        tokens_read=None if tokens is None else tokens.input,
        tokens_written=None if tokens is None else tokens.output,
        cost=None if figures is None else figures.cost,
        # Answers that were replayed or kept took no time that says anything of the model.
        latency=latency.median if latency is not None and latency.p95 > 0 else None,
    )


def _weighted(groups: Mapping[str, Score], weights: Mapping[str, float], ends: tuple[float, float]) -> Score:
    """Σ score × weight / Σ weight, over these categories."""
    total = math.fsum(weights[name] for name in groups)
    mean = math.fsum(group.score * weights[name] for name, group in groups.items()) / total
    return Score(mean, *ends, sum(group.n for group in groups.values()))


def _axis(axis: str, items: Iterable[ItemScores], weights: Mapping[str, float], ends: tuple[float, float]) -> Score:
    """An axis over the categories that have it, weighted by category."""
    values: dict[str, list[float]] = {}
    for item in items:
        if item.category in weights and axis in item.axes:
            values.setdefault(item.category, []).append(item.axes[axis])
    groups = {name: Score(_mean(own), 0.0, 0.0, len(own)) for name, own in values.items()}
    return _weighted(groups, weights, ends)


def _exact_match(items: Sequence[ItemScores], ends: tuple[float, float]) -> Score:
    return Score(_mean([item.exact / len(item.totals) for item in items]), *ends, len(items))


def _scored(
    items: Iterable[ItemScores], key: Callable[[ItemScores], str], ends: Mapping[str, tuple[float, float]]
) -> dict[str, Score]:
    found: dict[str, list[float]] = {name: [] for name in ends}
    for item in items:
        found[key(item)].append(min(item.mean, 1.0))
    return {name: Score(_mean(values), *ends[name], len(values)) for name, values in found.items()}


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def dialect_gap(items: Iterable[ItemScores]) -> Gap | None:
    """The gap of the dialect that lies furthest below MSA, over the intents that were judged in both.

    An intent counts once on either side, with the mean of its items there. The interval is that of one dialect; that
    it is the worst of several is not in it.

    Args:
        items: of one model, each with a score.
    """
    said: dict[str, dict[str, list[float]]] = {}
    for item in items:
        if item.intent is not None and item.dialect is not None:
            said.setdefault(item.dialect, {}).setdefault(item.intent, []).append(min(item.mean, 1.0))
    standard = said.pop(STANDARD, {})
    gaps = [gap for dialect in _order(said) if (gap := _gap(dialect, standard, said[dialect])) is not None]
    return min(gaps, key=lambda gap: gap.difference, default=None)


def _order(said: Mapping[str, object]) -> list[str]:
    """Dialects in the order of every report, so that of two equal gaps the same one is shown whatever came first."""
    return [*(name for name in DIALECTS if name in said), *sorted(said.keys() - set(DIALECTS))]


def _gap(dialect: str, standard: Mapping[str, list[float]], spoken: Mapping[str, list[float]]) -> Gap | None:
    shared = sorted(standard.keys() & spoken.keys())
    if not shared:
        return None
    found = statistics.paired_difference(
        [_mean(standard[intent]) for intent in shared], [_mean(spoken[intent]) for intent in shared], level=LEVEL
    )
    return Gap(dialect, found.difference, found.low, found.high, found.p_value, len(shared))
