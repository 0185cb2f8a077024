"""Graded rows: what ``--out`` writes and ``aae report`` and ``aae show`` read, one line an answer.

Per-item results are kept with their signature, so that a report never grades again.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from arabic_agent_eval.diagnosis import Loss
from arabic_agent_eval.errors import DataError, UsageError
from arabic_agent_eval.files import numbered_lines, read_json_line, validation_error
from arabic_agent_eval.grading import Expectation
from arabic_agent_eval.items import ExpectedCall, Item
from arabic_agent_eval.rules import RULES
from arabic_agent_eval.scoring import Result, Signature
from arabic_agent_eval.tables import NO_REPLY
from arabic_agent_eval.tally import ItemFacts, Ledger, Outcome, Tally
from arabic_agent_eval.tools import Call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


class GradedRow(msgspec.Struct, frozen=True, kw_only=True):
    """One judged answer.

    Attributes:
        item_id, category, dialect, epoch: which item and which asking of it.
        context, messages: what the model was told besides the instruction; absent where the item has none.
        intent: items that say the same thing share it; absent where the item has none.
        status: ``scored`` or ``unscored``; ``reason`` says why unscored.
        total and the axes: 0 to 1; None when unscored, and an axis that the category does not have.
        arabic_applicable: whether anything Arabic was expected.
        losses: causes and points, summing to 1 − total; None when graded without causes.
        instruction, expected_calls, actual_calls, ordered: for showing the item.
        said: the beginning of what the model said where no call was read, or None.
        results: what the simulated tools answered to the calls of a conversation, in their order; absent otherwise.
        rules: name and version; signature: of the grading, without the number of epochs.
    """

    item_id: str
    category: str
    dialect: str | None = None
    epoch: int = 0
    status: str = "scored"
    reason: str | None = None
    total: float | None = None
    function_selection: float | None = None
    argument_accuracy: float | None = None
    arabic_preservation: float | None = None
    dialect_understanding: float | None = None
    error_handling: float | None = None
    arabic_applicable: bool = True
    losses: list[Loss] | None = None
    instruction: str = ""
    ordered: bool = True
    expected_calls: list[ExpectedCall] = []
    actual_calls: list[Call] | None = None
    said: str | None = None
    results: list[str] | msgspec.UnsetType = msgspec.UNSET
    intent: str | msgspec.UnsetType | None = msgspec.UNSET
    context: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    messages: list[dict[str, Any]] | msgspec.UnsetType = msgspec.UNSET
    rules: str
    signature: str


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(GradedRow).decode


def row_of(
    item: Item,
    result: Result,
    signature: Signature,
    *,
    causes: bool,
    said: str | None = None,
    results: Sequence[str] = (),
) -> GradedRow:
    """The row of a result."""
    score = result.score
    return GradedRow(
        item_id=item.id,
        category=item.category,
        dialect=item.dialect,
        epoch=result.epoch,
        status=result.status,
        reason=result.reason,
        total=None if score is None else score.total,
        **({} if score is None else score.axes),
        arabic_applicable=result.arabic_applicable,
        losses=list(result.losses) if causes else None,
        instruction=item.instruction,
        ordered=item.ordered,
        expected_calls=item.expected_calls,
        actual_calls=None if score is None else list(result.calls),
        said=said,
        results=list(results) or msgspec.UNSET,
        intent=msgspec.UNSET if item.intent is None else item.intent,
        context=item.context or msgspec.UNSET,
        messages=item.messages or msgspec.UNSET,
        rules=signature.rules,
        signature=signature.of_grading,
    )


def row_line(row: GradedRow) -> bytes:
    """The row as one line of JSON."""
    return _encode(row) + b"\n"


def read_rows(path: Path) -> Iterator[GradedRow]:
    """The rows of a file that ``--out`` wrote, as :func:`numbered_rows` without their lines."""
    return (row for _, row in numbered_rows(path))


def numbered_rows(path: Path) -> Iterator[tuple[int, GradedRow]]:
    """The rows of a file that ``--out`` wrote, each with its line.

    Raises:
        DataError: a line is not a graded row; the message names file, line and field.
    """
    name = str(path)
    for number, line in numbered_lines(path):
        try:
            row = _decode(line)
        except (msgspec.MsgspecError, RecursionError) as error:
            read_json_line(line, name, number)
            if isinstance(error, msgspec.ValidationError):
                found = validation_error(error, name, number)
                found.remedy = "Graded rows are what 'aae grade --out' writes."
                raise found from None
            raise DataError("the row is nested too deeply.", path=name, line=number) from None
        if row.rules.rpartition("-")[0] not in RULES:
            what = f"this version does not know the rules {row.rules!r}."
            raise DataError(what, path=name, line=number, field="rules", remedy="Grade the replies again.")
        if not _is_sound(row):
            what = "an axis or a loss lies outside 0 to 1."
            raise DataError(what, path=name, line=number, remedy="Graded rows are what 'aae grade --out' writes.")
        yield number, row


def _is_sound(row: GradedRow) -> bool:
    axes = (row.total, row.function_selection, row.argument_accuracy, row.arabic_preservation)
    values = [value for value in axes if value is not None] + [loss.points for loss in row.losses or ()]
    return all(0.0 <= value <= 1.0 + 1e-9 for value in values)


class GradedFile(msgspec.Struct):
    """A file of graded rows, counted."""

    tally: Tally
    due: int
    signature: Signature
    causes: bool


def count_rows(path: Path, each: Callable[[GradedRow], None] | None = None) -> GradedFile:
    """Count the rows of a file, to be summarised.

    Args:
        path: the file.
        each: is told every row.

    Raises:
        DataError: a line is not a graded row, an answer stands twice, or rows with different signatures are mixed.
    """
    tally, ledger, due = Tally(), Ledger(), set()
    signature, causes = None, True
    for number, row in numbered_rows(path):
        signature = signature or row.signature
        if row.signature != signature:
            raise DataError(
                f"rows with different signatures are mixed: {signature} and {row.signature}.",
                path=str(path),
                field="signature",
                remedy="Grade the replies with the same items, rules and version, or report on them apart.",
            )
        if not ledger.add(row.item_id, row.epoch):
            what = f"item {row.item_id!r}, epoch {row.epoch}, stands twice."
            raise DataError(what, path=str(path), line=number, field="item_id")
        due.add(row.item_id)
        causes = causes and row.losses is not None
        _count(row, tally)
        if each is not None:
            each(row)
    if signature is None:
        raise DataError("the file holds no rows.", path=str(path))
    try:
        known = Signature.read(signature)
    except UsageError as error:
        raise DataError(str(error), path=str(path), field="signature") from None
    return GradedFile(tally, len(due), known, causes)


def _count(row: GradedRow, tally: Tally) -> None:
    facts = ItemFacts(row.category, row.dialect, row.arabic_applicable)
    axes: list[Any] = [row.function_selection, row.argument_accuracy, row.arabic_preservation]
    if row.total is None or None in axes:
        if row.reason is not None:
            tally.add_unscored(row.item_id, row.reason, facts=None if row.reason == NO_REPLY else facts)
        return
    lost = tally.add_losses(row.item_id, row.losses or ())
    tally.add(row.item_id, Outcome(facts, axes[0], axes[1], axes[2], lost))


def pairs(row: GradedRow) -> list[tuple[int | None, int | None]]:
    """Which expected call met which actual one, by place; None where there is no partner."""
    actual = row.actual_calls or []
    if row.ordered:
        places = range(max(len(row.expected_calls), len(actual)))
        return [
            (place if place < len(row.expected_calls) else None, place if place < len(actual) else None)
            for place in places
        ]
    rules = RULES[row.rules.rpartition("-")[0]]
    expectation = Expectation(row.expected_calls, category=row.category, ordered=False, rules=rules)
    return [(match.expected, match.actual) for match in expectation.pair(actual)]
