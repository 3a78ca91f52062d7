"""Values that are none of those their members may have (A2A 1.0 sections 5.5, 5.6.1)."""

from __future__ import annotations

from collections.abc import Iterable

from a2a_proxy.model.finding import Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import (
    ALL_BINDINGS,
    JSON_TEXT,
    JSONRPC,
    REST,
    WEBHOOK,
    Dialects,
    FrameFlag,
    HookPoint,
)
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import grpc, rpc, rpc_stream
from a2a_proxy.rules.examples.objects import agent_reply, chunk, send, snapshot, state, status, task
from a2a_proxy.rules.schema.check import findings_of_kinds
from a2a_proxy.rules.schema.fault import FaultKind
from a2a_proxy.rules.schema.leaf import LARGE

_MESSAGE_HOOKS = (HookPoint.REQUEST, HookPoint.ANSWER)
_CLEAN_SEND = rpc("SendMessage", send(), agent_reply())
_TASK_PARAMS = {"id": "t1"}


@rule(
    "A2A-SCH-003",
    "Unknown or unspecified enum value",
    Severity.ERROR,
    section="1.0 4.1.3, 4.1.5",
    hook_points=_MESSAGE_HOOKS,
    trigger_flags=FrameFlag.UNCLEAN,
    bindings=ALL_BINDINGS,
    flagged=rpc("GetTask", _TASK_PARAMS, task("RUNNING")),
    clean=rpc("GetTask", _TASK_PARAMS, task("WORKING")),
)
def enum(context: RuleContext) -> Iterable[RuleFinding]:
    """A state, a role or another enum has a name or a number that it does not define, or says that it is unspecified.
    `unknown` in 0.x is an information only: the line has that state, it just says nothing.

    Receivers refuse the message, or take the task to be in no state at all and wait for ever.
    """
    return findings_of_kinds(context, FaultKind.ENUM)


@rule(
    "A2A-SCH-006",
    "Timestamp is not ISO 8601 in UTC",
    Severity.ERROR,
    section="1.0 5.6.1; 0.3 6.2",
    hook_points=_MESSAGE_HOOKS,
    trigger_flags=FrameFlag.UNCLEAN,
    dialects=Dialects.SINCE_0_2,
    bindings=JSONRPC | REST | WEBHOOK,
    flagged=rpc("GetTask", _TASK_PARAMS, task(status=state("WORKING", timestamp="2026-01-01T00:00:00+02:00"))),
    clean=rpc("GetTask", _TASK_PARAMS, task(status=state("WORKING", timestamp="2026-01-01T00:00:00.000Z"))),
)
def timestamp(context: RuleContext) -> Iterable[RuleFinding]:
    """A timestamp cannot be read as an ISO 8601 time, or in 1.0 is not in UTC with the letter `Z`. Without milliseconds
    in 1.0, or without a zone in 0.2 and 0.3, it is an information.

    Clients that compare states by their times sort them wrongly, by hours, or fail to parse the status.
    """
    return findings_of_kinds(context, FaultKind.TIMESTAMP)


@rule(
    "A2A-SCH-007",
    "Bytes are not base64",
    Severity.ERROR,
    section="1.0 5.5; ProtoJSON",
    hook_points=_MESSAGE_HOOKS,
    trigger_flags=FrameFlag.UNCLEAN,
    bindings=JSONRPC | REST | WEBHOOK,
    flagged=rpc("SendMessage", send(parts=[{"raw": "***"}]), agent_reply()),
    clean=rpc("SendMessage", send(parts=[{"raw": "aGk="}]), agent_reply()),
)
def base64(context: RuleContext) -> Iterable[RuleFinding]:
    """The inline bytes of a file (`raw`, `bytes`, `fileWithBytes`) are no base64, neither in the standard alphabet nor
    in the one for URLs.

    The file cannot be restored; most parsers refuse the whole message.
    """
    return findings_of_kinds(context, FaultKind.BASE64)


@rule(
    "A2A-SCH-008",
    "Value out of range, or of the wrong type",
    Severity.ERROR,
    section="1.0 3.2.4, 3.1.4",
    hook_points=_MESSAGE_HOOKS,
    trigger_flags=FrameFlag.UNCLEAN,
    dialects=Dialects.SINCE_0_2,
    bindings=ALL_BINDINGS,
    flagged=rpc("GetTask", {"id": "t1", "historyLength": -5}, task()),
    clean=rpc("GetTask", {"id": "t1", "historyLength": 0}, task()),
)
def out_of_range(context: RuleContext) -> Iterable[RuleFinding]:
    """A number is outside its range (`historyLength` below 0, `pageSize` of a task query not from 1 to 100, more than
    32 bits), or a member has another JSON type than its schema says. Generations have A2A-GEN-020.

    The receiver refuses the call or, worse, takes the value for something else.
    """
    return findings_of_kinds(context, FaultKind.RANGE)


@rule(
    "A2A-SCH-009",
    "Role contradicts the direction",
    Severity.ERROR,
    section="1.0 4.1.4",
    hook_points=_MESSAGE_HOOKS,
    trigger_flags=FrameFlag.UNCLEAN,
    bindings=ALL_BINDINGS,
    flagged=rpc("SendMessage", send(role="ROLE_AGENT"), agent_reply()),
    clean=_CLEAN_SEND,
)
def role(context: RuleContext) -> Iterable[RuleFinding]:
    """A message that a client sends is not of the user's role, or one that an agent sends as its answer or with a
    status is not of the agent's. The history of a task may hold both.

    Who said what is lost: conversations replayed to a model put words into the wrong mouth.
    """
    return findings_of_kinds(context, FaultKind.ROLE)


@rule(
    "A2A-SCH-011",
    "Metadata is not an object",
    Severity.ERROR,
    section="1.0 3.2.5",
    hook_points=_MESSAGE_HOOKS,
    trigger_flags=FrameFlag.UNCLEAN,
    bindings=JSON_TEXT,
    flagged=rpc("SendMessage", send(metadata=[]), agent_reply()),
    clean=rpc("SendMessage", send(metadata={}), agent_reply()),
)
def not_object(context: RuleContext) -> Iterable[RuleFinding]:
    """A member that must be a JSON object of free content (`metadata`, `params` of an extension, `header` of a
    signature, `data` of a 0.3 part) is a list, a text, a number or a truth value.

    Typed receivers refuse the whole message.
    """
    return findings_of_kinds(context, FaultKind.NOT_OBJECT)


@rule(
    "A2A-SCH-012",
    "URL or media type of a part is malformed",
    Severity.WARNING,
    section="1.0 4.1.6; 0.3 6.6",
    hook_points=_MESSAGE_HOOKS,
    trigger_flags=FrameFlag.UNCLEAN,
    bindings=ALL_BINDINGS,
    flagged=grpc("SendMessage", send(parts=[{"url": "out.png", "mediaType": "image/png"}]), agent_reply()),
    clean=grpc(
        "SendMessage", send(parts=[{"url": "https://example.com/out.png", "mediaType": "image/png"}]), agent_reply()
    ),
)
def media(context: RuleContext) -> Iterable[RuleFinding]:
    """The URL of a part is not absolute, or its media type is not of the form type/subtype.

    The receiver cannot fetch the content, or cannot tell what it is.
    """
    return findings_of_kinds(context, FaultKind.MEDIA)


@rule(
    "A2A-SCH-016",
    "Inline content is very large",
    Severity.INFO,
    section="1.0 4.1.7",
    hook_points=_MESSAGE_HOOKS,
    trigger_flags=FrameFlag.UNCLEAN,
    bindings=ALL_BINDINGS,
    flagged=rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot("WORKING"),
        chunk("x" * (LARGE + 1), lastChunk=True),
        status("COMPLETED"),
    ),
    clean=rpc_stream("SendStreamingMessage", send(), snapshot("WORKING"), chunk(lastChunk=True), status("COMPLETED")),
)
def large(context: RuleContext) -> Iterable[RuleFinding]:
    """A part carries more than 1 MiB of text or bytes inline.

    Every copy of the message carries it again: history, task snapshots, push notifications. Give a `url` in its place.
    """
    return findings_of_kinds(context, FaultKind.LARGE)
