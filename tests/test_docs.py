"""The documentation is true: its examples run, its tables are the code's, its links lead somewhere.

``python -m tests.test_docs`` writes what is generated: a part of docs/cli.md, what commands print in blocks marked as
``console``, and the picture of the README.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import inspect
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
import tempfile
import typing
from enum import Enum
from html import unescape
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arabic_agent_eval import ItemSet, cli
from arabic_agent_eval.bundled import find_items, find_tools, set_names
from arabic_agent_eval.conversion import KINDS
from arabic_agent_eval.formats import FORMATS
from arabic_agent_eval.tools import Toolbox
from arabic_agent_eval.world import is_conversation
from tests.pages import DOCS, ROOT, page, table

PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md")])
EXAMPLES = ROOT / "examples"


def named(paths: list[Path]) -> list[object]:
    """Paths as parameters, named by where they stand in the project."""
    return [pytest.param(path, id=str(path.relative_to(ROOT))) for path in paths]


# --- examples ------------------------------------------------------------------------------------------------

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(path: Path, language: str) -> list[tuple[int, str]]:
    """The blocks of a page in a language, each with the line before its first one."""
    text = path.read_text(encoding="utf-8")
    return [
        (text.count("\n", 0, found.start()) + 1, found[2]) for found in BLOCK.finditer(text) if found[1] == language
    ]


def run_blocks(path: Path) -> list[str]:
    """Run the Python blocks of a page in order, with shared names; what doctest found wrong."""
    names: dict[str, object] = {"__name__": "__main__"}
    problems: list[str] = []
    for line, source in blocks(path, "python"):
        if source.startswith(">>>"):
            test = doctest.DocTestParser().get_doctest(source, {}, path.name, str(path), line)
            test.globs = names
            doctest.DocTestRunner().run(test, out=problems.append, clear_globs=False)
        else:
            exec(compile("\n" * line + source, str(path), "exec"), names)
    return problems


@pytest.mark.parametrize("path", named([path for path in PAGES if blocks(path, "python")]))
def test_python_blocks_run(path, tmp_path, monkeypatch):
    """Every Python block of a page runs in an empty folder, and prints what the page says it prints."""
    monkeypatch.chdir(tmp_path)

    assert "".join(run_blocks(path)) == ""


def test_a_wrong_block_is_noticed(tmp_path):
    """A block that prints something else than the page says is a problem, so the test above can fail."""
    path = tmp_path / "page.md"
    path.write_text("```python\n>>> 1 + 1\n3\n```\n", encoding="utf-8")

    assert "Expected" in "".join(run_blocks(path))


@pytest.mark.parametrize("path", named([path for path in PAGES if blocks(path, "json")]))
def test_json_blocks_are_json(path):
    """Every JSON block is one JSON value, or one on each line."""
    for line, source in blocks(path, "json"):
        try:
            json.loads(source)
        except ValueError:
            assert all(isinstance(json.loads(row), dict) for row in source.splitlines()), f"{path}:{line}"


MORE = "…"
"""Ends what a block shows of a longer output."""


def true_output(source: str) -> str:
    """A console block with what its commands print today; what stands after a line ``…`` is not shown."""
    parts = []
    for shown in re.split(r"^(?=\$ )", source, flags=re.MULTILINE):
        if not shown.startswith("$ aae "):
            continue
        command, *before = shown.rstrip("\n").split("\n")
        arguments = shlex.split(command.removeprefix("$ aae "), comments=True)
        lines = [line.rstrip() for line in CliRunner().invoke(cli.app, arguments).stdout.rstrip("\n").split("\n")]
        if before and before[-1] == MORE:
            lines = [*lines[: len(before) - 1], MORE]
        parts.append("\n".join([command, *lines]) + "\n")
    return "".join(parts)


def with_true_output(path: Path) -> str:
    """A page whose console blocks are run in order, in an empty folder that they share."""
    text = path.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for _, source in blocks(path, "console"):
            text = text.replace(source, true_output(source))
    return text


@pytest.mark.parametrize("path", named([path for path in PAGES if blocks(path, "console")]))
def test_commands_print_what_the_page_shows(path):
    """What a page shows of a command's output is what the command prints; else write the page anew."""
    assert with_true_output(path) == path.read_text(encoding="utf-8"), "run: python -m tests.test_docs"


def test_an_output_that_changed_is_noticed():
    """A block that shows another number than the command prints is replaced, and so is one that shows nothing yet."""
    source = "$ aae data list sample\n?\n…\n$ aae models --check baseline\nit is silent\n"

    assert re.fullmatch(
        r"\$ aae data list sample\nsimple-msa .*\n…\n\$ aae models --check baseline\nbaseline: it answers .*\n",
        true_output(source),
    )


def test_the_picture_shows_what_the_command_prints(tmp_path, monkeypatch):
    """The picture of the README holds every line that the main job prints, the name of the folder aside."""
    picture = (DOCS / "images" / "run.svg").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    printed = CliRunner().invoke(cli.app, ["run", "--run", "run"]).stdout

    shown = "".join(unescape(re.sub(r"<[^>]*>", "", picture)).split())
    # Lines break elsewhere in a picture, so its words are compared.
    words = {word for line in printed.splitlines()[:-1] for word in line.split() if set(word) != {"─"}}
    assert {word for word in words if word not in shown} == set(), "run: python -m tests.test_docs"


def test_sets_are_as_large_as_the_docs_say():
    """Items, tools and conversations of the bundled sets, where they are typed by hand."""
    sets = {name: ItemSet.read(find_items(name)) for name in set_names()}
    talks = {name: sum(map(is_conversation, items.values())) for name, items in sets.items()}
    rows = dict(
        re.findall(r"^\| `([a-z-]+)` \| (.*?) \|", (DOCS / "data.md").read_text(encoding="utf-8"), re.MULTILINE)
    )

    for name, items in sets.items():
        number = "122 parallel requests" if name == "core-en" else f"{len(items)} "
        assert number in rows[name], name
        for said in re.findall(r"(\d+)(?: items| of them) run as conversations", rows[name]):
            assert int(said) == talks[name], name
    assert len(Toolbox.read(find_tools("core", None))) == int(re.search(r"with (\d+) tools", rows["core"])[1])
    for name in ("README.md", "README.ar.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert str(talks["core"]) in text
        assert str(len(sets["core"])) in text


@pytest.mark.parametrize("name", ["grade_in_python", "reward", "run_in_python", "study"])
def test_examples_run(name):
    """An example runs as a script of its own and prints something."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}

    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py"], capture_output=True, encoding="utf-8", env=environment, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_graded_answers_print_their_causes(capsys):
    """The example of grading in Python shows the scores and causes of its three answers."""
    runpy.run_path(str(EXAMPLES / "grade_in_python.py"), run_name="__main__")

    shown = capsys.readouterr().out
    assert re.findall(r"answer \d: (\d\.\d{4})", shown) == ["0.9883", "0.6833", "0.0000"]
    assert set(re.findall(r": (\w+)$", shown, re.MULTILINE)) == {"spelling", "translated", "extra_words", "no_call"}


def test_a_run_in_python_prints_its_score(capsys):
    """The example of a run asks the baseline ten items and prints score, coverage and where the run is kept."""
    runpy.run_path(str(EXAMPLES / "run_in_python.py"), run_name="__main__")

    shown = capsys.readouterr().out
    assert "10 of 10 answers judged" in shown
    assert re.search(r"^score [01]\.\d{4}", shown, re.MULTILINE)


def test_a_study_compares_and_reports(capsys, monkeypatch):
    """The example of a study says which of two models is better, ranks them, and writes three reports."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))

    runpy.run_path(str(EXAMPLES / "study.py"), run_name="__main__")

    shown = capsys.readouterr().out
    assert re.search(r"^<Results of replay/sample: score 0\.\d{4}", shown, re.MULTILINE)
    assert re.search(r"^worse: -0\.\d{4}, p = 0\.\d{4}$", shown, re.MULTILINE)
    assert re.findall(r"^[12] (\S+) 0\.\d{4}$", shown, re.MULTILINE) == ["baseline", "replay/sample"]
    assert shown.endswith("['sample.html', 'sample.md', 'sample.xml']\n")


def test_reward_of_completions():
    """A reward is the total of each completion; drafts and broken calls earn nothing."""
    example = runpy.run_path(str(EXAMPLES / "reward.py"))
    completions = example["COMPLETIONS"]

    rewards = example["ToolCallReward"](example["ITEMS"])(completions, ["weather"] * len(completions))

    assert rewards == pytest.approx([1.0, 0.9, 0.0, 0.0])


def test_published_numbers_of_the_grading_page(shared, capsys):
    """The table of what the canonical rules change is what the command below it prints."""
    published = shared / "published"
    runs = sorted((published / "runs").glob("*.json"))
    main = runpy.run_path(str(EXAMPLES / "compare_rules.py"))["main"]

    main([str(published / "items.jsonl"), *map(str, runs)])

    shown = capsys.readouterr().out
    printed = re.findall(r"^(\S+): v0\.1 (\S+), canonical (\S+)\n  (\d+) of 51", shown, re.MULTILINE)
    stated = [(run, old, new, change) for run, old, new, change in table("grading.md", "run")]
    assert [row[:3] for row in printed] == [row[:3] for row in stated]
    assert {row[0]: row[3] for row in printed if row[3] != "0"} == {"qwen3.6-plus": "1"}
    assert re.findall(r"  by (.*)", shown) == ["missing_arabic: error_006: 0.0667 -> 0.0000"]
    assert [row[3] for row in stated if row[3] != "none"] == ["`error_006`: 0.0667 → 0.0000, by rule 10"]


def test_comparing_rules_reads_lines_too(tmp_path, capsys, monkeypatch):
    """The example of comparing rules takes JSONL, shows an unscored answer, and says how it is used."""
    call = {"function": "f", "arguments": {"t": "ـ"}}
    item = {"id": "1", "category": "multi_step", "expected_calls": [call]}
    (tmp_path / "items.jsonl").write_text(json.dumps(item), encoding="utf-8")
    (tmp_path / "replies.jsonl").write_text('{"id": "1", "error": "timeout"}\n', encoding="utf-8")
    main = runpy.run_path(str(EXAMPLES / "compare_rules.py"))["main"]

    main([str(tmp_path / "items.jsonl"), str(tmp_path / "replies.jsonl")])

    assert "by failed_row: 1: 0.0000 -> unscored" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="usage"):
        main([])


# --- links ---------------------------------------------------------------------------------------------------

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def without_code(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "", BLOCK.sub("", text))


def anchors(path: Path) -> set[str]:
    """The names that headings can be linked by, as code hosts make them."""
    headings = HEADING.findall(BLOCK.sub("", path.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def broken_links(path: Path) -> list[str]:
    broken = []
    for target in LINK.findall(without_code(path.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        there = (path.parent / file).resolve() if file else path
        if not there.exists() or (anchor and there.suffix == ".md" and anchor not in anchors(there)):
            broken.append(target)
    return broken


@pytest.mark.parametrize("path", named(PAGES))
def test_links_lead_somewhere(path):
    """Every relative link leads to a file of the project, and to a heading where it names one."""
    assert broken_links(path) == []


def test_a_broken_link_is_noticed(tmp_path):
    """A link to no file or no heading is broken, so the test above can fail."""
    path = tmp_path / "page.md"
    path.write_text("# Here\n\n[a](gone.md) [b](#here) [c](#there) [d](https://example.org)\n", encoding="utf-8")

    assert broken_links(path) == ["gone.md", "#there"]


@pytest.mark.parametrize("path", named([page for page in PAGES if page.is_relative_to(DOCS)]))
def test_pages_are_reached(path):
    """Every page of the documentation is linked from another page, so that a reader can find it."""
    others = (other for other in PAGES if other != path)

    linked = {
        (other.parent / link.partition("#")[0]).resolve()
        for other in others
        for link in LINK.findall(without_code(other.read_text(encoding="utf-8")))
    }

    assert path in linked


# --- the command line ----------------------------------------------------------------------------------------

BEGIN, END = "<!-- generated: python -m tests.test_docs -->", "<!-- end of the generated part -->"


class Setting(typing.NamedTuple):
    """An option or argument: how it is written, what it means, what else is to know."""

    written: str
    meaning: str
    note: str

    @property
    def row(self) -> str:
        """A row of a Markdown table."""
        written = self.written.replace("|", r"\|")
        return f"| `{written}` | {' '.join([self.meaning, self.note]).strip()} |"


def commands() -> dict[str, typing.Any]:
    """Each command by its words, and the function behind it."""
    found = {command.name or command.callback.__name__: command.callback for command in cli.app.registered_commands}
    for group in cli.app.registered_groups:
        for command in group.typer_instance.registered_commands:
            found[f"{group.name} {command.name or command.callback.__name__}"] = command.callback
    return found


def settings(function: typing.Any) -> list[Setting]:
    """The options and arguments of a command, from its signature."""
    hints = typing.get_type_hints(function, include_extras=True)
    parameters = inspect.signature(function).parameters.values()
    return [setting(each.name, each.default, *typing.get_args(hints[each.name])) for each in parameters]


def setting(name: str, default: object, kind: typing.Any, info: typing.Any) -> Setting:
    # Inside Annotated, typer keeps the first name of an option where a default would stand.
    names = [text for text in (info.default, *(info.param_decls or ())) if str(text).startswith("-")]
    written = " ".join([", ".join(names), info.metavar or ("" if names else name.upper())]).strip()
    notes = []
    if inspect.isclass(kind) and issubclass(kind, Enum):
        notes.append(f"One of {', '.join(f'`{member.value}`' for member in kind)}.")
    if default is inspect.Parameter.empty:
        notes.append("Required.")
    elif default is not None and default is not False:
        notes.append(f"Default: `{getattr(default, 'value', default)}`.")
    return Setting(written, info.help, " ".join(notes))


def described() -> str:
    """The generated part of docs/cli.md."""
    parts = []
    for name, function in commands().items():
        summary = " ".join((function.__doc__ or "").split())
        rows = [each.row for each in settings(function)]
        parts.append("\n".join([f"### aae {name}", "", summary, "", "| | |", "|---|---|", *rows]))
    return "\n\n".join([BEGIN, *parts, END])


def generated_part(text: str) -> str:
    return text[text.index(BEGIN) : text.index(END) + len(END)]


def test_command_line_page():
    """The page of the command line says of every option what the code says; else regenerate it."""
    assert generated_part(page("cli.md")) == described(), "run: python -m tests.test_docs"


@pytest.mark.parametrize("name", commands())
def test_command_line_page_is_the_help(name):
    """What the page says of a command and its options is what its --help prints, line breaks aside."""
    shown = CliRunner().invoke(cli.app, [*name.split(), "--help"])
    function = commands()[name]

    assert shown.exit_code == 0
    wanted = [function.__doc__, *(text for each in settings(function) for text in (each.meaning, each.written))]
    for text in wanted:
        for part in text.split(", ") if text.startswith("-") else [text]:
            assert "".join(part.split()) in "".join(shown.output.split())


def test_formats_and_kinds_are_in_the_help():
    """The options that take a name from a list say all of them."""
    helps = {each.written: each.meaning for function in commands().values() for each in settings(function)}

    assert all(name in page("cli.md") for name in (*FORMATS, *KINDS))
    assert all(kind in helps["--from"] for kind in KINDS)


def test_commands_on_the_pages_exist():
    """Every aae command in a shell block of a page is one that there is, with options that it has."""
    known = {
        name: {word for each in settings(function) for word in each.written.replace(",", "").split()}
        for name, function in commands().items()
    }
    for path in PAGES:
        for _, source in [*blocks(path, "sh"), *blocks(path, "console")]:
            for line in re.findall(r"\baae ((?:[^\n|&;#]|\\\n)+)", source):
                words = line.replace("\\\n", " ").split()
                name = " ".join(words[:2]) if words[0] == "data" else words[0]
                options = {word.partition("=")[0] for word in words if word.startswith("--")}
                assert name.startswith("--") or options <= known.get(name, set()) | {"--help"}, line
                assert name.startswith("--") or name in known, line


def test_docstrings_name_no_missing_page():
    """A page that a docstring of the package names is there."""
    for source in (ROOT / "arabic_agent_eval").rglob("*.py"):
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for name in re.findall(r"docs/[\w/]+\.md", node.value):
                    assert (ROOT / name).is_file(), (source.name, name)


if __name__ == "__main__":
    file = DOCS / "cli.md"
    before = file.read_text(encoding="utf-8")
    file.write_text(before.replace(generated_part(before), described()), encoding="utf-8")
    for printed in PAGES:
        if blocks(printed, "console"):
            printed.write_text(with_true_output(printed), encoding="utf-8")
    runpy.run_path(str(DOCS / "images" / "make.py"), run_name="__main__")
