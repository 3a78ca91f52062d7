"""Rules about fields that protobuf parsers ignore silently (manual/protocol.md "Shared field
numbers")."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.values import Dialect, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import GRPC, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import MergedMessage, grpc
from a2a_proxy.rules.examples.objects import chunk, send, snapshot, status, task
from a2a_proxy.rules.families.grpc.fields import fields_of_other_dialects, message_oddities

_TASK_PARAMS = {"id": "t1"}
_MESSAGE_HOOKS = (HookPoint.REQUEST, HookPoint.ANSWER)
_WIRE_NAMES = {0: "varint", 1: "64-bit", 2: "length-delimited", 5: "32-bit"}
_MESSAGE_UPDATE = ("lf.a2a.v1.StreamResponse", 5, 2)
_ELICITATION = b"\x4a\x00"
"""An empty field 9 of a Task."""


def _short_name(name: str) -> str:
    return name.rpartition(".")[2]


@rule(
    "A2A-GRPC-010",
    "Unknown fields in a message",
    Severity.INFO,
    section="1.0 5.7",
    hook_points=_MESSAGE_HOOKS,
    bindings=GRPC,
    trigger_flags=FrameFlag.UNCLEAN,
    flagged=grpc("GetTask", _TASK_PARAMS, MergedMessage((task(), _ELICITATION))),
    clean=grpc("GetTask", _TASK_PARAMS, task()),
)
def unknown_fields(context: RuleContext) -> Iterator[RuleFinding]:
    """A protobuf message has fields that its type does not have in the A2A version of the call, or
    a known field with another wire type. If another version or a proposal has such a field, the
    finding names it. A `message_update` is A2A-VER-012.

    Receivers ignore unknown fields, so their content has no effect. Usually client and agent were
    built from different versions of the protocol: use the same `.proto` files on both sides.
    """
    for each in message_oddities(context).unknown:
        if (each.message, each.number, each.wire) == _MESSAGE_UPDATE:
            continue
        hint = fields_of_other_dialects(each)
        told = f"{_short_name(each.message)} has no {_WIRE_NAMES[each.wire]} field {each.number}"
        yield RuleFinding(
            summary=f"{told}; it is {hint}" if hint else told,
            path=each.path,
            value=f"{each.number}:{_WIRE_NAMES[each.wire]}",
            is_sure=context.exchange.dialect in (Dialect.V1_0, Dialect.V1_1),
        )


@rule(
    "A2A-GRPC-011",
    "Several members of one oneof",
    Severity.WARNING,
    section="Protocol Buffers encoding, oneof",
    hook_points=_MESSAGE_HOOKS,
    bindings=GRPC,
    trigger_flags=FrameFlag.UNCLEAN,
    flagged=grpc(
        "SendStreamingMessage",
        send(),
        snapshot("WORKING"),
        MergedMessage((chunk("x"), status("COMPLETED"))),
    ),
    clean=grpc(
        "SendStreamingMessage", send(), snapshot("WORKING"), chunk("x"), status("COMPLETED")
    ),
)
def several(context: RuleContext) -> Iterator[RuleFinding]:
    """A protobuf message has more than one member of a oneof: for example, a StreamResponse with an
    artifact update and a status update, or a part with text and a URL.

    Parsers silently keep only the last member, so the others never reach the receiver. The sender
    (client or agent) must send each of them in a message of its own.
    """
    for each in message_oddities(context).several:
        *lost, kept = each.members
        told = f"{_short_name(each.message)} has {', '.join(lost)} and {kept}, only one is allowed"
        yield RuleFinding(
            summary=f"{told}: receivers keep {kept}", path=each.path, value=" ".join(each.members)
        )
