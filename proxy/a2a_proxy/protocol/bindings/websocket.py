"""A2A on a WebSocket (manual/protocol.md "WebSocket"): many calls on one connection, distinguished
by their JSON-RPC ids.

The end of a stream is a message of its own, `streamEnd`; a client cancels a stream by
`cancelStream`. Messages that belong to no call, and all of a socket with another subprotocol than
that of A2A, are frames of the exchange of the handshake.
"""

import msgspec

from a2a_proxy.model.values import Binding, Dialect, FrameKind
from a2a_proxy.model.wire import Body, Control, Cut, End, Framed, Head, Headers, Undecodable
from a2a_proxy.protocol.bindings import jsonrpc, other
from a2a_proxy.protocol.bindings.rpc_calls import (
    NOTE_UNKNOWN_ID,
    MessageKind,
    RpcCalls,
    is_json,
    normalise_id,
)
from a2a_proxy.protocol.call import (
    TO_AGENT,
    TO_CLIENT,
    HttpStreamCall,
    Out,
    SpanPiece,
    exchange_end_of_cut,
    read_call_fields,
)
from a2a_proxy.protocol.completeness import unread_note
from a2a_proxy.protocol.exchange import ExchangeState
from a2a_proxy.protocol.json_shapes import UNREADABLE_ERRORS
from a2a_proxy.protocol.schema import BYTES, JSON, TEXT
from a2a_proxy.protocol.session_facts import path_of
from a2a_proxy.protocol.summary import NO_SUMMARY
from a2a_proxy.wire.websocket import agrees_on_a2a

NOTE_STREAM_END = "streamEnd"
NOTE_CANCEL = "cancelStream"
NOTE_AFTER_CANCEL = "after cancelStream"
NOTE_NO_STREAM = "cancelStream without an open stream"
"""Notes of messages that end a stream, and of messages for a stream that has ended."""

_TRUE = b"true"
_LOST = "connection lost"
_decode_fields = msgspec.json.Decoder(dict[str, object]).decode


class WebSocketHandshake(HttpStreamCall, tag="websocket"):
    """The exchange of a handshake, which lasts as long as the socket."""

    def handle_body(self, event: Body, out: Out) -> None:
        """Do nothing: the request of a handshake has no body that matters."""

    def on_response(self, event: Head) -> None:
        """Do nothing: the response came before."""

    def on_end(self, event: End, out: Out) -> None:
        """Do nothing: messages are emitted when they are complete."""

    def on_cut(self, event: Cut, out: Out) -> None:
        """Do nothing, as above."""

    def response_outcome(self) -> str:
        """Return `complete`: a peer closed the socket."""
        return "complete"

    def report_unread(self, event: Undecodable, out: Out) -> None:
        """Report once per direction that its bytes cannot be read, if its sender is at fault."""
        if event.is_fault:
            super().report_unread(event, out)

    def emit_message(
        self, message: Framed, kind: FrameKind, schema: str, rpc_id: str, note: str, out: Out
    ) -> None:
        """Emit a message that belongs to no call."""
        self.count_bytes(message)
        detail = (rpc_id, 0, note, message.framing)
        self.emit_frame(out, message.direction, kind, message, schema, NO_SUMMARY, detail)


def open_handshake(call: HttpStreamCall) -> WebSocketHandshake:
    """Return the decoder of a request that was answered by a 101: it is no call, whatever its path
    and its content type."""
    exchange = call.exchange
    exchange.binding, exchange.dialect = Binding.OTHER, Dialect.UNKNOWN
    exchange.operation = exchange.task_id = exchange.tenant = ""
    exchange.streaming = False
    exchange.error, exchange.error_code = "", 0  # of gRPC: that the answer is another one
    return WebSocketHandshake(call.link, exchange, life=call.life)


class Socket(RpcCalls, tag="websocket", kw_only=True):
    """The messages of one WebSocket."""

    handshake: ExchangeState
    """The exchange of the handshake, whose fields hold for all calls."""
    _closing: tuple[str, str] = ("", "")
    """`Exchange.how` of the calls that are open at the end, and the note of their cuts, after a
    close frame."""
    _end: SpanPiece | None = None
    """Place of the end of the socket; None before it."""

    @property
    def is_a2a(self) -> bool:
        """Whether the peers have agreed on the subprotocol of A2A."""
        return agrees_on_a2a(self.handshake.response_headers)

    def read_message(self, message: Framed, out: Out) -> None:
        """Decode one message of either side."""
        if message.broken or (self.is_a2a and not message.is_binary):
            super().read_message(message, out)
            return
        schema = BYTES if message.is_binary else JSON if is_json(message.data) else TEXT
        self.link.report_unassigned(message, FrameKind.OTHER, schema, "", "", out)

    def read_from_client(self, message: Framed, shape: MessageKind, rpc_id: str, out: Out) -> None:
        """Decode a JSON object that the client sent. A call after the end of the socket ends at
        once."""
        if bytes(shape.cancel_stream) != _TRUE:
            super().read_from_client(message, shape, rpc_id, out)
            if self._end is not None and self.calls:
                place = msgspec.structs.replace(self._end, began=message.at, at=message.at)
                self.cut_all_calls(place, *self._closing, out)
            return
        key = normalise_id(rpc_id)
        call = self.calls.get(key)
        if call is None or not call.exchange.streaming:
            self.link.report_unassigned(message, FrameKind.OTHER, JSON, rpc_id, NOTE_NO_STREAM, out)
            return
        call.exchange.bytes_to_agent += message.end - message.start
        detail = (rpc_id, 0, NOTE_CANCEL, message.framing)
        call.emit_frame(out, TO_AGENT, FrameKind.CUT, message, JSON, NO_SUMMARY, detail)
        self.finish_call(key, call, message.at, "client cancel")
        self._finished[key] = NOTE_AFTER_CANCEL, 0

    def read_from_agent(self, message: Framed, shape: MessageKind, rpc_id: str, out: Out) -> None:
        """Decode a JSON object that the agent sent."""
        is_end = bytes(shape.stream_end) == _TRUE
        key = normalise_id(rpc_id)
        call = self.calls.get(key)
        if call is None:
            if is_end or shape.event:
                note, _ = self._finished.get(key, (NOTE_UNKNOWN_ID, 0))
                self.link.report_unassigned(message, FrameKind.OTHER, JSON, rpc_id, note, out)
            else:
                super().read_from_agent(message, shape, rpc_id, out)
            return
        if shape.event:
            call.count_response(message)
            jsonrpc.read_event_member(
                call, message, bytes(shape.event), rpc_id, out, message.framing
            )
            call.apply_event(call.event_of(out[-1]))
        elif not is_end or shape.result or shape.error:
            super().read_from_agent(message, shape, rpc_id, out)
        else:
            call.count_response(message)
            if not call.exchange.events:
                other.record_no_result(call)
            detail = (rpc_id, 0, NOTE_STREAM_END, message.framing)
            call.emit_frame(out, TO_CLIENT, FrameKind.END, message, JSON, NO_SUMMARY, detail)
        if is_end and key in self.calls:
            self.finish_call(key, call, message.at, "complete")

    def open_exchange(self, message: Framed, shape: MessageKind) -> ExchangeState:
        """Return the exchange of a new call. Its own parameters come before those of the
        handshake."""
        link, handshake = self.link, self.handshake
        own = read_parameters(bytes(shape.service_params))
        headers = (*own, *handshake.request_headers)
        _, version, extensions = read_call_fields(headers)
        self._count += 1
        exchange = ExchangeState(
            id=link.shared.next_exchange(),
            connection=link.connection,
            stream=handshake.stream + self._count,
            binding=Binding.WEBSOCKET,
            started=message.began,
            target=handshake.target,
            authority=handshake.authority,
            request_headers=headers,
            request_ended=message.at,
            half_close="client",
            traceparent=read_call_fields(own)[0],
            version_header=version,
            extensions=extensions,
            agent=link.shared.agent_at(link.facts.upstream, path_of(handshake.target)),
            client=handshake.client,
        )
        exchange.bytes_to_agent = message.end - message.start
        return exchange

    # --- ends

    def on_close(self, event: Control) -> None:
        """Handle a close frame: the first one ends the calls that are open when the socket ends."""
        if not self._closing[0]:
            how = "client gone" if event.direction is TO_AGENT else "agent gone"
            code, reason = event.detail.get("code", ""), event.detail.get("reason", "")
            self._closing = how, " ".join(filter(None, ("close", str(code), str(reason))))

    def read_stream_event(self, event: Head | End | Cut | Undecodable | Body, out: Out) -> None:
        """Handle an event of the stream of the handshake: all calls are closed at its end. If a
        direction cannot be decoded before it, they may have ended there."""
        if type(event) is Undecodable and self._end is None:
            self._closing = _LOST, unread_note(event)
        if not isinstance(event, End | Cut):
            return
        if type(event) is Cut and self._closing[0] != _LOST:
            self._closing = exchange_end_of_cut(event), event.how
        self._end = SpanPiece(event.at, event.at, event.start, event.start)
        self.cut_all_calls(self._end, *self._closing, out)


def read_parameters(data: bytes) -> Headers:
    """Return `serviceParams` of a call as fields; those that are not text are left out."""
    try:
        found = _decode_fields(data) if data else {}
    except UNREADABLE_ERRORS:
        return ()
    return tuple(
        (name.encode(), value.encode()) for name, value in found.items() if type(value) is str
    )
