"""The causes of an argument, and one sentence for people about each cause."""

from __future__ import annotations

from typing import Final, Literal

Cause = Literal[
    "missing", "placeholder", "spelling", "latin_case", "whitespace", "punctuation", "diacritics", "hamza",
    "letter_variant", "digits", "number_words", "unicode_form", "invisible_character", "definite_article",
    "extra_words", "reworded", "transliterated", "translated", "latin_script", "code", "date_or_time",
    "dialect_word", "wrong_type", "mojibake", "escaped_text", "reversed_text", "wrong_value",
]  # fmt: skip
"""The causes of an argument, as the rulings list them."""

CAUSE_WORDS: Final[dict[str, tuple[str, str]]] = {
    "no_call": ("No function was called.", "لم تُستدعَ أي دالة."),
    "missing_call": ("This call was not made.", "لم يرد هذا الاستدعاء في الإجابة."),
    "extra_call": ("A call was made that nobody asked for.", "استدعاء زائد لم يُطلب."),
    "wrong_function": ("Another function was called.", "استُدعيت دالة أخرى."),
    "wrong_order": ("The right call stands in another place.", "الاستدعاء صحيح لكن ترتيبه مختلف."),
    "malformed_call": ("The call could not be read.", "تعذّرت قراءة الاستدعاء."),
    "malformed_arguments": ("The arguments are not one JSON object.", "المعاملات ليست كائن JSON سليماً."),
    "double_encoded_arguments": (
        "The arguments were encoded as JSON twice.",
        "المعاملات مرمّزة بصيغة JSON مرتين.",
    ),
    "missing": ("The value is absent or empty.", "القيمة غائبة أو فارغة."),
    "placeholder": ("A placeholder stands where the value should be.", "كُتبت عبارة مثل «غير محدد» مكان القيمة."),
    "spelling": (
        "Written with another alef, ya, ta marbuta or tatweel.",
        "كُتبت بصورة أخرى للألف أو الياء أو التاء المربوطة، أو بتطويل.",
    ),
    "latin_case": (
        "Only capital and small Latin letters differ.",
        "الفرق في حالة الأحرف اللاتينية (كبيرة أو صغيرة) فقط.",
    ),
    "whitespace": ("Only white space differs.", "الفرق في المسافات فقط."),
    "punctuation": ("Only punctuation differs.", "الفرق في علامات الترقيم فقط."),
    "diacritics": ("Only diacritics differ.", "الفرق في التشكيل فقط."),
    "hamza": ("The hamza is missing or sits on another letter.", "الهمزة ساقطة أو على كرسي آخر."),
    "letter_variant": (
        "Written with a Persian, Urdu or Quranic form of a letter.",
        "كُتبت بشكل فارسي أو أوردي أو قرآني لأحد الحروف.",
    ),
    "digits": ("The same number in other digits.", "العدد نفسه بأرقام أخرى."),
    "number_words": ("A number in words for one in digits, or the reverse.", "عدد بالكلمات بدل الأرقام أو العكس."),
    "unicode_form": (
        "The same letters in another Unicode form, such as presentation forms.",
        "الحروف نفسها بصيغة يونيكود أخرى، كأشكال العرض أو الحروف المفككة.",
    ),
    "invisible_character": ("An invisible character was added or lost.", "زِيد محرف غير مرئي أو سقط."),
    "definite_article": ("The definite article was added or left out.", "زِيدت «ال» التعريف أو حُذفت."),
    "extra_words": ("The value with words added or left out.", "القيمة نفسها بكلمات زائدة أو ناقصة."),
    "reworded": ("The same content in other words or another order.", "المضمون نفسه بصياغة أخرى أو ترتيب آخر."),
    "transliterated": ("Written by sound in the other script.", "كُتبت كما تُنطق، بحروف الأبجدية الأخرى."),
    "translated": ("Translated into another language.", "تُرجمت إلى لغة أخرى."),
    "latin_script": (
        "Written in the other script: translated or transliterated, which of the two is unclear.",
        "كُتبت بالأبجدية الأخرى، ترجمةً أو نقلاً للفظ، ولا يمكن الجزم بأيهما.",
    ),
    "code": ("A code or sign for a name, or the reverse.", "رمز مختصر بدل الاسم أو العكس."),
    "date_or_time": (
        "The same date or time in another form or calendar.",
        "التاريخ أو الوقت نفسه بصيغة أخرى أو تقويم آخر.",
    ),
    "dialect_word": ("A word of another variety of Arabic with the same meaning.", "كلمة من لهجة أخرى بالمعنى نفسه."),
    "wrong_type": ("The right content in the wrong JSON type.", "المضمون صحيح لكن نوعه في JSON مختلف."),
    "mojibake": ("The text was read in the wrong character encoding.", "فسد النص لأنه قُرئ بترميز خاطئ."),
    "escaped_text": (
        "The text holds escape codes instead of its characters.",
        "كُتبت رموز الهروب بدل الحروف نفسها.",
    ),
    "reversed_text": ("The letters stand in reverse order.", "حروف النص معكوسة الترتيب."),
    "wrong_value": ("Another value.", "قيمة أخرى."),
}
"""Cause → one sentence in English and in Arabic."""


def words(cause: str, language: str = "en") -> str:
    """A cause in one plain sentence.

    Args:
        cause: a cause of the rulings; another text is returned as it is.
        language: ``ar`` (or a longer tag such as ``ar-EG``) for Arabic, else English.
    """
    english, arabic = CAUSE_WORDS.get(cause, (cause, cause))
    return arabic if language.split("-", maxsplit=1)[0] == "ar" else english
