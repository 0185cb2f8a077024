"""The ``aae`` command: read arguments, one library call, one render call.

Results go to stdout, everything else to stderr. Exit codes: 0 done; 1 a gate failed; 2 usage or data error;
3 provider failures left answers unscored; 130 interrupted.
"""

from __future__ import annotations

import functools
import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec

import msgspec
import typer

from arabic_agent_eval._version import __version__
from arabic_agent_eval.errors import DataError, EvalError, OutputError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from arabic_agent_eval.batch import GradedBatch, Progress
    from arabic_agent_eval.items import Category, ItemSet
    from arabic_agent_eval.summary import Summary

_P = ParamSpec("_P")

DONE, GATE_FAILED, BAD_INPUT, UNSCORED, INTERRUPTED = 0, 1, 2, 3, 130

app = typer.Typer(
    name="aae",
    help="Grade the tool calls of language models that serve Arabic speakers, and explain every lost point.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
data = typer.Typer(help="Item sets: list, check, convert.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(data, name="data")


class RuleName(StrEnum):
    """The named rule sets."""

    CANONICAL = "canonical"
    V0_1 = "v0.1"


class Layout(StrEnum):
    """How a report is laid out."""

    TERMINAL = "terminal"
    MARKDOWN = "markdown"


ItemsOption = Annotated[
    str, typer.Option("--items", metavar="FILE|SET", help="The items: a JSONL file, or the name of a bundled set.")
]
RepliesOption = Annotated[
    str, typer.Option("--replies", metavar="FILE|-", help="The replies: JSONL, a JSON list or a run file; - is stdin.")
]
RulesOption = Annotated[RuleName, typer.Option("--rules", help="The rule set.")]
FormatOption = Annotated[
    str, typer.Option("--format", help="auto, calls, tool_calls, response, text or submission: where the calls are.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
CategoriesOption = Annotated[
    Path | None, typer.Option("--categories", metavar="FILE", help="Weights of categories of your own (JSON).")
]


def _number(value: float | None) -> float | None:
    """Refuse NaN, which lies in every range, since nothing is below it or above."""
    if value is not None and value != value:  # noqa: PLR0124
        raise typer.BadParameter("nan is no score.")
    return value


FailUnder = Annotated[
    float | None,
    typer.Option("--fail-under", metavar="SCORE", min=0.0, max=1.0, callback=_number, help="Exit 1 below this score."),
]


class _Interrupted(Exception):
    """Somebody pressed Ctrl-C: an exception of our own, since typer ends on its own without a word."""


class _NobodyReads(Exception):
    """The reader of stdout has gone, which is no failure."""


def _guarded(command: Callable[_P, None]) -> Callable[_P, None]:
    """A command whose interrupt and closed stdout reach :func:`main`."""

    @functools.wraps(command)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> None:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except KeyboardInterrupt:
            raise _Interrupted from None
        except BrokenPipeError:
            raise _NobodyReads from None

    return run


@app.callback(invoke_without_command=True)
def _root(
    *, version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False
) -> None:
    if version:
        sys.stdout.write(f"arabic-agent-eval {__version__}\n")
        raise typer.Exit


@app.command()
@_guarded
def grade(
    *,
    items: ItemsOption,
    replies: RepliesOption,
    rules: RulesOption = RuleName.CANONICAL,
    format: FormatOption = "auto",  # noqa: A002 - the option's name
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Processes to grade with.")] = 1,
    no_causes: Annotated[bool, typer.Option("--no-causes", help="Do not explain lost points: faster.")] = False,
    categories: CategoriesOption = None,
    allow_unknown: Annotated[bool, typer.Option("--allow-unknown", help="Leave out replies to unknown items.")] = False,
    as_json: JsonOption = False,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write graded rows (JSONL).")] = None,
    fail_under: FailUnder = None,
) -> None:
    """Grade answers that exist already."""
    from arabic_agent_eval.batch import grade_file
    from arabic_agent_eval.rules import RULES
    from arabic_agent_eval.summary import summarize

    _keep_apart(out, items, replies, categories)
    gc.disable()  # nothing that grading makes has cycles, and the process ends with the command
    item_set, declared = _items(items, checked=False), _declared(categories)
    with _replies(replies) as path, _progress() as progress:
        batch = grade_file(
            item_set,
            path,
            rules=RULES[rules],
            format=format,
            jobs=jobs,
            causes=not no_causes,
            out=out,
            allow_unknown=allow_unknown,
            categories=declared,
            progress=progress,
        )
    summary = summarize(
        batch.tally,
        due=batch.due,
        signature=batch.signature,
        rules=rules,
        categories=declared,
        causes=not no_causes,
    )
    _notes(batch, out)
    _show(summary, Layout.TERMINAL, as_json=as_json)
    _finish(summary, fail_under)


@app.command()
@_guarded
def report(
    rows: Annotated[Path, typer.Argument(metavar="ROWS", help="What 'aae grade --out' wrote.")],
    *,
    layout: Annotated[Layout, typer.Option("--format", help="terminal or markdown.")] = Layout.TERMINAL,
    title: Annotated[str, typer.Option("--title", help="What was graded, for the head of a Markdown report.")] = "",
    categories: CategoriesOption = None,
    as_json: JsonOption = False,
    fail_under: FailUnder = None,
) -> None:
    """Report on graded rows: score, groups, and where the points went."""
    from arabic_agent_eval.rows import count_rows
    from arabic_agent_eval.summary import summarize

    file = count_rows(rows)
    summary = summarize(
        file.tally,
        due=file.due,
        signature=file.signature,
        rules=file.signature.rules.rpartition("-")[0],
        categories=_declared(categories),
        causes=file.causes,
    )
    _show(summary, layout, as_json=as_json, title=title)
    _finish(summary, fail_under)


@app.command()
@_guarded
def show(
    rows: Annotated[Path, typer.Argument(metavar="ROWS", help="What 'aae grade --out' wrote.")],
    item: Annotated[str | None, typer.Argument(metavar="[ITEM]", help="The id of the item.")] = None,
    *,
    epoch: Annotated[int | None, typer.Option("--epoch", help="Which asking; all of them by default.")] = None,
    cause: Annotated[str | None, typer.Option("--cause", help="All answers that lost points for this cause.")] = None,
    lost: Annotated[bool, typer.Option("--lost", help="All answers that lost points.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show answers: expected and actual aligned, what differs marked, the causes in words."""
    from arabic_agent_eval.reports.item import print_row
    from arabic_agent_eval.rows import pairs, read_rows, row_line

    if item is None and cause is None and not lost:
        raise UsageError("which answers? Give the id of an item, or --cause NAME, or --lost.")
    console, shown = _console(), 0
    for row in read_rows(rows):
        losses = row.losses or []
        if (
            item in {None, row.item_id}
            and epoch in {None, row.epoch}
            and (cause is None or any(loss.cause == cause for loss in losses))
            and (not lost or losses)
        ):
            if as_json:
                _write(row_line(row))
            else:
                if shown:
                    console.print()
                print_row(row, pairs(row), console)
            shown += 1
    if not shown:
        what = f"item {item!r}" if item is not None else "answer"
        what += f" in epoch {epoch}" if epoch is not None else ""
        what += f" that lost points for {cause!r}" if cause is not None else " that lost points" if lost else ""
        raise UsageError(f"{rows} holds no {what}.")


@data.command("list")
@_guarded
def data_list(
    items: Annotated[str | None, typer.Argument(metavar="[FILE|SET]", help="List its items; else the sets.")] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """List the bundled item sets, or the items of one set."""
    from arabic_agent_eval.reports.listing import item_lines, set_lines

    lines = set_lines() if items is None else item_lines(_items(items))
    for line in lines:
        _write(msgspec.json.encode(line) + b"\n" if as_json else line.text.encode() + b"\n")


@data.command("check")
@_guarded
def data_check(
    items: Annotated[str, typer.Argument(metavar="FILE|SET", help="The items to check.")],
    *,
    tools: Annotated[str | None, typer.Option("--tools", metavar="FILE", help="The tool registry (JSON).")] = None,
    categories: CategoriesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find what makes an item unfair. Exit 1 when anything is found."""
    from arabic_agent_eval.checks import check_items
    from arabic_agent_eval.field_checks import check_fields
    from arabic_agent_eval.reports.listing import print_findings

    item_set = _items(items)
    registry = _registry(items, tools)
    declared = _declared(categories)
    findings = check_fields(item_set.unknown_fields())
    findings += check_items(item_set.values(), registry)
    findings = [
        one for one in findings if one.rule != "unknown_category" or item_set[one.item_id].category not in declared
    ]
    if as_json:
        _write(msgspec.json.encode({"items": len(item_set), "findings": findings}) + b"\n")
    else:
        print_findings(findings, len(item_set), _console())
    if findings:
        raise typer.Exit(GATE_FAILED)


@data.command("convert")
@_guarded
def data_convert(
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="AISA-ArabicFC parquet, or BFCL questions.")],
    *,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the items go (JSONL).")],
    kind: Annotated[str, typer.Option("--from", help="auto, aisa or bfcl.")] = "auto",
    answers: Annotated[Path | None, typer.Option("--answers", metavar="FILE", help="BFCL's answers.")] = None,
    category: Annotated[str | None, typer.Option("--category", help="One category for all items.")] = None,
) -> None:
    """Convert a foreign data set into items."""
    from arabic_agent_eval.conversion import convert, write_items

    _keep_apart(out, source, answers)
    items = convert(source, kind=kind, answers=answers, category=category)
    write_items(out, items)
    _say(f"{len(items):,} items written to {out}.")


def _keep_apart(out: Path | None, *inputs: str | Path | None) -> None:
    """A result never overwrites what it is made from."""
    for name in inputs:
        try:
            same = out is not None and name is not None and out.samefile(name)
        except OSError:  # one of them is not there, or no name for a file
            same = False
        if same:
            raise UsageError(f"--out {out} is one of the inputs; write the result to another file.")


# --- shared steps --------------------------------------------------------------------------------------------


def _items(name: str, *, checked: bool = True) -> ItemSet:
    from arabic_agent_eval.bundled import find_items, is_bundled
    from arabic_agent_eval.items import ItemSet

    path = find_items(name)
    known_as = name if is_bundled(path) else None
    return ItemSet.read(path, name=known_as) if checked else ItemSet.index(path, name=known_as)


def _registry(items: str, tools: str | None) -> Any:
    from arabic_agent_eval.bundled import find_tools
    from arabic_agent_eval.files import read_json
    from arabic_agent_eval.tools import Toolbox

    path = find_tools(items, tools)
    return Toolbox(()) if path is None else Toolbox.from_schemas(read_json(path))


def _declared(path: Path | None) -> dict[str, Category]:
    from arabic_agent_eval.items import read_categories

    return {} if path is None else read_categories(path)


@contextmanager
def _replies(name: str) -> Iterator[Path]:
    """The replies as a file; standard input is kept in a temporary one, since it is read in ranges."""
    from arabic_agent_eval.bundled import find_replies
    from arabic_agent_eval.files import spooled

    if name == "-":
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
def _progress() -> Iterator[Progress | None]:
    """A line on stderr while grading takes long; nothing where stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    began, shown = time.monotonic(), False

    def tell(done: int, size: int) -> None:
        nonlocal shown
        passed = time.monotonic() - began
        if passed > 1.0 and size:
            shown = True
            left = passed * (size - done) / max(done, 1)
            sys.stderr.write(f"\r{done / size:4.0%} graded, {passed:.0f} s, about {left:.0f} s left \x1b[K")
            sys.stderr.flush()

    try:
        yield tell
    finally:
        if shown:
            sys.stderr.write("\r\x1b[K")


def _show(summary: Summary, layout: Layout, *, as_json: bool, title: str = "") -> None:
    if as_json:
        from arabic_agent_eval.summary import summary_json

        _write(summary_json(summary) + b"\n")
    elif layout is Layout.MARKDOWN:
        from arabic_agent_eval.reports.markdown import markdown

        _write(markdown(summary, title).encode())
    else:
        from arabic_agent_eval.reports.terminal import print_summary

        print_summary(summary, _console())


def _notes(batch: GradedBatch, out: Path | None) -> None:
    if batch.unknown:
        _say(f"{batch.unknown:,} replies to unknown items were left out.")
    if batch.silent:
        named = ", ".join(repr(item_id[:40]) for item_id in batch.silent_ids)
        more = ", …" if batch.silent > len(batch.silent_ids) else ""
        _say(f"{batch.silent:,} of {batch.due:,} items have no reply ({named}{more}); they are unscored.")
    if batch.written:
        _say(
            f"{batch.written:,} answers without a call hold one written as text, which does not count. If the model "
            "writes its calls as text, grade with --format text."
        )
    if out is not None:
        _say(f"Graded rows written to {out}.")


def _finish(summary: Summary, fail_under: float | None) -> None:
    """The exit code: a score below the gate, then failures, then a gate that too few answers reached."""
    from arabic_agent_eval.summary import NO_REPLY

    coverage = summary.coverage
    failures = coverage.unscored - summary.unscored_reasons.get(NO_REPLY, 0)
    if fail_under is not None and summary.overall is None:
        _say("Nothing was scored, so --fail-under cannot be met.")
        raise typer.Exit(GATE_FAILED)
    # A mean of 0.8 may come out a rounding error below it.
    if fail_under is not None and summary.overall is not None and summary.overall < fail_under - 1e-12:
        _say(f"The score {summary.overall:.4f} is below --fail-under {fail_under:g}.")
        raise typer.Exit(GATE_FAILED)
    if failures:
        raise typer.Exit(UNSCORED)
    if fail_under is not None and coverage.unscored:
        _say(f"Only {coverage.scored:,} of {coverage.total:,} answers were judged, so --fail-under cannot be met.")
        raise typer.Exit(GATE_FAILED)


def _console() -> Console:
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console = Console(highlight=False, markup=False, emoji=False, width=120, file=sys.stdout)
    return console


def _write(data: bytes) -> None:
    """Bytes to stdout: UTF-8 whatever the locale says."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)


def _say(message: str) -> None:
    from arabic_agent_eval.text import name_invisible

    sys.stderr.write(f"aae: {name_invisible(message, spaces=True)}\n")


def main() -> None:
    """Run the command; a mistake of the user is one sentence on stderr, never a traceback."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # whoever ends the command leaves no half-written file
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed before the command began
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123
        getattr(sys, name).reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        app()
    except EvalError as error:
        _fail(str(error), BAD_INPUT)
    except (_Interrupted, KeyboardInterrupt):
        _fail("interrupted; nothing was written.", INTERRUPTED)
    except _NobodyReads:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(DONE)
    except MemoryError:
        _fail("memory ran out. Grade fewer items at a time.", BAD_INPUT)
    except OSError as error:
        _fail(
            str(OutputError(f"the result could not be written: {(error.strerror or str(error)).lower()}.")), BAD_INPUT
        )


def _fail(message: str, code: int) -> None:
    _say(message)
    sys.exit(code)
