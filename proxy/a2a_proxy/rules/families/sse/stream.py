"""Rules about an event stream as a whole (manual/protocol.md "A2A in event streams")."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.values import Actor, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import HTTP, EvidenceScope, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rest_stream
from a2a_proxy.rules.examples.objects import send, snapshot, status
from a2a_proxy.rules.facts.stream_end import (
    describe_intermediary,
    describe_last_state,
    is_cut_event_stream,
)

_STREAM_PATH = "/message:stream"
_EVENTS_TO_COMPLETED = (snapshot("WORKING"), status("COMPLETED"))
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
    required_flags=FrameFlag.ODD_END,
    flagged=rest_stream("POST", _STREAM_PATH, send(), snapshot("WORKING"), finish="cut"),
    clean=rest_stream("POST", _STREAM_PATH, send(), *_EVENTS_TO_COMPLETED),
)
def cut_off(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent's side breaks off an event stream (connection reset or closed before the last
    chunk, RST_STREAM other than NO_ERROR) although the stream has shown no terminal or interrupted
    state, no message and no error. The finding names the server in front of the agent if the
    response shows one (`Via`, `Server`), because that server may have ended the stream, and the
    silence before the end if it was at least five seconds.

    The client does not know the outcome of the task: it must call GetTask or subscribe again. Look
    for the cause in the agent or in a server in front of it, for example a crash or an idle
    timeout.
    """
    if not is_cut_event_stream(context):
        return
    cause = context.record.abort_cause
    how = _END_WORDS.get(cause, f"sends {cause}" if cause else "breaks off")
    told = f"the agent's side {how} {describe_last_state(context)}, without ending the stream"
    yield RuleFinding(summary=told + describe_intermediary(context), value=cause)


@rule(
    "A2A-SSE-013",
    "Event stream may be cached",
    Severity.INFO,
    actor=Actor.AGENT,
    section="RFC 9111 5.2.2; HTML 9.2.7",
    hook_points=HookPoint.HEADS,
    bindings=HTTP,
    flagged=rest_stream(
        "POST", _STREAM_PATH, send(), *_EVENTS_TO_COMPLETED, reply_headers={"Cache-Control": None}
    ),
    clean=rest_stream("POST", _STREAM_PATH, send(), *_EVENTS_TO_COMPLETED),
)
def cacheable(context: RuleContext) -> Iterator[RuleFinding]:
    """The response with an event stream has neither `Cache-Control: no-cache` nor `no-store`.

    Gateways and caches may hold such a response back to store it, and clients then get all events
    at the end. The agent should send `Cache-Control: no-cache`.
    """
    if not context.exchange.streaming or context.media_type != "text/event-stream":
        return
    found = ", ".join(context.response_headers("cache-control")).lower()
    if "no-cache" not in found and "no-store" not in found:
        told = f"Cache-Control is {found!r}" if found else "the response has no Cache-Control"
        yield RuleFinding(
            summary=f"{told}; an event stream should have `no-cache` or `no-store`", value=found
        )
