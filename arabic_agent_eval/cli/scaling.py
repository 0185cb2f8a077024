"""Grading on Ray: what ``aae grade --engine ray`` does differently."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from arabic_agent_eval.cli import steps
from arabic_agent_eval.cli.guard import INTERRUPTED
from arabic_agent_eval.errors import DataError, MissingExtra, UsageError

if TYPE_CHECKING:
    from arabic_agent_eval.batch import GradedBatch, Progress
    from arabic_agent_eval.integrations.ray import GradedFiles
    from arabic_agent_eval.items import Category, ItemSet
    from arabic_agent_eval.rules import Rules

_SHOWN = 20  # failures, each on a line


def grade_on_ray(
    items: ItemSet,
    replies: str,
    *,
    rules: Rules,
    format: str,  # noqa: A002 - the option's name
    causes: bool,
    out: Path | None,
    allow_unknown: bool,
    categories: Mapping[str, Category],
    address: str | None,
    workers: int | None,
    progress: Progress | None,
) -> GradedBatch:
    """Grade a file or a folder of replies on Ray; what could be graded is kept in ``out``, whatever else fails.

    Raises:
        DataError: something could not be graded; all of it was named on stderr.
        MissingExtra: Ray is not installed.
        UsageError: see ``grade_files``; or the replies cannot be read in blocks.
    """
    from typer import Exit

    try:
        from arabic_agent_eval.integrations.ray import grade_files
    except MissingExtra:  # of Ray, or of Arrow, which comes with it
        raise MissingExtra('--engine ray needs Ray; install it with: pip install "arabic-agent-eval[ray]"') from None

    path = _replies(replies)
    if out is not None and path.is_dir() and out.resolve().is_relative_to(path.resolve()):
        raise UsageError(f"--out {out} lies in the folder of the replies, and would be graded next time.")
    try:
        graded = grade_files(
            items,
            path,
            rules=rules,
            format=format,
            causes=causes,
            allow_unknown=allow_unknown,
            categories=categories,
            out=out,
            address=address,
            workers=workers,
            progress=progress,
        )
    except KeyboardInterrupt:
        if out is None:
            raise
        steps.say(f"interrupted; what was graded is kept in {out}, and the same command goes on from there.")
        raise Exit(INTERRUPTED) from None
    _tell(graded, out)
    return graded.batch


def _replies(name: str) -> Path:
    from arabic_agent_eval.bundled import find_replies

    if name == "-":
        raise UsageError("standard input cannot be cut into blocks; name a file or a folder with --replies.")
    try:
        is_folder = Path(name).is_dir()
    except OSError:  # no name for a file
        is_folder = False
    return Path(name) if is_folder else find_replies(name)


def _tell(graded: GradedFiles, out: Path | None) -> None:
    if graded.others:
        steps.say(f"{graded.others:,} files in the folder are neither JSONL nor Parquet and were passed over.")
    if graded.kept:
        steps.say(f"{graded.kept:,} of {graded.blocks:,} blocks were graded before and are unchanged.")
    if not graded.failures:
        return
    for failure in graded.failures[:_SHOWN]:
        steps.say(str(failure))
    failed = len(graded.failures)
    more = f" (of {failed:,}, {_SHOWN} are named)" if failed > _SHOWN else ""
    kept = (
        "Their rows are not kept without --out."
        if out is None
        else f"They are kept in {out}; the same command goes on."
    )
    what = f"these blocks could not be graded{more}, and there is no score without them; all others were graded."
    raise DataError(what, remedy=kept)
