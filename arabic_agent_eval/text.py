"""Arabic text: what counts as Arabic, the canonical normaliser, and the named folds that explain a difference.

Only :func:`normalize_arabic` takes part in a score (rulings 3, 4). The other folds exist so that a difference
between two values can be named; none of them ever earns a point.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# Ruling 3: these two blocks and nothing else.
_ARABIC = re.compile("[\u0600-\u06ff\u0750-\u077f]")
find_arabic = _ARABIC.search
"""The first Arabic character of a text, as a match, or None."""

TATWEEL = "\u0640"


def has_arabic(text: str) -> bool:
    """Tell whether the text holds a character in U+0600–06FF or U+0750–077F (ruling 3)."""
    return not text.isascii() and find_arabic(text) is not None


def fold_letters(text: str) -> str:
    """Remove tatweel and map آأإ→ا, ى→ي, ة→ه: the letter part of the canonical normaliser (ruling 4)."""
    if text.isascii():
        return text
    # A chain of replacements is several times faster than str.translate on short Arabic text.
    return (
        text.replace("\u0640", "")
        .replace("أ", "ا")
        .replace("إ", "ا")
        .replace("آ", "ا")
        .replace("ى", "ي")
        .replace("ة", "ه")
    )


def normalize_arabic(text: str) -> str:
    """The canonical normal form of a text (ruling 4); applying it twice changes nothing.

    Tatweel is removed, alef variants, alef maqsura and ta marbuta are unified; what then holds no Arabic is
    lower-cased; white space at the ends is removed. Lossy: never show the result to a user.

    >>> normalize_arabic("مستشفى الأمــل")
    'مستشفي الامل'
    >>> normalize_arabic(" VIP ")
    'vip'
    """
    folded = fold_letters(text)
    return (folded if has_arabic(folded) else folded.lower()).strip()


# --- folds that explain a difference -------------------------------------------------------------------------

INVISIBLE = frozenset(
    "\u00ad\u034f\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e"
    "\u2060\u2061\u2062\u2063\u2064\u2066\u2067\u2068\u2069\ufeff"
)
"""Characters without a glyph of their own: bidi controls, joiners, zero-width spaces, the byte order mark."""

_DIACRITICS = re.compile(
    "[\u0610-\u061a\u064b-\u0652\u0656-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed]"
)
_SPACE = re.compile(r"\s+")
_SPACES = re.compile(r"(\s+)")
_COMPOSED = 1_000
_INVISIBLE = re.compile("[" + "".join(sorted(INVISIBLE)) + "]")

_DIGITS = {ord("٠") + i: str(i) for i in range(10)} | {ord("۰") + i: str(i) for i in range(10)}
_DIGITS |= {ord("٫"): ".", ord("٬"): ",", ord("٪"): "%"}

_HAMZA = {ord("ؤ"): "و", ord("ئ"): "ي", ord("ء"): "", 0x0654: "", 0x0655: ""}
_HAMZA |= {ord("أ"): "ا", ord("إ"): "ا", ord("آ"): "ا"}

_VARIANTS = {
    ord("ٱ"): "ا", ord("ی"): "ي", ord("ې"): "ي", ord("ے"): "ي", ord("ک"): "ك", ord("ڪ"): "ك",
    ord("ہ"): "ه", ord("ھ"): "ه", ord("ە"): "ه", ord("ۃ"): "ة", ord("ۀ"): "ه", ord("گ"): "ك",
    ord("ڤ"): "ف", ord("پ"): "ب", ord("چ"): "ج", ord("ژ"): "ز",
}  # fmt: skip

_PUNCTUATION_MAP = {ord("،"): ",", ord("؛"): ";", ord("؟"): "?", ord("«"): '"', ord("»"): '"',
                    ord("“"): '"', ord("”"): '"', ord("‘"): "'", ord("’"): "'", ord("…"): "...",
                    ord("–"): "-", ord("—"): "-", ord("−"): "-", ord("ـ"): ""}  # fmt: skip

# NFKC writes these signs with Farsi letters or does not know them (Unicode 17/18 newcomers).
_SIGNS = {ord("﷼"): "ريال", 0x20C1: "ريال سعودي", 0x20C3: "درهم إماراتي", 0x20C4: "ريال عماني"}


def fold_space(text: str) -> str:
    """Every run of white space becomes one space; none is left at the ends."""
    return _SPACE.sub(" ", text).strip()


def fold_diacritics(text: str) -> str:
    """Remove harakat, tanween, shadda, sukun, superscript alef and Quranic marks."""
    return text if text.isascii() else _DIACRITICS.sub("", text)


def fold_hamza(text: str) -> str:
    """Take hamza off its seat, and remove a hamza that stands alone."""
    return text.translate(_HAMZA)


def fold_variants(text: str) -> str:
    """Alef wasla and the letters of Persian, Urdu and loan words become the plain Arabic ones."""
    return text if text.isascii() else text.translate(_VARIANTS)


def fold_digits(text: str) -> str:
    """Arabic-Indic and Persian digits and number signs become ASCII."""
    return text if text.isascii() else text.translate(_DIGITS)


def fold_punctuation(text: str) -> str:
    """Arabic and typographic punctuation becomes ASCII, then all punctuation becomes space, signs excepted.

    A sign or point that changes a number (``-5``, ``1.5``) and the separators inside a date stay.
    """
    if TATWEEL not in text and "  " not in text and text == text.strip() and text.replace(" ", "").isalnum():
        return text  # nothing but words, as most texts are
    mapped = text.translate(_PUNCTUATION_MAP)
    return fold_space(re.sub(r"(?<!\d)[-.:/,](?=\D|$)|(?<=\D)[.:/,](?=\d)|[-.:/,](?!\d)|[^\w\s.:/,+%-]|_", " ", mapped))


def fold_invisible(text: str) -> str:
    """Remove characters that have no glyph: bidi controls, joiners, zero-width spaces, byte order marks."""
    return text if text.isascii() else _INVISIBLE.sub("", text)


def fold_unicode(text: str) -> str:
    """Compose, and replace presentation forms and ligatures by the letters that they stand for (NFKC)."""
    if text.isascii():
        return text
    text = text.translate(_SIGNS)
    if len(text) <= _COMPOSED:
        return unicodedata.normalize("NFKC", text)
    # Composing takes time quadratic in the marks on one letter, and a hostile text may have a million of them.
    pieces = _SPACES.split(text)
    return "".join([unicodedata.normalize("NFKC", one) if len(one) <= _COMPOSED else one for one in pieces])


def fold_case(text: str) -> str:
    """Ignore the case of Latin letters."""
    return text.lower()


FOLDS: dict[str, Callable[[str], str]] = {
    "unicode_form": fold_unicode,
    "invisible_character": fold_invisible,
    "diacritics": fold_diacritics,
    "letter_variant": fold_variants,
    "spelling": fold_letters,
    "hamza": fold_hamza,
    "digits": fold_digits,
    "punctuation": fold_punctuation,
    "latin_case": fold_case,
    "whitespace": fold_space,
}
"""Cause of a lost point → the fold that undoes it, in the order in which they are applied."""


def fold_all(text: str) -> str:
    """Every fold, one after the other: the form in which meanings, not spellings, are compared."""
    for fold in FOLDS.values():
        text = fold(text)
    return text


# --- showing text that came from elsewhere -------------------------------------------------------------------


def name_invisible(text: str, *, spaces: bool = False) -> str:
    """Replace every control, format or unassigned character by its code point, as ``⟨U+200F⟩``.

    What remains is harmless in a terminal and shows what the eye would miss.

    Args:
        text: any text; it may hold lone surrogates and escape sequences.
        spaces: name the unusual white space (no-break space, tabs, line ends) too.
    """
    if text.isprintable() and _INVISIBLE.search(text) is None:
        return text  # nothing of the categories C and Z but spaces, as most texts are
    return "".join(_shown(char, spaces=spaces) for char in text)


def _shown(char: str, *, spaces: bool) -> str:
    category = unicodedata.category(char)
    if char == " " or (char in "\n\t" and not spaces):
        return char
    if category[0] == "C" or char in INVISIBLE or category in {"Zl", "Zp"} or (spaces and category == "Zs"):
        return f"⟨U+{ord(char):04X}⟩"
    return char
