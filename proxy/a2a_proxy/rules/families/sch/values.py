"""Values that are none of those their members may have (A2A 1.0 sections 5.5, 5.6.1)."""

from __future__ import annotations

from collections.abc import Iterable

from a2a_proxy.model.finding import Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import (
    EVERY,
    JSON_TEXT,
    JSONRPC,
    REST,
    WEBHOOK,
    Dialects,
    FrameFlag,
    HookPoint,
    RuleFinding,
    rule,
)
from a2a_proxy.rules.examples.conversation import grpc, rpc, rpc_stream
from a2a_proxy.rules.examples.objects import chunk, said, send, snapshot, state, status, task
from a2a_proxy.rules.schema.check import hits
from a2a_proxy.rules.schema.fault import FaultKind
from a2a_proxy.rules.schema.leaf import LARGE

_BOTH = (HookPoint.REQUEST, HookPoint.ANSWER)
_CLEAN = rpc("SendMessage", send(), said())
_GET = {"id": "t1"}


@rule(
    "A2A-SCH-003",
    "Unknown or unspecified enum value",
    Severity.ERROR,
    section="1.0 4.1.3, 4.1.5",
    moment=_BOTH,
    when=FrameFlag.UNCLEAN,
    bindings=EVERY,
    flagged=rpc("GetTask", _GET, task("RUNNING")),
    clean=rpc("GetTask", _GET, task("WORKING")),
)
def enum(see: RuleContext) -> Iterable[RuleFinding]:
    """A state, a role or another enum has a name or a number that it does not define, or says that it is unspecified.
    `unknown` in 0.x is an information only: the line has that state, it just says nothing.

    Receivers refuse the message, or take the task to be in no state at all and wait for ever.
    """
    return hits(see, FaultKind.ENUM)


@rule(
    "A2A-SCH-006",
    "Timestamp is not ISO 8601 in UTC",
    Severity.ERROR,
    section="1.0 5.6.1; 0.3 6.2",
    moment=_BOTH,
    when=FrameFlag.UNCLEAN,
    lines=Dialects.SINCE_0_2,
    bindings=JSONRPC | REST | WEBHOOK,
    flagged=rpc("GetTask", _GET, task(status=state("WORKING", timestamp="2026-01-01T00:00:00+02:00"))),
    clean=rpc("GetTask", _GET, task(status=state("WORKING", timestamp="2026-01-01T00:00:00.000Z"))),
)
def timestamp(see: RuleContext) -> Iterable[RuleFinding]:
    """A timestamp cannot be read as an ISO 8601 time, or in 1.0 is not in UTC with the letter `Z`. Without milliseconds
    in 1.0, or without a zone in 0.2 and 0.3, it is an information.

    Clients that compare states by their times sort them wrongly, by hours, or fail to parse the status.
    """
    return hits(see, FaultKind.TIMESTAMP)


@rule(
    "A2A-SCH-007",
    "Octets are not base64",
    Severity.ERROR,
    section="1.0 5.5; ProtoJSON",
    moment=_BOTH,
    when=FrameFlag.UNCLEAN,
    bindings=JSONRPC | REST | WEBHOOK,
    flagged=rpc("SendMessage", send(parts=[{"raw": "***"}]), said()),
    clean=rpc("SendMessage", send(parts=[{"raw": "aGk="}]), said()),
)
def base64(see: RuleContext) -> Iterable[RuleFinding]:
    """The inline octets of a file (`raw`, `bytes`, `fileWithBytes`) are no base64, neither in the standard alphabet nor
    in the one for URLs.

    The file cannot be restored; most parsers refuse the whole message.
    """
    return hits(see, FaultKind.BASE64)


@rule(
    "A2A-SCH-008",
    "Value out of range, or of the wrong type",
    Severity.ERROR,
    section="1.0 3.2.4, 3.1.4",
    moment=_BOTH,
    when=FrameFlag.UNCLEAN,
    lines=Dialects.SINCE_0_2,
    bindings=EVERY,
    flagged=rpc("GetTask", {"id": "t1", "historyLength": -5}, task()),
    clean=rpc("GetTask", {"id": "t1", "historyLength": 0}, task()),
)
def out_of_range(see: RuleContext) -> Iterable[RuleFinding]:
    """A number is outside its range (`historyLength` below 0, `pageSize` of a task query not from 1 to 100, more than
    32 bits), or a member has another JSON type than its schema says. Generations have A2A-GEN-020.

    The receiver refuses the call or, worse, takes the value for something else.
    """
    return hits(see, FaultKind.RANGE)


@rule(
    "A2A-SCH-009",
    "Role contradicts the direction",
    Severity.ERROR,
    section="1.0 4.1.4",
    moment=_BOTH,
    when=FrameFlag.UNCLEAN,
    bindings=EVERY,
    flagged=rpc("SendMessage", send(role="ROLE_AGENT"), said()),
    clean=_CLEAN,
)
def role(see: RuleContext) -> Iterable[RuleFinding]:
    """A message that a client sends is not of the user's role, or one that an agent sends as its answer or with a
    status is not of the agent's. The history of a task may hold both.

    Who said what is lost: conversations replayed to a model put words into the wrong mouth.
    """
    return hits(see, FaultKind.ROLE)


@rule(
    "A2A-SCH-011",
    "Metadata is not an object",
    Severity.ERROR,
    section="1.0 3.2.5",
    moment=_BOTH,
    when=FrameFlag.UNCLEAN,
    bindings=JSON_TEXT,
    flagged=rpc("SendMessage", send(metadata=[]), said()),
    clean=rpc("SendMessage", send(metadata={}), said()),
)
def not_object(see: RuleContext) -> Iterable[RuleFinding]:
    """A member that must be a JSON object of free content (`metadata`, `params` of an extension, `header` of a
    signature, `data` of a 0.3 part) is a list, a text, a number or a truth value.

    Typed receivers refuse the whole message.
    """
    return hits(see, FaultKind.NOT_OBJECT)


@rule(
    "A2A-SCH-012",
    "URL or media type of a part is malformed",
    Severity.WARNING,
    section="1.0 4.1.6; 0.3 6.6",
    moment=_BOTH,
    when=FrameFlag.UNCLEAN,
    bindings=EVERY,
    flagged=grpc("SendMessage", send(parts=[{"url": "out.png", "mediaType": "image/png"}]), said()),
    clean=grpc("SendMessage", send(parts=[{"url": "https://example.com/out.png", "mediaType": "image/png"}]), said()),
)
def media(see: RuleContext) -> Iterable[RuleFinding]:
    """The URL of a part is not absolute, or its media type is not of the form type/subtype.

    The receiver cannot fetch the content, or cannot tell what it is.
    """
    return hits(see, FaultKind.MEDIA)


@rule(
    "A2A-SCH-016",
    "Inline content is very large",
    Severity.INFO,
    section="1.0 4.1.7",
    moment=_BOTH,
    when=FrameFlag.UNCLEAN,
    bindings=EVERY,
    flagged=rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot("WORKING"),
        chunk("x" * (LARGE + 1), lastChunk=True),
        status("COMPLETED"),
    ),
    clean=rpc_stream("SendStreamingMessage", send(), snapshot("WORKING"), chunk(lastChunk=True), status("COMPLETED")),
)
def large(see: RuleContext) -> Iterable[RuleFinding]:
    """A part carries more than 1 MiB of text or octets inline.

    Every copy of the message carries it again: history, task snapshots, push notifications. Give a `url` in its place.
    """
    return hits(see, FaultKind.LARGE)
