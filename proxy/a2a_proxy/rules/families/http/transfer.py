"""Rules of HTTP itself (RFC 9110, RFC 9112)."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from a2a_proxy.model.values import Actor, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import HTTP, EvidenceScope, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import SENDERS, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rpc, rpc_stream
from a2a_proxy.rules.examples.objects import send, snapshot, status, task
from a2a_proxy.rules.facts.credentials import find_credentials
from a2a_proxy.rules.facts.hosts import host_of, scheme_of
from a2a_proxy.rules.facts.stream_end import is_cut_event_stream

_TASK_PARAMS = {"id": "t1"}
_REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})


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
    `Content-Length`, or the last chunk, are sent. An event stream that the agent's side breaks off
    before the end of its task is A2A-SSE-011 instead.

    The body is incomplete: the receiver may have half a message and must discard it. The sender
    (the agent for responses, the client for requests), or a proxy in between, broke the connection
    off.
    """
    exchange = context.exchange
    if not exchange.http_version.startswith("1") or is_cut_event_stream(context):
        return
    if exchange.how == "agent gone" and exchange.status:
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
        _TASK_PARAMS,
        answer="",
        status=307,
        headers={"Authorization": "Bearer x"},
        reply_headers={"Location": "http://localhost:8000/a2a/"},
    ),
    clean=rpc("GetTask", _TASK_PARAMS, task(), headers={"Authorization": "Bearer x"}),
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
