"""A local HTTP/1.1 server that misbehaves on purpose, for tests of whatever talks to a provider.

    async with FaultServer([status(429, headers={"retry-after": "1"}), ok(b"{}")]) as server:
        ...                                  # server.url, server.seen
    with FaultServer(ok(b"{}")) as server:   # the same in a thread of its own, for code that is not asynchronous
        ...

It speaks through raw sockets, because no framework would agree to break the rules that must be broken here.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip as gzip_format
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

BLOCK = b" " * 65_536


@dataclass
class Seen:
    """A request that arrived, and whether its response was sent to the end; header names are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    complete: bool = False


@dataclass
class Peer:
    """The other end of one connection, and the request that it sent last."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    seen: Seen
    open: bool = True

    async def send(self, data: bytes) -> None:
        """Send these bytes as they are."""
        self.writer.write(data)
        await self.writer.drain()

    def end(self) -> None:
        """Close the connection in good order."""
        self.open = False
        self.writer.close()

    def reset(self) -> None:
        """Break the connection off, so that the client meets a reset."""
        raw = self.writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        self.open = False
        self.writer.transport.abort()


Fault = Callable[[Peer], Awaitable[bool]]
"""Answers one request in its own way; whether the response was sent to its end."""


@dataclass(frozen=True)
class Reply:
    """One way to answer, with a name for test ids."""

    name: str
    act: Fault


Script = Reply | Sequence[Reply] | Callable[[Seen], Reply]
"""The same answer always; answers in turn, the last of them for ever; or a choice by request."""


def head(code: int = 200, headers: Mapping[str, str] | None = None) -> bytes:
    """The status line and the headers."""
    lines = [f"HTTP/1.1 {code} Something", *(f"{name}: {value}" for name, value in (headers or {}).items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def status(code: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Reply:
    """Any status; JSON unless the headers say otherwise."""
    said = {"content-type": "application/json", "content-length": str(len(body))} | dict(headers or {})

    async def act(peer: Peer) -> bool:
        await peer.send(head(code, said) + body)
        return True

    return Reply(f"status {code}", act)


def ok(body: bytes, content_type: str = "application/json") -> Reply:
    """An answer as it should be, or one with another content type."""
    return Reply("ok", status(200, body, {"content-type": content_type}).act)


def page(code: int = 200) -> Reply:
    """A web page where JSON was due."""
    text = "<!doctype html><html><body>صفحة الدخول</body></html>".encode()
    return Reply(f"page {code}", status(code, text, {"content-type": "text/html; charset=utf-8"}).act)


def redirect(code: int, location: str | None) -> Reply:
    """Elsewhere, or nowhere when there is no location."""
    return Reply(f"redirect {code}", status(code, headers={} if location is None else {"location": location}).act)


def chunked(*pieces: bytes, last: bool = True) -> Reply:
    """The body in chunks; without the last one the connection closes in their midst."""

    async def act(peer: Peer) -> bool:
        await peer.send(head(headers={"content-type": "application/json", "transfer-encoding": "chunked"}))
        for piece in pieces:
            await peer.send(b"%x\r\n%b\r\n" % (len(piece), piece))
        if last:
            await peer.send(b"0\r\n\r\n")
        else:
            peer.end()
        return last

    return Reply("chunked", act)


def drip(body: bytes, size: int, interval: float, code: int = 200) -> Reply:
    """So many bytes of the body each interval, in seconds."""

    async def act(peer: Peer) -> bool:
        await peer.send(head(code, {"content-type": "application/json", "content-length": str(len(body))}))
        for start in range(0, len(body), size):
            await peer.send(body[start : start + size])
            await asyncio.sleep(interval)
        return True

    return Reply("drip", act)


def cut(body: bytes, sent: int, *, reset: bool = False, code: int = 200) -> Reply:
    """The connection ends, or is reset, after so many bytes of the promised body."""

    async def act(peer: Peer) -> bool:
        await peer.send(head(code, {"content-type": "application/json", "content-length": str(len(body))}))
        await peer.send(body[:sent])
        await asyncio.sleep(0.02)  # a reset overtakes bytes that the client has not read yet
        if reset:
            peer.reset()
        else:
            peer.end()
        return False

    return Reply("cut by a reset" if reset else "cut", act)


def hang_up(*, reset: bool = False) -> Reply:
    """The connection ends, or is reset, with the request read and not a byte sent."""

    async def act(peer: Peer) -> bool:
        if reset:
            peer.reset()
        else:
            peer.end()
        return False

    return Reply("reset" if reset else "hang up", act)


def silence() -> Reply:
    """Nothing, for as long as the client waits."""

    async def act(peer: Peer) -> bool:
        await peer.reader.read()
        peer.end()
        return False

    return Reply("silence", act)


def raw(data: bytes) -> Reply:
    """These bytes and the end of the connection, HTTP or not."""

    async def act(peer: Peer) -> bool:
        await peer.send(data)
        peer.end()
        return True

    return Reply("raw", act)


def zipped(body: bytes, coding: str = "gzip") -> Reply:
    """The body compressed once, whatever the header calls it."""
    return Reply("zipped", status(200, gzip_format.compress(body), {"content-encoding": coding}).act)


def endless(code: int = 200, start: bytes = b"{") -> Reply:
    """A body that never ends, as fast as the client takes it."""

    async def act(peer: Peer) -> bool:
        await peer.send(head(code, {"content-type": "application/json", "connection": "close"}) + start)
        while True:
            await peer.send(BLOCK)

    return Reply("endless", act)


def last(reply: Reply) -> Reply:
    """The reply, and then the connection is closed without a word about it, as servers do with idle ones."""

    async def act(peer: Peer) -> bool:
        complete = await reply.act(peer)
        peer.end()
        return complete

    return Reply(f"{reply.name}, then closed", act)


@dataclass
class FaultServer:
    """Serves a script on a free port of this machine, in the running event loop or in a thread.

    Attributes:
        script: what to answer.
        seen: the requests so far.
        connections: how many were accepted so far.
        port: where it listens; 0 before it has begun for one that is free, else as given.
    """

    script: Script
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0
    port: int = 0
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _server: asyncio.Server | None = None
    _thread: threading.Thread | None = None
    _stop: Callable[[], object] | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run(ready)), daemon=True)
        self._thread.start()
        assert ready.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._thread is not None
        assert self._stop is not None
        self._stop()
        self._thread.join(30)

    async def _run(self, ready: threading.Event) -> None:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        self._stop = lambda: loop.call_soon_threadsafe(stop.set)
        async with self:
            ready.set()
            await stop.wait()

    def _reply(self, seen: Seen) -> Reply:
        if isinstance(self.script, Reply):
            return self.script
        if callable(self.script):
            return self.script(seen)
        return self.script[min(len(self.seen), len(self.script)) - 1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._converse(reader, writer)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (seen := await _read_request(reader)) is not None:
            self.seen.append(seen)
            peer = Peer(reader, writer, seen)
            seen.complete = await self._reply(seen).act(peer)
            if not peer.open:
                return
        writer.write(head(400, {"connection": "close", "content-length": "0"}))


async def _read_request(reader: asyncio.StreamReader) -> Seen | None:
    """The next request; None for what is not HTTP, such as the beginning of a TLS handshake.

    Raises:
        asyncio.IncompleteReadError: the client closed the connection.
    """
    start = await reader.readexactly(4)
    if not start[:3].isalpha():
        return None
    lines = (start + await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = lines[0].split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)}
    return Seen(method, path, headers, await reader.readexactly(int(headers.get("content-length", "0"))))


@contextlib.contextmanager
def closed_port() -> Iterator[int]:
    """A port of this machine where nobody listens, and nobody will while it is held."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]
