"""Rules about the interfaces that a card declares and the client uses (A2A 1.0 sections 4.4.6, 5.8,
8.3.1)."""

import re
from collections.abc import Iterator
from functools import lru_cache

from a2a_proxy.model.values import Actor, Binding, Severity
from a2a_proxy.protocol.session_facts import address_of
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import CARD, NETWORK, RPC, EvidenceScope, FrameFlag
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import fetch_card, grpc, rpc
from a2a_proxy.rules.examples.objects import card, task
from a2a_proxy.rules.facts.hosts import (
    HostReach,
    host_of,
    host_reach,
    is_address,
    plain_text_reach,
    scheme_of,
)
from a2a_proxy.rules.families.card.reading import read_card
from a2a_proxy.rules.state.card_declarations import (
    Json,
    OfferedInterface,
    has_capability,
    indexed_objects,
    is_v1,
    object_member,
    read_interfaces,
    read_old_interfaces,
    string_member,
)

_CORE_BINDINGS = frozenset({"JSONRPC", "GRPC", "HTTP+JSON"})
_ABSOLUTE_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")
_HOST_AND_PORT = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[\w.-]+):\d{1,5}")
_host_and_port = lru_cache(maxsize=1024)(address_of)
_JSONRPC = {"url": "http://localhost:8000/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}


def _card_with_interfaces(*entries: Json) -> Json:
    return card(supportedInterfaces=list(entries))


@rule(
    "A2A-CARD-005",
    "A custom binding is not named by a URI",
    Severity.WARNING,
    section="1.0 5.8, 4.4.6",
    bindings=CARD | RPC,
    trigger_flags=FrameFlag.CARD,
    flagged=fetch_card(
        _card_with_interfaces(
            _JSONRPC,
            {
                "url": "wss://localhost:8000",
                "protocolBinding": "WEBSOCKET",
                "protocolVersion": "1.0",
            },
        )
    ),
    clean=fetch_card(
        _card_with_interfaces(
            _JSONRPC,
            {
                "url": "wss://localhost:8000",
                "protocolBinding": "https://example.com/bindings/websocket/v1",
                "protocolVersion": "1.0",
            },
        )
    ),
)
def binding_name(context: RuleContext) -> Iterator[RuleFinding]:
    """`protocolBinding` is neither JSONRPC, GRPC or HTTP+JSON (in this spelling) nor an absolute
    URI. Reported as information for `stdio`, which a draft proposes.

    Clients ignore a misspelled core binding, and two agents may use the same short name for
    different bindings. Who must act: the agent, which must correct the spelling or use a URI for
    its own binding.
    """
    for index, entry in indexed_objects(read_card(context).get("supportedInterfaces")):
        name = string_member(entry, "protocolBinding")
        if name and name not in _CORE_BINDINGS and not _ABSOLUTE_URI.fullmatch(name):
            yield RuleFinding(
                summary=f'the binding "{name[:60]}" is neither a core binding nor a URI',
                path=f"{context.root}supportedInterfaces[{index}].protocolBinding",
                value=name,
                severity=Severity.INFO if name.lower() == "stdio" else None,
            )


@rule(
    "A2A-CARD-006",
    "The URL of an interface does not match its binding",
    Severity.WARNING,
    section="1.0 4.4.6; 0.3 5.6",
    bindings=CARD | RPC,
    trigger_flags=FrameFlag.CARD,
    flagged=fetch_card(
        _card_with_interfaces(
            _JSONRPC, {"url": "/a2a", "protocolBinding": "GRPC", "protocolVersion": "1.0"}
        ),
    ),
    clean=fetch_card(
        _card_with_interfaces(
            _JSONRPC, {"url": "localhost:8000", "protocolBinding": "GRPC", "protocolVersion": "1.0"}
        ),
    ),
)
def url_form(context: RuleContext) -> Iterator[RuleFinding]:
    """The URL of a JSON-RPC or REST interface is not an absolute http or https URL, or the URL of a
    gRPC interface is neither host:port nor a URL.

    Clients pass the URL unchanged to their transport, which fails to connect. The agent must
    correct its card.
    """
    for offer in read_interfaces(read_card(context)):
        if offer.binding not in _CORE_BINDINGS or _is_fitting_url(offer):
            continue
        wanted = (
            "host:port or a URL" if offer.binding == "GRPC" else "an absolute http or https URL"
        )
        yield RuleFinding(
            summary=f'the {offer.binding} interface has the URL "{offer.url[:120]}", '
            f"expected {wanted}",
            path=context.root + offer.path,
            value=offer.url,
        )


def _is_fitting_url(offer: OfferedInterface) -> bool:
    if offer.binding == "GRPC":
        return bool(
            _HOST_AND_PORT.fullmatch(offer.url) or ("://" in offer.url and scheme_of(offer.url))
        )
    return scheme_of(offer.url) in ("http", "https") and bool(host_of(offer.url))


@rule(
    "A2A-CARD-007",
    "An interface is offered in plain text",
    Severity.WARNING,
    section="1.0 7.1, 4.4.6, 13.4; 0.3 4.1",
    bindings=CARD | RPC,
    trigger_flags=FrameFlag.CARD,
    flagged=fetch_card(
        _card_with_interfaces(
            {
                "url": "http://agent.example.com",
                "protocolBinding": "JSONRPC",
                "protocolVersion": "1.0",
            }
        )
    ),
    clean=fetch_card(
        _card_with_interfaces(
            {
                "url": "https://agent.example.com",
                "protocolBinding": "JSONRPC",
                "protocolVersion": "1.0",
            }
        )
    ),
)
def plain_text(context: RuleContext) -> Iterator[RuleFinding]:
    """The URL of an interface has the scheme http and a host that is not this machine; any host if
    the card was fetched over https. Reported as information if the host is in a private network and
    the card was not fetched over https, or if the card was fetched over https from this machine and
    names another port of it.

    Anyone on the network path can read and change tasks and credentials. A client that came over
    https and follows the card continues in plain text, or fails where only https is served; often a
    gateway ends TLS and the agent behind it does not know its own address. The operator of the
    agent should offer the interface over https and correct the card.
    """
    upstream = context.record.upstream
    is_fetched_by_tls = scheme_of(upstream) == "https"
    for offer in read_interfaces(read_card(context)):
        if scheme_of(offer.url) != "http":
            continue
        far = plain_text_reach(offer.url)
        is_same_place = is_fetched_by_tls and _host_and_port(offer.url) == _host_and_port(upstream)
        if far is not HostReach.LOOPBACK or is_fetched_by_tls:
            summary = f'the {offer.binding} interface "{offer.url[:120]}" is not encrypted'
            if is_fetched_by_tls:
                summary += ", but the card was fetched over https"
            is_inside = host_reach(host_of(upstream)) is HostReach.LOOPBACK is far
            is_far = far is HostReach.PUBLIC or (is_fetched_by_tls and not is_inside)
            yield RuleFinding(
                summary=summary,
                path=context.root + offer.path,
                value=offer.url,
                severity=None if is_far or is_same_place else Severity.INFO,
            )


def _old_card(**members: object) -> Json:
    old = {
        "protocolVersion": "0.3.0",
        "url": "http://localhost:8000/",
        "preferredTransport": "JSONRPC",
    }
    return card(supportedInterfaces=None, capabilities={"streaming": True}, **(old | members))


@rule(
    "A2A-CARD-008",
    "The transports of a 0.3 card contradict each other",
    Severity.ERROR,
    section="0.3 5.6.1, 5.6.4",
    bindings=CARD | RPC,
    trigger_flags=FrameFlag.CARD,
    flagged=fetch_card(
        _old_card(additionalInterfaces=[{"url": "http://localhost:8000/", "transport": "GRPC"}])
    ),
    clean=fetch_card(
        _old_card(additionalInterfaces=[{"url": "localhost:8001", "transport": "GRPC"}])
    ),
)
def old_transports(context: RuleContext) -> Iterator[RuleFinding]:
    """A card with `protocolVersion` 0.2.5 to 0.3 declares one URL with two transports, or lacks
    `preferredTransport`. Reported as a warning if `preferredTransport` is missing, or if the two
    transports are JSON-RPC and REST, which have different paths below the URL.

    A client cannot know which transport to use at that URL. The agent must correct its card.
    """
    found = read_card(context)
    if (
        is_v1(found)
        or "supportedInterfaces" in found
        or not string_member(found, "protocolVersion")
    ):
        return
    if not string_member(found, "preferredTransport"):
        yield RuleFinding(
            summary="the card lacks `preferredTransport`, the transport of its `url`",
            path=f"{context.root}preferredTransport",
            severity=Severity.WARNING,
        )
    first: dict[str, str] = {}
    for offer in read_old_interfaces(found):
        before = first.setdefault(offer.url, offer.binding)
        if before != offer.binding:
            yield RuleFinding(
                summary=f'"{offer.url[:120]}" is declared both as {before} and as {offer.binding}',
                path=context.root + offer.path,
                value=offer.url,
                severity=Severity.WARNING
                if {before, offer.binding} == {"JSONRPC", "HTTP+JSON"}
                else None,
            )


@rule(
    "A2A-CARD-009",
    "An undeclared interface is used",
    Severity.WARNING,
    actor=Actor.EITHER,
    section="1.0 5.2, 8.3.1; 0.3 5.6",
    bindings=NETWORK,
    trigger_flags=FrameFlag.FIRST,
    required_flags=FrameFlag.CARD_KNOWN,
    flagged=fetch_card(_card_with_interfaces(_JSONRPC)) + grpc("GetTask", {"id": "t1"}, task()),
    clean=fetch_card(_card_with_interfaces(_JSONRPC)) + rpc("GetTask", {"id": "t1"}, task()),
)
def undeclared(context: RuleContext) -> Iterator[RuleFinding]:
    """A call succeeded with a binding, a protocol version or a path that no interface of the
    agent's card declares. Paths are compared only if the card names the address that was called.
    Reported as information if the agent refuses the binding or the version as unknown: the client
    may only have tried whether it is served.

    Either the client ignores the card, or the card omits an interface that other clients then
    cannot find. The agent must declare the interface if clients may use it; otherwise the client
    must call a declared one.
    """
    declared = context.declarations
    refusal = "" if context.is_success else _refusal(context)
    if declared is None or not (context.is_success or refusal):
        return
    exchange = context.exchange
    if context.is_v1 and context.is_enveloped and "/" in exchange.method:
        return  # a 0.3 call answered in the 1.0 form: A2A-VER-007
    found = declared.matching_interfaces(context.binding, exchange.dialect)
    if found:
        if not refusal:
            yield from _check_path(context, found)
        return
    has = ", ".join(
        dict.fromkeys(f"{each.binding} {each.version}".strip() for each in declared.interfaces)
    )
    line = f" {exchange.dialect}" if exchange.dialect else ""
    works = f"is refused with {refusal}" if refusal else "works"
    yield RuleFinding(
        summary=f"{_BINDING_WORDS[context.binding]}{line} {works}, but the card declares "
        f"{has or 'no interface'}",
        severity=Severity.INFO if refusal else None,
        actor=Actor.CLIENT if refusal else None,
        seq=-1,
    )


_UNKNOWN_CALL = frozenset({"METHOD_NOT_FOUND", "INVALID_REQUEST"})


def _refusal(context: RuleContext) -> str:
    """Return the error by which an agent says that it does not serve the form of the call; empty
    for any other answer. A2A-END-010 reports VersionNotSupportedError."""
    failure, status = context.failure, context.exchange.status
    if failure.name:
        return failure.name if failure.name in _UNKNOWN_CALL else ""
    if context.binding is Binding.GRPC:
        is_unknown = context.has_flag(FrameFlag.ERROR) and failure.status_name == "UNIMPLEMENTED"
        return failure.status_name if is_unknown else ""
    is_unknown = context.binding is Binding.REST and status in (404, 405, 415, 501)
    return f"HTTP {status}" if is_unknown else ""


_BINDING_WORDS = {Binding.JSONRPC: "JSON-RPC", Binding.REST: "REST", Binding.GRPC: "gRPC"}


def _check_path(context: RuleContext, found: list[OfferedInterface]) -> Iterator[RuleFinding]:
    """Report a call whose binding is declared, but at another path."""
    here = _host_and_port(context.record.upstream)
    places = {each.url_path for each in found if _host_and_port(each.url) == here}
    if not places or context.binding is Binding.GRPC or not context.exchange.target.startswith("/"):
        return
    if context.is_enveloped:
        called = context.exchange.target.partition("?")[0].rstrip("/")
        fits = called in places
    else:
        path = context.rest_match
        called = path.prefix if path is not None else ""
        fits = path is None or any(
            called == each or called.startswith(f"{each}/") for each in places
        )
    if not fits:
        has = ", ".join(sorted(each or "/" for each in places))
        yield RuleFinding(
            summary=f"{_BINDING_WORDS[context.binding]} works at {called or '/'}, but the card "
            f"declares it at {has}",
            seq=-1,
        )


@rule(
    "A2A-CARD-015",
    "The 0.3 and 1.0 members of a card contradict each other",
    Severity.WARNING,
    section="1.0 appendix A.2",
    bindings=CARD | RPC,
    trigger_flags=FrameFlag.CARD,
    flagged=fetch_card(
        _card_with_interfaces(_JSONRPC)
        | {"url": "http://localhost:8001/", "preferredTransport": "JSONRPC"}
    ),
    clean=fetch_card(
        _card_with_interfaces(_JSONRPC, _JSONRPC | {"protocolVersion": "0.3"})
        | {
            "url": "http://localhost:8000/",
            "preferredTransport": "JSONRPC",
            "protocolVersion": "0.3.0",
        }
    ),
)
def both_forms(context: RuleContext) -> Iterator[RuleFinding]:
    """A card for clients of both 0.3 and 1.0 declares an interface in the old members (`url`,
    `additionalInterfaces`) that is missing in `supportedInterfaces`, or the two forms differ about
    the extended card.

    Old and new clients of the same agent connect to different places. The agent must declare the
    same in both forms.
    """
    found = read_card(context)
    entries = indexed_objects(found.get("supportedInterfaces"))
    if not entries:
        return
    new = {
        (string_member(each, "url").rstrip("/"), string_member(each, "protocolBinding"))
        for _, each in entries
    }
    for offer in read_old_interfaces(found):
        if (offer.url.rstrip("/"), offer.binding) not in new:
            yield RuleFinding(
                summary=f'`{offer.path}` ({offer.binding}, "{offer.url[:120]}") is missing in '
                f"`supportedInterfaces`",
                path=context.root + offer.path,
                value=offer.url,
            )
    old = found.get("supportsAuthenticatedExtendedCard")
    if isinstance(old, bool) and old != has_capability(found, "extendedAgentCard"):
        said = object_member(found, "capabilities").get("extendedAgentCard")
        yield RuleFinding(
            summary=f"`supportsAuthenticatedExtendedCard` is {old}, but "
            f"`capabilities.extendedAgentCard` is {said}",
            path=f"{context.root}supportsAuthenticatedExtendedCard",
            value=str(old).lower(),
        )


_LIVE_CARD = {"streaming": True, "bidiStreaming": True}


@rule(
    "A2A-CARD-018",
    "`bidiStreaming` is declared without a gRPC interface",
    Severity.WARNING,
    section="1.1 draft, bidirectional streaming",
    bindings=CARD | RPC,
    trigger_flags=FrameFlag.CARD,
    flagged=fetch_card(_card_with_interfaces(_JSONRPC) | {"capabilities": _LIVE_CARD}),
    clean=fetch_card(card(capabilities=_LIVE_CARD)),
)
def live_needs_grpc(context: RuleContext) -> Iterator[RuleFinding]:
    """The capability `bidiStreaming` is true, but no interface has the binding GRPC.

    The draft defines live streams only for gRPC, so no client can use the declared capability. The
    agent must add a gRPC interface or declare the capability as false.
    """
    found = read_card(context)
    if has_capability(found, "bidiStreaming") and not any(
        each.binding == "GRPC" for each in read_interfaces(found)
    ):
        yield RuleFinding(
            summary="`bidiStreaming` is true, but the card has no GRPC interface",
            path=f"{context.root}capabilities.bidiStreaming",
            value="true",
        )


def _card_with_url(url: str) -> Json:
    return _card_with_interfaces(
        {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    )


@rule(
    "A2A-CARD-020",
    "The client cannot reach an interface of the card",
    Severity.WARNING,
    section="1.0 4.4.6; 0.3 5.6",
    scope=EvidenceScope.EXCHANGE,
    bindings=CARD | RPC,
    trigger_flags=FrameFlag.CARD,
    flagged=fetch_card(
        _card_with_url("http://localhost:8000/"),
        client="192.0.2.7",
        upstream="http://agent.example.com",
    ),
    clean=fetch_card(
        _card_with_url("https://agent.example.com/"),
        client="192.0.2.7",
        upstream="http://agent.example.com",
    ),
)
def unreachable(context: RuleContext) -> Iterator[RuleFinding]:
    """The URL of an interface names the agent's own machine (localhost, a loopback address,
    `0.0.0.0`, `[::]`), but the client that received the card has another address than a loopback
    one; or it has the name of a host in a private network (without a dot, or for example in
    `.local` or `.internal`), and the client has a public address. Reported as information if the
    proxy reaches the agent under this host: then the proxy replaces the URL (`--rewrite-card`), and
    only clients without the proxy are concerned. Reported once for each card that a client fetches.

    The client connects to its own machine, or to nothing. The operator of the agent must configure
    the URL under which clients reach it.
    """
    client = context.record.client
    if not is_address(client) or host_reach(client) is HostReach.LOOPBACK:
        return
    upstream = host_of(context.record.upstream)
    offers = [
        each
        for each in read_interfaces(read_card(context))
        if _is_out_of_reach(host_of(each.url), client)
    ]
    kept = [each for each in offers if not _is_replaced(host_of(each.url), upstream)]
    if not offers:
        return
    first, others = (kept or offers)[0], len({each.url for each in kept or offers}) - 1
    place = "machine" if host_reach(host_of(first.url)) is HostReach.LOOPBACK else "network"
    more = f" and {others} other URL{'s' if others > 1 else ''}" if others else ""
    yield RuleFinding(
        summary=f'the card names the {first.binding} interface "{first.url[:120]}"{more}, which a '
        f"client on another "
        f"{place} cannot reach",
        path=context.root + first.path,
        value=first.url,
        severity=None if kept else Severity.INFO,
    )


def _is_replaced(host: str, upstream: str) -> bool:
    """Whether the proxy reaches the agent under this host, so that it replaces URLs with it."""
    is_local = host_reach(host) is HostReach.LOOPBACK
    return host == upstream or (is_local and host_reach(upstream) is HostReach.LOOPBACK)


def _is_out_of_reach(host: str, client: str) -> bool:
    """Whether a client with a non-loopback address cannot reach the host; False if it is empty."""
    if not host:
        return False
    if host_reach(host) is HostReach.LOOPBACK:
        return True
    is_inner_name = not is_address(host) and host_reach(host) is HostReach.PRIVATE
    return is_inner_name and host_reach(client) is HostReach.PUBLIC
