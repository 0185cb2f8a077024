"""From a log of Inspect AI to what the commands of this package take: rows of replies, or a run folder.

write_replies("logs/….eval", Path("replies.jsonl"))      # for: aae grade --replies replies.jsonl
run_of_log("logs/….eval", Path("runs/inspect"))          # for: aae report runs/inspect
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from arabic_agent_eval.bundled import find_categories, find_tools
from arabic_agent_eval.errors import DataError, MissingExtra, UsageError
from arabic_agent_eval.files import WholeFile
from arabic_agent_eval.integrations.inspect import read_items
from arabic_agent_eval.integrations.inspect_answers import Answered, Turn, as_row, plain_reason, read_answers
from arabic_agent_eval.items import ItemSet, read_categories
from arabic_agent_eval.journal import REPLIES, Journal
from arabic_agent_eval.models.model import Tokens
from arabic_agent_eval.runs import (
    DEFAULTS,
    Asked,
    AttemptRecord,
    ReplyRecord,
    Run,
    TurnRecord,
    fingerprint_of,
    one_line,
    record_line,
)
from arabic_agent_eval.strictjson import encode, replace_surrogates
from arabic_agent_eval.tools import Call
from arabic_agent_eval.world import is_conversation

try:
    from inspect_ai.event import ModelEvent
    from inspect_ai.log import EvalLog, EvalSample, read_eval_log, read_eval_log_samples, resolve_sample_attachments
    from inspect_ai.model import ChatMessageTool, ModelUsage
except ImportError:
    raise MissingExtra(
        'This needs Inspect AI, 0.3.285 or later; install it with: pip install "arabic-agent-eval[inspect]"'
    ) from None

_AT_ONCE = 200  # records that are written together
_CUT = frozenset({"max_tokens", "model_length"})


def replies_of_log(log: EvalLog | str | Path) -> Iterator[dict[str, Any]]:
    """The answers of a log as rows that ``aae grade`` reads: calls as they were sent, or an error.

    Args:
        log: a log, or where it lies; of a file one sample at a time is in memory.

    Raises:
        DataError: the log holds no samples.
    """
    for sample in _samples(log):
        answered = _read(sample)
        head = {"id": str(sample.id), "epoch": sample.epoch - 1}
        if answered.failure is not None:
            yield {**head, "error": answered.failure}
        else:
            yield {**head, "calls": list(map(as_row, answered.calls)), "text": answered.words}


def write_replies(log: EvalLog | str | Path, path: Path) -> None:
    """Write the rows of :func:`replies_of_log` to a file, whole or not at all.

    Raises:
        DataError: the log holds no samples.
        OutputError: the file cannot be written.
    """
    with WholeFile(path) as file:
        for row in replies_of_log(log):
            file.write(json.dumps(replace_surrogates(row), ensure_ascii=False).encode() + b"\n")


def run_of_log(log: EvalLog | str | Path, folder: Path, *, items: str | None = None, tools: str | None = None) -> Run:
    """Make a run folder of a log, so that every command that takes a run takes it.

    Where a provider's own answer is not in the log, an answer in OpenAI's shape is made of the calls that Inspect read,
    marked with ``"made_from": "inspect_ai"``. Requests are not copied.

    Args:
        log: a log, or where it lies.
        folder: the new run.
        items: the set or file that was asked; by default what the log says.
        tools: the tool registry; by default the one beside the items.

    Raises:
        DataError: the log holds no samples, or the items are not those that were asked.
        OutputError: the run cannot be written.
        UsageError: the log does not say which items were asked, or there is something in the folder.
    """
    header = log if isinstance(log, EvalLog) else read_eval_log(str(log), header_only=True)
    told = header.eval.metadata or {}
    name = items or told.get("items")
    if not isinstance(name, str):
        raise UsageError("the log does not say which items were asked; name them with items=.")
    asked_items = _asked_items(name, header)
    path, declared = find_tools(name, tools), find_categories(name)
    registry = b"[]\n" if path is None else path.read_bytes()
    _check_same("tools", told.get("tools"), fingerprint_of(registry), name)
    run = Run.create(
        folder,
        _asked(header, asked_items, fingerprint_of(registry)),
        asked_items,
        registry,
        created=str(header.eval.created),
        categories={} if declared is None else read_categories(declared),
    )
    with Journal(folder) as journal:
        lines: list[bytes] = []
        for sample in _samples(log):
            lines.append(record_line(_record(sample, asked_items)))
            if len(lines) == _AT_ONCE:
                journal.append({REPLIES: b"".join(lines)})
                lines.clear()
        journal.append({REPLIES: b"".join(lines)})
    return run


def _samples(log: EvalLog | str | Path) -> Iterator[EvalSample]:
    """The samples with their long texts, which a log keeps apart."""
    if isinstance(log, EvalLog) and log.samples is None:
        raise DataError("the log holds no samples; read it with its samples.", path=log.location)
    found = (
        log.samples or () if isinstance(log, EvalLog) else read_eval_log_samples(str(log), all_samples_required=False)
    )
    for sample in found:
        yield resolve_sample_attachments(sample, "full") if sample.attachments else sample


def _read(sample: EvalSample) -> Answered:
    found = read_answers(sample.messages, sample.events)
    if sample.error is not None and found.failure is None:
        return found._replace(failure=plain_reason(sample.error.message))
    return found


# --- a run folder --------------------------------------------------------------------------------------------


def _check_same(what: str, asked: object, found: str, name: str) -> None:
    if asked not in (None, found):
        says = f"these are not the {what} that were asked: their fingerprint is {found}, not {asked}."
        raise DataError(says, path=name, remedy=f"Name those that were asked with {what}=.")


def _asked_items(name: str, header: EvalLog) -> ItemSet:
    whole = read_items(name)
    _check_same("items", (header.eval.metadata or {}).get("fingerprint"), whole.fingerprint, name)
    wanted = dict.fromkeys(map(str, header.eval.dataset.sample_ids or ()))
    unknown = next((item_id for item_id in wanted if item_id not in whole), None)
    if unknown is not None:
        raise DataError(f"there is no item {unknown!r}, which the log holds a sample of.", path=name)
    if len(wanted) in {0, len(whole)}:
        return whole
    first = whole.first(len(wanted))
    return first if wanted.keys() == set(first) else whole.filter(lambda item: item.id in wanted)


def _asked(header: EvalLog, items: ItemSet, tools: str) -> Asked:
    told, config = header.eval.metadata or {}, header.plan.config.merge(header.eval.model_generate_config)
    return Asked(
        items=items.name,
        fingerprint=items.fingerprint,
        count=len(items),
        tools=tools,
        model=header.eval.model,
        address=header.eval.model_base_url or "",
        system=str(told.get("system", "")),
        tool_language=told.get("tool_language", DEFAULTS["tool_language"]),
        written=False,
        temperature=config.temperature,
        seed=config.seed,
        max_tokens=config.max_tokens,
        parameters={"inspect_ai": header.eval.packages.get("inspect_ai", "")},
        epochs=header.eval.config.epochs or 1,
        max_turns=told.get("max_turns", DEFAULTS["max_turns"]),
    )


def _record(sample: EvalSample, items: ItemSet) -> ReplyRecord:
    answered = _read(sample)
    item_id, epoch = str(sample.id), sample.epoch - 1
    places = {event.uuid: place for place, turn in enumerate(answered.turns) if (event := turn.event) is not None}
    attempts = [_attempt(event, places.get(event.uuid, len(answered.turns))) for event in answered.events]
    turns = [_turn(turn, sample) for turn in answered.turns]
    if answered.failure is not None:
        return ReplyRecord(item_id, epoch, "failed", turns, attempts, answered.failure)
    goes_on = is_conversation(items[item_id]) and bool(answered.turns[-1].calls)
    cut = sample.output.stop_reason in _CUT
    return ReplyRecord(item_id, epoch, "answered", turns, attempts, None, "max_turns" if goes_on else "stopped", cut)


def _attempt(event: ModelEvent, turn: int) -> AttemptRecord:
    status = event.request_ids[-1].status if event.request_ids else None
    message = None if event.error is None else plain_reason(event.error)
    kind = None if message is None else "inspect_ai"
    return AttemptRecord(turn, event.timestamp.isoformat(), event.working_time or 0.0, status, kind, message)


def _turn(turn: Turn, sample: EvalSample) -> TurnRecord:
    usage = turn.event.output.usage if turn.event is not None else None
    origin = {"inspect_ai": {"sample": sample.uuid, "event": turn.event.uuid if turn.event is not None else None}}
    return TurnRecord(
        request=msgspec.Raw(encode(origin)),
        response=one_line(encode(turn.response or _made_answer(turn))),
        tokens=None if usage is None else _tokens(usage),
        cost=None if usage is None else usage.total_cost,
        results=_results(turn, sample),
        latency=None if turn.event is None else turn.event.working_time,
    )


def _results(turn: Turn, sample: EvalSample) -> list[str]:
    """What the simulated tools answered to the calls of a turn."""
    called = [call.id for call in turn.message.tool_calls or ()]
    texts = {message.tool_call_id: message.text for message in sample.messages if isinstance(message, ChatMessageTool)}
    return [texts[call_id] for call_id in called if call_id in texts]


def _tokens(usage: ModelUsage) -> Tokens:
    cached = usage.input_tokens_cache_read or 0
    read = usage.input_tokens + cached + (usage.input_tokens_cache_write or 0)
    return Tokens(read, usage.output_tokens, cached, usage.reasoning_tokens or 0)


def _made_answer(turn: Turn) -> dict[str, Any]:
    """An answer in OpenAI's shape, of calls that Inspect read; what it could not read stays unreadable."""
    calls = [
        {"id": f"call_{place}", "type": "function", "function": {"name": call.function, "arguments": _arguments(call)}}
        for place, call in enumerate(turn.calls)
    ]
    message = {"role": "assistant", "content": turn.message.text, **({"tool_calls": calls} if calls else {})}
    return {"choices": [{"index": 0, "message": message}], "made_from": "inspect_ai"}


def _arguments(call: Call) -> Any:
    return call.raw if call.error is not None else encode(call.arguments).decode()
