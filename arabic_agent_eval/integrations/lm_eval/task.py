"""What the tasks of lm-evaluation-harness call: the documents, the score of an answer, and the overall score.

The harness hands over text alone, so the tools stand in the prompt and calls are read from what the model wrote. It
asks once, so items that go on after a tool has answered are left out. ``evaluate_reply`` decides every score.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from arabic_agent_eval.asking import Offer, request_for
from arabic_agent_eval.bundled import find_categories, find_items, find_tools, is_bundled
from arabic_agent_eval.errors import MissingExtra
from arabic_agent_eval.items import Item, ItemSet, read_categories, read_item
from arabic_agent_eval.models.turns import content_text, earlier_turns
from arabic_agent_eval.scoring import CategoryScore, Grader, Score, compute_overall_score
from arabic_agent_eval.summary import weight_of
from arabic_agent_eval.tools import Toolbox
from arabic_agent_eval.world import is_conversation

_SPEAKERS = {"system": "", "user": "المستخدم: ", "assistant": "المساعد: "}
_MEASURED = ("function_selection", "argument_accuracy", "arabic_preservation")


def documents(items: str = "starter", tools: str | None = None, **_: Any) -> list[dict[str, Any]]:
    """The items of a set that one question and one answer can measure.

    Args:
        items: the name of a bundled set, or a file of items.
        tools: the tool registry; by default the one beside the items.

    Returns:
        For each item its id, the whole prompt, the item as JSON text, and the weight of its category.

    Raises:
        DataError: the items or tools cannot be read.
        UnknownCategory: an item's category has no weight.
    """
    path, offer = find_items(items), Offer(Toolbox.read(find_tools(items, tools)))
    declared = find_categories(items)
    categories = {} if declared is None else read_categories(declared)
    return [
        {
            "id": item.id,
            "prompt": prompt(item, offer),
            "item": msgspec.json.encode(item).decode(),
            "weight": weight_of(item.category, categories),
        }
        for item in ItemSet.read(path, name=items if is_bundled(path) else None).values()
        if not is_conversation(item)
    ]


def prompt(item: Item, offer: Offer) -> str:
    """The whole question as one text: system prompt with context and tools, and what was said so far."""
    request = request_for(item, offer, written=True)
    said = [f"{_SPEAKERS.get(turn.role, '')}{content_text(turn.parts)}" for turn in earlier_turns(request)]
    return "\n\n".join([request.system, *said])


def dataset(**options: Any) -> dict[str, Any]:
    """The documents as the harness wants them: a split ``test``; options as of :func:`documents`.

    Raises:
        MissingExtra: the package ``datasets`` is not installed, which comes with the harness.
    """
    try:
        from datasets import Dataset  # noqa: PLC0415 - heavy, and the harness's
    except ImportError:
        raise MissingExtra('This needs lm-evaluation-harness; install it with: pip install "lm-eval[api]"') from None
    return {"test": Dataset.from_list(documents(**options))}


@lru_cache(4096)
def _grader(item: str) -> Grader:
    return Grader(read_item(item.encode()))


def process_results(doc: Mapping[str, Any], results: Sequence[str | None]) -> dict[str, Any]:
    """The metrics of one answer.

    Args:
        doc: a document of :func:`documents`.
        results: what the model wrote; nothing in it raises. A server that gave no text said nothing.

    Returns:
        ``aae_score``: item, category, weight and axes, for :func:`overall`; ``aae_exact`` and the axes, for a mean.
    """
    grader = _grader(doc["item"])
    score = grader.evaluate(results[0] or "", causes=False).score
    assert score is not None  # noqa: S101 - a text is always judged
    axes = {axis: getattr(score, axis) for axis in _MEASURED}
    return {
        "aae_score": [score.item_id, score.category, doc["weight"], *axes.values()],
        "aae_exact": float(score.exact),
        **{f"aae_{axis}": value for axis, value in axes.items()},
    }


def overall(answers: Iterable[Sequence[Any]]) -> float:
    """The overall score as ``aae grade`` gives it, categories weighted; of what ``aae_score`` holds for each answer."""
    scores: dict[tuple[str, float], list[Score]] = {}
    for item_id, category, weight, *axes in answers:
        scores.setdefault((category, weight), []).append(Score(item_id, category, *axes))
    return compute_overall_score(CategoryScore(name, members, weight) for (name, weight), members in scores.items())
