"""Ids of messages: one id, one message (A2A 1.0 sections 3.3.1, 4.1.4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from a2a_proxy.model.finding import Severity
from a2a_proxy.model.frame import Frame
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import Dialects, EvidenceScope, FrameFlag, HookPoint, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rpc, rpc_stream
from a2a_proxy.rules.examples.objects import reply, said, send, snapshot, status
from a2a_proxy.rules.facts.partial_decode import PartsSummary
from a2a_proxy.rules.facts.request_summary import RequestSummary, sent
from a2a_proxy.rules.state.state_sequence import SENDING_OPERATIONS

_KEPT = 5000
"""Messages of clients that are remembered."""
_FIRST_SENT = rpc("SendMessage", send("hello"), said())
_AGAIN = rpc("SendMessage", send("good bye"), said(id="r2"))


@rule(
    "A2A-ID-009",
    "A client used a messageId again",
    Severity.WARNING,
    section="1.0 3.3.1, 4.1.4",
    moment=(HookPoint.REQUEST, HookPoint.CLOSED),
    scope=EvidenceScope.LIVE,
    lines=Dialects.SINCE_0_2,
    operations=SENDING_OPERATIONS,
    flagged=_FIRST_SENT + _AGAIN,
    clean=_FIRST_SENT + rpc("SendMessage", send("good bye", id="m2"), said(id="r2")),
)
def used_again(see: RuleContext) -> Iterable[RuleFinding]:
    """A client sends a message with the id of one that it sent before to this agent and that was not refused, and with
    other parts. Information where the parts are the same: that is a retry, and it is said whether it made a second
    task. Clients are told apart by host and `User-Agent`.

    Agents may drop a message the id of which they have seen: the new content gets lost.
    """
    if see.shown is None:
        return _retried(see)
    if not see.shown.message_id or "message_id" in see.shown.redacted:
        return ()
    return _sent(see, see.shown)


def _sent(see: RuleContext, frame: Frame) -> Iterable[RuleFinding]:
    track, look = see.track, _look(see)
    if not look.parts:
        return ()
    digest = 0 if frame.redacted or frame.truncated else hash_of(look.content)
    key = f"{track.agent} {track.client} {see.asked_field('user-agent')} {frame.message_id}"
    known: dict[str, Any] = see.world.notes.setdefault("sent", {})
    before = known.pop(key, None)
    known[key] = {"digest": digest, "exchange": track.id, "connection": track.connection, "task": ""}
    if len(known) > _KEPT:
        del known[next(iter(known))]
    notes = track.remember()
    notes["sent"] = key
    if before is None or before["exchange"] == track.id or not digest:
        return ()
    if before["digest"] and digest != before["digest"]:
        told = f"message id {frame.message_id} stood for other content in exchange {before['exchange']}"
        path = f"{see.root}message.messageId"
        same = before["connection"] == track.connection
        return (RuleFinding(summary=told, path=path, value=frame.message_id, sure=same),)
    notes["resent"] = before
    return ()


def _look(see: RuleContext) -> RequestSummary:
    """What the request says, read once for all rules."""
    found: RequestSummary | None = see.cache.get("sent")
    if found is None:
        found = see.cache["sent"] = sent(see.frame)
    return found


def hash_of(content: PartsSummary) -> int:
    """The content as a number that can be kept, and is the same in each process."""
    return hash((content.length, content.digest, content.octets, content.others))


def _retried(see: RuleContext) -> Iterable[RuleFinding]:
    track = see.track
    notes = track.notes
    if notes is None or "sent" not in notes:
        return ()
    known = see.world.notes.get("sent", {})
    entry = known.get(notes["sent"])
    if entry is not None and entry["exchange"] == track.id:
        if track.errors and not track.events:  # refused: it may be sent again
            del known[notes["sent"]]
        entry["task"] = track.task_id
    before = notes.get("resent")
    if before is None or not track.events:
        return ()
    first = before["task"]
    told = f"message id {notes['sent'].rpartition(' ')[2]} was sent before in exchange {before['exchange']}"
    if first and track.task_id and first != track.task_id and track.asked is not None and not track.asked.task_id:
        told = f"{told}; the agent made a second task of it: {first}, then {track.task_id}"
    return (RuleFinding(summary=told, severity=Severity.INFO, seq=0),)


@rule(
    "A2A-ID-012",
    "A referenced task is unknown",
    Severity.INFO,
    section="1.0 3.4.3",
    moment=HookPoint.REQUEST,
    scope=EvidenceScope.LIVE,
    lines=Dialects.SINCE_0_2,
    operations=SENDING_OPERATIONS,
    flagged=rpc("SendMessage", send(referenceTaskIds=["zz"]), said()),
    clean=rpc("SendMessage", send(), snapshot("COMPLETED"))
    + rpc("SendMessage", send(id="m2", referenceTaskIds=["t1"]), said(id="r2")),
)
def unknown_reference(see: RuleContext) -> Iterator[RuleFinding]:
    """`referenceTaskIds` of a message has an id that was never seen from this agent.

    The agent cannot look up what the client refers to, and most of them then go on without it.
    """
    frame = see.frame
    if frame.schema == "json" and b"eference" not in frame.payload:
        return
    for index, each in enumerate(_look(see).references[:100]):
        if not see.world.ever(see.track.agent, each) and "redacted-" not in each:
            path = f"{see.root}message.referenceTaskIds[{index}]"
            told = f"the message refers to task {each}, which was never seen from this agent"
            yield RuleFinding(summary=told, path=path, value=each, sure=False)


def _working(text: str, *, id: str, second: int) -> dict[str, Any]:
    return status("WORKING", second=second, said=reply(text, id=id, taskId="t1"))


@rule(
    "A2A-ID-015",
    "An agent used a messageId again",
    Severity.WARNING,
    section="1.0 4.1.4",
    scope=EvidenceScope.LIVE,
    lines=Dialects.SINCE_0_2,
    when=FrameFlag.RESAID,
    flagged=rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot(),
        _working("half of it", id="m5", second=1),
        _working("something else", id="m5", second=2),
        status("COMPLETED", second=3),
    ),
    clean=rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot(),
        _working("half of it", id="m5", second=1),
        _working("something else", id="m6", second=2),
        status("COMPLETED", second=3),
    ),
)
def agent_again(see: RuleContext) -> Iterator[RuleFinding]:
    """The message of a status has the id of an earlier one of the task, and other content. Information where the text
    only grew: some agents write one message in steps.

    Clients that keep messages by id overwrite the earlier one, or drop this one as known.
    """
    frame = see.frame
    grew = see.is_(FrameFlag.GROWN)
    told = f"message id {frame.message_id} stood for other content of task {frame.task_id} before"
    if grew:
        told = f"message id {frame.message_id} of task {frame.task_id} came before with the beginning of this text"
    place = f"{see.root}{'statusUpdate.' if see.v1 and see.is_(FrameFlag.STATUS) else ''}status.message.messageId"
    yield RuleFinding(summary=told, path=place, value=frame.message_id, severity=Severity.INFO if grew else None)
