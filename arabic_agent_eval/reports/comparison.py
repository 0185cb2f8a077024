"""Comparisons, on a terminal and as Markdown: better, worse, or not to be told apart; by how much; how sure.

Runs have letters, in the order in which they were named: the first is A, with which the others are compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from arabic_agent_eval.comparison import LISTED, VERDICTS, headline
from arabic_agent_eval.reports.markdown import plain, table
from arabic_agent_eval.reports.terminal import safe, table_of
from arabic_agent_eval.tables import number, probability, signed, signed_interval

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from arabic_agent_eval.comparison import Change, Comparison, Difference, Side

_WIDE = 105  # columns that the whole table takes
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_STYLES = {"better": "bold green", "worse": "bold red", "unclear": "bold yellow"}


def letter(place: int) -> str:
    """The letter of a run, by its place from 0; beyond Z a number.

    >>> letter(0), letter(25), letter(26)
    ('A', 'Z', '#27')
    """
    return _LETTERS[place] if place < len(_LETTERS) else f"#{place + 1}"


def details(comparison: Comparison, name: str) -> list[str]:
    """What stands below: how many items, how they came out, what such a comparison can show, and what to know."""
    left = f" of {comparison.items:,}; the others were not judged on both sides" if comparison.left_out else ""
    lines = [f"{_items(comparison.compared)} compared{left}."]
    if (found := comparison.overall) is not None:
        lines[0] += f" {name} is better in {found.wins:,}, as good in {found.ties:,}, worse in {found.losses:,}."
        if found.clusters < found.n:
            lines.append(f"Items with the same intent stand or fall together: {found.clusters:,} independent groups.")
        if found.detectable is not None:
            lines.append(
                f"A true difference of {found.detectable:.3f} would be found in 80 of 100 comparisons like this one."
            )
    for side, letter_ in ((comparison.a, "A"), (comparison.b, name)):
        if side.alone:
            lines.append(f"{_items(side.alone)} of {letter_} are not compared: the other side does not hold them.")
        if side.unscored:
            lines.append(f"{letter_} has {side.unscored:,} answers that were not judged; they are left out.")
    return lines


def _items(count: int) -> str:
    return "1 item" if count == 1 else f"{count:,} items"


FOOTNOTE: Final = (
    "Categories and dialects are tested together: their p-values are adjusted (Holm), their intervals are not."
)


def _row(found: Difference, *, wide: bool = True) -> list[str]:
    """What a table says of a group, after its name."""
    scores = [number(found.a), number(found.b)] if wide else []
    counts = [f"{found.wins:,}/{found.ties:,}/{found.losses:,}"] if wide else []
    return [
        f"{found.n:,}",
        *scores,
        signed(found.difference),
        signed_interval(found.low, found.high),
        probability(found.p_value if found.adjusted is None else found.adjusted),
        *counts,
        VERDICTS[found.verdict],
    ]


def _heads(name: str, *, wide: bool = True) -> list[str]:
    scores, counts = (["A", name], ["won/same/lost"]) if wide else ([], [])
    return ["n", *scores, f"{name} − A", "95 %", "p (Holm)", *counts, f"{name} is"]


def _lists(comparison: Comparison, name: str) -> Iterator[tuple[str, list[Change]]]:
    if comparison.regressed:
        yield f"Where {name} lost most", comparison.regressed[:LISTED]
    if comparison.improved:
        yield f"Where {name} gained most", comparison.improved[:LISTED]


def _sides(comparisons: Sequence[Comparison]) -> Iterator[tuple[str, Side, float | None]]:
    """Each run once: its letter, itself, its score; that of A only where all others are compared on the same items."""
    firsts = {None if one.overall is None else one.overall.a for one in comparisons}
    yield "A", comparisons[0].a, next(iter(firsts)) if len(firsts) == 1 else None
    for place, one in enumerate(comparisons, 1):
        yield letter(place), one.b, None if one.overall is None else one.overall.b


# --- terminal ------------------------------------------------------------------------------------------------


def print_comparisons(comparisons: Sequence[Comparison], console: Console) -> None:
    """Print what was compared, the result in a line for each run after the first, and the tables."""
    _print_sides(comparisons, console)
    for place, one in enumerate(comparisons, 1):
        style = _STYLES["unclear" if one.overall is None else one.overall.verdict]
        console.print(Text(headline(one.overall, letter(place)), style=style))
    for place, one in enumerate(comparisons, 1):
        _print_comparison(one, letter(place), console, alone=len(comparisons) == 1)
    console.print(Text(FOOTNOTE, style="dim"), soft_wrap=True)


def _print_sides(comparisons: Sequence[Comparison], console: Console) -> None:
    made = table_of(["", "run", "score", "judged", "from"], left={"", "run", "from"})
    for name, side, score in _sides(comparisons):
        cells = [Text(safe(text, console)) for text in (side.name, side.path)]
        made.add_row(name, cells[0], number(score), f"{side.judged:,}", cells[1])
    console.print(made)


def _print_comparison(comparison: Comparison, name: str, console: Console, *, alone: bool) -> None:
    wide = console.width >= _WIDE
    if not alone:
        console.print(Text(f"\n{name} and A", style="bold"))
    for line in [*details(comparison, name), *comparison.notes]:
        console.print(Text(safe(line, console)), soft_wrap=True)
    for title, groups in (("Category", comparison.categories), ("Dialect", comparison.dialects)):
        made = table_of([title, *_heads(name, wide=wide)], left={title, f"{name} is"})
        for group, found in groups.items():
            *cells, verdict = _row(found, wide=wide)
            style = _STYLES[found.verdict].removeprefix("bold ")
            made.add_row(Text(safe(group, console)), *cells, Text(verdict, style=style))
        console.print(made)
    for title, changes in _lists(comparison, name):
        made = table_of(
            [title, "category", "dialect", "A", name, f"{name} − A"], left={title, "category", "dialect"}, fold=False
        )
        for one in changes:
            words = [Text(safe(text, console)) for text in (one.item_id, one.category, one.dialect or "–")]
            made.add_row(*words, number(one.a), number(one.b), signed(one.difference))
        console.print(made)


# --- Markdown ------------------------------------------------------------------------------------------------


def markdown_comparisons(comparisons: Sequence[Comparison]) -> str:
    """The same as one Markdown document."""
    rows = [
        [name, plain(side.name), number(score), f"{side.judged:,}", plain(side.path)]
        for name, side, score in _sides(comparisons)
    ]
    parts = ["# Comparison", table(["", "run", "score", "judged", "from"], rows, left={"run", "from"})]
    parts += [f"**{headline(one.overall, letter(place))}**" for place, one in enumerate(comparisons, 1)]
    for place, one in enumerate(comparisons, 1):
        parts += _markdown_comparison(one, letter(place), alone=len(comparisons) == 1)
    return "\n\n".join([*parts, FOOTNOTE]) + "\n"


def _markdown_comparison(comparison: Comparison, name: str, *, alone: bool) -> list[str]:
    parts = [] if alone else [f"## {name} and A"]
    parts += [" ".join([*details(comparison, name), *(plain(note) for note in comparison.notes)])]
    for title, groups in (("Category", comparison.categories), ("Dialect", comparison.dialects)):
        rows = [[plain(group), *_row(found)] for group, found in groups.items()]
        parts.append(table([title, *_heads(name)], rows, left={f"{name} is"}))
    for title, changes in _lists(comparison, name):
        rows = [
            [plain(one.item_id), plain(one.category), plain(one.dialect or "–"),
             number(one.a), number(one.b), signed(one.difference)]
            for one in changes
        ]  # fmt: skip
        parts.append(table([title, "category", "dialect", "A", name, f"{name} − A"], rows, words=3))
    return parts
