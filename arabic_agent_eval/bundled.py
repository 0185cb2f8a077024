"""The item sets that come with the package, and finding items, tools and replies by name or path."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from arabic_agent_eval.errors import DataError

DATA: Final = Path(__file__).parent / "data"
_ITEMS, _TOOLS, _REPLIES = "items.jsonl", "tools.json", "replies.jsonl"
CATEGORIES_FILE: Final = "categories.json"
"""Beside items, and in a run folder, it declares their categories."""


def set_names() -> list[str]:
    """The names of the bundled item sets."""
    return sorted(path.parent.name for path in DATA.glob(f"*/{_ITEMS}"))


def is_bundled(path: Path) -> bool:
    """Whether a file belongs to a bundled set, whose name says more than the file's."""
    return path.is_relative_to(DATA)


def find_items(name: str) -> Path:
    """The file of an item set, from a path or the name of a bundled set.

    Raises:
        DataError: there is neither.
    """
    return _find(name, _ITEMS, "items")


def find_replies(name: str) -> Path:
    """A file of replies, from a path or the name of a bundled set that has sample replies.

    Raises:
        DataError: there is neither.
    """
    return _find(name, _REPLIES, "replies")


def find_tools(items: str, tools: str | None) -> Path | None:
    """The tool registry: as named, else the one beside the items; None when there is none."""
    if tools is not None:
        return _find(tools, _TOOLS, "tools")
    beside = find_items(items).parent
    return next((beside / name for name in (_TOOLS, "functions.json") if (beside / name).is_file()), None)


def find_categories(items: str) -> Path | None:
    """The categories that are declared beside the items; None when there are none."""
    beside = find_items(items).with_name(CATEGORIES_FILE)
    return beside if beside.is_file() else None


def kept_categories(run: Path) -> Path | None:
    """The categories that a run folder keeps; None where it has none, and for a file of graded rows."""
    kept = run / CATEGORIES_FILE
    return kept if run.is_dir() and kept.is_file() else None


def _find(name: str, file: str, what: str) -> Path:
    if name in set_names() and (bundled := DATA / name / file).is_file():
        return bundled  # before a file of that name, since a crash leaves one that is called core
    path = Path(name)
    try:
        exists = path.exists()
    except OSError as error:
        raise DataError(
            f"this is no name for a file: {(error.strerror or str(error)).lower()}.", path=name[:80]
        ) from None
    if exists:
        if path.is_dir():
            raise DataError(f"a file of {what} is needed, not a folder.", path=name)
        return path
    raise DataError(
        f"there is no such file, and no bundled set of that name (there are: {', '.join(set_names())}).", path=name
    )
