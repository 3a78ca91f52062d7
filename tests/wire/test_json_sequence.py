"""JSON in place of an event stream."""

from __future__ import annotations

import time
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_proxy.wire.json_sequence import JsonSequence, guess_container
from a2a_proxy.wire.sse import SseEvent, rebuild_event
from support_wire import pieces_of, reload

BASE = 1000


def split(wire: bytes, cuts: Iterable[int] = (), *, restart: bool = False) -> list[SseEvent]:
    """All values of a body that stands unframed at offset `BASE`."""
    sequence, at = JsonSequence(), BASE
    out: list[SseEvent] = []
    for piece in pieces_of(wire, cuts):
        sequence.feed(piece, 7, at, at + len(piece), out)
        at += len(piece)
        if restart:
            sequence = reload(sequence)
    sequence.finish(7, out)
    return out


@pytest.mark.parametrize(
    ("wire", "values"),
    [
        (b'{"a":1}\n{"a":2}\n', [b'{"a":1}', b'{"a":2}', b""]),
        (b'{"a":1}\r\n\r\n{"a":2}', [b'{"a":1}', b'{"a":2}']),
        (b'\x1e{"a":1}\n\x1e[2]', [b'{"a":1}', b"2]"]),
        (b'[{"a":[{}]},\n{"a":2}]\n', [b'{"a":[{}]}', b'{"a":2}', b""]),
        (b'\xef\xbb\xbf{"a":"}"}{"b":"\\""}', [b'{"a":"}"}', b'{"b":"\\""}']),
        (b'{\n "a": [\n1\n]\n}, {}', [b'{\n "a": [\n1\n]\n}', b"{}"]),
        (b'{"a":1}\n<html>\n', [b'{"a":1}', b"<html>\n"]),
        (b'{"a":1}\n{"b', [b'{"a":1}', b'{"b']),
    ],
)
def test_each_value_is_an_event_in_every_split(wire: bytes, values: list[bytes]) -> None:
    """With its place, and the bytes between the values as framing."""
    whole = split(wire)
    assert [event.data for event in whole] == values
    for restart in (False, True):
        assert split(wire, range(len(wire)), restart=restart) == whole
        for cut in range(1, len(wire)):
            assert split(wire, (cut,), restart=restart) == whole, cut
    rebuilt = [rebuild_event(event.framing, event.data) for event in whole]
    assert b"".join(rebuilt) == wire
    assert [wire[event.start - BASE : event.end - BASE] for event in whole] == rebuilt


def test_the_last_value_is_complete_only_with_its_bracket() -> None:
    """A body that breaks off in a value."""
    assert [event.complete for event in split(b'{"a":1}\n{"a":')] == [True, False]


@given(st.binary(max_size=60).map(lambda data: b"{" + data), st.sets(st.integers(1, 60)))
@settings(deadline=None)
def test_any_bytes_can_be_rebuilt(wire: bytes, cuts: set[int]) -> None:
    """Also of bodies that are no JSON."""
    events = split(wire, sorted(cuts), restart=True)
    assert events == split(wire)
    assert b"".join(rebuild_event(event.framing, event.data) for event in events) == wire


@pytest.mark.parametrize(
    "wire",
    [
        b'{"a":"' + b"x" * 300_000 + b'"}\n',
        b"{}" + b"\n" * 300_000,
        b"[" * 300_000,
        b"{} oops" + b"x" * 300_000,
    ],
)
def test_the_work_is_linear_in_the_bytes(wire: bytes) -> None:
    """Whatever their pieces; what is held between two values is bounded."""
    began = time.process_time()
    events = split(wire, range(1, len(wire)))
    assert time.process_time() - began < 20
    assert b"".join(rebuild_event(event.framing, event.data) for event in events) == wire


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", ""),
        (b"\xef\xbb\xbf \r\n", ""),
        (b'\n{"', "json"),
        (b"\x1e", "records"),
        (b"{", ""),
        (b"[", ""),
        (b"[{", "json"),
        (b"[connected]", "other"),
        (b"{ok}", "other"),
        (b" data:", "other"),
        (b" " * 1024, "other"),
        (b"dat", ""),
        (b"data:", "sse"),
        (b": ping", "sse"),
        (b"\xef\xbb\xbfid: 1", "sse"),
        (b"<!DOCTYPE", "page"),
        (b"<!-- pad", "other"),
        (b"database", "other"),
        (b"upstream error", "other"),
    ],
)
def test_the_first_bytes_show_the_container(data: bytes, kind: str) -> None:
    """As soon as they suffice."""
    assert guess_container(data) == kind
