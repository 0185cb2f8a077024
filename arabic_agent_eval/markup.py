"""Tool calls written as text: the markup of open models, read out of a raw answer.

Read are Hermes and Qwen ``<tool_call>``, Mistral ``[TOOL_CALLS]`` (a list, or ``name[ARGS]{…}``), Llama 3
``<|python_tag|>``, Qwen3-Coder and Llama ``<function=name>``, DeepSeek V3 and V3.1 ``<｜tool▁call▁begin｜>`` and V3.2
``<｜DSML｜invoke>``, FunctionGemma ``<start_function_call>``, Gemma 4 ``<|tool_call>``, and JSON, fenced or bare.
Python, such as Gemma's ``tool_code`` blocks, is not read: such a block holds no call.

Markup is always an attempt to call, whatever name it has, and where there is markup, JSON beside it is not read. JSON
without markup is a call only when it names a tool that was offered. A reasoning block holds drafts, which are not
calls. Nothing is repaired: what cannot be read stays an attempt with an error (rulings 12, 13, 15).
Every reader moves forward only, so that the time is linear in the length of the text.
"""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from arabic_agent_eval.brackets import outside_code, partner, spans
from arabic_agent_eval.strictjson import MalformedJSON, decode_any_depth, decode_at_sight, replace_surrogates
from arabic_agent_eval.tools import Call, read_arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

_RAW = 2000  # characters of an unreadable attempt that are kept for showing
_BRACKETS = frozenset("{[")
_CLOSING = frozenset("}]")
_NAMES = ("name", "function", "tool")
_ARGUMENTS = ("arguments", "parameters", "args", "input")

_SPACE = re.compile(r"\s*+")
_STOP_TOKENS = (
    "</s>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>", "<|end_of_text|>", "<end_of_turn>", "<turn|>",
    "<eos>", "<｜end▁of▁sentence｜>",
)  # fmt: skip
_STOP = "|".join(map(re.escape, _STOP_TOKENS))
_STOPS = re.compile(_STOP)
_END = re.compile(rf"\s*+(?:\Z|{_STOP})")


def read_text(text: str, offered: Collection[str] = frozenset()) -> tuple[Call, ...]:
    """The calls that a model wrote as text, in the order in which they stand.

    Args:
        text: the raw answer, special tokens included; it may be of any size and hold anything.
        offered: the names of the tools that the model could call. When it is not empty, JSON without markup that
            names another one is data, not a call; markup is an attempt whatever it names.

    >>> read_text('<tool_call>{"name": "get_time", "arguments": {"city": "مكة"}}</tool_call>')
    (Call(function='get_time', arguments={'city': 'مكة'}, error=None, raw=None),)
    """
    if (plain := _read_plain(text)) is not None:
        return plain
    source = _Source(replace_surrogates(text))
    if _WHOLE.match(source.text) and (whole := source.decoded(0, len(source.text))):
        return tuple(_bare_calls(whole[0], offered))  # so that a text inside it may quote a tag
    calls: list[Call] = []
    prose: list[tuple[int, int]] = []
    marked, place = False, 0
    while opener := _OPENER.search(source.text, place):
        prose.append((place, opener.start()))
        tag, place = opener[0], opener.end()
        if tag in _DRAFTS:
            close = _DRAFTS[tag].search(source.text, place)
            place = close.end() if close else len(source.text)
        elif tag in _DRAFT_ENDS:  # the opening tag was part of the prompt: all that came before is a draft
            calls, prose, marked = [], [], False
        else:
            found, place = _READERS[tag](source, place)
            calls += found
            marked = True
    prose.append((place, len(source.text)))
    return tuple(calls) if marked else tuple(_read_prose(source, prose, offered))


_WHOLE = re.compile(r"\s*+(?:\{|\[(?!TOOL_CALLS\]|THINK\]))")  # may be JSON from the first character to the last
_REST = re.compile(rf"(?:\s|{_STOP})*+\Z")
_PLAIN_CALL = re.compile(r"\s*+<tool_call>\s*+(\{[^<]++)</tool_call>")
_THOUGHT, _THOUGHT_END, _MISTRAL_TAG = "<think>", "</think>", "[TOOL_CALLS]"


def _read_plain(text: str) -> tuple[Call, ...] | None:
    """The calls of a text that ends with calls in Hermes' tags, as most do; None for most other texts.

    Before them may stand a thought, and prose without a character with which a tag begins. A list of calls after
    Mistral's tag is read too.
    """
    if text.startswith(_MISTRAL_TAG):
        return _read_plain_list(text)
    start = 0
    if text.startswith(_THOUGHT):
        end = text.find(_THOUGHT_END)
        if end < 0:
            return None
        start = end + len(_THOUGHT_END)
    place = text.find("<tool_call>", start)
    if place < 0 or text.find("<", start, place) >= 0 or text.find("[", start, place) >= 0:
        return None
    calls: list[Call] = []
    while found := _PLAIN_CALL.match(text, place):
        if (value := decode_at_sight(found[1])) is None:
            return None
        calls += _marked_calls(value)
        place = found.end()
    return tuple(calls) if calls and _REST.match(text, place) else None


def _read_plain_list(text: str) -> tuple[Call, ...] | None:
    """The calls of a text that is nothing but Mistral's tag and a list; None for any other text."""
    if not text.startswith("[", len(_MISTRAL_TAG)) or text.find(_MISTRAL_TAG, 1) >= 0:
        return None
    value = decode_at_sight(_without_stop(text[len(_MISTRAL_TAG) :]))
    return None if value is None else tuple(_marked_calls(value))


def _without_stop(text: str) -> str:
    """A text without the token that ends a turn."""
    text = text.rstrip()
    return text[: text.rindex("<")].rstrip() if text.endswith(_STOP_TOKENS) else text


# --- JSON inside a text --------------------------------------------------------------------------------------


class _Source:
    """A text, and whether it is still worth looking for the end of a JSON value beyond the next tag.

    A string inside a call may quote a tag. Looking past it is paid for by the text that it consumes; after the first
    time that it fails it is not tried again, or many broken calls would cost quadratic time.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._look_far = True

    def value(self, start: int, limit: int) -> tuple[Any, int] | None:
        """The JSON object or list that starts there, and where it ends; None when there is none."""
        end = partner(self.text, start, limit)
        if end is not None or limit == len(self.text) or not self._look_far:
            return self.decoded(start, end)
        found = self.decoded(start, partner(self.text, start, len(self.text)))
        self._look_far = found is not None
        return found

    def decoded(self, start: int, end: int | None) -> tuple[Any, int] | None:
        """What stands between two places, if it is JSON, and its end."""
        if end is None:
            return None
        try:
            return decode_any_depth(self.text[start:end]), end
        except MalformedJSON:
            return None

    def alone(self, start: int, limit: int) -> tuple[Any, int] | None:
        """What stands between two places, if it is one object or list, and its end; tokens that end a turn aside."""
        text = _without_stop(self.text[start:limit])
        value = decode_at_sight(text) if text[-1:] in _CLOSING else None
        return None if value is None else (value, start + len(text))

    def values(self, markup: _Json, start: int) -> tuple[list[tuple[int, Any]], int]:
        """Objects and lists one after the other, each with its start, and the first place that was not read."""
        found: list[tuple[int, Any]] = []
        place, limit = _skip(markup.gap, self.text, start), -1
        if self.text[place : place + 1] in _BRACKETS:
            limit = _limit(markup.tags, self.text, place)
            # Nearly always nothing but one value stands there; a second look at what else may is taken only once.
            if value := self.alone(place, limit):
                return [(place, value[0])], _skip(markup.gap, self.text, value[1])
        while self.text[place : place + 1] in _BRACKETS:
            limit = limit if limit >= place else _limit(markup.tags, self.text, place)
            value = None if limit == place else self.value(place, limit)  # a tag may begin with a bracket
            if value is None:
                break
            found.append((place, value[0]))
            place = _skip(markup.gap, self.text, value[1])
        return found, place


def _skip(gap: re.Pattern[str], text: str, start: int) -> int:
    found = gap.match(text, start)
    return found.end() if found else start


def _limit(tags: re.Pattern[str], text: str, start: int, end: int | None = None) -> int:
    """Where the next of these tags stands, or the end of the text."""
    end = len(text) if end is None else end
    found = tags.search(text, start, end)
    return found.start() if found else end


def _broken(name: str | None, text: str, start: int, end: int) -> Call:
    """An attempt that cannot be read: as a call when it has no name, else its arguments."""
    raw = text[start : min(end, start + _RAW)].strip()
    return Call(name, error="malformed_arguments" if name else "malformed_call", raw=raw)


def _named(name: str, arguments: str, raw: str) -> Call:
    """A call whose name stands apart from its arguments, which are JSON text."""
    if not name:
        return _broken(None, raw, 0, len(raw))
    read, error = read_arguments(arguments)
    return Call(name, read, error, raw[:_RAW] if error else None)


def _parts(entry: dict[str, Any]) -> tuple[str | None, str | None, dict[str, Any]]:
    """The name of the tool, the key of its arguments, and the object that holds both."""
    name = entry.get("name")
    if type(name) is str and name and "arguments" in entry:  # as nearly all models write it
        return name, "arguments", entry
    inner = entry.get("function")
    if isinstance(inner, dict) and not isinstance(entry.get("name"), str):
        entry = inner
    name = next((entry[key] for key in _NAMES if isinstance(entry.get(key), str) and entry[key]), None)
    return name, next((key for key in _ARGUMENTS if key in entry), None), entry


def _marked_calls(value: Any) -> list[Call]:
    """The calls in JSON that stands inside markup: each object is an attempt."""
    calls = []
    for entry in value if isinstance(value, list) else [value]:
        name, key, holder = _parts(entry) if isinstance(entry, dict) else (None, None, {})
        if name is None:
            calls.append(Call(None, error="malformed_call", raw=entry))
        else:
            calls.append(Call.read(name, holder[key] if key else None))
    return calls


# --- JSON inside tags ----------------------------------------------------------------------------------------


class _Json(NamedTuple):
    """A markup whose calls are JSON objects or lists of them."""

    tags: re.Pattern[str]  # what ends a call that is not closed properly
    tail: re.Pattern[str]  # what may follow the last value
    gap: re.Pattern[str] = _SPACE  # what may stand between two values


# What follows a call without a closing tag is prose, unless the JSON itself goes on.
_PROSE = r'(?![{}\[\]",:])'
_HERMES = _Json(re.compile("</?tool_call>"), re.compile(rf"</?tool_call>|\Z|{_STOP}"))
_LLAMA = _Json(re.compile(r"<\|python_tag\|>"), re.compile(_PROSE), re.compile(r"[\s;]*+"))
_MISTRAL = _Json(re.compile(r"\[TOOL_CALLS\]"), re.compile(rf"\[TOOL_CALLS\]|{_PROSE}"))
_MISTRAL_NAME = re.compile(r'\s*+([^\s\[\]{}"]++)\s*+(?:\[CALL_ID\][^\[{]*+)?(\[ARGS\])?\s*+')


def _read_json(markup: _Json, source: _Source, start: int) -> tuple[list[Call], int]:
    """Calls as JSON values; what cannot be read is one attempt, with the value before it if it trails that."""
    text = source.text
    values, place = source.values(markup, start)
    calls = [call for _, value in values for call in _marked_calls(value)]
    if values and markup.tail.match(text, place):
        return calls, place
    end, broken = _limit(markup.tags, text, place), place
    if values and text[place : place + 1] not in _BRACKETS:
        broken, value = values[-1]
        del calls[len(calls) - len(_marked_calls(value)) :]
    return [*calls, _broken(None, text, broken, end)], end


def _read_hermes(source: _Source, start: int) -> tuple[list[Call], int]:
    inside = _skip(_SPACE, source.text, start)
    if source.text.startswith("<function=", inside):
        return [], inside
    return _read_json(_HERMES, source, start)


def _read_mistral(source: _Source, start: int) -> tuple[list[Call], int]:
    text, limit = source.text, _limit(_MISTRAL.tags, source.text, start)
    head = _MISTRAL_NAME.match(text, start, limit)
    if head is None:
        return _read_json(_MISTRAL, source, start)
    name, place = head[1], head.end()
    if text[place : place + 1] == "{":
        found = source.alone(place, limit) or source.value(place, limit)
        if found and _MISTRAL.tail.match(text, _skip(_SPACE, text, found[1])):
            return [Call.read(name, found[0])], found[1]
        return [_broken(name, text, place, limit)], limit
    if head[2]:
        arguments = text[place : _limit(_STOPS, text, place, limit)].strip()
        return [_named(name, arguments, arguments)], limit
    return [_broken(None, text, start, limit)], limit


# --- parameters as tags --------------------------------------------------------------------------------------


class _Tagged(NamedTuple):
    """A markup that gives each parameter a tag of its own."""

    head: re.Pattern[str]  # the rest of the opening tag; group 1 is the name
    parameter: re.Pattern[str]  # group 1 is its name, group 2 whether it is text
    tags: re.Pattern[str]
    parameter_close: str
    close: str


_QWEN = _Tagged(
    re.compile(r"([^<>\n]*+)>"),
    re.compile(r"\s*+<parameter=([^<>\n]++)>()"),
    re.compile(r"</?tool_call>|</?(?:function|parameter)[=>]"),
    "</parameter>",
    "</function>",
)
_DSML = _Tagged(
    re.compile(r'\s++name="([^"\n]*+)"\s*+>'),
    re.compile(r'\s*+<｜DSML｜parameter\s++name="([^"\n]++)"(?:\s++string="(true|false)")?\s*+>'),
    re.compile("</?｜DSML｜"),
    "</｜DSML｜parameter>",
    "</｜DSML｜invoke>",
)


def _read_tagged(markup: _Tagged, source: _Source, start: int) -> tuple[list[Call], int]:
    text = source.text
    head = markup.head.match(text, start)
    if head is None or not head[1].strip():
        end = _limit(markup.tags, text, start)
        return [_broken(None, text, start, end)], end
    body = _skip(_SPACE, text, head.end())
    if text[body : body + 1] == "{":
        found = source.value(body, _limit(markup.tags, text, body))
        arguments, place = found or (None, _limit(markup.tags, text, body))
    else:
        arguments, place = _read_parameters(markup, text, head.end())
    closed = text.startswith(markup.close, _skip(_SPACE, text, place)) or _END.match(text, place)
    if arguments is None or not closed:
        return [_broken(head[1], text, body, max(place, _limit(markup.tags, text, place)))], place
    return [Call.read(head[1], arguments)], place


def _read_parameters(markup: _Tagged, text: str, start: int) -> tuple[dict[str, Any] | None, int]:
    """The parameters up to where none follows, or None when one is not closed or not what it says it is."""
    arguments: dict[str, Any] = {}
    place = start
    while found := markup.parameter.match(text, place):
        place = _limit(markup.tags, text, found.end())
        if not text.startswith(markup.parameter_close, place):
            return None, place
        try:
            arguments[found[1]] = _parameter(text[found.end() : place], found[2])
        except MalformedJSON:
            return None, place
        place += len(markup.parameter_close)
    return arguments, place


def _parameter(text: str, is_text: str | None) -> Any:
    """A parameter's value: text, JSON, or, where the markup does not say, a container if it is one."""
    if is_text == "true":
        return text
    if is_text == "false":
        return decode_any_depth(text.strip())
    text = text.removeprefix("\n").removesuffix("\n")
    if text.lstrip()[:1] in _BRACKETS:
        try:
            return decode_any_depth(text.strip())
        except MalformedJSON:
            return text
    return text


# --- DeepSeek V3 ---------------------------------------------------------------------------------------------

_DEEPSEEK_TAGS = re.compile(rf"<｜tool▁calls?▁(?:begin|end)｜>|{_STOP}")


def _read_deepseek(source: _Source, start: int) -> tuple[list[Call], int]:
    """``function<｜tool▁sep｜>name`` with fenced arguments (V3), or ``name<｜tool▁sep｜>{…}`` (V3.1)."""
    end = _limit(_DEEPSEEK_TAGS, source.text, start)
    head, separator, rest = source.text[start:end].partition("<｜tool▁sep｜>")
    if not separator:
        return [_broken(None, source.text, start, end)], end
    name, arguments = head.strip(), rest.strip()
    if name == "function" and not arguments.startswith("{"):
        name, _, arguments = (part.strip() for part in arguments.partition("\n"))
    if arguments.startswith("```json") and arguments.endswith("```"):
        arguments = arguments[len("```json") : -len("```")].strip()
    return [_named(name, arguments, rest)], end


def _read_envelope(inner: str, tags: re.Pattern[str], source: _Source, start: int) -> tuple[list[Call], int]:
    """A tag around calls that have tags of their own: an attempt by itself only when none follows."""
    inside = _skip(_SPACE, source.text, start)
    if source.text.startswith(inner, inside):
        return [], inside
    end = _limit(tags, source.text, start)
    return [_broken(None, source.text, start, end)], end


# --- Gemma ---------------------------------------------------------------------------------------------------


class _Gemma(NamedTuple):
    """A markup with keys bare, texts between marks, and everything else as in JSON."""

    tags: re.Pattern[str]
    token: re.Pattern[str]  # a text, a key with what stands before it, or a quotation mark, which is none of both


_GEMMA_KEY = r'([{,]\s*+)([^:{}\[\],<"]++):|"'
_GEMMA = _Gemma(
    re.compile(rf"<(?:start|end)_function_(?:call|response)>|{_STOP}"),
    re.compile(rf"<escape>(.*?)<escape>|{_GEMMA_KEY}", re.DOTALL),
)
_GEMMA_4 = _Gemma(
    re.compile(rf"<\|tool_(?:call|response)>|<tool_call\|>|{_STOP}"),
    re.compile(rf'<\|"\|>(.*?)<\|"\|>|{_GEMMA_KEY}', re.DOTALL),
)
_GEMMA_NAME = re.compile(r"\s*+call:([^\s{}\[\]()<>]++)")


def _read_gemma(markup: _Gemma, source: _Source, start: int) -> tuple[list[Call], int]:
    """``call:name{key:<escape>text<escape>,number:5}``."""
    end = _limit(markup.tags, source.text, start)
    head = _GEMMA_NAME.match(source.text, start, end)
    if head is None:
        return [_broken(None, source.text, start, end)], end
    body = source.text[head.end() : end].strip()
    return [_named(head[1], markup.token.sub(_gemma_json, body), body)], end


def _gemma_json(token: re.Match[str]) -> str:
    """A token of Gemma's notation as JSON writes it; a quotation mark, which it does not know, as no JSON."""
    if token[1] is not None:
        return json.dumps(token[1], ensure_ascii=False)
    return f"{token[2]}{json.dumps(token[3].strip(), ensure_ascii=False)}:" if token[3] else "\0"


# --- JSON without markup -------------------------------------------------------------------------------------


def _read_prose(source: _Source, ranges: list[tuple[int, int]], offered: Collection[str]) -> Iterator[Call]:
    text = source.text
    for start, end in ranges:
        for shown in outside_code(text, start, end):
            for span in spans(text, *shown):
                if found := source.decoded(*span):
                    yield from _bare_calls(found[0], offered)


def _bare_calls(value: Any, offered: Collection[str]) -> Iterator[Call]:
    """The calls in JSON without markup: an object without a name or arguments, or with another name, is data."""
    for entry in value if isinstance(value, list) else [value]:
        name, key, holder = _parts(entry) if isinstance(entry, dict) else (None, None, {})
        arguments = holder[key] if key else None
        if name is not None and (name in offered or (key is not None and not offered)) and not _is_schema(arguments):
            yield Call.read(name, arguments)


def _is_schema(value: Any) -> bool:
    """Whether this describes arguments instead of giving them: small models repeat the definition of a tool."""
    return isinstance(value, dict) and value.get("type") == "object" and isinstance(value.get("properties"), dict)


# --- which tag is read how -----------------------------------------------------------------------------------

_DRAFTS = {
    "<think>": re.compile("</think>"),
    "<thinking>": re.compile("</thinking>"),
    "[THINK]": re.compile(r"\[/THINK\]"),
    "<|channel|>analysis": re.compile(r"<\|end\|>|<\|return\|>|<\|call\|>|<\|start\|>|(?=<\|channel\|>)"),
}
_DRAFT_ENDS = frozenset({"</think>", "</thinking>", "[/THINK]"})
_READERS: dict[str, Callable[[_Source, int], tuple[list[Call], int]]] = {
    "<tool_call>": _read_hermes,
    "<function=": partial(_read_tagged, _QWEN),
    "[TOOL_CALLS]": _read_mistral,
    "<|python_tag|>": partial(_read_json, _LLAMA),
    "<｜tool▁calls▁begin｜>": partial(_read_envelope, "<｜tool▁call▁begin｜>", _DEEPSEEK_TAGS),
    "<｜tool▁call▁begin｜>": _read_deepseek,
    "<｜DSML｜function_calls>": partial(_read_envelope, "<｜DSML｜invoke", _DSML.tags),
    "<｜DSML｜tool_calls>": partial(_read_envelope, "<｜DSML｜invoke", _DSML.tags),
    "<｜DSML｜invoke": partial(_read_tagged, _DSML),
    "<start_function_call>": partial(_read_gemma, _GEMMA),
    "<|tool_call>": partial(_read_gemma, _GEMMA_4),
}
# Fixed texts only: the expression then skips to the next possible first character at the speed of a search.
_OPENER = re.compile("|".join(map(re.escape, [*_DRAFTS, *_DRAFT_ENDS, *_READERS])))
