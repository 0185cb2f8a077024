"""The scores of single items: what intervals, comparisons and leaderboards are computed from.

They are read from a run folder or from graded rows and never computed again from answers by anything above.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from arabic_agent_eval.errors import DataError
from arabic_agent_eval.rows import GradedRow, read_rows
from arabic_agent_eval.rules import AXES, CANONICAL, Rules
from arabic_agent_eval.scoring import Signature

if TYPE_CHECKING:
    from arabic_agent_eval.regrading import RunFigures


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
        return sum(total > 1 - 1e-12 for total in self.totals)


class Scores(msgspec.Struct, frozen=True):
    """All items of one model.

    Attributes:
        name: the model of a run, or the name of the file.
        path: where they were read from.
        signature: what they were computed with, epochs included.
        items: id → scores, in the order of the rows.
        figures: what the run took; None for graded rows.
    """

    name: str
    path: str
    signature: Signature
    items: dict[str, ItemScores]
    figures: RunFigures | None = None

    def judged(self, keep: Callable[[ItemScores], bool] = lambda _: True) -> list[ItemScores]:
        """The items that have a score, and for which ``keep`` holds."""
        return [item for item in self.items.values() if item.totals and keep(item)]


def read_scores(path: Path, *, rules: Rules = CANONICAL) -> Scores:
    """Read the scores of a run folder, graded by these rules, or of graded rows, which keep theirs.

    Raises:
        DataError: it is neither, or is damaged; rows with different signatures are mixed.
    """
    if path.is_dir():
        return _of_run(path, rules)
    items, signature = _collected(read_rows(path), str(path))
    return Scores(path.stem, str(path), signature, items)


def _of_run(path: Path, rules: Rules) -> Scores:
    from arabic_agent_eval.regrading import grade_run, graded_rows  # noqa: PLC0415 - rows need neither runs nor models
    from arabic_agent_eval.runs import Run  # noqa: PLC0415

    run = Run.read(path)
    items, signature = _collected(graded_rows(run, rules=rules), str(path))
    _, figures = grade_run(run, rules=rules, causes=False)
    return Scores(run.manifest.asked.model, str(path), signature, items, figures)


def read_graded(path: Path, *, rules: Rules = CANONICAL) -> Iterator[GradedRow]:
    """The graded rows of a run folder or a file of them, one after another."""
    if path.is_dir():
        from arabic_agent_eval.regrading import graded_rows  # noqa: PLC0415
        from arabic_agent_eval.runs import Run  # noqa: PLC0415

        return graded_rows(Run.read(path), rules=rules)
    return read_rows(path)


def _collected(rows: Iterator[GradedRow], path: str) -> tuple[dict[str, ItemScores], Signature]:
    found: dict[str, list[GradedRow]] = {}
    signature = None
    for row in rows:
        signature = signature or row.signature
        if row.signature != signature:
            what = f"rows with different signatures are mixed: {signature} and {row.signature}."
            raise DataError(what, path=path, field="signature")
        found.setdefault(row.item_id, []).append(row)
    if signature is None:
        raise DataError("the file holds no rows.", path=path)
    epochs = max(len(several) for several in found.values())
    known = Signature.read(signature)
    return {item_id: _item(several) for item_id, several in found.items()}, _with_epochs(known, epochs)


def _with_epochs(signature: Signature, epochs: int) -> Signature:
    return replace(signature, epochs=epochs)


def _item(rows: list[GradedRow]) -> ItemScores:
    """The rows of one item in the order of their epochs."""
    ordered = sorted(rows, key=lambda row: row.epoch)
    judged = [row for row in ordered if row.total is not None]
    first = ordered[0]
    return ItemScores(
        item_id=first.item_id,
        category=first.category,
        dialect=first.dialect,
        intent=first.intent if isinstance(first.intent, str) else None,
        totals=tuple(row.total for row in judged if row.total is not None),
        axes=_axes(judged),
        arabic=first.arabic_applicable,
        unscored=len(ordered) - len(judged),
    )


def _axes(rows: list[GradedRow]) -> dict[str, float]:
    found: dict[str, float] = {}
    for axis in AXES:
        values = [value for row in rows if (value := getattr(row, axis)) is not None]
        if values:
            found[axis] = sum(values) / len(values)
    return found


def weights_of(scores: Scores, weight: Callable[[str], float]) -> Mapping[str, float]:
    """Category → weight, of the categories that have a judged item and a weight above 0."""
    found = {item.category: weight(item.category) for item in scores.judged()}
    return {name: value for name, value in found.items() if value > 0}
