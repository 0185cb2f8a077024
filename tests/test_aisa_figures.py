"""The shared task's own figures: what is the same argument, what is counted, and where there are none."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arabic_agent_eval.aisa import Figures, figures_of
from arabic_agent_eval.items import ExpectedCall, Item, ItemSet
from tests.pages import firsts
from tests.test_cli import aae


def item(number: int, *calls: ExpectedCall, dialect: str | None = "msa") -> Item:
    return Item(str(number), "simple_function_calling", list(calls), dialect)


def figures(tmp_path, items, rows, wanted="auto") -> Figures | None:
    path = tmp_path / "submission.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return figures_of(ItemSet(items), path, wanted)


def answer(number: int, name: object, **arguments) -> dict:
    return {"id": number, "tool_called": name, "arguments": arguments}


SAME = [
    ({"n": 5000}, {"n": 5000.0}, True),
    ({"n": 5000}, {"n": "5000"}, True),
    ({"t": "جدة"}, {"t": " جدة "}, True),
    ({"t": "جدة"}, {"t": "جدة", "u": None, "v": ""}, True),
    ({"n": 5000}, {"n": "٥٠٠٠"}, False),
    ({"t": "الإمارات"}, {"t": "الامارات"}, False),
    ({"t": "عمان"}, {"t": "عمّان"}, False),
    ({"t": "٤ بيتزا"}, {"t": "اربع بيتزا"}, False),
    ({"country": "مصر و الإمارات"}, {"country": "الإمارات، مصر"}, False),
    ({"items": "كباب, 2 كفتة"}, {"items": ["كفتة 2", "كباب"]}, None),
    ({"items": ["كباب", "2 كفتة"]}, {"items": "2 كفتة,كباب"}, False),
]
OTHER = [
    ({"t": "جدة"}, {}),
    ({"t": "جدة"}, {"t": "جدة", "u": "x"}),
    ({"t": "جدة"}, {"u": "جدة"}),
    ({"t": "جدة"}, {"t": "Jeddah"}),
    ({"t": "Ahmed"}, {"t": "ahmed"}),
    ({"t": "ريال سعودي"}, {"t": "SAR"}),
    ({"city": "مصر، الإمارات"}, {"city": "الإمارات، مصر"}),
    ({"n": 5000}, {"n": 500}),
    ({"n": 1}, {"n": True}),
    ({"t": "x"}, {"t": {"a": 1}}),
    ({"t": "x"}, {"t": "x" * 300}),
]


@pytest.mark.parametrize(("right", "given_arguments", "as_written"), SAME, ids=range(len(SAME)))
def test_two_writings_of_a_value(tmp_path, right, given_arguments, as_written):
    """What the card calls the same is the same, and as written where only numbers by value and white space differ."""
    found = figures(tmp_path, [item(0, ExpectedCall("f", right))], [answer(0, "f", **given_arguments)])

    assert (found.argument_match, found.argument_match_as_written) == (
        float(as_written is not None),
        float(as_written or 0),
    )


@pytest.mark.parametrize(("right", "given_arguments"), OTHER, ids=range(len(OTHER)))
def test_two_values(tmp_path, right, given_arguments):
    """Missing, surplus, translated, aliased and other values are not the same."""
    found = figures(tmp_path, [item(0, ExpectedCall("f", right))], [answer(0, "f", **given_arguments)])

    assert (found.tool_accuracy, found.argument_match, found.track_a) == (1.0, 0.0, 0.4)


def test_what_is_counted(tmp_path):
    """No call is a name like any other, arguments count whichever tool was named, and no answer is a wrong one."""
    call = ExpectedCall("f", {"a": 1})
    items = [
        item(0, call), item(1, call), item(2), item(3, dialect="Gulf"), item(4, call, dialect="gulf"),
        item(5, call, dialect=None), item(6, call, dialect="x"), item(7, call, dialect="x"),
    ]  # fmt: skip
    rows = [
        answer(0, "f", a=1), answer(1, "g", a=1), answer(2, None), answer(3, "f"),
        {"id": 4, "tool_called": " f ", "arguments": '{"a": 1}'}, {"id": 5, "tool_called": "f", "arguments": "{"},
        {"id": 6, "error": "timeout"},
    ]  # fmt: skip

    found = figures(tmp_path, items, rows)

    assert (found.n, found.positives, found.missing) == (8, 6, 2)
    assert (found.tool_accuracy, found.argument_match) == (4 / 8, 3 / 6)
    by_dialect = {name: msgspec.structs.astuple(one) for name, one in found.dialects.items()}
    assert by_dialect == {
        "msa": (3, 2, pytest.approx(2 / 3), 1.0),
        "gulf": (2, 1, 0.5, 1.0),
        "(none)": (1, 1, 1.0, 0.0),
        "x": (2, 2, 0.0, 0.0),
    }
    assert (found.gap.tool_accuracy, found.gap.argument_match) == (1.0, 1.0)


def test_without_positives_there_is_no_argument_match(tmp_path):
    """Where nothing is to be called there are no arguments to be right."""
    found = figures(tmp_path, [item(0), item(1, dialect="gulf")], [answer(0, "none"), answer(1, "NONE")])

    assert (found.tool_accuracy, found.argument_match, found.track_a, found.gap.argument_match) == (
        0.5,
        None,
        None,
        None,
    )


NO_SUBMISSIONS = [
    ([answer(0, "f"), {"id": 1, "calls": []}], "auto"),
    ([{"id": 0, "calls": []}, {"id": 1, "text": '"tool_called"'}], "auto"),
    ([{**answer(0, "f"), "epoch": 1}], "auto"),
    ([{**answer(0, "f"), "calls": []}], "calls"),
]


@pytest.mark.parametrize(("rows", "wanted"), NO_SUBMISSIONS, ids=range(len(NO_SUBMISSIONS)))
def test_other_files_have_no_figures_of_the_task(tmp_path, rows, wanted):
    """A file with other rows, with several answers to an item, or read in another format is no submission."""
    assert figures(tmp_path, [item(0), item(1)], rows, wanted) is None


def test_items_with_several_calls_have_no_figures_of_the_task(tmp_path):
    """The task knows one call at most."""
    assert figures(tmp_path, [item(0, ExpectedCall("f"), ExpectedCall("g"))], [answer(0, "f")]) is None


def test_the_command_prints_them_for_a_submission_only(tmp_path):
    """A list of rows and standard input are submissions too; replies to unknown items are left out as elsewhere."""
    items, replies = tmp_path / "items.jsonl", tmp_path / "replies.json"
    items.write_bytes(msgspec.json.encode(item(0, ExpectedCall("f", {"a": 1}))) + b"\n")
    rows = [answer(0, "f", a=1), answer(9, "f")]
    replies.write_text(json.dumps(rows), encoding="utf-8")
    options = ("grade", "--items", items, "--allow-unknown")

    found = aae(*options, "--replies", replies, "--json").json
    piped = aae(*options, "--replies", "-", "--json", "--format", "submission", stdin=replies.read_bytes()).json

    assert found["aisa"] == piped["aisa"]
    assert (found["aisa"]["n"], found["aisa"]["track_a"]) == (1, 1.0)
    shown = aae("grade", "--items", items, "--replies", "-", stdin=b'{"id": 0, "tool_called": "f"}\n{"id": 1}').out
    assert shown == ""
    shown = aae("grade", "--items", items, "--replies", "-", stdin=b'{"id": 0, "error": "x", "tool_called": "f"}').out
    assert "1 items have no answer and count as wrong." in shown
    plain = aae("grade", "--items", items, "--replies", "-", "--json", stdin=b'{"id": 0, "calls": []}').json
    assert "aisa" not in plain


@given(
    name=st.none() | st.text(),
    arguments=st.recursive(st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
                           lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)),
)  # fmt: skip
def test_no_submission_raises(tmp_path_factory, name, arguments):
    """Whatever a row holds, it is right or wrong."""
    right = arguments if isinstance(arguments, dict) else {"items": "a"}
    row = {"id": 0, "tool_called": name, "arguments": arguments}

    found = figures(tmp_path_factory.mktemp("hostile"), [item(0, ExpectedCall("f", right))], [row])

    assert found.argument_match in {0.0, 1.0}
    assert found.argument_match_as_written <= found.argument_match


def test_the_page_names_every_key():
    """The table of the page has every key of the figures."""
    assert firsts("formats.md", "key of aisa") == set(Figures.__struct_fields__)
