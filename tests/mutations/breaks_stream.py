"""Streams that lose, repeat or reorder events, end too early or too late."""

from __future__ import annotations

from collections.abc import Iterator

from support_mutations import Talk, Want, mutation

V1 = ("sdk-1.x-jsonrpc", "sdk-1.x-rest", "sdk-1.x-grpc")


@mutation(*V1)
def the_first_task_is_lost(talk: Talk) -> Iterator[Want]:
    """The stream begins with a status update."""
    stream = talk.first("SendStreamingMessage")
    del stream.answers[0]
    yield Want("A2A-STREAM-001", stream, stream.answers[0])
