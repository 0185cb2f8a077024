"""One item on a terminal: expected and actual aligned, what differs marked, the causes in words."""

from __future__ import annotations

import math
import unicodedata
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec
from rich.text import Text

from arabic_agent_eval.causes import words
from arabic_agent_eval.reports.alignment import COMPARED, align, differences
from arabic_agent_eval.reports.terminal import safe
from arabic_agent_eval.rules import AXES
from arabic_agent_eval.tables import AXIS_WORDS, number

if TYPE_CHECKING:
    from rich.console import Console

    from arabic_agent_eval.diagnosis import Loss
    from arabic_agent_eval.items import ExpectedCall
    from arabic_agent_eval.rows import GradedRow
    from arabic_agent_eval.tools import Call

_SLOTS = 50  # calls that are shown
_ARGUMENTS = 100  # arguments of a call that are shown


def print_row(row: GradedRow, pairs: list[tuple[int | None, int | None]], console: Console) -> None:
    """Print one graded answer.

    Args:
        row: the answer.
        pairs: which expected call met which actual one, by place; None for the one that is not there.
        console: where to print.
    """
    dialect = f" · {row.dialect}" if row.dialect else ""
    epoch = f" · epoch {row.epoch}" if row.epoch else ""
    console.print(Text(safe(f"{row.item_id} · {row.category}{dialect}{epoch}", console), style="bold"))
    for line in _told(row):
        console.print(Text(safe(line[:COMPARED], console), style="dim"))
    if row.instruction:
        console.print(Text(safe(row.instruction, console)))
    if row.total is None:
        console.print(Text(f"Unscored: {safe(row.reason or 'no reason given', console)}"))
        return
    console.print(Text(f"Score {number(row.total)}: {_axes(row)}"))
    if row.said:
        console.print(Text(f"The model said: {safe(row.said[:COMPARED], console)}", style="italic"))
    actual = row.actual_calls or []
    for place, other in pairs[:_SLOTS]:
        expected_call = None if place is None else row.expected_calls[place]
        actual_call = None if other is None else actual[other]
        _print_pair(row, (place, other), expected_call, actual_call, console)
    if len(pairs) > _SLOTS:
        console.print(f"\n… and {len(pairs) - _SLOTS:,} more calls.")
    if not pairs:
        console.print("Nothing was expected and nothing was called.")


def _told(row: GradedRow) -> list[str]:
    """What the model knew besides the instruction: the context, and earlier messages."""
    context = row.context if isinstance(row.context, dict) else {}
    lines = [f"{name}: {value if isinstance(value, str) else _written(value)}" for name, value in context.items()]
    for message in row.messages if isinstance(row.messages, list) else ():
        said = message.get("content") or message.get("tool_calls") or ""
        lines.append(f"{message.get('role', '?')}: {said if isinstance(said, str) else _written(said)}")
    return lines


def _print_pair(
    row: GradedRow,
    places: tuple[int | None, int | None],
    expected: ExpectedCall | None,
    actual: Call | None,
    console: Console,
) -> None:
    place, other = places
    losses = [loss for loss in row.losses or () if _belongs(loss, place, other)]
    called = "(not called)" if actual is None else actual.function or "(could not be read)"
    wanted = "(nothing expected)" if expected is None else expected.function
    number_shown = (place if place is not None else other or 0) + 1
    console.print()
    console.print(
        Text(f"{number_shown}. expected {safe(wanted, console)}   actual {safe(called, console)}", style="bold")
    )
    whole = [loss for loss in losses if loss.argument is None]
    if actual is not None and actual.error is not None:
        console.print(Text(f"   sent: {safe(_written(actual.raw)[:COMPARED], console)}"))
    elif actual is None or any(loss.cause in {"wrong_order", "missing_call"} for loss in whole):
        _print_apart(expected, actual, console)
    else:
        _print_arguments(expected, actual, losses, console)
    for cause in dict.fromkeys(loss.cause for loss in whole):
        points = math.fsum(loss.points for loss in whole if loss.cause == cause)
        times = max(loss.count for loss in whole if loss.cause == cause)
        often = f" ×{times}" if times > 1 else ""
        console.print(_cause_line(points, cause, often, "   ", console))
    if (answered := _answered(row, expected, other)) is not None:
        console.print(Text(f"   {safe(answered[:COMPARED], console)}", style="dim"))


def _answered(row: GradedRow, expected: ExpectedCall | None, other: int | None) -> str | None:
    """What the simulated tool answered to the actual call, or what it would have answered to the expected one."""
    if row.results is not msgspec.UNSET:
        return f"the tool answered: {row.results[other]}" if other is not None and other < len(row.results) else None
    if expected is None or expected.result is msgspec.UNSET:
        return None
    return f"the tool answers: {_written(expected.result)}"


def _cause_line(points: float, cause: str, often: str, indent: str, console: Console) -> Text:
    line = f"{indent}−{number(points)} {safe(cause, console)}{often}: {safe(words(cause, 'en'), console)}"
    return Text(line, style="red")


def _axes(row: GradedRow) -> str:
    values = {axis: number(getattr(row, axis)) for axis in AXES if getattr(row, axis) is not None}
    if not row.arabic_applicable:
        values["arabic_preservation"] = "not applicable"
    return ", ".join(f"{AXIS_WORDS[axis]} {value}" for axis, value in values.items())


def _print_apart(expected: ExpectedCall | None, actual: Call | None, console: Console) -> None:
    """Two calls that do not belong together: their arguments are not compared."""
    for word, call in (("expected", expected), ("actual  ", actual)):
        if call is not None:
            console.print(Text(f"       {word} {safe(_written(call.arguments)[:COMPARED], console)}"))


def _print_arguments(expected: ExpectedCall | None, actual: Call, losses: list[Loss], console: Console) -> None:
    by_argument: dict[str | None, list[Loss]] = {}
    for loss in losses:
        by_argument.setdefault(loss.argument, []).append(loss)
    wanted = {} if expected is None else expected.arguments
    for name, value in islice(wanted.items(), _ARGUMENTS):
        if value is not None:
            others = expected is not None and name in (expected.accept or {})
            found = by_argument.get(name, [])
            _print_argument(name, value, actual.arguments.get(name), found, console, others=others)
    if len(wanted) > _ARGUMENTS:
        console.print(f"   … and {len(wanted) - _ARGUMENTS:,} more arguments.")
    _print_surplus(actual, expected, console)


def _belongs(loss: Loss, place: int | None, other: int | None) -> bool:
    if loss.cause == "extra_call":
        return place is None and loss.call == other
    return place is not None and loss.call == place


def _print_argument(
    name: str, expected: Any, actual: Any, losses: list[Loss], console: Console, *, others: bool
) -> None:
    if not losses and actual is not None:
        note = " (accepted)" if others and actual != expected else ""
        console.print(Text(f"   = {safe(name, console)}: {safe(_written(actual)[:COMPARED], console)}{note}"))
        return
    wanted, given = _written(losses[0].expected if losses else expected), _written(actual)
    left, right, named = compare_letters(wanted, given)
    console.print(Text(f"   ≠ {safe(name, console)}"))
    console.print(Text(f"       expected {safe(left, console)}"))
    console.print(Text(f"       actual   {safe(right, console) if actual is not None else '(missing)'}"))
    if named and actual is not None:
        console.print(Text(f"       differs  {named}", style="dim"))
    for cause in dict.fromkeys(loss.cause for loss in losses):
        points = math.fsum(loss.points for loss in losses if loss.cause == cause)
        console.print(_cause_line(points, cause, "", "       ", console))


def _print_surplus(actual: Call, expected: ExpectedCall | None, console: Console) -> None:
    known = {} if expected is None else expected.arguments
    extra = {name: value for name, value in actual.arguments.items() if known.get(name) is None}
    for name, value in islice(extra.items(), _ARGUMENTS):
        note = " (not expected, ignored)" if expected is not None else ""
        console.print(
            Text(f"   + {safe(name, console)}: {safe(_written(value)[:COMPARED], console)}{note}", style="dim")
        )


def _written(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def compare_letters(expected: str, actual: str) -> tuple[str, str, str]:
    """Both texts with differing stretches in brackets, and the differing characters by name.

    Texts longer than some hundred characters are cut; texts that share little are not marked.
    """
    stretches = align(expected, actual)
    if not stretches:
        return expected[:COMPARED], actual[:COMPARED], ""
    left = "".join(text if same or not text else _marked(text) for same, text, _ in stretches)
    right = "".join(text if same or not text else _marked(text) for same, _, text in stretches)
    return left, right, "; ".join(differences(stretches))


def _marked(text: str) -> str:
    """A stretch in brackets; a mark that would hang on the bracket gets a dotted circle to stand on."""
    return f"[\u25cc{text}]" if unicodedata.combining(text[0]) else f"[{text}]"
