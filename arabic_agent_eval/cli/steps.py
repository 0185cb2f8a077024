"""The steps that several commands share: read what an option names, write results, say what happened.

Little is loaded with this module; each step loads what it needs.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from arabic_agent_eval.cli.guard import GATE_FAILED, INTERRUPTED, UNSCORED
from arabic_agent_eval.errors import DataError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from arabic_agent_eval.aisa import Figures
    from arabic_agent_eval.batch import GradedBatch, Progress
    from arabic_agent_eval.cli.options import Layout
    from arabic_agent_eval.items import Category, ItemSet
    from arabic_agent_eval.results import Results
    from arabic_agent_eval.runner import Ending
    from arabic_agent_eval.summary import Summary


def keep_apart(out: Path | None, *inputs: str | Path | None, option: str = "--out") -> None:
    """A result never overwrites what it is made from."""
    from arabic_agent_eval.files import is_same_file

    if any(out is not None and name is not None and is_same_file(out, name) for name in inputs):
        raise UsageError(f"{option} {out} is one of the inputs; write the result to another file.")


def items(name: str, *, checked: bool = True) -> ItemSet:
    """The items of a file or of a bundled set.

    Args:
        name: what --items was given.
        checked: read every item now; else each one is read when it is needed, and its faults are found then.

    Raises:
        DataError: if there is no such file or set, or something in it is no item.
    """
    from arabic_agent_eval.bundled import find_items, is_bundled
    from arabic_agent_eval.items import ItemSet

    path = find_items(name)
    known_as = name if is_bundled(path) else None
    return ItemSet.read(path, name=known_as) if checked else ItemSet.index(path, name=known_as)


def registry(items: str, tools: str | None) -> Any:
    """The tools that items are asked with: what --tools names, else those beside the items, else none.

    Raises:
        DataError: if the file is not there or holds no tools.
    """
    from arabic_agent_eval.bundled import find_tools
    from arabic_agent_eval.tools import Toolbox

    return Toolbox.read(find_tools(items, tools))


def declared(path: Path | None, *, items: str | None = None, runs: Iterable[Path] = ()) -> dict[str, Category]:
    """The categories that --categories declares, by name; else those declared beside the items or in a run.

    Args:
        path: what --categories was given.
        items: what --items was given.
        runs: run folders, or files of graded rows, which declare nothing.

    Raises:
        DataError: if a file is not there or holds no categories.
    """
    from arabic_agent_eval.bundled import find_categories, kept_categories
    from arabic_agent_eval.items import read_categories

    if path is None and items is not None:
        path = find_categories(items)
    path = path or next(filter(None, map(kept_categories, runs)), None)
    return {} if path is None else read_categories(path)


@contextmanager
def replies(name: str) -> Iterator[Path]:
    """The replies as a file; standard input is kept in a temporary one, since it is read in ranges."""
    from arabic_agent_eval.bundled import find_replies
    from arabic_agent_eval.files import spooled

    if name == "-":
        if sys.stdin is None:  # closed before the command began
            raise UsageError("standard input is closed; name a file with --replies.")
        with spooled(sys.stdin.buffer) as path:
            try:
                yield path
            except DataError as error:
                if error.path == str(path):
                    error.path = "standard input"
                raise
    else:
        yield find_replies(name)


@contextmanager
def progress() -> Iterator[Progress | None]:
    """A line on stderr while grading takes long; nothing where stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from arabic_agent_eval.reports.progress import changing_line

    began = time.monotonic()
    with changing_line() as write_line:

        def tell(done: int, size: int) -> None:
            passed = time.monotonic() - began
            if passed > 1.0 and size:
                left = passed * (size - done) / max(done, 1)
                write_line(f"{done / size:4.0%} graded, {passed:.0f} s, about {left:.0f} s left")

        yield tell


def show(summary: Summary, *, as_json: bool, task: Figures | None = None) -> None:
    """Write a summary to stdout, as JSON or as tables; after it what a shared task says of its submission."""
    if as_json:
        from arabic_agent_eval.summary import summary_json

        write(summary_json(summary, None if task is None else {"aisa": task}) + b"\n")
    else:
        from arabic_agent_eval.reports.terminal import print_summary

        print_summary(summary, out := console())
        if task is not None:
            from arabic_agent_eval.reports.aisa import print_aisa

            print_aisa(task, out)


def show_results(results: Results, layout: Layout, *, as_json: bool, title: str = "") -> None:
    """Write all there is to say of a run or of graded rows to stdout: as JSON, else as the layout says.

    Args:
        results: what there is to say.
        layout: of what is not JSON.
        as_json: whether it is JSON.
        title: heads a Markdown report.
    """
    from arabic_agent_eval.cli.options import Layout

    if as_json:
        write(results.json() + b"\n")
    elif layout is Layout.MARKDOWN:
        write(results.markdown(title).encode())
    else:
        from arabic_agent_eval.reports.figures import print_figures
        from arabic_agent_eval.reports.terminal import print_summary

        out = console()
        print_summary(results.summary, out, results.uncertainty)
        if results.figures is not None:
            print_figures(results.figures, out)


def notes(batch: GradedBatch, out: Path | None) -> None:
    """Say on stderr what a graded batch left out or lacks, and where its rows went."""
    if batch.unknown:
        say(f"{batch.unknown:,} replies to unknown items were left out.")
    if batch.silent:
        named = ", ".join(repr(item_id[:40]) for item_id in batch.silent_ids)
        more = ", …" if batch.silent > len(batch.silent_ids) else ""
        say(f"{batch.silent:,} of {batch.due:,} items have no reply ({named}{more}); they are unscored.")
    if batch.written:
        say(
            f"{batch.written:,} answers without a call hold one written as text, which does not count. If the model "
            "writes its calls as text, grade with --format text."
        )
    if out is not None:
        say(f"Graded rows written to {out}.")


def finish(summary: Summary, fail_under: float | None) -> None:
    """The exit code: a score below the gate, then failures, then a gate that too few answers reached."""
    from typer import Exit

    from arabic_agent_eval.tables import NO_REPLY

    coverage = summary.coverage
    failures = coverage.unscored - summary.unscored_reasons.get(NO_REPLY, 0)
    if fail_under is not None and summary.overall is None:
        say("Nothing was scored, so --fail-under cannot be met.")
        raise Exit(GATE_FAILED)
    # A mean of 0.8 may come out a rounding error below it.
    if fail_under is not None and summary.overall is not None and summary.overall < fail_under - 1e-12:
        say(f"The score {summary.overall:.4f} is below --fail-under {fail_under:g}.")
        raise Exit(GATE_FAILED)
    if failures:
        raise Exit(UNSCORED)
    if fail_under is not None and coverage.unscored:
        say(f"Only {coverage.scored:,} of {coverage.total:,} answers were judged, so --fail-under cannot be met.")
        raise Exit(GATE_FAILED)


def finish_results(
    results: Results, fail_under: float | None, *, ending: Ending | None = None, go_on: str = ""
) -> None:
    """Say what is missing of a run, and end with the exit code.

    Args:
        results: what was shown.
        fail_under: the gate.
        ending: of the asking, where anything was asked.
        go_on: the command that goes on with the run.
    """
    from typer import Exit

    from arabic_agent_eval.cli import planning

    if results.written:
        say(
            f"{results.written:,} answers without a call hold one written as text, which does not count. If the model "
            "writes its calls as text, run it with --prompt-tools."
        )
    unscored = results.summary.coverage.unscored
    if results.run is not None:
        go_on = go_on or planning.resuming(results.run.folder)
        if ending is not None and ending.message:
            say(f"{ending.message} Everything that was answered is kept. Go on with: {go_on}")
        elif unscored:
            say(f"{unscored:,} answers are missing. Ask for them again with: {go_on}")
    if ending is not None and ending.why == "interrupted":
        raise Exit(INTERRUPTED)
    finish(results.summary, fail_under)


def console() -> Console:
    """Stdout for tables: as wide as the terminal, else 120 columns; text is printed as it stands."""
    from rich.console import Console

    class Tables(Console):
        def on_broken_pipe(self) -> None:
            """Go on: a gate is judged whoever reads the tables."""
            let_go()

    made = Tables(highlight=False, markup=False, emoji=False)
    if not made.is_terminal:
        made = Tables(highlight=False, markup=False, emoji=False, width=120, file=sys.stdout)
    return made


def write(data: bytes) -> None:
    """Bytes to stdout: UTF-8 whatever the locale says."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        let_go()


def is_read() -> bool:
    """Whether somebody still reads what is printed; else there is no need to print more."""
    return all(stream is not sys.stdout for stream in _let_go_of)


_let_go_of: list[object] = []  # the streams that nobody reads any more


def let_go() -> None:
    """The reader of stdout has gone, which is no failure: what else is printed goes nowhere."""
    _let_go_of.append(sys.stdout)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(message: str) -> None:
    """A sentence on stderr, with invisible characters named."""
    from arabic_agent_eval.text import name_invisible

    with suppress(OSError):  # nobody reads it, or there is no room for it; the work goes on
        sys.stderr.write(f"aae: {name_invisible(message, spaces=True)}\n")
        sys.stderr.flush()
