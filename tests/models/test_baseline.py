"""The baseline: deterministic, harmless, and better than chance."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arabic_agent_eval.asking import Exchange, Offer, Request, ToolLanguage, ToolResult, request_for
from arabic_agent_eval.bundled import DATA
from arabic_agent_eval.formats import read_calls, reply_text
from arabic_agent_eval.items import Item, ItemSet, item_from_row
from arabic_agent_eval.models.baseline import Baseline
from arabic_agent_eval.models.heuristics.conversing import Made, next_calls
from arabic_agent_eval.models.heuristics.moments import Clock
from arabic_agent_eval.models.model import Answer, Failure
from arabic_agent_eval.scoring import score_calls
from arabic_agent_eval.strictjson import decode_any_depth, replace_surrogates
from arabic_agent_eval.tools import Call, Tool, Toolbox
from arabic_agent_eval.world import World, is_conversation
from tests.strategies import json_values, texts

CASES = json.loads((Path(__file__).parents[1] / "cases" / "baseline.json").read_text("utf-8"))
MODEL = Baseline()


def tool(name: str, description: str, required: str, **properties: Any) -> dict[str, Any]:
    """A function schema."""
    parameters = {"type": "object", "properties": properties, "required": required.split()}
    return {"name": name, "description": description, "parameters": parameters}


def text(description: str = "", **more: Any) -> dict[str, Any]:
    """The schema of a text."""
    return {"type": "string", "description": description, **more}


MONEY = {"type": "string", "enum": ["SAR", "AED", "EGP", "LBP", "USD", "EUR"], "description": "ISO 4217 code"}
AMOUNT = {"type": "number", "exclusiveMinimum": 0, "description": "The amount"}
TOOLS = Toolbox.from_schemas([
    tool("find_weather", "Weather forecast of a city", "city", city=text("City"), day=text("Day", format="date")),
    tool("make_reminder", "Remind the user of something", "text date time", text=text("What to remind of"),
         date=text("Day"), time=text("HH:MM", pattern="^([01][0-9]|2[0-3]):[0-5][0-9]$")),
    tool("move_money", "Send money to a person; not for bills", "recipient amount currency", recipient=text("Who"),
         amount=AMOUNT, currency=MONEY, note=text("A note")),
    tool("swap_money", "Convert an amount to another currency; no money is moved", "amount from_currency to_currency",
         amount=AMOUNT, from_currency=MONEY, to_currency=MONEY),
    tool("order_ride", "Send a taxi | طلب سيارة أجرة", "pickup destination", pickup=text("Where it begins"),
         destination=text("Where it ends"), car={"enum": ["sedan", "van"], "description": "van كبيرة، sedan صغيرة"}),
    tool("set_lamp", "Switch the lights", "state", state={"type": "string", "enum": ["on", "off"],
         "description": "on, off: on ولع شغل، off طفي اطفئ"}),
    tool("find_hotel", "Find hotels in a city", "city", city=text("City"), breakfast={"type": "boolean"},
         check_in=text("DD/MM/YYYY"), brand=text(),
         guests={"type": "integer", "minimum": 1, "description": "Number of persons"}),
    tool("follow_parcel", "Track a parcel", "code", code=text("Number of the parcel", pattern="[")),
    tool("pay_bill", "Pay an electricity bill", "account amount", amount=AMOUNT,
         account=text("Number", pattern="^[0-9]+$")),
    tool("work_out_zakat", "Zakat on gold", "grams", grams={"type": "number", "description": "غرام"},
         karat={"type": "integer", "enum": [18, 21], "description": "عيار"}),
    tool("add_up", "Calculate a sum", "numbers", numbers={"type": "array", "items": {"type": "number"}}),
    tool("play_song", "Play a song", "song mood unknown", song=text("Song"), mood=text()),
    tool("find_fines", "Traffic fines of a car", "plate", plate=text("Plate", pattern="^[^٠-٩]+$")),
    tool("add_meeting", "Put a meeting into the calendar", "title start", title=text("Title"),
         start=text("Start", format="date-time"), minutes={"type": "integer"},
         attendees={"type": "array", "items": {"type": "string"}}),
    tool("order_meal", "Order food from a restaurant", "restaurant dishes", restaurant=text("Its name"),
         dishes={"type": "array", "items": {"properties": {"what": text(), "count": {"type": "integer"}}}},
         address=text("Where to deliver")),
    tool("exchange_rate", "Rate of a currency", "currency", currency=text("A code")),
    tool("web_search", "Search the web", "query", query=text("What to search")),
    tool("read_news", "The latest news", "topics", country=text(), topics={"type": "array", "items": {
         "enum": ["sports", "economy", "health"], "description": "sports رياضة، economy اقتصاد، health صحة"}}),
])  # fmt: skip


def ask(request: Request) -> tuple[dict[str, Any], Answer]:
    """The body of the model's answer and what it says."""
    attempt = asyncio.run(MODEL.attempt(MODEL.encode(request)))
    body = decode_any_depth(attempt.body)
    answer = MODEL.read(body)
    assert isinstance(answer, Answer)
    assert (attempt.failure, attempt.status, attempt.latency) == (None, 200, 0.0)
    return body, answer


def request(instruction: str, tools: Toolbox = TOOLS, **context: str) -> Request:
    """A request that offers the tools."""
    row = {"id": "1", "category": "multi_step", "expected_calls": [], "instruction": instruction, "context": context}
    return request_for(item_from_row(row | {"available_functions": list(tools)}), Offer(tools))


def made(answer: Answer) -> list[list[Any]]:
    """Name and arguments of each call."""
    return [[one.call.function, one.call.arguments] for one in answer.calls]


def converse(first: Request, answers: Any, turns: int = 12) -> list[Call]:
    """The calls of a conversation in which ``answers`` says what comes back for each call."""
    calls: list[Call] = []
    for _ in range(turns):
        body, answer = ask(first)
        if not answer.calls:
            assert answer.text
            return calls
        calls += [one.call for one in answer.calls]
        results = tuple(ToolResult(one, answers(one.call)) for one in answer.calls)
        first = msgspec.structs.replace(first, exchanges=(*first.exchanges, Exchange(body, results)))
    raise AssertionError("the conversation does not end")


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_cases(case):
    """Each request gets the calls that its words ask for."""
    context = {name: case[name] for name in ("now", "locale") if name in case}

    assert made(ask(request(case["instruction"], **context))[1]) == case["calls"]


def test_it_declines_in_words():
    """Where nothing is called, a sentence is said and nothing is counted."""
    body, answer = ask(request("مرحبا"))

    assert (answer.calls, answer.stop, answer.tokens) == ((), "stop", None)
    assert answer.text
    assert "usage" not in body


def test_calls_have_ids():
    """Calls carry ids that do not repeat in a conversation."""
    first = request("كيف الطقس في الرياض وفي جدة؟")
    body, answer = ask(first)

    assert [one.id for one in answer.calls] == ["call_1", "call_2"]
    assert answer.stop == "tool_calls"
    assert body["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] == '{"city":"الرياض"}'


# --- conversations -------------------------------------------------------------------------------------------


def test_results_fill_what_is_missing():
    """A later step takes what only an earlier result says, by its name or by its form."""
    instruction = "تتبع الطرد رقم KX4410، ثم ذكرني يوم وصوله الساعة ٩ الصبح بـ«استلام الطرد»"
    first = request(instruction, now="2026-11-09T09:00:00+03:00")
    calls = converse(first, lambda _: '{"state": ["في الطريق"], "arrives": "2026-11-15", "km": 40, "late": false}')

    assert [call.function for call in calls] == ["follow_parcel", "make_reminder"]
    assert calls[1].arguments == {"text": "استلام الطرد", "date": "2026-11-15", "time": "09:00"}


def test_the_same_amount_waits_for_the_result():
    """«The same amount» is what the first step finds, not the number of the request."""
    instruction = "كم تساوي ٢٠٠ دولار بالدرهم الإماراتي، وبعدين حول المبلغ نفسه بالدرهم حق سالم"
    calls = converse(request(instruction), lambda _: '{"amount": 734.5, "currency": "AED"}')

    assert [call.arguments["amount"] for call in calls] == [200, 734.5]


@pytest.mark.parametrize(
    ("instruction", "error", "second"),
    [
        ("حول 6000 درهم لخديجة، وإذا ما مشت حول 5000", "مرفوض", {"amount": 5000}),
        ("حول 6000 درهم لخديجة، وإذا زاد عن الحد حول أعلى مبلغ ممكن", "الحد 5000.5 درهم", {"amount": 5000.5}),
        ("وين وصل طردي رقم KX-4410؟", "الرقم غير صحيح", {"code": "KX4410"}),
        (
            "ذكرني بكرة الساعة ٩ بالليل «الدواء»، وإذا ما نفع خلها ٩ ونص",
            "الوقت محجوز",
            {"date": "2026-11-10", "time": "21:30"},
        ),
        (
            "ذكرني بكرة الساعة ٩ بالليل «الدواء»، وإذا محجوز خذ أقرب وقت بعده بنفس اليوم",
            "متاح: 20:00 و 21:40",
            {"date": "2026-11-10", "time": "21:40"},
        ),
        (
            "ذكرني بكرة الساعة ٩ الصبح «الدواء»، ولو مش نافع خليها اليوم اللي بعده",
            "محجوز",
            {"date": "2026-11-11", "time": "09:00"},
        ),
    ],
)
def test_after_a_failure(instruction, error, second):
    """What the user says to try instead is tried once, with what the error names; then it stops."""
    first = request(instruction, now="2026-11-09T09:00:00+03:00", locale="ar-AE")
    calls = converse(first, lambda _: json.dumps({"error": error}))

    assert len(calls) == 2
    assert calls[1].arguments == calls[0].arguments | second


@pytest.mark.parametrize(
    ("instruction", "error"),
    [
        ("حول 6000 درهم لخديجة، وإذا ما مشت حول 6000", "مرفوض"),
        ("ذكرني بكرة الساعة ٩ بالليل «الدواء»، وإذا محجوز خذ أقرب وقت", "لا يوجد"),
        ("كيف الطقس في جدة؟", "لا يوجد"),
    ],
)
def test_without_another_way_it_stops(instruction, error):
    """Where neither the user nor the error names something else to try, nothing is tried."""
    first = request(instruction, now="2026-11-09T09:00:00+03:00", locale="ar-AE")

    assert len(converse(first, lambda _: json.dumps({"error": error}))) == 1


def test_values_of_a_choice_are_taken_from_results():
    """A value that a result gives is taken where the parameter allows it, and the text's own value otherwise."""
    instruction = "كم تساوي 20 دولار بالريال السعودي؟ وبعدين حول المبلغ نفسه لمنى"
    calls = converse(request(instruction), lambda _: '{"amount": 75, "currency": "SAR", "name": "X", "fee": null}')
    other = converse(request(instruction), lambda _: '{"amount": 75, "currency": "XYZ"}')

    assert calls[1].arguments == {"recipient": "منى", "amount": 75, "currency": "SAR"}
    assert [call.function for call in other] == ["swap_money"]


def test_many_steps_are_not_all_taken():
    """A request with more steps than anybody would ask for is answered in part."""
    instruction = "كيف الطقس في جدة؟ دور لي فندق في مسقط. " * 8

    assert len(ask(request(instruction))[1].calls) == 2


def test_a_day_that_is_none_stays():
    """After a failure a date that is no date is not counted on from."""
    made_before = Made("make_reminder", {"date": "2026-99-99", "text": "x", "time": "09:00"}, {"error": "لا"})
    instruction = "ذكرني الساعة ٩ الصبح «x»، وإذا محجوز خليها اليوم اللي بعده"

    assert next_calls(instruction, list(TOOLS.values()), Clock(), [made_before]) == []


@pytest.mark.parametrize("result", ['{"error": "لا"}', '{"status": "ok"}', "null", "[]", "no json", "", '"text"', "5"])
def test_conversations_end(result):
    """No call is made twice, whatever comes back."""
    for case in CASES:
        context = {name: case[name] for name in ("now", "locale") if name in case}
        calls = converse(request(case["instruction"], **context), lambda _: result)

        assert len({(call.function, json.dumps(call.arguments)) for call in calls}) == len(calls)


def test_a_failed_tool_that_is_not_offered_ends_it():
    """A failure of a tool that nobody offers is no reason to call another."""
    _, answer = ask(request("كيف الطقس في جدة؟"))
    call = msgspec.structs.replace(answer.calls[0], call=Call("other", {}))
    message = {"role": "assistant", "tool_calls": [{"id": "call_1", "function": {"name": "other", "arguments": "{}"}}]}
    exchange = Exchange({"choices": [{"message": message}]}, (ToolResult(call, '{"error": 1}'),))

    assert ask(msgspec.structs.replace(request("كيف الطقس في جدة؟"), exchanges=(exchange,)))[1].calls == ()


def test_tools_in_the_prompt_are_called_in_the_text():
    """Where tools stand in the system prompt, calls are written as it says, results are read, and it ends."""
    row = {"id": "1", "category": "x", "expected_calls": [], "available_functions": ["find_weather", "find_hotel"]}
    item = item_from_row(row | {"instruction": "كيف الطقس في مسقط؟ ودور لي فندق هناك"})
    first = request_for(item, Offer(TOOLS), written=True)
    first = msgspec.structs.replace(first, system=first.system + "\n{not json\n[]\n{}")
    body, answer = ask(first)
    said = answer.text.splitlines()

    assert answer.calls == ()
    assert said[0] == '<tool_call>{"name":"find_weather","arguments":{"city":"مسقط"}}</tool_call>'
    made_calls = [{"id": None, "call": {"function": "find_weather", "arguments": {}}} for _ in said]
    results = tuple(msgspec.convert({"made": one, "content": '{"ok": 1}'}, ToolResult) for one in made_calls)
    again = ask(msgspec.structs.replace(first, exchanges=(Exchange(body, results),)))[1]
    assert "<tool_call>" not in again.text


def test_tools_in_the_prompt_change_no_call():
    """What is called does not depend on where the tools stand, nor on how far from them the context does."""
    items, tools = bundled("sample")
    for item in items:
        written = ask(request_for(item, Offer(tools), written=True))[1]
        plain = ask(request_for(item, Offer(tools)))[1]

        assert read_calls(reply_text(written.text)) == tuple(one.call for one in plain.calls)


def test_earlier_turns_are_over():
    """The last thing the user says counts, and what was done for earlier requests does not."""
    call = {"id": "a", "type": "function", "function": {"name": "find_weather", "arguments": '{"city": "جدة"}'}}
    earlier = (
        {"role": "user", "content": "كيف الطقس في جدة؟"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": '{"error": "لا"}'},
        {"role": "assistant", "content": "تعذر ذلك."},
    )
    first = request("كيف الطقس في جدة؟")
    first = msgspec.structs.replace(first, messages=(*earlier, *first.messages))

    assert made(ask(first)[1]) == [["find_weather", {"city": "جدة"}]]


# --- the bundled sets ----------------------------------------------------------------------------------------


def bundled(name: str) -> tuple[list[Item], Toolbox]:
    """The items and tools of a bundled set."""
    tools = Toolbox.from_schemas(json.loads((DATA / name / "tools.json").read_text("utf-8")))
    return list(ItemSet.read(DATA / name / "items.jsonl").values()), tools


def total(item: Item, calls: list[Call]) -> float:
    """The score of calls on an item."""
    expected = msgspec.to_builtins(item.expected_calls)
    return score_calls(expected, calls, category=item.category, ordered=item.ordered).total


def answered(item: Item, tools: Toolbox, language: ToolLanguage = "both") -> list[Call]:
    """The calls that the baseline makes for an item, in a conversation if it is one."""
    first = request_for(item, Offer(tools, language))
    if not is_conversation(item):
        return [one.call for one in ask(first)[1].calls]
    return converse(first, World(item, item.toolbox(tools)).answer)


@pytest.mark.parametrize(
    ("name", "language"),
    [("sample", "ar"), ("sample", "en"), ("sample", "both"), ("starter", "en"), ("starter", "both")],
)
def test_it_beats_chance_and_silence_in_every_category(name, language):
    """A random offered tool without arguments, in exact expectation, and silence both score clearly less."""
    items, tools = bundled(name)
    scores: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for item in items:
        by_chance = [total(item, [Call(name)]) for name in item.toolbox(tools)]
        chance = sum(by_chance) / len(by_chance)
        score = total(item, answered(item, tools, language=language))
        scores[item.category].append((score, chance, total(item, [])))

    assert len(scores) == 6
    for found in scores.values():
        score, chance, silence = (sum(column) / len(found) for column in zip(*found, strict=True))
        assert score > chance + 0.3
        assert score > silence + 0.3


def test_it_is_the_same_in_every_process():
    """The order of sets, which differs between processes, changes no answer."""
    code = (
        "import sys; from tests.models.test_baseline import *; items, tools = bundled('sample'); "
        "print(*(str(answered(item, tools)) for item in items), sep='\\n')"
    )
    root = Path(__file__).parents[2]
    runs = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8", cwd=root,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"},
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip

    assert runs[0] == runs[1]
    assert "get_prayer_times" in runs[0]


# --- hostile input -------------------------------------------------------------------------------------------

WORDS = [word for case in CASES for word in case["instruction"].split()]
schemas = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(
            ["string", "integer", "number", "boolean", "array", "object", 5, ["null", "integer"], []]
        ),
        "description": st.sampled_from(["City", "van كبيرة", "", None, ["x"], "على (في)"]) | json_values,
        "enum": st.lists(json_values, max_size=4) | json_values,
        "pattern": st.sampled_from(["^[0-9]+$", "(a+)+$", "[", 5]),
        "format": st.sampled_from(["date", "time", "date-time", {}, "email"]),
        "minimum": json_values,
        "items": json_values | st.just({"enum": ["sports"]}) | st.just({"type": "number"}),
    },
)
parameters = st.fixed_dictionaries(
    {},
    optional={
        "type": st.just("object"),
        "properties": st.dictionaries(
            st.sampled_from(["city", "date", "time", "text", "amount", "items", "to", "passengerNames", "\ud800", ""]),
            schemas | json_values,
            max_size=4,
        ),
        "required": st.lists(st.sampled_from(["city", "amount", "text", "nothing"]), max_size=2) | json_values,
    },
)
hostile_tools = st.builds(
    Tool,
    st.sampled_from(["find_weather", "bookTable", "transfer_money", "\ud800", "طقس"]) | st.text(max_size=5),
    st.sampled_from(["Weather of a city | طقس مدينة", "حجز طاولة؛ وليست للفنادق", "", "|"]) | texts,
    parameters,
)
instructions = st.lists(st.sampled_from(WORDS) | texts, max_size=14).map(" ".join)
contents = instructions | json_values | st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": instructions}))
messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "system"])},
    optional={
        "content": contents,
        "tool_call_id": json_values | st.sampled_from(["call_1", "None"]),
        "tool_calls": json_values
        | st.lists(
            st.fixed_dictionaries(
                {"id": st.sampled_from(["call_1", None]), "function": st.fixed_dictionaries(
                    {"name": st.sampled_from(["find_weather", "transfer_money"]), "arguments": json_values | texts})}
            ),
            max_size=2,
        ),
    },
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    instructions,
    st.lists(hostile_tools, max_size=4),
    st.sampled_from(["2026-11-09T09:00:00+03:00", "غدا", "9999-12-31"]),
)
def test_no_request_raises(instruction, tools, now):
    """Whatever is asked and offered, an answer comes back, calls only what is offered, and is the same again."""
    system = f"الوقت الآن: {now}\nالإعدادات المحلية: ar-EG"
    first = Request("1", 0, system, ({"role": "user", "content": instruction},), tuple(tools))
    _, answer = ask(first)

    assert {one.call.function for one in answer.calls} <= {replace_surrogates(one.name) for one in tools}
    assert ask(first)[1] == answer


@settings(max_examples=150, deadline=None)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "messages": st.lists(messages | json_values, max_size=5) | json_values,
            "tools": st.lists(
                st.builds(lambda name, found: {"function": {"name": name, "parameters": found}},
                          st.sampled_from(["find_weather", "transfer_money", 5]), parameters | json_values)
                | json_values,
                max_size=3,
            )
            | json_values,
        },
    )
)  # fmt: skip
def test_no_body_raises(body):
    """A body of any shape gets an answer."""
    encoded = json.dumps(body, ensure_ascii=True).encode()
    attempt = asyncio.run(MODEL.attempt(encoded))

    assert isinstance(MODEL.read(decode_any_depth(attempt.body)), Answer)


def test_messages_of_any_shape_are_passed_over():
    """Calls and results that are none do not matter to what the user said last."""
    odd = [5, {"function": 5}, {"function": {"name": 5}}]
    body = {
        "messages": [
            {"role": "user", "content": "كيف الطقس في جدة؟"},
            {"role": "assistant", "tool_calls": odd, "content": "<tool_call>{}</tool_call>"},
            {"role": "user", "content": "<tool_response>5</tool_response>"},
            {"role": "assistant", "content": '<tool_call>{"name": "a"}</tool_call>' * 2},
            {"role": "user", "content": "<tool_response>{}</tool_response>"},
            {"role": "user", "content": "<tool_response>"},
            {"role": "other"},
        ],
        "tools": [{"function": {"name": ""}}, {"function": {"name": "weather", "parameters": {"required": ["city"],
                  "properties": {"city": {}}}}}],
    }  # fmt: skip
    attempt = asyncio.run(MODEL.attempt(json.dumps(body).encode()))
    answer = MODEL.read(decode_any_depth(attempt.body))

    assert isinstance(answer, Answer)
    assert made(answer) == [["weather", {"city": "جدة"}]]


@pytest.mark.parametrize("body", [b"", b"[]", b"\xff", b'"x"', b"{"])
def test_what_is_no_request_is_refused(body):
    """Bytes that are no JSON object get a failure and no exception."""
    attempt = asyncio.run(MODEL.attempt(body))

    assert isinstance(attempt.failure, Failure)
    assert (attempt.failure.kind, attempt.body, attempt.status) == ("request", b"", None)


@pytest.mark.parametrize(
    "piece", ["احجز طاولة، ", "و", "a", "١ ", '"', "«", "في الرياض وفي جدة ", "غدا الساعة ٥ ", "\u0651", "رقم 12345 "]
)
def test_a_megabyte_is_read_at_its_beginning(piece):
    """A huge request is answered as fast as a long one."""
    assert ask(request(piece * (1_000_000 // len(piece))))[1] is not None


def test_it_names_itself_and_holds_nothing():
    """The protocol of models: a name, no address, nothing to close."""
    assert (MODEL.name, MODEL.address) == ("baseline", "")
    assert asyncio.run(MODEL.close()) is None
