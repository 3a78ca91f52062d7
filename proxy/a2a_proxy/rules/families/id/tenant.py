"""Rule about the tenant of an interface (A2A 1.0 section 8.3.2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from a2a_proxy.model.values import Binding, Severity
from a2a_proxy.protocol.schema import decoder_for, is_protobuf
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import NETWORK, Dialects, EvidenceScope, FrameFlag, HookPoint
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import fetch_card, rpc
from a2a_proxy.rules.examples.objects import card, task

_TENANT_URL = "http://localhost:8000/"
_TENANT_PATH = [
    {
        "url": _TENANT_URL,
        "protocolBinding": "JSONRPC",
        "protocolVersion": "1.0",
        "tenant": "billing",
    }
]
_TENANT_CARD = fetch_card(card(supportedInterfaces=_TENANT_PATH))


@rule(
    "A2A-ID-013",
    "Tenant of the interface is not sent",
    Severity.ERROR,
    section="1.0 8.3.2",
    bindings=NETWORK,
    hook_points=HookPoint.REQUEST,
    scope=EvidenceScope.LIVE,
    dialects=Dialects.V1,
    required_flags=FrameFlag.CARD_KNOWN,
    flagged=_TENANT_CARD + rpc("GetTask", {"id": "t1"}, task()),
    clean=_TENANT_CARD + rpc("GetTask", {"id": "t1", "tenant": "billing"}, task()),
)
def not_echoed(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent card names a tenant for every interface of this binding, but the request has none
    of these tenants; or the card names none, and the request has one. Judged only if the card was
    fetched before the request.

    Several agents may share one address and differ only by tenant: the request reaches another
    customer's agent, or is refused. The client must send the `tenant` of the interface that it
    uses, and none if that interface has none.
    """
    declared = context.declarations
    offers = (
        declared.matching_interfaces(context.binding, context.exchange.dialect)
        if declared is not None
        else []
    )
    if not offers:
        return
    tenants = {offer.tenant for offer in offers}
    explicit = _tenant_member(context)
    tenant = explicit or _tenant_of_path(context)
    if tenant in tenants or "redacted-" in tenant or (tenants == {""} and not explicit):
        return
    wanted = " or ".join(f'"{each}"' if each else "none" for each in sorted(tenants))
    told = f'has the tenant "{tenant}"' if tenant else "has no tenant"
    yield RuleFinding(
        summary=f"{context.operation} {told}, the card says {wanted}",
        path=f"{context.root}tenant",
        value=tenant,
    )


def _tenant_member(context: RuleContext) -> str:
    """Return the tenant that the request itself names, or an empty string."""
    frame = context.frame
    found: Any = ""
    if is_protobuf(frame.schema):
        found = getattr(decoder_for(frame.schema).parse(frame.payload), "tenant", "")
    elif b'"tenant"' in frame.payload:
        body = context.body
        found = body.get("tenant") if isinstance(body, dict) else ""
    if not found and context.binding is Binding.REST and context.rest_match is not None:
        found = context.rest_match.get_parameter("tenant")
    return found if isinstance(found, str) else ""


def _tenant_of_path(context: RuleContext) -> str:
    """Return the path segment before the REST suffix if it follows the path of an interface, or an
    empty string."""
    if context.binding is not Binding.REST or context.rest_match is None:
        return ""
    return context.session.facts.tenant_of(context.record.agent, context.rest_match.prefix)
