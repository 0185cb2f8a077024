"""Intervals of a report, and what repeated askings bring."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from arabic_agent_eval.errors import UnknownCategory
from arabic_agent_eval.items import Category
from arabic_agent_eval.statistics import mean_interval, wilson
from arabic_agent_eval.tables import attempts_shown, interval, probability, signed, signed_interval
from arabic_agent_eval.uncertainty import Intervals, intervals, repeats, uncertainty
from tests.answers import answer, column, drawn, scores
from tests.test_cli import ITEMS, ROOT, aae, files, many_items, replies_to
from tests.test_rows import graded


def test_intervals_are_those_of_the_statistics():
    """Overall by category and weight, groups by plain means, both by intent: as the statistics are called by hand."""
    found = drawn(7)
    items = list(found.items.values())
    weights = {"simple_function_calling": 0.2, "multi_step": 0.2, "tool_selection": 0.15}
    gulf = [item for item in items if item.dialect == "gulf"]

    ends = intervals(found)

    overall = mean_interval(
        [item.mean for item in items],
        [item.cluster for item in items],
        strata=[item.category for item in items],
        weights=weights,
    )
    of_gulf = mean_interval([item.mean for item in gulf], [item.cluster for item in gulf])
    assert ends.overall == (overall.low, overall.high)
    assert ends.dialects["gulf"] == (of_gulf.low, of_gulf.high)
    assert list(ends.categories) == list(weights)
    assert list(ends.dialects) == ["msa", "gulf", "(none)"]
    assert list(ends.axes) == ["function_selection"]
    assert ends.level == 0.95


def test_every_interval_holds_its_number(tmp_path):
    """In a report each interval lies around the number that it belongs to, whatever failed and however often."""
    items = many_items(4)
    replies = [row | {"epoch": epoch} for epoch in range(3) for row in replies_to(items)[: len(items) - epoch]]
    wrong = [row | {"calls": []} if place % 3 == 0 else row for place, row in enumerate(replies)]
    _, rows = graded(tmp_path, items, wrong)

    found = aae("report", rows, "--json").json

    ends = found["intervals"]
    assert set(ends["categories"]) == set(found["categories"])
    assert set(ends["dialects"]) == set(found["dialects"])
    assert {axis for axis, value in found["axes"].items() if value is not None} == set(ends["axes"])
    numbers = [(found["overall"], ends["overall"]), (found["exact_match"], ends["exact_match"])]
    numbers += [(found["axes"][axis], pair) for axis, pair in ends["axes"].items()]
    for kind in ("categories", "dialects"):
        numbers += [(group["score"], ends[kind][name]) for name, group in found[kind].items()]
    for value, (low, high) in numbers:
        assert 0 <= low <= value + 1e-12
        assert value - 1e-12 <= high <= 1
        assert low < high
    assert found["repeated"][0]["pass_at_k"]["estimate"] == pytest.approx(found["exact_match"])


def test_a_higher_level_is_wider():
    """99 % reach further than 95 %."""
    ordinary, wide = intervals(drawn(1)), intervals(drawn(1), level=0.99)

    assert wide.overall[0] < ordinary.overall[0] < ordinary.overall[1] < wide.overall[1]
    assert wide.level == 0.99


def test_exact_match_of_items_that_stand_alone():
    """Three of four right, each asked once and alone: Wilson's interval."""
    ends = intervals(column([1.0, 1.0, 1.0, 0.4])).exact_match

    assert ends == pytest.approx((0.300642, 0.954413), abs=1e-6)
    assert ends == (wilson(3, 4).low, wilson(3, 4).high)


def test_exact_match_of_items_that_hang_together():
    """Items of one intent are fewer than they look, so their interval is wider than Wilson's."""
    apart = column([1.0, 0.0] * 8)
    together = scores(*(answer(f"i{n}", float(n % 4 < 2), intent=f"said {n // 2}") for n in range(16)))

    (low, high), (least, most) = intervals(apart).exact_match, intervals(together).exact_match
    assert most - least > high - low


def test_a_category_without_weight():
    """A declared weight of 0 keeps a category out of the overall score and its interval, not out of the groups."""
    items = [*(answer(f"a{n}", 1.0) for n in range(9)), *(answer(f"b{n}", n % 2, category="شعر") for n in range(9))]

    ends = intervals(scores(*items), {"شعر": Category("شعر", 0.0)})

    assert ends.overall == intervals(scores(*items[:9])).overall
    assert set(ends.categories) == {"multi_step", "شعر"}
    assert intervals(scores(*items[9:]), {"شعر": Category("شعر", 0.0)}).overall is None
    with pytest.raises(UnknownCategory, match="شعر"):
        intervals(scores(*items))


def test_nothing_judged():
    """Without a judged answer there is no interval."""
    found = scores(answer("a", unscored=2))

    assert intervals(found) == Intervals(None, {}, {}, {}, None)
    assert repeats(found) == []


def test_sums_that_round_above_one():
    """A total that rounding took above 1 is 1."""
    assert intervals(column([1.0000000000000002] * 5)).overall[1] == 1.0


def test_repeats_by_hand():
    """Of three askings two succeed in one item and none in the other: pass@k and pass^k as on paper."""
    found = repeats(scores(answer("a", 1.0, 1.0, 0.4), answer("b", 0.0, 0.0, 0.9)))

    assert [(one.k, one.n) for one in found] == [(1, 2), (2, 2), (3, 2)]
    assert [one.pass_at_k.estimate for one in found] == pytest.approx([1 / 3, 1 / 2, 1 / 2])
    assert [one.pass_hat_k.estimate for one in found] == pytest.approx([1 / 3, 1 / 6, 0])


def test_repeats_of_items_judged_less_often():
    """An item that was judged twice says nothing of three askings."""
    found = repeats(scores(answer("a", 1.0, 1.0, 1.0), answer("b", 0.0, 0.0, unscored=1), answer("c", unscored=3)))

    assert [(one.k, one.n, one.pass_hat_k.estimate) for one in found] == [(1, 2, 0.5), (2, 2, 0.5), (3, 1, 1.0)]


def test_one_asking_has_no_repeats(tmp_path):
    """Where each item was asked once, a report says nothing of repeated askings."""
    assert repeats(drawn(1, n=1)) == []
    assert "repeated" not in uncertainty(column([1.0, 0.5])).document()

    _, rows = graded(tmp_path, ITEMS, replies_to(ITEMS))
    assert "Asked several times" not in aae("report", rows).out


def test_pages_show_intervals(tmp_path):
    """The score, each group and repeated askings have their intervals on the terminal and in Markdown."""
    items = many_items(3)
    _, rows = graded(tmp_path, items, [row | {"epoch": n} for n in (0, 1) for row in replies_to(items)])
    ends = aae("report", rows, "--json").json["intervals"]

    terminal, page = aae("report", rows).out, aae("report", rows, "--format", "markdown").out

    head = terminal.splitlines()[0]
    assert head.startswith("Score  ")
    assert head.endswith(f"95 %: {interval(ends['overall'])}")
    assert f"95 % interval of the score: {interval(ends['overall'])}." in page
    for shown in (terminal, page):
        assert shown.count("95 %") == 1 + 1 + 1 + 2
        assert interval(ends["categories"]["multi_step"]) in shown
        assert "pass^k" in shown


def test_runs_have_intervals(tmp_path):
    """``aae run``, ``aae regrade`` and ``aae report`` on a run print the same intervals."""
    folder = tmp_path / "run"
    asked = aae("run", "--items", "starter", "--limit", 6, "--run", folder, "--json")

    regraded, reported = aae("regrade", folder, "--json"), aae("report", folder, "--json")

    assert asked.json["intervals"] == regraded.json["intervals"] == reported.json["intervals"]
    assert "95 %" in aae("regrade", folder).out


def test_grading_has_no_intervals_and_loads_nothing_for_them(tmp_path):
    """``aae grade`` prints none, and neither it nor the list of commands loads numpy or scipy."""
    options = [str(option) for option in files(tmp_path, ITEMS, replies_to(ITEMS))]
    code = (
        "import sys; sys.argv = ['aae', 'grade', *sys.argv[1:], '--json']\n"
        "from arabic_agent_eval.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print({'numpy', 'scipy'} & set(sys.modules), file=sys.stderr)"
    )

    done = subprocess.run(
        [sys.executable, "-c", code, *options], capture_output=True, encoding="utf-8", check=True, cwd=ROOT
    )

    assert "intervals" not in json.loads(done.stdout)
    assert done.stderr.splitlines()[-1] == "set()"


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (interval(None), "–"),
        (interval((0.8123, 0.9377)), "0.81–0.94"),
        (interval((0.91234, 0.91789)), "0.9123–0.9179"),
        (signed(0.25), "+0.2500"),
        (signed(-0.25, 2), "−0.25"),
        (signed(-1e-17), "0.0000"),
        (signed_interval(-0.31, 0.0), "−0.31 to 0.00"),
        (signed_interval(-0.0837, -0.0043), "−0.0837 to −0.0043"),
        (signed_interval(-0.012, -0.0062), "−0.0120 to −0.0062"),
        (probability(None), "–"),
        (probability(0.03125), "0.0312"),
        (probability(0.00001), "< 0.0001"),
    ],
)
def test_forms_of_numbers(shown, expected):
    """Intervals, differences and p-values are written so that nothing but 0 looks like 0."""
    assert shown == expected


def test_which_k_are_shown():
    """All k up to ten, then the round ones, and always the last."""
    assert attempts_shown(3) == {1, 2, 3}
    assert attempts_shown(60) == {*range(1, 11), 20, 50, 60}
