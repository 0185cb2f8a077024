"""The HTTP client against a server that misbehaves in every way: one attempt, one verdict, no exception, no key."""

from __future__ import annotations

import asyncio
import errno
import json
import socket
import ssl
from email.utils import formatdate
from time import time

import httpx2
import pytest

from arabic_agent_eval._version import __version__
from arabic_agent_eval.asking import Request
from arabic_agent_eval.errors import UsageError
from arabic_agent_eval.models.model import Answer, Failure, Settings
from arabic_agent_eval.models.wire import HTTPModel
from tests import faults

GUARD = 30
SHORT = 0.4
KEY = "sekrit+0123/456789=ABCDEF"
GOOD = json.dumps({"text": "الطقس مشمس"}, ensure_ascii=False).encode()
LARGE = b'{"text": "%b"}' % (b"x" * 10_000_000)


class TinyCodec:
    """A provider whose answers are an object with a text, or with an error inside."""

    name = "tiny"
    base_url = "http://127.0.0.1:1/v1"
    key_variable = "TINY_KEY"

    def url(self, base_url, model):
        """Under the base."""
        return f"{base_url}/ask/{model}"

    def headers(self, key):
        """The key, and one header that is set anyway."""
        return {} if key is None else {"authorization": f"Bearer {key}", "Accept": "application/json; tiny=1"}

    def body(self, request, settings):
        """As little as will do."""
        return {"model": settings.model, "system": request.system, **settings.parameters}

    def read(self, body):
        """A text or an error."""
        if "error" in body:
            return Failure("rate_limit", f"It said {body['error']}.", retry=True, wait=2.0)
        return Answer((), text=body["text"]) if "text" in body else Failure("malformed", "No text.", retry=True)


def model_at(url, **options):
    given = {"key": KEY, "timeout": SHORT, "max_answer": 1 << 20} | options
    return HTTPModel(TinyCodec(), Settings("m"), base_url=url, **given)


def run(coroutine):
    async def guarded():
        async with asyncio.timeout(GUARD):
            return await coroutine

    return asyncio.run(guarded())


def ask(script, *, scheme="http", **options):
    """One attempt at a server with this script: what came of it, and the server."""

    async def go():
        async with faults.FaultServer(script) as server:
            model = model_at(server.url.replace("http", scheme, 1), **options)
            try:
                return await model.attempt(b'{"q": 1}'), server
            finally:
                await model.close()

    return run(go())


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch):
    """The machine's own settings play no part."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


# --- answers ---------------------------------------------------------------------------------------------------

ANSWERS = {
    "plain": (faults.ok(GOOD), {}),
    "chunked": (faults.chunked(GOOD[:9], GOOD[9:]), {}),
    "compressed": (faults.zipped(GOOD), {}),
    "labelled as something else": (faults.ok(GOOD, "text/plain"), {}),
    "dripping, but in time": (faults.drip(GOOD, 10, 0.001), {"timeout": GUARD}),
    "ten megabytes": (faults.ok(LARGE), {"timeout": GUARD, "max_answer": 1 << 25}),
    "without a length, ended by closing": (faults.raw(faults.head() + GOOD), {}),
    "to a request without a key": (faults.ok(GOOD), {"key": ""}),
    "with a short key": (faults.ok(b'{"text": "text"}'), {"key": "text"}),
    "with spaces around": (faults.ok(b"\n " + GOOD + b"\n"), {}),
    "with a lone surrogate": (faults.ok(rb'{"text": "\ud83d"}'), {}),
    "nested ten thousand deep": (faults.ok(b'{"text": "", "x": %b}' % (b"[" * 10_000 + b"]" * 10_000)), {}),
}


@pytest.mark.parametrize(("reply", "options"), ANSWERS.values(), ids=ANSWERS)
def test_an_answer_is_kept_exactly(reply, options):
    """Whatever way a JSON object travels, its bytes are kept as they are and nothing failed."""
    expected = {"ten megabytes": LARGE}.get(reply.name)
    attempt, server = ask(reply, **options)

    assert attempt.failure is None
    assert attempt.status == 200
    assert attempt.excerpt == ""
    assert attempt.latency > 0
    assert b'"text"' in attempt.body
    assert expected is None or attempt.body == expected
    assert len(server.seen) == 1


def test_bytes_are_neither_added_nor_lost():
    """White space, order and escapes of an answer survive, and so do ten megabytes."""
    odd = b' {"text" : "\\u0645\\ud83d",\t"n":1.0} \n'

    assert ask(faults.ok(odd))[0].body == odd
    assert ask(faults.ok(LARGE), timeout=GUARD, max_answer=len(LARGE))[0].body == LARGE


def test_one_post_carries_the_body_and_the_headers():
    """The server sees one POST at the codec's address with the exact body, the codec's headers and no cookies."""

    async def go():
        script = faults.status(200, GOOD, {"set-cookie": "a=1; Path=/"})
        async with faults.FaultServer(script) as server:
            model = model_at(server.url)
            for _ in range(3):
                assert (await model.attempt('{"س": 1}'.encode())).failure is None
            assert not model._client.cookies
            await model.close()
            return server

    server = run(go())

    assert server.connections == 1
    assert len(server.seen) == 3
    for seen in server.seen:
        assert (seen.method, seen.path, seen.body) == ("POST", "/ask/m", '{"س": 1}'.encode())
        assert seen.headers["content-type"] == "application/json"
        assert seen.headers["authorization"] == f"Bearer {KEY}"
        assert seen.headers["accept"] == "application/json; tiny=1"
        assert seen.headers["accept-encoding"] == "gzip"
        assert seen.headers["user-agent"] == f"arabic-agent-eval/{__version__}"
        assert seen.headers["content-length"] == str(len(seen.body))
        assert "cookie" not in seen.headers
        assert seen.complete


def test_a_connection_closed_between_requests_costs_nothing_or_a_retry():
    """A server may close an idle connection at any time; then a new one is made, or the failure says try again."""

    async def go():
        async with faults.FaultServer(faults.last(faults.ok(GOOD))) as server:
            model = model_at(server.url)
            attempts = [await model.attempt(b"{}") for _ in range(10)]
            await asyncio.sleep(0.05)
            attempts.append(await model.attempt(b"{}"))
            await model.close()
            return attempts

    attempts = run(go())

    assert attempts[-1].failure is None
    assert all(one.failure is None or (one.failure.kind, one.failure.retry) == ("connection", True) for one in attempts)


def test_as_many_attempts_as_connections_run_at_once():
    """Attempts share the pool without waiting for one another, and the connections are used again."""

    async def go():
        gate, waiting = asyncio.Event(), []

        async def act(peer):
            waiting.append(peer)
            if len(waiting) == 8:
                gate.set()
            await gate.wait()
            return await faults.ok(GOOD).act(peer)

        async with faults.FaultServer(faults.Reply("together", act)) as server:
            model = model_at(server.url, connections=8, timeout=GUARD)
            for _ in range(2):
                attempts = await asyncio.gather(*(model.attempt(b"{}") for _ in range(8)))
                assert all(one.failure is None for one in attempts)
            await model.close()
            return server.connections

    assert run(go()) == 8


# --- faults ----------------------------------------------------------------------------------------------------

NO_OBJECT = "sent something that is no answer"
TABLE = [
    # why, reply, options, kind, retry, status, words of the message
    ("a web page", faults.page(), {}, "malformed", True, 200, "a web page"),
    ("a web page, asked without a key", faults.page(), {"key": None}, "malformed", True, 200, "a web page"),
    ("a web page labelled as JSON", faults.ok(b"\n<!DOCTYPE html><p>"), {}, "malformed", True, 200, "a web page"),
    ("events", faults.ok(b'data: {"text": ""}\n\n', "text/event-stream"), {}, "malformed", True, 200, "a stream of"),
    ("another type", faults.ok(b"hello", "text/plain"), {}, "malformed", True, 200, "labelled text/plain"),
    ("nothing", faults.ok(b""), {}, "malformed", True, 200, "an empty answer"),
    ("white space", faults.ok(b" \r\n"), {}, "malformed", True, 200, "an empty answer"),
    ("truncated JSON", faults.ok(GOOD[:-2]), {}, "malformed", True, 200, "ends too early"),
    ("two values", faults.ok(GOOD + GOOD), {}, "malformed", True, 200, NO_OBJECT),
    ("no number", faults.ok(b'{"text": NaN}'), {}, "malformed", True, 200, NO_OBJECT),
    ("no UTF-8", faults.ok(b'{"text": "\xff"}'), {}, "malformed", True, 200, "not valid UTF-8"),
    ("a list", faults.ok(b"[1]"), {}, "malformed", True, 200, "not a JSON object"),
    ("a text", faults.ok(b'"hello"'), {}, "malformed", True, 200, "not a JSON object"),
    ("an object of another kind", faults.ok(b'{"x": 1}'), {}, "malformed", True, 200, "No text."),
    ("an error inside", faults.ok(b'{"error": "slow down"}'), {}, "rate_limit", True, 200, "slow down"),
    (
        "a damaged compression",
        faults.status(200, GOOD, {"content-encoding": "gzip"}),
        {},
        "malformed",
        True,
        200,
        "dam",
    ),
    ("compressed twice", faults.zipped(GOOD, "gzip, gzip"), {}, "malformed", True, 200, "not asked for"),
    ("an unknown compression", faults.zipped(GOOD, "br"), {}, "malformed", True, 200, "not asked for"),
    ("a compressed bomb", faults.zipped(b" " * (1 << 22)), {}, "too_large", False, 200, "1,048,576 bytes"),
    ("too much by a byte", faults.ok(GOOD), {"max_answer": len(GOOD) - 1}, "too_large", False, 200, "larger than"),
    ("without end", faults.endless(), {"timeout": GUARD}, "too_large", False, 200, "larger than"),
    ("silence", faults.silence(), {}, "timeout", True, None, "did not answer within 0.4 seconds"),
    ("dripping", faults.drip(GOOD, 1, 0.1), {}, "timeout", True, 200, "was not complete within 0.4 seconds"),
    ("closed at once", faults.hang_up(), {}, "connection", True, None, "closed the connection without an answer"),
    ("reset at once", faults.hang_up(reset=True), {}, "connection", True, None, "127.0.0.1"),
    ("cut", faults.cut(GOOD, 10), {}, "connection", True, 200, "broke off after 10 bytes"),
    ("cut by a reset", faults.cut(GOOD, 10, reset=True), {}, "connection", True, 200, "127.0.0.1"),
    ("chunks without a last", faults.chunked(GOOD, last=False), {}, "connection", True, 200, "broke off after"),
    ("no HTTP", faults.raw(b"\x15\x03\x01\x00\x02\x02\x46\r\n\r\n"), {}, "malformed", True, None, "not HTTP"),
    ("no number of a status", faults.raw(b"HTTP/1.1 abc\r\n\r\n"), {}, "malformed", True, None, "not HTTP"),
    (
        "endless headers",
        faults.raw(b"HTTP/1.1 200 OK\r\nx: " + b"y" * 300_000),
        {},
        "malformed",
        True,
        None,
        "not HTTP",
    ),
    ("no TLS", faults.ok(GOOD), {"scheme": "https"}, "connection", False, None, "does not speak TLS"),
    (
        "elsewhere",
        faults.redirect(301, "https://h.example/v2?k=1"),
        {},
        "redirect",
        False,
        301,
        "to https://h.example (",
    ),
    ("elsewhere here", faults.redirect(308, "/v2"), {}, "redirect", False, 308, "to http://127.0.0.1:"),
    ("nowhere", faults.redirect(302, None), {}, "redirect", False, 302, "does not name"),
    ("unreadable", faults.redirect(307, "https://[::1"), {}, "redirect", False, 307, "cannot be read"),
    (
        "with a password",
        faults.redirect(307, "http://u:pw@h.example"),
        {},
        "redirect",
        False,
        307,
        "to http://h.example (",
    ),
]


@pytest.mark.parametrize(
    ("reply", "options", "kind", "retry", "status", "words"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_each_fault_has_its_failure(reply, options, kind, retry, status, words):
    """Every fault ends in one request, no body, and a failure of its kind that names what happened in a sentence."""
    attempt, server = ask(reply, **options)

    assert attempt.failure is not None
    assert (attempt.failure.kind, attempt.failure.retry, attempt.status) == (kind, retry, status)
    assert words in attempt.failure.message
    assert attempt.failure.message.endswith(".")
    assert "\n" not in attempt.failure.message
    assert attempt.body == b""
    assert attempt.latency > 0
    assert len(server.seen) == (0 if options.get("scheme") else 1)


@pytest.mark.parametrize("code", [201, 204, 206, 400, 401, 404, 422, 429, 500, 503, 529, 599])
def test_every_other_status_is_explained(code):
    """A status other than 200 is no answer, whatever its body holds."""
    body = b"" if code == 204 else GOOD
    attempt, _ = ask(faults.status(code, body))

    assert attempt.failure is not None
    assert attempt.failure.message
    assert attempt.status == code
    assert attempt.body == b""


@pytest.mark.parametrize(
    "reply",
    [
        faults.drip(b'{"error": "slow down"}', 1, 0.1, 429),
        faults.cut(b'{"error": "slow down"}', 5, code=429),
        faults.cut(b'{"error": "slow down"}', 5, reset=True, code=429),
        faults.endless(429),
        faults.zipped(b"{}", "br"),
    ],
)
def test_a_status_says_more_than_what_breaks_behind_it(reply):
    """An error whose body drips, breaks or never ends is still explained by its status."""
    if reply.name == "zipped":
        reply = faults.status(429, b"x", {"content-encoding": "br"})
    attempt, _ = ask(reply)

    assert attempt.failure is not None
    assert (attempt.failure.kind, attempt.failure.retry, attempt.status) == ("rate_limit", True, 429)


def test_the_provider_says_how_long_to_wait():
    """Retry-After counts in seconds and as a date."""
    seconds, _ = ask(faults.status(429, b"{}", {"Retry-After": "7"}))
    date, _ = ask(faults.status(429, b"{}", {"Retry-After": formatdate(time() + 300, usegmt=True)}))

    assert seconds.failure.wait == 7
    assert 200 < date.failure.wait <= 301


def test_what_is_refused_is_not_read_to_its_end():
    """A body that is too large is dropped at once, with its connection."""
    _, server = ask(faults.endless(), timeout=GUARD)

    assert not server.seen[0].complete


class Counted(httpx2.AsyncByteStream):
    """A body without an end that knows how much of it was taken, and whether it was let go."""

    taken, closed = 0, False

    async def __aiter__(self):
        while True:
            self.taken += 1000
            yield b" " * 1000

    async def aclose(self):
        """It is let go."""
        self.closed = True


@pytest.mark.parametrize(
    ("code", "headers", "least", "most"),
    [
        (200, {}, 1 << 20, (1 << 20) + 1000),
        (500, {}, 1, (1 << 16) + 1000),
        (302, {}, 1, (1 << 16) + 1000),
        (200, {"content-encoding": "gzip, gzip"}, 0, 0),
        (500, {"content-encoding": "br"}, 0, 0),
    ],
)
def test_no_more_is_taken_than_can_be_used(code, headers, least, most):
    """An answer is read to its limit, an error as far as it can explain anything, and then both are let go."""
    body = Counted()
    transport = httpx2.MockTransport(lambda _: httpx2.Response(code, headers=headers, stream=body))
    attempt = run(once("http://h.example", transport=transport, timeout=GUARD))

    assert attempt.failure is not None
    assert least <= body.taken <= most
    assert body.closed


def test_nobody_listens():
    """A refused connection says so, names host and port, and can be tried again."""
    with faults.closed_port() as port:
        attempt = run(once(f"http://127.0.0.1:{port}"))

    assert attempt.failure == Failure("connection", attempt.failure.message, retry=True)
    assert attempt.failure.message.startswith(f"127.0.0.1:{port} refused the connection;")
    assert attempt.status is None


async def once(url, **options):
    model = model_at(url, **options)
    try:
        return await model.attempt(b"{}")
    finally:
        await model.close()


def raising(error):
    """What the machine's own functions would raise, from the place where they would."""

    def fail(*_, **__):
        raise error

    return fail


def test_a_name_that_nobody_knows(monkeypatch):
    """A name that is not found says so and can be tried again: name servers have bad moments."""
    monkeypatch.setattr(socket, "getaddrinfo", raising(socket.gaierror(socket.EAI_NONAME, "Name or service not known")))
    attempt = run(once("https://nowhere.example/v1"))

    assert (attempt.failure.kind, attempt.failure.retry) == ("connection", True)
    assert "name of nowhere.example was not found" in attempt.failure.message


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EMFILE, "Too many files are open"),
        (errno.ENFILE, "Too many files are open"),
        (errno.ENETUNREACH, "cannot be reached"),
        (errno.EHOSTUNREACH, "cannot be reached"),
        (errno.EADDRNOTAVAIL, "No local port is free"),
        (errno.EBADMSG, "No connection to 192.0.2.1 came about"),
    ],
)
def test_the_system_says_why(monkeypatch, number, words):
    """What the operating system gives as the reason is found behind the layers that wrapped it."""

    async def refuse(*_, **__):
        raise OSError(number, "no")

    async def go():
        monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", refuse)
        return await once("http://192.0.2.1/v1")

    attempt = run(go())

    assert (attempt.failure.kind, attempt.failure.retry) == ("connection", True)
    assert words in attempt.failure.message


def certificate_error():
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_message = "self-signed certificate"
    return error


RAISED = [
    (httpx2.ConnectError("x"), certificate_error(), "connection", False, "(self-signed certificate)"),
    (httpx2.ConnectError("x"), ssl.SSLError(1, "[SSL: X] y"), "connection", True, "No secure connection"),
    (httpx2.ConnectError("x"), ExceptionGroup("", [OSError(errno.ECONNREFUSED, "")]), "connection", True, "refused"),
    (httpx2.ConnectTimeout("x"), None, "timeout", True, "within 10 seconds"),
    (httpx2.ReadTimeout("x"), None, "timeout", True, "was silent"),
    (httpx2.WriteError("x"), None, "connection", True, "without an answer"),
    (httpx2.ProxyError("407 Proxy Authentication Required"), None, "connection", False, "HTTPS_PROXY"),
    (httpx2.ProxyError("503 Busy"), None, "connection", True, "HTTPS_PROXY"),
    (ssl.SSLError(1, "[SSL: BAD_MAC] y"), None, "connection", True, "No secure connection"),
    (httpx2.StreamClosed(), None, "connection", True, "without an answer"),
    (httpx2.LocalProtocolError(f"bad {KEY}"), None, "malformed", True, "not HTTP"),
]


class Raising(httpx2.AsyncBaseTransport):
    """A network that fails in a chosen way."""

    def __init__(self, error):
        self.error = error

    async def handle_async_request(self, request):
        """It fails."""
        raise self.error


@pytest.mark.parametrize(("error", "cause", "kind", "retry", "words"), RAISED)
def test_what_the_client_raises_becomes_a_failure(error, cause, kind, retry, words):
    """No exception of the client leaks, not even those that a local server cannot provoke."""
    error.__cause__ = cause
    attempt = run(once("https://h.example/v1", transport=Raising(error)))

    assert (attempt.failure.kind, attempt.failure.retry, attempt.status) == (kind, retry, None)
    assert words in attempt.failure.message
    assert "h.example" in attempt.failure.message


def test_cancellation_passes_through():
    """An attempt that is cancelled raises CancelledError, and the model can be asked again."""

    async def go():
        async with faults.FaultServer([faults.silence(), faults.ok(GOOD)]) as server:
            model = model_at(server.url, timeout=GUARD)
            task = asyncio.create_task(model.attempt(b"{}"))
            while not server.seen:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            attempt = await model.attempt(b"{}")
            await model.close()
            return attempt

    assert run(go()).failure is None


def test_a_closed_model_says_so():
    """Asking after closing is the caller's mistake."""

    async def go():
        model = model_at("http://127.0.0.1:1")
        await model.close()
        await model.attempt(b"{}")

    with pytest.raises(UsageError, match="was closed"):
        run(go())


# --- secrets and hostile text ----------------------------------------------------------------------------------

ECHOES = {
    "plain": KEY,
    "escaped slash": KEY.replace("/", r"\/"),
    "escaped sign": KEY.replace("=", "\\u003d").replace("+", "\\u002B"),
    "escaped slash in JSON in JSON": KEY.replace("/", r"\\/"),
    "escaped twice": KEY.replace("=", r"\\u003d").replace("+", r"\\\u002B"),
    "escaped letters": KEY.replace("s", "\\u0073").replace("4", "\\u0034"),
    "in an address": KEY.replace("/", "%2F").replace("+", "%2b").replace("=", "%3D"),
    "in lower case": KEY.lower(),
}


@pytest.mark.parametrize("echo", ECHOES.values(), ids=ECHOES)
@pytest.mark.parametrize("code", [200, 401, 500])
def test_no_echo_of_the_key_survives(code, echo):
    """A server that sends the key back, however escaped, puts it into no message, excerpt or repr."""
    for body in (f'{{"error": "key {echo} is wrong"}}', f"<html>{echo}</html>", f"{echo}"):
        attempt, _ = ask(faults.status(code, body.encode(), {"x-request-id": KEY}))

        assert "456789" not in repr(attempt)
        assert "secret]" in attempt.excerpt


@pytest.mark.parametrize("before", [*range(270, 310), *range(1960, 2060), *range(4000, 4100, 7)])
def test_no_part_of_the_key_survives_a_cut(before):
    """Wherever the excerpt ends, it ends outside of the key; a key that came first and often changes nothing."""

    async def go():
        answer = httpx2.Response(200, content=(KEY * 40 + "." * before + KEY * 100).encode())
        return await once("http://h.example", transport=httpx2.MockTransport(lambda _: answer))

    assert "sekrit" not in run(go()).excerpt


@pytest.mark.parametrize("before", range(0, 400, 9))
def test_no_part_of_a_long_or_a_short_key_survives_a_cut(before):
    """A key that fills the window many times, and one that stands where a message is shortened."""
    long, short = "Zq7" * 70, "Zq7Zq7Zq7Zq7"
    for key, body in ((long, "." * before + long * 50), (short, json.dumps({"message": "." * before + short * 9}))):
        transport = httpx2.MockTransport(lambda _, body=body: httpx2.Response(400, content=body.encode()))
        attempt = run(once("http://h.example", key=key, transport=transport))

        assert "Zq7" not in repr(attempt)


def test_an_answer_that_echoes_a_real_key_loses_it():
    """A run folder is made to be shared, so a long key is replaced even in the bytes of an answer."""
    attempt, _ = ask(faults.ok(json.dumps({"text": f"You sent {KEY}!"}).encode()))

    assert attempt.body == b'{"text": "You sent [secret]!"}'


def test_a_redirect_does_not_show_the_key():
    """The key in a redirect's host is not shown either."""
    attempt, _ = ask(faults.redirect(302, f"https://{'k3y' * 9}.example/"), key="k3y" * 9)

    assert "k3yk3y" not in attempt.failure.message


def test_foreign_keys_and_controls_do_not_survive():
    """An excerpt is one short line without control characters and without what looks like anybody's key."""
    text = "\x1b[31m\u202e" + "sk-abcdef0123456789\n" + "ب" * 5000
    attempt, _ = ask(faults.status(500, text.encode(), {"content-type": "text/plain"}))

    assert "abcdef" not in attempt.excerpt
    assert attempt.excerpt.startswith("⟨U+001B⟩[31m⟨U+202E⟩[secret] ببب")
    assert attempt.excerpt.endswith("ب…")
    assert len(attempt.excerpt) == 301


def test_the_model_shows_no_key():
    """The repr names the model and its address."""
    model = model_at("http://h.example/v1", provider="mine")

    assert repr(model) == "HTTPModel('mine/m', 'http://h.example/v1')"
    assert (model.name, model.address) == ("mine/m", "http://h.example/v1")


# --- encoding and reading --------------------------------------------------------------------------------------


def request(system):
    return Request("i", 0, system, (), ())


def test_bodies_are_plain_json():
    """Arabic is sent as it is, a surrogate as U+FFFD, a huge integer exactly."""
    model = HTTPModel(TinyCodec(), Settings("m", parameters={"n": 2**70}))

    assert model.encode(request("مرحبا")) == f'{{"model":"m","system":"مرحبا","n":{2**70}}}'.encode()
    assert json.loads(model.encode(request("\ud83dا")))["system"] == "\ufffdا"
    assert model.name == "tiny/m"
    assert model.address == TinyCodec.base_url


def test_reading_is_the_codecs_and_shows_no_key():
    """An answer comes back as the codec read it; a failure without the key."""
    model = model_at("http://h.example")

    assert model.read({"text": "نعم"}) == Answer((), text="نعم")
    assert model.read({"error": f"bad {KEY}"}).message == "It said bad [secret]."
    assert model.read({"error": "bad sk-abcdef0123456789"}).message == "It said bad [secret]"


# --- what a user gets wrong ------------------------------------------------------------------------------------

ADDRESSES = [
    ("localhost:8000/v1", "does not begin with http:// or https://"),
    ("api.example.com", "does not begin with"),
    ("//h/v1", "does not begin with"),
    ("ftp://h/v1", "does not begin with"),
    (" http://h/v1", "white space"),
    ("http://h/ v1", "white space"),
    ("http://h/v1\n", "white space"),
    ("http://h/v1\u200f", "invisible"),
    ("http://h\u00a0x/v1", "white space"),
    ("http:///v1", "names no host"),
    ("http://h:99999999/v1", "cannot be read"),
    ("http://[::1/v1", "cannot be read"),
    ("http://a..b/v1", "cannot be read"),
    (f"http://{'a' * 70}.com", "cannot be read"),
    ("http://\ud800/", "U+D800"),
    ("http://me:pa55word@h/v1", "user name or a password"),
    ("http://h/v1?key=pa55word", "question mark"),
    ("me:pa55word@h/v1", "does not begin with"),
    ("https://me:pa55/word@h:x/v1", "cannot be read"),
    ("http://h:0/v1", "cannot be read"),
    ("http://h/v1#", "number sign"),
]


@pytest.mark.parametrize(("address", "words"), ADDRESSES)
def test_a_bad_address_is_refused_with_a_remedy(address, words):
    """A base URL that cannot work is refused before anything is sent, without showing what is secret in it."""
    with pytest.raises(UsageError) as caught:
        model_at(address)

    assert words in str(caught.value)
    assert "pa55word" not in str(caught.value)


@pytest.mark.parametrize("address", ["HTTP://localhost:8000/v1/", "https://مثال.السعودية/v1", "http://[::1]:80"])
def test_good_addresses_are_taken(address):
    """Capitals, Arabic domains and IPv6 are fine."""
    assert model_at(address).address == address


@pytest.mark.parametrize(
    "key", ["pa55\nword", "pa55word\n", " pa55word", "مفتاح-pa55", "pa55\u200bword", "pa55 word", "\t"]
)
def test_a_bad_key_is_refused_unseen(key):
    """A key that no header can carry is refused without showing it."""
    with pytest.raises(UsageError) as caught:
        model_at("http://h", key=key)

    assert "copy it again" in str(caught.value)
    assert "pa55" not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [{"timeout": 0}, {"timeout": float("nan")}, {"connect_timeout": -1}, {"max_answer": 0}, {"connections": 0},
     {"timeout": float("inf")}],
)  # fmt: skip
def test_numbers_must_make_sense(options):
    """Limits are above zero and finite, and the message names the one that is not."""
    with pytest.raises(UsageError, match=next(iter(options))):
        model_at("http://h", **options)


@pytest.mark.parametrize("parameters", [{"x": float("nan")}, {"x": {1, 2}}, {("a",): 1}])
def test_settings_must_be_json(parameters):
    """Parameters that JSON cannot carry are refused, not sent as null."""
    with pytest.raises(UsageError, match="cannot be written as JSON"):
        HTTPModel(TinyCodec(), Settings("m", parameters=parameters))


def test_a_model_name_must_fit_an_address():
    """A name that makes the address unreadable is refused."""
    with pytest.raises(UsageError, match="cannot stand in an address"):
        HTTPModel(TinyCodec(), Settings("a\nb"))


@pytest.mark.parametrize(
    ("name", "value"),
    [("HTTPS_PROXY", "nonsense://me:pa55word@h"), ("SSL_CERT_FILE", "nowhere.pem"), ("ALL_PROXY", "http://[::1")],
)
def test_a_bad_environment_is_refused(monkeypatch, name, value):
    """A proxy or certificate setting that cannot be used is named before anything is sent."""
    monkeypatch.setenv(name, value)

    with pytest.raises(UsageError, match=name) as caught:
        model_at("https://h.example")
    assert "pa55word" not in str(caught.value)


def test_a_proxy_of_the_environment_is_used(monkeypatch):
    """HTTP_PROXY is honoured, as other clients do."""

    async def go():
        async with faults.FaultServer(faults.ok(GOOD)) as proxy:
            monkeypatch.setenv("HTTP_PROXY", proxy.url)
            return await once("http://h.example/v1"), proxy

    attempt, proxy = run(go())

    assert attempt.failure is None
    assert proxy.seen[0].path == "http://h.example/v1/ask/m"


# --- the server itself -----------------------------------------------------------------------------------------


def test_the_fault_server_also_runs_in_a_thread():
    """Code that is not asynchronous can use it; a callable chooses by request and a list takes turns."""

    def choose(seen):
        return faults.ok(b'{"a": 1}') if seen.path == "/a" else faults.status(429, b"{}", {"retry-after": "1"})

    with faults.FaultServer(choose) as server, httpx2.Client() as client:
        assert client.post(f"{server.url}/a").json() == {"a": 1}
        assert client.post(f"{server.url}/b", content=b"x").headers["retry-after"] == "1"
    assert [one.path for one in server.seen] == ["/a", "/b"]
    assert server.seen[1].body == b"x"
    with faults.FaultServer([faults.ok(b"1"), faults.ok(b"2")]) as server, httpx2.Client() as client:
        assert [client.get(server.url).text for _ in range(3)] == ["1", "2", "2"]
