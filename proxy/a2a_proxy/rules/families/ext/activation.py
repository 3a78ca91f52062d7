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
    activated_uris,
    activated_uris_here,
    base_uri,
    declared_extensions,
    is_card_known,
    may_have_extensions,
    requested_uris,
    used_extensions,
)
from a2a_proxy.rules.state.state_sequence import SENDING_OPERATIONS

_URI_A, _URI_B = "https://example.com/ext/a/v1", "https://example.com/ext/b/v1"
_URI_A_V2 = "https://example.com/ext/a/v2"
_TASK_RESULT = {"task": task()}
_EXTENDED_REPLY = {"task": task(artifacts=[artifact(extensions=[_URI_A])])}
_HEADS_AND_TRAILERS = (HookPoint.HEADS, HookPoint.ANSWER)


def _card_with_extension(uri: str, *, required: bool = False) -> dict[str, object]:
    declares = {"streaming": True, "extensions": [{"uri": uri, "required": required}]}
    return card(capabilities=declares)


def _extension_headers(*uris: str) -> Fields:
    return {"A2A-Extensions": ", ".join(uris)}


@rule(
    "A2A-EXT-001",
    "Required extension not requested, yet the call is accepted",
    Severity.ERROR,
    section="1.0 3.3.4, 4.6.3",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.V1,
    hook_points=(HookPoint.HEADS, HookPoint.ANSWER),
    bindings=RPC,
    trigger_flags=FrameFlag.FIRST,
    operations=SENDING_OPERATIONS,
    required_flags=FrameFlag.CARD_KNOWN,
    flagged=fetch_card(_card_with_extension(_URI_A, required=True)) + rpc("SendMessage", send(), _TASK_RESULT),
    clean=fetch_card(_card_with_extension(_URI_A, required=True))
    + rpc(
        "SendMessage",
        send(),
        _TASK_RESULT,
        headers=_extension_headers(_URI_A),
        reply_headers=_extension_headers(_URI_A),
    ),
)
def required(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent's card marks an extension as required, a message is sent without asking for it, and the agent accepts
    the message in place of answering ExtensionSupportRequiredError. The client that leaves it out is told as a warning.

    Either the card is wrong and keeps clients away, or the agent works on a message that it cannot understand rightly.
    Judged by the card that passed before the message.
    """
    if not context.agent.card or not is_card_known(context):
        return
    missing = [
        uri
        for uri, needed in declared_extensions(context.agent.card).items()
        if needed and uri not in requested_uris(context)
    ]
    request = context.request
    missing = [uri for uri in missing if request is None or uri.encode() not in request.payload]
    for uri in missing:
        if context.frame_or_none is None:
            told = f"the card requires {uri[:100]}, the request does not ask for it"
            yield RuleFinding(summary=told, value=uri, severity=Severity.WARNING)
        elif context.is_success:
            told = f"a message without the required extension {uri[:100]} is accepted"
            yield RuleFinding(summary=f"{told}, ExtensionSupportRequiredError was expected", value=uri)


@rule(
    "A2A-EXT-002",
    "Client asks for an undeclared extension",
    Severity.INFO,
    section="1.0 4.6; extensions topic",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.SINCE_0_2,
    hook_points=HookPoint.HEADS,
    bindings=RPC,
    required_flags=FrameFlag.CARD_KNOWN,
    flagged=fetch_card(_card_with_extension(_URI_A))
    + rpc("SendMessage", send(), _TASK_RESULT, headers=_extension_headers(_URI_B)),
    clean=fetch_card(_card_with_extension(_URI_A))
    + rpc(
        "SendMessage",
        send(),
        _TASK_RESULT,
        headers=_extension_headers(_URI_A),
        reply_headers=_extension_headers(_URI_A),
    ),
)
def undeclared(context: RuleContext) -> Iterator[RuleFinding]:
    """A request asks for an extension that no card of the agent declares, as far as cards passed before it.

    The agent may ignore it without a word: a client that counts on it waits in vain. Less sure where the agent has an
    extended card that was not seen.
    """
    if not context.exchange.extensions or not is_card_known(context):
        return
    known = declared_extensions(context.agent.card).keys() | declared_extensions(context.agent.extended).keys()
    capabilities = (context.agent.card or {}).get("capabilities")
    more = isinstance(capabilities, dict) and capabilities.get("extendedAgentCard") is True
    for uri in requested_uris(context):
        if uri not in known:
            told = f"the client asks for {uri[:100]}, which the card does not declare"
            yield RuleFinding(summary=told, value=uri, is_sure=not more or context.agent.extended is not None)


@rule(
    "A2A-EXT-003",
    "Agent activates an extension that was not requested",
    Severity.WARNING,
    section="1.0 4.6; extensions topic",
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.SINCE_0_2,
    hook_points=_HEADS_AND_TRAILERS,
    bindings=RPC,
    trigger_flags=FrameFlag.END,
    required_flags=FrameFlag.EXTENDS,
    flagged=rpc(
        "SendMessage",
        send(),
        _TASK_RESULT,
        headers=_extension_headers(_URI_A),
        reply_headers=_extension_headers(_URI_A, _URI_B),
    ),
    clean=rpc(
        "SendMessage",
        send(),
        _TASK_RESULT,
        headers=_extension_headers(_URI_A),
        reply_headers=_extension_headers(_URI_A),
    ),
)
def not_asked(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent's `A2A-Extensions`, in the response head or in gRPC trailers, names an extension that the request does
    not. Another version of one that it does name is A2A-EXT-007.

    Extensions are off until the client asks: it need not know what this one changes in the answer.
    """
    found = activated_uris_here(context)
    if not found:
        return
    wanted = requested_uris(context)
    for uri in found:
        if uri not in wanted and not _find_fallback(uri, wanted):
            yield RuleFinding(summary=f"the agent activates {uri[:100]}, which the request does not name", value=uri)


def _find_fallback(uri: str, wanted: list[str]) -> str:
    """The wanted URI of which this one is another version; empty where it is none."""
    here = base_uri(uri)
    return next((each for each in wanted if here and base_uri(each) == here), "")


@rule(
    "A2A-EXT-007",
    "Another version of an extension is activated",
    Severity.ERROR,
    section="1.0 4.6.3",
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.V1,
    hook_points=_HEADS_AND_TRAILERS,
    bindings=NETWORK,
    trigger_flags=FrameFlag.END,
    required_flags=FrameFlag.EXTENDS,
    flagged=rpc(
        "SendMessage",
        send(),
        _TASK_RESULT,
        headers=_extension_headers(_URI_A_V2),
        reply_headers=_extension_headers(_URI_A),
    ),
    clean=rpc(
        "SendMessage",
        send(),
        _TASK_RESULT,
        headers=_extension_headers(_URI_A_V2, _URI_A),
        reply_headers=_extension_headers(_URI_A),
    ),
)
def fallback(context: RuleContext) -> Iterator[RuleFinding]:
    """The agent activates an extension whose URI differs from a requested one in the version at its end only, and the
    request does not name that version.

    Versions of an extension are extensions of their own and need not understand each other. An agent that does not have
    the version leaves it out, or refuses the call where it requires the extension.
    """
    found = activated_uris_here(context)
    if not found:
        return
    wanted = requested_uris(context)
    for uri in found:
        other = _find_fallback(uri, wanted) if uri not in wanted else ""
        if other:
            yield RuleFinding(summary=f"the request asks for {other[:100]}, the agent activates {uri[:100]}", value=uri)


@rule(
    "A2A-EXT-008",
    "Activation is not confirmed",
    Severity.INFO,
    section="1.0 3.2.6; extensions topic",
    scope=EvidenceScope.EXCHANGE,
    dialects=Dialects.V1,
    bindings=HTTP,
    trigger_flags=FrameFlag.UNCLEAN,
    operations=SENDING_OPERATIONS,
    flagged=rpc("SendMessage", send(), _EXTENDED_REPLY, headers=_extension_headers(_URI_A)),
    clean=rpc(
        "SendMessage",
        send(),
        _EXTENDED_REPLY,
        headers=_extension_headers(_URI_A),
        reply_headers=_extension_headers(_URI_A),
    ),
)
def not_confirmed(context: RuleContext) -> Iterator[RuleFinding]:
    """A message or an artifact of the answer names an extension that the client has asked for, and the response has no
    `A2A-Extensions`.

    Clients learn from that header which extensions are active. Without it they take the extension for ignored.
    """
    if not context.exchange.extensions or not may_have_extensions(context.frame) or activated_uris(context):
        return
    notes = context.record.writable_notes()
    wanted = requested_uris(context)
    uri = next((uri for _, uri in used_extensions(context) if uri in wanted), "")
    if uri and not notes.get("unconfirmed"):
        notes["unconfirmed"] = True
        yield RuleFinding(summary=f"the answer uses {uri[:100]}, its head has no A2A-Extensions to say so", value=uri)
