"""pytest: a failure that can be read, scores that are those of ``aae grade``, a threshold, and no cost to others."""

from __future__ import annotations

import json
import sys
import textwrap
import tomllib
from importlib import import_module
from importlib.metadata import entry_points

import pytest

from arabic_agent_eval.batch import grade_file
from arabic_agent_eval.bundled import find_items, find_replies
from arabic_agent_eval.items import ItemSet
from arabic_agent_eval.rows import read_rows
from tests.pages import DOCS, ROOT
from tests.test_docs import blocks

pytest_plugins = ["pytester"]

MODULE = "arabic_agent_eval.integrations.pytest"
PLUGIN = ("-p", "no:arabic_agent_eval", "-p", MODULE)
"""Loads the plugin whether or not the installed package has an entry point for it yet."""

EXPECTED = '[{"function": "get_weather", "arguments": {"city": "جدة"}}]'
SPELLED = '[{"function": "get_weather", "arguments": {"city": "جده"}}]'


@pytest.fixture
def session(pytester):
    """Run a session of its own over the source of one test file."""

    def run(source: str, *options: str) -> pytest.RunResult:
        pytester.makepyfile(textwrap.dedent(source))
        return pytester.runpytest_inprocess(*PLUGIN, *options)

    return run


def test_right_calls_pass(session):
    """Right calls pass, and the session says how many were judged and their mean."""
    done = session(f"def test_one(assert_calls): assert assert_calls({EXPECTED}, {EXPECTED}).score.exact")

    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(["arabic-agent-eval: mean score 1.0000 of 1 assert_calls"])
    assert done.ret == 0


def test_a_failure_can_be_read(session):
    """It names call, argument and cause in both languages, marks the letters that differ and names what is unseen."""
    actual = r'[{"function": "get_weather", "arguments": {"city": "جد\u200fة"}}]'

    done = session(f"def test_one(assert_calls): assert_calls({EXPECTED}, {actual})")

    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        [
            "E*score 0.6500, 1 required (invisible_character) · الدرجة 0.6500 والمطلوب 1",
            "E*Score 0.6500: Function selection 1.0000, Argument accuracy 0.0000, Arabic preservation 1.0000",
            "E*Call 1 (get_weather) · city: −0.3500 invisible_character: An invisible character was added or lost.",
            "E*Expected: جدة",
            "E*Actual: جد[[]⟨U+200F⟩[]]ة",
            "E*Differs: nothing → U+200F RIGHT-TO-LEFT MARK",
            "E*الدرجة 0.6500: اختيار الدالة 1.0000، دقة المعاملات 0.0000، الحفاظ على العربية 1.0000",
            "E*الاستدعاء 1 (get_weather) · city: −0.3500 invisible_character: زِيد محرف غير مرئي أو سقط.",
            "E*المتوقع: جدة",
            "E*الفعلي: جد[[]⟨U+200F⟩[]]ة",
            "E*الفرق: لا شيء → U+200F RIGHT-TO-LEFT MARK",
        ]
    )
    assert "\u200f" not in done.stdout.str()
    assert "evaluate_reply" not in done.stdout.str(), "the plugin's own lines do not belong into the traceback"


@pytest.mark.parametrize(
    "actual",
    [
        SPELLED,
        SPELLED.replace("[", "(").replace("]", ",)"),
        '[{"type": "function", "function": {"name": "get_weather", "arguments": "{\\"city\\": \\"جده\\"}"}}]',
        '{"calls": [{"function": "get_weather", "arguments": {"city": "جده"}}]}',
        '{"id": "other", "calls": [{"function": "get_weather", "arguments": {"city": "جده"}}]}',
        '{"role": "assistant", "tool_calls": [{"function": {"name": "get_weather", "arguments": {"city": "جده"}}}]}',
        '\'<tool_call>{"name": "get_weather", "arguments": {"city": "جده"}}</tool_call>\'',
        'read_reply({"id": "x", "calls": [{"function": "get_weather", "arguments": {"city": "جده"}}]})',
    ],
    ids=["calls", "tuple", "openai", "row", "row of another id", "message", "text", "reply"],
)
def test_answers_come_in_many_shapes(session, actual):
    """Calls, a row of a file of replies, a message and raw text of the same answer have the same score."""
    done = session(
        f"""
        from arabic_agent_eval import read_reply

        def test_one(assert_calls):
            assert [loss.cause for loss in assert_calls({EXPECTED}, {actual}, min_score=0.965).losses] == ["spelling"]
        """
    )

    done.assert_outcomes(passed=1)


def test_an_item_brings_its_category_and_order(session):
    """With an Item, category and order are the item's; options beside it and answers to another one are refused."""
    done = session(
        """
        import pytest
        from arabic_agent_eval import ExpectedCall, Item, UsageError

        A, B = {"function": "a", "arguments": {}}, {"function": "b", "arguments": {}}
        ITEM = Item(id="x", category="dialect_handling", expected_calls=[ExpectedCall("a"), ExpectedCall("b")],
                    ordered=False)

        def test_own(assert_calls):
            result = assert_calls(ITEM, [B, A])
            assert result.score.dialect_understanding == 1.0
            assert assert_calls(ITEM, {"id": "x", "calls": [B, A]}).item_id == "x"

        @pytest.mark.parametrize("options", [{"category": "multi_step"}, {"ordered": False}])
        def test_refused(assert_calls, options):
            with pytest.raises(UsageError, match="an item says itself"):
                assert_calls(ITEM, [A, B], **options)

        def test_of_another_item(assert_calls):
            with pytest.raises(UsageError, match="answers item 'y'"):
                assert_calls(ITEM, {"id": "y", "calls": [A, B]})
        """
    )

    done.assert_outcomes(passed=4)


def test_options_of_an_assertion(session):
    """A lower score may be enough, calls may come in any order, and the category decides the weights."""
    done = session(
        f"""
        import pytest

        A, B = {{"function": "a", "arguments": {{}}}}, {{"function": "b", "arguments": {{}}}}

        def test_least(assert_calls):
            assert_calls({EXPECTED}, {SPELLED}, min_score=0.965)
            with pytest.raises(AssertionError, match=r"score 0.9650, 0.97 required \\(spelling\\)"):
                assert_calls({EXPECTED}, {SPELLED}, min_score=0.97)

        def test_order(assert_calls):
            assert_calls([A, B], [B, A], ordered=False)
            with pytest.raises(AssertionError, match="wrong_order"):
                assert_calls([A, B], [B, A])

        def test_category(assert_calls):
            result = assert_calls({EXPECTED}, {SPELLED}, category="dialect_handling", min_score=0)
            assert result.score.total == pytest.approx(0.98)

        def test_no_call(assert_calls):
            assert_calls([], "متى تبغى ترجع؟")
            with pytest.raises(AssertionError, match="extra_call"):
                assert_calls([], [A])

        def test_words(assert_calls):
            with pytest.raises(AssertionError, match="The model said: ما أدري"):
                assert_calls([A], "ما أدري")
            with pytest.raises(AssertionError, match="قال النموذج: ما أدري"):
                assert_calls([A], {{"role": "assistant", "content": "ما أدري"}})
        """
    )

    done.assert_outcomes(passed=5)


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ("[], [], min_score=1.5", "UsageError", "min_score must be a number from 0 to 1, not 1.5"),
        ("[], [], min_score=float('nan')", "UsageError", "not nan"),
        ("[], [], min_score=True", "UsageError", "not True"),
        ("{}, []", "UsageError", "the right calls are a list or an Item, not a dict"),
        ("[{}], []", "DataError", "needs the name of a function"),
        ("[], None", "UsageError", "message or text, not null"),
        ("[], object()", "UsageError", "not a object"),
        ("[], {}", "DataError", "the row holds no answer"),
    ],
)
def test_mistakes_in_a_test_are_errors(session, arguments, error, says):
    """What the writer of a test got wrong is an error of its own kind, and no failed assertion about a model."""
    done = session(
        f"""
        import pytest
        from arabic_agent_eval import DataError, UsageError

        def test_one(assert_calls):
            with pytest.raises({error}, match={says!r}):
                assert_calls({arguments})
        """
    )

    done.assert_outcomes(passed=1)


def test_nothing_that_a_model_sends_raises(session):
    """Whatever stands where calls should be, the assertion fails and its failure is printed."""
    done = session(
        r"""
        import pytest

        DEEP = []
        for _ in range(2000):
            DEEP = [DEEP]

        def call(arguments):
            return [{"function": "f", "arguments": arguments}]

        @pytest.mark.parametrize("actual", [
            [None], [3, "x", []], [{}], [{"function": 3, "arguments": 4}], call("{"), call('"{}"'), call(DEEP),
            call({"a": DEEP}), call({"a": "\ud83d"}), call({"\ud83d": 1}), call({"a": float("nan")}),
            call({"a": 10**5000}), call({"a": {1, 2}}), call({"a": b"\xff"}), call({"a": "\x1b[2J\x00"}),
            "\ud83d <tool_call>", "<tool_call>" * 5000, call({"a": "ا" * 100_000}),
        ])
        def test_one(assert_calls, actual):
            with pytest.raises(AssertionError) as failure:
                assert_calls([{"function": "f", "arguments": {"a": "جدة"}}], actual)
            text = str(failure.value)
            assert "score 0." in text and "\x1b" not in text and len(text) < 5000
        """
    )

    done.assert_outcomes(passed=18)


def test_a_provider_failure_is_neither_right_nor_wrong(session):
    """The test fails and says why, and the mean leaves the answer out."""
    done = session(
        f"""
        def test_failed(assert_calls): assert_calls({EXPECTED}, {{"error": "timeout"}})
        def test_right(assert_calls): assert_calls({EXPECTED}, {EXPECTED})
        """
    )

    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(
        [
            "E*no calls to judge, since the provider failed · لا استدعاءات تُقيَّم، فقد تعطل المزوّد",
            "E*Answers not judged: The request failed: timeout",
            "arabic-agent-eval: mean score 1.0000 of 2 assert_calls, 1 of them unscored",
        ]
    )


# --- the threshold -------------------------------------------------------------------------------------------

PASSING = f"def test_one(assert_calls): assert_calls({EXPECTED}, {SPELLED}, min_score=0)\n"


@pytest.mark.parametrize(
    ("least", "code", "says"), [("0.965", 0, "at least"), ("0.97", 1, "below"), ("1", 1, "below"), ("0", 0, "at least")]
)
def test_a_mean_below_the_threshold_fails_the_session(session, least, code, says):
    """Tests that pass one by one fail together when their mean is below what was asked for."""
    done = session(PASSING, "--aae-min-score", least)

    done.assert_outcomes(passed=1)
    assert done.ret == code
    done.stdout.fnmatch_lines([f"*mean score 0.9650 of 1 assert_calls; {says} --aae-min-score {least}"])


def test_a_threshold_needs_something_to_measure(session):
    """A session in which nothing was asserted has not reached a threshold; one that only lists tests is left alone."""
    source = "def test_one(): pass\n"

    done = session(source, "--aae-min-score", "0.5")
    assert done.ret == 1
    done.stdout.fnmatch_lines(["*mean score none of 0 assert_calls; below --aae-min-score 0.5"])

    assert session(source, "--aae-min-score", "0.5", "--collect-only").ret == 0


@pytest.mark.parametrize("least", ["1.5", "-1", "nan", "much"])
def test_a_threshold_is_a_share(session, least):
    """A threshold outside 0 to 1 is refused before any test runs."""
    done = session(PASSING, f"--aae-min-score={least}")

    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines([f"*a number from 0 to 1 is needed, not '{least}'*"])


def test_a_threshold_hides_no_other_end(session):
    """An interrupted session keeps its own exit code."""
    done = session("import pytest\ndef test_one(): pytest.exit('enough')\n", "--aae-min-score", "1")

    assert done.ret == pytest.ExitCode.INTERRUPTED


def test_a_test_that_runs_again_counts_again(pytester, session):
    """Every assertion counts once, however often a plugin runs its test."""
    pytester.makeconftest(
        """
        from _pytest.runner import runtestprotocol

        def pytest_runtest_protocol(item, nextitem):
            for _ in range(3):
                runtestprotocol(item, nextitem=nextitem)
            return True
        """
    )

    session(PASSING).stdout.fnmatch_lines(["*mean score 0.9650 of 3 assert_calls"])


@pytest.mark.parametrize("workers", ["0", "2"])
def test_workers_count_together(session, workers):
    """With pytest-xdist the session's mean is that of all workers, to the last digit, and so is its end."""
    pytest.importorskip("xdist", reason="pytest-xdist is not installed")
    source = f"""
        import pytest

        @pytest.mark.parametrize("number", range(7))
        def test_one(assert_calls, number):
            assert_calls({EXPECTED}, {SPELLED} if number % 2 else {EXPECTED}, min_score=0)
        """

    done = session(source, "-n", workers, "--aae-min-score", "0.99")

    done.assert_outcomes(passed=7)
    assert done.ret == 1
    done.stdout.fnmatch_lines(["arabic-agent-eval: mean score 0.9850 of 7 assert_calls; below --aae-min-score 0.99"])


# --- other sessions, and the same scores ---------------------------------------------------------------------


def test_other_sessions_pay_nothing(pytester):
    """A session that asserts no calls loads nothing of the grader, and none of its packages, and prints nothing."""
    pytester.makepyfile(
        """
        import sys

        def test_one():
            ours = {name for name in sys.modules if name.startswith("arabic_agent_eval")}
            assert ours == {"arabic_agent_eval", "arabic_agent_eval._version", "arabic_agent_eval.errors",
                            "arabic_agent_eval.integrations", "arabic_agent_eval.integrations.pytest"}
            assert not {"msgspec", "rich", "numpy", "scipy"} & sys.modules.keys()
        """
    )
    others = ("-p", "no:hypothesispytest", "-p", "no:cacheprovider")

    done = pytester.run(sys.executable, "-m", "pytest", *PLUGIN, *others, "-W", "error")

    done.assert_outcomes(passed=1)
    assert "arabic-agent-eval:" not in done.stdout.str()


def test_right_calls_load_no_words(pytester):
    """An assertion that holds loads the grader and nothing that is needed to explain."""
    pytester.makepyfile(
        f"""
        import sys

        def test_one(assert_calls):
            assert_calls({EXPECTED}, {EXPECTED})
            assert not {{"rich", "numpy", "arabic_agent_eval.reports.item"}} & sys.modules.keys()
        """
    )

    pytester.run(sys.executable, "-m", "pytest", *PLUGIN, "-p", "no:hypothesispytest").assert_outcomes(passed=1)


def test_the_entry_point_is_the_plugin(pytester):
    """The package offers the plugin under its own name, by which it can also be left out."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"arabic_agent_eval": MODULE}
    assert hasattr(import_module(MODULE), "assert_calls")
    if not any(one.value == MODULE for one in entry_points(group="pytest11")):
        pytest.skip("the installed package is older than the entry point")
    pytester.makepyfile(PASSING)

    pytester.run(sys.executable, "-m", "pytest").assert_outcomes(passed=1)
    pytester.run(sys.executable, "-m", "pytest", "-p", "no:arabic_agent_eval").assert_outcomes(errors=1)


def test_scores_are_those_of_the_command(pytester, session, tmp_path):
    """On the sample's answers every total is the one that grading the file gives."""
    grade_file(ItemSet.index(find_items("sample")), find_replies("sample"), out=tmp_path / "rows.jsonl")
    graded = {row.item_id: row.total for row in read_rows(tmp_path / "rows.jsonl") if row.total is not None}

    done = session(
        """
        import json
        from pathlib import Path
        import pytest
        from arabic_agent_eval import ItemSet
        from arabic_agent_eval.bundled import find_items, find_replies

        ITEMS = ItemSet.read(find_items("sample"))
        ROWS = [json.loads(line) for line in find_replies("sample").read_text(encoding="utf-8").splitlines()]

        def test_all(assert_calls):
            totals = {}
            for row in ROWS:
                if "error" not in row:
                    totals[row["id"]] = assert_calls(ITEMS[row["id"]], row, min_score=0).score.total
            Path("totals.json").write_text(json.dumps(totals), encoding="utf-8")
        """
    )

    done.assert_outcomes(passed=1)
    assert json.loads((pytester.path / "totals.json").read_text(encoding="utf-8")) == graded


def test_the_page_is_true(pytester):
    """The tests of the page run, and fail and print as it says."""
    page = DOCS / "integrations" / "pytest.md"
    shown, line = (source for _, source in blocks(page, "text"))
    pytester.makepyfile("".join(source for _, source in blocks(page, "python")))

    done = pytester.runpytest_inprocess(*PLUGIN, "--aae-min-score", "0.9", "-k", "weather")

    done.assert_outcomes(passed=1, failed=1, deselected=len(ItemSet.read(find_items("sample"))))
    printed = done.stdout.str()
    for expected in (*shown.splitlines(), line.strip()):
        assert expected.lstrip("E ").rstrip() in printed
    pytester.runpytest_inprocess(*PLUGIN, "-k", "test_item").assert_outcomes(passed=24, deselected=2)
