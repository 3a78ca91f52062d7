"""JSON-RPC calls that share a connection and are distinguished by their ids: on a pipe
(`bindings.stdio`) and on a WebSocket (`bindings.websocket`).

A streaming call has several responses with the same id; `protocol.stream_life` decides which one is
the last.
"""

from abc import abstractmethod

import msgspec

from a2a_proxy.model.saved_state import State
from a2a_proxy.model.values import Binding, EventKind, FrameKind
from a2a_proxy.model.wire import Framed
from a2a_proxy.protocol.bindings import jsonrpc
from a2a_proxy.protocol.call import (
    TO_AGENT,
    TO_CLIENT,
    ConnectionLink,
    ExchangeDecoder,
    Out,
    SpanPiece,
    make_detail,
)
from a2a_proxy.protocol.exchange import ExchangeState
from a2a_proxy.protocol.json_shapes import UNREADABLE_ERRORS
from a2a_proxy.protocol.json_summary import summarise_leniently
from a2a_proxy.protocol.schema import BYTES, JSON, TEXT
from a2a_proxy.protocol.stream_life import (
    PIPE_LIFE,
    PipeEvent,
    PipeLife,
    PipeMeaning,
    pipe_event_of,
)
from a2a_proxy.protocol.summary import NO_SUMMARY
from a2a_proxy.wire.content import is_utf8

MAX_OPEN_CALLS = 10_000
"""Maximum number of open calls; beyond that, the oldest is closed."""
MAX_FINISHED_CALLS = 10_000
"""Number of ids of finished calls that are remembered."""
_MAX_EXACT_INTEGER = 2**53
"""Below this, a number with a decimal point is the same in every JSON reader."""

NOTE_UNKNOWN_ID = "unknown id"
NOTE_AFTER_END = "after the end of the stream"
NOTE_REPEATED_SNAPSHOT = "the task once more, after the end of the stream"
NOTE_SECOND_RESPONSE = "second response"
NOTE_UNCLEAR_ID = "its id stands for several calls"
NOTE_AFTER_CUT = "after its call broke off"
NOTE_ID_IN_FLIGHT = "id in flight"
NOTE_FROM_AGENT = "from the agent"
NOTE_NOT_JSON = "not JSON"
NOTE_NOT_JSONRPC = "no JSON-RPC message"
NOTE_TOO_LARGE = "too large to be read"
"""Notes of messages that belong to no call, by which rules recognise them; `NOTE_ID_IN_FLIGHT` is a
note of a call."""
HOW_FORGOTTEN, HOW_ID_REUSED = "forgotten", "id used again"
"""Values of `Exchange.how` for calls that no peer ended."""


class MessageKind(msgspec.Struct, rename="camel"):
    """The members that determine the kind of a message; the last four exist on a WebSocket."""

    jsonrpc: msgspec.Raw = msgspec.Raw()
    id: msgspec.Raw = msgspec.Raw()
    method: msgspec.Raw = msgspec.Raw()
    result: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()
    type: msgspec.Raw = msgspec.Raw()
    event: msgspec.Raw = msgspec.Raw()
    stream_end: msgspec.Raw = msgspec.Raw()
    cancel_stream: msgspec.Raw = msgspec.Raw()
    service_params: msgspec.Raw = msgspec.Raw()


_decode_message_kind = msgspec.json.Decoder(MessageKind).decode
_decode_any = msgspec.json.Decoder(msgspec.Raw).decode
_HANDSHAKES = {b'"handshake"': "handshake", b'"handshakeAck"': "handshakeAck"}
_ENDS_OF_TASK = (PipeEvent.MESSAGE, PipeEvent.TERMINAL, PipeEvent.FINAL)
"""Events that end a stream on a pipe. Where a message marks the end of a stream, the stream rests
after them."""
_PROXY_ENDS = ("connection lost", "proxy stopped", "proxy killed")


class RpcCall(ExchangeDecoder):
    """One call."""

    life: PipeLife = PipeLife.QUIET
    unclear: bool = False
    """Whether its id was also the id of another call that was still open."""

    def read_request(self, message: Framed, out: Out, note: str) -> None:
        """Emit the client's message."""
        jsonrpc.read_one_request(self, message, out, note, message.framing)

    def count_response(self, message: Framed) -> None:
        """Count a message of the agent."""
        exchange = self.exchange
        exchange.bytes_to_client += message.end - message.start
        if not exchange.response_started:
            exchange.response_started = message.began
            exchange.response_headers = message.headers

    def read_response(self, message: Framed, out: Out) -> bool:
        """Emit a response of the agent; return whether it is the last one."""
        self.count_response(message)
        streams = self.exchange.streaming
        kind = FrameKind.EVENT if streams else FrameKind.RESPONSE
        jsonrpc.read_one_response(self, message, kind, out, framing=message.framing)
        event = self.event_of(out[-1]) if streams else PipeEvent.RESPONSE
        return self.apply_event(event) is not PipeMeaning.CONTINUES

    def event_of(self, frame: object) -> PipeEvent:
        """Return what a frame of the agent in a stream means for the life of the call."""
        event = pipe_event_of(frame)
        has_end = self.exchange.binding is Binding.WEBSOCKET
        return PipeEvent.INTERRUPTED if has_end and event in _ENDS_OF_TASK else event

    def apply_event(self, event: PipeEvent) -> PipeMeaning:
        """Apply an event to the life of the call; return what it means."""
        self.life, meaning = PIPE_LIFE[self.life, event]
        return meaning


class RpcCalls(State):
    """The calls of one connection."""

    link: ConnectionLink
    calls: dict[str, RpcCall] = {}
    """Open calls by the keys of their ids; a notification of the client is closed at once."""
    _finished: dict[str, tuple[str, int]] = {}
    """Keys of the ids of finished calls -> the note for later messages with this id, and the last
    state; the first finished comes first."""
    _count: int = 0

    # --- messages

    def read_message(self, message: Framed, out: Out) -> None:
        """Decode one message of either side."""
        if message.broken or message.truncated:
            note = message.broken or NOTE_TOO_LARGE
            schema = BYTES if message.is_binary else TEXT
            self.link.report_unassigned(message, FrameKind.UNDECODABLE, schema, "", note, out)
            return
        try:
            shape = _decode_message_kind(message.data)
        except UNREADABLE_ERRORS:
            readable = is_json(message.data)
            kind = FrameKind.OTHER if readable else FrameKind.UNDECODABLE
            schema = JSON if readable else TEXT if is_utf8(message.data) else BYTES
            self.link.report_unassigned(
                message, kind, schema, "", NOTE_NOT_JSONRPC if readable else NOTE_NOT_JSON, out
            )
            return
        rpc_id = jsonrpc.text_of_id(shape.id)
        if message.direction is TO_AGENT:
            self.read_from_client(message, shape, rpc_id, out)
        else:
            self.read_from_agent(message, shape, rpc_id, out)

    def read_from_client(self, message: Framed, shape: MessageKind, rpc_id: str, out: Out) -> None:
        """Decode a JSON object that the client sent."""
        if not shape.method:
            answer = (
                "answer to the agent"
                if shape.result or shape.error
                else _note_of_odd_message(shape)
            )
            self.link.report_unassigned(message, FrameKind.OTHER, JSON, rpc_id, answer, out)
            return
        key = normalise_id(rpc_id)
        before = self.calls.get(key)
        note = ""
        if before is not None:
            replaced = before.apply_event(PipeEvent.ID_USED_AGAIN) is PipeMeaning.REPLACED
            note = NOTE_ID_IN_FLIGHT if replaced else ""
            self.finish_call(key, before, message.at, HOW_ID_REUSED if replaced else "complete")
        call = RpcCall(self.link, self.open_exchange(message, shape))
        call.exchange.rpc_id = rpc_id
        call.unclear = bool(note)
        call.read_request(message, out, note)
        if not rpc_id:  # a notification has no response
            call.close(message.at, "complete")
            return
        self._finished.pop(key, None)
        self.calls[key] = call
        if len(self.calls) > MAX_OPEN_CALLS:
            oldest = next(iter(self.calls))
            self.finish_call(oldest, self.calls[oldest], message.at, HOW_FORGOTTEN)

    def read_from_agent(self, message: Framed, shape: MessageKind, rpc_id: str, out: Out) -> None:
        """Decode a JSON object that the agent sent."""
        if shape.method:
            self.link.report_unassigned(
                message, FrameKind.OTHER, JSON, rpc_id, NOTE_FROM_AGENT, out
            )
            return
        if not (shape.result or shape.error):
            self.link.report_unassigned(
                message, FrameKind.OTHER, JSON, rpc_id, _note_of_odd_message(shape), out
            )
            return
        key = normalise_id(rpc_id)
        call = self.calls.get(key)
        if (
            call is None and rpc_id in ("null", "") and len(self.calls) == 1
        ):  # the agent could not read the id
            key, call = next(iter(self.calls.items()))
        if call is None:
            note, state = self._finished.get(key, (NOTE_UNKNOWN_ID, 0))
            if note == NOTE_AFTER_END and state and _is_repeated_snapshot(shape.result, state):
                note = NOTE_REPEATED_SNAPSHOT
            self.link.report_unassigned(message, FrameKind.OTHER, JSON, rpc_id, note, out)
        elif call.read_response(message, out):
            self.finish_call(key, call, message.at, "complete")

    @abstractmethod
    def open_exchange(self, message: Framed, shape: MessageKind) -> ExchangeState:
        """Return the exchange of a new call."""

    def cut_all_calls(self, place: SpanPiece, how: str, note: str, out: Out) -> None:
        """Close all calls as `how`: with a CUT frame, unless the call may end here."""
        side = TO_AGENT if how.startswith("client") else TO_CLIENT
        event = PipeEvent.PIPE_LOST if how in _PROXY_ENDS else PipeEvent.PIPE_ENDED
        for rpc_id, call in list(self.calls.items()):
            if call.apply_event(event) is PipeMeaning.COMPLETE:
                self.finish_call(rpc_id, call, place.at, "complete")
                continue
            call.emit_frame(out, side, FrameKind.CUT, place, "", NO_SUMMARY, make_detail(note=note))
            self.finish_call(rpc_id, call, place.at, how)

    def finish_call(self, rpc_id: str, call: RpcCall, at: int, how: str) -> None:
        """Close a call and keep its id."""
        call.close(at, how)
        call.mark_changed()
        del self.calls[rpc_id]
        if call.unclear or how in (HOW_FORGOTTEN, HOW_ID_REUSED):
            note = NOTE_UNCLEAR_ID
        elif how == "complete":
            note = NOTE_AFTER_END if call.exchange.streaming else NOTE_SECOND_RESPONSE
        else:
            note = NOTE_AFTER_CUT
        self._finished[rpc_id] = note, call.exchange.state
        if len(self._finished) > MAX_FINISHED_CALLS:
            del self._finished[next(iter(self._finished))]


def normalise_id(rpc_id: str) -> str:
    """Return the same text for ids of equal value in different JSON spellings: `"a/b"` and
    `"a\\/b"`, 1 and 1.0."""
    if rpc_id.removeprefix("-").isdigit() or (rpc_id[:1] == '"' and "\\" not in rpc_id):
        return rpc_id
    try:
        value = msgspec.json.decode(rpc_id)
        whole = type(value) is float and abs(value) < _MAX_EXACT_INTEGER and value.is_integer()
        return msgspec.json.encode(int(value) if whole else value).decode()
    except UNREADABLE_ERRORS:
        return rpc_id


def _note_of_odd_message(shape: MessageKind) -> str:
    return _HANDSHAKES.get(bytes(shape.type), NOTE_NOT_JSONRPC)


def _is_repeated_snapshot(result: msgspec.Raw, state: int) -> bool:
    """Whether the result is a snapshot of the task in the state in which its stream ended; some
    agents send one last."""
    try:
        event, *_, shown = summarise_leniently(msgspec.json.decode(result), True)[:6]
    except UNREADABLE_ERRORS:
        return False
    return event is EventKind.TASK and shown == state


def is_json(data: bytes) -> bool:
    """Whether the data is JSON."""
    try:
        _decode_any(data)
    except UNREADABLE_ERRORS:
        return False
    return True
