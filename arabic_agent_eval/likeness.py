"""Which earlier texts are nearly the same as a text, found in a bounded number of comparisons."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, Generic, TypeVar

from rapidfuzz.fuzz import ratio
from rapidfuzz.process import extract_iter

ALIKE: Final = 88.0
"""The likeness of two texts, 0 to 100, their words sorted, from which on they are nearly the same."""
ALL_PAIRS: Final = 1_000
"""As many texts are compared with one another, each with each."""
_LATEST = 25  # texts remembered for each word, the latest ones
_WORDS = 40  # words of a text that others are found by
_DIFFERENT = 0.35  # share of words that may differ, at most
_CHARACTERS = 1_000  # compared of a text

T = TypeVar("T")


class Likeness(Generic[T]):
    """Texts as they come, each with what it belongs to.

    Up to :data:`ALL_PAIRS` texts, each one is compared with all before it. Of more, only with those that share one of
    its rarest words: texts that are nearly the same share most of their words, so that the third that is rarest in one
    cannot be wholly absent from the other. For each word the latest texts are remembered, not all, and so a text is
    compared with a bounded number of others however many there are.
    """

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._owners: list[T] = []
        self._whole: dict[str, int] = {}
        self._places: dict[str, deque[int]] = {}
        self._counts: dict[str, int] = {}

    def add(self, text: str, owner: T) -> None:
        """Remember a folded text."""
        place = len(self._texts)
        words = _sorted_words(text)
        self._texts.append(" ".join(words)[:_CHARACTERS])
        self._owners.append(owner)
        self._whole.setdefault(text, place)
        for word in dict.fromkeys(words[:_WORDS]):
            self._counts[word] = self._counts.get(word, 0) + 1
            self._places.setdefault(word, deque(maxlen=_LATEST)).append(place)

    def like(self, text: str) -> Iterator[tuple[T, bool]]:
        """What was remembered with an equal text, which is told by true, and with those that are nearly the same."""
        equal = self._whole.get(text)
        if equal is not None:
            yield self._owners[equal], True
        words = _sorted_words(text)
        choices = {place: self._texts[place] for place in self._candidates(words)}
        shown = " ".join(words)[:_CHARACTERS]
        for _, _, place in extract_iter(shown, choices, scorer=ratio, score_cutoff=ALIKE):
            yield self._owners[place], False

    def _candidates(self, words: list[str]) -> Iterator[int]:
        if len(self._texts) < ALL_PAIRS:
            yield from range(len(self._texts))
            return
        unique = sorted(dict.fromkeys(words[:_WORDS]), key=lambda word: self._counts.get(word, 0))
        for word in unique[: int(_DIFFERENT * len(unique)) + 1]:
            yield from self._places.get(word, ())


def _sorted_words(text: str) -> list[str]:
    return sorted(text.split())
