"""What other tools hand over: an output in whatever shape they keep answers, and the gold beside it.

Every door reads both here, so that an answer is the same reply and an item the same item whichever door it comes by.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from arabic_agent_eval.errors import DataError, UsageError
from arabic_agent_eval.files import json_type
from arabic_agent_eval.formats import Reply, read_reply, reply_text, words_of
from arabic_agent_eval.items import Item, item_from_row

DEFAULT_CATEGORY = "simple_function_calling"
"""The category of a gold that names none; its weights are the standard ones."""

_IDS = ("custom_id", "item_id", "id")
_REMEDY = "Write a list of calls with 'function' and 'arguments', and [] where no call is right."


def reply_of(output: Any, item_id: str = "") -> Reply:
    """The reply that an output is.

    Args:
        output: a list of calls, a row of a file of replies, an assistant's message, or the raw text of the model.
        item_id: whose answer it is, where the output does not say so itself.

    Raises:
        DataError: a mapping that holds no answer.
        UsageError: it is nothing of all that.
    """
    if isinstance(output, Reply):
        return output
    if isinstance(output, str):
        return reply_text(output, item_id)
    if isinstance(output, Mapping):
        named = any(output.get(field) is not None for field in _IDS)
        return read_reply(output if named else {**output, "id": item_id})
    if isinstance(output, list | tuple):
        return Reply(item_id, "calls", list(output))
    raise UsageError(
        f"an answer is a list of calls, a row of a file of replies, a message or text, not {_kind(output)}."
    )


def words_in(output: Any) -> str:
    """What an output says in words; empty where it says nothing."""
    if isinstance(output, str):
        return output
    return words_of(output) if isinstance(output, Mapping) else ""


def item_of(gold: Any, item_id: str) -> Item:
    """The item that a mapping with the fields of an item describes.

    Args:
        gold: ``expected_calls`` must be there; every other field of an item may be.
        item_id: the item's id, unless the mapping has one.

    Raises:
        DataError: it describes no item; the message names the field.
    """
    if not isinstance(gold, Mapping) or gold.get("expected_calls") is None:
        raise DataError("nothing says which calls are right.", field="expected_calls", remedy=_REMEDY)
    return item_from_row({"id": item_id, "category": DEFAULT_CATEGORY, **gold})


def _kind(value: Any) -> str:
    if value is None or isinstance(value, bool | int | float):
        return json_type(value)
    return f"a {type(value).__name__}"
