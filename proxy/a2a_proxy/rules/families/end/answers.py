"""Causes in the agent's answer: credentials, versions, containers and errors (A2A 1.0 sections
3.3.2, 3.6, 7.4)."""

from collections.abc import Sequence

from a2a_proxy.model.values import (
    CARD_BINDINGS,
    Actor,
    Binding,
    Exchange,
    Frame,
    FrameKind,
    Severity,
)
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.bindings.other import ARRAY, INSIDE, NO_RESULT
from a2a_proxy.protocol.errors import GRPC_STATUS_NAMES, header_value
from a2a_proxy.protocol.event import decode_payload
from a2a_proxy.protocol.schema import JSON
from a2a_proxy.protocol.text import text_of_body
from a2a_proxy.rules.define.conditions import CARD, NETWORK, RPC
from a2a_proxy.rules.endings.call_facts import ACTIVE, CallFacts
from a2a_proxy.rules.endings.call_index import SENDS
from a2a_proxy.rules.endings.ending import LOW, Ending, cause
from a2a_proxy.rules.examples.conversation import (
    CLEAN_SEND,
    Fields,
    fetch_card,
    json_text,
    rpc,
    rpc_error,
    rpc_stream,
)
from a2a_proxy.rules.examples.objects import (
    TASK_PARAMS,
    Json,
    agent_reply,
    card,
    send,
    snapshot,
    status,
)
from a2a_proxy.rules.facts.credentials import find_credentials
from a2a_proxy.rules.families.end.connection import has_card
from a2a_proxy.rules.families.sse.blocks import BYTE_ORDER_MARK, DATA_MARK, is_json_sequence
from a2a_proxy.rules.families.stream.words import STREAMS
from a2a_proxy.rules.families.ver.version import parse_declared_version, parse_version
from a2a_proxy.rules.state.card_declarations import OfferedInterface
from a2a_proxy.wire.json_sequence import JsonSequence
from a2a_proxy.wire.sse import SseEvent

_UNAUTHENTICATED = (401, 403)
_GRPC_UNAUTHENTICATED = (16, 7)
_NOT_RPC = "HTTP 200"
"""Begin of the error of a call whose answer is no JSON-RPC."""
_NO_RESULT = (NO_RESULT, "HTTP 2", "events without")
"""Begins of the errors of calls that have an answer without an error and without a result."""
_ONE_OBJECT, _ONE_ERROR = "one JSON object", "a JSON error"
_CONTAINER_STEPS = {
    "text/event-stream": "send each object as an event: `data: {...}` and an empty line",
    "application/json": "send one JSON object with `Content-Type: application/json`",
    "application/grpc": "send protobuf messages, each behind its length, as `application/grpc`; or "
    "look for a server that does not speak gRPC at this address",
}
"""What to do, by the media type that is due."""
_INSIDE = "inside "
"""Begin of the note of an answer that is in a text."""
_JSON_TYPES = frozenset({"application/json", "application/a2a+json"})
_ERROR_STEPS = {
    "TASK_NOT_CANCELABLE": "nothing: the task has ended, or cannot be cancelled",
    "TASK_NOT_FOUND": "use a task id that this agent has returned; it may have forgotten it",
    "METHOD_NOT_FOUND": "leave the operation out: the agent does not offer it",
    "UNSUPPORTED_OPERATION": "leave the operation out: the agent does not offer it, or not for a "
    "task in this state",
    "UNIMPLEMENTED": "leave the operation out: the agent does not offer it",
    "PUSH_NOTIFICATION_NOT_SUPPORTED": "use a stream or GetTask: the agent sends no notifications",
    "TASK_GENERATION_MISMATCH": "call GetTask, and repeat the request for the task as it is now",
}
"""What to do, by the name of the error."""
_ERROR_WORDS = {"task not found": "TASK_NOT_FOUND", "cannot be cancel": "TASK_NOT_CANCELABLE"}
"""Errors by their words: before 1.0, REST and gRPC have no names for them."""
_SERVER_ERRORS = frozenset({-32603, *range(500, 600)})
_CANCELLED, _DEADLINE_EXCEEDED, _EXHAUSTED = map(
    GRPC_STATUS_NAMES.index, ("CANCELLED", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED")
)
_WAIT = frozenset({429})
"""Statuses that ask the client to wait."""
_GRPC_SERVER_ERRORS = frozenset({2, 13, 14, 15})
_KEY_CARD = fetch_card(
    card(
        securitySchemes={"key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}}},
        securityRequirements=[{"schemes": {"key": {"list": []}}}],
    )
)
_KEY: Fields = {"X-Key": "k-1234567890"}
_ASK: Fields = {"WWW-Authenticate": "ApiKey", "Content-Type": "text/plain"}


def _result_line(result: Json) -> str:
    return f"{json_text({'jsonrpc': '2.0', 'id': 1, 'result': result})}\n"


def _is_refused(call: CallFacts) -> bool:
    exchange = call.exchange
    if exchange.ours or exchange.binding not in NETWORK | CARD:
        return False
    return exchange.status in _UNAUTHENTICATED or exchange.grpc_status in _GRPC_UNAUTHENTICATED


def _declared(call: CallFacts) -> str:
    """Return what the card declares: `header X-Key (scheme key)`."""
    declared = call.declarations
    if declared is None:
        return ""
    schemes = declared.schemes
    asked = {name for names in declared.required for name in names} or set(schemes)
    places = {
        name: f"{each.place} {each.name}" if each.kind == "apiKey" else f"{each.kind} {each.name}"
        for name, each in schemes.items()
        if name in asked
    }
    return ", ".join(f"{place.strip()} (scheme {name})" for name, place in places.items())


@cause(
    "A2A-END-008",
    "no-credentials",
    "Refused, because the declared credentials are absent",
    Severity.WARNING,
    actor=Actor.CLIENT,
    section="1.0 7.3, 7.4; 0.3 4.4",
    bindings=NETWORK | CARD,
    flagged=_KEY_CARD
    + rpc("SendMessage", send(), answer="missing key", status=401, reply_headers=_ASK),
    clean=_KEY_CARD + rpc("SendMessage", send(), agent_reply(), headers=_KEY),
    explains=("A2A-AUTH-007",),
)
def no_credentials(call: CallFacts) -> Ending | None:
    """The agent refuses a call (401, 403, or the gRPC status UNAUTHENTICATED or PERMISSION_DENIED)
    that does not carry the credentials that its card declares: none, or those of another scheme.

    The client must read the security schemes of the card, obtain a credential out of band, and send
    it as declared.
    """
    if not _is_refused(call):
        return None
    declared = call.declarations
    found = [
        each
        for each in find_credentials(call.headed, declared)
        if each.location not in ("cookie", "userinfo")
    ]
    schemes = list(declared.schemes.values()) if declared is not None else []
    if any(each.fits_scheme(scheme) for each in found for scheme in schemes):
        return None
    if found and not schemes:
        return None
    wanted = _declared(call)
    has = f"the request has {', '.join(map(str, found))}" if found else "the request has none"
    summary = f"the card declares {wanted}, {has}" if wanted else f"refused, {has}"
    place = (call.card.place,) if call.card is not None else ()
    return Ending(
        summary=summary,
        next_step=f"send the credential as the card declares it: {wanted}"
        if wanted
        else "send credentials; the agent's card should declare which",
        evidence=(*place, call.place(call.last)),
    )


@cause(
    "A2A-END-009",
    "credentials-refused",
    "Credentials refused",
    Severity.WARNING,
    actor=Actor.CLIENT,
    section="1.0 7.4; 0.3 4.4",
    bindings=NETWORK | CARD,
    flagged=_KEY_CARD
    + rpc("SendMessage", send(), answer="wrong key", status=401, reply_headers=_ASK, headers=_KEY),
    clean=_KEY_CARD + rpc("SendMessage", send(), agent_reply(), headers=_KEY),
)
def credentials_refused(call: CallFacts) -> Ending | None:
    """The agent refuses a call that carries credentials of the declared kind.

    The credential is wrong, expired, or not allowed to do this. The client must obtain another one;
    the agent says which with 401 or UNAUTHENTICATED (who are you) or 403 or PERMISSION_DENIED (you
    may not).
    """
    if not _is_refused(call):
        return None
    exchange = call.exchange
    found = find_credentials(call.headed, call.declarations)
    used = ", ".join(dict.fromkeys(str(each).partition(":")[0] for each in found))
    forbidden = exchange.status == _UNAUTHENTICATED[1] or exchange.grpc_status == 7
    return Ending(
        summary=f"the agent refuses {used} of the request: {exchange.error}",
        next_step="ask the owner of the agent for the permission"
        if forbidden
        else "obtain another credential: this one is wrong or expired",
    )


def _is_called(offer: OfferedInterface, exchange: Exchange) -> bool:
    """Whether a call is for this interface of a card, by its binding and its URL."""
    if offer.binding != CARD_BINDINGS.get(exchange.binding):
        return False
    path, base = exchange.target.partition("?")[0].rstrip("/"), offer.url_path.rstrip("/")
    return exchange.binding is Binding.GRPC or (
        path.startswith(f"{base}/") if exchange.binding is Binding.REST else path == base
    )


@cause(
    "A2A-END-010",
    "version-refused",
    "Protocol version refused",
    Severity.WARNING,
    actor=Actor.CLIENT,
    section="1.0 3.6.2",
    flagged=rpc(
        "SendMessage",
        send(),
        error=rpc_error(-32009, "VERSION_NOT_SUPPORTED", "use 0.3"),
    ),
    clean=CLEAN_SEND,
    explains=("A2A-VER-005",),
)
def version_refused(call: CallFacts) -> Ending | None:
    """The agent answers with VersionNotSupportedError.

    The client speaks a version that the agent does not. The client must choose an interface of the
    card with a version that it supports, and name that version in `A2A-Version`. If the card that
    it had offers this version at the URL that it called, the agent must act.
    """
    exchange = call.exchange
    if "VERSION_NOT_SUPPORTED" not in exchange.error:
        return None
    named = exchange.version_header
    sent = f"version {named}" if named else "a call without A2A-Version, which means 0.3"
    card = call.card
    interfaces = card.declarations.interfaces if card is not None else ()
    offered = sorted({each.version for each in interfaces})
    is_known = card is not None and card.place[0] < exchange.id
    version = parse_version(named or "0.3")
    if version is not None and any(
        is_known and parse_declared_version(each.version) == version and _is_called(each, exchange)
        for each in interfaces
    ):
        return Ending(
            summary=f"the agent refuses {sent}, which its card offers there",
            next_step="accept the version, or remove it from the card",
            actor=Actor.AGENT,
        )
    more = f"; the card offers {', '.join(filter(None, offered))}" if any(offered) else ""
    return Ending(
        summary=f"the agent refuses {sent}{more}",
        next_step="name a version that the card offers, or use a client that speaks it",
    )


@cause(
    "A2A-END-011",
    "wrong-container",
    "Answer in the wrong container",
    Severity.ERROR,
    actor=Actor.AGENT,
    section="1.0 9.4.2, 10.4, 11.7; HTML 9.2.6",
    bindings=NETWORK,
    also_broken=("A2A-HTTP-003",),
    flagged=rpc(
        "SendStreamingMessage",
        send(),
        answer="".join(map(_result_line, (snapshot(), status("COMPLETED", second=1)))),
        headers={"Accept": "text/event-stream"},
        reply_headers={"Content-Type": "application/x-ndjson"},
    ),
    clean=rpc_stream("SendStreamingMessage", send(), agent_reply()),
    explains=(
        *("A2A-STREAM-009", "A2A-HTTP-002", "A2A-HTTP-003", "A2A-HTTP-004", "A2A-HTTP-005"),
        *("A2A-HTTP-008", "A2A-RPC-001", "A2A-RPC-003", "A2A-SSE-015"),
        *("A2A-SCH-004", "A2A-SSE-005"),  # an object without the wrapper that only events have
    ),
)
def wrong_container(call: CallFacts) -> Ending | None:
    """A call is answered with a body that its content type does not announce, or that its operation
    does not allow: newline-delimited JSON, JSON text records, an array or plain JSON where an event
    stream is due, JSON or HTML under `text/event-stream`, events under another content type or in
    place of one object, an answer inside a JSON string or base64, or JSON or HTML in place of gRPC.

    Clients read the container, not the content: they see an empty stream, or nothing. The agent
    must send the answer as the binding requires it.
    """
    exchange = call.exchange
    is_grpc = exchange.binding is Binding.GRPC
    if exchange.binding not in NETWORK | CARD or exchange.status != 200 or exchange.ours:
        return None
    found = [each for each in call.answers if each.kind is not FrameKind.COMMENT]
    what = _name_events(call, found)
    if what and exchange.method == "DELETE":
        return None  # its client needs the status only
    form = found[0].note if found and found[0].note.startswith(_INSIDE) else ""
    is_error = any(each.kind is FrameKind.ERROR for each in found) or (
        form and not exchange.error.startswith((INSIDE, NO_RESULT))
    )
    inside = f"; it says {exchange.error}" if is_error and (what or form) else ""
    media = call.media_type
    due = "text/event-stream" if exchange.operation in STREAMS else "application/json"
    due = "application/grpc" if is_grpc else due
    is_unread = not exchange.error or exchange.error.startswith((_NOT_RPC, NO_RESULT))
    is_marked = any(each.framing == f"{BYTE_ORDER_MARK}{DATA_MARK}" for each in found[:1])
    if is_marked and {media, due} <= _JSON_TYPES:
        return Ending(
            summary=f"the answer is JSON behind a byte order mark under `{media}`, which many "
            "clients cannot read",
            next_step="send the JSON without a byte order mark (RFC 8259 8.1)",
        )
    if form:
        what = what or (_ONE_ERROR if is_error else _ONE_OBJECT)
        what += f" {form.partition(',')[0]}"
    if not what and not exchange.events and is_unread and call.by_itself:
        what, inside = _read_body((_read_last(call) or call.error_body).strip())
        if what == _ONE_OBJECT and {media, due} <= _JSON_TYPES:
            return None  # the right container of something else
    if not what:
        return None
    under = f"under `{media}`" if media else "without a content type"
    wanted = f"`{due}` is due"
    if {media, due} <= _JSON_TYPES:
        wanted = "one object is due"
    elif media == due:
        wanted = "protobuf messages are due" if is_grpc else "without the framing of events"
    return Ending(
        summary=f"the answer is {what} {under}, {wanted}{inside}",
        next_step=_CONTAINER_STEPS[due],
    )


def _name_events(call: CallFacts, found: Sequence[Frame]) -> str:
    """Return what answers are that are events, or objects in place of events, in a form that is not
    due; empty if they are in the right one."""
    if call.exchange.error == ARRAY:
        return _name_sequence("[", len(found), is_error=False)
    events = [each for each in found if each.framing]
    if not events:
        return ""
    framing = "".join(each.framing for each in events)
    if is_json_sequence(events[0].framing):
        is_error = events[0].kind is FrameKind.ERROR
        return _name_sequence(framing, len(events), is_error=is_error)
    is_due = call.media_type == "text/event-stream" and call.exchange.operation in STREAMS
    count = f"{len(events)} server-sent event{'s' if len(events) > 1 else ''}"
    return "" if is_due and not events[0].note.startswith(_INSIDE) else count


def _read_body(body: bytes) -> tuple[str, str]:
    """Return what a body that was recorded as a whole is, and the error in it; empty if it is no
    known container."""
    if body[:1] == b"<":
        return "an HTML page", ""
    if body.startswith((b"data:", b"event:")):
        return "server-sent events", ""
    found: list[SseEvent] = []
    sequence = JsonSequence()
    sequence.feed(body, 0, 0, len(body), found)
    sequence.finish(0, found)
    values = [decode_payload(each.data, JSON) for each in found if each.dispatched]
    objects = [each for each in values if isinstance(each, dict)]
    if not objects or len(objects) < len(values):
        return "", ""
    errors = [each["error"] for each in objects if isinstance(each.get("error"), dict)]
    framing = "".join(each.framing for each in found)
    what = _name_sequence(framing, len(objects), is_error=bool(errors))
    if not errors:
        return what, ""
    code, text = str(errors[0].get("code", ""))[:12], str(errors[0].get("message", ""))[:80]
    return what, f"; it says {code}: {text}"


def _read_last(call: CallFacts) -> bytes:
    """Return the payload of the last frame that the client received."""
    last = call.last
    return call.session.source.read_payload(call.exchange.id, last.seq) if last is not None else b""


def _name_sequence(framing: str, count: int, *, is_error: bool) -> str:
    if "\x1e" in framing:
        return f"{count} JSON text records"
    if "[" in framing:
        return f"an array of {count} JSON object{'s' if count > 1 else ''}"
    if count > 1:
        return f"{count} JSON objects (NDJSON)"
    return _ONE_ERROR if is_error else _ONE_OBJECT


@cause(
    "A2A-END-012",
    "invented-task",
    "First message names a task that the agent does not know",
    Severity.INFO,
    actor=Actor.CLIENT,
    section="1.0 3.4.1, 3.1.1; 0.3 6.4",
    also_broken=("A2A-TASK-013",),
    flagged=rpc(
        "SendMessage",
        send(taskId="t-new"),
        error=rpc_error(-32001, "TASK_NOT_FOUND", "no such task"),
    ),
    clean=rpc("SendMessage", send(), agent_reply()),
    explains=("A2A-TASK-013",),
)
def invented_task(call: CallFacts) -> Ending | None:
    """A message is refused with TaskNotFoundError, and no answer of the recording has shown the
    task that it names.

    Agents create the ids of tasks. The client must omit `taskId` in the first message, and use the
    id of the answer in the next ones.
    """
    exchange = call.exchange
    if exchange.operation not in SENDS or "TASK_NOT_FOUND" not in exchange.error:
        return None
    request = next((each for each in call.frames_with_ids if each.task_id), None)
    if request is None or any(each.events for each in call.other_calls):
        return None
    return Ending(
        summary=f"the message names task {request.task_id[:36]}, which no answer has shown",
        next_step="omit taskId in the first message; the answer has the id for the next ones",
        confidence=LOW,
        remaining=("the client invented the id", "the task is older than the recording"),
        decides="whether the client took the id from an answer",
        evidence=(call.place(request), call.place(call.last)),
    )


@cause(
    "A2A-END-013",
    "stream-error",
    "Stream of an active task ended with an error",
    Severity.WARNING,
    actor=Actor.AGENT,
    section="1.0 3.1.2; 0.3 7.2",
    flagged=rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot(),
        status("WORKING"),
        {"error": rpc_error(-32603, "INTERNAL_ERROR")},
    ),
    clean=rpc_stream(
        "SendStreamingMessage", send(), snapshot(), status("WORKING"), status("FAILED", second=1)
    ),
)
def stream_error(call: CallFacts) -> Ending | None:
    """An error ends a stream whose task is submitted or working, and no terminal state was sent.
    The gRPC status CANCELLED counts if the client has set no deadline.

    The client does not know whether the task failed or continues, and must call GetTask. The agent
    should send the terminal state of the task before it ends the stream.
    """
    exchange = call.exchange
    if not (exchange.error and exchange.events and call.state in ACTIVE) or exchange.ours:
        return None
    is_timed = bool(header_value(call.headed.request_headers, b"grpc-timeout"))
    if exchange.grpc_status == _DEADLINE_EXCEEDED or (
        exchange.grpc_status == _CANCELLED and is_timed
    ):
        return None
    return Ending(
        summary=f"an error ends the stream while the task is {call.state}: {exchange.error}",
        next_step=f"call GetTask for {exchange.task_id[:36]}; the agent must send the terminal "
        "state before it ends the stream",
    )


@cause(
    "A2A-END-014",
    "agent-error",
    "Error of the agent",
    Severity.INFO,
    actor=Actor.AGENT,
    section="1.0 3.3.2, 9.5, 10.6, 11.6",
    bindings=RPC | CARD,
    flagged=rpc("GetTask", TASK_PARAMS, error=rpc_error(-32001, "TASK_NOT_FOUND", "no such task")),
    clean=CLEAN_SEND,
    is_failure=False,
)
def agent_error(call: CallFacts) -> Ending | None:
    """The agent answers with an error.

    It is an answer, so `check` does not report it; the rules judge its form. An internal error is
    the agent's to correct, every other one is usually the client's.
    """
    exchange = call.exchange
    if not exchange.error or exchange.ours or exchange.binding not in RPC | CARD:
        return None
    if exchange.error.startswith(_NO_RESULT):
        return None
    if exchange.binding in CARD and has_card(call):
        return None
    if exchange.binding is Binding.GRPC:
        is_internal = exchange.grpc_status in _GRPC_SERVER_ERRORS
    else:
        is_internal = bool({exchange.error_code, exchange.status} & _SERVER_ERRORS)
    step = "correct the request as the error says"
    if is_internal:
        step = "look into the agent's log at that time"
    if _WAIT & {exchange.status, exchange.error_code} or exchange.grpc_status == _EXHAUSTED:
        seconds = call.response_header(b"retry-after")[:40]
        wait = f"{seconds} s" if seconds.isdecimal() else f"until {seconds}" if seconds else ""
        is_internal, step = False, f"wait {wait or 'a while'}, then send the call again; send less"
    low = exchange.error.lower()
    words = {} if is_internal else _ERROR_WORDS  # those of a failure are about something else
    name = next((name for text, name in words.items() if text in low), exchange.error)
    for reason, other in _ERROR_STEPS.items():
        if name.startswith(reason):
            step = other
    requests = [each.kind for each in call.frames if each.direction is Direction.TO_AGENT]
    if is_internal and FrameKind.UNDECODABLE in requests:
        is_internal, step = False, "correct the request: it cannot be decoded"
    return Ending(
        summary=exchange.error,
        next_step=step,
        actor=Actor.AGENT if is_internal else Actor.CLIENT,
    )


@cause(
    "A2A-END-030",
    "no-result",
    "Answer without a result",
    Severity.ERROR,
    actor=Actor.AGENT,
    section="1.0 9.4, 11.3, 10.4; JSON-RPC 2.0 5",
    bindings=RPC | CARD,
    also_broken=("A2A-HTTP-002",),
    flagged=rpc("SendMessage", send(), answer="OK", reply_headers={"Content-Type": "text/plain"}),
    clean=CLEAN_SEND,
    explains=(
        *("A2A-HTTP-002", "A2A-HTTP-003", "A2A-HTTP-004", "A2A-HTTP-008"),
        *("A2A-RPC-008", "A2A-RPC-014", "A2A-SSE-004", "A2A-CARD-002", "A2A-CARD-003"),
        *("A2A-GRPC-005", "A2A-GRPC-007", "A2A-GRPC-008", "UNDECODABLE"),
    ),
)
def no_result(call: CallFacts) -> Ending | None:
    """The answer to a call says that it succeeded, and is no result of its operation: an empty
    body, text, JSON of another form, or a JSON-RPC response whose result is not a Task or Message.

    Clients fail on it, or return nothing. The agent must answer with the result of the operation,
    or with an error of the binding; look also for a server in front of it that answers in its
    place.
    """
    exchange = call.exchange
    if not exchange.error.startswith(_NO_RESULT) or exchange.ours:
        return None
    body = _read_last(call)
    if exchange.error.startswith("events without"):
        what = "the events of the stream have no JSON-RPC envelope"
    elif call.size:
        text = text_of_body(body[:240])
        text = _name_binary(call) if text is None else text.strip()[:60]
        what = f"the answer is no result of {exchange.operation}: {text}".removesuffix(": ")
    else:
        status = f" (HTTP {exchange.status})" if exchange.status else ""
        what = f"the answer{status} is empty, a result of {exchange.operation} is due"
    return Ending(
        summary=what,
        next_step="answer with a result of the operation, or with an error of the binding",
    )


def _name_binary(call: CallFacts) -> str:
    media = f", `{call.media_type[:80]}`" if call.media_type else ""
    return f"a binary body of {call.size} bytes{media}"
