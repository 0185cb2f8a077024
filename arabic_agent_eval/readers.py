"""Readers of reply formats that are not built in: what an installed package offers, and what is made of it.

Nothing here looks for packages: :mod:`arabic_agent_eval.plugins` finds a reader, and :func:`formats.read_reply
<arabic_agent_eval.formats.read_reply>` and the grader are handed it. What a model sent never raises in a good reader;
what a broken one does is one sentence that names its package.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal, NoReturn, get_args

from arabic_agent_eval.errors import DataError, EvalError
from arabic_agent_eval.reasons import exception_line
from arabic_agent_eval.strictjson import MAX_DEPTH, replace_surrogates, too_deep
from arabic_agent_eval.tools import Call, CallError

Source = Literal["text", "row"]
Read = Callable[[Any, Collection[str]], Iterable[Call | Mapping[str, Any]]]

_NAMES = get_args(CallError)
_ERRORS = {None, *_NAMES}
_DEEPEST = 2 * MAX_DEPTH
_LONGEST_INT = 13_000  # bits, about 4,000 digits: Python writes no longer ones
_REPAIR = "Repair or update the package, or grade without this format."


@dataclass(frozen=True, eq=False)
class Reader:
    """A reply format; an entry point of the group ``arabic_agent_eval.formats`` names one.

    Attributes:
        read: (text or row, names of the offered tools) → the calls in their order, each a :class:`Call` or a mapping
            with ``function`` and ``arguments``. Whatever a model wrote must not raise: what cannot be read is a
            ``Call`` with an ``error``. The names are empty where they are not known.
        takes: ``text``: the raw text of the answer; ``row``: the whole decoded row, for shapes of its own.
        recognises: whether a text or row is written in this format, for ``--format auto+NAME``; None: it cannot tell.

    Raises:
        TypeError: a field has another type.
    """

    read: Read
    takes: Source = "text"
    recognises: Callable[[Any], bool] | None = None

    def __post_init__(self) -> None:
        if not callable(self.read):
            raise TypeError("'read' must be a function of a text or row and the names of the offered tools")
        if self.takes not in get_args(Source):
            raise TypeError(f"'takes' must be 'text' or 'row', not {self.takes!r}")
        if self.recognises is not None and not callable(self.recognises):
            raise TypeError("'recognises' must be a function of a text or row, or None")


@dataclass(frozen=True, eq=False)
class OwnFormat:
    """A reader, and whose it is.

    Attributes:
        name: as it is given to ``--format``, without ``auto+``.
        tag: what the signature of numbers says: the name, and the package with its version.
        origin: format, package and entry point in words, for messages.
        reader: the reader.
        beside_auto: read only what the reader recognises; all else is read as ``auto`` reads it.
    """

    name: str
    tag: str
    origin: str
    reader: Reader
    beside_auto: bool = False

    def __str__(self) -> str:
        return self.tag

    @property
    def takes(self) -> Source:
        """What the reader takes: the text of an answer, or the whole row."""
        return self.reader.takes

    def recognises(self, source: Any) -> bool:
        """Whether a text or row is written in this format.

        Raises:
            DataError: the reader failed.
        """
        try:
            return self.reader.recognises is not None and bool(self.reader.recognises(source))
        except EvalError:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - what somebody else's code raises is theirs to choose
            self.fail(f"raised {exception_line(error)}")

    def fail(self, what: str) -> NoReturn:
        """Say what the reader did wrong.

        Raises:
            DataError: always; whoever knows file and line adds them.
        """
        raise DataError(f"{self.origin} {what.rstrip('.')}.", remedy=_REPAIR) from None


@dataclass(frozen=True, eq=False)
class Unread:
    """An answer for a reader that is not built in: the payload of a reply."""

    format: OwnFormat
    source: Any

    def calls(self, offered: Collection[str]) -> tuple[Call, ...]:
        """The calls, checked.

        Raises:
            DataError: the reader raised, or gave something that is no call.
        """
        try:
            return tuple([self._checked(entry) for entry in self.format.reader.read(self.source, offered)])
        except EvalError:
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - as above; a mapping can raise whatever it likes
            self.format.fail(f"raised {exception_line(error)}")

    def _checked(self, entry: Any) -> Call:
        if not isinstance(entry, Call | Mapping):
            self.format.fail(f"gave {_kind(entry)} where a call must be: a Call, or 'function' and 'arguments'")
        call = Call.of(entry)
        if call.error not in _ERRORS:
            self.format.fail(f"gave a call with the error {str(call.error)[:40]!r}; there are {', '.join(_NAMES)}")
        if not isinstance(call.arguments, dict) or not isinstance(call.function, str | None):
            self.format.fail("gave a call whose name is not text or whose arguments are no object")
        if call.error is None or too_deep(call.arguments):
            call = Call.read(call.function, call.arguments)
        raw = None if too_deep(call.raw, _DEEPEST) else call.raw  # it is for showing only
        if (kind := _not_json([call.function, call.arguments, raw])) is not None:
            self.format.fail(f"gave {kind} inside a call, which JSON does not have")
        return Call(replace_surrogates(call.function), replace_surrogates(call.arguments), call.error,
                    replace_surrogates(raw))  # fmt: skip


def _kind(value: object) -> str:
    return f"a value of the type {type(value).__name__}"


def _not_json(value: Any) -> str | None:
    """What JSON cannot hold in a value, in words; None where it can hold all of it."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if type(one) is dict:
            if not all(type(key) is str for key in one):
                return "a name that is not text"
            waiting += one.values()
        elif type(one) is list:
            waiting += one
        elif type(one) is float and not isfinite(one):
            return f"the number {one}"
        elif type(one) is int and one.bit_length() > _LONGEST_INT:
            return "a whole number of thousands of digits"
        elif type(one) not in {str, int, float, bool, type(None)}:
            return _kind(one)
    return None
