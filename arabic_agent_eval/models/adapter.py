"""What a package offers to add a provider of models: what opens a model, and what ``aae models`` says of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from arabic_agent_eval.models.model import Model, Settings


@dataclass(frozen=True)
class Opening:
    """What a model is opened with.

    Attributes:
        name: ``provider/name``, as in the manifest and in reports.
        settings: how it is asked; ``settings.model`` is the name without the provider.
        base_url: where requests go: the adapter's own address, or the one that was given; "" without either.
        key: the key; None where none is needed. It is not to be written anywhere.
        timeout: seconds for one attempt.
        connections: how many requests there will be at once.
    """

    name: str
    settings: Settings
    base_url: str
    key: str | None = field(repr=False)
    timeout: float
    connections: int


@dataclass(frozen=True)
class Adapter:
    """A provider; an entry point of the group ``arabic_agent_eval.models`` names one, and its name is the provider's.

    Attributes:
        open_model: gives the model that is asked; a name or a setting that makes no sense is a ``UsageError``.
        about: what it is, in a line.
        example: a model name; ``provider/NAME`` by default.
        address: where requests go by default; "" where nothing leaves this machine, and then there is no --base-url.
        key_variable: the environment variable that usually holds the key; "" where none is needed.
        ignores: the settings that it does not have, of ``temperature``, ``seed``, ``max_tokens`` and ``parameters``.

    Raises:
        TypeError: a field has another type.
    """

    open_model: Callable[[Opening], Model]
    about: str
    example: str = ""
    address: str = ""
    key_variable: str = ""
    ignores: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not callable(self.open_model):
            raise TypeError("'open_model' must be a function that takes an Opening and gives a Model")
        for name in ("about", "example", "address", "key_variable"):
            if not isinstance(getattr(self, name), str):
                raise TypeError(f"{name!r} must be text")
        if not isinstance(self.ignores, frozenset):
            raise TypeError("'ignores' must be a frozenset of names of settings")
