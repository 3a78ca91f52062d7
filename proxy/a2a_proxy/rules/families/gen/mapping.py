"""How TaskGenerationMismatchError has to look on each binding (A2A 1.1 draft section 5.4)."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.exchange import Binding
from a2a_proxy.model.finding import Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import NETWORK, Dialects, EvidenceScope, FrameFlag, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import rest, rest_error
from a2a_proxy.rules.examples.objects import send
from a2a_proxy.rules.families.gen.words import MISMATCH, SENDS, if_match

MISMATCH_CODES = {Binding.JSONRPC: -32010, Binding.REST: 409, Binding.GRPC: 10}
"""Binding -> the code of the mismatch error: JSON-RPC code, HTTP status, gRPC status."""
SUPERSEDED_STATUS = 412
"""HTTP status that older texts of the draft required."""
_NUMBERS = {"taskId": "t1", "expectedGeneration": "3", "currentGeneration": "5"}
_PARAMS = send("go on", id="m2", configuration={"ifGenerationMatch": "3"}, taskId="t1")


@rule(
    "A2A-GEN-016",
    "Mismatch error under another code",
    Severity.ERROR,
    section="1.1 draft 5.4",
    bindings=NETWORK,
    scope=EvidenceScope.EXCHANGE,
    lines=Dialects.DRAFT_1_1,
    when=FrameFlag.ERROR,
    operations=SENDS,
    draft=True,
    flagged=rest(
        "POST",
        "/message:send",
        _PARAMS,
        rest_error(400, "INVALID_ARGUMENT", MISMATCH, **_NUMBERS),
        status=400,
        version="1.1",
    ),
    clean=rest(
        "POST", "/message:send", _PARAMS, rest_error(409, "ABORTED", MISMATCH, **_NUMBERS), status=409, version="1.1"
    ),
)
def mapped(see: RuleContext) -> Iterator[RuleFinding]:
    """An error with the reason TASK_GENERATION_MISMATCH is not -32010 on JSON-RPC, ABORTED on gRPC, 409 on REST. 412,
    as an older text of the draft had it, is a warning; so is the right status without an ErrorInfo in answer to
    `ifGenerationMatch`: it may be any other conflict.

    Clients recognise the error by its code, read the task again and repeat; under another code they give up.
    """
    failure, right = see.failure, MISMATCH_CODES[see.binding]
    if failure.reason != MISMATCH:
        if not see.enveloped and failure.code == right and not failure.reason:
            yield from _nameless(see)
        return
    if failure.code == right:
        return
    severity = None
    if see.binding is Binding.REST and failure.code == SUPERSEDED_STATUS:
        severity = Severity.WARNING
    shown = failure.status_name if see.binding is Binding.GRPC else str(failure.code)
    wanted = "ABORTED" if see.binding is Binding.GRPC else str(right)
    yield RuleFinding(summary=f"{MISMATCH} comes as {shown}, it must be {wanted}", value=shown, severity=severity)


def _nameless(see: RuleContext) -> Iterator[RuleFinding]:
    if see.track.asked is not None and see.track.asked.task_id and if_match(see) is not None:
        shown = "ABORTED" if see.binding is Binding.GRPC else "409"
        told = f"{shown} without an ErrorInfo answers `ifGenerationMatch`: a mismatch needs the reason {MISMATCH}"
        yield RuleFinding(summary=told, value=shown, severity=Severity.WARNING, sure=False)
