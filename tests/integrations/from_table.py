"""A model of Inspect AI that answers from a table, as a provider would, and what tests of that door share."""

from __future__ import annotations

import json

from inspect_ai import eval as inspect_eval
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    GenerateConfig,
    ModelAPI,
    ModelCall,
    ModelOutput,
    ModelUsage,
    get_model,
    modelapi,
)
from inspect_ai.model._call_tools import parse_tool_call

from arabic_agent_eval.batch import grade_file
from arabic_agent_eval.bundled import find_items, find_replies
from arabic_agent_eval.formats import read_calls, read_reply
from arabic_agent_eval.items import ItemSet
from arabic_agent_eval.summary import summarize

ITEMS = ItemSet.read(find_items("sample"))
ROWS = [json.loads(line) for line in find_replies("sample").read_text(encoding="utf-8").splitlines()]
CALLS = {row["id"]: read_calls(read_reply(row), ITEMS[row["id"]].offered) for row in ROWS}
WEATHER = {
    "name": "get_weather",
    "description": "Weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
GENERATE = GenerateConfig()
USAGE = ModelUsage(total_tokens=1)  # without it the mock model would count tokens with a table that it downloads


# --- models that answer from a table -------------------------------------------------------------------------


def chat(*arguments, name="get_weather", content=None):
    """The body of an answer in OpenAI's shape, with a call for each text of arguments."""
    calls = [
        {"id": f"c{place}", "type": "function", "function": {"name": name, "arguments": text}}
        for place, text in enumerate(arguments)
    ]
    return {"choices": [{"message": {"role": "assistant", "content": content, "tool_calls": calls or None}}]}


def body_of(calls):
    """The body of an answer that makes calls as they were read."""
    made = [{"type": "function", "function": {"name": call.function, "arguments": text_of(call)}} for call in calls]
    return {"choices": [{"message": {"role": "assistant", "content": "", "tool_calls": made}}]}


def text_of(call):
    return json.dumps(call.arguments, ensure_ascii=False) if call.error is None else call.raw


@modelapi("from_table")
class FromTable(ModelAPI):
    """Answers with the bodies of a table, by the instruction, and reads them as Inspect's own providers do."""

    def __init__(self, model_name, base_url=None, api_key=None, config=GENERATE, table=None, drops=False, **_):
        super().__init__(model_name, base_url, api_key, [], config)
        self.table, self.drops, self.seen = table or {}, drops, []

    async def generate(self, input, tools, tool_choice, config):  # noqa: A002 - the host's name
        """The next answer of the table to the last instruction."""
        self.seen.append((input, tools))
        instruction = [message.text for message in input if message.role == "user"][-1]
        answers = self.table[instruction]
        turn = sum(message.role == "assistant" and message.source == "generate" for message in input)
        body = answers[min(turn, len(answers) - 1)]
        if isinstance(body, Exception):
            raise body
        return self._output(body, tools), ModelCall.create({"messages": []}, body)

    def _output(self, body, tools):
        message = body["choices"][0]["message"]
        calls = [
            parse_tool_call(f"c{place}", call["function"]["name"], call["function"]["arguments"], tools)
            for place, call in enumerate(message.get("tool_calls") or [])
        ]
        said = ChatMessageAssistant(content=message.get("content") or "", source="generate")
        said.tool_calls = None if self.drops else calls or None
        return ModelOutput(model="from_table", choices=[ChatCompletionChoice(message=said)], usage=USAGE)

    def should_retry(self, ex):
        """Whether to ask again: never."""
        return False


def asked(task, table, logs, drops=False, **options):
    """The log of a task that a model from a table answers, and that model."""
    model = get_model("from_table/model", table=table, drops=drops, memoize=False)
    return inspect_eval(task, model=model, display="none", log_dir=str(logs), **options)[0], model.api


def sample_table():
    """Instruction → the sample reply in one answer, then silence."""
    return {item.instruction: [body_of(CALLS[item.id]), chat(content="تم")] for item in ITEMS.values()}


def made_up(tmp_path, answers, **more):
    """A file of items whose instructions are the keys of a table of answers, and that table."""
    call = {"function": "get_weather", "arguments": {"city": "الرياض"}}
    rows = [
        {"id": name, "category": "simple_function_calling", "instruction": name, "tools": [WEATHER],
         "expected_calls": [call], **more}
        for name in answers
    ]  # fmt: skip
    path = tmp_path / "items.jsonl"
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return str(path), {name: bodies if isinstance(bodies, list) else [bodies] for name, bodies in answers.items()}


def scores_of(log):
    """Item → score."""
    return {sample.id: sample.scores["canonical"] for sample in log.samples}


def metrics_of(log, place=0):
    return {name: found.value for name, found in log.results.scores[place].metrics.items()}


BROKEN = {
    "right": '{"city": "الرياض"}',
    "bare word": "الرياض",
    "list": '["الرياض"]',
    "empty": "",
    "trailing quotes": '{"city": "الرياض"}""',
    "NaN": '{"city": NaN}',
    "name twice": '{"city": "جدة", "city": "الرياض"}',
    "encoded twice": json.dumps(json.dumps({"city": "الرياض"})),
    "two objects": '{"city": "الرياض"}{"city": "جدة"}',
    "half a pair": '{"city": "\\ud83d"}',
    "fenced": '```json\n{"city": "الرياض"}\n```',
    "long": json.dumps({"city": "الرياض", "why": "ط" * 300}, ensure_ascii=False),
    "deep": '{"city": ' + "[" * 90 + "]" * 90 + "}",
}


def grade_sample():
    """What ``aae grade`` makes of the sample replies."""
    batch = grade_file(ItemSet.read(find_items("sample"), name="sample"), find_replies("sample"))
    return summarize(batch.tally, due=batch.due, signature=batch.signature, rules="canonical")
