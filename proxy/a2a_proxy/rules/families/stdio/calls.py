"""Rules about matching responses to calls, the end of a call, and the life of the agent's process
(manual/protocol.md "Stdio", "Stdio streams")."""

from collections.abc import Iterator

from a2a_proxy.model.values import Actor, Frame, FrameKind, Severity
from a2a_proxy.model.wire import REASON_BROKE_OFF, Direction
from a2a_proxy.protocol.bindings.rpc_calls import (
    NOTE_AFTER_END,
    NOTE_FROM_AGENT,
    NOTE_ID_IN_FLIGHT,
    NOTE_SECOND_RESPONSE,
    NOTE_UNKNOWN_ID,
)
from a2a_proxy.protocol.bindings.stdio import HOW_AGENT_EXITED
from a2a_proxy.protocol.stdio_command import is_command, is_stdio
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import CARD, RPC, EvidenceScope, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import fetch_card
from a2a_proxy.rules.examples.objects import TASK_PARAMS, Json, card, send, snapshot, status, task
from a2a_proxy.rules.examples.pipe import (
    CLEAN_PIPE,
    COMMAND,
    DOWN,
    close_input,
    close_output,
    exit_agent,
    pipe_call,
    pipe_message,
    pipe_pause,
    pipe_response,
    pipe_script,
)
from a2a_proxy.rules.families.card.reading import read_card
from a2a_proxy.rules.families.stdio.reading import (
    ended_call,
    remember_call,
    session_notes,
    stdio_rule,
)
from a2a_proxy.rules.state.card_declarations import indexed_objects, read_interfaces, string_member

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
_EXIT_GRACE = 5.0
"""Time in seconds that the agent has to exit after its input was closed."""
_SHELL_CHARACTERS = ("$(", "`", "|", ";")


def _is_loose_message(frame: Frame, note: str) -> bool:
    """Whether the frame is a message of this kind that belongs to the connection and not to a
    call."""
    return frame.note == note and frame.kind is FrameKind.OTHER


@stdio_rule(
    "A2A-STDIO-008",
    "Response with an unknown id",
    Severity.ERROR,
    actor=Actor.AGENT,
    section="JSON-RPC 2.0",
    hook_points=HookPoint.CONNECTION,
    scope=EvidenceScope.SESSION,
    flagged=pipe_script(
        pipe_call("GetTask", TASK_PARAMS), pipe_response(task(), id=9), pipe_response(task())
    ),
    clean=CLEAN_PIPE,
)
def unknown_id(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent sends a `result` or an `error` with an id that no request to this process has had.
    An error with id null is allowed, because the agent may not have been able to read the request.

    On a pipe, calls are distinguished only by their ids: the client drops the response, and the
    call it was meant for waits. The agent must copy the request's `id` unchanged.
    """
    frame = context.frame
    if _is_loose_message(frame, NOTE_UNKNOWN_ID) and not (
        frame.rpc_id == "null" and "error" in context.value
    ):
        told = (
            f"the response has id {frame.rpc_id[:60]}" if frame.rpc_id else "the response has no id"
        )
        yield RuleFinding(
            summary=f"{told}, which no request has used", path="id", value=frame.rpc_id
        )


@stdio_rule(
    "A2A-STDIO-009",
    "Id reused while its call is open",
    Severity.ERROR,
    section="JSON-RPC 2.0",
    hook_points=HookPoint.REQUEST,
    scope=EvidenceScope.SESSION,
    trigger_flags=FrameFlag.ASKS,
    flagged=pipe_script(
        pipe_call("GetTask", TASK_PARAMS),
        pipe_call("GetTask", TASK_PARAMS),
        pipe_response(task()),
    ),
    clean=pipe_script(
        pipe_call("GetTask", TASK_PARAMS),
        pipe_call("GetTask", TASK_PARAMS, id=2),
        pipe_response(task(), id=2),
        pipe_response(task()),
    ),
)
def used_again(context: RuleContext) -> Iterator[RuleFinding]:
    """A request has the id of another request that is not yet answered, or of a stream that is
    still open.

    It is impossible to know to which of the two calls a response belongs. The client must use a new
    id for each call.
    """
    frame = context.frame
    if frame.note == NOTE_ID_IN_FLIGHT:
        yield RuleFinding(
            summary=f"id {frame.rpc_id[:60]} belongs to a call that is still open",
            path="id",
            value=frame.rpc_id,
        )


@stdio_rule(
    "A2A-STDIO-010",
    "Message after the end of its stream",
    Severity.ERROR,
    actor=Actor.AGENT,
    section="1.0 3.1.2, 9.4.2",
    hook_points=(HookPoint.REQUEST, HookPoint.CONNECTION),
    scope=EvidenceScope.SESSION,
    flagged=pipe_script(*_STREAM_STEPS, pipe_response(status("WORKING", second=3))),
    clean=pipe_script(*_STREAM_STEPS),
)
def after_the_end(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent sends a response with the id of a stream that had ended: it had shown a terminal
    state, a Message, `final: true` or an error. The finding is at the stream, the message at the
    connection.

    On a pipe only these mark the end of a stream, so the client has forgotten the call by then and
    drops the response. The agent must send nothing more after the end.
    """
    frame = context.frame
    if frame.exchange:
        remember_call(context)
    elif _is_loose_message(frame, NOTE_AFTER_END):
        call = ended_call(context)
        told = (
            f"the agent sends another message after the end of this stream (id {frame.rpc_id[:60]})"
        )
        yield RuleFinding(
            summary=told,
            path="id",
            value=frame.rpc_id,
            track=call,
            seq=None if call is None else -1,
        )


@stdio_rule(
    "A2A-STDIO-011",
    "Several responses to one unary call",
    Severity.ERROR,
    actor=Actor.AGENT,
    section="JSON-RPC 2.0",
    hook_points=(HookPoint.REQUEST, HookPoint.CONNECTION),
    scope=EvidenceScope.SESSION,
    flagged=pipe_script(
        pipe_call("GetTask", TASK_PARAMS), pipe_response(task()), pipe_response(task())
    ),
    clean=CLEAN_PIPE,
)
def second_response(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent sends a second response with the id of a call whose method has a single answer. The
    finding is at the call, the second response at the connection.

    The client has accepted the first one and forgotten the call; it drops the second, or takes it
    for the answer to a later call with the same id. The agent must answer each call once.
    """
    frame = context.frame
    if frame.exchange:
        remember_call(context)
    elif _is_loose_message(frame, NOTE_SECOND_RESPONSE):
        call = ended_call(context)
        told = f"the agent answers this call (id {frame.rpc_id[:60]}) once more"
        yield RuleFinding(
            summary=told,
            path="id",
            value=frame.rpc_id,
            track=call,
            seq=None if call is None else -1,
        )


@stdio_rule(
    "A2A-STDIO-012",
    "Agent ends while calls are open",
    Severity.WARNING,
    actor=Actor.AGENT,
    section="stdio proposal, lifecycle",
    hook_points=(HookPoint.CLOSED, HookPoint.CONNECTION),
    scope=EvidenceScope.SESSION,
    flagged=pipe_script(*_BROKEN_STEPS, close_output(), exit_agent(1)),
    clean=pipe_script(*_STREAM_STEPS, close_output(), exit_agent(0)),
)
def pending(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent closes its output or its process ends while calls are open. Not judged if the
    client closed the agent's input and the agent then exited with 0, or if the client stopped it
    with a signal. An end inside a message is an error.

    The client waits for answers that never arrive, can only start the agent again, and does not
    know the outcome of its tasks. The agent must answer all open calls before it ends; if it
    crashed, see its standard error.
    """
    frame = context.frame_or_none
    if frame is not None:
        if (
            frame.kind is FrameKind.UNDECODABLE
            and frame.note == REASON_BROKE_OFF
            and frame.direction is Direction.TO_CLIENT
        ):
            told = f"the agent's output ends inside a message, after {frame.size} bytes"
            yield RuleFinding(summary=told, severity=Severity.ERROR)
        return
    exchange = context.exchange
    if exchange.how in (HOW_AGENT_EXITED, "agent gone"):
        how = (
            context.record.abort_cause if exchange.how == HOW_AGENT_EXITED else "closed its output"
        )
        how = f"was {how}" if how.startswith("killed") else how
        name = exchange.operation or exchange.method[:60]
        yield RuleFinding(
            summary=f"the agent {how} while {name} (id {exchange.rpc_id[:60]}) was open"
        )


@stdio_rule(
    "A2A-STDIO-013",
    "Agent sends a request or notification of its own",
    Severity.INFO,
    actor=Actor.AGENT,
    section="JSON-RPC 2.0; stdio proposal",
    hook_points=(HookPoint.ANSWER, HookPoint.CONNECTION),
    scope=EvidenceScope.SESSION,
    trigger_flags=FrameFlag.UNCLEAN,
    flagged=pipe_script(
        *_BROKEN_STEPS,
        pipe_message(
            DOWN,
            {
                "jsonrpc": "2.0",
                "method": "event/streamResponse",
                "params": status("COMPLETED", second=2),
            },
        ),
        pipe_response(snapshot("COMPLETED", second=2)),
    ),
    clean=pipe_script(*_STREAM_STEPS),
)
def by_itself(context: RuleContext) -> Iterator[RuleFinding]:
    """A message from the agent has a `method`: it is a request or a notification of its own.

    In A2A over JSON-RPC, agents send responses only, and clients ignore anything else. The agent
    should send each event of a stream as a response with the id of the call.
    """
    frame = context.frame
    if not _is_loose_message(frame, NOTE_FROM_AGENT):
        return
    method = context.value.get("method") if isinstance(context.value, dict) else None
    kind = f"request (id {frame.rpc_id[:40]})" if frame.rpc_id else "notification"
    yield RuleFinding(summary=f"the agent sends the {kind} `{str(method)[:60]}`", path="method")


def _stdio_card(url: str) -> Json:
    kind = "https://example.com/bindings/stdio"
    entry = {"url": url, "protocolBinding": kind, "protocolVersion": "1.0"}
    return card(supportedInterfaces=[*card()["supportedInterfaces"], entry])


@rule(
    "A2A-STDIO-017",
    "`url` of a stdio interface is not a command",
    Severity.WARNING,
    section="stdio proposal, url",
    bindings=CARD | RPC,
    trigger_flags=FrameFlag.CARD,
    flagged=fetch_card(_stdio_card("https://agent.example.com/")),
    clean=fetch_card(_stdio_card(COMMAND)),
)
def no_command(context: RuleContext) -> Iterator[RuleFinding]:
    """The `url` of a stdio interface in an agent card is missing or is a URL other than
    `stdio:///PATH`; or it is a command with characters that a shell would execute: `$(...)`,
    backticks, `|` or `;`.

    `url` is the command that the client runs. Other URLs cannot be run, and shell syntax lets the
    author of the card run any command on the client's machine. The agent must publish a plain
    command; the client must not pass it to a shell.
    """
    body = read_card(context)
    found = [(offer.path, offer.binding, offer.url) for offer in read_interfaces(body)]
    for name, kind in (
        ("supportedInterfaces", "protocolBinding"),
        ("additionalInterfaces", "transport"),
    ):
        entries = indexed_objects(body.get(name))
        found += [
            (f"{name}[{at}].url", string_member(each, kind), "")
            for at, each in entries
            if not string_member(each, "url")
        ]
    for path, binding, url in found:
        if not is_stdio(binding):
            continue
        danger = next((each for each in _SHELL_CHARACTERS if each in url), "")
        if not is_command(url):
            told = f"{url[:60]} is a URL, not a command" if url else "its `url` is missing"
            yield RuleFinding(
                summary=f"the interface is stdio, but {told}",
                path=f"{context.root}{path}",
                value=url,
            )
        elif danger:
            told = f"the command contains `{danger}`, which a shell would execute"
            yield RuleFinding(summary=told, path=f"{context.root}{path}", value=url)


def _check_exited(context: RuleContext) -> Iterator[RuleFinding]:
    if "exit" not in session_notes(context):
        yield RuleFinding(
            summary=f"the agent's stdin was closed {_EXIT_GRACE:.0f} s ago, "
            f"but its process still runs"
        )


@stdio_rule(
    "A2A-STDIO-018",
    "Agent process outlives its client",
    Severity.WARNING,
    actor=Actor.AGENT,
    section="stdio proposal, lifecycle",
    hook_points=HookPoint.CONNECTION,
    scope=EvidenceScope.SESSION,
    due=_check_exited,
    flagged=pipe_script(
        pipe_call("GetTask", TASK_PARAMS),
        pipe_response(task()),
        close_input(),
        pipe_pause(6),
        close_output(),
        exit_agent(),
    ),
    clean=pipe_script(
        pipe_call("GetTask", TASK_PARAMS),
        pipe_response(task()),
        close_input(),
        pipe_pause(1),
        close_output(),
        exit_agent(),
    ),
)
def outlives(context: RuleContext) -> Iterator[RuleFinding]:
    """The client has closed the agent's stdin, and 5 s later the agent's process still runs.

    A client ends the agent by closing its input. Processes that stay hold memory, ports and files,
    one more after each run. The agent must exit at the end of its input.
    """
    frame = context.frame
    if frame.kind is not FrameKind.CONTROL:
        return
    if frame.note == "exit":
        session_notes(context)["exit"] = True
    elif frame.note == "eof" and frame.direction is Direction.TO_AGENT:
        context.schedule_due(_EXIT_GRACE)
    yield from ()
