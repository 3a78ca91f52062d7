"""The tenant of an interface (A2A 1.0 section 8.3.2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from a2a_proxy.model.exchange import Binding
from a2a_proxy.model.finding import Severity
from a2a_proxy.protocol.schema import decoder_for, is_protobuf
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import NETWORK, Dialects, EvidenceScope, FrameFlag, HookPoint, RuleFinding, rule
from a2a_proxy.rules.examples.conversation import fetch_card, rpc
from a2a_proxy.rules.examples.objects import card, task

_URL = "http://localhost:8000/"
_OF_TENANT = [{"url": _URL, "protocolBinding": "JSONRPC", "protocolVersion": "1.0", "tenant": "billing"}]
_CARD = fetch_card(card(supportedInterfaces=_OF_TENANT))


@rule(
    "A2A-ID-013",
    "The tenant of the interface is not sent",
    Severity.ERROR,
    section="1.0 8.3.2",
    bindings=NETWORK,
    moment=HookPoint.REQUEST,
    scope=EvidenceScope.LIVE,
    lines=Dialects.V1,
    needs=FrameFlag.CARD_SEEN,
    flagged=_CARD + rpc("GetTask", {"id": "t1"}, task()),
    clean=_CARD + rpc("GetTask", {"id": "t1", "tenant": "billing"}, task()),
)
def not_echoed(see: RuleContext) -> Iterator[RuleFinding]:
    """The card names a tenant for every interface of this binding, and the request has none of them; or it names none,
    and the request has one. Judged where the card was seen before the request.

    The request reaches another customer's agent, or none: behind one address the tenant tells them apart.
    """
    declared = see.declared
    offers = declared.serves(see.binding, see.exchange.dialect) if declared is not None else []
    if not offers:
        return
    tenants = {offer.tenant for offer in offers}
    explicit = _member(see)
    tenant = explicit or _of_path(see)
    if tenant in tenants or "redacted-" in tenant or (tenants == {""} and not explicit):
        return
    wanted = " or ".join(f'"{each}"' if each else "none" for each in sorted(tenants))
    told = f'has tenant "{tenant}"' if tenant else "has no tenant"
    yield RuleFinding(summary=f"{see.operation} {told}, the card says {wanted}", path=f"{see.root}tenant", value=tenant)


def _member(see: RuleContext) -> str:
    """What the request itself says."""
    frame = see.frame
    found: Any = ""
    if is_protobuf(frame.schema):
        found = getattr(decoder_for(frame.schema).parse(frame.payload), "tenant", "")
    elif b'"tenant"' in frame.payload:
        body = see.body
        found = body.get("tenant") if isinstance(body, dict) else ""
    if not found and see.binding is Binding.REST and see.path is not None:
        found = see.path.parameter("tenant")
    return found if isinstance(found, str) else ""


def _of_path(see: RuleContext) -> str:
    """The segment before the REST suffix, where that follows an interface's path."""
    if see.binding is not Binding.REST or see.path is None:
        return ""
    return see.world.shared.tenant_of(see.track.upstream, see.path.prefix)
