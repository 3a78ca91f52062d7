"""Agents that support undeclared capabilities, or do not support declared ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mutations.breaks_card import change, extended, succeeded
from mutations.breaks_ext import message, stream
from mutations.refuse import refuse
from support_mutations import Talk, Want, mutation

SDK = ("sdk-1.x-jsonrpc", "sdk-1.x-rest", "sdk-1.x-grpc")
V1 = (*SDK, "concurrent-grpc", "demo")
V0_3 = ("sdk-0.3-jsonrpc", "sdk-0.3-rest", "sdk-0.3-grpc")
OLD = (*V0_3, "dialect-0.2")
STREAMS = ("SendStreamingMessage", "SubscribeToTask")


def without(talk: Talk, capability: str) -> None:
    """Remove this capability from every card."""
    for call in (*talk.all("GetAgentCard"), *talk.all("GetExtendedAgentCard")):
        change(call, lambda card: card["capabilities"].pop(capability, None))


@mutation(*V1, *OLD)
def streaming_is_not_declared(talk: Talk) -> Iterator[Want]:
    """Streaming works although it is not declared."""
    without(talk, "streaming")
    for call in talk.exchanges:
        if call.operation in STREAMS:
            yield Want("A2A-CAP-001", call)
            if succeeded(call):
                yield Want("A2A-CAP-001", call, call.answers[0])


@mutation("concurrent-grpc", "demo", "dialect-0.2", "sdk-0.3-jsonrpc", "sdk-0.3-grpc")
def streaming_does_not_work(talk: Talk) -> Iterator[Want]:
    """The card declares it."""
    call = stream(talk)
    told = refuse(call, "UNSUPPORTED_OPERATION", "streaming is not supported")
    yield Want("A2A-CAP-002", call, told)


@mutation(*SDK)
def streaming_is_no_method(talk: Talk) -> Iterator[Want]:
    """The card declares it, and the server does not have the method."""
    call = stream(talk)
    told = refuse(call, "METHOD_NOT_FOUND", "there is no such method")
    yield Want("A2A-CAP-002", call, told)


@mutation(*SDK, "sdk-0.3-jsonrpc", "sdk-0.3-grpc")
def push_notifications_do_not_work(talk: Talk) -> Iterator[Want]:
    """The card declares them."""
    call = talk.first("GetTaskPushNotificationConfig")
    told = refuse(call, "PUSH_NOTIFICATION_NOT_SUPPORTED", "there are no push notifications")
    yield Want("A2A-CAP-002", call, told)


@mutation(*SDK, "js-three-bindings")
def an_extended_card_that_nobody_declares(talk: Talk) -> Iterator[Want]:
    """It is served although no card declares it."""
    for call in talk.all("GetAgentCard"):
        change(call, lambda card: card["capabilities"].pop("extendedAgentCard"))
    for call in talk.all("GetExtendedAgentCard"):
        yield Want("A2A-CAP-003", call, call.answers[0])


@mutation(*SDK)
def the_extended_card_is_not_supported(talk: Talk) -> Iterator[Want]:
    """It is declared: the error should be ExtendedAgentCardNotConfiguredError."""
    call = extended(talk)
    told = refuse(call, "UNSUPPORTED_OPERATION", "there is no extended card")
    yield Want("A2A-CAP-003", call, told)


@mutation(
    "sdk-1.x-jsonrpc", "sdk-1.x-grpc", "sdk-0.3-jsonrpc", "sdk-0.3-grpc", "concurrent-grpc", "demo"
)
def a_part_of_a_type_that_the_card_does_not_have(talk: Talk) -> Iterator[Want]:
    """The agent processes it."""
    call = stream(talk)

    def attach(asked: dict[str, Any]) -> None:
        sent = message(asked)
        if "content" in sent:
            sent["content"].append(
                {"file": {"fileWithUri": "https://example.com/cat.png", "mimeType": "image/png"}}
            )
        elif "kind" in sent["parts"][0]:
            file = {"uri": "https://example.com/cat.png", "mimeType": "image/png"}
            sent["parts"].append({"kind": "file", "file": file})
        else:
            sent["parts"].append({"url": "https://example.com/cat.png", "mediaType": "image/png"})

    call.requests[0].edit(attach)
    yield Want("A2A-CAP-004", call)


def _takes_text(talk: Talk) -> None:
    """The client accepts text, and the agent sends only text."""
    stream(talk).requests[0].edit(
        lambda asked: asked.setdefault("configuration", {}).update(
            acceptedOutputModes=["text/plain"]
        )
    )


@mutation(*V1, prepare=_takes_text)
def an_artifact_of_a_type_that_the_client_does_not_take(talk: Talk) -> Iterator[Want]:
    """The agent sends text and an image."""
    call = stream(talk)
    picture = {"url": "https://example.com/cat.png", "mediaType": "image/png"}
    chunk = next(
        each for each in call.answers if "artifactUpdate" in each.value.get("result", each.value)
    )
    chunk.edit(lambda event: event["artifactUpdate"]["artifact"]["parts"].append(picture))
    yield Want("A2A-CAP-005", call, chunk)
