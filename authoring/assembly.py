"""Putting items together: an intent and a line make one; the key is the intent's and so the same in every dialect."""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any, Final

from arabic_agent_eval.text import normalize_arabic
from authoring.sources import CATEGORIES, DIALECTS, SHORT, TRACKS, Rows, Sources

_WORD: Final = re.compile(r"[^\s«»\"'،,؛;:؟?!.()]+")
_ITEM: Final = (
    "id", "category", "instruction", "dialect", "language", "intent", "context", "messages", "available_functions",
    "ordered", "expected_calls", "error_response", "difficulty", "tags", "notes",
)  # fmt: skip
CANARY: Final = "arabic-agent-eval canary 7f0c6f1e-5d0b-4c53-9f0e-2b6f8f6a41d9: not for training"
"""Stands in the card and the notes of the first item: a model that can continue it has seen the set."""


def core(sources: Sources) -> Rows:
    """The Arabic items of the six categories: parallel ones by dialect, then the single ones."""
    found = [*_parallel(sources, CATEGORIES), *_alone(sources)]
    found.sort(key=lambda row: (CATEGORIES.index(row["category"]), row["intent"] is None))
    return _marked(found)


def tracks(sources: Sources) -> Rows:
    """The items of the tracks that enter no overall score."""
    return _marked(list(_parallel(sources, TRACKS)))


def english(sources: Sources) -> Rows:
    """The same requests in English: controls for the cost of speaking Arabic."""
    return _marked([control(intent) for intent in sources.of(CATEGORIES)])


def _marked(rows: Rows) -> Rows:
    rows[0]["notes"] = CANARY
    return [_ordered(row) for row in rows]


def _parallel(sources: Sources, categories: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    for intent in sources.of(categories):
        for dialect, language in DIALECTS.items():
            line = sources.lines[dialect][intent["intent"]]
            row = _shared(intent) | {"dialect": dialect, "language": line.get("language", language)}
            row |= {"id": f"{intent['intent']}.{SHORT[dialect]}", "instruction": line["instruction"]}
            if "messages" in line:
                row["messages"] = line["messages"]
            if intent["category"] != "adversarial":  # there the typed form is the trap
                _accept_as_typed(row)
            yield row


def _shared(intent: dict[str, Any]) -> dict[str, Any]:
    return copy.deepcopy({name: intent[name] for name in _ITEM if name in intent})


def _alone(sources: Sources) -> Iterator[dict[str, Any]]:
    for dialect, language in DIALECTS.items():
        for row in sources.singles[dialect]:
            made = {"language": language, "dialect": dialect} | copy.deepcopy(row) | {"intent": None}
            _accept_as_typed(made)
            yield made


def control(intent: dict[str, Any]) -> dict[str, Any]:
    """The English request: values that the user names are in English, and the Arabic ones are right as well."""
    given = intent["en"]
    row = _shared(intent) | {"dialect": "english", "language": "en", "id": f"{intent['intent']}.en"}
    row["instruction"] = given["instruction"]
    values: dict[str, str] = given["values"]
    for call in row["expected_calls"]:
        for name, value in call["arguments"].items():
            changed = _replaced(value, values)
            if changed != value:
                arabic = [value, *call.get("accept", {}).get(name, ())]
                right = [*(_replaced(one, values) for one in arabic), *arabic]
                unique = list(dict.fromkeys(_frozen(one) for one in right if one != changed))
                call.setdefault("accept", {})[name] = [json.loads(one) for one in unique]
                call["arguments"][name] = changed
    return row


def _replaced(value: Any, values: dict[str, str]) -> Any:
    if isinstance(value, str):
        return values.get(value, value)
    if isinstance(value, list):
        return [_replaced(member, values) for member in value]
    if isinstance(value, dict):
        return {key: _replaced(member, values) for key, member in value.items()}
    return value


# --- spelling as typed ---------------------------------------------------------------------------------------


def _accept_as_typed(row: dict[str, Any]) -> None:
    """Where the user typed a value in another spelling (ه for ة, ا for أ), copying it is right as well."""
    words = _WORD.findall(row["instruction"])
    for call in row["expected_calls"]:
        for name, value in call["arguments"].items():
            accepted = call.get("accept", {}).get(name, [])
            typed = [found for one in (value, *accepted) if (found := _typed(one, words)) is not None]
            new = [one for one in dict.fromkeys(map(_frozen, typed)) if one not in map(_frozen, (value, *accepted))]
            if new:
                call.setdefault("accept", {})[name] = [*accepted, *map(json.loads, new)]


def _frozen(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _typed(value: Any, words: list[str]) -> Any:
    """The value as it is spelt in the instruction; None where it stands there as it is, or not at all."""
    if isinstance(value, str):
        found = _spelt(value, words)
        return None if found == value else found
    if isinstance(value, list | dict):
        changed = _typed_inside(value, words)
        return None if changed == value else changed
    return None


def _typed_inside(value: Any, words: list[str]) -> Any:
    if isinstance(value, str):
        return _spelt(value, words) or value
    if isinstance(value, list):
        return [_typed_inside(member, words) for member in value]
    if isinstance(value, dict):
        return {key: _typed_inside(member, words) for key, member in value.items()}
    return value


def _spelt(value: str, words: list[str]) -> str | None:
    wanted = [normalize_arabic(word) for word in value.split()]
    if not wanted or normalize_arabic(value).isascii():
        return None
    normal = [normalize_arabic(word) for word in words]
    for start in range(len(words) - len(wanted) + 1):
        first = _without_particle(normal[start], wanted[0])
        if first is not None and normal[start + 1 : start + len(wanted)] == wanted[1:]:
            found = [words[start][first:], *words[start + 1 : start + len(wanted)]]
            return " ".join(found)
    return None


def _without_particle(word: str, wanted: str) -> int | None:
    """How many letters stand before the wanted word, where they can only be a particle; None where it is not there."""
    if word == wanted:
        return 0
    return 1 if word[:1] in {"و", "ب", "ل", "ف", "ع", "ه"} and word[1:] == wanted else None


def _shuffled(names: list[str], of: str) -> list[str]:
    """Tools in an order that says nothing, the same in all dialects; authors tend to write the right one first."""
    return sorted(names, key=lambda name: hashlib.sha256(f"{of} {name}".encode()).digest())


def _ordered(row: dict[str, Any]) -> dict[str, Any]:
    """The fields in one order, those that say nothing left out."""
    found = {name: row[name] for name in _ITEM if row.get(name) not in (None, {}) and row.get(name) != []}
    found["expected_calls"] = row["expected_calls"]
    found["available_functions"] = _shuffled(row.get("available_functions", []), row.get("intent") or row["id"])
    if found.get("ordered") is True:
        del found["ordered"]
    return {name: found[name] for name in _ITEM if name in found}
