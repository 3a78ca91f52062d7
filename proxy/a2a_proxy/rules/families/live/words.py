"""What rules about live streams share (manual/protocol.md "Live streams")."""

from __future__ import annotations

from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import FrameFlag
from a2a_proxy.rules.examples.objects import Json, reply, status
from a2a_proxy.rules.facts.request_summary import sent
from a2a_proxy.rules.state.records import ExchangeRecord

LIVE = ("SendLiveMessage", "ReconnectToTask")
NOT_FOUND, UNIMPLEMENTED, FAILED_PRECONDITION = 5, 12, 9
EXCUSED = frozenset({1, 4, 7, 8, 14, 16})
"""CANCELLED, DEADLINE_EXCEEDED, PERMISSION_DENIED, RESOURCE_EXHAUSTED, UNAVAILABLE, UNAUTHENTICATED: any call may end
so, whatever it asks for, and a gateway may say it in the agent's place.
"""

RECONNECT: Json = {"message": {"messageId": "m9", "taskId": "t1", "role": "ROLE_USER"}}
"""An example's first request of the reconnect form: a task id, and nothing to say."""


def question(text: str = "which one?", *, second: int = 1, id: str = "q1") -> Json:
    """An example's status update INPUT_REQUIRED."""
    return status("INPUT_REQUIRED", second=second, said=reply(text, id=id, taskId="t1"))


def plain_live(see: RuleContext) -> bool:
    """Its messages are SendMessageRequest and StreamResponse, so the rules of that proposal hold. Two other ones carry
    other messages under the same name, and have rules of their own; one of them may show late."""
    request, frame = see.request, see.shown
    if request is None or not request.schema.endswith("SendMessageRequest"):
        return False
    return not frame.schema.endswith("@live-2153") if frame is not None else see.exchange.live_payload != "2153"


def reconnects(track: ExchangeRecord) -> bool:
    """Its first request names a task and says nothing."""
    first = track.request
    if first is None or not first.task_id or first.truncated:
        return False
    return track.operation == "ReconnectToTask" or not sent(first).parts


def later_request(see: RuleContext) -> bool:
    """The frame is a request on a live stream, and not its first."""
    first = see.request
    return first is not None and see.frame.seq != first.seq and plain_live(see) and not see.frame.truncated


def refused(see: RuleContext) -> bool:
    """The call ends with an error, before any answer."""
    return see.is_(FrameFlag.FIRST) and see.is_(FrameFlag.END) and see.is_(FrameFlag.ERROR)


def ended_empty(see: RuleContext) -> bool:
    """It ends with status OK, and nothing was answered."""
    return see.is_(FrameFlag.END) and not see.is_(FrameFlag.ERROR) and not see.track.answers


def can_speak(track: ExchangeRecord) -> bool:
    """A live stream, on which the client can still say something."""
    return track.operation in LIVE and not track.half_closed and track.final is None
