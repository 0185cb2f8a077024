"""What a run took, on a terminal: tokens, cost and time, and what a reader must know of its answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from arabic_agent_eval.models.catalogue import BASELINE
from arabic_agent_eval.text import name_invisible

if TYPE_CHECKING:
    from rich.console import Console

    from arabic_agent_eval.regrading import RunFigures

_BASELINE = "The baseline is a set of rules, written with starter and sample in view; its score there proves little."


def figure_lines(figures: RunFigures) -> list[str]:
    """The lines below a summary."""
    parts = [f"Model  {name_invisible(figures.model, spaces=True)}"]
    if (tokens := figures.tokens) is not None:
        parts.append(f"{tokens.input:,} tokens read, {tokens.output:,} written")
    if figures.cost is not None:
        parts.append(f"{figures.cost:.4f} USD")
    if figures.latency is not None and figures.latency.p95 > 0:
        parts.append(f"{figures.latency.median:.2f} s an item (median), {figures.latency.p95:.2f} s (95 %)")
    lines = ["; ".join(parts)]
    if figures.cut:
        lines.append(f"{figures.cut:,} answers were cut off by a limit on their length; see --max-tokens.")
    if figures.unfinished:
        lines.append(f"{figures.unfinished:,} conversations were not let go on; see --max-turns.")
    if figures.model == BASELINE:
        lines.append(_BASELINE)
    lines.append(f"Run  {name_invisible(figures.run, spaces=True)}")
    return lines


def print_figures(figures: RunFigures, console: Console) -> None:
    """Print them."""
    for line in figure_lines(figures):
        console.print(Text(line, style="dim"), soft_wrap=True)
