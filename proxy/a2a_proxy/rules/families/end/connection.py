"""Causes in the connection: faults on purpose, agents that cannot be reached, calls without an
answer, answers of something between client and agent (RFC 9110 15, A2A 1.0 section 8)."""

import re

import msgspec

from a2a_proxy.model.values import FAULT_MARK, Actor, Binding, Finding, FrameKind, Severity
from a2a_proxy.protocol.bindings.other import NO_RESULT
from a2a_proxy.protocol.event import decode_payload
from a2a_proxy.protocol.schema import JSON
from a2a_proxy.rules.define.conditions import CARD, HTTP, NETWORK, RPC
from a2a_proxy.rules.endings.call_facts import SECOND_NS, CallFacts, format_ns
from a2a_proxy.rules.endings.call_index import SENDS
from a2a_proxy.rules.endings.ending import CAUSES, HIGH, LOW, Ending, cause
from a2a_proxy.rules.examples.conversation import CLEAN_SEND, Fields, fetch_card, rest, rpc
from a2a_proxy.rules.examples.objects import agent_reply, send
from a2a_proxy.rules.families.stream.words import STREAMS

_REACH = "a2a-proxy cannot reach the upstream agent "
_WAIT_WORDS = ("no answer within", "timed out")
_TLS_WORDS = ("TLS", "certificate")
_PROTOCOL_WORDS = ("does not speak", "speaks TLS")
_PLAIN_HTTP_WORDS = (b"to HTTPS port", b"HTTP request to an HTTPS server", b"plain HTTP request")
_HTTP2_START = re.compile(r"got '\\x00\\x00.{1,4}\\x04\\x00")
"""The first bytes of HTTP/2, as the decoder of HTTP/1.1 shows them: a SETTINGS frame."""
_LEAST_ERROR = 400
_GATEWAY_STATUSES = frozenset({502, 503, 504})
_OK = 200
_NOT_OF_GATEWAYS = frozenset({401, 403, 404, 405})
"""Statuses with an HTML page that have causes of their own."""
_NOT_MODIFIED = 304
_REDIRECTS = frozenset(range(300, 400)) - {_NOT_MODIFIED}
_JUDGED = RPC | CARD
MIN_TIMEOUT = 1_500_000_000
"""Shortest duration that is taken for a time-out."""
_AT_ONCE = SECOND_NS
"""Time within which a server ends a connection whose protocol it does not speak."""
_SEND_PATH = "/message:send"
_PAGE = "<html><body><h1>504 Gateway Time-out</h1></body></html>"
_HTML: Fields = {"Content-Type": "text/html"}


def _is_judged(call: CallFacts) -> bool:
    return call.exchange.binding in _JUDGED


def _refusal(call: CallFacts) -> tuple[str, str]:
    """Return the address that the proxy could not reach, and why; empty if it did not say so."""
    _, mark, rest_ = call.exchange.error.partition(_REACH)
    if not (call.exchange.ours and mark):
        return "", ""
    where, _, reason = rest_.partition(": ")
    return where, reason


@cause(
    "A2A-END-001",
    "on-purpose",
    "Ended by a fault on purpose",
    Severity.INFO,
    actor=Actor.EITHER,
    section="a2a-proxy: faults",
    flagged=rpc("SendMessage", send(), finish="fault"),
    clean=CLEAN_SEND,
    is_failure=False,
)
def on_purpose(call: CallFacts) -> Ending | None:
    """The call was changed, answered or cut by `--fault`.

    It is no failure: the test wanted it. `check` does not report it.
    """
    marked = [each for each in call.frames if FAULT_MARK in each.note]
    if not marked and "--fault" not in call.exchange.how + call.exchange.error:
        return None
    words = marked[0].note if marked else call.exchange.error or call.exchange.how
    return Ending(
        summary=words,
        next_step="nothing: the fault was asked for with --fault",
        evidence=tuple(call.place(each) for each in marked[:1]),
    )


@cause(
    "A2A-END-002",
    "wrong-protocol",
    "Another protocol than the peer speaks",
    Severity.ERROR,
    actor=Actor.BETWEEN,
    section="1.0 5.8, 8.3.2; RFC 9113 3.3",
    bindings=NETWORK | CARD,
    also_broken=("A2A-HTTP-002",),
    flagged=rpc(
        "SendMessage",
        send(),
        answer="Client sent an HTTP request to an HTTPS server.\n",
        status=400,
        reply_headers={"Content-Type": "text/plain"},
    ),
    clean=CLEAN_SEND,
    explains=("UNDECODABLE", "A2A-HTTP-002"),
)
def wrong_protocol(call: CallFacts) -> Ending | None:
    """The other side speaks another protocol on this port: TLS where plain HTTP was sent or the
    reverse, HTTP/1.1 where gRPC needs HTTP/2, or HTTP/2 without TLS where it needs TLS.

    No call can succeed until the address is corrected. The one who configured the address must act:
    the operator of the proxy with `--upstream https://...` or `--upstream-grpc`, or the owner of
    the card if the URL came from there.
    """
    where, reason = _refusal(call)
    if where and any(word in reason for word in _PROTOCOL_WORDS):
        words, _, hint = reason.partition("; ")
        steps = {
            "it does not speak TLS on this port": f"--upstream http://{where}",
            "HTTP/2": "--upstream-grpc HOST:PORT, with the agent's port for gRPC",
        }
        option = next((each for key, each in steps.items() if key in reason), "")
        return Ending(
            summary=f"{where}: {words}",
            next_step=f"start the proxy with {option}" if option else hint or "correct the address",
        )
    if not _is_judged(call) or call.exchange.ours:
        return None
    body = call.error_body[:2000] if call.exchange.status in (400, 497) else b""
    if any(words in body for words in _PLAIN_HTTP_WORDS):
        upstream = _host(call)
        return Ending(
            summary=f"{upstream} speaks TLS, and the request was sent in plain text",
            next_step=f"start the proxy with --upstream https://{upstream}, or write https in the "
            "card's URL",
        )
    unread = (each.note for each in call.frames if each.kind is FrameKind.UNDECODABLE)
    if any(map(_HTTP2_START.search, unread)):
        upstream = _host(call)
        return Ending(
            summary=f"{upstream} answers with HTTP/2 (a gRPC port), the request was HTTP/1.1",
            next_step=f"start the proxy with --upstream-grpc {upstream}, and --upstream with the "
            "agent's port for HTTP",
        )
    return None


def _probe_command(call: CallFacts, where: str) -> str:
    upstream = call.connection.upstream if call.connection is not None else ""
    scheme = "https" if upstream.startswith("https://") else "http"
    return f"a2a-inspect card --probe {scheme}://{where}"


def _host(call: CallFacts) -> str:
    """Return the address of the upstream."""
    upstream = call.connection.upstream if call.connection is not None else call.exchange.agent
    return upstream.partition("://")[2] or upstream


@cause(
    "A2A-END-003",
    "tls-failed",
    "No TLS with the agent",
    Severity.ERROR,
    actor=Actor.BETWEEN,
    section="1.0 7.1; RFC 8446 6",
    bindings=NETWORK | CARD,
    flagged=rpc("SendMessage", send(), agent_reply(), unreachable="its certificate is self-signed"),
    clean=CLEAN_SEND,
)
def tls_failed(call: CallFacts) -> Ending | None:
    """The proxy cannot establish TLS with the agent, so the call was not sent.

    The agent's certificate is not valid, not trusted on this machine or for another name, or the
    agent asks for a client certificate. The operator of the agent must correct a certificate that
    is not valid; the operator of the proxy must trust a valid one.
    """
    where, reason = _refusal(call)
    if not any(word in reason for word in _TLS_WORDS):
        return None
    option, actor = "correct the agent's certificate; until then", Actor.AGENT
    for words, each in _TLS_OPTIONS.items():
        if words in reason:
            option, actor = f"start the proxy with {each}", Actor.BETWEEN
    without = "" if "handshake" in reason else "; without verification: --upstream-insecure"
    return Ending(
        summary=f"no TLS with {where}: {reason}", next_step=f"{option}{without}", actor=actor
    )


def explain_connection(finding: Finding) -> Ending | None:
    """Return the ending of a connection that failed before its first call, from the decoders'
    finding about it; None if the finding does not explain one."""
    summary, _, step = finding.summary.partition("; ")
    if finding.rule == "HANDSHAKE":
        name = "tls-failed"
    elif finding.rule == "UNDECODABLE":
        name = "wrong-protocol"
    else:
        return None
    return Ending(
        summary=summary,
        next_step=step or "look into the client's log at that time",
        cause=name,
        rule=CAUSES[name].rule,
        severity=finding.severity,
        actor=Actor.CLIENT,
        at=finding.at,
        connection=finding.connection,
    )


_TLS_OPTIONS = {
    "self-signed": "--upstream-ca FILE, with its certificate",
    "not trusted": "--upstream-ca FILE, with the CA's certificate",
    "not for": "a host name of the certificate in --upstream",
    "handshake": "--upstream-cert FILE --upstream-key FILE, if it asks for a client certificate",
}
"""What the operator of the proxy can do, by words of the reason."""


@cause(
    "A2A-END-004",
    "no-connection",
    "No connection to the agent",
    Severity.ERROR,
    actor=Actor.AGENT,
    section="RFC 9110 15.6.3",
    bindings=NETWORK | CARD,
    flagged=rpc("SendMessage", send(), agent_reply(), unreachable="connection refused"),
    clean=CLEAN_SEND,
)
def no_connection(call: CallFacts) -> Ending | None:
    """The proxy cannot connect to the agent, so the call was not sent. Not reported if the same
    call succeeds later.

    The agent does not run, listens elsewhere, its name cannot be resolved, or the network does not
    lead there. The operator of the agent must start it, or correct the address.
    """
    where, reason = _refusal(call)
    if not where:
        return None
    step = "look for a firewall or a wrong route on the way"
    if "refused" in reason and call.session.is_served(call.exchange):
        step = "start the agent again: it has answered other calls of this recording"
    elif "refused" in reason:
        step = "start the agent; if it runs, correct the port of --upstream"
    elif "resolve" in reason:
        step = "correct the host name of --upstream"
    elif not any(words in reason for words in _WAIT_WORDS):
        step = "correct the address of --upstream, or start the agent"
    return Ending(
        summary=f"no connection to {where}: {reason}",
        next_step=step,
        command=_probe_command(call, where),
    )


@cause(
    "A2A-END-005",
    "no-answer",
    "Connection ended without an answer",
    Severity.ERROR,
    actor=Actor.AGENT,
    section="RFC 9112 9.5; RFC 9113 8.1",
    bindings=_JUDGED,
    flagged=rpc("SendMessage", send(), finish="cut"),
    clean=CLEAN_SEND,
    explains=("A2A-HTTP-016", "A2A-GRPC-003", "A2A-STDIO-012", "A2A-STREAM-009"),
)
def no_answer(call: CallFacts) -> Ending | None:
    """The agent's side closes or resets the connection, or its process ends, before the answer or
    the first event is complete, or it ends a stream before any event. Not reported if the same call
    succeeds later.

    The client cannot know whether the call had an effect. Look into the log of the agent at this
    time: usually its process, its worker or a handler ended. If its log has no such request, look
    for a proxy in front of it.
    """
    exchange = call.exchange
    if not _is_judged(call) or exchange.events or exchange.ours:
        return None
    if exchange.how == "complete":
        return _find_empty_stream(call)
    if exchange.error:
        return None
    if not call.by_agent:
        return None
    how = {"agent reset": "reset", "agent exited": "exited"}.get(exchange.how, "closed")
    how = "reset" if call.frames and call.frames[-1].note == "reset" else how
    did = {
        "reset": "the agent's side reset the connection",
        "exited": "the agent's process ended",
        "closed": "the agent's side closed the connection",
    }[how]
    what = "without an answer"
    if exchange.response_started:
        what = "before any event" if exchange.streaming else "in the middle of the answer"
    ending = Ending(
        summary=f"{did} {what}, after {format_ns(call.elapsed)}",
        next_step="look into the agent's log at that time; if the request is not there, into that "
        "of the proxy in front of it",
        remaining=(
            "the agent's process or handler ended",
            "something between ended the connection",
        ),
        decides="whether the agent's log has the request",
        evidence=(call.place(call.frames[-1] if call.frames else None),),
    )
    if exchange.binding is Binding.STDIO:
        step = "run the agent's command alone: does it report an error?"
        return msgspec.structs.replace(ending, next_step=step, remaining=(), decides="")
    alike = call.session.find_alike(call, "unanswered", "elapsed")
    if call.elapsed >= MIN_TIMEOUT and alike.is_timer:
        took = format_ns(call.elapsed)
        return msgspec.structs.replace(
            ending,
            summary=f"{alike.total} calls ended {what} after {took}, on the agent's side: a "
            f"time-out of about {took}",
            next_step="raise that time-out of the gateway or server, or let the agent answer "
            "sooner: with a task, or as a stream",
            remaining=(
                "a proxy or load balancer in front of the agent",
                "a limit of the agent's server",
            ),
            decides="a call to the agent without the part in between",
            actor=Actor.BETWEEN,
            evidence=tuple(each.place for each in alike.calls[:6]),
        )
    has_answered = exchange.agent.partition("/")[0] in call.session.index.answered
    is_new = not (exchange.response_started or exchange.informational or has_answered)
    if is_new and call.elapsed <= _AT_ONCE:
        where = _host(call)
        tls = call.connection is not None and call.connection.upstream.startswith("https://")
        other = "plain HTTP" if tls else "TLS"
        option = f"--upstream {'http' if tls else 'https'}://{where}"
        return msgspec.structs.replace(
            ending,
            next_step=f"if the agent speaks {other} there, start the proxy with {option}; "
            f"otherwise {ending.next_step}",
            remaining=(f"the agent speaks {other} on this port", *ending.remaining),
            confidence=LOW,
        )
    return ending


def _find_empty_stream(call: CallFacts) -> Ending | None:
    """Return the ending of a stream that is complete and holds nothing but comments."""
    exchange = call.exchange
    if not exchange.streaming or exchange.operation not in STREAMS or exchange.status != _OK:
        return None
    if exchange.error and not exchange.error.startswith(NO_RESULT):
        return None
    if not all(each.framing.startswith(":") for each in call.answers):
        return None
    return Ending(
        summary=f"the agent's side ended the stream before any event, after "
        f"{format_ns(call.elapsed)}",
        next_step="look into the agent's log at that time: its handler ended without a result",
        evidence=(call.place(call.last),),
    )


@cause(
    "A2A-END-006",
    "wrong-url",
    "Nothing is served at the URL",
    Severity.ERROR,
    actor=Actor.CLIENT,
    section="1.0 8.3.2, 4.4.6; RFC 9110 15.5.5",
    bindings=HTTP | CARD,
    flagged=fetch_card()
    + rest("POST", _SEND_PATH, send(), "<h1>Not Found</h1>", status=404, reply_headers=_HTML),
    clean=rest("POST", _SEND_PATH, send(), agent_reply()),
)
def wrong_url(call: CallFacts) -> Ending | None:
    """The answer to a call is 404 or 405 and no A2A error, and no call of this binding was answered
    by the agent otherwise: no agent is at this URL. An error if the URL is that of an interface of
    the card, so that the card led the client there; otherwise a warning for the client. Of requests
    for a card, only if no card was found on this host.

    Usually a gateway adds or removes a prefix of the path that the card does not have, or the
    client has the URL of an operation or of the card instead of the interface's. The owner of the
    card must write the URL as clients see it; a client without a card must correct its URL.
    """
    exchange = call.exchange
    if exchange.status not in (404, 405) or exchange.ours or exchange.binding not in HTTP | CARD:
        return None
    if call.session.is_served(exchange) or _has_error_of_agent(call):
        return None
    if exchange.operation not in SENDS and isinstance(decode_payload(call.error_body, JSON), dict):
        return None  # the agent may not know this task, or this operation
    path, status = exchange.target.partition("?")[0], exchange.status
    target = f"{exchange.method if exchange.method.isupper() else 'POST'} {path}"
    if exchange.binding in CARD:
        if has_card(call):
            return None
        probe = _probe_command(call, _host(call)).replace(" --probe", "")
        return Ending(
            summary=f"{target} answers {status}: no card is there",
            next_step="correct the URL in the client, or let the agent serve its card at "
            "/.well-known/agent-card.json",
            command=probe,
            severity=Severity.WARNING,
        )
    probe = _probe_command(call, _host(call))
    for place, declared in call.session.cards.values():
        for each in declared.matching_interfaces(exchange.binding, exchange.dialect):
            if path == each.url_path or path.startswith(f"{each.url_path}/"):
                return Ending(
                    summary=f"{target} answers {status}: nothing is served at {each.path} of the "
                    f"card, {each.url}",
                    next_step=f"correct {each.path} in the card: it must be the URL as the client "
                    "reaches it, with the prefix of the gateway",
                    command=probe,
                    actor=Actor.AGENT,
                    evidence=(place, call.place(call.last)),
                )
    return Ending(
        summary=f"{target} answers {status}: nothing is served there",
        next_step="correct the URL in the client: that of an interface of the agent's card",
        command=probe,
        severity=Severity.WARNING,
    )


def _has_error_of_agent(call: CallFacts) -> bool:
    """Whether the body is an error as a binding of A2A has it, and so not a gateway's."""
    body = decode_payload(call.error_body, JSON)
    if not isinstance(body, dict):
        return False
    return "jsonrpc" in body or isinstance(body.get("error"), dict) or "problem" in call.media_type


def has_card(call: CallFacts) -> bool:
    """Return whether a card was fetched from the host of a call."""
    return any(_host(call) in agent for agent in call.session.cards)


@cause(
    "A2A-END-007",
    "answered-between",
    "Answered by something between client and agent",
    Severity.ERROR,
    actor=Actor.BETWEEN,
    section="RFC 9110 15.6.3, 15.6.4, 15.6.5",
    bindings=NETWORK | CARD,
    flagged=rpc("SendMessage", send(), answer=_PAGE, status=504, reply_headers=_HTML),
    clean=CLEAN_SEND,
    explains=("A2A-HTTP-002", "A2A-GRPC-002", "A2A-ERR-011"),
)
def answered_between(call: CallFacts) -> Ending | None:
    """The answer is a page or a status of a gateway: 502, 503 or 504 without an A2A error, a
    redirection, an HTML page, or, on gRPC, an HTTP status other than 200. Not reported if the same
    call succeeds later.

    The call has probably not reached the agent. The operator of the gateway must act: its upstream
    is down or too slow, or it wants a login that an A2A client cannot do.
    """
    exchange = call.exchange
    if not _is_judged(call) or exchange.ours or not exchange.status:
        return None
    status, server = (
        exchange.status,
        call.response_header(b"server") or call.response_header(b"via"),
    )
    is_page = call.media_type == "text/html" and status not in _NOT_OF_GATEWAYS
    is_status = status in _GATEWAY_STATUSES and not _has_error_of_agent(call)
    is_grpc = exchange.binding is Binding.GRPC and status != 200
    if not (is_page or is_status or is_grpc or status in _REDIRECTS):
        return None
    what = "a page" if is_page else "an answer"
    if status in _REDIRECTS:
        what = f"a redirection to {call.response_header(b'location')[:80] or 'elsewhere'}"
    step = {
        502: "see whether the agent runs: the gateway could not reach it",
        503: "see whether the agent runs: the gateway has no upstream that does",
        504: "raise the gateway's time-out for this agent, or make the agent answer sooner",
    }.get(status)
    if step is None and status >= _LEAST_ERROR:
        step = (
            "look into the agent's log at that time; if the request is not there, into that of "
            "the gateway"
        )
    step = step or "let the client call the agent's own URL, or sign in where the page asks for it"
    by = f" (Server: {server[:40]})" if server else ""
    return Ending(
        summary=f"{what} of a gateway{by} with status {status} in place of the agent's answer",
        next_step=step,
        remaining=("a gateway answered", "the agent's own web server did"),
        decides="whether the agent's log has the request",
        confidence=HIGH if status in (502, 504) or (is_page and status < _LEAST_ERROR) else LOW,
    )
