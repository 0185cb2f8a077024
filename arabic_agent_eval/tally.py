"""Counting outcomes: how often each item came out in which way.

Outcomes are counted, not summed, so that every number is the same whatever the order of the replies and however
many processes counted them.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from arabic_agent_eval.text import name_invisible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from arabic_agent_eval.diagnosis import Loss

FULL: Final = 1 - 1e-12
"""An axis or a score from here on is 1: sums differ by less for no other reason than rounding."""
_EXAMPLES = 3
_EXAMPLE_LENGTH = 80

LossKey = tuple[str, str, float]
"""Cause, axis and points of a loss."""


class ItemFacts(NamedTuple):
    """What a summary needs to know of an item: its category and dialect, and whether Arabic was expected."""

    category: str
    dialect: str | None
    arabic: bool


class Outcome(NamedTuple):
    """How a reply came out: the item's facts, the three axes, and what was lost."""

    facts: ItemFacts
    function: float
    argument: float
    arabic: float
    lost: tuple[LossKey, ...] = ()


class Example(msgspec.Struct, frozen=True):
    """A lost point as it looked, shortened and harmless to print."""

    item_id: str
    argument: str | None
    expected: str
    actual: str


class EpochSet:
    """Whole numbers seen so far; runs that come in order take no memory."""

    __slots__ = ("_apart", "_end", "_start")

    def __init__(self, first: int) -> None:
        self._start = first
        self._end = first + 1
        self._apart: set[int] = set()

    def add(self, epoch: int) -> bool:
        """Add a number; False if it was there."""
        if epoch == self._end:
            self._end += 1
            while self._end in self._apart:
                self._apart.discard(self._end)
                self._end += 1
            return True
        if self._start <= epoch < self._end or epoch in self._apart:
            return False
        self._apart.add(epoch)
        return True


class Ledger:
    """Which epochs of which items have been answered, so that the same pair twice is noticed."""

    def __init__(self) -> None:
        self._seen: dict[str, int | EpochSet] = {}

    def add(self, item_id: str, epoch: int) -> bool:
        """Note an answer; False if the item was already answered in this epoch."""
        seen = self._seen.get(item_id)
        if seen is None:
            self._seen[item_id] = epoch
            return True
        if isinstance(seen, int):
            if seen == epoch:
                return False
            seen = self._seen[item_id] = EpochSet(seen)
        return seen.add(epoch)

    def add_all(self, first: list[str], again: list[tuple[str, int]]) -> tuple[str, int] | None:
        """Note many answers: items in epoch 0, and pairs of item and epoch. Returns one that was there, or None."""
        new = dict.fromkeys(first, 0)
        if len(new) == len(first) and self._seen.keys().isdisjoint(new):
            self._seen.update(new)
        else:
            again = [*((item_id, 0) for item_id in first), *again]
        return next((pair for pair in again if not self.add(*pair)), None)


class Tally:
    """Outcomes by item, unscored answers by item and reason, and examples by cause."""

    def __init__(self) -> None:
        self.outcomes: dict[str, Outcome | Counter[Outcome]] = {}
        self.unscored: dict[str, Counter[str]] = {}
        self.unscored_facts: dict[str, ItemFacts] = {}
        self.examples: dict[str, list[Example]] = {}
        self.arguments: Counter[tuple[str, str]] = Counter()

    def add(self, item_id: str, outcome: Outcome, times: int = 1) -> None:
        """Count an outcome of an item."""
        before = self.outcomes.get(item_id)
        if before is None and times == 1:
            self.outcomes[item_id] = outcome
            return
        if not isinstance(before, Counter):
            before = self.outcomes[item_id] = Counter() if before is None else Counter({before: 1})
        before[outcome] += times

    def add_unscored(self, item_id: str, reason: str, times: int = 1, facts: ItemFacts | None = None) -> None:
        """Count an answer that was not judged; with the item's facts it takes part in the worst case."""
        self.unscored.setdefault(item_id, Counter())[reason] += times
        if facts is not None:
            self.unscored_facts[item_id] = facts

    def worst_case(self) -> Tally:
        """What was counted, with every answer that was not judged counted as wrong where its item's facts are known."""
        found = Tally()
        for item_id, outcome in self.outcomes.items():
            found.outcomes[item_id] = Counter(outcome) if isinstance(outcome, Counter) else outcome
        for item_id, facts in self.unscored_facts.items():
            found.add(item_id, Outcome(facts, 0.0, 0.0, 0.0), self.unscored[item_id].total())
        return found

    def add_losses(self, item_id: str, losses: Iterable[Loss]) -> tuple[LossKey, ...]:
        """Keep examples of losses, and return what an outcome needs of them."""
        found: Counter[tuple[str, str]] = Counter()
        points: dict[tuple[str, str], list[float]] = {}
        for loss in losses:
            points.setdefault((loss.cause, loss.axis), []).append(loss.points)
            if loss.argument is not None:
                found[loss.cause, loss.argument] = 1
            examples = self.examples.setdefault(loss.cause, [])
            if len(examples) < _EXAMPLES and all(example.item_id != item_id for example in examples):
                examples.append(Example(item_id, loss.argument, _short(loss.expected), _short(loss.actual)))
        self.arguments.update(found)
        return tuple([(*key, math.fsum(values)) for key, values in sorted(points.items())])

    def merge(self, later: Tally) -> None:
        """Add the counts of answers that came later in the file."""
        if self.outcomes.keys().isdisjoint(later.outcomes):
            self.outcomes.update(later.outcomes)
            later.outcomes = {}
        for item_id, outcome in later.outcomes.items():
            if isinstance(outcome, Counter):
                for one, times in outcome.items():
                    self.add(item_id, one, times)
            else:
                self.add(item_id, outcome)
        for item_id, reasons in later.unscored.items():
            for reason, times in reasons.items():
                self.add_unscored(item_id, reason, times)
        self.unscored_facts.update(later.unscored_facts)
        for cause, examples in later.examples.items():
            kept = self.examples.setdefault(cause, [])
            known = {example.item_id for example in kept}
            kept.extend([one for one in examples if one.item_id not in known][: _EXAMPLES - len(kept)])
        self.arguments.update(later.arguments)

    def answered(self) -> int:
        """How many items have an answer, judged or not."""
        return len(self.outcomes.keys() | self.unscored.keys()) if self.unscored else len(self.outcomes)


def _short(value: Any) -> str:
    if value is None:
        return "(nothing)"
    if not isinstance(value, str):
        try:
            value = msgspec.json.encode(value).decode()
        except (TypeError, ValueError, RecursionError):
            value = repr(value)
    shown = name_invisible(value[:_EXAMPLE_LENGTH], spaces=True)
    return f"{shown}…" if len(value) > _EXAMPLE_LENGTH else shown
