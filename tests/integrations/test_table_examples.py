"""The examples of DuckDB and Polars on the page about Arrow print what the page says."""

from __future__ import annotations

import doctest

import pytest

from arabic_agent_eval.batch import signature_of
from arabic_agent_eval.bundled import find_items, find_replies
from arabic_agent_eval.items import ItemSet
from arabic_agent_eval.ranges import Options
from arabic_agent_eval.rules import CANONICAL
from tests.pages import DOCS
from tests.test_docs import blocks

pytest.importorskip("pyarrow", reason="blocks need the extra 'arrow'")

from arabic_agent_eval.integrations.blocks import BlockGrader, Task, blocks_of, prepare

PAGE = DOCS / "integrations" / "arrow.md"


@pytest.fixture
def graded(tmp_path, monkeypatch):
    """The current folder, with the sample set graded in it."""
    items = ItemSet.read(find_items("sample"), name="sample")
    task = Task(find_items("sample"), "sample", signature_of(items, CANONICAL, "auto"), Options(), tmp_path / "graded")
    parts = blocks_of(find_replies("sample"), "replies.jsonl")
    prepare(tmp_path / "graded", parts)
    for part in parts:
        BlockGrader(task).grade(part)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("package", ["duckdb", "polars"])
def test_examples_print_what_the_page_says(package, graded):
    """The block of each package, run on the graded sample, prints what stands below it."""
    pytest.importorskip(package, reason="only its example needs it")
    (found,) = [(line, source) for line, source in blocks(PAGE, "py") if f"import {package}" in source]
    problems: list[str] = []

    test = doctest.DocTestParser().get_doctest(found[1], {}, PAGE.name, str(PAGE), found[0])
    doctest.DocTestRunner().run(test, out=problems.append)

    assert "".join(problems) == ""
