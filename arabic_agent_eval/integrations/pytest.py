"""pytest: tool calls asserted in a test suite, and a mean score that the session must reach.

    def test_weather(assert_calls):
        assert_calls([{"function": "get_weather", "arguments": {"city": "جدة"}}], ask_my_model("كيف الجو في جدة؟"))

    pytest --aae-min-score 0.9

pytest loads this file in every session once the package is installed, so nothing of the grader is imported before the
first assertion. ``docs/integrations/pytest.md`` says more.
"""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from pluggy import Result as HookResult

    from arabic_agent_eval.formats import Reply
    from arabic_agent_eval.items import ExpectedCall, Item
    from arabic_agent_eval.scoring import Result
    from arabic_agent_eval.tools import Call

_NOTED = pytest.StashKey[list[float | None]]()
_FIELD = "aae_scores"  # of a report, which pytest-xdist carries from its workers to the session
_TOLERANCE = 1e-12


class AssertCalls(Protocol):
    """What the fixture ``assert_calls`` is, for annotations."""

    def __call__(
        self,
        expected: Item | Sequence[ExpectedCall | Call | Mapping[str, Any]],
        actual: Reply | str | Mapping[str, Any] | Sequence[Any],
        *,
        category: str | None = None,
        min_score: float = 1.0,
        ordered: bool = True,
    ) -> Result:
        """Assert that an answer makes the right calls.

        Args:
            expected: the right calls, each a mapping with ``function`` and ``arguments`` (and perhaps ``accept``), or
                an ``Item``, which brings its own category and order. Empty when nothing should be called.
            actual: the calls that were made, a row of a file of replies, an assistant's message, or the raw text of
                the model. Nothing that a model wrote raises.
            category: decides the weights of the axes; ``simple_function_calling`` by default.
            min_score: the least total, 0 to 1.
            ordered: False takes the best pairing instead of the places.

        Returns:
            The judgement, for further assertions.

        Raises:
            AssertionError: the total is lower, or there is none because the provider failed.
            DataError: an expected call is not a call, or a row holds no answer.
            UsageError: an argument makes no sense.
        """


@pytest.fixture
def assert_calls(request: pytest.FixtureRequest) -> AssertCalls:
    """Assert that an answer makes the right calls; the failure says why not, in English and Arabic."""
    noted = request.node.stash.setdefault(_NOTED, [])
    name = request.node.name

    def check(
        expected: Any,
        actual: Any,
        *,
        category: str | None = None,
        min_score: float = 1.0,
        ordered: bool = True,
    ) -> Result:
        __tracebackhide__ = True
        from arabic_agent_eval.integrations import handover  # noqa: PLC0415 - a session may never assert calls
        from arabic_agent_eval.scoring import evaluate_reply  # noqa: PLC0415

        _check_min_score(min_score)
        reply = handover.reply_of(actual, getattr(expected, "id", name))
        item = _item(expected, reply.item_id, category, ordered=ordered)
        result = evaluate_reply(item, reply)
        total = None if result.score is None else result.score.total
        noted.append(total)
        if total is None or total < min_score - _TOLERANCE:
            raise AssertionError(_message(item, result, min_score, handover.words_in(actual)))
        return result

    return check


def _check_min_score(min_score: float) -> None:
    from arabic_agent_eval.errors import UsageError  # noqa: PLC0415

    if isinstance(min_score, bool) or not isinstance(min_score, int | float) or not 0 <= min_score <= 1:
        raise UsageError(f"min_score must be a number from 0 to 1, not {min_score!r}.")


def _item(expected: Any, item_id: str, category: str | None, *, ordered: bool) -> Item:
    from arabic_agent_eval.errors import UsageError  # noqa: PLC0415
    from arabic_agent_eval.grading import expected_call  # noqa: PLC0415
    from arabic_agent_eval.integrations.handover import DEFAULT_CATEGORY  # noqa: PLC0415
    from arabic_agent_eval.items import Item  # noqa: PLC0415

    if isinstance(expected, Item):
        if category is not None or not ordered:
            raise UsageError("an item says itself which category it has and whether its calls are ordered.")
        return expected
    if not isinstance(expected, list | tuple):
        raise UsageError(f"the right calls are a list or an Item, not a {type(expected).__name__}.")
    calls = [expected_call(call) for call in expected]
    return Item(id=item_id, category=category or DEFAULT_CATEGORY, expected_calls=calls, ordered=ordered)


def _message(item: Item, result: Result, min_score: float, said: str) -> str:
    """The failure: a line for the short summary, then the reasons in English and Arabic."""
    from arabic_agent_eval.integrations.explanations import explain  # noqa: PLC0415

    causes = ", ".join(dict.fromkeys(loss.cause for loss in result.losses))
    if result.score is None:
        head = "no calls to judge, since the provider failed · لا استدعاءات تُقيَّم، فقد تعطل المزوّد"
    else:
        head = f"score {result.score.total:.4f}, {min_score:g} required ({causes})"
        head += f" · الدرجة {result.score.total:.4f} والمطلوب {min_score:g}"
    return f"{head}\n\n{explain(item, result, 'both', said=said)}"


# --- the session ---------------------------------------------------------------------------------------------


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"a number from 0 to 1 is needed, not {text!r}")
    return value


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("arabic-agent-eval").addoption(
        "--aae-min-score",
        type=_share,
        metavar="X",
        help="Fail the session when the mean score of all assert_calls is below X (0 to 1).",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Count scores where the session is, and not in the workers of pytest-xdist."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Session(config), "arabic_agent_eval_session")


@pytest.hookimpl(hookwrapper=True)  # and not wrapper, which older versions of pytest do not know
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, HookResult[pytest.TestReport], None]:
    """Hand the scores of a test on with its last report."""
    outcome = yield
    if call.when == "teardown" and (noted := item.stash.get(_NOTED, None)):
        setattr(outcome.get_result(), _FIELD, noted[:])
        noted.clear()  # a plugin may run the test again


class _Session:
    """The scores of a session: the order in which they come changes nothing."""

    def __init__(self, config: pytest.Config) -> None:
        self.required: float | None = config.getoption("--aae-min-score")
        self.scores: list[float] = []
        self.unscored = 0

    @property
    def mean(self) -> float | None:
        return math.fsum(self.scores) / len(self.scores) if self.scores else None

    @property
    def has_failed(self) -> bool:
        return self.required is not None and (self.mean is None or self.mean < self.required - _TOLERANCE)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for score in getattr(report, _FIELD, ()):
            if score is None:
                self.unscored += 1
            else:
                self.scores.append(score)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.has_failed and session.exitstatus == pytest.ExitCode.OK and not _only_looks(session.config):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        asserted = len(self.scores) + self.unscored
        if not asserted and (self.required is None or _only_looks(config)):
            return
        mean = "none" if self.mean is None else f"{self.mean:.4f}"
        line = f"arabic-agent-eval: mean score {mean} of {asserted:,} assert_calls"
        if self.unscored:
            line += f", {self.unscored:,} of them unscored"
        if self.required is not None:
            line += f"; {'below' if self.has_failed else 'at least'} --aae-min-score {self.required:g}"
        terminalreporter.write_line(line, red=self.has_failed, green=not self.has_failed)


def _only_looks(config: pytest.Config) -> bool:
    """Whether the session runs no tests at all."""
    return any(config.getoption(option, default=False) for option in ("collectonly", "setuponly", "setupplan"))
