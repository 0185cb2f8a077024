"""Lists of item sets, items and findings."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec
from rich.text import Text

from arabic_agent_eval.bundled import find_items, set_names
from arabic_agent_eval.items import ItemSet
from arabic_agent_eval.reports.terminal import safe
from arabic_agent_eval.text import name_invisible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from arabic_agent_eval.checks import Finding

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
        where = f"{finding.item_id}  {finding.field}  " if finding.field else f"{finding.item_id}  "
        console.print(Text(safe(f"{where}{finding.rule}: {finding.message}", console)), soft_wrap=True)
    counts = Counter(finding.rule for finding in findings)
    concerned = len({finding.item_id for finding in findings})
    listed = ", ".join(f"{rule} {count}" for rule, count in counts.most_common())
    console.print(Text(f"{len(findings):,} findings in {concerned:,} of {items:,} items: {listed}."), soft_wrap=True)
