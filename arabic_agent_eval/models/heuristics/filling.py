"""Arguments of one call from what an instruction mentions, property by property of the tool's schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from arabic_agent_eval.models.heuristics.glosses import Choice, choices_in, kinds_of, region_of
from arabic_agent_eval.models.heuristics.mentions import STOPS, Lead, Mention, Reading, is_place, leads, uncut
from arabic_agent_eval.models.heuristics.moments import Clock, likely, written
from arabic_agent_eval.models.heuristics.parameters import (
    NEGATIONS,
    Property,
    direction_of,
    fitted,
    kind_of,
    name_tokens,
    nominal,
    properties_of,
    shared,
)
from arabic_agent_eval.models.heuristics.vocabulary import (
    EMPTY,
    bare_forms,
    features_in,
    features_of,
    fold_word,
    listed,
)
from arabic_agent_eval.tools import Tool

_PLACE_WORDS = listed("in")
_TO_WORDS = listed("to")
_FROM_WORDS = listed("from")
_PERSON_WORDS = listed("person")
_TOPIC_WORDS = listed("about")
_PREPOSITIONS: Final = {
    "origin": (_FROM_WORDS, "م"),
    "destination": (_TO_WORDS, "ل"),
    "place": (_PLACE_WORDS, "بف"),
    "person": (_PERSON_WORDS, "ل"),
    "query": (_TOPIC_WORDS, ""),
}
"""Role → the prepositions that lead to it, and those that are written to the name."""

_AMOUNT = frozenset(["amount", "price", "sum", "budget", "total", "value", "cost", "money"])
_MONEY = "currencies"
_NUMBER_WORDS = listed("number")


class Filled(NamedTuple):
    """Arguments that were found, and what is missing.

    Attributes:
        arguments: name → value.
        missing: the required parameters that were not found.
        others: other values for one of them («في … وفي …»): each makes another call.
        needed: how many required parameters were found.
    """

    arguments: dict[str, Any]
    missing: list[str]
    others: list[dict[str, Any]]
    needed: int


class Filler:
    """Fills the parameters of one tool from one part of an instruction.

    Args:
        tool: the tool.
        reading: the instruction.
        span: the words that belong to the call.
        clock: the moment and place of the conversation.
    """

    def __init__(self, tool: Tool, reading: Reading, span: range, clock: Clock) -> None:
        self.tool, self.reading, self.span, self.clock = tool, reading, span, clock
        self.properties = properties_of(tool)
        self.used: set[int] = set()
        self.arguments: dict[str, Any] = {}
        self.others: list[dict[str, Any]] = []

    def fill(self, *, guess: bool = True) -> Filled:
        """The arguments that the words hold.

        Args:
            guess: whether a required text may be the words that belong to nothing else.
        """
        for step in (
            self._choices, self._switches, self._moments, self._quotes, self._rows, self._identifiers, self._numbers,
            self._led, self._directed, self._lists,
        ):  # fmt: skip
            step()
        if guess:
            self._rest()
        order = [one.name for one in self.properties if one.name in self.arguments]
        missing = [name for name in self.tool.required if name not in self.arguments]
        needed = sum(name in self.arguments for name in self.tool.required)
        return Filled({name: self.arguments[name] for name in order}, missing, self.others, needed)

    def _open(self, *roles: str) -> list[Property]:
        return [one for one in self.properties if one.role in roles and one.name not in self.arguments]

    def _set(self, one: Property, value: Any, places: Iterable[int] = ()) -> bool:
        value = fitted(value, one.schema)
        if value is None:
            return False
        self.arguments[one.name] = value
        self.used.update(places)
        return True

    # --- values of a fixed choice ----------------------------------------------------------------------------

    def _choices(self) -> None:
        """Values of enumerations; where two parameters share one, the prepositions tell which is which."""
        pending = self._open("enum")
        found = {
            one.name: choices_in(self.reading, self.span, one.schema, region_of(self.clock.locale)) for one in pending
        }
        for one in sorted(pending, key=lambda one: not one.required):
            if self._set_number(one):
                continue
            choices = [
                choice for choice in found[one.name] if choice.places and not self.used.intersection(choice.places)
            ]
            if len(choices) > 1 and (direction := direction_of(one)):
                choices.sort(key=lambda choice: self._leads_to(choice) != (direction == "destination"))
            elif choices:
                choices.sort(key=lambda choice: -choice.score)
            if choices:
                self._set(one, choices[0].value, choices[0].places)

    def _set_number(self, one: Property) -> bool:
        """A choice among numbers, where the words around one of them name the parameter."""
        values = [value for value in one.schema["enum"] if isinstance(value, int | float)]
        for mention in self.reading.numbers:
            if mention.first in self.span and mention.value in values and self._fits(one, mention) > 0:
                return self._set(one, mention.value, range(mention.first, mention.after))
        return False

    def _leads_to(self, choice: Choice) -> bool:
        first = min(choice.places)
        before = self.reading.words[first - 1].folded if first > self.span.start else ""
        return self.reading.words[first].folded[:1] in "لب" or before in _TO_WORDS or before in _PLACE_WORDS

    def _switches(self) -> None:
        """Booleans whose name or description a word of the text shares: true, or false after a negation."""
        about = features_in(self.tool.name)
        for one in self._open("boolean"):
            own = features_in(one.name) - about
            for place in self.span:
                word = self.reading.words[place]
                if shared(own, features_of(word.folded)):
                    before = {self.reading.words[near].folded for near in range(max(self.span.start, place - 2), place)}
                    self._set(one, not before & NEGATIONS)
                    break

    # --- moments ---------------------------------------------------------------------------------------------

    def _moments(self) -> None:
        said: set[tuple[str, int]] = set()
        moments = [mention for mention in self.reading.moments if mention.first in self.span]
        for one in self._open("date", "time", "moment"):
            for mention in moments:
                words = self.reading.text(mention.first, mention.after)
                value = written(likely(mention.value, words), words, one, self.clock)
                if value is not None and (one.role, mention.first) not in said and self._set(one, value):
                    said.add((one.role, mention.first))
                    break
        for mention in moments:
            self.used.update(range(mention.first, mention.after))

    # --- words that stand as they are ------------------------------------------------------------------------

    def _quotes(self) -> None:
        quotes = [mention for mention in self.reading.quotes if mention.first in self.span]
        wanted = sorted(self._open("quote", "query", "name"), key=lambda one: (one.role == "name", not one.required))
        for one, mention in zip(wanted, quotes, strict=False):
            self._set(one, mention.value, [mention.first])

    def _identifiers(self) -> None:
        for one in self._open("identifier"):
            scores = {place: self._looks_like_number(place, one) for place in self.span if place not in self.used}
            best = max(scores, key=scores.__getitem__, default=-1)
            if best < 0 or scores[best] <= 0:
                continue
            first = self._letters_before(best)
            if not self._set(one, self.reading.text(first, best + 1), range(first, best + 1)):
                continue
            if self.tool.required == [one.name]:
                equals = (place for place, score in scores.items() if place != best and score >= max(2.0, scores[best]))
                values = (fitted(self.reading.words[place].text, one.schema) for place in equals)
                self.others += [{one.name: value} for value in values if value is not None]

    def _looks_like_number(self, place: int, one: Property) -> float:
        word, taken = self.reading.words[place], self.reading.taken[place]
        if taken == "moment" or not any(char.isdigit() for char in word.text):
            return 0.0
        first = self._letters_before(place)
        near = [self.reading.words[other].folded for other in range(max(self.span.start, first - 3), first)]
        score = 2.0 * (taken == "identifier") + 2.0 * any(form in _NUMBER_WORDS for n in near for form in bare_forms(n))
        score += 1.0 * any(shared(one.features, features_of(word)) for word in near) + 0.5 * (len(word.text) >= 5)  # noqa: PLR2004
        return score if score >= (1.0 if one.required else 2.0) else 0.0

    def _letters_before(self, place: int) -> int:
        """Where a number plate begins: single letters stand before its number."""
        first = place
        while first > self.span.start and len(self.reading.words[first - 1].text) == 1 and first - 1 not in self.used:
            first -= 1
        return first

    # --- numbers ---------------------------------------------------------------------------------------------

    def _numbers(self) -> None:
        wanted = self._open("integer", "number")
        mentions = [mention for mention in self.reading.numbers if mention.first in self.span]
        pairs = sorted(
            (
                (self._fits(one, mention), one.required, -mention.first, one, mention)
                for one in wanted
                for mention in mentions
            ),
            key=lambda pair: pair[:3],
            reverse=True,
        )  # fmt: skip
        for score, required, _, one, mention in pairs:
            free = one.name not in self.arguments and not self.used.intersection(range(mention.first, mention.after))
            if free and (score > 0 or (required and score == 0)):
                self._set(one, mention.value * self._unit(one, mention), range(mention.first, mention.after))
        for one in self._open("integer", "number"):
            self._count_without_number(one)

    def _fits(self, one: Property, mention: Mention) -> float:
        """How well the words around a number name the parameter."""
        score = 0.0
        money = bool(_AMOUNT.intersection(name_tokens(one)))
        for place, worth in ((mention.after, 2.0), (mention.after + 1, 0.75), (mention.first - 1, 1.0)):
            if place in self.span:
                word = self.reading.words[place].folded
                score += worth * shared(one.features, features_of(word))
                if place == mention.after and is_money(word):
                    score += 2.0 if money else -3.0
        return score

    def _unit(self, one: Property, mention: Mention) -> int:
        near = self.reading.words[mention.after].folded if mention.after in self.span else ""
        return 60 if "minute" in one.name.lower() and near.startswith("ساع") else 1

    def _count_without_number(self, one: Property) -> None:
        """«ليلتين» is two nights; «ساعة» in a length of minutes is sixty."""
        for place in self.span:
            word = self.reading.words[place].folded
            if place in self.used or self.reading.taken[place]:
                continue
            forms = [form for form in bare_forms(word) if form.endswith("ين") and len(form) > 4]  # noqa: PLR2004
            stems = {stem for form in forms for stem in (form[:-2], form[:-3] + "ه")}
            if "minute" in one.name.lower() and word.lstrip("ل") in {"ساعه", "ساعتين"}:
                self._set(one, 120 if word.endswith("ين") else 60, [place])
            elif any(shared(one.features, features_of(stem)) for stem in stems):
                self._set(one, 2, [place])
            if one.name in self.arguments:
                return

    # --- names -----------------------------------------------------------------------------------------------

    def _led(self) -> None:
        """Names after the noun that says what they name: «مطعم الياسمين» for a restaurant."""
        for one in self._open("name", "person", "address", "query", "origin", "destination"):
            for place in self._nouns_for(one):
                mention = self._phrase(place + 1, one)
                if mention is not None and self._is_name(mention, one):
                    self._set(one, mention.value, range(place, mention.after))
                    break

    def _nouns_for(self, one: Property) -> list[int]:
        """The words that may say what a name is of: those the dictionary gives for the parameter's name first."""
        named = nominal(features_in(one.name))
        found = []
        for place in self.span:
            word = self.reading.words[place]
            if place in self.used or self.reading.taken[place] or word.closes[:1] in ("،", "؟", ".", ","):
                continue
            if common := named & nominal(features_of(word.folded)):
                found.append((not any(feature.startswith("noun") for feature in common), place))
        return [place for _, place in sorted(found)]

    def _is_name(self, mention: Mention, one: Property) -> bool:
        """Whether what follows a noun can be a name."""
        first = self.reading.words[mention.first].folded
        return one.role == "address" or not (first in EMPTY or first in STOPS)

    def _phrase(self, first: int, one: Property) -> Mention | None:
        whole = one.role == "address"
        most = 12 if whole else 3 if one.role in {"person", "place"} else 4
        return self.reading.phrase(first, self.span.stop, self.used, most=most, all_in=whole)

    def _directed(self) -> None:
        """Places and persons after their prepositions; the surest candidate first."""
        wanted = self._open("origin", "destination", "place", "person", "query", "address", "name")
        wanted.sort(key=lambda one: (not one.required, _ORDER.get(one.role, 9)))
        for one in wanted:
            if one.role == "name" and not one.required:
                continue
            best = max(self._candidates(one), key=lambda found: found[0], default=None)
            if best is not None:
                _, value, places = best
                after = max(places) + 1
                if self._set(one, value, places) and one.role == "place":
                    self._repeat(one, after)

    def _candidates(self, one: Property) -> Iterator[tuple[float, str, range]]:
        role = one.role if one.role in _PREPOSITIONS else "place"
        words, letters = _PREPOSITIONS[role]
        for lead in leads(self.reading, self.span, words, letters):
            mention = self._after(lead, one)
            if mention is None:
                continue
            text = mention.value
            place = is_place(text)
            if one.role == "person" and (place or text.startswith("ال")):
                continue
            score = 1.0 + lead.sure + (2.0 * place if role != "person" else 1.0 * (not lead.sure))
            score -= 0.5 * any(feature.startswith("topic") for feature in features_of(fold_word(text)))
            if lead.sure or place or one.required:
                yield score, text, range(lead.first, mention.after)

    def _after(self, lead: Lead, one: Property) -> Mention | None:
        if lead.first in self.used or self.reading.taken[lead.first] in {"number", "identifier"}:
            return None
        mention = self._phrase(lead.first, one)
        if mention is None:
            return None
        mention = mention._replace(value=uncut(mention.value, lead.cut))
        if one.role in {"place", "origin", "destination"}:
            words = mention.value.split(" ")
            for length in range(len(words), 0, -1):
                if is_place(" ".join(words[:length])):
                    return Mention(mention.first, mention.first + length, " ".join(words[:length]))
        return mention

    def _repeat(self, one: Property, place: int) -> None:
        """Another place that is asked for in the same words: «في الرياض وفي جدة», «بدبي وأبوظبي»."""
        while place in self.span and self.reading.words[place].folded[:1] == "و":
            word = self.reading.words[place]
            joined = word.folded[1:] in _PLACE_WORDS or word.folded == "و"
            first, cut = (place + 1, 0) if joined else (place, 1)
            mention = self._phrase(first, one)
            text = "" if mention is None else uncut(mention.value, cut)
            if text[:1] == "ب" and is_place(text[1:]) and not is_place(text):
                text = text[1:]
            if mention is None or not (joined or is_place(text)):
                return
            self.others.append({one.name: text})
            self.used.update(range(place, mention.after))
            place = mention.after

    # --- lists -----------------------------------------------------------------------------------------------

    def _rows(self) -> None:
        """A list of objects with a number and a text each: «٢ كبسة و٣ لبن»."""
        for one in self.properties:
            inner = one.schema.get("items") if one.kind == "array" else None
            fields = inner.get("properties") if isinstance(inner, dict) else None
            if not isinstance(fields, dict):
                continue
            kinds = {name: kind_of(field) for name, field in fields.items() if isinstance(field, dict)}
            count = next((name for name, kind in kinds.items() if kind in {"integer", "number"}), None)
            text = next((name for name, kind in kinds.items() if kind == "string"), None)
            rows = list(self._counted(count, text)) if count and text else []
            if rows:
                self._set(one, rows)

    def _counted(self, count: str, text: str) -> Iterator[dict[str, Any]]:
        for mention in self.reading.numbers:
            if mention.first in self.span and mention.first not in self.used and mention.value == int(mention.value):
                name = self.reading.phrase(mention.after, self.span.stop, self.used)
                if name is not None and not is_money(self.reading.words[name.first].folded):
                    self.used.update(range(mention.first, name.after))
                    yield {text: name.value, count: int(mention.value)}
                    if self.reading.words[name.after - 1].closes:
                        return

    def _lists(self) -> None:
        """Lists of values of a choice, of numbers, or of names joined by «و»."""
        for one in [one for one in self.properties if one.kind == "array" and one.name not in self.arguments]:
            inner = one.schema.get("items")
            inner = inner if isinstance(inner, dict) else {}
            kind = kind_of(inner)
            if kind == "enum":
                found = choices_in(self.reading, self.span, inner, region_of(self.clock.locale))
                values = list(dict.fromkeys(choice.value for choice in found if choice.places))
            elif kind in {"integer", "number"}:
                values = [mention.value for mention in self.reading.numbers if mention.first in self.span]
            else:
                values = self._joined_names(one)
            if values:
                self._set(one, values)

    def _joined_names(self, one: Property) -> list[Any]:
        person = one._replace(role="person")
        best = max(self._candidates(person), key=lambda found: found[0], default=None)
        if best is None:
            return []
        names, place = [best[1]], max(best[2]) + 1
        while place in self.span and self.reading.words[place].folded[:1] == "و" and not self.reading.taken[place]:
            mention = self._phrase(place, person)
            if mention is None:
                break
            names.append(mention.value[1:])
            self.used.update(range(place, mention.after))
            place = mention.after
        self.used.update(best[2])
        return names

    # --- what is left ----------------------------------------------------------------------------------------

    def _rest(self) -> None:
        """For a required text: the longest run of words that belong to nothing else."""
        for one in self._open("quote", "query"):
            run = self._longest_run() if one.required else []
            if len(run) > 1:
                self._set(one, self.reading.text(run[0], run[-1] + 1), run)

    def _longest_run(self) -> list[int]:
        best: list[int] = []
        run: list[int] = []
        about = features_in(self.tool.name)
        for place in [*self.span, -1]:
            ends = place < 0 or place in self.used or self.reading.taken[place] != "" or (
                not run and self._says_nothing(place, about)
            )  # fmt: skip
            if ends:
                best, run = max(best, run, key=len), []
            else:
                run.append(place)
        return best

    def _says_nothing(self, place: int, about: frozenset[str]) -> bool:
        word = self.reading.words[place].folded
        return word in EMPTY or word in STOPS or bool(shared(about, features_of(word)))


_ORDER: Final = {"origin": 0, "destination": 1, "person": 2, "place": 3, "address": 4, "query": 5}


def is_money(word: str) -> bool:
    """Whether a folded word names a currency."""
    return _MONEY in kinds_of(word)
