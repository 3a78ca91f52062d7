"""Conversations as lists of steps, fed to a wire decoder in any split, saved and restored anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import msgspec

from a2a_proxy.model.chunk import Direction
from a2a_proxy.model.wire import Body, WireEvent

Step = tuple[str, bytes]
"""`C` the client sends bytes, `S` the agent does; `c-eof`, `s-reset`, `c-lost` and so on have no bytes."""


class Decoder(Protocol):
    """What every decoder of a whole connection can do."""

    def feed(self, direction: Direction, data: bytes, at: int, out: list[WireEvent]) -> None: ...
    def save(self) -> dict[str, object]: ...


def pieces_of(data: bytes, cuts: Iterable[int]) -> Iterator[bytes]:
    """`data` cut at each of `cuts`."""
    last = 0
    for cut in [*sorted({c for c in cuts if 0 < c < len(data)}), len(data)]:
        yield data[last:cut]
        last = cut


def reload(decoder: Any) -> Any:
    """The decoder after its state went through msgpack, as in a snapshot file."""
    return type(decoder).restore(msgspec.msgpack.decode(msgspec.msgpack.encode(decoder.save())))


def play(
    decoder: Any, steps: list[Step], cut: Callable[[bytes], Iterable[int]] = lambda _: (), restart: bool = False
) -> list[WireEvent]:
    """Feed a conversation, each step cut by `cut`; with `restart` the decoder is saved and restored at each cut."""
    out: list[WireEvent] = []
    for number, (what, data) in enumerate(steps, 1):
        direction = Direction.TO_AGENT if what[0] in "Cc" else Direction.TO_CLIENT
        if len(what) > 1:
            getattr(decoder, what[2:])(direction, number * 1000, out)
            continue
        for piece in pieces_of(data, cut(data)):
            decoder.feed(direction, piece, number * 1000, out)
            if restart:
                decoder = reload(decoder)
    return merged(out)


def merged(events: Iterable[WireEvent]) -> list[WireEvent]:
    """The same events with adjacent pieces of one body put together."""
    out: list[WireEvent] = []
    for event in events:
        last = out[-1] if out else None
        if (
            isinstance(event, Body)
            and isinstance(last, Body)
            and (event.stream, event.direction, event.start) == (last.stream, last.direction, last.end)
        ):
            out[-1] = Body(event.stream, event.direction, event.at, last.start, event.end, last.data + event.data)
        else:
            out.append(event)
    return out


def in_every_split(make: Callable[[], Any], steps: list[Step]) -> list[WireEvent]:
    """Play whole, byte by byte and cut once at each boundary, without and with restarts; all must give the same."""
    whole = play(make(), steps)
    for restart in (False, True):
        assert play(make(), steps, lambda data: range(len(data)), restart) == whole
    longest = max((len(raw) for _, raw in steps), default=0)
    for boundary in range(1, longest):
        assert play(make(), steps, lambda _, b=boundary: (b,), restart=True) == whole, boundary  # type: ignore[misc]
    return whole
