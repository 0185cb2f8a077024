"""Strict JSON (ruling 13) and numbers as canonical JSON writes them (ruling 1)."""

from __future__ import annotations

import contextlib
import json
import math
import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arabic_agent_eval.strictjson import (
    MAX_DEPTH,
    MalformedJSON,
    decode,
    decode_any_depth,
    decode_clipped,
    encode,
    number_text,
    replace_surrogates,
    too_deep,
)


def nested(depth: int, inside: str = "1") -> str:
    """JSON text of so many lists inside one another."""
    return "[" * depth + inside + "]" * depth


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"مدينة": ["جدة", 1.5]}, '{"مدينة":["جدة",1.5]}'),
        (2**70, "1180591620717411303424"),
        ({"\ud800": ["a\udfff", None]}, '{"\ufffd":["a\ufffd",null]}'),
        ([math.nan, math.inf], "[null,null]"),
    ],
)
def test_encoded(value, expected):
    """Text is written as it is, in UTF-8, and what UTF-8 cannot hold is replaced."""
    assert encode(value) == expected.encode()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('{"مدينة": "جدة"}', {"مدينة": "جدة"}),
        (r'"\u062c\u062f\u0629"', "جدة"),
        (r'"\ud83d\ude00"', "😀"),
        (r'"\ude00x"', "\ufffdx"),
        (r'["\ud800", {"\udfff": 1}]', ["\ufffd", {"\ufffd": 1}]),
        ('"\ud800"', "\ufffd"),
        ('{"a": 1, "a": 2}', {"a": 2}),
        (r'{"\ud800": 1, "\ud801": 2}', {"\ufffd": 2}),
        (" \t\r\n1 ", 1),
        ("null", None),
        ("-0", 0),
        ("1e-400", 0.0),
        (r'["\ud800", 1.5, -2e3, 7]', ["\ufffd", 1.5, -2000.0, 7]),
        ("123456789012345678901234567890", 123456789012345678901234567890),
        (r'"\u0000\u001b"', "\0\x1b"),
        ('"\x7f"', "\x7f"),
    ],
)
def test_decoded(source, expected):
    """What JSON allows is read, from text and from bytes alike."""
    assert decode(source) == expected
    if source.isprintable():
        assert decode(source.encode()) == expected


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("", "ends too early"),
        ("  ", "ends too early"),
        ('{"a": "b', "ends too early"),
        ("[1", "ends too early"),
        ("NaN", "NaN is not JSON"),
        ("[Infinity]", "Infinity is not JSON"),
        ("-Infinity", "-Infinity is not JSON"),
        ("1e400", "too large"),
        ("[-1e400]", "too large"),
        ("{} x", "trailing"),
        ("1 2", "trailing"),
        ("[1,]", "trailing comma"),
        ('{"a": 1,}', "trailing comma"),
        ("{'a': 1}", "keys must be strings"),
        ("01", "invalid number"),
        ("+1", "not JSON"),
        (".5", "not JSON"),
        ("1.", "invalid number"),
        ("٣", "not JSON"),
        ('"\t"', "not JSON"),
        (r'"\x"', "escape"),
        ("True", "not JSON"),
        ("// note\n1", "not JSON"),
        ("\ufeff{}", "not JSON"),
        ("\xa01", "not JSON"),
        (r'{"a": "\ud800", "b": NaN}', "NaN is not JSON"),
    ],
)
def test_malformed(source, why):
    """What JSON does not allow is refused in a sentence about the text that never quotes it."""
    with pytest.raises(MalformedJSON, match=why) as raised:
        decode(source)

    assert len(str(raised.value)) < 100
    with pytest.raises(MalformedJSON, match=why):
        decode(source.encode())


@pytest.mark.parametrize(
    "source",
    [
        b"\xff",
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b'"\xc0\x80"',
        '{"a": 1}'.encode("utf-16"),
        b'{"a": "\\ud800", "b": "\xff"}',
    ],
    ids=["byte", "in a string", "surrogate", "overlong", "UTF-16", "beside a lone surrogate"],
)
def test_bytes_must_be_utf8(source):
    """Bytes in another encoding, overlong forms and encoded surrogates are malformed."""
    with pytest.raises(MalformedJSON, match="not valid UTF-8"):
        decode(source)


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 100, 500, 900, 100_000])
@pytest.mark.parametrize("inside", ["1", '"\\ud800"', "{}"])
def test_deep_nesting_is_malformed(depth, inside):
    """More than 64 containers are malformed, however many more, and whatever stands inside."""
    with pytest.raises(MalformedJSON, match="deeper than 64"):
        decode(nested(depth, inside))
    with pytest.raises(MalformedJSON, match="deeper than 64"):
        decode('{"a":' * depth + inside + "}" * depth)


def test_depth_limit_is_exact():
    """64 containers inside one another are read, from short and long text; brackets in strings do not count."""
    assert decode(nested(MAX_DEPTH)) == decode(nested(MAX_DEPTH, " " * 500 + "1"))
    assert decode(f'["{"[" * 500}"]') == ["[" * 500]
    assert decode_any_depth(nested(300)) == json.loads(nested(300))


def test_text_of_a_subclass_is_text():
    """A string of a subclass, as numpy and enumerations have, is read like any other."""

    class Text(str):
        __slots__ = ()

    assert decode(Text('{"a": 1}')) == {"a": 1}
    with pytest.raises(MalformedJSON):
        decode(Text("{"))


def test_integers_beyond_python_s_limit_keep_their_digits():
    """An integer that Python will not write as text is kept as its text, so that it still equals itself."""
    assert decode("9" * 3999) == int("9" * 3999)
    assert decode("9" * 5000) == "9" * 5000
    assert decode("[-" + "9" * 5000 + "]") == ["-" + "9" * 5000]


@given(st.binary(max_size=40) | st.text('[]{}",:\\u0dn0e1-. ا', max_size=40).map(str.encode))
def test_agrees_with_the_standard_library(source):
    """What Python's own strict reader takes is read alike, and what it refuses is refused."""
    try:
        expected = json.loads(source.decode("utf-8"), parse_constant=float)
    except (ValueError, RecursionError):
        with pytest.raises(MalformedJSON):
            decode(source)
    else:
        assert decode(source) == replace_surrogates(expected)


@given(st.text())
def test_no_text_raises_anything_else(text):
    """Any text is JSON or malformed JSON."""
    with contextlib.suppress(MalformedJSON):
        json.dumps(decode(text))


# --- clipping ------------------------------------------------------------------------------------------------


def depth_of(value: object) -> int:
    """How many lists stand inside one another, each the first member of the one before."""
    depth = 0
    while isinstance(value, list) and value:
        depth, value = depth + 1, value[0]
    return depth


def test_what_nests_too_deep_is_cut_off():
    """Ten thousand levels in one field cost that field its depth and nothing else in the line."""
    line = f'{{"deep": {nested(10_000)}, "other": {nested(5000, "")}, "text": "]]}}\\"[", "id": "١"}}'

    value = decode_clipped(line.encode())

    assert value["id"] == "١"
    assert value["text"] == ']]}"['
    assert depth_of(value["deep"]) == depth_of(value["other"]) == 199


def test_cutting_takes_out_whole_members():
    """Only what lies deeper than 200 becomes null; its neighbours on every level stay."""
    line = "[" * 1500 + '{"a": [[1]]}, 5' + ", 4]" * 1500

    value, depth = decode_clipped(line.encode()), 0
    while value[0] is not None:
        value, depth = value[0], depth + 1
        assert value[1:] == [4] or depth == 199
    assert depth == 199
    assert value == [None, 4]


def test_what_the_decoder_can_hold_is_not_cut():
    """Up to the decoder's own limit a value comes back whole; only grading asks for 64 levels."""
    assert depth_of(decode_clipped(nested(600).encode())) == 600


def test_cutting_also_reads_lone_surrogates():
    """A lone surrogate above or below the cut does not stop the reading."""
    for inside in ("1", r'"\ud800"'):
        value = decode_clipped(f'{{"a": "\\ud800", "b": {nested(2000, inside)}}}'.encode())
        assert value["a"] == "\ufffd"


@pytest.mark.parametrize(
    "source",
    [
        b"{",
        b"nonsense",
        nested(2000).encode()[:-1],
        nested(2000, "]").encode(),
        b'{"a": "' + b"[" * 3000,
        nested(2000, "nonsense").encode()[:-1] + b"} x",
        nested(300).encode() + b" trailing",
    ],
    ids=[
        "torn",
        "words",
        "one bracket missing",
        "one bracket too many",
        "brackets in a torn string",
        "words inside",
        "words after",
    ],
)
def test_cutting_mends_nothing_else(source):
    """Text that is malformed for another reason than depth stays malformed."""
    with pytest.raises(MalformedJSON):
        decode_clipped(source)


@pytest.mark.parametrize("piece", ['\\"', '"', "[", "]", "\\", '["', '{"a":', '",'])
def test_hostile_text_is_refused_in_linear_time(piece):
    """A megabyte of opened strings or brackets, as a torn line leaves behind, is refused in a moment."""
    source = ('{"a": "' + piece * (1_000_000 // len(piece))).encode()

    with pytest.raises(MalformedJSON):
        decode_clipped(source)


def test_depth_of_any_containers():
    """Depth is counted without recursion, in lists, tuples and objects, and a circle is too deep."""
    circle: list = []
    circle.append(circle)
    deep: object = ()
    for _ in range(100_000):
        deep = (deep,)

    assert too_deep(circle)
    assert too_deep(deep)
    assert not too_deep([[]], 2)
    assert too_deep([{"a": ()}], 2)
    assert not too_deep("[[[[")


# --- numbers as text -----------------------------------------------------------------------------------------

# From RFC 8785, appendix B, and ECMAScript's Number::toString; the bits of each number as IEEE 754 has them.
RFC_8785 = [
    ("0000000000000000", "0"),
    ("8000000000000000", "0"),
    ("0000000000000001", "5e-324"),
    ("8000000000000001", "-5e-324"),
    ("7fefffffffffffff", "1.7976931348623157e+308"),
    ("ffefffffffffffff", "-1.7976931348623157e+308"),
    ("4340000000000000", "9007199254740992"),
    ("c340000000000000", "-9007199254740992"),
    ("4430000000000000", "295147905179352830000"),
    ("44b52d02c7e14af5", "9.999999999999997e+22"),
    ("44b52d02c7e14af6", "1e+23"),
    ("44b52d02c7e14af7", "1.0000000000000001e+23"),
    ("444b1ae4d6e2ef4e", "999999999999999700000"),
    ("444b1ae4d6e2ef4f", "999999999999999900000"),
    ("444b1ae4d6e2ef50", "1e+21"),
    ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
    ("3eb0c6f7a0b5ed8d", "0.000001"),
    ("41b3de4355555553", "333333333.3333332"),
    ("41b3de4355555554", "333333333.33333325"),
    ("41b3de4355555555", "333333333.3333333"),
    ("41b3de4355555556", "333333333.3333334"),
    ("41b3de4355555557", "333333333.33333343"),
    ("becbf647612f3696", "-0.0000033333333333333333"),
    ("43143ff3c1cb0959", "1424953923781206.2"),
]


@pytest.mark.parametrize(("bits", "expected"), RFC_8785)
def test_numbers_of_rfc_8785(bits, expected):
    """The samples of RFC 8785 are written as the RFC writes them."""
    assert number_text(struct.unpack(">d", bytes.fromhex(bits))[0]) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2.0, "2"),
        (2.5, "2.5"),
        (-2.0, "-2"),
        (0.1, "0.1"),
        (1e-7, "1e-7"),
        (1.5e-7, "1.5e-7"),
        (123456.789, "123456.789"),
        (1e20, "100000000000000000000"),
        (1.25e22, "1.25e+22"),
        (3, "3"),
        (-(10**30), "-1" + "0" * 30),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (math.nan, "nan"),
    ],
)
def test_number_text(value, expected):
    """A number has one text; what JSON does not know is written as Python does."""
    assert number_text(value) == expected


def test_integers_of_any_size_have_a_text():
    """An integer is written exactly, also beyond Python's own limit for decimal text (ruling 1)."""
    assert number_text(2**12_998) == str(2**12_998)
    assert number_text(10**6000 + 7) == "1" + "0" * 5999 + "7"
    assert number_text(-(10**20_000)) == "-1" + "0" * 20_000
    assert decode('{"n": 1' + "0" * 6000 + "}")["n"] == number_text(10**6000)


def test_a_number_s_text_reads_back_as_the_number():
    """Writing loses nothing: a hundred thousand doubles of all sizes come back bit for bit."""
    source = random.Random(1)
    for _ in range(100_000):
        value = struct.unpack(">d", source.randbytes(8))[0]
        if math.isfinite(value) and float(number_text(value)) != value:
            pytest.fail(repr(value))
