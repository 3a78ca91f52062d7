"""Rules about the format of an error (A2A 1.0 sections 9.5, 10.6, 11.6)."""

import json
import re
from collections.abc import Iterator

from a2a_proxy.model.values import Actor, Binding, Severity
from a2a_proxy.protocol.errors import GRPC_STATUS_NAMES
from a2a_proxy.rules.context import RuleContext, strip_parameters
from a2a_proxy.rules.define.conditions import (
    HTTP,
    NETWORK,
    REST,
    Dialects,
    EvidenceScope,
    FrameFlag,
    HookPoint,
)
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import http, rest, rest_error, rpc, rpc_error
from a2a_proxy.rules.examples.objects import send
from a2a_proxy.rules.families.err.table import ERROR_BY_CODE, ERROR_BY_REASON, ERROR_DOMAIN
from a2a_proxy.rules.families.http.media import is_refused_by_agent

_TASK_PARAMS = {"id": "t9"}
_NOT_FOUND_BODY = rest_error(404, "NOT_FOUND", "TASK_NOT_FOUND", "no task t9")
_BARE_BODY = rest_error(404, "NOT_FOUND", "", "no task t9", details=[])
_LEAKING_BODY = 'Traceback: File "/app/agent.py", line 7'
_A2A_STATUSES = frozenset({400, 404, 409, 415, 501})
"""HTTP statuses of A2A errors; 401, 403, 429 and 5xx may also come from a proxy or gateway in
between."""


@rule(
    "A2A-ERR-003",
    "ErrorInfo is missing",
    Severity.ERROR,
    section="1.0 11.6; 9.5",
    dialects=Dialects.V1,
    bindings=HTTP,
    scope=EvidenceScope.EXCHANGE,
    trigger_flags=FrameFlag.ERROR,
    flagged=rest("GET", "/tasks/t9", None, _BARE_BODY, status=404),
    clean=rest("GET", "/tasks/t9", None, _NOT_FOUND_BODY, status=404),
)
def error_info_missing(context: RuleContext) -> Iterator[RuleFinding]:
    """An A2A error has no ErrorInfo among its details. Checked on REST if the error has the form of
    google.rpc.Status. On JSON-RPC it is a warning, because the ErrorInfo is only recommended there
    since 1.0.1, and it is reported only if the code is that of an A2A error.

    The ErrorInfo is the only part of an error that is the same on every binding and intended for
    programs. The agent must add an ErrorInfo with the reason and the domain of the error.
    """
    failure = context.failure
    if failure.info is not None or not isinstance(failure.body, dict):
        return
    if context.is_enveloped:
        reason = ERROR_BY_CODE.get(failure.code)
        if reason is not None:
            summary = f"error {failure.code} has no ErrorInfo with reason {reason}"
            yield RuleFinding(summary=summary, path="error.data", severity=Severity.WARNING)
    elif context.exchange.status in _A2A_STATUSES and "code" in failure.body:
        yield RuleFinding(
            summary=f"the HTTP {context.exchange.status} error has no ErrorInfo in `details`",
            path="error.details",
        )


@rule(
    "A2A-ERR-004",
    "ErrorInfo is wrong",
    Severity.ERROR,
    section="1.0 10.6",
    dialects=Dialects.V1,
    bindings=NETWORK,
    trigger_flags=FrameFlag.ERROR,
    flagged=rpc("GetTask", _TASK_PARAMS, error=rpc_error(-32001, "TaskNotFound")),
    clean=rpc("GetTask", _TASK_PARAMS, error=rpc_error(-32001, "TASK_NOT_FOUND", taskId="t9")),
)
def error_info_wrong(context: RuleContext) -> Iterator[RuleFinding]:
    """An ErrorInfo with the A2A domain has a reason that is not in UPPER_SNAKE_CASE or is unknown
    to A2A and its SDKs, or metadata values that are not strings. Or an A2A reason is sent with
    another domain.

    Clients compare reason and domain literally, so another spelling is another error to them. The
    agent must send the reason and the domain of the specification.
    """
    info = context.failure.info
    if info is None:
        return
    reason, domain, metadata = info.get("reason"), info.get("domain"), info.get("metadata")
    path = (
        "error.data"
        if context.is_enveloped
        else "error.details"
        if context.binding is Binding.REST
        else ""
    )
    if domain != ERROR_DOMAIN:
        if isinstance(reason, str) and reason in ERROR_BY_REASON:
            yield RuleFinding(
                summary=f"reason {reason} has the domain {_short_json(domain)}, "
                f"expected {ERROR_DOMAIN}",
                path=path,
            )
        return
    if not isinstance(reason, str) or not re.fullmatch(r"[A-Z][A-Z0-9_]*", reason):
        yield RuleFinding(
            summary=f"reason {_short_json(reason)} is not in UPPER_SNAKE_CASE",
            path=path,
            value=_short_json(reason),
        )
    elif reason not in ERROR_BY_REASON:
        summary = f"reason {reason} is not an A2A error"
        yield RuleFinding(
            summary=summary, path=path, value=_short_json(reason), severity=Severity.WARNING
        )
    if isinstance(metadata, dict):
        for name, value in metadata.items():
            if not isinstance(value, str):
                yield RuleFinding(
                    summary=f"metadata `{name}` of an ErrorInfo is not a string",
                    path=path,
                    value=_short_json(value),
                )


def _short_json(value: object) -> str:
    """Return the value as JSON, shortened to 60 characters."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."


@rule(
    "A2A-ERR-005",
    "google.rpc.Status is invalid",
    Severity.ERROR,
    section="1.0 11.6",
    dialects=Dialects.V1,
    bindings=REST,
    trigger_flags=FrameFlag.ERROR,
    flagged=rest(
        "GET", "/tasks/t9", None, rest_error(400, "NOT_FOUND", "TASK_NOT_FOUND"), status=404
    ),
    clean=rest("GET", "/tasks/t9", None, _NOT_FOUND_BODY, status=404),
)
def status_shape(context: RuleContext) -> Iterator[RuleFinding]:
    """The body of a REST error has an `error.code` that differs from the HTTP status, an
    `error.status` that is not the name of a gRPC status, or details without a string `@type`; or it
    is JSON without an object `error`, and not problem+json (A2A-ERR-009). The latter is not judged
    for HTTP statuses with which gateways answer (401, 403, 404, 405, 407, 413, 429, 502, 503, 504),
    and for other 5xx without a member `error`.

    Libraries for this format read the code, select the type of a detail by `@type`, and drop
    details without it. The agent must send the HTTP status as `code`, the name of a gRPC status as
    `status`, and an `@type` in each detail.
    """
    body, exchange = context.failure.body, context.exchange
    if not isinstance(body, dict) or exchange.status < 400:
        return
    if body is context.value:
        if not _is_problem(context) and is_refused_by_agent(context):
            told = f"the JSON of the HTTP {exchange.status} error has no object `error`"
            yield RuleFinding(summary=told, path="error", value=_short_json(body))
        return
    code, status, details = body.get("code"), body.get("status"), body.get("details")
    if "code" in body and code != context.exchange.status:
        told = (
            f"`error.code` is {_short_json(code)}, but the HTTP status is {context.exchange.status}"
        )
        yield RuleFinding(summary=told, path="error.code", value=_short_json(code))
    if "status" in body and status not in GRPC_STATUS_NAMES:
        told = f"`error.status` is {_short_json(status)}, which is not a gRPC status"
        yield RuleFinding(summary=told, path="error.status", value=_short_json(status))
    if isinstance(details, list):
        for number, each in enumerate(details):
            if not isinstance(each, dict) or not isinstance(each.get("@type"), str):
                yield RuleFinding(
                    summary=f"detail {number} of the error has no `@type`",
                    path=f"error.details[{number}]",
                )


@rule(
    "A2A-ERR-009",
    "problem+json in a 1.0 exchange",
    Severity.WARNING,
    actor=Actor.AGENT,
    section="1.0 11.6; RFC 9457",
    dialects=Dialects.V1,
    bindings=REST,
    hook_points=HookPoint.HEADS,
    flagged=http(
        "GET",
        "/tasks/t9",
        answer='{"type":"https://a2a-protocol.org/errors/task-not-found","title":"Task not found",'
        '"status":404}',
        status=404,
        media="application/problem+json",
    ),
    clean=rest("GET", "/tasks/t9", None, _NOT_FOUND_BODY, status=404),
)
def problem_json(context: RuleContext) -> Iterator[RuleFinding]:
    """A REST error of a 1.0 exchange is sent as `application/problem+json`, the format of the
    release candidate.

    A 1.0 client reads `error.details`, which this format does not have, and treats every such error
    as unknown. The agent must send google.rpc.Status as `application/json`.
    """
    if context.exchange.status >= 400 and _is_problem(context):
        yield RuleFinding(
            summary=f"the HTTP {context.exchange.status} error is sent as application/problem+json",
            value=context.response_header("content-type"),
        )


def _is_problem(context: RuleContext) -> bool:
    return strip_parameters(context.response_header("content-type")) == "application/problem+json"


_LEAK_PATTERNS = re.compile(
    r"Traceback \(most recent|Traceback:|File \"[^\"]+\", line \d+|\bat "
    r"[\w$.]+\([\w.]+:\d+(:\d+)?\)"
    r"|(?:^|[\s'\"(])(?:/(?:home|usr|app|var|opt|root|srv)/[\w./-]+\.\w+|[A-Z]:\\[\w\\ .-]+\.\w+)"
    r"|\b(?:SELECT .+ FROM|INSERT INTO|UPDATE \w+ SET|DELETE FROM)\b",
    re.MULTILINE,
)


@rule(
    "A2A-ERR-010",
    "An error reveals internal details",
    Severity.INFO,
    section="1.0 3.3.2; 0.3 8",
    trigger_flags=FrameFlag.ERROR,
    flagged=rpc("SendMessage", send(), error=rpc_error(-32603, "INTERNAL_ERROR", _LEAKING_BODY)),
    clean=rpc("SendMessage", send(), error=rpc_error(-32603, "INTERNAL_ERROR", "it failed")),
)
def internal_detail(context: RuleContext) -> Iterator[RuleFinding]:
    """The message of an error contains a stack trace, the path of a source file, or SQL.

    It shows strangers how the agent is built, and contains nothing that a client could act on. The
    agent should log such details and send a general message.
    """
    found = _LEAK_PATTERNS.search(context.failure.text)
    if found is not None:
        yield RuleFinding(
            summary="the error message reveals internals of the agent", value=found.group().strip()
        )


@rule(
    "A2A-ERR-011",
    "An overload error does not say when to retry",
    Severity.INFO,
    actor=Actor.AGENT,
    section="1.0 3.3.2; RFC 9110 10.2.3",
    bindings=NETWORK,
    hook_points=HookPoint.CLOSED,
    scope=EvidenceScope.EXCHANGE,
    required_flags=FrameFlag.ODD_END,
    flagged=http(
        "GET",
        "/tasks/t1",
        answer='{"error":{"code":503,"status":"UNAVAILABLE","message":"busy"}}',
        status=503,
    ),
    clean=http(
        "GET",
        "/tasks/t1",
        answer='{"error":{"code":503,"status":"UNAVAILABLE","message":"busy"}}',
        status=503,
        reply_headers={"Retry-After": "5"},
    ),
)
def no_retry_hint(context: RuleContext) -> Iterator[RuleFinding]:
    """An HTTP 429 or 503 response has no `Retry-After`, or a gRPC error RESOURCE_EXHAUSTED or
    UNAVAILABLE has no RetryInfo.

    Without it many clients retry immediately, which prolongs the overload. The agent, or the
    gateway that sent the response, should add the header. Clients should wait before each retry,
    longer each time.
    """
    exchange = context.exchange
    if exchange.binding is Binding.GRPC:
        name = {8: "RESOURCE_EXHAUSTED", 14: "UNAVAILABLE"}.get(exchange.grpc_status)
        fields = exchange.trailers or exchange.response_headers
        if name and not any(
            key.lower() in (b"grpc-status-details-bin", b"grpc-retry-pushback-ms")
            for key, _ in fields
        ):
            yield RuleFinding(summary=f"the {name} error has no RetryInfo")
    elif exchange.status in (429, 503) and not context.response_header("retry-after"):
        yield RuleFinding(summary=f"the HTTP {exchange.status} response has no Retry-After")
