"""The list of providers, and what a check of one model found, as lines."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from arabic_agent_eval.errors import UsageError
from arabic_agent_eval.models.catalogue import installed_providers, providers
from arabic_agent_eval.text import name_invisible

if TYPE_CHECKING:
    from arabic_agent_eval.probe import Finding


def provider_lines(*, as_json: bool) -> Iterator[bytes]:
    """One line for each provider, or one JSON object; whether a key is set is said, and never what it is.

    Raises:
        UsageError: after the last line, an installed package offers a provider that cannot be used.
    """
    installed, wrong = installed_providers()
    for one in [*providers(), *installed]:
        is_set = bool(os.environ.get(one.key_variable)) if one.key_variable else None
        if as_json:
            yield msgspec.json.encode(msgspec.to_builtins(one) | {"key_is_set": is_set}) + b"\n"
            continue
        needs = "needs nothing" if is_set is None else f"key in {one.key_variable} ({'set' if is_set else 'not set'})"
        where = f", {one.address}" if one.address else ""
        whose = f", from {one.package}" if one.package else ""
        lines = f"{one.example:32} {one.about}", f"{'':32} {needs}{where}{whose}"
        yield "".join(f"{name_invisible(line, spaces=True)}\n" for line in lines).encode()
    if wrong:
        raise UsageError(" ".join(wrong))


def check_line(finding: Finding) -> bytes:
    """A sentence about a checked model."""
    return f"{name_invisible(finding.model, spaces=True)}: {name_invisible(finding.message, spaces=True)}\n".encode()
