"""Rule about the type of a result: whether it is the type that the called method returns (A2A 1.0
section 9.4)."""

from collections.abc import Callable, Iterator
from typing import Any

from a2a_proxy.model.values import EVENT_WRAPPERS, Dialect, EventKind, FrameKind, Severity
from a2a_proxy.protocol.json_summary import rename_to_camel
from a2a_proxy.protocol.operations import OPERATION_BY_NAME, ResponseKind
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import ENVELOPE, EvidenceScope, FrameFlag
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rpc
from a2a_proxy.rules.examples.objects import task
from a2a_proxy.rules.families.rpc.reading import json_kind, read_envelope, short_json
from a2a_proxy.rules.schema.check import findings_of_kinds
from a2a_proxy.rules.schema.fault import FaultKind

Json = dict[str, Any]

_EVENT_MEMBERS = frozenset({*EVENT_WRAPPERS.values(), "messageUpdate"})
_TASK_MEMBERS = frozenset({"id", "status"})
_MESSAGE_MEMBERS = frozenset({"messageId", "parts", "role"})
_LIST_MEMBERS = frozenset({"tasks", "nextPageToken", "pageSize", "totalSize"})
_CONFIG_LIST_MEMBERS = frozenset({"configs", "nextPageToken"})
_OLD_DIALECTS = frozenset({Dialect.V0_1, Dialect.V0_2, Dialect.V0_3})
_NEW_DIALECTS = frozenset({Dialect.V1_0, Dialect.V1_1})


@rule(
    "A2A-RPC-014",
    "The result has the wrong type for the method",
    Severity.ERROR,
    section="1.0 9.4; 0.3 7",
    scope=EvidenceScope.EXCHANGE,
    bindings=ENVELOPE,
    trigger_flags=FrameFlag.UNCLEAN,
    flagged=rpc("ListTasks", {}, [task()]),
    clean=rpc(
        "ListTasks", {}, {"tasks": [task()], "nextPageToken": "", "pageSize": 50, "totalSize": 1}
    ),
)
def wrong_result(context: RuleContext) -> Iterator[RuleFinding]:
    """The `result` of a JSON-RPC response is not of the type that the method returns in the
    protocol version of the call. Examples in 1.0: a GetTask result wrapped in a member `task`, a
    list that is not an object with `tasks`. Examples in 0.x: a result wrapped in such a member, a
    list of push configurations that is not an array. Also: null where an object is required. A 1.0
    send result without its wrapper `task` or `message` is reported by A2A-SCH-004, a result of
    another dialect by A2A-VER-007.

    A typed client cannot parse the answer at all; an untyped client finds neither id nor state in
    it. The agent must return the type that the specification names for the method.
    """
    frame = context.frame
    if frame.kind is not FrameKind.RESPONSE and frame.kind is not FrameKind.EVENT:
        return
    value = read_envelope(context)
    if "result" not in value or frame.event is EventKind.UNKNOWN or frame.note == "batch":
        return
    row = OPERATION_BY_NAME.get(context.exchange.operation)
    table = (
        _JUDGES_1_0
        if context.exchange.dialect in _NEW_DIALECTS
        else _JUDGES_0_X
        if context.exchange.dialect in _OLD_DIALECTS
        else None
    )
    result = value["result"]
    if (
        row is None
        or table is None
        or (result is None and context.exchange.dialect is Dialect.V0_1)
    ):
        return
    expected = table[ResponseKind.STREAM if frame.kind is FrameKind.EVENT else row.answer]
    complaint = expected(rename_to_camel(result))
    if (
        complaint
        and not findings_of_kinds(context, FaultKind.FOREIGN)
        and not _lacks_wrapper(context)
    ):
        told = f"the result of {context.exchange.method} is {_describe_result(result)}; {complaint}"
        # A redacted value keeps its JSON type, so the complaint holds.
        yield RuleFinding(
            summary=told, path="" if frame.redacted else "result", value=short_json(result)
        )


def _lacks_wrapper(context: RuleContext) -> bool:
    """Whether A2A-SCH-004 already reports a missing wrapper of the result."""
    return any(each.path == "result" for each in findings_of_kinds(context, FaultKind.ALTERNATIVES))


def _describe_result(result: Any) -> str:
    if not isinstance(result, dict):
        return json_kind(result)
    names = [f"`{name[:30]}`" for name in list(result)[:4]]
    return f"an object with {', '.join(names)}" if names else "an empty object"


def _wrapper_judge(names: frozenset[str], words: str) -> Callable[[Any], str]:
    def judge(result: Any) -> str:
        fits = isinstance(result, dict) and bool(result.keys() & names)
        return "" if fits else f"it must have one of {words}"

    return judge


def _judge_task(result: Any) -> str:
    fits = isinstance(result, dict) and bool(result.keys() & _TASK_MEMBERS)
    return "" if fits else "it must be a bare Task, without a wrapper"


def _list_judge(names: frozenset[str], words: str) -> Callable[[Any], str]:
    """Return a judge for an object that holds a list; ProtoJSON omits empty members."""

    def judge(result: Any) -> str:
        first = words.partition("`")[2].partition("`")[0]
        fits = isinstance(result, dict) and (first in result or result.keys() <= names)
        return "" if fits else f"it must be an object with {words}"

    return judge


def _judge_flat_push(result: Any) -> str:
    fits = isinstance(result, dict) and "pushNotificationConfig" not in result and "url" in result
    return "" if fits else "it must be a push configuration with `url` at the top level"


def _judge_nested_push(result: Any) -> str:
    fits = isinstance(result, dict) and "pushNotificationConfig" in result
    return "" if fits else "it must be an object with `taskId` and `pushNotificationConfig`"


def _judge_card(result: Any) -> str:
    fits = isinstance(result, dict) and ("name" in result or "skills" in result)
    return "" if fits else "it must be an AgentCard"


def _judge_empty(result: Any) -> str:
    return "it must be null or an empty object" if result not in (None, {}) else ""


def _judge_bare_result(result: Any) -> str:
    if isinstance(result, dict) and (
        "kind" in result or result.keys() & (_TASK_MEMBERS | _MESSAGE_MEMBERS)
    ):
        return ""
    return "it must be a bare Task or Message, without a wrapper"


def _judge_bare_event(result: Any) -> str:
    if isinstance(result, dict) and (
        "kind" in result or result.keys() & (_TASK_MEMBERS | _MESSAGE_MEMBERS | {"artifact"})
    ):
        return ""
    return "it must be a bare Task, Message or update, without a wrapper"


def _judge_list(result: Any) -> str:
    return "" if isinstance(result, list) else "it must be an array, also if it is empty"


def _accept_any(_: Any) -> str:
    return ""


_JUDGES_1_0: dict[ResponseKind, Callable[[Any], str]] = {
    ResponseKind.SEND: _wrapper_judge(frozenset({"task", "message"}), "`task` or `message`"),
    ResponseKind.STREAM: _wrapper_judge(
        _EVENT_MEMBERS, "`task`, `message`, `statusUpdate`, `artifactUpdate`"
    ),
    ResponseKind.TASK: _judge_task,
    ResponseKind.TASKS: _list_judge(_LIST_MEMBERS, "`tasks`"),
    ResponseKind.PUSH_CONFIG: _judge_flat_push,
    ResponseKind.PUSH_CONFIGS: _list_judge(_CONFIG_LIST_MEMBERS, "`configs`"),
    ResponseKind.CARD: _judge_card,
    ResponseKind.EMPTY: _judge_empty,
}
_JUDGES_0_X: dict[ResponseKind, Callable[[Any], str]] = {
    ResponseKind.SEND: _judge_bare_result,
    ResponseKind.STREAM: _judge_bare_event,
    ResponseKind.TASK: _judge_task,
    ResponseKind.TASKS: _accept_any,  # not in a released 0.x version: preview builds differ
    ResponseKind.PUSH_CONFIG: _judge_nested_push,
    ResponseKind.PUSH_CONFIGS: _judge_list,
    ResponseKind.CARD: _judge_card,
    ResponseKind.EMPTY: _judge_empty,
}
