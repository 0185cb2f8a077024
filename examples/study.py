"""A small study in cells, as notebooks and editors run them: two models on the same items, compared and reported.

Nothing leaves the machine: the baseline is asked, and answers that come with the package are played as a second model.
Run it whole with ``python examples/study.py``, or cell by cell.
"""

# %% Two runs on the same items: what `aae run` does
from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from arabic_agent_eval import compare, open_results, rank

workshop = TemporaryDirectory()
folder = Path(workshop.name)


def run(name: str, model: str) -> Path:
    """Ask a model the bundled sample, and keep its answers in a folder."""
    options = ["--items", "sample", "--model", model, "--run", str(folder / name)]
    subprocess.run([sys.executable, "-m", "arabic_agent_eval", "run", *options], check=True, capture_output=True)  # noqa: S603
    return folder / name


baseline, sample = (open_results(run(name, model)) for name, model in [("a", "baseline"), ("b", "replay/sample")])

# %% One of them: in a notebook, its name alone at the end of a cell shows the tables
ends = sample.uncertainty.intervals.overall
print(sample)
print("95 %:", "none" if ends is None else f"{ends[0]:.2f} to {ends[1]:.2f}")

# %% Where its points went
for cause, points in (sample.summary.lost or {}).items():
    print(f"  -{points:.4f} {cause}")

# %% The answers that lost most
for row in sorted(sample.rows(), key=lambda row: row.total or 0.0)[:3]:
    print(f"  {row.item_id}: {row.total or 0.0:.4f} {[call.function for call in row.actual_calls or []]}")

# %% Is it worse than the baseline, and how sure is that?
found = compare(baseline, sample)
if found.overall is not None:
    print(f"{found.overall.verdict}: {found.overall.difference:+.4f}, p = {found.overall.p_value:.4f}")

# %% Both by rank
board = rank(baseline, sample)
for entry in board.entries:
    print(entry.rank, entry.name, "-" if entry.overall is None else f"{entry.overall.score:.4f}")

# %% The same as files: for a reader, for CI, for a pull request
sample.html(folder / "sample.html", languages=["ar", "en"])
sample.junit(folder / "sample.xml")
(folder / "sample.md").write_text(sample.markdown(), encoding="utf-8")
print(sorted(path.name for path in folder.iterdir() if path.is_file()))
workshop.cleanup()
