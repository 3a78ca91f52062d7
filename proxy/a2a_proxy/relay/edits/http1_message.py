"""Single HTTP/1.1 messages that concern agent cards: recognise, decode and rewrite them."""

import msgspec

from a2a_proxy.http.h1 import (
    CHUNKED,
    Http1Error,
    decode_chunked,
    header_field,
    parse_request_head,
)
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.trace_context import TraceOrigin, origin_of
from a2a_proxy.relay.edits.card_response import (
    OLD_FRAMING,
    is_card_path,
    make_validator,
    undo_coding,
)
from a2a_proxy.relay.edits.edit import EditFact

_CARD_METHODS = frozenset({"GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard"})
CARD_CALL_HINT = b"Extended"
"""Part of the names of these methods."""
_HTTP2_OFFER = (b"upgrade", b"http2-settings")
_PARENT, _STATE = b"traceparent", b"tracestate"
_TRACE, _STATE_LINE = b"\r\ntrace", b"\r\ntracestate:"


class _RpcCallShape(msgspec.Struct, frozen=True, omit_defaults=True):
    method: str = ""


def may_ask_for_card(begin: bytes) -> bool:
    """Return whether a head that begins like this may belong to a card request."""
    if len(begin) < 4:
        return b"GET ".startswith(begin)
    if not begin.startswith(b"GET "):
        return False
    line, end, _ = begin.partition(b"\r\n")
    return not end or is_card_path(line.split(b" ")[1])


def is_card_call(head: bytes, body: bytes) -> bool:
    """Return whether a request is a JSON-RPC call for the extended card. The body is searched
    first, then parsed."""
    if CARD_CALL_HINT not in body:
        return False
    try:
        if parse_request_head(head)[2] == CHUNKED:
            body = decode_chunked(body)
        return msgspec.json.decode(body, type=_RpcCallShape).method in _CARD_METHODS
    except (ValueError, RecursionError, Http1Error):
        return False


def decode_content(head: bytes, body: bytes) -> bytes | None:
    """Return the body without its content coding, or None if it cannot be decoded within the
    limits."""
    try:
        coding = header_field(head, b"content-encoding") or b""
    except Http1Error:
        return None
    return undo_coding(coding.lower(), body)


def rewrite_head(head: bytes, payload: bytes) -> bytes:
    """Return the head of a response that carries `payload` instead: new length and validator, no
    coding."""
    changes: dict[bytes, bytes | None] = dict.fromkeys((*OLD_FRAMING, b"content-length"))
    if b"\r\netag:" in head.lower():
        changes[b"etag"] = make_validator(payload)
    edited = replace_fields(head, changes)
    return b"%sContent-Length: %d\r\n\r\n" % (edited[:-2], len(payload))


def resize_head(head: bytes, payload: bytes) -> bytes:
    """Return the head of a response that carries `payload` instead, as it is without the proxy:
    only its framing and the digests of the old bytes change."""
    changes: dict[bytes, bytes | None] = dict.fromkeys(OLD_FRAMING)
    length = b"%d" % len(payload)
    if b"\r\ncontent-length:" in head.lower():
        return replace_fields(head, changes | {b"content-length": length})
    return b"%sContent-Length: %s\r\n\r\n" % (replace_fields(head, changes)[:-2], length)


def replace_fields(head: bytes, changes: dict[bytes, bytes | None]) -> bytes:
    """Return the head with new values for some fields (names in lower case); None leaves a field
    out."""
    lines = head[:-4].split(b"\r\n")
    kept = [lines[0]]
    for line in lines[1:]:
        name = line.partition(b":")[0]
        low = name.lower()
        if low not in changes:
            kept.append(line)
        elif (value := changes[low]) is not None:
            kept.append(name + b": " + value)
    return b"\r\n".join(kept) + b"\r\n\r\n"


def leave_out_http2(head: bytes, offset: int, facts: list[EditFact]) -> bytes:
    """Return the head of a request without its offer to continue in HTTP/2, for an editor of HTTP/1
    that has to follow the connection; a proxy need not forward the offer (RFC 9110 7.8). Other
    offers and options stay. Adds the edit to `facts`."""
    if b"h2c" not in head.lower():
        return head
    lines = [(line, *_list_field(line)) for line in head[:-4].split(b"\r\n")]
    offers = {each for _, name, items in lines if name == b"upgrade" for each in items}
    if b"h2c" not in offers:
        return head
    dropped = {
        b"upgrade": {b"h2c"},
        b"connection": {b"http2-settings"} if offers - {b"h2c", b""} else {*_HTTP2_OFFER},
    }
    kept = []
    for line, name, items in lines:
        left = [each for each in items if each not in dropped.get(name, ())]
        if left == items and name != b"http2-settings":
            kept.append(line)
        elif any(left) and name != b"http2-settings":
            field, _, value = line.partition(b":")
            options = (each.strip(b" \t") for each in value.split(b","))
            kept.append(field + b": " + b", ".join(x for x in options if x.lower() in left and x))
    fields = [name.decode() for name in _HTTP2_OFFER]
    facts.append(EditFact(Direction.TO_AGENT, "upgrade", offset, {"fields": fields}))
    return b"\r\n".join(kept) + b"\r\n\r\n"


def _list_field(line: bytes) -> tuple[bytes, list[bytes]]:
    """Return the name of a header field and the items of its list, in lower case."""
    name, _, value = line.lower().partition(b":")
    return name, [each.strip(b" \t") for each in value.split(b",")]


def parse_trace(head: bytes) -> tuple[TraceOrigin, bool]:
    """Return the trace context in a request's head, and whether it has a `tracestate`."""
    low = head.lower()
    if _TRACE not in low:
        return origin_of(()), False
    lines = [line.partition(b":") for line in head.split(b"\r\n")[1:-2]]
    values = [value.strip(b" \t") for name, _, value in lines if name.lower() == _PARENT]
    return origin_of(values), _STATE_LINE in low


def replace_trace(head: bytes, origin: TraceOrigin, after: bytes) -> bytes:
    """Return the head with this `traceparent`: it replaces a valid one, else it is the last field
    and `tracestate` is left out."""
    if origin.trace:
        return replace_fields(head, {_PARENT: after})
    if _TRACE in head.lower():
        head = replace_fields(head, {_PARENT: None, _STATE: None})
    return b"%straceparent: %s\r\n\r\n" % (head[:-2], after)
