"""Asking a model over HTTP: one attempt is one POST, and whatever goes wrong with it is data.

No other module knows httpx2. Nothing here tries again: the runner owns that.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import math
import re
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx2
import msgspec

from arabic_agent_eval._version import __version__
from arabic_agent_eval.asking import Request
from arabic_agent_eval.errors import UsageError
from arabic_agent_eval.models.model import Answer, Attempt, Codec, Failure, Settings
from arabic_agent_eval.models.refusals import explain_error
from arabic_agent_eval.redaction import redact
from arabic_agent_eval.strictjson import MalformedJSON, decode_clipped, encode
from arabic_agent_eval.text import name_invisible

MAX_ANSWER = 32 * 2**20
"""Bytes of an answer, decompressed, beyond which it is not taken."""

_OK = 200
_REDIRECTS = range(300, 400)
_PORTS = range(1, 1 << 16)
_MAX_REFUSAL = 1 << 16  # nobody explains an error in more
_EXCERPT = 300
_LOOKED_AT = 2_000
_SHORTEST_KEY = 4  # what is shorter is no secret, and replacing it would eat words
_SURE_KEY = 16  # an answer is changed only where no word could be meant
_IDLE = 4.0  # seconds; many servers close after five, and a connection closed while it is taken up costs an attempt
_DECODED = {"", "identity", "gzip", "deflate"}
_NO_KEY = "No key was sent; name the variable that holds it with --api-key-env."
_KEY = re.compile(r"[!-~]+")


class _Arrived:
    """What has come of an answer so far; it outlives whatever interrupts the reading."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.headers: Mapping[str, str] = {}
        self.body = bytearray()
        self.too_large = False


class HTTPModel:
    """A model behind HTTP, with the codec of its provider; it implements ``Model``.

    One client with a pool of connections serves all attempts; it belongs to the event loop that used it first.
    Proxies and certificates are found as other HTTP clients find them: ``HTTP_PROXY``, ``HTTPS_PROXY``, ``ALL_PROXY``
    and ``NO_PROXY``, ``SSL_CERT_FILE`` and ``SSL_CERT_DIR``, else the system's store. Cookies are not kept and
    redirects are not followed, so that every attempt is the same request to the same place.

    Attributes:
        name: ``provider/name``.
        address: the base URL.
    """

    def __init__(
        self,
        codec: Codec,
        settings: Settings,
        *,
        base_url: str | None = None,
        key: str | None = None,
        provider: str | None = None,
        timeout: float = 120.0,
        connect_timeout: float = 10.0,
        max_answer: int = MAX_ANSWER,
        connections: int = 32,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        """Prepare everything that attempts share; nothing is sent.

        Args:
            codec: the provider's wire format.
            settings: how the model is asked.
            base_url: where requests go; None leaves it to the codec.
            key: the provider's key; None or "" sends none.
            provider: the part of the name before the slash; None takes the codec's.
            timeout: seconds for a whole attempt, from sending to the last byte.
            connect_timeout: seconds for a connection to come about.
            max_answer: bytes of an answer, decompressed.
            connections: how many to keep open between attempts; each attempt under way has one in any case.
            transport: stands in for the network in tests.

        Raises:
            UsageError: an argument, or a proxy or certificate setting of the environment, makes no sense.
        """
        _check_settings(settings)
        _check_numbers(timeout=timeout, connect_timeout=connect_timeout, max_answer=max_answer, connections=connections)
        secret = _check_key(key)
        self.address = base_url or codec.base_url
        self.name = f"{provider or codec.name}/{settings.model}"
        self._codec, self._settings = codec, settings
        self._host = _check_base(self.address)
        self._url = _request_url(codec, self.address, settings.model)
        self._headers = _headers(codec.headers(secret))
        self._timeout, self._connect_timeout, self._max_answer = timeout, connect_timeout, max_answer
        self._secret = _secret_pattern(secret)
        self._sure_secret = self._secret if len(secret or "") >= _SURE_KEY else None
        # The whole attempt has one deadline, so reading and writing need none of their own.
        self._limits = {"timeout": {"connect": connect_timeout, "read": None, "write": None, "pool": None}}
        self._client = _client(connections, transport)

    def __repr__(self) -> str:
        return f"HTTPModel({self.name!r}, {self.address!r})"

    def encode(self, request: Request) -> bytes:
        """The exact body to send: strict JSON, UTF-8, unescaped; a lone surrogate becomes U+FFFD."""
        return encode(self._codec.body(request, self._settings))

    async def attempt(self, body: bytes) -> Attempt:
        """Send the body once.

        Every trouble of the network or the provider comes back as a failure; only cancellation passes through. In an
        answer that echoes the key, the key is replaced: that is the one change ever made to its bytes.

        Raises:
            UsageError: the model was closed.
        """
        if self._client.is_closed:
            raise UsageError(f"{self.name} was closed and cannot be asked any more; make a new one.")
        arrived, failure, started = _Arrived(), None, time.perf_counter()
        try:
            async with asyncio.timeout(self._timeout) as deadline:
                await self._exchange(body, arrived)
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError) as error:
            if deadline.expired():
                failure = _too_late(self._host, self._timeout, arrived)
            else:
                failure = _explain(error, self._host, self._connect_timeout, arrived)
        return self._judge(arrived, failure, time.perf_counter() - started)

    def read(self, body: dict[str, Any]) -> Answer | Failure:
        """What a decoded answer says."""
        read = self._codec.read(body)
        return self._without_secrets(read) if isinstance(read, Failure) else read

    async def close(self) -> None:
        """Let go of the connections; the model cannot be asked any more."""
        await self._client.aclose()

    async def _exchange(self, body: bytes, arrived: _Arrived) -> None:
        # A request of one's own is sent as it is: no merging of defaults, no cookies.
        request = httpx2.Request("POST", self._url, headers=self._headers, content=body, extensions=self._limits)
        response = await self._client.send(request, stream=True)
        try:
            arrived.headers, arrived.status = response.headers, response.status_code
            await self._receive(response, arrived)
        finally:
            # An answer that was not read to its end takes its connection with it.
            await response.aclose()

    async def _receive(self, response: httpx2.Response, arrived: _Arrived) -> None:
        if not _is_decoded(response.headers):
            return
        limit = self._max_answer if response.status_code == _OK else _MAX_REFUSAL
        async with contextlib.aclosing(response.aiter_bytes()) as pieces:
            async for piece in pieces:
                arrived.body += piece
                if len(arrived.body) > limit:
                    arrived.too_large = True
                    return

    def _judge(self, arrived: _Arrived, failure: Failure | None, latency: float) -> Attempt:
        """What the attempt amounts to: a status other than 200 says more than an interruption behind it."""
        status, body = arrived.status, bytes(arrived.body)
        if self._sure_secret:
            body = self._sure_secret.sub(b"[secret]", body)
        if status is not None and status != _OK:
            failure = self._refusal(status, arrived.headers, self._hide_key(body))
        elif failure is None:
            failure = self._flaw(arrived, body)
        if failure is None:
            return Attempt(body, None, status, latency)
        return Attempt(b"", self._without_secrets(failure), status, latency, _excerpt(self._hide_key(body)))

    def _hide_key(self, text: bytes) -> bytes:
        """The text without the key, to be done before anybody shortens it: a key cut in two would not be found."""
        return self._secret.sub(b"[secret]", text) if self._secret else text

    def _refusal(self, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        if status in _REDIRECTS:
            return _redirected(self._url, self._host, status, headers.get("location", ""))
        try:
            said: Any = decode_clipped(body)
        except MalformedJSON:
            said = body.decode("utf-8", "replace")
        failure = explain_error(status, said, headers, time.time())
        if failure.kind == "key" and self._secret is None:
            return msgspec.structs.replace(failure, message=f"{_NO_KEY} {failure.message}")
        return failure

    def _flaw(self, arrived: _Arrived, body: bytes) -> Failure | None:
        """Why a body with status 200 is no answer, or None."""
        if not _is_decoded(arrived.headers):
            what = f"{self._host} compressed its answer in a way that was not asked for."
            return Failure("malformed", what, retry=True)
        if arrived.too_large:
            return _too_large(self._host, self._max_answer)
        try:
            value = decode_clipped(body)
        except MalformedJSON as error:
            return _misread(self._host, arrived.headers.get("content-type", ""), body, str(error))
        if not isinstance(value, dict):
            return _misread(self._host, "", body, "it is not a JSON object")
        read = self._codec.read(value)
        return read if isinstance(read, Failure) else None

    def _without_secrets(self, failure: Failure) -> Failure:
        message = self._hide_key(failure.message.encode("utf-8", "replace")).decode("utf-8", "replace")
        return msgspec.structs.replace(failure, message=redact(message))


# --- what a user can get wrong ---------------------------------------------------------------------------------


def _check_settings(settings: Settings) -> None:
    try:
        json.dumps([settings.temperature, settings.seed, settings.max_tokens, settings.parameters], allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise UsageError(
            "The settings of the model cannot be written as JSON; use text, finite numbers, true, false, null, "
            "lists and objects only."
        ) from None


def _check_numbers(**numbers: float) -> None:
    for name, value in numbers.items():
        if not (math.isfinite(value) and value > 0):
            raise UsageError(f"{name} is {value}; give a number above 0.")


def _check_key(key: str | None) -> str | None:
    if not key:
        return None
    if not _KEY.fullmatch(key):
        raise UsageError(
            "The key holds white space, a line end or a character that is not ASCII; copy it again from the "
            "provider's page, without quotation marks or a line end around it."
        )
    return key


def _check_base(address: str) -> str:
    """The host and port of a base URL, to be named in messages."""
    # Where a password or a key may stand, nothing is shown.
    shown = "" if {"@", "?"} & set(address) else f"{name_invisible(redact(address), spaces=True)[:200]!r} "
    if " " in address or name_invisible(address, spaces=True) != address:
        raise UsageError(f"The base URL {shown}holds white space or an invisible character; write it without.")
    if not re.match(r"(?i)https?://", address):
        raise UsageError(
            f"The base URL {shown}does not begin with http:// or https://; write it whole, "
            "such as http://localhost:8000/v1."
        )
    url = _read_url(address)
    if url is None:
        raise UsageError("The base URL cannot be read; check its host and port.")
    if url.userinfo:
        raise UsageError("The base URL holds a user name or a password; take it out, and give the key as a key.")
    if url.query or url.fragment or "?" in address or "#" in address:
        raise UsageError("The base URL holds a question mark or a number sign; give only what stands before it.")
    if not url.host:
        raise UsageError(f"The base URL {shown}names no host; write it whole, such as http://localhost:8000/v1.")
    return url.netloc.decode("ascii")


def _read_url(address: str) -> httpx2.URL | None:
    with contextlib.suppress(httpx2.InvalidURL, ValueError):
        url = httpx2.URL(address)
        url.raw_host.decode("ascii").encode("idna")
        return url if url.port is None or url.port in _PORTS else None
    return None


def _request_url(codec: Codec, address: str, model: str) -> httpx2.URL:
    try:
        return httpx2.URL(codec.url(address, model))
    except (httpx2.InvalidURL, ValueError):
        raise UsageError(f"The model name {name_invisible(model[:200])!r} cannot stand in an address.") from None


def _headers(from_codec: Mapping[str, str]) -> httpx2.Headers:
    headers = httpx2.Headers(
        {
            "content-type": "application/json",
            "accept": "application/json",
            # Not what else this machine could decode: one compression inside another can stop a process for hours.
            "accept-encoding": "gzip",
            "user-agent": f"arabic-agent-eval/{__version__}",
        }
    )
    headers.update(from_codec)
    return headers


def _client(connections: int, transport: httpx2.AsyncBaseTransport | None) -> httpx2.AsyncClient:
    try:
        return httpx2.AsyncClient(
            # Opened without a bound: waiting for one another would count as the provider's delay.
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=connections, keepalive_expiry=_IDLE),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            transport=transport,
        )
    except (httpx2.InvalidURL, ValueError, OSError, ImportError):
        # What is wrong with them is not quoted: a proxy's address may hold a password.
        raise UsageError(
            "The settings for proxies or certificates in the environment cannot be used; correct or unset "
            "HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, SSL_CERT_FILE and SSL_CERT_DIR."
        ) from None


def _secret_pattern(key: str | None) -> re.Pattern[bytes] | None:
    """The key as servers echo it: plain, or escaped for JSON or an address, in any case of its letters."""
    if key is None or len(key) < _SHORTEST_KEY:
        return None
    return re.compile("".join(_echoes(char) for char in key).encode(), re.IGNORECASE)


def _echoes(char: str) -> str:
    """A character as it is or escaped, also in JSON that stands as text in JSON, as the arguments of a call do."""
    plain, code = re.escape(char), f"{ord(char):02x}"
    escaped = rf"\\{{1,8}}u00{code}"
    return rf"(?:{plain}|{escaped})" if char.isalnum() else rf"(?:\\{{0,8}}{plain}|{escaped}|%{code})"


# --- what a provider can get wrong -----------------------------------------------------------------------------


def _is_decoded(headers: Mapping[str, str]) -> bool:
    return headers.get("content-encoding", "").strip().lower() in _DECODED


def _too_large(host: str, limit: int) -> Failure:
    return Failure(
        "too_large",
        f"The answer of {host} is larger than {limit:,} bytes and was not read further; lower max_tokens, "
        "or allow larger answers.",
    )


def _redirected(asked: httpx2.URL, host: str, status: int, location: str) -> Failure:
    target = "an address that cannot be read" if location else "an address that it does not name"
    with contextlib.suppress(httpx2.InvalidURL, ValueError):
        url = asked.join(location)
        target = f"{url.scheme}://{url.netloc.decode('ascii', 'replace')}" if location else target
    return Failure(
        "redirect",
        f"{host} sends requests on to {name_invisible(target[:200])} (status {status}), and redirects are not followed "
        "because the key would go along; give the final address as the base URL if you trust it.",
    )


def _misread(host: str, content_type: str, body: bytes, reason: str) -> Failure:
    kind = content_type.partition(";")[0].strip().lower()
    start = body[:100].lstrip().lower()
    if not body.strip():
        what = "an empty answer; if it happens again, check the base URL"
    elif kind == "text/html" or start.startswith((b"<!doctype", b"<html")):
        what = "a web page in place of an answer; check the base URL, and whether a sign-in page or a proxy answers"
    elif kind == "text/event-stream" or start.startswith((b"data:", b"event:")):
        what = 'a stream of events, which was not asked for; take "stream" out of the parameters'
    else:
        label = f", labelled {name_invisible(kind[:60])}" if kind and kind != "application/json" else ""
        what = f"something that is no answer{label}: {reason}"
    return Failure("malformed", f"{host} sent {what}.", retry=True)


def _excerpt(body: bytes) -> str:
    """The beginning of a body on one line, without what looks like a key and harmless in a terminal."""
    line = name_invisible(" ".join(redact(body[:_LOOKED_AT].decode("utf-8", "replace")).split()))
    return line if len(line) <= _EXCERPT else f"{line[:_EXCERPT]}…"


# --- what can happen on the way --------------------------------------------------------------------------------


def _too_late(host: str, timeout: float, arrived: _Arrived) -> Failure:
    what = f"{host} did not answer" if arrived.status is None else f"The answer of {host} was not complete"
    return Failure(
        "timeout", f"{what} within {timeout:g} seconds; allow more time, or ask for shorter answers.", retry=True
    )


def _explain(error: Exception, host: str, connect_timeout: float, arrived: _Arrived) -> Failure:
    """One sentence for an exception: from the system's reason where there is one, else from its class."""
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLError):
            return _explain_tls(cause, host)
        if isinstance(cause, socket.gaierror):
            return _lost(f"The name of {host} was not found; check its spelling and the network")
        if isinstance(cause, OSError) and cause.errno in _SYSTEM:
            return _lost(_SYSTEM[cause.errno].format(host=host))
    if isinstance(error, httpx2.TimeoutException):
        what = f"{host} was silent for too long; allow more time"
        if isinstance(error, httpx2.ConnectTimeout):
            what = f"No connection to {host} came about within {connect_timeout:g} seconds; check address and network"
        return Failure("timeout", f"{what}.", retry=True)
    if isinstance(error, httpx2.DecodingError):
        return Failure("malformed", f"The compressed answer of {host} is damaged.", retry=True)
    if isinstance(error, httpx2.ProxyError):
        return _explain_proxy(error, host)
    return _explain_break(error, host, arrived)


def _explain_tls(error: ssl.SSLError, host: str) -> Failure:
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = name_invisible(str(getattr(error, "verify_message", "no reason given"))[:200])
        return Failure(
            "connection",
            f"The certificate of {host} was not accepted ({reason}); if you trust the server, name its authority's "
            "certificate in SSL_CERT_FILE.",
        )
    reason = getattr(error, "reason", None) or "no reason given"
    if reason in _NO_TLS:
        return Failure("connection", f"{host} does not speak TLS; if the server is yours, use http:// in the base URL.")
    reason = reason.replace("_", " ").lower()
    return _lost(f"No secure connection to {host} came about ({reason}); if it stays so, check the address")


def _explain_proxy(error: httpx2.ProxyError, host: str) -> Failure:
    reason = name_invisible(str(error)[:200])
    return Failure(
        "connection",
        f"The proxy did not connect to {host} ({reason}); check HTTPS_PROXY and what the proxy allows.",
        retry=not reason.startswith("4"),
    )


def _explain_break(error: Exception, host: str, arrived: _Arrived) -> Failure:
    """What broke where the system gives no reason."""
    if arrived.status is not None:
        return _lost(f"The answer of {host} broke off after {len(arrived.body):,} bytes")
    if isinstance(error, httpx2.ProtocolError) and "disconnected" not in str(error):
        return Failure(
            "malformed",
            f"{host} answered with something that is not HTTP; check the base URL and its port.",
            retry=True,
        )
    if isinstance(error, httpx2.ConnectError):
        return _lost(f"No connection to {host} came about; check the address and the network")
    return _lost(f"{host} closed the connection without an answer")


def _lost(what: str) -> Failure:
    return Failure("connection", f"{what}.", retry=True)


_NO_TLS = {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"}
_SYSTEM = {
    errno.ECONNREFUSED: "{host} refused the connection; check that a server is running there, and its port",
    errno.EADDRNOTAVAIL: "No local port is free to connect to {host}; ask fewer at a time",
    **dict.fromkeys(
        (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ETIMEDOUT),
        "{host} cannot be reached from here; check the network",
    ),
    **dict.fromkeys((errno.ECONNRESET, errno.ECONNABORTED, errno.EPIPE), "{host} broke the connection off"),
    **dict.fromkeys(
        (errno.EMFILE, errno.ENFILE),
        "Too many files are open to connect to {host}; ask fewer at a time, or raise the limit (ulimit -n)",
    ),
}
"""Reasons that the system gives, in words."""


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what lies behind it, nearest first: the layers hand a reason down in four ways."""
    waiting, known = [error], {id(error)}
    while waiting:
        found = waiting.pop(0)
        yield found
        group = found.exceptions if isinstance(found, BaseExceptionGroup) else ()
        for one in (*found.args, found.__cause__, *group, found.__context__):
            if isinstance(one, BaseException) and id(one) not in known:
                known.add(id(one))
                waiting.append(one)
