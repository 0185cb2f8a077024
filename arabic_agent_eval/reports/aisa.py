"""The shared task's own figures, under a heading that says whose they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from arabic_agent_eval.reports.terminal import safe
from arabic_agent_eval.tables import number

if TYPE_CHECKING:
    from rich.console import Console

    from arabic_agent_eval.aisa import Figures


def print_aisa(figures: Figures, console: Console) -> None:
    """Print the task's figures of all items and of each dialect, and the gap."""
    console.print(Text("AISA-ArabicFC: the shared task's own figures, which are not this package's", style="bold"))
    table = Table(box=SIMPLE, pad_edge=False, header_style="bold")
    table.add_column("Dialect", overflow="fold")
    for column in ("n", "with a call", "tool accuracy", "argument match"):
        table.add_column(column, justify="right", no_wrap=True)
    rows = [
        (name, one.n, one.positives, one.tool_accuracy, one.argument_match) for name, one in figures.dialects.items()
    ]
    rows.append(("all", figures.n, figures.positives, figures.tool_accuracy, figures.argument_match))
    for name, n, positives, tool, argument in rows:
        table.add_row(Text(safe(name, console)), f"{n:,}", f"{positives:,}", number(tool), number(argument))
    table.add_row("gap", "", "", number(figures.gap.tool_accuracy), number(figures.gap.argument_match))
    console.print(table)
    missing = f"; {figures.missing:,} items have no answer and count as wrong" if figures.missing else ""
    written = number(figures.argument_match_as_written)
    console.print(f"Track A {number(figures.track_a)}; argument match as written {written}{missing}.")
    console.print("The task's evaluation also takes some names for each other; its argument match may be higher.")
