"""The public face: names, signatures and types that callers and the specification rely on."""

from __future__ import annotations

import ast
import dataclasses
import doctest
import importlib
import inspect
from importlib.resources import files
from pathlib import Path

import pytest

import arabic_agent_eval
from arabic_agent_eval import scoring

MODULES = ["arabic_agent_eval", "arabic_agent_eval.scoring"]


@pytest.mark.parametrize("name", MODULES)
def test_all_is_sorted_and_complete(name):
    """``__all__`` is in order, names each public thing once, and each is there."""
    module = importlib.import_module(name)

    constants = [found for found in module.__all__ if found.isupper()]
    classes = [found for found in module.__all__ if found[0].isupper() and not found.isupper()]
    others = [found for found in module.__all__ if not found[0].isupper()]
    assert module.__all__ == sorted(constants) + sorted(classes) + sorted(others)
    assert len(set(module.__all__)) == len(module.__all__)
    assert all(hasattr(module, found) for found in module.__all__)


@pytest.mark.parametrize("name", MODULES)
def test_everything_imported_by_a_star_is_documented(name):
    """A star import gives just the public names, and each class and function among them has a docstring."""
    space: dict = {}
    exec(f"from {name} import *", space)
    space.pop("__builtins__")

    assert set(space) == set(importlib.import_module(name).__all__)
    for found in space.values():
        assert not callable(found) or inspect.getdoc(found)


def test_public_names_of_the_package_are_those_it_imports():
    """What ``__init__`` imports for type checkers is what it loads when asked, and all of it stands in ``__all__``."""
    tree = ast.parse(inspect.getsource(arabic_agent_eval))
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    homes = {
        name.name: node.module.removeprefix("arabic_agent_eval.")
        for node in froms
        if node.module.startswith("arabic_agent_eval.")
        for name in node.names
    }

    assert set(homes) == set(arabic_agent_eval.__all__)
    assert {name: homes[name] for name in arabic_agent_eval._HOMES} == arabic_agent_eval._HOMES


def test_an_unknown_name_of_the_package_is_refused():
    """A name that is not there is an AttributeError that says so."""
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        arabic_agent_eval.nothing  # noqa: B018


def test_both_faces_show_the_same_things():
    """A name that stands in both modules is the same object in both."""
    shared = set(arabic_agent_eval.__all__) & set(scoring.__all__)

    assert len(shared) >= 15
    assert all(getattr(arabic_agent_eval, name) is getattr(scoring, name) for name in shared)


SIGNATURES = {
    "normalize_arabic": "(text: str) -> str",
    "grade": "(score: float) -> str",
    "compute_overall_score": "(category_scores: Iterable[CategoryScore]) -> float",
    "CategoryScore": "(category: str, scores: Iterable[Score], weight: float | None = None) -> None",
    "score_function_call": """(
        expected_fn: str | None, actual_fn: str | None, expected_args: Mapping[str, Any] | None, actual_args: Any = None
    ) -> tuple[float, float, float]""",
    "score_calls": """(
        expected: Sequence[Call | ExpectedCall | Mapping[str, Any]], actual: Sequence[Call | Mapping[str, Any]], *,
        category: str, item_id: str = '', ordered: bool = True, rules: Rules = CANONICAL
    ) -> Score""",
    "evaluate_reply": "(item: Item, reply: Reply | str, *, rules: Rules = CANONICAL, causes: bool = True) -> Result",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures(name):
    """The names of the specification, and the door, have exactly these parameters and results."""
    shown = str(inspect.signature(getattr(scoring, name))).replace(repr(scoring.CANONICAL), "CANONICAL")

    wanted = " ".join(SIGNATURES[name].split()).replace("( ", "(").replace(" )", ")")
    assert shown.replace("'", "") == wanted.replace("'", "")


def test_positional_use_of_the_specification():
    """The specification's four parameters are given by position."""
    assert scoring.score_function_call("f", "f", {"a": "مكة"}, {"a": "مكه"}) == (1.0, 0.9, 1.0)


def test_fields_of_a_score():
    """The fields of a score, in their order, and what they are by default."""
    fields = {field.name: field.default for field in dataclasses.fields(scoring.Score)}

    assert fields == {
        "item_id": dataclasses.MISSING,
        "category": dataclasses.MISSING,
        "function_selection": dataclasses.MISSING,
        "argument_accuracy": dataclasses.MISSING,
        "arabic_preservation": 0.0,
        "dialect_understanding": None,
        "error_handling": None,
    }
    assert isinstance(scoring.Score.total, property)


def test_attributes_of_a_category_score():
    """A category's score has its name, weight, scores and averages."""
    found = scoring.CategoryScore("multi_step", [scoring.Score("1", "multi_step", 1.0, 1.0, 1.0)])

    for name in ("category", "weight", "scores", "count", "avg_total", "avg_function_selection",
                 "avg_argument_accuracy", "avg_arabic_preservation", "avg_dialect_understanding",
                 "avg_error_handling"):  # fmt: skip
        assert hasattr(found, name)


def test_package_is_typed():
    """Type checkers read the package's annotations."""
    assert files("arabic_agent_eval").joinpath("py.typed").is_file()
    for name in scoring.__all__:
        found = getattr(scoring, name)
        if inspect.isfunction(found):
            assert "return" in found.__annotations__, name


PACKAGE = Path(scoring.__file__).parent
EXAMPLES = [path for path in sorted(PACKAGE.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_docstring_examples_are_true(path):
    """The examples in docstrings give what they show."""
    name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
    found = doctest.testmod(importlib.import_module(f"arabic_agent_eval.{name}"))

    assert found.failed == 0
    assert found.attempted
