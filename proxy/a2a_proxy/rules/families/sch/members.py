"""Members that are missing, empty, strange or of the wrong spelling (A2A 1.0 sections 5.5, 5.7)."""

from __future__ import annotations

from collections.abc import Iterable

from a2a_proxy.model.finding import Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import (
    ALL_BINDINGS,
    HTTP,
    JSON_TEXT,
    JSONRPC,
    WEBHOOK,
    Dialects,
    FrameFlag,
    HookPoint,
)
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rest, rpc
from a2a_proxy.rules.examples.objects import agent_reply, message, send, task
from a2a_proxy.rules.schema.check import findings_of_kinds
from a2a_proxy.rules.schema.fault import FaultKind

_MESSAGE_HOOKS = (HookPoint.REQUEST, HookPoint.ANSWER)
_CLEAN_SEND = rpc("SendMessage", send(), agent_reply())
_MESSAGE_0_3 = {"role": "user", "kind": "message", "messageId": "m1"}


def _old_task(**members: object) -> dict[str, object]:
    return {"kind": "task", "id": "t1", "contextId": "c1", "status": {"state": "completed"}} | members


def _old_send(**members: object) -> dict[str, object]:
    return {"message": _MESSAGE_0_3 | {"parts": [{"kind": "text", "text": "hello"}]} | members}


@rule(
    "A2A-SCH-001",
    "A required member is missing or empty",
    Severity.ERROR,
    section="1.0 5.7; 0.3 6",
    hook_points=_MESSAGE_HOOKS,
    trigger_flags=FrameFlag.UNCLEAN,
    dialects=Dialects.SINCE_0_2,
    bindings=ALL_BINDINGS,
    flagged=rpc("SendMessage", {"message": {"role": "ROLE_USER", "parts": [{"text": "hello"}]}}, agent_reply()),
    clean=_CLEAN_SEND,
)
def missing(context: RuleContext) -> Iterable[RuleFinding]:
    """A member that the schema requires is absent or null; in 1.0 also one that is an empty text or an unset enum.

    A strict receiver refuses the whole message; a lenient one goes on with an empty id or an unknown state, and what
    follows cannot be told apart any more. What a fetched card must have is told by A2A-CARD-003 and A2A-CARD-004.
    """
    return findings_of_kinds(context, FaultKind.MISSING)


@rule(
    "A2A-SCH-002",
    "A list that must have an element is empty",
    Severity.ERROR,
    section="1.0 5.7",
    hook_points=_MESSAGE_HOOKS,
    trigger_flags=FrameFlag.UNCLEAN,
    dialects=Dialects.V1,
    bindings=ALL_BINDINGS,
    flagged=rpc("SendMessage", {"message": message(parts=[])}, agent_reply()),
    clean=_CLEAN_SEND,
)
def empty_list(context: RuleContext) -> Iterable[RuleFinding]:
    """A required list has no element: the parts of a message or artifact, a card's interfaces, its default modes, the
    tags of a skill. A card without skills is an information only; a page of tasks may be empty.

    There is nothing in such a message to act on, and a receiver that takes the first element fails.
    """
    return findings_of_kinds(context, FaultKind.EMPTY_LIST)


@rule(
    "A2A-SCH-004",
    "Not exactly one alternative",
    Severity.ERROR,
    section="1.0 4.1.6, 3.2.3",
    hook_points=_MESSAGE_HOOKS,
    trigger_flags=FrameFlag.UNCLEAN,
    dialects=Dialects.V1,
    bindings=ALL_BINDINGS,
    flagged=rpc("SendMessage", send(parts=[{"text": "see", "url": "https://example.com/a.png"}]), agent_reply()),
    clean=_CLEAN_SEND,
)
def alternatives(context: RuleContext) -> Iterable[RuleFinding]:
    """An object that must hold exactly one of several members has none or more: a part (`text`, `raw`, `url`, `data`),
    the answer to a send, an event, a security scheme. An empty text counts as there.

    Which one a receiver takes is up to its parser, and most refuse; an event without any is lost.
    """
    return findings_of_kinds(context, FaultKind.ALTERNATIVES)


@rule(
    "A2A-SCH-005",
    "JSON member in snake_case",
    Severity.ERROR,
    section="1.0 5.5",
    hook_points=_MESSAGE_HOOKS,
    trigger_flags=FrameFlag.UNCLEAN,
    dialects=Dialects.V1,
    bindings=JSON_TEXT,
    flagged=rpc(
        "SendMessage", {"message": {"message_id": "m1", "role": "ROLE_USER", "parts": [{"text": "x"}]}}, agent_reply()
    ),
    clean=_CLEAN_SEND,
)
def snake_case(context: RuleContext) -> Iterable[RuleFinding]:
    """A JSON member is spelled as the field of the `.proto` file, with underscores, in place of camelCase.

    Parsers of protobuf JSON take both, all others see an unknown member and miss the real one.
    """
    return findings_of_kinds(context, FaultKind.SNAKE_CASE)


@rule(
    "A2A-SCH-010",
    "Unknown member",
    Severity.INFO,
    section="1.0 5.7",
    hook_points=_MESSAGE_HOOKS,
    trigger_flags=FrameFlag.UNCLEAN,
    bindings=JSON_TEXT,
    flagged=rpc(
        "GetTask", {"id": "t1"}, task("WORKING", status={"state": "TASK_STATE_WORKING", "progress": {"current": 1}})
    ),
    clean=rpc("GetTask", {"id": "t1"}, task("WORKING")),
)
def unknown_member(context: RuleContext) -> Iterable[RuleFinding]:
    """An object has a member that its schema does not know, neither in this line nor in a draft that extends it.

    Receivers ignore it: what it says reaches nobody who does not know the sender. `metadata` is the place for it.
    """
    return findings_of_kinds(context, FaultKind.UNKNOWN)


@rule(
    "A2A-SCH-013",
    "File with both or neither of bytes and uri",
    Severity.ERROR,
    section="0.3 6.6",
    hook_points=_MESSAGE_HOOKS,
    trigger_flags=FrameFlag.UNCLEAN,
    dialects=Dialects.V0_2_0_3,
    bindings=HTTP,
    flagged=rpc(
        "message/send",
        _old_send(parts=[{"kind": "file", "file": {"bytes": "aGk=", "uri": "https://example.com/a"}}]),
        _old_task(),
        version="",
    ),
    clean=rpc("message/send", _old_send(parts=[{"kind": "file", "file": {"bytes": "aGk="}}]), _old_task(), version=""),
)
def file_content(context: RuleContext) -> Iterable[RuleFinding]:
    """The file of a 0.2 or 0.3 file part has both `bytes` and `uri`, or neither.

    One of them must say where the content is; a receiver takes the wrong one or has no file at all.
    """
    return findings_of_kinds(context, FaultKind.FILE)


@rule(
    "A2A-SCH-014",
    "Missing discriminator",
    Severity.ERROR,
    section="0.3 6, types",
    hook_points=_MESSAGE_HOOKS,
    trigger_flags=FrameFlag.UNCLEAN,
    dialects=Dialects.V0_2_0_3,
    bindings=JSONRPC | WEBHOOK,
    flagged=rpc("tasks/get", {"id": "t1"}, {"id": "t1", "contextId": "c1", "status": {"state": "working"}}, version=""),
    clean=rpc("tasks/get", {"id": "t1"}, _old_task(), version=""),
)
def unmarked(context: RuleContext) -> Iterable[RuleFinding]:
    """A result, an event or a part of 0.2 or 0.3 does not say in `kind` what it is, or says something else. A message
    inside another object without it is an information: examples of the specification leave it out there.

    Clients of these lines choose the type by `kind`; without it they guess, or fail to read the answer.
    """
    return findings_of_kinds(context, FaultKind.UNMARKED)


@rule(
    "A2A-SCH-015",
    "null in place of an absent member",
    Severity.INFO,
    section="1.0 5.5; ProtoJSON",
    hook_points=_MESSAGE_HOOKS,
    trigger_flags=FrameFlag.UNCLEAN,
    bindings=JSON_TEXT,
    flagged=rest("GET", "/tasks/t1", None, task("WORKING", status={"state": "TASK_STATE_WORKING", "message": None})),
    clean=rest("GET", "/tasks/t1", None, task("WORKING")),
)
def null(context: RuleContext) -> Iterable[RuleFinding]:
    """A member that is not required is null where it should be left out.

    Protobuf's JSON allows it; clients with strict schemas refuse the object.
    """
    return findings_of_kinds(context, FaultKind.NULL)
