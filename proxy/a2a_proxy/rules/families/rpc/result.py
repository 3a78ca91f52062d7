"""Whether a result is what its method gives back (A2A 1.0 section 9.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from a2a_proxy.model.exchange import Dialect
from a2a_proxy.model.finding import Severity
from a2a_proxy.model.frame import EventKind, FrameKind
from a2a_proxy.protocol.json_summary import rename_to_camel
from a2a_proxy.protocol.operations import OPERATION_BY_NAME, ResponseKind
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import ENVELOPE, EvidenceScope, FrameFlag, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rpc
from a2a_proxy.rules.examples.objects import task
from a2a_proxy.rules.families.rpc.reading import envelope, kind_of, shown
from a2a_proxy.rules.schema.check import hits
from a2a_proxy.rules.schema.fault import FaultKind

Json = dict[str, Any]

_EVENTS = frozenset({"task", "message", "statusUpdate", "artifactUpdate", "messageUpdate"})
_TASK = frozenset({"id", "status"})
_MESSAGE = frozenset({"messageId", "parts", "role"})
_LIST = frozenset({"tasks", "nextPageToken", "pageSize", "totalSize"})
_CONFIGS = frozenset({"configs", "nextPageToken"})
_OLD = frozenset({Dialect.V0_1, Dialect.V0_2, Dialect.V0_3})
_NEW = frozenset({Dialect.V1_0, Dialect.V1_1})


@rule(
    "A2A-RPC-014",
    "The result does not fit the method",
    Severity.ERROR,
    section="1.0 9.4; 0.3 7",
    scope=EvidenceScope.EXCHANGE,
    bindings=ENVELOPE,
    when=FrameFlag.UNCLEAN,
    flagged=rpc("ListTasks", {}, [task()]),
    clean=rpc("ListTasks", {}, {"tasks": [task()], "nextPageToken": "", "pageSize": 50, "totalSize": 1}),
)
def wrong_result(see: RuleContext) -> Iterator[RuleFinding]:
    """The `result` is not what the method gives back in the protocol version that is spoken: in 1.0 a GetTask with the
    member `task` around it, a list that is not an object with `tasks`; in 0.x an object with such members around it, a
    list of push configurations that is not an array; null where something has to come. An object of 1.0 without the
    member `task` or `message` that a send must have around it is A2A-SCH-004, a result of another line as a whole
    A2A-VER-007.

    A typed client cannot read the answer at all, an untyped one finds neither id nor state in it.
    """
    frame = see.frame
    if frame.kind is not FrameKind.RESPONSE and frame.kind is not FrameKind.EVENT:
        return
    value = envelope(see)
    if "result" not in value or frame.event is EventKind.UNKNOWN or frame.note == "batch":
        return
    row = OPERATION_BY_NAME.get(see.exchange.operation)
    table = _V1 if see.exchange.dialect in _NEW else _V0 if see.exchange.dialect in _OLD else None
    result = value["result"]
    if row is None or table is None or (result is None and see.exchange.dialect is Dialect.V0_1):
        return
    expected = table[ResponseKind.STREAM if frame.kind is FrameKind.EVENT else row.answer]
    complaint = expected(rename_to_camel(result))
    if complaint and not hits(see, FaultKind.FOREIGN) and not _lacks_its_wrapper(see):
        told = f"the result of {see.exchange.method} is {_told(result)}, {complaint}"
        # What stands in the place of a secret has the secret's type: the complaint holds.
        yield RuleFinding(summary=told, path="" if frame.redacted else "result", value=shown(result))


def _lacks_its_wrapper(see: RuleContext) -> bool:
    """A2A-SCH-004 says so."""
    return any(each.path == "result" for each in hits(see, FaultKind.ALTERNATIVES))


def _told(result: Any) -> str:
    if not isinstance(result, dict):
        return kind_of(result)
    names = [f"`{name[:30]}`" for name in list(result)[:4]]
    return f"an object with {', '.join(names)}" if names else "an empty object"


def _wrapped(names: frozenset[str], words: str) -> Callable[[Any], str]:
    def judge(result: Any) -> str:
        fits = isinstance(result, dict) and bool(result.keys() & names)
        return "" if fits else f"it must have one of the members {words}"

    return judge


def _task(result: Any) -> str:
    fits = isinstance(result, dict) and bool(result.keys() & _TASK)
    return "" if fits else "it must be a Task with nothing around it"


def _only(names: frozenset[str], words: str) -> Callable[[Any], str]:
    """An object with a list in it; ProtoJSON leaves out what is empty."""

    def judge(result: Any) -> str:
        first = words.partition("`")[2].partition("`")[0]
        fits = isinstance(result, dict) and (first in result or result.keys() <= names)
        return "" if fits else f"it must be an object with {words}"

    return judge


def _flat_push(result: Any) -> str:
    fits = isinstance(result, dict) and "pushNotificationConfig" not in result and "url" in result
    return "" if fits else "it must be a push configuration with its `url` at the top"


def _nested_push(result: Any) -> str:
    fits = isinstance(result, dict) and "pushNotificationConfig" in result
    return "" if fits else "it must be an object with `taskId` and `pushNotificationConfig`"


def _card(result: Any) -> str:
    fits = isinstance(result, dict) and ("name" in result or "skills" in result)
    return "" if fits else "it must be an AgentCard"


def _nothing(result: Any) -> str:
    return "it must be null or an empty object" if result not in (None, {}) else ""


def _bare(result: Any) -> str:
    if isinstance(result, dict) and ("kind" in result or result.keys() & (_TASK | _MESSAGE)):
        return ""
    return "it must be a Task or a Message with nothing around it"


def _bare_event(result: Any) -> str:
    if isinstance(result, dict) and ("kind" in result or result.keys() & (_TASK | _MESSAGE | {"artifact"})):
        return ""
    return "it must be a Task, a Message or an update with nothing around it"


def _list(result: Any) -> str:
    return "" if isinstance(result, list) else "it must be an array"


def _any(_: Any) -> str:
    return ""


_V1: dict[ResponseKind, Callable[[Any], str]] = {
    ResponseKind.SEND: _wrapped(frozenset({"task", "message"}), "`task` or `message`"),
    ResponseKind.STREAM: _wrapped(_EVENTS, "`task`, `message`, `statusUpdate`, `artifactUpdate`"),
    ResponseKind.TASK: _task,
    ResponseKind.TASKS: _only(_LIST, "`tasks`"),
    ResponseKind.PUSH_CONFIG: _flat_push,
    ResponseKind.PUSH_CONFIGS: _only(_CONFIGS, "`configs`"),
    ResponseKind.CARD: _card,
    ResponseKind.EMPTY: _nothing,
}
_V0: dict[ResponseKind, Callable[[Any], str]] = {
    ResponseKind.SEND: _bare,
    ResponseKind.STREAM: _bare_event,
    ResponseKind.TASK: _task,
    ResponseKind.TASKS: _any,  # in no released 0.x: drift builds differ
    ResponseKind.PUSH_CONFIG: _nested_push,
    ResponseKind.PUSH_CONFIGS: _list,
    ResponseKind.CARD: _card,
    ResponseKind.EMPTY: _nothing,
}
