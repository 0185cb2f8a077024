"""Ranges of a file: every line belongs to one range, and the short way of grading agrees with the long way."""

from __future__ import annotations

import dataclasses
import io
import itertools
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arabic_agent_eval import files
from arabic_agent_eval.errors import DataError
from arabic_agent_eval.files import lines_between
from arabic_agent_eval.items import ItemSet
from arabic_agent_eval.ranges import Options, RangeGrader
from arabic_agent_eval.scoring import Signature
from tests.strategies import categories, related, values
from tests.test_cli import item, write

SIGNATURE = Signature("items@0", 1, "canonical-1")


# --- cutting -------------------------------------------------------------------------------------------------

pieces = st.lists(st.sampled_from([b"\n", b"a\n", "قهوة\n".encode(), b"\r\n", b"x" * 40 + b"\n", b" \n"]), max_size=12)


def reader(content):
    """A stream such as a file is: it differs from one in memory in how many lines it gives at once."""
    return io.BufferedReader(io.BytesIO(content))


@given(pieces, st.sampled_from([b"", b"end", b"\r"]), st.lists(st.integers(0, 400), max_size=6), st.integers(1, 50))
@settings(max_examples=300)
def test_every_line_lies_in_one_range(lines, last, cuts, block):
    """However a file is cut, adjoining ranges give every line once and in order."""
    content = b"".join(lines) + last
    bounds = sorted({0, len(content), *(cut for cut in cuts if cut < len(content))})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "_BLOCK", block)
        found = [
            line for start, end in itertools.pairwise(bounds) for line in lines_between(io.BytesIO(content), start, end)
        ]

    assert found == content.splitlines(keepends=True) if b"\r" not in content else b"".join(found) == content


@given(st.lists(st.integers(0, 30), max_size=4))
def test_a_byte_order_mark_belongs_to_no_range(cuts):
    """Lines begin after the mark, and a cut inside it or just behind it loses nothing."""
    content = b"\xef\xbb\xbfa\nbb\n\nccc"
    bounds = sorted({0, len(content), *(cut for cut in cuts if cut < len(content))})
    found = []
    for start, end in itertools.pairwise(bounds):
        stream = reader(content)
        stream.seek(3)
        found += lines_between(stream, start, end)

    assert found == [b"a\n", b"bb\n", b"\n", b"ccc"]


def test_a_range_may_reach_past_the_file():
    """A file that became shorter ends its range without a word."""
    assert list(lines_between(reader(b"a\n"), 0, 99)) == [b"a\n"]


# --- the short way and the long way --------------------------------------------------------------------------


def both_ways(folder, items, lines, *, source=None, **options):
    """What a range of lines comes to by the short way and by the long way, in comparable form."""
    path, replies = write(folder / "items.jsonl", items), folder / "replies.jsonl"
    replies.write_bytes(b"".join(line.encode("utf-8", "surrogatepass") + b"\n" for line in lines))
    chosen = Options(**options)
    ways = (chosen, dataclasses.replace(chosen, signature=SIGNATURE))
    return [_come_to(RangeGrader(ItemSet.index(path), replies, way)) for way in ways]


def _come_to(grader):
    try:
        part = grader.grade_range(0, grader.replies.stat().st_size)
    except DataError as error:
        return str(error)
    tally = part.tally
    answers = sorted([*((item_id, 0) for item_id in part.first), *part.again])
    counted = (part.lines, part.failures, part.unknown, answers)
    return counted, dict(tally.outcomes), tally.unscored, tally.examples, tally.arguments


def agree(items, lines, **options):
    """Compare both ways in a folder of their own; returns what they came to."""
    with tempfile.TemporaryDirectory() as folder:
        short, long = both_ways(Path(folder), items, lines, **options)
    assert short == long
    return short


def tool_calls(made):
    """The calls as OpenAI writes them; a few with arguments that are no text."""
    return [{"id": "1", "function": {"name": call["function"], "arguments": json.dumps(call["arguments"])}}
            for call in made]  # fmt: skip


items_drawn = st.lists(
    st.fixed_dictionaries(
        {
            "category": categories,
            "dialect": st.sampled_from([None, "msa", "gulf"]),
            "ordered": st.sampled_from([True, True, False]),
            "pair": related(),
            "accept": st.dictionaries(st.sampled_from(["city", "date"]), st.lists(values, max_size=2), max_size=2),
        }
    ),
    min_size=1,
    max_size=4,
)
fields = st.sampled_from(["calls", "actual_calls", "tool_calls", "tool_calls", "text"])
noise = st.dictionaries(
    st.sampled_from(["error", "epoch", "custom_id", "note", "calls", "tool_calls", "text"]),
    st.one_of(st.none(), st.just(0), st.just(""), st.booleans(), st.integers(-2, 2), values),
    max_size=2,
)


def drawn_row(place, drawn, field, noise):
    made = drawn["pair"][1]
    answer = {"text": "لا أعرف"} if field == "text" else {field: tool_calls(made) if field == "tool_calls" else made}
    return {"id": str(place)} | answer | noise


@given(
    items_drawn,
    st.data(),
    st.booleans(),
    st.sampled_from(["canonical", "v0.1"]),
    st.sampled_from(["auto", "calls", "tool_calls"]),
)
@settings(max_examples=150)
def test_short_and_long_way_agree(drawn, data, causes, rules, format):  # noqa: A002 - the option's name
    """On random items and rows both ways count the same outcomes, losses, examples and errors."""
    items = []
    for place, one in enumerate(drawn):
        expected = [dict(call) for call in one["pair"][0]]
        if expected and data.draw(st.booleans()):
            expected[0]["accept"] = one["accept"]
        items.append(item(str(place), one["category"], one["dialect"], expected, ordered=one["ordered"]))
    places = data.draw(st.lists(st.integers(0, len(drawn) - 1), max_size=6))
    rows = [drawn_row(p, drawn[p], data.draw(fields), {"epoch": n}) for n, p in enumerate(places)]
    rows += [drawn_row(p, drawn[p], data.draw(fields), {}) for p in range(len(drawn))]

    agree(items, map(json.dumps, rows), causes=causes, rules=rules, format=format)


@given(items_drawn, st.data(), st.booleans())
@settings(max_examples=150)
def test_short_and_long_way_agree_on_odd_rows(drawn, data, allow_unknown):
    """Rows with fields too many, of wrong types, null or repeated are refused or counted alike."""
    items = [item(str(place), one["category"], None, one["pair"][0]) for place, one in enumerate(drawn)]
    place = data.draw(st.integers(0, len(drawn)))
    row = drawn_row(place, drawn[min(place, len(drawn) - 1)], data.draw(fields), data.draw(noise))

    agree(items, [json.dumps(row)], allow_unknown=allow_unknown)


EXPECTED = [{"function": "احجز", "arguments": {"city": "جدة"}}]
RIGHT = json.dumps(EXPECTED, ensure_ascii=False)
ONE = [item("a", "multi_step", "msa", EXPECTED), item("7", "multi_step", "msa", EXPECTED)]


def written(name, text):
    """A row with one call whose arguments are a text."""
    return json.dumps({"id": "a", "tool_calls": [{"function": {"name": name, "arguments": text}}]}, ensure_ascii=False)


HIDDEN = '"\\u007b\\"city\\":\\"جدة\\",\\"x\\":' + "\\u005b" * 80 + "\\u005d" * 80 + '\\u007d"'

ODD_ROWS = {
    "number as id": '{"id": 7, "calls": RIGHT}',
    "number as id, twice": '{"id": 7, "calls": []}\n{"id": 7, "epoch": 1, "calls": RIGHT}',
    "long number as id": '{"id": %s, "calls": []}' % ("1" * 5000),
    "fraction as id": '{"id": 7.0, "calls": []}',
    "fraction as epoch": '{"id": "a", "epoch": 1.0, "calls": []}',
    "true as epoch": '{"id": "a", "epoch": true, "calls": []}',
    "null as epoch": '{"id": "a", "epoch": null, "calls": []}',
    "negative epoch": '{"id": "a", "epoch": -1, "calls": []}',
    "later epoch": '{"id": "a", "epoch": 3, "calls": RIGHT}\n{"id": "a", "epoch": 2, "calls": []}',
    "epoch of an unknown item": '{"id": "z", "epoch": 3, "calls": []}',
    "item_id before id": '{"id": "z", "item_id": "a", "calls": []}',
    "custom_id before both": '{"id": "z", "item_id": "z", "custom_id": "a", "calls": []}',
    "item_id before another id": '{"id": "7", "item_id": "a", "calls": RIGHT}',
    "custom_id before another id": '{"id": "7", "custom_id": "a", "calls": RIGHT}',
    "both lists of calls": '{"id": "a", "calls": RIGHT, "actual_calls": []}',
    "calls and tool calls": '{"id": "a", "tool_calls": [], "calls": RIGHT}',
    "false error": '{"id": "a", "error": false, "calls": []}',
    "error": '{"id": "a", "error": {"message": "quota"}, "calls": []}',
    "null calls and tool calls": '{"id": "a", "calls": null, "tool_calls": []}',
    "both calls": '{"id": "a", "calls": 5, "actual_calls": []}',
    "lone surrogate": '{"id": "a", "calls": [{"function": "احجز", "arguments": {"city": "\\ud800"}}]}',
    "lone surrogate elsewhere": '{"id": "a", "calls": RIGHT, "note": "\\ud800"}',
    "lone surrogate in written arguments": written("احجز", '{"city": "\\ud800"}'),
    "lone surrogate, twice escaped": json.dumps(
        {"id": "a", "tool_calls": [{"function": {"name": "احجز", "arguments": '{"city": "\ud800"}'}}]}
    ),
    "repeated argument": '{"id": "a", "calls": [{"function": "احجز", "arguments": {"city": "x", "city": "جدة"}}]}',
    "repeated field": '{"id": "a", "calls": 5, "calls": RIGHT}',
    "repeated field, last wrong": '{"id": "a", "calls": RIGHT, "calls": 5}',
    "name for function": '{"id": "a", "calls": [{"name": "احجز", "arguments": {"city": "جدة"}}]}',
    "no arguments": '{"id": "a", "calls": [{"function": "احجز"}]}',
    "null arguments": '{"id": "a", "calls": [{"function": "احجز", "arguments": null}]}',
    "accept among the calls": '{"id": "a", "calls": [{"function": "x", "arguments": {}, "accept": {"city": [1]}}]}',
    "arguments in text": '{"id": "a", "calls": [{"function": "احجز", "arguments": "{}"}]}',
    "empty written arguments": '{"id": "a", "tool_calls": [{"function": {"name": "احجز", "arguments": ""}}]}',
    "text after written arguments": '{"id": "a", "tool_calls": [{"function": {"name": "x", "arguments": "{} x"}}]}',
    "list as written arguments": '{"id": "a", "tool_calls": [{"function": {"name": "x", "arguments": "[]"}}]}',
    "deep arguments": '{"id": "a", "calls": [{"function": "احجز", "arguments": {"city": %s}}]}' % ("[" * 65 + "]" * 65),
    "deepest allowed": '{"id": "a", "calls": [{"function": "احجز", "arguments": {"city": %s}}]}'
    % ("[" * 63 + "]" * 63),
    "far too deep": '{"id": "a", "calls": [{"function": "احجز", "arguments": {"city": DEEP}}]}',
    "far too deep elsewhere": '{"id": "a", "calls": RIGHT, "note": DEEP}',
    "long number": '{"id": "a", "calls": [{"function": "احجز", "arguments": {"city": %s}}]}' % ("1" * 5000),
    "number beyond 64 bits": '{"id": "a", "calls": [{"function": "احجز", "arguments": {"city": %s}}]}' % ("1" * 30),
    "not JSON": '{"id": "a", "calls": []',
    "text after the row": '{"id": "a", "calls": []} x',
    "a list": "[]",
    "blank": " ",
    "NaN": '{"id": "a", "calls": [{"function": "x", "arguments": {"n": NaN}}]}',
    "NaN elsewhere": '{"id": "a", "calls": [], "n": NaN}',
    "null item_id": '{"id": "a", "item_id": null, "calls": []}',
    "null custom_id": '{"id": "a", "custom_id": null, "calls": []}',
    "null id": '{"id": null, "calls": []}',
    "call without a name": '{"id": "a", "calls": [{"function": "", "arguments": {"city": "جدة"}}]}',
    "deep written arguments": written("x", '{"x": %s}' % ("[" * 65 + "]" * 65)),
    "deep written arguments, escaped": written("احجز", "HIDDEN").replace('"HIDDEN"', HIDDEN),
    "escaped id": '{"id": "\\u0061", "calls": RIGHT}',
    "long unknown id": '{"id": "%s", "calls": []}' % ("ن" * 200),
}  # fmt: skip


@pytest.mark.parametrize("format", ["auto", "calls", "tool_calls"])
@pytest.mark.parametrize("name", ODD_ROWS)
def test_odd_rows_are_graded_alike(name, format):  # noqa: A002 - the option's name
    """A row that only one of the two ways could trip over has the same outcome, or the same error, by both."""
    rows = ODD_ROWS[name].replace("RIGHT", RIGHT).replace("DEEP", "[" * 9999 + "]" * 9999)

    agree(ONE, rows.split("\n"), format=format)


ODD_ITEMS = {
    "true": {"n": True}, "false": {"n": False}, "one": {"n": 1}, "zero": {"n": 0}, "minus zero": {"n": -0.0},
    "half": {"n": 2.5}, "whole": {"n": 2.0}, "large": {"n": 2**53 + 1}, "null": {"n": None, "m": "x"},
    "list": {"n": ["جدة"]}, "object": {"n": {"a": 1}}, "wildcard": {"n": "*"}, "nothing": {},
    "empty text": {"n": ""}, "tatweel": {"n": "ـ"}, "arabic": {"n": "جدة"}, "number in text": {"n": "1"},
}  # fmt: skip


@pytest.mark.parametrize("rules", ["canonical", "v0.1"])
@pytest.mark.parametrize("causes", [True, False])
@pytest.mark.parametrize("expected", ODD_ITEMS)
def test_every_value_against_every_value(expected, causes, rules):
    """What Python calls equal and the rulings do not, and the reverse, is graded alike by both ways."""
    rows = [{"id": "a", "epoch": place, "calls": [{"function": "f", "arguments": actual}]}
            for place, actual in enumerate(ODD_ITEMS.values())]  # fmt: skip
    rows += [{"id": f"b{place}", "calls": row["calls"]} for place, row in enumerate(rows)]
    rows += [{"id": "c", "calls": []}, {"id": "d", "calls": rows[0]["calls"] * 2}]
    made = [("f", ODD_ITEMS[expected])]
    items = [
        item(name, "multi_step", None, made) for name in ["a", *(f"b{n}" for n in range(len(ODD_ITEMS))), "c", "d"]
    ]

    (_, *counted) = agree(items, map(json.dumps, rows), causes=causes, rules=rules)

    assert counted[0]["c"].function == 0.0


@pytest.mark.parametrize("rules", ["canonical", "v0.1"])
@pytest.mark.parametrize("expected", [[], [{"function": "*"}], [{"function": "f"}, {"function": "g"}]])
@pytest.mark.parametrize(
    "actual", [[], [{"function": "f"}], [{"function": "*"}], [{"function": "g"}, {"function": "f"}]]
)
@pytest.mark.parametrize("ordered", [True, False])
def test_every_number_of_calls(expected, actual, ordered, rules):
    """Nothing expected, nothing called, any function, and calls in another order are graded alike by both ways."""
    items = [item("a", "multi_step", None, expected, ordered=ordered)]

    for causes in (True, False):
        agree(items, [json.dumps({"id": "a", "calls": actual})], causes=causes, rules=rules)


@pytest.mark.parametrize("causes", [True, False])
def test_replies_meet_items_in_any_order(causes):
    """Items that are met out of turn, again, or in the middle of the file are found."""
    items = [item(str(n), "multi_step", None, [("f", {"n": n})]) for n in range(9)]
    for order in ([8, 0, 1, 2, 7], [0, 1, 5, 2, 3], [3, 4, 3, 4, 0], list(range(9))):
        rows = [{"id": str(n), "epoch": place, "calls": [{"function": "f", "arguments": {"n": n}}]}
                for place, n in enumerate(order)]  # fmt: skip
        agree(items, map(json.dumps, rows), causes=causes)
        plain = [{key: row[key] for key in ("id", "calls")} for row in rows]
        _, outcomes, *_ = agree(items, map(json.dumps, plain), causes=causes)
        assert set(outcomes) == {str(n) for n in order}


# --- known differences ---------------------------------------------------------------------------------------


def known(reason, *lines, items=ONE):
    return pytest.param(items, lines, id=reason, marks=pytest.mark.xfail(reason=reason, strict=True))


@pytest.mark.parametrize(
    ("items", "lines"),
    [
        known("the short way skips numbers of other fields", '{"id": "a", "calls": [], "note": 1e999}'),
        known("the short way skips the bytes of other fields", '{"id": "a", "calls": [], "note": "\ud800"}'),
        known(
            "the short way reads no more of an item than it needs",
            '{"id": "a", "calls": []}',
            items=[item("a", "multi_step", "msa", EXPECTED, instruction=5)],
        ),
    ],
)
def test_known_differences_of_the_two_ways(items, lines):
    """The two ways ought to agree on these as well."""
    agree(items, lines)
