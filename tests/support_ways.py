"""Ways from a client through the proxy to an agent: plain text, TLS on either side, and a forward
proxy.

A `Channel` sends and receives the bytes of one peer, within TLS if the peer speaks it, and knows
how the other end has ended. A `Line` is one connection that is to be made.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import ssl
from enum import StrEnum
from pathlib import Path

import trustme

from a2a_proxy.http import PREFACE

READ_SIZE = 1 << 16
OPENED, UNREAD = "agent.test", "unread.test"
"""Names of origins whose TLS is opened, and passes unread."""
_ESTABLISHED = b"HTTP/1.1 200 "


class Way(StrEnum):
    """How a client reaches an agent."""

    PLAIN = "plain"
    """A listener, and an agent that is reached by plain TCP."""
    TLS = "tls"
    """A listener with `--tls`, and such an agent."""
    TLS_BOTH = "tls-both"
    """A listener with `--tls`, and an `https` agent."""
    ABSOLUTE = "absolute"
    """A forward proxy, with requests in absolute form."""
    CONNECT = "connect"
    """A tunnel with plain text."""
    UNREAD = "unread"
    """A tunnel with TLS that passes unread."""
    INTERCEPT = "intercept"
    """A tunnel with TLS that is opened."""

    @property
    def is_forwarded(self) -> bool:
        """Whether the client uses a forward proxy."""
        return self in (Way.ABSOLUTE, Way.CONNECT, Way.UNREAD, Way.INTERCEPT)

    @property
    def client_has_tls(self) -> bool:
        """Whether the client speaks TLS."""
        return self in (Way.TLS, Way.TLS_BOTH, Way.UNREAD, Way.INTERCEPT)

    @property
    def agent_has_tls(self) -> bool:
        """Whether the agent speaks TLS."""
        return self in (Way.TLS_BOTH, Way.UNREAD, Way.INTERCEPT)

    @property
    def dials_late(self) -> bool:
        """Whether the proxy dials only after bytes of the client."""
        return self in (Way.TLS_BOTH, Way.ABSOLUTE)


SECURE_WAYS = tuple(way for way in Way if way is not Way.PLAIN)
"""The ways with TLS or a forward proxy."""


class Contexts:
    """The TLS contexts of the peers of one proxy."""

    def __init__(self, folder: Path) -> None:
        """Create the origin's authority; its certificate is in `origin_ca`."""
        authority = trustme.CA()
        self.origin_ca = folder / "origin-ca.pem"
        authority.cert_pem.write_to_path(str(self.origin_ca))
        self.agent = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.agent.set_alpn_protocols(["h2", "http/1.1"])
        authority.issue_cert(OPENED, UNREAD, "localhost", "127.0.0.1").configure_cert(self.agent)
        _tell_truncation(self.agent)
        self._trusted = {Way.UNREAD: self.origin_ca.read_text()}
        self._clients: dict[tuple[bool, bool], ssl.SSLContext] = {}

    def trust_proxy(self, state: Path) -> None:
        """Let clients trust the authority of the proxy with this state directory."""
        self._trusted[Way.TLS] = (state / "ca" / "ca.pem").read_text()

    def client(self, way: Way, *, http2: bool) -> ssl.SSLContext:
        """Return the context of a client, which trusts only the authority that it must see."""
        key = way is Way.UNREAD, http2
        if key not in self._clients:
            context = ssl.create_default_context(
                cadata=self._trusted[Way.UNREAD if key[0] else Way.TLS]
            )
            context.set_alpn_protocols(["h2"] if http2 else ["http/1.1"])
            _tell_truncation(context)
            self._clients[key] = context
        return self._clients[key]


def _tell_truncation(context: ssl.SSLContext) -> None:
    context.options &= ~getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)


class Channel:
    """The bytes of one peer over plain TCP."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = sock
        self.raw_sent = 0
        """Bytes sent over TCP."""

    async def send(self, data: bytes) -> None:
        """Send bytes. Raises OSError."""
        self.raw_sent += len(data)
        await asyncio.get_running_loop().sock_sendall(self.sock, data)

    async def receive(self) -> bytes:
        """Return received bytes, empty after the end. Raises OSError, for TLS also after FIN
        without close_notify."""
        return await asyncio.get_running_loop().sock_recv(self.sock, READ_SIZE)

    async def finish(self) -> None:
        """Send FIN. Raises OSError."""
        self.sock.shutdown(socket.SHUT_WR)


class TlsChannel(Channel):
    """The bytes of one peer within TLS."""

    def __init__(
        self, sock: socket.socket, context: ssl.SSLContext, name: str | None, *, notifies: bool
    ) -> None:
        """Create a client of the server `name`, or a server if that is None."""
        super().__init__(sock)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_side=name is None, server_hostname=name
        )
        self._is_ended = False
        self._held = b""
        """Bytes that arrived before `finish` and were not received yet."""
        self.notifies = notifies
        """Whether `finish` sends close_notify before FIN."""

    async def shake_hands(self) -> None:
        """Complete the handshake. Raises OSError."""
        while True:
            try:
                self._tls.do_handshake()
                return
            except ssl.SSLWantReadError:
                await self._flush()
                self._take(await super().receive())
            finally:
                await self._flush()

    async def send(self, data: bytes) -> None:
        """Send bytes. Raises OSError."""
        if data:
            self._tls.write(data)
            await self._flush()

    async def receive(self) -> bytes:
        """Return received bytes, empty after close_notify. Raises OSError."""
        while not (data := self._held + self._decrypt()) and not self._is_ended:
            self._take(await super().receive())
        self._held = b""
        return data

    def _decrypt(self) -> bytes:
        """Return all that can be decrypted: OpenSSL sends no close_notify while it has bytes."""
        parts: list[bytes] = []
        try:
            while part := self._tls.read(READ_SIZE):
                parts.append(part)
            self._is_ended = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self._is_ended = True
        return b"".join(parts)

    async def finish(self) -> None:
        """Send close_notify and FIN. Raises OSError."""
        if self.notifies:
            self._held += self._decrypt()
            with contextlib.suppress(
                ssl.SSLWantReadError, ssl.SSLSyscallError, ssl.SSLZeroReturnError
            ):
                self._tls.unwrap()
            await self._flush()
        await super().finish()

    def _take(self, data: bytes) -> None:
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()

    async def _flush(self) -> None:
        if data := self._outgoing.read():
            await super().send(data)


class Line:
    """One connection that is to be made on this way, from a port of the proxy to the listener of an
    agent."""

    def __init__(
        self, way: Way, port: int, listener: socket.socket, contexts: Contexts | None = None
    ) -> None:
        self.way = way
        self.port = port
        self.contexts = contexts
        self._listener = listener

    @property
    def authority(self) -> str:
        """The agent's host and port."""
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    async def connect(self, *, http2: bool, notifies: bool) -> Channel:
        """Return the client's side. Raises OSError."""
        loop, sock = asyncio.get_running_loop(), socket.socket()
        try:
            sock.setblocking(False)
            await loop.sock_connect(sock, ("127.0.0.1", self.port))
            if self.way in (Way.CONNECT, Way.UNREAD, Way.INTERCEPT):
                await loop.sock_sendall(sock, f"CONNECT {self.authority} HTTP/1.1\r\n\r\n".encode())
                answer = b""
                while not answer.endswith(b"\r\n\r\n"):  # byte by byte: an agent's bytes may follow
                    if not (byte := await loop.sock_recv(sock, 1)):
                        raise OSError(f"no tunnel: {answer!r}")
                    answer += byte
                if not answer.startswith(_ESTABLISHED):
                    raise OSError(f"no tunnel: {answer!r}")
            if not self.way.client_has_tls:
                return Channel(sock)
            assert self.contexts is not None
            name = {Way.UNREAD: UNREAD, Way.INTERCEPT: OPENED}.get(self.way, "localhost")
            channel = TlsChannel(
                sock, self.contexts.client(self.way, http2=http2), name, notifies=notifies
            )
            await channel.shake_hands()
            return channel
        except BaseException:
            sock.close()
            raise

    async def accept(self, *, notifies: bool) -> Channel:
        """Return the agent's side when the proxy has dialled. Raises OSError."""
        sock, _ = await asyncio.get_running_loop().sock_accept(self._listener)
        if not self.way.agent_has_tls:
            return Channel(sock)
        assert self.contexts is not None
        channel = TlsChannel(sock, self.contexts.agent, None, notifies=notifies)
        try:
            await channel.shake_hands()
        except BaseException:
            sock.close()
            raise
        return channel

    def dials(self, sent: bytes) -> bool:
        """Return whether the proxy dials after these bytes of the client."""
        if self.way is Way.ABSOLUTE:
            return bool(expected_requests(sent)[0])
        return not PREFACE.startswith(sent) if self.way is Way.TLS_BOTH else True


# --- requests in absolute form

_ORIGIN_FORM = re.compile(rb"([A-Z]{3,7}) (/[!-~]*) HTTP/1\.1\r\n")
_REQUEST_LINE = re.compile(
    rb"(GET|POST|PUT|DELETE|HEAD|PATCH) http://([0-9.]+:[0-9]+)(/[!-~]*) HTTP/1\.1"
)
_FIELD = re.compile(rb"([A-Za-z0-9-]+):([ -~]*)")
_CHUNK = re.compile(rb"([0-9a-fA-F]{1,7})\r\n")
_PROXY_FIELDS = b"Proxy-Authorization: Basic c2VjcmV0\r\npROXY-connection:keep-alive\r\n"


def to_absolute_form(data: bytes, authority: str) -> bytes:
    """Return bytes of a client with all requests in absolute form, and with fields for the
    proxy."""
    line = rb"\1 http://%s\2 HTTP/1.1" % authority.encode()
    return _ORIGIN_FORM.sub(line + b"\r\n" + _PROXY_FIELDS, data)


def expected_requests(data: bytes) -> tuple[bytes, bool]:
    """Return the bytes for the origin if the client sends `data` to a forward proxy, and whether
    they are all.

    Reads only plain requests: one way to write each, no trailers, no upgrade. They end before the
    first other one, also one whose head is incomplete.
    """
    out = b""
    while data:
        head, end, rest = data.partition(b"\r\n\r\n")
        if not end:
            return out, False
        first, *lines = head.split(b"\r\n")
        line = _REQUEST_LINE.fullmatch(first)
        fields = [found for each in lines if (found := _FIELD.fullmatch(each))]
        values = {found[1].lower(): found[2].strip(b" ") for found in fields}
        length, coding = values.get(b"content-length"), values.get(b"transfer-encoding")
        if line is None or len(fields) < len(lines) or _is_special(fields, values):
            return out, False
        out += b"%s %s HTTP/1.1\r\n" % (line[1], line[3])
        if b"host" not in values:
            out += b"Host: %s\r\n" % line[2]
        for text, found in zip(lines, fields, strict=True):
            if found[1].lower() == b"host" and values[b"host"] != line[2]:
                out += b"%s: %s\r\n" % (found[1], line[2])
            elif not found[1].lower().startswith(b"proxy-"):
                out += text + b"\r\n"
        out += b"\r\n"
        if coding is None:
            size = int(length or b"0")
            out, data = out + rest[:size], rest[size:]
            continue
        while True:
            chunk = _CHUNK.match(rest)
            if chunk is None:
                return out, not rest
            size = int(chunk[1], 16)
            whole = rest[: chunk.end() + size + 2]
            if len(whole) < chunk.end() + size + 2 or not whole.endswith(b"\r\n"):
                return out, False
            out, rest = out + whole, rest[len(whole) :]
            if not size:
                break
        data = rest
    return out, True


def _is_special(fields: list[re.Match[bytes]], values: dict[bytes, bytes]) -> bool:
    length, coding = values.get(b"content-length"), values.get(b"transfer-encoding")
    return (
        len(values) < len(fields)
        or (
            length is not None
            and (coding is not None or re.fullmatch(rb"[0-9]{1,7}", length) is None)
        )
        or coding not in (None, b"chunked")
        or b"upgrade" in values
    )
