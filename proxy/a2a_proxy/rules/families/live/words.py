"""Shared by the rules about live streams (manual/protocol.md "Live streams")."""

from functools import partial

from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import GRPC, Dialects, FrameFlag
from a2a_proxy.rules.define.rule import rule
from a2a_proxy.rules.examples.objects import Json, reply, status
from a2a_proxy.rules.facts.request_summary import summarise_request
from a2a_proxy.rules.state.records import ExchangeRecord

live_rule = partial(rule, dialects=Dialects.DRAFT_1_1, bindings=GRPC)
"""The decorator `rule` of this family; live streams have no form over other bindings."""
LIVE_OPERATIONS = ("SendLiveMessage", "ReconnectToTask")
NOT_FOUND, UNIMPLEMENTED, FAILED_PRECONDITION = 5, 12, 9
EXCUSED_STATUSES = frozenset({1, 4, 7, 8, 14, 16})
"""CANCELLED, DEADLINE_EXCEEDED, PERMISSION_DENIED, RESOURCE_EXHAUSTED, UNAVAILABLE,
UNAUTHENTICATED: any call may end with them, and a gateway may send them instead of the agent."""

RECONNECT_MESSAGE: Json = {"message": {"messageId": "m9", "taskId": "t1", "role": "ROLE_USER"}}
"""First request of an example that reconnects: a task id without content."""


def question_update(text: str = "which one?", *, second: int = 1, id: str = "q1") -> Json:
    """Return a status update INPUT_REQUIRED for an example."""
    return status("INPUT_REQUIRED", second=second, message=reply(text, id=id, taskId="t1"))


def is_plain_live(context: RuleContext) -> bool:
    """Return whether the messages are SendMessageRequest and StreamResponse, to which the rules of
    the draft apply. Two other proposals have other messages under the same method name, and rules
    of their own; one of them may be detected late."""
    request, frame = context.request, context.frame_or_none
    if request is None or not request.schema.endswith("SendMessageRequest"):
        return False
    return (
        not frame.schema.endswith("@live-2153")
        if frame is not None
        else context.exchange.live_payload != "2153"
    )


def is_reconnection(record: ExchangeRecord) -> bool:
    """Return whether the first request names a task and has no content."""
    first = record.request
    if first is None or not first.task_id or first.truncated:
        return False
    return record.operation == "ReconnectToTask" or not summarise_request(first).parts


def is_later_request(context: RuleContext) -> bool:
    """Return whether the frame is a request on a live stream after the first one."""
    first = context.request
    return (
        first is not None
        and context.frame.seq != first.seq
        and is_plain_live(context)
        and not context.frame.truncated
    )


def is_refused(context: RuleContext) -> bool:
    """Return whether the call ends with an error before any answer."""
    return (
        context.has_flag(FrameFlag.FIRST)
        and context.has_flag(FrameFlag.END)
        and context.has_flag(FrameFlag.ERROR)
    )


def is_ended_empty(context: RuleContext) -> bool:
    """Return whether the call ends with status OK and without an answer."""
    return (
        context.has_flag(FrameFlag.END)
        and not context.has_flag(FrameFlag.ERROR)
        and not context.record.answers
    )


def can_client_send(record: ExchangeRecord) -> bool:
    """Return whether this is a live stream on which the client can still send messages."""
    return (
        record.operation in LIVE_OPERATIONS
        and not record.half_closed
        and record.closed_exchange is None
    )
