"""The parts of the card that are counted: ``python -m authoring build`` writes them into ``data/core/README.md``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

from arabic_agent_eval.items import CATEGORIES, DIALECTS, ItemSet
from arabic_agent_eval.tools import Toolbox
from authoring.assembly import CANARY
from authoring.shapes import read_tools
from authoring.sources import TRACKS, VARIETIES, Files, Report

NAMES: Final = ("core", "core-en", "core-tracks")
COMPUTED: Final = "computed for"
"""Marks the fingerprints of which the figures beside them were computed; they are typed, as the figures are."""


class Made:
    """The sets as they were written, and the tools that they share."""

    def __init__(self, files: Files) -> None:
        self.sets = {name: ItemSet.read(files.data / name / "items.jsonl") for name in NAMES}
        self.tools: Toolbox = read_tools(files, Report())

    @property
    def fingerprints(self) -> dict[str, str]:
        """Name and fingerprint of each set, as one word."""
        return {name: f"{name}@{held.fingerprint}" for name, held in self.sets.items()}

    def intents(self, category: str | None = None) -> int:
        """How many requests of ``core``, or of a track, stand in all dialects."""
        held = self.sets["core-tracks" if category in TRACKS else "core"].values()
        wanted = (item for item in held if category is None or item.category == category)
        return len({item.intent for item in wanted if item.intent is not None})


def _counts(made: Made) -> str:
    """Items by category and dialect, as a table."""
    cells = Counter((item.category, item.dialect) for item in made.sets["core"].values())
    lines = [f"| category | {' | '.join(DIALECTS)} | all |", f"|---|{'---:|' * (len(DIALECTS) + 1)}"]
    for category in CATEGORIES:
        row = [cells[category, dialect] for dialect in DIALECTS]
        lines.append(f"| `{category}` | {' | '.join(map(str, row))} | {sum(row)} |")
    sums = [sum(cells[category, dialect] for category in CATEGORIES) for dialect in DIALECTS]
    lines.append(f"| all | {' | '.join(map(str, sums))} | {sum(sums)} |")
    return "\n" + "\n".join(lines) + "\n"


def _languages(made: Made) -> str:
    """How many items are in which variety."""
    held = Counter(item.language for item in made.sets["core"].values())
    names = {code: name for dialect in VARIETIES.values() for code, name in dialect.items()}
    return ", ".join(f"{name} (`{code}`) {held[code]}" for code, name in names.items() if held[code])


def _singles(made: Made) -> int:
    """How many items exist in one dialect only."""
    return sum(item.intent is None for item in made.sets["core"].values())


PARTS: Final[dict[str, Callable[[Made], str]]] = {
    "counts": _counts,
    "languages": _languages,
    "fingerprints": lambda made: ", ".join(f"`{one}`" for one in made.fingerprints.values()),
    "canary": lambda _: f"`{CANARY}`",
    "parallel": lambda made: str(made.intents()),
    "singles": lambda made: str(_singles(made)),
    "singles each": lambda made: str(_singles(made) // len(DIALECTS)),
    "tools": lambda made: str(len(made.tools)),
    "no_call": lambda made: str(made.intents("no_call")),
    "adversarial": lambda made: str(made.intents("adversarial")),
}
"""Name of a part → what stands in it; a part may stand in several places."""


def _part(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<=<!-- {name} -->).*?(?=<!-- end -->)", re.DOTALL)


def _path(files: Files) -> Path:
    return files.data / "core" / "README.md"


def filled(text: str, files: Files) -> str:
    """The card with every counted part as it is now."""
    made = Made(files)
    for name, count in PARTS.items():
        counted = count(made)
        text = _part(name).sub(lambda _, counted=counted: counted, text)  # type: ignore[misc]
    return text


def check(files: Files, report: Report) -> None:
    """Whether every counted part has its place in the card."""
    shown = files.shown(_path(files))
    try:
        text = _path(files).read_text(encoding="utf-8-sig")
    except (OSError, ValueError):
        report.add(shown, "the card is not there or is not UTF-8: put it back.")
        return
    marks = Counter(re.findall(r"<!-- (.+?) -->", text))
    for name in (*PARTS, COMPUTED):
        if not marks[name]:
            report.add(shown, f"the part '<!-- {name} -->…<!-- end -->' is not there: put it back.")
    if marks["end"] != sum(marks[name] for name in (*PARTS, COMPUTED)):
        report.add(shown, "a part has no end, or an end no part: write <!-- name -->…<!-- end -->.")


def stale(files: Files) -> list[str]:
    """What to compute anew, because the sets are others than those of which it was computed."""
    now = set(Made(files).fingerprints.values())
    text = _path(files).read_text(encoding="utf-8-sig")
    computed = {name for part in _part(COMPUTED).findall(text) for name in re.findall(r"[\w-]+@\w+", part)}
    old = sorted(computed - now)
    remedy = f"correct the fingerprints between '<!-- {COMPUTED} -->' and '<!-- end -->'"
    shown = files.shown(_path(files))
    return [f"{shown} holds figures of {one}: compute them anew as docs/items.md says, then {remedy}." for one in old]


def write(files: Files) -> None:
    """Write the counted parts into the card."""
    path = _path(files)
    path.write_text(filled(path.read_text(encoding="utf-8-sig"), files), encoding="utf-8", newline="\n")
