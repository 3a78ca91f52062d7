"""What rules about live streams share (manual/protocol.md "Live streams")."""

from __future__ import annotations

from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import FrameFlag
from a2a_proxy.rules.examples.objects import Json, reply, status
from a2a_proxy.rules.facts.request_summary import summarise_request
from a2a_proxy.rules.state.records import ExchangeRecord

LIVE_OPERATIONS = ("SendLiveMessage", "ReconnectToTask")
NOT_FOUND, UNIMPLEMENTED, FAILED_PRECONDITION = 5, 12, 9
EXCUSED_STATUSES = frozenset({1, 4, 7, 8, 14, 16})
"""CANCELLED, DEADLINE_EXCEEDED, PERMISSION_DENIED, RESOURCE_EXHAUSTED, UNAVAILABLE, UNAUTHENTICATED: any call may end
so, whatever it asks for, and a gateway may say it in the agent's place.
"""

RECONNECT_MESSAGE: Json = {"message": {"messageId": "m9", "taskId": "t1", "role": "ROLE_USER"}}
"""An example's first request of the reconnect form: a task id, and nothing to say."""


def question_update(text: str = "which one?", *, second: int = 1, id: str = "q1") -> Json:
    """An example's status update INPUT_REQUIRED."""
    return status("INPUT_REQUIRED", second=second, message=reply(text, id=id, taskId="t1"))


def is_plain_live(context: RuleContext) -> bool:
    """Its messages are SendMessageRequest and StreamResponse, so the rules of that proposal hold. Two other ones carry
    other messages under the same name, and have rules of their own; one of them may show late."""
    request, frame = context.request, context.frame_or_none
    if request is None or not request.schema.endswith("SendMessageRequest"):
        return False
    return not frame.schema.endswith("@live-2153") if frame is not None else context.exchange.live_payload != "2153"


def is_reconnection(record: ExchangeRecord) -> bool:
    """Its first request names a task and says nothing."""
    first = record.request
    if first is None or not first.task_id or first.truncated:
        return False
    return record.operation == "ReconnectToTask" or not summarise_request(first).parts


def is_later_request(context: RuleContext) -> bool:
    """The frame is a request on a live stream, and not its first."""
    first = context.request
    return (
        first is not None and context.frame.seq != first.seq and is_plain_live(context) and not context.frame.truncated
    )


def is_refused(context: RuleContext) -> bool:
    """The call ends with an error, before any answer."""
    return context.has_flag(FrameFlag.FIRST) and context.has_flag(FrameFlag.END) and context.has_flag(FrameFlag.ERROR)


def is_ended_empty(context: RuleContext) -> bool:
    """It ends with status OK, and nothing was answered."""
    return context.has_flag(FrameFlag.END) and not context.has_flag(FrameFlag.ERROR) and not context.record.answers


def can_client_send(record: ExchangeRecord) -> bool:
    """A live stream, on which the client can still say something."""
    return record.operation in LIVE_OPERATIONS and not record.half_closed and record.closed_exchange is None
