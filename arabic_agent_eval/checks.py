"""What makes an item unfair: a right answer that no model could give, or that its own tools would refuse.

Nothing here takes part in a score. A finding is a fact about one place of one item, with its remedy. Schemas are
checked without ever fetching a document, and a schema that cannot be checked is itself a finding.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import msgspec
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from arabic_agent_eval.derivation import Given, is_derivable, leaves_of, texts_in
from arabic_agent_eval.errors import DataError
from arabic_agent_eval.files import json_type
from arabic_agent_eval.items import CATEGORIES, DIALECTS, ExpectedCall, Item
from arabic_agent_eval.strictjson import number_text, too_deep
from arabic_agent_eval.text import has_arabic, name_invisible
from arabic_agent_eval.tools import Tool, read_tool

RULES: dict[str, str] = {
    "missing_required": "An expected call leaves out an argument that the tool's schema requires.",
    "wrong_type": "An expected or accepted value has another JSON type than the schema wants.",
    "outside_enum": "An expected or accepted value is not among those that the schema allows.",
    "breaks_schema": "An expected or accepted value breaks another rule of the schema, such as a length or a range.",
    "unknown_argument": "An expected argument is no parameter of the tool.",
    "unknown_tool": "A tool that is offered or expected is defined nowhere.",
    "not_offered": "The expected tool exists, but the item does not offer it to the model.",
    "nothing_offered": "A call is expected, but the item offers no tool.",
    "bad_schema": "A tool has a schema that is invalid or cannot be checked.",
    "underivable": "An expected Arabic value has words that nothing given to the model holds.",
    "unused_accept": "Values are accepted for an argument that the call does not expect.",
    "unknown_field": "A field that no reader knows, perhaps misspelt: it has no effect.",
    "no_instruction": "The item asks nothing.",
    "no_dialect": "The item does not name the dialect of its instruction.",
    "unknown_dialect": "The dialect is not one of the five names that reports know.",
    "unknown_category": "The category is not one of the six canonical ones: its weight must be declared (ruling 19).",
    "no_error": "An item about error recovery holds no error to recover from.",
    "duplicate_id": "Two items have the same id.",
    "contradictory": "Two items ask the same and expect different calls.",
}
"""Rule → what it looks for."""

_MESSAGES = {
    "missing_required": "The {kind} answer leaves out {name}, which {tool} requires, so the tool would refuse it: "
    'add the value or "*", or make it optional.',
    "wrong_type": "The {kind} value {value} is {type} where {tool} wants {wanted}: correct one of the two.",
    "outside_enum": "The {kind} value {value} is none of those that {tool} allows ({wanted}): use one, or add it.",
    "breaks_schema": "The {kind} value {value} breaks the schema of {tool} ({limit}): correct one of the two.",
    "unknown_argument": "{tool} has no {name} here, so no model can know of it: remove it, or add it to the schema.",
    "unknown_tool": "No tool {name} is defined, so no model can be told of it: add its schema, or correct the name.",
    "not_offered": "{name} is expected but not offered, so no model can call it: offer it, or correct the name.",
    "nothing_offered": "A call is expected but no tool is offered, so no model can make it: offer tools.",
    "bad_schema": "The schema of {tool} cannot be used: {reason}; correct it.",
    "underivable": "The expected value {value} has words that nothing given to the model holds, so a model that keeps "
    "to the text cannot write them: write them into the item, or accept the words that stand there.",
    "unused_accept": "Values are accepted for {name}, which is not expected: expect one of them, or remove them.",
    "no_instruction": "The item asks nothing: write an instruction, or a user's message.",
    "no_dialect": "The dialect is missing, so reports cannot count the item under one: name {wanted}.",
    "unknown_dialect": "Reports know no dialect {name}: name {wanted}.",
    "unknown_category": "{name} is not a canonical category: declare its weight, or name {wanted}.",
    "no_error": "The item is about recovering from an error but holds none: give an error_response, or results.",
    "duplicate_id": "The id {name} stands twice: give each item an id of its own.",
    "contradictory": "The item {name} asks the same and expects other calls, so no model can be right on both: "
    "correct one, or accept both answers in each.",
}


class Finding(msgspec.Struct, frozen=True):
    """One reason why an item is unfair.

    Attributes:
        item_id: the item.
        rule: a key of :data:`RULES`.
        field: the dotted path of the place, as in ``expected_calls[0].arguments.city``.
        message: one sentence: what is unfair and what to do about it.
    """

    item_id: str
    rule: str
    field: str
    message: str


def check_items(items: Iterable[Item], tools: Mapping[str, Tool]) -> list[Finding]:
    """Everything that is unfair in the items, in their order; an empty list when nothing is.

    The wildcard ``"*"`` is fine wherever a value stands (ruling 7), and null counts as absent (ruling 1). ``tools`` is
    the registry in which ``available_functions`` are looked up; inline tools need none. Ids may repeat.
    """
    review = _Review(tools)
    return [Finding(item.id, *fact) for item in items for fact in review.facts(item)]


def _fact(rule: str, field: str, **words: str) -> _Fact:
    return rule, field, _MESSAGES[rule].format_map(words)


TYPE_NAMES: dict[str, str | None] = {
    "dict": "object", "map": "object", "list": "array", "tuple": "array", "float": "number", "double": "number",
    "int": "integer", "str": "string", "bool": "boolean", "any": None, "type_unspecified": None,
    **{name: name for name in ("object", "array", "string", "number", "integer", "boolean", "null")},
}  # fmt: skip
"""Type names of BFCL, Gemini and Python, in lower case → those of JSON Schema; None allows every type."""

_MAX_STEPS = 100_000  # keywords tried on one call; more is a schema whose references multiply
_MAX_MATCHED = 256  # characters tried against a pattern
_MAX_REPEATS = 3
_MAX_SHOWN = 60
_MAX_LISTED = 8

# What a hostile schema can make the validator raise. DataError, a ValueError, is what this module finds itself.
_FAILURES: tuple[type[Exception], ...] = (Unresolvable, RecursionError, ArithmeticError, LookupError, TypeError)
_FAILURES += (ValueError, AttributeError, re.error)

_Fact = tuple[str, str, str]
_Keyword = Callable[[Any, Any, Any, Any], Any]


def _required(_: Any, names: Any, instance: Any, __: Any) -> Iterator[ValidationError]:
    # The standard keyword hides the name inside an English sentence.
    if isinstance(instance, dict):
        yield from (ValidationError(name) for name in dict.fromkeys(names) if name not in instance)


def _type(validator: Any, types: Any, instance: Any, __: Any) -> Iterator[ValidationError]:
    names = [TYPE_NAMES[name.strip().lower()] for name in _as_list(types)]
    if None not in names and not any(validator.is_type(instance, name) for name in names):
        yield ValidationError("type")


def _pattern(_: Any, pattern: str, instance: Any, __: Any) -> Iterator[ValidationError]:
    short = isinstance(instance, str) and len(instance) <= _MAX_MATCHED
    if short and _affordable(pattern) and re.search(pattern, instance) is None:
        yield ValidationError("pattern")


def _affordable(pattern: str) -> bool:
    """Tell whether matching a short text cannot take long: few repetitions, and none inside another."""
    bare = re.sub(r"\[[^\]]*\]", "x", re.sub(r"\\.", "x", pattern, flags=re.DOTALL))
    return re.search(r"\)[*+{]", bare) is None and len(re.findall(r"[*+?]|\{\d*,", bare)) <= _MAX_REPEATS


_KEYWORDS: dict[str, _Keyword] = dict(Draft202012Validator.VALIDATORS)
_KEYWORDS |= {"required": _required, "type": _type, "pattern": _pattern}
_META = Draft202012Validator(Draft202012Validator.META_SCHEMA, format_checker=Draft202012Validator.FORMAT_CHECKER)


class _Form:
    """A tool's schema, made ready once to check many calls; ``problem`` says why it cannot be used, or is None."""

    def __init__(self, tool: Tool) -> None:
        self.tool = shown(tool.name)
        self.problem: str | None = None
        self.schema: dict[str, Any] = {}
        self._steps = 0
        try:
            self._errors = self._compile(tool.parameters)
        except _FAILURES as error:
            self.problem = _reason(error)

    def _compile(self, parameters: Any) -> Callable[[Any], Iterable[ValidationError]]:
        if not isinstance(parameters, dict) or too_deep(parameters):
            raise DataError("it is no object, or nests deeper than 64 levels")
        for error in _META.iter_errors(parameters):
            if not _is_type_name(error):
                raise DataError(f"{path_text('parameters', error.absolute_path)} breaks a rule of JSON Schema")
        self.schema = parameters
        if list(_type(_META, parameters.get("type", "object"), {}, None)):
            raise DataError("its type must be 'object', as arguments are one")
        _check_reach(parameters)
        keywords = {name: self._watched(keyword) for name, keyword in _KEYWORDS.items()}
        kind: Any = extend(Draft202012Validator, keywords)  # type: ignore[no-untyped-call]
        return kind(parameters, registry=Registry()).iter_errors  # type: ignore[no-any-return]

    def _watched(self, keyword: _Keyword) -> _Keyword:
        """The keyword within the budget of steps; whatever it asks, the wildcard fulfils it (ruling 7)."""

        def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
            self._steps += 1
            if self._steps > _MAX_STEPS:
                raise DataError("checking it takes too many steps")
            if not (isinstance(instance, str) and instance == "*"):
                yield from keyword(validator, value, instance, schema) or ()

        return check

    def errors(self, arguments: dict[str, Any]) -> list[ValidationError]:
        """What the schema has against the arguments; raises one of ``_FAILURES`` if it turns out to be uncheckable."""
        self._steps = 0
        return list(self._errors(arguments))

    def knows(self, argument: str) -> bool:
        """Tell whether the argument is a parameter, as far as the schema says."""
        combined = {"$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties"} & self.schema.keys()
        closed = not combined and self.schema.get("additionalProperties", False) is False
        return not closed or argument in self.schema.get("properties", {})


def _is_type_name(error: ValidationError) -> bool:
    """Tell whether all that the standard has against a schema is how another dialect names a type."""
    names = [name.strip().lower() if isinstance(name, str) else None for name in _as_list(error.instance)]
    return list(error.absolute_path)[-1:] == ["type"] and names != [] and all(name in TYPE_NAMES for name in names)


def _check_reach(schema: dict[str, Any]) -> None:
    """Refuse references that lead outside or nowhere, and names matched by a costly pattern."""
    empty: Registry[Any] = Registry()
    resolver = empty.resolver_with_root(DRAFT202012.create_resource(schema))
    for path, leaf in leaves_of(schema):
        if any(before == "patternProperties" and not _affordable(str(name)) for before, name in pairwise(path)):
            raise DataError("a pattern in patternProperties could take too long to match")
        if path[-1:] == ("$dynamicRef",) or (path[-1:] == ("$ref",) and not str(leaf).startswith("#")):
            raise DataError("it refers to another document or a dynamic place, and none is ever fetched")
        if path[-1:] == ("$ref",):
            resolver.lookup(str(leaf))


def _reason(error: Exception) -> str:
    if isinstance(error, Unresolvable):
        return f"its reference {shown(error.ref)} leads nowhere"
    if isinstance(error, RecursionError):
        return "it, or what it must fit, nests too deeply or refers to itself without end"
    return error.what if isinstance(error, DataError) else "it cannot be checked"


class _Review:
    """Checks items one after the other, and remembers the schemas seen and what must not repeat."""

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        self._tools = tools
        self._forms: dict[bytes, _Form] = {}
        self._ids: set[str] = set()
        self._asked: dict[bytes, tuple[str, Any]] = {}

    def facts(self, item: Item) -> Iterator[_Fact]:
        yield from _item_facts(item)
        yield from self._repeated(item)
        offered: dict[str, _Form | None] = {}
        yield from self._offer(item, offered)
        given = Given(item.instruction, item.messages, item.context, item.error_response)
        # Calls in any order have no earlier one: each result may be known already.
        given.add([] if item.ordered else [call.result for call in item.expected_calls])
        for place, call in enumerate(item.expected_calls):
            field = f"expected_calls[{place}]"
            form = offered.get(call.function)
            if call.function not in offered and call.function != "*":
                form = self._form(self._tools.get(call.function))
                if form is None:
                    yield _fact("unknown_tool", f"{field}.function", name=shown(call.function))
                elif offered:
                    yield _fact("not_offered", f"{field}.function", name=shown(call.function))
            form = None if form is None or form.problem else form
            yield from _call_facts(call, form, field)
            yield from _text_facts(call, form, given, field)
            given.add(call.result)

    def _repeated(self, item: Item) -> Iterator[_Fact]:
        if item.id in self._ids:
            yield _fact("duplicate_id", "id", name=shown(item.id))
        self._ids.add(item.id)
        tools = item.tools if item.tools is not None else sorted(item.available_functions)
        try:
            asked = repr((item.instruction.strip(), item.messages, item.context, item.dialect, tools))
            key = hashlib.sha256(asked.encode("utf-8", "surrogatepass")).digest()
            answer = [(call.function, call.arguments) for call in item.expected_calls]
            before, other = self._asked.setdefault(key, (item.id, answer))
            same = answer == other
        except RecursionError:  # too deep to compare, so nothing is claimed
            return
        if not same:
            yield _fact("contradictory", "expected_calls", name=shown(before))

    def _offer(self, item: Item, offered: dict[str, _Form | None]) -> Iterator[_Fact]:
        """Fill in the tools that the item offers; None stands for one that is reported here and not again."""
        names = item.available_functions if item.tools is None else ()
        found = [(f"available_functions[{i}]", name, self._tools.get(name)) for i, name in enumerate(names)]
        for place, entry in enumerate(item.tools or ()):
            field = f"tools[{place}]"
            try:
                tool = read_tool(entry, field)
                found.append((field, tool.name, tool))
            except (DataError, RecursionError):
                reason = "it is not an OpenAI function schema, which has a name and an object of parameters"
                yield _fact("bad_schema", field, tool="this tool", reason=reason)
                offered |= dict.fromkeys(texts_in(entry))  # whichever of its texts was meant as the name
        for field, name, known in found:
            form = offered[name] = self._form(known)
            if form is None:
                yield _fact("unknown_tool", field, name=shown(name))
            elif form.problem:
                yield _fact("bad_schema", field, tool=form.tool, reason=form.problem)
        if item.expected_calls and not offered:
            yield _fact("nothing_offered", "available_functions")

    def _form(self, tool: Tool | None) -> _Form | None:
        if tool is None:
            return None
        try:
            key = msgspec.json.encode(tool)
        except (TypeError, ValueError, RecursionError):
            return _Form(tool)
        return self._forms.get(key) or self._forms.setdefault(key, _Form(tool))


_ARABIC_LANGUAGES = frozenset({
    "ar", "arb", "aao", "abh", "abv", "acm", "acq", "acw", "acx", "acy", "adf", "aeb", "aec", "afb",
    "ajp", "apc", "apd", "arq", "ars", "ary", "arz", "auz", "avl", "ayh", "ayl", "ayn", "ayp",
    "pga", "shu", "ssh",
})  # fmt: skip
"""Arabic and its varieties, as ISO 639-3 names the members of the macrolanguage."""


def _item_facts(item: Item) -> Iterator[_Fact]:
    users = [turn.get("content") for turn in item.messages or () if turn.get("role") == "user"]
    if not any(text.strip() for text in texts_in([item.instruction, users])):
        yield _fact("no_instruction", "instruction")
    foreign = item.language is not None and item.language.partition("-")[0].lower() not in _ARABIC_LANGUAGES
    if not item.dialect and not foreign:
        yield _fact("no_dialect", "dialect", wanted=_one_of(DIALECTS))
    if item.dialect and item.dialect not in DIALECTS and not foreign:
        yield _fact("unknown_dialect", "dialect", name=shown(item.dialect), wanted=_one_of(DIALECTS))
    if item.category not in CATEGORIES:
        yield _fact("unknown_category", "category", name=shown(item.category), wanted=_one_of(CATEGORIES))
    answered = item.error_response or any(call.result is not msgspec.UNSET for call in item.expected_calls)
    if item.category == "error_recovery" and not answered:
        yield _fact("no_error", "error_response")


def _call_facts(call: ExpectedCall, form: _Form | None, field: str) -> Iterator[_Fact]:
    expected = {name: value for name, value in call.arguments.items() if value is not None}
    for name in (name for name in call.accept or () if name not in expected):
        yield _fact("unused_accept", f"{field}.accept.{name}", name=shown(name))
    if form is None:
        return
    for name in expected:
        if not form.knows(name):
            yield _fact("unknown_argument", f"{field}.arguments.{name}", tool=form.tool, name=shown(name))
    try:
        known = {name: _without_nulls(value) for name, value in expected.items() if form.knows(name)}
        for error in form.errors(known):
            yield from _violation(error, f"{field}.arguments", form.tool, "expected")
        for name in known:
            for place, value in enumerate((call.accept or {}).get(name, ())):
                for error in form.errors({name: _without_nulls(value)}) if value is not None else ():
                    if list(error.absolute_path)[:1] == [name]:
                        error.path.insert(1, place)
                        yield from _violation(error, f"{field}.accept", form.tool, "accepted")
    except _FAILURES as failure:
        yield _fact("bad_schema", f"{field}.arguments", tool=form.tool, reason=_reason(failure))


def _without_nulls(value: Any) -> Any:
    """A null member is as absent (ruling 1); a name too long to be matched cheaply is no parameter's."""
    if isinstance(value, dict):
        kept = (name for name, member in value.items() if member is not None and len(name) <= _MAX_MATCHED)
        return {name: _without_nulls(value[name]) for name in kept}
    return [_without_nulls(member) for member in value] if isinstance(value, list) else value


_RULE_OF = {
    "type": "wrong_type", "enum": "outside_enum", "const": "outside_enum", "required": "missing_required",
    "additionalProperties": "unknown_argument", "unevaluatedProperties": "unknown_argument",
}  # fmt: skip


def _rule(error: ValidationError) -> str:
    rules = {_rule(branch) for branch in error.context or ()}
    if rules and rules <= {"wrong_type", "outside_enum"}:
        return min(rules)
    return _RULE_OF.get(str(error.validator), "breaks_schema")


def _violation(error: ValidationError, field: str, tool: str, kind: str) -> Iterator[_Fact]:
    rule, where = _rule(error), path_text(field, error.absolute_path)
    words = {"kind": kind, "tool": tool, "value": shown(error.instance), "type": json_type(error.instance)}
    if rule == "missing_required":
        yield _fact(rule, f"{where}.{error.message}", name=shown(error.message), **words)
    elif rule == "unknown_argument":
        schema: Any = error.schema
        named, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        given: Any = error.instance
        for name in given:
            if name not in named and not any(re.search(pattern, name) for pattern in patterns):
                yield _fact(rule, f"{where}.{name}", name=shown(name), **words)
    elif rule == "breaks_schema":
        limit = f"{error.validator} {shown(error.validator_value)}" if error.validator else "no value is allowed here"
        yield _fact(rule, where, limit=limit, **words)
    else:
        yield _fact(rule, where, wanted=_wanted(error), **words)


def _wanted(error: ValidationError) -> str:
    """The types or values that would have been right, over all branches of a choice."""
    if error.context:
        return " or ".join(dict.fromkeys(map(_wanted, error.context)))
    values = _as_list(error.validator_value)
    return " or ".join(map(str, values)) if error.validator == "type" else _one_of(values)


def _text_facts(call: ExpectedCall, form: _Form | None, given: Given, field: str) -> Iterator[_Fact]:
    for name, value in call.arguments.items():
        leaves = [(path, leaf) for path, leaf in leaves_of(value) if isinstance(leaf, str) and has_arabic(leaf)]
        sources = (given, Given(form.schema.get("properties", {}).get(name) if form and leaves else None))
        unknown = [(path, leaf) for path, leaf in leaves if not is_derivable(leaf, *sources)]
        # One right answer that can be known, or is not written in Arabic, is enough to be fair.
        others = (filter(has_arabic, texts_in(other)) for other in (call.accept or {}).get(name, ()) if unknown)
        if not any(all(is_derivable(text, *sources) for text in texts) for texts in others):
            for path, leaf in unknown:
                yield _fact("underivable", path_text(f"{field}.arguments.{name}", path), value=shown(leaf))


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def shown(value: Any) -> str:
    """A value for a message: harmless, and cut short where it is long."""
    if isinstance(value, str):
        text = f"'{name_invisible(value[: _MAX_SHOWN + 1])}'"
    elif isinstance(value, bool) or not isinstance(value, int | float):
        return {dict: "{…}", list: "[…]", bool: str(value).lower()}.get(type(value), "null")
    else:
        text = number_text(value)
    return text if len(text) <= _MAX_SHOWN + 2 else text[:_MAX_SHOWN] + "…"


def _one_of(values: Iterable[Any]) -> str:
    named = [shown(value) for value in values]
    return ", ".join(named[:_MAX_LISTED]) + (", …" if len(named) > _MAX_LISTED else "")


def path_text(start: str, steps: Iterable[str | int]) -> str:
    """The dotted path of a place inside a value."""
    return start + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
