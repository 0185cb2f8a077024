"""What a model is to the runner: something that turns a request into bytes, sends them once, and reads the answer.

A model never retries and never repairs; the runner owns the first and nobody does the second.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol

import msgspec

from arabic_agent_eval.asking import MadeCall, Request

FailureKind = Literal[
    "rate_limit",
    "server",
    "timeout",
    "connection",
    "malformed",
    "quota",
    "key",
    "not_found",
    "request",
    "redirect",
    "too_large",
    "filtered",
]
"""Why no answer came; ``Failure.retry`` says whether asking again can help."""


class Settings(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a model is asked.

    Attributes:
        model: the name that the provider knows it by.
        temperature, seed, max_tokens: as providers know them; None leaves the provider's default.
        parameters: anything else for the request body, as it is; it wins over the above.
    """

    model: str
    temperature: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    parameters: dict[str, Any] = {}


class Tokens(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the provider counted.

    Attributes:
        input: tokens read; cached: those of them that were read at the lower price.
        output: tokens written; reasoning: those of them that were thought and not said.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    reasoning: int = 0

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            self.input + other.input,
            self.output + other.output,
            self.cached + other.cached,
            self.reasoning + other.reasoning,
        )


class Answer(msgspec.Struct, frozen=True):
    """An answer as its codec read it.

    Attributes:
        calls: the calls in their order; malformed ones are calls as well.
        text: what was said in words.
        stop: why the model stopped, in the provider's own word; "" where it said nothing.
        cut: whether it was stopped by a limit on its length.
        tokens: None where the provider did not count.
        cost: in US dollars where the provider says so itself, else None.
    """

    calls: tuple[MadeCall, ...]
    text: str = ""
    stop: str = ""
    cut: bool = False
    tokens: Tokens | None = None
    cost: float | None = None


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why an attempt brought no answer.

    Attributes:
        kind: which sort of trouble.
        message: one sentence for a person, without secrets, that says what happened and, if it helps, what to do.
        retry: whether asking again can help.
        wait: seconds that the provider asked to wait, or None.
    """

    kind: FailureKind
    message: str
    retry: bool = False
    wait: float | None = None


class Codec(Protocol):
    """The pure half of a provider: request → URL, headers and body; body → answer. No input raises."""

    name: str
    """As in model names: ``openai-chat`` of ``openai-chat/qwen3``."""
    base_url: str
    """Where requests go unless ``--base-url`` says otherwise."""
    key_variable: str
    """The environment variable that usually holds the key."""

    def url(self, base_url: str, model: str) -> str:
        """The address to post to."""
        ...

    def headers(self, key: str | None) -> dict[str, str]:
        """The headers that carry the key and the version of the interface; without a key, without that header."""
        ...

    def body(self, request: Request, settings: Settings) -> dict[str, Any]:
        """What to send."""
        ...

    def read(self, body: dict[str, Any]) -> Answer | Failure:
        """What a decoded body with status 200 says."""
        ...


class Attempt(msgspec.Struct, frozen=True):
    """One attempt to get an answer.

    Attributes:
        body: what came back, exactly, where it is the JSON object of an answer; else b"".
        failure: why no answer came, or None.
        status: of HTTP, or None where no answer came at all.
        latency: seconds from sending to the last byte.
        excerpt: the beginning of what came back where it was no answer, without secrets.
    """

    body: bytes
    failure: Failure | None
    status: int | None
    latency: float
    excerpt: str = ""


class Model(Protocol):
    """A model that can be asked."""

    name: str
    """``provider/name``, as in the manifest and in reports."""
    address: str
    """The base URL, or "" where nothing leaves this machine."""

    def encode(self, request: Request) -> bytes:
        """The exact body to send: strict JSON, UTF-8, unescaped."""
        ...

    async def attempt(self, body: bytes) -> Attempt:
        """Send it once."""
        ...

    def read(self, body: dict[str, Any]) -> Answer | Failure:
        """What a decoded answer says."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...
