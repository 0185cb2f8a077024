"""Make the picture of the README: what ``aae run`` prints, as SVG.

Run it from the root of the repository: ``python docs/images/make.py``.
"""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from arabic_agent_eval import open_results
from arabic_agent_eval.reports.figures import print_figures
from arabic_agent_eval.reports.terminal import print_summary

WIDTH = 112


def print_run(console: Console) -> None:
    """Run the main job in the working folder, and print what it found as the command does."""
    subprocess.run([sys.executable, "-m", "arabic_agent_eval", "run"], check=True, capture_output=True)
    [folder] = Path("runs").iterdir()
    results = open_results(folder)
    print_summary(results.summary, console, results.uncertainty)
    if results.figures is not None:
        print_figures(results.figures, console)


def main() -> None:
    """Write run.svg beside this file."""
    console = Console(record=True, width=WIDTH, highlight=False, markup=False, emoji=False, file=io.StringIO())
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        print_run(console)
    svg = console.export_svg(title="aae run", unique_id="aae")
    # The fonts that the template would load from elsewhere: a page must not need the network.
    lines = svg.splitlines(keepends=True)
    start = next(n for n, line in enumerate(lines) if "@font-face" in line)
    end = max(n for n, line in enumerate(lines) if "woff" in line)
    svg = "".join(lines[:start] + lines[end + 4 :]).replace("Fira Code", "DejaVu Sans Mono, Noto Sans Arabic")
    Path(__file__).with_name("run.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
