"""Files in blocks: any cut gives the same, what is done is kept, and what fails names its row."""

from __future__ import annotations

import json
import os
import re

import pytest

from arabic_agent_eval.batch import grade_file, signature_of
from arabic_agent_eval.bundled import find_items
from arabic_agent_eval.errors import DataError, OutputError
from arabic_agent_eval.items import ItemSet
from arabic_agent_eval.ranges import Options
from arabic_agent_eval.rules import CANONICAL, V0_1
from arabic_agent_eval.summary import summarize, summary_json

pa = pytest.importorskip("pyarrow", reason="blocks need the extra 'arrow'")
import pyarrow.parquet as pq  # noqa: E402

from arabic_agent_eval.integrations.blocks import (  # noqa: E402
    SILENT,
    STATE,
    Block,
    BlockGrader,
    Task,
    blocks_of,
    find_files,
    prepare,
    write_silent,
)
from arabic_agent_eval.integrations.counts import Sum  # noqa: E402
from tests.integrations.test_arrow import as_text  # noqa: E402
from tests.integrations.test_counts import mixed  # noqa: E402

ITEMS = ItemSet.read(find_items("sample"), name="sample")
SIGNATURE = signature_of(ITEMS, CANONICAL, "auto")
ROWS = [row for row in mixed(10**6, 1) if not row["id"].startswith("nobody")]


def task(out=None, **options) -> Task:
    return Task(find_items("sample"), "sample", SIGNATURE, Options(**options), out)


def told(tally) -> bytes:
    return summary_json(summarize(tally, due=len(ITEMS), signature=SIGNATURE, rules="canonical"))


def graded(what: Task, blocks: list[Block]) -> tuple[bytes, list[bool]]:
    """The summary of blocks, and which of them were kept."""
    grader, total, kept = BlockGrader(what), Sum(), []
    for block in blocks:
        counts, was_kept = grader.grade(block)
        assert total.add(counts) is None
        kept.append(was_kept)
    return told(total.tally()), kept


@pytest.fixture
def lines(tmp_path):
    """A file of replies, with blank lines among them, without an end of its last line."""
    path = tmp_path / "replies.jsonl"
    path.write_text("\ufeff\n" + "\n\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS), encoding="utf-8")
    return path


@pytest.fixture
def table(tmp_path):
    """The same replies as Parquet, in row groups of five."""
    path = tmp_path / "replies.parquet"
    pq.write_table(pa.Table.from_batches([as_text(ROWS)]), path, row_group_size=5)
    return path


@pytest.mark.parametrize(("size", "rows"), [(40, False), (700, False), (10**9, False), (900, True), (10**9, True)])
def test_any_cut_gives_the_same(lines, table, tmp_path, size, rows):
    """JSONL and Parquet cut into blocks of any size, with rows or without, come to what one process says."""
    expected = told(grade_file(ITEMS, lines).tally)
    for path in (lines, table):
        out = tmp_path / f"out-{path.suffix[1:]}" if rows else None
        blocks = blocks_of(path, path.name, size)
        if out is not None:
            prepare(out, blocks)

        assert graded(task(out), blocks)[0] == expected
        assert (len(blocks) == 1) == (size == 10**9)
        if out is not None:
            found = pq.read_table(out).to_pylist()
            assert {row["file"] for row in found} == {path.name}
            assert sorted((row["item_id"], row["epoch"]) for row in found) == sorted(
                (row["id"], row["epoch"]) for row in ROWS
            )


def test_rows_say_what_one_process_says(lines, table, tmp_path):
    """The rows of both are those of ``grade_file``, in order, in totals, reasons and causes."""
    grade_file(ITEMS, lines, out=tmp_path / "rows.jsonl")
    expected = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text(encoding="utf-8").splitlines()]
    for path in (lines, table):
        out = tmp_path / path.suffix[1:]
        blocks = blocks_of(path, path.name, 900)
        prepare(out, blocks)
        graded(task(out), blocks)
        write_silent(task(out), ITEMS, [row["item_id"] for row in expected[len(ROWS) :]])

        found = [row for block in blocks for row in pq.read_table(out / block.part).to_pylist()]
        found += pq.read_table(out / SILENT).to_pylist()

        for row, wanted in zip(found, expected, strict=True):
            assert {name: row[name] for name in ("item_id", "epoch", "total", "reason", "said", "signature")} == {
                name: wanted[name] for name in ("item_id", "epoch", "total", "reason", "said", "signature")
            }
            assert [loss["points"] for loss in row["losses"]] == [loss["points"] for loss in wanted["losses"]]


def test_what_is_done_is_kept(lines, table, tmp_path):
    """A second time nothing is graded and the numbers are the same, and no file of rows is touched."""
    for path in (lines, table):
        out = tmp_path / path.suffix[1:]
        blocks = blocks_of(path, path.name, 700)
        prepare(out, blocks)
        first, fresh = graded(task(out), blocks)
        before = {file: file.stat().st_mtime_ns for file in out.glob("*.parquet")}

        prepare(out, blocks)
        again, kept = graded(task(out), blocks)

        assert (again, set(fresh), set(kept)) == (first, {False}, {True})
        assert {file: file.stat().st_mtime_ns for file in out.glob("*.parquet")} == before
        assert len(blocks) > 3


def changed(path, row: int) -> None:
    """Change one reply in a file, its length staying the same."""
    if path.suffix == ".parquet":
        rows = [*ROWS]
        rows[row] = {"id": rows[row]["id"], "epoch": rows[row]["epoch"], "text": "لا"}
        pq.write_table(pa.Table.from_batches([as_text(rows)], pq.read_schema(path)), path, row_group_size=5)
    else:
        text = path.read_text(encoding="utf-8")
        at = [found.start() for found in re.finditer('"epoch": ', text)][row] + len('"epoch": ')
        path.write_text(f"{text[:at]}9{text[at + 1 :]}", encoding="utf-8")


def test_only_what_changed_is_graded_again(lines, table, tmp_path):
    """After one reply has changed its block alone is graded anew, and the result is that of the new file."""
    for path in (lines, table):
        out = tmp_path / path.suffix[1:]
        blocks = blocks_of(path, path.name, 700)
        prepare(out, blocks)
        graded(task(out), blocks)
        changed(path, 20)

        again = blocks_of(path, path.name, 700)
        prepare(out, again)
        found, kept = graded(task(out), again)

        assert kept.count(False) in {1, 2}  # two where a line begins in one block and ends in the next
        assert found == graded(task(), again)[0]


@pytest.mark.parametrize(
    "other",
    [
        {"signature": signature_of(ITEMS, V0_1, "auto")},
        {"signature": signature_of(ITEMS.first(23), CANONICAL, "auto")},
        {"signature": signature_of(ITEMS, CANONICAL, "calls")},
        {"options": Options(causes=False)},
        {"options": Options(allow_unknown=True)},
        {"options": Options(categories={})},
    ],
)
def test_everything_that_decides_is_in_the_fingerprint(lines, other):
    """Other rules, items, formats and options make other results, so what is kept of these does not hold for them."""
    (block,) = blocks_of(lines, "replies.jsonl")
    one = task()
    another = Task(one.items, one.name, other.get("signature", SIGNATURE), other.get("options", one.options), None)

    assert another.fingerprint(block) != one.fingerprint(block)


@pytest.mark.parametrize("harm", ["rows gone", "rows cut", "state torn", "state gone"])
def test_what_was_harmed_is_graded_again(lines, tmp_path, harm):
    """Kept rows without their counts, or counts without their rows, are not taken for done."""
    out = tmp_path / "out"
    blocks = blocks_of(lines, "replies.jsonl")
    prepare(out, blocks)
    first, _ = graded(task(out), blocks)
    rows, state = out / blocks[0].part, out / STATE / f"{blocks[0].part}.json"
    file = rows if harm.startswith("rows") else state
    if harm.endswith("gone"):
        file.unlink()
    else:
        os.truncate(file, 40)

    assert graded(task(out), blocks) == (first, [False])
    assert pq.read_table(rows).num_rows == len(ROWS)


def failing(folder, ending: str, row: dict):
    """A file of 60 replies to the first item of which one is something else."""
    rows = [{"id": "simple-msa", "epoch": number, "text": "x" * 50} for number in range(60)]
    rows[41] = row
    path = folder / f"bad{ending}"
    if ending == ".parquet":
        pq.write_table(pa.Table.from_batches([as_text(rows)]), path, row_group_size=7)
    else:
        path.write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("rows", [False, True], ids=["counts", "rows"])
@pytest.mark.parametrize("ending", [".jsonl", ".parquet"])
@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"id": "nobody", "epoch": 41, "text": ""}, "there is no item 'nobody'"),
        ({"id": "simple-msa", "epoch": -1, "text": ""}, "an epoch must be"),
        ({"id": "simple-msa", "epoch": 41, "calls": "oops"}, "'calls'"),
    ],
)
def test_what_fails_names_its_row(tmp_path, ending, row, message, rows):
    """An error says file and row, counted from the start of the file, and nothing of the block is kept."""
    path = failing(tmp_path, ending, row)
    out = tmp_path / "out" if rows else None
    blocks = blocks_of(path, path.name, 300)
    if out is not None:
        prepare(out, blocks)
    grader, failures = BlockGrader(task(out)), []
    for block in blocks:
        try:
            grader.grade(block)
        except DataError as error:
            failures.append((block, str(error)))

    ((block, said),) = failures
    assert said.startswith(f"{path}, {'row' if ending == '.parquet' else 'line'} 42, ")
    assert message in said
    assert len(blocks) > 3
    if out is not None:
        assert {file.name for file in out.glob("*.parquet")} == {one.part for one in blocks if one != block}


@pytest.mark.parametrize("ending", [".jsonl", ".parquet"])
def test_an_answer_that_stands_twice_names_both(tmp_path, ending):
    """Within a block both rows are named."""
    path = failing(tmp_path, ending, {"id": "simple-msa", "epoch": 7, "text": ""})
    unit = "row" if ending == ".parquet" else "line"

    with pytest.raises(DataError) as refused:
        BlockGrader(task()).grade(blocks_of(path, path.name)[0])

    assert str(refused.value).startswith(
        f"{path}, {unit} 42, field 'id': item 'simple-msa' is answered twice in epoch 7 (first {path}, {unit} 8)."
    )


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b"[]", "one JSON document"),
        ("a.jsonl", b'{"results": []}', "one JSON document"),
        ("a.jsonl", b"\xff\xfea\x00", "UTF-16"),
        ("a.parquet", b"PAR1", "the file cannot be read"),
        ("a.parquet", b"", "the file cannot be read"),
    ],
)
def test_what_is_no_file_of_replies_is_refused(tmp_path, name, content, message):
    """A file that cannot be cut is an error that names it."""
    path = tmp_path / name
    path.write_bytes(content)

    with pytest.raises(DataError, match=message) as refused:
        blocks_of(path, name)
    assert refused.value.path == str(path)


def test_a_parquet_file_of_something_else_is_refused(tmp_path):
    """A Parquet file without the columns of a reply is named."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"when": [1]}), path)

    with pytest.raises(DataError, match="none of the columns of a reply") as refused:
        blocks_of(path, "a.parquet")
    assert refused.value.path == str(path)


def test_a_torn_parquet_file_fails_at_its_block(table):
    """Bytes that no longer decode are an error of the data, not of the worker."""
    blocks = blocks_of(table, table.name)
    data = bytearray(table.read_bytes())
    data[4:4000] = b"\xff" * 3996
    table.write_bytes(data)

    with pytest.raises(DataError, match="the file cannot be read"):
        BlockGrader(task()).grade(blocks[0])


def test_an_empty_file_has_no_blocks(tmp_path):
    """Nothing in it, nothing to grade; folders that other tools write hold such files."""
    (tmp_path / "a.jsonl").touch()
    pq.write_table(
        pa.table({"id": pa.array([], pa.string()), "text": pa.array([], pa.string())}), tmp_path / "b.parquet"
    )

    assert blocks_of(tmp_path / "a.jsonl", "a.jsonl") == []
    assert sum(block.end - block.start for block in blocks_of(tmp_path / "b.parquet", "b.parquet")) <= 1


def test_files_of_a_folder(tmp_path):
    """All files of replies under a folder, by their paths; hidden ones and others are passed over."""
    for name in ("b/2.jsonl", "b/1.parquet", "a.ndjson", "_old/x.jsonl", ".x.jsonl", "b/_SUCCESS", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()

    files, others = find_files(tmp_path)

    assert [file.relative_to(tmp_path).as_posix() for file in files] == ["a.ndjson", "b/1.parquet", "b/2.jsonl"]
    assert others == 1
    with pytest.raises(DataError, match="no file of replies"):
        find_files(empty(tmp_path))


def empty(folder):
    (folder / "empty").mkdir()
    return folder / "empty"


def test_parts_have_names_of_their_own():
    """Two files of one name in two folders have parts of two names, and a part of a strange name is a plain one."""
    names = ["a/x.jsonl", "b/x.jsonl", "x.parquet", "_ ../\u202e.jsonl", "." * 300 + ".jsonl", "ردود.jsonl"]
    parts = [Block("", name, 0, 0, 1, 1).part for name in names]

    assert len(set(parts)) == len(parts)
    assert all(re.fullmatch(r"[\w-][\w.-]{1,60}\.parquet", part) and part[0] not in "._" for part in parts)


def test_a_folder_that_holds_something_else_is_refused(tmp_path):
    """Results need a folder of their own; nothing in another one is touched."""
    (tmp_path / "mine.txt").touch()

    with pytest.raises(OutputError, match="holds something else"):
        prepare(tmp_path, [])
    with pytest.raises(OutputError, match="holds something else"):
        prepare(tmp_path / "mine.txt", [])
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


def test_rows_of_files_that_are_gone_are_removed(lines, tmp_path):
    """What an earlier run left of blocks that are no more, and of writing that was killed, does not stay."""
    out = tmp_path / "out"
    many = blocks_of(lines, "replies.jsonl", 700)
    prepare(out, many)
    graded(task(out), many)
    (out / ".x.parquet.abc.part").touch()
    (out / "mine.txt").touch()

    prepare(out, many[:2])

    assert {file.name for file in out.iterdir()} == {STATE, "mine.txt", many[0].part, many[1].part}
    assert len(list((out / STATE).iterdir())) == 2


def test_other_items_on_a_machine_are_refused(tmp_path):
    """A worker that sees other items than the one that asks says so instead of grading by them."""
    path = tmp_path / "items.jsonl"
    path.write_text(find_items("sample").read_text(encoding="utf-8").replace("مكة", "جدة"), encoding="utf-8")

    with pytest.raises(DataError, match="the items have changed"):
        BlockGrader(Task(path, "sample", SIGNATURE, Options(), None))
