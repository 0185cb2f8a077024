"""Exceptions: what they say, where they say it happened, and how they travel."""

from __future__ import annotations

import pickle

import pytest

from arabic_agent_eval import errors
from arabic_agent_eval.errors import (
    DataError,
    EvalError,
    MissingExtra,
    OutputError,
    UnknownCategory,
    UnknownFormat,
    UsageError,
)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (DataError("wrong."), "wrong."),
        (DataError("wrong.", path="a.jsonl"), "a.jsonl: wrong."),
        (DataError("wrong.", path="a.jsonl", line=3), "a.jsonl, line 3: wrong."),
        (DataError("wrong.", path="a.jsonl", line=3, field="id"), "a.jsonl, line 3, field 'id': wrong."),
        (DataError("wrong.", field="id"), "field 'id': wrong."),
        (DataError("wrong.", line=0), "line 0: wrong."),
        (DataError("خطأ.", path="ملف.jsonl", remedy="أصلحه."), "ملف.jsonl: خطأ. أصلحه."),
    ],
)
def test_data_error_says_place_fault_and_remedy(error, expected):
    """The message leads with as much of the place as is known and ends with what to do."""
    assert str(error) == expected


def test_place_is_filled_in_once():
    """A place that is known stays; what is missing is filled in, and the first error is left as it was."""
    error = DataError("wrong.", line=2, field="id", remedy="Mend it.")

    placed = error.at("a.jsonl", 9)

    assert (placed.path, placed.line, placed.field, placed.remedy) == ("a.jsonl", 2, "id", "Mend it.")
    assert placed.at("b.jsonl", 1).path == "a.jsonl"
    assert error.path is None
    assert DataError("wrong.").at(line=7).line == 7


def test_data_error_survives_a_worker_process():
    """An error that was pickled says the same as before."""
    error = DataError("wrong.", path="a.jsonl", line=3, field="id", remedy="Mend it.")

    again = pickle.loads(pickle.dumps(error))

    assert type(again) is DataError
    assert str(again) == str(error)
    assert vars(again) == vars(error)


@pytest.mark.parametrize(
    ("kind", "also"),
    [
        (DataError, ValueError),
        (UsageError, ValueError),
        (UnknownCategory, UsageError),
        (UnknownFormat, UsageError),
        (OutputError, OSError),
        (MissingExtra, ImportError),
    ],
)
def test_tree(kind, also):
    """Each exception can be caught as the package's own, as Python's kind, and by the tree in the docstring."""
    assert issubclass(kind, EvalError)
    assert issubclass(kind, also)
    assert kind.__name__ in (errors.__doc__ or "")


def test_every_exception_is_in_the_tree():
    """The docstring draws every exception that the module defines."""
    kinds = [
        name for name, found in vars(errors).items() if isinstance(found, type) and found.__module__ == errors.__name__
    ]

    assert len(kinds) == 7
    assert all(name in (errors.__doc__ or "") for name in kinds)


def test_output_error_is_one_sentence():
    """The message of an output error is its text, without the numbers that Python adds to system errors."""
    assert str(OutputError("the disk is full.")) == "the disk is full."
    assert str(OutputError("the disk is full.", 28)) == "the disk is full."
