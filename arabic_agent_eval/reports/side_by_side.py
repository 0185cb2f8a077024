"""The answers of two models to one item beside each other, on a terminal and as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from arabic_agent_eval.reports.markdown import plain, table
from arabic_agent_eval.reports.terminal import safe
from arabic_agent_eval.tables import number, signed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.console import Console

    from arabic_agent_eval.comparison import Change, Comparison
    from arabic_agent_eval.items import ExpectedCall
    from arabic_agent_eval.rows import GradedRow
    from arabic_agent_eval.tools import Call

_LENGTH = 300  # characters of a call or of an answer that are shown
_CALLS = 10  # calls that are shown


class Both(NamedTuple):
    """An item that changed, and the answer of each side: of several epochs the first that was judged."""

    change: Change
    a: GradedRow
    b: GradedRow


def changed_most(comparison: Comparison, most: int) -> list[Change]:
    """The items that changed most in either direction, of those that the comparison lists; losses before gains."""
    found = [*comparison.regressed, *comparison.improved]
    return sorted(found, key=lambda change: -abs(change.difference))[:most]


def first_answers(rows: Iterable[GradedRow], wanted: set[str]) -> dict[str, GradedRow]:
    """Of each wanted item the judged answer of the lowest epoch."""
    found: dict[str, GradedRow] = {}
    for row in rows:
        if row.item_id in wanted and row.total is not None:
            before = found.get(row.item_id)
            if before is None or row.epoch < before.epoch:
                found[row.item_id] = row
    return found


def beside(changes: Sequence[Change], a: Mapping[str, GradedRow], b: Mapping[str, GradedRow]) -> list[Both]:
    """The changes whose answers are known on both sides."""
    return [Both(one, a[one.item_id], b[one.item_id]) for one in changes if one.item_id in a and one.item_id in b]


def print_side_by_side(shown: Sequence[Both], name: str, console: Console) -> None:
    """Print each item: what was asked, what was expected, and what A and the other answered."""
    for one in shown:
        console.print(Text(safe(_head(one, name), console), style="bold"))
        if one.a.instruction:
            console.print(Text(safe(one.a.instruction[:_LENGTH], console)))
        made = Table(box=SIMPLE, pad_edge=False, header_style="bold", show_lines=False)
        for head in ("expected", f"A  {number(one.a.total)}", f"{name}  {number(one.b.total)}"):
            made.add_column(head, overflow="fold", ratio=1)
        made.add_row(*(Text("\n".join(safe(line, console) for line in lines)) for lines in _columns(one)))
        console.print(made)


def markdown_side_by_side(shown: Sequence[Both], name: str) -> str:
    """The same as Markdown."""
    parts = []
    for one in shown:
        parts.append(f"### {plain(_head(one, name))}")
        if one.a.instruction:
            parts.append(plain(one.a.instruction[:_LENGTH]))
        cells = ["<br>".join(plain(line) for line in lines) for lines in _columns(one)]
        parts.append(table(["expected", f"A {number(one.a.total)}", f"{name} {number(one.b.total)}"], [cells], words=3))
    return "\n\n".join(parts) + "\n"


def _head(one: Both, name: str) -> str:
    change = one.change
    place = " · ".join(text for text in (change.item_id, change.category, change.dialect) if text)
    head = f"{place}: A {number(change.a)}, {name} {number(change.b)} ({signed(change.difference)})"
    if one.a.epoch or one.b.epoch or (one.a.total, one.b.total) != (change.a, change.b):
        head += f"; shown: epoch {one.a.epoch} of A, {one.b.epoch} of {name}"
    return head


def _columns(one: Both) -> tuple[list[str], list[str], list[str]]:
    return call_lines(one.a.expected_calls) or ["(no call)"], _answer(one.a), _answer(one.b)


def _answer(row: GradedRow) -> list[str]:
    """The calls, or what was said instead, and the causes of what was lost."""
    lines = call_lines(row.actual_calls or []) or ["(no call)" if not row.said else f"said: {row.said[:_LENGTH]}"]
    causes = dict.fromkeys(loss.cause for loss in row.losses or ())
    return [*lines, f"− {', '.join(causes)}"] if causes else lines


def call_lines(calls: Sequence[ExpectedCall | Call]) -> list[str]:
    """Calls as text, one a line; of very many the first, of very long ones the beginning."""
    lines = [_call(call) for call in calls[:_CALLS]]
    return [*lines, f"… and {len(calls) - _CALLS:,} more calls"] if len(calls) > _CALLS else lines


def _call(call: ExpectedCall | Call) -> str:
    """A call on one line: its name and its arguments as JSON."""
    if getattr(call, "error", None) is not None:
        return "(could not be read)"
    written = ", ".join(
        f"{name}={msgspec.json.encode(value).decode()}" for name, value in call.arguments.items() if value is not None
    )
    text = f"{call.function}({written})"
    return text if len(text) <= _LENGTH else f"{text[:_LENGTH]}…"
