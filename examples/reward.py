"""A reward for training: the total of each completion, from 0 to 1, or 1 only where everything is right.

Trainers that sample several completions of one prompt call a function with lists and want a number for each. The same
object is a reward function of TRL's GRPO trainer as it stands. Run it with ``python examples/reward.py``.
"""

from __future__ import annotations

from arabic_agent_eval import ExpectedCall, Item
from arabic_agent_eval.integrations.rewards import ToolCallReward

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


COMPLETIONS = [
    '<tool_call>{"name": "get_weather", "arguments": {"city": "الإسكندرية", "date": "غداً"}}</tool_call>',
    '<tool_call>{"name": "get_weather", "arguments": {"city": "اسكندرية", "date": "بكرة"}}</tool_call>',
    '<think>{"name": "get_weather", "arguments": {}}</think> مش عارف',
    '<tool_call>{"name": "get_weather", "arguments": {"city": "الإسكن',
]


def main() -> None:
    """Print the rewards of four completions of one prompt."""
    reward, strict = ToolCallReward(ITEMS), ToolCallReward(ITEMS, strict=True, name="strict")
    ids = ["weather"] * len(COMPLETIONS)
    for text, total, exact in zip(COMPLETIONS, reward(COMPLETIONS, ids), strict(COMPLETIONS, ids), strict=True):
        print(f"{total:.4f} {exact:.0f}  {text}")


if __name__ == "__main__":
    main()
