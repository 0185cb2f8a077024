"""Item sets: finding them by path or name, listing and checking them."""

from __future__ import annotations

import json
import re

import pytest

from arabic_agent_eval import bundled
from arabic_agent_eval.bundled import find_items, find_replies, find_tools, set_names
from arabic_agent_eval.errors import DataError
from tests.test_cli import ITEMS, aae, files, item, replies_to, write


@pytest.fixture
def sets(tmp_path, monkeypatch):
    """Two bundled sets, one of them with replies and tools, in a working folder that is empty."""
    data = tmp_path / "data"
    for name in ("zeta", "alpha"):
        (data / name).mkdir(parents=True)
        write(data / name / "items.jsonl", ITEMS)
    write(data / "alpha" / "replies.jsonl", replies_to(ITEMS))
    (data / "alpha" / "tools.json").write_text("[]", encoding="utf-8")
    (data / "empty").mkdir()
    (data / "file.json").write_text("{}", encoding="utf-8")
    monkeypatch.setattr(bundled, "DATA", data)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return data


def test_names_are_those_of_folders_with_items(sets):
    """A set is a folder with a file of items; the names come in order."""
    assert set_names() == ["alpha", "zeta"]


def test_the_package_has_readable_sets():
    """Whatever sets the package has can be listed by the command."""
    found = aae("data", "list")

    assert found.code == 0
    assert [line.split()[0] for line in found.out.splitlines()] == set_names()


def test_a_set_is_found_by_name(sets):
    """Items, replies and tools of a bundled set have its name."""
    assert find_items("alpha") == sets / "alpha" / "items.jsonl"
    assert find_replies("alpha") == sets / "alpha" / "replies.jsonl"
    assert find_tools("alpha", None) == find_tools("zeta", "alpha") == sets / "alpha" / "tools.json"
    assert find_tools("zeta", None) is None


def test_a_name_comes_before_a_path(sets, tmp_path):
    """The name of a bundled set means the set, whatever lies in the working folder; ./NAME means the file there."""
    path = write(tmp_path / "here" / "alpha", ITEMS)

    assert find_items("alpha") == sets / "alpha" / "items.jsonl"
    assert find_items("./alpha").samefile(path)
    assert find_tools("./alpha", None) is None
    (path.parent / "functions.json").write_text("[]", encoding="utf-8")
    assert find_tools(str(path), None) == path.parent / "functions.json"
    (path.parent / "tools.json").write_text("[]", encoding="utf-8")
    assert find_tools(str(path), None) == path.parent / "tools.json"


@pytest.mark.parametrize(
    ("find", "name", "message"),
    [
        (find_items, "beta", "beta: there is no such file, and no bundled set of that name (there are: alpha, zeta)."),
        (find_items, "", "a file of items is needed, not a folder."),
        (find_items, "../data", "../data: a file of items is needed, not a folder."),
        (find_items, "../data/alpha", "../data/alpha: a file of items is needed, not a folder."),
        (find_replies, "zeta", "zeta: there is no such file"),
        (find_replies, "..", "..: a file of replies is needed, not a folder."),
        (lambda name: find_tools("alpha", name), "zeta", "zeta: there is no such file"),
        (lambda name: find_tools("alpha", name), "..", "..: a file of tools is needed, not a folder."),
        (lambda name: find_tools(name, None), "beta", "beta: there is no such file"),
        (find_items, "empty", "empty: there is no such file"),
        (find_items, "../data/alpha/../beta", "there is no such file"),
        (find_items, "alpha/../alpha", "there is no such file"),
    ],
)
def test_what_is_not_there_is_named(sets, find, name, message):
    """A name that is neither a file nor a set, and a folder, are refused with what there is."""
    with pytest.raises(DataError) as caught:
        find(name)
    assert message in str(caught.value)


def test_commands_take_names(sets):
    """Grading, listing and checking take the name of a set in place of files."""
    graded = aae("grade", "--items", "alpha", "--replies", "alpha", "--json")
    listed = aae("data", "list", "--json")
    items = aae("data", "list", "zeta", "--json")

    assert graded.code == 0
    assert graded.json["coverage"]["scored"] == len(ITEMS)
    assert [json.loads(line)["name"] for line in listed.out.splitlines()] == ["alpha", "zeta"]
    assert [json.loads(line)["id"] for line in items.out.splitlines()] == [row["id"] for row in ITEMS]


def test_check_takes_a_registry(tmp_path):
    """The tools are those that are named, else those beside the items; a bad registry is refused."""
    asked = item("أ", "multi_step", "msa", [("f", {"x": "جدة"})], instruction="جدة", available_functions=["f"])
    path = files(tmp_path, [asked], [])[1]
    parameters = {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}
    schema = {"name": "f", "description": "خدمة", "parameters": parameters}
    tools = tmp_path / "registry.json"
    tools.write_text(json.dumps([schema]), encoding="utf-8")

    assert any(
        "unknown" in one["rule"] or "tool" in one["rule"]
        for one in aae("data", "check", path, "--json").json["findings"]
    )
    named = aae("data", "check", path, "--tools", tools, "--json")
    assert (named.code, named.json) == (0, {"items": 1, "findings": []})
    tools.rename(tmp_path / "tools.json")
    assert aae("data", "check", path).out == "1 items checked, nothing found.\n"
    (tmp_path / "tools.json").write_text("[5]", encoding="utf-8")
    refused = aae("data", "check", path)
    assert refused.code == 2
    assert "not an OpenAI function schema" in refused.err


# --- lists ---------------------------------------------------------------------------------------------------


def test_items_are_listed(tmp_path):
    """A line an item, with a long instruction cut, and whatever is invisible named."""
    rows = [item("أ", "multi_step", None, [("f", {})], instruction="س" * 91), item("ب\t", "multi_step", "msa", [])]
    path = files(tmp_path, rows, [])[1]

    found = aae("data", "list", path)

    assert found.out.splitlines() == [
        f"أ  multi_step  -  1  {'س' * 90}…",
        "ب⟨U+0009⟩  multi_step  msa  0  سؤال ب⟨U+0009⟩",
    ]


def test_findings_are_counted(tmp_path):
    """Findings name item, field and rule, and are counted by rule; the JSON has the same."""
    rows = [item("أ", "multi_step", "msa", [("unknown_tool", {})]), ITEMS[-1]]
    path = files(tmp_path, rows, [])[1]

    page, data = aae("data", "check", path), aae("data", "check", path, "--json")

    assert (page.code, data.code) == (1, 1)
    findings = data.json["findings"]
    assert data.json["items"] == 2
    assert len(findings) == len(page.out.splitlines()) - 1
    for finding, line in zip(findings, page.out.splitlines(), strict=False):
        assert line.startswith(finding["item_id"])
        assert finding["rule"] in line
    assert re.fullmatch(rf"{len(findings)} findings in \d of 2 items: .+\.", page.out.splitlines()[-1])
