"""Make the picture of the README: what ``aae grade --items sample --replies sample`` prints, as SVG.

Run it from the root of the repository: ``python docs/images/make.py``.
"""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from arabic_agent_eval.batch import grade_file
from arabic_agent_eval.bundled import find_items, find_replies
from arabic_agent_eval.items import ItemSet
from arabic_agent_eval.reports.terminal import print_summary
from arabic_agent_eval.summary import summarize


def main() -> None:
    """Write grade.svg beside this file."""
    items = ItemSet.read(find_items("sample"), name="sample")
    batch = grade_file(items, find_replies("sample"))
    summary = summarize(batch.tally, due=batch.due, signature=batch.signature, rules="canonical")
    console = Console(record=True, width=112, highlight=False, markup=False, emoji=False, file=io.StringIO())
    print_summary(summary, console)
    svg = console.export_svg(title="aae grade --items sample --replies sample", unique_id="aae")
    # The fonts that the template would load from elsewhere: a page must not need the network.
    lines = svg.splitlines(keepends=True)
    start = next(n for n, line in enumerate(lines) if "@font-face" in line)
    end = max(n for n, line in enumerate(lines) if "woff" in line)
    svg = "".join(lines[:start] + lines[end + 4 :]).replace("Fira Code", "DejaVu Sans Mono, Noto Sans Arabic")
    Path(__file__).with_name("grade.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
