"""What rules about generations share: when they are asked, where a number stands, what a request says about it."""

from __future__ import annotations

from typing import Any

from a2a_proxy.model.exchange import Binding
from a2a_proxy.model.frame import EventKind
from a2a_proxy.protocol.summary import generation_number
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import RPC, WEBHOOK, FrameFlag
from a2a_proxy.rules.run.request_flags import ZERO_CURRENT, ZERO_MATCH

TRACKED = FrameFlag.NUMBERED | FrameFlag.COUNTED
"""All rules that ask the tracker are asked about the same frames, so that it is fed whichever of them run."""
OF_TASK = FrameFlag.TASK | FrameFlag.STATUS | FrameFlag.ARTIFACT
EVERYWHERE = RPC | WEBHOOK
SENDS = ("SendMessage", "SendStreamingMessage", "SendLiveMessage")
MISMATCH = "TASK_GENERATION_MISMATCH"

_MEMBERS = {
    EventKind.TASK: "task",
    EventKind.STATUS: "statusUpdate",
    EventKind.ARTIFACT: "artifactUpdate",
}


def place(see: RuleContext) -> str:
    """Where the number stands in the payload."""
    member = _MEMBERS.get(see.frame.event, "")
    body = see.body
    wrapped = isinstance(body, dict) and member in body
    return f"{see.root}{member}.generation" if wrapped else f"{see.root}generation"


def numbers(first: int, final: int) -> str:
    """A range in words: `4`, or `4 to 6`."""
    return str(first) if first == final else f"{first} to {final}"


def current_generation(see: RuleContext) -> int | None:
    """`currentGeneration` of a GetTask; None where it is not set."""
    return _wish(see, "currentGeneration", ZERO_CURRENT)


def if_match(see: RuleContext) -> int | None:
    """`ifGenerationMatch` of a send; None where it is not set."""
    return _wish(see, "ifGenerationMatch", ZERO_MATCH)


def _wish(see: RuleContext, name: str, zero: bytes) -> int | None:
    """A number other than 0 is in the summary of the request; an explicit 0 has to be looked for."""
    asked, request = see.track.asked, see.request
    if asked is None or request is None:
        return None
    if asked.generation:
        return asked.generation
    if see.binding is Binding.GRPC:
        if zero not in request.payload:
            return None
    elif b"eneration" not in request.payload and "eneration" not in see.exchange.target:
        return None
    params: dict[str, Any] = see.params
    holder = params.get("configuration") if name == "ifGenerationMatch" else params
    value = holder.get(name) if isinstance(holder, dict) else None
    return None if value is None else generation_number(value)
