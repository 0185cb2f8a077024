"""What a block of replies came to, as JSON: counts that another machine adds to its own.

Nothing is summed here either: the numbers of a tally that was taken apart and put together are the same, bit for bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from arabic_agent_eval.ranges import RangeResult
from arabic_agent_eval.tally import Example, ItemFacts, LossKey, Outcome, Tally

Runs = tuple[tuple[int, int], ...]
"""Whole numbers as runs, each from its first to before its end, in order and apart."""

_ONCE: Runs = ((0, 1),)
_DIFFERENT = 1 << 16  # runs that are kept as one object each


class Counts(msgspec.Struct, frozen=True, array_like=True):
    """The counts of a block.

    Attributes:
        rows: how many replies were read.
        failures, unknown, written: as in :class:`RangeResult`.
        facts: the facts of items, for others to name by place.
        outcomes: facts by place, the three axes and what was lost, for others to name by place.
        items: item → its one outcome by place, or its outcomes with how often each.
        unscored: item → reason → how often.
        unscored_facts: item → facts by place.
        examples: cause → the first answers in which it occurred.
        arguments: cause, argument, and in how many answers.
        epochs: item → the epochs in which it was answered.
    """

    rows: int
    failures: int
    unknown: int
    written: int
    facts: list[ItemFacts]
    outcomes: list[tuple[int, float, float, float, tuple[LossKey, ...]]]
    items: dict[str, int | list[tuple[int, int]]]
    unscored: dict[str, dict[str, int]]
    unscored_facts: dict[str, int]
    examples: dict[str, list[Example]]
    arguments: list[tuple[str, str, int]]
    epochs: dict[str, Runs]


class Twice(Exception):
    """An item is answered twice in an epoch."""

    def __init__(self, item_id: str, epoch: int) -> None:
        super().__init__(item_id, epoch)
        self.item_id = item_id
        self.epoch = epoch


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Counts).decode


def write_counts(part: RangeResult) -> bytes:
    """The counts of a block as JSON.

    Raises:
        Twice: an item is answered twice in an epoch.
    """
    tally = part.tally
    facts: dict[ItemFacts, int] = {}
    outcomes: dict[Outcome, int] = {}

    def place(outcome: Outcome) -> int:
        facts.setdefault(outcome.facts, len(facts))
        return outcomes.setdefault(outcome, len(outcomes))

    items: dict[str, int | list[tuple[int, int]]] = {}
    for item_id, found in tally.outcomes.items():
        if isinstance(found, Outcome):
            items[item_id] = place(found)
        else:
            items[item_id] = [(place(outcome), times) for outcome, times in found.items()]
    unscored_facts = {item_id: facts.setdefault(found, len(facts)) for item_id, found in tally.unscored_facts.items()}
    return _encode(
        Counts(
            rows=len(part.first) + len(part.again) + part.unknown,
            failures=part.failures,
            unknown=part.unknown,
            written=part.written,
            facts=list(facts),
            outcomes=[(facts[one.facts], one.function, one.argument, one.arabic, one.lost) for one in outcomes],
            items=items,
            unscored={item_id: dict(reasons) for item_id, reasons in tally.unscored.items()},
            unscored_facts=unscored_facts,
            examples=tally.examples,
            arguments=[(cause, argument, times) for (cause, argument), times in tally.arguments.items()],
            epochs=_epochs(part),
        )
    )


def _epochs(part: RangeResult) -> dict[str, Runs]:
    found: dict[str, list[int]] = {}
    for item_id in part.first:
        found.setdefault(item_id, []).append(0)
    for item_id, epoch in part.again:
        found.setdefault(item_id, []).append(epoch)
    return {item_id: _runs(item_id, ((epoch, epoch + 1) for epoch in epochs)) for item_id, epochs in found.items()}


def _runs(item_id: str, parts: Iterable[tuple[int, int]]) -> Runs:
    """Runs put together, in order.

    Raises:
        Twice: two of them overlap.
    """
    runs: list[tuple[int, int]] = []
    for start, end in sorted(parts):
        if runs and start < runs[-1][1]:
            raise Twice(item_id, start)
        if runs and start == runs[-1][1]:
            runs[-1] = runs[-1][0], end
        else:
            runs.append((start, end))
    return tuple(runs)


def _joined(item_id: str, before: Runs, later: Runs) -> Runs:
    """Earlier and later runs of an item put together.

    Raises:
        Twice: they overlap.
    """
    if before[-1][1] == later[0][0]:  # as where epoch after epoch was asked
        return (*before[:-1], (before[-1][0], later[0][1]), *later[1:])
    return _runs(item_id, (*before, *later))


class Sum:
    """Counts of blocks added together, in the order of the blocks.

    While they are added, outcomes are numbers: comparing those of millions of items would take most of the time.

    Attributes:
        rows, failures, unknown, written: as in :class:`Counts`.
    """

    def __init__(self) -> None:
        self.rows = self.failures = self.unknown = self.written = 0
        self._items: dict[str, int | dict[int, int]] = {}
        self._outcomes: dict[Outcome, int] = {}
        self._others = Tally()
        self._epochs: dict[str, Runs] = {}
        self._same_runs: dict[Runs, Runs] = {_ONCE: _ONCE}

    def add(self, written: bytes) -> Twice | None:
        """Add the counts of the next block, as :func:`write_counts` gave them.

        Returns:
            The first answer of the block that an earlier block has too; then nothing of the block was added.

        Raises:
            msgspec.MsgspecError: these are no counts.
        """
        counts = _decode(written)
        known, epochs = self._epochs, {}
        try:
            for item_id, runs in counts.epochs.items():
                before = known.get(item_id)
                epochs[item_id] = self._one_object(runs if before is None else _joined(item_id, before, runs))
        except Twice as twice:
            return twice
        known.update(epochs)
        self.rows += counts.rows
        self.failures += counts.failures
        self.unknown += counts.unknown
        self.written += counts.written
        self._add_outcomes(counts)
        self._others.merge(_all_but_outcomes(counts))
        return None

    def _one_object(self, runs: Runs) -> Runs:
        return self._same_runs.setdefault(runs, runs) if len(self._same_runs) < _DIFFERENT else runs

    def _add_outcomes(self, counts: Counts) -> None:
        known, facts = self._outcomes, counts.facts
        places = [
            known.setdefault(Outcome(facts[place], function, argument, arabic, lost), len(known))
            for place, function, argument, arabic, lost in counts.outcomes
        ]
        items = self._items
        for item_id, found in counts.items.items():
            before = items.get(item_id)
            if before is None:
                if isinstance(found, int):
                    items[item_id] = places[found]
                else:
                    items[item_id] = {places[place]: times for place, times in found}
                continue
            if isinstance(before, int):
                before = items[item_id] = {before: 1}
            for place, times in ((found, 1),) if isinstance(found, int) else found:
                before[places[place]] = before.get(places[place], 0) + times

    def tally(self) -> Tally:
        """What was added, as one process would have counted it."""
        found, outcomes = self._others, list(self._outcomes)
        found.outcomes = {
            item_id: outcomes[times] if isinstance(times, int) else Counter({outcomes[n]: k for n, k in times.items()})
            for item_id, times in self._items.items()
        }
        return found


def _all_but_outcomes(counts: Counts) -> Tally:
    tally = Tally()
    tally.unscored = {item_id: Counter(reasons) for item_id, reasons in counts.unscored.items()}
    tally.unscored_facts = {item_id: counts.facts[place] for item_id, place in counts.unscored_facts.items()}
    tally.examples = counts.examples
    tally.arguments = Counter({(cause, argument): times for cause, argument, times in counts.arguments})
    return tally
