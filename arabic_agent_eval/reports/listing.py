"""Lists of item sets, items and findings."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec
from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from arabic_agent_eval.bundled import find_items, set_names
from arabic_agent_eval.items import DIALECTS, ItemSet
from arabic_agent_eval.reports.terminal import safe
from arabic_agent_eval.text import name_invisible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from arabic_agent_eval.checks import Finding
    from arabic_agent_eval.set_checks import SetOverview

_SHOWN = 90


class SetLine(msgspec.Struct, frozen=True):
    """A bundled item set."""

    name: str
    items: int
    categories: dict[str, int]
    dialects: dict[str, int]
    fingerprint: str

    @property
    def text(self) -> str:
        """The line for people."""
        dialects = ", ".join(f"{name} {count}" for name, count in self.dialects.items())
        return f"{self.name}  {self.items} items @{self.fingerprint}  ({dialects})"


class ItemLine(msgspec.Struct, frozen=True):
    """An item of a set."""

    id: str
    category: str
    dialect: str | None
    calls: int
    instruction: str

    @property
    def text(self) -> str:
        """The line for people."""
        shown = self.instruction if len(self.instruction) <= _SHOWN else self.instruction[:_SHOWN] + "…"
        line = f"{self.id}  {self.category}  {self.dialect or '-'}  {self.calls}  {shown}"
        return name_invisible(line, spaces=True)


def set_lines() -> Iterator[SetLine]:
    """The bundled item sets."""
    for name in set_names():
        items = ItemSet.read(find_items(name))
        yield SetLine(
            name,
            len(items),
            dict(Counter(item.category for item in items.values())),
            dict(Counter(item.dialect or "" for item in items.values())),
            items.fingerprint,
        )


def item_lines(items: ItemSet) -> Iterator[ItemLine]:
    """The items of a set."""
    for item in items.values():
        yield ItemLine(item.id, item.category, item.dialect, len(item.expected_calls), item.instruction)


def print_findings(findings: Sequence[Finding], items: int, console: Console) -> None:
    """Print findings by item, and how many there are of each rule."""
    if not findings:
        console.print(f"{items:,} items checked, nothing found.")
        return
    for finding in findings:
        where = "".join(f"{part}  " for part in (finding.item_id, finding.field) if part)
        console.print(Text(safe(f"{where}{finding.rule}: {finding.message}", console)), soft_wrap=True)
    counts = Counter(finding.rule for finding in findings)
    concerned = len({finding.item_id for finding in findings} - {""})
    listed = ", ".join(f"{rule} {count}" for rule, count in counts.most_common())
    console.print(Text(f"{len(findings):,} findings in {concerned:,} of {items:,} items: {listed}."), soft_wrap=True)


def print_overview(overview: SetOverview, console: Console) -> None:
    """Print what a set holds: items by category and dialect, intents, and how the lines of each dialect sound."""
    others = [name for name in overview.cells if name not in DIALECTS]
    cells = _table("Category", *DIALECTS, *(["other"] if others else []), "all")
    categories = dict.fromkeys(name for counts in overview.cells.values() for name in counts)
    for category in [*categories, None]:
        row = [_count(overview, (name,), category) for name in DIALECTS]
        row += [_count(overview, others, category)] if others else []
        name = "all" if category is None else safe(category, console)
        cells.add_row(Text(name), *map(_number, [*row, sum(row)]))
    console.print(cells)
    console.print(
        f"Intents: {overview.complete_intents:,} in all five dialects, {overview.partial_intents:,} in several but not "
        "in all.\n"
    )
    sound = _table("Dialect", "lines", "with a marker", "markers", "different", "MSA words")
    for name, found in overview.dialects.items():
        figures = (found.items, found.marked, found.markers, found.distinct, found.msa_words)
        sound.add_row(name, *map(_number, figures))
    console.print(sound)


def _count(overview: SetOverview, dialects: Sequence[str], category: str | None) -> int:
    cells = (overview.cells[name] for name in dialects)
    return sum(sum(counts.values()) if category is None else counts.get(category, 0) for counts in cells)


def _number(count: int) -> str:
    return f"{count:,}"


def _table(title: str, *columns: str) -> Table:
    table = Table(box=SIMPLE, pad_edge=False, header_style="bold")
    table.add_column(title, overflow="fold")
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table
