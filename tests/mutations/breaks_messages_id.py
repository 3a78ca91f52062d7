"""Ids of messages that are used again, tasks that nobody knows, tenants that are not the card's."""

from __future__ import annotations

from collections.abc import Iterator

from mutations.objects import (
    SDK,
    alter,
    looked_up,
    member,
    named,
    said,
    says,
    sends,
    streams,
)
from mutations.pick import GRPC, JSONRPC, REST, stream
from support_mutations import Talk, Want, mutation

STATUS = 6
"""In the stream of nine events: a status in the middle."""


# --- messages


@mutation(*SDK)
def a_client_uses_a_message_id_again(talk: Talk) -> Iterator[Want]:
    """For other words."""
    first, second = sends(talk, "unary"), streams(talk, "stream")
    named(second, said(second.requests[0])["messageId"], said(first.requests[0])["messageId"])
    yield Want("A2A-ID-009", second, second.requests[0])


@mutation(*SDK)
def a_client_sends_a_message_twice(talk: Talk) -> Iterator[Want]:
    """And the agent makes a second task of it."""
    first, second = [each for each in talk.all("SendMessage") if says(each, "unary")][:2]
    named(second, said(second.requests[0])["messageId"], said(first.requests[0])["messageId"])
    yield Want("A2A-ID-009", second, second.requests[0])


@mutation(*SDK)
def an_agent_uses_a_message_id_again(talk: Talk) -> Iterator[Want]:
    """For the words of another status."""
    call = stream(talk)
    first = member(call.answers[1], "status")["message"]["messageId"]
    alter(call.answers[STATUS], lambda body: body["status"]["message"].update(messageId=first))
    yield Want("A2A-ID-015", call, call.answers[STATUS])


# --- tenants


@mutation("sdk-1.x-jsonrpc", "sdk-1.x-grpc")
def a_tenant_that_the_card_does_not_have(talk: Talk) -> Iterator[Want]:
    """In a call of GetTask."""
    call = looked_up(talk)
    alter(call.requests[0], lambda params: params.update(tenant="billing"))
    yield Want("A2A-ID-013", call, call.requests[0])


@mutation("sdk-1.x-rest")
def a_tenant_in_the_query(talk: Talk) -> Iterator[Want]:
    """The same where it is part of the target."""
    call = looked_up(talk)
    call.target += "&tenant=billing"
    yield Want("A2A-ID-013", call)


def _with_tenant(talk: Talk, name: str) -> None:
    def own(body: dict[str, object]) -> None:
        offers = body["supportedInterfaces"]
        assert isinstance(offers, list)
        for each in offers:
            if each["protocolBinding"] == name:
                each["tenant"] = "billing"

    alter(talk.first("GetAgentCard").answers[0], own)


@mutation("demo")
def the_card_has_a_tenant_on_jsonrpc(talk: Talk) -> Iterator[Want]:
    """And the client never says it."""
    _with_tenant(talk, "JSONRPC")
    for each in talk.exchanges:
        if each.facts.binding is JSONRPC:
            yield Want("A2A-ID-013", each, each.requests[0])


@mutation("demo")
def the_card_has_a_tenant_on_rest(talk: Talk) -> Iterator[Want]:
    """The same on REST; a GET has no body to find it in."""
    _with_tenant(talk, "HTTP+JSON")
    for each in talk.exchanges:
        if each.facts.binding is REST:
            yield Want("A2A-ID-013", each, each.requests[0] if each.requests else None)


@mutation("demo", "concurrent-grpc")
def the_card_has_a_tenant_on_grpc(talk: Talk) -> Iterator[Want]:
    """The same on gRPC."""
    _with_tenant(talk, "GRPC")
    for each in talk.exchanges:
        if each.facts.binding is GRPC:
            yield Want("A2A-ID-013", each, each.requests[0])
