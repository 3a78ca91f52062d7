"""Conversations as lists of steps, fed to a wire decoder in any split, saved and restored
anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from a2a_proxy.model.saved_state import decode_state, encode_state
from a2a_proxy.model.wire import Body, Direction, WireEvent

Step = tuple[str, bytes]
"""The sender: `C` client, `S` agent; `c-eof`, `s-reset`, `c-lost` and similar steps have no
bytes."""


class Decoder(Protocol):
    """The interface of every decoder of a whole connection."""

    def feed(self, direction: Direction, data: bytes, at: int, out: list[WireEvent]) -> None: ...


def pieces_of(data: bytes, cuts: Iterable[int]) -> Iterator[bytes]:
    """Yield the pieces of `data`, split at each of `cuts`."""
    last = 0
    for cut in [*sorted({c for c in cuts if 0 < c < len(data)}), len(data)]:
        yield data[last:cut]
        last = cut


def reload(decoder: Any) -> Any:
    """Return the decoder restored from its state as msgpack, as in a snapshot file."""
    return decode_state(encode_state(decoder), type(decoder))


FEED_END = {"eof": "feed_eof", "reset": "feed_reset", "lost": "feed_loss"}
"""The end of a direction, as in `Cut.how` -> the method of a decoder."""


def play(
    decoder: Any,
    steps: list[Step],
    cut: Callable[[bytes], Iterable[int]] = lambda _: (),
    restart: bool = False,
) -> list[WireEvent]:
    """Feed a conversation, each step split by `cut`; with `restart` the decoder is saved and
    restored at each split."""
    out: list[WireEvent] = []
    for number, (what, data) in enumerate(steps, 1):
        direction = Direction.TO_AGENT if what[0] in "Cc" else Direction.TO_CLIENT
        if len(what) > 1:
            getattr(decoder, FEED_END[what[2:]])(direction, number * 1000, out)
            continue
        for piece in pieces_of(data, cut(data)):
            decoder.feed(direction, piece, number * 1000, out)
            if restart:
                decoder = reload(decoder)
    return merged(out)


def merged(events: Iterable[WireEvent]) -> list[WireEvent]:
    """Return the same events with adjacent pieces of one body joined."""
    out: list[WireEvent] = []
    for event in events:
        last = out[-1] if out else None
        if (
            isinstance(event, Body)
            and isinstance(last, Body)
            and (event.stream, event.direction, event.start)
            == (last.stream, last.direction, last.end)
        ):
            out[-1] = Body(
                event.stream,
                event.direction,
                event.at,
                last.start,
                event.end,
                last.data + event.data,
            )
        else:
            out.append(event)
    return out


def in_every_split(make: Callable[[], Any], steps: list[Step]) -> list[WireEvent]:
    """Decode it whole, byte by byte and split once at each boundary, without and with restarts;
    check that all results are equal."""
    whole = play(make(), steps)
    for restart in (False, True):
        assert play(make(), steps, lambda data: range(len(data)), restart) == whole
    longest = max((len(raw) for _, raw in steps), default=0)
    for boundary in range(1, longest):
        assert play(make(), steps, lambda _, b=boundary: (b,), restart=True) == whole, boundary  # type: ignore[misc]
    return whole
