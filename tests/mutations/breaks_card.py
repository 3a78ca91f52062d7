"""Agent cards that are missing or incomplete, contradict themselves, or contradict the agent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from support_mutations import MS, Ex, Msg, Talk, Want, mutation

SDK = ("sdk-1.x-jsonrpc", "sdk-1.x-rest", "sdk-1.x-grpc")
V1 = (*SDK, "concurrent-grpc", "demo")
V0_3 = ("sdk-0.3-jsonrpc", "sdk-0.3-rest", "sdk-0.3-grpc")
OLD = (*V0_3, "dialect-0.2")
_BINDINGS = {"JSONRPC": "JSONRPC", "REST": "HTTP+JSON", "GRPC": "GRPC"}


def fetch(talk: Talk) -> Ex:
    """Return the first fetch of the public card."""
    return talk.first("GetAgentCard")


def extended(talk: Talk) -> Ex:
    """Return the first call for the extended card."""
    return talk.first("GetExtendedAgentCard")


def succeeded(call: Ex) -> bool:
    """Return whether the call was answered, at least first, with an A2A object."""
    return bool(call.answers) and call.status == 200 and "error" not in call.answers[0].value


def change(call: Ex, how: Callable[[dict[str, Any]], object]) -> Msg:
    """Change the card in the response of this exchange."""
    answer = call.answers[0]
    answer.edit(how)
    return answer


def unused(talk: Talk, entry: dict[str, Any]) -> bool:
    """Return whether no call of the conversation uses this interface."""
    return entry["protocolBinding"] not in {
        _BINDINGS.get(each.facts.binding.name) for each in talk.exchanges
    }


def edit_unused(talk: Talk, call: Ex, **members: Any) -> Msg:
    """Change an interface that no call uses."""

    def how(card: dict[str, Any]) -> None:
        next(each for each in card["supportedInterfaces"] if unused(talk, each)).update(members)

    return change(call, how)


def without(binding: str) -> Callable[[dict[str, Any]], None]:
    """Remove the interfaces of a binding."""

    def how(card: dict[str, Any]) -> None:
        offers = card["supportedInterfaces"]
        card["supportedInterfaces"] = [
            each for each in offers if each["protocolBinding"] != binding
        ]

    return how


@mutation(*V1, *V0_3)
def the_card_is_not_there(talk: Talk) -> Iterator[Want]:
    """404, and no card at another path."""
    call = fetch(talk)
    call.status = 404
    call.answers[0].data = b'{"detail":"Not Found"}'
    talk.length += 4000 * MS
    yield Want("A2A-CARD-001", call)


@mutation(*V1, *OLD)
def the_card_is_for_the_agents_machine_only(talk: Talk) -> Iterator[Want]:
    """Its URLs have a loopback address, the client is on another machine."""
    call = fetch(talk)
    call.client = "192.0.2.7"
    yield Want("A2A-CARD-020", call, call.answers[0])


@mutation(*V1, *OLD)
def the_card_is_a_page(talk: Talk) -> Iterator[Want]:
    """An HTML page, which some web servers return for every path."""
    call = fetch(talk)
    call.set("content-type", "text/html; charset=utf-8", reply=True)
    call.answers[0].data = b"<!doctype html><title>agent</title>"
    yield Want("A2A-CARD-002", call, call.answers[0])


@mutation(*V1, *OLD)
def the_card_is_plain_text(talk: Talk) -> Iterator[Want]:
    """JSON with the type text/plain."""
    call = fetch(talk)
    call.set("content-type", "text/plain", reply=True)
    yield Want("A2A-CARD-002", call, call.answers[0])


@mutation(*V1, *OLD)
def the_card_has_no_version(talk: Talk) -> Iterator[Want]:
    """The version of the agent itself."""
    call = fetch(talk)
    yield Want("A2A-CARD-003", call, change(call, lambda card: card.pop("version")))


@mutation(*V1, *OLD)
def a_skill_has_no_tags(talk: Talk) -> Iterator[Want]:
    """Many cards lack this member."""
    call = fetch(talk)
    yield Want("A2A-CARD-003", call, change(call, lambda card: card["skills"][0].pop("tags")))


@mutation(*V0_3)
def the_card_does_not_say_its_line(talk: Talk) -> Iterator[Want]:
    """No `protocolVersion`."""
    call = fetch(talk)
    yield Want("A2A-CARD-003", call, change(call, lambda card: card.pop("protocolVersion")))


@mutation(*SDK)
def an_interface_has_no_version(talk: Talk) -> Iterator[Want]:
    """Clients treat it as 0.3."""
    call = fetch(talk)
    yield Want(
        "A2A-CARD-004",
        call,
        change(call, lambda card: card["supportedInterfaces"][0].pop("protocolVersion")),
    )


@mutation(*V1)
def the_version_of_an_interface_is_a_number(talk: Talk) -> Iterator[Want]:
    """A number without the minor version."""
    call = fetch(talk)
    answer = change(call, lambda card: card["supportedInterfaces"][-1].update(protocolVersion="1"))
    yield Want("A2A-CARD-004", call, answer)


@mutation(*SDK, "concurrent-grpc")
def a_binding_is_misspelled(talk: Talk) -> Iterator[Want]:
    """`REST` is not the name of the binding."""
    call = fetch(talk)
    yield Want("A2A-CARD-005", call, edit_unused(talk, call, protocolBinding="REST"))


@mutation(*SDK)
def a_binding_of_the_extended_card_is_misspelled(talk: Talk) -> Iterator[Want]:
    """In the extended card."""
    call = extended(talk)
    yield Want("A2A-CARD-005", call, edit_unused(talk, call, protocolBinding="grpc-web"))


@mutation(*SDK, "concurrent-grpc")
def an_interface_has_a_path_for_a_url(talk: Talk) -> Iterator[Want]:
    """A relative URL."""
    call = fetch(talk)
    yield Want("A2A-CARD-006", call, edit_unused(talk, call, url="/a2a"))


@mutation(*SDK)
def an_interface_of_the_extended_card_has_a_path_for_a_url(talk: Talk) -> Iterator[Want]:
    """In the extended card."""
    call = extended(talk)
    yield Want("A2A-CARD-006", call, edit_unused(talk, call, url="agent/a2a"))


@mutation(*SDK, "concurrent-grpc")
def an_interface_is_not_encrypted(talk: Talk) -> Iterator[Want]:
    """On a public host."""
    call = fetch(talk)
    yield Want("A2A-CARD-007", call, edit_unused(talk, call, url="http://agent.example.com/a2a"))


@mutation(*V0_3)
def an_old_interface_is_not_encrypted(talk: Talk) -> Iterator[Want]:
    """The same in 0.3."""
    call = fetch(talk)
    answer = change(
        call,
        lambda card: card["additionalInterfaces"].append(
            {"transport": "GRPC", "url": "http://agent.example.com:50051"}
        ),
    )
    yield Want("A2A-CARD-007", call, answer)


@mutation(*V0_3)
def one_url_has_two_transports(talk: Talk) -> Iterator[Want]:
    """The gRPC interface has the URL of JSON-RPC."""
    call = fetch(talk)
    answer = change(
        call,
        lambda card: card["additionalInterfaces"].append({"transport": "GRPC", "url": card["url"]}),
    )
    yield Want("A2A-CARD-008", call, answer)


@mutation(*V0_3)
def the_preferred_transport_is_missing(talk: Talk) -> Iterator[Want]:
    """The transport of the main URL is unknown."""
    call = fetch(talk)
    yield Want("A2A-CARD-008", call, change(call, lambda card: card.pop("preferredTransport")))


def _served(talk: Talk) -> Iterator[Ex]:
    """Yield the calls that succeeded with the binding of the first call, except those for the
    extended card, which names interfaces itself."""
    first = talk.exchanges[1]
    for each in talk.exchanges[1:]:
        used = (
            each.facts.binding is first.facts.binding and each.operation != "GetExtendedAgentCard"
        )
        if used and succeeded(each):
            yield each


def _cards(talk: Talk) -> list[Ex]:
    return [*talk.all("GetAgentCard"), *talk.all("GetExtendedAgentCard")]


@mutation(*V1)
def the_interface_in_use_is_left_out(talk: Talk) -> Iterator[Want]:
    """It works although no card declares it."""
    used = _BINDINGS[talk.exchanges[1].facts.binding.name]

    for call in _cards(talk):
        change(call, without(used))
    yield from (Want("A2A-CARD-009", each) for each in _served(talk))


@mutation("sdk-1.x-jsonrpc", "sdk-1.x-rest")
def the_interfaces_are_at_another_path(talk: Talk) -> Iterator[Want]:
    """The client does not follow the cards."""

    def move(card: dict[str, Any]) -> None:
        for each in card["supportedInterfaces"]:
            each["url"] = each["url"].replace("/a2a/", "/agents/1/")

    for call in _cards(talk):
        change(call, move)
    yield from (Want("A2A-CARD-009", each) for each in _served(talk))


def _caches(talk: Talk) -> None:
    for each in talk.all("GetAgentCard"):
        each.set("cache-control", "max-age=3600", reply=True)
        each.set("etag", '"1"', reply=True)


@mutation(*V1, prepare=_caches)
def the_entity_tag_is_lost(talk: Talk) -> Iterator[Want]:
    """The whole card is fetched every time."""
    call = fetch(talk)
    call.set("etag", None, reply=True)
    yield Want("A2A-CARD-010", call)


@mutation(*V1, prepare=_caches)
def the_card_does_not_say_how_long_it_holds(talk: Talk) -> Iterator[Want]:
    """no-cache in place of max-age."""
    call = fetch(talk)
    call.set("cache-control", "no-cache", reply=True)
    yield Want("A2A-CARD-010", call)
