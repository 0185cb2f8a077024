"""Fields of items that no reader knows: a misspelt one has no effect, and so changes a score in silence."""

from __future__ import annotations

from collections.abc import Iterable

from rapidfuzz.process import extractOne

from arabic_agent_eval.checks import Finding
from arabic_agent_eval.items import ExpectedCall, Item
from arabic_agent_eval.text import name_invisible

_ALIKE = 60.0
_SHOWN = 60


def check_fields(fields: Iterable[tuple[str, str]]) -> list[Finding]:
    """A finding for each unknown field.

    Args:
        fields: item and path of the field, as ``ItemSet.unknown_fields`` gives them.
    """
    return [Finding(item_id, "unknown_field", _shown(path), _message(path)) for item_id, path in fields]


def _message(path: str) -> str:
    inside, _, name = path.rpartition(".")
    known = ExpectedCall.__struct_fields__ if inside else Item.__struct_fields__
    near = extractOne(name.lower()[:_SHOWN], known, score_cutoff=_ALIKE)
    meant = f" Did you mean {near[0]!r}?" if near else ""
    return f"No reader knows the field {_shown(name)!r}, so it has no effect.{meant}"


def _shown(text: str) -> str:
    return name_invisible(text[:_SHOWN], spaces=True)
