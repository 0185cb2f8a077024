"""The causes in words."""

from __future__ import annotations

import re
from typing import get_args

from arabic_agent_eval.causes import CAUSE_WORDS, Cause, words

ARABIC = re.compile("[\u0600-\u06ff]")


def test_every_cause_has_words():
    """Each cause of an argument and of a call has one sentence in English and one in Arabic."""
    calls = {"no_call", "missing_call", "extra_call", "wrong_function", "wrong_order", "malformed_call"}
    calls |= {"malformed_arguments", "double_encoded_arguments"}
    assert set(CAUSE_WORDS) == calls | set(get_args(Cause))
    for english, arabic in CAUSE_WORDS.values():
        assert english.endswith(".")
        assert not ARABIC.search(english)
        assert arabic.endswith(".")
        assert ARABIC.search(arabic)


def test_words_speak_the_language_asked_for():
    """Arabic for ``ar`` and its regions, English otherwise; an unknown cause is shown as it is."""
    assert words("spelling") == words("spelling", "fr") == "Written with another alef, ya, ta marbuta or tatweel."
    assert words("spelling", "ar-EG") == "كُتبت بصورة أخرى للألف أو الياء أو التاء المربوطة، أو بتطويل."
    assert words("new_cause", "ar") == "new_cause"
