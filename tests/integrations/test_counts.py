"""Counts that are taken apart, written down and added again give the numbers of one process, bit for bit."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arabic_agent_eval.batch import grade_file, signature_of
from arabic_agent_eval.bundled import find_items, find_replies
from arabic_agent_eval.integrations.counts import Sum, Twice, write_counts
from arabic_agent_eval.items import ItemSet
from arabic_agent_eval.ranges import Options, RangeGrader, RangeResult
from arabic_agent_eval.rules import CANONICAL
from arabic_agent_eval.summary import summarize, summary_json
from arabic_agent_eval.tally import Ledger

ITEMS = ItemSet.read(find_items("sample"), name="sample")
SAMPLE = [json.loads(line) for line in find_replies("sample").read_text(encoding="utf-8").splitlines()]


def mixed(count: int, seed: int) -> list[dict]:
    """Replies of the sample to other epochs and of other items, failures and unknown items, in no order."""
    draw = random.Random(seed)
    rows = []
    for item in list(ITEMS)[:-2]:
        for epoch in draw.sample(range(9), k=draw.randrange(9)):
            answer = {**draw.choice(SAMPLE), "id": item, "epoch": epoch}
            rows.append(
                draw.choice([answer] * 5 + [{"id": item, "epoch": epoch, "error": draw.choice(["503", "429"])}])
            )
    rows += [{"id": f"nobody-{number}", "text": ""} for number in range(3)]
    draw.shuffle(rows)
    return rows[:count]


def summed(path, sizes: list[int]) -> Sum:
    """A file graded in ranges of these sizes, each by a grader of its own, added through their JSON."""
    total, start = Sum(), 0
    for size in [*sizes, path.stat().st_size]:
        grader = RangeGrader(ITEMS, path, Options(allow_unknown=True))
        assert total.add(write_counts(grader.grade_range(start, start + size))) is None
        start += size
    return total


@given(st.integers(0, 10**6), st.lists(st.integers(0, 20_000), max_size=4))
def test_any_cutting_gives_the_same(tmp_path_factory, seed, sizes):
    """However a file is cut, the summary of the counts is that of one process, to the last bit."""
    path = tmp_path_factory.mktemp("counts") / "replies.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in mixed(10**6, seed)), encoding="utf-8")

    one, total = grade_file(ITEMS, path, allow_unknown=True), summed(path, sizes)

    def told(tally) -> bytes:
        signature = signature_of(ITEMS, CANONICAL, "auto")
        return summary_json(summarize(tally, due=len(ITEMS), signature=signature, rules="canonical"))

    assert told(total.tally()) == told(one.tally)
    assert (total.failures, total.unknown, total.written) == (one.failures, one.unknown, one.written)


PAIRS = st.tuples(st.sampled_from("abc"), st.integers(0, 6))


@given(st.lists(st.lists(PAIRS, unique=True, max_size=8), max_size=6))
def test_an_answer_that_stands_twice_is_noticed(blocks):
    """An item and epoch of two blocks is noticed as the ledger of one process notices it, and the block is left out."""
    total, ledger = Sum(), Ledger()
    for block in blocks:
        twice = total.add(write_counts(RangeResult(again=block)))

        known = {pair for pair in block if not ledger.add(*pair)}
        assert (twice is not None) == bool(known)
        if twice is not None:
            assert (twice.item_id, twice.epoch) in known
            ledger = Ledger()  # the pairs of the refused block are not known to the sum
            total = Sum()


def test_an_answer_that_stands_twice_in_a_block():
    """Within one block it is noticed before anything is written."""
    with pytest.raises(Twice) as noticed:
        write_counts(RangeResult(first=["a", "b"], again=[("b", 1), ("b", 0)]))
    assert (noticed.value.item_id, noticed.value.epoch) == ("b", 0)


def test_a_refused_block_leaves_no_trace():
    """Of a block that answers again nothing is added, so what follows is counted as if it had not been there."""
    total = Sum()
    total.add(write_counts(RangeResult(again=[("a", 0)])))

    assert total.add(write_counts(RangeResult(again=[("b", 0), ("a", 0)]))) is not None
    assert total.add(write_counts(RangeResult(again=[("b", 0), ("a", 1)]))) is None
