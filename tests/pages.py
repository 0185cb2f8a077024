"""The pages of the documentation, and the tables on them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def table(name: str, head: str, more: str = "") -> list[list[str]]:
    """The rows of every table of a page whose first head cell is the text, and which has the other text in its head."""
    rows: list[list[str]] = []
    inside = False
    for line in page(name).splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")] if line.startswith("|") else []
        if not cells:
            inside = False
        elif inside and not line.startswith("|--"):
            rows.append(cells)
        elif cells[0] == head and more in line:
            inside = True
    assert rows, f"{name} has no table {head!r}"
    return rows


def firsts(name: str, head: str, more: str = "") -> set[str]:
    """The names in code marks in the first column of these tables."""
    return {field for row in table(name, head, more) for field in re.findall(r"`([^`]+)`", row[0])}
