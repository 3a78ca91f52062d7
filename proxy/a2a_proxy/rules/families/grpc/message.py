"""The length-prefixed messages of a gRPC call (manual/protocol.md "gRPC framing")."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.chunk import Direction
from a2a_proxy.model.exchange import Dialect
from a2a_proxy.model.finding import Severity
from a2a_proxy.model.frame import FrameKind
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import GRPC, EvidenceScope, FrameFlag, HookPoint, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import Filled, Raw, grpc
from a2a_proxy.rules.examples.objects import chunk, send, snapshot, status, task
from a2a_proxy.rules.state.session_state import LARGE

_GET = {"id": "t1"}
_BOTH = (HookPoint.REQUEST, HookPoint.ANSWER)
_ALL = (HookPoint.REQUEST, HookPoint.ANSWER, HookPoint.CLOSED)
_BIDIRECTIONAL = frozenset({"SendLiveMessage", "ReconnectToTask"})
_NO_FLAG = "expected compressed flag"
_INCOMPLETE = "expected message "
_CODING = "expected message in "


def _side(see: RuleContext) -> str:
    return "the client" if see.frame.direction is Direction.TO_AGENT else "the agent"


@rule(
    "A2A-GRPC-005",
    "Broken length prefix",
    Severity.ERROR,
    section="gRPC over HTTP/2",
    moment=_ALL,
    bindings=GRPC,
    when=FrameFlag.OTHER,
    also=("UNDECODABLE",),
    flagged=grpc("GetTask", _GET, Raw(b"\0\0\0\0\xff\x0a\x02t1\x12\x02c1")),
    clean=grpc("GetTask", _GET, task()),
)
def prefix(see: RuleContext) -> Iterator[RuleFinding]:
    """The first octet of a message is neither 0 nor 1, or its sender ends the stream before the announced length is
    there. A message that broke off with its stream is not meant.

    Nobody can find the next message after that: the call fails with INTERNAL.
    """
    frame = see.shown
    if frame is None:
        yield from _incomplete(see)
    elif frame.kind is FrameKind.UNDECODABLE and frame.note.startswith(_NO_FLAG):
        yield RuleFinding(summary=f"{_side(see)} sends a broken length prefix: {frame.note}", value=frame.note)
    elif frame.kind is FrameKind.UNDECODABLE and _broke_off(frame.note):
        see.track.remember()["incomplete"] = [frame.seq, frame.note, int(frame.direction)]


def _broke_off(note: str) -> bool:
    return note.startswith(_INCOMPLETE) and ", got end after " in note


def _incomplete(see: RuleContext) -> Iterator[RuleFinding]:
    """Only now it is known whether the sender ended the stream, or it was cut."""
    seq, note, direction = (see.track.notes or {}).get("incomplete", (-1, "", 0))
    by_client = direction == Direction.TO_AGENT
    if note and (see.exchange.request_ended if by_client else see.exchange.how == "complete"):
        side = "the client" if by_client else "the agent"
        yield RuleFinding(summary=f"{side} ends the stream inside a message: {note}", value=note, seq=seq)


@rule(
    "A2A-GRPC-006",
    "Compressed message without a usable encoding",
    Severity.ERROR,
    section="gRPC over HTTP/2, compression",
    moment=_BOTH,
    bindings=GRPC,
    when=FrameFlag.OTHER,
    also=("UNDECODABLE",),
    flagged=grpc("GetTask", _GET, Raw(b"\1\0\0\0\x0c\x0a\x02t1\x12\x02c1\x1a\x02\x08\x03")),
    clean=grpc("GetTask", _GET, task(), reply_headers={"grpc-encoding": "identity"}),
)
def compression(see: RuleContext) -> Iterator[RuleFinding]:
    """A message has the compressed flag set, and `grpc-encoding` is absent or `identity`, or its octets do not
    decompress with the encoding that is named there.

    The receiver must fail the call with INTERNAL; the message is lost.
    """
    frame = see.frame
    if frame.kind is FrameKind.UNDECODABLE and frame.note.startswith(_CODING):
        problem = frame.note.partition(", got ")[2]
        yield RuleFinding(
            summary=f"{_side(see)} sends a compressed message that cannot be read: {problem}", value=frame.note
        )


@rule(
    "A2A-GRPC-007",
    "Message does not decode",
    Severity.ERROR,
    section="1.0 10.1",
    moment=_BOTH,
    bindings=GRPC,
    when=FrameFlag.OTHER,
    also=("UNDECODABLE",),
    flagged=grpc("GetTask", _GET, b"\x0a\x02\xc3\x28"),
    clean=grpc("GetTask", _GET, task()),
)
def no_message(see: RuleContext) -> Iterator[RuleFinding]:
    """The octets of a message are no protobuf message of the type that the method takes or gives, or a string in it is
    not valid UTF-8.

    The receiver fails the call with INTERNAL. Of live streams and of the package `a2a.v1`, which several versions
    share, the type is a guess: such findings are less sure.
    """
    frame = see.frame
    if frame.kind is FrameKind.UNDECODABLE and frame.note.startswith("not a "):
        sure = see.exchange.dialect in (Dialect.V1_0, Dialect.V1_1) and see.operation not in _BIDIRECTIONAL
        told = f"{_side(see)} sends {frame.size} octets that are {frame.note.replace('not a ', 'no ', 1)}"
        yield RuleFinding(summary=told, sure=sure)


@rule(
    "A2A-GRPC-008",
    "Wrong number of messages",
    Severity.ERROR,
    section="gRPC over HTTP/2",
    moment=_ALL,
    scope=EvidenceScope.EXCHANGE,
    bindings=GRPC,
    when=FrameFlag.OTHER,
    flagged=grpc("GetTask", _GET, status=0),
    clean=grpc("GetTask", _GET, task()),
)
def count(see: RuleContext) -> Iterator[RuleFinding]:
    """A call that takes one request message has none or several when the client has half-closed; or a unary call ends
    with status OK and without exactly one answer. An answer of a unary call beside another status is a warning.

    The libraries fail such calls with INTERNAL or UNIMPLEMENTED; an answer beside an error is dropped.
    """
    if see.shown is not None:
        if see.frame.kind is FrameKind.UNDECODABLE:
            see.track.remember().setdefault("unread", []).append(int(see.frame.direction))
        return
    exchange = see.exchange
    if not see.operation or see.operation in _BIDIRECTIONAL:
        return
    unread = (see.track.notes or {}).get("unread", ())
    asked, answers = exchange.requests, exchange.events
    if exchange.request_ended and asked != 1 and Direction.TO_AGENT not in unread:
        yield RuleFinding(summary=f"the client sends {asked} messages, {exchange.method} takes one")
    if see.track.streams or exchange.how != "complete" or Direction.TO_CLIENT in unread:
        return
    if exchange.grpc_status == 0 and answers != 1:
        yield RuleFinding(summary=f"{exchange.method} ends with status OK and {answers} answers, there must be one")
    elif exchange.grpc_status > 0 and answers:
        told = f"{exchange.method} ends with status {exchange.grpc_status} after an answer, which is dropped"
        yield RuleFinding(summary=told, severity=Severity.WARNING)


@rule(
    "A2A-GRPC-015",
    "Message above 4 MiB",
    Severity.INFO,
    section="gRPC defaults",
    moment=_BOTH,
    bindings=GRPC,
    when=FrameFlag.LARGE,
    flagged=grpc("SendStreamingMessage", send(), snapshot("WORKING"), Filled(LARGE), status("COMPLETED")),
    clean=grpc("SendStreamingMessage", send(), snapshot("WORKING"), chunk("x"), status("COMPLETED")),
)
def large(see: RuleContext) -> Iterator[RuleFinding]:
    """A message is larger than 4 MiB.

    gRPC libraries take no more than that unless they are told to: the call fails with RESOURCE_EXHAUSTED. A part with a
    `url`, or an artifact in several chunks, is small.
    """
    frame = see.frame
    if frame.kind is not FrameKind.END:
        told = f"{_side(see)} sends a message of {frame.size:,} octets, receivers commonly take {LARGE:,}"
        yield RuleFinding(summary=told, value=str(frame.size))
