"""The models that can be named: ``provider/name`` → something to ask."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from arabic_agent_eval.bundled import find_replies
from arabic_agent_eval.errors import UsageError
from arabic_agent_eval.redaction import redact

if TYPE_CHECKING:
    from arabic_agent_eval.models.installed import InstalledAdapter
    from arabic_agent_eval.models.model import Codec, Model, Settings

BASELINE, REPLAY = "baseline", "replay"
DEFAULT_TIMEOUT = 120.0


class Provider(msgspec.Struct, frozen=True, omit_defaults=True):
    """One provider, for a list of them.

    Attributes:
        name: as in model names.
        example: a model name.
        key_variable: the environment variable that usually holds its key; "" where none is needed.
        address: where requests go by default; "" where nothing leaves this machine.
        about: what it is.
        package: the installed package that offers it, with its version; absent for those that are built in.
    """

    name: str
    example: str
    key_variable: str
    address: str
    about: str
    package: str = ""


def _openai_chat() -> Codec:
    from arabic_agent_eval.models.openai_chat import OpenAIChat  # noqa: PLC0415 - who lists models needs none of them

    return OpenAIChat()


def _openai_responses() -> Codec:
    from arabic_agent_eval.models.openai_responses import OpenAIResponses  # noqa: PLC0415

    return OpenAIResponses()


def _anthropic() -> Codec:
    from arabic_agent_eval.models.anthropic import Anthropic  # noqa: PLC0415

    return Anthropic()


def _gemini() -> Codec:
    from arabic_agent_eval.models.gemini import Gemini  # noqa: PLC0415

    return Gemini()


_CODECS: Final[dict[str, tuple[Callable[[], Codec], str, str]]] = {
    "openai-chat": (
        _openai_chat,
        "openai-chat/gpt-5-mini",
        "OpenAI's Chat Completions; also vLLM, Ollama, llama.cpp, OpenRouter and the like, with --base-url",
    ),
    "openai-responses": (_openai_responses, "openai-responses/gpt-5-mini", "OpenAI's Responses"),
    "anthropic": (_anthropic, "anthropic/claude-sonnet-5", "Anthropic's Messages"),
    "gemini": (_gemini, "gemini/gemini-3-flash", "Google's Gemini"),
}


_BUILT_IN: Final = frozenset({BASELINE, REPLAY, *_CODECS})


def providers() -> list[Provider]:
    """The providers that are built in, those on this machine first."""
    local = [
        Provider(BASELINE, BASELINE, "", "", "A caller of tools without a language model, to compare with"),
        Provider(REPLAY, "replay/FILE", "", "", "Answers that exist already: a file of replies, or a run folder"),
    ]
    remote = []
    for name, (make, example, about) in _CODECS.items():
        codec = make()
        remote.append(Provider(name, example, codec.key_variable, codec.base_url, about))
    return local + remote


def installed_providers() -> tuple[list[Provider], list[str]]:
    """The providers that installed packages offer, and what is wrong with those that cannot be used, in sentences."""
    from arabic_agent_eval.models.installed import find_adapter  # noqa: PLC0415 - most commands look for none
    from arabic_agent_eval.plugins import MODELS, names  # noqa: PLC0415

    found, wrong = [], []
    for name in names(MODELS):
        if name in _BUILT_IN:
            wrong.append(f"an installed package offers a provider {name!r}, which is built in; it is not used.")
            continue
        try:
            one = find_adapter(name)
        except UsageError as error:
            wrong.append(str(error))
            continue
        if one is None:
            wrong.append(f"an installed package offers a provider {name[:60]!r}, which is no name of one.")
            continue
        what, package = one.adapter, f"{one.origin.package} {one.origin.version}".rstrip()
        example = what.example or f"{name}/NAME"
        found.append(Provider(name, example, what.key_variable, what.address, what.about, package))
    return found, wrong


def split_name(name: str) -> tuple[str, str]:
    """The provider and the model of a name.

    Raises:
        UsageError: there is no such provider, or no model is named.
    """
    provider, _, model = name.partition("/")
    if provider not in _BUILT_IN:
        _adapter(provider)
    if provider != BASELINE and not model:
        raise UsageError(f"which model of {provider}? Name it as {provider}/NAME.")
    return provider, model


def _adapter(provider: str) -> InstalledAdapter:
    """The adapter of an installed package.

    Raises:
        UsageError: no package offers such a provider, or the one that does is broken.
    """
    from arabic_agent_eval.models.installed import find_adapter  # noqa: PLC0415 - most commands look for none
    from arabic_agent_eval.plugins import MODELS, names  # noqa: PLC0415

    found = find_adapter(provider)
    if found is None:
        known = ", ".join(sorted({*_BUILT_IN, *names(MODELS)}))
        raise UsageError(
            f"there is no provider {provider[:60]!r}; a model is named PROVIDER/NAME, with one of {known}."
        )
    return found


def ignored_settings(name: str) -> frozenset[str]:
    """The settings that a provider's interface does not have."""
    provider, _ = split_name(name)
    if provider in {BASELINE, REPLAY}:
        return frozenset({"temperature", "seed", "max_tokens", "parameters"})
    if provider not in _BUILT_IN:
        return _adapter(provider).adapter.ignores
    return frozenset(getattr(_CODECS[provider][0](), "ignores", ()))


def base_address(name: str, base_url: str | None) -> str:
    """Where requests to a model go; "" where nothing leaves this machine."""
    provider, _ = split_name(name)
    if provider not in _BUILT_IN:
        address = _adapter(provider).adapter.address
        return address and (base_url or address)
    return "" if provider in {BASELINE, REPLAY} else base_url or _CODECS[provider][0]().base_url


def open_model(
    name: str,
    settings: Settings,
    *,
    base_url: str | None = None,
    key_variable: str | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    connections: int = 32,
) -> Model:
    """A model to ask.

    The key comes from the environment only. It is sent to the provider's own address, and to another one only if its
    variable is named, so that no key reaches a server that it was not meant for.

    Args:
        name: ``provider/name``.
        settings: how it is asked.
        base_url: another address.
        key_variable: the environment variable that holds the key.
        timeout: seconds for one attempt.
        connections: how many are kept open.

    Raises:
        UsageError: the name, the address or the key makes no sense, or an installed package that offers the provider
            is broken.
        DataError: a file to replay cannot be read.
    """
    provider, model = split_name(name)
    if base_url is not None and not base_address(name, None):
        raise UsageError(f"{provider} is on this machine and has no --base-url.")
    if provider in {BASELINE, REPLAY}:
        return _local(provider, model)
    if provider not in _BUILT_IN:
        installed = _adapter(provider)
        key = _key(installed.adapter.address, installed.adapter.key_variable, base_url, key_variable)
        return installed.open_model(
            name, settings, base_url=base_url, key=key, timeout=timeout, connections=connections
        )
    from arabic_agent_eval.models.wire import HTTPModel  # noqa: PLC0415 - the HTTP client takes long to load

    codec = _CODECS[provider][0]()
    return HTTPModel(
        codec,
        settings,
        base_url=base_url,
        key=_key(codec.base_url, codec.key_variable, base_url, key_variable),
        timeout=timeout,
        connections=connections,
    )


def _local(provider: str, model: str) -> Model:
    if provider == REPLAY:
        from arabic_agent_eval.models.replay import Replay  # noqa: PLC0415

        path = Path(model)
        return Replay(path if path.is_dir() else find_replies(model))
    if model:
        raise UsageError("the baseline has no models; name it 'baseline'.")
    from arabic_agent_eval.models.baseline import Baseline  # noqa: PLC0415

    return Baseline()


def _key(address: str, own_variable: str, base_url: str | None, key_variable: str | None) -> str | None:
    own = base_url is None or base_url.rstrip("/") == address
    if key_variable is None and not (own and own_variable):
        return None
    variable = own_variable if key_variable is None else key_variable  # an empty name is none: see below
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable):
        raise UsageError("--api-key-env takes the name of an environment variable; this is none, and is not shown.")
    key = os.environ.get(variable)
    if not key:
        what = f"the environment variable {redact(variable)} is not set; it must hold the key"
        raise UsageError(f"{what}. Set it, or name another one with --api-key-env.")
    return key
