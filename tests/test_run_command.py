"""``aae run``: its limits, what it refuses, and that a key is nowhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests import faults
from tests.chats import GUARD, Provider, completion, lines_of, rows_of
from tests.faults import FaultServer
from tests.nursery import Nursery, asking, assert_each_once, material
from tests.test_cli import ROOT, aae

PASSWORD = "hunter2-and-more"
KEY = "planted-Kq7+x/9=ZrT4mVb"


@pytest.fixture(scope="module")
def nursery(tmp_path_factory) -> Iterator[Nursery]:
    """One for all tests."""
    made = Nursery(tmp_path_factory.mktemp("nursery"))
    yield made
    made.close()


# --- limits --------------------------------------------------------------------------------------------------


def test_a_deadline(tmp_path, nursery):
    """When the time is up asking stops with a sentence, code 3 and the command that goes on."""
    rows, folder = rows_of(10), tmp_path / "run"
    with FaultServer(Provider(rows, delay=0.1)) as server:
        options = (*material(tmp_path, rows), "--run", folder, "--concurrency", 1, "--json")
        ended = nursery.run(*asking(server, options, "--deadline", 0.35))
        resumed = nursery.run("run", "--resume", folder, "--concurrency", 8, "--deadline", 60)

    assert ended.code == 3
    assert ended.err.splitlines()[-1] == (
        "aae: The deadline of 0.35 seconds has passed. Everything that was answered is kept. "
        f"Go on with: aae run --resume {folder} --concurrency 1"
    )
    assert 0 < json.loads(ended.out)["coverage"]["scored"] < len(rows)
    assert resumed.code == 0
    assert_each_once(folder, 1)


def test_a_limit_on_the_cost(tmp_path, nursery):
    """No request is sent that could cost more than is left; another session has the same sum to spend again."""
    rows, folder, prices = rows_of(10, conversations=0), tmp_path / "run", tmp_path / "prices.json"
    prices.write_text('{"m": {"input": 1000, "output": 5000}}', encoding="utf-8")  # one dollar for each answer
    with FaultServer(Provider(rows)) as server:
        options = (*material(tmp_path, rows), "--run", folder, "--concurrency", 1, "--json")
        ended = nursery.run(*asking(server, options, "--prices", prices, "--max-cost", 4.5))
        assert len(server.seen) == 4
        again = nursery.run("run", "--resume", folder, "--prices", prices, "--max-cost", 4.5, "--concurrency", 1)
        assert len(server.seen) == 8
        resumed = nursery.run("run", "--resume", folder, "--prices", prices, "--json")

    assert ended.code == again.code == 3
    assert "aae: The next request could cost more than is left of --max-cost 4.5. Everything that" in ended.err
    assert json.loads(ended.out)["cost"] == pytest.approx(4.0)
    assert json.loads(resumed.out)["cost"] == pytest.approx(10.0)
    assert_each_once(folder, 1)


def test_a_cost_that_nobody_counts(tmp_path, nursery):
    """With --max-cost and no count of tokens asking stops after one answer, which is kept."""
    rows, folder = rows_of(3, conversations=0), tmp_path / "run"
    with FaultServer(faults.ok(completion(text="لا أعرف", usage=None))) as server:
        options = (*material(tmp_path, rows), "--run", folder, "--concurrency", 1, "--max-cost", 1)
        ended = nursery.run(*asking(server, options))

    assert ended.code == 3
    assert "What an answer cost is not known, so --max-cost cannot be kept" in ended.err
    assert [line["status"] for line in lines_of(folder / "replies.jsonl")] == ["answered"]
    assert len(server.seen) == 1


def test_a_limit_and_epochs(tmp_path, nursery):
    """--limit asks the first items, --epochs each of them so often."""
    rows, folder = rows_of(9), tmp_path / "run"
    with FaultServer(Provider(rows)) as server:
        options = (*material(tmp_path, rows), "--run", folder, "--limit", 4, "--epochs", 3, "--json")
        ended = nursery.run(*asking(server, options))

    assert ended.code == 0
    assert json.loads(ended.out)["coverage"] == {"scored": 12, "unscored": 0, "total": 12}
    assert len(server.seen) == 3 * (3 + 3)
    assert [row["id"] for row in lines_of(folder / "items.jsonl")] == [row["id"] for row in rows[:4]]
    assert_each_once(folder, 3)


@pytest.mark.parametrize(
    ("option", "says"),
    [
        (("--model", "openai-chat/other"), 'model: "openai-chat/m" in the run, "openai-chat/other" now'),
        (("--epochs", 2), "epochs: 1 in the run, 2 now"),
        (("--temperature", 0.5), "temperature: null in the run, 0.5 now"),
        (("--seed", 7), "seed: null in the run, 7 now"),
        (("--max-tokens", 9), "max tokens: null in the run, 9 now"),
        (("--parameter", "top_p=1"), 'parameters: {} in the run, {"top_p":1} now'),
        (("--tool-language", "ar"), 'tool language: "both" in the run, "ar" now'),
        (("--prompt-tools",), "written: false in the run, true now"),
        (("--max-turns", 3), "max turns: 10 in the run, 3 now"),
        (("--base-url", "http://127.0.0.1:1"), 'now'),
        (("--limit", 2), "count: 4 in the run, 2 now"),
        (("--items", "starter"), "count: 4 in the run, 60 now"),
        (("--system-prompt", "tools.json"), "system: \"أنت مساعد"),
        (("--run", "elsewhere"), "--run names a new folder and --resume an old one"),
        (("--model", "telepathy/x"), 'model: "openai-chat/m" in the run, "telepathy/x" now'),
    ],
)  # fmt: skip
def test_other_settings_are_refused(tmp_path, monkeypatch, option, says):
    """A resumed run asks what it asked; what differs is said, and nothing is sent."""
    rows, folder = rows_of(4), tmp_path / "run"
    monkeypatch.chdir(tmp_path)
    with FaultServer(Provider(rows)) as server:
        assert aae(*asking(server, material(tmp_path, rows), "--run", folder)).code == 0
        (folder / "replies.jsonl").write_bytes(b"")
        server.seen.clear()
        ended = aae("run", "--resume", folder, *option)
        assert not server.seen
        assert aae("run", "--resume", folder, "--epochs", 1, "--model", "openai-chat/m").code == 0

    assert (ended.code, ended.out) == (2, "")
    assert says in ended.err


# --- keys ----------------------------------------------------------------------------------------------------

ECHOES = {
    "answer": faults.ok(completion(text=f"مفتاحك {KEY}")),
    "arguments": faults.ok(completion({"function": "find_road", "arguments": {"place": KEY}})),
    "escaped": faults.ok(completion(text=KEY).replace(b"/", b"\\/").replace(b"+", b"\\u002b")),
    "refusal": faults.status(401, json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}."}}).encode()),
    "bad request": faults.status(400, f"Authorization: Bearer {KEY}".encode(), {"content-type": "text/plain"}),
    "server error": faults.status(500, json.dumps({"error": {"message": KEY, "code": KEY}}).encode()),
    "rate limit": faults.status(429, KEY.encode() * 30, {"retry-after": "0.01"}),
    "redirect": faults.redirect(302, f"https://elsewhere.example/?key={KEY}"),
    "page": faults.ok(f"<html>{KEY}</html>".encode(), "text/html"),
    "error with status 200": faults.ok(json.dumps({"error": {"message": f"bad key {KEY}"}}).encode()),
    "cut": faults.cut(f'{{"key": "{KEY}"}}'.encode(), 12 + len(KEY)),
    "type": faults.ok(b"?", f"text/{KEY}"),
}  # fmt: skip


@pytest.mark.parametrize("name", ECHOES)
def test_a_key_is_nowhere(tmp_path, nursery, name):
    """The key is sent, and stands in no file, on no stream, in whatever way the server throws it back."""
    rows, folder = rows_of(2, conversations=2), tmp_path / "run"
    echo, cache = ECHOES[name], tmp_path / "cache"
    options = (*material(tmp_path, rows), "--api-key-env", "PLANTED_KEY", "--attempts", 2)
    with FaultServer(echo) as server:
        ended = nursery.run(
            *asking(server, options, "--run", folder, "--cache", cache, "--out", tmp_path / "rows.jsonl"),
            env={"PLANTED_KEY": KEY},
        )
        resumed = nursery.run(
            "run", "--resume", folder, "--api-key-env", "PLANTED_KEY", "--json", "--attempts", 1,
            env={"PLANTED_KEY": KEY},
        )  # fmt: skip

    assert {seen.headers["authorization"] for seen in server.seen} == {f"Bearer {KEY}"}
    assert {ended.code, resumed.code} <= {0, 3}
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"manifest.json", "replies.jsonl", "rows.jsonl"} <= {path.name for path in written}
    for text in (ended.out, ended.err, resumed.out, resumed.err, *(path.read_text("utf-8") for path in written)):
        assert KEY[:12] not in text
        assert KEY[:12].replace("+", "\\u002b") not in text
    if ended.code:
        assert f"Go on with: aae run --resume {folder} --api-key-env PLANTED_KEY" in ended.err or (
            f"again with: aae run --resume {folder} --api-key-env PLANTED_KEY" in ended.err
        )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--base-url", f"http://user:{PASSWORD}@127.0.0.1:1/v1"), "holds a user name or a password"),
        (("--base-url", f"http://127.0.0.1:1/v1?key={KEY}"), "holds a question mark"),
        (("--api-key-env", "NO_SUCH_KEY"), "the environment variable NO_SUCH_KEY is not set"),
        (("--api-key-env", "BROKEN_KEY"), "The key holds white space"),
        (("--base-url", "telnet://127.0.0.1"), "does not begin with http:// or https://"),
        (("--prices", "prices.json"), "prices.json has no price for 'openai-chat/m'."),
        (("--max-cost", "nan"), "max_cost is nan; give a number of at least 0."),
        (("--out", "items.jsonl"), "--out items.jsonl is one of the inputs"),
        (("--model", "openai-chat/\udcff"), "is not UTF-8 text."),
    ],
)
def test_what_is_refused_leaves_nothing(tmp_path, monkeypatch, options, says):
    """A mistake in an option is said before a folder is made, so nothing that was given lies about in it."""
    material(tmp_path, rows_of(2))
    (tmp_path / "prices.json").write_text('{"other": {"input": 1, "output": 1}}', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BROKEN_KEY", f"{KEY}\n{KEY}")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    ended = aae(
        "run", "--model", "openai-chat/m", "--base-url", "http://127.0.0.1:1/v1", "--items", "items.jsonl",
        "--tools", "tools.json", "--run", "run", *options,
    )  # fmt: skip

    assert (ended.code, ended.out) == (2, "")
    assert says in ended.err
    assert KEY not in ended.err
    assert PASSWORD not in ended.err
    assert ended.err.count("\n") == 1
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_odd_names(tmp_path, monkeypatch):
    """Folders, files and parameters whose bytes are no text are used all the same."""
    rows = rows_of(2)
    material(tmp_path, rows)
    items = tmp_path / os.fsdecode(b"\xff items.jsonl")
    (tmp_path / "items.jsonl").rename(items)
    monkeypatch.chdir(tmp_path)
    with FaultServer(Provider(rows)) as server:
        options = ("--items", items, "--tools", "tools.json", "--parameter", os.fsdecode(b"user=\xff"), "--json")
        ended = aae(*asking(server, options, "--run", os.fsdecode(b"run \xff")))
        again = aae("run", "--resume", os.fsdecode(b"run \xff"), *options)

    assert ended.code == 0, ended.err
    assert ended.json["run"] == "run \ufffd"
    assert again.code == 0, again.err
    assert again.json["overall"] == 1.0


def test_results_do_not_overwrite_answers(tmp_path, monkeypatch):
    """--out in the run folder is refused where it would replace a file of the run, before anything is asked."""
    rows, folder = rows_of(2), tmp_path / "run"
    with FaultServer(Provider(rows)) as server:
        options = (*material(tmp_path, rows), "--run", folder)
        ended = aae(*asking(server, options, "--out", folder / "replies.jsonl"))
        assert not server.seen
        resumed = aae("run", "--resume", folder, "--out", folder / "rows.jsonl")

    assert ended.code == 2
    assert "replies.jsonl is one of the inputs" in ended.err
    assert resumed.code == 0
    assert len(lines_of(folder / "rows.jsonl")) == 2


def test_the_command_as_a_module(tmp_path):
    """``python -m arabic_agent_eval run`` is the same command."""
    rows, folder = rows_of(2), tmp_path / "run"
    with FaultServer(Provider(rows)) as server:
        arguments = asking(server, material(tmp_path, rows), "--run", folder, "--json")
        ended = subprocess.run(
            [sys.executable, "-m", "arabic_agent_eval", *map(str, arguments)], capture_output=True, check=False,
            env=os.environ | {"PYTHONPATH": str(ROOT)}, timeout=GUARD,
        )  # fmt: skip

    assert ended.returncode == 0
    assert json.loads(ended.stdout)["overall"] == 1.0


def test_what_is_said_before_anything_is_asked(tmp_path):
    """A category without a weight is refused before a request is sent; items that are unfair are pointed out."""
    rows = rows_of(2)
    odd = [{**rows[0], "category": "mine"}, rows[1]]
    with FaultServer(Provider(rows)) as server:
        refused = aae(*asking(server, material(tmp_path, odd), "--run", tmp_path / "run"))
        seen = len(server.seen)

    assert (refused.code, seen) == (2, 0)
    assert "the category 'mine' has no declared weight" in refused.err
    assert not (tmp_path / "run").exists()

    wrong = {**rows[0]["expected_calls"][0], "arguments": {"zzz": "x"}}
    unfair = [{**rows[0], "expected_calls": [wrong]}, *rows[1:]]
    with FaultServer(Provider(rows)) as server:
        warned = aae(*asking(server, material(tmp_path, unfair), "--run", tmp_path / "other"))
    assert "items unfair or unanswerable; 'aae data check" in warned.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--base-url", ""), "--base-url is empty"),
        (("--model", ""), "--model is empty"),
        (("--out", "nowhere/rows.jsonl"), "there is no folder nowhere"),
    ],
)
def test_empty_options_and_no_place_are_refused_first(tmp_path, options, said):
    """A variable of the shell that is not set sends nothing to a provider, and rows have a place before it costs."""
    refused = aae("run", *options, "--run", tmp_path / "run")

    assert refused.code == 2
    assert said in refused.err
    assert not (tmp_path / "run").exists()


def test_a_check_of_a_model_with_an_empty_address(monkeypatch):
    """A variable that is not set must not send a key, meant for another server, to the provider's own address."""
    monkeypatch.setenv("GATEWAY_KEY", "secret")

    refused = aae("models", "--check", "openai-chat/m", "--base-url", "", "--api-key-env", "GATEWAY_KEY")

    assert (refused.code, refused.err) == (2, "aae: --base-url is empty; give a value, or leave the option out.\n")


def test_a_limit_beyond_all_items(tmp_path):
    """However large a limit is, all items are asked."""
    found = aae("run", "--items", "sample", "--limit", 10**20, "--run", tmp_path / "run", "--json")

    assert (found.code, found.json["coverage"]["total"]) == (0, 24)


def test_tools_of_an_item_that_are_none_are_refused_first(tmp_path):
    """An item whose own tools cannot be offered is named before anything is asked."""
    rows = rows_of(2)
    broken = [rows[0], {**rows[1], "tools": [{"name": 7}]}]
    with FaultServer(Provider(rows)) as server:
        refused = aae(*asking(server, material(tmp_path, broken), "--run", tmp_path / "run"))
        assert not server.seen

    assert refused.code == 2
    assert f"item {rows[1]['id']!r} cannot be asked" in refused.err


def test_two_at_once_make_one_run(tmp_path):
    """Of processes that make the same folder at once one runs, and the manifest is that of the answers."""
    rows, folder = rows_of(3, conversations=0), tmp_path / "run"
    where = material(tmp_path, rows)
    with FaultServer(Provider(rows)) as server:
        arguments = [asking(server, where, "--run", folder, "--temperature", number) for number in range(4)]
        processes = [
            subprocess.Popen([sys.executable, "-m", "arabic_agent_eval", *map(str, one)], stderr=subprocess.PIPE,
                             stdout=subprocess.DEVNULL, env=os.environ | {"PYTHONPATH": str(ROOT)})
            for one in arguments
        ]  # fmt: skip
        codes = [process.wait(GUARD) for process in processes]
        for process in processes:
            process.communicate()

    assert sorted(codes) == [0, 2, 2, 2]
    winner = codes.index(0)
    assert json.loads((folder / "manifest.json").read_text("utf-8"))["asked"]["temperature"] == winner
    sent = {turn["request"]["temperature"] for line in lines_of(folder / "replies.jsonl") for turn in line["turns"]}
    assert sent == {winner}


# --- declared categories -------------------------------------------------------------------------------------


def test_categories_beside_the_items(tmp_path):
    """They hold for grading and asking without an option, the run keeps them, and an option comes first."""
    rows = [row | {"category": "banking"} for row in rows_of(4, conversations=0)]
    folder, (_, items, *_) = tmp_path / "run", material(tmp_path, rows)
    declared = tmp_path / "categories.json"
    declared.write_text('{"banking": {"weight": 0.5, "name_ar": "مصارف"}}', encoding="utf-8")
    (tmp_path / "other.json").write_text('{"banking": 0}', encoding="utf-8")

    run = aae("run", "--items", items, "--run", folder, "--json")
    (tmp_path / "categories.json").unlink()
    again = aae("report", folder, "--json")
    left_out = aae("report", folder, "--json", "--categories", tmp_path / "other.json")

    assert (run.code, again.code) == (0, 0), run.err + again.err
    assert json.loads(again.out)["categories"]["banking"]["weight"] == 0.5
    assert json.loads(run.out)["overall"] == json.loads(again.out)["overall"] is not None
    assert json.loads(left_out.out)["overall"] is None
    assert json.loads((folder / "categories.json").read_text(encoding="utf-8")) == {
        "banking": {"weight": 0.5, "name_ar": "مصارف"}
    }
