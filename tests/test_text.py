"""Arabic text: what is Arabic, the canonical normal form, the named folds, and showing what the eye would miss."""

from __future__ import annotations

import sys
import time

import pytest

from arabic_agent_eval.text import (
    FOLDS,
    INVISIBLE,
    find_arabic,
    fold_all,
    fold_case,
    fold_letters,
    fold_punctuation,
    has_arabic,
    name_invisible,
    normalize_arabic,
)


@pytest.mark.parametrize(
    ("char", "expected"),
    [
        ("\u05ff", False),
        ("\u0600", True),
        ("ب", True),
        ("،", True),
        ("\u0640", True),
        ("\u064b", True),
        ("٣", True),
        ("\u06ff", True),
        ("\u0700", False),
        ("\u074f", False),
        ("\u0750", True),
        ("\u077f", True),
        ("\u0780", False),
        ("\u08a0", False),
        ("\ufb50", False),
        ("\ufefb", False),
        ("\u200f", False),
        ("\U0001ee00", False),
        ("é", False),
        ("a", False),
        ("", False),
    ],
)
def test_arabic_is_two_blocks(char, expected):
    """Ruling 3: U+0600–06FF and U+0750–077F are Arabic, their neighbours and all other forms are not."""
    assert has_arabic(char) is expected
    assert has_arabic(f"x{char}é") is expected


def test_every_character_is_in_or_out():
    """Over all of Unicode exactly 304 characters count as Arabic, and they are those of the two blocks."""
    found = [code for code in range(sys.maxunicode + 1) if has_arabic(chr(code))]

    assert found == [*range(0x600, 0x700), *range(0x750, 0x780)]


def test_first_arabic_character_is_found():
    """The match tells where Arabic begins."""
    match = find_arabic("VIP مكتب")

    assert match is not None
    assert (match.start(), match[0]) == (4, "م")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("مــرحبا", "مرحبا"),
        ("أحمد", "احمد"),
        ("إربد", "اربد"),
        ("آمال", "امال"),
        ("مكتبى", "مكتبي"),
        ("فاطمة", "فاطمه"),
        (" جدة\n", "جده"),
        ("Riyadh", "riyadh"),
        ("مكتب VIP", "مكتب VIP"),
        ("VIP\u0640", "vip"),
        ("ÉCOLE \u0640", "école"),
        ("\u0640", ""),
        (" \u0640 ", ""),
        ("", ""),
        ("ٱلرحمن", "ٱلرحمن"),
        ("مسؤول", "مسؤول"),
        ("مُحمد", "مُحمد"),
        ("٣", "٣"),
        ("علی", "علی"),
        ("\u200fVIP", "\u200fvip"),
        ("\ud800A", "\ud800a"),
    ],
)
def test_normal_form(text, expected):
    """Ruling 4: tatweel, alef, ya and ta marbuta are folded, the rest stays, and case goes where no Arabic is left."""
    assert normalize_arabic(text) == expected


def test_normalising_any_character_twice_changes_nothing():
    """Ruling 4 holds for every code point there is, alone and beside a Latin capital."""
    for code in range(sys.maxunicode + 1):
        once = normalize_arabic(f"{chr(code)}Ab ")
        if normalize_arabic(once) != once:
            pytest.fail(f"U+{code:04X}")


def test_folding_leaves_ascii_as_it_is():
    """The letter folds do not touch case, spaces or other scripts."""
    assert fold_letters(" Ab ") == " Ab "
    assert fold_letters("Éأ ") == "Éا "


@pytest.mark.parametrize(
    ("cause", "text", "expected"),
    [
        ("unicode_form", "ﻻ", "لا"),
        ("unicode_form", "ﺍﻟﺮﻳﺎﺽ", "الرياض"),
        ("unicode_form", "ا\u0654", "أ"),
        ("unicode_form", "ﷺ", "صلى الله عليه وسلم"),
        ("unicode_form", "﷼", "ريال"),
        ("unicode_form", "\u20c1", "ريال سعودي"),
        ("unicode_form", "ascii", "ascii"),
        ("invisible_character", "\u200fال\u200cر\ufeff", "الر"),
        ("invisible_character", "ascii", "ascii"),
        ("diacritics", "مُحَمَّدٌ", "محمد"),
        ("diacritics", "هٰذا", "هذا"),
        ("diacritics", "ascii", "ascii"),
        ("letter_variant", "ٱلرحمن", "الرحمن"),
        ("letter_variant", "علی کبیر", "علي كبير"),
        ("letter_variant", "گوگل", "كوكل"),
        ("spelling", "مدرســة على أحمد", "مدرسه علي احمد"),
        ("hamza", "مسؤول مسئول ماء أ", "مسوول مسيول ما ا"),
        ("digits", "٣٫٥ ۷٪ ١٬٠٠٠", "3.5 7% 1,000"),
        ("punctuation", "جدة، مكة؟", "جدة مكة"),
        ("punctuation", "«نعم»", "نعم"),
        ("punctuation", "-5 1.5 2025-03-01 10:30", "-5 1.5 2025-03-01 10:30"),
        ("punctuation", "a-b a.b a_b", "a b a b a b"),
        ("punctuation", "50% +3", "50% +3"),
        ("latin_case", "VIP", "vip"),
        ("whitespace", "  حي \t\n النخيل\u00a0", "حي النخيل"),
    ],
)
def test_folds(cause, text, expected):
    """Each named fold undoes the difference that it is named for, and nothing else."""
    assert FOLDS[cause](text) == expected


def test_every_fold_together():
    """All folds, one after the other, give the form in which meanings are compared."""
    assert fold_all("\u200fﻷحْمَد  أَلسَّيِّد، شقّة VIP ٣") == "لاحمد السيد شقه vip 3"
    assert fold_case("É") == "é"


def test_folds_are_causes_in_their_order():
    """Composition comes first and white space last, for the other folds leave spaces behind."""
    assert list(FOLDS) == [
        "unicode_form",
        "invisible_character",
        "diacritics",
        "letter_variant",
        "spelling",
        "hamza",
        "digits",
        "punctuation",
        "latin_case",
        "whitespace",
    ]


@pytest.mark.parametrize(
    ("text", "spaces", "expected"),
    [
        ("جدة", False, "جدة"),
        ("plain", False, "plain"),
        ("a\u200fb", False, "a⟨U+200F⟩b"),
        ("\x1b[31mred", False, "⟨U+001B⟩[31mred"),
        ("a\tb\nc", False, "a\tb\nc"),
        ("a\tb\nc d", True, "a⟨U+0009⟩b⟨U+000A⟩c d"),
        ("a\u00a0b", False, "a\u00a0b"),
        ("a\u00a0b", True, "a⟨U+00A0⟩b"),
        ("a\u2028b", False, "a⟨U+2028⟩b"),
        ("\ud800", False, "⟨U+D800⟩"),
        ("\U000e0001", False, "⟨U+E0001⟩"),
        ("\u034f", False, "⟨U+034F⟩"),
        ("\u0378", False, "⟨U+0378⟩"),
        ("\r", False, "⟨U+000D⟩"),
    ],
)
def test_invisible_characters_are_named(text, spaces, expected):
    """What a terminal would act on or not show is written as its code point."""
    assert name_invisible(text, spaces=spaces) == expected


def test_named_text_can_always_be_printed():
    """Whatever character comes, what is shown of it is printable and encodes as UTF-8."""
    shown = name_invisible("".join(map(chr, range(sys.maxunicode + 1))), spaces=True)

    assert shown.isprintable()
    assert not INVISIBLE & set(shown)
    shown.encode("utf-8")


def processor_time(text: str) -> float:
    """The seconds that all folds of a text take: the least of several, since whatever else goes on only adds."""
    taken = []
    for _ in range(5):
        start = time.process_time()
        normalize_arabic(text)
        name_invisible(text)
        fold_all(text)
        taken.append(time.process_time() - start)
    return min(taken)


@pytest.mark.parametrize("char", ["A", "أ", "\u0640", ".", " ", "\u200f", "\u064b", "1.", "a.", " a", "\ud800", "ﷺ"])
def test_long_text_is_folded_in_linear_time(char):
    """No fold goes back over what it has read: eight times the text is eight times the work, and not sixty-four."""
    short, long = (processor_time(char * (length // len(char))) for length in (25_000, 200_000))

    # A tenth of a second for clocks that tick seldom; quadratic work on so much text takes seconds.
    assert long < 24 * short + 0.1


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("حيـ ـان", "حي ان"),
        ("جدة", "جدة"),
        (" جدة", "جدة"),
        ("مكة  جدة", "مكة جدة"),
        ("a_b", "a b"),
        ("٣", "٣"),
        ("", ""),
    ],
)
def test_words_alone_are_folded_as_any_text(text, folded):
    """The quick way for texts of nothing but words gives what the long way gives; a tatweel is no letter of a word."""
    assert fold_punctuation(text) == folded
