"""Rules of HTTP itself (RFC 9110, RFC 9112), and about event streams as HTTP responses (A2A 1.0
sections 9.4.2, 11.7; manual/protocol.md "Calls that wait")."""

import re
from collections.abc import Iterator
from datetime import datetime
from urllib.parse import urlsplit

from a2a_proxy.model.values import Actor, Binding, Dialect, FrameKind, Severity
from a2a_proxy.protocol.operations import OPERATIONS, STREAMING_OPERATIONS
from a2a_proxy.rules.context import RuleContext, strip_parameters
from a2a_proxy.rules.define.conditions import HTTP, EvidenceScope, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import SENDERS, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import (
    EventPause,
    fetch_card,
    http,
    json_text,
    rpc,
    rpc_stream,
)
from a2a_proxy.rules.examples.objects import TASK_PARAMS, send, snapshot, status, task
from a2a_proxy.rules.facts.credentials import find_credentials
from a2a_proxy.rules.facts.hosts import host_of, scheme_of
from a2a_proxy.rules.families.http.media import content_types, format_media_type

_EVENT_STREAM_TYPE = "text/event-stream"
_JSON_TYPE = frozenset({"application/json", "application/a2a+json"})
_UNARY_CALL = tuple(each.name for each in OPERATIONS if each.name not in STREAMING_OPERATIONS)
_ACCEPT_TYPES: dict[str, str | None] = {"Accept": _EVENT_STREAM_TYPE}
_REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})


def _json_lines(*results: object) -> str:
    return "".join(
        json_text({"jsonrpc": "2.0", "id": 1, "result": each}) + "\n" for each in results
    )


_STREAM_CALL = json_text(
    {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": send()}
)


@rule(
    "A2A-HTTP-003",
    "Stream is not text/event-stream",
    Severity.ERROR,
    actor=Actor.AGENT,
    section="1.0 9.4.2, 11.7; 0.3 3.3",
    scope=EvidenceScope.EXCHANGE,
    bindings=HTTP,
    operations=STREAMING_OPERATIONS,
    trigger_flags=FrameFlag.FIRST,
    flagged=http(
        "POST",
        "/",
        _STREAM_CALL,
        headers=_ACCEPT_TYPES,
        answer=_json_lines(snapshot(), status("COMPLETED", second=1)),
        reply_headers={"Content-Type": "application/x-ndjson"},
    ),
    clean=rpc_stream("SendStreamingMessage", send(), snapshot(), status("COMPLETED", second=1)),
)
def other_type(context: RuleContext) -> Iterator[RuleFinding]:
    """A streaming call is answered with success, but the content type of the body is neither
    `text/event-stream` nor JSON, or it is JSON for several objects. A single object is judged by
    A2A-HTTP-002 and A2A-HTTP-004, also if it is an error, which needs no stream. The events are
    read and judged nevertheless.

    A2A streams are server-sent events: the client cannot read events in another format. The agent
    must stream `text/event-stream`.
    """
    exchange, kind = context.exchange, strip_parameters(content_types(context)[1])
    if exchange.status // 100 != 2 or kind == _EVENT_STREAM_TYPE:
        return
    if exchange.status in (202, 204, 205) or context.response_header("content-length") == "0":
        return
    if context.frame.kind is FrameKind.ERROR and not context.frame.framing:
        return
    if kind not in _JSON_TYPE or context.frame.kind is FrameKind.EVENT:
        told = (
            f"the content type of the answer to {exchange.operation} is {format_media_type(kind)}, "
            f"it must be "
            f"`{_EVENT_STREAM_TYPE}`"
        )
        yield RuleFinding(summary=told, value=kind)


@rule(
    "A2A-HTTP-004",
    "Streaming call answered with one JSON object",
    Severity.WARNING,
    section="1.0 3.1.2, 9.4.2; 0.3 3.3",
    scope=EvidenceScope.EXCHANGE,
    bindings=HTTP,
    operations=STREAMING_OPERATIONS,
    trigger_flags=FrameFlag.FIRST,
    flagged=fetch_card()
    + rpc("SendStreamingMessage", send(), snapshot("COMPLETED"), headers=_ACCEPT_TYPES),
    clean=fetch_card() + rpc_stream("SendStreamingMessage", send(), snapshot("COMPLETED")),
)
def one_object(context: RuleContext) -> Iterator[RuleFinding]:
    """A streaming call is answered with success and one JSON object instead of an event stream,
    although the agent's card declares streaming, or (low confidence) was not seen.

    The client waits for events, gets none, and does not learn what happens after this answer. The
    agent must answer with an event stream; a client may call SendMessage instead.
    """
    if (
        context.frame.kind is not FrameKind.RESPONSE
        or context.exchange.status // 100 != 2
        or context.media_type not in _JSON_TYPE
    ):
        return
    value = context.value
    if not isinstance(value, dict) or "error" in value:
        return
    if context.binding is Binding.JSONRPC and not isinstance(value.get("result"), dict):
        return
    declared = context.declarations
    if declared is None or declared.streaming:
        told = (
            f"{context.exchange.operation} is answered with one `{context.media_type}` object, it "
            f"must be an event "
            "stream"
        )
        yield RuleFinding(summary=told, is_sure=declared is not None)


@rule(
    "A2A-HTTP-005",
    "Event stream in answer to a call that does not stream",
    Severity.ERROR,
    actor=Actor.AGENT,
    section="1.0 9.4.1; 0.3 7.1",
    hook_points=HookPoint.HEADS,
    scope=EvidenceScope.EXCHANGE,
    bindings=HTTP,
    operations=_UNARY_CALL,
    flagged=rpc_stream(
        "GetTask", TASK_PARAMS, snapshot("COMPLETED"), headers={"Accept": "application/json"}
    ),
    clean=rpc("GetTask", TASK_PARAMS, task()),
)
def stream_for_one(context: RuleContext) -> Iterator[RuleFinding]:
    """A call with a single answer, such as SendMessage or GetTask, is answered with
    `text/event-stream`.

    The client parses the body as one JSON value and fails at the first `data:`. The agent must
    answer with one JSON object.
    """
    if context.exchange.streaming and context.media_type == _EVENT_STREAM_TYPE:
        told = (
            f"the answer to {context.exchange.operation} is `{_EVENT_STREAM_TYPE}`, it must be one "
            f"JSON object"
        )
        yield RuleFinding(summary=told, value=_EVENT_STREAM_TYPE)


@rule(
    "A2A-HTTP-006",
    "Streaming call does not accept event streams",
    Severity.WARNING,
    actor=Actor.CLIENT,
    section="1.0 9.4.2; 0.3 3.3; RFC 9110 12.5.1",
    hook_points=HookPoint.HEADS,
    bindings=HTTP,
    operations=STREAMING_OPERATIONS,
    flagged=rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot("COMPLETED"),
        headers={"Accept": "application/json"},
    ),
    clean=rpc_stream(
        "SendStreamingMessage", send(), snapshot("COMPLETED"), headers={"Accept": "*/*"}
    ),
)
def not_accepted(context: RuleContext) -> Iterator[RuleFinding]:
    """A streaming call has an `Accept` field that does not include `text/event-stream`. A call
    without the field, which accepts everything, is reported as information. Agents of the vendor
    dialect require the field: for them both are errors.

    Servers that respect the field answer 406, or one JSON object instead of a stream. The client
    must send `Accept: text/event-stream`.
    """
    said = context.request_headers("accept")
    if said == [_EVENT_STREAM_TYPE]:
        return
    if any(_accepts_event_stream(item) for field in said for item in field.split(",")):
        return
    severity = (
        Severity.ERROR
        if context.exchange.dialect is Dialect.VENDOR
        else None
        if said
        else Severity.INFO
    )
    told = f"`Accept` is `{', '.join(said)[:80]}`" if said else "`Accept` is missing"
    summary = f"{told}, {context.exchange.operation} is answered with `{_EVENT_STREAM_TYPE}`"
    yield RuleFinding(
        summary=summary, value=", ".join(said), severity=severity, seq=request_seq(context)
    )


def _accepts_event_stream(item: str) -> bool:
    kind, _, parameters = item.strip().lower().partition(";")
    refused = re.search(r"\bq\s*=\s*0(\.0*)?\s*(;|$)", parameters) is not None
    return kind.strip() in (_EVENT_STREAM_TYPE, "text/*", "*/*") and not refused


def request_seq(context: RuleContext) -> int:
    """Return the position of the request; -1 without one, for the exchange as a whole."""
    return context.request.seq if context.request is not None else -1


_MIN_SPREAD = 2.0
"""Seconds between the timestamps of events that arrive together, from which on they count as held
back."""
_MIN_EVENTS = 64
"""Number of updates of a burst that are checked."""
_TIMESTAMP = re.compile(rb'"timestamp"\s*:\s*"([^"]{19,40})"')


@rule(
    "A2A-HTTP-019",
    "Compressed or buffered event stream",
    Severity.WARNING,
    actor=Actor.AGENT,
    section="1.0 9.4.2; 0.3 3.3; WHATWG 9.2",
    hook_points=(HookPoint.HEADS, HookPoint.ANSWER),
    scope=EvidenceScope.EXCHANGE,
    bindings=HTTP,
    operations=STREAMING_OPERATIONS,
    trigger_flags=FrameFlag.TOGETHER,
    flagged=rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot(),
        EventPause(5),
        status("WORKING", second=1),
        status("WORKING", second=3),
        status("COMPLETED", second=5),
    ),
    clean=rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot(),
        status("WORKING", second=0),
        EventPause(5),
        status("COMPLETED", second=5),
    ),
)
def held_back(context: RuleContext) -> Iterator[RuleFinding]:
    """An event stream has a `Content-Encoding`; or at least three status updates arrive together,
    two seconds or more after the call, with timestamps that are as far apart (low confidence,
    because it trusts the agent's timestamps): something on the way collected them.

    Compressors and buffering servers hold events back until a block is full, so the client sees
    progress late. Turn off compression and buffering for event streams in the agent's server and in
    every proxy on the way.
    """
    if context.frame_or_none is None:
        coding = (
            context.response_header("content-encoding").lower()
            if context.exchange.streaming
            else ""
        )
        if coding not in ("", "identity"):
            yield RuleFinding(
                summary=f"the event stream is compressed (`Content-Encoding: {coding[:40]}`)",
                value=coding,
            )
        return
    # A new subscriber may receive earlier events all at once.
    if context.operation == "SendStreamingMessage":
        yield from _check_burst(context)


def _check_burst(context: RuleContext) -> Iterator[RuleFinding]:
    record = context.record
    burst = record.writable_notes().setdefault("burst", {"stamp": "", "count": 0})
    if burst["count"] >= _MIN_EVENTS:
        return
    found = _TIMESTAMP.search(context.frame.payload)
    if found is None:
        return
    stamp = found.group(1).decode("ascii", "replace")
    burst["count"] += 1
    burst["stamp"] = burst["stamp"] or stamp
    apart = _seconds_between(burst["stamp"], stamp)
    if burst["count"] >= 3 and apart >= _MIN_SPREAD:
        waited = (record.broken_silence - record.started) / 1e9
        told = f"{burst['count']} status updates arrived together {waited:.1f} s after the call"
        yield RuleFinding(
            summary=f"{told}, but their timestamps are {apart:.1f} s apart", is_sure=False
        )
        burst["count"] = _MIN_EVENTS


def _seconds_between(one: str, other: str) -> float:
    """Return the seconds between two timestamps, or 0 if one of them cannot be parsed."""
    try:
        first, second = (
            datetime.fromisoformat(each.replace("Z", "+00:00")) for each in (one, other)
        )
        return (second - first).total_seconds()
    except (ValueError, TypeError):
        return 0.0


@rule(
    "A2A-HTTP-016",
    "Body ends before its length",
    Severity.WARNING,
    section="RFC 9112 8",
    hook_points=HookPoint.CLOSED,
    scope=EvidenceScope.EXCHANGE,
    bindings=HTTP,
    required_flags=FrameFlag.ODD_END,
    flagged=rpc_stream(
        "SendStreamingMessage", send(), snapshot(), status("COMPLETED", second=1), finish="cut"
    ),
    clean=rpc_stream("SendStreamingMessage", send(), snapshot(), status("COMPLETED", second=1)),
)
def ends_early(context: RuleContext) -> Iterator[RuleFinding]:
    """The sender of an HTTP/1 body closes or resets the connection before all bytes of
    `Content-Length`, or the last chunk, are sent. Not judged is an event stream that the
    agent's side breaks off before the end of its task: its ending says so.

    The body is incomplete: the receiver may have half a message and must discard it. The sender
    (the agent for responses, the client for requests), or a proxy in between, broke the connection
    off.
    """
    exchange = context.exchange
    if not exchange.http_version.startswith("1"):
        return
    if exchange.how == "agent gone" and exchange.status and not context.is_stream_unfinished:
        side, length, coding = (
            "response",
            context.response_header("content-length"),
            context.response_header("transfer-encoding"),
        )
    elif exchange.how == "client gone" and not exchange.request_ended:
        side, length, coding = (
            "request",
            context.request_header("content-length"),
            context.request_header("transfer-encoding"),
        )
    else:
        return
    if coding:
        yield RuleFinding(
            summary=f"the {side} ends before its last chunk: the body is incomplete",
            actor=SENDERS[side],
        )
    elif length:
        yield RuleFinding(
            summary=f"the {side} ends before the {length[:20]} bytes of its `Content-Length`",
            value=length,
            actor=SENDERS[side],
        )


@rule(
    "A2A-HTTP-017",
    "Call with credentials is redirected",
    Severity.WARNING,
    actor=Actor.AGENT,
    section="1.0 13.4; RFC 9110 15.4",
    hook_points=HookPoint.HEADS,
    scope=EvidenceScope.EXCHANGE,
    bindings=HTTP,
    required_flags=FrameFlag.ODD_HEAD,
    flagged=rpc(
        "GetTask",
        TASK_PARAMS,
        answer="",
        status=307,
        headers={"Authorization": "Bearer x"},
        reply_headers={"Location": "http://localhost:8000/a2a/"},
    ),
    clean=rpc("GetTask", TASK_PARAMS, task(), headers={"Authorization": "Bearer x"}),
)
def redirected(context: RuleContext) -> Iterator[RuleFinding]:
    """A call that carries credentials is answered with a redirect. A redirect to another host, or
    from https to http, is an error.

    Clients that follow it send the credentials to the new location, or omit them and get 401; a
    POST may become a GET. The agent should answer calls at the URL of its card, or the card (or the
    client's configuration) should have the final URL.
    """
    exchange = context.exchange
    if exchange.status not in _REDIRECT_STATUSES:
        return
    place = context.response_header("location")
    found = find_credentials(exchange, context.declarations)
    if not place or not found:
        return
    host, worse = _location_host(place), ""
    if host and host not in (host_of(exchange.authority), host_of(context.record.upstream)):
        worse = " to another host"
    elif scheme_of(place) == "http" and scheme_of(context.record.upstream) == "https":
        worse = " from https to http"
    told = (
        f"a call with {found[0]} is redirected{worse}: {exchange.status} to "
        f"{_location_without_query(place)}"
    )
    yield RuleFinding(
        summary=told,
        value=_location_without_query(place),
        severity=Severity.ERROR if worse else None,
    )


def _location_host(place: str) -> str:
    """Return the host of a location, or an empty string if it stays on the same host."""
    if place.startswith("//"):
        return host_of(place[2:])
    return host_of(place) if "://" in place.partition("?")[0] else ""


def _location_without_query(place: str) -> str:
    """Return a location without its query, which may contain secrets."""
    try:
        parts = urlsplit(place)
    except ValueError:
        return place.partition("?")[0][:100]
    return (
        f"{parts.scheme}://{parts.netloc}{parts.path}"[:100] if parts.netloc else parts.path[:100]
    )
