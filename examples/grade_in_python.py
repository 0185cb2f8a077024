"""Grade three answers to one item and print why each lost its points.

Run it with ``python examples/grade_in_python.py``.
"""

from __future__ import annotations

from typing import Any

from arabic_agent_eval import ExpectedCall, Grader, Item, read_reply
from arabic_agent_eval.causes import words

ITEM = Item(
    id="flight",
    category="simple_function_calling",
    dialect="gulf",
    instruction="أبي رحلة من الرياض إلى جدة يوم الخميس",
    expected_calls=[
        ExpectedCall("search_flights", {"from_city": "الرياض", "to_city": "جدة", "date": "الخميس"}),
    ],
)

ANSWERS: list[dict[str, Any]] = [
    # Right but for the spelling of one city: ta marbuta written as ha.
    {
        "id": "flight",
        "epoch": 0,
        "calls": [
            {"function": "search_flights", "arguments": {"from_city": "الرياض", "to_city": "جده", "date": "الخميس"}},
        ],
    },
    # OpenAI's shape, with the arguments as text: one city by its English name, one date with a word more.
    {
        "id": "flight",
        "epoch": 1,
        "tool_calls": [
            {
                "type": "function",
                "function": {
                    "name": "search_flights",
                    "arguments": '{"from_city": "Riyadh", "to_city": "جدة", "date": "يوم الخميس"}',
                },
            },
        ],
    },
    # A model that asks back instead of calling.
    {"id": "flight", "epoch": 2, "text": "متى تبغى ترجع؟"},
]


def main() -> None:
    """Grade every answer and print its score and its losses."""
    grader = Grader(ITEM)
    for answer in ANSWERS:
        result = grader.evaluate(read_reply(answer))
        if result.score is None:
            print(f"answer {result.epoch}: unscored, {result.reason}")
            continue
        print(f"answer {result.epoch}: {result.score.total:.4f}")
        for loss in result.losses:
            where = loss.argument or "the call"
            print(f"  -{loss.points:.4f} {loss.axis}, {where}: {loss.cause}")
            print(f"      {words(loss.cause)} {words(loss.cause, 'ar')}")


if __name__ == "__main__":
    main()
