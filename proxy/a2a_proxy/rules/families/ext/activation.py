"""Declaring, asking for and activating extensions (A2A 1.0 sections 3.3.4, 4.6)."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.finding import Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.rule import (
    HTTP,
    NETWORK,
    RPC,
    Dialects,
    EvidenceScope,
    FrameFlag,
    HookPoint,
    RuleFinding,
    rule,
)
from a2a_proxy.rules.examples.conversation import Fields, fetch_card, rpc
from a2a_proxy.rules.examples.objects import artifact, card, send, task
from a2a_proxy.rules.families.ext.reading import (
    activated,
    activated_here,
    asked,
    base,
    card_was_known,
    declared,
    may_have,
    used,
)
from a2a_proxy.rules.state.state_sequence import SENDING_OPERATIONS

_A, _B = "https://example.com/ext/a/v1", "https://example.com/ext/b/v1"
_A2 = "https://example.com/ext/a/v2"
_TASK = {"task": task()}
_USED = {"task": task(artifacts=[artifact(extensions=[_A])])}
_HEADS_AND_TRAILERS = (HookPoint.HEADS, HookPoint.ANSWER)


def _card(uri: str, *, required: bool = False) -> dict[str, object]:
    declares = {"streaming": True, "extensions": [{"uri": uri, "required": required}]}
    return card(capabilities=declares)


def _names(*uris: str) -> Fields:
    return {"A2A-Extensions": ", ".join(uris)}


@rule(
    "A2A-EXT-001",
    "Required extension not requested, yet the call is accepted",
    Severity.ERROR,
    section="1.0 3.3.4, 4.6.3",
    scope=EvidenceScope.LIVE,
    lines=Dialects.V1,
    moment=(HookPoint.HEADS, HookPoint.ANSWER),
    bindings=RPC,
    when=FrameFlag.FIRST,
    operations=SENDING_OPERATIONS,
    needs=FrameFlag.CARD_SEEN,
    flagged=fetch_card(_card(_A, required=True)) + rpc("SendMessage", send(), _TASK),
    clean=fetch_card(_card(_A, required=True))
    + rpc("SendMessage", send(), _TASK, headers=_names(_A), reply_headers=_names(_A)),
)
def required(see: RuleContext) -> Iterator[RuleFinding]:
    """The agent's card marks an extension as required, a message is sent without asking for it, and the agent accepts
    the message in place of answering ExtensionSupportRequiredError. The client that leaves it out is told as a warning.

    Either the card is wrong and keeps clients away, or the agent works on a message that it cannot understand rightly.
    Judged by the card that passed before the message.
    """
    if not see.agent.card or not card_was_known(see):
        return
    missing = [uri for uri, needed in declared(see.agent.card).items() if needed and uri not in asked(see)]
    request = see.request
    missing = [uri for uri in missing if request is None or uri.encode() not in request.payload]
    for uri in missing:
        if see.shown is None:
            told = f"the card requires {uri[:100]}, the request does not ask for it"
            yield RuleFinding(summary=told, value=uri, severity=Severity.WARNING)
        elif see.succeeded:
            told = f"a message without the required extension {uri[:100]} is accepted"
            yield RuleFinding(summary=f"{told}, ExtensionSupportRequiredError was expected", value=uri)


@rule(
    "A2A-EXT-002",
    "Client asks for an undeclared extension",
    Severity.INFO,
    section="1.0 4.6; extensions topic",
    scope=EvidenceScope.LIVE,
    lines=Dialects.SINCE_0_2,
    moment=HookPoint.HEADS,
    bindings=RPC,
    needs=FrameFlag.CARD_SEEN,
    flagged=fetch_card(_card(_A)) + rpc("SendMessage", send(), _TASK, headers=_names(_B)),
    clean=fetch_card(_card(_A)) + rpc("SendMessage", send(), _TASK, headers=_names(_A), reply_headers=_names(_A)),
)
def undeclared(see: RuleContext) -> Iterator[RuleFinding]:
    """A request asks for an extension that no card of the agent declares, as far as cards passed before it.

    The agent may ignore it without a word: a client that counts on it waits in vain. Less sure where the agent has an
    extended card that was not seen.
    """
    if not see.exchange.extensions or not card_was_known(see):
        return
    known = declared(see.agent.card).keys() | declared(see.agent.extended).keys()
    capabilities = (see.agent.card or {}).get("capabilities")
    more = isinstance(capabilities, dict) and capabilities.get("extendedAgentCard") is True
    for uri in asked(see):
        if uri not in known:
            told = f"the client asks for {uri[:100]}, which the card does not declare"
            yield RuleFinding(summary=told, value=uri, sure=not more or see.agent.extended is not None)


@rule(
    "A2A-EXT-003",
    "Agent activates an extension that was not requested",
    Severity.WARNING,
    section="1.0 4.6; extensions topic",
    scope=EvidenceScope.EXCHANGE,
    lines=Dialects.SINCE_0_2,
    moment=_HEADS_AND_TRAILERS,
    bindings=RPC,
    when=FrameFlag.END,
    needs=FrameFlag.EXTENDS,
    flagged=rpc("SendMessage", send(), _TASK, headers=_names(_A), reply_headers=_names(_A, _B)),
    clean=rpc("SendMessage", send(), _TASK, headers=_names(_A), reply_headers=_names(_A)),
)
def not_asked(see: RuleContext) -> Iterator[RuleFinding]:
    """The agent's `A2A-Extensions`, in the response head or in gRPC trailers, names an extension that the request does
    not. Another version of one that it does name is A2A-EXT-007.

    Extensions are off until the client asks: it need not know what this one changes in the answer.
    """
    found = activated_here(see)
    if not found:
        return
    wanted = asked(see)
    for uri in found:
        if uri not in wanted and not _fallback(uri, wanted):
            yield RuleFinding(summary=f"the agent activates {uri[:100]}, which the request does not name", value=uri)


def _fallback(uri: str, wanted: list[str]) -> str:
    """The wanted URI of which this one is another version; empty where it is none."""
    here = base(uri)
    return next((each for each in wanted if here and base(each) == here), "")


@rule(
    "A2A-EXT-007",
    "Another version of an extension is activated",
    Severity.ERROR,
    section="1.0 4.6.3",
    scope=EvidenceScope.EXCHANGE,
    lines=Dialects.V1,
    moment=_HEADS_AND_TRAILERS,
    bindings=NETWORK,
    when=FrameFlag.END,
    needs=FrameFlag.EXTENDS,
    flagged=rpc("SendMessage", send(), _TASK, headers=_names(_A2), reply_headers=_names(_A)),
    clean=rpc("SendMessage", send(), _TASK, headers=_names(_A2, _A), reply_headers=_names(_A)),
)
def fallback(see: RuleContext) -> Iterator[RuleFinding]:
    """The agent activates an extension whose URI differs from a requested one in the version at its end only, and the
    request does not name that version.

    Versions of an extension are extensions of their own and need not understand each other. An agent that does not have
    the version leaves it out, or refuses the call where it requires the extension.
    """
    found = activated_here(see)
    if not found:
        return
    wanted = asked(see)
    for uri in found:
        other = _fallback(uri, wanted) if uri not in wanted else ""
        if other:
            yield RuleFinding(summary=f"the request asks for {other[:100]}, the agent activates {uri[:100]}", value=uri)


@rule(
    "A2A-EXT-008",
    "Activation is not confirmed",
    Severity.INFO,
    section="1.0 3.2.6; extensions topic",
    scope=EvidenceScope.EXCHANGE,
    lines=Dialects.V1,
    bindings=HTTP,
    when=FrameFlag.UNCLEAN,
    operations=SENDING_OPERATIONS,
    flagged=rpc("SendMessage", send(), _USED, headers=_names(_A)),
    clean=rpc("SendMessage", send(), _USED, headers=_names(_A), reply_headers=_names(_A)),
)
def not_confirmed(see: RuleContext) -> Iterator[RuleFinding]:
    """A message or an artifact of the answer names an extension that the client has asked for, and the response has no
    `A2A-Extensions`.

    Clients learn from that header which extensions are active. Without it they take the extension for ignored.
    """
    if not see.exchange.extensions or not may_have(see.frame) or activated(see):
        return
    notes = see.track.remember()
    wanted = asked(see)
    uri = next((uri for _, uri in used(see) if uri in wanted), "")
    if uri and not notes.get("unconfirmed"):
        notes["unconfirmed"] = True
        yield RuleFinding(summary=f"the answer uses {uri[:100]}, its head has no A2A-Extensions to say so", value=uri)
