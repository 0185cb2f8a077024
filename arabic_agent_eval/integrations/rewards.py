"""Rewards for training models to call tools: a function as TRL's GRPO trainer calls it, and one as verl calls it.

    GRPOTrainer(reward_funcs=trl_reward, …)                # TRL; with options: reward_funcs=ToolCallReward(…)
    reward.custom_reward_function.path=pkg://arabic_agent_eval.integrations.rewards        # verl
    reward.custom_reward_function.name=compute_score

A completion is the model's text in any of the notations that are read, or a list of messages with or without parsed
calls; ``evaluate_reply``'s grader decides every score. Neither trainer is imported. Threads and forked processes may
share a reward: an item is compiled once, in bounded caches without locks. ``docs/integrations/rewards.md`` says more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import repeat
from pathlib import Path
from typing import Any

import msgspec

from arabic_agent_eval.bundled import find_items
from arabic_agent_eval.errors import DataError, UsageError
from arabic_agent_eval.files import json_type
from arabic_agent_eval.formats import Reply, read_calls, words_of
from arabic_agent_eval.integrations.handover import DEFAULT_CATEGORY
from arabic_agent_eval.items import Item, ItemSet, item_from_row
from arabic_agent_eval.rules import CANONICAL, Rules
from arabic_agent_eval.scoring import Grader, Score
from arabic_agent_eval.strictjson import MalformedJSON, decode
from arabic_agent_eval.tools import Call

_LOGGED = ("function_selection", "argument_accuracy", "arabic_preservation")
_FIELDS = ("category", "ordered", "available_functions", "tools")
_KEPT = 4096

_Column = Sequence[Any] | None
_Written = str | bytes | None
"""A field of a row as JSON text, by which its compiled item is found again; None where there is none."""


class ToolCallReward:
    """A reward for the calls in completions: the weighted total, 0 to 1, as ``aae grade`` gives it.

    Args:
        items: where the right calls are, if they are not in the dataset: the name of a bundled set, a file of items,
            an ``ItemSet``, or items. The column ``item_id`` (or ``id``) of the dataset then names each row's item.
        strict: 1.0 where every axis is 1, and 0.0 everywhere else.
        rules: the rule set.
        column: the column that holds the right calls.
        name: what TRL calls this reward in its logs; two rewards need two names.
        kept: so many compiled items are kept, those that were used last.

    Raises:
        DataError: the items cannot be read.
    """

    def __init__(
        self,
        items: str | Path | Iterable[Item] | ItemSet | None = None,
        *,
        strict: bool = False,
        rules: Rules = CANONICAL,
        column: str = "expected_calls",
        name: str = "tool_calls",
        kept: int = _KEPT,
    ) -> None:
        self.__name__ = name
        self.strict = strict
        self.rules = rules
        self.column = column
        self.items = _read_items(items)
        self._kept = kept
        self._grader_of_item = lru_cache(kept)(partial(_compile_item, self.items, rules))
        self._grader_of_row = lru_cache(kept)(partial(_compile_row, rules))

    def __reduce__(self) -> tuple[Any, ...]:
        options = {name: getattr(self, name) for name in ("strict", "rules", "column")}
        items = None if self.items is None else list(self.items.values())
        return partial(ToolCallReward, **options, name=self.__name__, kept=self._kept), (items,)

    def __call__(
        self,
        completions: Sequence[Any],
        item_id: _Column = None,
        *,
        log_metric: Callable[[str, float], None] | None = None,
        log_extra: Callable[[str, list[Any]], None] | None = None,
        **columns: Any,
    ) -> list[float | None]:
        """The reward of each completion, as TRL asks for it.

        Args:
            completions: texts, or lists of messages; nothing that they hold raises.
            item_id: the id of the item of each, where the reward has items.
            log_metric: receives the mean of each axis, and the share of completions with every axis 1.
            log_extra: receives the axes of every completion, for TRL's table of completions.
            columns: the columns of the dataset. Those that say what is right are named as the fields of an item:
                ``expected_calls`` (or as ``column`` says), ``category``, ``ordered``, and ``available_functions`` or
                ``tools``; each value is JSON text or what that text means. All others are ignored.

        Returns:
            A number for each completion; None where its row says nothing about what is right.

        Raises:
            DataError: the right calls of a row are none, or there is no item of that id.
            UsageError: a column has another length than the completions.
        """
        ids = item_id if item_id is not None else columns.get("id")
        named = [ids, columns.get(self.column), *map(columns.get, _FIELDS)]
        rows = zip(*[_column(one, len(completions)) for one in named], strict=False)
        scores = [
            None if (grader := self._grader(row)) is None else _score(grader, completion)
            for completion, row in zip(completions, rows, strict=False)
        ]
        if log_metric is not None:
            self._log_means(log_metric, [score for score in scores if score is not None])
        if log_extra is not None:
            for axis in _LOGGED:
                log_extra(
                    f"{self.__name__}/{axis}", [None if score is None else getattr(score, axis) for score in scores]
                )
        return [None if score is None else self.reward(score) for score in scores]

    def score(self, completion: Any, *, item_id: Any = None, **row: Any) -> Score | None:
        """The axes of one completion; arguments and errors as those of a call, one value instead of each column.

        None where the row says nothing about what is right.
        """
        grader = self._grader((item_id, row.get(self.column), *map(row.get, _FIELDS)))
        return None if grader is None else _score(grader, completion)

    def reward(self, score: Score) -> float:
        """The reward that a score earns: its total, or 1.0 or 0.0 where the reward is strict."""
        return float(score.exact) if self.strict else score.total

    def _grader(self, row: tuple[Any, ...]) -> Grader | None:
        item_id, expected, *fields = row
        if self.items is not None and item_id is not None:
            return self._grader_of_item(str(item_id))
        if expected is None:
            return None
        return self._grader_of_row(_written(expected), *map(_written, fields))

    def _log_means(self, log: Callable[[str, float], None], scores: Sequence[Score]) -> None:
        if not scores:
            return
        for axis in _LOGGED:
            log(f"{self.__name__}/{axis}", math.fsum(getattr(score, axis) for score in scores) / len(scores))
        log(f"{self.__name__}/exact", sum(score.exact for score in scores) / len(scores))


def _column(values: _Column, length: int) -> Iterable[Any]:
    if values is None:
        return repeat(None, length)
    if len(values) != length:
        raise UsageError(f"there are {length} completions, but a column with {len(values)} values.")
    return values


# --- the two trainers ----------------------------------------------------------------------------------------


@lru_cache(8)
def _shared(items: str | None, strict: bool) -> ToolCallReward:  # noqa: FBT001 - a key of the cache
    return ToolCallReward(items, strict=strict, name="trl_reward")


def trl_reward(completions: Sequence[Any], **columns: Any) -> list[float | None]:
    """The weighted total of each completion, for ``GRPOTrainer(reward_funcs=trl_reward)``.

    The right calls stand in the column ``expected_calls`` of the dataset. It is ``ToolCallReward()``, which takes
    options and describes the arguments.

    >>> right = '[{"function": "get_time", "arguments": {"city": "مكة"}}]'
    >>> text = '<tool_call>{"name": "get_time", "arguments": {"city": "مكه"}}</tool_call>'
    >>> [round(reward, 4) for reward in trl_reward([text, "لا أعرف"], expected_calls=[right, right])]
    [0.965, 0.0]
    """
    return _shared(None, strict=False)(completions, **columns)


def compute_score(
    data_source: Any,  # noqa: ARG001 - the trainer's
    solution_str: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None = None,
    *,
    strict: bool = False,
    items: str | None = None,
    **kwargs: Any,  # noqa: ARG001 - the trainer's
) -> dict[str, float]:
    """The reward of one completion, for verl's ``custom_reward_function``.

    Args:
        data_source: the name of the data set; it decides nothing.
        solution_str: the completion.
        ground_truth: the right calls, as JSON text or as what it means; unused where ``items`` names the item.
        extra_info: may hold ``item_id``, and ``category``, ``ordered``, ``available_functions`` or ``tools``.
        strict: 1.0 where every axis is 1, and 0.0 everywhere else; set it in ``reward_kwargs``.
        items: a bundled set or a file of items; ``extra_info["item_id"]`` (or ``id``) then names the item.
        kwargs: what verl may add.

    Returns:
        ``score``, which trains, and for verl's logs the three axes, ``total``, and ``acc``: 1.0 where every axis is 1.

    Raises:
        DataError: nothing says which calls are right.

    >>> compute_score("mine", "لا أعرف", "[]")["score"]
    1.0
    """
    reward = _shared(items, strict=strict)
    extra = extra_info or {}
    item_id = extra.get("item_id", extra.get("id")) if items is not None else None
    fields = {field: extra.get(field) for field in _FIELDS}
    score = reward.score(solution_str, item_id=item_id, expected_calls=ground_truth, **fields)
    if score is None:
        raise DataError("nothing says which calls are right.", field="ground_truth", remedy=_REMEDY)
    axes = {axis: getattr(score, axis) for axis in _LOGGED}
    return {"score": reward.reward(score), **axes, "total": score.total, "acc": float(score.exact)}


# --- what is right -------------------------------------------------------------------------------------------

_REMEDY = "Write a list of calls with 'function' and 'arguments', best as JSON text, and [] where none is right."


def _read_items(items: str | Path | Iterable[Item] | ItemSet | None) -> ItemSet | None:
    if items is None:
        return None
    if isinstance(items, str | Path):
        return ItemSet.read(find_items(str(items)))
    found = items if isinstance(items, ItemSet) else ItemSet(items)
    len(found)  # a set that is still being read cannot be shared by threads
    return found


def _compile_item(items: ItemSet | None, rules: Rules, item_id: str) -> Grader:
    if items is None or item_id not in items:
        raise DataError(f"there is no item {item_id!r} among those that were named.", field="item_id")
    return Grader(items[item_id], rules)


def _compile_row(
    rules: Rules, expected: _Written, category: _Written, ordered: _Written, names: _Written, tools: _Written
) -> Grader | None:
    """The grader of a row of a dataset; None where it says nothing about what is right."""
    value = _read(expected, "expected_calls")
    if value is None:
        return None
    row: dict[str, Any] = {"id": "", "category": DEFAULT_CATEGORY}
    if isinstance(value, dict) and "expected_calls" in value:  # a whole item
        row |= {field: value[field] for field in _FIELDS if value.get(field) is not None}
        value = value["expected_calls"]
    given = {"category": category, "ordered": _read(ordered, "ordered"), "tools": _read(tools, "tools"),
             "available_functions": _read(names, "available_functions")}  # fmt: skip
    row |= {field: one for field, one in given.items() if one is not None}
    calls = [value] if isinstance(value, dict) else value
    if not isinstance(calls, list):
        what = f"the right calls must be a list, not {json_type(calls)}."
        raise DataError(what, field="expected_calls", remedy=_REMEDY)
    row["expected_calls"] = [_right_call(call, place) for place, call in enumerate(calls)]
    return Grader(item_from_row(row), rules)


def _right_call(entry: Any, place: int) -> dict[str, Any]:
    """An expected call in the shape of an item; calls of OpenAI's shape are taken too."""
    [call] = read_calls(Reply("", "calls", [entry]))
    if call.function is None or call.error is not None:
        raise DataError("this is no call.", field=f"expected_calls[{place}]", remedy=_REMEDY)
    # A table pads what a row does not use with nulls.
    accept = {name: values for name, values in (entry.get("accept") or {}).items() if values is not None}
    return {"function": call.function, "arguments": call.arguments, "accept": accept or None}


def _plain(value: Any) -> Any:
    """What a table of numbers or of objects makes of JSON values, as such values again."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError


_encode = msgspec.json.Encoder(enc_hook=_plain).encode


def _written(value: Any) -> _Written:
    if value is None or isinstance(value, str):
        return None if value is None else str(value)
    try:
        return _encode(value)
    except (TypeError, ValueError, RecursionError):
        raise DataError(f"a column holds a {type(value).__name__}, which is no JSON value.", remedy=_REMEDY) from None


def _read(text: _Written, field: str) -> Any:
    if text is None:
        return None
    try:
        return decode(text)
    except MalformedJSON as error:
        raise DataError(f"the column cannot be read: {error}.", field=field, remedy=_REMEDY) from None


# --- what a completion calls ---------------------------------------------------------------------------------


def _score(grader: Grader, completion: Any) -> Score | None:
    reply: Reply | str = completion
    if type(completion) is not str:
        reply = Reply("", "calls", list(_calls_of(completion, grader)))
    return grader.evaluate(reply, causes=False).score


def _calls_of(completion: Any, grader: Grader) -> Iterator[Call]:
    """The calls of all turns of the model as one list; what tools answered in between is no call."""
    if isinstance(completion, str):
        yield from read_calls(Reply("", "text", str(completion)), grader.offered)
        return
    for message in [completion] if isinstance(completion, Mapping) else _entries(completion):
        if isinstance(message, Mapping) and message.get("role", "assistant") == "assistant":
            made = message.get("tool_calls")
            if isinstance(made, list | tuple) and made:
                yield from read_calls(Reply("", "tool_calls", made))
            else:
                words = words_of({"content": message.get("content")})
                yield from read_calls(Reply("", "text", words), grader.offered)


def _entries(completion: Any) -> Sequence[Any]:
    return completion if isinstance(completion, list | tuple) else ()
