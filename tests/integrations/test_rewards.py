"""Rewards give what ``aae grade`` gives, whatever a completion holds and whoever shares them."""

from __future__ import annotations

import json
import multiprocessing
import pickle
import runpy
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arabic_agent_eval.bundled import find_items, find_replies
from arabic_agent_eval.errors import DataError, UsageError
from arabic_agent_eval.formats import read_calls, read_reply
from arabic_agent_eval.integrations.rewards import ToolCallReward, compute_score, trl_reward
from arabic_agent_eval.items import ItemSet
from arabic_agent_eval.rules import V0_1
from tests.test_cli import aae, read

ITEMS = ItemSet.read(find_items("sample"))
ROWS = [json.loads(line) for line in find_items("sample").read_text(encoding="utf-8").splitlines()]
IDS = [row["id"] for row in ROWS]
CITY = [{"function": "get_time", "arguments": {"city": "مكة"}}]


def sample_calls() -> dict[str, list[dict]]:
    """The calls of the sample replies by item."""
    replies = map(read_reply, map(json.loads, find_replies("sample").read_text(encoding="utf-8").splitlines()))
    return {
        reply.item_id: [
            {"name": call.function or "", "arguments": call.arguments}
            for call in read_calls(reply, ITEMS[reply.item_id].offered)
        ]
        for reply in replies
    }


def tagged(calls: list[dict]) -> str:
    """Calls as Qwen writes them."""
    return "".join(f"<tool_call>\n{json.dumps(call, ensure_ascii=False)}\n</tool_call>\n" for call in calls) or "عذراً"


TEXTS = [tagged(sample_calls()[item_id]) for item_id in IDS]
MESSAGES = [[{"role": "assistant", "content": text}] for text in TEXTS]
PARSED = [
    [{"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": c} for c in calls]}]
    for calls in map(sample_calls().get, IDS)
]
COLUMNS = {
    "expected_calls": [json.dumps(row["expected_calls"], ensure_ascii=False) for row in ROWS],
    "category": [row["category"] for row in ROWS],
    "ordered": [row.get("ordered") for row in ROWS],
    "available_functions": [row.get("available_functions") for row in ROWS],
    "tools": [row.get("tools") for row in ROWS],
}


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """What ``aae grade`` says of the texts: the rows by item."""
    folder = tmp_path_factory.mktemp("graded")
    lines = [json.dumps({"id": i, "text": text}, ensure_ascii=False) for i, text in zip(IDS, TEXTS, strict=True)]
    (folder / "replies.jsonl").write_text("\n".join(lines), encoding="utf-8")
    options = ("--items", "sample", "--replies", folder / "replies.jsonl", "--out", folder / "rows.jsonl")
    assert aae("grade", *options).code == 0
    rows = {row["item_id"]: row for row in read(folder / "rows.jsonl")}
    return [rows[item_id] for item_id in IDS]


@pytest.mark.parametrize("completions", [TEXTS, MESSAGES, PARSED], ids=["text", "messages", "parsed"])
def test_rewards_are_the_totals_of_aae_grade(graded, completions):
    """By item id or by columns, from text or messages, a reward is the total of the graded row, to the last bit."""
    totals = [row["total"] for row in graded]

    assert len(set(totals)) > 3
    assert ToolCallReward("sample")(completions, IDS) == totals
    assert ToolCallReward(find_items("sample"))(completions, id=IDS) == totals
    assert ToolCallReward(ITEMS.values())(completions=completions, item_id=IDS, prompts=IDS) == totals
    assert trl_reward(completions, **COLUMNS) == totals


def test_strict_rewards_are_the_exact_matches_of_aae_grade(graded):
    """A strict reward is 1 where every axis of the row is 1, and 0 everywhere else."""
    axes = ("function_selection", "argument_accuracy", "arabic_preservation")
    exact = [float(all(row[axis] == 1.0 for axis in axes)) for row in graded]

    assert set(exact) == {0.0, 1.0}
    assert ToolCallReward("sample", strict=True)(TEXTS, IDS) == exact
    scores = [
        compute_score("s", text, None, {"item_id": i}, strict=True, items="sample")
        for i, text in zip(IDS, TEXTS, strict=True)
    ]
    assert [score["score"] for score in scores] == [score["acc"] for score in scores] == exact


def test_verl_scores_are_the_rows_of_aae_grade(graded):
    """Called by keyword as verl calls it, it gives the total and the axes of the graded row, under the same keys."""
    fields = ("category", "ordered", "available_functions", "tools")
    for place, row in enumerate(graded):
        extra = {field: COLUMNS[field][place] for field in fields} | {"num_turns": 2, "rollout_reward_scores": {}}

        found = compute_score(
            data_source="sample", solution_str=TEXTS[place], ground_truth=COLUMNS["expected_calls"][place],
            extra_info=extra, reward_router_address=None,
        )  # fmt: skip

        assert list(found) == [
            "score", "function_selection", "argument_accuracy", "arabic_preservation", "total", "acc"
        ]  # fmt: skip
        assert found["score"] == found["total"] == row["total"]
        assert all(found[axis] == row[axis] for axis in list(found)[1:4])


def test_the_rules_are_those_that_were_asked_for():
    """Other rules give the other rules' reward: silence where nothing is right earns nothing under v0.1."""
    assert ToolCallReward()(["لا"], expected_calls=["[]"]) == [1.0]
    assert ToolCallReward(rules=V0_1)(["لا"], expected_calls=["[]"]) == [0.0]


# --- what says what is right ---------------------------------------------------------------------------------

SAME = [
    json.dumps(CITY, ensure_ascii=False),
    CITY,
    tuple(CITY),
    np.array(CITY, dtype=object),
    CITY[0],
    {"id": 1, "category": "multi_step", "expected_calls": CITY, "instruction": "كم الساعة؟"},
    json.dumps({"expected_calls": CITY}),
    [{"name": "get_time", "arguments": '{"city": "مكة"}'}],
    [{"type": "function", "function": {"name": "get_time", "arguments": {"city": "مكة"}}}],
    [{"function": "get_time", "arguments": {"city": "مكة", "zone": None}, "accept": {"zone": None}, "result": None}],
    [{"function": "get_time", "arguments": {"city": "مكة المكرمة"}, "accept": {"city": ["مكة"]}}],
]


@pytest.mark.parametrize("expected", SAME, ids=range(len(SAME)))
def test_right_calls_come_in_many_shapes(expected):
    """JSON text, lists, tables' arrays, items and OpenAI's calls say the same, padding with nulls included."""
    right, wrong = tagged([{"name": "get_time", "arguments": {"city": "مكة"}}]), "لا أعرف"

    assert trl_reward([right, wrong], expected_calls=[expected, expected]) == [1.0, 0.0]
    assert compute_score("s", right, expected)["score"] == 1.0


def test_the_category_of_a_row_decides_the_weights():
    """The right name alone is worth 0.4, and 0.6 in the category that counts it twice; an item names its own."""
    text = tagged([{"name": "get_time", "arguments": {"city": "London"}}])
    item = {"category": "dialect_handling", "expected_calls": CITY}

    assert trl_reward([text] * 3, expected_calls=[CITY, CITY, item], category=[None, "dialect_handling", None]) == [
        pytest.approx(0.4), pytest.approx(0.6), pytest.approx(0.6)
    ]  # fmt: skip


def test_order_and_offered_tools_of_a_row_count():
    """Calls in another order are right where the row says so, and JSON that names no offered tool is no call."""
    two = [{"function": name, "arguments": {}} for name in ("a", "b")]
    swapped = tagged([{"name": "b", "arguments": {}}, {"name": "a", "arguments": {}}])

    assert trl_reward([swapped] * 2, expected_calls=[two, two], ordered=[True, False]) == [0.6, 1.0]
    bare, schema = '{"name": "a", "arguments": {}}', [{"type": "function", "function": {"name": "b"}}]
    offered = {"available_functions": [None, ["a"], '["b"]', None], "tools": [None, None, None, schema]}
    assert trl_reward([bare] * 4, expected_calls=[[]] * 4, **offered) == [0.0, 0.0, 1.0, 1.0]


def test_another_column_may_hold_the_right_calls():
    """The column is the one that was named."""
    assert ToolCallReward(column="answer")(["لا"], answer=["[]"], expected_calls=["["]) == [1.0]


def test_a_row_that_says_nothing_is_not_applicable():
    """Without a column of right calls, or with null in it, the reward is None and nothing is logged of it."""
    logged = []

    assert trl_reward(["a", "b"], prompts=["x", "y"]) == [None, None]
    found = trl_reward(["a", "b", "c"], expected_calls=[None, "null", []], log_metric=lambda *one: logged.append(one))
    assert found == [None, None, 1.0]
    assert logged[0] == ("trl_reward/function_selection", 1.0)
    assert trl_reward(["a"], log_metric=lambda *one: pytest.fail("nothing was scored")) == [None]
    assert trl_reward([]) == []


BROKEN = [
    ("not JSON", "cannot be read"),
    ("", "cannot be read"),
    ('"get_time"', "must be a list, not text"),
    (7, "must be a list, not a number"),
    ([{"arguments": {}}], "is no call"),
    ([{"function": "f", "arguments": "{"}], "is no call"),
    (["f"], "is no call"),
    ([{"function": "f", "arguments": {}, "accept": {"a": "x"}}], "expected a list, found text"),
    ({"expected_calls": None}, "must be a list, not null"),
    (object(), "no JSON value"),
]


@pytest.mark.parametrize(("expected", "why"), BROKEN, ids=range(len(BROKEN)))
def test_a_dataset_that_is_wrong_is_refused(expected, why):
    """The mistake of whoever made the dataset raises and says what is wrong; it is not paid for by the model."""
    for _ in range(2):
        with pytest.raises(DataError, match=why):
            trl_reward(["text"], expected_calls=[expected])


def test_other_mistakes_of_the_caller_are_refused():
    """An unknown item, an unknown set, a column of another length, and verl without ground truth say so."""
    with pytest.raises(DataError, match="no item 'gone'"):
        ToolCallReward("sample")(["a"], ["gone"])
    with pytest.raises(DataError, match="no bundled set"):
        ToolCallReward("gone")
    with pytest.raises(UsageError, match="2 completions, but a column with 1"):
        trl_reward(["a", "b"], expected_calls=["[]"])
    with pytest.raises(DataError, match="nothing says which calls are right"):
        compute_score("s", "a", None)
    with pytest.raises(DataError, match="ordered"):
        trl_reward(["a"], expected_calls=["[]"], ordered=["perhaps"])


# --- what a completion may hold ------------------------------------------------------------------------------

CALL = {"type": "function", "function": {"name": "get_time", "arguments": {"city": "مكة"}}}


def test_the_calls_of_all_turns_are_one_list():
    """In a conversation the model's calls count, parsed or written, and neither results nor questions do."""
    turns = [
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "tool", "name": "get_time", "content": '{"name": "get_time", "arguments": {}}'},
        {"role": "user", "content": tagged([{"name": "get_time", "arguments": {}}])},
        {"role": "assistant", "content": [{"type": "text", "text": tagged([{"name": "b", "arguments": {}}])}]},
        {"role": "assistant", "content": "تم"},
    ]
    expected = [*CITY, {"function": "b", "arguments": {}}]

    assert trl_reward([turns], expected_calls=[expected]) == [1.0]
    assert trl_reward([turns[0]], expected_calls=[CITY]) == [1.0]


HOSTILE = [
    None, 5, b"b", np.str_("x"), {}, [], [None], [[]], [{"role": "assistant"}], [{"role": 7, "content": tagged([])}],
    [{"content": {"text": "x"}}], [{"content": [None, {"text": 5}]}], [{"tool_calls": "get_time"}],
    [{"tool_calls": [None, 5, {}, {"function": {}}, {"function": {"name": 5}}, {"function": {"name": "f"}}]}],
    [{"tool_calls": [{"function": {"name": "get_time", "arguments": [1]}}]}], "\ud800", "\0" * 100,
    "<tool_call>" * 3, '<tool_call>{"name": "get_time", "arguments": {"city": NaN}}</tool_call>',
    '<tool_call>{"name": "get_time", "arguments": {"city": ' + "9" * 5000 + "}}</tool_call>",
]  # fmt: skip


@pytest.mark.parametrize("completion", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_completion_is_worth_a_number(completion):
    """Whatever a completion is, it is worth a number, and no more than the right name alone."""
    [reward] = trl_reward([completion], expected_calls=[CITY])

    assert reward == compute_score("s", completion, CITY)["score"]
    assert 0.0 <= reward <= 0.4


LONG = 20_000
LONG_TEXTS = [
    "<tool_call>" * LONG, "{" * LONG, '{"a":' * LONG, "[TOOL_CALLS]" * LONG, "<think>" * LONG, '"' * LONG, "<" * LONG,
    '<tool_call>{"name": "f", "arguments": {}}' * (LONG // 10), "<tool_call>{}" * LONG, "```json\n{" * LONG,
    '<tool_call>{"name": "f", "arguments": ' + "[" * LONG + "]" * LONG + "}</tool_call>", "</think>" * LONG,
    "<function=f><parameter=a>" * LONG, '{"name": "f", "arguments": {}},' * (LONG // 10), "؀" * LONG,
]  # fmt: skip


@pytest.mark.parametrize("text", LONG_TEXTS, ids=range(len(LONG_TEXTS)))
def test_a_long_completion_does_not_hang(text):
    """A long completion that was made to be slow to read is read, alone and in a message, in order and out of it."""
    expected, messages = [*CITY, *CITY], [{"role": "assistant", "content": text}]

    assert trl_reward([text, messages], expected_calls=[expected] * 2, ordered=[True, False]) == [0.0, 0.0]


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["role", "content", "tool_calls", "function", "name", "arguments", "type", "text"]), inner
    ),
    max_leaves=12,
)  # fmt: skip


@given(
    st.text() | json_values | st.lists(st.fixed_dictionaries({"role": st.just("assistant"), "tool_calls": json_values}))
)
def test_no_completion_raises(completion):
    """Any value at all is worth a number from 0 to 1."""
    [reward] = trl_reward([completion], expected_calls=[CITY])

    assert 0.0 <= reward <= 1.0


# --- logging -------------------------------------------------------------------------------------------------


def test_axes_are_logged():
    """The mean of each axis goes to the metrics, the axes of every completion to the table, under the reward's name."""
    metrics, table = {}, {}
    texts = [tagged([{"name": "get_time", "arguments": {"city": "مكه"}}]), "لا", "لا"]

    ToolCallReward(name="mine")(
        texts, expected_calls=[CITY, CITY, None], log_metric=metrics.__setitem__, log_extra=table.__setitem__
    )

    assert metrics == {
        "mine/function_selection": 0.5, "mine/argument_accuracy": 0.45, "mine/arabic_preservation": 0.5, "mine/exact": 0
    }  # fmt: skip
    assert table == {
        "mine/function_selection": [1.0, 0.0, None],
        "mine/argument_accuracy": [0.9, 0.0, None],
        "mine/arabic_preservation": [1.0, 0.0, None],
    }


# --- sharing -------------------------------------------------------------------------------------------------


def test_an_item_is_compiled_once(monkeypatch):
    """Many completions of a few rows compile each row once, and no more rows are kept than was asked for."""
    from arabic_agent_eval.integrations import rewards

    made = []
    monkeypatch.setattr(rewards, "Grader", lambda *given: made.append(given) or Grader(*given))
    from arabic_agent_eval.scoring import Grader

    reward, rows = ToolCallReward(kept=4), [[{"function": f"f{n}", "arguments": {}}] for n in range(4)]
    for _ in range(3):
        reward(["لا"] * 8, expected_calls=[row for row in rows for _ in range(2)])
    assert len(made) == 4

    reward(["لا"] * 100, expected_calls=[[{"function": f"g{n}", "arguments": {}}] for n in range(100)])
    assert reward._grader_of_row.cache_info().currsize == 4


def test_threads_share_a_reward():
    """Many threads that ask one fresh reward at once get what one asking after the other gets."""
    right = [
        tagged([{"name": c["function"], "arguments": c["arguments"]} for c in row["expected_calls"]]) for row in ROWS
    ]
    completions, columns = TEXTS + right, {name: values * 2 for name, values in COLUMNS.items()}
    wanted = ToolCallReward()(completions, **columns)

    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(5):
            reward = ToolCallReward()
            with ThreadPoolExecutor(8) as pool:
                asked = [pool.submit(reward, completions, **columns) for _ in range(16)]
            assert all(one.result() == wanted for one in asked)
    finally:
        sys.setswitchinterval(switch)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork")
def test_forked_processes_share_a_reward():
    """A process forked while the reward is in use gives the same rewards."""
    code = (
        "import json, os, sys, threading, warnings; warnings.simplefilter('ignore');"
        "from arabic_agent_eval.integrations.rewards import trl_reward;"
        "calls = lambda n: [{'function': f'f{n}', 'arguments': {}}];"
        "work = lambda: [trl_reward(['x'], expected_calls=[calls(n)]) for n in range(5000)];"
        "thread = threading.Thread(target=work); thread.start();"
        "children = [os.fork() or os._exit(trl_reward(['x'], expected_calls=[[]]) != [1.0]) for _ in range(8)];"
        "print(sum(os.waitpid(child, 0)[1] for child in children)); thread.join()"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False)

    assert (done.stdout, done.returncode) == ("0\n", 0), done.stderr


def test_a_reward_travels_to_other_processes():
    """A pickled reward gives the same rewards, with its options."""
    reward = ToolCallReward(ITEMS, strict=True, rules=V0_1, name="mine", kept=8, column="answer")

    again = pickle.loads(pickle.dumps(reward))

    assert again(TEXTS, IDS) == reward(TEXTS, IDS)
    assert [getattr(again, name) for name in ("strict", "rules", "column", "__name__")] == [
        True,
        V0_1,
        "answer",
        "mine",
    ]


def test_no_trainer_is_needed():
    """The door loads neither trainer nor what they need."""
    code = "import sys, arabic_agent_eval.integrations.rewards; print({'trl', 'verl', 'torch'} & set(sys.modules))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)

    assert done.stdout == "set()\n"


def test_the_example_prints_its_rewards(capsys):
    """The example rewards four completions of one prompt, by total and strictly, as either trainer would ask."""
    runpy.run_path(str(Path(__file__).parents[2] / "examples" / "reward.py"), run_name="__main__")

    shown = [line.split()[:2] for line in capsys.readouterr().out.splitlines()]
    assert shown == [["1.0000", "1"], ["0.9000", "0"], ["0.0000", "0"], ["0.0000", "0"]]
