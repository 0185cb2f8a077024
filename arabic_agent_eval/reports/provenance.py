"""Where a run comes from, in a sentence: the model, the date, and the settings that are not the defaults."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from arabic_agent_eval.errors import UsageError
from arabic_agent_eval.models.catalogue import base_address

if TYPE_CHECKING:
    from arabic_agent_eval.runs import Asked, Manifest

_LONGEST = 200  # characters of a value


def provenance(manifest: Manifest) -> str:
    """The sentence. Neither an address nor a system prompt is quoted, since they may be private or long."""
    asked = manifest.asked
    day = manifest.created.replace("T", " ").replace("+00:00", " UTC")
    settings = _settings(asked)
    said = f"settings other than the defaults: {', '.join(settings)}" if settings else "all settings are the defaults"
    return f"Model {asked.model}, run of {day}; {said}."


def _settings(asked: Asked) -> list[str]:
    found = []
    with suppress(UsageError):  # a model of one's own has no usual address
        if asked.address != base_address(asked.model, None):
            found.append("an address of its own")
    for name, value in asked.changed.items():
        if name == "system":
            found.append("a system prompt of its own")
        elif name == "written":
            found.append("tools written into the prompt")
        elif name == "parameters":
            found += [f"{key} {_value(one)}" for key, one in value.items()]
        else:
            found.append(f"{name.replace('_', ' ')} {_value(value)}")
    return found


def _value(value: object) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
