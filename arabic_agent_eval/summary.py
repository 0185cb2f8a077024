"""From counted outcomes to the numbers of a report."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec

from arabic_agent_eval.errors import UnknownCategory
from arabic_agent_eval.groups import grouped
from arabic_agent_eval.items import CATEGORIES, DIALECTS, Category
from arabic_agent_eval.rules import AXES, composition
from arabic_agent_eval.scoring import Signature, grade
from arabic_agent_eval.tables import (
    AXIS_WORDS,
    NO_REPLY,
    Grid,
    coverage_line,
    interval,
    notebook_block,
    number,
    score_line,
)
from arabic_agent_eval.tally import FULL, Example, Outcome, Tally

NO_DIALECT: Final = "(none)"
NOT_ASKED: Final = "not asked yet"


class Coverage(msgspec.Struct, frozen=True):
    """How many answers were judged, of how many: every item once an epoch."""

    scored: int
    unscored: int
    total: int


class Group(msgspec.Struct, frozen=True):
    """The means of a category, a dialect or a whole run over its scored items.

    Attributes:
        n: scored items; an item asked several times counts once, with the mean of its epochs.
        score: mean total, 0 to 1 (for a whole run: weighted by category).
        weight: of a category, else None.
        arabic_applicable: items that expected something Arabic; the others count 1.0 in preservation.
        exact_match: the share of items with every axis 1.
        lost: cause → points; they sum to 1 − score. None without causes.
    """

    n: int
    score: float
    function_selection: float
    argument_accuracy: float
    arabic_preservation: float
    dialect_understanding: float | None = None
    error_handling: float | None = None
    weight: float | None = None
    arabic_applicable: int = 0
    exact_match: float = 0.0
    lost: dict[str, float] | None = None


class Cell(msgspec.Struct, frozen=True):
    """The items of one dialect in one category.

    Attributes:
        n: scored items.
        score: their mean total, 0 to 1.
    """

    n: int
    score: float


class Summary(msgspec.Struct, frozen=True):
    """Everything a report shows of a run; the object that ``--json`` prints.

    Attributes:
        overall: Σ category score × weight / Σ weight (ruling 18); None when nothing was scored.
        grade: its letter (ruling 20).
        worst_case: the overall score if failures of the provider counted as wrong (ruling 17); None without any.
        coverage: judged answers and all that were due (ruling 17).
        categories, dialects: name → means; a dialect's score is the plain mean of its items.
        cells: dialect → category → its items in that category, where any were scored.
        axes: the axes of the whole run, weighted like the overall score.
        exact_match: the share of items with every axis 1; right_function: the share of answers whose every slot
            has the right function; failed: how many answers lost points.
        arabic_applicable: scored items that expected something Arabic; not_arabic: those that did not.
        lost: cause → points, summing to 1 − overall; None without causes.
        lost_by_axis: cause → axis → points, the same points.
        lost_arguments: cause → argument names, the most frequent first, with how many answers lost there.
        examples: cause → the first answers in which it occurred.
        unscored_reasons: why answers were not judged → how many.
        rules, signature: what the numbers were computed with.
    """

    overall: float | None
    grade: str | None
    worst_case: float | None
    coverage: Coverage
    categories: dict[str, Group]
    dialects: dict[str, Group]
    cells: dict[str, dict[str, Cell]]
    axes: dict[str, float | None]
    exact_match: float | None
    right_function: dict[str, int]
    failed: int
    arabic_applicable: int
    not_arabic: int
    lost: dict[str, float] | None
    lost_by_axis: dict[str, dict[str, float]] | None
    lost_arguments: dict[str, dict[str, int]] | None
    examples: dict[str, list[Example]] | None
    unscored_reasons: dict[str, int]
    rules: str
    signature: str

    def _repr_html_(self) -> str:
        """What a notebook shows: score, groups, and where the points went."""
        return summary_block(self)


_OF_CAUSES = ("lost", "lost_by_axis", "lost_arguments", "examples")


def summary_json(summary: Summary, more: Mapping[str, Any] | None = None) -> bytes:
    """The summary as ``--json`` prints it, and what else there is to say; without causes, what they give is absent."""
    document = {**msgspec.to_builtins(summary), **(more or {})}
    for holder in (document, *document["categories"].values(), *document["dialects"].values()):
        for name in _OF_CAUSES:
            if holder.get(name, ...) is None:
                del holder[name]
    return msgspec.json.format(msgspec.json.encode(document), indent=2)


Ends = tuple[float, float]
"""The lower and the upper end of an interval."""


def summary_block(
    summary: Summary,
    *,
    name: str = "",
    overall: Ends | None = None,
    categories: Mapping[str, Ends] | None = None,
    dialects: Mapping[str, Ends] | None = None,
) -> str:
    """A summary as a piece of HTML for notebooks.

    Args:
        summary: the numbers.
        name: what was graded.
        overall: the interval of the overall score, where it is known.
        categories: name → interval of the score, where they are known.
        dialects: the same.
    """
    score = f"Score {score_line(summary.overall, summary.grade, summary.coverage.scored, summary.coverage.unscored)}"
    score += "" if overall is None else f", 95 %: {interval(overall)}"
    coverage = summary.coverage
    covered = coverage_line(coverage.scored, coverage.total, summary.unscored_reasons, summary.worst_case)
    grids = [_grid("category", summary.categories, categories), _grid("dialect", summary.dialects, dialects)]
    if summary.lost:
        grids.append(Grid(["cause", "points"], [[cause, number(points)] for cause, points in summary.lost.items()]))
    return notebook_block([*filter(None, [name]), score, covered, summary.signature], grids)


def _grid(head: str, groups: Mapping[str, Group], ends: Mapping[str, Ends] | None) -> Grid:
    rows = [
        [name, f"{group.n:,}", number(group.score), *([] if ends is None else [interval(ends.get(name))]),
         *(number(getattr(group, axis)) for axis in AXES[:3])]
        for name, group in groups.items()
    ]  # fmt: skip
    own = [] if ends is None else ["95 %"]
    return Grid([head, "n", "score", *own, *(AXIS_WORDS[axis] for axis in AXES[:3])], rows)


class _Alike:
    """Scored items that came out alike: how many they are, and the means over their epochs."""

    __slots__ = (
        "arabic",
        "argument",
        "exact",
        "facts",
        "failed",
        "function",
        "items",
        "lost",
        "right",
        "times",
        "total",
    )

    def __init__(self, outcomes: Mapping[Outcome, int], items: int) -> None:
        self.facts = next(iter(outcomes)).facts
        self.items = items
        self.times = times = sum(outcomes.values())
        (function, argument, arabic, own), _ = composition(self.facts.category)
        counted = list(outcomes.items())

        def mean(value: Callable[[Outcome], float]) -> float:
            return math.fsum([value(outcome) * n for outcome, n in counted]) / times

        def total(outcome: Outcome) -> float:
            return (
                function * outcome.function
                + argument * outcome.argument
                + arabic * outcome.arabic
                + own * outcome.function
            )

        self.function = mean(lambda outcome: outcome.function)
        self.argument = mean(lambda outcome: outcome.argument)
        self.arabic = mean(lambda outcome: outcome.arabic)
        self.total = mean(total)
        self.exact = mean(lambda outcome: float(min(outcome.function, outcome.argument, outcome.arabic) > FULL))
        self.right = sum(n for outcome, n in counted if outcome.function > FULL)
        self.failed = sum(n for outcome, n in counted if total(outcome) < FULL)
        self.lost = [
            (cause, axis, points * n / times) for outcome, n in counted for cause, axis, points in outcome.lost
        ]


def _scored(tally: Tally) -> list[_Alike]:
    """Items that were asked once are counted by outcome; one that was asked often is a mean of its own."""
    # Most outcomes are one object for many items, and counting objects costs less than comparing outcomes.
    objects = Counter(map(id, tally.outcomes.values()))
    by_id = dict(zip(map(id, tally.outcomes.values()), tally.outcomes.values(), strict=True))
    often: list[Counter[Outcome]] = []
    once: Counter[Outcome] = Counter()
    for place, times in objects.items():
        if isinstance(found := by_id[place], Outcome):
            once[found] += times
        else:
            often.append(found)
    return [*(_Alike(found, 1) for found in often), *(_Alike({outcome: 1}, n) for outcome, n in once.items())]


def summarize(
    tally: Tally,
    *,
    due: int,
    signature: Signature,
    rules: str,
    categories: Mapping[str, Category] | None = None,
    causes: bool = True,
    epochs: int | None = None,
) -> Summary:
    """The summary of counted outcomes.

    Args:
        tally: the outcomes.
        due: how many items there are, scored or not.
        signature: of the run; its ``epochs`` is filled in from the tally.
        rules: the name of the rules.
        categories: declared categories; the canonical ones are always known.
        causes: whether the outcomes carry losses.
        epochs: how often each item was to be asked; None for as often as the one with most answers.

    Raises:
        UnknownCategory: a scored category has no declared weight (ruling 19).
    """
    declared = categories or {}
    scored = _scored(tally)
    by_category = grouped(scored, lambda one: one.facts.category, [*CATEGORIES, *declared])
    by_dialect = grouped(scored, lambda one: one.facts.dialect or NO_DIALECT, DIALECTS)
    groups = {
        name: _group(members, name, weight_of(name, declared), causes=causes) for name, members in by_category.items()
    }
    weights = {name: group.weight or 0.0 for name, group in groups.items()}
    overall = _weighted_score(groups, weights)
    lost = _lost(by_category, weights) if causes else None
    epochs = epochs or _epochs(tally)
    coverage = _coverage(scored, due * epochs)
    return Summary(
        overall=overall,
        grade=None if overall is None else grade(overall),
        worst_case=_worst_case(tally, declared),
        coverage=coverage,
        categories=groups,
        dialects={name: _group(members, None, None, causes=causes) for name, members in by_dialect.items()},
        cells={name: _cells(members, groups) for name, members in by_dialect.items()},
        axes={axis: _weighted_axis(groups, weights, axis) for axis in AXES},
        exact_match=_mean(scored, lambda one: one.exact) if scored else None,
        right_function={"right": sum(one.right * one.items for one in scored), "of": coverage.scored},
        failed=sum(one.failed * one.items for one in scored),
        arabic_applicable=_applicable(scored),
        not_arabic=_size(one for one in scored if not one.facts.arabic),
        lost=None if lost is None else _over_axes(lost),
        lost_by_axis=lost,
        lost_arguments=_lost_arguments(tally) if causes else None,
        examples=None if lost is None else {cause: tally.examples.get(cause, []) for cause in lost},
        unscored_reasons=_reasons(tally, coverage),
        rules=rules,
        signature=str(replace(signature, epochs=epochs, weights=weights_tag(declared))),
    )


def _worst_case(tally: Tally, declared: Mapping[str, Category]) -> float | None:
    if not tally.unscored_facts:
        return None
    by_category = grouped(_scored(tally.worst_case()), lambda one: one.facts.category, [])
    groups = {name: _group(members, name, weight_of(name, declared), causes=False)
              for name, members in by_category.items()}  # fmt: skip
    return _weighted_score(groups, {name: group.weight or 0.0 for name, group in groups.items()})


def weights_tag(declared: Mapping[str, Category]) -> str:
    """What a signature says of declared weights: ``canonical``, or eight hexadecimal digits that name the others."""
    changed = {name: one.weight for name, one in declared.items() if CATEGORIES.get(name) is None
               or CATEGORIES[name].weight != one.weight}  # fmt: skip
    if not changed:
        return "canonical"
    return hashlib.sha256(repr(sorted(changed.items())).encode()).hexdigest()[:8]


def weight_of(name: str, declared: Mapping[str, Category]) -> float:
    """The weight of a category in the overall score.

    Raises:
        UnknownCategory: it is neither canonical nor declared (ruling 19).
    """
    known = declared if name in declared else CATEGORIES
    if name not in known:
        raise UnknownCategory(
            f"the category {name!r} has no declared weight, and it is not one of the six canonical ones. "
            'Declare it in a JSON file such as {"' + name + '": {"weight": 0.1}} and pass that with --categories.'
        )
    return known[name].weight


def _group(members: list[_Alike], category: str | None, weight: float | None, *, causes: bool) -> Group:
    function = _mean(members, lambda one: one.function)
    own = composition(category)[1] if category is not None else None
    return Group(
        n=_size(members),
        score=_mean(members, lambda one: one.total),
        function_selection=function,
        argument_accuracy=_mean(members, lambda one: one.argument),
        arabic_preservation=_mean(members, lambda one: one.arabic),
        dialect_understanding=function if own == "dialect_understanding" else None,
        error_handling=function if own == "error_handling" else None,
        weight=weight,
        arabic_applicable=_applicable(members),
        exact_match=_mean(members, lambda one: one.exact),
        lost=_over_axes(_lost({"": members}, {"": 1.0})) if causes else None,
    )


def _cells(members: list[_Alike], categories: Iterable[str]) -> dict[str, Cell]:
    found = grouped(members, lambda one: one.facts.category, categories)
    return {name: Cell(_size(several), _mean(several, lambda one: one.total)) for name, several in found.items()}


def _size(members: Iterable[_Alike]) -> int:
    return sum(one.items for one in members)


def _applicable(members: Iterable[_Alike]) -> int:
    return _size(one for one in members if one.facts.arabic)


def _mean(members: list[_Alike], value: Callable[[_Alike], float]) -> float:
    return math.fsum([value(one) * one.items for one in members]) / _size(members)


def _weighted_score(groups: Mapping[str, Group], weights: Mapping[str, float]) -> float | None:
    """Σ score × weight / Σ weight, in this order of operations, so that a perfect run is exactly 1."""
    total = math.fsum(weights.values())
    return math.fsum(group.score * weights[name] for name, group in groups.items()) / total if total else None


def _weighted_axis(groups: Mapping[str, Group], weights: Mapping[str, float], axis: str) -> float | None:
    """An axis over the categories that have it, weighted by category."""
    found = [(getattr(group, axis), weights[name]) for name, group in groups.items()]
    found = [(value, weight) for value, weight in found if value is not None]
    total = math.fsum(weight for _, weight in found)
    return math.fsum(value * weight for value, weight in found) / total if total else None


def _lost(groups: Mapping[str, list[_Alike]], weights: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Cause → axis → points of the weighted mean of the groups, the largest cause first."""
    total = math.fsum(weights.values())
    parts: dict[str, dict[str, list[float]]] = {}
    for name, members in groups.items():
        if not weights[name]:
            continue
        size = _size(members)
        for one in members:
            for cause, axis, points in one.lost:
                share = points * one.items * weights[name] / size / total
                parts.setdefault(cause, {}).setdefault(axis, []).append(share)
    summed: dict[str, dict[str, float]] = {}
    for cause, axes in parts.items():
        summed[cause] = {axis: math.fsum(axes[axis]) for axis in AXES if axis in axes}
    largest_first = sorted(summed, key=lambda cause: (-math.fsum(summed[cause].values()), cause))
    return {cause: summed[cause] for cause in largest_first}


def _over_axes(lost: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    return {cause: math.fsum(axes.values()) for cause, axes in lost.items()}


def _lost_arguments(tally: Tally) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for (cause, argument), times in sorted(tally.arguments.items(), key=lambda entry: (-entry[1], entry[0])):
        found.setdefault(cause, {})[argument] = times
    return found


def _epochs(tally: Tally) -> int:
    """How often each item was asked: as often as the one with most answers, judged or not."""
    several = Counter in set(map(type, tally.outcomes.values()))
    often: Counter[str] = Counter()
    if several:
        often.update({id_: found.total() for id_, found in tally.outcomes.items() if isinstance(found, Counter)})
    for id_, reasons in tally.unscored.items():
        often[id_] += reasons.total() + (id_ in tally.outcomes and id_ not in often)
    return max(often.values(), default=1)


def _coverage(scored: list[_Alike], total: int) -> Coverage:
    judged = sum(one.times * one.items for one in scored)
    return Coverage(judged, total - judged, total)


def _reasons(tally: Tally, coverage: Coverage) -> dict[str, int]:
    reasons: Counter[str] = Counter()
    for found in tally.unscored.values():
        reasons.update(found)
    silent = coverage.unscored - reasons.total()
    if silent > 0:
        reasons[NO_REPLY] += silent
    return dict(reasons.most_common())
