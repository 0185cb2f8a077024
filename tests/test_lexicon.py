"""The lexicon file and how it is looked up."""

from __future__ import annotations

import json
import re
from importlib.resources import files

import pytest

from arabic_agent_eval.lexicon import (
    NAMES,
    WORDS,
    code_key,
    load_lexicon,
    name_key,
    strip_article,
)
from arabic_agent_eval.text import INVISIBLE, fold_all

SOURCE = json.loads(files("arabic_agent_eval").joinpath("data/lexicon.json").read_text("utf-8"))
ENTRIES = [(section, entry) for section in (*NAMES, *WORDS) for entry in SOURCE[section]]
ARABIC = re.compile("[\u0600-\u06ff]")
LATIN = re.compile("[A-Za-z]")


def _texts(value):
    if isinstance(value, str):
        yield value
    for member in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(member)


def test_sections_are_known_and_large_enough():
    """Every section is there and holds what the causes need."""
    least = {"countries": 80, "places": 150, "currencies": 40, "languages": 35, "months": 24, "weekdays": 7}
    least |= {"nouns": 250, "titles": 20, "dialects": 120, "placeholders": 30, "true": 5, "false": 5, "negations": 20}
    assert set(SOURCE) == set(least)
    assert {name: len(SOURCE[name]) >= size for name, size in least.items()} == dict.fromkeys(least, True)


def test_entries_have_the_right_fields_and_scripts():
    """An entry has Arabic and English names, never in the other script, and codes in capitals or small letters."""
    for section, entry in ENTRIES:
        assert set(entry) <= {"ar", "en", "codes", "signs"}, entry
        assert all(ARABIC.search(name) and not LATIN.search(name) for name in entry["ar"]), entry
        assert all(LATIN.search(name) and not ARABIC.search(name) for name in entry["en"]), entry
        assert all(re.fullmatch("[A-Z]{2,3}|[a-z]{2,3}", code) for code in entry.get("codes", ())), entry
        assert "codes" in entry or section not in {"currencies", "languages"}, entry


def test_no_group_says_a_word_twice():
    """Within an entry or a dialect group every word stands once; a group has at least two."""
    for _, entry in ENTRIES:
        assert all(len(set(column)) == len(column) > 0 for column in entry.values()), entry
    for group in SOURCE["dialects"]:
        assert len(set(group)) == len(group) > 1, group
        assert not any(LATIN.search(word) for word in group), group


def test_dialect_groups_begin_with_different_words():
    """Two groups never have the same head: they would be one."""
    heads = [group[0] for group in SOURCE["dialects"]]
    assert len(set(heads)) == len(heads)


def test_texts_are_clean():
    """No invisible character, no white space at the ends, and no empty text."""
    for text in _texts(SOURCE):
        assert text.strip() == text != "", repr(text)
        assert INVISIBLE.isdisjoint(text), ascii(text)


def test_countries_have_one_code_each():
    """No two countries, currencies or languages share a code."""
    for section in ("countries", "currencies", "languages"):
        codes = [code for entry in SOURCE[section] for code in entry.get("codes", ())]
        assert len(set(codes)) == len(codes), section


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        ("القاهرة", "Cairo", "places"),
        ("قاهره", "the cairo", "places"),
        ("ريال سعودي", "ر.س.\u200f", "currencies"),
        ("ريال سعودي", "﷼", "currencies"),
        ("السعودية", "SA", "countries"),
        ("المملكة العربية السعودية", "saudi arabia", "countries"),
        ("اللغة العربية", "ar", "languages"),
        ("آذار", "March", "months"),
        ("شارع", "road", "nouns"),
    ],
)
def test_names_are_found_whatever_their_spelling(one, other, kind):
    """Folds, articles, case and invisible marks do not matter when a name is looked up."""
    lexicon = load_lexicon()
    shared = lexicon.find(one).all & lexicon.find(other).all
    assert kind in {lexicon.kinds[entry] for entry in shared}


def test_names_that_share_a_spelling_keep_all_senses():
    """«عمان» is a country and a city."""
    lexicon = load_lexicon()
    assert {lexicon.kinds[entry] for entry in lexicon.find("عمان").arabic} == {"countries", "places"}
    assert set(lexicon.names(lexicon.find("عمان").all)) == {"countries", "places"}


def test_what_is_not_known_has_no_sense():
    """Unknown and very long texts are found nowhere; pizza is a cognate and must not be listed."""
    lexicon = load_lexicon()
    assert not any((lexicon.find("قرنبيط").all, lexicon.find("Cairo " * 100).all, lexicon.find("pizza").all))


def test_keys():
    """An article is taken off only when two letters remain; a code loses marks and its last point."""
    assert (strip_article("المدرسه"), strip_article("الف"), strip_article("ولد")) == ("مدرسه", "الف", "ولد")
    assert (name_key("The  Sétif"), name_key("the")) == ("setif", "the")
    assert code_key(" ر.س.\u200f") == "ر.س"


def test_other_tables():
    """Placeholders, truths and negations are looked up in folded form."""
    lexicon = load_lexicon()
    assert {"n/a", "غير محدد", "-"} <= lexicon.placeholders
    assert "المدينه" not in lexicon.placeholders
    assert "" not in lexicon.placeholders
    assert (lexicon.truths["نعم"], lexicon.truths["no"]) == (True, False)
    assert fold_all("إلا") in lexicon.negations
