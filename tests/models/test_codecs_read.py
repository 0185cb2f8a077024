"""An answer of each interface is read as the grader reads it, and what is no answer says why."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arabic_agent_eval.formats import read_calls, read_reply
from arabic_agent_eval.models.anthropic import Anthropic
from arabic_agent_eval.models.gemini import Gemini
from arabic_agent_eval.models.model import Answer, Failure, Tokens
from arabic_agent_eval.models.openai_chat import OpenAIChat
from arabic_agent_eval.models.openai_responses import OpenAIResponses
from tests.conftest import read_cases

CODECS = {codec.name: codec for codec in (OpenAIChat(), OpenAIResponses(), Anthropic(), Gemini())}
CASES = [parameter.values[0] for parameter in read_cases("codecs_read")]
BODIES = [case["body"] for case in CASES] + [
    case["row"]["response"]
    for case in (parameter.values[0] for parameter in read_cases("formats"))
    if isinstance(case["row"], dict) and isinstance(case["row"].get("response"), dict)
]
each_codec = pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)


@pytest.mark.parametrize("case", [case for case in CASES if "ids" in case], ids=lambda case: case["id"])
def test_answer(case):
    """An answer has the ids, the words, the end, the counts and the cost that its provider gave."""
    answer = CODECS[case["codec"]].read(case["body"])

    assert isinstance(answer, Answer), case["why"]
    assert [made.id for made in answer.calls] == case["ids"]
    assert (answer.text, answer.stop, answer.cut) == (
        case.get("text", ""),
        case.get("stop", ""),
        case.get("cut", False),
    )
    assert answer.tokens == (Tokens(*case["tokens"]) if "tokens" in case else None)
    assert answer.cost == case.get("cost")


@pytest.mark.parametrize("case", [case for case in CASES if "failure" in case], ids=lambda case: case["id"])
def test_no_answer(case):
    """What is no answer has a kind, a reason, and says whether asking again can help."""
    failure = CODECS[case["codec"]].read(case["body"])

    assert isinstance(failure, Failure), case["why"]
    expected = case["failure"]
    assert (failure.kind, failure.retry, failure.wait) == (expected["kind"], expected["retry"], expected.get("wait"))
    assert expected["says"] in failure.message


def check_like_the_grader(codec, body):
    """The codec's calls are the grader's, or the body is no answer of its interface and makes no call."""
    reply = read_reply({"id": "x", "response": body})
    found = codec.read(body)
    if isinstance(found, Answer):
        assert reply.failure is None
        assert tuple(made.call for made in found.calls) == read_calls(reply)
    elif reply.failure is None:
        assert "another interface" in found.message
    else:
        assert found.message == reply.failure


@each_codec
def test_calls_are_those_of_the_grader(codec):
    """Over all cases, the codec's calls are exactly what is graded."""
    for body in BODIES:
        check_like_the_grader(codec, body)


def test_every_answer_belongs_to_an_interface():
    """Each raw answer that the grader reads is read by one codec, but for bare messages and batches."""
    for case in CASES:
        if "ids" in case:
            readers = [name for name, codec in CODECS.items() if isinstance(codec.read(case["body"]), Answer)]
            assert readers == [case["codec"]], case["id"]


KEYS = [
    *("function", "name", "arguments", "tool_calls", "message", "content", "role", "type", "id", "call_id"),
    *("parts", "functionCall", "function_call", "args", "error", "status_code", "body", "input", "finish_reason"),
    *("usage", "usageMetadata", "prompt_tokens", "input_tokens", "promptTokenCount", "status", "text", "stop_reason"),
]
WORDS = ["assistant", "message", "tool_use", "function_call", "custom_tool_call", "text", "incomplete", "f", "{}"]
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.sampled_from(WORDS)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=15,
)
bodies = st.dictionaries(
    st.sampled_from(["choices", "output", "candidates", "content", "promptFeedback", *KEYS]), json_values, max_size=5
)
chat_bodies = st.fixed_dictionaries(
    {
        "choices": st.lists(
            st.fixed_dictionaries({"message": st.dictionaries(st.sampled_from(KEYS), json_values)}), min_size=1
        )
    }
)


@each_codec
@given(bodies | chat_bodies)
def test_any_body_is_read(codec, body):
    """Whatever a body holds, it is read without raising, and as the grader reads it."""
    check_like_the_grader(codec, body)


@each_codec
@pytest.mark.parametrize("body", [[], "x", None, 5], ids=repr)
def test_what_is_no_object_is_malformed(codec, body):
    """A body that is no object is malformed."""
    assert codec.read(body).kind == "malformed"


@each_codec
def test_answers_can_be_kept(codec):
    """An answer can be written as JSON, whatever numbers and nesting it holds."""
    for body in BODIES:
        found = codec.read(body)
        assert msgspec.json.encode(found)


def test_many_calls_keep_their_ids():
    """A hundred thousand calls are read in one pass."""
    calls = [{"id": f"c{place}", "function": {"name": "f", "arguments": "{}"}} for place in range(100_000)]

    answer = CODECS["openai-chat"].read({"choices": [{"message": {"tool_calls": calls}}]})

    assert [made.id for made in answer.calls[-2:]] == ["c99998", "c99999"]
