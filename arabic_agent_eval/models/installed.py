"""Models of installed packages: found by their entry points, and watched while they are asked.

What a model or a network does wrong is an answer or a failure, as with every provider. What the package itself does
wrong, an exception or a value of another type, ends the asking with one sentence that names it; all that was answered
is kept.
"""

from __future__ import annotations

import asyncio
import functools
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, NoReturn

from arabic_agent_eval.asking import MadeCall, Request
from arabic_agent_eval.errors import EvalError, UsageError
from arabic_agent_eval.models.adapter import Adapter, Opening
from arabic_agent_eval.models.model import Answer, Attempt, Failure, Model, Settings, Tokens
from arabic_agent_eval.plugins import MODELS, Origin, find
from arabic_agent_eval.reasons import exception_line
from arabic_agent_eval.strictjson import MalformedJSON, decode_any_depth, decode_clipped
from arabic_agent_eval.tools import Call

_METHODS = ("encode", "attempt", "read", "close")


class InstalledAdapter(NamedTuple):
    """An adapter, and whose it is."""

    adapter: Adapter
    origin: Origin

    def open_model(
        self, name: str, settings: Settings, *, base_url: str | None, key: str | None, timeout: float, connections: int
    ) -> Model:
        """A model to ask; see :func:`arabic_agent_eval.models.catalogue.open_model` for the arguments.

        Raises:
            UsageError: the name or a setting makes no sense, or the package is broken.
        """
        address = base_url or self.adapter.address
        with _blaming(self.origin, "opening a model"):
            model = self.adapter.open_model(Opening(name, settings, address, key, timeout, connections))
        if missing := [method for method in _METHODS if not callable(getattr(model, method, None))]:
            _fail(self.origin, f"opened a {type(model).__name__}, which is no model: it has no {', '.join(missing)}")
        return _Watched(model, self.origin, name, address)


@functools.cache  # what is found stays found; what is not there may be installed later, and is looked for again
def _found(name: str) -> InstalledAdapter:
    found = find(MODELS, name, Adapter)
    if found is None:
        raise KeyError(name)
    return InstalledAdapter(*found)


def find_adapter(name: str) -> InstalledAdapter | None:
    """The adapter that an installed package offers for a provider; None where none offers it.

    Raises:
        UsageError: the package that offers it is broken, or two offer it.
    """
    try:
        return _found(name)
    except KeyError:
        return None


def _fail(origin: Origin, what: str) -> NoReturn:
    raise UsageError(f"{origin} {what.rstrip('.')}. Repair or update the package.") from None


@contextmanager
def _blaming(origin: Origin, doing: str) -> Iterator[None]:
    """Say of an exception whose it is; what was raised for a person to read goes through as it is."""
    try:
        yield
    except EvalError:
        raise
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError) and _is_cancelled():
            raise
        _fail(origin, f"raised {exception_line(error).rstrip('.')} on {doing}")


def _is_cancelled() -> bool:
    """Whether the task itself was cancelled, by Ctrl-C or a deadline, and not somebody's own."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return False
    return task is not None and task.cancelling() > 0


class _Watched:
    """A model of an installed package whose every value is looked at before it is used; it implements ``Model``."""

    def __init__(self, model: Model, origin: Origin, name: str, address: str) -> None:
        self.name, self.address = name, address
        self._model, self._origin = model, origin

    def encode(self, request: Request) -> bytes:
        """What the model encodes, which is kept as it is on one line of a file."""
        with _blaming(self._origin, "encode"):
            body = self._model.encode(request)
        if not isinstance(body, bytes) or b"\n" in body or b"\r" in body or not _is_json(body):
            _fail(self._origin, "encoded a request as something else than the bytes of JSON on one line")
        return body

    async def attempt(self, body: bytes) -> Attempt:
        """What the model's attempt brought."""
        with _blaming(self._origin, "attempt"):
            attempt = await self._model.attempt(body)
        if (fault := _fault_of_attempt(attempt)) is not None:
            _fail(self._origin, f"gave {fault} for an attempt")
        return attempt

    def read(self, body: dict[str, Any]) -> Answer | Failure:
        """What the model reads."""
        with _blaming(self._origin, "read"):
            read = self._model.read(body)
        if (fault := _fault_of_answer(read)) is not None:
            _fail(self._origin, f"read {fault} from an answer")
        return read

    async def close(self) -> None:
        """Close the model."""
        with _blaming(self._origin, "close"):
            await self._model.close()


def _is_json(body: bytes) -> bool:
    try:
        decode_any_depth(body)
    except MalformedJSON:
        return False
    return True


def _is_object(body: bytes) -> bool:
    try:
        return isinstance(decode_clipped(body), dict)
    except MalformedJSON:
        return False


def _kind(value: object) -> str:
    return f"a value of the type {type(value).__name__}"


def _of_another_type(values: Iterable[tuple[Any, Any]]) -> str | None:
    return next((_kind(value) for value, wanted in values if not isinstance(value, wanted)), None)


def _fault_of_attempt(attempt: Any) -> str | None:
    """What is wrong with an attempt, in words; None where nothing is."""
    if not isinstance(attempt, Attempt):
        return _kind(attempt)
    plain = (attempt.status, int | None), (attempt.latency, int | float), (attempt.excerpt, str), (attempt.body, bytes)
    if (wrong := _of_another_type(plain)) is not None:
        return f"an Attempt with {wrong} in it"
    if not math.isfinite(attempt.latency):
        return f"an Attempt with the latency {attempt.latency}"
    if attempt.failure is None:
        return None if _is_object(attempt.body) else "an Attempt whose body is not the JSON object of an answer"
    return _fault_of_failure(attempt.failure)


def _fault_of_failure(failure: Any) -> str | None:
    if not isinstance(failure, Failure):
        return _kind(failure)
    wrong = _of_another_type([(failure.kind, str), (failure.message, str), (failure.wait, int | float | None)])
    return None if wrong is None else f"a Failure with {wrong} in it"


def _fault_of_answer(read: Any) -> str | None:
    """What is wrong with what was read, in words; None where nothing is."""
    if not isinstance(read, Answer):
        return _fault_of_failure(read)
    calls: Any = read.calls
    if not isinstance(calls, tuple) or not all(map(_is_made, calls)):
        return "an Answer whose calls are not a tuple of MadeCall"
    plain = (read.text, str), (read.stop, str), (read.tokens, Tokens | None), (read.cost, int | float | None)
    return None if (wrong := _of_another_type(plain)) is None else f"an Answer with {wrong} in it"


def _is_made(made: Any) -> bool:
    return (
        isinstance(made, MadeCall)
        and isinstance(made.id, str | None)
        and isinstance(made.call, Call)
        and isinstance(made.call.arguments, dict)
    )
