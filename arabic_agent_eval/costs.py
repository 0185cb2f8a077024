"""What answers cost: a price file, and a cache of answers that need not be paid for again."""

from __future__ import annotations

import contextlib
import hashlib
import math
from pathlib import Path

import msgspec

from arabic_agent_eval.errors import DataError, OutputError
from arabic_agent_eval.files import read_json, reason_of, validation_error, write_whole
from arabic_agent_eval.models.model import Tokens

_MILLION = 1_000_000


class Price(msgspec.Struct, frozen=True):
    """What a model costs, in US dollars for a million tokens.

    Attributes:
        input: tokens read; output: tokens written, thought ones among them.
        cached: tokens read from the provider's cache; None for the price of ``input``.
    """

    input: float
    output: float
    cached: float | None = None

    def of(self, tokens: Tokens) -> float:
        """The price of so many tokens in US dollars."""
        cached = min(tokens.cached, tokens.input)
        rate = self.input if self.cached is None else self.cached
        return ((tokens.input - cached) * self.input + cached * rate + tokens.output * self.output) / _MILLION


def read_prices(path: Path) -> dict[str, Price]:
    """A price file: a JSON object of model → price; a model is named with its provider or without.

    Raises:
        DataError: it is not such a file, or a price is no number of at least 0.
    """
    try:
        prices = msgspec.convert(read_json(path), dict[str, Price])
    except msgspec.ValidationError as error:
        raise validation_error(error, str(path)) from None
    for name, price in prices.items():
        if not all(math.isfinite(rate) and rate >= 0 for rate in (price.input, price.output, price.cached or 0.0)):
            raise DataError("a price must be a number of at least 0.", path=str(path), field=name)
    return prices


def price_of(prices: dict[str, Price], model: str) -> Price | None:
    """The price of ``provider/name``, from its full name or from the name alone."""
    return prices.get(model) or prices.get(model.partition("/")[2])


class Cache:
    """Answers by the exact request: a folder with one file for each; only whole answers are kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, model: str, address: str, epoch: int, body: bytes) -> bytes | None:
        """The answer to an earlier request like this one, or None."""
        with contextlib.suppress(OSError):
            return self._path(model, address, epoch, body).read_bytes()
        return None

    def keep(self, model: str, address: str, epoch: int, body: bytes, answer: bytes) -> None:
        """Keep an answer.

        Raises:
            OutputError: it could not be written.
        """
        path = self._path(model, address, epoch, body)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"{path.parent}: answers cannot be kept there: {reason_of(error)}.") from None
        write_whole(path, answer, durable=False)  # what is lost is asked again

    def _path(self, model: str, address: str, epoch: int, body: bytes) -> Path:
        # Every epoch is an asking of its own, so that repeated asking shows how much answers vary; and not every
        # provider names the model in the body.
        parts = model.encode("utf-8", "replace"), address.encode("utf-8", "replace"), str(epoch).encode(), body
        digest = hashlib.sha256(b"\0".join(parts)).hexdigest()
        return self._folder / digest[:2] / f"{digest}.json"
