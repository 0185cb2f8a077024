"""A leaderboard as one HTML file: models by rank, their categories and their dialects."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from arabic_agent_eval.reports.html_charts import span
from arabic_agent_eval.reports.html_frame import BOTH, render

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from arabic_agent_eval.items import Category
    from arabic_agent_eval.leaderboard import Leaderboard
    from arabic_agent_eval.reports.html_words import Language

_TOOK: Final = ("tokens_read", "tokens_written", "cost", "latency")


def leaderboard_page(
    found: Leaderboard,
    *,
    title: str = "",
    languages: Sequence[Language] = BOTH,
    categories: Mapping[str, Category] | None = None,
) -> str:
    """The whole leaderboard as one HTML document.

    Args:
        found: the leaderboard; every number of the page stands in it.
        title: what was ranked; the name of the items by default.
        languages: one page for each, the first one is shown at the beginning.
        categories: declared categories, for their Arabic names.
    """
    named = Counter(entry.name for entry in found.entries)
    scores = [entry.overall for entry in found.entries]
    return render(
        "leaderboard",
        title or found.entries[0].signature.partition("@")[0].removeprefix("items:"),
        languages,
        categories,
        found=found,
        alike={name for name, times in named.items() if times > 1},
        spans=[None if one is None else span(one.score, (one.low, one.high)) for one in scores],
        took=[name for name in _TOOK if any(getattr(entry, name) is not None for entry in found.entries)],
    )
