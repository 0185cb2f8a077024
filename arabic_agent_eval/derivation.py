"""What a model can take from the texts that it is given: words without their particles and article, and phrases."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from arabic_agent_eval.text import fold_all


def without(stems: set[str], *particles: str) -> set[str]:
    """The words, and those that begin with one of the particles without it too; at least two letters are left."""
    cut = (stem[len(start) :] for stem in stems for start in particles if stem.startswith(start))
    return stems | {stem for stem in cut if stem[1:]}


def stems_of(word: str) -> set[str]:
    """The folded word as it stands, and without the particles و ف, then ب ل ك, then the article."""
    return without(without(without({word}, "و", "ف"), "ب", "ل", "ك"), "ال", "ل")


def bare_forms(word: str) -> set[str]:
    """The folded word as it stands, and without its article."""
    return {word, re.sub("^([وف]?[بك]?)ال(..)", r"\1\2", word)}


class Given:
    """Texts that a model can take words from."""

    def __init__(self, *values: Any) -> None:
        self._texts: list[str] = []
        self._bare: set[str] = set()
        self._stems: set[str] = set()
        self.add(values)

    def add(self, value: Any) -> None:
        """Take in every text inside a value."""
        for text in map(fold_all, texts_in(value)):
            self._texts.append(text)
            for word in set(text.split()):
                self._bare |= bare_forms(word)
                self._stems |= stems_of(word)

    def holds(self, word: str) -> bool:
        """Tell whether a folded word stands in one of the texts."""
        # Particles come off on one side at a time, so that ولد is not found in بلد.
        return not (self._stems.isdisjoint(bare_forms(word)) and self._bare.isdisjoint(stems_of(word)))

    def quotes(self, phrase: str) -> bool:
        """Tell whether a folded phrase stands in one of the texts, if only as a part of words."""
        # Shorter text hides inside unrelated words, as مر does in تمر.
        return phrase[3:] != "" and any(phrase in text for text in self._texts)


def is_derivable(value: str, *sources: Given) -> bool:
    """Tell whether a text, or each word of it that is not a number, stands in one of the sources."""
    folded = fold_all(value)
    words = [word for word in folded.split() if any(map(str.isalpha, word))]
    known = all(any(source.holds(word) for source in sources) for word in words)
    return known or any(source.quotes(folded) for source in sources)


def texts_in(value: Any) -> Iterator[str]:
    """Every text inside a value; the names of members are not values."""
    return (leaf for _, leaf in leaves_of(value) if isinstance(leaf, str))


def leaves_of(value: Any) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Every value inside that has no members, with its path, in order; however deep it nests."""
    stack: list[tuple[tuple[str | int, ...], Any]] = [((), value)]
    while stack:
        path, node = stack.pop()
        if node and isinstance(node, dict):
            stack += [((*path, key), member) for key, member in reversed(node.items())]
        elif node and isinstance(node, list | tuple):
            stack += [((*path, place), member) for place, member in reversed(list(enumerate(node)))]
        else:
            yield path, node
