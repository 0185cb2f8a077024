"""Which tools a request asks for, and which part of it each of them answers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from arabic_agent_eval.models.heuristics.filling import Filler, is_money
from arabic_agent_eval.models.heuristics.mentions import Reading
from arabic_agent_eval.models.heuristics.moments import Clock
from arabic_agent_eval.models.heuristics.parameters import NEGATIONS, head, properties_of
from arabic_agent_eval.models.heuristics.vocabulary import WEIGHTS, features_in, features_of, listed, ordered_features
from arabic_agent_eval.tools import Tool

_ENOUGH = 0.8
_NEAR = 0.5
_RIVAL = 0.8
_NEGATED = 4
_SAID = 0.25  # a word of a parameter's description does not tell tools apart
_MOST_STEPS, _MOST_RIVALS = 8, 3
_LEADING, _FIRST_WORDS = 1.5, 3  # what is to be done is said first
_EXCHANGE = ("topic convert", "topic currency")  # two currencies are named to compare them
_MOST_TOOLS = 128
_NOT: Final = re.compile(r"[;؛.]|\bnot\b|\bnothing\b|\bno\b|دون|وليست|وليس|ولا\s")
_BOUNDARY = frozenset("،,؛;؟?!.\n")
_STOP = frozenset("؟?!.؛;")
_SEQUENCE: Final = listed("sequence")
_AFTER_THAT: Final = listed("after_that")
_IF: Final = listed("if")
_POLITE: Final = listed("polite")
_WANT: Final = listed("want")
_FORGET: Final = listed("forget")


class Step(NamedTuple):
    """A tool and the words of the request that it answers; ``fallback`` when they only hold if something fails."""

    tool: Tool
    span: range
    fallback: bool = False


class Planner:
    """Knows the offered tools by their words.

    Args:
        tools: the tools in the language or languages in which they are described.
        clock: the moment and the locale of the conversation.
    """

    def __init__(self, tools: Sequence[Tool], clock: Clock) -> None:
        self.clock = clock
        self.tools = list(tools[:_MOST_TOOLS])
        self._profiles = [_profile(tool) for tool in self.tools]
        self._spread = Counter(
            feature for profile in self._profiles for feature, weight in profile.items() if weight > _SAID
        )

    def steps(self, reading: Reading) -> list[Step]:
        """The steps of a request in its own order; none where no tool fits well enough."""
        found: list[Step] = []
        waiting = 0
        for clause in clauses(reading):
            if len(found) == _MOST_STEPS:
                break
            fallback = is_fallback(reading, clause)
            scores, sure = self.scores(reading, clause)
            best = max(range(len(scores)), key=scores.__getitem__, default=-1)
            if fallback and found and not found[-1].fallback:
                found.append(Step(found[-1].tool, clause, fallback=True))
            elif best >= 0 and sure[best] >= _ENOUGH and not self._continues(reading, clause, found, best, scores):
                found.append(Step(self.tools[best], range(waiting, clause.stop)))
            elif found:
                found[-1] = found[-1]._replace(span=range(found[-1].span.start, clause.stop))
            waiting = clause.stop if found else 0
        return [self._again(reading, step, _NEAR if place == 0 else _RIVAL) for place, step in enumerate(found)]

    def _continues(self, reading: Reading, clause: range, found: list[Step], best: int, scores: list[float]) -> bool:
        """Whether a part of the request still speaks of the tool before."""
        if not found:
            return False
        follows = _follows(reading, clause.start)
        if not follows and not Filler(self.tools[best], reading, clause, self.clock).fill(guess=False).needed:
            return True
        rival = 1.2 if follows else _RIVAL
        before = next(place for place, tool in enumerate(self.tools) if tool is found[-1].tool)
        return scores[before] >= rival * scores[best]

    def _again(self, reading: Reading, step: Step, near_enough: float) -> Step:
        """The step with the tool that fits best to all of its words; of several near it, one that can be called."""
        if step.fallback:
            return step
        scores, sure = self.scores(reading, step.span)
        order = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
        least = near_enough * scores[order[0]]
        near = [place for place in order if scores[place] >= least and sure[place] >= _ENOUGH][:_MOST_RIVALS]
        return step._replace(
            tool=self.tools[max(near or order[:1], key=lambda place: self._holds(reading, step.span, place))]
        )

    def _holds(self, reading: Reading, span: range, place: int) -> tuple[bool, int]:
        """Whether the words hold all that a tool needs, and how much that is: the more of them are used, the better."""
        filled = Filler(self.tools[place], reading, span, self.clock).fill()
        return not filled.missing, 0 if filled.missing else filled.needed

    def scores(self, reading: Reading, span: range) -> tuple[list[float], list[float]]:
        """How well the words of a span fit each tool, and its best single word whatever the others are.

        A feature counts once for a tool, and less the more tools have it.
        """
        totals = [0.0] * len(self.tools)
        sure = [0.0] * len(self.tools)
        counted: list[set[str]] = [set() for _ in self.tools]
        words = [(place, ordered_features(reading.words[place].folded)) for place in _asserted(reading, span)]
        money = [place for place, _ in words if is_money(reading.words[place].folded)]
        if len(money) > 1:
            words.append((money[0], _EXCHANGE))
        for place, features in words:
            leading = _LEADING if place - span.start < _FIRST_WORDS else 1.0
            for number, profile in enumerate(self._profiles):
                best, found = 0.0, ""
                for feature in features:
                    weight = profile.get(feature, 0.0)
                    if weight and feature not in counted[number]:
                        plain = weight * WEIGHTS[feature.partition(" ")[0]]
                        sure[number] = max(sure[number], plain)
                        worth = leading * plain / max(1, self._spread[feature])
                        if worth > best:
                            best, found = worth, feature
                if found:
                    counted[number].add(found)
                    totals[number] += best
        return totals, sure


def _profile(tool: Tool) -> dict[str, float]:
    """Feature → how much of the tool it says: its name most, then what it does, then what it takes."""
    texts = [(1.0, tool.name)]
    for half in tool.description[:2000].split("|"):
        positive = _NOT.split(half, maxsplit=1)[0]
        texts.append((0.9, positive))
    for one in properties_of(tool):
        texts += [(0.35, one.name), (0.25, head(one.schema.get("description")))]
    profile: dict[str, float] = {}
    for weight, text in texts:
        for feature in features_in(text, 60):
            profile[feature] = max(weight, profile.get(feature, 0.0))
    return profile


def _asserted(reading: Reading, span: range) -> Iterator[int]:
    """The words of a span that are meant as they stand: not quoted, not dates, and not after a negation."""
    silent = 0
    loose = {place for one in reading.moments if one.value.hour is None for place in range(one.first, one.after)}
    for place in span:
        word = reading.words[place]
        if _negates(reading, place):
            silent = _NEGATED
        elif silent:
            silent -= 1
        elif not reading.taken[place] or place in loose:
            yield place
        if _BOUNDARY.intersection(word.closes):
            silent = 0


def _negates(reading: Reading, place: int) -> bool:
    """Whether a word turns round what follows: «لا تنسَ تذكيري» does not, «ما بغيتش» does and «ما مواقيت» does not."""
    word = reading.words[place].folded
    following = reading.words[place + 1].folded if place + 1 < len(reading.words) else ""
    if word == "ما":
        return following in _WANT or following.endswith("ش")
    return word in NEGATIONS and following not in _FORGET


def clauses(reading: Reading) -> Iterator[range]:
    """The parts of a request: up to punctuation, or to a word that says that something else comes."""
    start = 0
    for place in range(len(reading.words)):
        begins = _follows(reading, place) or _is_if(reading, place) or _joins(reading, place)
        if place > start and (begins or _BOUNDARY.intersection(reading.words[place - 1].closes)):
            yield range(start, place)
            start = place
    if start < len(reading.words):
        yield range(start, len(reading.words))


def _follows(reading: Reading, place: int) -> bool:
    """Whether a word says that something comes next: «ثم», «وبعدين», «ومن بعد», «وبعد كده»."""
    if place and _STOP.intersection(reading.words[place - 1].closes):
        return True
    two = " ".join(word.folded for word in reading.words[place : place + 2])
    return reading.words[place].folded in _SEQUENCE or two in _AFTER_THAT


def _joins(reading: Reading, place: int) -> bool:
    """Whether a word is «و» with a verb that asks for something."""
    word = reading.words[place].folded
    if word[:1] != "و" or len(word) < 4 or reading.taken[place]:  # noqa: PLR2004
        return False
    return any(feature.startswith(("topic", "dialect")) for feature in features_of(word[1:]))


def _is_if(reading: Reading, place: int) -> bool:
    """«إن» begins a condition, «أن» does not."""
    word = reading.words[place]
    return word.folded in _IF and word.text[:1] != "أ"


def is_fallback(reading: Reading, clause: range) -> bool:
    """Whether a part of the request holds only in some case: «وإذا ما فيه مكان …»."""
    words = [reading.words[place].folded for place in clause[:5]]
    return len(words) > 1 and _is_if(reading, clause.start) and words[1] not in _POLITE
