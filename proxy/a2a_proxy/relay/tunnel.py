"""A tunnel of a forward proxy (CONNECT): the origin is dialled, then the client's first bytes
decide what is read.

Works on the client's socket before it has a transport, so that nothing but the CONNECT request is
taken from it. HTTP becomes a recorded connection as any other, also within TLS that the user wants
opened; other bytes pass unread, and only their number is recorded.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable

import msgspec

from a2a_proxy.http.h1 import MAX_HEAD_BYTES
from a2a_proxy.model.wire import TlsFacts
from a2a_proxy.relay.client_tls import HANDSHAKE_SECONDS, ClientTls
from a2a_proxy.relay.connection import (
    LINGER_SECONDS,
    SILENT_CLIENT_SECONDS,
    Leg,
    ProxyConnection,
    RelayContext,
)
from a2a_proxy.relay.dial import DialError, connect_socket, dial_upstream
from a2a_proxy.relay.early_upstream import EarlyUpstream
from a2a_proxy.relay.edits.edit import ConsoleNote
from a2a_proxy.relay.edits.http1_forward import edit_head, make_origin, parse_connect
from a2a_proxy.relay.first_bytes import peek_bytes, peek_hello
from a2a_proxy.relay.host_patterns import InterceptPolicy
from a2a_proxy.relay.problem import Problem
from a2a_proxy.relay.refusal import encode_http1_response
from a2a_proxy.relay.route import Upstream
from a2a_proxy.relay.tcp import socket_names
from a2a_proxy.relay.tls import HTTP1, HTTP2, PASS_HINT
from a2a_proxy.wire.client_hello import ClientHello
from a2a_proxy.wire.detect import MAX_PREFIX, ProtocolKind, detect_protocol

METHOD = b"CONNECT "
"""The first bytes of a client that wants a tunnel."""
HEAD_SECONDS = 60.0
"""Seconds that a client may take for the head of its CONNECT request."""

_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
_READ_KINDS = (ProtocolKind.H2C, ProtocolKind.HTTP1)
_HINT = "a tunnel begins with: CONNECT HOST:PORT HTTP/1.1"

OpenConnection = Callable[[Upstream, EarlyUpstream | None], ProxyConnection]
"""Returns a new connection to an origin, which was dialled before or is not dialled yet."""


class Interception(msgspec.Struct, frozen=True):
    """TLS in tunnels that is opened, and how."""

    policy: InterceptPolicy
    tls: ClientTls
    """Certifies the proxy to clients as the origin."""


def is_other_method(begin: bytes) -> bool:
    """Return whether the first bytes of a client show that it wants no tunnel."""
    return not METHOD.startswith(begin)


class Tunnel:
    """One client that has sent the beginning of a CONNECT request."""

    def __init__(
        self,
        client: socket.socket,
        context: RelayContext,
        open_connection: OpenConnection,
        interception: Interception | None,
    ) -> None:
        self._client = client
        self._context = context
        self._open_connection = open_connection
        self._interception = interception
        self._is_handed_over = False
        self._agent: socket.socket | None = None
        """The socket to the origin until its connection begins."""
        self._early: EarlyUpstream | None = None

    async def run(self) -> None:
        """Establish the tunnel and return when a connection has taken it over, or when the client
        is answered."""
        try:
            with contextlib.suppress(
                OSError, DialError
            ):  # the client is gone, or the origin since it was dialled
                await self._establish()
        finally:
            if not self._is_handed_over:
                self._client.close()
                if self._agent is not None:
                    self._agent.close()
                if self._early is not None:
                    self._early.close()

    async def _establish(self) -> None:
        head = await self._take_head()
        found = parse_connect(head)
        if isinstance(found, Problem):
            self._context.show_note(ConsoleNote(found.detail, _HINT, loud=True))
            await self._answer_problem(found)
            return
        origin, target = found
        try:
            agent = await connect_socket(
                origin, is_refused=self._context.is_own, proxy=self._context.proxy
            )
        except DialError as error:
            await self._refuse(origin, edit_head(head, b"CONNECT", target, target), str(error))
            return
        self._agent = agent
        await self._context.loop.sock_sendall(self._client, _ESTABLISHED)
        kind = await self._detect_protocol(agent)
        if kind is ProtocolKind.TLS and self._interception is not None:
            hello = await self._read_hello(self._interception, origin, agent)
            if hello is not None:
                await self._intercept(self._interception.tls, origin, hello)
                return
        elif kind is ProtocolKind.TLS:
            self._tell_unread_tls(origin.host)
        elif kind is ProtocolKind.OPAQUE:
            self._context.show_note(
                ConsoleNote(f"bytes that are neither HTTP nor TLS pass unread to {origin.text}")
            )
        await self._dial(origin, (HTTP1,))
        connection = self._open_connection(origin, self._early)
        if kind not in _READ_KINDS:
            connection.leave_unread(kind)
        await self._hand_over(connection)

    def _tell_unread_tls(self, host: str) -> None:
        self._context.show_note(
            ConsoleNote(f"TLS to {host} passes unread; to read it: --intercept {host}")
        )

    # TLS that is opened

    async def _read_hello(
        self, interception: Interception, origin: Upstream, agent: socket.socket
    ) -> ClientHello | None:
        """Return the ClientHello if the connection is to be opened, else None."""
        policy, proxy = interception.policy, self._context.proxy
        address = (
            "" if proxy is not None and proxy.leads_to(origin) else str(agent.getpeername()[0])
        )
        hello = await peek_hello(self._client, HANDSHAKE_SECONDS)
        name = (hello.server_name if isinstance(hello, ClientHello) else "") or origin.host
        names = {origin.host, name}
        if policy.passes(names, origin.port, address):
            return None
        if not policy.opens(names, origin.port, address):
            self._tell_unread_tls(name)
            return None
        if isinstance(hello, ClientHello):
            return hello
        self._context.show_note(
            ConsoleNote(
                f"TLS to {origin.host} passes unread: a client sent a ClientHello that is "
                f"{hello.value}",
                "the client, or a proxy between, must send a whole ClientHello",
                loud=True,
            )
        )
        return None

    async def _intercept(self, tls: ClientTls, origin: Upstream, hello: ClientHello) -> None:
        """Offer the client what the origin has agreed to, or answer it in words if the origin
        cannot be verified."""
        name = hello.server_name or origin.host
        upstream = make_origin(name, origin.port, tls=True)
        reason = ""
        try:
            await self._dial(upstream, hello.protocols)
        except DialError as error:
            reason = str(error)
            hint = "; ".join(filter(None, (error.hint, f"{PASS_HINT}{name}")))
            self._context.show_note(
                ConsoleNote(f"no connection to {upstream.text}: {error}", hint, loud=True)
            )
        if reason:
            protocols = tuple(each for each in hello.protocols if each in (HTTP1, HTTP2))
        else:
            assert self._early is not None
            agreed = self._early.alpn_protocol
            protocols = () if agreed is None else (agreed,)

        def begin(facts: TlsFacts | None) -> Leg:
            self._is_handed_over = True
            connection = self._open_connection(upstream, self._early)
            connection.client_tls = facts
            if reason:
                connection.refuse(reason)
            return connection.client

        names = socket_names(self._client)
        failure = await tls.intercept(self._client, begin, hello, name, protocols)
        if failure is not None:
            self._context.show_note(failure.note)
            self._open_connection(upstream, None).record_failed_handshake(*names, failure.reason)

    async def _dial(self, origin: Upstream, protocols: tuple[str, ...]) -> None:
        """Begin the connection to the origin on its socket. Raises DialError."""
        early, agent = EarlyUpstream(origin), self._agent
        self._agent = None
        await dial_upstream(
            origin, lambda: early, tls=self._context.tls, protocols=protocols, sock=agent
        )
        self._early = early

    async def _take_head(self) -> bytes:
        """Take the head of the request from the socket, or all bytes if it is incomplete."""
        data = await peek_bytes(self._client, _has_head, MAX_HEAD_BYTES, HEAD_SECONDS)
        end = data.find(b"\r\n\r\n") + 4
        return self._client.recv(end if end > 3 else len(data))

    async def _detect_protocol(self, agent: socket.socket) -> ProtocolKind:
        """Return what the client speaks; opaque if it waits for the origin's first bytes, or sends
        no bytes at all."""
        while True:
            data = await peek_bytes(self._client, _is_known, MAX_PREFIX, SILENT_CLIENT_SECONDS)
            kind = detect_protocol(data)
            if kind is not None:
                return kind
            if (
                data or _peek_byte(self._client) == b"" or _peek_byte(agent) is not None
            ):  # its FIN, or a greeting
                return ProtocolKind.OPAQUE

    async def _hand_over(self, connection: ProxyConnection) -> None:
        await self._context.loop.connect_accepted_socket(lambda: connection.client, self._client)
        self._is_handed_over = True

    async def _refuse(self, origin: Upstream, head: bytes, reason: str) -> None:
        """Record the request and its answer: the origin cannot be reached."""
        connection = self._open_connection(origin, None)
        connection.refuse(reason, head)
        await self._hand_over(connection)

    async def _answer_problem(self, problem: Problem) -> None:
        loop = self._context.loop
        await loop.sock_sendall(self._client, encode_http1_response(problem))
        self._client.shutdown(socket.SHUT_WR)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(
                LINGER_SECONDS
            ):  # RST would make a client that still sends lose the response
                while await loop.sock_recv(self._client, 65536):
                    pass


def _peek_byte(sock: socket.socket) -> bytes | None:
    """Return the next byte of the peer, which stays in the socket; empty after its FIN, None while
    nothing waits."""
    try:
        return sock.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return None


def _has_head(data: bytes) -> bool:
    return b"\r\n\r\n" in data or b"\n\n" in data


def _is_known(data: bytes) -> bool:
    return detect_protocol(data) is not None
