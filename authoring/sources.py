"""Reading what was written: intents, the lines of five dialects and of English, and single items."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent / "core"
DATA: Final = Path(__file__).parent.parent / "arabic_agent_eval" / "data"
CATEGORIES: Final = (
    "simple_function_calling",
    "parameter_extraction",
    "multi_step",
    "dialect_handling",
    "tool_selection",
    "error_recovery",
)
TRACKS: Final = ("no_call", "adversarial")
DIALECTS: Final = {"msa": "arb", "gulf": "afb", "egyptian": "arz", "levantine": "apc", "maghrebi": "ary"}
"""The names of dialects, and the BCP 47 code of the variety in which a line is written unless it says another."""
SHORT: Final = {"msa": "msa", "gulf": "glf", "egyptian": "egy", "levantine": "lev", "maghrebi": "mag"}

Rows = list[dict[str, Any]]


class Fault(Exception):
    """Something in the sources is not as it should be: file, place and remedy in one sentence."""


def read(path: Path) -> Any:
    """A JSON file.

    Raises:
        Fault: it is not there or cannot be read.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Fault(f"{_shown(path)} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise Fault(f"{_shown(path)} is not JSON: {error}.") from None


def _shown(path: Path) -> str:
    root = HERE.parent.parent
    return str(path.relative_to(root) if path.is_relative_to(root) else path)


def tools() -> Any:
    """The registry that all sets share."""
    return read(DATA / "core" / "tools.json")


def intents(names: tuple[str, ...]) -> Rows:
    """The intents of some categories, in the order of the categories."""
    return [intent for name in names for intent in read(HERE / "intents" / f"{name}.json")]


def lines(dialect: str) -> dict[str, Any]:
    """Intent → the line of a dialect: its text, or an object with ``instruction`` and what else differs."""
    found: dict[str, Any] = {}
    for path in sorted((HERE / "lines" / dialect).glob("*.json")):
        read_now = read(path)
        if not isinstance(read_now, dict):
            raise Fault(f"{_shown(path)} must be an object, intent → line.")
        found |= read_now
    return found


def singles(dialect: str) -> Rows:
    """The items that exist in one dialect only."""
    path = HERE / "singles" / f"{dialect}.json"
    found: Rows = read(path) if path.exists() else []
    return found
