"""Scores of single items, made by hand."""

from __future__ import annotations

import random

from arabic_agent_eval.scores import ItemScores, Scores
from arabic_agent_eval.scoring import Signature

SIGNATURE = Signature("set@0123456789ab", 8, "canonical-1")
CATEGORIES = ["simple_function_calling", "multi_step", "tool_selection"]
DIALECTS = ["msa", "gulf", None]


def answer(item_id, *totals, category="multi_step", dialect="msa", intent=None, unscored=0, axes=None):
    """One item with its totals, one for each judged epoch."""
    axes = {"function_selection": sum(totals) / len(totals)} if totals and axes is None else axes or {}
    return ItemScores(item_id, category, dialect, intent, totals, axes, arabic=True, unscored=unscored)


def scores(*items, name="model", signature=SIGNATURE):
    """The scores of a model."""
    return Scores(name, f"{name}.jsonl", signature, {one.item_id: one for one in items})


def column(totals, name="model", **more):
    """One item for each total, of one category and dialect unless told otherwise."""
    return scores(*(answer(f"i{place}", total, **more) for place, total in enumerate(totals)), name=name)


def drawn(seed, n=40, name="model"):
    """Random scores of items whose facts do not depend on the seed."""
    chance = random.Random(seed)
    return scores(
        *(
            answer(
                f"i{place:02}", *(chance.choice([0.0, 0.3, 0.6, 0.9, 1.0]) for _ in range(1 + place % 2)),
                category=CATEGORIES[place % 3], dialect=DIALECTS[place % 2 + place % 5 // 4],
                intent=f"said {place // 3}" if place % 4 else None,
            )
            for place in range(n)
        ),
        name=name,
    )  # fmt: skip
