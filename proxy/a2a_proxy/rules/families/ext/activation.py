"""Rules about declaring, requesting and activating extensions (A2A 1.0 sections 3.3.4, 4.6)."""

from collections.abc import Iterator

from a2a_proxy.model.values import Actor, Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import (
    NETWORK,
    RPC,
    Dialects,
    EvidenceScope,
    FrameFlag,
    HookPoint,
)
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import Fields, fetch_card, rpc
from a2a_proxy.rules.examples.objects import card, send, task
from a2a_proxy.rules.families.ext.reading import (
    activated_uris_here,
    base_uri,
    declared_extensions,
    is_card_known,
    requested_uris,
)
from a2a_proxy.rules.state.state_sequence import SENDING_OPERATIONS

_URI_A, _URI_B = "https://example.com/ext/a/v1", "https://example.com/ext/b/v1"
_URI_A_V2 = "https://example.com/ext/a/v2"
_TASK_RESULT = {"task": task()}
_HEADS_AND_TRAILERS = (HookPoint.HEADS, HookPoint.ANSWER)


def _card_with_extension(uri: str, *, required: bool = False) -> dict[str, object]:
    declares = {"streaming": True, "extensions": [{"uri": uri, "required": required}]}
    return card(capabilities=declares)


def _extension_headers(*uris: str) -> Fields:
    return {"A2A-Extensions": ", ".join(uris)}


@rule(
    "A2A-EXT-001",
    "A call without a required extension is accepted",
    Severity.ERROR,
    actor=Actor.AGENT,
    section="1.0 3.3.4, 4.6.3",
    scope=EvidenceScope.LIVE,
    dialects=Dialects.V1,
    hook_points=(HookPoint.HEADS, HookPoint.ANSWER),
    bindings=RPC,
    trigger_flags=FrameFlag.FIRST,
    operations=SENDING_OPERATIONS,
    required_flags=FrameFlag.CARD_KNOWN,
    flagged=fetch_card(_card_with_extension(_URI_A, required=True))
    + rpc("SendMessage", send(), _TASK_RESULT),
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
    """The agent's card marks an extension as required, but the agent accepts a message whose
    request does not name it, instead of answering ExtensionSupportRequiredError. The client's
    omission is reported as a warning. Judged by the card that was sent before the message.

    Either the card needlessly keeps clients away, or the agent processes a message that it may
    misunderstand. The agent must refuse the call or mark the extension as optional. The client must
    name required extensions in `A2A-Extensions`.
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
            told = f"the card requires {uri[:100]}, but the request does not name it"
            yield RuleFinding(summary=told, value=uri, severity=Severity.WARNING)
        elif context.is_success:
            told = f"a message without the required extension {uri[:100]} is accepted"
            yield RuleFinding(summary=f"{told}, expected ExtensionSupportRequiredError", value=uri)


@rule(
    "A2A-EXT-002",
    "A client requests an undeclared extension",
    Severity.INFO,
    actor=Actor.CLIENT,
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
    """A request names an extension that no card of the agent declares, judged by the cards sent
    before the request. The confidence is low if the agent has an extended card that was not
    recorded.

    The agent may ignore the extension silently, so a client that depends on it does not get the
    expected behaviour. Who must act: the client, which should check the card first; or the agent,
    if its card lacks the extension.
    """
    if not context.exchange.extensions or not is_card_known(context):
        return
    known = (
        declared_extensions(context.agent.card).keys()
        | declared_extensions(context.agent.extended).keys()
    )
    capabilities = (context.agent.card or {}).get("capabilities")
    more = isinstance(capabilities, dict) and capabilities.get("extendedAgentCard") is True
    for uri in requested_uris(context):
        if uri not in known:
            told = f"the client requests {uri[:100]}, which the card does not declare"
            yield RuleFinding(
                summary=told, value=uri, is_sure=not more or context.agent.extended is not None
            )


@rule(
    "A2A-EXT-003",
    "The agent activates an extension that was not requested",
    Severity.WARNING,
    actor=Actor.AGENT,
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
    """The agent's `A2A-Extensions`, in the response head or in gRPC trailers, names an extension
    that the request does not name. Another version of a requested extension is A2A-EXT-007 instead.

    Extensions are off until the client requests them, and the client may not know how this one
    changes the response. The agent must activate only requested extensions.
    """
    found = activated_uris_here(context)
    if not found:
        return
    wanted = requested_uris(context)
    for uri in found:
        if uri not in wanted and not _find_fallback(uri, wanted):
            yield RuleFinding(
                summary=f"the agent activates {uri[:100]}, which the request does not name",
                value=uri,
            )


def _find_fallback(uri: str, wanted: list[str]) -> str:
    """Return the requested URI that this URI is another version of; empty if there is none."""
    here = base_uri(uri)
    return next((each for each in wanted if here and base_uri(each) == here), "")


@rule(
    "A2A-EXT-007",
    "Another version of an extension is activated",
    Severity.ERROR,
    actor=Actor.AGENT,
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
    """The agent activates an extension whose URI differs from a requested one only in the version
    at its end, and the request does not name that version.

    Versions of an extension are separate extensions and need not be compatible. The agent must
    leave out a version it does not have, or refuse the call if it requires the extension.
    """
    found = activated_uris_here(context)
    if not found:
        return
    wanted = requested_uris(context)
    for uri in found:
        other = _find_fallback(uri, wanted) if uri not in wanted else ""
        if other:
            yield RuleFinding(
                summary=f"the request names {other[:100]}, but the agent activates {uri[:100]}",
                value=uri,
            )
