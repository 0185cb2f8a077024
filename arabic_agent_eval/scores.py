"""The scores of single items: what intervals, comparisons and leaderboards are computed from.

They are read from a run folder or from graded rows and never computed again from answers by anything above.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from arabic_agent_eval.errors import DataError, UsageError
from arabic_agent_eval.rows import GradedRow, read_rows
from arabic_agent_eval.rules import AXES, CANONICAL, Rules, composition
from arabic_agent_eval.scoring import Signature
from arabic_agent_eval.tally import FULL, Ledger

if TYPE_CHECKING:
    from arabic_agent_eval.regrading import RunFigures


_Facts = tuple[str, str | None, str | None, bool]
"""Category, dialect, intent, and whether anything Arabic was expected."""
_Answer = tuple[int, float | None, tuple[float | None, ...]]
"""Epoch, total, axes."""


class ItemScores(msgspec.Struct, frozen=True):
    """One item of one model, over its epochs.

    Attributes:
        item_id, category, dialect, intent: of the item.
        totals: one score an epoch that was judged, 0 to 1, in the order of epochs; empty where none was.
        axes: axis → mean over the judged epochs; axes that the category does not have are absent.
        arabic: whether anything Arabic was expected.
        unscored: how many epochs were not judged.
    """

    item_id: str
    category: str
    dialect: str | None
    intent: str | None
    totals: tuple[float, ...]
    axes: dict[str, float]
    arabic: bool
    unscored: int

    @property
    def cluster(self) -> str:
        """Items that say the same thing hang together: the intent, else the item itself."""
        return f"intent:{self.intent}" if self.intent is not None else f"item:{self.item_id}"

    @property
    def mean(self) -> float:
        """The mean over the judged epochs; only for items with any."""
        return sum(self.totals) / len(self.totals)

    @property
    def exact(self) -> int:
        """How many epochs were right in every respect."""
        return sum(total > FULL for total in self.totals)


class Scores(msgspec.Struct, frozen=True):
    """All items of one model.

    Attributes:
        name: the model of a run, or the name of the file.
        path: where they were read from.
        signature: what they were computed with, epochs included.
        items: id → scores, in the order of the rows.
        figures: what the run took; None for graded rows.
        created: when the run was made, in UTC; None for graded rows.
    """

    name: str
    path: str
    signature: Signature
    items: dict[str, ItemScores]
    figures: RunFigures | None = None
    created: str | None = None

    def judged(self, keep: Callable[[ItemScores], bool] = lambda _: True) -> list[ItemScores]:
        """The items that have a score, and for which ``keep`` holds."""
        return [item for item in self.items.values() if item.totals and keep(item)]


class Sheet:
    """Collects the scores of single items from graded rows in any order; of each row only the numbers are kept."""

    def __init__(self) -> None:
        self._facts: dict[str, _Facts] = {}
        self._answers: dict[str, list[_Answer]] = {}
        self._ledger = Ledger()
        self._signature: str | None = None

    def add(self, row: GradedRow) -> None:
        """Count a row.

        Raises:
            UsageError: its signature is not that of the rows before it, or the same answer was counted already.
        """
        self._signature = self._signature or row.signature
        if row.signature != self._signature:
            raise UsageError(f"rows with different signatures are mixed: {self._signature} and {row.signature}.")
        if not self._ledger.add(row.item_id, row.epoch):
            raise UsageError(f"item {row.item_id!r}, epoch {row.epoch}, stands twice.")
        if row.item_id not in self._facts:
            intent = row.intent if isinstance(row.intent, str) else None
            self._facts[row.item_id] = (row.category, row.dialect, intent, row.arabic_applicable)
        axes = tuple([getattr(row, axis) for axis in AXES])
        self._answers.setdefault(row.item_id, []).append((row.epoch, row.total, axes))

    def scores(self, name: str, path: str, figures: RunFigures | None = None, created: str | None = None) -> Scores:
        """The scores of all rows that were counted.

        Args:
            name: what was scored.
            path: where the rows came from.
            figures: what the run took.
            created: when the run was made, in UTC.

        Raises:
            UsageError: there were no rows, or their signature is none.
        """
        if self._signature is None:
            raise UsageError("the file holds no rows.")
        epochs = max(len(several) for several in self._answers.values())
        signature = replace(Signature.read(self._signature), epochs=epochs)
        answers = self._answers
        items = {item_id: _item(item_id, facts, answers[item_id], epochs) for item_id, facts in self._facts.items()}
        return Scores(name, path, signature, items, figures, created)


def read_scores(path: Path, *, rules: Rules = CANONICAL) -> Scores:
    """Read the scores of a run folder, graded by these rules, or of graded rows, which keep theirs.

    Raises:
        DataError: it is neither, or is damaged; rows with different signatures are mixed.
    """
    sheet = Sheet()
    name, figures, created = path.stem, None, None
    try:
        if path.is_dir():
            from arabic_agent_eval.regrading import grade_run  # noqa: PLC0415 - rows need neither runs nor models
            from arabic_agent_eval.runs import Run  # noqa: PLC0415

            run = Run.read(path)
            _, figures = grade_run(run, rules=rules, causes=False, each=sheet.add)
            name, created = figures.model, run.manifest.created
        else:
            for row in read_rows(path):
                sheet.add(row)
        return sheet.scores(name, str(path), figures, created)
    except UsageError as error:
        raise DataError(str(error), path=str(path)) from None


def read_graded(path: Path, *, rules: Rules = CANONICAL) -> Iterator[GradedRow]:
    """The graded rows of a run folder or a file of them, one after another."""
    if path.is_dir():
        from arabic_agent_eval.regrading import graded_rows  # noqa: PLC0415
        from arabic_agent_eval.runs import Run  # noqa: PLC0415

        return graded_rows(Run.read(path), rules=rules)
    return read_rows(path)


def matched_by_intent(first: Scores, others: Sequence[Scores]) -> list[Scores]:
    """The first scores and the others under its ids, so that sets which only share intents can be compared.

    An item gets the mean of another's judged items with the same intent and category; one without any is left out. So
    each dialect of a set stands against the same controls in another language.

    Where only one side of a request expects anything Arabic, all sides are scored without Arabic preservation: the
    others would get its points for nothing.

    Raises:
        UsageError: no intent is common to both.
    """
    matched = [_under_ids(first, other) for other in others]
    uneven = {item_id for one in matched for item_id, item in one.items() if item.arabic != first.items[item_id].arabic}
    return [
        msgspec.structs.replace(
            one, items={id_: _without_arabic(item) if id_ in uneven else item for id_, item in items.items()}
        )
        for one, items in zip([first, *others], [first.items, *matched], strict=True)
    ]


def _under_ids(scores: Scores, other: Scores) -> dict[str, ItemScores]:
    said: dict[tuple[str | None, str], list[ItemScores]] = {}
    for item in other.judged(lambda one: one.intent is not None):
        said.setdefault((item.intent, item.category), []).append(item)
    found = {}
    for item in scores.items.values():
        if several := said.get((item.intent, item.category)):
            found[item.item_id] = _joined(item, several)
    if not found:
        raise UsageError(f"{scores.path} and {other.path} have no intent in common.")
    return found


def _without_arabic(item: ItemScores) -> ItemScores:
    """An item with its mean over the other axes as its one score."""
    if not item.totals:
        return item
    weights, own = composition(item.category)
    shares = {"function_selection": weights[0], "argument_accuracy": weights[1], own or "": weights[3]}
    kept = {axis: value for axis, value in item.axes.items() if axis != "arabic_preservation"}
    total = sum(kept[axis] * share for axis, share in shares.items() if axis in kept)
    counted = sum(share for axis, share in shares.items() if axis in kept)
    return msgspec.structs.replace(item, totals=(total / counted,), axes=kept, arabic=False)


def _joined(item: ItemScores, several: list[ItemScores]) -> ItemScores:
    axes = {axis: sum(one.axes[axis] for one in several) / len(several) for axis in several[0].axes}
    return ItemScores(
        item_id=item.item_id,
        category=item.category,
        dialect=item.dialect,
        intent=item.intent,
        totals=(sum(one.mean for one in several) / len(several),),
        axes=axes,
        arabic=any(one.arabic for one in several),
        unscored=0,
    )


def _item(item_id: str, facts: _Facts, answers: list[_Answer], epochs: int) -> ItemScores:
    """One item, its answers in the order of their epochs; an epoch that no row answers was not judged."""
    category, dialect, intent, arabic = facts
    judged = [(total, axes) for _, total, axes in sorted(answers, key=lambda answer: answer[0]) if total is not None]
    return ItemScores(
        item_id=item_id,
        category=category,
        dialect=dialect,
        intent=intent,
        totals=tuple([total for total, _ in judged]),
        axes=_axes([axes for _, axes in judged]),
        arabic=arabic,
        unscored=epochs - len(judged),
    )


def _axes(answers: list[tuple[float | None, ...]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for place, axis in enumerate(AXES):
        values = [value for axes in answers if (value := axes[place]) is not None]
        if values:
            found[axis] = sum(values) / len(values)
    return found


def weights_of(scores: Scores, weight: Callable[[str], float]) -> Mapping[str, float]:
    """Category → weight, of the categories that have a judged item and a weight above 0."""
    found = {item.category: weight(item.category) for item in scores.judged()}
    return {name: value for name, value in found.items() if value > 0}
