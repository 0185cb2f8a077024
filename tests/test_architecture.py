"""How the house is built: sizes, floors, light imports, docstrings, and Arabic written as itself."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

import arabic_agent_eval

PACKAGE = Path(arabic_agent_eval.__file__).parent
ROOT = Path(__file__).parents[1]
SOURCES = sorted(PACKAGE.rglob("*.py"))
HEAVY = {
    "altair",
    "hijridate",
    "httpx2",
    "jsonschema",
    "numpy",
    "pandas",
    "pyarrow",
    "rapidfuzz",
    "ray",
    "rich",
    "scipy",
    "typer",
}


def named(paths: list[Path]) -> list:
    """Files as parameters that are named by their place in the project."""
    return [
        pytest.param(path, id=str(path.relative_to(ROOT if path.is_relative_to(ROOT) else PACKAGE))) for path in paths
    ]


def parse(path: Path) -> ast.Module:
    """The syntax tree of a source file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def loaded_by(statement: str) -> set[str]:
    """The top-level modules that a fresh interpreter has loaded after a statement."""
    code = f"import sys; {statement}; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8")
    return {name.partition(".")[0] for name in run.stdout.split()}


@pytest.mark.parametrize("path", named(SOURCES))
def test_files_are_short(path):
    """No source file has more than 500 lines."""
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 500


@pytest.mark.parametrize("path", named(SOURCES))
def test_functions_are_short(path):
    """No function is longer than 60 lines, its docstring aside."""
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            lines = body[-1].end_lineno - body[0].lineno + 1 if body else 0
            assert lines <= 60, f"{node.name} has {lines} lines"


@pytest.mark.parametrize("module", ["arabic_agent_eval", "arabic_agent_eval.scoring", "arabic_agent_eval.items"])
def test_grading_loads_nothing_heavy(module):
    """Importing the grader loads neither clients, tables, terminals nor numerics."""
    assert not loaded_by(f"import {module}") & HEAVY


def test_one_call_is_graded_without_anything_heavy():
    """Scoring calls in order, without causes, loads nothing heavy either."""
    call = '[{"function": "f", "arguments": {"a": "x"}}]'

    loaded = loaded_by(f"from arabic_agent_eval.scoring import score_calls; score_calls({call}, {call}, category='x')")
    assert not loaded & HEAVY


def test_imports_point_down(tmp_path):
    """The floors of the house are kept: import-linter finds no import that points up."""
    command = shutil.which("lint-imports", path=str(Path(sys.executable).parent)) or shutil.which("lint-imports")
    if command is None:
        pytest.skip("import-linter is not installed")

    run = subprocess.run(
        [command, "--config", str(ROOT / "pyproject.toml"), "--cache-dir", str(tmp_path)],
        capture_output=True, text=True, check=False, encoding="utf-8", cwd=ROOT,
    )  # fmt: skip

    assert run.returncode == 0, run.stdout + run.stderr
    assert "1 kept, 0 broken" in run.stdout


def definitions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    """The public classes, functions and methods of a module, by their dotted names; not those inside functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if child.name.startswith("_"):
                continue
            yield prefix + child.name, child
            if isinstance(child, ast.ClassDef):
                yield from definitions(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.If | ast.Try):
            yield from definitions(child, prefix)


@pytest.mark.parametrize("path", named(SOURCES))
def test_everything_public_has_a_docstring(path):
    """Each module, public class, function and method says what it means."""
    tree = parse(path)

    assert ast.get_docstring(tree)
    assert [name for name, node in definitions(tree) if not ast.get_docstring(node)] == []


@pytest.mark.parametrize("path", named(sorted(Path(__file__).parent.glob("test_*.py"))))
def test_every_test_says_what_must_hold(path):
    """Each test function has a docstring."""
    assert [
        name for name, node in definitions(parse(path)) if name.startswith("test_") and not ast.get_docstring(node)
    ] == []


TEXT_CALLS = {"open", "read_text", "write_text", "fdopen", "TextIOWrapper", "NamedTemporaryFile", "TemporaryFile"}


def opens_text_without_encoding(node: ast.Call) -> bool:
    """Whether a call opens a file in text mode and leaves its encoding to the machine."""
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)
    if name not in TEXT_CALLS or any(keyword.arg in {"encoding", None} for keyword in node.keywords):
        return False
    if ast.unparse(function) == "os.open":
        return False  # a descriptor, without any text
    given = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg == "mode")]
    modes = [value.value for value in given if isinstance(value, ast.Constant) and isinstance(value.value, str)]
    binary = any(re.fullmatch(r"[rwxa+]*b[rwxa+]*", mode) for mode in modes)
    # The text that is written or the encoding may be given by position.
    if name == "read_text":
        return not node.args
    if name == "write_text":
        return len(node.args) < 2
    return not binary and name not in {"NamedTemporaryFile", "TemporaryFile"}


@pytest.mark.parametrize("path", named(SOURCES))
def test_text_files_name_their_encoding(path):
    """Every file that is opened as text says in which encoding."""
    calls = [node for node in ast.walk(parse(path)) if isinstance(node, ast.Call)]

    assert [f"line {node.lineno}" for node in calls if opens_text_without_encoding(node)] == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("open(p)", True),
        ("open(p, 'w')", True),
        ("p.open()", True),
        ("p.read_text()", True),
        ("p.write_text(x)", True),
        ("os.fdopen(n, 'w')", True),
        ("open(p, 'rb')", False),
        ("p.open(mode='wb', buffering=9)", False),
        ("open(p, encoding='utf-8')", False),
        ("p.read_text('utf-8')", False),
        ("p.write_text(x, 'utf-8')", False),
        ("os.open(p, flags)", False),
        ("os.fdopen(n, 'wb')", False),
        ("p.read_bytes()", False),
    ],
)
def test_the_search_for_encodings_finds_them(source, expected):
    """The test above would notice a file opened without encoding."""
    call = ast.parse(source, mode="eval").body

    assert isinstance(call, ast.Call)
    assert opens_text_without_encoding(call) is expected


# A backslash that is itself escaped begins no escape: such text is a test of escapes, or holds a path.
ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\u(0[67][0-9a-fA-F]{2}|[fF][bBeE][0-9a-fA-F]{2})")
DATA = [
    path for folder in (PACKAGE, ROOT / "tests") for ending in ("*.json", "*.jsonl") for path in folder.rglob(ending)
]


@pytest.mark.parametrize("path", named(sorted(DATA)))
def test_arabic_is_written_as_itself(path):
    """Data files are UTF-8 and hold Arabic letters as letters, in logical order; only what has no glyph is escaped."""
    text = path.read_bytes().decode("utf-8")

    letters = [code for code in ESCAPE.findall(text) if unicodedata.category(chr(int(code, 16)))[0] in "LN"]
    assert letters == []
    assert not text.startswith("\ufeff")


def test_the_search_for_escapes_finds_them():
    """The test above would notice an escaped letter, and passes over escaped escapes and marks without a glyph."""
    assert ESCAPE.findall(r'{"a": "\u0627\u064b"}') == ["0627", "064b"]
    assert ESCAPE.findall(r'{"a": "\\u0627", "b": "\\\u0627"}') == ["0627"]


@pytest.mark.parametrize("path", named([*SOURCES, *sorted(DATA)]))
def test_nothing_of_a_machine_is_in_the_files(path):
    """No file names a folder of the machine on which it was written."""
    text = path.read_text(encoding="utf-8")

    assert not re.search(r"(?<![\w.:/])/(?:home|root|Users)/\w", text)
