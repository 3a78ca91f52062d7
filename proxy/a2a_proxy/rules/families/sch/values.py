"""Rules about values that their members do not allow (A2A 1.0 sections 5.5, 5.6.1)."""

from collections.abc import Iterable

from a2a_proxy.model.values import Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import (
    ALL_BINDINGS,
    JSON_TEXT,
    JSONRPC,
    MESSAGE_HOOKS,
    REST,
    WEBHOOK,
    Dialects,
    FrameFlag,
)
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import CLEAN_SEND, grpc, rpc
from a2a_proxy.rules.examples.objects import (
    TASK_PARAMS,
    agent_reply,
    send,
    state,
    task,
)
from a2a_proxy.rules.schema.check import findings_of_kinds
from a2a_proxy.rules.schema.fault import FaultKind


@rule(
    "A2A-SCH-003",
    "Unknown or unspecified enum value",
    Severity.ERROR,
    section="1.0 4.1.3, 4.1.5; 0.3 6.3, 6.4",
    hook_points=MESSAGE_HOOKS,
    trigger_flags=FrameFlag.UNCLEAN,
    bindings=ALL_BINDINGS,
    flagged=rpc("GetTask", TASK_PARAMS, task("RUNNING")),
    clean=rpc("GetTask", TASK_PARAMS, task("WORKING")),
)
def enum(context: RuleContext) -> Iterable[RuleFinding]:
    """A state, a role or another enum has a name or number that the enum does not define, or its
    "unspecified" value. `unknown` in 0.x is reported as information, because these versions define
    that state.

    Receivers reject the message, or treat the task as having no state and wait indefinitely. The
    sender (client or agent) must send a defined value.
    """
    return findings_of_kinds(context, FaultKind.ENUM)


@rule(
    "A2A-SCH-006",
    "Timestamp is not ISO 8601 in UTC",
    Severity.ERROR,
    section="1.0 5.6.1; 0.3 6.2",
    hook_points=MESSAGE_HOOKS,
    trigger_flags=FrameFlag.UNCLEAN,
    dialects=Dialects.SINCE_0_2,
    bindings=JSONRPC | REST | WEBHOOK,
    flagged=rpc(
        "GetTask",
        TASK_PARAMS,
        task(status=state("WORKING", timestamp="2026-01-01T00:00:00+02:00")),
    ),
    clean=rpc(
        "GetTask", TASK_PARAMS, task(status=state("WORKING", timestamp="2026-01-01T00:00:00.000Z"))
    ),
)
def timestamp(context: RuleContext) -> Iterable[RuleFinding]:
    """A timestamp is not a valid ISO 8601 time, or in 1.0 is not in UTC with the letter `Z`. A
    timestamp without milliseconds in 1.0, or without a time zone in 0.2 and 0.3, is reported as
    information.

    Clients that compare states by time sort them wrongly, by hours, or fail to parse the status.
    The sender (usually the agent) must write UTC, such as `2026-01-01T00:00:00.000Z`.
    """
    return findings_of_kinds(context, FaultKind.TIMESTAMP)


@rule(
    "A2A-SCH-007",
    "Inline file content is not base64",
    Severity.ERROR,
    section="1.0 5.5; ProtoJSON",
    hook_points=MESSAGE_HOOKS,
    trigger_flags=FrameFlag.UNCLEAN,
    bindings=JSONRPC | REST | WEBHOOK,
    flagged=rpc("SendMessage", send(parts=[{"raw": "***"}]), agent_reply()),
    clean=rpc("SendMessage", send(parts=[{"raw": "aGk="}]), agent_reply()),
)
def base64(context: RuleContext) -> Iterable[RuleFinding]:
    """The inline bytes of a file (`raw`, `bytes`, `fileWithBytes`) are not base64, neither in the
    standard alphabet nor in the URL-safe one.

    The receiver cannot restore the file; most parsers reject the whole message. The sender (client
    or agent) must encode the bytes as base64.
    """
    return findings_of_kinds(context, FaultKind.BASE64)


@rule(
    "A2A-SCH-008",
    "Value out of range or of the wrong type",
    Severity.ERROR,
    section="1.0 3.2.4, 3.1.4; 0.3 7.3.1",
    hook_points=MESSAGE_HOOKS,
    trigger_flags=FrameFlag.UNCLEAN,
    dialects=Dialects.SINCE_0_2,
    bindings=ALL_BINDINGS,
    flagged=rpc("GetTask", {"id": "t1", "historyLength": -5}, task()),
    clean=rpc("GetTask", {"id": "t1", "historyLength": 0}, task()),
)
def out_of_range(context: RuleContext) -> Iterable[RuleFinding]:
    """A number is outside its range (`historyLength` below 0, `pageSize` of a task query not from 1
    to 100, more than 32 bits; in protobuf a time before the year 1, after the year 9999 or with a
    negative fraction), or a member has a JSON type that its schema does not allow. Generations are
    judged by A2A-GEN-020.

    The receiver rejects the call or, worse, misreads the value. The sender (client or agent) must
    send a value that the schema allows.
    """
    return findings_of_kinds(context, FaultKind.RANGE)


@rule(
    "A2A-SCH-009",
    "Message role does not match its sender",
    Severity.ERROR,
    section="1.0 4.1.4; 0.3 6.4",
    hook_points=MESSAGE_HOOKS,
    trigger_flags=FrameFlag.UNCLEAN,
    bindings=ALL_BINDINGS,
    flagged=rpc("SendMessage", send(role="ROLE_AGENT"), agent_reply()),
    clean=CLEAN_SEND,
)
def role(context: RuleContext) -> Iterable[RuleFinding]:
    """A message sent by a client does not have the role of the user, or a message that an agent
    sends as its answer or in a status does not have the role of the agent. The history of a task
    may hold both roles.

    The author of the message is lost: a conversation that is later passed to a language model
    attributes words to the wrong speaker. The sender (client or agent) must set its own role.
    """
    return findings_of_kinds(context, FaultKind.ROLE)


@rule(
    "A2A-SCH-011",
    "Metadata or other free content is not an object",
    Severity.ERROR,
    section="1.0 3.2.5",
    hook_points=MESSAGE_HOOKS,
    trigger_flags=FrameFlag.UNCLEAN,
    bindings=JSON_TEXT,
    flagged=rpc("SendMessage", send(metadata=[]), agent_reply()),
    clean=rpc("SendMessage", send(metadata={}), agent_reply()),
)
def not_object(context: RuleContext) -> Iterable[RuleFinding]:
    """A member that must be a JSON object with free content (`metadata`, `params` of an extension,
    `header` of a signature, `data` of a 0.3 part) is an array, a string, a number or a boolean.

    Typed receivers reject the whole message. The sender (client or agent) must send an object.
    """
    return findings_of_kinds(context, FaultKind.NOT_OBJECT)


@rule(
    "A2A-SCH-012",
    "Malformed URL or media type of a part",
    Severity.WARNING,
    section="1.0 4.1.6; 0.3 6.6",
    hook_points=MESSAGE_HOOKS,
    trigger_flags=FrameFlag.UNCLEAN,
    bindings=ALL_BINDINGS,
    flagged=grpc(
        "SendMessage", send(parts=[{"url": "out.png", "mediaType": "image/png"}]), agent_reply()
    ),
    clean=grpc(
        "SendMessage",
        send(parts=[{"url": "https://example.com/out.png", "mediaType": "image/png"}]),
        agent_reply(),
    ),
)
def media(context: RuleContext) -> Iterable[RuleFinding]:
    """The URL of a part is not absolute, or its media type does not have the form type/subtype.

    The receiver cannot fetch the content or does not know how to process it. The sender (client or
    agent) must send an absolute URL and a valid media type.
    """
    return findings_of_kinds(context, FaultKind.MEDIA)
