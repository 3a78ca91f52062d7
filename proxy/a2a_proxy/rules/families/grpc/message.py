"""Rules about the length-prefixed messages of a gRPC call, and about fields that protobuf parsers
ignore silently (manual/protocol.md "gRPC framing", "Shared field numbers")."""

from collections.abc import Iterator

from a2a_proxy.model.values import Actor, Dialect, FrameKind, Severity
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.operations import LIVE_OPERATIONS
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import (
    GRPC,
    MESSAGE_HOOKS,
    EvidenceScope,
    FrameFlag,
    HookPoint,
)
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import MergedMessage, RawBytes, grpc
from a2a_proxy.rules.examples.objects import TASK_PARAMS, chunk, send, snapshot, status, task
from a2a_proxy.rules.families.grpc.fields import fields_of_other_dialects, message_oddities

_ALL_HOOKS = (HookPoint.REQUEST, HookPoint.ANSWER, HookPoint.CLOSED)
_NO_FLAG = "expected compressed flag"
_INCOMPLETE = "expected message "
_MESSAGE_CODING = "expected message in "
_WIRE_NAMES = {0: "varint", 1: "64-bit", 2: "length-delimited", 5: "32-bit"}
_MESSAGE_UPDATE = ("lf.a2a.v1.StreamResponse", 5, 2)
_ELICITATION = b"\x4a\x00"
"""An empty field 9 of a Task."""


def _sender_name(context: RuleContext) -> str:
    return "the client" if context.frame.direction is Direction.TO_AGENT else "the agent"


@rule(
    "A2A-GRPC-005",
    "Malformed length prefix",
    Severity.ERROR,
    section="gRPC over HTTP/2",
    hook_points=_ALL_HOOKS,
    bindings=GRPC,
    trigger_flags=FrameFlag.OTHER,
    also_broken=("UNDECODABLE",),
    flagged=grpc("GetTask", TASK_PARAMS, RawBytes(b"\0\0\0\0\xff\x0a\x02t1\x12\x02c1")),
    clean=grpc("GetTask", TASK_PARAMS, task()),
)
def prefix(context: RuleContext) -> Iterator[RuleFinding]:
    """The first byte of a gRPC message (the compressed flag) is neither 0 nor 1, or the sender ends
    the stream before the announced length is complete. A message that was cut because its stream
    was reset is not reported.

    The receiver cannot find the next message, and the call fails with INTERNAL. The sender (client
    or agent), or a proxy that alters bodies, must be fixed.
    """
    frame = context.frame_or_none
    if frame is None:
        yield from _check_incomplete(context)
    elif frame.kind is FrameKind.UNDECODABLE and frame.note.startswith(_NO_FLAG):
        yield RuleFinding(
            summary=f"{_sender_name(context)} sends a malformed length prefix: {frame.note}",
            value=frame.note,
        )
    elif frame.kind is FrameKind.UNDECODABLE and _is_truncation_note(frame.note):
        context.record.writable_notes()["incomplete"] = [
            frame.seq,
            frame.note,
            int(frame.direction),
        ]


def _is_truncation_note(note: str) -> bool:
    return note.startswith(_INCOMPLETE) and ", got end after " in note


def _check_incomplete(context: RuleContext) -> Iterator[RuleFinding]:
    """Report an incomplete message once it is known that its sender ended the stream, rather than a
    reset."""
    seq, note, direction = (context.record.notes or {}).get("incomplete", (-1, "", 0))
    by_client = direction == Direction.TO_AGENT
    if note and (
        context.exchange.request_ended if by_client else context.exchange.how == "complete"
    ):
        side, actor = ("the client", Actor.CLIENT) if by_client else ("the agent", Actor.AGENT)
        yield RuleFinding(
            summary=f"{side} ends the stream inside a message: {note}",
            value=note,
            seq=seq,
            actor=actor,
        )


@rule(
    "A2A-GRPC-006",
    "Compressed message that cannot be decompressed",
    Severity.ERROR,
    section="gRPC over HTTP/2, compression",
    hook_points=MESSAGE_HOOKS,
    bindings=GRPC,
    trigger_flags=FrameFlag.OTHER,
    also_broken=("UNDECODABLE",),
    flagged=grpc(
        "GetTask", TASK_PARAMS, RawBytes(b"\1\0\0\0\x0c\x0a\x02t1\x12\x02c1\x1a\x02\x08\x03")
    ),
    clean=grpc("GetTask", TASK_PARAMS, task(), reply_headers={"grpc-encoding": "identity"}),
)
def compression(context: RuleContext) -> Iterator[RuleFinding]:
    """A gRPC message has the compressed flag set, but `grpc-encoding` is absent or `identity`, or
    the message does not decompress with that encoding.

    The receiver must fail the call with INTERNAL, and the message is lost. The sender must name the
    encoding that it uses in `grpc-encoding`, or send the message uncompressed.
    """
    frame = context.frame
    if frame.kind is FrameKind.UNDECODABLE and frame.note.startswith(_MESSAGE_CODING):
        problem = frame.note.partition(", got ")[2]
        yield RuleFinding(
            summary=f"{_sender_name(context)} sends a compressed message that "
            f"cannot be decompressed: "
            f"{problem}",
            value=problem,
        )


@rule(
    "A2A-GRPC-007",
    "Message cannot be decoded",
    Severity.ERROR,
    section="1.0 10.1; 0.3 3.2.2",
    hook_points=MESSAGE_HOOKS,
    bindings=GRPC,
    trigger_flags=FrameFlag.OTHER,
    also_broken=("UNDECODABLE",),
    flagged=grpc("GetTask", TASK_PARAMS, b"\x0a\x02\xc3\x28"),
    clean=grpc("GetTask", TASK_PARAMS, task()),
)
def no_message(context: RuleContext) -> Iterator[RuleFinding]:
    """The bytes of a gRPC message are not a protobuf message of the request or response type of the
    method, or a string in it is not valid UTF-8. Low confidence for live streams and the package
    `a2a.v1`, which several versions share: the type is then a guess.

    The receiver fails the call with INTERNAL. The sender (client or agent) must encode the type of
    the version and method that it uses.
    """
    frame = context.frame
    if frame.kind is FrameKind.UNDECODABLE and frame.note.startswith("not a "):
        sure = (
            context.exchange.dialect in (Dialect.V1_0, Dialect.V1_1)
            and context.operation not in LIVE_OPERATIONS
        )
        told = f"{_sender_name(context)} sends {frame.size} bytes that are {frame.note}"
        yield RuleFinding(summary=told, is_sure=sure)


@rule(
    "A2A-GRPC-008",
    "Wrong number of messages in a call",
    Severity.ERROR,
    section="gRPC over HTTP/2",
    hook_points=_ALL_HOOKS,
    scope=EvidenceScope.EXCHANGE,
    bindings=GRPC,
    trigger_flags=FrameFlag.OTHER,
    flagged=grpc("GetTask", TASK_PARAMS, status=0),
    clean=grpc("GetTask", TASK_PARAMS, task()),
)
def count(context: RuleContext) -> Iterator[RuleFinding]:
    """A method that takes one request message got none or several before the client ended its side,
    or a unary call ends with status OK but without exactly one response message. Reported as a
    warning if a unary call has a response message and an error status.

    gRPC libraries fail such calls with INTERNAL or UNIMPLEMENTED; a response message with an error
    status is dropped. The side that sends the wrong number must be corrected: the client for
    requests, the agent for responses.
    """
    if context.frame_or_none is not None:
        if context.frame.kind is FrameKind.UNDECODABLE:
            context.record.writable_notes().setdefault("unread", []).append(
                int(context.frame.direction)
            )
        return
    exchange = context.exchange
    if not context.operation or context.operation in LIVE_OPERATIONS:
        return
    unread = (context.record.notes or {}).get("unread", ())
    asked, answers = exchange.requests, exchange.events
    if exchange.request_ended and asked != 1 and Direction.TO_AGENT not in unread:
        yield RuleFinding(
            summary=f"the client sends {asked} request messages, {exchange.method} takes one",
            actor=Actor.CLIENT,
        )
    if context.record.is_streaming or exchange.how != "complete" or Direction.TO_CLIENT in unread:
        return
    if exchange.grpc_status == 0 and answers != 1:
        yield RuleFinding(
            summary=f"{exchange.method} ends with status OK and {answers} "
            f"response messages, expected "
            f"one",
            actor=Actor.AGENT,
        )
    elif exchange.grpc_status > 0 and answers:
        told = (
            f"{exchange.method} ends with status {exchange.grpc_status} after a response message, "
            f"which clients drop"
        )
        yield RuleFinding(summary=told, severity=Severity.WARNING, actor=Actor.AGENT)


def _short_name(name: str) -> str:
    return name.rpartition(".")[2]


@rule(
    "A2A-GRPC-010",
    "Unknown fields in a message",
    Severity.INFO,
    section="1.0 5.7",
    hook_points=MESSAGE_HOOKS,
    bindings=GRPC,
    trigger_flags=FrameFlag.UNCLEAN,
    flagged=grpc("GetTask", TASK_PARAMS, MergedMessage((task(), _ELICITATION))),
    clean=grpc("GetTask", TASK_PARAMS, task()),
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
    hook_points=MESSAGE_HOOKS,
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
