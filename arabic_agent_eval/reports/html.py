"""A report as one HTML file: the numbers of a summary and the failures, as its templates show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from arabic_agent_eval.models.catalogue import BASELINE
from arabic_agent_eval.reports.failures import Failures
from arabic_agent_eval.reports.html_cards import Card, apportion, card_of, lost_units
from arabic_agent_eval.reports.html_charts import Bar, Span, span, stack
from arabic_agent_eval.reports.html_frame import BOTH, Ends, render
from arabic_agent_eval.reports.html_words import Language
from arabic_agent_eval.rules import AXES
from arabic_agent_eval.summary import NO_DIALECT
from arabic_agent_eval.tables import argument_list

if TYPE_CHECKING:
    from arabic_agent_eval.items import Category
    from arabic_agent_eval.scores import Scores
    from arabic_agent_eval.summary import Group, Summary
    from arabic_agent_eval.tool_choices import ToolChoice
    from arabic_agent_eval.uncertainty import Intervals, Uncertainty

_TOOLS = 60  # rows of the table of tools


class GroupRow(NamedTuple):
    """A row of the table of intervals; ``kind`` says how the name is to be put in words."""

    kind: str
    name: str
    n: int | None
    weight: float | None
    score: float
    ends: Ends | None
    span: Span
    axes: list[float | None]


class LossRow(NamedTuple):
    """A cause with its printed units, by axis, and the bar of these."""

    cause: str
    units: int
    by_axis: dict[str, int]
    bars: list[Bar]
    arguments: list[str]


class Losses(NamedTuple):
    """Where the points went; rows, columns and the sum add up as printed."""

    axes: list[str]
    rows: list[LossRow]
    by_axis: dict[str, int]
    units: int


class Filter(NamedTuple):
    """A choice that narrows the failures: its values, each with the token that the cards carry."""

    key: str
    tokens: dict[str, str]


def html_page(
    summary: Summary,
    tools: Sequence[ToolChoice],
    failures: Failures,
    *,
    scores: Scores,
    known: Uncertainty,
    title: str = "",
    languages: Sequence[Language] = BOTH,
    categories: Mapping[str, Category] | None = None,
) -> str:
    """The whole report as one HTML document.

    Args:
        summary: the numbers.
        tools: what was called where which tool was expected.
        failures: has seen every row.
        scores: of the single items.
        known: how far the numbers can be trusted.
        title: what was graded; the name of the scores by default.
        languages: one page for each, the first one is shown at the beginning.
        categories: declared categories, for their Arabic names.
    """
    cards = [card_of(row) for row in failures.kept]
    filters = _filters(cards)
    return render(
        "page",
        title or scores.name,
        languages,
        categories,
        script="filter.js",
        summary=summary,
        figures=scores.figures,
        is_baseline=scores.figures is not None and scores.figures.model == BASELINE,
        intervals=known.intervals,
        repeated=known.repeated,
        groups=_groups(summary, known.intervals),
        losses=_losses(summary),
        tools=tools[:_TOOLS],
        tools_hidden=max(len(tools) - _TOOLS, 0),
        cards=cards,
        tags=[_tags(card, filters) for card in cards],
        filters=[one for one in filters if len(one.tokens) > 1],
    )


def _groups(summary: Summary, intervals: Intervals) -> dict[str, list[GroupRow]]:
    """The rows of the table of intervals by heading."""
    found: dict[str, list[GroupRow]] = {}
    if summary.overall is not None:
        axes = [summary.axes[axis] for axis in AXES[:3]]
        of_all = sum(group.n for group in summary.categories.values())
        found["overall"] = [
            _row("overall", "", of_all, None, summary.overall, intervals.overall, axes),
        ]
    found["categories"] = _rows("category", summary.categories, intervals.categories)
    found["dialects"] = _rows("dialect", summary.dialects, intervals.dialects)
    found["axes"] = [
        _row("axis", axis, None, None, value, intervals.axes.get(axis), [])
        for axis, value in summary.axes.items()
        if value is not None
    ]
    return {heading: rows for heading, rows in found.items() if rows}


def _rows(kind: str, groups: Mapping[str, Group], ends: Mapping[str, Ends]) -> list[GroupRow]:
    return [
        _row(kind, name, one.n, one.weight, one.score, ends.get(name), [getattr(one, axis) for axis in AXES[:3]])
        for name, one in groups.items()
    ]


def _row(
    kind: str,
    name: str,
    n: int | None,
    weight: float | None,
    score: float,
    ends: Ends | None,
    axes: list[float | None],
) -> GroupRow:
    return GroupRow(kind, name, n, weight, score, ends, span(score, ends), axes)


def _losses(summary: Summary) -> Losses | None:
    """Printed points that add up: causes to 1 − score, the axes of a cause to the cause; None without causes."""
    if summary.lost is None or summary.lost_by_axis is None or summary.overall is None:
        return None
    units = lost_units(summary.overall)
    shares = dict(zip(summary.lost, apportion(list(summary.lost.values()), units), strict=True))
    axes = [axis for axis in AXES if any(axis in found for found in summary.lost_by_axis.values())]
    longest = max(shares.values(), default=0) or 1
    rows, by_axis = [], dict.fromkeys(axes, 0)
    for cause, share in shares.items():
        parts = summary.lost_by_axis[cause]
        printed_parts = dict(zip(parts, apportion(list(parts.values()), share), strict=True))
        for axis, part in printed_parts.items():
            by_axis[axis] += part
        names = argument_list((summary.lost_arguments or {}).get(cause, {}))
        rows.append(LossRow(cause, share, printed_parts, stack(printed_parts, longest), names))
    return Losses(axes, rows, by_axis, units)


def _filters(cards: Sequence[Card]) -> list[Filter]:
    """What the failures can be narrowed by, with the values that occur."""
    values: dict[str, list[str]] = {
        "category": [card.row.category for card in cards],
        "dialect": [card.row.dialect or NO_DIALECT for card in cards],
        "cause": [cause for card in cards for cause in card.causes],
        "tool": [tool for card in cards for tool in card.tools],
    }
    return [
        Filter(key, {value: f"{key}-{place}" for place, value in enumerate(sorted(set(found)))})
        for key, found in values.items()
    ]


def _tags(card: Card, filters: Sequence[Filter]) -> str:
    """The tokens that a card carries."""
    category, dialect, cause, tool = (one.tokens for one in filters)
    tokens = [category[card.row.category], dialect[card.row.dialect or NO_DIALECT]]
    tokens += [cause[name] for name in card.causes]
    tokens += [tool[name] for name in card.tools]
    return " ".join(tokens)
