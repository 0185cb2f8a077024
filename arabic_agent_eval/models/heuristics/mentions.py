"""What an instruction mentions: quotations, identifiers, moments, numbers, and the names that prepositions lead to.

Everything has its place, counted in words, so that a value is used for one argument only and each step of a request
takes what stands in its own part.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple

from arabic_agent_eval.dates import Moment, read_moment
from arabic_agent_eval.lexicon import load_lexicon, name_key
from arabic_agent_eval.models.heuristics.vocabulary import (
    EMPTY,
    Word,
    bare_forms,
    features_of,
    fold_word,
    listed,
    spelt,
    without_tanween,
    words_of,
)
from arabic_agent_eval.numbers import number_words_in, read_number
from arabic_agent_eval.timewords import read_items

_LONGEST_TEXT = 2_000
_MOST_WORDS = 300
_LONGEST_MOMENT = 10
_LONGEST_NAME = 4
_SIGNS = "$€£%#"
_QUOTE = re.compile(r"«([^«»]{1,500})»|“([^“”]{1,500})”|\"([^\"]{1,500})\"|(?<!\w)'([^']{1,500})'(?!\w)")
_MARK = "\ue000"
_GLUED = re.compile(r"(?<=[0-9٠-٩])(?=[ء-ي]{3})")
_IDENTIFIER = re.compile(r"(?=[^0-9]*[0-9])[A-Za-z0-9][A-Za-z0-9_/#.+-]*")
_ADDRESS = re.compile(r"[\w.+-]+@[\w.-]+|https?://\S+|www\.\S+", re.ASCII)
_PHONE = re.compile(r"\+?[0-9]{6,}")
_OF: Final = listed("of")
_SPELT: Final = spelt()
_SAME: Final = listed("same_day")
_FILLERS: Final = listed("fillers")
_BREAK = frozenset("،,؛;؟?!.…:")


class Mention(NamedTuple):
    """Something that is mentioned: its words, from ``first`` up to ``after``, and what they mean."""

    first: int
    after: int
    value: Any


class Reading:
    """An instruction as it was read; a very long one only at its beginning.

    Attributes:
        words: its words.
        quotes, moments, numbers: what is mentioned, in order.
        taken: for each word which of these it belongs to, or "".
    """

    def __init__(self, text: str) -> None:
        self._quoted: list[str] = []
        text = _GLUED.sub(" ", _QUOTE.sub(self._set_aside, text[:_LONGEST_TEXT].replace(_MARK, "")))
        self.words: list[Word] = words_of(text)[:_MOST_WORDS]
        self.taken = [""] * len(self.words)
        self._timely = [self._spelt(place) for place in range(len(self.words))]
        self.quotes = self._note("quote", self._find_quotes())
        self._note("identifier", self._find_identifiers())
        self.moments: list[Mention] = self._note("moment", self._find_moments())
        self.numbers = self._note("number", self._find_numbers())

    def _set_aside(self, match: re.Match[str]) -> str:
        self._quoted.append(next(group for group in match.groups() if group is not None))
        return f" {_MARK}{len(self._quoted) - 1} "

    def _spelt(self, place: int) -> str:
        """A word as the reader of dates knows it; «مع الخمسة» is at five o'clock in the Maghreb."""
        word = self.words[place]
        following = self.words[place + 1] if place + 1 < len(self.words) else word
        if word.folded == "مع" and following.text.startswith("ال") and _time_form(following.text) is not None:
            return "الساعة"
        return _SPELT.get(word.folded, word.text)

    def _note(self, kind: str, mentions: Iterator[Mention]) -> list[Mention]:
        found = list(mentions)
        for mention in found:
            for place in range(mention.first, mention.after):
                self.taken[place] = self.taken[place] or kind
        return found

    def _find_quotes(self) -> Iterator[Mention]:
        for place, word in enumerate(self.words):
            if word.text.startswith(_MARK) and word.text[1:].isascii() and word.text[1:].isdigit():
                yield Mention(place, place + 1, self._quoted[int(word.text[1:])].strip())

    def _find_identifiers(self) -> Iterator[Mention]:
        for place, word in enumerate(self.words):
            text = word.text
            if _ADDRESS.fullmatch(text) or (_IDENTIFIER.fullmatch(text) and _is_identifier(text)):
                yield Mention(place, place + 1, text)

    def _find_moments(self) -> Iterator[Mention]:
        place = 0
        while place < len(self.words):
            end = self._end_of_time(place)
            if self.words[place].folded in _FILLERS:
                end = place
            for after in range(end, place, -1):
                moment = None if self.words[after - 1].folded in _FILLERS else self._moment(place, after)
                if moment is not None:
                    yield Mention(place, after, moment)
                    place = after - 1
                    break
            place += 1

    def _end_of_time(self, place: int) -> int:
        """Where the words about time end that begin at the place."""
        after = place
        while after < len(self.words) and after - place < _LONGEST_MOMENT and not self.taken[after]:
            if _time_form(self._timely[after]) is None:
                two = after + 1 < len(self.words) and not self.words[after].closes
                of = after > place and self.words[after].folded in _OF
                if not (two and (of or _time_form(f"{self._timely[after]} {self._timely[after + 1]}"))):
                    break
                after += not of
            after += 1
            if after > place and _BREAK.intersection(self.words[min(after, len(self.words)) - 1].closes):
                break
        return after

    def _moment(self, first: int, after: int) -> Moment | None:
        if first and self.words[first - 1].folded in _SAME:
            return None
        texts = [self._timely[place] for place in range(first, after) if self.words[place].folded not in _OF]
        for forms in (texts, [_time_form(text) or text for text in texts]):
            moment = read_moment(" ".join(forms))
            if moment is not None:
                return moment
        return None

    def _find_numbers(self) -> Iterator[Mention]:
        texts = [self._numeric(word) for word in self.words]
        in_words: dict[int, Mention] = {}
        value: int | float | None
        for first, after, value in number_words_in(" ".join(texts)):
            if not any(self.taken[first:after]):
                in_words[first] = Mention(first, after, value)
        place = 0
        while place < len(texts):
            mention = in_words.get(place)
            if mention is None and not self.taken[place] and (value := read_number(texts[place])) is not None:
                mention = Mention(place, place + 1, value)
            if mention is not None:
                yield mention
            place = mention.after if mention is not None else place + 1

    @staticmethod
    def _numeric(word: Word) -> str:
        """The word as a number is read: without signs of money, and without a preposition before it."""
        text = word.text.strip(_SIGNS) or word.text
        if read_number(text) is None:
            forms = (text[1:],) if text[0] in "لبعف" or text[1:2].isdigit() else ()
            text = next((form for form in forms if _is_number(form)), text)
        return text

    # --- names -----------------------------------------------------------------------------------------------

    def phrase(self, first: int, last: int, used: Collection[int], *, most: int = _LONGEST_NAME, all_in: bool = False
               ) -> Mention | None:  # fmt: skip
        """The name that begins at a word: up to punctuation, a preposition, a moment, or what is used already.

        Args:
            first: where it begins; words that are used already are passed over there.
            last: where it must end.
            used: the places of words that belong to something else.
            most: how many words it may have.
            all_in: whether numbers and small words belong to it, as in addresses.
        """
        while first < last and first in used:
            first += 1
        after = first
        while after < last and after - first < most and not self._ends(after, first, used, all_in=all_in):
            after += 1
            if _BREAK.intersection(self.words[after - 1].closes) and not (
                all_in and "،" in self.words[after - 1].closes
            ):
                break
        return Mention(first, after, self.text(first, after)) if after > first else None

    def _ends(self, place: int, first: int, used: Collection[int], *, all_in: bool) -> bool:
        """Whether a word is no part of the name that began before it."""
        word, taken = self.words[place], self.taken[place]
        if taken == "moment" and self._is_of(place, first):
            return False
        if place in used or taken in ("quote", "moment"):
            return True
        if all_in:
            return False
        if taken in {"number", "identifier"} or word.folded in EMPTY or word.folded in STOPS:
            return True
        return place > first and (_leads(word) or (word.folded[0] == "و" and len(word.folded) > 2))  # noqa: PLR2004

    def _is_of(self, place: int, first: int) -> bool:
        """Whether a weekday is the second half of a name, as in «سوق الأحد»."""
        before = self.words[place - 1].folded if place > first else ""
        return self.words[place].folded.startswith("ال") and any(
            feature.startswith("noun") for form in bare_forms(before) for feature in features_of(form)
        )

    def text(self, first: int, after: int) -> str:
        """The words as written, with the commas between them."""
        words = self.words[first:after]
        return (
            " ".join(word.text + word.closes for word in words[:-1]) + (" " if len(words) > 1 else "") + words[-1].text
        )


STOPS: Final = listed("stops")
"""Words that end a name."""


def _leads(word: Word) -> bool:
    """Whether a word begins with a preposition and the article, or with one before a known place."""
    folded = word.folded
    if folded.startswith(("بال", "لل", "فال", "عال")) and len(folded) > 4:  # noqa: PLR2004
        return not is_place(word.text)
    return folded[:1] in ("ل", "ب") and (word.text[1:2] in ("أ", "إ", "آ") or is_place(word.text[1:]))


@lru_cache(maxsize=16_384)
def is_place(text: str) -> bool:
    """Whether the dictionary knows a place or a country of that name."""
    lexicon = load_lexicon()
    entries = lexicon.arabic.get(name_key(text), ()) if 1 < len(text) < 100 else ()  # noqa: PLR2004
    return any(lexicon.kinds[entry] in {"places", "countries"} for entry in entries)


@lru_cache(maxsize=16_384)
def _time_form(text: str) -> str | None:
    """The form without preposition in which a word or two are about time; None when they are not."""
    if len(text) > 60:  # noqa: PLR2004
        return None
    plain = " ".join(map(without_tanween, text.split()))
    forms = (form for whole in dict.fromkeys((text, plain)) for form in bare_forms(whole))
    return next((form for form in forms if (len(form) > 1 or form.isdigit()) and read_items(form)), None)


@lru_cache(maxsize=16_384)
def _is_number(text: str) -> bool:
    return read_number(text) is not None


def _is_identifier(text: str) -> bool:
    """Letters and digits, a number in several parts, or one too long to be a count."""
    if read_moment(text) is not None or (text.replace(".", "", 1).isdigit() and not _PHONE.fullmatch(text)):
        return False
    return not re.fullmatch(r"\d{1,3}(st|nd|rd|th|am|pm|h|kg|km|g|m|gb|mb|k)|\d+[.:]\d+", text.lower())


class Lead(NamedTuple):
    """A preposition that leads to a name: where the name begins, its letters that are the preposition, how sure."""

    first: int
    cut: int
    sure: bool


def leads(reading: Reading, span: range, words: Collection[str], letters: str) -> Iterator[Lead]:
    """The places in a span where a name begins after one of the prepositions, alone or written to the name."""
    for place in span:
        word = reading.words[place]
        if reading.taken[place] in {"quote", "identifier"}:
            continue
        if word.folded in words and place + 1 < span.stop and not _BREAK.intersection(word.closes):
            following = reading.words[place + 1]
            cut = 1 if following.folded[:1] in letters and len(following.folded) > 3 and _is_cut(following) else 0  # noqa: PLR2004
            yield Lead(place + 1, cut, sure=True)
        elif word.folded[:1] in letters and len(word.folded) > 2 and not reading.taken[place]:  # noqa: PLR2004
            yield from _written_to(word, place)


def _written_to(word: Word, place: int) -> Iterator[Lead]:
    if word.folded in EMPTY or word.folded in STOPS:
        return
    if _is_cut(word):
        yield Lead(place, 1, sure=True)
    elif not any(feature.startswith(("topic", "noun", "dialect")) for feature in features_of(word.folded)):
        yield Lead(place, 1, sure=False)


def _is_cut(word: Word) -> bool:
    """Whether the first letter of a word is surely a preposition: an article, a hamza or a known place follows."""
    rest = word.text[1:]
    if is_place(word.text):
        return False
    known = is_place(rest) or any(feature.startswith("noun") for feature in features_of(fold_word(rest)))
    return rest.startswith(("ال", "أ", "إ", "آ")) or word.folded.startswith("لل") or known


def uncut(text: str, cut: int) -> str:
    """A name without the preposition that is written to it; «للأقصر» becomes «الأقصر»."""
    if not cut:
        return text
    return "ال" + text[2:] if text.startswith("لل") else text[cut:]
