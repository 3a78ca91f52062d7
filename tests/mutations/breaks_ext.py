"""Extensions that were not requested, declared or activated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mutations.breaks_card import change, succeeded
from support_mutations import Ex, Talk, Want, mutation

SDK = ("sdk-1.x-jsonrpc", "sdk-1.x-rest", "sdk-1.x-grpc")
V1 = (*SDK, "concurrent-grpc", "demo")
OLD = ("sdk-0.3-jsonrpc", "sdk-0.3-rest", "sdk-0.3-grpc", "dialect-0.2")
A, A2, B = "https://example.com/ext/a/v1", "https://example.com/ext/a/v2", "urn:example:ext:b"


def name(call: Ex) -> str:
    """Return the header field of the protocol version."""
    old = call.facts.dialect in ("0.3", "0.2")
    plain = "X-A2A-Extensions" if old else "A2A-Extensions"
    return plain.lower() if call.grpc else plain


def sends(talk: Talk) -> list[Ex]:
    """Return the messages that were answered with an A2A object."""
    calls = [*talk.all("SendMessage"), *talk.all("SendStreamingMessage")]
    return [each for each in calls if succeeded(each)]


def _speaks(talk: Talk) -> None:
    """The card declares the extension, every message requests it, every answer activates it."""
    declared = {"uri": A, "description": "adds something"}
    for call in talk.all("GetAgentCard"):
        change(call, lambda card: card["capabilities"].update(extensions=[declared]))
    for call in sends(talk):
        call.set(name(call), A)
        call.set(name(call), A, reply=True)


def _requires(talk: Talk) -> None:
    """The card requires the extension."""
    _speaks(talk)
    for call in talk.all("GetAgentCard"):
        change(call, lambda card: card["capabilities"]["extensions"][0].update(required=True))
    for call in (*talk.all("SendMessage"), *talk.all("SendStreamingMessage")):
        call.set(name(call), A)


@mutation(*V1, prepare=_requires)
def a_required_extension_is_not_asked_for(talk: Talk) -> Iterator[Want]:
    """The agent processes the message."""
    call = sends(talk)[0]
    call.set(name(call), None)
    yield Want("A2A-EXT-001", call)
    yield Want("A2A-EXT-001", call, call.answers[0])
    yield Want("A2A-EXT-003", call)


@mutation(*V1, *OLD, prepare=_speaks)
def an_extension_is_asked_for_that_nobody_declares(talk: Talk) -> Iterator[Want]:
    """The agent leaves it out."""
    call = sends(talk)[0]
    call.set(name(call), f"{A}, {B}")
    yield Want("A2A-EXT-002", call)


@mutation(*V1, *OLD, prepare=_speaks)
def an_extension_is_active_that_nobody_asked_for(talk: Talk) -> Iterator[Want]:
    """No request names it."""
    call = sends(talk)[0]
    call.set(name(call), f"{A}, {B}", reply=True)
    yield Want("A2A-EXT-003", call)


@mutation("sdk-1.x-grpc", "concurrent-grpc", "demo", "sdk-0.3-grpc", prepare=_speaks)
def an_extension_is_active_in_trailers(talk: Talk) -> Iterator[Want]:
    """No request names it."""
    call = next(each for each in sends(talk) if each.grpc)
    call.set(name(call), B, trailer=True)
    yield Want("A2A-EXT-003", call)


@mutation(*V1, *OLD, prepare=_speaks)
def an_extension_is_no_uri(talk: Talk) -> Iterator[Want]:
    """A short name."""
    call = sends(talk)[0]
    call.set(name(call), f"{A}, traces", reply=True)
    yield Want("A2A-EXT-004", call)
    yield Want("A2A-EXT-003", call)


@mutation(
    "sdk-1.x-jsonrpc", "sdk-1.x-rest", "demo", "sdk-0.3-jsonrpc", "sdk-0.3-rest", prepare=_speaks
)
def extensions_in_two_fields(talk: Talk) -> Iterator[Want]:
    """A single list is expected."""
    call = sends(talk)[0]
    call.headers.append([name(call).encode(), A.encode()])
    yield Want("A2A-EXT-004", call)


@mutation("sdk-1.x-grpc", "concurrent-grpc", "sdk-0.3-grpc", prepare=_speaks)
def extensions_in_two_entries(talk: Talk) -> Iterator[Want]:
    """Two entries of gRPC metadata."""
    call = sends(talk)[0]
    call.headers.append([name(call).encode(), A.encode()])
    yield Want("A2A-GRPC-014", call)


@mutation(*V1, *OLD, prepare=_speaks)
def the_request_has_the_name_of_another_line(talk: Talk) -> Iterator[Want]:
    """With X- in 1.0, without in 0.3."""
    call = sends(talk)[0]
    right = name(call)
    call.set(right, None)
    other = right[2:] if right.lower().startswith("x-") else f"X-{right}"
    call.set(other.lower() if call.grpc else other, A)
    yield Want("A2A-EXT-005", call)


@mutation(*SDK, "demo", prepare=_speaks)
def the_answer_has_the_name_of_another_line(talk: Talk) -> Iterator[Want]:
    """The client does not recognise it."""
    call = sends(talk)[0]
    call.set(name(call), None, reply=True)
    call.set(f"x-{name(call).lower()}", A, reply=True)
    yield Want("A2A-EXT-005", call)


@mutation(*V1, *OLD, prepare=_speaks)
def a_message_uses_what_it_does_not_ask_for(talk: Talk) -> Iterator[Want]:
    """The message names it in `extensions`."""
    call = sends(talk)[0]
    call.requests[0].edit(lambda asked: message(asked).update(extensions=[B]))
    yield Want("A2A-EXT-006", call, call.requests[0])


def message(asked: dict[str, Any]) -> dict[str, Any]:
    """Return the client's message; gRPC of 0.3 calls it the request."""
    found: dict[str, Any] = asked.get("message") or asked["request"]
    return found


def _artifact(call: Ex, uri: str) -> Any:
    """The first artifact of a stream uses an extension."""
    for answer in call.answers:
        if "artifactUpdate" in answer.value.get("result", answer.value):
            answer.edit(lambda event: event["artifactUpdate"]["artifact"].update(extensions=[uri]))
            return answer
    raise AssertionError("there is no artifact")


def stream(talk: Talk) -> Ex:
    """Return a stream with an artifact that shows its task from the beginning."""
    return next(each for each in sends(talk) if len(each.answers) > 5)


@mutation(*V1, prepare=_speaks)
def an_artifact_uses_what_is_not_active(talk: Talk) -> Iterator[Want]:
    """In one chunk."""
    call = stream(talk)
    yield Want("A2A-EXT-006", call, _artifact(call, B))


@mutation(*V1, prepare=_speaks)
def another_version_is_activated(talk: Talk) -> Iterator[Want]:
    """The second in place of the first."""
    call = sends(talk)[-1]
    call.set(name(call), A2, reply=True)
    yield Want("A2A-EXT-007", call)
