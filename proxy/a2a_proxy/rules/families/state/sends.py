"""What a message is answered with, and when (1.0 3.2.2, 3.7)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.finding import Severity
from a2a_proxy.model.frame import EventKind, FrameKind
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import Dialects, EvidenceScope, FrameFlag, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rpc, rpc_stream
from a2a_proxy.rules.examples.objects import asking, chunk, reply, said, send, snapshot, status
from a2a_proxy.rules.facts.naming import holder
from a2a_proxy.rules.facts.partial_decode import artifacts_of, status_of
from a2a_proxy.rules.families.state.terminal import label
from a2a_proxy.rules.state.records import ACTIVE
from a2a_proxy.rules.state.state_sequence import SECOND, SENDING_OPERATIONS

_WAIT = re.compile(rb"mmediately|locking|\\u")
"""Where JSON has none of these, it has neither member, under no name that stands for it."""


class _SendConfiguration(msgspec.Struct, rename="camel", gc=False):
    return_immediately: bool | None = None


class _SendRequest(msgspec.Struct, gc=False):
    """A request of 1.0, with or without its envelope; of what else there is nothing is made."""

    params: _SendRequest | None = None
    configuration: _SendConfiguration | None = None


_decode = msgspec.json.Decoder(_SendRequest).decode


def _quick(payload: bytes, *, rpc: bool) -> bool | None:
    """`returnImmediately` where it stands as it should; None: `See.params` has to tell."""
    try:
        made = _decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    holder = made.params if rpc else made
    found = holder.configuration if holder is not None else None
    return found.return_immediately if found is not None else None


_AT_ONCE = {"returnImmediately": True}
_PATIENCE = 5
"""Seconds within which a call that shall not wait has to be answered."""
_TRIFLE = 200
"""Characters of text up to which a message is a remark, and no result."""
_ASKED = rpc("SendMessage", send(), snapshot("INPUT_REQUIRED", status=asking()))


def _at_once(see: RuleContext) -> bool | None:
    """What the request says of `returnImmediately` (0.x: the opposite of `blocking`); None where it says nothing."""
    asked = see.request
    if asked is None or (asked.schema == "json" and not _WAIT.search(asked.payload)):
        return None
    if see.v1 and asked.schema == "json" and (quick := _quick(asked.payload, rpc=see.enveloped)) is not None:
        return quick
    configuration: Any = see.params.get("configuration")
    found = configuration.get("returnImmediately") if isinstance(configuration, dict) else None
    return found if isinstance(found, bool) else None


@rule(
    "A2A-STATE-014",
    "A blocking send returned early",
    Severity.ERROR,
    section="1.0 3.2.2",
    scope=EvidenceScope.EXCHANGE,
    lines=Dialects.SINCE_0_2,
    when=FrameFlag.TASK,
    operations=("SendMessage",),
    flagged=rpc("SendMessage", send(), snapshot("WORKING")),
    clean=rpc("SendMessage", send(), snapshot("COMPLETED")),
)
def early(see: RuleContext) -> Iterator[RuleFinding]:
    """SendMessage without `returnImmediately` is answered with a task that is SUBMITTED or WORKING. Before 1.0, where
    that is the agent's choice, only with `blocking: true`.

    A client that does not poll takes this for the result, and there is none in it.
    """
    frame = see.frame
    if frame.state not in ACTIVE or frame.kind is FrameKind.EVENT:  # a stream in place of an answer is A2A-HTTP-005's
        return
    wanted = _at_once(see)
    if wanted is False or (wanted is None and see.v1):
        asked = "`returnImmediately` is not set" if see.v1 else "`blocking` is true"
        told = f"the answer is task {frame.task_id} in {label(frame.state)}, though {asked}"
        path = f"{see.root}{holder(frame, see.v1, see.operation)}status.state"
        yield RuleFinding(
            summary=f"{told}: it had to wait for its end or a question", path=path, value=label(frame.state)
        )


@rule(
    "A2A-STATE-015",
    "A send that shall not wait did",
    Severity.WARNING,
    section="1.0 3.2.2",
    scope=EvidenceScope.EXCHANGE,
    lines=Dialects.SINCE_0_2,
    when=FrameFlag.TASK,
    operations=("SendMessage",),
    flagged=rpc("SendMessage", send(configuration=_AT_ONCE), snapshot("COMPLETED"), seconds=40),
    clean=rpc("SendMessage", send(configuration=_AT_ONCE), snapshot("SUBMITTED")),
)
def waited(see: RuleContext) -> Iterator[RuleFinding]:
    """SendMessage with `returnImmediately: true` (before 1.0 `blocking: false`) is answered with a task, and only after
    more than five seconds.

    The caller is held up by what it wanted to follow in another way, and its own timeout may strike.
    """
    asked = see.track.asked
    if asked is None or see.at - asked.at <= _PATIENCE * SECOND or not _at_once(see):
        return
    took = (see.at - asked.at) / SECOND
    option = "`returnImmediately` is true" if see.v1 else "`blocking` is false"
    told = f"{option}, the answer took {took:.1f} s and is a task in {label(see.frame.state)}"
    yield RuleFinding(summary=told)


@rule(
    "A2A-STATE-016",
    "A message to a task is answered with a bare Message",
    Severity.WARNING,
    section='1.0 topic "Life of a Task"',
    scope=EvidenceScope.LIVE,
    lines=Dialects.SINCE_0_2,
    when=FrameFlag.MESSAGE,
    operations=SENDING_OPERATIONS,
    flagged=_ASKED + rpc("SendMessage", send("this one", id="m2", taskId="t1"), said()),
    clean=_ASKED + rpc("SendMessage", send("this one", id="m2", taskId="t1"), snapshot("COMPLETED", second=1)),
)
def bare(see: RuleContext) -> Iterator[RuleFinding]:
    """A message for a task that is not over is answered with a Message, not with the task or its events.

    The client does not learn what has become of its task. Once there is a task, what is said belongs in its status.
    """
    asked = see.track.asked
    if asked is not None and asked.task_id and asked.known and not asked.terminal and see.is_(FrameFlag.FIRST):
        told = f"the message is for task {asked.task_id} in {label(asked.state)}, the answer is a Message"
        yield RuleFinding(summary=told, path=see.root + holder(see.frame, see.v1, see.operation).rstrip("."))


_REPORT = "The report. " * 40


@rule(
    "A2A-STATE-017",
    "The result is in a message, not in an artifact",
    Severity.INFO,
    section="1.0 3.7",
    scope=EvidenceScope.LIVE,
    lines=Dialects.V1,
    when=FrameFlag.TERMINAL,
    flagged=rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot(),
        status("COMPLETED", second=1, said=reply(_REPORT, taskId="t1")),
    ),
    clean=rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot(),
        chunk(_REPORT, lastChunk=True),
        status("COMPLETED", second=1, said=reply(taskId="t1")),
    ),
)
def in_message(see: RuleContext) -> Iterator[RuleFinding]:
    """A task that was seen from its creation on is COMPLETED without any artifact, and the message of its status has
    more than 200 characters of text, or a part that is not text.

    Messages are for talk and may be forgotten by the agent; results belong in artifacts, where clients look for them.
    """
    frame, task = see.frame, see.task
    if frame.state != TaskState.COMPLETED or task is None or not task.born or task.artifacts:
        return
    if not see.is_(FrameFlag.CHANGED) or (frame.event is EventKind.TASK and artifacts_of(frame)):
        return
    if status_of(frame).said is None:
        return
    length, count = _message(see)
    if length > _TRIFLE or count:
        others = f" and {count} other parts" if count else ""
        told = f"task {frame.task_id} is completed without an artifact, its message has {length} characters of text"
        path = f"{see.root}{holder(frame, see.v1, see.operation)}status.message"
        yield RuleFinding(summary=told + others, path=path)


def _message(see: RuleContext) -> tuple[int, int]:
    """Characters of text of the status message, and how many parts are not text."""
    held = see.object.get("status")
    message = held.get("message") if isinstance(held, dict) else None
    parts = message.get("parts") if isinstance(message, dict) else None
    texts = [each.get("text") for each in parts if isinstance(each, dict)] if isinstance(parts, list) else []
    return sum(len(text) for text in texts if isinstance(text, str)), sum(1 for text in texts if text is None)
