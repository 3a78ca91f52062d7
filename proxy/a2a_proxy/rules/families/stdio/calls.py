"""Which response belongs to which call, and when a call is over (manual/protocol.md "Stdio streams")."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.chunk import Direction
from a2a_proxy.model.finding import Severity
from a2a_proxy.model.frame import Frame, FrameKind
from a2a_proxy.model.wire import REASON_BROKE_OFF
from a2a_proxy.protocol.bindings.stdio import NOTE_AFTER_END, HOW_AGENT_EXITED, NOTE_FROM_AGENT, NOTE_ID_IN_FLIGHT, NOTE_SECOND_RESPONSE, NOTE_UNKNOWN_ID
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import STDIO, EvidenceScope, FrameFlag, HookPoint, RuleFinding, rule
from a2a_proxy.rules.examples.objects import send, snapshot, status, task
from a2a_proxy.rules.examples.pipe import DOWN, ask, close_output, ends, pipe, said, tell

_GET = {"id": "t1"}
_CLEAN = pipe(ask("GetTask", _GET), tell(task()))
_STREAM = (
    ask("SendStreamingMessage", send()),
    tell(snapshot()),
    tell(status("WORKING", second=1)),
    tell(status("COMPLETED", second=2)),
)
_BROKEN = (ask("SendStreamingMessage", send()), tell(snapshot()), tell(status("WORKING", second=1)))


def _loose(frame: Frame, note: str) -> bool:
    """A message of the connection itself, of this kind."""
    return frame.note == note and frame.kind is FrameKind.OTHER


@rule(
    "A2A-STDIO-008",
    "A response with an unknown id",
    Severity.ERROR,
    section="JSON-RPC 2.0",
    moment=HookPoint.CONNECTION,
    scope=EvidenceScope.SESSION,
    bindings=STDIO,
    draft=True,
    flagged=pipe(ask("GetTask", _GET), tell(task(), id=9), tell(task())),
    clean=_CLEAN,
)
def unknown_id(see: RuleContext) -> Iterator[RuleFinding]:
    """The agent sends a `result` or an `error` with an id that no request of this process has had. Null is right for an
    error, where the agent could not read the request.

    There is nothing but the id to tell calls apart on a pipe: the client drops the response, and its call waits.
    """
    frame = see.frame
    if _loose(frame, NOTE_UNKNOWN_ID) and not (frame.rpc_id == "null" and "error" in see.value):
        told = f"the response has id {frame.rpc_id[:60]}" if frame.rpc_id else "the response has no id"
        yield RuleFinding(summary=f"{told}, no request has had it", path="id", value=frame.rpc_id)


@rule(
    "A2A-STDIO-009",
    "An id is used again while its call is open",
    Severity.ERROR,
    section="JSON-RPC 2.0",
    moment=HookPoint.REQUEST,
    scope=EvidenceScope.SESSION,
    bindings=STDIO,
    when=FrameFlag.ASKS,
    draft=True,
    flagged=pipe(ask("GetTask", _GET), ask("GetTask", _GET), tell(task())),
    clean=pipe(ask("GetTask", _GET), ask("GetTask", _GET, id=2), tell(task(), id=2), tell(task())),
)
def used_again(see: RuleContext) -> Iterator[RuleFinding]:
    """A request has the id of another one that is not answered yet, or of a stream that goes on.

    Nobody can tell which of the two calls a response belongs to.
    """
    frame = see.frame
    if frame.note == NOTE_ID_IN_FLIGHT:
        yield RuleFinding(
            summary=f"id {frame.rpc_id[:60]} stands for a call that is still open", path="id", value=frame.rpc_id
        )


@rule(
    "A2A-STDIO-010",
    "A message after the end of its stream",
    Severity.ERROR,
    section="1.0 3.1.2, 9.4.2",
    moment=HookPoint.CONNECTION,
    scope=EvidenceScope.SESSION,
    bindings=STDIO,
    draft=True,
    flagged=pipe(*_STREAM, tell(status("WORKING", second=3))),
    clean=pipe(*_STREAM),
)
def after_the_end(see: RuleContext) -> Iterator[RuleFinding]:
    """The agent sends a response with the id of a stream that was over: it had shown a terminal state, a Message,
    `final: true` or an error.

    On a pipe nothing but these says that a stream ends, so the client has forgotten the call by then.
    """
    if _loose(see.frame, NOTE_AFTER_END):
        yield RuleFinding(
            summary=f"the stream with id {see.frame.rpc_id[:60]} was over", path="id", value=see.frame.rpc_id
        )


@rule(
    "A2A-STDIO-011",
    "Several responses to one unary call",
    Severity.ERROR,
    section="JSON-RPC 2.0",
    moment=HookPoint.CONNECTION,
    scope=EvidenceScope.SESSION,
    bindings=STDIO,
    draft=True,
    flagged=pipe(ask("GetTask", _GET), tell(task()), tell(task())),
    clean=_CLEAN,
)
def second_response(see: RuleContext) -> Iterator[RuleFinding]:
    """The agent sends a second response with the id of a call whose method has one answer.

    The client has taken the first one and forgotten the call; the second is dropped, or is taken for the answer to a
    later call with that id.
    """
    if _loose(see.frame, NOTE_SECOND_RESPONSE):
        told = f"the call with id {see.frame.rpc_id[:60]} had its response already"
        yield RuleFinding(summary=told, path="id", value=see.frame.rpc_id)


@rule(
    "A2A-STDIO-012",
    "The agent ends with calls pending",
    Severity.WARNING,
    section="stdio proposal, lifecycle",
    moment=(HookPoint.CLOSED, HookPoint.CONNECTION),
    scope=EvidenceScope.SESSION,
    bindings=STDIO,
    draft=True,
    flagged=pipe(*_BROKEN, close_output(), ends(1)),
    clean=pipe(*_STREAM, close_output(), ends(0)),
)
def pending(see: RuleContext) -> Iterator[RuleFinding]:
    """The agent closes its output, or its process ends, while calls are open, and its client has neither closed its
    input before an exit with 0 nor had it stopped by a signal. An end within a message is an error.

    The client waits for answers that never come, and can only spawn the agent anew; what became of the tasks it cannot
    know.
    """
    frame = see.shown
    if frame is not None:
        if frame.kind is FrameKind.UNDECODABLE and frame.note == REASON_BROKE_OFF and frame.direction is Direction.TO_CLIENT:
            told = f"the agent's output ends after {frame.size} octets of a message"
            yield RuleFinding(summary=told, severity=Severity.ERROR)
        return
    exchange = see.exchange
    if exchange.how in (HOW_AGENT_EXITED, "agent gone"):
        how = see.track.cut if exchange.how == HOW_AGENT_EXITED else "closed its output"
        how = f"was {how}" if how.startswith("killed") else how
        name = exchange.operation or exchange.method[:60]
        yield RuleFinding(summary=f"the agent {how} while {name} (id {exchange.rpc_id[:60]}) was open")


@rule(
    "A2A-STDIO-013",
    "The agent says something by itself",
    Severity.INFO,
    section="JSON-RPC 2.0; stdio proposal",
    moment=(HookPoint.ANSWER, HookPoint.CONNECTION),
    scope=EvidenceScope.SESSION,
    bindings=STDIO,
    when=FrameFlag.UNCLEAN,
    draft=True,
    flagged=pipe(
        *_BROKEN,
        said(DOWN, {"jsonrpc": "2.0", "method": "event/streamResponse", "params": status("COMPLETED", second=2)}),
        tell(snapshot("COMPLETED", second=2)),
    ),
    clean=pipe(*_STREAM),
)
def by_itself(see: RuleContext) -> Iterator[RuleFinding]:
    """A message of the agent has a `method`: a request or a notification of its own. Of a stream only the first is
    told.

    JSON-RPC of A2A knows responses only; a variant sends the events of a stream so, without an id, and other clients
    pass over them.
    """
    frame = see.frame
    if not _loose(frame, NOTE_FROM_AGENT) and not (frame.exchange and see.notified):
        return
    if frame.exchange and see.track.remember().setdefault("stdio notified", frame.seq) != frame.seq:
        return
    method = see.value.get("method") if isinstance(see.value, dict) else None
    kind = f"request (id {frame.rpc_id[:40]})" if frame.rpc_id else "notification"
    yield RuleFinding(summary=f"the agent sends the {kind} `{str(method)[:60]}`", path="method")
