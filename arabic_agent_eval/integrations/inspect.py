"""Inspect AI: the item sets as tasks, a solver that asks as ``aae run`` does, and the grader as a scorer.

    inspect eval arabic_agent_eval/starter --model openai/…
    inspect score LOG --scorer arabic_agent_eval/canonical

Every answer goes through ``evaluate_reply``; the metrics take means.
``docs/integrations/inspect.md`` describes all of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec

from arabic_agent_eval._version import __version__
from arabic_agent_eval.asking import (
    SYSTEM_PROMPT,
    TOOL_LANGUAGES,
    MadeCall,
    Offer,
    Request,
    ToolLanguage,
    ToolResult,
    request_for,
    written_results,
)
from arabic_agent_eval.bundled import find_categories, find_items, find_tools, is_bundled, set_names
from arabic_agent_eval.causes import words
from arabic_agent_eval.errors import DataError, MissingExtra, UsageError
from arabic_agent_eval.integrations.inspect_answers import (
    KEPT,
    WITHOUT_RAW,
    Answered,
    Turn,
    as_row,
    read_answers,
    warn_without_raw,
)
from arabic_agent_eval.integrations.inspect_asking import messages_of, tool_info
from arabic_agent_eval.items import Item, ItemSet, item_from_row, read_categories
from arabic_agent_eval.runs import DEFAULTS, fingerprint_of
from arabic_agent_eval.scoring import CANONICAL, Result, evaluate_reply
from arabic_agent_eval.strictjson import replace_surrogates, too_deep
from arabic_agent_eval.summary import NO_DIALECT, weight_of
from arabic_agent_eval.text import name_invisible
from arabic_agent_eval.tools import Call, Toolbox
from arabic_agent_eval.world import World, is_conversation

try:
    from inspect_ai import Task, task
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.log import transcript
    from inspect_ai.model import ChatMessage, ChatMessageTool, ChatMessageUser
    from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
    from inspect_ai.solver import Generate, Solver, TaskState, solver
except ImportError:
    raise MissingExtra(
        'This needs Inspect AI, 0.3.285 or later; install it with: pip install "arabic-agent-eval[inspect]"'
    ) from None

if TYPE_CHECKING:
    from arabic_agent_eval.diagnosis import Loss

_SHOWN, _ANSWER = 200, 4000  # characters of a value, and of all calls
_FIRST_STRONG_ISOLATE, _POP_ISOLATE = "\u2068", "\u2069"


# --- tasks ---------------------------------------------------------------------------------------------------


def item_task(
    items: str,
    tools: str | None = None,
    *,
    tool_language: ToolLanguage = "both",
    max_turns: int = DEFAULTS["max_turns"],
    system: str = SYSTEM_PROMPT,
) -> Task:
    """A task that asks the items of a set, each as ``aae run`` asks it.

    Every sample is asked whatever happens to the others: one whose provider failed is unscored, and ``inspect
    eval-retry`` asks it again.

    Args:
        items: the name of a bundled set, or a file of items.
        tools: the tool registry; by default the one beside the items.
        tool_language: in which language the tools are described: ``ar``, ``en`` or ``both``.
        max_turns: answers in one conversation at most.
        system: the system prompt; the context of each item is added to it.

    Raises:
        DataError: the items or tools cannot be read, or an item holds what Inspect cannot pass on.
        UnknownCategory: an item's category has no weight.
        UsageError: a tool language or number of turns that there is not.
    """
    if tool_language not in TOOL_LANGUAGES or max_turns < 1:
        raise UsageError(f"tool_language is one of {', '.join(TOOL_LANGUAGES)}, and max_turns at least 1.")
    found, registry = read_items(items), _registry(items, tools)
    declared = find_categories(items)
    categories = {} if declared is None else read_categories(declared)
    offer = Offer(registry, tool_language)
    samples = []
    for item in found.values():
        _check_tools(item, registry)
        samples.append(_sample(item, request_for(item, offer, system=system), weight_of(item.category, categories)))
    path = find_tools(items, tools)
    return Task(
        dataset=MemoryDataset(samples, name=found.name),
        solver=ask(items, tools, tool_language, max_turns),
        scorer=canonical(),
        continue_on_fail=True,
        score_on_error=True,
        version=__version__,
        metadata={
            "items": items,
            "fingerprint": found.fingerprint,
            "tools": fingerprint_of(b"[]\n" if path is None else path.read_bytes()),
            "tool_language": tool_language,
            "max_turns": max_turns,
            "system": system,
        },
    )


def _bundled(name: str) -> Callable[..., Task]:
    """The task of a bundled set."""

    def bundled(tool_language: ToolLanguage = "both", max_turns: int = DEFAULTS["max_turns"]) -> Task:
        return item_task(name, tool_language=tool_language, max_turns=max_turns)

    bundled.__doc__ = f"The bundled item set {name!r}."
    registered: Callable[..., Task] = task(name=name.replace("-", "_"))(bundled)
    return registered


TASKS: Mapping[str, Callable[..., Task]] = {name: _bundled(name) for name in set_names()}
"""Bundled set → its task; Inspect knows it as ``arabic_agent_eval/NAME``, with ``_`` for ``-``."""


@task
def from_file(
    items: str,
    tools: str | None = None,
    tool_language: ToolLanguage = "both",
    max_turns: int = DEFAULTS["max_turns"],
) -> Task:
    """The items of a file: ``inspect eval arabic_agent_eval/from_file -T items=PATH``; see :func:`item_task`."""
    return item_task(items, tools, tool_language=tool_language, max_turns=max_turns)


def read_items(name: str) -> ItemSet:
    """The items of a bundled set or of a file.

    Raises:
        DataError: there are none, or one cannot be read.
    """
    path = find_items(name)
    return ItemSet.read(path, name=name if is_bundled(path) else None)


def _registry(items: str, tools: str | None) -> Toolbox:
    return Toolbox.read(find_tools(items, tools))


def _check_tools(item: Item, registry: Toolbox) -> None:
    unknown = [name for name in item.available_functions if item.tools is None and name not in registry]
    if unknown:
        raise DataError(
            f"the tool {unknown[0]!r} of item {item.id!r} is in no registry.", remedy="Name it with tools=."
        )


def _sample(item: Item, request: Request, weight: float) -> Sample:
    try:
        for tool in request.tools:
            tool_info(tool)
        messages = messages_of(request)
    except DataError as error:
        raise DataError(f"item {item.id!r} cannot be asked by Inspect AI: {error}") from None
    expected = msgspec.to_builtins(item.expected_calls)
    return Sample(
        id=item.id,
        input=messages,
        target=_text(expected),
        metadata={"item": msgspec.to_builtins(item), "weight": weight, **_facts(item)},
    )


def _facts(item: Item) -> dict[str, Any]:
    cluster = f"intent:{item.intent}" if item.intent is not None else f"item:{item.id}"
    return {"category": item.category, "dialect": item.dialect or NO_DIALECT, "cluster": cluster}


# --- asking --------------------------------------------------------------------------------------------------


@solver
def ask(
    items: str, tools: str | None = None, tool_language: ToolLanguage = "both", max_turns: int = DEFAULTS["max_turns"]
) -> Solver:
    """Offer an item's tools and record the calls; a conversation goes on with the simulated tools.

    Inspect executes no call. The simulated tools answer to what the provider sent, not to what Inspect made of it.

    Args:
        items: the set that the samples are from, by name or path; it says where the tools are.
        tools: the tool registry; by default the one beside the items.
        tool_language: in which language the tools are described.
        max_turns: answers in one conversation at most.
    """
    registry = _registry(items, tools)
    offer = Offer(registry, tool_language)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        item = item_from_row(state.metadata["item"])
        # Inspect's models take a tool's description as it is, and nothing here is to be executed.
        cast("list[Any]", state.tools)[:] = map(tool_info, offer.tools(item))
        world = World(item, item.toolbox(registry)) if is_conversation(item) else None
        for last in range(max_turns - 1, -1, -1):
            state = await generate(state, tool_calls="none")
            turns = _answered(state).turns
            _keep(turns, state)
            if world is None or not last or not turns or not turns[-1].calls or state.completed:
                break
            state.messages.extend(_results(turns[-1], world))
        return state

    return solve


def _answered(state: TaskState) -> Answered:
    log = transcript()
    return read_answers(state.messages, log.events, log.attachments, state.store.get(KEPT))


def _keep(turns: Sequence[Turn], state: TaskState) -> None:
    """Keep the calls as they were sent."""
    calls = {turn.message.id: list(map(as_row, turn.calls)) for turn in turns if turn.is_raw}
    if not too_deep(calls):
        state.store.set(KEPT, replace_surrogates(calls))


def _results(turn: Turn, world: World) -> list[ChatMessage]:
    """What the simulated tools answer; a call that Inspect did not see has no id, and its result is told in words."""
    answers = [ToolResult(MadeCall(None, call), world.answer(call)) for call in turn.calls]
    seen = turn.message.tool_calls or []
    messages: list[ChatMessage] = [
        ChatMessageTool(content=answer.content, tool_call_id=call.id, function=call.function)
        for call, answer in zip(seen, answers, strict=False)
    ]
    if told := answers[len(seen) :]:
        messages.append(ChatMessageUser(content=written_results(told)))
    return messages


# --- judging -------------------------------------------------------------------------------------------------


@metric
def overall() -> Metric:
    """The overall score, categories weighted, as ``overall``; and its clustered standard error."""

    def compute(scores: list[SampleScore]) -> Value:
        weights = {_fact(one, "category"): float(_fact(one, "weight") or 0.0) for one in scores}
        counted = [one for one in scores if weights[_fact(one, "category")] > 0]
        if not counted:
            return {"overall": math.nan}
        means = {name: _mean(members) for name, members in _grouped(counted, "category").items()}
        total = math.fsum(weights[name] for name in means)
        score = math.fsum(mean * weights[name] for name, mean in means.items()) / total
        return {"overall": score, "overall_stderr": _standard_error(counted, weights)}

    return compute


@metric
def by_category() -> Metric:
    """The mean of each category, and its clustered standard error as ``NAME_stderr``."""

    def compute(scores: list[SampleScore]) -> Value:
        return _means(scores, "category")

    return compute


@metric
def by_dialect() -> Metric:
    """The mean of each dialect, and its clustered standard error as ``NAME_stderr``."""

    def compute(scores: list[SampleScore]) -> Value:
        return _means(scores, "dialect")

    return compute


def _means(scores: Iterable[SampleScore], fact: str) -> Value:
    found: dict[str, float | None] = {}
    for name, members in _grouped(scores, fact).items():
        found[name] = _mean(members)
        found[f"{name}_stderr"] = _standard_error(members)
    return cast("Value", found)


def _fact(one: SampleScore, name: str) -> Any:
    return (one.score.metadata or {}).get(name)


def _grouped(scores: Iterable[SampleScore], fact: str) -> dict[str, list[SampleScore]]:
    found: dict[str, list[SampleScore]] = {}
    for one in scores:
        found.setdefault(str(_fact(one, fact)), []).append(one)
    return found


def _mean(scores: Sequence[SampleScore]) -> float:
    return math.fsum(one.score.as_float() for one in scores) / len(scores)


def _standard_error(scores: Sequence[SampleScore], weights: Mapping[str, float] | None = None) -> float | None:
    """Inspect may hand over scores that somebody has edited, so their range is not checked."""
    import numpy as np  # noqa: PLC0415 - heavy, and not needed to ask

    from arabic_agent_eval.designs import read_design  # noqa: PLC0415

    clusters = [str(_fact(one, "cluster")) for one in scores]
    strata = None if weights is None else [str(_fact(one, "category")) for one in scores]
    values = np.array([one.score.as_float() for one in scores])
    return read_design(len(scores), clusters, strata, weights).standard_error(values)


@scorer(metrics=[overall(), by_category(), by_dialect()])
def canonical(items: str | None = None, language: str = "en") -> Scorer:
    """The grader under the canonical rules; the calls of all turns are graded as one list.

    Args:
        items: for logs of other tasks: the set or file that holds an item for each sample id.
        language: of the explanation: ``en`` or ``ar``.

    Raises:
        DataError: the items cannot be read.
    """
    known = None if items is None else read_items(items)
    declared = None if items is None else find_categories(items)
    categories = {} if declared is None else read_categories(declared)

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001 - the protocol's
        item = _item_of(state, known)
        weight = state.metadata.get("weight") if known is None else None
        weight = weight_of(item.category, categories) if weight is None else weight
        answered = _answered(state)
        result = evaluate_reply(item, answered.reply(item.id, state.epoch - 1))
        facts = {"weight": weight, **_facts(item), "rules": CANONICAL.tag}
        return _score(result, answered, facts, language)

    return score


def _item_of(state: TaskState, known: ItemSet | None) -> Item:
    if known is not None:
        if str(state.sample_id) not in known:
            raise DataError(f"there is no item {str(state.sample_id)!r} among those that were named.")
        return known[str(state.sample_id)]
    if "item" not in state.metadata:
        raise UsageError("the samples of this log hold no items; name the set or file with -S items=PATH.")
    return item_from_row(state.metadata["item"])


def _score(result: Result, answered: Answered, facts: dict[str, Any], language: str) -> Score:
    if result.score is None:
        reason = result.reason or ""
        return Score.unscored(reason="provider_error", explanation=_shown(reason), metadata=facts)
    if not answered.is_raw:
        warn_without_raw()
        facts["warning"] = WITHOUT_RAW
    axes = {axis: value for axis, value in result.score.axes.items() if value is not None}
    losses = [{"cause": one.cause, "axis": one.axis, "points": one.points, "call": one.call, "argument": one.argument}
              for one in result.losses]  # fmt: skip
    return Score(
        value=result.score.total,
        answer=_text([_as_shown(call) for call in result.calls])[:_ANSWER],
        explanation=explain(result, answered.words, language),
        metadata=replace_surrogates(
            {
                **facts,
                "axes": axes,
                "arabic_applicable": result.arabic_applicable,
                "losses": losses,
                "raw_arguments": answered.is_raw,
            }
        ),
    )


def explain(result: Result, said: str = "", language: str = "en") -> str:
    """Where the points of an answer went, a line for each cause of each call and argument.

    Args:
        result: of a reply that was judged.
        said: what the model said; shown where it called nothing.
        language: ``en`` or ``ar``.
    """
    lines: dict[tuple[int | None, str | None, str], list[Loss]] = {}
    for loss in result.losses:
        lines.setdefault((loss.call, loss.argument, loss.cause), []).append(loss)
    found = [_line(losses, language) for losses in lines.values()]
    if said and not result.calls:
        found.append(f"{'قال النموذج' if language == 'ar' else 'The model said'}: {_shown(said)}")
    if not result.losses:
        found.insert(0, "لم تُفقد أي نقطة." if language == "ar" else "No points were lost.")
    return "\n\n".join(found)


def _line(losses: Sequence[Loss], language: str) -> str:
    first, points = losses[0], math.fsum(loss.points for loss in losses)
    call, expected, actual = ("الاستدعاء", "المتوقع", "الفعلي") if language == "ar" else ("call", "expected", "actual")
    place = "" if first.call is None else f", {call} {first.call + 1}"
    place += "" if first.argument is None else f", {_shown(first.argument)}"
    values = [(expected, first.expected), (actual, first.actual)]
    shown = ", ".join(f"{name} {_shown(value)}" for name, value in values if value is not None)
    return f"−{points:.4f} {first.cause}{place}: {words(first.cause, language)}{f' ({shown})' if shown else ''}"


def _as_shown(call: Call) -> dict[str, Any]:
    """A call for people to look at: what could not be read stands as it was sent."""
    if call.error is None:
        return {"function": call.function, "arguments": call.arguments}
    return {"function": call.function, "error": call.error, "sent": call.raw if isinstance(call.raw, str) else None}


def _shown(value: Any) -> str:
    """A value on one line, harmless, cut, and with a direction of its own."""
    text = name_invisible(value if isinstance(value, str) else _text(value), spaces=True)
    cut = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
    return f"{_FIRST_STRONG_ISOLATE}{cut}{_POP_ISOLATE}"


def _text(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (UnicodeEncodeError, OverflowError):
        return str(replace_surrogates(value))
    except RecursionError:
        return "…"
