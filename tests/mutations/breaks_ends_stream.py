"""Streams that end too early, too late, with an error, or that their client leaves."""

from __future__ import annotations

from collections.abc import Iterator

from mutations.events import SECOND, set_state, wait
from mutations.pick import JSONRPC, REST, change, stream
from support_mutations import Ex, Talk, Want, mutation

V1 = (
    "sdk-1.x-jsonrpc",
    "sdk-1.x-rest",
    "sdk-1.x-grpc",
    "js-three-bindings",
    "demo",
    "concurrent-grpc",
)
SDK1 = ("sdk-1.x-jsonrpc", "sdk-1.x-rest", "sdk-1.x-grpc", "js-three-bindings", "concurrent-grpc")
"""Their streams of six events and more are of tasks that nobody asks about later, and on which an
agent talks."""
OLD = ("sdk-0.3-jsonrpc", "sdk-0.3-rest", "sdk-0.3-grpc", "js-to-0.3", "dialect-0.2")
ALL = (*V1, *OLD)
NOT_ASKED = (*SDK1, *OLD)
MIDDLE = 5
"""The index of an event in the middle."""


# --- too late


@mutation(*ALL)
def it_ends_five_seconds_late(talk: Talk) -> Iterator[Want]:
    """All is told, and the stream stays open for a while."""
    call = stream(talk)
    call.ended += 5 * SECOND
    yield Want("A2A-STREAM-006", call)


@mutation(*ALL)
def it_does_not_end(talk: Talk) -> Iterator[Want]:
    """The client gives up after a minute."""
    call = stream(talk)
    call.ended += 60 * SECOND
    call.finish = "leave"
    yield Want("A2A-STREAM-006", call, call.answers[-1])


# --- too early


@mutation(*ALL)
def it_ends_in_working(talk: Talk) -> Iterator[Want]:
    """The terminal status is lost."""
    call = stream(talk)
    del call.answers[-1]
    yield Want("A2A-STREAM-007", call)


@mutation(*ALL)
def it_ends_after_its_first_event(talk: Talk) -> Iterator[Want]:
    """In SUBMITTED."""
    call = stream(talk)
    del call.answers[1:]
    yield Want("A2A-STREAM-007", call)


@mutation(*ALL)
def it_ends_before_it_begins(talk: Talk) -> Iterator[Want]:
    """Without any event."""
    call = stream(talk)
    call.answers = []
    yield Want("A2A-STREAM-009", call)


@mutation(*SDK1)
def it_ends_waiting_for_input(talk: Talk) -> Iterator[Want]:
    """INPUT_REQUIRED in place of COMPLETED."""
    call = stream(talk)
    set_state(call.answers[-1], "INPUT_REQUIRED")
    yield Want("A2A-STREAM-008", call)


@mutation(*SDK1)
def it_ends_waiting_for_credentials(talk: Talk) -> Iterator[Want]:
    """AUTH_REQUIRED in place of COMPLETED."""
    call = stream(talk)
    set_state(call.answers[-1], "AUTH_REQUIRED")
    yield Want("A2A-STREAM-008", call)


# --- by an error


@mutation("sdk-1.x-grpc", "sdk-0.3-grpc", "concurrent-grpc")
def the_agent_cancels_it(talk: Talk) -> Iterator[Want]:
    """With the status CANCELLED, which the client did not cause."""
    call = stream(talk)
    del call.answers[MIDDLE:]
    call.set("grpc-status", "1", trailer=True)
    yield Want("A2A-END-013", call)


@mutation(*V1, "sdk-0.3-jsonrpc", "sdk-0.3-grpc", "dialect-0.2")
def it_fails_in_the_middle(talk: Talk) -> Iterator[Want]:
    """An internal error in place of the rest."""
    call = stream(talk)
    error = call.answers[MIDDLE]
    if call.grpc:
        del call.answers[MIDDLE:]
        call.set("grpc-status", "13", trailer=True)
        call.set("grpc-message", "out of paper", trailer=True)
        yield Want("A2A-END-013", call)
    else:
        del call.answers[MIDDLE + 1 :]
        change(error, lambda body: _into_error(call, body))
        if (named := _framing_of_errors(talk)) is not None:
            error.framing = named
        yield Want("A2A-END-013", call)


def _framing_of_errors(talk: Talk) -> str | None:
    """How this agent frames an error on a stream elsewhere: one that does it in two ways is told
    of."""
    every = (
        each for call in talk.exchanges if call.streams and not call.grpc for each in call.answers
    )
    return next((each.framing for each in every if each.framing.startswith("event: error")), None)


def _into_error(call: Ex, body: dict[str, object]) -> None:
    if call.facts.binding is JSONRPC:
        del body["result"]
        body["error"] = {"code": -32603, "message": "out of paper"}
    elif call.facts.binding is REST:
        body.clear()
        body["error"] = {"code": 500, "status": "INTERNAL", "message": "out of paper"}


# --- by the client


@mutation(*NOT_ASKED)
def the_client_leaves_and_does_not_come_back(talk: Talk) -> Iterator[Want]:
    """In the middle; the recording goes on for a minute."""
    call = stream(talk)
    del call.answers[MIDDLE:]
    call.finish, call.ended = "leave", call.answers[-1].at + 2 * SECOND
    wait(talk, 60)
    yield Want("A2A-END-023", call)
