"""What installed packages add: reply formats, and for :mod:`arabic_agent_eval.models.installed` providers of models.

A package names them by entry points of the groups :data:`FORMATS` and :data:`MODELS`. Nothing is looked for until a
name is given that is not built in, so that installing a package changes no number, and costs nothing.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from arabic_agent_eval import formats
from arabic_agent_eval.errors import UnknownFormat, UsageError
from arabic_agent_eval.readers import OwnFormat, Reader
from arabic_agent_eval.reasons import exception_line, safe_line

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_T = TypeVar("_T")

FORMATS, MODELS = "arabic_agent_eval.formats", "arabic_agent_eval.models"
"""The groups of entry points."""

_WORDS = {FORMATS: "reply format", MODELS: "provider"}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_BESIDE = "auto+"
_RESERVED = {*formats.FORMATS, "failure"}


class Origin(NamedTuple):
    """Where something that is not built in comes from.

    Attributes:
        group: of the entry point; name: of the entry point; target: what it names.
        package, version: of the package that has it.
    """

    group: str
    name: str
    target: str
    package: str
    version: str

    def __str__(self) -> str:
        what = f"the {_WORDS[self.group]} {self.name!r} of the package {self.package} {self.version}"
        return safe_line(f"{what.rstrip()} (entry point {self.target})")


def find_format(name: str) -> str | OwnFormat:
    """The reply format of a name: a built-in one as it is, else the one that an installed package offers.

    Args:
        name: as ``--format`` is given: ``NAME``, or ``auto+NAME`` for what ``auto`` reads and, besides, answers that
            the format recognises as its own.

    Raises:
        UnknownFormat: no format has that name.
        UsageError: the package that offers it is broken, or two offer it.
    """
    return name if name in formats.FORMATS else _own_format(name)


@functools.cache  # what is found stays found; what is not found may be installed later
def _own_format(name: str) -> OwnFormat:
    bare = name.removeprefix(_BESIDE)
    found = None if bare in _RESERVED else find(FORMATS, bare, Reader)
    if found is None:
        known = ", ".join([*formats.FORMATS, *(one for one in names(FORMATS) if one not in _RESERVED)])
        raise UnknownFormat(f"there is no reply format {name[:60]!r}; choose one of {known}.")
    reader, origin = found
    beside = name != bare
    if beside and reader.recognises is None:
        raise UsageError(f"{origin} recognises no answers, so it cannot stand beside 'auto'; give --format {bare}.")
    tag = f"{name}@{origin.package}-{origin.version}"
    return _Installed(bare, re.sub(r"[^\w.+!@-]", "_", tag), str(origin), reader, beside)


@dataclass(frozen=True, eq=False)
class _Installed(OwnFormat):
    """A format that another process finds again by its name: a reader need not be something that can be sent."""

    def __reduce__(self) -> tuple[object, ...]:
        return find_format, (f"{_BESIDE if self.beside_auto else ''}{self.name}",)


# --- entry points --------------------------------------------------------------------------------------------


def names(group: str) -> list[str]:
    """The names that installed packages give in a group, each once, in order."""
    return sorted({one.name for one in _entries(group)})


def find(group: str, name: str, wanted: type[_T]) -> tuple[_T, Origin] | None:
    """What an installed package offers under a name, and where it comes from; None where none offers it.

    Args:
        group: :data:`FORMATS` or :data:`MODELS`.
        name: of the entry point.
        wanted: what it must name.

    Raises:
        UsageError: it cannot be loaded, is something else, or two packages offer it.
    """
    entries = [one for one in _entries(group) if one.name == name] if _NAME.fullmatch(name) else []
    if not entries:
        return None
    origins = [_origin(group, one) for one in entries]
    if len(entries) > 1:
        packages = " and ".join(f"{one.package} {one.version}".rstrip() for one in origins)
        raise UsageError(f"the {_WORDS[group]} {name!r} is offered by {packages}; uninstall all but one of them.")
    [entry], [origin] = entries, origins
    try:
        found = entry.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a package does when it is imported
        remedy = "Repair, update or uninstall the package."
        raise UsageError(f"{origin} cannot be loaded: {exception_line(error).rstrip('.')}. {remedy}") from None
    if not isinstance(found, wanted):
        what = f"{origin} is a value of the type {type(found).__name__}; it must be a {wanted.__name__}"
        raise UsageError(f"{what} of {wanted.__module__}.")
    return found, origin


def _entries(group: str) -> list[EntryPoint]:
    from importlib.metadata import entry_points  # noqa: PLC0415 - it takes longer to load than most names to look up

    try:
        return list(entry_points(group=group))
    except Exception as error:  # noqa: BLE001 - any package can have left anything there
        what = f"what the installed packages offer cannot be read: {exception_line(error).rstrip('.')}"
        raise UsageError(f"{what}. 'pip check' may tell which of them is damaged.") from None


def _origin(group: str, entry: EntryPoint) -> Origin:
    found = entry.dist
    try:
        package, version = ("", "") if found is None else (found.metadata["Name"], found.version)
    except Exception:  # noqa: BLE001 - a package whose metadata cannot be read still has a name in its folder
        package, version = "", ""
    return Origin(group, entry.name, entry.value, package or "(without a name)", version or "")
