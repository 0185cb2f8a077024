"""Prices and the cache: what an answer costs, and what need not be paid for again."""

from __future__ import annotations

import pytest

from arabic_agent_eval.costs import Cache, Price, price_of, read_prices
from arabic_agent_eval.errors import DataError, OutputError
from arabic_agent_eval.models.model import Tokens


@pytest.mark.parametrize(
    ("price", "tokens", "dollars"),
    [
        (Price(1.0, 4.0), Tokens(1_000_000, 1_000_000), 5.0),
        (Price(1.0, 4.0), Tokens(), 0.0),
        (Price(1.0, 4.0), Tokens(1_000_000, 0, cached=400_000), 1.0),
        (Price(1.0, 4.0, 0.25), Tokens(1_000_000, 0, cached=400_000), 0.7),
        (Price(1.0, 4.0, 0.0), Tokens(1_000_000, 0, cached=1_000_000), 0.0),
        (Price(1.0, 4.0, 0.5), Tokens(1_000_000, 0, cached=9_000_000), 0.5),
        (Price(1.0, 4.0), Tokens(0, 1_000_000, reasoning=900_000), 4.0),
        (Price(0.0, 0.0), Tokens(7, 7), 0.0),
    ],
)
def test_what_an_answer_costs(price, tokens, dollars):
    """Tokens read, read at the lower price, and written, thought ones among them; never more cached than read."""
    assert price.of(tokens) == pytest.approx(dollars)


def test_prices_are_found_by_name(tmp_path):
    """With the provider, without it, and with a slash in the model's name; the full name goes first."""
    path = tmp_path / "prices.json"
    path.write_text(
        '{"openai-chat/a": {"input": 1, "output": 2}, "a": {"input": 3, "output": 4, "cached": 0.5}, '
        '"org/b": {"input": 0, "output": 0}}',
        encoding="utf-8",
    )
    prices = read_prices(path)
    assert price_of(prices, "openai-chat/a") == Price(1, 2)
    assert price_of(prices, "gemini/a") == Price(3, 4, 0.5)
    assert price_of(prices, "openai-chat/org/b") == Price(0, 0)
    assert price_of(prices, "openai-chat/b") is None
    assert price_of({}, "baseline") is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[]", "expected an object, found a list"),
        ("{", "the file cannot be read: it is not JSON"),
        ('{"a": 1}', "field"),
        ('{"a": {"input": 1}}', "the field is missing"),
        ('{"a": {"input": "1", "output": 1}}', "field"),
        ('{"a": {"input": -1, "output": 1}}', "'a': a price must be a number of at least 0."),
        ('{"a": {"input": 1, "output": 1, "cached": -0.1}}', "a price must be a number of at least 0."),
        ('{"a": {"input": 1e999, "output": 1}}', "the file cannot be read"),
        ('{"a": {"input": NaN, "output": 1}}', "the file cannot be read"),
        ('{"a": {"input": null, "output": 1}}', "field"),
    ],
)
def test_files_that_are_no_prices(tmp_path, text, says):
    """What is no price file is said with the file and the place in it."""
    path = tmp_path / "prices.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_prices(path)
    assert str(path) in str(caught.value)
    assert says in str(caught.value)


def test_a_cache_knows_what_was_asked(tmp_path):
    """An answer is found by model, address, epoch and request together, and by nothing less."""
    cache = Cache(tmp_path / "of" / "answers")
    asked = ("openai-chat/m", "http://a", 0, b"{}")
    assert cache.find(*asked) is None
    cache.keep(*asked, b"one")
    assert cache.find(*asked) == b"one"
    cache.keep(*asked, b"two")
    assert Cache(tmp_path / "of" / "answers").find(*asked) == b"two"
    for place, other in enumerate(("openai-chat/other", "http://b", 1, b"[]")):
        assert cache.find(*asked[:place], other, *asked[place + 1 :]) is None
    cache.keep("openai-chat/\ud800", "http://a", 0, b"{}", b"odd")
    assert len(list((tmp_path / "of" / "answers").rglob("*.json"))) == 2


@pytest.mark.parametrize("place", ["folder", "entry"])
def test_a_cache_that_cannot_be_written(tmp_path, place):
    """A file in the folder's place, or a folder in an answer's, is a sentence; reading finds nothing."""
    cache = Cache(tmp_path / "cache")
    asked = ("m", "a", 0, b"{}")
    if place == "folder":
        (tmp_path / "cache").write_bytes(b"")
    else:
        cache.keep(*asked, b"one")
        [path] = (tmp_path / "cache").rglob("*.json")
        path.unlink()
        path.mkdir()
    assert cache.find(*asked) is None
    with pytest.raises(OutputError, match=f"{tmp_path}/cache"):
        cache.keep(*asked, b"two")
