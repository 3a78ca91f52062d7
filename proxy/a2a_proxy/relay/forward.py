"""One client of a forward proxy: each of its requests goes to the origin that the request names.

The client's transport is lent to one `ProxyConnection` at a time, so that each recorded connection
has one upstream. A request for another origin waits for the end of the previous response; then the
old connection ends and a new one begins, while the client stays connected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from a2a_proxy.http import PREFACE
from a2a_proxy.relay import tcp
from a2a_proxy.relay.connection import LINGER_SECONDS, Leg, ProxyConnection, RelayContext
from a2a_proxy.relay.connection_editing import WORK_AT_LEAST, WORK_PER_STEP
from a2a_proxy.relay.edits.edit import ConsoleNote
from a2a_proxy.relay.edits.http1_forward import Http1Forward
from a2a_proxy.relay.problem import USE_HINT, Problem
from a2a_proxy.relay.refusal import make_refusal
from a2a_proxy.relay.refusal_responder import RefusalResponder
from a2a_proxy.relay.route import Upstream

_REQUEST = b"GET / HTTP/1.1\r\n\r\n"
"""Stands for any HTTP/1.1 request where the response of the proxy depends on the protocol only."""
_TLS_RECORD = b"\x16\x03"


class ForwardClient(asyncio.Protocol):
    """The connection of one client to a `--forward` listener."""

    def __init__(
        self,
        context: RelayContext,
        open_connection: Callable[[Upstream], ProxyConnection],
        on_closed: Callable[[ForwardClient], None],
        requests: Http1Forward | None = None,
    ) -> None:
        """Create the client. `open_connection` returns a new connection to an origin; `on_closed`
        is called once. `requests` find the origins; without them requests name their origin as
        those to a forward proxy."""
        self._context = context
        self._open_connection = open_connection
        self._on_closed = on_closed
        self._http = requests or Http1Forward()
        self._transport: asyncio.Transport | None = None
        self._lent: LentTransport | None = None
        """The transport as the current connection has it; None before the first request and after a
        refusal."""
        self._leg: Leg | None = None
        """The client's leg of the current connection."""
        self._read: Callable[[bytes], None] = self._read_first_bytes
        self._first_bytes = b""
        self._waiting_data = b""
        """Bytes of the client that wait for a turn of the event loop, or for the end of the
        previous response."""
        self._is_waiting = False
        self._unscanned_data = b""
        """Bytes of the origin that were forwarded and wait for a turn of the event loop to be
        scanned."""
        self._is_full = False
        """Whether the client reads more slowly than bytes are sent to it."""
        self._fin_received = self._fin_sent = False
        self._is_lost = False
        self._responder: RefusalResponder | None = None

    @property
    def is_unused(self) -> bool:
        """Whether the client has no connection to an origin."""
        return self._leg is None

    def close(self) -> None:
        """Close the client's connection after the buffered bytes are sent."""
        if self._transport is not None:
            self._transport.close()

    # Events of the client's transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start: the client is connected."""
        self._transport = cast(
            asyncio.Transport, transport
        )  # uvloop's transport has the same interface
        tcp.tune_socket(self._transport)

    def data_received(self, data: bytes) -> None:
        """Forward requests, or keep the bytes until that is possible."""
        if self._is_waiting:
            self._waiting_data += data
        else:
            self._read(data)

    def eof_received(self) -> bool:
        """Pass on the client's FIN after its bytes; the other direction stays open."""
        self._fin_received = True
        if self._leg is None and not self._is_waiting:
            return False
        if self._leg is not None and not self._is_waiting:
            self._leg.eof_received()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Handle the end of the client's connection."""
        assert self._transport is not None
        is_plain = self._transport.get_extra_info("ssl_object") is None
        rest = (
            tcp.read_unread(self._transport)
            if exc is not None and not self._fin_received and is_plain
            else b""
        )
        if rest:
            self.data_received(rest)
        self._is_lost = True
        if self._leg is not None:
            self._leg.connection_lost(exc)
        self._on_closed(self)

    def pause_writing(self) -> None:
        """Stop reading from the origin, because the client reads slowly."""
        self._is_full = True
        self._limit_origin()

    def resume_writing(self) -> None:
        """Read from the origin again, because the client has caught up."""
        self._is_full = False
        self._limit_origin()
        self._go_on()

    # Requests

    def _read_first_bytes(self, data: bytes) -> None:
        """Find out whether the client speaks HTTP/1.1."""
        begin = self._first_bytes + data
        if len(begin) < len(PREFACE) and PREFACE.startswith(begin):
            self._first_bytes = begin
            return
        self._first_bytes = b""
        self._read = self._read_at_once
        if begin.startswith(PREFACE):
            self.refuse_protocol("HTTP/2", begin)
        elif begin.startswith(_TLS_RECORD):
            self.refuse_protocol("TLS", begin)
        else:
            self._read_at_once(begin)

    def refuse_protocol(self, protocol: str, begin: bytes) -> None:
        """Answer a client that speaks another protocol and has sent `begin`."""
        detail = f"a client sent {protocol} to a --forward port, which takes requests for a proxy"
        self._refuse(Problem(400, "Bad Request", detail, USE_HINT), begin)

    def _read_at_once(self, data: bytes) -> None:
        """Read requests as far as the work of this turn of the event loop allows."""
        http, work = self._http, self._context.work
        http.budget = budget = max(work.left, WORK_AT_LEAST)
        self._read_requests(data)
        work.spend(budget - http.budget)

    def _read_requests(self, data: bytes) -> None:
        http = self._http
        while True:
            sent, position = http.read_requests(data)
            if sent:
                self._deliver(sent)
            data = data[position:]
            if http.next_origin is None or not self._is_idle or http.is_last or self._fin_sent:
                break
            self._begin_connection()
        self._is_waiting = bool(data or http.next_origin is not None or http.refusal is not None)
        if self._is_waiting:
            self._waiting_data = data
            self.limit_client()
            if http.next_origin is None and http.refusal is None:
                self._context.work.add(self._read_on)
            else:
                self._go_on()

    def _deliver(self, data: bytes) -> None:
        assert self._leg is not None
        self._leg.data_received(data)

    @property
    def _is_idle(self) -> bool:
        return self._http.is_idle and not self._is_full

    def _begin_connection(self) -> None:
        """Begin a connection to the next origin; the previous one ends."""
        self._end_connection()
        first = self._http.begin_origin()
        assert self._http.origin is not None
        connection = self._open_connection(self._http.origin)
        self._leg, self._lent = connection.client, LentTransport(self)
        self._leg.connection_made(self._lent)
        self._leg.data_received(first)

    def _end_connection(self) -> None:
        if self._leg is not None and self._lent is not None:
            leg, lent, self._leg, self._lent = self._leg, self._lent, None, None
            lent.is_returned = True
            leg.connection_lost(None)

    def _go_on(self) -> None:
        """Handle the request that waits for the end of the previous response, if that has come."""
        http = self._http
        if (
            not self._is_waiting
            or self._is_lost
            or (http.next_origin is None and http.refusal is None)
        ):
            return
        if not http.can_become_idle or self._fin_sent:
            self.close()
        elif not self._is_idle:
            return
        elif http.is_last:
            self.close()
        elif http.refusal is not None:
            problem, http.refusal = http.refusal, None
            self._refuse(problem, _REQUEST)
        else:
            self._begin_connection()
            self._read_on()

    def _read_on(self) -> int:
        """Read the waiting bytes and return the units of work done."""
        if not self._is_waiting or self._is_lost:
            return 0
        data, self._waiting_data, self._is_waiting = self._waiting_data, b"", False
        self._http.budget = WORK_PER_STEP
        self._read_requests(data)
        if not self._is_waiting:
            self.limit_client()
            if self._fin_received and self._leg is not None:
                self._leg.eof_received()
        return WORK_PER_STEP - self._http.budget

    # Responses

    def write_response(self, data: bytes) -> None:
        """Send bytes of the origin to the client, then find the ends of the responses in them."""
        assert self._transport is not None
        self._transport.write(data)
        if self._unscanned_data:
            self._unscanned_data += data
        elif not self._http.is_opaque:
            http, work = self._http, self._context.work
            http.budget = budget = max(work.left, WORK_AT_LEAST)
            self._scan_responses(data)
            work.spend(budget - http.budget)

    def _scan_responses(self, data: bytes) -> None:
        position = self._http.note_responses(data)
        if position < len(data):
            self._unscanned_data = data[position:]
            self._context.work.add(self._scan_on)
            self._limit_origin()
        elif self._is_waiting:
            self._context.loop.call_soon(self._go_on)  # the origin's bytes are captured first
        if self._http.is_opaque:
            self._read = self._deliver

    def _scan_on(self) -> int:
        data, self._unscanned_data = self._unscanned_data, b""
        self._http.budget = WORK_PER_STEP
        self._scan_responses(data)
        self._limit_origin()
        return WORK_PER_STEP - self._http.budget

    # Flow control

    def limit_client(self) -> None:
        """Read from the client only while its bytes can be forwarded."""
        if self._transport is None or self._transport.is_closing():
            return
        if self._is_waiting or (self._lent is not None and self._lent.is_paused):
            self._transport.pause_reading()
        elif not self._fin_received:  # uvloop would report the FIN twice
            self._transport.resume_reading()

    def _limit_origin(self) -> None:
        """Read from the origin only while the client takes its bytes and they are scanned in
        time."""
        leg = self._leg
        full = self._is_full or bool(self._unscanned_data)
        if leg is not None and leg.is_full != full:
            if full:
                leg.pause_writing()
            else:
                leg.resume_writing()

    def write_eof(self, *, cut: bool) -> None:
        """Send FIN to the client, because the origin sent one; with `cut` its bytes may be
        missing."""
        assert self._transport is not None
        self._fin_sent = True
        tcp.write_eof(self._transport, cut=cut)
        if self._is_waiting:  # reading is paused, so that the client's FIN would not be seen
            self._context.loop.call_soon(self._go_on)

    # Requests that are not forwarded

    def _refuse(self, problem: Problem, begin: bytes) -> None:
        """Answer a client that sent `begin`, in its protocol, and close."""
        self._context.show_note(ConsoleNote(problem.detail, problem.hint, loud=True))
        self._end_connection()
        self._responder = make_refusal(begin, problem)
        self._is_waiting, self._waiting_data = False, b""
        self._read = self._read_refused
        self.limit_client()
        self._read_refused(begin)

    def _read_refused(self, data: bytes) -> None:
        responder, transport = self._responder, self._transport
        assert transport is not None
        if responder is None or transport.is_closing():
            return
        if answer := responder.feed(data):
            transport.write(answer)
        if responder.is_done:
            self._responder = None
            # RST would make a client that still sends lose the response, so its bytes are read for
            # a moment.
            if transport.can_write_eof():
                transport.write_eof()
            self._context.loop.call_later(LINGER_SECONDS, transport.close)


class LentTransport(tcp.LegTransport):
    """The client's transport for the time of one connection: its end does not close the client."""

    def __init__(self, client: ForwardClient) -> None:
        super().__init__()
        assert client._transport is not None
        self._client, self._real = client, client._transport
        self.is_returned = False
        """Whether the connection is over for this transport."""
        self.is_paused = False
        """Whether the connection wants no bytes of the client."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes of the origin to the client."""
        self._client.write_response(bytes(data))

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return a fact of the client's socket."""
        return self._real.get_extra_info(name, default)

    def is_closing(self) -> bool:
        """Return whether no more bytes can be sent."""
        return self.is_returned or self._real.is_closing()

    def pause_reading(self) -> None:
        """Receive no more bytes of the client."""
        self.is_paused = True
        self._client.limit_client()

    def resume_reading(self) -> None:
        """Receive bytes of the client again."""
        self.is_paused = False
        self._client.limit_client()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set the limits of the client's transport."""
        self._real.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        """Return the number of bytes that the kernel has not taken yet."""
        return self._real.get_write_buffer_size()

    def can_write_eof(self) -> bool:
        """Return whether FIN can be sent."""
        return self._real.can_write_eof()

    def write_eof(self) -> None:
        """Send FIN to the client after the buffered bytes."""
        self._client.write_eof(cut=False)

    @property
    def is_cut(self) -> bool:
        """Whether the client's bytes ended cut off."""
        return tcp.is_cut(self._real)

    def cut(self) -> None:
        """Send FIN to the client, because the origin's bytes ended cut off."""
        self._client.write_eof(cut=True)

    def close(self) -> None:
        """Close the client's connection, because the origin has closed."""
        if not self.is_returned:
            self._real.close()

    def abort(self) -> None:
        """Reset the client's connection."""
        if not self.is_returned:
            self._real.abort()
