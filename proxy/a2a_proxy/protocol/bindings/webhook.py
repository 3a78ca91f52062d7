"""Push notifications: the agent POSTs events to a URL that the client configured (A2A 1.0 section
4.3.3, Q-26).

The agent is the client of the connection, so its events travel in the direction TO_AGENT.
"""

from a2a_proxy.model.values import Dialect, EventKind, FrameKind
from a2a_proxy.protocol.bindings import other
from a2a_proxy.protocol.call import TO_AGENT, TO_CLIENT, ByteSpan, ExchangeDecoder, Out, make_detail
from a2a_proxy.protocol.dialect import dialect_of_result, dialect_with_generation
from a2a_proxy.protocol.errors import header_value
from a2a_proxy.protocol.json_shapes import UNREADABLE_ERRORS, ResultShape, decode_result
from a2a_proxy.protocol.json_summary import summarise_leniently, summarise_result
from a2a_proxy.protocol.schema import JSON
from a2a_proxy.protocol.summary import NO_SUMMARY, Summary

_PUSHED_EVENTS = frozenset(
    {EventKind.TASK, EventKind.MESSAGE, EventKind.STATUS, EventKind.ARTIFACT}
)


def recognise_push(call: ExchangeDecoder, data: bytes) -> bool:
    """Return whether the request is a push notification. If so, its agent is the agent with a
    push configuration of its URL, unless several agents have such a configuration.

    Its body must be an A2A object; a bare object needs a second sign: the token header, `kind`, or
    a URL from a push configuration. With both the header and the URL it may be any object.
    """
    exchange = call.exchange
    if exchange.method != "POST":
        return False
    has_token = bool(header_value(exchange.request_headers, b"x-a2a-notification-token"))
    agent = call.link.shared.agent_of_push_url(exchange.authority, exchange.target)
    if not is_pushed_event(data, has_token=has_token, is_known=agent is not None):
        return False
    if agent:
        exchange.agent, exchange.is_deliverer_known = agent, True
    return True


def is_pushed_event(data: bytes, *, has_token: bool, is_known: bool = False) -> bool:
    """Whether the body of a POST is a push notification; `is_known`: a push configuration named its
    URL."""
    result, summary = _decode_event(data)
    if result is None:
        return False
    if summary[0] not in _PUSHED_EVENTS or not (summary[1] or summary[3]):
        return has_token and is_known
    return (
        has_token
        or is_known
        or dialect_of_result(result, "") is Dialect.V1_0
        or result.kind is not None
    )


def _decode_event(data: bytes) -> tuple[ResultShape | None, Summary]:
    try:
        result = decode_result(data)
        return result, summarise_result(result, streaming=False)
    except UNREADABLE_ERRORS:
        return None, summarise_leniently(None, streaming=False)


def read_request(call: ExchangeDecoder, body: ByteSpan, out: Out) -> None:
    """Emit the event."""
    result, summary = _decode_event(body.data)
    exchange = call.exchange
    if result is not None:
        shown = dialect_of_result(result, "")
        exchange.dialect = (
            shown
            if shown is not Dialect.UNKNOWN
            else Dialect.V0_3
            if result.kind
            else Dialect.UNKNOWN
        )
    if summary[6]:
        exchange.dialect = dialect_with_generation(exchange.dialect)
    call.emit_frame(out, TO_AGENT, FrameKind.EVENT, body, JSON, summary)


def read_response(call: ExchangeDecoder, body: ByteSpan, out: Out, framing: str = "") -> None:
    """Emit the receiver's response, which is not A2A; an error status makes it an error."""
    exchange = call.exchange
    if exchange.status >= 400:
        other.read_response(call, body, out, framing)
        return
    schema = other.schema_for(exchange.response_headers, body)
    call.emit_frame(
        out,
        TO_CLIENT,
        FrameKind.OTHER,
        body,
        schema,
        NO_SUMMARY,
        make_detail(note=f"status {exchange.status}", framing=framing),
    )
