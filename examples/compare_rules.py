"""Which answers score otherwise under the canonical rules than under v0.1, and by which rule.

Run it with ``python examples/compare_rules.py ITEMS REPLIES...``. Every file of replies, with one answer an item, is
graded under both rule sets. Then one field of ``Rules`` at a time is set from v0.1 to
canonical, and an answer is listed under each field that changes its score.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from arabic_agent_eval import (
    CANONICAL,
    V0_1,
    CategoryScore,
    Grader,
    ItemSet,
    Rules,
    Score,
    compute_overall_score,
    read_reply,
)
from arabic_agent_eval.files import numbered_lines, read_json, read_json_line

Scores = dict[str, Score | None]


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a published run file (one JSON object), or of JSONL."""
    if path.suffix == ".json":
        rows: list[dict[str, Any]] = read_json(path)["results"]
        return rows
    return [read_json_line(line, str(path), number) for number, line in numbered_lines(path)]


def score_all(items: ItemSet, rows: Iterable[Mapping[str, Any]], rules: Rules) -> Scores:
    """Item → its score under the rules, None where it is unscored."""
    replies = [read_reply(row) for row in rows]
    graded = [Grader(items[reply.item_id], rules).evaluate(reply, causes=False) for reply in replies]
    return {result.item_id: result.score for result in graded}


def overall(scores: Scores) -> float:
    """The overall score of a run."""
    by_category: dict[str, list[Score]] = {}
    for score in scores.values():
        if score is not None:
            by_category.setdefault(score.category, []).append(score)
    return compute_overall_score(CategoryScore(name, members) for name, members in by_category.items())


def changed(old: Scores, new: Scores) -> list[str]:
    """The items whose scores differ, with both totals."""
    return [
        f"{item_id}: {_total(old[item_id])} -> {_total(new[item_id])}"
        for item_id in old
        if old[item_id] != new[item_id]
    ]


def _total(score: Score | None) -> str:
    return "unscored" if score is None else f"{score.total:.4f}"


def main(arguments: list[str]) -> None:
    """Print, for each file of replies, both overall scores and every answer that changes."""
    if len(arguments) < 2:  # noqa: PLR2004 - the items and at least one file of replies
        sys.exit("usage: python examples/compare_rules.py ITEMS REPLIES...")
    items = ItemSet.read(arguments[0])
    for path in map(Path, arguments[1:]):
        rows = read_rows(path)
        old, new = score_all(items, rows, V0_1), score_all(items, rows, CANONICAL)
        print(f"{path.stem}: v0.1 {overall(old):.4f}, canonical {overall(new):.4f}")
        print(f"  {len(changed(old, new))} of {len(rows)} answers change")
        for field in fields(Rules):
            if field.name not in {"name", "version"}:
                one = replace(V0_1, **{field.name: getattr(CANONICAL, field.name)})
                for line in changed(old, score_all(items, rows, one)):
                    print(f"  by {field.name}: {line}")


if __name__ == "__main__":
    main(sys.argv[1:])
