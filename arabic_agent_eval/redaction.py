"""Taking keys and tokens out of texts that others wrote, before they reach a row, a report or a message."""

from __future__ import annotations

import re

from arabic_agent_eval.text import fold_invisible

_SECRET = re.compile(
    r"(?i)(?:c?sk|[prg]k|gsk|hf|xai|key|nvapi|pplx|r8|gh[opsu]|github_pat|glpat|xox[abp])[-_][\w.*+/=-]{6,}"
    r"|(?:AIza|AKIA|ya29\.)[\w.*+/=-]{8,}|eyJ[\w-]{6,}\.[\w.-]+"
    # After a label and a sign anything may be the key; after a label and a space only what is no plain word.
    r"|(?:api[-_ ]?key|authorization|bearer|basic|token|secret|password)"
    r"(?:[\"']*\s*[:=][\s\"']*(?:(?:bearer|basic)\s+)?|[\s\"']+(?=[\w.*+/=-]*(?-i:\d|[a-z][A-Z]|[A-Z_]{2}|[.=+/]\w)))[\w.*+/=-]{6,}"
    r"|(?<=://)[^\s/@]+@"
)


def redact(text: str) -> str:
    """The text with what looks like a key, a token or a password replaced; best effort, since keys have many shapes.

    A key with invisible characters inside is found too; the text then loses all of them.
    """
    shown = _SECRET.sub("[secret]", text)
    bare = fold_invisible(shown)
    return _SECRET.sub("[secret]", bare) if _SECRET.search(bare) else shown
