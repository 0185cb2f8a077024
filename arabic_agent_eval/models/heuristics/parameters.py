"""Parameters of tools: what each one holds, told from its name, description and schema, and fitting values to it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from arabic_agent_eval.lexicon import load_lexicon
from arabic_agent_eval.models.heuristics.vocabulary import features_in, listed
from arabic_agent_eval.text import fold_digits
from arabic_agent_eval.tools import Tool

_ROLES: Final = {
    "moment": "datetime timestamp",
    "time": "time hour clock",
    "date": "date day checkin checkout",
    "quote": "text message note title body content subject memo comment label reason",
    "query": "query search keyword keywords term question q expression phrase",
    "identifier": "id number code tracking plate account iban phone mobile email url reference pnr",
    "origin": "from origin pickup source departure",
    "destination": "to destination dropoff arrival",
    "person": "recipient doctor person contact patient beneficiary passenger attendee attendees passengers receiver",
    "address": "address street",
    "place": "city location place country area region town",
}
_ROLE_OF: Final = {word: role for role, words in _ROLES.items() for word in words.split()}
_CHECK = re.compile(r"\bcheck[_ -]?(in|out)\b")
_TOKENS = re.compile(r"[a-z]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_HEAD = re.compile(r"[,;.:(؛،]")
_SEPARATORS = re.compile(r"[\s/_.-]+")
_CODE = re.compile(r"[A-Z]{3}")
_MOST_PROPERTIES = 40


class Property(NamedTuple):
    """A parameter of a tool: its schema, and the role that its name and description give it."""

    name: str
    schema: dict[str, Any]
    kind: str
    role: str
    required: bool
    features: frozenset[str]


def properties_of(tool: Tool) -> list[Property]:
    """The parameters of a tool, as far as its schema can be read."""
    required = set(tool.required)
    found = []
    for name, schema in list(tool.properties.items())[:_MOST_PROPERTIES]:
        if isinstance(schema, dict):
            kind = kind_of(schema)
            if kind == "string" and "currency" in name.lower():
                kind, schema = "enum", {**schema, "enum": _currencies()}  # noqa: PLW2901 - the schema as it is meant
            features = features_in(name) | features_in(head(schema.get("description")), 20)
            found.append(Property(name, schema, kind, role_of(name, schema, kind), name in required, features))
    return found


@cache
def _currencies() -> list[str]:
    """The codes of all currencies that the dictionary knows."""
    lexicon = load_lexicon()
    codes = ((key.upper(), lexicon.kinds[entry]) for key, entries in lexicon.codes.items() for entry in entries)
    return [code for code, kind in codes if kind == "currencies" and _CODE.fullmatch(code)]


def head(description: Any) -> str:
    """The beginning of each half of a description, up to the first comma or bracket: what the thing is."""
    if not isinstance(description, str):
        return ""
    return " ".join(_HEAD.split(half.strip(), maxsplit=1)[0] for half in description[:1000].split("|"))


def kind_of(schema: Mapping[str, Any]) -> str:
    """``enum``, or the first JSON type that is not null; ``string`` where there is none."""
    if isinstance(schema.get("enum"), list):
        return "enum"
    kinds = schema.get("type")
    kinds = [
        kind for kind in (kinds if isinstance(kinds, list) else [kinds]) if isinstance(kind, str) and kind != "null"
    ]
    return kinds[0] if kinds else "string"


def role_of(name: str, schema: Mapping[str, Any], kind: str) -> str:
    """What a text parameter holds, from its format, its name and the beginning of its description."""
    if kind in {"enum", "boolean", "integer", "number", "array", "object"}:
        return kind
    formats = {"date": "date", "time": "time", "date-time": "moment", "email": "identifier", "uri": "identifier"}
    if (form := schema.get("format")) in tuple(formats):
        return formats[str(form)]
    name = _CAMEL.sub("_", name).lower()
    if _CHECK.search(name.replace("_", " ")):
        return "date"
    for tokens in (_TOKENS.findall(name)[::-1], _TOKENS.findall(head(schema.get("description")).lower())[:6]):
        directed = [role for token in tokens if (role := _ROLE_OF.get(token)) in {"origin", "destination"}]
        roles = [role for token in tokens if (role := _ROLE_OF.get(token))]
        timed = [role for role in roles if role in {"date", "time", "moment"}]
        if roles:
            return (timed or directed or roles)[0]
    return "name"


def name_tokens(one: Property) -> list[str]:
    """The words of a parameter's name."""
    return _TOKENS.findall(_CAMEL.sub("_", one.name).lower())


def direction_of(one: Property) -> str:
    """``origin`` or ``destination`` of a value that goes from one to another; "" of any other."""
    tokens = name_tokens(one)
    roles = [_ROLE_OF[token] for token in tokens if _ROLE_OF.get(token) in {"origin", "destination"}]
    return roles[0] if roles else {"base": "origin", "quote": "destination"}.get(one.name.lower(), "")


NEGATIONS: Final = listed("negations")
"""Words that turn round what follows."""


def shared(one: frozenset[str], other: frozenset[str]) -> int:
    """Whether two words may mean the same: 1 or 0; a root alone is too little."""
    return int(any(not feature.startswith("root") for feature in one & other))


def nominal(features: frozenset[str]) -> frozenset[str]:
    """The features that name a thing."""
    return frozenset(feature for feature in features if feature.startswith(("topic", "noun")))


# --- fitting a value to a schema -----------------------------------------------------------------------------


def fitted(value: Any, schema: Mapping[str, Any]) -> Any:
    """The value as the schema wants it: ASCII digits or no separators where its pattern asks for it; else None."""
    if isinstance(value, str):
        return _fitted_text(value.strip(), schema)
    if isinstance(value, int | float) and not isinstance(value, bool):
        if schema.get("type") == "integer" and value != int(value):
            return None
        least, bound = schema.get("minimum"), schema.get("exclusiveMinimum")
        small = (isinstance(least, int | float) and value < least) or (
            isinstance(bound, int | float) and value <= bound
        )
        return None if small else value
    return value


def _fitted_text(text: str, schema: Mapping[str, Any]) -> str | None:
    pattern = schema.get("pattern")
    if not text or not isinstance(pattern, str) or not _affordable(pattern):
        return text or None
    for form in (text, fold_digits(text), _SEPARATORS.sub("", fold_digits(text)), fold_digits(text).upper()):
        try:
            if len(form) <= 100 and re.search(pattern, form):  # noqa: PLR2004
                return form
        except (re.error, RecursionError, OverflowError):
            return text
    return None


def _affordable(pattern: str) -> bool:
    """Whether a pattern can be tried: short, and without a repeated group."""
    repeats = len(re.findall(r"[*+{]", pattern))
    return len(pattern) <= 200 and re.search(r"\)[*+{]", pattern) is None and repeats <= 3  # noqa: PLR2004
