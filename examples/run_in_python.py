"""Ask a model some items, keep the answers in a run folder, and grade them: what ``aae run`` does, from Python.

The model is the built-in baseline, which needs no key and no network; ``open_model("openai-chat/NAME", …)`` gives
another one. Run it with ``python examples/run_in_python.py``.
"""

from __future__ import annotations

import hashlib
import sys
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from arabic_agent_eval import ItemSet
from arabic_agent_eval.asking import SYSTEM_PROMPT
from arabic_agent_eval.bundled import find_items, find_tools
from arabic_agent_eval.journal import Journal
from arabic_agent_eval.models.catalogue import base_address, open_model
from arabic_agent_eval.models.model import Settings
from arabic_agent_eval.pacing import Pace
from arabic_agent_eval.regrading import RunFigures, grade_run
from arabic_agent_eval.runner import Limits, Runner
from arabic_agent_eval.runs import Asked, Run
from arabic_agent_eval.summary import Summary, summarize

MODEL, HOW_MANY, AT_ONCE = "baseline", 10, 4


def make_run(folder: Path) -> Run:
    """A new run: everything that an answer depends on is written down before anything is asked."""
    items = ItemSet.read(find_items("core"), name="core").first(HOW_MANY)
    registry = find_tools("core", None)
    tools = b"[]" if registry is None else registry.read_bytes()
    asked = Asked(
        items=items.name,
        fingerprint=items.fingerprint,
        count=len(items),
        tools=hashlib.sha256(tools).hexdigest()[:12],
        model=MODEL,
        address=base_address(MODEL, None),
        system=SYSTEM_PROMPT,
        tool_language="both",
        written=False,
        temperature=None,
        seed=None,
        max_tokens=None,
        parameters={},
        epochs=1,
        max_turns=10,
    )
    return Run.create(folder, asked, items, tools, created=datetime.now(UTC).isoformat(timespec="seconds"))


def ask(run: Run) -> None:
    """Ask what is still missing; called again for the same folder, it goes on where it stopped."""
    model = open_model(run.manifest.asked.model, Settings(MODEL))
    with Journal(run.folder) as journal:
        ending = Runner(run, journal, model, Pace(AT_ONCE), limits=Limits(attempts=3)).ask(AT_ONCE)
    if ending.message:
        sys.stderr.write(f"{ending.message}\n")


def judge(run: Run) -> tuple[Summary, RunFigures]:
    """Grade what the folder holds."""
    batch, figures = grade_run(run)
    epochs = run.manifest.asked.epochs
    return summarize(batch.tally, due=batch.due, signature=batch.signature, rules="canonical", epochs=epochs), figures


def main() -> None:
    """Run, and print the score, what was asked and what was lost."""
    with TemporaryDirectory() as folder:
        run = make_run(Path(folder) / "run")
        ask(run)
        summary, figures = judge(run)
    print(f"{figures.model}: {summary.coverage.scored} of {summary.coverage.total} answers judged")
    print(f"score {summary.overall or 0:.4f} with {figures.attempts} requests")
    for cause, points in (summary.lost or {}).items():
        print(f"  -{points:.4f} {cause}")
    print(summary.signature)


if __name__ == "__main__":
    main()
