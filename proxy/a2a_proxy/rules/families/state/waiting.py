"""States in which a task waits, and going back (A2A 1.0 sections 3.4.3, 7.6.1)."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.finding import Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import EVERY, Dialects, EvidenceScope, FrameFlag, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rpc, rpc_stream
from a2a_proxy.rules.examples.objects import asking, reply, send, snapshot, state, status
from a2a_proxy.rules.facts.naming import holder, named
from a2a_proxy.rules.facts.partial_decode import earlier, status_of
from a2a_proxy.rules.families.state.terminal import label
from a2a_proxy.rules.state.records import TaskRecord
from a2a_proxy.rules.state.state_sequence import SENDING_OPERATIONS, TERMINAL

_WORKS = frozenset({TaskState.WORKING, TaskState.COMPLETED})
_QUESTION = reply("which one?", id="q1", taskId="t1")
_AUTH = state("AUTH_REQUIRED", message=reply("a token for the calendar, please", id="q1", taskId="t1"))
_ASKED = rpc("SendMessage", send(), snapshot("INPUT_REQUIRED", status=asking()))


def _path(see: RuleContext) -> str:
    return f"{see.root}{holder(see.frame, see.v1, see.operation)}status"


@rule(
    "A2A-STATE-002",
    "A task went back to SUBMITTED",
    Severity.WARNING,
    section="1.0 4.1.3",
    scope=EvidenceScope.LIVE,
    when=FrameFlag.CHANGED,
    flagged=rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot("WORKING"),
        status("SUBMITTED", second=1),
        status("COMPLETED", second=2),
    ),
    clean=rpc_stream("SendStreamingMessage", send(), snapshot(), status("WORKING"), status("COMPLETED", second=1)),
)
def back(see: RuleContext) -> Iterator[RuleFinding]:
    """A task that this stream has shown in another state, or that a message went on with in another state, is shown as
    SUBMITTED.

    SUBMITTED means that the agent has the task and has not begun. Progress displays start again, and what waits for the
    state to advance waits on.
    """
    frame, asked = see.frame, see.track.asked
    if frame.state != TaskState.SUBMITTED or see.is_(FrameFlag.STALE):
        return
    before = see.shown_before
    if not before and asked is not None and asked.task_id == frame.task_id and see.operation in SENDING_OPERATIONS:
        before = asked.state
    if before and before not in TERMINAL:
        told = f"task {frame.task_id} was {label(before)}, {named(frame)} now says submitted"
        yield RuleFinding(summary=told, path=f"{_path(see)}.state", value="submitted")


@rule(
    "A2A-STATE-003",
    "A task left INPUT_REQUIRED without input",
    Severity.WARNING,
    section="1.0 3.4.3",
    scope=EvidenceScope.LIVE,
    when=FrameFlag.CHANGED,
    flagged=rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot(),
        status("INPUT_REQUIRED", second=1, said=_QUESTION),
        status("WORKING", second=2),
        status("COMPLETED", second=3),
    ),
    clean=_ASKED + rpc("SendMessage", send("this one", id="m2", taskId="t1"), snapshot("COMPLETED", second=2)),
)
def unasked(see: RuleContext) -> Iterator[RuleFinding]:
    """A task goes from INPUT_REQUIRED to WORKING or COMPLETED, and no client has sent it a message since the state
    before that, on any connection seen. FAILED, CANCELED and REJECTED need none.

    A client that shows the question has the answer form open for nothing; if the agent has answered for the user, no
    one knows with what.
    """
    frame, task = see.frame, see.task
    if frame.state not in _WORKS or task is None or not _from_input(see):
        return
    if task.spoken <= _since(task):
        told = f"task {frame.task_id} was input-required, {named(frame)} says {label(frame.state)}"
        yield RuleFinding(summary=f"{told}, and no message came in between", path=f"{_path(see)}.state")


def _from_input(see: RuleContext) -> bool:
    """INPUT_REQUIRED is what this stream has shown last; or a snapshot is later than that was, by its timestamp."""
    if see.shown_before or see.operation in SENDING_OPERATIONS:
        return see.shown_before == TaskState.INPUT_REQUIRED
    asked = see.track.asked
    if asked is None or asked.state != TaskState.INPUT_REQUIRED or see.before != asked.state:
        return False
    return earlier(asked.stamp, status_of(see.frame).stamp) > 0


def _since(task: TaskRecord) -> int:
    """When the state before INPUT_REQUIRED began: a message after that may have waited for it. The change to the
    present state is the last entry."""
    states = task.states[:-1]
    index = max((at for at, (_, state) in enumerate(states) if state == TaskState.INPUT_REQUIRED), default=0)
    return states[index - 1][0] if index else task.first


@rule(
    "A2A-STATE-006",
    "AUTH_REQUIRED without an explanation",
    Severity.WARNING,
    section="1.0 7.6.1",
    lines=Dialects.V1,
    bindings=EVERY,
    when=FrameFlag.INTERRUPTED,
    flagged=rpc("SendMessage", send(), snapshot("AUTH_REQUIRED")),
    clean=rpc("SendMessage", send(), snapshot("AUTH_REQUIRED", status=_AUTH)),
)
def unexplained(see: RuleContext) -> Iterator[RuleFinding]:
    """A task goes to AUTH_REQUIRED, and its status has no message. The message has to say which credentials are wanted,
    unless that was agreed upon in another way, which cannot be seen.

    A client has nothing to show to its user, and nothing to get credentials with.
    """
    if see.frame.state == TaskState.AUTH_REQUIRED and _silent(see):
        told = f"task {see.frame.task_id} is auth-required, and its status has no message that says what is wanted"
        yield RuleFinding(summary=told, path=_path(see))


def _silent(see: RuleContext) -> bool:
    """The state is new, and the status has no message."""
    frame = see.frame
    if not see.is_(FrameFlag.CHANGED) or frame.message_id or frame.truncated:
        return False
    return status_of(frame).said is None


@rule(
    "A2A-STATE-007",
    "INPUT_REQUIRED without a question",
    Severity.INFO,
    section="1.0 3.4.3",
    bindings=EVERY,
    when=FrameFlag.INTERRUPTED,
    flagged=rpc("SendMessage", send(), snapshot("INPUT_REQUIRED")),
    clean=_ASKED,
)
def unquestioned(see: RuleContext) -> Iterator[RuleFinding]:
    """A task goes to INPUT_REQUIRED, and its status has no message.

    A client can tell its user that something is missing, but not what.
    """
    if see.frame.state == TaskState.INPUT_REQUIRED and _silent(see):
        told = f"task {see.frame.task_id} is input-required, and its status has no message that asks for something"
        yield RuleFinding(summary=told, path=_path(see))
