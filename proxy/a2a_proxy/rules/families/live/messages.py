"""Rules about further client messages and media frames on a live stream (manual/protocol.md "Live
rules", "Fields of the live proposals")."""

from collections.abc import Iterator
from typing import Any

from a2a_proxy.model.values import Frame, Severity
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.event import decode_payload
from a2a_proxy.protocol.schema import decoder_for
from a2a_proxy.protocol.status_summary import DECODE_ERRORS
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import EvidenceScope, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding
from a2a_proxy.rules.examples.conversation import ClientMessage, grpc
from a2a_proxy.rules.examples.objects import Json, send, snapshot, status
from a2a_proxy.rules.examples.script import Script
from a2a_proxy.rules.facts.request_summary import summarise_request
from a2a_proxy.rules.families.live.words import (
    LIVE_OPERATIONS,
    RECONNECT_MESSAGE,
    is_later_request,
    live_rule,
    question_update,
)

_EVENTS_TO_QUESTION = (snapshot(), status("WORKING"), question_update())
_REMAINING_EVENTS = (status("WORKING", second=2), status("COMPLETED", second=3))
_ANSWERED_STREAM = grpc(
    "SendLiveMessage",
    send(),
    *_EVENTS_TO_QUESTION,
    ClientMessage(send("this one", id="m2")),
    *_REMAINING_EVENTS,
    half_close=False,
)
_HISTORY_CONFIGURATION = {"historyLength": 5}
_START_EVENT, _DELTA_EVENT, _STOP_EVENT = 1, 2, 3
MAX_FLOWS = 64
"""Number of media flows tracked on one stream."""


@live_rule(
    "A2A-LIVE-008",
    "Client changes the task or context on a live stream",
    Severity.ERROR,
    section="1.1 draft 3.2.7",
    hook_points=HookPoint.REQUEST,
    scope=EvidenceScope.EXCHANGE,
    operations=LIVE_OPERATIONS,
    flagged=grpc(
        "SendLiveMessage",
        send(),
        *_EVENTS_TO_QUESTION,
        ClientMessage(send("this one", id="m2", taskId="t1", contextId="c2")),
        *_REMAINING_EVENTS,
        half_close=False,
    ),
    clean=_ANSWERED_STREAM,
)
def switched(context: RuleContext) -> Iterator[RuleFinding]:
    """A further message on a live stream names another task or context than the stream's: the ids
    that the agent has sent on it, or else the ids of the first message. Empty ids are correct and
    mean the stream's.

    A live stream is about one task: the agent refuses the message, or adds it to the wrong
    conversation. The client must open another stream for another task.
    """
    record, frame, request_snapshot = context.record, context.frame, context.record.request_snapshot
    if request_snapshot is None or not is_later_request(context):
        return
    for name, said, here in (
        ("taskId", frame.task_id, record.task_id or request_snapshot.task_id),
        ("contextId", frame.context_id, record.context_id or request_snapshot.context_id),
    ):
        if said and here and said != here:
            told = f"the client sends a message with {name} {said} on the live stream of {here}"
            yield RuleFinding(summary=told, path=f"message.{name}", value=said)


@live_rule(
    "A2A-LIVE-009",
    "Client changes the configuration on a live stream",
    Severity.WARNING,
    section="1.1 draft 3.1.3",
    hook_points=HookPoint.REQUEST,
    scope=EvidenceScope.EXCHANGE,
    operations=LIVE_OPERATIONS,
    flagged=grpc(
        "SendLiveMessage",
        send(configuration=_HISTORY_CONFIGURATION),
        *_EVENTS_TO_QUESTION,
        ClientMessage(send("this one", id="m2", configuration={"historyLength": 2})),
        *_REMAINING_EVENTS,
        half_close=False,
    ),
    clean=grpc(
        "SendLiveMessage",
        send(configuration=_HISTORY_CONFIGURATION),
        *_EVENTS_TO_QUESTION,
        ClientMessage(send("this one", id="m2", configuration=_HISTORY_CONFIGURATION)),
        *_REMAINING_EVENTS,
        half_close=False,
    ),
)
def reconfigured(context: RuleContext) -> Iterator[RuleFinding]:
    """A further message on a live stream has a `configuration` that differs from the first
    message's. Low confidence: the draft requires "identical or left out" in one place and allows
    changes of single fields in another.

    Agents use the configuration of the first message and ignore the change. The client should open
    a new stream to change it.
    """
    first = context.request
    if first is None or not is_later_request(context) or context.frame.redacted or first.redacted:
        return
    now = _send_configuration(context.frame)
    if now and now != (before := _send_configuration(first)):
        changed = sorted(name for name in {*now, *before} if now.get(name) != before.get(name))
        told = f"the client changes the `configuration` of its first message: {', '.join(changed)}"
        yield RuleFinding(summary=told, path="configuration", value=str(now), is_sure=False)


def _send_configuration(frame: Frame) -> dict[str, Any]:
    value = decode_payload(frame.payload, frame.schema) if frame.payload else None
    found = value.get("configuration") if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


@live_rule(
    "A2A-LIVE-019",
    "Empty message on a live stream",
    Severity.ERROR,
    section="1.1 draft 3.2.7, 5.7",
    hook_points=HookPoint.REQUEST,
    scope=EvidenceScope.EXCHANGE,
    operations=LIVE_OPERATIONS,
    flagged=grpc(
        "SendLiveMessage",
        send(),
        *_EVENTS_TO_QUESTION,
        ClientMessage(RECONNECT_MESSAGE),
        *_REMAINING_EVENTS,
        half_close=False,
    ),
    clean=_ANSWERED_STREAM,
)
def empty(context: RuleContext) -> Iterator[RuleFinding]:
    """A further message on a live stream names the task but has no parts. Only the first message
    may be empty, to reconnect. An empty message that does not name the task is A2A-SCH-002.

    The agent waits for an answer and receives one without content. The client must send at least
    one part.
    """
    frame = context.frame
    if (
        is_later_request(context)
        and frame.task_id
        and frame.message_id
        and not summarise_request(frame).parts
    ):
        told = (
            f"message {frame.message_id} has no parts, only the first one of a live stream may be "
            f"empty"
        )
        yield RuleFinding(summary=told, path="message.parts")


def _media_event(event: str, number: int) -> Json:
    sound = {"raw": "AAAA", "mediaType": "audio/pcm"}
    return {"frame": {"part": sound, "seqNum": number, "event": f"EVENT_MEDIA_{event}"}}


def _media_script(*numbers: int) -> Script:
    sounds = [_media_event("DELTA", number) for number in numbers]
    events = [
        {"event": snapshot()},
        _media_event("START", 3),
        *sounds,
        _media_event("STOP", numbers[-1] + 1),
    ]
    ending = {"event": status("COMPLETED", second=1)}
    return grpc(
        "SendLiveMessage",
        {"message": send()},
        *events,
        ending,
        half_close=False,
        request_type="LiveRequest",
        answer_type="LiveResponse",
    )


@live_rule(
    "A2A-LIVE-023",
    "Media frames missing or out of order",
    Severity.WARNING,
    section="proposal of live media, MediaFrame",
    hook_points=(HookPoint.REQUEST, HookPoint.ANSWER),
    scope=EvidenceScope.EXCHANGE,
    operations=("SendLiveMessage",),
    flagged=_media_script(4, 6),
    clean=_media_script(4, 5),
)
def out_of_sequence(context: RuleContext) -> Iterator[RuleFinding]:
    """Proposal with media: in one direction and one modality, `seq_num` of a media frame does not
    increase, or skips more numbers than there were frames in between; or (low confidence) a media
    frame is not between START and STOP. Numbers may restart at START. Not judged after frames that
    could not be decoded.

    The receiver plays sound with a gap, or in the wrong order. The sender that the finding names
    (client or agent) must number its frames in order; frames may also be lost in a proxy.
    """
    notes = context.record.writable_notes()
    media: dict[str, Any] = notes.setdefault("live.media", {"seen": context.frame.seq, "flows": {}})
    if context.frame.seq > media["seen"] + 1:  # the rules did not see all frames in between
        media["flows"] = {}
        media["lost"] = True
    media["seen"] = context.frame.seq
    found = _decode_media_frame(context.frame)
    if found is None:
        return
    sides: dict[str, list[int]] = media["flows"]
    key = f"{int(context.frame.direction)}.{found.modality_index}"
    flow = sides.get(key)
    if flow is None:
        if len(sides) >= MAX_FLOWS:
            return
        flow = sides[key] = [-1, 0, int(bool(media.get("lost")))]
    yield from _advance_flow(found, flow, context.frame)


def _decode_media_frame(frame: Frame) -> Any:
    """Return the MediaFrame of a frame, or None if it has none or cannot be decoded."""
    if not frame.schema.endswith("@live-1975") or frame.truncated:
        return None
    try:
        message: Any = decoder_for(frame.schema).parse(frame.payload)
    except DECODE_ERRORS:
        return None
    return message.frame if message.HasField("frame") else None


def _advance_flow(found: Any, flow: list[int], frame: Frame) -> Iterator[RuleFinding]:
    """Judge one media frame. `flow` is the last number (-1: none), the frames since, and whether
    START came without STOP."""
    flow[1] += 1
    if found.event == _START_EVENT:
        flow[:] = [-1, 0, 1]
    elif found.event == _STOP_EVENT:
        flow[2] = 0
    elif found.event == _DELTA_EVENT:
        last, steps, on = flow
        who = "the client" if frame.direction is Direction.TO_AGENT else "the agent"
        where = f"in modality {found.modality_index} of {who}"
        if last >= 0 and not last < found.seq_num <= last + steps:
            told = f"seq_num {found.seq_num} follows {last} {where}"
            yield RuleFinding(summary=told, path="frame.seqNum", value=str(found.seq_num))
        elif not on:
            yield RuleFinding(
                summary=f"media outside of START and STOP {where}",
                path="frame.event",
                is_sure=False,
            )
            flow[2] = 1
        flow[0], flow[1] = found.seq_num, 0
