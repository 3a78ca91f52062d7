"""Causes at the end of a stream or a wait: who left, and what the task was doing (A2A 1.0 sections
3.1.2, 3.1.6, 3.5.2)."""

from itertools import takewhile

from a2a_proxy.model.values import Actor, EventKind, Exchange, FrameKind, Severity
from a2a_proxy.protocol.schema import JSON
from a2a_proxy.rules.define.conditions import NETWORK, WEBSOCKET
from a2a_proxy.rules.endings.call_facts import (
    ACTIVE,
    SECOND_NS,
    CallFacts,
    format_ns,
    is_over,
    name_frame,
)
from a2a_proxy.rules.endings.call_index import CLIENT_LEFT, is_waiting
from a2a_proxy.rules.endings.ending import HIGH, LOW, Ending, cause
from a2a_proxy.rules.examples.conversation import (
    CLEAN_SEND,
    ClientLeaves,
    EventPause,
    fetch_card,
    rpc,
    rpc_stream,
)
from a2a_proxy.rules.examples.objects import TASK_PARAMS, chunk, send, snapshot, status, task
from a2a_proxy.rules.examples.script import MS, run_together
from a2a_proxy.rules.families.end.connection import MIN_TIMEOUT
from a2a_proxy.rules.families.stream.words import STREAMS
from a2a_proxy.rules.state.state_sequence import TERMINAL

_END_GRACE = 2 * SECOND_NS
"""Time after which an end that another call has shown is missing on a stream."""
_MIN_SILENCE = 10 * SECOND_NS
"""Silence of an agent that is named, while a call is unanswered."""
_MIN_STALL = 30 * SECOND_NS
"""The same on a stream."""
_FAILED_WITHIN = 50_000_000
"""Time after a frame within which a client that leaves may have failed on it."""
_OBSERVED = 5 * SECOND_NS
"""Shortest observation from which a task counts as stopped."""
_RETURN_TIME = 30 * SECOND_NS
_KNOWN_TIMEOUTS = (5, 10, 15, 20, 30, 60, 90, 100, 120, 180, 300, 600, 900, 3600)
"""Usual defaults of clients and gateways, s."""
_AND_TOGETHER = 1000 * MS
_CUT_RULES = ("A2A-GRPC-003", "A2A-HTTP-016", "A2A-STDIO-012")
_BEGIN = (snapshot(), status("WORKING"))


def _has_left(call: CallFacts) -> bool:
    """Whether the client left a stream whose task was active, and had not cancelled the task."""
    exchange = call.exchange
    if not (call.by_client and exchange.operation in STREAMS and call.is_active):
        return False
    return not call.was_cancelled


def _is_last_unread(call: CallFacts) -> bool:
    """Whether an object after the last state could not be decoded: it may have shown the end."""
    later = takewhile(lambda each: not each.state, reversed(call.answers))
    return any(
        each.kind is FrameKind.UNDECODABLE
        and (each.schema != JSON or each.payload.lstrip().startswith(b"{"))
        for each in later
    )


def _is_unfinished(call: CallFacts) -> bool:
    """Whether it is a stream that is still open, or was when the proxy stopped."""
    exchange = call.exchange
    return not exchange.closed or exchange.how.startswith("proxy ")


@cause(
    "A2A-END-015",
    "final-first",
    "Final event before the last artifact",
    Severity.WARNING,
    actor=Actor.AGENT,
    section="1.0 3.1.2; 0.3 7.2",
    bindings=NETWORK,
    flagged=rpc_stream(
        "SendStreamingMessage",
        send(),
        *_BEGIN,
        status("COMPLETED", second=1),
        ClientLeaves(),
        EventPause(0.5),
        chunk(),
    ),
    clean=rpc_stream(
        "SendStreamingMessage", send(), *_BEGIN, chunk(), status("COMPLETED", second=1)
    ),
    explains=("A2A-ART-006",),
)
def final_first(call: CallFacts) -> Ending | None:
    """The agent sends a terminal state before an artifact of the task; the client leaves at the
    end, as it may, and the artifact arrives afterwards.

    The client never sees the artifact. The agent must send all artifacts before the terminal state;
    look for events that are sent by tasks or threads of their own.
    """
    if not call.by_client or not (is_over(call.state) or any(each.final for each in call.answers)):
        return None
    late = [each for each in call.answers_after if each.event is EventKind.ARTIFACT]
    if not late:
        return None
    closed, shown = call.exchange.closed, call.last_event
    after = format_ns(late[0].at - closed)
    return Ending(
        summary=f"{name_frame(late[0])} was sent {after} after the client had left at "
        f"{call.state or 'the final event'}",
        next_step="send every artifact before the terminal state",
        evidence=(call.place(shown), call.place(late[0])),
    )


def _shown_end(call: CallFacts) -> tuple[Exchange, str, int] | None:
    """Return another call that showed the end of the task before this one ended, with the state and
    the time."""
    if call.task is None:
        return None
    until = call.ended
    at = next((at for at, number in call.task.states if number in TERMINAL and at <= until), 0)
    if not at:
        return None
    for each in call.other_calls:
        seen = [state for state in each.states if is_over(state)]
        if seen and each.started <= until and (not each.closed or each.closed + SECOND_NS >= at):
            return each, seen[0], at
    return None


def _end_words(call: CallFacts) -> str:
    return "the client left" if call.by_client else "the recording ended"


@cause(
    "A2A-END-016",
    "end-not-sent",
    "End of the task not sent on this stream",
    Severity.WARNING,
    actor=Actor.AGENT,
    section="1.0 3.5.2",
    bindings=NETWORK,
    flagged=run_together(
        rpc_stream("SendStreamingMessage", send(), *_BEGIN, EventPause(15), finish="leave"),
        rpc("GetTask", TASK_PARAMS, task("COMPLETED", second=1), id=2),
        after=_AND_TOGETHER,
    ),
    clean=run_together(
        rpc_stream(
            "SendStreamingMessage", send(), *_BEGIN, EventPause(3), status("COMPLETED", second=1)
        ),
        rpc("GetTask", TASK_PARAMS, task("COMPLETED", second=1), id=2),
        after=_AND_TOGETHER,
    ),
)
def end_not_sent(call: CallFacts) -> Ending | None:
    """Another call shows the task in a terminal state, and two seconds later this stream has
    neither shown that state nor ended by itself: its client left, or still waits.

    The client waits for a task that has ended. The agent must send the terminal state on every
    stream of the task, and then close it; usually a subscription began after the last event was
    sent, and nothing told it that no more would come.
    """
    exchange = call.exchange
    if exchange.operation not in STREAMS or not call.is_active or exchange.error:
        return None
    if exchange.how == "complete" or call.by_agent:
        return None
    shown = _shown_end(call)
    if shown is None or call.ended - shown[2] < _END_GRACE:
        return None
    other, state, at = shown
    if call.by_client and other.operation == "CancelTask":
        return None
    return Ending(
        summary=f"the stream never showed the end: {other.operation} #{other.id} said {state} "
        f"{format_ns(call.ended - at)} before {_end_words(call)}",
        next_step="send the terminal state on every stream of the task, and close it; a client can "
        "call GetTask meanwhile",
        evidence=((other.id, -1), call.place(call.last)),
    )


@cause(
    "A2A-END-017",
    "idle-timeout",
    "Streams cut after the same silence",
    Severity.WARNING,
    actor=Actor.BETWEEN,
    section="a2a-proxy: time-outs; RFC 9110 15.6.5",
    bindings=NETWORK,
    flagged=rpc_stream("SendStreamingMessage", send(), *_BEGIN, EventPause(6), finish="cut")
    + rpc_stream("SubscribeToTask", TASK_PARAMS, snapshot("WORKING"), EventPause(6), finish="cut"),
    clean=rpc_stream(
        "SendStreamingMessage", send(), *_BEGIN, EventPause(6), status("COMPLETED", second=6)
    ),
    explains=_CUT_RULES,
)
def idle_timeout(call: CallFacts) -> Ending | None:
    """Several streams of active tasks end after the same silence on the same side, at different
    times.

    A timer ends them, not the agent's work: an idle time-out of a proxy or load balancer, or, if
    the client's side ends them, of the client. Raise that time-out, or let the agent send a comment
    or a status at shorter intervals. One stream alone proves nothing.
    """
    if not (call.exchange.operation in STREAMS and call.is_active) or call.exchange.error:
        return None
    if not (call.by_client or call.by_agent) or call.silence < MIN_TIMEOUT:
        return None
    similar = call.session.find_alike(call, "streams", "silence")
    if not similar.is_timer or (call.by_client and call.was_cancelled):
        return None
    limit = format_ns(round(sum(each.silence for each in similar.calls) / len(similar.calls)))
    others = tuple(each.place for each in similar.calls[:6])
    side = "the client's side" if call.by_client else "the agent's side"
    return Ending(
        summary=f"{similar.total} streams were cut on {side} after {limit} of silence: an idle "
        f"time-out of about {limit}",
        next_step="raise the idle time-out of the proxy, load balancer or client on that side, or "
        "let the agent send something more often",
        remaining=("a proxy or load balancer on the client's side", "a time-out of the client")
        if call.by_client
        else ("a proxy or load balancer in front of the agent", "a limit of the agent's server"),
        decides="a call to the agent without the part in between",
        severity=Severity.INFO if call.by_client else None,
        evidence=others,
    )


@cause(
    "A2A-END-018",
    "stream-ended",
    "Stream ended before its task",
    Severity.WARNING,
    actor=Actor.AGENT,
    section="1.0 3.1.2; RFC 9112 8; RFC 9113 8.1",
    bindings=NETWORK,
    flagged=rpc_stream("SendStreamingMessage", send(), *_BEGIN, finish="cut"),
    clean=rpc_stream("SendStreamingMessage", send(), *_BEGIN, status("COMPLETED", second=1)),
    explains=(*_CUT_RULES, "A2A-STREAM-007"),
)
def stream_ended(call: CallFacts) -> Ending | None:
    """The agent's side ends or breaks off a stream that has shown no terminal or interrupted state,
    no message and no error. A stream that ends after an event that cannot be decoded is not judged.

    The client does not know the outcome of the task: it must call GetTask or subscribe again. Look
    for the cause in the agent (a crash, a restart, a limit) or in a proxy in front of it.
    """
    exchange = call.exchange
    if exchange.operation not in STREAMS or exchange.error or exchange.ours:
        return None
    if not call.is_active or not (call.by_agent or exchange.how == "complete"):
        return None
    if not exchange.response_started or not call.answers:
        return None
    if exchange.how == "complete" and (call.task_state not in ACTIVE or _is_last_unread(call)):
        return None
    verb = "cut off" if call.by_agent else "ended"
    silence = f", {format_ns(call.silence)} after the last event" * (call.silence >= MIN_TIMEOUT)
    told = f"the agent's side {verb} the stream while the task was {call.task_state}{silence}"
    via = call.response_header(b"via") or ""
    server = call.response_header(b"server")
    between = via or (server if any(word in server.lower() for word in _PROXIES) else "")
    known = _known_timeout(call.silence)
    return Ending(
        summary=told + (f"; {between[:40]} is in front of the agent" if between else ""),
        next_step=f"call GetTask or SubscribeToTask for {exchange.task_id[:36]}; look into the "
        "agent's log at that time"
        + ("; if it ended nothing, look at what is in front of it" if call.by_agent else ""),
        remaining=("the agent ended it", f"an idle time-out of {known} s in front of the agent")
        if known
        else ("the agent ended it", "something between ended it")
        if call.by_agent
        else (),
        decides="the agent's log, or a second stream that ends after the same silence"
        if call.by_agent
        else "",
    )


_PROXIES = ("nginx", "envoy", "haproxy", "traefik", "varnish", "cloudflare", "cloudfront", "awselb")


def _known_timeout(duration: int) -> int:
    """Return the usual default that a duration is equal to, s; 0 if there is none."""
    for seconds in _KNOWN_TIMEOUTS:
        if 0 <= duration - seconds * SECOND_NS <= max(seconds * SECOND_NS // 50, SECOND_NS // 10):
            return seconds
    return 0


@cause(
    "A2A-END-019",
    "work-stopped",
    "Work stopped when the client left",
    Severity.WARNING,
    actor=Actor.AGENT,
    section="1.0 3.1.2, 3.1.6; 0.3 7.9",
    bindings=NETWORK,
    flagged=rpc_stream("SendStreamingMessage", send(), *_BEGIN, EventPause(1), finish="leave")
    .then(rpc("GetTask", TASK_PARAMS, task("WORKING"), id=2), 10_000 * MS)
    .then(rpc("GetTask", TASK_PARAMS, task("WORKING"), id=3), 10_000 * MS),
    clean=rpc_stream("SendStreamingMessage", send(), *_BEGIN, EventPause(1), finish="leave").then(
        rpc("GetTask", TASK_PARAMS, task("COMPLETED", second=9), id=2), 10_000 * MS
    ),
)
def work_stopped(call: CallFacts) -> Ending | None:
    """The client leaves the stream of an active task, and from then on every call shows the task as
    it was: no event, no other state, no more artifacts, for much longer than the pauses between
    events before.

    Probably the agent works only while the connection of the first client is open. The agent must
    continue a task whose client has left, or set it to a terminal state. A slow agent looks the
    same until the next change.
    """
    if not _has_left(call) or call.task is None:
        return None
    closed = call.exchange.closed
    if any(at > closed for at, _ in call.task.states) or call.answers_after:
        return None
    later = [each for each in call.other_calls if each.started >= closed]
    seen = [each for each in later if each.events and each.states]
    if not seen or any(each.streaming and each.events > 1 for each in later):
        return None
    if any(is_over(state) or is_waiting(state) for each in seen for state in each.states):
        return None
    sizes = {call.session.call(each.id).size for each in seen if each.operation == "GetTask"}
    pauses = [b.at - a.at for a, b in zip(call.answers, call.answers[1:], strict=False)]
    observed = seen[-1].closed - closed
    if len(sizes) > 1 or observed < max(_OBSERVED, 3 * max(pauses, default=0)):
        return None
    polls = ", ".join(f"#{each.id}" for each in seen[:5])
    return Ending(
        summary=f"task {call.exchange.task_id[:8]} is {seen[-1].states[-1]} and has not changed in "
        f"the {format_ns(observed)} since its client left ({polls})",
        next_step="let the task run on its own, not in the handler of the request; a client can "
        "cancel it and send the message again",
        confidence=LOW,
        remaining=("the agent's work ended with the connection", "the agent is slow"),
        decides="the agent's log, or a later GetTask",
        evidence=(call.place(call.frames[-1]), *((each.id, -1) for each in seen[:5])),
    )


@cause(
    "A2A-END-020",
    "client-timeout",
    "Time-out of the client",
    Severity.INFO,
    actor=Actor.CLIENT,
    section="a2a-proxy: time-outs",
    flagged=rpc("SendMessage", send(), seconds=6, finish="leave")
    + rpc("SendMessage", send(id="m2"), id=2, seconds=6, finish="leave"),
    clean=rpc("SendMessage", send(), snapshot("COMPLETED"), seconds=6),
)
def client_timeout(call: CallFacts) -> Ending | None:
    """The client leaves several calls after the same duration, each before its first answer or
    while its task is active. One call alone is named only if its duration is a usual default, and
    with low confidence: people press Ctrl-C too.

    The agent was not asked to stop and works on. Give the client more time, let it use a stream, or
    send the message with `returnImmediately` and ask for the task later.
    """
    exchange = call.exchange
    unanswered = call.by_client and not exchange.events and not exchange.error
    if not (unanswered or _has_left(call)) or call.elapsed < MIN_TIMEOUT:
        return None
    # One timer for whole calls, or one for silences.
    same = call.session.find_alike(call, "all", "elapsed")
    if not same.is_timer and call.silence >= MIN_TIMEOUT:
        same = call.session.find_alike(call, "all", "silence")
    known = _known_timeout(call.elapsed)
    sure = same.is_timer
    if not sure and not known:
        return None
    took = format_ns(call.elapsed)
    what = "without an answer" if unanswered else f"while the task was {call.task_state}"
    told = f"{same.total} calls were given up after {took}" if sure else f"given up after {took}"
    return Ending(
        summary=f"{told} {what}: {'a' if sure else 'maybe a'} time-out of the client",
        next_step="give the client more time, use a stream, or send with returnImmediately and "
        "call GetTask later",
        confidence=HIGH if sure else LOW,
        remaining=()
        if sure
        else (f"the client has a time-out of {known} s", "its user or program ended the call"),
        decides="" if sure else "a second call that is given up after the same time",
        evidence=tuple((each.place[0], -1) for each in same.calls[:6]) or (call.place(None),),
    )


@cause(
    "A2A-END-021",
    "agent-silent",
    "Agent silent",
    Severity.INFO,
    actor=Actor.AGENT,
    section="a2a-proxy: latency",
    bindings=NETWORK | WEBSOCKET,
    flagged=rpc("SendMessage", send(), seconds=24, finish="open").then(CLEAN_SEND, 24_000 * MS),
    clean=CLEAN_SEND,
)
def agent_silent(call: CallFacts) -> Ending | None:
    """The agent has sent nothing for a call in 10 s, or nothing on the stream of an active task in
    30 s, when the client leaves or the recording ends.

    Either the agent still works and does not say so, or it hangs. Agents should answer with a task
    and send status updates; the client can call GetTask if it knows the task.
    """
    exchange = call.exchange
    if exchange.error or exchange.ours or exchange.binding not in NETWORK | WEBSOCKET:
        return None
    if not (call.by_client or _is_unfinished(call)):
        return None
    if exchange.events:
        is_stalled = exchange.operation in STREAMS and call.is_active
        is_silent = is_stalled and call.silence >= _MIN_STALL and not call.was_cancelled
    else:
        is_silent = call.silence >= _MIN_SILENCE and not exchange.waits
        is_silent = is_silent and not (
            exchange.operation == "SubscribeToTask" and not call.by_client
        )
    if not is_silent:
        return None
    since = f"since {name_frame(call.last)}" if call.last is not None else "since the request"
    ended = "when the client left" if call.by_client else "when the recording ended"
    ended = ended if exchange.closed else "and the call is open"
    return Ending(
        summary=f"nothing from the agent for {format_ns(call.silence)} {since}, {ended}",
        next_step=f"call GetTask for {exchange.task_id[:36]}"
        if exchange.task_id
        else "look into the agent's log: did the request arrive, and what does it wait for?",
        confidence=LOW,
        remaining=("the agent still works", "the agent hangs"),
        decides="GetTask, or the agent's log",
        evidence=(call.place(call.last),),
    )


@cause(
    "A2A-END-022",
    "client-failed",
    "Client left right after a frame",
    Severity.INFO,
    actor=Actor.CLIENT,
    section="1.0 3.1.2; HTML 9.2.6",
    bindings=NETWORK,
    flagged=rpc_stream("SendStreamingMessage", send(), *_BEGIN, finish="leave").then(
        fetch_card(), 10_000 * MS
    ),
    clean=rpc_stream("SendStreamingMessage", send(), *_BEGIN, status("COMPLETED", second=1)),
)
def client_failed(call: CallFacts) -> Ending | None:
    """The client leaves the stream of an active task within 50 ms of a frame, and does not ask for
    the task again.

    It may have failed on that frame: on a comment that its parser does not know, on an event or a
    member that it does not expect. Look into the client's log at this time. A client that wanted no
    more than this event looks the same.
    """
    frame = call.last
    if not _has_left(call) or frame is None or call.silence > _FAILED_WITHIN:
        return None
    if any(each.started > call.exchange.closed for each in call.other_calls):
        return None
    went_on = " while the agent worked on" if call.answers_after else ""
    return Ending(
        summary=f"the client left {format_ns(call.silence)} after {name_frame(frame)} "
        f"(#{call.exchange.id}.{frame.seq}){went_on}: it may have failed on it",
        next_step="look into the client's log: did it raise an error on this frame?",
        suspect=call.place(frame),
        confidence=LOW,
        remaining=("the client failed on the frame", "the client wanted no more"),
        decides="the client's log",
        evidence=(call.place(frame),),
    )


@cause(
    "A2A-END-023",
    "task-left",
    "Task that its client left",
    Severity.INFO,
    actor=Actor.CLIENT,
    section="1.0 3.1.2, 3.1.6; 0.3 7.2, 7.9",
    bindings=NETWORK,
    flagged=rpc_stream("SendStreamingMessage", send(), *_BEGIN, EventPause(1), finish="leave").then(
        fetch_card(), 60_000 * MS
    ),
    clean=rpc_stream("SendStreamingMessage", send(), *_BEGIN, EventPause(1), finish="leave")
    + rpc_stream(
        "SubscribeToTask", TASK_PARAMS, snapshot("WORKING"), status("COMPLETED", second=1)
    ),
)
def task_left(call: CallFacts) -> Ending | None:
    """A client leaves the stream of an active task, and for 30 s no client requests that task and
    no connection delivers news of it.

    Leaving a stream does not cancel the task: it continues, may cost money, and its result is not
    fetched. The client should call CancelTask, or return with SubscribeToTask or GetTask.
    """
    exchange = call.exchange
    if not _has_left(call) or call.session.ended - exchange.closed < _RETURN_TIME:
        return None
    until = exchange.closed + _RETURN_TIME
    if any(each.closed >= exchange.closed and each.started <= until for each in call.other_calls):
        return None
    if call.task is not None and exchange.closed < call.task.last <= until:
        return None
    return Ending(
        summary=f"the client left after {format_ns(call.elapsed)} while the task was "
        f"{call.task_state or 'active'}, and did not ask for it within 30 s",
        next_step=f"call GetTask or CancelTask for {exchange.task_id[:36]}",
        evidence=(call.place(call.last),),
    )


@cause(
    "A2A-END-024",
    "client-left",
    "Client left",
    Severity.INFO,
    actor=Actor.CLIENT,
    section="1.0 3.1.2; 0.3 7.2",
    bindings=NETWORK,
    flagged=rpc("SendMessage", send(), finish="leave"),
    clean=CLEAN_SEND,
    is_failure=False,
)
def client_left(call: CallFacts) -> Ending | None:
    """The client leaves a call that is not answered, or the stream of an active task, and nothing
    shows why.

    It is no failure by itself, so `check` does not report it. A client that half-closes its
    connection after the request and receives the whole answer has not left.
    """
    exchange = call.exchange
    if exchange.how not in CLIENT_LEFT or is_over(call.state) or is_waiting(call.state):
        return None
    if call.last_event is not None and not _has_left(call):
        return None
    if call.session.may_half_close(exchange):
        return None
    back = next((each for each in call.other_calls if each.started > exchange.closed), None)
    state = f" while the task was {call.task_state}" if call.task_state in ACTIVE else ""
    returned = f"; it came back with #{back.id}" if back is not None else ""
    return Ending(
        summary=f"the client left after {format_ns(call.elapsed)}{state}{returned}",
        next_step="nothing" if back is not None else "look into the client's log at that time",
        remaining=() if back is not None else ("a time-out", "its user or program ended it"),
        decides="" if back is not None else "a second call that ends after the same time",
    )


_UNRECORDED = {
    "proxy stopped": "open when the proxy stopped",
    "proxy killed": "open when the proxy was killed",
}
"""When the recording of a call ends, by how the call ended."""


@cause(
    "A2A-END-025",
    "not-recorded",
    "End not recorded",
    Severity.INFO,
    actor=Actor.EITHER,
    section="a2a-proxy: completeness of a recording",
    flagged=rpc_stream("SendStreamingMessage", send(), *_BEGIN, finish="stop"),
    clean=rpc_stream("SendStreamingMessage", send(), *_BEGIN, status("COMPLETED", second=1)),
    is_failure=False,
)
def not_recorded(call: CallFacts) -> Ending | None:
    """The recording does not show how the call ended: it is open, the proxy stopped, bytes were not
    captured, or the connection left HTTP/1.

    It is no failure, so `check` does not report it.
    """
    exchange = call.exchange
    how = exchange.how
    known = ("complete", "agent reset", "agent gone", "agent exited", *CLIENT_LEFT)
    if how in known or exchange.ours or exchange.error or is_over(call.state):
        return None
    if not _is_unfinished(call):
        return Ending(summary=how, next_step="nothing")
    since = f"since {name_frame(call.last)}" if call.last is not None else "since the request"
    when = _UNRECORDED.get(how, "still open")
    return Ending(
        summary=f"{when}: nothing from the agent for {format_ns(call.silence)} {since}",
        next_step=f"call GetTask for {exchange.task_id[:36]}"
        if exchange.task_id
        else "look into the agent's log: did the request arrive, and what does it wait for?",
    )
