"""Event streams as HTTP responses (A2A 1.0 sections 9.4.2, 11.7; manual/protocol.md "Calls that wait")."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from a2a_proxy.model.exchange import Binding, Dialect
from a2a_proxy.model.finding import Severity
from a2a_proxy.model.frame import FrameKind
from a2a_proxy.protocol.operations import OPERATIONS, STREAMING_OPERATIONS
from a2a_proxy.rules.context import RuleContext, media_type
from a2a_proxy.rules.define.rule import HTTP, EvidenceScope, FrameFlag, HookPoint, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import EventPause, fetch_card, http, json_text, rpc, rpc_stream
from a2a_proxy.rules.examples.objects import send, snapshot, status, task
from a2a_proxy.rules.families.http.media import named, types

_EVENTS = "text/event-stream"
_JSON = frozenset({"application/json", "application/a2a+json"})
_UNARY = tuple(each.name for each in OPERATIONS if each.name not in STREAMING_OPERATIONS)
_GET = {"id": "t1"}
_ACCEPTS: dict[str, str | None] = {"Accept": _EVENTS}


def _as_lines(*results: object) -> str:
    return "".join(json_text({"jsonrpc": "2.0", "id": 1, "result": each}) + "\n" for each in results)


_CALL = json_text({"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": send()})


@rule(
    "A2A-HTTP-003",
    "A stream is not text/event-stream",
    Severity.ERROR,
    section="1.0 9.4.2, 11.7",
    moment=HookPoint.HEADS,
    scope=EvidenceScope.EXCHANGE,
    bindings=HTTP,
    operations=STREAMING_OPERATIONS,
    flagged=http(
        "POST",
        "/",
        _CALL,
        headers=_ACCEPTS,
        answer=_as_lines(snapshot(), status("COMPLETED", second=1)),
        reply_headers={"Content-Type": "application/x-ndjson"},
    ),
    clean=rpc_stream("SendStreamingMessage", send(), snapshot(), status("COMPLETED", second=1)),
)
def other_type(see: RuleContext) -> Iterator[RuleFinding]:
    """A streaming call is answered with success, and a body that is neither `text/event-stream` nor JSON.

    A2A streams are server-sent events; the client reads no event from another format.
    """
    exchange, kind = see.exchange, media_type(types(see)[1])
    if exchange.status // 100 != 2 or kind == _EVENTS or kind in _JSON:
        return
    if exchange.status not in (202, 204, 205) and see.field("content-length") != "0":
        told = f"the content type of the answer to {exchange.operation} is {named(kind)}, it must be `{_EVENTS}`"
        yield RuleFinding(summary=told, value=kind)


@rule(
    "A2A-HTTP-004",
    "A streaming call is answered by one JSON object",
    Severity.WARNING,
    section="1.0 3.1.2, 9.4.2",
    scope=EvidenceScope.EXCHANGE,
    bindings=HTTP,
    operations=STREAMING_OPERATIONS,
    when=FrameFlag.FIRST,
    flagged=fetch_card() + rpc("SendStreamingMessage", send(), snapshot("COMPLETED"), headers=_ACCEPTS),
    clean=fetch_card() + rpc_stream("SendStreamingMessage", send(), snapshot("COMPLETED")),
)
def one_object(see: RuleContext) -> Iterator[RuleFinding]:
    """A streaming call is answered with success by one JSON object in place of an event stream, by an agent whose card
    declares streaming, or whose card was not seen.

    The client waits for events and gets none; what happens after this answer it never learns.
    """
    if see.frame.kind is not FrameKind.RESPONSE or see.exchange.status // 100 != 2 or see.media_type not in _JSON:
        return
    value = see.value
    if not isinstance(value, dict) or "error" in value:
        return
    if see.binding is Binding.JSONRPC and not isinstance(value.get("result"), dict):
        return
    declared = see.declared
    if declared is None or declared.streaming:
        told = f"{see.exchange.operation} is answered by one `{see.media_type}` object, it must be a stream of events"
        yield RuleFinding(summary=told, sure=declared is not None)


@rule(
    "A2A-HTTP-005",
    "A call that does not stream is answered by an event stream",
    Severity.ERROR,
    section="1.0 9.4.1",
    moment=HookPoint.HEADS,
    scope=EvidenceScope.EXCHANGE,
    bindings=HTTP,
    operations=_UNARY,
    flagged=rpc_stream("GetTask", _GET, snapshot("COMPLETED"), headers={"Accept": "application/json"}),
    clean=rpc("GetTask", _GET, task()),
)
def stream_for_one(see: RuleContext) -> Iterator[RuleFinding]:
    """A call that has one answer, such as SendMessage or GetTask, is answered as `text/event-stream`.

    The client reads the body as one JSON value, and fails on the first `data:`.
    """
    if see.exchange.streaming and see.media_type == _EVENTS:
        told = f"the answer to {see.exchange.operation} is `{_EVENTS}`, it must be one JSON object"
        yield RuleFinding(summary=told, value=_EVENTS)


@rule(
    "A2A-HTTP-006",
    "A streaming call does not accept event streams",
    Severity.WARNING,
    section="1.0 9.4.2; RFC 9110 12.5.1",
    moment=HookPoint.HEADS,
    bindings=HTTP,
    operations=STREAMING_OPERATIONS,
    flagged=rpc_stream("SendStreamingMessage", send(), snapshot("COMPLETED"), headers={"Accept": "application/json"}),
    clean=rpc_stream("SendStreamingMessage", send(), snapshot("COMPLETED"), headers={"Accept": "*/*"}),
)
def not_accepted(see: RuleContext) -> Iterator[RuleFinding]:
    """A streaming call has an `Accept` field that takes no `text/event-stream`; one without the field, which takes
    everything, is told as information. Agents of the vendor dialect require the field: there both are errors.

    Servers that heed the field answer 406, or one JSON object in place of a stream.
    """
    said = see.asked_fields("accept")
    if said == [_EVENTS]:
        return
    if any(_accepts(item) for field in said for item in field.split(",")):
        return
    severity = Severity.ERROR if see.exchange.dialect is Dialect.VENDOR else None if said else Severity.INFO
    told = f"`Accept` is `{', '.join(said)[:80]}`" if said else "`Accept` is missing"
    summary = f"{told}, {see.exchange.operation} is answered as `{_EVENTS}`"
    yield RuleFinding(summary=summary, value=", ".join(said), severity=severity, seq=_request(see))


def _accepts(item: str) -> bool:
    kind, _, parameters = item.strip().lower().partition(";")
    refused = re.search(r"\bq\s*=\s*0(\.0*)?\s*(;|$)", parameters) is not None
    return kind.strip() in (_EVENTS, "text/*", "*/*") and not refused


def _request(see: RuleContext) -> int:
    return see.request.seq if see.request is not None else -1


_SPREAD = 2.0
"""How far apart, s, it was written what came together."""
_ENOUGH = 64
"""Updates of a burst that are looked at."""
_STAMP = re.compile(rb'"timestamp"\s*:\s*"([^"]{19,40})"')


@rule(
    "A2A-HTTP-019",
    "A compressed or buffered event stream",
    Severity.WARNING,
    section="1.0 9.4.2; WHATWG 9.2",
    moment=(HookPoint.HEADS, HookPoint.ANSWER),
    scope=EvidenceScope.EXCHANGE,
    bindings=HTTP,
    operations=STREAMING_OPERATIONS,
    when=FrameFlag.TOGETHER,
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
def held_back(see: RuleContext) -> Iterator[RuleFinding]:
    """An event stream has a `Content-Encoding`; or three status updates and more come at once, two seconds and more
    after the call, with timestamps as far apart: something on the way collected them. The latter is less sure, for it
    trusts the agent's timestamps.

    Compressors and buffering servers hold events back until a block is full, so what should be seen live comes late.
    """
    if see.shown is None:
        coding = see.field("content-encoding").lower() if see.exchange.streaming else ""
        if coding not in ("", "identity"):
            yield RuleFinding(summary=f"the event stream is encoded as `{coding[:40]}`", value=coding)
        return
    # A new subscriber may be told at once what happened before.
    if see.operation == "SendStreamingMessage":
        yield from _burst(see)


def _burst(see: RuleContext) -> Iterator[RuleFinding]:
    track = see.track
    burst = track.remember().setdefault("burst", {"stamp": "", "count": 0})
    if burst["count"] >= _ENOUGH:
        return
    found = _STAMP.search(see.frame.payload)
    if found is None:
        return
    stamp = found.group(1).decode("ascii", "replace")
    burst["count"] += 1
    burst["stamp"] = burst["stamp"] or stamp
    apart = _apart(burst["stamp"], stamp)
    if burst["count"] >= 3 and apart >= _SPREAD:
        waited = (track.broken_silence - track.started) / 1e9
        told = f"{burst['count']} status updates came at once {waited:.1f} s after the call"
        yield RuleFinding(summary=f"{told}, their timestamps are {apart:.1f} s apart", sure=False)
        burst["count"] = _ENOUGH


def _apart(one: str, other: str) -> float:
    """Seconds between two timestamps; 0 where they cannot be read."""
    try:
        first, second = (datetime.fromisoformat(each.replace("Z", "+00:00")) for each in (one, other))
        return (second - first).total_seconds()
    except (ValueError, TypeError):
        return 0.0
