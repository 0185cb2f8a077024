"""Results for publishing: one line of JSON a model in a file that only grows.

What a line says of a model is what ``aae leaderboard --json`` says of it, less what is true only among the others (the
rank) or only on this machine (the path).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from arabic_agent_eval.errors import DataError, OutputError
from arabic_agent_eval.files import reason_of
from arabic_agent_eval.journal import append_durably, growing
from arabic_agent_eval.leaderboard import Entry, Leaderboard
from arabic_agent_eval.strictjson import MalformedJSON, decode

_LEFT_OUT: Final = ("rank", "path")
_TIMES: Final = ("date", "created")
"""When a result came about; two results that differ in nothing else are the same."""
_NAMED: Final = ("date", "name", "signature")
_REMEDY: Final = "Name another file with --append, or mend this one; nothing was added."


def published(entry: Entry, date: str) -> dict[str, Any]:
    """What is published of a model.

    Args:
        entry: the model, its name in UTF-8.
        date: when it is published, in UTC.
    """
    document: dict[str, Any] = {"date": date, **msgspec.to_builtins(entry)}
    for name in _LEFT_OUT:
        del document[name]
    return document


def append_results(path: Path, found: Leaderboard, *, date: str) -> int:
    """Add the models to a file of results, by rank, each durably; those that stand there already are not added again.

    Args:
        path: the file, made where there is none.
        found: the models.
        date: now, in UTC.

    Returns:
        How many were added.

    Raises:
        DataError: a line of the file is cut off or is no result; nothing was added.
        OutputError: it could not be written.
    """
    with growing(path) as handle:
        known = {_identity(row) for row in _read(path)}
        lines = []
        for entry in found.as_utf8().entries:
            row = published(entry, date)
            if (identity := _identity(row)) not in known:
                known.add(identity)
                lines.append(msgspec.json.encode(row) + b"\n")
        try:
            append_durably(handle, b"".join(lines))
        except OSError as error:
            raise OutputError(f"{path}: a result could not be added: {reason_of(error)}.") from None
    return len(lines)


def _identity(row: dict[str, Any]) -> str:
    """Name, signature and numbers as text, in whatever order they stand."""
    return json.dumps({name: value for name, value in row.items() if name not in _TIMES}, sort_keys=True)


def _read(path: Path) -> Iterator[dict[str, Any]]:
    """The results of a file.

    Raises:
        DataError: see :func:`append_results`.
    """
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            if not line.endswith(b"\n"):
                what = "the last line is cut off: it has no line end."
                raise DataError(what, path=str(path), line=number, remedy=_REMEDY)
            try:
                row = decode(line)
            except MalformedJSON:
                row = None
            if not isinstance(row, dict) or not all(isinstance(row.get(name), str) for name in _NAMED):
                what = "this is no result that 'aae leaderboard --append' wrote."
                raise DataError(what, path=str(path), line=number, remedy=_REMEDY)
            yield row
