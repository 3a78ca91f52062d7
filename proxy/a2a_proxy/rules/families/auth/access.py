"""Rules about access: required credentials and refusals (A2A 1.0 sections 3.3.2, 7.4, 13.1,
13.3)."""

from collections.abc import Iterator

from a2a_proxy.model.values import Actor, Binding, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import (
    CARD,
    HTTP,
    NETWORK,
    Dialects,
    EvidenceScope,
    FrameFlag,
    HookPoint,
)
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import Fields, fetch_card, http, rest, rest_error, rpc
from a2a_proxy.rules.examples.objects import TASK_PARAMS, card, send, snapshot, task
from a2a_proxy.rules.facts.credentials import find_credentials, principal_digest
from a2a_proxy.rules.state.task_owners import note_owner, owner_of

_EXTENDED = "GetExtendedAgentCard"
_FORBIDDEN = 403
_PERMISSION_DENIED = 7
"""A gRPC status."""
_BEARER: Fields = {"Authorization": "Bearer t0ken-of-ann"}
_OTHER_TOKEN: Fields = {"Authorization": "Bearer t0ken-of-ben"}
_SECURED_CARD = fetch_card(
    card(
        securitySchemes={"bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}},
        securityRequirements=[{"schemes": {"bearer": {"list": []}}}],
    )
)


@rule(
    "A2A-AUTH-002",
    "A call without credentials succeeds although the card requires them",
    Severity.WARNING,
    section="1.0 7.3, 7.4; 0.3 4.4",
    scope=EvidenceScope.LIVE,
    bindings=NETWORK,
    trigger_flags=FrameFlag.FIRST,
    required_flags=FrameFlag.CARD_KNOWN,
    flagged=_SECURED_CARD + rpc("GetTask", TASK_PARAMS, task()),
    clean=_SECURED_CARD + rpc("GetTask", TASK_PARAMS, task(), headers=_BEARER),
)
def unauthenticated(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent card has security requirements, the request carries no credentials of any kind, and
    the call succeeds. Not reported if one of the requirements is empty or satisfied by a client
    certificate, which the recording does not show. The extended card has its own rule.

    Either anyone can use the agent, or the card makes clients obtain credentials that the agent
    does not check. Who must act: the agent, which must refuse such calls or correct its card.
    """
    declared = context.declarations
    if (
        declared is None
        or not declared.required
        or context.operation == _EXTENDED
        or not context.is_success
    ):
        return
    schemes = declared.schemes
    # A client certificate is not visible here, and a scheme without a definition could require
    # anything.
    unseen = [
        name
        for names in declared.required
        for name in names
        if name not in schemes or _is_invisible_scheme(context, name)
    ]
    if not unseen and not find_credentials(context.exchange, declared):
        needed = " or ".join("+".join(names) for names in declared.required)
        yield RuleFinding(
            summary=f"`{context.operation}` succeeds without credentials, but the card requires "
            f"{needed}",
            seq=-1,
        )


def _is_invisible_scheme(context: RuleContext, name: str) -> bool:
    declared = context.declarations
    return declared is not None and declared.schemes[name].kind in ("mutualTLS", "")


@rule(
    "A2A-AUTH-003",
    "401 does not say how to authenticate",
    Severity.WARNING,
    actor=Actor.AGENT,
    section="1.0 3.3.2; 0.3 4.4; RFC 9110 11.6.1",
    hook_points=HookPoint.HEADS,
    scope=EvidenceScope.EXCHANGE,
    bindings=HTTP | CARD,
    required_flags=FrameFlag.ODD_HEAD,
    flagged=http("GET", "/tasks/t1", status=401),
    clean=http("GET", "/tasks/t1", status=401, reply_headers={"WWW-Authenticate": "Bearer"}),
)
def challenge(context: RuleContext) -> Iterator[RuleFinding]:
    """A response has the status 401 but no `WWW-Authenticate` header.

    The client cannot find out which credentials to obtain, and gives up. The agent, or the gateway
    that sent the response, must add the header.
    """
    if context.exchange.status == 401 and not context.response_header("www-authenticate"):
        yield RuleFinding(summary="the 401 response has no `WWW-Authenticate` header", seq=-1)


@rule(
    "A2A-AUTH-005",
    "The extended card is served without authentication",
    Severity.ERROR,
    section="1.0 13.3, 3.1.11; 0.3 9.1",
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.SINCE_0_2,
    bindings=NETWORK | CARD,
    trigger_flags=FrameFlag.CARD,
    operations=(_EXTENDED,),
    flagged=rpc(_EXTENDED, None, card()),
    clean=rpc(_EXTENDED, None, card(), headers=_BEARER),
)
def extended_card(context: RuleContext) -> Iterator[RuleFinding]:
    """A request without credentials of any kind receives the extended agent card, and the agent's
    card declares no authentication by client certificate. Not checked on gRPC before 1.0, where
    `GetAgentCard` may return the public card.

    The extended card may list skills and addresses that are not public; the specification requires
    authentication for it. The agent must refuse the call.
    """
    if context.binding is Binding.GRPC and not context.is_v1:
        return
    declared = context.agent.declarations
    if declared is not None and any(each.kind == "mutualTLS" for each in declared.schemes.values()):
        return
    if not find_credentials(context.exchange, declared):
        yield RuleFinding(summary="a request without credentials receives the extended card")


@rule(
    "A2A-AUTH-006",
    "A refusal reveals the existence of another principal's task",
    Severity.WARNING,
    section="1.0 3.3.2, 13.1",
    bindings=NETWORK,
    scope=EvidenceScope.LIVE,
    dialects=Dialects.V1,
    trigger_flags=FrameFlag.NEW_TASK | FrameFlag.ERROR,
    flagged=rest("POST", "/message:send", send(), snapshot("COMPLETED"), headers=_BEARER)
    + rest(
        "GET",
        "/tasks/t1",
        None,
        rest_error(403, "PERMISSION_DENIED", "", "not yours", details=[]),
        status=403,
        headers=_OTHER_TOKEN,
    ),
    clean=rest("POST", "/message:send", send(), snapshot("COMPLETED"), headers=_BEARER)
    + rest(
        "GET",
        "/tasks/t2",
        None,
        rest_error(404, "NOT_FOUND", "TASK_NOT_FOUND", "unknown task"),
        status=404,
        headers=_OTHER_TOKEN,
    ),
)
def existence(context: RuleContext) -> Iterator[RuleFinding]:
    """A call for a task that was created with other credentials is refused with 403 or
    PERMISSION_DENIED. It should be refused in the same way as a call for an unknown task.

    Any client can find out which tasks exist by trying ids. The agent should answer
    TaskNotFoundError.
    """
    if context.has_flag(FrameFlag.NEW_TASK):
        note_owner(context)
        return
    if context.exchange.status != _FORBIDDEN and not _is_permission_denied(context):
        return
    request_snapshot = context.record.request_snapshot
    known = (
        context.session.task_record(context.record.agent, request_snapshot.task_id)
        if request_snapshot is not None and request_snapshot.is_task_known
        else None
    )
    owner = owner_of(known) if known is not None else ""
    asker = principal_digest(context.exchange)
    if owner and asker and asker != owner:
        said = _FORBIDDEN if context.binding is not Binding.GRPC else "PERMISSION_DENIED"
        yield RuleFinding(
            summary=f"a task of another principal is refused with {said} instead "
            f"of TaskNotFoundError"
        )


def _is_permission_denied(context: RuleContext) -> bool:
    return context.binding is Binding.GRPC and context.failure.code == _PERMISSION_DENIED


@rule(
    "A2A-AUTH-007",
    "Credentials of an undeclared kind",
    Severity.WARNING,
    actor=Actor.EITHER,
    section="1.0 7.3; 0.3 4.3",
    hook_points=HookPoint.HEADS,
    scope=EvidenceScope.LIVE,
    bindings=NETWORK,
    required_flags=FrameFlag.CARD_KNOWN,
    flagged=_SECURED_CARD
    + rpc("GetTask", TASK_PARAMS, task(), headers={"x-api-key": "k-1234567890"}),
    clean=_SECURED_CARD + rpc("GetTask", TASK_PARAMS, task(), headers=_BEARER),
)
def undeclared(context: RuleContext) -> Iterator[RuleFinding]:
    """The card declares security schemes, and the request carries credentials, but none of them
    belongs to a declared scheme: for example `x-api-key` if the card declares only OAuth 2. Cookies
    are ignored.

    The client has instructions that the card does not contain, or discloses a secret to an agent
    that cannot use it. The client must use a declared scheme, or the agent must add the scheme to
    its card.
    """
    declared = context.declarations
    if declared is None or not declared.schemes:
        return
    found = [
        each for each in find_credentials(context.exchange, declared) if each.location != "cookie"
    ]
    schemes = declared.schemes.values()
    if found and not any(each.fits_scheme(scheme) for each in found for scheme in schemes):
        used = ", ".join(dict.fromkeys(map(str, found)))
        has = ", ".join(
            f"{name} ({scheme.kind or 'unknown'})" for name, scheme in declared.schemes.items()
        )
        yield RuleFinding(
            summary=f"the request authenticates with {used}, but the card declares {has[:150]}",
            seq=-1,
        )
