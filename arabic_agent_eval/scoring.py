"""The door: answers in, judgement out, and the names that the specification requires.

:func:`evaluate_reply` is the one path by which a live run, a file, a reward and every other host are graded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from arabic_agent_eval._version import __version__
from arabic_agent_eval.diagnosis import Loss, diagnose
from arabic_agent_eval.errors import UnknownCategory, UsageError
from arabic_agent_eval.formats import Reply, read_calls, reply_text
from arabic_agent_eval.grading import (
    PLAIN_TYPES,
    WILDCARD,
    Expectation,
    Verdict,
    compare_arguments,
    expected_call,
    is_identical,
)
from arabic_agent_eval.items import CATEGORIES, AnswerKey, ExpectedCall, Item
from arabic_agent_eval.rules import AXES, CANONICAL, RULES, V0_1, Rules, composition
from arabic_agent_eval.shortcuts import expects_arabic
from arabic_agent_eval.strictjson import too_deep
from arabic_agent_eval.text import normalize_arabic
from arabic_agent_eval.tools import Call

__all__ = [
    "AXES",
    "CANONICAL",
    "RULES",
    "V0_1",
    "Call",
    "CategoryScore",
    "Grader",
    "Loss",
    "Result",
    "Rules",
    "Score",
    "Signature",
    "compute_overall_score",
    "evaluate_reply",
    "grade",
    "normalize_arabic",
    "score_calls",
    "score_function_call",
]

_TOLERANCE = 1e-12
_FLAT = {str, int, float, bool, type(None)}  # without members, and so never too deep
_GRADES = ((0.9, "A"), (0.8, "B"), (0.7, "C"), (0.6, "D"))


@dataclass(frozen=True, slots=True)
class Score:
    """The axes of one item.

    Attributes:
        item_id: the item.
        category: decides the weights in :attr:`total`.
        function_selection: 0 to 1, the share of slots with the right function.
        argument_accuracy: 0 to 1.
        arabic_preservation: 0 to 1; 1.0 where nothing Arabic was expected (ruling 10).
        dialect_understanding: as function selection in category ``dialect_handling``, else None (ruling 16).
        error_handling: as function selection in category ``error_recovery``, else None (ruling 16).
    """

    item_id: str
    category: str
    function_selection: float
    argument_accuracy: float
    arabic_preservation: float = 0.0
    dialect_understanding: float | None = None
    error_handling: float | None = None

    def __post_init__(self) -> None:
        _, own = composition(self.category)
        if own is not None and getattr(self, own) is None:
            object.__setattr__(self, own, self.function_selection)

    @property
    def total(self) -> float:
        """The weighted sum of the axes, 0 to 1; weights as the specification composes them per category."""
        (function, argument, arabic, own_weight), own = composition(self.category)
        total = function * self.function_selection + argument * self.argument_accuracy
        total += arabic * self.arabic_preservation
        return total if own is None else total + own_weight * getattr(self, own)

    @property
    def exact(self) -> bool:
        """Whether every axis is 1."""
        return all(value is None or value > 1 - _TOLERANCE for value in self.axes.values())

    @property
    def axes(self) -> dict[str, float | None]:
        """Axis → value, None where the category does not have it."""
        return {axis: getattr(self, axis) for axis in AXES}


class CategoryScore:
    """The scores of one category.

    Args:
        category: its name.
        scores: one :class:`Score` an item; unscored items are left out (ruling 17).
        weight: its weight in the overall score, a finite number of at least 0; the canonical one by default.

    Raises:
        UsageError: the weight is negative or not finite.
    """

    def __init__(self, category: str, scores: Iterable[Score], weight: float | None = None) -> None:
        if weight is not None and not 0 <= weight < math.inf:
            raise UsageError(f"the weight of {category!r} must be a finite number of at least 0, not {weight!r}.")
        self.category = category
        self.scores = list(scores)
        self._weight = weight

    def __repr__(self) -> str:
        return f"CategoryScore({self.category!r}, {self.count} scores, avg_total={self.avg_total:.4f})"

    @property
    def weight(self) -> float:
        """The category's weight.

        Raises:
            UnknownCategory: none was declared and the category is not canonical (ruling 19).
        """
        if self._weight is not None:
            return self._weight
        if self.category in CATEGORIES:
            return CATEGORIES[self.category].weight
        raise UnknownCategory(
            f"the category {self.category!r} has no declared weight. Declare one: it is not one of the six canonical "
            "categories, and leaving it out of the overall score must be said with a weight of 0."
        )

    @property
    def count(self) -> int:
        """How many scores there are."""
        return len(self.scores)

    @property
    def avg_total(self) -> float:
        """The mean total, 0 to 1; 0.0 without scores."""
        return self._mean(lambda score: score.total) or 0.0

    @property
    def avg_function_selection(self) -> float:
        """The mean of the axis; 0.0 without scores."""
        return self._mean(lambda score: score.function_selection) or 0.0

    @property
    def avg_argument_accuracy(self) -> float:
        """The mean of the axis; 0.0 without scores."""
        return self._mean(lambda score: score.argument_accuracy) or 0.0

    @property
    def avg_arabic_preservation(self) -> float:
        """The mean of the axis, items where it is not applicable counting 1.0; 0.0 without scores."""
        return self._mean(lambda score: score.arabic_preservation) or 0.0

    @property
    def avg_dialect_understanding(self) -> float | None:
        """The mean of the axis over the scores that have it; None where none has."""
        return self._mean(lambda score: score.dialect_understanding)

    @property
    def avg_error_handling(self) -> float | None:
        """The mean of the axis over the scores that have it; None where none has."""
        return self._mean(lambda score: score.error_handling)

    def _mean(self, axis: Callable[[Score], float | None]) -> float | None:
        values = [value for value in map(axis, self.scores) if value is not None]
        return math.fsum(values) / len(values) if values else None


def compute_overall_score(category_scores: Iterable[CategoryScore]) -> float:
    """Σ (average total × weight) / Σ weight over the categories that have scores (ruling 18); 0.0 without any.

    Raises:
        UnknownCategory: a category with scores has no declared weight (ruling 19).
    """
    scored = [category for category in category_scores if category.count]
    weight = math.fsum(category.weight for category in scored)
    return math.fsum(category.avg_total * category.weight for category in scored) / weight if weight else 0.0


def grade(score: float) -> str:
    """The letter of a score (ruling 20): A ≥ 0.9, B ≥ 0.8, C ≥ 0.7, D ≥ 0.6, else F.

    >>> grade(0.9), grade(0.61), grade(0.2)
    ('A', 'D', 'F')
    """
    # A mean of 0.9 may come out a few units of rounding below it.
    return next((letter for bound, letter in _GRADES if score >= bound - _TOLERANCE), "F")


def score_function_call(
    expected_fn: str | None,
    actual_fn: str | None,
    expected_args: Mapping[str, Any] | None,
    actual_args: Any = None,
) -> tuple[float, float, float]:
    """Compare one expected with one actual call: (function, argument, arabic), each 0 to 1.

    Args:
        expected_fn: the right tool; ``"*"`` accepts any that was called.
        actual_fn: the tool that was called; None when nothing was called: (0, 0, 0).
        expected_args: the right arguments; None is as ``{}``.
        actual_args: the arguments as they came: an object, JSON text, or None; what is not one JSON object
            scores 0 on arguments (ruling 12).

    Raises:
        DataError: the expected call is not a call.

    >>> score_function_call("get_weather", "get_weather", {"city": "جدة"}, {"city": "جده"})
    (1.0, 0.9, 1.0)
    """
    if actual_fn is None:
        return (0.0, 0.0, 0.0) if expected_fn is not None else (1.0, 1.0, 1.0)
    if expected_fn is None:
        return (0.0, 0.0, 0.0)
    if (
        expected_fn
        and actual_fn
        and type(actual_fn) is type(expected_fn) is str
        and type(actual_args) is type(expected_args) is dict
    ):
        function = 1.0 if expected_fn in {actual_fn, WILDCARD} else 0.0
        kinds, wanted = set(map(type, actual_args.values())), set(map(type, expected_args.values()))
        is_plain = kinds == wanted and kinds <= PLAIN_TYPES
        if actual_args == expected_args if is_plain else is_identical(expected_args, actual_args):
            return function, 1.0, 1.0
        if (kinds | wanted) <= _FLAT or not (too_deep(actual_args) or too_deep(expected_args)):
            argument, arabic = compare_arguments(expected_args, actual_args)
            return function, argument, 1.0 if arabic is None else arabic
    expected = expected_call({"function": expected_fn, "arguments": expected_args})
    verdict = Expectation((expected,), category="").judge((Call.read(actual_fn, actual_args),))
    return verdict.function, verdict.argument, verdict.arabic


def score_calls(
    expected: Sequence[Call | ExpectedCall | Mapping[str, Any]],
    actual: Sequence[Call | Mapping[str, Any]],
    *,
    category: str,
    item_id: str = "",
    ordered: bool = True,
    rules: Rules = CANONICAL,
) -> Score:
    """Score the calls of one item.

    Args:
        expected: the right calls, each a :class:`Call` or a mapping with ``function`` and ``arguments``
            (and perhaps ``accept``).
        actual: the calls that were made, of the same kinds.
        category: decides the weights; any name is allowed here.
        item_id: kept in the score.
        ordered: False takes the best pairing instead of the places (ruling 14).
        rules: the rule set.

    Raises:
        DataError: an expected call is not a call. What was actually called never raises.
    """
    expectation = Expectation(map(expected_call, expected), category=category, ordered=ordered, rules=rules)
    return _score(expectation.judge([Call.of(call) for call in actual]), item_id, category)


def _score(verdict: Verdict, item_id: str, category: str) -> Score:
    return Score(item_id, category, verdict.function, verdict.argument, verdict.arabic)


class Result(msgspec.Struct, frozen=True):
    """The judgement of one reply.

    Attributes:
        item_id, category, dialect, epoch: which item and which asking of it.
        score: the axes, or None when the item is unscored.
        reason: why it is unscored (ruling 17), or None.
        arabic_applicable: whether anything Arabic was expected (ruling 10).
        losses: causes and points; they sum to 1 − total. Empty without causes.
        calls: the calls that were read from the reply.
    """

    item_id: str
    category: str
    dialect: str | None
    epoch: int
    score: Score | None
    reason: str | None
    arabic_applicable: bool
    losses: tuple[Loss, ...]
    calls: tuple[Call, ...]

    @classmethod
    def unscored(cls, item: AnswerKey, epoch: int, reason: str) -> Result:
        """What is said of an item that has no answer, and why it has none."""
        arabic = expects_arabic(item.expected_calls)
        return cls(item.id, item.category, item.dialect, epoch, None, reason, arabic, (), ())

    @property
    def status(self) -> Literal["scored", "unscored"]:
        """``unscored`` when the provider failed: neither right nor wrong."""
        return "unscored" if self.score is None else "scored"


class Grader:
    """One item, compiled for one rule set, for grading many replies to it."""

    __slots__ = ("_offered", "expectation", "item")

    def __init__(self, item: AnswerKey, rules: Rules = CANONICAL) -> None:
        if not isinstance(item, AnswerKey):
            raise UsageError("a grader is made from an Item; ItemSet.read(path)[item_id] gives one.")
        self.item = item
        self.expectation = Expectation.of(item, rules)
        self._offered: frozenset[str] | None = None

    @property
    def arabic(self) -> bool:
        """Whether the item expects anything Arabic."""
        return self.expectation.arabic

    @property
    def offered(self) -> frozenset[str]:
        """The names of the offered tools, for replies in raw text."""
        if self._offered is None:
            self._offered = self.item.offered if isinstance(self.item, Item) else frozenset()
        return self._offered

    def evaluate(self, reply: Reply | str, *, causes: bool = True) -> Result:
        """Judge one reply, or the raw text of one; nothing that a reply holds raises.

        Raises:
            DataError: the reader of a format of an installed package failed.
            UsageError: this is no reply, or a reply to another item.
        """
        if isinstance(reply, str):
            reply = reply_text(reply, self.item.id)
        if not isinstance(reply, Reply):
            raise UsageError("a reply is what formats.read_reply returns, or the raw text of the model.")
        if reply.item_id not in {"", self.item.id}:
            raise UsageError(f"the reply answers item {reply.item_id!r}, not {self.item.id!r}.")
        if reply.failure is not None:
            if self.expectation.rules.failed_row == "unscored":
                return self._result(reply, None, (), ())
            calls: tuple[Call, ...] = ()
        else:
            calls = read_calls(reply, self.offered)
        verdict = self.expectation.judge(calls)
        losses = diagnose(verdict, self.expectation, calls) if causes else ()
        return self._result(reply, verdict, losses, calls)

    def _result(
        self, reply: Reply, verdict: Verdict | None, losses: tuple[Loss, ...], calls: tuple[Call, ...]
    ) -> Result:
        item = self.item
        return Result(
            item_id=item.id,
            category=item.category,
            dialect=item.dialect,
            epoch=reply.epoch,
            score=None if verdict is None else _score(verdict, item.id, item.category),
            reason=reply.failure if verdict is None else None,
            arabic_applicable=self.expectation.arabic,
            losses=losses,
            calls=calls,
        )


def evaluate_reply(item: Item, reply: Reply | str, *, rules: Rules = CANONICAL, causes: bool = True) -> Result:
    """Judge one reply to one item: the door by which every host enters.

    Args:
        item: the item; to grade many replies to it, keep a :class:`Grader`.
        reply: what ``formats.read_reply`` read, or the raw text of the model.
        rules: the rule set.
        causes: whether to explain lost points; without it grading is several times faster.

    Raises:
        DataError: the reader of a format of an installed package failed.
        UsageError: this is no item, no reply, or a reply to another item.
    """
    return Grader(item, rules).evaluate(reply, causes=causes)


@dataclass(frozen=True)
class Signature:
    """What a number was computed from; two numbers are comparable when their signatures agree.

    Attributes:
        items: name and fingerprint of the item set, ``name@fingerprint``.
        n: how many items it holds.
        rules: name and version of the rules.
        format: how replies were read.
        epochs: how often each item was asked.
        version: of this package.
        weights: of the categories: ``canonical``, or eight hexadecimal digits that name declared ones.
    """

    items: str
    n: int
    rules: str
    format: str = "auto"
    epochs: int = 1
    version: str = __version__
    weights: str = "canonical"

    def __str__(self) -> str:
        weights = "" if self.weights == "canonical" else f"|weights:{self.weights}"
        return f"{self._asked}|epochs:{self.epochs}{weights}|v:{self.version}"

    @property
    def _asked(self) -> str:
        return f"items:{self.items}|n:{self.n}|rules:{self.rules}|format:{self.format}"

    @property
    def of_grading(self) -> str:
        """The signature without the number of epochs, which is known only when all answers have been read."""
        return f"{self._asked}|v:{self.version}"

    @classmethod
    def read(cls, text: str) -> Signature:
        """The signature that was written as text.

        Raises:
            UsageError: the text is not a signature.
        """
        parts = dict(part.partition(":")[::2] for part in text.split("|"))
        try:
            n, epochs = int(parts["n"]), int(parts.get("epochs", 1))
            weights = parts.get("weights", "canonical")
            return cls(parts["items"], n, parts["rules"], parts["format"], epochs, parts["v"], weights)
        except (KeyError, ValueError):
            raise UsageError(
                "this is not a signature of this package: it lacks items, n, rules, format or v."
            ) from None
