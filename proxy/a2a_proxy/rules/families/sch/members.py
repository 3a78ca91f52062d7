"""Rules about members that are missing, empty, unknown or misspelled (A2A 1.0 sections 5.5,
5.7)."""

from collections.abc import Iterable

from a2a_proxy.model.values import Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import (
    ALL_BINDINGS,
    HTTP,
    JSON_TEXT,
    JSONRPC,
    MESSAGE_HOOKS,
    WEBHOOK,
    Dialects,
    FrameFlag,
)
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import CLEAN_SEND, rest, rpc
from a2a_proxy.rules.examples.objects import agent_reply, message, send, task
from a2a_proxy.rules.schema.check import findings_of_kinds
from a2a_proxy.rules.schema.fault import FaultKind

_MESSAGE_0_3 = {"role": "user", "kind": "message", "messageId": "m1"}


def _old_task(**members: object) -> dict[str, object]:
    return {
        "kind": "task",
        "id": "t1",
        "contextId": "c1",
        "status": {"state": "completed"},
    } | members


def _old_send(**members: object) -> dict[str, object]:
    return {"message": _MESSAGE_0_3 | {"parts": [{"kind": "text", "text": "hello"}]} | members}


@rule(
    "A2A-SCH-001",
    "A required member is missing or empty",
    Severity.ERROR,
    section="1.0 5.7; 0.3 6",
    hook_points=MESSAGE_HOOKS,
    trigger_flags=FrameFlag.UNCLEAN,
    dialects=Dialects.SINCE_0_2,
    bindings=ALL_BINDINGS,
    flagged=rpc(
        "SendMessage",
        {"message": {"role": "ROLE_USER", "parts": [{"text": "hello"}]}},
        agent_reply(),
    ),
    clean=CLEAN_SEND,
)
def missing(context: RuleContext) -> Iterable[RuleFinding]:
    """A member that the schema requires is absent or null; in 1.0 also if it is an empty string or
    an unset enum.

    A strict receiver rejects the whole message; a lenient one continues with an empty id or an
    unknown state, and can no longer match later messages to it. The sender (client or agent) must
    fill in the member. Required members of a fetched agent card are judged by A2A-CARD-003 and
    A2A-CARD-004.
    """
    return findings_of_kinds(context, FaultKind.MISSING)


@rule(
    "A2A-SCH-002",
    "A list that needs at least one element is empty",
    Severity.ERROR,
    section="1.0 5.7",
    hook_points=MESSAGE_HOOKS,
    trigger_flags=FrameFlag.UNCLEAN,
    dialects=Dialects.V1,
    bindings=ALL_BINDINGS,
    flagged=rpc("SendMessage", {"message": message(parts=[])}, agent_reply()),
    clean=CLEAN_SEND,
)
def empty_list(context: RuleContext) -> Iterable[RuleFinding]:
    """A required list has no element: the parts of a message or artifact, the interfaces or default
    modes of an agent card, the tags of a skill. A card without skills is reported as information
    only; a page of tasks may be empty.

    Such a message has no content to act on, and a receiver that reads the first element fails. The
    sender (client or agent) must send at least one element.
    """
    return findings_of_kinds(context, FaultKind.EMPTY_LIST)


@rule(
    "A2A-SCH-004",
    "Not exactly one of several alternative members",
    Severity.ERROR,
    section="1.0 4.1.6, 3.2.3",
    hook_points=MESSAGE_HOOKS,
    trigger_flags=FrameFlag.UNCLEAN,
    dialects=Dialects.V1,
    bindings=ALL_BINDINGS,
    flagged=rpc(
        "SendMessage",
        send(parts=[{"text": "see", "url": "https://example.com/a.png"}]),
        agent_reply(),
    ),
    clean=CLEAN_SEND,
)
def alternatives(context: RuleContext) -> Iterable[RuleFinding]:
    """An object that must have exactly one of several members has none or more than one: a part
    (`text`, `raw`, `url`, `data`), the answer to a send, an event, a security scheme. A member with
    an empty string counts as present.

    Which member a receiver reads depends on its parser, and most reject the object; an event with
    none of them is lost. The sender (client or agent) must send exactly one.
    """
    return findings_of_kinds(context, FaultKind.ALTERNATIVES)


@rule(
    "A2A-SCH-005",
    "JSON member in snake_case",
    Severity.ERROR,
    section="1.0 5.5",
    hook_points=MESSAGE_HOOKS,
    trigger_flags=FrameFlag.UNCLEAN,
    dialects=Dialects.V1,
    bindings=JSON_TEXT,
    flagged=rpc(
        "SendMessage",
        {"message": {"message_id": "m1", "role": "ROLE_USER", "parts": [{"text": "x"}]}},
        agent_reply(),
    ),
    clean=CLEAN_SEND,
)
def snake_case(context: RuleContext) -> Iterable[RuleFinding]:
    """A JSON member is spelled like the field in the `.proto` file, with underscores
    (`message_id`), instead of in camelCase (`messageId`).

    ProtoJSON parsers accept both spellings; all others see an unknown member and miss the required
    one. The sender (client or agent) must write camelCase.
    """
    return findings_of_kinds(context, FaultKind.SNAKE_CASE)


@rule(
    "A2A-SCH-010",
    "Unknown member",
    Severity.INFO,
    section="1.0 5.7; 0.3 6",
    hook_points=MESSAGE_HOOKS,
    trigger_flags=FrameFlag.UNCLEAN,
    bindings=JSON_TEXT,
    flagged=rpc(
        "GetTask",
        {"id": "t1"},
        task("WORKING", status={"state": "TASK_STATE_WORKING", "progress": {"current": 1}}),
    ),
    clean=rpc("GetTask", {"id": "t1"}, task("WORKING")),
)
def unknown_member(context: RuleContext) -> Iterable[RuleFinding]:
    """An object has a member that its schema does not define, neither in the dialect of the call
    nor in a draft that extends it.

    Receivers ignore the member, so its content is lost unless they were written for this sender.
    The sender should move it into `metadata`.
    """
    return findings_of_kinds(context, FaultKind.UNKNOWN)


@rule(
    "A2A-SCH-013",
    "File with both `bytes` and `uri`, or neither",
    Severity.ERROR,
    section="0.3 6.6",
    hook_points=MESSAGE_HOOKS,
    trigger_flags=FrameFlag.UNCLEAN,
    dialects=Dialects.V0_2_0_3,
    bindings=HTTP,
    flagged=rpc(
        "message/send",
        _old_send(
            parts=[{"kind": "file", "file": {"bytes": "aGk=", "uri": "https://example.com/a"}}]
        ),
        _old_task(),
        version="",
    ),
    clean=rpc(
        "message/send",
        _old_send(parts=[{"kind": "file", "file": {"bytes": "aGk="}}]),
        _old_task(),
        version="",
    ),
)
def file_content(context: RuleContext) -> Iterable[RuleFinding]:
    """The file of a 0.2 or 0.3 file part has both `bytes` and `uri`, or neither.

    Exactly one of them must hold the content or its address. With both, a receiver may read the
    wrong one; with neither, it has no file. The sender (client or agent) must send exactly one.
    """
    return findings_of_kinds(context, FaultKind.FILE)


@rule(
    "A2A-SCH-014",
    "`kind` is missing or wrong",
    Severity.ERROR,
    section="0.3 6, types",
    hook_points=MESSAGE_HOOKS,
    trigger_flags=FrameFlag.UNCLEAN,
    dialects=Dialects.V0_2_0_3,
    bindings=JSONRPC | WEBHOOK,
    flagged=rpc(
        "tasks/get",
        {"id": "t1"},
        {"id": "t1", "contextId": "c1", "status": {"state": "working"}},
        version="",
    ),
    clean=rpc("tasks/get", {"id": "t1"}, _old_task(), version=""),
)
def unmarked(context: RuleContext) -> Iterable[RuleFinding]:
    """A result, an event or a part of 0.2 or 0.3 has no `kind`, the member that names its type, or
    names another type. A message nested in another object and without `kind` is reported as
    information, because examples of the specification omit it there.

    Clients of these versions choose the type by `kind`; without it they guess, or fail to read the
    answer. The sender (the agent for results and events) must add it.
    """
    return findings_of_kinds(context, FaultKind.UNMARKED)


@rule(
    "A2A-SCH-015",
    "Member is null instead of absent",
    Severity.INFO,
    section="1.0 5.5; ProtoJSON",
    hook_points=MESSAGE_HOOKS,
    trigger_flags=FrameFlag.UNCLEAN,
    bindings=JSON_TEXT,
    flagged=rest(
        "GET",
        "/tasks/t1",
        None,
        task("WORKING", status={"state": "TASK_STATE_WORKING", "message": None}),
    ),
    clean=rest("GET", "/tasks/t1", None, task("WORKING")),
)
def null(context: RuleContext) -> Iterable[RuleFinding]:
    """An optional member has the value null; it should be left out.

    ProtoJSON allows null, but receivers with strict schemas reject the object. The sender (client
    or agent) should omit the member.
    """
    return findings_of_kinds(context, FaultKind.NULL)
