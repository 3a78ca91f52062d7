"""Which response belongs to which call, and when a call is over (manual/protocol.md "Stdio streams")."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.chunk import Direction
from a2a_proxy.model.finding import Severity
from a2a_proxy.model.frame import Frame, FrameKind
from a2a_proxy.model.wire import REASON_BROKE_OFF
from a2a_proxy.protocol.bindings.stdio import (
    HOW_AGENT_EXITED,
    NOTE_AFTER_END,
    NOTE_FROM_AGENT,
    NOTE_ID_IN_FLIGHT,
    NOTE_SECOND_RESPONSE,
    NOTE_UNKNOWN_ID,
)
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import STDIO, EvidenceScope, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.objects import send, snapshot, status, task
from a2a_proxy.rules.examples.pipe import (
    DOWN,
    close_output,
    exit_agent,
    pipe_call,
    pipe_message,
    pipe_response,
    pipe_script,
)

_TASK_PARAMS = {"id": "t1"}
_CLEAN_PIPE = pipe_script(pipe_call("GetTask", _TASK_PARAMS), pipe_response(task()))
_STREAM_STEPS = (
    pipe_call("SendStreamingMessage", send()),
    pipe_response(snapshot()),
    pipe_response(status("WORKING", second=1)),
    pipe_response(status("COMPLETED", second=2)),
)
_BROKEN_STEPS = (
    pipe_call("SendStreamingMessage", send()),
    pipe_response(snapshot()),
    pipe_response(status("WORKING", second=1)),
)


def _is_loose_message(frame: Frame, note: str) -> bool:
    """A message of the connection itself, of this kind."""
    return frame.note == note and frame.kind is FrameKind.OTHER


@rule(
    "A2A-STDIO-008",
    "A response with an unknown id",
    Severity.ERROR,
    section="JSON-RPC 2.0",
    hook_points=HookPoint.CONNECTION,
    scope=EvidenceScope.SESSION,
    bindings=STDIO,
    draft=True,
    flagged=pipe_script(pipe_call("GetTask", _TASK_PARAMS), pipe_response(task(), id=9), pipe_response(task())),
    clean=_CLEAN_PIPE,
)
def unknown_id(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent sends a `result` or an `error` with an id that no request of this process has had. Null is right for an
    error, where the agent could not read the request.

    There is nothing but the id to tell calls apart on a pipe: the client drops the response, and its call waits.
    """
    frame = context.frame
    if _is_loose_message(frame, NOTE_UNKNOWN_ID) and not (frame.rpc_id == "null" and "error" in context.value):
        told = f"the response has id {frame.rpc_id[:60]}" if frame.rpc_id else "the response has no id"
        yield RuleFinding(summary=f"{told}, no request has had it", path="id", value=frame.rpc_id)


@rule(
    "A2A-STDIO-009",
    "An id is used again while its call is open",
    Severity.ERROR,
    section="JSON-RPC 2.0",
    hook_points=HookPoint.REQUEST,
    scope=EvidenceScope.SESSION,
    bindings=STDIO,
    trigger_flags=FrameFlag.ASKS,
    draft=True,
    flagged=pipe_script(pipe_call("GetTask", _TASK_PARAMS), pipe_call("GetTask", _TASK_PARAMS), pipe_response(task())),
    clean=pipe_script(
        pipe_call("GetTask", _TASK_PARAMS),
        pipe_call("GetTask", _TASK_PARAMS, id=2),
        pipe_response(task(), id=2),
        pipe_response(task()),
    ),
)
def used_again(context: RuleContext) -> Iterator[RuleFinding]:
    """A request has the id of another one that is not answered yet, or of a stream that goes on.

    Nobody can tell which of the two calls a response belongs to.
    """
    frame = context.frame
    if frame.note == NOTE_ID_IN_FLIGHT:
        yield RuleFinding(
            summary=f"id {frame.rpc_id[:60]} stands for a call that is still open", path="id", value=frame.rpc_id
        )


@rule(
    "A2A-STDIO-010",
    "A message after the end of its stream",
    Severity.ERROR,
    section="1.0 3.1.2, 9.4.2",
    hook_points=HookPoint.CONNECTION,
    scope=EvidenceScope.SESSION,
    bindings=STDIO,
    draft=True,
    flagged=pipe_script(*_STREAM_STEPS, pipe_response(status("WORKING", second=3))),
    clean=pipe_script(*_STREAM_STEPS),
)
def after_the_end(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent sends a response with the id of a stream that was over: it had shown a terminal state, a Message,
    `final: true` or an error.

    On a pipe nothing but these says that a stream ends, so the client has forgotten the call by then.
    """
    if _is_loose_message(context.frame, NOTE_AFTER_END):
        yield RuleFinding(
            summary=f"the stream with id {context.frame.rpc_id[:60]} was over", path="id", value=context.frame.rpc_id
        )


@rule(
    "A2A-STDIO-011",
    "Several responses to one unary call",
    Severity.ERROR,
    section="JSON-RPC 2.0",
    hook_points=HookPoint.CONNECTION,
    scope=EvidenceScope.SESSION,
    bindings=STDIO,
    draft=True,
    flagged=pipe_script(pipe_call("GetTask", _TASK_PARAMS), pipe_response(task()), pipe_response(task())),
    clean=_CLEAN_PIPE,
)
def second_response(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent sends a second response with the id of a call whose method has one answer.

    The client has taken the first one and forgotten the call; the second is dropped, or is taken for the answer to a
    later call with that id.
    """
    if _is_loose_message(context.frame, NOTE_SECOND_RESPONSE):
        told = f"the call with id {context.frame.rpc_id[:60]} had its response already"
        yield RuleFinding(summary=told, path="id", value=context.frame.rpc_id)


@rule(
    "A2A-STDIO-012",
    "The agent ends with calls pending",
    Severity.WARNING,
    section="stdio proposal, lifecycle",
    hook_points=(HookPoint.CLOSED, HookPoint.CONNECTION),
    scope=EvidenceScope.SESSION,
    bindings=STDIO,
    draft=True,
    flagged=pipe_script(*_BROKEN_STEPS, close_output(), exit_agent(1)),
    clean=pipe_script(*_STREAM_STEPS, close_output(), exit_agent(0)),
)
def pending(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent closes its output, or its process ends, while calls are open, and its client has neither closed its
    input before an exit with 0 nor had it stopped by a signal. An end within a message is an error.

    The client waits for answers that never come, and can only spawn the agent anew; what became of the tasks it cannot
    know.
    """
    frame = context.frame_or_none
    if frame is not None:
        if (
            frame.kind is FrameKind.UNDECODABLE
            and frame.note == REASON_BROKE_OFF
            and frame.direction is Direction.TO_CLIENT
        ):
            told = f"the agent's output ends after {frame.size} bytes of a message"
            yield RuleFinding(summary=told, severity=Severity.ERROR)
        return
    exchange = context.exchange
    if exchange.how in (HOW_AGENT_EXITED, "agent gone"):
        how = context.record.abort_cause if exchange.how == HOW_AGENT_EXITED else "closed its output"
        how = f"was {how}" if how.startswith("killed") else how
        name = exchange.operation or exchange.method[:60]
        yield RuleFinding(summary=f"the agent {how} while {name} (id {exchange.rpc_id[:60]}) was open")


@rule(
    "A2A-STDIO-013",
    "The agent says something by itself",
    Severity.INFO,
    section="JSON-RPC 2.0; stdio proposal",
    hook_points=(HookPoint.ANSWER, HookPoint.CONNECTION),
    scope=EvidenceScope.SESSION,
    bindings=STDIO,
    trigger_flags=FrameFlag.UNCLEAN,
    draft=True,
    flagged=pipe_script(
        *_BROKEN_STEPS,
        pipe_message(
            DOWN, {"jsonrpc": "2.0", "method": "event/streamResponse", "params": status("COMPLETED", second=2)}
        ),
        pipe_response(snapshot("COMPLETED", second=2)),
    ),
    clean=pipe_script(*_STREAM_STEPS),
)
def by_itself(context: RuleContext) -> Iterator[RuleFinding]:
    """A message of the agent has a `method`: a request or a notification of its own. Of a stream only the first is
    told.

    JSON-RPC of A2A knows responses only; a variant sends the events of a stream so, without an id, and other clients
    pass over them.
    """
    frame = context.frame
    if not _is_loose_message(frame, NOTE_FROM_AGENT) and not (frame.exchange and context.is_notification):
        return
    if frame.exchange and context.record.writable_notes().setdefault("stdio notified", frame.seq) != frame.seq:
        return
    method = context.value.get("method") if isinstance(context.value, dict) else None
    kind = f"request (id {frame.rpc_id[:40]})" if frame.rpc_id else "notification"
    yield RuleFinding(summary=f"the agent sends the {kind} `{str(method)[:60]}`", path="method")
