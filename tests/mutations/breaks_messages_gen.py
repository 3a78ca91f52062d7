"""A gap of two generations, of which a client's message explains one."""

from __future__ import annotations

from collections.abc import Iterator

from mutations.events import SECOND, read
from mutations.numbered import give, number_of, numbered, snapshot_call
from mutations.pick import stream
from support_mutations import Talk, Want, mutation

SDK = ("sdk-1.x-jsonrpc", "sdk-1.x-rest", "sdk-1.x-grpc")
CHUNK = 3
"""The index of the second chunk, which is 4."""


def interrupted(talk: Talk) -> None:
    """Numbers for clients of 1.0, and one more message to a task while it is at work."""
    numbered(talk)
    for call in talk.exchanges:
        call.set("a2a-version", "1.0" if call.field("a2a-version") else None)
    call = stream(talk)
    call.shift(CHUNK, 2 * SECOND)
    task = read(call.answers[0]) | {"status": read(call.answers[1])["status"], "generation": "3"}
    task["artifacts"] = [read(call.answers[CHUNK - 1])["artifact"]]
    snapshot_call(talk, call, task)


@mutation(*SDK, prepare=interrupted)
def an_event_is_lost_beside_a_message(talk: Talk) -> Iterator[Want]:
    """Two numbers are left out, and one message was sent in between."""
    call = stream(talk)
    for each in call.answers[CHUNK:]:
        give(each, number_of(each) + 2)
    yield Want("A2A-GEN-001", call, call.answers[CHUNK])
