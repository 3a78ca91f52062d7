"""Rule about media frames on a live stream (manual/protocol.md "Fields of the live proposals")."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from a2a_proxy.model.values import Frame, Severity
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.schema import decoder_for
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import GRPC, Dialects, EvidenceScope, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import grpc
from a2a_proxy.rules.examples.objects import Json, send, snapshot, status
from a2a_proxy.rules.examples.script import Script
from a2a_proxy.rules.facts.partial_decode import DECODE_ERRORS

_START_EVENT, _DELTA_EVENT, _STOP_EVENT = 1, 2, 3
MAX_FLOWS = 64
"""Number of media flows tracked on one stream."""


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


@rule(
    "A2A-LIVE-023",
    "Media frames missing or out of order",
    Severity.WARNING,
    section="proposal of live media, MediaFrame",
    hook_points=(HookPoint.REQUEST, HookPoint.ANSWER),
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.DRAFT_1_1,
    bindings=GRPC,
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
