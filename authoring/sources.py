"""Where the sources stand, how they are read, and what is wrong with them, in sentences."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from arabic_agent_eval.tools import Toolbox

HERE: Final = Path(__file__).parent / "core"
DATA: Final = Path(__file__).parent.parent / "arabic_agent_eval" / "data"
PREFIXES: Final = {
    "simple_function_calling": "sf_",
    "parameter_extraction": "pe_",
    "multi_step": "ms_",
    "dialect_handling": "dh_",
    "tool_selection": "ts_",
    "error_recovery": "er_",
    "no_call": "nc_",
    "adversarial": "ad_",
}
"""Category → how the names of its intents begin."""
TRACKS: Final = ("no_call", "adversarial")
CATEGORIES: Final = tuple(name for name in PREFIXES if name not in TRACKS)
DIALECTS: Final = {"msa": "arb", "gulf": "afb", "egyptian": "arz", "levantine": "apc", "maghrebi": "ary"}
"""The names of dialects, and the BCP 47 code of the variety in which a line is written unless it says another."""
VARIETIES: Final = {
    "msa": {"arb": "Modern Standard Arabic"},
    "gulf": {"afb": "Gulf", "ars": "Najdi"},
    "egyptian": {"arz": "Egyptian"},
    "levantine": {"apc": "Levantine"},
    "maghrebi": {"ary": "Moroccan", "arq": "Algerian"},
}
"""Dialect → the varieties that its lines may be written in, and what the card calls them."""
SHORT: Final = {"msa": "msa", "gulf": "glf", "egyptian": "egy", "levantine": "lev", "maghrebi": "mag"}

_DEEPEST: Final = 64

Rows = list[dict[str, Any]]


class Fault(Exception):
    """Something in the sources is not as it should be; every sentence names file, place and remedy."""

    def __init__(self, *sentences: str) -> None:
        super().__init__("\n".join(sentences))
        self.sentences = sentences


class Report:
    """The faults that were found so far, each once."""

    def __init__(self) -> None:
        self._sentences: dict[str, None] = {}

    def add(self, *parts: str) -> None:
        """One fault: file, intent, field as far as they are known, and last the sentence."""
        sentence = " ".join(": ".join(part for part in parts if part).splitlines())
        self._sentences[sentence.encode("utf-8", "backslashreplace").decode()] = None

    @property
    def sentences(self) -> list[str]:
        """All of them, in the order in which they were found."""
        return list(self._sentences)

    def __len__(self) -> int:
        return len(self._sentences)


class Sources(NamedTuple):
    """What was written, in shape.

    Attributes:
        intents: category → its intents.
        lines: dialect → intent → its line, an object with ``instruction``.
        singles: dialect → the items that exist there only.
        tools: the registry that all sets share.
        tracks: track → what ``categories.json`` says of it.
    """

    intents: dict[str, Rows]
    lines: dict[str, dict[str, dict[str, Any]]]
    singles: dict[str, Rows]
    tools: Toolbox
    tracks: dict[str, Any]

    def of(self, categories: tuple[str, ...]) -> Rows:
        """The intents of some categories, in the order of the categories."""
        return [intent for name in categories for intent in self.intents[name]]


class Files(NamedTuple):
    """The two folders: of what is written by hand, and of what is made."""

    here: Path = HERE
    data: Path = DATA

    def intents(self, category: str) -> Path:
        """The intents of a category."""
        return self.here / "intents" / f"{category}.json"

    def lines(self, dialect: str, category: str) -> Path:
        """The lines of a dialect for the intents of a category."""
        return self.here / "lines" / dialect / f"{category}.json"

    def singles(self, dialect: str) -> Path:
        """The items that exist in one dialect only."""
        return self.here / "singles" / f"{dialect}.json"

    def shown(self, path: Path) -> str:
        """The path as messages name it: from the root of the project."""
        for folder, name in ((self.here, "authoring/core"), (self.data, "arabic_agent_eval/data")):
            if path.is_relative_to(folder):
                return f"{name}/{path.relative_to(folder).as_posix()}"
        return str(path)

    def read(self, path: Path, report: Report) -> Any:
        """A JSON file; None where it cannot be read, and the report says why."""
        shown = self.shown(path)
        try:
            value = json.loads(
                path.read_bytes().decode("utf-8-sig"), object_pairs_hook=_object, parse_constant=_no_number
            )
        except FileNotFoundError:
            report.add(shown, "the file is not there: write it, or put it back.")
        except OSError as error:
            report.add(shown, f"the file cannot be read ({error.strerror}): mend that first.")
        except UnicodeDecodeError as error:
            report.add(shown, f"byte {error.start + 1:,} is not UTF-8: save the file as UTF-8.")
        except json.JSONDecodeError as error:
            place = f"line {error.lineno:,}, column {error.colno:,}"
            report.add(shown, f"it is not JSON at {place} ({error.msg}): mend it there or just before.")
        except RecursionError:
            report.add(shown, f"it nests deeper than {_DEEPEST} levels: write it flatter.")
        except ValueError as error:
            report.add(shown, f"it is not JSON ({error}): mend it.")
        else:
            faults = [("", "it is null: write what belongs there.")] if value is None else list(_faults(value))
            for place, sentence in faults:
                report.add(shown, place, sentence)
            return None if faults else value
        return None


class _Repeated(dict[str, Any]):
    """An object in which a key stands twice."""

    keys_twice: list[str]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    names = [name for name, _ in pairs]
    wrong = _Repeated(found)
    wrong.keys_twice = [name for name in found if names.count(name) > 1]
    return wrong


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number there")


def _faults(value: Any, place: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Where a JSON value holds what no item can hold."""
    if depth > _DEEPEST:
        yield place[:80], f"it nests deeper than {_DEEPEST} levels: write it flatter."
    elif isinstance(value, dict):
        if isinstance(value, _Repeated):
            for name in value.keys_twice:
                yield place, f"the key {name!r} stands twice in one object: keep one of the two."
        for name, member in value.items():
            inside = f"{place}.{name}" if place else name
            yield from _text_faults(name, inside)
            yield from _faults(member, inside, depth + 1)
    elif isinstance(value, list):
        for number, member in enumerate(value):
            inside = f"{place}[{number}]"
            if not place and isinstance(member, dict):  # the entries of a file have names
                said = member.get("intent", member.get("id"))
                inside = said if isinstance(said, str) and said else f"entry {number + 1}"
            yield from _faults(member, inside, depth + 1)
    elif isinstance(value, str):
        yield from _text_faults(value, place)
    elif isinstance(value, float) and not math.isfinite(value):
        yield place, "the number is too large: write a smaller one."


def _text_faults(text: str, place: str) -> Iterator[tuple[str, str]]:
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        yield place, "the text holds half of a surrogate pair (\\ud800 to \\udfff): write the whole character."
