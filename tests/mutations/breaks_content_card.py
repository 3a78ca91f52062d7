"""Agent cards that change in silence, give secrets away, or require what they do not define."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from a2a_proxy.rules.examples.objects import sign_card
from mutations.breaks_card import OLD, SDK, V0_3, V1, change, extended, fetch, succeeded, without
from support_mutations import Talk, Want, mutation


@mutation("js-three-bindings")
def the_card_changes_and_its_version_does_not(talk: Talk) -> Iterator[Want]:
    """The third fetch brings another description."""
    call = talk.all("GetAgentCard")[-1]
    yield Want(
        "A2A-CARD-011", call, change(call, lambda card: card.update(description="plays behaviour"))
    )


@mutation(*V1)
def the_card_changes_after_a_while(talk: Talk) -> Iterator[Want]:
    """A skill is there in the second fetch, the version is the old one."""
    call = talk.add(fetch(talk), after=max(talk.exchanges, key=lambda each: each.ended))

    def add(card: dict[str, Any]) -> None:
        card["skills"].append(card["skills"][0] | {"id": "more"})

    yield Want("A2A-CARD-011", call, change(call, add))
    if not call.field("cache-control", reply=True):
        yield Want("A2A-CARD-010", call)


def _sign(
    card: dict[str, Any],
    protected: str = "eyJhbGciOiJFUzI1NiIsImtpZCI6ImsxIn0",
    signed: str = "c2ln",
) -> None:
    card["signatures"] = [{"protected": protected, "signature": signed}]


@mutation(*V1, *V0_3)
def a_signature_has_no_header(talk: Talk) -> Iterator[Want]:
    """What is protected is no JSON."""
    call = fetch(talk)
    yield Want(
        "A2A-CARD-012", call, change(call, lambda card: _sign(card, protected="bm90IGpzb24"))
    )


@mutation(*V1, *V0_3)
def a_signature_names_no_key(talk: Talk) -> Iterator[Want]:
    """`{"alg":"ES256"}`: the signature is not verified either."""
    call = fetch(talk)
    message = change(call, lambda card: _sign(card, protected="eyJhbGciOiJFUzI1NiJ9"))
    yield Want("A2A-CARD-012", call, message)
    yield Want("A2A-CARD-013", call, message)


@mutation(*SDK)
def the_extended_card_is_signed_in_the_wrong_alphabet(talk: Talk) -> Iterator[Want]:
    """Base64, not base64url."""
    call = extended(talk)
    yield Want("A2A-CARD-012", call, change(call, lambda card: _sign(card, signed="+/+/")))


def _serves_signed_cards(talk: Talk) -> None:
    """Every card is signed with the key of `--card-keys`."""
    for operation in ("GetAgentCard", "GetExtendedAgentCard"):
        for call in talk.all(operation):
            if succeeded(call):
                change(call, lambda card: card.update(sign_card(card)))


@mutation(*V1, prepare=_serves_signed_cards)
def a_signed_card_is_altered(talk: Talk) -> Iterator[Want]:
    """On the way, in its description."""
    call = fetch(talk)
    yield Want(
        "A2A-CARD-013", call, change(call, lambda card: card.update(description="plays behaviour"))
    )


@mutation(*V1, prepare=_serves_signed_cards)
def a_signature_is_that_of_another_card(talk: Talk) -> Iterator[Want]:
    """Of the same signer."""
    call = fetch(talk)
    other = sign_card({"name": "Another"})["signatures"]
    yield Want("A2A-CARD-013", call, change(call, lambda card: card.update(signatures=other)))


@mutation(*SDK, prepare=_serves_signed_cards)
def a_signed_extended_card_is_altered(talk: Talk) -> Iterator[Want]:
    """In a skill."""
    call = extended(talk)
    yield Want(
        "A2A-CARD-013",
        call,
        change(call, lambda card: card["skills"][0].update(description="Other")),
    )


@mutation(*V1)
def a_requirement_names_no_scheme(talk: Talk) -> Iterator[Want]:
    """One that the card does not define."""
    call = fetch(talk)
    answer = change(
        call,
        lambda card: card.update(securityRequirements=[{"schemes": {"oauth": {"list": ["read"]}}}]),
    )
    yield Want("A2A-CARD-014", call, answer)


@mutation(*SDK)
def a_skill_requires_no_scheme(talk: Talk) -> Iterator[Want]:
    """In the extended card."""
    call = extended(talk)
    needs = [{"schemes": {"key": {}}}]
    answer = change(call, lambda card: card["skills"][0].update(securityRequirements=needs))
    yield Want("A2A-CARD-014", call, answer)


@mutation(*V0_3)
def an_old_requirement_names_no_scheme(talk: Talk) -> Iterator[Want]:
    """`security` of 0.3."""
    call = fetch(talk)
    yield Want(
        "A2A-CARD-014", call, change(call, lambda card: card.update(security=[{"oauth": ["read"]}]))
    )


def _serves_both(talk: Talk) -> None:
    """Cards for clients of 0.3 as well."""

    def add(card: dict[str, Any]) -> None:
        url = card["supportedInterfaces"][0]["url"]
        card["supportedInterfaces"].append(
            {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "0.3"}
        )
        card |= {"url": url, "preferredTransport": "JSONRPC", "protocolVersion": "0.3.0"}
        card["supportsAuthenticatedExtendedCard"] = "extendedAgentCard" in card["capabilities"]

    for call in talk.all("GetAgentCard"):
        change(call, add)


@mutation(*V1, prepare=_serves_both)
def old_and_new_members_disagree(talk: Talk) -> Iterator[Want]:
    """Clients of 0.3 go elsewhere."""
    call = fetch(talk)
    yield Want(
        "A2A-CARD-015", call, change(call, lambda card: card.update(url="http://127.0.0.1:1/"))
    )


@mutation(*SDK, "js-three-bindings", prepare=_serves_both)
def old_and_new_members_disagree_about_the_extended_card(talk: Talk) -> Iterator[Want]:
    """There is one, and old clients are told that there is none."""
    call = talk.all("GetAgentCard")[-1]
    answer = change(call, lambda card: card.update(supportsAuthenticatedExtendedCard=False))
    yield Want("A2A-CARD-015", call, answer)
    if call is not fetch(talk):
        yield Want("A2A-CARD-011", call, answer)


@mutation(*V1, *OLD)
def a_password_stands_in_the_card(talk: Talk) -> Iterator[Want]:
    """In a URL."""
    call = fetch(talk)
    url = "https://ann:pa55w0rd@docs.example.com"
    yield Want("A2A-CARD-016", call, change(call, lambda card: card.update(documentationUrl=url)))


@mutation(*SDK)
def a_key_stands_in_the_extended_card(talk: Talk) -> Iterator[Want]:
    """In a description."""
    call = extended(talk)
    text = "call it with Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl"
    yield Want("A2A-CARD-016", call, change(call, lambda card: card.update(description=text)))


@mutation(*V1, *OLD)
def two_skills_have_one_id(talk: Talk) -> Iterator[Want]:
    """The second cannot be named."""
    call = fetch(talk)
    yield Want(
        "A2A-CARD-017", call, change(call, lambda card: card["skills"].append(card["skills"][0]))
    )


@mutation(*V1, *OLD)
def a_mode_is_no_media_type(talk: Talk) -> Iterator[Want]:
    """Two words."""
    call = fetch(talk)
    yield Want(
        "A2A-CARD-017",
        call,
        change(call, lambda card: card["defaultOutputModes"].append("plain text")),
    )


def _live(talk: Talk) -> None:
    for call in (*talk.all("GetAgentCard"), *talk.all("GetExtendedAgentCard")):
        change(call, lambda card: card["capabilities"].update(bidiStreaming=True))


@mutation("sdk-1.x-jsonrpc", "sdk-1.x-rest", prepare=_live)
def live_streams_without_grpc(talk: Talk) -> Iterator[Want]:
    """The interface that they need is gone."""
    call = fetch(talk)
    yield Want("A2A-CARD-018", call, change(call, without("GRPC")))
