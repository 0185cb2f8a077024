"""The command line: options, exit codes, streams, and what each command prints.

The helpers at the top run the real command inside this process; the other tests of files and commands use them too.
"""

from __future__ import annotations

import io
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from arabic_agent_eval import cli
from arabic_agent_eval._version import __version__

ROOT = Path(__file__).parents[1]


class Outcome(NamedTuple):
    """What a run of the command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Stdout as the one JSON value that it holds."""
        return json.loads(self.out)

    @property
    def graded(self) -> Any:
        """The JSON of a report without what only reports say: what grading printed."""
        return {key: value for key, value in self.json.items() if key not in {"intervals", "repeated", "tools"}}


def aae(*arguments: object, stdin: bytes = b"") -> Outcome:
    """Run ``aae`` in this process, with streams of its own that are as strict as an ASCII terminal's."""
    out, err = io.BytesIO(), io.BytesIO()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "COLUMNS"):
            patch.delenv(name, raising=False)
        return _run(patch, arguments, stdin, out, err)


def _run(patch: pytest.MonkeyPatch, arguments: Any, stdin: bytes, out: io.BytesIO, err: io.BytesIO) -> Outcome:
    patch.setattr(sys, "argv", ["aae", *map(str, arguments)])
    patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
    patch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="ascii"))
    patch.setattr(sys, "stderr", io.TextIOWrapper(err, encoding="ascii"))
    code = 0
    try:
        cli.main()
    except SystemExit as stop:
        code = stop.code or 0
    sys.stdout.flush()
    sys.stderr.flush()
    return Outcome(code, out.getvalue().decode(), err.getvalue().decode())


def start(*arguments: object, before: str = "", **options: Any) -> subprocess.Popen[bytes]:
    """Start ``aae`` as a process of its own; ``before`` is Python that runs first in it."""
    script = f"{before}\nfrom arabic_agent_eval.cli import main\nmain()"
    command = [sys.executable, "-c", script, *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | options.pop("env", {})
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, **options)


def write(path: Path, rows: Any) -> Path:
    """Write rows as JSONL, with readable Arabic."""
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    path.write_text("".join(lines), encoding="utf-8", newline="")
    return path


def read(path: Path) -> list[Any]:
    """Read JSONL."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def item(item_id: str, category: str, dialect: str | None, expected: list[Any], **more: Any) -> dict[str, Any]:
    """One item; expected calls are pairs of a function and its arguments, or whole objects."""
    calls = [call if isinstance(call, dict) else {"function": call[0], "arguments": call[1]} for call in expected]
    row = {"id": item_id, "category": category, "instruction": f"سؤال {item_id}", "expected_calls": calls}
    return row | {"available_functions": ["book_table", "send_gift", "find_road"], "dialect": dialect} | more


ITEMS = [
    item("بسيط", "simple_function_calling", "msa", [("book_table", {"place": "مطعم القلعة", "guests": 4})]),
    item("قيم", "parameter_extraction", "gulf", [("send_gift", {"to": "أحمد", "wrap": True, "note": None})]),
    item("خطوات", "multi_step", "egyptian", [("find_road", {"from": "المعادي"}), ("book_table", {"place": "النيل"})]),
    item(
        "بلا ترتيب",
        "multi_step",
        "levantine",
        [("find_road", {"from": "بيروت", "via": ["صيدا", "صور"]}), ("send_gift", {"to": "ليلى", "price": 0})],
        ordered=False,
    ),
    item("لهجة", "dialect_handling", "maghrebi", [("find_road", {"from": "الدار البيضاء", "when": "غدا"})]),
    item("أداة", "tool_selection", "msa", [("*", {"place": "*"})]),
    item("خطأ", "error_recovery", None, [{"function": "book_table", "arguments": {"place": "الشام"},
                                          "accept": {"place": ["Damascus", "دمشق"]}}]),
    item("سكوت", "tool_selection", "gulf", []),
]  # fmt: skip


def many_items(copies: int) -> list[dict[str, Any]]:
    """The items again and again under new ids."""
    return [row | {"id": f"{row['id']} {copy}"} for copy in range(copies) for row in ITEMS]


def answer(row: dict[str, Any], chance: random.Random) -> list[dict[str, Any]]:
    """Calls that answer an item: often right, else spoilt in one of several ways."""
    calls = [{"function": call["function"], "arguments": dict(call["arguments"])} for call in row["expected_calls"]]
    for call in calls:
        spoil = chance.choice(["", "", "", "spell", "translate", "lose", "rename", "add"])
        first = next(iter(call["arguments"]))
        if spoil == "spell" and isinstance(call["arguments"][first], str):
            call["arguments"][first] = call["arguments"][first].replace("ة", "ه").replace("أ", "ا")
        elif spoil == "translate":
            call["arguments"][first] = chance.choice(["Cairo", 4.0, True, 0, ["صيدا"], {"من": "صور"}])
        elif spoil == "lose":
            del call["arguments"][first]
        elif spoil == "rename":
            call["function"] = "cancel_all"
        elif spoil == "add":
            call["arguments"]["extra"] = chance.choice(["زيادة", None, 1])
    if chance.random() < 0.2:
        calls = calls[1:] if chance.random() < 0.5 else [*calls, {"function": "send_gift", "arguments": {}}]
    return calls


def replies_to(items: list[dict[str, Any]], seed: int = 0) -> list[dict[str, Any]]:
    """One reply to each item, in order."""
    chance = random.Random(seed)
    return [{"id": row["id"], "calls": answer(row, chance)} for row in items]


def files(folder: Path, items: list[Any] | None = None, replies: list[Any] | None = None) -> tuple[Any, ...]:
    """The options that name a file of items and a file of replies, written to a folder."""
    items = ITEMS if items is None else items
    replies = replies_to(items) if replies is None else replies
    return ("--items", write(folder / "items.jsonl", items), "--replies", write(folder / "replies.jsonl", replies))


# --- exit codes ----------------------------------------------------------------------------------------------

STEP = [item(str(place), "multi_step", None, [("f", {})]) for place in range(5)] + [
    item("5", "tool_selection", None, [("f", {})])
]


def rights(right: int) -> list[Any]:
    """Replies of which the first so many are right, and the last one is; the others call nothing."""
    return [{"id": row["id"], "calls": [{"function": "f"}] if place < right or place == 5 else []}
            for place, row in enumerate(STEP)]  # fmt: skip


@pytest.mark.parametrize(
    ("right", "bound", "code"),
    [
        (5, "1", 0), (5, "1.0", 0), (4, "1", 1), (4, "0.8857142857142857", 0), (4, "0.88571429", 1),
        (0, "0", 0), (0, "0.4", 0), (0, "0.5", 1), (3, "0.77", 0), (3, "0.78", 1),
    ],
)  # fmt: skip
def test_a_gate(tmp_path, right, bound, code):
    """Below --fail-under the exit code is 1 and a sentence says so; at or above it is 0, for both commands."""
    options = ("--fail-under", bound, "--json")
    graded = aae("grade", *files(tmp_path, STEP, rights(right)), "--out", tmp_path / "rows.jsonl", *options)
    reported = aae("report", tmp_path / "rows.jsonl", *options)

    assert (graded.code, reported.code) == (code, code)
    assert graded.json == reported.graded
    said = f"The score {graded.json['overall']:.4f} is below --fail-under {float(bound):g}."
    assert (said in graded.err, said in reported.err) == (code == 1, code == 1)


def test_a_gate_forgives_rounding_errors(tmp_path):
    """A mean that is 0.8 on paper passes a gate of 0.8, as it gets the letter of 0.8."""
    items = [row | {"category": "multi_step"} for row in STEP[:5]]
    weights = write(tmp_path / "weights.json", [{"tool_selection": 0.2}])
    replies = [*rights(3)[:5], rights(3)[5]]

    found = aae("grade", *files(tmp_path, [*items, STEP[5]], replies), "--json", "--fail-under", "0.8",
                "--categories", weights)  # fmt: skip

    assert found.json["overall"] < 0.8
    assert (found.code, found.json["grade"]) == (0, "B")


@pytest.mark.parametrize(
    ("replies", "bound", "code", "says"),
    [
        ([{"id": "0", "error": "quota"}, *rights(5)[1:]], None, 3, ""),
        ([{"id": "0", "error": "quota"}, *rights(5)[1:]], 1.0, 3, ""),
        ([{"id": "0", "error": "quota"}, *rights(2)[1:]], 1.0, 1, "below --fail-under 1."),
        ([{"id": "0", "error": "quota"}], 0.0, 1, "Nothing was scored, so --fail-under cannot be met."),
        ([{"id": "0", "error": "quota"}], None, 3, ""),
        (rights(5)[1:], 1.0, 1, "Only 5 of 6 answers were judged, so --fail-under cannot be met."),
    ],
)
def test_gates_come_before_failures(tmp_path, replies, bound, code, says):
    """A failed gate is 1, else failures of a provider are 3; items without a reply are neither."""
    gate = () if bound is None else ("--fail-under", bound)

    found = aae("grade", *files(tmp_path, STEP, replies), "--json", *gate)

    assert found.code == code
    assert says in found.err
    assert found.json["coverage"]["unscored"] >= 1


def test_failures_that_are_scored_are_no_failures(tmp_path):
    """By the rules v0.1 a row with an error counts as zero, so nothing was left unscored."""
    found = aae("grade", *files(tmp_path, STEP, [{"id": "0", "error": "quota"}]), "--rules", "v0.1")

    assert found.code == 0


# --- options -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        ["--rules", "v9"], ["--format", "xml"], ["--jobs", "0"], ["--jobs", "-1"], ["--jobs", "two"],
        ["--fail-under", "1.5"], ["--fail-under", "-0.1"], ["--fail-under", "nan"], ["--fail-under", "high"],
        ["--categories", "nowhere.json"], ["--categories", "."], ["--out", "nowhere/rows.jsonl"], ["--out", "."],
        ["--unknown"], ["surplus"],
    ],
)  # fmt: skip
def test_bad_options_are_usage_errors(tmp_path, monkeypatch, options):
    """An option that makes no sense is exit code 2 and is named, without a result or a traceback."""
    usual = files(tmp_path)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    found = aae("grade", *usual, *options)

    assert (found.code, found.out) == (2, "")
    assert "Traceback" not in found.err
    assert options[-1] in found.err or options[0] in found.err
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["here", "items.jsonl", "replies.jsonl"]


@pytest.mark.parametrize("command", [(), ("data",)])
def test_no_arguments_show_the_commands(command):
    """Without arguments the help is shown, as a usage error."""
    found = aae(*command)

    assert found.code == 2
    assert "Commands:" in found.out + found.err


@pytest.mark.parametrize(
    "command",
    [(), ("grade",), ("report",), ("show",), ("data",), ("data", "list"), ("data", "check"), ("data", "convert")],
)
def test_help(command):
    """Every command explains itself on stdout."""
    found = aae(*command, "--help")

    assert (found.code, found.err) == (0, "")
    assert found.out.startswith("Usage: ")
    assert f"{' '.join(['aae', *command])} [OPTIONS]" in found.out.splitlines()[0]


def test_version():
    """The version goes to stdout."""
    assert aae("--version") == (0, f"arabic-agent-eval {__version__}\n", "")


def test_the_module_is_the_command():
    """``python -m arabic_agent_eval`` is ``aae``."""
    command = [sys.executable, "-m", "arabic_agent_eval", "--version"]
    found = subprocess.run(command, capture_output=True, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=True)

    assert found.stdout.decode().strip() == f"arabic-agent-eval {__version__}"


# --- streams -------------------------------------------------------------------------------------------------


def test_results_and_notes_go_to_different_streams(tmp_path):
    """Stdout holds the result and nothing else; notes go to stderr, each a sentence."""
    replies = [*replies_to(ITEMS)[1:], {"id": "z", "calls": []}]
    options = ("grade", *files(tmp_path, ITEMS, replies), "--allow-unknown", "--out", tmp_path / "rows.jsonl")

    as_json, page = aae(*options, "--json"), aae(*options)

    assert as_json.json["overall"] is not None
    assert as_json.err == page.err
    assert as_json.err.splitlines() == [
        "aae: 1 replies to unknown items were left out.",
        "aae: 1 of 8 items have no reply ('بسيط'); they are unscored.",
        f"aae: Graded rows written to {tmp_path / 'rows.jsonl'}.",
    ]
    assert page.out.startswith("Score  0.")


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("as_document", [False, True])
def test_replies_come_from_standard_input(tmp_path, monkeypatch, jobs, as_document):
    """``--replies -`` grades what comes in, lines or a document, and leaves no temporary file behind."""
    options = files(tmp_path)
    expected = aae("grade", *options, "--json")
    content = options[3].read_bytes()
    if as_document:
        content = json.dumps([json.loads(line) for line in content.splitlines()]).encode()
    (tmp_path / "kept").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "kept"))

    found = aae("grade", *options[:2], "--replies", "-", "--json", "--jobs", jobs, stdin=content)
    bad = aae("grade", *options[:2], "--replies", "-", "--json", stdin=content[:-20])

    assert (found.code, found.out) == (0, expected.out)
    assert (bad.code, bad.out) == (2, "")
    assert list((tmp_path / "kept").iterdir()) == []


STRICT = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.parametrize("locale", [{"LC_ALL": "C"}, {"LC_ALL": "C"} | STRICT, {"LC_ALL": "en_US.ISO-8859-1"} | STRICT])
def test_output_is_utf_8_whatever_the_locale(tmp_path, locale):
    """Tables, JSON, rows and messages are UTF-8 with readable Arabic under an ASCII locale."""
    rows = tmp_path / ("rows.jsonl" if len(locale) > 1 else "تقرير.jsonl")
    replies = [*replies_to(ITEMS)[1:], {"id": "غريب", "calls": []}]
    options = files(tmp_path, [row | {"dialect": "نجدي"} for row in ITEMS], replies)

    def run(*extra: str) -> tuple[int, str, str]:
        process = start("grade", *options, "--out", rows, *extra, env=locale, stdout=subprocess.PIPE)
        out, err = process.communicate(timeout=60)
        return process.returncode, out.decode(), err.decode()

    refused, page, as_json = run(), run("--allow-unknown"), run("--allow-unknown", "--json")

    assert (refused[0], page[0], as_json[0]) == (2, 0, 0)
    assert "there is no item 'غريب'" in refused[2]
    for _, out, err in (page, as_json):
        assert "\\u" not in out
        assert "نجدي" in out
        assert rows.name in err
    assert "المعادي" in rows.read_text(encoding="utf-8")


def test_lone_surrogates_in_arguments_are_printed(tmp_path):
    """A file name that is no UTF-8 is an error message, not a second error."""
    found = aae("grade", "--items", "\udcff.jsonl", "--replies", "x")

    assert found.code == 2
    assert found.err.startswith("aae: ⟨U+DCFF⟩.jsonl: there is no such file")


def test_colours_on_a_terminal(tmp_path, monkeypatch):
    """On a terminal the page has its styles and isolates Arabic; the marks of styles are the only escapes."""
    rows = tmp_path / "rows.jsonl"
    aae("grade", *files(tmp_path), "--out", rows)
    out, err = io.BytesIO(), io.BytesIO()
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")

    found = _run(monkeypatch, ("show", rows, "لهجة"), b"", out, err)

    assert found.code == 0
    assert "\x1b[1m" in found.out
    assert "\u2068" in found.out


def test_progress_is_told_on_a_terminal(tmp_path, monkeypatch):
    """While grading takes longer than a second, a terminal shows how far it is, and the line is taken away."""
    hours = iter(range(0, 10**6, 2))
    monkeypatch.setattr(cli.steps.time, "monotonic", lambda: next(hours))

    class Terminal(io.TextIOWrapper):
        def isatty(self):
            return True

    err = io.BytesIO()
    monkeypatch.setattr(sys, "stderr", Terminal(err, encoding="utf-8"))
    with cli.steps.progress() as tell:
        tell(0, 0)
        tell(50, 200)
        tell(200, 200)
    sys.stderr.flush()
    shown = err.getvalue().decode()
    assert shown.split("\r")[1:3] == [
        " 25% graded, 4 s, about 12 s left \x1b[K",
        "100% graded, 6 s, about 0 s left \x1b[K",
    ]
    assert shown.endswith("\r\x1b[K")

    err.truncate(0)
    monkeypatch.setattr(cli.steps.time, "monotonic", lambda: 1.0)
    with cli.steps.progress() as tell:
        tell(5, 10)
    sys.stderr.flush()
    assert err.getvalue().strip(b"\0") == b""


def test_no_progress_without_a_terminal():
    """Nothing is written to a stderr that is a file."""
    with cli.steps.progress() as tell:
        assert tell is None


# --- what can go wrong outside -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (KeyboardInterrupt(), 130, "aae: interrupted; nothing was written.\n"),
        (MemoryError(), 2, "aae: memory ran out. Grade fewer items at a time.\n"),
        (OSError(28, "No space left on device"), 2,
         "aae: the result could not be written: no space left on device.\n"),
        (OSError("odd"), 2, "aae: the result could not be written: odd.\n"),
    ],
)  # fmt: skip
def test_trouble_outside_is_a_sentence(monkeypatch, error, code, says):
    """Whatever the system refuses ends the command with its code and one sentence."""

    def fail():
        raise error

    monkeypatch.setattr(cli, "app", fail)

    assert aae() == (code, "", says)


LOADING = """
import sys
class Loading:
    def find_spec(self, name, *_):
        if name == "typer":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Loading())
"""
"""Somebody presses Ctrl-C in the moment in which the commands are loaded."""


def test_an_interrupt_while_the_commands_load():
    """Ctrl-C at the very beginning is a sentence, too, since nothing is loaded before ``main`` can catch it."""
    process = start("data", "list", before=LOADING, stdout=subprocess.PIPE)
    out, err = process.communicate(timeout=60)

    assert (process.returncode, out, err) == (130, b"", b"aae: interrupted; nothing was written.\n")


def test_a_name_that_the_command_lacks():
    """The module loads its commands when it is asked for them, and knows no other name."""
    assert cli.app.info.name == "aae"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = cli.nothing


def test_a_result_that_was_held_back_is_written(monkeypatch):
    """The end of the command is the end of its output."""
    monkeypatch.setattr(cli, "app", lambda: sys.stdout.write("held back"))

    assert aae() == (0, "held back", "")


def test_a_reader_that_left(monkeypatch, tmp_path):
    """A closed pipe ends the command at once and without a word."""

    def fail(_):
        raise BrokenPipeError

    monkeypatch.setattr(cli.steps, "write", fail)
    monkeypatch.setattr(sys, "argv", ["aae", "data", "list"])
    with (tmp_path / "out").open("w", encoding="utf-8") as out:
        monkeypatch.setattr(sys, "stdout", out)
        with pytest.raises(SystemExit) as stopped:
            cli.main()

    assert stopped.value.code == 0


# --- showing and converting ----------------------------------------------------------------------------------


def test_show_of_an_unknown_item(tmp_path):
    """An item that the rows do not hold is an error that names the file and the item."""
    rows = tmp_path / "rows.jsonl"
    aae("grade", *files(tmp_path), "--out", rows)

    found = aae("show", rows, "غريب")

    assert found == (2, "", f"aae: {rows} holds no item 'غريب'.\n")


def test_show_as_json(tmp_path):
    """The row itself, unescaped."""
    rows = tmp_path / "rows.jsonl"
    aae("grade", *files(tmp_path), "--out", rows)

    found = aae("show", rows, "أداة", "--json")

    assert found.json == next(row for row in read(rows) if row["item_id"] == "أداة")
    assert "أداة" in found.out


def test_convert(tmp_path):
    """Foreign questions become a file of items that the other commands read."""
    parameters = {"type": "dict", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    question = {"id": "simple_0", "question": [[{"role": "user", "content": "ما الطقس في جدة؟"}]],
                "function": [{"name": "weather", "description": "طقس", "parameters": parameters}]}  # fmt: skip
    questions = write(tmp_path / "questions.json", [question])
    answers = write(tmp_path / "answers.json", [{"id": "simple_0", "ground_truth": [{"weather": {"city": ["جدة"]}}]}])
    out = tmp_path / "items.jsonl"

    found = aae("data", "convert", questions, "--answers", answers, "--category", "multi_step", "--out", out)

    assert found == (0, "", f"aae: 1 items written to {out}.\n")
    assert read(out)[0]["expected_calls"] == [{"function": "weather", "arguments": {"city": "جدة"}}]
    assert aae("data", "check", out).code in {0, 1}
    assert aae("data", "convert", questions, "--from", "xml", "--out", out).code == 2


def test_show_a_few(tmp_path):
    """The first answers that lost points, however many there are; of a cause that there is not all that are there."""
    rows = tmp_path / "rows.jsonl"
    aae(
        "grade",
        *files(tmp_path, many_items(3), [{"id": row["id"], "calls": []} for row in many_items(3)]),
        "--out",
        rows,
    )

    few = aae("show", rows, "--lost", "--limit", 2, "--json")
    bad = aae("show", rows, "--cause", "bogus")

    assert (few.code, len(few.out.splitlines())) == (0, 2)
    assert (bad.code, bad.out) == (2, "")
    assert "there is no cause 'bogus'; there are no_call, missing_call," in bad.err
