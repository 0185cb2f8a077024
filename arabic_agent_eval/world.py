"""The simulated tools of one item: a call in, a result out, the same for every model.

What the grader counts as right gets the result that the item holds; everything else gets the answer of an honest
service, in Arabic, which gives away nothing of what was expected. The order of calls is the grader's business, so a
later call is answered before an earlier one as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from arabic_agent_eval.grading import WILDCARD, compare_value
from arabic_agent_eval.items import ExpectedCall, Item
from arabic_agent_eval.ladder import CASELESS
from arabic_agent_eval.strictjson import encode, too_deep
from arabic_agent_eval.text import name_invisible
from arabic_agent_eval.tools import Call, Tool

_MAX_SHOWN = 60
_MAX_FAULTS = 8
_MAX_LOOKS = 2_000

_MALFORMED: Final = {
    "malformed_call": ("malformed_call", "تعذّرت قراءة هذا الاستدعاء. أرسل اسم الأداة ومعاملاتها بصيغة JSON."),
    "malformed_arguments": ("malformed_arguments", "تعذّرت قراءة المعاملات: يجب أن تكون كائن JSON واحدًا سليمًا."),
    "double_encoded_arguments": (
        "malformed_arguments",
        "المعاملات مرمّزة بصيغة JSON مرتين: أرسلها كائنًا لا نصًّا داخل نص.",
    ),
}
_UNKNOWN_TOOL: Final = "لا توجد أداة بهذا الاسم: «{name}»."
_FAULTS: Final = {
    "missing": "معاملات مطلوبة لم تُرسل",
    "unknown": "معاملات غير معروفة",
    "type": "معاملات من نوع غير صحيح",
    "enum": "معاملات قيمتها ليست من القيم المسموح بها",
}
_DONE: Final = '{"status":"ok"}'
_UNWRITABLE: Final = "تعذّر عرض النتيجة."
_NOTHING: Final = '{"status":"no_result","message":"لا توجد نتيجة لهذا الطلب بهذه القيم، ولم يُنفَّذ أي إجراء."}'
"""One answer for wrong values and for tools that nobody needed: it tells neither from the other."""


def is_conversation(item: Item) -> bool:
    """Whether the item runs as a conversation: some expected call says what the tool answers, be it null."""
    return any(call.result is not msgspec.UNSET for call in item.expected_calls)


class World:
    """The tools of one item in one conversation; it remembers which expected calls have been made.

    Args:
        item: the item.
        tools: the tools that were offered, by name.
    """

    def __init__(self, item: Item, tools: Mapping[str, Tool]) -> None:
        self._item = item
        self._tools = tools
        self._answers: dict[int, str] = {}
        self._error_is_due = item.error_response is not None

    def answer(self, call: Call) -> str:
        """What the tool answers to a call: JSON text in unescaped UTF-8. No call raises.

        An expected call that has not been made yet gets its result, ``{"status": "ok"}`` if the item has none; where
        several fit, the one with the most to fit, then the closest, then the first. An item's error comes once before
        such an ``ok`` and leaves the expected call to be made again. A call that fits only what has been made before
        gets the same answer as then.
        """
        if call.function is None or call.error == "malformed_call":
            return _refusal(*_MALFORMED["malformed_call"])
        if call.function not in self._tools:
            return _refusal("unknown_tool", _UNKNOWN_TOOL.format(name=_shown(call.function)))
        if call.error is not None:
            return _refusal(*_MALFORMED[call.error])
        if (place := self._met(call)) is not None:
            return self._answered(place)
        faults = _faults_of(call.arguments, self._tools[call.function])
        return _invalid(faults) if faults else _NOTHING

    def _met(self, call: Call) -> int | None:
        """The expected call that is met; one that has not been made yet, if there is any."""
        best, found = None, None
        for place, expected in enumerate(self._item.expected_calls):
            fit = _fit(expected, call)
            if fit is not None and (best is None or (place not in self._answers, fit) > best):
                best, found = (place not in self._answers, fit), place
        return found

    def _answered(self, place: int) -> str:
        if place in self._answers:
            return self._answers[place]
        result = self._item.expected_calls[place].result
        if result is msgspec.UNSET and self._error_is_due:
            self._error_is_due = False
            return _written(self._item.error_response)
        self._answers[place] = _DONE if result is msgspec.UNSET else _written(result)
        return self._answers[place]


def _fit(expected: ExpectedCall, call: Call) -> tuple[bool, int, float] | None:
    """How well a call meets an expected one, as something to compare; None where the grader would find a fault."""
    if expected.function not in (call.function, WILDCARD):
        return None
    literal, rungs = 0, 0.0
    accept = expected.accept or {}
    for name, value in expected.arguments.items():
        if value is None:
            continue
        rung = compare_value(value, call.arguments.get(name), accept.get(name, ()))[0]
        if rung < CASELESS:
            return None
        literal += value != WILDCARD
        rungs += rung
    return expected.function != WILDCARD, literal, rungs


# --- what a schema has against arguments ---------------------------------------------------------------------


class _Fault(NamedTuple):
    """One thing that is wrong: a key of ``_FAULTS`` and the parameter's path."""

    kind: str
    path: str


_TYPES: Final[dict[str, Callable[[Any], bool]]] = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: (
        not isinstance(value, bool) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))
    ),
    "array": lambda value: isinstance(value, list | tuple),
    "object": lambda value: isinstance(value, Mapping),
    "null": lambda value: value is None,
}


def _faults_of(arguments: dict[str, Any], tool: Tool) -> list[_Fault]:
    """The first few faults: required, unknown, type, enum; references and choices of schemas are not followed."""
    found = []
    for looks, fault in enumerate(_look(tool.parameters, arguments, "")):
        if fault is not None and fault not in found:
            found.append(fault)
        if len(found) == _MAX_FAULTS or looks == _MAX_LOOKS:
            break
    return found


def _look(schema: Any, value: Any, path: str) -> Iterator[_Fault | None]:
    """Every fault of a value, and None for each look that finds none, so that the caller can stop."""
    yield None
    if not isinstance(schema, dict):
        return
    if not _has_type(value, schema.get("type")):
        yield _Fault("type", path)
    elif not _is_allowed(value, schema.get("enum")):
        yield _Fault("enum", path)
    elif isinstance(value, Mapping):
        yield from _look_inside(schema, value, f"{path}." if path else "")
    elif isinstance(value, list | tuple):
        for place, member in enumerate(value):
            yield from _look(schema.get("items"), member, f"{path}[{place}]")


def _look_inside(schema: dict[str, Any], value: Mapping[str, Any], path: str) -> Iterator[_Fault | None]:
    """The members of an object; a null member is as absent (ruling 1)."""
    properties, required = schema.get("properties"), schema.get("required")
    properties = properties if isinstance(properties, dict) else {}
    for name in required if isinstance(required, list) else ():
        missing = isinstance(name, str) and value.get(name) is None
        yield _Fault("missing", path + _shown(name)) if missing else None
    closed = schema.get("additionalProperties") is False and "patternProperties" not in schema
    for name, member in value.items():
        if name not in properties:
            yield _Fault("unknown", path + _shown(name)) if closed and member is not None else None
        elif member is not None:
            yield from _look(properties[name], member, path + _shown(name))


def _has_type(value: Any, wanted: Any) -> bool:
    names = [name for name in (wanted if isinstance(wanted, list) else [wanted]) if isinstance(name, str)]
    return not names or any(_TYPES.get(name, lambda _: True)(value) for name in names)


def _is_allowed(value: Any, enum: Any) -> bool:
    if not isinstance(enum, list):
        return True
    return any(isinstance(value, bool) == isinstance(other, bool) and value == other for other in enum)


# --- what is said --------------------------------------------------------------------------------------------


def _invalid(faults: list[_Fault]) -> str:
    named = {kind: [fault.path or "{}" for fault in faults if fault.kind == kind] for kind in _FAULTS}
    parts = [f"{_FAULTS[kind]}: {'، '.join(paths)}" for kind, paths in named.items() if paths]
    return _refusal("invalid_arguments", f"{'؛ '.join(parts)}.")


def _refusal(code: str, message: str) -> str:
    return _written({"error": {"code": code, "message": message}})


def _shown(name: str) -> str:
    shown = name_invisible(name[:_MAX_SHOWN], spaces=True)
    return shown + "…" if len(name) > _MAX_SHOWN else shown


def _written(value: Any) -> str:
    """A value as JSON text; what cannot be written is said to be so."""
    if too_deep(value):
        return _refusal("internal_error", _UNWRITABLE)
    return encode(value).decode()
