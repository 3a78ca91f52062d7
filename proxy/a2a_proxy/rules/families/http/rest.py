"""Rules about request lines, query parameters and bodies of HTTP+JSON (A2A 1.0 sections 5.3, 11.3,
11.5, 11.6)."""

import re
from collections.abc import Callable, Iterator

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Actor, Binding, FrameKind, Severity
from a2a_proxy.protocol.json_summary import rename_to_camel
from a2a_proxy.protocol.rest_path import RestMatch, match_request_line
from a2a_proxy.redaction.labels import is_label
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import REST, Dialects, EvidenceScope, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import http, json_text, rest, rest_error
from a2a_proxy.rules.examples.objects import send, snapshot, task
from a2a_proxy.rules.families.http.streams import request_seq

_OPERATIONS_WITHOUT_TASK = rest_error(404, "NOT_FOUND", "TASK_NOT_FOUND", "no such task")
_HTTP_METHODS = ("GET", "POST", "DELETE")
_A2A_PATHS = (
    "/message:send",
    "/message:stream",
    ":cancel",
    ":subscribe",
    "/pushNotificationConfigs",
    "/extendedAgentCard",
)
"""Path endings that are unlikely in other services."""
_SNAKE_CASE = {
    "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name): name
    for name in (
        "contextId",
        "pageSize",
        "pageToken",
        "historyLength",
        "timelineLength",
        "statusTimestampAfter",
        "includeArtifacts",
        "currentGeneration",
        "taskId",
    )
}
_LIST_PARAMETERS = {"tasks": [task()], "nextPageToken": "", "pageSize": 5, "totalSize": 1}


@rule(
    "A2A-HTTP-007",
    "Wrong HTTP method for a REST operation",
    Severity.ERROR,
    actor=Actor.CLIENT,
    section="1.0 5.3, 11.3; 0.3 3.2.3",
    hook_points=HookPoint.HEADS,
    bindings=REST | {Binding.OTHER},
    flagged=http("GET", "/message:send", status=405, reply_headers={"Allow": "POST"}),
    clean=rest("POST", "/message:send", send(), snapshot("COMPLETED")),
)
def wrong_method(context: RuleContext) -> Iterator[RuleFinding]:
    """The path of a request belongs to a REST operation that has another HTTP method. `:subscribe`
    accepts GET and POST; OPTIONS and HEAD requests are not calls.

    The agent answers 404 or 405, and the operation is not performed. The client must use the method
    of the operation.
    """
    exchange = context.exchange
    target = exchange.target
    path = target.partition("?")[0]
    if (
        context.operation == "GetTask"
        and path.endswith(":cancel")
        and exchange.status in (404, 405)
    ):
        yield RuleFinding(
            summary="`GET` on the path of CancelTask, the method must be POST", value="GET"
        )
    if exchange.binding is not Binding.OTHER or exchange.method in (
        "OPTIONS",
        "HEAD",
        "TRACE",
        "CONNECT",
    ):
        return
    if exchange.status == 101:  # the handshake of another protocol
        return
    if not path.endswith(_A2A_PATHS) and "/pushNotificationConfigs/" not in path:
        return
    found = [
        (method, row)
        for method in _HTTP_METHODS
        if (row := match_request_line(method, target.encode("latin-1"))) is not None
    ]
    if found:
        methods, name = " or ".join(method for method, _ in found), found[0][1].operation.name
        told = f"`{exchange.method[:20]}` on the path of {name}, the method must be {methods}"
        yield RuleFinding(summary=told, value=exchange.method)


@rule(
    "A2A-HTTP-010",
    "Error body with a success status, or a result with an error status",
    Severity.ERROR,
    section="1.0 11.6",
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.V1,
    bindings=REST,
    trigger_flags=FrameFlag.OTHER | FrameFlag.ERROR,
    flagged=rest("GET", "/tasks/t1", result=_OPERATIONS_WITHOUT_TASK),
    clean=rest("GET", "/tasks/t1", result=_OPERATIONS_WITHOUT_TASK, status=404),
)
def status_and_body(context: RuleContext) -> Iterator[RuleFinding]:
    """A REST response with a status below 400 has a member `error` at its top level, or a response
    with a status of 400 or above has a Task, a Message or a list of tasks.

    HTTP clients decide by the status: they pass the error on as a result, or discard the result.
    The agent, or a proxy that replaces the status, must send the status that fits the body.
    """
    value, status, kind = context.value, context.exchange.status, context.frame.kind
    if not isinstance(value, dict) or kind is FrameKind.EVENT:
        return
    if status < 400 and kind is not FrameKind.ERROR and "error" in value:
        yield RuleFinding(
            summary=f"the body is an error, but the HTTP status is {status}",
            path="error",
            value=str(status),
        )
    elif status >= 400 and kind is FrameKind.ERROR and "error" not in value:
        shape = _describe_result(value)
        if shape:
            yield RuleFinding(
                summary=f"the body has {shape}, but the HTTP status is {status}", value=str(status)
            )


def _describe_result(value: dict[str, object]) -> str:
    """Return which result of A2A the body holds, in words, or an empty string."""
    members = rename_to_camel(value)
    found = next((name for name in ("task", "message") if isinstance(members.get(name), dict)), "")
    if found:
        return f"the member `{found}` of a result"
    if isinstance(members.get("status"), dict) and "id" in members:
        return "a Task"
    return "a list of tasks" if isinstance(members.get("tasks"), list) else ""


@rule(
    "A2A-HTTP-013",
    "GET or DELETE with a body",
    Severity.WARNING,
    actor=Actor.CLIENT,
    section="1.0 11.5; RFC 9110 9.3.1",
    hook_points=HookPoint.HEADS,
    bindings=REST,
    flagged=rest("GET", "/tasks/t1", {}, task()),
    clean=rest("GET", "/tasks/t1", result=task()),
)
def body_of_get(context: RuleContext) -> Iterator[RuleFinding]:
    """A REST request with the method GET or DELETE has a body.

    HTTP does not define a meaning for such a body: agents ignore it, and proxies may drop it or
    refuse the request. The client must send the parameters in path and query.
    """
    asked, method = context.request, context.exchange.method
    if asked is not None and asked.size and method in ("GET", "DELETE"):
        yield RuleFinding(
            summary=f"{method} has a body of {asked.size} bytes, parameters "
            f"belong in path and query",
            seq=asked.seq,
        )


_NAMED_TASK = ("CancelTask", "SubscribeToTask", "CreateTaskPushNotificationConfig")


@rule(
    "A2A-HTTP-014",
    "Path and body name different tasks or tenants",
    Severity.WARNING,
    section="1.0 11.3",
    hook_points=HookPoint.REQUEST,
    dialects=Dialects.V1,
    bindings=REST,
    operations=(*_NAMED_TASK, "SendMessage", "SendStreamingMessage"),
    flagged=rest("POST", "/tasks/t1:cancel", {"id": "t2"}, task("CANCELED")),
    clean=rest("POST", "/tasks/t1:cancel", {"id": "t1"}, task("CANCELED")),
)
def two_names(context: RuleContext) -> Iterator[RuleFinding]:
    """A REST request names one task (or tenant) in its path and another in its body. An absent or
    empty value in the body is accepted.

    Agents use only one of the two, so the call may affect another task than the client means. The
    client must send the same id in both, or only the path.
    """
    named = context.operation in _NAMED_TASK
    if not named and b'"tenant"' not in context.frame.payload:
        return
    path, body = context.rest_match, context.value
    if path is None or not isinstance(body, dict):
        return
    members = rename_to_camel(body)
    if named:
        name = "taskId" if context.operation == "CreateTaskPushNotificationConfig" else "id"
        yield from _check_same_id(name, path.task_id, members.get(name))
    if path.prefix and isinstance(members.get("tenant"), str):
        yield from _check_same_id(
            "tenant",
            context.session.facts.tenant_of(context.record.agent, path.prefix),
            members["tenant"],
        )


def _check_same_id(name: str, here: str, there: object) -> Iterator[RuleFinding]:
    if not here or not isinstance(there, str) or not there or here == there:
        return
    if not is_label(here.encode()) and not is_label(there.encode()):
        yield RuleFinding(
            summary=f"the path names {here[:60]}, but `{name}` in the body is {there[:60]}",
            path=name,
            value=there,
        )


_DUPLICATE_ID = re.compile(r"(:send|:stream|:cancel|:subscribe|/extendedAgentCard)/")
"""An operation in the path that is followed by another segment."""
_SEND_PATH = json_text({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": send()})
_REFUSED_BODY = json_text(rest_error(400, "INVALID_ARGUMENT", "INVALID_REQUEST", "no message"))


@rule(
    "A2A-HTTP-020",
    "Path of an operation used as base URL",
    Severity.WARNING,
    actor=Actor.EITHER,
    section="1.0 8.3.2, 11.3",
    hook_points=HookPoint.REQUEST,
    bindings=REST,
    also_broken=("A2A-HTTP-008",),
    flagged=http("POST", "/message:send", _SEND_PATH, answer=_REFUSED_BODY, status=400),
    clean=rest("POST", "/message:send", send(), snapshot("COMPLETED")),
)
def path_as_base(context: RuleContext) -> Iterator[RuleFinding]:
    """A JSON-RPC call is posted to the path of a REST operation, or the path of an operation occurs
    twice in the request target.

    The client is configured with the URL of an operation instead of the URL of the agent's
    interface, and finds no operation there. Correct the URL in the client, or in the agent card if
    it came from there.
    """
    path = context.rest_match if _DUPLICATE_ID.search(context.exchange.target) else None
    if path is not None and _match_prefix(path) is not None:
        told = (
            f"the path has two operations, the base URL ends in one: "
            f"{context.exchange.target[:100]}"
        )
        yield RuleFinding(summary=told, value=context.exchange.target)
    elif (
        b'"jsonrpc"' in context.frame.payload
        and isinstance(context.value, dict)
        and "jsonrpc" in context.value
    ):
        told = (
            f"a JSON-RPC call is posted to the path of {context.operation} instead of the "
            f"interface's URL"
        )
        yield RuleFinding(summary=told, path="jsonrpc", value=context.exchange.target)


def _match_prefix(path: RestMatch) -> RestMatch | None:
    """Return the operation at the end of the path prefix, or None."""
    return match_request_line("POST", path.prefix.encode("latin-1")) or match_request_line(
        "GET", path.prefix.encode("latin-1")
    )


@rule(
    "A2A-HTTP-011",
    "Query parameter is not camelCase",
    Severity.ERROR,
    actor=Actor.CLIENT,
    section="1.0 11.5",
    hook_points=HookPoint.HEADS,
    dialects=Dialects.V1,
    bindings=REST,
    flagged=rest("GET", "/tasks?page_size=5", result=_LIST_PARAMETERS),
    clean=rest("GET", "/tasks?pageSize=5", result=_LIST_PARAMETERS),
)
def snake_case(context: RuleContext) -> Iterator[RuleFinding]:
    """The name of a query parameter is written in snake case, as in the protobuf definition
    (`page_size`), instead of camel case (`pageSize`).

    Agents ignore unknown parameters: the filter or limit has no effect, without any error. The
    client must use the JSON names.
    """
    for name, _ in _query_pairs(context):
        if name in _SNAKE_CASE:
            told = f"the query parameter is `{name}`, it must be `{_SNAKE_CASE[name]}`"
            yield RuleFinding(summary=told, value=name, seq=request_seq(context))


def _query_pairs(context: RuleContext) -> tuple[tuple[str, str], ...]:
    path = context.rest_match if "?" in context.exchange.target else None
    return path.query if path is not None else ()


_STATE_NAMES = frozenset(f"TASK_STATE_{state.name}" for state in TaskState) | {
    "TASK_STATE_UNSPECIFIED"
}
_INTEGER_TEXT = re.compile(r"-?\d{1,19}")
_NESTED_PARAMETERS = re.compile(r"\w+\[\w+\]|metadata\.\w+")
"""Parameter name that addresses a member of an object."""
_TIME_PARAMETERS = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]00:00)")

_PARAMETER_TYPES: dict[str, tuple[Callable[[str], object], str]] = {
    "includeArtifacts": (lambda value: value in ("true", "false"), "`true` or `false`"),
    "status": (lambda value: value in _STATE_NAMES, "the name of a state (`TASK_STATE_WORKING`)"),
    "pageSize": (_INTEGER_TEXT.fullmatch, "a decimal number"),
    "historyLength": (_INTEGER_TEXT.fullmatch, "a decimal number"),
    "timelineLength": (_INTEGER_TEXT.fullmatch, "a decimal number"),
    "statusTimestampAfter": (
        _TIME_PARAMETERS.fullmatch,
        "an ISO 8601 time in UTC (`2026-01-01T00:00:00Z`)",
    ),
}
"""Parameter name to check and description. `currentGeneration` is judged by A2A-GEN-020."""


@rule(
    "A2A-HTTP-012",
    "Query value of the wrong type",
    Severity.WARNING,
    actor=Actor.CLIENT,
    section="1.0 11.5",
    hook_points=HookPoint.HEADS,
    dialects=Dialects.V1,
    bindings=REST,
    flagged=rest("GET", "/tasks?includeArtifacts=1", result=_LIST_PARAMETERS | {"pageSize": 50}),
    clean=rest(
        "GET",
        "/tasks?includeArtifacts=true&status=TASK_STATE_COMPLETED&statusTimestampAfter=2026-01-01T00%3A00%3A00.5Z",
        result=_LIST_PARAMETERS | {"pageSize": 50},
    ),
)
def badly_typed(context: RuleContext) -> Iterator[RuleFinding]:
    """A query value is not in the form of its type: a boolean is `true` or `false`, a state is its
    name, a number is decimal, a time is ISO 8601 in UTC. Also reported: a parameter that is a JSON
    object or addresses a member of one. Empty values count as absent.

    Agents answer 400, or read another value than the client means. The client must correct the
    value.
    """
    for name, value in _query_pairs(context):
        fits, words = _PARAMETER_TYPES.get(name, (None, ""))
        if fits is not None and value and not fits(value) and not is_label(value.encode()):
            told = f"`{name}` is `{value[:60]}`, it should be {words}"
            yield RuleFinding(summary=told, value=value, seq=request_seq(context))
        elif value.startswith("{") or _NESTED_PARAMETERS.fullmatch(name):
            told = f"the query parameter `{name[:60]}` is an object, parameters must be flat"
            yield RuleFinding(summary=told, value=value, seq=request_seq(context))
