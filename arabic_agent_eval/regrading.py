"""Grading a run folder: its raw answers are the truth, and grades can be made anew from them at any time."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from arabic_agent_eval.batch import GradedBatch, signature_of
from arabic_agent_eval.errors import DataError
from arabic_agent_eval.files import WholeFile
from arabic_agent_eval.items import Category, Item
from arabic_agent_eval.journal import REPLIES
from arabic_agent_eval.models.model import Tokens
from arabic_agent_eval.ranges import SAID, Options, RangeGrader, RangeResult
from arabic_agent_eval.rows import GradedRow, row_line, row_of
from arabic_agent_eval.rules import CANONICAL, Rules
from arabic_agent_eval.runs import Pair, ReplyRecord, Run
from arabic_agent_eval.scoring import Grader, Result
from arabic_agent_eval.shortcuts import expects_arabic
from arabic_agent_eval.summary import NOT_ASKED
from arabic_agent_eval.tally import ItemFacts

_MOST_AHEAD = 50_000  # judged answers in memory


class Latency(msgspec.Struct, frozen=True):
    """Seconds in which the provider answered an item, waiting and failed attempts aside."""

    mean: float
    median: float
    p95: float


class RunFigures(msgspec.Struct, frozen=True):
    """What a run took.

    Attributes:
        run: the folder; model: who was asked.
        tokens: of all answered items; None where some answer was not counted.
        cost: US dollars of all answers, those of failed items included; None where some are not known.
        latency: None where nothing was answered.
        attempts: how many requests were sent; cut: answers that a limit on their length cut off.
        unfinished: conversations that were not let go on.
    """

    run: str
    model: str
    tokens: Tokens | None
    cost: float | None
    latency: Latency | None
    attempts: int
    cut: int
    unfinished: int


class _Counts:
    """Sums over the records of a run."""

    def __init__(self) -> None:
        self.tokens: list[Tokens | None] = []
        self.costs: list[float | None] = []
        self.latencies: list[float] = []
        self.attempts = self.cut = self.unfinished = 0

    def add(self, record: ReplyRecord) -> None:
        self.attempts += len(record.attempts)
        self.cut += record.cut
        self.unfinished += record.end == "max_turns"
        # What came from the cache was paid for at another time.
        self.costs += [turn.cost if turn.latency is not None else turn.cost and 0.0 for turn in record.turns]
        if record.status == "answered":
            self.tokens.append(record.tokens)
            self.latencies.append(record.latency)

    def figures(self, run: Run) -> RunFigures:
        known = [count for count in self.tokens if count is not None]
        costs = [cost for cost in self.costs if cost is not None]
        return RunFigures(
            run=str(run.folder),
            model=run.manifest.asked.model,
            tokens=sum(known, Tokens()) if known and len(known) == len(self.tokens) else None,
            cost=sum(costs) if costs and len(costs) == len(self.costs) else None,
            latency=_latency(self.latencies),
            attempts=self.attempts,
            cut=self.cut,
            unfinished=self.unfinished,
        )


def _latency(seconds: list[float]) -> Latency | None:
    if not seconds:
        return None
    ordered = sorted(seconds)
    nearest = ordered[min(round(0.95 * (len(ordered) - 1)), len(ordered) - 1)]
    return Latency(round(statistics.fmean(seconds), 4), round(statistics.median(seconds), 4), round(nearest, 4))


class Judged(NamedTuple):
    """What one record of a run came to, and the beginning of what it says in words where it calls nothing."""

    result: Result
    said: str


class Ahead:
    """Answers that are judged as soon as they have come, while others are waited for; the end then need not.

    Args:
        run: the run that is being asked.
        rules: the rule set.
    """

    def __init__(self, run: Run, rules: Rules = CANONICAL) -> None:
        self._run, self._rules = run, rules
        self._judged: dict[Pair, Judged] = {}

    def __len__(self) -> int:
        return len(self._judged)

    def add(self, record: ReplyRecord) -> None:
        """Judge a record; one that cannot be read is left to :func:`grade_run`, which says so."""
        if len(self._judged) < _MOST_AHEAD:
            with contextlib.suppress(DataError):
                self._judged[record.id, record.epoch] = _judge(self._run, record, self._rules, causes=True)

    def take(self, record: ReplyRecord) -> Judged | None:
        """What was judged of the record, once."""
        return self._judged.pop((record.id, record.epoch), None)


def _judge(run: Run, record: ReplyRecord, rules: Rules, *, causes: bool) -> Judged:
    reply, said = run.reply(record)
    result = Grader(run.items[record.id], rules).evaluate(reply, causes=causes)
    return Judged(result, said[:SAID] if result.score is not None and not result.calls else "")


def grade_run(
    run: Run,
    *,
    rules: Rules = CANONICAL,
    causes: bool = True,
    out: Path | None = None,
    categories: Mapping[str, Category] | None = None,
    each: Callable[[GradedRow], None] | None = None,
    ahead: Ahead | None = None,
) -> tuple[GradedBatch, RunFigures]:
    """Grade every answer of a run, in the order of asking.

    Args:
        run: the run.
        rules: the rule set.
        causes: whether to explain lost points.
        out: a file for the graded rows, written whole or not at all.
        categories: declared categories; with them, an item of an unknown category is refused.
        each: is told every graded row.
        ahead: what was judged already by the same rules, with causes.

    Raises:
        DataError: a line of the run is damaged.
        OutputError: the rows could not be written.
        UnknownCategory: see ``categories``.
    """
    counts, part = _Counts(), RangeResult()
    options = _options(run, rules, causes=causes, categories=categories)
    file = None if out is None else WholeFile(out)
    with file or contextlib.nullcontext():
        for row in _graded(run, options, part, counts, ahead):
            if file is not None:
                file.write(row_line(row))
            if each is not None:
                each(row)
    batch = GradedBatch(signature_of(run.items, rules, options.format), len(run.items), part.tally)
    batch.failures, batch.written = part.failures, part.written
    return batch, counts.figures(run)


def graded_rows(run: Run, *, rules: Rules = CANONICAL, causes: bool = True) -> Iterator[GradedRow]:
    """The graded row of every item that was asked or is still to be asked, one after another."""
    return _graded(run, _options(run, rules, causes=causes), RangeResult(), _Counts())


def _options(run: Run, rules: Rules, *, causes: bool, categories: Mapping[str, Category] | None = None) -> Options:
    format = "text" if run.manifest.asked.written else "response"  # noqa: A001 - the option's name
    return Options(rules.name, format, causes, signature_of(run.items, rules, format), categories=categories)


def _graded(
    run: Run, options: Options, part: RangeResult, counts: _Counts, ahead: Ahead | None = None
) -> Iterator[GradedRow]:
    """Grade one answer after another into the part, and give its row; what was not asked yet is unscored."""
    grader = RangeGrader(run.items, run.folder / REPLIES, options)
    due = run.due()
    for record in run.records():
        for pair in due:
            if pair == (record.id, record.epoch):
                break
            yield _missing(run, pair, options, part)
        counts.add(record)
        judged = None if ahead is None else ahead.take(record)
        result, said = judged or _judge(run, record, grader.rules, causes=options.causes)
        results = [result for turn in record.turns for result in turn.results]
        item = run.items[record.id]
        grader.count(item, result, said, part)
        yield _row(item, result, options, said=said or None, results=results)
    for pair in due:
        yield _missing(run, pair, options, part)


def _missing(run: Run, pair: tuple[str, int], options: Options, part: RangeResult) -> GradedRow:
    """Count what was not asked yet, and give its row."""
    item, epoch = run.items[pair[0]], pair[1]
    arabic = expects_arabic(item.expected_calls)
    part.tally.add_unscored(item.id, NOT_ASKED, facts=ItemFacts(item.category, item.dialect, arabic))
    result = Result.unscored(item, epoch, NOT_ASKED)
    return _row(item, result, options)


def _row(
    item: Item, result: Result, options: Options, *, said: str | None = None, results: Sequence[str] = ()
) -> GradedRow:
    assert options.signature is not None  # noqa: S101 - rows are wanted of every run
    return row_of(item, result, options.signature, causes=options.causes, said=said, results=results)
