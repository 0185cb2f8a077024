"""The HTML report: it stands alone, nothing hostile breaks out of it, it adds up, and both languages are complete."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import arabic_agent_eval
from arabic_agent_eval.causes import CAUSE_WORDS
from arabic_agent_eval.diagnosis import Loss
from arabic_agent_eval.items import CATEGORIES, DIALECTS, ExpectedCall
from arabic_agent_eval.reports import html_words
from arabic_agent_eval.reports.failures import FAILURES, Failures
from arabic_agent_eval.reports.html_cards import UNITS, apportion, card_of, lost_units, pieces
from arabic_agent_eval.reports.html_charts import percent, printed, shade, span, stack, two_decimals
from arabic_agent_eval.reports.html_words import WORDS, Wording
from arabic_agent_eval.rows import GradedRow
from arabic_agent_eval.rules import AXES
from arabic_agent_eval.tools import Call
from tests.test_cli import ITEMS, aae, files, item
from tests.test_reports import HOSTILE, dangerous, hostile_files

TEMPLATES = Path(arabic_agent_eval.__file__).parent / "reports" / "templates"
VOID = {"meta", "br", "line", "circle", "rect", "input", "link"}


class Reader(HTMLParser):
    """Reads a page as a browser does: its elements, what is open at the end, and all that is written in it."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.mistakes: list[str] = []
        self.text: list[str] = []
        self.cells: dict[str, list[list[str]]] = {}
        self._table = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        """Note an element."""
        names = [name for name, _ in attrs]
        if len(names) != len(set(names)):
            self.mistakes.append(f"an attribute twice: {self.get_starttag_text()}")
        given = dict(attrs)
        self.elements.append((tag, given))
        if tag == "table":
            self._table = given["class"] or ""
            self.cells.setdefault(self._table, [])
        if tag == "tr":
            self.cells[self._table].append([])
        if tag in {"td", "th"}:
            self.cells[self._table][-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        """Close an element."""
        if tag in VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.mistakes.append(f"</{tag}> closes something else")

    def handle_data(self, data):
        """Note a text."""
        if "script" in self.open or "style" in self.open:
            return
        self.text.append(data)
        if self._table and {"td", "th"} & set(self.open):
            self.cells[self._table][-1][-1] += data

    def all(self, tag):
        """The attributes of every element of a kind."""
        return [given for name, given in self.elements if name == tag]


def read(page: str) -> Reader:
    """A page without mistakes."""
    found = Reader(page)
    assert found.mistakes == []
    assert found.open == []
    return found


def page_of(tmp_path, *options, items=ITEMS, replies=None, code=0, rows=None):
    """The page that the command writes of graded answers."""
    if rows is None:
        rows = tmp_path / "rows.jsonl"
        aae("grade", *files(tmp_path, items, replies), "--out", rows)
    out = tmp_path / "report.html"
    found = aae("report", rows, "--html", out, *options)
    assert (found.code, f"Report written to {out}." in found.err) == (code, True)
    return out.read_text(encoding="utf-8")


SAMPLE = ("--items", "sample", "--replies", "sample")


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """The graded rows of the sample, and the page of them."""
    folder = tmp_path_factory.mktemp("sample")
    aae("grade", *SAMPLE, "--out", folder / "rows.jsonl")
    return folder / "rows.jsonl", page_of(folder, rows=folder / "rows.jsonl")


def perfect(items):
    return [{"id": one["id"], "calls": one["expected_calls"]} for one in items]


def rows_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# --- the document --------------------------------------------------------------------------------------------


def test_the_page_stands_alone(sample):
    """Nothing is loaded from anywhere: no address, no image, fonts of the machine, a policy that forbids all else."""
    page = read(sample[1])

    assert not re.search(r"https?://|//[a-z]|url\(|@import", sample[1])
    assert {tag for tag, _ in page.elements} & {"img", "link", "iframe", "object", "embed", "base"} == set()
    assert [given for _, given in page.elements if "src" in given or any(name.startswith("on") for name in given)] == []
    assert all((given["href"] or "").startswith("#") for given in page.all("a"))
    policy = next(given["content"] for given in page.all("meta") if "http-equiv" in given)
    script = re.search(r"<script>(.*?)</script>", sample[1], re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.startswith(f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}';")
    assert len(page.all("script")) == 1


def test_everything_can_be_read_without_the_script(sample):
    """Only the filters wait for the script; every link leads to a heading or page that is there, every id is once."""
    page = read(sample[1])

    assert {tag for tag, given in page.elements if "hidden" in given} == {"form"}
    ids = [given["id"] for _, given in page.elements if "id" in given]
    assert len(ids) == len(set(ids))
    named = [given[name] for _, given in page.elements for name in ("aria-labelledby", "for") if name in given]
    assert {*(given["href"][1:] for given in page.all("a")), *named} <= set(ids)


def test_both_pages_are_marked_for_what_they_are(sample):
    """Each page has its language and direction; headings go down one step at a time; tables have heads and captions."""
    page = read(sample[1])

    pages = [given for given in page.all("div") if given.get("class") == "page"]
    assert [(one["lang"], one["dir"]) for one in pages] == [("en", "ltr"), ("ar", "rtl")]
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 2
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert len(page.all("caption")) == len(page.all("table")) == 8
    assert {given.get("scope") for given in page.all("th")} == {"col", "row", "rowgroup"}
    assert all(given.get("aria-hidden") == "true" for given in page.all("svg"))
    assert len(page.all("main")) == 1


@pytest.mark.parametrize(("language", "direction"), [("en", "ltr"), ("ar", "rtl")])
def test_one_language(sample, tmp_path, language, direction):
    """With one language the document itself has it, and nothing leads to the other."""
    text = page_of(tmp_path, "--language", language, "--title", "نموذج", rows=sample[0])
    page = read(text)

    assert (page.all("html")[0]["lang"], page.all("html")[0]["dir"]) == (language, direction)
    assert len(page.all("h1")) == 1
    assert 'class="languages"' not in text
    assert "نموذج" in re.search(r"<h1>.*</h1>", text)[0]


def test_arabic_is_marked_in_the_english_page(sample, tmp_path):
    """Instructions are isolated, with their direction from their letters and their language named."""
    page = page_of(tmp_path, "--language", "en", rows=sample[0])

    asked = re.findall(r'<p class="ask"([^>]*)>', page)
    assert set(asked) == {' dir="auto" lang="ar"'}
    assert re.search(r'<bdi class="value expected"><mark>|<bdi class="value expected">الرياض</bdi>', page)


# --- hostile text --------------------------------------------------------------------------------------------

BREAKERS = [
    '"><script>alert(1)</script>',
    "'><img src=x onerror=alert(1)>",
    "--></style></script><script>alert(1)</script>",
    "{{ 7 * 7 }}{% raw %}",
    "</bdi></td></table></main>",
    '" onmouseover="alert(1)" x="',
    "javascript:alert(1)",
]


@pytest.mark.parametrize("text", [*HOSTILE, *BREAKERS])
def test_nothing_breaks_out(tmp_path, text):
    """Hostile text in every place that an outsider fills stays text: no element, attribute or invisible character."""
    options, _ = hostile_files(tmp_path, text)
    rows = tmp_path / "rows.jsonl"
    aae("grade", *options, "--out", rows)

    source = page_of(tmp_path, "--title", text, *options[4:], rows=rows, code=3)
    page = read(source)

    assert dangerous(source) == set()
    assert len(page.all("script")) == 1
    assert page.all("img") == []
    known = {"class", "id", "lang", "dir", "charset", "content", "http-equiv", "name", "href", "hreflang", "scope",
             "aria-current", "aria-label", "aria-labelledby", "aria-hidden", "tabindex", "role", "colspan", "width",
             "height", "focusable", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "hidden", "for", "value", "type",
             "data-cards", "data-tags", "data-text"}  # fmt: skip
    assert {name for _, given in page.elements for name in given} <= known
    assert "49" not in "".join(page.text) or "{{" not in text


def test_hostile_causes_and_axes_stay_text(tmp_path):
    """Rows come from files: their causes, reasons and rules are as foreign as their values."""
    row = {
        "item_id": "a", "category": "multi_step", "rules": "canonical-1", "total": 0.6, "function_selection": 0.0,
        "argument_accuracy": 1.0, "arabic_preservation": 1.0, "expected_calls": [{"function": "f"}],
        "losses": [{"cause": "<b>\x1b", "axis": "<i>", "points": 0.4, "call": 7}], "said": "<s>\u202e" + "a" * 3000,
        "signature": "items:s@0|n:1|rules:canonical-1|format:auto|v:<u>",
    }  # fmt: skip
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row), encoding="utf-8")

    source = page_of(tmp_path, rows=path)

    assert dangerous(source) == set()
    assert {"i", "s", "u"} & {tag for tag, _ in read(source).elements} == set()
    assert "&lt;b&gt;" in source
    assert "… (+1,004)" in source
    assert "Other points lost" in source  # the loss belongs to no call that is shown


def test_pieces_name_what_is_invisible():
    """Invisible characters are named apart from the text; what is cut off is counted."""
    assert pieces("plain") == [("plain", "plain")]
    assert pieces("جدة") == [("plain", "جدة")]
    assert pieces("\u200fجدة\n") == [("named", "⟨U+200F⟩"), ("plain", "جدة"), ("named", "⟨U+000A⟩")]
    assert pieces("a" * 12, limit=10) == [("plain", "a" * 10), ("cut", "… (+2)")]


# --- what is shown -------------------------------------------------------------------------------------------


def test_every_failure_is_shown(sample):
    """Each answer that lost points has a card in both languages, with its id, instruction, values and causes."""
    failed = [row for row in rows_of(sample[0]) if row["losses"]]
    page = read(sample[1])

    assert len(page.all("article")) == 2 * len(failed) > 0
    text = "".join(page.text)
    for row in failed:
        assert row["item_id"] in text
        assert text.count(row["instruction"]) >= 2
        for loss in row["losses"]:
            english, arabic = CAUSE_WORDS[loss["cause"]]
            assert english in text
            assert arabic in text


def test_cards_carry_what_they_are_filtered_by(sample):
    """Every choice of a filter finds a card, and every card carries its category, dialect, causes and tools."""
    page = read(sample[1])

    choices = {given["value"] for given in page.all("option")} - {""}
    carried = {tag for given in page.all("article") for tag in given["data-tags"].split()}
    assert choices == carried
    assert {choice.partition("-")[0] for choice in choices} == {"category", "dialect", "cause", "tool"}


def test_those_that_lost_most_are_kept(sample, tmp_path):
    """With a limit the worst answers are shown in their order, and the others are counted."""
    rows = [row for row in rows_of(sample[0]) if row["losses"]]
    worst = sorted(rows, key=lambda row: row["total"])[:3]

    page = page_of(tmp_path, "--failures", 3, "--language", "en", rows=sample[0])

    shown = [row["item_id"] for row in rows if row in worst]
    assert re.findall(r'<h3 id="en-f\d+">\s*<bdi lang="en">([^<]*)', page) == shown
    assert f"Answers that lost points: {len(rows)}." in page
    assert f"Those that lost most are shown (3), in their order; not shown: {len(rows) - 3}." in page
    assert "<article" not in page_of(tmp_path, "--failures", 0, rows=sample[0])


def row_with(total, **more):
    return GradedRow(item_id=f"i{total}", category="c", rules="canonical-1", signature="s", total=total, **more)


def test_of_equal_losses_the_first_are_kept():
    """Of answers that lost the same the earlier ones are kept, 200 by default; unscored ones are no failures."""
    failures = Failures(2)
    rows = [row_with(0.5, epoch=epoch) for epoch in range(4)]
    for row in [row_with(1.0), *rows, row_with(None)]:
        failures.add(row)

    assert failures.kept == rows[:2]
    assert FAILURES == 200


def test_an_answer_in_full(tmp_path):
    """Arguments right, accepted, wrong, missing and ignored, surplus and unread calls, and the conversation."""
    calls = [
        {"function": "f", "arguments": {"city": "جدة", "n": 6, "list": ["أحمد", "سارة"], "gone": "*", "any": "*"},
         "result": {"خبر": "تم"}},
        {"function": "g", "arguments": {"x": 1}},
    ]  # fmt: skip
    given = {"city": "\u200fجده", "n": "6", "list": ["احمد", "سارة"], "any": 3, "more": True}
    made = [{"function": "f", "arguments": given}, {"function": "g", "arguments": "{broken"}, {"function": "h"}, 5]
    rows = tmp_path / "rows.jsonl"
    one = item("س", "multi_step", "msa", calls)
    aae("grade", *files(tmp_path, [one], [{"id": "س", "calls": made, "epoch": 0}]), "--out", rows)
    [row] = rows_of(rows)
    rows.write_text(json.dumps(row | {"results": ['{"خبر": "تم"}']}), encoding="utf-8")

    page = page_of(tmp_path, "--language", "en", rows=rows)

    assert '<span class="named" dir="ltr">⟨U+200F⟩</span></mark>جد<mark>ه</mark></bdi>' in page
    assert "U+0629 ARABIC LETTER TEH MARBUTA → U+0647 ARABIC LETTER HEH" in page
    for kind in ("right", "accepted", "wrong", "missing", "ignored"):
        assert f'<li class="{kind}">' in page
    assert "[&#34;<bdi>" in page  # each text within JSON runs by itself
    assert "<dt>Expected</dt><dd>any value</dd>" in page
    assert "{broken" in page
    assert "unreadable call" in page
    assert "nothing expected" in page
    assert "The conversation" in page
    assert page.count("No answer is kept.") == 3
    assert "Items that expect nothing" not in page


@pytest.mark.parametrize(
    ("expected", "actual", "marked", "named"),
    [
        ("مدرس", "مدرّس", (["ر"], ["رّ"]), ("", "U+0651 ARABIC SHADDA")),
        ("مدر\u0651س", "مدر\u0651\u064eس", (["ر\u0651"], ["ر\u0651\u064e"]), ("", "U+064E ARABIC FATHA")),
        ("رمل", "رّمل", (["ر"], ["رّ"]), ("", "U+0651 ARABIC SHADDA")),
    ],
)
def test_signs_are_marked_with_their_letter(expected, actual, marked, named):
    """A sign that differs is marked together with the letter that carries it, and named alone."""
    loss = Loss("diacritics", "argument_accuracy", 0.1, 0, "t", expected, actual)
    calls = {"expected_calls": [ExpectedCall("f", {"t": expected})], "actual_calls": [Call("f", {"t": actual})]}

    argument = card_of(row_with(0.9, losses=[loss], **calls)).slots[0].arguments[0]

    assert (marks(argument.expected), marks(argument.actual)) == marked
    assert named in argument.named


def marks(shown):
    parts = [part for run in shown.runs for part in run.parts if part.marked]
    return ["".join(text for _, text in part.pieces) for part in parts]


def test_very_long_answers_are_cut(tmp_path):
    """Of very many calls, arguments and letters the first are shown; what is not is counted, and the points add up."""
    wanted = [("f", {f"a{place}": "س" * 5000 for place in range(150)}), *[("g", {})] * 70]
    made = [{"function": "f", "arguments": {f"a{place}": "س" * 4990 + "ص" for place in range(150)}}]
    page = page_of(tmp_path, "--language", "en", items=[item("س", "multi_step", "msa", wanted)],
                   replies=[{"id": "س", "calls": made}])  # fmt: skip

    assert "Arguments that are not shown: 50." in page
    assert "Calls that are not shown: 21." in page
    assert "… (+4,600)" in page
    total = float(re.search(r'<p class="total">.*</span>(\S+)</p>', page)[1])
    assert sum(units_in(page)) == UNITS - round(total * UNITS)


def units_in(source):
    return [round(float(points) * UNITS) for points in re.findall(r'class="minus" dir="ltr">−(\d\.\d{4})', source)]


# --- numbers that add up -------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", ["canonical", "v0.1"])
def test_points_add_up_as_printed(tmp_path, rules):
    """Causes sum to 1 − score to the last printed digit, axes to their causes, and so does every single answer."""
    rows = tmp_path / "rows.jsonl"
    summary = aae("grade", *SAMPLE, "--rules", rules, "--json", "--out", rows).json

    source = page_of(tmp_path, "--language", "en", rows=rows)

    head, *causes, last = read(source).cells["causes"]
    table = [[0 if cell == "–" else round(float(cell) * UNITS) for cell in [row[1], *row[3:]]] for row in causes]
    assert len(head) == len(last) == 3 + len(table[0]) - 1
    assert sum(row[0] for row in table) == round(float(last[1]) * UNITS) == UNITS - round(summary["overall"] * UNITS)
    assert [sum(row[1:]) for row in table] == [row[0] for row in table]
    assert [round(float(cell) * UNITS) for cell in last[3:]] == [
        sum(column) for column in list(zip(*table, strict=True))[1:]
    ]
    cards = source.split("<article")[1:]
    for card in cards:
        total = float(re.search(r'<p class="total">.*</span>(\S+)</p>', card)[1])
        assert sum(units_in(card)) == UNITS - round(total * UNITS)


def test_numbers_are_those_of_the_summary(sample):
    """Score, interval and coverage, and the means of each dialect in each category, are on both pages."""
    summary = aae("report", sample[0], "--json").json
    page = read(sample[1])
    text = "".join(page.text)

    for value in (summary["overall"], *summary["intervals"]["overall"], *summary["intervals"]["exact_match"]):
        assert text.count(f"{value:.4f}") >= 2
    assert "24 of 24" in text
    assert "24 من 24" in text
    english = page.cells["heatmap"][: len(page.cells["heatmap"]) // 2]
    assert [cells[0] for cells in english[1:-1]] == [html_words.DIALECTS[name][0] for name in summary["dialects"]]
    for dialect, cells in zip(summary["dialects"], english[1:-1], strict=True):
        for category, cell in zip(summary["categories"], cells[1:], strict=False):
            found = summary["cells"][dialect].get(category)
            assert cell == (f"{two_decimals(found['score'])} n = {found['n']}" if found else "–no items")
    english = page.cells["tools"][: len(page.cells["tools"]) // 2]
    assert len(english) == 1 + len(summary["tools"])
    for tool, (name, times, right, instead) in zip(summary["tools"], english[1:], strict=True):
        if tool["expected"] is not None:
            assert (name, int(times), int(right)) == (tool["expected"], tool["times"], tool["right"])
        others = sorted([*tool["instead"].values(), *filter(None, [tool["nothing"], tool["unreadable"]])])
        assert sorted(map(int, re.findall(r"× ?(\d+)", instead))) == others[-8:]
    assert f"Answers that lost points: {summary['failed']}." in text


def test_numbers_in_the_json_follow_from_the_rows(sample):
    """The means of cells, and what was called where which tool was expected, counted anew from the rows."""
    rows = rows_of(sample[0])
    summary = aae("report", sample[0], "--json").json

    totals = {}
    for row in rows:
        totals.setdefault((row["dialect"], row["category"]), []).append(row["total"])
    cells = {(dialect, name): (one["n"], one["score"]) for dialect, found in summary["cells"].items()
             for name, one in found.items()}  # fmt: skip
    assert cells == {key: (len(found), pytest.approx(sum(found) / len(found))) for key, found in totals.items()}
    assert summary["failed"] == sum(row["total"] < 1 - 1e-9 for row in rows)
    expected = Counter(call["function"] for row in rows for call in row["expected_calls"])
    assert {tool["expected"]: tool["times"] for tool in summary["tools"] if tool["expected"] is not None} == expected
    for tool in summary["tools"]:
        parts = [tool["right"], *tool["instead"].values(), tool["nothing"], tool["unreadable"]]
        assert sum(parts) == tool["times"]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_printed_parts_make_the_printed_sum(values):
    """Whole units add up to the sum of the parts, and each is less than one unit from its part or two."""
    total = sum(values)
    values = [value / max(total, 1.0) for value in values]
    units = round(sum(values) * UNITS)

    found = apportion(values, units)

    assert sum(found) == units
    assert all(abs(part - value * UNITS) < 1.001 for part, value in zip(found, values, strict=True))


def test_small_forms():
    """Cells, bars and shades: what is printed of numbers at the ends of their ranges."""
    assert [two_decimals(score) for score in (0, 0.994, 0.999, 1.0)] == ["0.00", "0.99", "0.99", "1.00"]
    assert [shade(score) for score in (1, 0.95, 0.94, 0.85, 0.7, 0.69, 0.5, 0.49, 0)] == [0, 0, 1, 1, 2, 3, 3, 4, 4]
    assert (percent(-1), percent(0.5), percent(2)) == ("0.000%", "50.000%", "100.000%")
    assert span(0.5, None) == span(0.5, (0.5, 0.5))
    assert stack({"a": 10, "b": 0, "c": 30}, 40) == [("a", "0.000%", "25.000%"), ("c", "25.000%", "75.000%")]
    assert (printed(1), lost_units(0.92055), lost_units(1.0)) == ("0.0001", 794, 0)
    assert apportion([], 0) == []
    assert apportion([0.5, 0.5], 9999) == [5000, 4999]


# --- other states --------------------------------------------------------------------------------------------


def test_nothing_scored(tmp_path):
    """A page of failures of the provider says so and shows why; there are no tables without numbers."""
    replies = [{"id": "قيم", "error": f"timeout {place}", "epoch": place} for place in range(12)]
    items = [one for one in ITEMS if one["id"] == "قيم"]
    source = page_of(tmp_path, items=items, replies=replies, code=3)

    text = "".join(read(source).text)
    assert "Nothing was scored." in text
    assert "لم تُقيَّم أي إجابة." in text
    assert "timeout 0" in text
    assert "and 2 more" in text
    assert "<table" not in source


def test_nothing_lost(tmp_path):
    """Of a perfect file the page says that nothing was lost."""
    source = page_of(tmp_path, "--language", "en", replies=perfect(ITEMS))

    assert "No points were lost." in source
    assert "Every judged answer is right in every respect." in source


def test_graded_without_causes(tmp_path):
    """Without causes the failures are shown, and it is said that the causes are not known."""
    rows = tmp_path / "rows.jsonl"
    aae("grade", *SAMPLE, "--no-causes", "--out", rows)

    source = page_of(tmp_path, "--language", "en", rows=rows)

    assert "graded without causes" in source
    assert "<article" in source


def test_several_epochs(tmp_path):
    """Where items were asked several times the page shows what that brings, and which asking each failure is."""
    replies = [one | {"epoch": epoch} for epoch in (0, 1) for one in perfect(ITEMS)]
    replies[-1] |= {"calls": [{"function": "x"}]}
    source = page_of(tmp_path, "--language", "en", replies=replies)

    assert "Every time (pass^k)" in source
    assert [row[0] for row in read(source).cells["repeated"]] == ["k", "1", "2"]
    assert "epoch 1" in source


def test_a_run(tmp_path):
    """Of a run the page names the model, what it took, and that the baseline proves little; conversations are shown."""
    aae("run", "--items", "starter", "--run", tmp_path / "run")
    found = aae("report", tmp_path / "run", "--html", tmp_path / "report.html")
    source = (tmp_path / "report.html").read_text(encoding="utf-8")

    assert found.code == 0
    text = "".join(read(source).text)
    assert "baseline · Evaluation report" in text
    assert "written with starter and sample in view" in text
    assert "وُضعت مع الاطلاع على المجموعتين starter وsample" in text
    assert "أجابت الأداة" in text
    assert str(tmp_path) not in source


def test_declared_categories_have_their_own_names(tmp_path):
    """A declared category is shown by its Arabic name, and one without by its own."""
    weights = tmp_path / "weights.json"
    weights.write_text(json.dumps({"x": {"weight": 1, "name_ar": "فئة تجريبية"}, "y": 1}), encoding="utf-8")
    options, rows = ("--categories", weights), tmp_path / "rows.jsonl"
    items = [item("1", "x", None, [("f", {})]), item("2", "y", None, [("f", {})])]
    replies = [{"id": "1", "calls": []}, {"id": "2", "calls": []}]
    aae("grade", *files(tmp_path, items, replies), *options, "--out", rows)

    source = page_of(tmp_path, *options, "--language", "ar", rows=rows)

    assert "فئة تجريبية" in source
    assert "بلا لهجة" in source


def test_the_page_never_overwrites_what_it_is_made_from(sample, tmp_path):
    """--html refuses the rows themselves and a file of the run."""
    found = aae("report", sample[0], "--html", sample[0])

    assert found.code == 2
    assert "--html" in found.err
    assert "is one of the inputs" in found.err


# --- words ---------------------------------------------------------------------------------------------------


def test_every_word_is_there_in_both_languages():
    """Each word has English and Arabic, fills in the same names, and is used; the templates use no other."""
    source = "".join(path.read_text(encoding="utf-8") for path in TEMPLATES.glob("*.j2"))
    used = set(re.findall(r'\bt\("(\w+)"', source)) - {"kind_"}
    named = {"axes", "categories", "dialects", "category", "dialect", "cause", "tool", "score", "groups", "heat",
             "losses", "confusion", "failures", "kind_right", "kind_accepted", "kind_wrong", "kind_missing",
             "kind_ignored", "kind_surplus", "no_dialect", "page_title", "leaderboard_title", "tokens_read",
             "tokens_written"}  # fmt: skip

    assert used <= set(WORDS)
    assert set(WORDS) - used - named == set()
    for key, (english, arabic) in WORDS.items():
        assert set(re.findall(r"{(\w+)}", english)) == set(re.findall(r"{(\w+)}", arabic)), key
        assert english.strip()
        assert re.search("[\u0600-\u06ff]", arabic) or not re.search("[a-z]{2}", re.sub(r"{\w+}", "", arabic)), key
        assert not dangerous(english + arabic)


def test_names_are_there_in_both_languages():
    """Axes, dialects, canonical categories and causes have names in both languages; other names stay as they are."""
    english, arabic = Wording("en"), Wording("ar")

    for words, names in (("axis", AXES), ("dialect", DIALECTS), ("category", CATEGORIES), ("cause", CAUSE_WORDS)):
        for name in names:
            assert re.search("[\u0600-\u06ff]", getattr(arabic, words)(name))
            assert re.search("[A-Za-z]", getattr(english, words)(name))
        assert getattr(arabic, words)("other") == "other"
    assert arabic.reason("no reply in the file") == "لا رد في الملف"
    assert (english.direction, arabic.direction) == ("ltr", "rtl")


def test_the_arabic_page_has_no_english_words(sample):
    """What the Arabic page says itself is Arabic: none of the English words is on it."""
    page = sample[1].partition('<div class="page" id="ar"')[2]
    text = re.sub(r"<(code|bdi|option|script)\b.*?</\1>|<[^>]*>", " ", page, flags=re.DOTALL)

    for english, _ in WORDS.values():
        words = re.sub(r"{\w+}", "", english).strip(" .:,")
        assert len(words) < 6 or words not in text
