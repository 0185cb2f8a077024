"""The parts of the card that are counted: ``python -m authoring build`` writes them into ``data/core/README.md``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from arabic_agent_eval.bundled import find_items
from arabic_agent_eval.items import CATEGORIES, DIALECTS, ItemSet
from authoring.assembly import CANARY
from authoring.sources import DATA

_LANGUAGES: Final = {
    "arb": "Modern Standard Arabic",
    "afb": "Gulf",
    "ars": "Najdi",
    "arz": "Egyptian",
    "apc": "Levantine",
    "ary": "Moroccan",
    "arq": "Algerian",
}


def counts() -> str:
    """Items by category and dialect, as a table."""
    items = ItemSet.read(find_items("core"))
    cells = Counter((item.category, item.dialect) for item in items.values())
    lines = [f"| category | {' | '.join(DIALECTS)} | all |", f"|---|{'---:|' * (len(DIALECTS) + 1)}"]
    for category in CATEGORIES:
        row = [cells[category, dialect] for dialect in DIALECTS]
        lines.append(f"| `{category}` | {' | '.join(map(str, row))} | {sum(row)} |")
    sums = [sum(cells[category, dialect] for category in CATEGORIES) for dialect in DIALECTS]
    lines.append(f"| all | {' | '.join(map(str, sums))} | {sum(sums)} |")
    return "\n".join(lines)


def languages() -> str:
    """How many items are in which variety."""
    held = Counter(item.language for item in ItemSet.read(find_items("core")).values())
    return ", ".join(f"{name} (`{code}`) {held[code]}" for code, name in _LANGUAGES.items() if held[code])


def fingerprints() -> str:
    """Name and fingerprint of each set."""
    return ", ".join(f"`{name}@{ItemSet.read(find_items(name)).fingerprint}`" for name in NAMES)


NAMES: Final = ("core", "core-en", "core-tracks")


def canary() -> str:
    """The line by which a model that has seen the set is known."""
    return f"`{CANARY}`"


PARTS: Final[dict[str, Callable[[], str]]] = {
    "counts": counts,
    "languages": languages,
    "fingerprints": fingerprints,
    "canary": canary,
}


def filled(card: str) -> str:
    """The card with every counted part as it is now."""
    for name, count in PARTS.items():
        mark, end = f"<!-- {name} -->", "<!-- end -->"
        start = card.index(mark) + len(mark)
        gap = "\n" if name == "counts" else ""
        card = card[:start] + gap + count() + gap + card[card.index(end, start) :]
    return card


def write() -> None:
    """Write them into the card."""
    path = DATA / "core" / "README.md"
    path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")
