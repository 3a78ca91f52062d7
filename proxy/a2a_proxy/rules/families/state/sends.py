"""Rules about the answer to a message, and its time (A2A 1.0 sections 3.2.2, 3.7)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from a2a_proto.shapes.shape import Family
from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import EventKind, FrameKind, Severity
from a2a_proxy.protocol.artifact_chunks import chunks_of_frame
from a2a_proxy.protocol.status_summary import decode_status
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import Dialects, EvidenceScope, FrameFlag
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import QUESTION_CALL, rpc, rpc_stream
from a2a_proxy.rules.examples.objects import (
    agent_reply,
    chunk,
    reply,
    send,
    snapshot,
    status,
)
from a2a_proxy.rules.facts.naming import object_prefix, state_label
from a2a_proxy.rules.schema.check import request_dialect
from a2a_proxy.rules.state.records import ACTIVE
from a2a_proxy.rules.state.state_sequence import SECOND_NS, SENDING_OPERATIONS

_WAIT_MEMBER = re.compile(rb"mmediately|locking|\\u")
"""Parts of the names `returnImmediately` and `blocking`. A JSON payload without a match has neither
member, not even in an escaped spelling."""


class _SendConfiguration(msgspec.Struct, rename="camel", gc=False):
    return_immediately: bool | None = None


class _SendRequest(msgspec.Struct, gc=False):
    """A 1.0 request, with or without its envelope. Other members are not decoded."""

    params: _SendRequest | None = None
    configuration: _SendConfiguration | None = None


_decode_send = msgspec.json.Decoder(_SendRequest).decode


def _decode_return_immediately(payload: bytes, *, rpc: bool) -> bool | None:
    """Return `returnImmediately` if it is in its regular place and of the right type; None means
    that `RuleContext.params` must be read."""
    try:
        made = _decode_send(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    holder = made.params if rpc else made
    found = holder.configuration if holder is not None else None
    return found.return_immediately if found is not None else None


_IMMEDIATE_CONFIGURATION = {"returnImmediately": True}
_MAX_IMMEDIATE = 5
"""Seconds within which a call with `returnImmediately` must be answered."""
_MAX_SHORT_TEXT = 200
"""Characters of text up to which a message counts as a remark, not as a result."""


def _returns_immediately(context: RuleContext) -> bool | None:
    """Return `returnImmediately` of the request (0.x: the opposite of `blocking`), or None if the
    request does not set it."""
    asked = context.request
    if asked is None or (asked.schema == "json" and not _WAIT_MEMBER.search(asked.payload)):
        return None
    if (
        context.is_v1
        and asked.schema == "json"
        and (quick := _decode_return_immediately(asked.payload, rpc=context.is_enveloped))
        is not None
    ):
        return quick
    configuration: Any = context.params.get("configuration")
    found = configuration.get("returnImmediately") if isinstance(configuration, dict) else None
    return found if isinstance(found, bool) else None


@rule(
    "A2A-STATE-014",
    "Blocking SendMessage answered before the task stopped",
    Severity.ERROR,
    section="1.0 3.2.2; 0.3 7.1.2",
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.TASK,
    operations=("SendMessage",),
    flagged=rpc("SendMessage", send(), snapshot("WORKING")),
    clean=rpc("SendMessage", send(), snapshot("COMPLETED")),
)
def early(context: RuleContext) -> Iterator[RuleFinding]:
    """SendMessage without `returnImmediately` is answered with a task that is SUBMITTED or WORKING.
    Before 1.0, where the agent may choose, this is judged only with `blocking: true`. Not judged if
    the answer has the form of another version than the request (A2A-VER-007).

    A client that does not poll takes this answer for the result, which it does not contain. The
    agent must answer only when the task has ended or needs input from the client.
    """
    frame = context.frame
    if (
        frame.state not in ACTIVE or frame.kind is FrameKind.EVENT
    ):  # A2A-HTTP-005 judges a stream in place of an answer
        return
    wanted = _returns_immediately(context)
    if wanted or (wanted is None and not context.is_v1):
        return
    if not context.is_v1 or request_dialect(context) not in (Family.OLD, Family.OLDEST):
        asked = "`returnImmediately` is not set" if context.is_v1 else "`blocking` is true"
        told = (
            f"the answer is task {frame.task_id} in state {state_label(frame.state)}, although "
            f"{asked}"
        )
        path = f"{context.root}{object_prefix(frame, context.is_v1, context.operation)}status.state"
        yield RuleFinding(
            summary=f"{told}: the agent must wait until it ends or needs input",
            path=path,
            value=state_label(frame.state),
        )


@rule(
    "A2A-STATE-015",
    "SendMessage with `returnImmediately` answered late",
    Severity.WARNING,
    section="1.0 3.2.2; 0.3 7.1.2",
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.TASK,
    operations=("SendMessage",),
    flagged=rpc(
        "SendMessage",
        send(configuration=_IMMEDIATE_CONFIGURATION),
        snapshot("COMPLETED"),
        seconds=40,
    ),
    clean=rpc("SendMessage", send(configuration=_IMMEDIATE_CONFIGURATION), snapshot("SUBMITTED")),
)
def waited(context: RuleContext) -> Iterator[RuleFinding]:
    """SendMessage with `returnImmediately: true` (before 1.0 `blocking: false`) is answered with a
    task, but only after more than five seconds.

    The client waits for work that it wanted to follow in another way, and its request may time out.
    The agent must answer at once with the task as it is.
    """
    request_snapshot = context.record.request_snapshot
    if (
        request_snapshot is None
        or context.at - request_snapshot.at <= _MAX_IMMEDIATE * SECOND_NS
        or not _returns_immediately(context)
    ):
        return
    took = (context.at - request_snapshot.at) / SECOND_NS
    option = "`returnImmediately` is true" if context.is_v1 else "`blocking` is false"
    told = (
        f"{option}, but the answer took {took:.1f} s: a task in state "
        f"{state_label(context.frame.state)}"
    )
    yield RuleFinding(summary=told)


@rule(
    "A2A-STATE-016",
    "Message to a task answered without the task",
    Severity.WARNING,
    section='1.0 topic "Life of a Task"; 0.3 topic "Life of a Task"',
    scope=EvidenceScope.LIVE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.MESSAGE,
    operations=SENDING_OPERATIONS,
    flagged=QUESTION_CALL
    + rpc("SendMessage", send("this one", id="m2", taskId="t1"), agent_reply()),
    clean=QUESTION_CALL
    + rpc("SendMessage", send("this one", id="m2", taskId="t1"), snapshot("COMPLETED", second=1)),
)
def bare(context: RuleContext) -> Iterator[RuleFinding]:
    """A message for a task that has not ended is answered with a Message, instead of with the task
    or its events.

    The client does not learn the state of its task. The agent should answer with the task and put
    its text into the message of the task's status.
    """
    request_snapshot = context.record.request_snapshot
    if (
        request_snapshot is not None
        and request_snapshot.task_id
        and request_snapshot.is_task_known
        and not request_snapshot.terminal
        and context.has_flag(FrameFlag.FIRST)
    ):
        told = (
            f"the message is for task {request_snapshot.task_id} in state "
            f"{state_label(request_snapshot.state)}, but "
            "the agent answers with a bare Message"
        )
        yield RuleFinding(
            summary=told,
            path=context.root
            + object_prefix(context.frame, context.is_v1, context.operation).rstrip("."),
        )


_REPORT_TEXT = "The report. " * 40


@rule(
    "A2A-STATE-017",
    "Result of a task in a message instead of an artifact",
    Severity.INFO,
    section="1.0 3.7; 0.3 6.1",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.TERMINAL,
    flagged=rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot(),
        status("COMPLETED", second=1, message=reply(_REPORT_TEXT, taskId="t1")),
    ),
    clean=rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot(),
        chunk(_REPORT_TEXT, lastChunk=True),
        status("COMPLETED", second=1, message=reply(taskId="t1")),
    ),
)
def in_message(context: RuleContext) -> Iterator[RuleFinding]:
    """A task is COMPLETED without any artifact, and the message of its status has more than 200
    characters of text, or a part that is not text. Judged only for tasks whose creation was
    recorded.

    Messages are for conversation, and the agent may forget them; clients look for results in
    artifacts. The agent should send the result as an artifact.
    """
    frame, task = context.frame, context.task
    if frame.state != TaskState.COMPLETED or task is None or not task.created_by or task.artifacts:
        return
    if not context.has_flag(FrameFlag.CHANGED) or (
        frame.event is EventKind.TASK and chunks_of_frame(frame)
    ):
        return
    if decode_status(frame).message_content is None:
        return
    length, count = _measure_status_message(context)
    if length > _MAX_SHORT_TEXT or count:
        others = f" and {count} other parts" if count else ""
        told = (
            f"task {frame.task_id} is completed without an artifact; its status message has "
            f"{length} characters of text"
        )
        path = (
            f"{context.root}{object_prefix(frame, context.is_v1, context.operation)}status.message"
        )
        yield RuleFinding(summary=told + others, path=path)


def _measure_status_message(context: RuleContext) -> tuple[int, int]:
    """Return the number of characters of text in the status message, and the number of parts that
    are not text."""
    held = context.object.get("status")
    message = held.get("message") if isinstance(held, dict) else None
    parts = message.get("parts") if isinstance(message, dict) else None
    texts = (
        [each.get("text") for each in parts if isinstance(each, dict)]
        if isinstance(parts, list)
        else []
    )
    return sum(len(text) for text in texts if isinstance(text, str)), sum(
        1 for text in texts if text is None
    )
