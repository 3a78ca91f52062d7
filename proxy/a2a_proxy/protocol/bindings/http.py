"""A2A over plain HTTP: collect bodies, split event streams, remove content codings, and call the
binding's reader.

The binding may be clear from the request line (REST, agent card), or only from the body (JSON-RPC,
webhook).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

import msgspec

from a2a_proxy.model.saved_state import State
from a2a_proxy.model.values import Binding, Frame, FrameKind
from a2a_proxy.model.wire import Body, Cut, Direction, End, Head, Headers, Undecodable
from a2a_proxy.protocol.bindings import card, jsonrpc, other, rest, webhook
from a2a_proxy.protocol.call import (
    NO_DETAIL,
    TO_AGENT,
    TO_CLIENT,
    ByteSpan,
    ConnectionLink,
    HttpExchange,
    Out,
    SpanPiece,
    make_detail,
)
from a2a_proxy.protocol.errors import header_value
from a2a_proxy.protocol.exchange import ExchangeState, Life
from a2a_proxy.protocol.json_shapes import UNREADABLE_ERRORS
from a2a_proxy.protocol.operations import (
    OPERATION_BY_NAME,
    STREAMING_OPERATIONS,
    ResponseKind,
)
from a2a_proxy.protocol.rest_path import match_request_line
from a2a_proxy.protocol.session_facts import path_of
from a2a_proxy.protocol.summary import NO_SUMMARY
from a2a_proxy.wire.body import MAX_BODY_SIZE, BodyCollector
from a2a_proxy.wire.content import ContentDecoder
from a2a_proxy.wire.json_sequence import JsonSequence, guess_container, unwrap_text
from a2a_proxy.wire.sse import BOM, SseEvent, SseSplitter

_OTHER_BINDING = Binding.OTHER
_EVENT_STREAM = "text/event-stream"
_SEQUENCE_TYPES = frozenset(
    {
        "application/x-ndjson",
        "application/ndjson",
        "application/jsonl",
        "application/x-jsonlines",
        "application/json-seq",
    }
)
"""Media types of a sequence of JSON objects."""
_ARRAY = re.compile(rb"\s*\[")
_EVENT_FIELDS = (b"data:", b"event:")
"""Fields by which an event stream is recognised under another content type."""
_BLANKS = BOM + b"\r\n"
_EVENT_ANSWERS = frozenset({ResponseKind.SEND, ResponseKind.STREAM})
"""Answers whose form is that of an event, or nearly."""
_MAX_HELD = 1 << 20
"""Bytes of a response after which its form is decided."""
_MAX_HELD_EVENTS = 8
_MAX_WRAPPED = 1000
"""Objects in a body that are looked for, and not more."""
_WRAPPED_SLICE = 1 << 14
_decode_value = msgspec.json.Decoder(msgspec.Raw).decode
_MAX_OTHER_BODY = 64 * 1024
"""Bytes kept of a body that cannot be A2A."""


class _BindingReader(NamedTuple):
    """Functions of a binding that decode whole messages."""

    request: Callable[[HttpCall, ByteSpan, Out], None]
    response: Callable[[HttpCall, ByteSpan, Out, str], None]
    """The last argument is the framing: what surrounds the message, or nothing."""
    event: Callable[[HttpCall, SseEvent, Out], None]


_READERS: dict[Binding, _BindingReader] = {
    Binding.JSONRPC: _BindingReader(
        jsonrpc.read_request, jsonrpc.read_response, jsonrpc.read_event
    ),
    Binding.REST: _BindingReader(rest.read_request, rest.read_response, rest.read_event),
    Binding.CARD: _BindingReader(card.read_request, card.read_response, other.read_event),
    Binding.WEBHOOK: _BindingReader(webhook.read_request, webhook.read_response, other.read_event),
    Binding.OTHER: _BindingReader(other.read_request, other.read_response, other.read_event),
}


def open_call(link: ConnectionLink, exchange: ExchangeState, head: Head) -> HttpCall:
    """Return the call of a request head that is not gRPC."""
    inlets = [_open_inlet(exchange.request_headers), _open_inlet(())]
    call = HttpCall(link, exchange, _bodies=inlets)
    call.heads[TO_AGENT] = SpanPiece(head.began, head.at, head.start, head.end)
    call.bind_by_request_line()
    return call


class _Form(IntEnum):
    """What the body of a response is. The numbers are saved."""

    UNKNOWN = 0
    """Its first bytes do not show it yet."""
    BODY = 1
    """One message."""
    HELD = 2
    """It begins with a JSON value: one message, events, or lines that an event stream ignores; or
    with other bytes that an event stream ignores."""
    EVENTS = 3


_EVENTS = _Form.EVENTS


class HttpCall(HttpExchange, tag="http", dict=True):
    """One request with its response or event stream."""

    heads: list[SpanPiece | None] = msgspec.field(default_factory=lambda: [None, None])
    """Byte ranges and times of the two heads, used for messages without a body."""
    _bodies: list[_BodyInlet] = []
    _events: SseSplitter | JsonSequence | None = None
    _form: _Form = _Form.UNKNOWN
    _held: list[SseEvent] = []
    """What a response has consisted of so far if its form is HELD."""
    _is_bound: bool = False
    _is_unwrapped: bool = False
    """Whether it was looked for an answer inside the body of the response."""
    _posted_call: bytes = b""
    """JSON-RPC call in the body of a request to the path of a REST operation."""

    def bind_by_request_line(self) -> None:
        """Set the binding if the request line alone determines it."""
        exchange = self.exchange
        if card.is_card_path(exchange.method, exchange.target):
            exchange.binding = Binding.CARD
            card.name_exchange(self)
        else:
            self.path = match_request_line(exchange.method, exchange.target.encode("latin-1"))
            if self.path is not None:
                exchange.binding = Binding.REST
                rest.name_exchange(self, self.path)
        self._is_bound = exchange.binding is not Binding.OTHER

    def bind_by_body(self, body: ByteSpan) -> None:
        """Set the binding from the request body, if the request line did not determine it."""
        if self._is_bound:
            if self.exchange.binding is Binding.REST and jsonrpc.is_posted_call(body.data):
                self._posted_call = body.data
            return
        self._is_bound = True
        if jsonrpc.is_request(body.data):
            self._bind_to_jsonrpc()
        elif webhook.recognise_push(self, body.data):
            self.exchange.binding = Binding.WEBHOOK

    def bind_by_response(self, data: bytes) -> None:
        """Set the binding from the response, if the request did not determine it: an agent card at
        any URL, or JSON-RPC whose request has not ended yet or is not a call (`{`, `[]`). A call
        and a response of JSON-RPC at the path of a REST operation are JSON-RPC: some frameworks
        give each method a path of its own.
        """
        exchange = self.exchange
        if self._posted_call:
            if jsonrpc.is_response(data):
                exchange.binding = Binding.JSONRPC
                jsonrpc.name_posted_call(self, self._posted_call)
            self._posted_call = b""
            return
        if exchange.binding is not _OTHER_BINDING:
            return
        if jsonrpc.is_response(data):
            self._is_bound = True
            self._bind_to_jsonrpc()
        elif exchange.method == "GET" and card.is_card(data):
            exchange.binding = Binding.CARD
            exchange.operation = "GetAgentCard"

    def _bind_to_jsonrpc(self) -> None:
        self.exchange.binding = Binding.JSONRPC
        self.set_agent(path_of(self.exchange.target))

    # --- wire events

    def handle_body(self, event: Body, out: Out) -> None:
        """Collect a piece of a body; the events of a stream are emitted at once."""
        direction = event.direction
        self.count_bytes(event)
        inlet = self._bodies[direction]
        if direction is TO_AGENT:
            inlet.add(event)
            return
        found: list[SseEvent] = []
        if self._form is _EVENTS and inlet.is_plain and self._events is not None:  # as most streams
            self._events.feed(event.data, event.at, event.start, event.end, found)
            self._deliver_events(found, out)
            return
        before = inlet.problem
        data = event.data if inlet.is_plain else inlet.decode_content(event.data)
        if self._form is _Form.UNKNOWN and data:
            self._choose_form(inlet, data, found)
        if self._form is not _EVENTS:
            inlet.collect(data, event)
            if self._form is not _Form.HELD:
                return
        assert self._events is not None
        if data:
            self._events.feed(data, event.at, event.start, event.end, found)
            self._deliver_events(found, out)
        if inlet.problem != before and self._form is _EVENTS:
            self._report_undecoded(
                direction, SpanPiece(event.at, event.at, event.start, event.end), out
            )

    def _choose_form(self, inlet: _BodyInlet, data: bytes, events: list[SseEvent]) -> None:
        """Choose how the response is read by its first bytes, because some agents send events under
        another content type, or no events as an event stream."""
        begin = inlet.collected_bytes + data
        kind, exchange = media_type(self.exchange.response_headers), self.exchange
        is_stream = kind == _EVENT_STREAM
        is_due = (
            exchange.status // 100 == 2
            and exchange.operation in STREAMING_OPERATIONS
            and exchange.requests < 2
        )
        found = guess_container(begin) if is_stream or is_due else "other"
        if not found:
            return
        self._form = _Form.BODY
        if found == "sse" and (is_stream or begin.lstrip(_BLANKS).startswith(_EVENT_FIELDS)):
            self._form, self._events = _EVENTS, SseSplitter()
        elif found in ("json", "records") and is_due:
            is_sequence = kind in _SEQUENCE_TYPES or found == "records"
            self._form = _EVENTS if is_sequence else _Form.HELD
            self._events = JsonSequence()
        elif found == "other" and is_stream:
            self._form, self._events = _Form.HELD, SseSplitter()
        exchange.streaming = self._form is _EVENTS
        self._split_collected(events)

    def _split_collected(self, events: list[SseEvent]) -> None:
        """Split what arrived before the form was known."""
        begun = self._bodies[TO_CLIENT].collected_body
        if self._events is not None and begun is not None:
            self._events.feed(begun.data, begun.began, begun.start, begun.end, events)

    def _deliver_events(
        self, events: list[SseEvent], out: Out, *, as_answers: bool = False
    ) -> None:
        if self._form is not _EVENTS:
            self._held += events
            events = self._release_events()
        for event in events:
            if not event.dispatched:
                other.read_comment(self, event, out)
                continue
            self.bind_by_response(event.data)
            reader = _READERS[self.exchange.binding]
            if as_answers:
                reader.response(self, event, out, event.framing)
            else:
                reader.event(self, event, out)

    def _release_events(self, *, is_end: bool = False) -> list[SseEvent]:
        """Decide the form of a held response once it can be decided; return its events so far."""
        inlet, events = self._bodies[TO_CLIENT], self._events
        assert events is not None
        is_stream = media_type(self.exchange.response_headers) == _EVENT_STREAM
        is_full = inlet.size > _MAX_HELD or len(self._held) > _MAX_HELD_EVENTS
        if type(events) is JsonSequence:
            is_one = is_stream and not events.is_broken and (is_full or (is_end and events.count))
            if (is_one or events.count > 1) and not inlet.problem:
                return self._release_held()
            if not (is_end or is_full or events.is_broken or inlet.problem):
                return []
            self._held = []
            if inlet.problem or inlet.is_truncated or not is_stream:
                self._form, self._events = _Form.BODY, None
                return []
            self._events = events = SseSplitter()
            self._split_collected(self._held)
        if is_end:
            events.finish(inlet.collected_at, self._held)
        if is_full or any(each.dispatched for each in self._held):
            return self._release_held()
        if is_end or inlet.problem:
            self._form, self._events, self._held = _Form.BODY, None, []
        return []

    def _release_held(self) -> list[SseEvent]:
        self._form, self.exchange.streaming = _EVENTS, True
        events, self._held = self._held, []
        self._bodies[TO_CLIENT].clear()
        return events

    def read_wrapped(self, body: ByteSpan, out: Out) -> bool:
        """Emit the answer or the events in a body that is as a whole a JSON string or base64, or
        events or several objects in place of one; return whether it is."""
        operation = OPERATION_BY_NAME.get(self.exchange.operation)
        is_call = self.exchange.binding in (Binding.JSONRPC, Binding.REST, Binding.CARD)
        if self._is_unwrapped or body.truncated or not is_call or operation is None:
            return False
        if operation.answer is ResponseKind.EMPTY:
            return False
        self._is_unwrapped = True
        data, form = unwrap_text(body.data.removeprefix(BOM))
        data = data if form else body.data
        kind, first = guess_container(data), len(out)
        if _is_json(data):
            if not form:
                return False
            piece = SpanPiece(body.began, body.at, body.start, body.end, data, len(data))
            self.bind_by_response(data)
            _READERS[self.exchange.binding].response(self, piece, out, "")
        else:
            events = self._split_wrapped(kind, data, body)
            if not events or self.exchange.binding is Binding.CARD:
                return False
            self._form, self.exchange.streaming = _EVENTS, True
            self._deliver_events(events, out, as_answers=operation.answer not in _EVENT_ANSWERS)
        if form:
            self.record_error(self.exchange.status, f"{other.INSIDE}{form}")
        for at, frame in enumerate(out[first:] if form else (), first):
            if type(frame) is Frame:
                note = ", ".join(filter(None, (f"inside {form}", frame.note)))
                out[at] = msgspec.structs.replace(frame, note=note)
        return True

    def _split_wrapped(self, kind: str, data: bytes, body: ByteSpan) -> list[SseEvent]:
        """Return the events that a body consists of; none if it consists of something else, or of
        too many."""
        if kind not in ("json", "records", "sse") or len(data) > _MAX_HELD:
            return []
        found: list[SseEvent] = []
        self._events = events = SseSplitter() if kind == "sse" else JsonSequence()
        for at in range(0, len(data), _WRAPPED_SLICE):
            events.feed(data[at : at + _WRAPPED_SLICE], body.at, body.start, body.end, found)
            if len(found) > _MAX_WRAPPED:
                return []
        events.finish(body.at, found)
        values = [each.data for each in found if each.dispatched]
        is_one = _is_array(data) and len(values) == 1  # of another type, no sequence
        return found if values and not is_one and all(map(_is_json, values)) else []

    def _record_array(self, body: ByteSpan) -> None:
        """Record that one JSON-RPC call was answered by an array, as only a batch is."""
        is_call = self.exchange.binding is Binding.JSONRPC and bool(self.exchange.operation)
        is_array = is_call and _is_array(body.data)
        if is_array and not _is_array(self._bodies[TO_AGENT].collected_bytes):
            self.record_error(self.exchange.status, other.ARRAY)

    def _record_status(self) -> None:
        """Record that a call failed by its status, if nothing in the answer says so."""
        if self.exchange.status >= 400:
            self.record_error(self.exchange.status, other.http_error_line(self.exchange.status))

    def _record_container(self) -> None:
        """Record that a call was answered by events in a form that its client does not read, unless
        they are an error."""
        exchange, kind = self.exchange, media_type(self.exchange.response_headers)
        is_json = type(self._events) is JsonSequence
        is_stream = exchange.operation in STREAMING_OPERATIONS
        if exchange.binding not in (Binding.JSONRPC, Binding.REST) or not exchange.operation:
            return
        if is_json:
            line = "JSON in place of server-sent events" if is_stream else "several objects for one"
        elif not is_stream:
            line = "server-sent events in place of one object"
        elif kind != _EVENT_STREAM:
            line = f"server-sent events under {kind[:80] or 'no content type'}"
        else:
            return
        if exchange.events:
            self.record_error(exchange.status, line)

    def handle_head(self, event: Head) -> None:
        """Handle the response head or the trailers."""
        super().handle_head(event)
        self.heads[TO_CLIENT] = SpanPiece(event.began, event.at, event.start, event.end)

    def on_response(self, event: Head) -> None:
        """Prepare the decoding of the response body."""
        self._bodies[TO_CLIENT] = _open_inlet(event.headers)
        streams = media_type(event.headers) == _EVENT_STREAM
        self.exchange.streaming = streams
        self._form, self._events = _Form.UNKNOWN, None

    def on_end(self, event: End, out: Out) -> None:
        """Handle the end of the request or the response."""
        direction = event.direction
        if direction == TO_CLIENT and self._flush_events(event.at, out):
            self._finish_stream(event, out)
            return
        inlet = self._bodies[direction]
        inlet.finish()
        span = inlet.collected_body or self.heads[direction]
        if span is None:
            return
        if inlet.problem:
            self._report_undecoded(direction, span, out)
        elif direction == TO_AGENT:
            self.bind_by_body(span)
            if self._posted_call:
                jsonrpc.read_posted_call(self, span, out)
            else:
                _READERS[self.exchange.binding].request(self, span, out)
        else:
            span, framing = _split_bom(span)
            self.bind_by_response(span.data)
            _READERS[self.exchange.binding].response(self, span, out, framing)
            if self._form is _EVENTS:
                self._finish_stream(event, out)
            else:
                self._record_array(span)
                self._record_status()
            is_read = self.exchange.binding not in (_OTHER_BINDING, Binding.WEBHOOK)
            if framing and is_read and self.exchange.method != "DELETE":
                self.record_error(self.exchange.status, "JSON behind a byte order mark")

    def _report_undecoded(self, direction: Direction, span: ByteSpan, out: Out) -> None:
        """Emit a body whose content coding could not be removed; report it only if its bytes
        violate the declared coding."""
        inlet = self._bodies[direction]
        self.emit_frame(
            out,
            direction,
            FrameKind.UNDECODABLE,
            span,
            "bytes",
            NO_SUMMARY,
            make_detail(note=inlet.problem),
        )
        if inlet.is_malformed and other.may_carry_a2a(self.headers_of(direction)):
            coding = header_value(self.headers_of(direction), b"content-encoding").decode("latin-1")
            expected = f"content coded as {coding}"
            self.report_unread(
                Undecodable(direction, span.at, span.start, expected, inlet.problem), out
            )

    def _finish_stream(self, event: End, out: Out) -> None:
        place = SpanPiece(event.at, event.at, event.start, event.start)
        self._record_container()
        self._record_status()
        if not (self.exchange.events or self._bodies[TO_CLIENT].problem):
            other.record_no_result(self)
        detail = make_detail(note="by eof") if event.by_eof else NO_DETAIL
        self.emit_frame(out, TO_CLIENT, FrameKind.END, place, "", NO_SUMMARY, detail)

    def _flush_events(self, at: int, out: Out) -> bool:
        """Emit the rest of a stream; return whether the response was one."""
        found: list[SseEvent] = []
        if self._form is _Form.HELD:
            assert self._events is not None
            self._events.finish(at, self._held)
            found = self._release_events(is_end=True)
        elif self._form is _Form.UNKNOWN and self.exchange.streaming:
            self._form, self._events = _EVENTS, SseSplitter()
            self._split_collected(found)
        if self._form is not _EVENTS:
            return False
        assert self._events is not None
        self._events.finish(at, found)
        self._deliver_events(found, out)
        return True

    def on_cut(self, event: Cut, out: Out) -> None:
        """Emit the rest of both messages, because the end of one side ends the other. A client that
        has closed only its own side may still read, however, so the agent's response continues."""
        reads_on = event.direction == TO_AGENT and event.how == "eof"
        for direction in (TO_AGENT, TO_CLIENT):
            is_over = direction == TO_AGENT and self.life is Life.CLIENT_LEFT
            if is_over or (direction == TO_CLIENT and reads_on):
                continue
            if direction == TO_CLIENT and self._flush_events(event.at, out):
                continue
            span = self._bodies[direction].collected_body
            if span is not None and not (direction == TO_AGENT and self.exchange.request_ended):
                self._emit_partial_body(direction, span, out)

    def _emit_partial_body(self, direction: Direction, span: ByteSpan, out: Out) -> None:
        schema = "text" if other.is_text(self.headers_of(direction)) else "bytes"
        self.emit_frame(
            out,
            direction,
            FrameKind.UNDECODABLE,
            span,
            schema,
            NO_SUMMARY,
            make_detail(note="body broke off"),
        )

    def headers_of(self, direction: Direction) -> Headers:
        """Return the header fields of the request or the response."""
        return (
            self.exchange.request_headers
            if direction == TO_AGENT
            else self.exchange.response_headers
        )


class _BodyInlet(State):
    """Body of one direction: removes its content coding and collects it."""

    _collector: BodyCollector
    _decoder: ContentDecoder | None = None
    is_plain: bool = True
    """Whether the body has no content coding."""

    def decode_content(self, data: bytes) -> bytes:
        """Return the bytes without their content coding."""
        return data if self._decoder is None else self._decoder.feed(data)

    def finish(self) -> None:
        """Finish the body."""
        if self._decoder is not None:
            self._decoder.finish()

    def add(self, event: Body) -> None:
        """Collect the bytes of an event."""
        self.collect(self.decode_content(event.data), event)

    def collect(self, data: bytes, event: Body) -> None:
        """Collect the decoded bytes of an event."""
        self._collector.add(data, event.at, event.start, event.end)

    def clear(self) -> None:
        """Forget what was collected."""
        self._collector = BodyCollector(self._collector.limit)

    @property
    def size(self) -> int:
        """Bytes of the body so far."""
        return self._collector.size

    @property
    def is_truncated(self) -> bool:
        """Whether only the beginning of the body is kept."""
        return self._collector.truncated

    @property
    def collected_at(self) -> int:
        """Time of the last byte so far, ns."""
        return self._collector.at

    @property
    def collected_bytes(self) -> bytes:
        """The bytes of the body so far."""
        return self._collector.data

    @property
    def problem(self) -> str:
        """Reason why the content coding could not be removed; empty if it could."""
        return self._decoder.problem if self._decoder is not None else ""

    @property
    def is_malformed(self) -> bool:
        """Whether the bytes violate their Content-Encoding."""
        return self._decoder is not None and self._decoder.broken

    @property
    def collected_body(self) -> ByteSpan | None:
        """The body so far, or None if no bytes have arrived."""
        return self._collector if self._collector.began else None


def _open_inlet(headers: Headers) -> _BodyInlet:
    collector = BodyCollector(MAX_BODY_SIZE if other.may_carry_a2a(headers) else _MAX_OTHER_BODY)
    encodings = header_value(headers, b"content-encoding").strip().lower()
    if encodings in (b"", b"identity"):
        return _BodyInlet(collector)
    return _BodyInlet(collector, ContentDecoder(encodings), is_plain=False)


def _is_json(data: bytes) -> bool:
    """Whether the bytes are one JSON object."""
    try:
        return data.lstrip()[:1] == b"{" and bool(_decode_value(data))
    except UNREADABLE_ERRORS:
        return False


def _is_array(data: bytes) -> bool:
    return _ARRAY.match(data) is not None


def _split_bom(span: ByteSpan) -> tuple[ByteSpan, str]:
    """Return a body without the byte order mark in front of JSON, and its framing; empty if it has
    none."""
    data = span.data.removeprefix(BOM)
    if len(data) == len(span.data) or data.lstrip()[:1] not in (b"{", b"["):
        return span, ""
    size = span.size - len(BOM)
    piece = SpanPiece(span.began, span.at, span.start, span.end, data, size, span.truncated)
    return piece, f"{BOM.decode('latin-1')}\0"


def media_type(headers: Headers) -> str:
    """Return the media type in lower case, without parameters; empty if there is no content
    type."""
    return (
        header_value(headers, b"content-type").partition(b";")[0].strip().lower().decode("latin-1")
    )
