"""One stream as one exchange: heads, frames, ends and cuts, common to all bindings. Payloads are
not read here."""

from abc import abstractmethod
from collections.abc import Callable
from functools import lru_cache
from typing import Protocol

import msgspec

from a2a_proxy.model.saved_state import Reference, State
from a2a_proxy.model.values import Actor, Binding, Finding, Frame, FrameKind, Severity
from a2a_proxy.model.wire import (
    Body,
    ConnectionFacts,
    Cut,
    Direction,
    End,
    Framed,
    Head,
    Headers,
    HeadRole,
    Undecodable,
)
from a2a_proxy.protocol.completeness import unread_note
from a2a_proxy.protocol.errors import header_value
from a2a_proxy.protocol.exchange import (
    HOW_FAULT,
    HOW_SWITCHED,
    LIFE,
    MAX_STATES,
    ExchangeState,
    Life,
    LifeEvent,
    LifeMeaning,
)
from a2a_proxy.protocol.message import JsonReader
from a2a_proxy.protocol.rest_path import RestMatch, match_request_line
from a2a_proxy.protocol.session_facts import SessionContext, path_of
from a2a_proxy.protocol.status_summary import A2AMessage
from a2a_proxy.protocol.summary import NO_SUMMARY, STATE_LABELS, Summary

Out = list[Frame | Finding]

FrameDetail = tuple[str, int, str, str]
"""Members of a frame that come from its envelope: `rpc_id`, `error_code`, `note`, `framing`."""
NO_DETAIL: FrameDetail = ("", 0, "", "")

TO_AGENT, TO_CLIENT = Direction.TO_AGENT, Direction.TO_CLIENT

_MAX_INFORMATIONAL = 16
_MAX_PROTOCOL = 40
"""Characters of the name of a protocol."""
_EVENT, _RESPONSE, _REQUEST = FrameKind.EVENT, FrameKind.RESPONSE, FrameKind.REQUEST


class ByteSpan(Protocol):
    """A message of a wire decoder, with its times (ns) and its byte range."""

    @property
    def began(self) -> int: ...  # noqa: D102
    @property
    def at(self) -> int: ...  # noqa: D102
    @property
    def start(self) -> int: ...  # noqa: D102
    @property
    def end(self) -> int: ...  # noqa: D102
    @property
    def data(self) -> bytes: ...  # noqa: D102
    @property
    def size(self) -> int: ...  # noqa: D102
    @property
    def truncated(self) -> bool: ...  # noqa: D102
    @property
    def sha256(self) -> bytes: ...  # noqa: D102


class SpanPiece(msgspec.Struct, frozen=True, gc=False):
    """A `ByteSpan` that is built here: a message without bytes of its own, or a part of a
    message."""

    began: int
    at: int
    start: int
    end: int
    data: bytes = b""
    size: int = 0
    truncated: bool = False
    sha256: bytes = b""


ReportUnassigned = Callable[[Framed, FrameKind, str, str, str, Out], None]
"""Function that emits a message that belongs to no call, with its kind, schema, JSON-RPC id and
note."""


class ConnectionLink(Reference):
    """What the calls of one connection share."""

    __slots__ = (
        "closed",
        "connection",
        "facts",
        "messages",
        "ours",
        "report_unassigned",
        "shared",
        "touched",
    )

    report_unassigned: ReportUnassigned
    """Only of a pipe and of a WebSocket."""

    def __init__(self, connection: int, facts: ConnectionFacts, shared: SessionContext) -> None:
        self.connection = connection
        self.facts = facts
        self.shared = shared
        self.ours = False
        self.messages: dict[tuple[int, int], A2AMessage] = {}
        """What was read of frames that are not delivered yet, by their exchange and `seq`."""
        self.touched: dict[int, ExchangeState] = {}
        self.closed: list[ExchangeState] = []
        """Exchanges that ended since the list was last taken."""


class ExchangeDecoder(State):
    """One exchange: its frames, its failures and its end. The subclasses decode its carrier."""

    link: ConnectionLink
    exchange: ExchangeState
    guessed: bool = False
    """Whether the dialect is a guess that the response may correct."""
    calls: dict[str, str] = {}
    """JSON-RPC id -> 1.0 operation, if one request carries several calls."""
    reader: JsonReader = msgspec.field(default_factory=JsonReader)

    def close(self, at: int, how: str) -> None:
        """Close the exchange, unless it is closed already."""
        if not self.exchange.closed:
            self.exchange.close(at, how)
            self.link.closed.append(self.exchange)

    def set_agent(self, base: str) -> None:
        """Set the agent that an A2A call reaches at this base path. The client of a delivery is the
        agent already."""
        facts = self.link.facts
        if not facts.deliverer:
            self.exchange.agent = self.link.shared.agent_at(facts.upstream, base)

    def mark_changed(self) -> None:
        """Mark the exchange as changed."""
        self.link.touched[self.exchange.id] = self.exchange

    def emit_frame(
        self,
        out: Out,
        direction: Direction,
        kind: FrameKind,
        span: ByteSpan,
        schema: str,
        summary: Summary,
        detail: FrameDetail = NO_DETAIL,
        message: A2AMessage | None = None,
    ) -> None:
        """Append one frame to `out` and update the exchange from it. `message` is what the strict
        decoder has read of the payload."""
        exchange, link, at = self.exchange, self.link, span.at
        seq = exchange.seq
        exchange.seq = seq + 1
        if message is not None:
            link.messages[exchange.id, seq] = message
        (
            event,
            task_id,
            context_id,
            message_id,
            artifact_id,
            state,
            generation,
            append,
            last_chunk,
            final,
        ) = summary
        rpc_id, error_code, note, framing = detail
        out.append(
            Frame(
                exchange.connection,
                exchange.id,
                seq,
                direction,
                kind,
                span.began,
                at,
                span.start,
                span.end,
                span.data,
                span.size,
                span.sha256,
                span.truncated,
                schema,
                framing,
                event,
                task_id,
                context_id,
                message_id,
                artifact_id,
                state,
                generation,
                append,
                last_chunk,
                final,
                error_code,
                rpc_id,
                note,
                link.ours,
            )
        )
        if kind is _EVENT or kind is _RESPONSE:
            exchange.events += 1
            exchange.last_event = at
            if not exchange.first_event:
                exchange.first_event = at
            if generation > 0:
                exchange.generation = generation
        elif kind is _REQUEST:
            exchange.requests += 1
        if task_id and not exchange.task_id:
            exchange.task_id = task_id
        if context_id and not exchange.context_id:
            exchange.context_id = context_id
        if state and state != exchange.state:
            exchange.state = state
            if len(exchange.states) < MAX_STATES:
                exchange.states += (
                    STATE_LABELS[state] if state < len(STATE_LABELS) else str(state),
                )
        link.touched[exchange.id] = exchange

    def read_wrapped(self, body: ByteSpan, out: Out) -> bool:  # noqa: ARG002 - only over HTTP
        """Emit what is inside a body that is no answer by itself; return whether something is."""
        return False

    def record_error(self, code: int, line: str) -> None:
        """Record that the exchange ended in an error, described in one line; the first error is
        kept."""
        if not self.exchange.error:
            self.exchange.error_code = code
            self.exchange.error = line


class HttpStreamCall(ExchangeDecoder):
    """One HTTP stream; the subclasses decode the framing of its messages."""

    life: Life = Life.OPEN
    unread: list[int] = []
    """Directions that have been reported as unreadable by a finding."""

    # --- wire events

    @abstractmethod
    def handle_body(self, event: Body, out: Out) -> None:
        """Decode a piece of a body, in either direction."""

    @abstractmethod
    def on_response(self, event: Head) -> None:
        """Handle the head of the response."""

    @abstractmethod
    def on_end(self, event: End, out: Out) -> None:
        """Handle the end of a direction: append its last messages to `out`."""

    @abstractmethod
    def on_cut(self, event: Cut, out: Out) -> None:
        """Handle a direction that broke off: append the rest of its last message to `out`."""

    def handle_head(self, event: Head) -> None:
        """Handle a header block after the request's."""
        exchange = self.exchange
        self.count_bytes(event)
        if event.role is HeadRole.INFORMATIONAL:
            if len(exchange.informational) < _MAX_INFORMATIONAL:
                exchange.informational += (event.status,)
        elif event.role is HeadRole.TRAILERS:
            if event.direction == TO_CLIENT:
                exchange.trailers = event.headers
        elif event.role is HeadRole.RESPONSE:
            exchange.status = event.status
            exchange.http_version = max(exchange.http_version, event.version)
            exchange.response_headers = event.headers
            exchange.response_started = event.at
            exchange.ours = exchange.ours or self.link.ours
            self.on_response(event)
        self.mark_changed()

    def handle_end(self, event: End, out: Out) -> None:
        """Handle the end of a direction."""
        exchange = self.exchange
        by_agent = event.direction == TO_CLIENT
        self.life, meaning = LIFE[
            self.life, LifeEvent.RESPONSE_END if by_agent else LifeEvent.REQUEST_END
        ]
        if not by_agent:
            exchange.request_ended = event.at
        exchange.half_close = _FIRST_ENDS.get(meaning, exchange.half_close)
        self.on_end(event, out)
        if by_agent:
            self.close(event.at, self.response_outcome())
        self.mark_changed()

    def response_outcome(self) -> str:
        """Return `Exchange.how` at the end of the response; after some, the rest of an HTTP/1
        connection is not decoded."""
        exchange = self.exchange
        if exchange.status == 101:
            protocol = header_value(exchange.response_headers, b"upgrade").decode("latin-1")[
                :_MAX_PROTOCOL
            ]
        elif (
            exchange.method == "CONNECT" and exchange.http_version != "2" and exchange.status < 300
        ):
            protocol = "a tunnel"
        else:
            return "complete"
        return f"{HOW_SWITCHED}{protocol}: the rest is not decoded"

    def handle_cut(self, event: Cut, out: Out) -> None:
        """Handle a direction that broke off. After the end of the response this is no fault,
        because the peer only cleans up (manual/protocol.md "Wire traps")."""
        how = exchange_end_of_cut(event)
        after, meaning = LIFE[self.life, _life_event_of_cut(event, how)]
        if meaning is not LifeMeaning.CLEAN_UP:
            self.on_cut(event, out)
        if meaning is LifeMeaning.BROKEN_OFF:
            note = (
                f"rst_stream {_http2_error_name(event.code)}"
                if event.how == "rst_stream"
                else event.how
            )
            place = SpanPiece(event.at, event.at, event.start, event.start)
            self.emit_frame(
                out, event.direction, FrameKind.CUT, place, "", NO_SUMMARY, make_detail(note=note)
            )
            self.close(event.at, how)
        self.life = after
        self.mark_changed()

    def end_by_fault(self, note: str, at: int, out: Out) -> None:
        """End the exchange at `at` (ns), because the proxy ended it on purpose: `note` says how."""
        place = SpanPiece(at, at, 0, 0)
        self.emit_frame(
            out, TO_CLIENT, FrameKind.CUT, place, "", NO_SUMMARY, make_detail(note=note)
        )
        self.close(at, HOW_FAULT)
        self.life = Life.OVER
        self.mark_changed()

    def handle_undecodable(self, event: Undecodable, out: Out) -> None:
        """Handle a direction that the wire decoder has given up."""
        place = SpanPiece(event.at, event.at, event.offset, event.offset)
        detail = make_detail(note=unread_note(event))
        self.emit_frame(
            out, event.direction, FrameKind.UNDECODABLE, place, "bytes", NO_SUMMARY, detail
        )
        self.report_unread(event, out)

    def report_unread(self, event: Undecodable, out: Out) -> None:
        """Report once per direction that its bytes cannot be read; the previous frame is the
        evidence."""
        if event.direction not in self.unread:
            self.unread.append(int(event.direction))
            exchange = self.exchange
            is_delivery = exchange.binding is Binding.WEBHOOK or bool(self.link.facts.deliverer)
            place = (exchange.connection, exchange.id, exchange.seq - 1)
            out.append(unread_finding(event, *place, is_delivery=is_delivery))

    @property
    def is_finished(self) -> bool:
        """Whether nothing more can arrive on this stream, or the proxy refused the exchange."""
        return self.life is Life.OVER or self.exchange.how == "refused"

    def count_bytes(self, event: Head | Body | Framed) -> None:
        """Add the bytes of an event to the count of its direction."""
        if event.direction is TO_AGENT:
            self.exchange.bytes_to_agent += event.end - event.start
        else:
            self.exchange.bytes_to_client += event.end - event.start


class HttpExchange(HttpStreamCall, dict=True):
    """An exchange over plain HTTP, in any binding: the interface of `bindings.http.HttpCall` that
    the bindings use."""

    def __post_init__(self) -> None:
        exchange = self.exchange
        self.path: RestMatch | None = (
            match_request_line(exchange.method, exchange.target.encode("latin-1"))
            if exchange.binding is Binding.REST
            else None
        )
        """Operation and ids of the request line, if it is REST."""


def make_detail(
    rpc_id: str = "", error_code: int = 0, note: str = "", framing: str = ""
) -> FrameDetail:
    """Return the detail with these members."""
    return rpc_id, error_code, note, framing


def unread_finding(
    event: Undecodable,
    connection: int,
    exchange: int = 0,
    seq: int = -1,
    *,
    is_delivery: bool = False,
) -> Finding:
    """Return the finding about bytes that cannot be decoded. With `is_delivery` the client is an
    agent."""
    sender = Actor.CLIENT if (event.direction == TO_AGENT) is not is_delivery else Actor.AGENT
    evidence = {"offset": str(event.offset), "actor": sender.value}
    return Finding(
        "UNDECODABLE",
        Severity.ERROR,
        event.at,
        unread_note(event),
        connection,
        exchange,
        seq,
        evidence=evidence,
    )


def open_exchange(link: ConnectionLink, event: Head) -> ExchangeState:
    """Return a new exchange for a request head."""
    headers, target = event.headers, event.target.decode("latin-1")
    traceparent, version, extensions = read_call_fields(headers)
    exchange = ExchangeState(
        id=link.shared.next_exchange(),
        connection=link.connection,
        stream=event.stream,
        binding=Binding.OTHER,
        started=event.began,
        method=event.method.decode("latin-1"),
        target=target,
        authority=event.authority.decode("latin-1"),
        http_version=event.version,
        request_headers=headers,
        traceparent=traceparent,
        version_header=version,
        extensions=extensions,
        ours=link.ours,
        agent=link.shared.find_agent(link.facts.deliverer or link.facts.upstream, path_of(target)),
        client=link.facts.client.rpartition(":")[0],
    )
    exchange.bytes_to_agent = event.end - event.start
    return exchange


@lru_cache(256)
def read_call_fields(headers: Headers) -> tuple[str, str, str]:
    """Return `traceparent`, `A2A-Version` and `A2A-Extensions`; empty if absent."""
    extensions = header_text(headers, b"a2a-extensions") or header_text(
        headers, b"x-a2a-extensions"
    )
    return header_text(headers, b"traceparent"), header_text(headers, b"a2a-version"), extensions


def header_text(headers: Headers, name: bytes) -> str:
    """Return the first value of a header field as text; `name` is in lower case."""
    return header_value(headers, name).decode("latin-1").strip()


_HTTP2_ERROR_NAMES = [
    "no_error",
    "protocol_error",
    "internal_error",
    "flow_control_error",
    "settings_timeout",
    "stream_closed",
    "frame_size_error",
    "refused_stream",
    "cancel",
    "compression_error",
    "connect_error",
    "enhance_your_calm",
    "inadequate_security",
    "http_1_1_required",
]


def _http2_error_name(code: int) -> str:
    return _HTTP2_ERROR_NAMES[code] if code < len(_HTTP2_ERROR_NAMES) else str(code)


_FIRST_ENDS = {LifeMeaning.HALF_CLOSED: "client", LifeMeaning.ANSWERED_EARLY: "agent"}
"""`Exchange.half_close` after the end of the first direction."""


def _life_event_of_cut(event: Cut, how: str) -> LifeEvent:
    """Return the event of a cut that ends an exchange as `how`."""
    if event.direction == TO_CLIENT:
        return LifeEvent.AGENT_CUT
    return LifeEvent.CLIENT_GONE if how == "client gone" else LifeEvent.CLIENT_CUT


def exchange_end_of_cut(event: Cut) -> str:
    """Return the actor that broke off first, in the words of `Exchange.how`."""
    if event.how == "lost":
        return "connection lost"
    if event.how in ("proxy stopped", "proxy killed"):
        return event.how
    if event.direction == TO_AGENT:
        return "client cancel" if event.how == "rst_stream" else "client gone"
    return "agent reset" if event.how == "rst_stream" else "agent gone"
