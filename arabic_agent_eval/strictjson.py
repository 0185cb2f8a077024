"""JSON as ruling 13 wants it: strict to read, canonical to write, and never a surprise.

NaN, Infinity and trailing text are malformed; of a repeated key the last counts; a lone surrogate becomes
U+FFFD; nesting deeper than 64 is malformed.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final, NoReturn

import msgspec

MAX_DEPTH = 64
"""Containers inside one another beyond this are malformed (ruling 13)."""

_decode = msgspec.json.Decoder().decode
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_DIGITS = 4000  # Python refuses to convert longer integers to and from text by default (4300)
_MAX_BITS = 13_000  # about as many digits
_MAX_EXACT = 2**53


class MalformedJSON(ValueError):
    """The text is not one strict JSON value; the message says why, without quoting the text."""


def decode(source: str | bytes) -> Any:
    """Read one strict JSON value, at most 64 containers deep.

    Raises:
        MalformedJSON: whatever is wrong with it, invalid UTF-8 and excessive nesting included.
    """
    value = decode_any_depth(source)
    # A cheap bound first: nothing nests deeper than it has opening brackets.
    if len(source) > 2 * MAX_DEPTH and too_deep(value):
        raise MalformedJSON(f"it is nested deeper than {MAX_DEPTH} levels")
    return value


def decode_any_depth(source: str | bytes) -> Any:
    """Like :func:`decode`, with no limit on nesting but the decoder's own (about 1,000)."""
    try:
        return _decode(source)
    except (msgspec.DecodeError, UnicodeEncodeError, TypeError) as error:  # TypeError: a subclass of str
        return _decode_slowly(source, error)
    except RecursionError:
        raise MalformedJSON("it is nested far deeper than 64 levels") from None


def decode_at_sight(text: str) -> Any | None:
    """The value of a text that is JSON beyond doubt; None for all that needs a closer look, and for null."""
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None


_STEP = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[{\]}]', re.DOTALL)  # an unclosed string ends with the text: no second look
_CLIP = 200


def decode_clipped(source: bytes) -> Any:
    """Like :func:`decode_any_depth`, with whatever lies more than 200 containers deep replaced by null.

    So one answer that nests ten thousand deep costs its own arguments (ruling 13) and not the file that it stands in.

    Raises:
        MalformedJSON: it is not JSON.
    """
    try:
        return decode_any_depth(source)
    except MalformedJSON:
        clipped = _clip(source)
        if clipped is None:
            raise
        return decode_any_depth(clipped)


def _clip(source: bytes) -> bytes | None:
    """The text without what is nested too deep; None where nothing is, or the brackets do not match."""
    depth, start, kept = 0, 0, []
    for match in _STEP.finditer(source):
        mark = match[0]
        if mark in {b"{", b"["}:
            depth += 1
            if depth == _CLIP + 1:
                kept += [source[start : match.start()], b"null"]
        elif mark in {b"}", b"]"}:
            if depth == _CLIP + 1:
                start = match.end()
            depth -= 1
    return b"".join([*kept, source[start:]]) if kept and depth == 0 else None


def _decode_slowly(source: str | bytes, error: Exception) -> Any:
    """Read what the fast decoder refuses but JSON allows: lone surrogates and very long integers."""
    try:
        text = source if isinstance(source, str) else source.decode("utf-8")
        return replace_surrogates(json.loads(text, parse_constant=_refuse, parse_float=_float, parse_int=_int))
    except UnicodeDecodeError as bad:
        raise MalformedJSON(f"it is not valid UTF-8 (byte {bad.start})") from None
    except MalformedJSON:
        raise
    except RecursionError:
        raise MalformedJSON("it is nested far deeper than 64 levels") from None
    except ValueError:
        raise MalformedJSON(_reason(error)) from None


def _reason(error: Exception) -> str:
    text = str(error)
    for old, new in (
        ("JSON is malformed: ", "it is not JSON: "),
        ("Input data was truncated", "it is not JSON: it ends too early"),
        ("Invalid UTF-8 encoded string", "it is not valid UTF-8"),
    ):
        text = text.replace(old, new)
    return text if text.startswith("it ") else f"it is not JSON: {text}"


def _refuse(name: str) -> NoReturn:
    raise MalformedJSON(f"{name} is not JSON")


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise MalformedJSON("a number is too large for JSON's double precision")
    return value


def _int(text: str) -> int | str:
    # Numbers are compared by their text (ruling 1), so an integer beyond Python's limit is kept as that text.
    return int(text) if len(text) <= _MAX_DIGITS else text


def encode(value: Any) -> bytes:
    """Write a value as JSON in UTF-8, without white space; a lone surrogate becomes U+FFFD, NaN and infinity null.

    Raises:
        TypeError, ValueError, RecursionError: it cannot be written as JSON.
    """
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(replace_surrogates(value))


def replace_surrogates(value: Any) -> Any:
    """The value with every lone surrogate replaced by U+FFFD, keys included."""
    if isinstance(value, str):
        try:
            value.encode()  # which finds one sooner than a search would
        except UnicodeEncodeError:
            return _SURROGATE.sub("\ufffd", value)
        return value
    if isinstance(value, dict):
        return {replace_surrogates(key): replace_surrogates(member) for key, member in value.items()}
    if isinstance(value, list):
        return [replace_surrogates(member) for member in value]
    return value


_SCALARS: Final = frozenset({str, int, float, bool, type(None)})


def too_deep(value: Any, limit: int = MAX_DEPTH) -> bool:
    """Tell whether containers nest deeper than the limit, without recursion."""
    if type(value) is dict and limit > 0 and _SCALARS.issuperset(map(type, value.values())):
        return False
    level, depth = [value], 0
    while level := [member for member in level if isinstance(member, dict | list | tuple | Mapping)]:
        depth += 1
        if depth > limit:
            return True
        # A caller's lists may share members, or hold themselves: each is looked into once a level.
        apart = {id(member): member for member in level}
        level = [child for member in apart.values() for child in _children(member)]
    return False


def _children(container: Any) -> Any:
    return container.values() if isinstance(container, Mapping) else container


def number_text(value: float) -> str:
    """A number as canonical JSON writes it (RFC 8785): ``2.0`` is ``2``; an integer of any size is exact.

    >>> number_text(2.0), number_text(1e21), number_text(1e-7), number_text(-0.0)
    ('2', '1e+21', '1e-7', '0')
    """
    if isinstance(value, int):
        return str(value) if value.bit_length() < _MAX_BITS else _long_decimal(value)
    if not math.isfinite(value):
        return str(value)
    if value.is_integer() and abs(value) < _MAX_EXACT:
        return str(int(value))
    return _ecmascript(value)


def _long_decimal(value: int) -> str:
    """An integer of any size in decimal, in pieces that Python agrees to write."""
    pieces, rest, piece = [], abs(value), 10**_MAX_DIGITS
    while rest:
        rest, low = divmod(rest, piece)
        pieces.append(f"{low:0{_MAX_DIGITS}d}")
    return ("-" if value < 0 else "") + "".join(reversed(pieces)).lstrip("0")


def _ecmascript(value: float) -> str:
    """ECMAScript's Number::toString, on which RFC 8785 rests, from Python's shortest digits."""
    sign, digits, exponent = _parts(value)
    point = len(digits) + exponent
    if len(digits) <= point <= 21:  # noqa: PLR2004 - the bounds are ECMAScript's
        return sign + digits + "0" * (point - len(digits))
    if 0 < point <= 21:  # noqa: PLR2004
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:  # noqa: PLR2004
        return f"{sign}0.{'0' * -point}{digits}"
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{'+' if point > 0 else '-'}{abs(point - 1)}"


def _parts(value: float) -> tuple[str, str, int]:
    """Sign, significant digits without trailing zeros, and the exponent of the last digit."""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    stripped = digits.rstrip("0")
    scale = int(exponent or 0) - len(fraction) + len(digits) - len(stripped)
    return ("-" if value < 0 else ""), stripped, scale
