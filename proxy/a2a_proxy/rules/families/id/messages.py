"""Ids of messages: one id, one message (A2A 1.0 sections 3.3.1, 4.1.4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from a2a_proxy.model.finding import Severity
from a2a_proxy.model.frame import Frame
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import Dialects, EvidenceScope, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rpc, rpc_stream
from a2a_proxy.rules.examples.objects import agent_reply, reply, send, snapshot, status
from a2a_proxy.rules.facts.partial_decode import PartsSummary
from a2a_proxy.rules.facts.request_summary import RequestSummary, summarise_request
from a2a_proxy.rules.state.state_sequence import SENDING_OPERATIONS

_MAX_MESSAGES = 5000
"""Messages of clients that are remembered."""
_FIRST_SEND = rpc("SendMessage", send("hello"), agent_reply())
_SECOND_SEND = rpc("SendMessage", send("good bye"), agent_reply(id="r2"))


@rule(
    "A2A-ID-009",
    "A client used a messageId again",
    Severity.WARNING,
    section="1.0 3.3.1, 4.1.4",
    hook_points=(HookPoint.REQUEST, HookPoint.CLOSED),
    scope=EvidenceScope.LIVE,
    dialects=Dialects.SINCE_0_2,
    operations=SENDING_OPERATIONS,
    flagged=_FIRST_SEND + _SECOND_SEND,
    clean=_FIRST_SEND + rpc("SendMessage", send("good bye", id="m2"), agent_reply(id="r2")),
)
def used_again(context: RuleContext) -> Iterable[RuleFinding]:
    """A client sends a message with the id of one that it sent before to this agent and that was not refused, and with
    other parts. Information where the parts are the same: that is a retry, and it is said whether it made a second
    task. Clients are told apart by host and `User-Agent`.

    Agents may drop a message the id of which they have seen: the new content gets lost.
    """
    if context.frame_or_none is None:
        return _check_retry(context)
    if not context.frame_or_none.message_id or "message_id" in context.frame_or_none.redacted:
        return ()
    return _check_sent_message(context, context.frame_or_none)


def _check_sent_message(context: RuleContext, frame: Frame) -> Iterable[RuleFinding]:
    record, look = context.record, _request_summary(context)
    if not look.parts:
        return ()
    digest = 0 if frame.redacted or frame.truncated else content_hash(look.content)
    key = f"{record.agent} {record.client} {context.request_header('user-agent')} {frame.message_id}"
    known: dict[str, Any] = context.session.notes.setdefault("sent", {})
    before = known.pop(key, None)
    known[key] = {"digest": digest, "exchange": record.id, "connection": record.connection, "task": ""}
    if len(known) > _MAX_MESSAGES:
        del known[next(iter(known))]
    notes = record.writable_notes()
    notes["sent"] = key
    if before is None or before["exchange"] == record.id or not digest:
        return ()
    if before["digest"] and digest != before["digest"]:
        told = f"message id {frame.message_id} stood for other content in exchange {before['exchange']}"
        path = f"{context.root}message.messageId"
        same = before["connection"] == record.connection
        return (RuleFinding(summary=told, path=path, value=frame.message_id, is_sure=same),)
    notes["resent"] = before
    return ()


def _request_summary(context: RuleContext) -> RequestSummary:
    """What the request says, read once for all rules."""
    found: RequestSummary | None = context.cache.get("sent")
    if found is None:
        found = context.cache["sent"] = summarise_request(context.frame)
    return found


def content_hash(content: PartsSummary) -> int:
    """The content as a number that can be kept, and is the same in each process."""
    return hash((content.length, content.digest, content.byte_count, content.other_parts))


def _check_retry(context: RuleContext) -> Iterable[RuleFinding]:
    record = context.record
    notes = record.notes
    if notes is None or "sent" not in notes:
        return ()
    known = context.session.notes.get("sent", {})
    entry = known.get(notes["sent"])
    if entry is not None and entry["exchange"] == record.id:
        if record.errors and not record.events:  # refused: it may be sent again
            del known[notes["sent"]]
        entry["task"] = record.task_id
    before = notes.get("resent")
    if before is None or not record.events:
        return ()
    first = before["task"]
    told = f"message id {notes['sent'].rpartition(' ')[2]} was sent before in exchange {before['exchange']}"
    if (
        first
        and record.task_id
        and first != record.task_id
        and record.request_snapshot is not None
        and not record.request_snapshot.task_id
    ):
        told = f"{told}; the agent made a second task of it: {first}, then {record.task_id}"
    return (RuleFinding(summary=told, severity=Severity.INFO, seq=0),)


@rule(
    "A2A-ID-012",
    "A referenced task is unknown",
    Severity.INFO,
    section="1.0 3.4.3",
    hook_points=HookPoint.REQUEST,
    scope=EvidenceScope.LIVE,
    dialects=Dialects.SINCE_0_2,
    operations=SENDING_OPERATIONS,
    flagged=rpc("SendMessage", send(referenceTaskIds=["zz"]), agent_reply()),
    clean=rpc("SendMessage", send(), snapshot("COMPLETED"))
    + rpc("SendMessage", send(id="m2", referenceTaskIds=["t1"]), agent_reply(id="r2")),
)
def unknown_reference(context: RuleContext) -> Iterator[RuleFinding]:
    """`referenceTaskIds` of a message has an id that was never seen from this agent.

    The agent cannot look up what the client refers to, and most of them then go on without it.
    """
    frame = context.frame
    if frame.schema == "json" and b"eference" not in frame.payload:
        return
    for index, each in enumerate(_request_summary(context).references[:100]):
        if not context.session.has_seen_task(context.record.agent, each) and "redacted-" not in each:
            path = f"{context.root}message.referenceTaskIds[{index}]"
            told = f"the message refers to task {each}, which was never seen from this agent"
            yield RuleFinding(summary=told, path=path, value=each, is_sure=False)


def _working_update(text: str, *, id: str, second: int) -> dict[str, Any]:
    return status("WORKING", second=second, message=reply(text, id=id, taskId="t1"))


@rule(
    "A2A-ID-015",
    "An agent used a messageId again",
    Severity.WARNING,
    section="1.0 4.1.4",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.REUSED_MESSAGE_ID,
    flagged=rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot(),
        _working_update("half of it", id="m5", second=1),
        _working_update("something else", id="m5", second=2),
        status("COMPLETED", second=3),
    ),
    clean=rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot(),
        _working_update("half of it", id="m5", second=1),
        _working_update("something else", id="m6", second=2),
        status("COMPLETED", second=3),
    ),
)
def agent_again(context: RuleContext) -> Iterator[RuleFinding]:
    """The message of a status has the id of an earlier one of the task, and other content. Information where the text
    only grew: some agents write one message in steps.

    Clients that keep messages by id overwrite the earlier one, or drop this one as known.
    """
    frame = context.frame
    grew = context.has_flag(FrameFlag.GROWN)
    told = f"message id {frame.message_id} stood for other content of task {frame.task_id} before"
    if grew:
        told = f"message id {frame.message_id} of task {frame.task_id} came before with the beginning of this text"
    wrapper = "statusUpdate." if context.is_v1 and context.has_flag(FrameFlag.STATUS) else ""
    place = f"{context.root}{wrapper}status.message.messageId"
    yield RuleFinding(summary=told, path=place, value=frame.message_id, severity=Severity.INFO if grew else None)
