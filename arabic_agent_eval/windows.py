"""A part of a file of items, for replies that stand in the same part of theirs.

Several processes can then read the items together, each its own part, where one of them would have to read all first.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from arabic_agent_eval.files import lines_between, open_lines
from arabic_agent_eval.items import AnswerKey, Item, ItemSet

_LINES = 64  # decoded at once
_AROUND = 1 << 19  # bytes before and after its part in which a reply may find its item


class OutOfOrder(Exception):
    """A reply stands far from its item, or a line of items needs a closer look: the items must be read as a whole."""


class ItemWindow(ItemSet):
    """The items whose lines begin in a range of bytes, and those around it when they are needed.

    Attributes:
        ids: those of the range itself, complete when :meth:`finish` was called.
    """

    def __init__(self, path: Path, name: str, start: int, end: int) -> None:
        super().__init__((), name=name, path=path)
        self.ids: list[str] = []
        self._within = self._read_own(start, end)
        self._unread = self._read_all(start, end)

    def __getitem__(self, item_id: str) -> Item:
        try:
            return super().__getitem__(item_id)
        except KeyError:
            raise OutOfOrder from None

    def __contains__(self, item_id: object) -> bool:
        self.answer_key(str(item_id))
        return True

    def answer_key(self, item_id: str) -> AnswerKey:
        """The part of an item that grading needs.

        Raises:
            OutOfOrder: the item is not near.
        """
        try:
            return super().answer_key(item_id)
        except KeyError:
            raise OutOfOrder from None

    def finish(self) -> None:
        """Read the rest of the range.

        Raises:
            OutOfOrder: a line of it is not plain, or an id stands twice.
        """
        for _ in self._within:
            pass

    def _read_own(self, start: int, end: int) -> Iterator[dict[str, AnswerKey]]:
        for keys in self._read_part(start, end):
            self.ids += keys
            yield keys

    def _read_all(self, start: int, end: int) -> Iterator[dict[str, AnswerKey]]:
        yield from self._within
        yield from self._read_part(end, end + _AROUND)
        yield from self._read_part(max(start - _AROUND, 0), start)

    def _read_part(self, start: int, end: int) -> Iterator[dict[str, AnswerKey]]:
        assert self.path is not None  # noqa: S101 - given to the constructor
        with open_lines(self.path) as stream:
            lines = lines_between(stream, start, end)
            while block := list(islice(lines, _LINES)):
                keys = self._read_block([line for line in block if not line.isspace()])
                if keys is None:
                    raise OutOfOrder
                yield keys
