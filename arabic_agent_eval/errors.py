"""The exceptions that a caller can meet: each one is somebody's mistake, said in a sentence.

A model's mistake is data and never an exception; the network's fault is a status.

    EvalError
    ├── DataError(ValueError)       a file or a row that cannot be read as what it should be
    ├── UsageError(ValueError)      an argument or option that makes no sense
    │   ├── UnknownCategory         a category whose weight is needed and was not declared
    │   └── UnknownFormat           a reply format that nobody has written a reader for
    ├── OutputError(OSError)        a result that could not be written
    └── MissingExtra(ImportError)   an optional package that is not installed
"""

from __future__ import annotations


class EvalError(Exception):
    """Base of every exception raised on purpose by this package."""


class DataError(EvalError, ValueError):
    """Something in a file or a row is not what it should be.

    Attributes:
        what: what was found and what was expected, one sentence.
        path: the file, or None for data that came from memory.
        line: the line (from 1), or None.
        field: the dotted path of the field, or None.
        remedy: what to do about it, one sentence.
    """

    def __init__(
        self,
        what: str,
        *,
        path: str | None = None,
        line: int | None = None,
        field: str | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.path = path
        self.line = line
        self.field = field
        self.remedy = remedy

    def __str__(self) -> str:
        place = [str(self.path)] if self.path is not None else []
        if self.line is not None:
            place.append(f"line {self.line}")
        if self.field is not None:
            place.append(f"field {self.field!r}")
        head = f"{', '.join(place)}: " if place else ""
        tail = f" {self.remedy}" if self.remedy else ""
        return f"{head}{self.what}{tail}"

    def __reduce__(self) -> tuple[object, ...]:
        state = {key: getattr(self, key) for key in ("path", "line", "field", "remedy")}
        return (_rebuild_data_error, (self.what, state))

    def at(self, path: str | None = None, line: int | None = None) -> DataError:
        """The same error with its place filled in where it was not known yet."""
        return DataError(
            self.what,
            path=self.path if self.path is not None else path,
            line=self.line if self.line is not None else line,
            field=self.field,
            remedy=self.remedy,
        )


def _rebuild_data_error(what: str, state: dict[str, str | int | None]) -> DataError:
    """Unpickle a DataError that a worker process raised."""
    return DataError(what, **state)  # type: ignore[arg-type]


class UsageError(EvalError, ValueError):
    """An argument or option makes no sense, alone or with the others."""


class UnknownCategory(UsageError):
    """A category outside the six canonical ones has no declared weight (ruling 19)."""


class UnknownFormat(UsageError):
    """No reader has the name that was given as a reply format."""


class OutputError(EvalError, OSError):
    """A result could not be written; whatever stood there before still stands."""

    def __str__(self) -> str:
        return str(self.args[0])


class MissingExtra(EvalError, ImportError):
    """An optional package is needed and not installed; the message names the command that installs it."""
