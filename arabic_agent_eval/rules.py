"""Rule sets, axes and weights: every number of the specification that is not a rung of the ladder.

There is one grader; a :class:`Rules` value holds all that differs between rule sets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

AXES: Final = (
    "function_selection",
    "argument_accuracy",
    "arabic_preservation",
    "dialect_understanding",
    "error_handling",
)

Weights = tuple[float, float, float, float]
"""The weights of function, argument, preservation, and of the category's own axis (which equals function)."""

STANDARD: Final[Weights] = (0.40, 0.35, 0.25, 0.0)
COMPOSITIONS: Final[Mapping[str, tuple[Weights, str]]] = {
    "dialect_handling": ((0.30, 0.20, 0.20, 0.30), "dialect_understanding"),
    "error_recovery": ((0.30, 0.20, 0.20, 0.30), "error_handling"),
}
"""Category → weights and its own axis; every other category uses the standard composition (ruling 19)."""


def composition(category: str) -> tuple[Weights, str | None]:
    """The weights of a category's axes, and the name of its own axis or None (ruling 16)."""
    return COMPOSITIONS.get(category, (STANDARD, None))


@dataclass(frozen=True)
class Rules:
    """What differs between rule sets; everything else is the same grader.

    Attributes:
        name: as ``--rules`` and every signature say it.
        version: raised with every change of what the rules mean.
        missing_arabic: whether a missing Arabic-valued argument is ``lost`` or ``left_out`` of preservation.
        surplus_arguments: argument accuracy when no argument was expected and some were given.
        value_text: scalars written as canonical ``json`` (ruling 1) or by ``python``'s str.
        nothing_expected: whether to ``abstain`` scores 1 when no call is expected, or everything is ``zero``.
        empty_matches: whether two empty normal forms match (ruling 5: no).
        containers: compared by ``members`` (ruling 6) or as one ``text``.
        lower_case: applied ``after`` folding to what holds no Arabic then (ruling 4), or ``before``.
        failed_row: a row with a provider's error is ``unscored`` (ruling 17) or counts as ``zero``.
    """

    name: str
    version: int
    missing_arabic: Literal["lost", "left_out"] = "lost"
    surplus_arguments: float = 1.0
    value_text: Literal["json", "python"] = "json"
    nothing_expected: Literal["abstain", "zero"] = "abstain"
    empty_matches: bool = False
    containers: Literal["members", "text"] = "members"
    lower_case: Literal["after", "before"] = "after"
    failed_row: Literal["unscored", "zero"] = "unscored"

    @property
    def tag(self) -> str:
        """Name and version, as signatures show them."""
        return f"{self.name}-{self.version}"


CANONICAL: Final = Rules("canonical", 1)
"""The canonical rules: ``canonical-grading`` as the rulings make it exact."""

V0_1: Final = Rules(
    "v0.1",
    1,
    missing_arabic="left_out",
    surplus_arguments=0.5,
    value_text="python",
    nothing_expected="zero",
    empty_matches=True,
    containers="text",
    lower_case="before",
    failed_row="zero",
)
"""The rules that reproduce the numbers published in April 2026."""

RULES: Final[Mapping[str, Rules]] = {rules.name: rules for rules in (CANONICAL, V0_1)}
