"""Statuses, headers and error bodies become the right failure with one safe sentence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arabic_agent_eval.models.refusals import explain_body, explain_error
from tests.conftest import read_cases

NOW = 1_700_000_000.0  # 14 November 2023, 22:13:20 UTC
RETRIED = {"rate_limit", "server", "malformed"}


@pytest.mark.parametrize("case", read_cases("refusals"))
def test_refusal(case):
    """A refusal has its kind, says whether asking again helps and after how long, and hides what it must."""
    failure = explain_error(case["status"], case["body"], case.get("headers", {}), NOW)

    assert (failure.kind, failure.retry) == (case["kind"], case.get("retry", False)), case["why"]
    assert failure.wait == case.get("wait")
    assert case["says"] in failure.message
    assert failure.message[-1] in ".?"
    assert case.get("hides", "\n") not in failure.message


def test_message_is_safe_and_short():
    """Keys, control characters and length are dealt with, and the remedy is never cut off."""
    hostile = "does not support tools \x1b[2J\n\u202esk-proj-abcdef123456 Bearer abc.defghi " + "م" * 1_000_000

    message = explain_error(400, {"error": {"message": hostile}}, {}, NOW).message

    assert 290 < len(message) <= 300
    assert message.endswith("…")
    assert "--prompt-tools" in message
    assert not {"\n", "\x1b", "\u202e"} & set(message)
    assert "abcdef" not in message
    assert "defghi" not in message
    assert len(explain_error(301, None, {"location": f"https://{'h' * 10_000}/"}, NOW).message) <= 300


def test_every_length_of_message_fits():
    """A provider's message of any length ends as a sentence within 300 characters."""
    for length in range(200, 320):
        message = explain_error(400, {"error": "x" * length}, {}, NOW).message
        assert len(message) <= 300
        assert message[-1] in ".…"


def test_deep_errors_end():
    """An error inside an error inside an error is looked into a few times only."""
    body = {"error": "the bottom"}
    for _ in range(5_000):
        body = {"error": body}

    assert explain_error(500, body, {}, NOW).message == "The provider is in trouble (status 500)."


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["error", "message", "code", "type", "status", "detail", "details", "metadata", "raw", "violations",
             "quotaId", "reason", "retryDelay", "choices", "output", "promptFeedback", "blockReason"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@given(
    st.integers(100, 999),
    json_values,
    st.dictionaries(st.sampled_from(["Retry-After", "retry-after-ms", "Location"]), st.text(max_size=20)),
)
def test_any_refusal_is_explained(status, body, headers):
    """Whatever comes with a status is explained on one line, and only what may pass is asked again."""
    failure = explain_error(status, body, headers, NOW)

    assert failure.retry == (failure.kind in RETRIED)
    assert 0 < len(failure.message) <= 300
    assert failure.message.isprintable()
    assert failure.wait is None or (failure.retry and 0 <= failure.wait < 10**13)
    if isinstance(body, dict):
        assert explain_body(body, "why").message == "why"
