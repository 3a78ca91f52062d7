"""Decode the A2A traffic of one connection: wire events in, frames and findings out.

`observer` uses only this module, `session_facts` and `task` for decoding.
"""

import msgspec

from a2a_proxy.model.saved_state import State
from a2a_proxy.model.values import Exchange, Finding, Frame, FrameKind, Severity
from a2a_proxy.model.wire import (
    Body,
    ConnectionFacts,
    Control,
    Cut,
    End,
    ExitFacts,
    Framed,
    Head,
    HeadRole,
    Line,
    Undecodable,
    WireEvent,
)
from a2a_proxy.protocol.bindings import grpc, http
from a2a_proxy.protocol.bindings.stdio import Pipe
from a2a_proxy.protocol.bindings.websocket import Socket, WebSocketHandshake, open_handshake
from a2a_proxy.protocol.call import (
    TO_CLIENT,
    ConnectionLink,
    ExchangeDecoder,
    open_exchange,
    unread_finding,
)
from a2a_proxy.protocol.completeness import unread_note
from a2a_proxy.protocol.exchange import ExchangeState
from a2a_proxy.protocol.schema import BYTES, TEXT
from a2a_proxy.protocol.session_facts import SessionContext

__all__ = ["ConnectionConversation", "ConnectionLink", "SessionContext", "open_conversation"]

MAX_ANSWERED_CALLS = 64
"""Maximum number of answered calls per connection that are kept although their request has not
ended."""

_OPAQUE_SUMMARIES: dict[object, str] = {
    "tls": "the client speaks TLS, which passes unread; to read it: --tls, or connect with http://",
    "unknown": "the connection is not HTTP: its bytes are relayed and counted, but not decoded",
}
"""Finding texts for connections that turn out not to be HTTP. Missing bytes are not a fault of the
peers: no text."""

NOTE_AFTER_SOCKET = "after the end of the WebSocket"
NOTE_STRAY = "outside any message"
"""Notes of a message of a WebSocket that has ended, and of bytes that an agent or client writes to
the pipe between messages."""


class ConnectionConversation(State):
    """Decoder of one connection. Never raises: unreadable bytes become one finding, and the rest of
    their stream is ignored."""

    link: ConnectionLink
    _calls: dict[int, grpc.GrpcCall | http.HttpCall | WebSocketHandshake] = {}
    _answered: dict[int, None] = {}
    """Streams whose exchange is closed although its request has not ended."""
    _unread_answers: Undecodable | None = None
    """Why the agent's direction cannot be decoded; None if it can."""
    _rpc_calls: Pipe | Socket | None = None
    """The calls of a stdio agent or of a WebSocket; None while all calls have streams."""
    _seq: int = 0
    """Number of frames of the connection itself."""
    _touched: dict[int, ExchangeState] = {}
    """Exchanges that changed since the last `pop_changed_exchanges`."""

    def attach(self, link: ConnectionLink) -> None:
        """Set the link, which is not part of the state."""
        self.link, link.touched = link, self._touched
        if self._rpc_calls is not None:
            self._rpc_calls.link = link
        link.report_unassigned = self._emit_unassigned
        for call in self._open_calls():
            call.link = link
            if call.exchange.id in link.touched:
                link.touched[call.exchange.id] = call.exchange

    @property
    def ours(self) -> bool:
        """Whether the bytes that follow were sent by the proxy, not by a peer."""
        return self.link.ours

    @ours.setter
    def ours(self, value: bool) -> None:
        self.link.ours = value

    def feed(self, events: list[WireEvent], out: list[Frame | Finding]) -> None:
        """Decode wire events in order and append frames and findings to `out`."""
        calls = self._calls
        for event in events:
            try:
                if type(event) is Body:
                    call = calls.get(event.stream)
                    if call is not None:
                        call.handle_body(event, out)
                else:
                    self._read_other_event(event, out)
            except Exception as error:  # a peer's bytes must not stop the recorder
                self._abandon_stream(event, error, out)

    def set_sent_traceparent(self, stream: int, sent_traceparent: str) -> ExchangeState | None:
        """Store the `traceparent` with which the request of an open call was forwarded; return its
        exchange, or None."""
        call = self._calls.get(stream)
        if call is None:
            return None
        call.exchange.sent_traceparent = sent_traceparent
        call.mark_changed()
        return call.exchange

    def expect_fault_end(self, stream: int) -> None:
        """Note that the proxy ends a response on purpose, whatever the agent still sends of it."""
        if (call := self._calls.get(stream)) is not None:
            call.exchange.ends_by_fault = True

    def end_by_fault(self, stream: int, note: str, at: int, out: list[Frame | Finding]) -> None:
        """End the open call of a stream at `at` (ns), because the proxy ended it on purpose: `note`
        says how."""
        call = self._calls.pop(stream, None)
        self._answered.pop(stream, None)
        if call is not None:
            self.link.ours = True
            call.end_by_fault(note, at, out)
            self.link.ours = False

    def close_calls(self, at: int) -> None:
        """Close the open calls at `at` (ns), the end of the connection: their ends were in bytes
        that cannot be decoded."""
        for call in self._open_calls():
            if not call.exchange.closed:
                call.close(at, "connection lost")
                call.mark_changed()
        self._calls.clear()
        if self._rpc_calls is not None:
            self._rpc_calls.calls.clear()
        self._answered.clear()

    def _read_other_event(self, event: WireEvent, out: list[Frame | Finding]) -> None:
        """Handle any event except body bytes."""
        if type(event) is Control:
            self._emit_control(event, out)
            return
        if type(event) is Line:
            self._emit_line(event, out)
            return
        calls = self._rpc_calls
        if type(calls) is Pipe:
            self._read_pipe_event(calls, event, out)
            return
        if type(event) is Framed:
            self._read_socket_message(event, out)
            return
        if type(event) is Undecodable and not event.stream:
            self._emit_undecodable(event, out)
            return
        assert not isinstance(event, Control | Framed | Line)
        if type(event) is Head and (event.role is HeadRole.REQUEST or self._is_unrequested(event)):
            self._open_call(event, out)
            return
        call = self._calls.get(event.stream)
        if call is None:
            return
        if type(event) is Head:
            call.handle_head(event)
        elif type(event) is End:
            call.handle_end(event, out)
        elif type(event) is Cut:
            call.handle_cut(event, out)
        elif type(event) is Undecodable:
            call.handle_undecodable(event, out)
        if type(call) is WebSocketHandshake:
            assert type(calls) is Socket
            calls.read_stream_event(event, out)
        if call.is_finished:
            del self._calls[event.stream]
            self._answered.pop(event.stream, None)
        elif call.exchange.closed:
            self._answered[event.stream] = None

    def _read_socket_message(self, message: Framed, out: list[Frame | Finding]) -> None:
        """Handle a message of a WebSocket, whose handshake need not be known."""
        if self._rpc_calls is not None:
            self._rpc_calls.read_message(message, out)
            return
        schema = BYTES if message.is_binary else TEXT
        self._emit_unassigned(message, FrameKind.OTHER, schema, "", message.broken, out)

    def _read_pipe_event(self, pipe: Pipe, event: WireEvent, out: list[Frame | Finding]) -> None:
        """Handle a message or an end of a pipe."""
        if type(event) is Framed:
            pipe.read_message(event, out)
        elif type(event) is End:
            pipe.on_end(event, out)
        elif type(event) is Cut:
            pipe.on_cut(event, out)

    def _open_call(self, event: Head, out: list[Frame | Finding]) -> None:
        exchange = open_exchange(self.link, event)
        call: grpc.GrpcCall | http.HttpCall
        if grpc.is_grpc(event.headers):
            call = grpc.open_call(self.link, exchange)
        else:
            call = http.open_call(self.link, exchange, event)
        self._calls[event.stream] = call
        self._answered.pop(event.stream, None)
        call.mark_changed()
        if self._unread_answers is not None:
            # What the agent sends before the request, such as a SETTINGS frame, is all that the
            # call gets; the finding is the connection's.
            call.unread.append(int(TO_CLIENT))
            unread = msgspec.structs.replace(self._unread_answers, at=event.at)
            call.handle_undecodable(unread, out)
        if event.role is not HeadRole.REQUEST:
            # A response without a request, such as a 408 on an idle connection.
            exchange.bytes_to_agent = 0
            call.handle_head(event)
        else:
            self._forget_answered()

    def _is_unrequested(self, event: Head) -> bool:
        """Whether the event is an HTTP/1.1 response without a request, such as a 408 on an idle
        connection."""
        return (
            event.role is HeadRole.RESPONSE
            and event.version != "2"
            and event.stream not in self._calls
        )

    def _forget_answered(self) -> None:
        """Drop the oldest answered calls, which are kept because an agent may answer before the
        request ends."""
        while len(self._answered) > MAX_ANSWERED_CALLS:
            stream = min(self._answered)
            del self._answered[stream], self._calls[stream]

    def _emit_control(self, event: Control, out: list[Frame | Finding]) -> None:
        """Emit a wire event of the connection itself as a frame of exchange 0."""
        payload = msgspec.json.encode({"name": event.name, **event.detail})
        span = (event.at, event.start, event.end)
        self._emit_connection_frame(
            event, FrameKind.CONTROL, span, payload, "control", event.name, out
        )
        if event.name == "opaque" and (
            summary := _OPAQUE_SUMMARIES.get(event.detail.get("looks_like"))
        ):
            out.append(
                Finding("UNDECODABLE", Severity.WARNING, event.at, summary, self.link.connection)
            )
        calls = self._rpc_calls
        if event.name == "upgrade" and event.detail["protocol"] == "websocket":
            self._open_socket(event)
        elif type(calls) is Socket and event.name == "close":
            calls.on_close(event)
        elif type(calls) is Pipe and event.name == "signal":
            calls.on_signal()
        elif type(calls) is Pipe and event.name == "exit":
            calls.on_exit(msgspec.convert(event.detail, ExitFacts), event.at, out)

    def _open_socket(self, event: Control) -> None:
        """Begin to read messages: the exchange of the handshake lasts as long as the socket."""
        stream = event.detail["stream"]
        assert isinstance(stream, int)
        call = self._calls.get(stream)
        if call is not None:
            self._calls[stream] = open_handshake(call)
            self._rpc_calls = Socket(self.link, handshake=call.exchange)

    def _emit_undecodable(self, event: Undecodable, out: list[Frame | Finding]) -> None:
        if event.direction == TO_CLIENT:
            self._unread_answers = event
        span = (event.at, event.offset, event.offset)
        self._emit_connection_frame(
            event, FrameKind.UNDECODABLE, span, b"", "", unread_note(event), out
        )
        is_delivery = bool(self.link.facts.deliverer)
        out.append(unread_finding(event, self.link.connection, is_delivery=is_delivery))

    def _emit_unassigned(
        self,
        message: Framed,
        kind: FrameKind,
        schema: str,
        rpc_id: str,
        note: str,
        out: list[Frame | Finding],
    ) -> None:
        """Emit a message that belongs to no call: on a WebSocket in the exchange of the handshake,
        unless that is over."""
        calls = self._rpc_calls
        if type(calls) is Socket:
            handshake = self._calls.get(calls.handshake.stream)
            if type(handshake) is WebSocketHandshake:
                handshake.emit_message(message, kind, schema, rpc_id, note, out)
                return
            note = message.broken or NOTE_AFTER_SOCKET
        span = (message.began, message.start, message.end)
        self._emit_connection_frame(message, kind, span, message.data, schema, note, out, rpc_id)

    def _emit_line(self, line: Line, out: list[Frame | Finding]) -> None:
        """Emit a line of a log, or a line between messages."""
        kind, note = (FrameKind.OTHER, NOTE_STRAY) if line.stray else (FrameKind.LOG, "")
        self._emit_connection_frame(
            line, kind, (line.began, line.start, line.end), line.data, TEXT, note, out
        )

    def _emit_connection_frame(
        self,
        event: Control | Undecodable | Framed | Line,
        kind: FrameKind,
        span: tuple[int, int, int],
        payload: bytes,
        schema: str,
        note: str,
        out: list[Frame | Finding],
        rpc_id: str = "",
    ) -> None:
        """Emit a frame of the connection; `span` is its begin time (ns), first and last byte
        offset."""
        message = event if isinstance(event, Framed | Line) else None
        out.append(
            Frame(
                connection=self.link.connection,
                exchange=0,
                seq=self._seq,
                direction=event.direction,
                kind=kind,
                began=span[0],
                at=event.at,
                start=span[1],
                end=span[2],
                payload=payload,
                size=len(payload) if message is None else message.size,
                sha256=b"" if message is None else message.sha256,
                truncated=message is not None and message.truncated,
                schema=schema,
                framing="" if message is None else message.framing,
                rpc_id=rpc_id,
                note=note,
                ours=self.link.ours,
            )
        )
        self._seq += 1

    def _abandon_stream(
        self, event: WireEvent, error: Exception, out: list[Frame | Finding]
    ) -> None:
        """Report the proxy's own failure on a peer's bytes once, and ignore the rest of this
        stream."""
        stream = 0 if isinstance(event, Control | Framed | Line) else event.stream
        call = self._calls.pop(stream, None)
        self._answered.pop(stream, None)
        exchange = 0
        if call is not None:
            exchange = call.exchange.id
            call.close(event.at, "connection lost")
            call.mark_changed()
        summary = f"cannot read this stream: {type(error).__name__}: {error}"[:300]
        out.append(
            Finding(
                "UNDECODABLE", Severity.ERROR, event.at, summary, self.link.connection, exchange
            )
        )

    def pop_changed_exchanges(self) -> list[Exchange]:
        """Return snapshots of the exchanges that changed since the last call, by number."""
        touched = self.link.touched
        snapshots = [touched[number].snapshot() for number in sorted(touched)]
        touched.clear()
        return snapshots

    def pop_closed_exchanges(self) -> list[ExchangeState]:
        """Return the exchanges that ended since the last call."""
        found, self.link.closed = self.link.closed, []
        return found

    def mark_all_changed(self) -> None:
        """Count all open exchanges as changed."""
        for call in self._open_calls():
            call.mark_changed()

    def _open_calls(self) -> list[ExchangeDecoder]:
        return [
            *self._calls.values(),
            *(self._rpc_calls.calls.values() if self._rpc_calls is not None else ()),
        ]

    def find_exchange(self, number: int) -> ExchangeState | None:
        """Return an exchange that is open, or changed since the last `pop_changed_exchanges`, for
        `TaskTracker.apply_frame`."""
        touched = self.link.touched.get(number)
        if touched is not None:
            return touched
        return next(
            (call.exchange for call in self._open_calls() if call.exchange.id == number), None
        )


def open_conversation(
    connection: int, facts: ConnectionFacts, shared: SessionContext
) -> ConnectionConversation:
    """Return the decoder of a new connection."""
    link = ConnectionLink(connection, facts, shared)
    conversation = ConnectionConversation(
        link, _rpc_calls=Pipe(link) if facts.transport == "stdio" else None
    )
    conversation.attach(link)
    return conversation
