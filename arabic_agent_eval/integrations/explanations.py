"""Why an answer lost its points, in sentences: what every door shows where its host has room for a text."""

from __future__ import annotations

import math
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import msgspec

from arabic_agent_eval.errors import UsageError
from arabic_agent_eval.grading import WILDCARD
from arabic_agent_eval.reports.alignment import COMPARED, align, character_pairs
from arabic_agent_eval.reports.html_words import Language, Wording
from arabic_agent_eval.tables import number
from arabic_agent_eval.text import name_invisible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arabic_agent_eval.items import Item
    from arabic_agent_eval.scoring import Loss, Result

LANGUAGES: Final[dict[str, tuple[Language, ...]]] = {"en": ("en",), "ar": ("ar",), "both": ("en", "ar")}
"""What a language can be given as → the languages that are written, in their order."""

_MOST: Final = 50  # reasons that are written out


def explain(item: Item, result: Result, language: str = "both", *, said: str = "") -> str:
    """The score of an answer and where its points went, in one language or in both.

    Args:
        item: what was asked.
        result: of an answer to it, judged with causes.
        language: ``en``, ``ar`` or ``both``.
        said: what the model said; it is shown where it called nothing.

    Raises:
        UsageError: there is no such language.
    """
    parts = []
    for one in languages_of(language):
        word = Wording(one)
        parts.append("\n".join([_head(result, word), *reasons(item, result, word, said=said)]))
    return "\n\n".join(parts)


def languages_of(language: object) -> tuple[Language, ...]:
    """The languages that a name stands for.

    Raises:
        UsageError: it stands for none.
    """
    if not isinstance(language, str) or language not in LANGUAGES:
        raise UsageError(f"a language is one of {', '.join(LANGUAGES)}, not {language!r}.")
    return LANGUAGES[language]


def _head(result: Result, word: Wording) -> str:
    """The score and its axes; why there is none."""
    if result.score is None:
        return f"{word('not_judged')}: {_shown(word.reason(result.reason or ''))}"
    axes = {axis: number(value) for axis, value in result.score.axes.items() if value is not None}
    if not result.arabic_applicable:
        axes["arabic_preservation"] = word("not_applicable")
    return f"{word('score')} {number(result.score.total)}: " + word("comma").join(
        f"{word.axis(axis)} {value}" for axis, value in axes.items()
    )


def reasons(item: Item, result: Result, word: Wording, *, said: str = "") -> list[str]:
    """Where the points of an answer went, in lines: call, argument and cause, and what differs letter by letter.

    Args:
        item: what was asked.
        result: of an answer to it.
        word: the words of a language.
        said: what the model said; it is shown where it called nothing.
    """
    if result.score is None:
        return []
    groups: dict[tuple[int | None, str | None, str], list[Loss]] = {}
    for loss in result.losses:
        groups.setdefault((loss.call, loss.argument, loss.cause), []).append(loss)
    lines = [line for losses in islice(groups.values(), _MOST) for line in _reason(item, losses, word)]
    if len(groups) > _MOST:
        lines.append(word("and_more", n=len(groups) - _MOST))
    if said and groups and not result.calls:
        lines.append(f"{word('said')}: {_shown(said)}")
    return lines or [word("no_losses")]


def _reason(item: Item, losses: Sequence[Loss], word: Wording) -> list[str]:
    """One cause: what it cost and where, and below it the two values."""
    first, points = losses[0], math.fsum(loss.points for loss in losses)
    often = f" ×{first.count}" if first.count > 1 else ""
    head = f"−{number(points)} {first.cause}{often}: {word.cause(first.cause)}"
    place = _place(item, first, word)
    expected, actual = _values(first, word)
    lines = [f"{place}: {head}" if place else head, f"  {word('expected')}: {_shown(expected)}"]
    lines.append(f"  {word('actual')}: {_shown(actual)}")
    if first.argument is not None and first.actual is not None:
        named = character_pairs(align(written(first.expected), written(first.actual)))
        nothing = word("nothing")
        if named:
            pairs = "; ".join(f"{there or nothing} → {here or nothing}" for there, here in named)
            lines.append(f"  {word('differs')}: {pairs}")
    return lines


def _place(item: Item, loss: Loss, word: Wording) -> str:
    if loss.call is None:
        return ""
    place = word("call", n=loss.call + 1)
    if loss.cause != "extra_call" and loss.call < len(item.expected_calls):
        place += f" ({_shown(item.expected_calls[loss.call].function)})"
    return place if loss.argument is None else f"{place} · {_shown(loss.argument)}"


def _values(loss: Loss, word: Wording) -> tuple[str, str]:
    """Both sides as text; differing letters of an argument in brackets."""
    from arabic_agent_eval.reports.item import compare_letters  # noqa: PLC0415 - tables and colours come with it

    nothing = word("nothing")
    if loss.actual is None or loss.expected is None:
        expected = word("any_value") if loss.expected == WILDCARD else written(loss.expected)
        return (
            nothing if loss.expected is None else expected,
            nothing if loss.actual is None else written(loss.actual),
        )
    if loss.argument is None:
        return written(loss.expected), written(loss.actual)
    left, right, _ = compare_letters(written(loss.expected), written(loss.actual))
    return left, right


def written(value: Any) -> str:
    """A value as text: text as it stands, all else as JSON, and what JSON cannot hold as Python writes it."""
    if isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value).decode()
    except RecursionError:
        return "…"
    except (TypeError, ValueError, OverflowError):
        try:
            return repr(value)
        except (RecursionError, ValueError):  # whole numbers of thousands of digits are not written
            return "…"


def _shown(text: str) -> str:
    """Text from elsewhere on one line, cut, with everything invisible named."""
    shown = name_invisible(text[:COMPARED], spaces=True)
    return shown if len(text) <= COMPARED else f"{shown}…"
