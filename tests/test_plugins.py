"""Providers of models and reply formats of installed packages: the example of the documentation, and broken ones."""

from __future__ import annotations

import dataclasses
import datetime as dt
import importlib.metadata
import importlib.util
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from arabic_agent_eval import (
    Call,
    DataError,
    ItemSet,
    UsageError,
    evaluate_reply,
    plugins,
    processes,
    read_calls,
    read_reply,
)
from arabic_agent_eval.batch import grade_file
from arabic_agent_eval.bundled import find_items, find_replies
from arabic_agent_eval.errors import UnknownFormat
from arabic_agent_eval.formats import FORMATS
from arabic_agent_eval.integrations.counts import Sum
from arabic_agent_eval.items import ExpectedCall, Item
from arabic_agent_eval.models import installed
from arabic_agent_eval.models.adapter import Adapter, Opening
from arabic_agent_eval.models.catalogue import base_address, ignored_settings, open_model, split_name
from arabic_agent_eval.models.model import Settings
from arabic_agent_eval.ranges import Options
from arabic_agent_eval.readers import OwnFormat, Reader
from tests.pages import page
from tests.test_cli import aae

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "docs" / "plugins"
GROUPS = {"formats": plugins.FORMATS, "models": plugins.MODELS}


@pytest.fixture(autouse=True)
def _looked_up_anew():
    """What a test has installed is not found by the next one."""
    plugins._own_format.cache_clear()
    installed._found.cache_clear()
    yield
    plugins._own_format.cache_clear()
    installed._found.cache_clear()


class Site:
    """A folder of installed packages; what is put there can be imported and found."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder, self._patch = folder, patch
        patch.syspath_prepend(folder)

    def add(self, package: str, source: str = "", *, version: str = "1.0", **groups: dict[str, str]) -> str:
        """Install a package of one module by hand; the name of the module."""
        module = re.sub(r"\W", "_", package)
        self._patch.delitem(sys.modules, module, raising=False)
        (self.folder / f"{module}.py").write_text(textwrap.dedent(source), encoding="utf-8")
        lines = [
            f"[{GROUPS[group]}]\n" + "".join(f"{name} = {target}\n" for name, target in entries.items())
            for group, entries in groups.items()
        ]
        self.describe(package, version, "\n".join(lines))
        return module

    def describe(self, package: str, version: str, entry_points: str) -> None:
        """Write what an installer writes of a package."""
        info = self.folder / f"{re.sub(r'[-.]', '_', package)}-{version}.dist-info"
        info.mkdir()
        metadata = f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
        (info / "METADATA").write_text(metadata, encoding="utf-8")
        (info / "entry_points.txt").write_text(entry_points, encoding="utf-8")


@pytest.fixture
def site(tmp_path, monkeypatch):
    """An empty folder of packages that this process looks into."""
    folder = tmp_path / "site"
    folder.mkdir()
    return Site(folder, monkeypatch)


def pip_install(project: Path, target: Path) -> bool:
    """Whether pip could build and install a project into a folder, without a network."""
    if any(importlib.util.find_spec(name) is None for name in ("pip", "hatchling")):
        return False
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(target), str(project)]
    subprocess.run(command, check=True, capture_output=True)
    return True


@pytest.fixture(scope="module")
def example_folder(tmp_path_factory):
    """The example of the documentation, installed: by pip where it can build it, else by hand."""
    folder = tmp_path_factory.mktemp("example")
    project, target = folder / "project", folder / "site"
    shutil.copytree(EXAMPLE, project, ignore=shutil.ignore_patterns("__pycache__"))
    if not pip_install(project, target):
        target.mkdir()
        import tomllib

        about = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        entries = [
            f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in names.items())
            for group, names in about["entry-points"].items()
        ]
        shutil.copy(project / "aae_example_plugin.py", target)
        with pytest.MonkeyPatch.context() as patch:
            Site(target, patch).describe(about["name"], about["version"], "\n".join(entries))
    return target


@pytest.fixture
def example_site(example_folder, monkeypatch):
    """The example is installed."""
    monkeypatch.syspath_prepend(example_folder)
    monkeypatch.delitem(sys.modules, "aae_example_plugin", raising=False)
    return example_folder


def pythonic(calls: tuple[Call, ...]) -> str:
    """Calls in the notation of the example."""
    written = [
        f"{call.function}("
        + ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in call.arguments.items())
        + ")"
        for call in calls
    ]
    return f"[{', '.join(written)}]"


def rows_of_sample() -> list[dict[str, Any]]:
    """The bundled answers, decoded."""
    return [json.loads(line) for line in find_replies("sample").read_text(encoding="utf-8").splitlines()]


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Rows as a file."""
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def same_answers(folder: Path, epochs: int = 1) -> tuple[Path, Path]:
    """The bundled answers whose calls can be read, as plain calls and in the notation of the example."""
    items = ItemSet.read(find_items("sample"))
    plain, written = [], []
    for row in rows_of_sample():
        calls = read_calls(reply := read_reply(row), items[reply.item_id].offered)
        if reply.failure is None and not any(call.error for call in calls):
            made = [{"function": call.function, "arguments": call.arguments} for call in calls]
            for epoch in range(epochs):
                plain.append({"id": reply.item_id, "epoch": epoch, "calls": made})
                text = pythonic(calls) if calls else "لا أستطيع ذلك."
                written.append({"id": reply.item_id, "epoch": epoch, "text": text})
    assert len(plain) >= 8 * epochs
    return write_rows(folder / "plain.jsonl", plain), write_rows(folder / "written.jsonl", written)


def without_signature(document: dict[str, Any]) -> dict[str, Any]:
    """A report without what it was computed from."""
    return {key: value for key, value in document.items() if key != "signature"}


# --- the example ---------------------------------------------------------------------------------------------


def test_example_in_a_process_of_its_own(example_folder, tmp_path):
    """Installed and nothing else, the example is listed, answers a check, and is asked; the command says it all."""
    environment = os.environ | {"PYTHONPATH": f"{example_folder}{os.pathsep}{ROOT}", "PYTHONIOENCODING": "utf-8"}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "arabic_agent_eval", *arguments]
        return subprocess.run(
            command, capture_output=True, encoding="utf-8", env=environment, cwd=tmp_path, check=False
        )

    listed = run("models")
    checked = run("models", "--check", "rule/first-tool")
    ran = run("run", "--model", "rule/first-tool", "--items", "sample", "--run", "here", "--json")

    assert (listed.returncode, listed.stderr) == (0, "")
    assert "rule/first-tool " in listed.stdout
    assert "needs nothing, from aae-example-plugin 0.1.0\n" in listed.stdout
    assert (checked.returncode, checked.stderr) == (0, "")
    assert checked.stdout.startswith('rule/first-tool: it answers and calls tools: get_weather {"city":"كيف حالة ')
    assert ran.returncode == 0, ran.stderr
    report = json.loads(ran.stdout)
    assert (report["model"], report["coverage"]["unscored"], report["attempts"] > 10) == ("rule/first-tool", 0, True)


def test_provider_of_the_example(example_site, tmp_path):
    """A provider of a package is asked, resumed, warned about settings it lacks, and listed with its package."""
    folder = tmp_path / "run"
    listed = [json.loads(line) for line in aae("models", "--json").out.splitlines()]

    first = aae("run", "--model", "rule/silent", "--items", "sample", "--run", folder, "--temperature", 1, "--json")
    again = aae("run", "--resume", folder, "--json")
    refused = aae("run", "--model", "rule/loud", "--items", "sample", "--run", tmp_path / "none")
    elsewhere = aae("run", "--model", "rule/silent", "--base-url", "http://localhost/v1", "--run", tmp_path / "none")

    assert listed[-1]["package"] == "aae-example-plugin 0.1.0"
    assert all("package" not in one for one in listed[:-1])
    assert (first.code, again.code) == (0, 0)
    assert "rule has no setting --temperature; it has no effect." in first.err
    assert first.json["overall"] == again.json["overall"]
    assert (refused.code, refused.err) == (2, "aae: there is no rule 'loud'; there are first-tool and silent.\n")
    assert (elsewhere.code, elsewhere.err) == (2, "aae: rule is on this machine and has no --base-url.\n")
    assert not (tmp_path / "none").exists()


def test_format_of_the_example_scores_as_the_same_calls(example_site, tmp_path):
    """The same calls get the same numbers in the notation of a package, and the signature says who read them."""
    plain, written = same_answers(tmp_path)

    expected = aae("grade", "--items", "sample", "--replies", plain, "--json")
    found = aae("grade", "--items", "sample", "--replies", written, "--format", "pythonic", "--json")
    unread = aae("grade", "--items", "sample", "--replies", written, "--json")

    assert found.code == 0, found.err
    assert without_signature(found.json) == without_signature(expected.json)
    assert "|format:pythonic@aae-example-plugin-0.1.0|" in found.json["signature"]
    assert unread.json["overall"] < found.json["overall"]
    assert "|format:auto|" in unread.json["signature"]


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_format_of_the_example_in_several_processes(example_site, tmp_path, monkeypatch, start):
    """Two processes, however they start, read with the same package and count the same; so do the rows."""
    monkeypatch.setattr(processes, "_forks", lambda: start == "fork")
    _, written = same_answers(tmp_path, epochs=200)
    assert written.stat().st_size > 1 << 19  # two ranges at least
    common = ["grade", "--items", "sample", "--replies", written, "--format", "pythonic", "--json"]

    one = aae(*common, "--out", tmp_path / "one.jsonl")
    two = aae(*common, "--jobs", 2, "--out", tmp_path / "two.jsonl")

    assert (two.code, two.out) == (0, one.out)
    assert (tmp_path / "two.jsonl").read_bytes() == (tmp_path / "one.jsonl").read_bytes()
    assert b"|format:pythonic@aae-example-plugin-0.1.0|" in (tmp_path / "two.jsonl").read_bytes()
    assert aae("report", tmp_path / "two.jsonl", "--json").graded == two.json


def test_auto_recognises_only_when_asked(example_site, tmp_path):
    """``auto`` reads as if no package were there; ``auto+pythonic`` besides reads what the package recognises."""
    call = '[get_weather(city="جدة")]'
    chat = {"choices": [{"message": {"role": "assistant", "content": call}}]}
    native = {"type": "function", "function": {"name": "get_time", "arguments": "{}"}}
    spoken = {"choices": [{"message": {"role": "assistant", "content": call, "tool_calls": [native]}}]}
    beside = plugins.find_format("auto+pythonic")
    weather, time = (Call("get_weather", {"city": "جدة"}),), (Call("get_time"),)

    def both(row: dict[str, Any]) -> tuple[tuple[Call, ...], tuple[Call, ...]]:
        given = {"id": "1", **row}
        return read_calls(read_reply(given)), read_calls(read_reply(given, format=beside))

    assert both({"text": call}) == ((), weather)
    assert both({"response": chat}) == ((), weather)
    assert both({"role": "assistant", "content": call, "tool_calls": None}) == ((), weather)
    assert both({"text": f"هذا: {call}"}) == ((), ())
    assert both({"text": '<tool_call>{"name": "get_time"}</tool_call>'}) == (time, time)
    assert both({"response": spoken}) == (time, time)
    assert both({"calls": []}) == ((), ())
    assert read_reply({"id": "1", "error": "503"}, format=beside).failure == "The request failed: 503"
    assert str(beside) == "auto+pythonic@aae-example-plugin-0.1.0"
    plain, _ = same_answers(tmp_path)
    graded = [aae("grade", "--items", "sample", "--replies", plain, "--format", name, "--json").json
              for name in ("auto", "auto+pythonic")]  # fmt: skip
    assert without_signature(graded[0]) == without_signature(graded[1])


CASES = [
    ("[f(a=1, b='س', c=\"x\"), g()]", [("f", {"a": 1, "b": "س", "c": "x"}, None), ("g", {}, None)]),
    ('[f(a=[1, {"b": null}], c=True, d=None)]', [("f", {"a": [1, {"b": None}], "c": True, "d": None}, None)]),
    ("سأفعل: f(a='it\\'s')", [("f", {"a": "it's"}, None)]),
    ("h(a=1)", []),
    ("[h(a=1)]", [("h", {"a": 1}, None)]),
    ("[f(1)]", [("f", {}, "malformed_arguments")]),
    ("[f(a=1, a=2)]", [("f", {}, "malformed_arguments")]),
    ("[f(a=NaN)]", [("f", {}, "malformed_arguments")]),
    ("[f(a=g(b=1))]", [("f", {}, "malformed_arguments")]),
    ("f(a=[\ng(a=2)", [("f", {}, "malformed_arguments"), ("g", {"a": 2}, None)]),
    ('f(text="g(a=1)")', [("f", {"text": "g(a=1)"}, None)]),
    (f"f(a={'[' * 100_000}", [("f", {}, "malformed_arguments")]),
    (f"f(a={'[' * 80}{']' * 80})", [("f", {}, "malformed_arguments")]),
    (f"f(a={'9' * 5000})", [("f", {}, "malformed_arguments")]),
    (r'f(a="\ud800")', [("f", {"a": "\ufffd"}, None)]),
    ("لا أعرف", []),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_notation_of_the_example(example_site, text, expected):
    """The example reads its notation, keeps attempts that it cannot read, and mistakes no prose for calls."""
    reply = read_reply({"id": "1", "text": text}, format=plugins.find_format("pythonic"))

    found = [(call.function, call.arguments, call.error) for call in read_calls(reply, {"f", "g"})]

    assert found == expected


@given(st.text(st.sampled_from("fg(=),'\"[]{}\\\n 1س\ud800Ta_"), max_size=60))
@example("f(a='" * 50)
def test_nothing_that_a_model_writes_raises_in_the_example(example_folder, text):
    """Whatever stands in a text, the reader of the example gives calls."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(example_folder)
        form = plugins.find_format("pythonic")

    reply = read_reply({"id": "1", "text": text}, format=form)

    assert all(call.error in {None, "malformed_arguments"} for call in read_calls(reply, {"f"}))


@pytest.mark.parametrize("kind", [Reader, Adapter, Opening])
def test_page_names_every_field(kind):
    """The page says of what a package offers, and of what it is given, every field."""
    assert [field.name for field in dataclasses.fields(kind) if f"`{field.name}`" not in page("plugins.md")] == []


# --- what is built in ----------------------------------------------------------------------------------------


def test_nothing_is_looked_for_without_need(tmp_path, monkeypatch):
    """Grading and asking with what is built in never look at the installed packages."""

    def refuse(**_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(importlib.metadata, "entry_points", refuse)
    for name in FORMATS:
        assert plugins.find_format(name) == name
    assert aae("grade", "--items", "sample", "--replies", "sample").code == 0
    assert aae("run", "--items", "sample", "--run", tmp_path / "run").code == 0
    assert aae("models", "--check", "baseline").code == 0
    with pytest.raises(AssertionError):
        importlib.metadata.entry_points(group=plugins.FORMATS)


def test_built_in_names_are_not_replaced(site):
    """A package that takes a built-in name changes nothing; the list of providers says that it is not used."""
    source = "raise RuntimeError('loaded')"
    module = site.add("bold", source, formats={"text": "bold:X", "auto": "bold:X", "failure": "bold:X"},
                      models={"baseline": "bold:X", "replay": "bold:X"})  # fmt: skip

    listed = aae("models")

    assert all(plugins.find_format(name) == name for name in FORMATS)
    assert open_model("baseline", Settings("")).name == "baseline"
    with pytest.raises(UnknownFormat, match=r"no reply format 'failure'; choose one of auto, calls, .* submission\.$"):
        plugins.find_format("failure")
    with pytest.raises(UnknownFormat):
        plugins.find_format("auto+text")
    assert listed.code == 2
    assert "a provider 'baseline', which is built in; it is not used." in listed.err
    assert "gemini/" in listed.out
    assert module not in sys.modules


def test_unknown_names_say_which_there_are(site):
    """An unknown format or provider is refused with the names of all, those of packages too; an odd one as well."""
    site.add("kind", formats={"polite": "kind:X"}, models={"courteous": "kind:X"})

    for name in ("rude", "auto+rude", "", "auto+", "../polite", "x" * 1000):
        with pytest.raises(UnknownFormat, match=r"choose one of auto, .*, submission, polite\.$"):
            plugins.find_format(name)
    with pytest.raises(UsageError, match=r"no provider 'rude'.* with one of anthropic, baseline, courteous, gemini"):
        split_name("rude/model")
    outcome = aae("grade", "--items", "sample", "--replies", "sample", "--format", "rude")
    assert outcome.code == 2
    assert outcome.err.startswith("aae: there is no reply format 'rude'; choose one of auto, ")


# --- broken packages -----------------------------------------------------------------------------------------

READER = "from arabic_agent_eval.readers import Reader\n"
ADAPTER = "from arabic_agent_eval.models.adapter import Adapter\n"
BROKEN = [
    ("import nothing_of_this_name", "ModuleNotFoundError: No module named 'nothing_of_this_name'"),
    ("def x(:", "SyntaxError: "),
    ("raise SystemExit(3)", "SystemExit: 3"),
    ("raise RuntimeError('key sk-abcdefgh12345678 \\x1b[31m')", "RuntimeError: key [secret] ⟨U+001B⟩[31m"),
    ("class E(Exception):\n    def __str__(self): raise ValueError\nraise E", "cannot be loaded: E."),
    ("", "AttributeError: module 'broken' has no attribute 'X'"),
    ("X = 3", "is a value of the type int; it must be a "),
    (f"{READER}X = Reader(print, takes='bytes')", "TypeError: 'takes' must be 'text' or 'row'"),
    (f"{READER}X = Reader('read')", "TypeError: 'read' must be a function"),
    (f"{READER}X = Reader(print, 'row', 1)", "TypeError: 'recognises' must be a function"),
    (f"{ADAPTER}X = Adapter(3, '')", "TypeError: 'open_model' must be a function"),
    (f"{ADAPTER}X = Adapter(print, None)", "TypeError: 'about' must be text"),
    (f"{ADAPTER}X = Adapter(print, '', ignores=[])", "TypeError: 'ignores' must be a frozenset"),
]


@pytest.mark.parametrize(("source", "why"), BROKEN)
def test_a_package_that_cannot_be_loaded(site, source, why):
    """One sentence names package, version, entry point and reason, on every way to it; the exit code is 2."""
    site.add("broken", source, version="2.1", formats={"odd": "broken:X"}, models={"strange": "broken:X"})

    graded = aae("grade", "--items", "sample", "--replies", "sample", "--format", "odd")
    asked = aae("run", "--model", "strange/m", "--items", "sample")
    checked = aae("models", "--check", "strange/m")
    listed = aae("models")

    assert [one.code for one in (graded, asked, checked, listed)] == [2, 2, 2, 2]
    assert graded.err.startswith("aae: the reply format 'odd' of the package broken 2.1 (entry point broken:X) ")
    for one in (asked, checked, listed):
        assert one.err.startswith("aae: the provider 'strange' of the package broken 2.1 (entry point broken:X) ")
        assert one.err.count("\n") == 1
    assert why in graded.err
    assert why in listed.err
    assert "baseline" in listed.out  # the others are listed all the same


def test_two_packages_of_one_name(site):
    """A name that two packages offer is nobody's until one is uninstalled."""
    site.add("first", formats={"odd": "first:X"})
    site.add("second", version="3", formats={"odd": "second:X"})

    outcome = aae("grade", "--items", "sample", "--replies", "sample", "--format", "odd")

    assert outcome.code == 2
    assert re.search(r"'odd' is offered by (first 1\.0 and second 3|second 3 and first 1\.0); uninstall", outcome.err)


def test_metadata_that_cannot_be_read(site, monkeypatch):
    """Damaged metadata of any package is a sentence too; a package without a name is called so."""
    site.describe("nameless", "1", "[arabic_agent_eval.formats]\nodd = nothing:X\n")
    (site.folder / "nameless-1.dist-info" / "METADATA").write_text("\n", encoding="utf-8")

    with pytest.raises(UsageError, match=r"'odd' of the package .*\(entry point nothing:X\) cannot be loaded"):
        plugins.find_format("odd")

    def damaged(**_: object) -> None:
        raise TypeError("a line without a sign")

    monkeypatch.setattr(importlib.metadata, "entry_points", damaged)
    with pytest.raises(UsageError, match="installed packages offer cannot be read: TypeError: a line without a sign"):
        plugins.find_format("odd")


READERS = [
    ("1 / 0", "raised ZeroDivisionError: division by zero."),
    ("None", "raised TypeError: 'NoneType' object is not iterable."),
    ("'f()'", "gave a value of the type str where a call must be"),
    ("[3]", "gave a value of the type int where a call must be"),
    ("[Call('f', [1])]", "whose name is not text or whose arguments are no object"),
    ("[Call(3, {}, 'malformed_call')]", "whose name is not text"),
    ("[Call('f', {}, 'bad')]", "with the error 'bad'; there are malformed_call, "),
    ("[Call('f', {'a': (1, 2)})]", "gave a value of the type tuple inside a call, which JSON does not have"),
    ("[Call('f', {'a': float('nan')})]", "gave the number nan inside a call"),
    ("[Call('f', {'a': [{1: 2}]})]", "gave a name that is not text inside a call"),
    ("[Call('f', {}, 'malformed_arguments', raw=object())]", "gave a value of the type object inside a call"),
    ("[{'function': object()}]", "gave a value of the type object inside a call"),
    ("sys.exit(0)", "raised SystemExit: 0."),
    ("[Hasty()]", "raised RuntimeError: not now."),
    ("[Call('f', {'a': 10**6000})]", "gave a whole number of thousands of digits inside a call"),
]
MAKE = """
    import collections, sys
    from arabic_agent_eval import Call
    from arabic_agent_eval.readers import Reader

    class Hasty(collections.UserDict):
        def get(self, *_):
            raise RuntimeError("not now")

    def read(text, offered):
        return [] if text == 'fine' else {given}

    X = Reader(read)
"""


@pytest.mark.parametrize(("given_back", "why"), READERS)
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_reader_that_fails(site, tmp_path, given_back, why, jobs):
    """What a reader does wrong names its package, file and line, in one process as in two; the exit code is 2."""
    site.add("broken", MAKE.format(given=given_back), formats={"odd": "broken:X"})
    first = rows_of_sample()[0]["id"]
    rows = [{"id": first, "epoch": epoch, "text": "fine", "notes": "ا" * 300} for epoch in range(900)]
    rows.append({"id": first, "epoch": 900, "text": "hm"})
    replies = write_rows(tmp_path / "replies.jsonl", rows if jobs > 1 else rows[-2:])

    outcome = aae("grade", "--items", "sample", "--replies", replies, "--format", "odd", "--jobs", jobs)

    line = 901 if jobs > 1 else 2
    assert outcome.code == 2
    assert outcome.err.startswith(
        f"aae: {replies}, line {line}: the reply format 'odd' of the package broken 1.0 (entry point broken:X) "
    )
    assert why in outcome.err
    assert outcome.err.endswith("Repair or update the package, or grade without this format.\n")
    assert outcome.err.count("\n") == 1


def test_calls_of_a_reader_are_read_as_any(site):
    """Mappings are calls, a name that is missing and arguments that nest too deep are malformed, surrogates go."""
    deep: Any = "م"
    for _ in range(70):
        deep = [deep]

    def calls(*entries: Any) -> list[tuple[Any, Any, Any]]:
        form = OwnFormat("own", "own@x-1", "the format", Reader(lambda *_: entries))
        reply = read_reply({"id": "1", "text": ""}, format=form)
        return [(call.function, call.arguments, call.error) for call in read_calls(reply)]

    looped: list[Any] = []
    looped.append(looped)
    assert calls({"function": "f", "arguments": '{"a": 1}'}) == [("f", {"a": 1}, None)]
    assert calls(Call("f", {"\ud800": "\ud800"})) == [("f", {"\ufffd": "\ufffd"}, None)]
    assert calls(Call(None), Call("")) == [(None, {}, "malformed_call")] * 2
    assert (
        calls(Call("f", {"a": deep}), {"function": "f", "arguments": {"a": looped}})
        == [("f", {}, "malformed_arguments")] * 2
    )
    assert calls(Call("f", {"a": deep}, "malformed_arguments", looped)) == [("f", {}, "malformed_arguments")]


def test_a_format_of_rows(site, tmp_path):
    """A reader of rows has the whole row; beside auto it takes those that it recognises, and errors stay errors."""
    site.add(
        "rows",
        """
        from arabic_agent_eval.errors import DataError
        from arabic_agent_eval.readers import Reader

        def read(row, offered):
            if "verb" not in row:
                raise DataError("the row has no verb.", field="verb")
            return [{"function": row["verb"], "arguments": row.get("with", {})}]

        ROWS = Reader(read, takes="row", recognises=lambda row: "verb" in row)
        MUTE = Reader(read, takes="row")
        HASTY = Reader(read, recognises=lambda text: 1 / 0)
        """,
        formats={"verbs": "rows:ROWS", "mute": "rows:MUTE", "hasty": "rows:HASTY"},
    )
    form, beside = plugins.find_format("verbs"), plugins.find_format("auto+verbs")
    row = {"id": "1", "verb": "f", "with": {"a": "مكة"}}

    assert read_calls(read_reply(row, format=form)) == (Call("f", {"a": "مكة"}),)
    assert read_calls(read_reply(row, format=beside)) == (Call("f", {"a": "مكة"}),)
    assert read_calls(read_reply({"id": "1", "calls": []}, format=beside)) == ()
    assert read_reply({"id": "1", "error": "no"}, format=form).failure is not None
    with pytest.raises(DataError, match="'verb': the row has no verb"):
        read_calls(read_reply({"id": "1", "calls": []}, format=form))
    with pytest.raises(DataError, match="the row holds no answer"):
        read_reply({"id": "1"}, format=beside)
    with pytest.raises(UsageError, match=r"entry point rows:MUTE\) recognises no answers, .* give --format mute\.$"):
        plugins.find_format("auto+mute")
    with pytest.raises(DataError, match=r"\(entry point rows:HASTY\) raised ZeroDivisionError: division by zero\."):
        read_reply({"id": "1", "text": "x"}, format=plugins.find_format("auto+hasty"))
    items = ItemSet.read(find_items("sample"))
    replies = write_rows(tmp_path / "rows.jsonl", [{"id": one, "verb": "get_weather"} for one in items])
    batch = grade_file(items, replies, format="verbs")
    assert str(batch.signature.format) == "verbs@rows-1.0"


MODEL = """
    import asyncio
    from arabic_agent_eval.asking import MadeCall
    from arabic_agent_eval.models.adapter import Adapter
    from arabic_agent_eval.models.model import Answer, Attempt, Failure, Tokens

    class Model:
        name, address = "", ""

        def __init__(self, opening):
            self.opening = opening

        def encode(self, request):
            return {encode}

        async def attempt(self, body):
            return {attempt}

        def read(self, body):
            return {read}

        async def close(self):
            {close}

        async def cancelled():
            raise asyncio.CancelledError

    X = Adapter(lambda opening: {open}, "A test", "broken/m", {address!r}, {variable!r})
"""
GOOD = {
    "open": "Model(opening)",
    "encode": 'b"{}"',
    "attempt": 'Attempt(b\'{"choices": [{"message": {"role": "assistant", "content": "x"}}]}\', None, 200, 0.0)',
    "read": "Answer((), 'x')",
    "close": "pass",
    "address": "",
    "variable": "",
}
FAULTS = [
    ({"open": "1 / 0"}, "raised ZeroDivisionError: division by zero on opening a model."),
    ({"open": "None"}, "opened a NoneType, which is no model: it has no encode, attempt, read, close."),
    ({"encode": "1 / 0"}, "raised ZeroDivisionError: division by zero on encode."),
    ({"encode": "'{}'"}, "encoded a request as something else than the bytes of JSON on one line."),
    ({"encode": "b'{\\n}'"}, "encoded a request as something else"),
    ({"encode": "b'x'"}, "encoded a request as something else"),
    ({"attempt": "{}[1]"}, "raised KeyError: 1 on attempt."),
    ({"attempt": "None"}, "gave a value of the type NoneType for an attempt."),
    ({"attempt": "Attempt('', None, 200, 0.0)"}, "gave an Attempt with a value of the type str in it for an attempt."),
    ({"attempt": "Attempt(b'[]', None, 200, 0.0)"}, "whose body is not the JSON object of an answer for an attempt."),
    ({"attempt": "Attempt(b'x', None, 200, 0.0)"}, "whose body is not the JSON object of an answer for an attempt."),
    ({"attempt": "Attempt(b'', 'no', 200, 0.0)"}, "gave a value of the type str for an attempt."),
    ({"attempt": "Attempt(b'', Failure('key', 3), 200, 0.0)"}, "gave a Failure with a value of the type int in it"),
    ({"read": "body['none']"}, "raised KeyError: 'none' on read."),
    ({"read": "None"}, "read a value of the type NoneType from an answer."),
    ({"read": "Answer([])"}, "read an Answer whose calls are not a tuple of MadeCall from an answer."),
    ({"read": "Answer((MadeCall(None, 1),))"}, "read an Answer whose calls are not a tuple of MadeCall"),
    ({"read": "Answer((), None)"}, "read an Answer with a value of the type NoneType in it from an answer."),
    ({"close": "raise OSError('gone')"}, "raised OSError: gone on close."),
    ({"attempt": "exit(0)"}, "raised SystemExit: 0 on attempt."),
    ({"open": "exit(0)"}, "raised SystemExit: 0 on opening a model."),
    ({"close": "exit(0)"}, "raised SystemExit: 0 on close."),
    ({"close": "raise asyncio.CancelledError"}, "raised CancelledError on close."),
    ({"attempt": "await Model.cancelled()"}, "raised CancelledError on attempt."),
    (
        {"attempt": GOOD["attempt"].replace("0.0", "float('nan')")},
        "gave an Attempt with the latency nan for an attempt.",
    ),
]


@pytest.mark.parametrize(("parts", "why"), FAULTS)
def test_a_model_that_fails(site, tmp_path, parts, why):
    """What the code of a model does wrong ends asking and checking with a sentence that names its package."""
    site.add("broken", MODEL.format(**GOOD | parts), models={"strange": "broken:X"})
    whose = "aae: the provider 'strange' of the package broken 1.0 (entry point broken:X) "

    asked = aae("run", "--model", "strange/m", "--items", "sample", "--run", tmp_path / "run")
    checked = aae("models", "--check", "strange/m")

    assert (asked.code, checked.code) == (2, 2)
    for one in (asked, checked):
        said = one.err.splitlines()[-1]
        assert said.startswith(whose)
        assert why in said
        assert "Traceback" not in one.err


def test_a_model_that_fails_keeps_what_was_answered(site, tmp_path):
    """Answers that came before the fault are kept, and the run goes on when the package is repaired."""
    folder = tmp_path / "run"
    parts = GOOD | {"attempt": f"{GOOD['attempt']} if self.count() < 5 else None"}
    counting = """
        name, address, seen = "", "", 0

        def count(self):
            self.seen += 1
            return self.seen
"""
    source = MODEL.replace('        name, address = "", ""\n', counting)
    site.add("broken", source.format(**parts), models={"strange": "broken:X"})

    broken = aae("run", "--model", "strange/m", "--items", "sample", "--run", folder, "--concurrency", 1)
    kept = (folder / "replies.jsonl").read_text(encoding="utf-8").splitlines()
    shutil.rmtree(site.folder / "broken-1.0.dist-info")
    installed._found.cache_clear()
    site.add("broken", MODEL.format(**GOOD), models={"strange": "broken:X"})
    shutil.rmtree(site.folder / "__pycache__", ignore_errors=True)
    mended = aae("run", "--resume", folder, "--json")

    assert (broken.code, len(kept), mended.code) == (2, 4, 0)
    assert mended.json["coverage"]["unscored"] == 0


def test_addresses_and_keys(site, monkeypatch):
    """A key comes from the adapter's variable for its own address, and elsewhere only from one that is named."""
    parts = GOOD | {"address": "https://own.example/v1", "variable": "OWN_KEY"}
    site.add("broken", MODEL.format(**parts), models={"strange": "broken:X"})
    settings = Settings("a/b", temperature=0.5)

    def opening(**options: Any) -> Any:
        return open_model("strange/a/b", settings, **options)._model.opening

    with pytest.raises(UsageError, match="the environment variable OWN_KEY is not set"):
        opening()
    monkeypatch.setenv("OWN_KEY", "own-secret")
    monkeypatch.setenv("OTHER", "other-secret")
    there = opening(base_url="http://there.example", timeout=3.0, connections=2)
    assert (opening().key, opening().base_url) == ("own-secret", "https://own.example/v1")
    assert opening().name == "strange/a/b"
    assert (there.key, there.base_url, there.timeout, there.connections) == (None, "http://there.example", 3.0, 2)
    assert opening(base_url="http://there.example", key_variable="OTHER").key == "other-secret"
    assert opening().settings == settings
    assert "own-secret" not in repr(opening())
    assert base_address("strange/m", None) == "https://own.example/v1"
    assert base_address("strange/m", "http://there.example") == "http://there.example"
    assert ignored_settings("strange/m") == frozenset()
    listed = aae("models").out
    assert "broken/m " in listed
    assert "key in OWN_KEY (set), https://own.example/v1, from broken 1.0\n" in listed
    with pytest.raises(UsageError, match=r"which model of strange\? Name it as strange/NAME"):
        split_name("strange")


# --- tables --------------------------------------------------------------------------------------------------


def test_format_of_the_example_in_a_table(example_site, tmp_path):
    """A batch of Arrow, and a Parquet file cut into blocks, are read by the package as a file of lines is."""
    pa = pytest.importorskip("pyarrow", reason="tables need the extra 'arrow'")
    import pyarrow.parquet as pq

    from arabic_agent_eval.integrations.arrow import grade_batch
    from arabic_agent_eval.integrations.blocks import BlockGrader, Task, blocks_of

    _, written = same_answers(tmp_path)
    rows = [json.loads(line) for line in written.read_text(encoding="utf-8").splitlines()]
    table, items = pa.Table.from_pylist(rows), ItemSet.read(find_items("sample"), name="sample")
    expected = grade_file(items, written, format="pythonic")
    pq.write_table(table, tmp_path / "written.parquet")

    judged = grade_batch(table, items, format="pythonic").to_pylist()
    options = Options(format=plugins.find_format("pythonic"))
    task = pickle.loads(pickle.dumps(Task(find_items("sample"), "sample", expected.signature, options, None)))
    [block] = blocks_of(tmp_path / "written.parquet", "written.parquet")
    total = Sum()
    total.add(BlockGrader(task).grade(block)[0])

    assert {row["signature"] for row in judged} == {expected.signature.of_grading}
    found = {row["item_id"]: row["total"] for row in judged}
    assert found == {row["id"]: pytest.approx(_total(items[row["id"]], row, "pythonic")) for row in rows}
    assert total.tally().outcomes == expected.tally.outcomes
    with pytest.raises(UnknownFormat, match="there is no reply format 'arrows'"):
        grade_batch(table, items, format="arrows")


def _total(item, row, name):
    return evaluate_reply(item, read_reply(row, format=plugins.find_format(name))).score.total


def test_a_format_of_rows_sees_every_column(site):
    """A reader of rows is given the columns that it alone knows, except those whose type JSON does not have."""
    pa = pytest.importorskip("pyarrow", reason="tables need the extra 'arrow'")
    from arabic_agent_eval.integrations.arrow import grade_batch

    source = """
        from arabic_agent_eval import Call
        from arabic_agent_eval.readers import Reader

        def read(row, offered):
            assert sorted(row) == ["id", "tool", "where"], sorted(row)
            return [Call(row["tool"], {"city": row["where"]["city"]})]

        ROWS = Reader(read, takes="row")
    """
    module = site.add("rows-of-mine", source, formats={"mine": "rows_of_mine:ROWS"})
    item = Item(id="w", category="simple_function_calling", instruction="طقس جدة",
                expected_calls=[ExpectedCall("get_weather", {"city": "جدة"})])  # fmt: skip
    row = {"id": "w", "tool": "get_weather", "where": {"city": "جدة"}, "when": dt.datetime(2026, 12, 1)}
    table = pa.Table.from_pylist([row])

    [judged] = grade_batch(table, ItemSet([item]), format="mine").to_pylist()

    assert module == "rows_of_mine"
    assert judged["total"] == 1.0
    assert "|format:mine@rows-of-mine-1.0|" in judged["signature"]
