"""What was called where which tool was expected."""

from __future__ import annotations

from arabic_agent_eval.items import ExpectedCall
from arabic_agent_eval.tool_choices import Absent, ToolChoice, ToolChoices
from arabic_agent_eval.tools import Call
from tests.test_html import row_with


def test_tools_that_met():
    """Which tool was called where another was expected, surplus and unreadable calls included."""
    choices = ToolChoices()
    expected = [ExpectedCall("f"), ExpectedCall("g"), ExpectedCall("*")]
    for calls in (["f", "g", "x", "y"], ["g", None], ["f", "g", None]):
        made = [Call(name) for name in calls]
        choices.add(row_with(0.5, expected_calls=expected, actual_calls=made))
    choices.add(row_with(None, expected_calls=expected))

    assert choices.counted() == [
        ToolChoice("*", times=3, right=1, instead={}, nothing=1, unreadable=1),
        ToolChoice("f", times=3, right=2, instead={"g": 1}, nothing=0, unreadable=0),
        ToolChoice("g", times=3, right=2, instead={}, nothing=0, unreadable=1),
        ToolChoice(None, times=1, right=0, instead={"y": 1}, nothing=0, unreadable=0),
    ]


def test_what_stood_in_its_place():
    """The most frequent stands first, whether it is a tool or none."""
    choice = ToolChoice("f", times=9, right=1, instead={"g": 3, "h": 1}, nothing=4, unreadable=0)

    assert choice.wrong == 8
    assert choice.in_its_place == [(Absent.NOTHING, 4), ("g", 3), ("h", 1)]
