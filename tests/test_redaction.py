"""Keys and tokens in texts that others wrote."""

from __future__ import annotations

import pytest

from arabic_agent_eval.redaction import redact

KEYS = [
    "sk-proj-abcdef123456", "csk-abcdef123456", "ghp_abcdefghij0123456789", "AKIAIOSFODNN7EXAMPLE",
    "eyJhbGciOi.eyJzdWIiOi.SflKxwRJ", "nvapi-abcdef123456", "pplx-abcdef123456", "r8_abcdef123456", "ya29.a0AfH6SMB",
    "my_sk-abcdef123456", "sk-abc\u200bdefg12345", "s\u200bk-abcdefg12345",
]  # fmt: skip
LABELLED = [
    "api_key=0123456789abc", "x-api-key: 0123456789abc", "Basic dXNlcjpwYXNz", "Bearer: 0123456789abc",
    "Bearer '0123456789abc'", "token 0123456789abc", "https://user:password1@host/x",
]  # fmt: skip


@pytest.mark.parametrize("text", [*KEYS, *LABELLED])
def test_keys_do_not_survive(text):
    """Whatever shape a key has, and however it is labelled, it is replaced; the words around it stay."""
    shown = redact(f"the server said {text} and left")

    assert "[secret]" in shown
    assert shown.startswith("the server said ")
    assert shown.endswith(" and left")
    for part in ("abcdef", "0123456789", "IOSFODNN", "SflKxw", "a0AfH6", "dXNlcjp", "password1", "defg12345"):
        assert part not in shown


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-test. You can find yours there.",
        "an Authorization header using Bearer authentication",
        "429 Too Many Requests", "انتهت الحصة", "token limit", "a key idea", "مُهْلَة\u200f",
    ],
)  # fmt: skip
def test_other_words_stay(text):
    """What looks like no key is left as it is, invisible marks included."""
    assert redact(text) == text


def test_the_words_around_a_key_stay():
    """The most frequent message of all is still a sentence when the key in it is gone."""
    said = "Incorrect API key provided: sk-proj-****1234. You can find your API key at https://example.org/keys."

    assert redact(said) == (
        "Incorrect API key provided: [secret] You can find your API key at https://example.org/keys."
    )
