"""Words that mark a kind of Arabic: the lists, and how they are found in a line."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arabic_agent_eval.items import DIALECTS
from arabic_agent_eval.markers import TANWEEN, find_markers, load_markers
from arabic_agent_eval.text import fold_all

SOURCE = json.loads(files("arabic_agent_eval").joinpath("data/dialect_markers.json").read_text("utf-8"))

FOUND = [
    ("شلون أوصل السوق باجر؟", ["gulf levantine", "+gulf"], "a question word of two dialects, and one of one"),
    ("عايزة أغير ميعادي دلوقتي", ["+egyptian", "+egyptian"], "ta marbuta and ha are one"),
    ("وقديش بتاخد للمطار؟", ["+levantine", "egyptian gulf levantine"], "«and» is taken off; a verb after ب"),
    ("واش كاين شي قطار غدا؟", ["+maghrebi", "maghrebi", "maghrebi"], "«and» is not taken off what is a word itself"),
    ("هنوصل الساعة كام", ["+egyptian", "+egyptian"], "a future particle before a verb that is known"),
    ("كنشوف الأخبار", ["+maghrebi"], "a particle of the present"),
    ("التاريخ الهجري", [], "ه begins many words that are no verbs"),
    ("هاتف الفندق", [], "and so does ها"),
    ("هالأسبوع مشغول", ["gulf levantine"], "a demonstrative that is attached to the article"),
    ("ما نلقاهش الكتاب", ["egyptian maghrebi"], "a negation in two parts, apart"),
    ("مايوصلهمش", ["egyptian maghrebi"], "and in one word"),
    ("ما العيش إلا لحظة", [], "a noun after ما is none"),
    ("سأطلب القهوة غدًا", ["+msa", "+msa"], "tanween tells tomorrow"),
    ("أبي أطلب غدا", ["gulf", "maghrebi"], "from lunch"),
    ("كيف يمكنني الدفع؟", ["+msa"], "a phrase is one marker"),
    ("كيف الحال", [], "and its first word is none"),
    ("ولدي في المدرسة", [], "«my son» is not «and I have»"),
    ("اكتب «عايز أروح دلوقتي» واحفظها", [], "what is quoted is not the speaker's own"),
    ("اكتب “عايز” و\"دابا\"", [], "whatever the quotation marks"),
    ("", [], "nothing"),
    ("WhatsApp 3ayez", [], "Latin letters"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected", "why"), FOUND, ids=[why for _, _, why in FOUND])
def test_markers_are_found(text, expected, why):
    """Each marker is found with its dialects, in order; a plus stands before one that has no other home."""
    found = ["+" * marker.sure + " ".join(sorted(marker.dialects)) for marker in find_markers(text)]

    assert found == expected, why


def test_names_mark_nothing():
    """A word of a name is passed over, with and without a particle."""
    assert find_markers("اطلب من مطعم دابا", frozenset({"دابا"})) == []
    assert find_markers("حول لمنى ودابا", frozenset({"دابا"})) == []
    assert find_markers("اطلب من مطعم دابا")


def test_every_dialect_has_its_lists():
    """The lists of the four dialects are long, and Standard Arabic has its own."""
    assert set(SOURCE) == {*DIALECTS, "verbs", "beginnings", "whole"}
    assert all(len(SOURCE[name]["only"]) >= 80 and len(SOURCE[name]["also"]) >= 80 for name in DIALECTS[1:])


def test_what_is_listed_as_exclusive_is():
    """No word that marks one dialect only stands in another list, and none marks all four."""
    homes: dict[str, list[str]] = {}
    for dialect in DIALECTS:
        for word in {
            fold_all(word) + TANWEEN * (TANWEEN in word) for kind in SOURCE[dialect].values() for word in kind
        }:
            homes.setdefault(word, []).append(dialect)
    exclusive = {fold_all(word) + TANWEEN * (TANWEEN in word) for name in DIALECTS for word in SOURCE[name]["only"]}

    assert [word for word in exclusive if len(homes[word]) > 1] == []
    assert [word for word, found in homes.items() if {*DIALECTS[1:]} <= {*found}] == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_word_stands_twice(dialect):
    """Spellings that fold to the same word are listed once, and each is found in a text."""
    listed = [word for kind in SOURCE[dialect].values() for word in kind]
    folded = [fold_all(word) + TANWEEN * (TANWEEN in word) for word in listed]

    assert len(set(folded)) == len(folded)
    for word in listed:
        found = find_markers(f"قال {word} ثانية")
        assert any(dialect in marker.dialects for marker in found), word


def test_one_home_is_what_sure_means():
    """Whatever is sure, verbs too, has one dialect."""
    lists = load_markers()
    markers = [*lists.words.values(), *lists.forms.values(), *lists.beginnings.values()]

    assert all(len(marker.dialects) == 1 for marker in markers if marker.sure)


@settings(max_examples=200, deadline=None)
@given(st.text() | st.lists(st.sampled_from([*load_markers().words, "«", "»", '"', "ما", "و", "ف", " "])).map(" ".join))
def test_no_text_raises(text):
    """Any text is read, and a marker is never longer than the text."""
    assert sum(marker.word.count(" ") + 1 for marker in find_markers(text)) <= len(fold_all(text).split())
