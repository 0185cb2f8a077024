"""Calls written as text are read in every markup, drafts and data are left alone, and nothing is repaired."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from arabic_agent_eval import markup
from arabic_agent_eval.markup import read_text
from arabic_agent_eval.tools import Call

CASES = json.loads((Path(__file__).parent / "cases" / "markup.json").read_text(encoding="utf-8"))
AISA = Path(__file__).parents[1] / ".." / "shared" / "data" / "aisa" / "dev.parquet"
MILLION = 1_000_000


def as_rows(calls: tuple[Call, ...]) -> list[dict[str, object]]:
    """Calls as the table writes them."""
    rows = []
    for call in calls:
        error = {"error": call.error} if call.error else {}
        rows.append({"function": call.function, "arguments": call.arguments, **error})
    return rows


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case(case):
    """Each text of the table gives exactly its calls."""
    found = read_text(case["text"], frozenset(case.get("offered", ())))
    assert as_rows(found) == case["calls"], case["why"]


def test_case_ids_are_unique():
    """No case of the table hides another."""
    assert len({case["id"] for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", [case for case in CASES if case["calls"]], ids=lambda case: case["id"])
def test_unreadable_attempts_keep_their_text(case):
    """What could not be read is kept for showing, and never more than some thousand characters of it."""
    for call in read_text(case["text"], frozenset(case.get("offered", ()))):
        assert (call.raw is None) == (call.error is None)


def test_raw_text_is_capped():
    """A huge broken attempt does not carry its megabytes along."""
    for text in ("<tool_call>" + "س" * MILLION, "[TOOL_CALLS]a[ARGS]" + "س" * MILLION):
        (call,) = read_text(text)
        assert call.error is not None
        assert call.raw == "س" * 2000


def test_lone_surrogates_become_replacement_characters():
    """A lone surrogate in the text becomes U+FFFD everywhere (ruling 13)."""
    text = "<function=a\ud800><parameter=x>\udc00</parameter></function>"
    assert read_text(text) == (Call("a\ufffd", {"x": "\ufffd"}),)


def test_deep_arguments_are_malformed_and_keep_the_name():
    """Arguments nested deeper than 64 levels are malformed (ruling 13), at any depth the name stays readable."""
    fine = '{"a":' * 63 + "{}" + "}" * 63
    deep = '{"a":' * 64 + "{}" + "}" * 64
    deepest = '{"a":' * 10_000 + "{}" + "}" * 10_000
    for text, error in ((fine, None), (deep, "malformed_arguments")):
        (call,) = read_text(f'<tool_call>{{"name": "f", "arguments": {text}}}</tool_call>')
        assert (call.function, call.error) == ("f", error)
    for text in (deep, deepest):
        (call,) = read_text(f"[TOOL_CALLS]f[ARGS]{text}")
        assert (call.function, call.error) == ("f", "malformed_arguments")
        (call,) = read_text("<start_function_call>call:f" + text.replace('"', "") + "<end_function_call>")
        assert (call.function, call.error) == ("f", "malformed_arguments")
    (call,) = read_text(f'<tool_call>{{"name": "f", "arguments": {deepest}}}</tool_call>')
    assert (call.function, call.error) == (None, "malformed_call")
    assert read_text(f'{{"name": "f", "arguments": {deepest}}}') == ()


def test_far_tag_is_given_up_after_one_failure():
    """Looking beyond a quoted tag stops after its first failure, and later calls are read as usual."""
    broken = '<tool_call>{"name": "a", "arguments": {"x": "</tool_call>'
    quoted = '<tool_call>{"name": "b", "arguments": {"x": "</tool_call>"}}</tool_call>'
    plain = '<tool_call>{"name": "c", "arguments": {}}</tool_call>'
    assert [call.function for call in read_text(quoted + plain)] == ["b", "c"]
    assert [call.function for call in read_text(broken + "\n" + quoted + plain)] == [None, None, "c"]


CALL = '<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>'
OBJECT = '{"name": "f", "arguments": {"x": 1}}'
HOSTILE = {
    "many-calls": (CALL * 100_000, 100_000),
    "many-bare-calls": (OBJECT * 100_000, 100_000),
    "one-list-of-calls": ("[" + ",".join([OBJECT] * 100_000) + "]", 100_000),
    "opening-tags": ("<tool_call>" * 100_000, 100_000),
    "opening-tags-and-padding": (("<tool_call>" + " " * 89) * 100_000, 100_000),
    "opening-tags-unclosed-object": ('<tool_call>{"name": "f", ' * 100_000, 100_000),
    "opening-tags-unclosed-string": ('<tool_call>{"name' * 100_000, 100_000),
    "opening-tags-backslash": ('<tool_call>{"\\' * 100_000, 100_000),
    "braces": ("{" * MILLION, 0),
    "brackets": ("[" * MILLION, 0),
    "keys": ('{"a":' * MILLION, 0),
    "quoted-braces": ('{"' * MILLION, 0),
    "lists-of-objects": ("[{" * MILLION, 0),
    "broken-objects": ('{"name": x}\n' * 200_000, 0),
    "unclosed-lines": ('{"name": "f\n' * 200_000, 0),
    "escaped-quotes": ('{"' + '\\"' * MILLION, 0),
    "spaces": ("{" + " " * MILLION + "[" + " " * MILLION + "```" + " " * MILLION, 0),
    "fences": ("```\n" * 200_000 + "```py\n" * 200_000, 0),
    "mistral-tags": ("[TOOL_CALLS]f[ARGS]" * 100_000, 100_000),
    "mistral-open": ('[TOOL_CALLS]f[ARGS]{"a' * 100_000, 100_000),
    "mistral-text": ("[TOOL_CALLS]" + "x" * MILLION, 1),
    "python-tags": ("<|python_tag|>" * 100_000, 100_000),
    "functions": ("<function=f>" * 100_000, 100_000),
    "functions-open": ("<function=f" * 100_000, 100_000),
    "parameters": ("<function=f>" + "<parameter=x>1</parameter>" * 100_000, 1),
    "parameters-open": ("<function=f><parameter=x>" * 100_000, 100_000),
    "deepseek": ("<｜tool▁call▁begin｜>f<｜tool▁sep｜>{" * 100_000, 100_000),
    "deepseek-envelopes": ("<｜tool▁calls▁begin｜>" * 100_000, 100_000),
    "dsml": ('<｜DSML｜invoke name="f"><｜DSML｜parameter name="x"' * 100_000, 100_000),
    "gemma": ("<start_function_call>call:f{x:<escape>" * 100_000, 100_000),
    "gemma-marks": ("<start_function_call>call:f{x:" + "<escape>" * 100_001, 1),
    "gemma-commas": ("<start_function_call>call:f{" + "," * MILLION, 1),
    "thoughts": ("<think></think>" * 100_000 + CALL, 1),
    "open-thoughts": ("<think>" * 100_000 + CALL, 0),
    "closed-thoughts": ((CALL + "</think>") * 50_000, 0),
    "channels": ("<|channel|>analysis" * 100_000, 0),
    "controls": ("\x00\x1b[31m\u202e\ud800" * 200_000, 0),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_read_in_linear_time(name):
    """Megabytes of anything are read without an error; quadratic work would not end within the test run."""
    text, count = HOSTILE[name]
    assert len(read_text(text)) == count


PIECES = [
    *("<tool_call>", "</tool_call>", "<function=f>", "<parameter=x>", "</parameter>", "</function>", "[TOOL_CALLS]"),
    *("f[ARGS]", "<|python_tag|>", "<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<think>"),
    *("</think>", "<start_function_call>", "call:f{x:", "<escape>", "<end_function_call>", '<｜DSML｜invoke name="f">'),
    *('<｜DSML｜parameter name="x" string="false">', "</｜DSML｜parameter>", "```json\n", "\n```", "{", "}", "[", "]"),
    *('"', ",", ":", "\\", "\n", " ", "س", "1", OBJECT, '{"name": "f", "arguments": ', "</s>", "<|im_end|>"),
]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join), st.sampled_from([frozenset(), frozenset({"f"})]))
def test_any_mixture_of_pieces_is_read(text, offered):
    """No text raises, and every call is whole or says what is wrong with it."""
    for call in read_text(text, offered):
        assert call.error is not None or call.function
        assert call.error is None or not call.arguments


COMMON = [
    *(
        "<think>",
        "</think>",
        "أحجز له طاولة",
        "<tool_call>",
        "</tool_call>",
        "[TOOL_CALLS]",
        "[",
        "]",
        "{",
        "<|im_end|>",
    ),
    *('{"name": "f", "arguments": {"q": "أ"}}', '[{"name": "f", "arguments": {}}, {"name": "g"}]', "</s>", "\ud800"),
    *('{"name": "f", "arguments": "{}"}', '<tool_call>\n{"name": "g", "arguments": {"n": 1}}\n</tool_call>', "\n", " "),
    *('{"name": "f", "arguments": {"q": "[TOOL_CALLS]"}}', '{"name": "f", "arguments": {"q": "</think><tool_call>"}}'),
    *('{"no": "call"}', '{"name": "f"'),
]


@given(
    st.sampled_from(["", "<think>", "<think>لا", "[TOOL_CALLS]", "<tool_call>", "نعم"]),
    st.lists(st.sampled_from(COMMON), max_size=8).map("".join),
)
@example("<think>", '</think>\n<tool_call>{"name": "f", "arguments": {}}</tool_call><|im_end|>')
@example("[TOOL_CALLS]", '[{"name": "f", "arguments": {"q": "[TOOL_CALLS]"}}]</s>')
@example("[TOOL_CALLS]", "[]</s></s>")
@example("<tool_call>", '{"name": "f", "arguments": {"\ufffd": 1, "\ud800": 2, "\ufffd": 3}}</tool_call>')
def test_common_texts_are_read_as_any_other(start, rest):
    """The short way for what most models write gives the calls that the long way gives."""
    found = read_text(start + rest)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(markup, "_read_plain", lambda _: None)
        patch.setattr(markup, "decode_at_sight", lambda _: None)
        assert read_text(start + rest) == found


@given(st.text())
def test_any_text_is_read(text):
    """No text raises."""
    read_text(text)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.lists(
        st.tuples(st.text(min_size=1), st.dictionaries(st.text(), json_values, max_size=3)), min_size=1, max_size=4
    ),
    st.sampled_from(["<tool_call>{}</tool_call>", "<|python_tag|>{}", "[TOOL_CALLS]{}", "{}\n", "```json\n{}\n```\n"]),
    st.booleans(),
)
def test_written_calls_are_read_back(calls, frame, ascii_only):
    """Calls that are written as JSON come back as they were, whatever their texts hold."""
    texts = [json.dumps({"name": name, "arguments": args}, ensure_ascii=ascii_only) for name, args in calls]
    # Beside other text, JSON that quotes a tag cannot be told from markup.
    assume(frame[0] in "<[" or not re.search("[<\\[]", "".join(name + str(args) for name, args in calls)))
    found = read_text("".join(frame.replace("{}", text) for text in texts))
    assert found == tuple(Call(name, args) for name, args in calls)


@pytest.mark.skipif(not AISA.exists(), reason="the shared data is not here")
def test_transcripts_of_functiongemma():
    """The transcripts of AISA-ArabicFC give the one call that their own columns name, or none."""
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(AISA, columns=["text", "tool_called", "requires_function"])
    for row in table.to_pylist():
        calls = read_text(row["text"])
        assert [call.function for call in calls] == ([row["tool_called"]] if row["requires_function"] else [])
        assert all(call.error is None for call in calls)
