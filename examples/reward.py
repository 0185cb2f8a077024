"""A reward for training: the total of each completion, from 0 to 1.

Trainers that sample several completions of one prompt call a function with lists and want a number for each. An item
is compiled once and asked many times; causes are left out, which is faster. Run it with ``python examples/reward.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from arabic_agent_eval import ExpectedCall, Grader, Item, read_reply

ITEMS = [
    Item(
        id="weather",
        category="dialect_handling",
        dialect="egyptian",
        instruction="الجو عامل إيه في إسكندرية بكرة؟",
        available_functions=["get_weather", "get_news"],
        expected_calls=[ExpectedCall("get_weather", {"city": "الإسكندرية", "date": "بكرة"}, {"date": ["غداً"]})],
    ),
]


class ToolCallReward:
    """Rewards for completions in raw text.

    Args:
        items: the items that prompts are made from.
    """

    def __init__(self, items: Sequence[Item]) -> None:
        self._graders: Mapping[str, Grader] = {item.id: Grader(item) for item in items}

    def __call__(self, completions: Sequence[str], item_ids: Sequence[str]) -> list[float]:
        """The total of each completion; what cannot be read as a call is worth 0 and never raises."""
        return [self._reward(text, item_id) for text, item_id in zip(completions, item_ids, strict=True)]

    def _reward(self, text: str, item_id: str) -> float:
        reply = read_reply({"id": item_id, "text": text})
        score = self._graders[item_id].evaluate(reply, causes=False).score
        return 0.0 if score is None else score.total


COMPLETIONS = [
    '<tool_call>{"name": "get_weather", "arguments": {"city": "الإسكندرية", "date": "غداً"}}</tool_call>',
    '<tool_call>{"name": "get_weather", "arguments": {"city": "اسكندرية", "date": "بكرة"}}</tool_call>',
    '<think>{"name": "get_weather", "arguments": {}}</think> مش عارف',
    '<tool_call>{"name": "get_weather", "arguments": {"city": "الإسكن',
]


def main() -> None:
    """Print the reward of four completions of one prompt."""
    reward = ToolCallReward(ITEMS)
    for text, value in zip(COMPLETIONS, reward(COMPLETIONS, ["weather"] * len(COMPLETIONS)), strict=True):
        print(f"{value:.4f}  {text}")


if __name__ == "__main__":
    main()
