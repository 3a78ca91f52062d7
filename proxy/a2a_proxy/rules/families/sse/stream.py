"""Rules about an event stream as a whole (manual/protocol.md "A2A in event streams")."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.finding import Actor, Severity
from a2a_proxy.model.frame import EventKind
from a2a_proxy.model.wire import Headers
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import HTTP, EvidenceScope, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import LargeArtifactUpdate, rest_stream
from a2a_proxy.rules.examples.objects import chunk, send, snapshot, status
from a2a_proxy.rules.state.state_sequence import INTERRUPTED, SECOND_NS, TERMINAL

_STREAM_PATH = "/message:stream"
_EVENTS_TO_COMPLETED = (snapshot("WORKING"), status("COMPLETED"))
_LONG_LINE = 10 << 20
"""Longest line that the Go SDK reads, bytes (manual/protocol.md "SDK fingerprints")."""
_MIN_SILENCE = 5
"""Seconds without an event before the end from which an idle timeout is a likely cause."""
_PROXY_WORDS = (
    "nginx",
    "envoy",
    "haproxy",
    "traefik",
    "varnish",
    "cloudflare",
    "cloudfront",
    "awselb",
    "google frontend",
)
"""Parts of the `Server` field of proxies and load balancers, in lower case."""
_END_WORDS = {
    "eof": "closes the connection",
    "reset": "resets the connection",
    "goaway": "closes the connection (GOAWAY)",
}


@rule(
    "A2A-SSE-011",
    "Stream cut off on the agent's side",
    Severity.WARNING,
    actor=Actor.AGENT,
    section="RFC 9112 8; RFC 9113 8.1",
    hook_points=HookPoint.CLOSED,
    scope=EvidenceScope.EXCHANGE,
    bindings=HTTP,
    also_broken=("A2A-HTTP-016",),
    required_flags=FrameFlag.ODD_END,
    flagged=rest_stream("POST", _STREAM_PATH, send(), snapshot("WORKING"), finish="cut"),
    clean=rest_stream("POST", _STREAM_PATH, send(), *_EVENTS_TO_COMPLETED),
)
def cut_off(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent's side breaks off an event stream (connection reset or closed before the last chunk, RST_STREAM other
    than NO_ERROR) although the stream has shown no terminal or interrupted state, no message and no error. The finding
    names the server in front of the agent if the response shows one (`Via`, `Server`), because that server may have
    ended the stream, and the silence before the end if it was at least five seconds.

    The client does not know the outcome of the task: it must call GetTask or subscribe again. Look for the cause in the
    agent or in a server in front of it, for example a crash or an idle timeout.
    """
    exchange, record = context.exchange, context.record
    if exchange.how not in ("agent reset", "agent gone") or not exchange.streaming or exchange.status != 200:
        return
    if record.state in TERMINAL or record.state in INTERRUPTED or record.final_at or record.errors:
        return
    if record.first is EventKind.MESSAGE or record.abort_cause == "rst_stream no_error":
        return
    how = _END_WORDS.get(record.abort_cause, f"sends {record.abort_cause}" if record.abort_cause else "breaks off")
    last = "before any event" if not record.answers else "before any state"
    last = f"in state {TaskState(record.state).name}" if record.state else last
    silence = (exchange.closed - record.last_at) / SECOND_NS if record.last_at else 0
    if silence >= _MIN_SILENCE:
        last += f", {silence:.1f} s after its last event"
    told = f"the agent's side {how} {last}, without ending the stream"
    if server := _intermediary_field(exchange.response_headers):
        told += f"; a proxy in front of the agent (`{server}`) or the agent itself did so"
    yield RuleFinding(summary=told, value=record.abort_cause)


def _intermediary_field(headers: Headers) -> str:
    """Return the response header field that shows a proxy in front of the agent: `Via: 1.1 google`; empty if there is
    none.
    """
    for name, value in headers:
        low, text = name.lower(), value.decode("latin-1").strip()[:60]
        if low == b"via" and text:
            return f"Via: {text}"
        if low == b"server" and any(word in text.lower() for word in _PROXY_WORDS):
            return f"Server: {text}"
    return ""


@rule(
    "A2A-SSE-013",
    "Event stream may be cached",
    Severity.INFO,
    actor=Actor.AGENT,
    section="RFC 9111 5.2.2; HTML 9.2.7",
    hook_points=HookPoint.HEADS,
    bindings=HTTP,
    flagged=rest_stream("POST", _STREAM_PATH, send(), *_EVENTS_TO_COMPLETED, reply_headers={"Cache-Control": None}),
    clean=rest_stream("POST", _STREAM_PATH, send(), *_EVENTS_TO_COMPLETED),
)
def cacheable(context: RuleContext) -> Iterator[RuleFinding]:
    """The response with an event stream has neither `Cache-Control: no-cache` nor `no-store`.

    Gateways and caches may hold such a response back to store it, and clients then get all events at the end. The agent
    should send `Cache-Control: no-cache`.
    """
    if not context.exchange.streaming or context.media_type != "text/event-stream":
        return
    found = ", ".join(context.response_headers("cache-control")).lower()
    if "no-cache" not in found and "no-store" not in found:
        told = f"Cache-Control is {found!r}" if found else "the response has no Cache-Control"
        yield RuleFinding(summary=f"{told}; an event stream should have `no-cache` or `no-store`", value=found)


@rule(
    "A2A-SSE-014",
    "Event too large for some clients",
    Severity.INFO,
    section="SDK limits",
    bindings=HTTP,
    trigger_flags=FrameFlag.LARGE,
    flagged=rest_stream(
        "POST", _STREAM_PATH, send(), snapshot("WORKING"), LargeArtifactUpdate(5 << 20), status("COMPLETED")
    ),
    clean=rest_stream("POST", _STREAM_PATH, send(), snapshot("WORKING"), chunk("x"), status("COMPLETED")),
)
def oversized(context: RuleContext) -> Iterator[RuleFinding]:
    """The data of one event is larger than 4 MiB, the limit of the JavaScript SDK; if it is over 10 MiB on one line, it
    also exceeds the limit of the Go SDK.

    Such clients fail the stream. The agent should send a part with a `url`, or the artifact in several chunks.
    """
    frame = context.frame
    if context.media_type != "text/event-stream":
        return
    one_line = frame.framing.count("\0") < 2
    limit = "10 MiB per line (Go)" if frame.size > _LONG_LINE and one_line else "4 MiB per event (JavaScript)"
    yield RuleFinding(
        summary=f"an event of {frame.size:,} bytes; some clients read no more than {limit}", value=str(frame.size)
    )
