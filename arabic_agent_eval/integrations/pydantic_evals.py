"""pydantic-evals: the item sets as datasets, and the grader as an evaluator.

    report = dataset("starter").evaluate_sync(ask)        # ask(question) → calls, a message, text, …

Every case is asked as ``aae run`` asks it, and judged by ``evaluate_reply``. ``docs/integrations/pydantic_evals.md``
says more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from arabic_agent_eval._version import __version__
from arabic_agent_eval.asking import SYSTEM_PROMPT, Offer, ToolLanguage, request_for
from arabic_agent_eval.bundled import find_categories, find_items, find_tools, is_bundled
from arabic_agent_eval.causes import words
from arabic_agent_eval.errors import MissingExtra
from arabic_agent_eval.integrations.explanations import explain
from arabic_agent_eval.integrations.handover import DEFAULT_CATEGORY, item_of, reply_of, words_in
from arabic_agent_eval.items import ItemSet, read_categories
from arabic_agent_eval.models.model import Settings
from arabic_agent_eval.models.openai_chat import OpenAIChat
from arabic_agent_eval.scoring import (
    CANONICAL,
    CategoryScore,
    Loss,
    Score,
    compute_overall_score,
    evaluate_reply,
    grade,
)
from arabic_agent_eval.summary import NO_DIALECT, weight_of
from arabic_agent_eval.tools import Toolbox
from arabic_agent_eval.world import is_conversation

try:
    from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.tools import DeferredToolRequests
    from pydantic_evals import Case, Dataset
    from pydantic_evals.evaluators import (
        EvaluationReason,
        Evaluator,
        EvaluatorContext,
        ReportEvaluator,
        ReportEvaluatorContext,
    )
    from pydantic_evals.reporting import ReportCase
    from pydantic_evals.reporting.analyses import ReportAnalysis, ScalarResult, TableResult
except ImportError:
    raise MissingExtra(
        'This needs pydantic-evals, 2.62 or later; install it with: pip install "arabic-agent-eval[pydantic-evals]"'
    ) from None

_MEASURED = ("function_selection", "argument_accuracy", "arabic_preservation")
NOTHING_LOST = "none"
"""The label ``cause`` of an answer that lost nothing."""


Question = dict[str, Any]
"""What a case asks, as OpenAI's Chat Completions take it: ``create(model=…, **question)``.

``messages`` are the system prompt with the item's context, earlier turns, and the instruction; ``tools``, the offered
ones, are absent where there are none.
"""


def dataset(
    items: str | Path,
    tools: str | None = None,
    *,
    tool_language: ToolLanguage = "both",
    system: str = SYSTEM_PROMPT,
    conversations: bool = False,
    language: str = "both",
) -> Dataset[Question, Any, dict[str, Any]]:
    """The items of a set as cases, with the evaluators that judge them.

    Args:
        items: the name of a bundled set, or a file of items.
        tools: the tool registry; by default the one beside the items.
        tool_language: in which language the tools are described: ``ar``, ``en`` or ``both``.
        system: the system prompt; the context of each item is added to it.
        conversations: whether to ask the items, too, whose right calls cannot all be known before tools have answered.
        language: of the reasons: ``en``, ``ar`` or ``both``.

    Raises:
        DataError: the items or tools cannot be read.
        UnknownCategory: an item's category has no weight.
        UsageError: there is no such language.
    """
    path, offer = find_items(str(items)), Offer(Toolbox.read(find_tools(str(items), tools)), tool_language)
    found = ItemSet.read(path, name=str(items) if is_bundled(path) else None)
    declared = find_categories(str(items))
    categories = {} if declared is None else read_categories(declared)
    cases: list[Case[Question, Any, dict[str, Any]]] = []
    for item in found.values():
        if conversations or not is_conversation(item):
            body = OpenAIChat().body(request_for(item, offer, system=system), Settings(""))
            del body["model"]
            row = msgspec.to_builtins(item)
            cases.append(
                Case(
                    name=item.id,
                    inputs=body,
                    expected_output=row["expected_calls"],
                    metadata=row | {"weight": weight_of(item.category, categories)},
                )
            )
    made = Dataset[Question, Any, dict[str, Any]]  # named in full, or it could not be written to a file
    return made(name=found.name, cases=cases, evaluators=[ToolCalls(language)], report_evaluators=[Overall()])


@dataclass
class ToolCalls(Evaluator[Any, Any, Any]):
    """The grader under the canonical rules: ``score``, its axes, ``exact``, and ``cause``, which cost most.

    A case says in its metadata what is right, with the fields of an item: ``expected_calls`` (or the case's
    ``expected_output``), and perhaps ``category``, ``ordered`` or ``available_functions``. An output is a list of
    calls, a row of a file of replies, a message, raw text, or what pydantic-ai gives: parts, messages, or
    ``DeferredToolRequests``. An answer that the provider failed to give has no score, and the label ``status`` says so.

    Attributes:
        language: of the reasons: ``en``, ``ar`` or ``both``.
    """

    language: str = "both"

    def evaluate(self, ctx: EvaluatorContext[Any, Any, Any]) -> dict[str, Any]:
        """Judge one answer.

        Raises:
            DataError: the case does not say what is right.
            UsageError: the output is no answer.
        """
        gold = dict(ctx.metadata) if isinstance(ctx.metadata, Mapping) else {}
        if gold.get("expected_calls") is None:
            gold["expected_calls"] = ctx.expected_output
        item = item_of(gold, ctx.name or "")
        output = answer_of(ctx.output)
        result = evaluate_reply(item, reply_of(output, item.id))
        reason = explain(item, result, self.language, said=words_in(output))
        if result.score is None:
            return {"status": EvaluationReason("unscored", reason)}
        found: dict[str, Any] = {"score": EvaluationReason(result.score.total, reason)}
        found |= {axis: value for axis, value in result.score.axes.items() if value is not None}
        found["exact"] = EvaluationReason(result.score.exact, reason)
        found["cause"] = _cause(result.losses)
        found["status"] = "scored"
        return found

    def get_evaluator_version(self) -> str:
        """The version of this package and of its rules."""
        return f"{__version__} {CANONICAL.tag}"


def answer_of(output: Any) -> Any:
    """An output with pydantic-ai's own values as plain calls or text; the calls of all turns are one list."""
    if isinstance(output, DeferredToolRequests):
        output = [*output.calls, *output.approvals]
    if not isinstance(output, list | tuple):
        return output
    parts: list[Any] = []
    for entry in output:
        parts.extend(entry.parts if isinstance(entry, ModelResponse) else [entry])
    if len(parts) == len(output) and not any(isinstance(part, ToolCallPart) for part in parts):
        return output
    calls = [
        {"function": part.tool_name, "arguments": part.args} if isinstance(part, ToolCallPart) else part
        for part in parts
        if isinstance(part, ToolCallPart) or not (hasattr(part, "part_kind") or isinstance(part, ModelRequest))
    ]
    return calls or "".join(part.content for part in parts if isinstance(part, TextPart))


def _cause(losses: Iterable[Loss]) -> EvaluationReason:
    """The cause that cost most, and all of them in words."""
    points: dict[str, float] = {}
    for loss in losses:
        points[loss.cause] = points.get(loss.cause, 0.0) + loss.points
    if not points:
        return EvaluationReason(NOTHING_LOST)
    told = [f"{cause}: {words(cause)} {words(cause, 'ar')}" for cause in points]
    return EvaluationReason(max(points, key=lambda cause: points[cause]), "\n".join(told))


# --- the whole report ----------------------------------------------------------------------------------------


@dataclass
class Overall(ReportEvaluator[Any, Any, Any]):
    """The overall score as ``aae grade`` gives it, categories weighted, and the means by category and dialect.

    It reads what :class:`ToolCalls` found. With ``repeat`` the answers to a case are averaged first.
    """

    def evaluate(self, ctx: ReportEvaluatorContext[Any, Any, Any]) -> list[ReportAnalysis]:
        """Sum up a report; nothing where no answer was judged.

        Raises:
            UnknownCategory: a category has no weight, and the metadata of its cases names none.
        """
        cases: dict[str, list[ReportCase[Any, Any, Any]]] = {}
        for case in ctx.report.cases:
            if all(axis in case.scores for axis in _MEASURED):
                cases.setdefault(case.source_case_name or case.name, []).append(case)
        if not cases:
            return []
        judged = {name: (_facts(answers[0]), _score(name, answers)) for name, answers in cases.items()}
        categories = _grouped((facts["category"], score) for facts, score in judged.values())
        weights = {facts["category"]: facts["weight"] for facts, _ in judged.values()}
        overall = compute_overall_score(CategoryScore(name, scores, weights[name]) for name, scores in categories)
        given, answers = sum(map(len, cases.values())), len(ctx.report.cases) + len(ctx.report.failures)
        return [
            ScalarResult(
                title="Overall score",
                value=overall,
                description=f"Grade {grade(overall)}; {given:,} of {answers:,} answers judged; rules {CANONICAL.tag}",
            ),
            _table("Category", categories),
            _table("Dialect", _grouped((facts["dialect"], score) for facts, score in judged.values())),
        ]


def _facts(case: ReportCase[Any, Any, Any]) -> dict[str, Any]:
    metadata = case.metadata if isinstance(case.metadata, Mapping) else {}
    category = str(metadata.get("category") or DEFAULT_CATEGORY)
    weight = metadata.get("weight")
    return {
        "category": category,
        "dialect": str(metadata.get("dialect") or NO_DIALECT),
        "weight": weight_of(category, {}) if weight is None else weight,
    }


def _score(name: str, answers: list[ReportCase[Any, Any, Any]]) -> Score:
    """The mean of the answers to one item: a total is linear in the axes."""
    means = (math.fsum(case.scores[axis].value for case in answers) / len(answers) for axis in _MEASURED)
    return Score(name, _facts(answers[0])["category"], *means)


def _grouped(scores: Iterable[tuple[str, Score]]) -> list[tuple[str, list[Score]]]:
    found: dict[str, list[Score]] = {}
    for name, score in scores:
        found.setdefault(name, []).append(score)
    return list(found.items())


def _table(title: str, groups: list[tuple[str, list[Score]]]) -> TableResult:
    rows: list[list[str | int | float | bool | None]] = [
        [name, len(scores), CategoryScore(name, scores).avg_total] for name, scores in groups
    ]
    return TableResult(title=title, columns=[title, "n", "score"], rows=rows)
