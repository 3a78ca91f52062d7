"""Rules about the text form of generations, and the code of TaskGenerationMismatchError on each
binding (A2A 1.1 draft section 5.4; ProtoJSON; manual/protocol.md "JSON encoding")."""

from collections.abc import Iterator
from typing import Any

from a2a_proxy.model.values import Binding, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import (
    HTTP,
    NETWORK,
    STDIO,
    WEBHOOK,
    EvidenceScope,
    FrameFlag,
    HookPoint,
)
from a2a_proxy.rules.define.rule import RuleFinding
from a2a_proxy.rules.examples.conversation import rest, rest_error, rpc
from a2a_proxy.rules.examples.objects import TASK_PARAMS, send, task
from a2a_proxy.rules.families.gen.words import (
    MISMATCH_REASON,
    SEND_OPERATIONS,
    generation_rule,
    if_match,
)

_MAX_GENERATION = 2**63 - 1
_WRAPPERS = ("task", "statusUpdate", "artifactUpdate")
MISMATCH_CODES = {Binding.JSONRPC: -32010, Binding.REST: 409, Binding.GRPC: 10}
"""Code of the mismatch error on each binding: JSON-RPC code, HTTP status, gRPC status."""
SUPERSEDED_STATUS = 412
"""HTTP status that earlier texts of the draft required."""
_NUMBER_MEMBERS = {"taskId": "t1", "expectedGeneration": "3", "currentGeneration": "5"}
_SEND_PARAMS = send("go on", id="m2", configuration={"ifGenerationMatch": "3"}, taskId="t1")


@generation_rule(
    "A2A-GEN-020",
    "Malformed generation",
    Severity.ERROR,
    section="1.1 draft 3.2.7; ProtoJSON",
    bindings=HTTP | STDIO | WEBHOOK,
    hook_points=(HookPoint.REQUEST, HookPoint.ANSWER),
    trigger_flags=FrameFlag.UNCLEAN,
    flagged=rpc("GetTask", TASK_PARAMS, task("WORKING", generation="3.5"), version="1.1"),
    clean=rpc("GetTask", TASK_PARAMS, task("WORKING", generation="3"), version="1.1"),
)
def malformed(context: RuleContext) -> Iterator[RuleFinding]:
    """A generation (`generation`, `currentGeneration` or `ifGenerationMatch`) is not a string that
    holds a whole number from 0 to 2^63-1. Reported as information for a JSON number: parsers accept
    it, but it loses precision above 2^53.

    Peers that cannot read the value refuse the message, or take it for 0, which means that
    generations are not supported. The sender of the message (client or agent) must write it as a
    decimal string.
    """
    for path, value in _number_values(context):
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_GENERATION:
            told = f"{path.rpartition('.')[2]} is the JSON number {value}, it should be a string"
            yield RuleFinding(summary=told, path=path, value=str(value), severity=Severity.INFO)
        elif not (isinstance(value, str) and _is_generation(value)):
            told = (
                f"{path.rpartition('.')[2]} is {str(value)[:40]!r}, it must be a whole number from "
                f"0 to 2^63-1"
            )
            yield RuleFinding(summary=told, path=path, value=str(value))


def _is_generation(value: str) -> bool:
    return (
        value.isascii() and value.isdigit() and len(value) <= 19 and int(value) <= _MAX_GENERATION
    )


def _number_values(context: RuleContext) -> Iterator[tuple[str, Any]]:
    """Yield the path and value of each generation in a frame."""
    if b"eneration" not in context.frame.payload:
        if (
            context.has_flag(FrameFlag.ASKS)
            and context.binding is Binding.REST
            and (path := context.rest_match) is not None
        ):
            value = dict(path.query).get("currentGeneration")
            if value is not None:
                yield "currentGeneration", value
        return
    body = context.body
    if not isinstance(body, dict):
        return
    root = context.root
    yield from _present_members(body, root, "generation", "currentGeneration", "current_generation")
    for wrapper in _WRAPPERS:
        yield from _present_members(body.get(wrapper), f"{root}{wrapper}.", "generation")
    yield from _present_members(
        body.get("configuration"),
        f"{root}configuration.",
        "ifGenerationMatch",
        "if_generation_match",
    )


def _present_members(holder: Any, root: str, *names: str) -> Iterator[tuple[str, Any]]:
    for name in names if isinstance(holder, dict) else ():
        value = holder.get(name)
        if value is not None:
            yield f"{root}{name}", value


@generation_rule(
    "A2A-GEN-016",
    "Generation mismatch error with the wrong code",
    Severity.ERROR,
    section="1.1 draft 5.4",
    bindings=NETWORK,
    scope=EvidenceScope.EXCHANGE,
    trigger_flags=FrameFlag.ERROR,
    operations=SEND_OPERATIONS,
    flagged=rest(
        "POST",
        "/message:send",
        _SEND_PARAMS,
        rest_error(400, "INVALID_ARGUMENT", MISMATCH_REASON, **_NUMBER_MEMBERS),
        status=400,
        version="1.1",
    ),
    clean=rest(
        "POST",
        "/message:send",
        _SEND_PARAMS,
        rest_error(409, "ABORTED", MISMATCH_REASON, **_NUMBER_MEMBERS),
        status=409,
        version="1.1",
    ),
)
def mapped(context: RuleContext) -> Iterator[RuleFinding]:
    """An error with the reason TASK_GENERATION_MISMATCH has a code other than -32010 on JSON-RPC,
    ABORTED on gRPC or 409 on REST. Reported as a warning for HTTP 412, which an earlier text of the
    draft required, and for the right status in answer to `ifGenerationMatch` without an ErrorInfo,
    which may be another conflict (low confidence).

    Clients recognise the error by its code, read the task again and repeat the message; with
    another code they give up. The agent must send the code of the binding, and the reason in an
    ErrorInfo.
    """
    failure, right = context.failure, MISMATCH_CODES[context.binding]
    if failure.reason != MISMATCH_REASON:
        if not context.is_enveloped and failure.code == right and not failure.reason:
            yield from _check_unnamed_error(context)
        return
    if failure.code == right:
        return
    severity = None
    if context.binding is Binding.REST and failure.code == SUPERSEDED_STATUS:
        severity = Severity.WARNING
    shown = failure.status_name if context.binding is Binding.GRPC else str(failure.code)
    wanted = "ABORTED" if context.binding is Binding.GRPC else str(right)
    yield RuleFinding(
        summary=f"the agent sends {MISMATCH_REASON} as {shown}, it must be {wanted}",
        value=shown,
        severity=severity,
    )


def _check_unnamed_error(context: RuleContext) -> Iterator[RuleFinding]:
    if (
        context.record.request_snapshot is not None
        and context.record.request_snapshot.task_id
        and if_match(context) is not None
    ):
        shown = "ABORTED" if context.binding is Binding.GRPC else "409"
        told = (
            f"{shown} without an ErrorInfo answers `ifGenerationMatch`, a mismatch needs reason "
            f"{MISMATCH_REASON}"
        )
        yield RuleFinding(summary=told, value=shown, severity=Severity.WARNING, is_sure=False)
