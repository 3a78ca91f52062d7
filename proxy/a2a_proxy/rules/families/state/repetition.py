"""Rules about content that a task shows twice (A2A 1.0 sections 3.4.3, 3.7)."""

from __future__ import annotations

from collections.abc import Iterator
from zlib import crc32

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import EventKind, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import Dialects, EvidenceScope, FrameFlag
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import Event, rpc_stream
from a2a_proxy.rules.examples.objects import chunk, reply, send, snapshot, status
from a2a_proxy.rules.examples.script import Script
from a2a_proxy.rules.facts.naming import object_prefix, state_label
from a2a_proxy.rules.facts.partial_decode import NO_PARTS, PartsSummary, add_parts, decode_artifacts

_ANSWER_TEXT = "It rains in Oslo"
_QUESTION_NOTE = "state.question"


def _send_stream(*events: Event) -> Script:
    return rpc_stream("SendStreamingMessage", send(), snapshot(), *events)


def _completed(text: str) -> dict[str, object]:
    return status("COMPLETED", second=1, message=reply(text, taskId="t1"))


def _asks(text: str, *, second: int) -> dict[str, object]:
    return status(
        "INPUT_REQUIRED", second=second, message=reply(text, id=f"q{second}", taskId="t1")
    )


@rule(
    "A2A-STATE-019",
    "Result sent as artifact and as message",
    Severity.INFO,
    section="1.0 3.7",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.TERMINAL,
    flagged=_send_stream(chunk(_ANSWER_TEXT, lastChunk=True), _completed(_ANSWER_TEXT)),
    clean=_send_stream(chunk(_ANSWER_TEXT, lastChunk=True), _completed("done")),
)
def sent_twice(context: RuleContext) -> Iterator[RuleFinding]:
    """A task is COMPLETED, and the text of its status message is the complete text of one of its
    artifacts. An artifact of several updates counts with their joined text.

    A client that shows messages and artifacts shows the result twice. The agent should send the
    result as an artifact only, and leave the message out or write a remark into it.
    """
    frame, task = context.frame, context.task
    if (
        task is None
        or frame.state != TaskState.COMPLETED
        or not context.has_flag(FrameFlag.CHANGED)
    ):
        return
    if frame.redacted or frame.truncated or context.status_summary.message_content is None:
        return
    said = _summarise_message(context)
    if not said.length:
        return
    shown = (
        {each.artifact_id: add_parts(NO_PARTS, each.pieces) for each in decode_artifacts(frame)}
        if frame.event is EventKind.TASK
        else {name: each.content for name, each in task.artifacts.items() if each.is_fully_recorded}
    )
    for name, content in shown.items():
        if content == said:
            told = (
                f"the status message of task {task.task_id} repeats the text of artifact {name} "
                f"({said.length} bytes)"
            )
            yield RuleFinding(summary=told, path=_message_path(context), value=name)
            return


def _summarise_message(context: RuleContext) -> PartsSummary:
    """Return the text of the status message; without content if it has other parts."""
    held = context.object.get("status")
    message = held.get("message") if isinstance(held, dict) else None
    parts = message.get("parts") if isinstance(message, dict) else None
    texts = (
        [each.get("text") if isinstance(each, dict) else None for each in parts]
        if isinstance(parts, list)
        else []
    )
    if not all(isinstance(text, str) for text in texts):
        return NO_PARTS
    return add_parts(NO_PARTS, [str(text).encode(errors="replace") for text in texts])


def _message_path(context: RuleContext) -> str:
    prefix = object_prefix(context.frame, context.is_v1, context.operation)
    return f"{context.root}{prefix}status.message"


@rule(
    "A2A-STATE-020",
    "Same question sent twice",
    Severity.INFO,
    section="1.0 3.4.3; 0.3 9.4",
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.SINCE_0_2,
    trigger_flags=FrameFlag.INTERRUPTED,
    required_flags=FrameFlag.STATUS,
    flagged=rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot(),
        _asks("which one?", second=1),
        _asks("which one?", second=2),
        finish="leave",
    ),
    clean=rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot(),
        _asks("which one?", second=1),
        _asks("the red one or the blue one?", second=2),
        finish="leave",
    ),
)
def asked_twice(context: RuleContext) -> Iterator[RuleFinding]:
    """Two status updates of one stream show the same interrupted state with messages of equal
    content, although no client has sent a message to the task in between. An exact repetition of
    the bytes is A2A-STREAM-020 instead.

    A client asks its user twice, or answers twice. The agent should send each question once.
    """
    frame, task = context.frame, context.task
    if task is None or frame.redacted or frame.truncated:
        return
    content = context.status_summary.message_content
    if content is None:
        return
    notes = context.record.writable_notes()
    before, now = notes.get(_QUESTION_NOTE), [frame.state, crc32(content), task.client_message_at]
    notes[_QUESTION_NOTE] = now
    if before == now and not context.has_flag(FrameFlag.REPEAT):
        told = (
            f"task {task.task_id} shows the same {state_label(frame.state)} message again, without "
            f"a message between"
        )
        yield RuleFinding(summary=told, path=_message_path(context))
