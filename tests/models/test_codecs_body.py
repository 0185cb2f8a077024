"""A request becomes each interface's address, headers and body, and an answer goes back as it came."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arabic_agent_eval.asking import Exchange, MadeCall, Request, ToolResult
from arabic_agent_eval.models.model import Answer, Settings
from arabic_agent_eval.tools import Call, Tool
from tests.conftest import read_cases
from tests.models.test_codecs_read import BODIES, CODECS, bodies, chat_bodies, each_codec, json_values

RESULT = '{"حالة": "مشمس", "درجة": 4.0}'
WEATHER = Tool(
    "get_weather",
    "حالة الطقس",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False},
)
CONVERSATIONS = read_cases("codecs_body")


def asked(codec: Any, case: dict[str, Any]) -> Request:
    """The request of a case; each answer has as many results as the codec reads calls."""
    exchanges = [after(codec, answer, written=case.get("written", False)) for answer in case.get("answers", ())]
    tools = (WEATHER,) if case.get("tools") else ()
    return Request(
        "1", 0, case.get("system", ""), tuple(case["messages"]), tools, tuple(exchanges), case.get("written", False)
    )


def after(codec: Any, answer: dict[str, Any], *, written: bool = False) -> Exchange:
    """An answer with the results of its calls."""
    if written:
        return Exchange(answer, (ToolResult(MadeCall(None, Call("get_weather")), RESULT),))
    found = codec.read(answer)
    calls = found.calls if isinstance(found, Answer) else ()
    return Exchange(answer, tuple(ToolResult(made, RESULT) for made in calls))


def user(text: str = "كيف الطقس في مكة؟", **fields: Any) -> Request:
    """The simplest request."""
    fields = {"system": "", "messages": ({"role": "user", "content": text},), "tools": ()} | fields
    return Request("1", 0, **fields)


@pytest.mark.parametrize("case", CONVERSATIONS)
def test_conversation(case):
    """Each conversation is sent in the interface's own shape, member by member as expected."""
    codec = CODECS[case["codec"]]

    body = codec.body(asked(codec, case), Settings("m"))

    assert {name: body.get(name) for name in case["expected"]} == case["expected"], case["why"]


URLS = [
    ("openai-chat", "https://api.openai.com/v1", "m", "https://api.openai.com/v1/chat/completions"),
    ("openai-chat", "http://localhost:8000/v1/", "m", "http://localhost:8000/v1/chat/completions"),
    ("openai-chat", "http://h/v1/chat/completions", "m", "http://h/v1/chat/completions"),
    ("openai-chat", "https://a/openai?api-version=1", "m", "https://a/openai/chat/completions?api-version=1"),
    ("openai-chat", "https://a/chat/completions?api-version=1", "m", "https://a/chat/completions?api-version=1"),
    ("openai-responses", "https://api.openai.com/v1", "m", "https://api.openai.com/v1/responses"),
    ("openai-responses", "http://h/responses/", "m", "http://h/responses/"),
    ("anthropic", "https://api.anthropic.com/v1/", "m", "https://api.anthropic.com/v1/messages"),
    ("anthropic", "http://h/messages", "m", "http://h/messages"),
    ("gemini", "https://g/v1beta", "gemini-3", "https://g/v1beta/models/gemini-3:generateContent"),
    ("gemini", "https://g/v1beta/", "models/gemini-3", "https://g/v1beta/models/gemini-3:generateContent"),
    ("gemini", "https://g/v1beta", "tunedModels/t", "https://g/v1beta/tunedModels/t:generateContent"),
    ("gemini", "https://g/v1beta", "../a?key=b #م", "https://g/v1beta/models/..%2Fa%3Fkey%3Db%20%23%D9%85:generateContent"),
    ("gemini", "https://g/models/x:generateContent", "y", "https://g/models/x:generateContent"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "base_url", "model", "url"), URLS)
def test_url(name, base_url, model, url):
    """The endpoint is added once, with or without a slash, before a query; a model's name cannot leave its place."""
    assert CODECS[name].url(base_url, model) == url


HEADERS = {
    "openai-chat": ({"Authorization": "Bearer k"}, {}, "OPENAI_API_KEY"),
    "openai-responses": ({"Authorization": "Bearer k"}, {}, "OPENAI_API_KEY"),
    "anthropic": (
        {"x-api-key": "k", "anthropic-version": "2023-06-01"},
        {"anthropic-version": "2023-06-01"},
        "ANTHROPIC_API_KEY",
    ),
    "gemini": ({"x-goog-api-key": "k"}, {}, "GEMINI_API_KEY"),
}


@each_codec
def test_headers(codec):
    """The key goes into its header and nowhere else; without a key there is no such header."""
    with_key, without, variable = HEADERS[codec.name]

    assert codec.headers("k") == with_key
    assert codec.headers(None) == codec.headers("") == without
    assert codec.key_variable == variable
    assert codec.base_url.startswith("https://")


SETTINGS = Settings("m", temperature=0.0, seed=7, max_tokens=100)
OPTIONS = {
    "openai-chat": {"temperature": 0.0, "seed": 7, "max_tokens": 100},
    "openai-responses": {"temperature": 0.0, "max_output_tokens": 100},
    "anthropic": {"temperature": 0.0, "max_tokens": 100},
    "gemini": {"generationConfig": {"temperature": 0.0, "seed": 7, "maxOutputTokens": 100}},
}
FIXED = {
    "openai-responses": {"store": False, "include": ["reasoning.encrypted_content"]},
    "anthropic": {"max_tokens": 16_384},
}


@each_codec
def test_settings(codec):
    """A setting is sent under the interface's name, or not at all and then named as ignored."""
    conversation = {"messages", "input", "contents", "model"}
    plain, full = codec.body(user(), Settings("m")), codec.body(user(), SETTINGS)

    assert {name: plain[name] for name in plain if name not in conversation} == FIXED.get(codec.name, {})
    expected = FIXED.get(codec.name, {}) | OPTIONS[codec.name]
    assert {name: full[name] for name in full if name not in conversation} == expected
    assert ("seed" in codec.ignores) == ("seed" not in msgspec.json.encode(full).decode())
    assert full.get("model", "m") == "m"


@each_codec
def test_parameters_win(codec):
    """Whatever a user adds to the body stands there as it is, before every setting."""
    parameters = {"temperature": 1, "max_tokens": 5, "store": True, "include": [], "x": {"y": None}}

    body = codec.body(user(), msgspec.structs.replace(SETTINGS, parameters=parameters))

    assert {name: body[name] for name in parameters} == parameters


def test_gemini_merges_deeply():
    """A part of Gemini's configuration keeps its other parts; what is no object is replaced."""
    parameters = {"generationConfig": {"topP": 1, "seed": 1, "thinkingConfig": {"thinkingBudget": 0}}, "contents": 5}

    body = CODECS["gemini"].body(user(), msgspec.structs.replace(SETTINGS, parameters=parameters))

    assert body["contents"] == 5
    assert body["generationConfig"] == {
        "temperature": 0.0, "seed": 1, "maxOutputTokens": 100, "topP": 1, "thinkingConfig": {"thinkingBudget": 0},
    }  # fmt: skip


MODELS = [
    ("gpt-5", "max_completion_tokens", True), ("gpt-5.1-chat-latest", "max_completion_tokens", False),
    ("o3-mini", "max_completion_tokens", True), ("gpt-4.1", "max_completion_tokens", False),
    ("ft:gpt-4o:me", "max_completion_tokens", False), ("chatgpt-4o-latest", "max_completion_tokens", False),
    ("gpt-oss:20b", "max_tokens", True), ("openai/gpt-5", "max_tokens", True), ("qwen3", "max_tokens", True),
    ("olmo", "max_tokens", True),
]  # fmt: skip


@pytest.mark.parametrize(("model", "limit", "reasons"), MODELS)
def test_names_of_models(model, limit, reasons):
    """OpenAI's own models get the new name of the limit, and those that do not reason are not asked for reasoning."""
    settings = Settings(model, max_tokens=9)

    chat = CODECS["openai-chat"].body(user(), settings)
    assert {name: chat[name] for name in chat if name.startswith("max")} == {limit: 9}
    assert ("include" in CODECS["openai-responses"].body(user(), settings)) is reasons


TOOLS = {
    "openai-chat": lambda body: body["tools"][0]["function"]["parameters"],
    "openai-responses": lambda body: body["tools"][0]["parameters"],
    "anthropic": lambda body: body["tools"][0]["input_schema"],
    "gemini": lambda body: body["tools"][0]["functionDeclarations"][0].get("parametersJsonSchema"),
}


@each_codec
def test_tools(codec):
    """A schema is sent unchanged; without tools there is no such field, without parameters an empty object."""
    body = codec.body(user(tools=(WEATHER,)), Settings("m"))
    bare = codec.body(user(tools=(Tool("now"),)), Settings("m"))

    assert TOOLS[codec.name](body) == WEATHER.parameters
    assert "حالة الطقس" in msgspec.json.encode(body["tools"]).decode()
    assert TOOLS[codec.name](bare) == (None if codec.name == "gemini" else {"type": "object", "properties": {}})
    assert "description" not in msgspec.json.encode(bare["tools"]).decode()
    assert "tools" not in codec.body(user(), Settings("m"))


ARGUMENTS = ['{"city":"الرياض"}', '{ "city" : "\\u0627" }', '{"a":1,"a":2}', '{"n": 1.0e2}', '{"x": "\u200f\\ud83d"}']
NO_ARGUMENTS = ["", "null", " null\n", None]
NO_OBJECTS = ['{"city": "الر', "الرياض", "NaN", '"{}"', "[1]", '{"a":1} و']


def called(arguments: Any, **fields: Any) -> dict[str, dict[str, Any]]:
    """An answer of either of OpenAI's interfaces that calls one tool with arguments as text."""
    function = {"name": "f", "arguments": arguments}
    call = {"id": "a", "type": "function", "function": function, **fields}
    item = {"type": "function_call", "id": "fc", "call_id": "a", **function, **fields}
    return {"openai-chat": {"choices": [{"message": {"tool_calls": [call]}}]}, "openai-responses": {"output": [item]}}


def sent_back(name: str, answer: dict[str, Any]) -> list[dict[str, Any]]:
    """What an answer and its results are in the next request."""
    body = CODECS[name].body(user(exchanges=(after(CODECS[name], answer),)), Settings("m"))
    return list(body["messages" if name == "openai-chat" else "input"][1:])


@pytest.mark.parametrize("arguments", ARGUMENTS)
def test_arguments_go_back_as_they_came(arguments):
    """Text of arguments that an interface takes is the same text in the next request, and so is all beside it."""
    answers = called(arguments, extra={"s": 1})

    message, result = sent_back("openai-chat", answers["openai-chat"])
    assert message["tool_calls"] == answers["openai-chat"]["choices"][0]["message"]["tool_calls"]
    assert result == {"role": "tool", "tool_call_id": "a", "content": RESULT}

    assert sent_back("openai-responses", answers["openai-responses"]) == [
        *answers["openai-responses"]["output"],
        {"type": "function_call_output", "call_id": "a", "output": RESULT},
    ]


@pytest.mark.parametrize("arguments", NO_ARGUMENTS)
def test_no_arguments_are_an_empty_object(arguments):
    """A call without arguments goes back with an object that says so: servers refuse text that is no JSON object."""
    answers = called(arguments)

    message, _ = sent_back("openai-chat", answers["openai-chat"])
    item, _ = sent_back("openai-responses", answers["openai-responses"])

    assert message["tool_calls"][0]["function"] == {"name": "f", "arguments": "{}"}
    assert item["arguments"] == "{}"


@pytest.mark.parametrize("arguments", NO_OBJECTS)
def test_unreadable_arguments_are_told_in_words(arguments):
    """A call whose arguments are no object is left out, or the server would refuse the conversation; no id is left."""
    answers, told = called(arguments), f"<tool_response>{RESULT}</tool_response>"

    assert sent_back("openai-chat", answers["openai-chat"]) == [
        {"role": "assistant", "content": ""}, {"role": "user", "content": told}
    ]  # fmt: skip
    assert sent_back("openai-responses", answers["openai-responses"]) == [
        {"type": "message", "role": "user", "content": told}
    ]


@pytest.mark.parametrize("arguments", NO_OBJECTS)
def test_an_answer_with_encrypted_reasoning_stays_whole(arguments):
    """OpenAI refuses encrypted reasoning without what followed it, so there even unreadable arguments go back."""
    reasoning = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "gAAA"}
    call = called(arguments)["openai-responses"]["output"][0]

    sent = sent_back("openai-responses", {"output": [reasoning, call, {"type": "function_call", "call_id": "b"}]})

    assert sent == [
        reasoning,
        call,
        {"type": "function_call_output", "call_id": "a", "output": RESULT},
        {"type": "message", "role": "user", "content": f"<tool_response>{RESULT}</tool_response>"},
    ]


def own_bodies(codec: Any) -> list[dict[str, Any]]:
    """The bodies among the cases that are answers of the codec's interface."""
    return [body for body in BODIES if isinstance(codec.read(body), Answer)]


def check_next_request(codec: Any, request: Request) -> dict[str, Any]:
    """A next request changes nothing that it was made from, is JSON, and holds Arabic as itself."""
    before = copy.deepcopy(request)
    body = codec.body(request, Settings("m"))
    assert request == before
    text = msgspec.json.encode(body).decode()
    assert codec.body(request, Settings("m")) == body
    assert "\\u06" not in text
    return body


def ids_and_answers(codec: Any, body: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """The ids of the calls in a body, and those that its results answer; names for Gemini."""
    if codec.name == "openai-chat":
        calls = [call["id"] for message in body["messages"] for call in message.get("tool_calls", ())]
        return calls, [message["tool_call_id"] for message in body["messages"] if message["role"] == "tool"]
    if codec.name == "openai-responses":
        kinds = ("function_call", "custom_tool_call")
        calls = [item["call_id"] for item in body["input"] if item.get("type") in kinds]
        return calls, [item["call_id"] for item in body["input"] if str(item.get("type")).endswith("_output")]
    if codec.name == "anthropic":
        blocks = [block for message in body["messages"] for block in message["content"]]
        calls = [block["id"] for block in blocks if block.get("type") == "tool_use"]
        return calls, [block["tool_use_id"] for block in blocks if block.get("type") == "tool_result"]
    parts = [part for content in body["contents"] for part in content["parts"]]
    found = [part.get("functionCall") or part.get("function_call") for part in parts]
    answered = [part["functionResponse"]["name"] for part in parts if "functionResponse" in part]
    return [call["name"] for call in found if isinstance(call, dict)], answered


@each_codec
def test_every_answer_can_be_continued(codec):
    """Whatever a model called, each call that is sent back is answered once, in order, and no result is lost."""
    own = own_bodies(codec)
    assert len(own) >= 4
    for answer in own:
        exchange = after(codec, answer)
        body = check_next_request(codec, user(exchanges=(exchange, exchange)))
        calls, answered = ids_and_answers(codec, body)
        assert calls == answered
        text = msgspec.json.encode(body).decode()
        assert text.count("مشمس") == 2 * len(exchange.results)


@each_codec
@given(st.lists(bodies | chat_bodies, max_size=2), st.booleans())
def test_any_answer_can_be_continued(codec, answers, written):
    """No answer, however odd, keeps the next request from being made."""
    exchanges = tuple(after(codec, answer, written=written) for answer in answers)
    check_next_request(codec, user(exchanges=exchanges, written=written))


functions = st.fixed_dictionaries({"name": st.just("f"), "arguments": json_values})
ROLES = ["system", "developer", "user", "assistant", "tool", "function"]
messages = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(ROLES)},
        optional={
            "content": json_values,
            "tool_calls": json_values | st.lists(st.fixed_dictionaries({"function": functions}), max_size=2),
            "tool_call_id": st.sampled_from(["call_1", "x", None]),
            "function_call": json_values,
        },
    ),
    max_size=5,
)  # fmt: skip


@each_codec
@given(messages, st.booleans())
def test_any_earlier_messages_are_sent(codec, earlier, written):
    """Whatever earlier messages hold, the request is made, and every result follows the call that it answers."""
    body = check_next_request(codec, user(messages=tuple(earlier), written=written))
    calls, answered = ids_and_answers(codec, body)
    places = iter(calls)
    assert len(answered) <= len(calls)
    assert set(answered) <= set(places)
    assert not (written and calls)


@each_codec
def test_calls_without_results_are_sent_back(codec):
    """A runner that answers only some calls loses none of them, and results beyond the calls are told in words."""
    answer = next(body for body in own_bodies(codec) if codec.read(body).calls)
    exchange = after(codec, answer)

    none = check_next_request(codec, user(exchanges=(Exchange(answer, ()),)))
    assert len(ids_and_answers(codec, none)[0]) == len(exchange.results)
    more = Exchange(answer, (*exchange.results, ToolResult(MadeCall(None, Call("f")), "زائد")))
    assert "<tool_response>زائد</tool_response>" in msgspec.json.encode(
        codec.body(user(exchanges=(more,)), Settings("m"))
    ).decode()  # fmt: skip


@each_codec
def test_written_answer_without_results(codec):
    """In text, an answer that called nothing is followed by nothing."""
    answer = next(body for body in own_bodies(codec) if codec.read(body).text)

    with_answer = codec.body(user(exchanges=(Exchange(answer, ()),), written=True), Settings("m"))
    turns = next(with_answer[name] for name in ("messages", "input", "contents") if name in with_answer)

    assert len(turns) == 2
    assert turns[1]["role"] in {"assistant", "model"}
