"""gRPC over HTTP/2 (manual/protocol.md "gRPC framing"): length-prefixed messages both ways, status
in the trailers.

Calls of gRPC services other than A2A are decoded too, as frames of kind OTHER.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec
from google.protobuf.message import DecodeError

from a2a_proto import find_bad_text, to_dict
from a2a_proxy.model.values import Binding, Dialect, FrameKind
from a2a_proxy.model.wire import Body, Cut, End, Head, Headers, HeadRole, Undecodable
from a2a_proxy.protocol.bindings import other
from a2a_proxy.protocol.call import (
    TO_AGENT,
    TO_CLIENT,
    ConnectionLink,
    HttpStreamCall,
    Out,
    SpanPiece,
    make_detail,
)
from a2a_proxy.protocol.dialect import dialect_of_version, dialect_with_generation
from a2a_proxy.protocol.errors import (
    GENERATION_MISMATCH,
    GrpcOutcome,
    error_line,
    header_value,
    read_error_body,
)
from a2a_proxy.protocol.exchange import ExchangeState
from a2a_proxy.protocol.live import LiveReading, detect_payload, live_schema
from a2a_proxy.protocol.message import read_protobuf
from a2a_proxy.protocol.operations import GRPC_METHODS, OPERATION_BY_NAME, Operation, message_names
from a2a_proxy.protocol.proto_summary import expected_generations
from a2a_proxy.protocol.schema import (
    BYTES,
    TEXT,
    TRAILERS,
    MessageDecoder,
    decoder_for,
    schema_of,
    schema_set_of,
    split_schema,
)
from a2a_proxy.protocol.summary import NO_SUMMARY, UNKNOWN_SUMMARY
from a2a_proxy.protocol.text import text_of_body
from a2a_proxy.wire.body import BodyCollector
from a2a_proxy.wire.grpc import GrpcMessage, GrpcReassembler

_MAX_FOREIGN_BODY = 64 * 1024
"""Bytes kept of a response that is not gRPC."""


def is_grpc(headers: Headers) -> bool:
    """Whether the content type is that of native gRPC (not gRPC-Web)."""
    kind = header_value(headers, b"content-type").lower()
    return kind.startswith(b"application/grpc") and not kind.startswith(b"application/grpc-web")


def open_call(link: ConnectionLink, exchange: ExchangeState) -> GrpcCall:
    """Return the call of a gRPC request head."""
    row = GRPC_METHODS.get(exchange.target)
    exchange.method = exchange.target.rpartition("/")[2]
    if row is not None or exchange.target.rpartition("/")[0] in (
        "/lf.a2a.v1.A2AService",
        "/a2a.v1.A2AService",
    ):
        exchange.binding = Binding.GRPC
    if row is not None:
        operation, proof = row
        exchange.operation = operation.name
        exchange.streaming = operation.is_streaming
        exchange.dialect = (
            Dialect.V1_1
            if proof is Dialect.V1_0 and dialect_of_version(exchange.version_header) is Dialect.V1_1
            else proof
        )
    call = GrpcCall(link, exchange, _readers=[_make_reassembler(exchange.request_headers), None])
    if exchange.operation == "SendLiveMessage":
        call._live = LiveReading(link.shared.live)
    if exchange.binding is Binding.GRPC:
        call.set_agent("")
    return call


class GrpcCall(HttpStreamCall, tag="grpc", dict=True):
    """One gRPC call."""

    _readers: list[GrpcReassembler | None] = []
    _schemas: list[str] = msgspec.field(default_factory=lambda: ["", ""])
    """Schemas of the messages, by direction; empty while they are not known."""
    _live: LiveReading | None = None
    """Payload detection of a live stream; None for other calls."""
    _tail: SpanPiece | None = None
    _foreign: BodyCollector | None = None
    """Body of a response that is not gRPC."""

    def __post_init__(self) -> None:
        self._operation = OPERATION_BY_NAME.get(self.exchange.operation)
        self._answer = _answer_frame_kind(self._operation)
        self._decoders = [decoder_for(schema) if schema else None for schema in self._schemas]

    # --- messages

    def handle_body(self, event: Body, out: Out) -> None:
        """Decode a piece of the message stream, which may contain any number of messages and parts
        of messages."""
        direction = event.direction
        exchange = self.exchange
        if direction is TO_CLIENT:
            exchange.bytes_to_client += event.end - event.start
        else:
            exchange.bytes_to_agent += event.end - event.start
        reader = self._readers[direction]
        if reader is None:
            if self._foreign is not None:
                self._foreign.add(event.data, event.at, event.start, event.end)
            return
        found: list[GrpcMessage | Undecodable] = []
        reader.feed(event, found)
        for message in found:
            self._read_message(message, direction, out)
            is_answer = direction is TO_CLIENT and not exchange.events
            if is_answer and type(message) is Undecodable and text_of_body(event.data[:64]):
                self._readers[direction], self._foreign = None, BodyCollector(_MAX_FOREIGN_BODY)
                self._foreign.add(event.data, event.at, event.start, event.end)

    def _read_message(self, message: GrpcMessage | Undecodable, direction: Any, out: Out) -> None:
        if type(message) is Undecodable:
            self.handle_undecodable(message, out)
            return
        assert type(message) is GrpcMessage
        kind = FrameKind.REQUEST if direction is TO_AGENT else self._answer
        if self._live is None:
            how = self._decoders[direction] or self._choose_decoder(direction)
        else:
            how = self._choose_live_decoder(self._live, direction, message.data)
        framing = message.encoding if message.compressed else ""
        if how is None:
            kind = kind if self.exchange.binding is Binding.GRPC else FrameKind.OTHER
            self.emit_frame(
                out, direction, kind, message, BYTES, NO_SUMMARY, make_detail(framing=framing)
            )
            return
        read = (
            read_protobuf(how.schema, message.data)
            if direction is TO_CLIENT and not message.truncated
            else None
        )
        if read is not None and read.summary is not None:
            summary = read.summary
        else:
            try:
                parsed = how.parse(message.data)
            except DecodeError:
                self._report_unreadable(message, direction, kind, how, out)
                return
            summary = how.summarise(parsed)
            if direction is TO_AGENT or how.schema.endswith("AgentCard"):
                self._learn_from_message(parsed)
        if summary[6] and self.exchange.dialect is Dialect.V1_0:
            self.exchange.dialect = dialect_with_generation(self.exchange.dialect)
        note = (
            self._note_of_other_payload(direction, message.data)
            if summary is UNKNOWN_SUMMARY
            else ""
        )
        detail = "", 0, note, framing
        self.emit_frame(out, direction, kind, message, how.schema, summary, detail, read)

    def _report_unreadable(
        self, message: GrpcMessage, direction: Any, kind: FrameKind, how: MessageDecoder, out: Out
    ) -> None:
        """Emit a message that its class cannot parse: truncated for storage, or invalid."""
        if message.truncated:
            self.emit_frame(
                out,
                direction,
                kind,
                message,
                how.schema,
                NO_SUMMARY,
                make_detail(note="too large to read"),
            )
            return
        name = how.schema.partition("@")[0].rpartition(".")[2]
        other = self._note_of_other_payload(direction, message.data)
        bad_text = "" if other else find_bad_text(*split_schema(how.schema), message.data)  # type: ignore[arg-type]
        note = f"field {bad_text} is not valid UTF-8" if bad_text else ""
        detail = make_detail(note=other or ": ".join(filter(None, (f"not a {name}", note))))
        self.emit_frame(out, direction, FrameKind.UNDECODABLE, message, BYTES, NO_SUMMARY, detail)
        why = other or note
        got = f"{message.size} bytes that do not parse as one" + (f": {why}" if why else "")
        self.report_unread(Undecodable(direction, message.at, message.start, f"a {name}", got), out)

    def _note_of_other_payload(self, direction: Any, data: bytes) -> str:
        """Return a note if a message of a live stream looks like another payload than the one the
        user specified."""
        forced = self._live.fixed_payload if self._live is not None else ""
        found = detect_payload(direction, data) if forced else ""
        return (
            f"looks like `{found}`, read as `--live {forced}`" if found not in ("", forced) else ""
        )

    def _choose_decoder(self, direction: Any) -> MessageDecoder | None:
        """Choose the decoder of the messages of a direction."""
        operation = self._operation
        if operation is None:
            return None
        schema_set = schema_set_of(self.exchange.dialect)
        name = message_names(operation, self.exchange.dialect)[direction]
        return self._set_decoder(direction, schema_of(schema_set, name))

    def _choose_live_decoder(
        self, live: LiveReading, direction: Any, data: bytes
    ) -> MessageDecoder:
        """Choose the decoder of a SendLiveMessage message: three payloads share the name, and each
        message may change how later ones are read."""
        if live.learn_from(direction, data):
            self._decoders, self._schemas = [None, None], ["", ""]
        how: MessageDecoder | None = self._decoders[direction]
        if how is not None:
            return how
        self.exchange.live_payload = (
            live.payload_for(TO_AGENT) or live.payload_for(TO_CLIENT) or "bidi"
        )
        return self._set_decoder(direction, live_schema(live.payload_for(direction), direction))

    def _set_decoder(self, direction: Any, schema: str) -> MessageDecoder:
        self._schemas[direction] = schema
        how = self._decoders[direction] = decoder_for(schema)
        return how

    def _learn_from_message(self, message: Any) -> None:
        """Store the facts that other calls need: tenant, push URLs, the agent card."""
        if message.DESCRIPTOR.name == "AgentCard":
            self.link.shared.learn_card(
                self.exchange.agent, to_dict(message), self.link.facts.upstream
            )
            return
        self.exchange.tenant = self.exchange.tenant or getattr(message, "tenant", "")
        if not self.exchange.requests:
            self.exchange.set_expected_generations(*expected_generations(message))
        if self.exchange.operation in _PUSH_URL_OPERATIONS:
            self.link.shared.learn_push_url(_find_push_url(message), self.exchange.agent)

    # --- heads, trailers and ends

    def handle_head(self, event: Head) -> None:
        """Handle the response head or the trailers; the block with `grpc-status` is the tail."""
        if event.role is HeadRole.TRAILERS or header_value(event.headers, b"grpc-status"):
            self._tail = SpanPiece(event.began, event.at, event.start, event.end)
        super().handle_head(event)

    def on_response(self, event: Head) -> None:
        """Start to decode the agent's messages; a response of another type (a plain HTTP error) is
        kept undecoded."""
        if is_grpc(event.headers) or header_value(event.headers, b"grpc-status"):
            self._readers[TO_CLIENT] = _make_reassembler(event.headers)
        else:
            self._foreign = BodyCollector(_MAX_FOREIGN_BODY)
            self.record_error(event.status, f"HTTP {event.status} instead of gRPC")

    def on_end(self, event: End, out: Out) -> None:
        """Handle the half-close of the client, or the trailers."""
        self._finish_direction(event, out)
        if event.direction == TO_AGENT:
            place = SpanPiece(event.at, event.at, event.start, event.start)
            self.emit_frame(out, TO_AGENT, FrameKind.END, place, "", NO_SUMMARY)
        else:
            self._read_trailers(event, out)

    def _read_trailers(self, event: End, out: Out) -> None:
        exchange = self.exchange
        only = (
            not exchange.trailers and header_value(exchange.response_headers, b"grpc-status") != b""
        )
        fields = exchange.response_headers if only else exchange.trailers
        outcome = GrpcOutcome(fields)
        exchange.grpc_status = outcome.status
        if (
            outcome.error_text and exchange.how != "client gone"
        ):  # a client that is gone receives no error
            self.record_error(outcome.status, outcome.error_text)
        if not (outcome.status or exchange.events):
            other.record_no_result(self)
        if outcome.reason == GENERATION_MISMATCH:
            exchange.dialect = dialect_with_generation(exchange.dialect)
        pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in fields]
        payload = msgspec.json.encode(pairs) if pairs else b""
        place = self._tail or SpanPiece(event.at, event.at, event.start, event.start)
        span = SpanPiece(place.began, place.at, place.start, place.end, payload, len(payload))
        note = "trailers-only" if only else "" if outcome.status >= 0 else "no grpc-status"
        schema = TRAILERS if pairs else ""
        detail = make_detail(error_code=max(outcome.status, 0), note=note)
        self.emit_frame(out, TO_CLIENT, FrameKind.END, span, schema, NO_SUMMARY, detail)

    def on_cut(self, event: Cut, out: Out) -> None:
        """Emit the rest of a message that broke off. The cut explains why it is incomplete, so it
        is not reported."""
        self.unread.append(int(event.direction))
        self._finish_direction(event, out)

    def _finish_direction(self, event: End | Cut, out: Out) -> None:
        reader = self._readers[event.direction]
        if reader is not None:
            found: list[GrpcMessage | Undecodable] = []
            reader.finish(event.at, found)
            for message in found:
                self._read_message(message, event.direction, out)
        elif event.direction == TO_CLIENT and self._foreign is not None and self._foreign.size:
            text = header_value(self.exchange.response_headers, b"content-type").startswith(
                (b"text/", b"application/json")
            )
            self.emit_frame(
                out, TO_CLIENT, FrameKind.OTHER, self._foreign, TEXT if text else BYTES, NO_SUMMARY
            )
            line = f"HTTP {self.exchange.status} instead of gRPC"
            if self.exchange.error == line:
                self.exchange.error = error_line(line, *read_error_body(self._foreign.data))
            self._foreign = None


def _make_reassembler(headers: Headers) -> GrpcReassembler:
    return GrpcReassembler(header_value(headers, b"grpc-encoding").strip().lower() or b"identity")


def _answer_frame_kind(operation: Operation | None) -> FrameKind:
    if operation is None:
        return FrameKind.OTHER
    return FrameKind.EVENT if operation.is_streaming else FrameKind.RESPONSE


_PUSH_URL_OPERATIONS = frozenset(
    {"SendMessage", "SendStreamingMessage", "SendLiveMessage", "CreateTaskPushNotificationConfig"}
)


def _find_push_url(message: Any) -> str:
    """Return the URL of a push configuration, wherever this schema has it, or an empty string."""
    for name in (
        "configuration",
        "config",
        "push_notification_config",
        "push_notification",
        "task_push_notification_config",
    ):
        if name in message.DESCRIPTOR.fields_by_name and message.HasField(name):
            return _find_push_url(getattr(message, name))
    return cast("str", getattr(message, "url", ""))
