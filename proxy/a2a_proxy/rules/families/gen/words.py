"""Shared by the rules about generations: which frames they judge, where a generation is, and
generations of requests."""

from functools import partial
from typing import Any

from a2a_proxy.model.values import Binding, EventKind
from a2a_proxy.protocol.summary import generation_number
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import RPC, WEBHOOK, Dialects, FrameFlag
from a2a_proxy.rules.define.rule import rule
from a2a_proxy.rules.run.request_flags import ZERO_CURRENT, ZERO_MATCH

generation_rule = partial(rule, dialects=Dialects.DRAFT_1_1)
"""The decorator `rule` of this family."""
TRACKED = FrameFlag.NUMBERED | FrameFlag.COUNTED
"""Frames of the rules that use the tracker: the same for all, so that it is fed whichever of them
run."""
TASK_NUMBER_OPERATIONS = FrameFlag.TASK | FrameFlag.STATUS | FrameFlag.ARTIFACT
EVERYWHERE = RPC | WEBHOOK
SEND_OPERATIONS = ("SendMessage", "SendStreamingMessage", "SendLiveMessage")
MISMATCH_REASON = "TASK_GENERATION_MISMATCH"

_EVENT_MEMBERS = {
    EventKind.TASK: "task",
    EventKind.STATUS: "statusUpdate",
    EventKind.ARTIFACT: "artifactUpdate",
}


def generation_path(context: RuleContext) -> str:
    """Return the path of the generation in the payload."""
    member = _EVENT_MEMBERS.get(context.frame.event, "")
    body = context.body
    wrapped = isinstance(body, dict) and member in body
    return f"{context.root}{member}.generation" if wrapped else f"{context.root}generation"


def format_generations(first: int, final: int) -> str:
    """Return one or several generations in words: `generation 4`, or `generations 4 to 6`."""
    return f"generation {first}" if first == final else f"generations {first} to {final}"


def format_range(first: int, final: int) -> str:
    """Return one or several generations as a value for programs: `4`, or `4-6`."""
    return str(first) if first == final else f"{first}-{final}"


def current_generation(context: RuleContext) -> int | None:
    """Return `currentGeneration` of a GetTask, or None if it is not set."""
    return _request_number(context, "currentGeneration", ZERO_CURRENT)


def if_match(context: RuleContext) -> int | None:
    """Return `ifGenerationMatch` of a send, or None if it is not set."""
    return _request_number(context, "ifGenerationMatch", ZERO_MATCH)


def _request_number(context: RuleContext, name: str, zero: bytes) -> int | None:
    """Return a generation of the request. Its summary has any but 0; an explicit 0 is searched for
    in the payload."""
    request_snapshot, request = context.record.request_snapshot, context.request
    if request_snapshot is None or request is None:
        return None
    if request_snapshot.generation:
        return request_snapshot.generation
    if context.binding is Binding.GRPC:
        if zero not in request.payload:
            return None
    elif b"eneration" not in request.payload and "eneration" not in context.exchange.target:
        return None
    params: dict[str, Any] = context.params
    holder = params.get("configuration") if name == "ifGenerationMatch" else params
    value = holder.get(name) if isinstance(holder, dict) else None
    return None if value is None else generation_number(value)
