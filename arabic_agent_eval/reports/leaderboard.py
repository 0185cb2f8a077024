"""A leaderboard on a terminal, as Markdown, as CSV for spreadsheets, and as JSON."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Final

import msgspec
from rich.text import Text

from arabic_agent_eval.leaderboard import RANK_MEANS
from arabic_agent_eval.reports.markdown import plain, table
from arabic_agent_eval.reports.terminal import safe, table_of
from arabic_agent_eval.tables import interval, number, signed, signed_interval
from arabic_agent_eval.text import name_invisible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rich.console import Console

    from arabic_agent_eval.leaderboard import Entry, Leaderboard, Score

FOOTNOTE: Final = (
    f"{RANK_MEANS} Neighbours of different ranks need not differ. "
    "Gap: the dialect furthest below MSA, over what was said in both."
)
_HEADS = ["rank", "model", "score", "95 %", "judged", "tokens read", "written", "USD", "s (median)", "from"]
_GAP_HEADS = ["worst dialect", "against MSA", "95 %", "intents"]
# The second row are wide forms of the same signs, which some spreadsheets take for the first.
_FORMULA = tuple("=+-@\t\r" + "＝＋－＠")


def _cells(entry: Entry, items: int) -> list[str]:
    """The first table, without the words at its ends: who it is, and where it is from."""
    ends = None if entry.overall is None else (entry.overall.low, entry.overall.high)
    return [
        _score(entry.overall),
        interval(ends),
        f"{entry.judged:,}/{items:,}",
        _count(entry.tokens_read),
        _count(entry.tokens_written),
        number(entry.cost),
        "–" if entry.latency is None else f"{entry.latency:.2f}",
    ]


def _rank(entry: Entry) -> str:
    return "–" if entry.rank is None else str(entry.rank)


def _score(found: Score | None) -> str:
    return number(None if found is None else found.score)


def _count(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _groups(scores: Mapping[str, Score], names: Sequence[str]) -> list[str]:
    return [_score(scores.get(name)) for name in names]


def _gap(entry: Entry, word: Callable[[str], str]) -> list[str]:
    if (gap := entry.gap) is None:
        return ["–"] * 4
    return [word(gap.dialect), signed(gap.difference), signed_interval(gap.low, gap.high), f"{gap.intents:,}"]


# --- terminal ------------------------------------------------------------------------------------------------


def print_leaderboard(found: Leaderboard, console: Console) -> None:
    """Print the models by rank, then their categories, then their dialects."""
    first = table_of(_HEADS, left={"model", "from"}, fold=True)
    by_category = table_of(
        ["model", *(_folded(safe(name, console)) for name in found.categories)], left={"model"}, fold=True
    )
    by_dialect = table_of(
        ["model", *(safe(name, console) for name in found.dialects), *_GAP_HEADS], left={"model"}, fold=True
    )
    for entry in found.entries:
        name = Text(safe(entry.name, console))
        first.add_row(_rank(entry), name, *_cells(entry, found.items), Text(safe(entry.path, console)))
        by_category.add_row(name, *_groups(entry.categories, found.categories))
        gap = [Text(cell) for cell in _gap(entry, lambda word: safe(word, console))]
        by_dialect.add_row(name, *_groups(entry.dialects, found.dialects), *gap)
    for made in (first, by_category, by_dialect):
        console.print(made)
    for line in found.notes:
        console.print(Text(safe(line, console)), soft_wrap=True)
    console.print(Text(FOOTNOTE, style="dim"), soft_wrap=True)


def _folded(name: str) -> str:
    """A name of a category in as many lines as it has words: six of them fit beside each other."""
    return name.replace("_", "\n")


# --- Markdown ------------------------------------------------------------------------------------------------


def markdown_leaderboard(found: Leaderboard) -> str:
    """The same as one Markdown document."""
    named = [(entry, plain(entry.name)) for entry in found.entries]
    first = [[_rank(entry), name, *_cells(entry, found.items), plain(entry.path)] for entry, name in named]
    by_category = [[name, *_groups(entry.categories, found.categories)] for entry, name in named]
    by_dialect = [[name, *_groups(entry.dialects, found.dialects), *_gap(entry, plain)] for entry, name in named]
    parts = [
        "# Leaderboard",
        table(_HEADS, first, words=2),
        "## Categories",
        table(["model", *map(plain, found.categories)], by_category),
        "## Dialects",
        table(["model", *map(plain, found.dialects), *_GAP_HEADS], by_dialect),
        *map(plain, found.notes),
        FOOTNOTE,
    ]
    return "\n\n".join(parts) + "\n"


# --- files ---------------------------------------------------------------------------------------------------

Cell = str | float | None


def csv_leaderboard(found: Leaderboard) -> str:
    """One line a model, for spreadsheets: no cell is a formula, and what is not known is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    rows = [_csv_row(entry, found) for entry in found.entries]
    writer.writerow([harmless(name) for name in rows[0]])
    for row in rows:
        writer.writerow([_cell(value) for value in row.values()])
    return out.getvalue()


def harmless(text: str) -> str:
    """Text from elsewhere as a cell that no spreadsheet computes; invisible characters and line ends are named.

    >>> harmless("=1+1"), harmless("a=1")
    ("'=1+1", 'a=1')
    """
    shown = name_invisible(text, spaces=True)
    return f"'{shown}" if text.startswith(_FORMULA) else shown


def _cell(value: Cell) -> Cell:
    if isinstance(value, str):
        return harmless(value)
    return round(value, 6) if isinstance(value, float) else value


def _csv_row(entry: Entry, found: Leaderboard) -> dict[str, Cell]:
    """Column → value, the same columns for every model."""
    row: dict[str, Cell] = {"rank": entry.rank, "model": entry.name}
    row |= _parts("", entry.overall, ("score", "low", "high"))
    row |= {"judged": entry.judged, "items": found.items, "unscored_answers": entry.unscored}
    for name in found.categories:
        row |= _parts(f"category {name} ", entry.categories.get(name), ("score", "low", "high", "n"))
    for name in found.dialects:
        row |= _parts(f"dialect {name} ", entry.dialects.get(name), ("score", "low", "high", "n"))
    row |= _parts("gap ", entry.gap, ("dialect", "difference", "low", "high", "p_value", "intents"))
    row |= {"tokens_read": entry.tokens_read, "tokens_written": entry.tokens_written}
    row |= {"cost_usd": entry.cost, "latency_median_s": entry.latency}
    return row | {"from": entry.path, "signature": entry.signature}


def _parts(prefix: str, holder: object, names: Sequence[str]) -> dict[str, Cell]:
    return {f"{prefix}{name}": getattr(holder, name, None) for name in names}


def json_leaderboard(found: Leaderboard) -> bytes:
    """The whole leaderboard as JSON; names of files that are not UTF-8 are escaped."""
    return msgspec.json.format(msgspec.json.encode(found.as_utf8()), indent=2) + b"\n"
