"""WebSockets: messages in every split, the end of the socket, and what RFC 6455 forbids."""

from __future__ import annotations

import time
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Event, Message, Ping, Pong, TextMessage
from wsproto.extensions import PerMessageDeflate

from a2a_proxy.model.wire import Control, Cut, Direction, End, Framed, Head, Undecodable, WireEvent
from a2a_proxy.wire import deflated_messages
from a2a_proxy.wire.body import TRUNCATED_SIZE
from a2a_proxy.wire.connection import ConnectionDecoder
from a2a_proxy.wire.content import MAX_RATIO, RATIO_SLACK
from a2a_proxy.wire.websocket import agreed_extensions
from support_websocket import (
    BINARY,
    CLOSE,
    CONTINUATION,
    KEY,
    PING,
    PONG,
    TEXT,
    Deflater,
    agreed,
    asked,
    closing,
    frame,
    up,
)
from support_wire import Step, in_every_split, play, reload

OPENING: list[Step] = [("C", asked()), ("S", agreed())]
DEFLATED: list[Step] = [("C", asked()), ("S", agreed(extensions="permessage-deflate"))]
WAYS = {Direction.TO_AGENT: "C", Direction.TO_CLIENT: "S"}


def unread(events: list[WireEvent]) -> Undecodable:
    """The one place from which on a direction is not decoded."""
    (event,) = [each for each in events if isinstance(each, Undecodable)]
    return event


def brief(events: list[WireEvent]) -> list[tuple[Any, ...]]:
    """What is in the events after the handshake."""
    found: list[tuple[Any, ...]] = []
    for each in events:
        if isinstance(each, Framed):
            marks = [*(["binary"] * each.is_binary), *([each.broken] * bool(each.broken))]
            found.append((WAYS[each.direction], each.data, *marks))
        elif isinstance(each, Control) and each.name != "upgrade":
            found.append((WAYS[each.direction], each.name, each.detail))
        elif isinstance(each, Undecodable):
            found.append((WAYS[each.direction], "expected", each.expected, each.got))
        elif isinstance(each, Cut):
            found.append((WAYS[each.direction], "cut", each.how))
        elif isinstance(each, End) and each.direction is Direction.TO_CLIENT:
            found.append(("end",))
    return found


def read(*steps: Step, opening: list[Step] = OPENING) -> list[WireEvent]:
    """All events, in every split."""
    return in_every_split(ConnectionDecoder, [*opening, *steps])


def counters(*steps: Step, opening: list[Step] = OPENING) -> dict[str, int]:
    """The counters, also of a decoder that was saved."""
    decoder = ConnectionDecoder()
    play(decoder, [*opening, *steps])
    assert dict(reload(decoder).counters) == dict(decoder.counters)
    assert decoder.protocol == reload(decoder).protocol == "websocket"
    return dict(decoder.counters)


def test_messages_and_the_end_of_a_socket() -> None:
    """Fragments with a ping between them, an empty message, the closing handshake."""
    steps: list[Step] = [
        ("C", up(TEXT, b"hel", last=False) + up(PING, b"?") + up(CONTINUATION, b"lo")),
        ("S", frame(PONG, b"?") + frame(BINARY, b"\0\xff") + frame(TEXT)),
        ("C", up(PING, b"again") + up(TEXT, "né".encode())),
        ("S", frame(CLOSE, closing(1001, "bye"))),
        ("C", up(CLOSE, closing(1001))),
        ("s-eof", b""),
        ("c-eof", b""),
    ]
    events = read(*steps)
    assert brief(events) == [
        ("C", "ping", {}),
        ("C", b"hello"),
        ("S", b"\0\xff", "binary"),
        ("S", b""),
        ("C", "né".encode()),
        ("S", "close", {"code": 1001, "reason": "bye"}),
        ("C", "close", {"code": 1001, "reason": ""}),
        ("end",),
    ]
    heads = [each for each in events if isinstance(each, Head)]
    assert [each.status for each in heads] == [0, 101]
    hello = next(each for each in events if isinstance(each, Framed))
    first = len(asked())
    assert (hello.start, hello.end, hello.size) == (first, first + len(steps[0][1]), 5)
    assert (hello.began, hello.at) == (3000, 3000)
    assert counters(*steps) == {"ping": 2, "pong": 1}


@pytest.mark.parametrize(
    ("steps", "end"),
    [
        ([("c-eof", b""), ("s-eof", b"")], [("C", "cut", "eof"), ("S", "cut", "eof")]),
        ([("s-eof", b""), ("c-eof", b"")], [("S", "cut", "eof")]),
        ([("c-reset", b"")], [("C", "cut", "reset")]),
        ([("s-lost", b""), ("s-eof", b"")], [("S", "cut", "lost")]),
        ([("C", up(CLOSE)), ("S", frame(TEXT, b"x")), ("s-eof", b"")],
         [("C", "close", {}), ("S", b"x"), ("end",)]),
        ([("C", up(CLOSE)), ("c-reset", b"")], [("C", "close", {}), ("end",)]),
        ([("C", up(CLOSE)), ("c-lost", b"")], [("C", "close", {}), ("C", "cut", "lost")]),
    ],
)  # fmt: skip
def test_ends(steps: list[Step], end: list[tuple[Any, ...]]) -> None:
    """Proper after a close frame of either peer, whoever ends the connection then."""
    assert brief(read(*steps)) == end


HALF = frame(TEXT, b"half of it", last=False)
HALF_UP = up(TEXT, b"half of it", last=False)


@pytest.mark.parametrize(
    ("steps", "end", "opaque"),
    [
        ([("S", HALF), ("s-eof", b"")], [("S", b"half of it"), ("S", "cut", "eof")], 0),
        ([("S", HALF + b"\0"), ("s-reset", b"")],
         [("S", b"half of it"), ("S", "cut", "reset"), ("S", "expected")], 1),
        ([("S", HALF[:6]), ("s-reset", b"")], [("S", b"half"), ("S", "cut", "reset")], 0),
        ([("S", HALF[:1]), ("s-reset", b"")], [("S", "cut", "reset"), ("S", "expected")], 1),
        ([("S", frame(PING, b"ping")[:4]), ("s-eof", b"")],
         [("S", "cut", "eof"), ("S", "expected")], 4),
        ([("S", HALF), ("C", HALF_UP), ("c-lost", b"")],
         [("S", b"half of it"), ("C", b"half of it"), ("C", "cut", "lost")], 0),
        ([("S", HALF + frame(CLOSE)), ("s-eof", b"")],
         [("S", b"half of it"), ("S", "close", {}), ("end",)], 0),
        ([("s-eof", b""), ("C", HALF_UP), ("c-eof", b"")],
         [("S", "cut", "eof"), ("C", b"half of it")], 0),
        ([("C", HALF_UP), ("c-eof", b""), ("S", frame(TEXT, b"x"))],
         [("C", b"half of it"), ("C", "cut", "eof"), ("S", b"x")], 0),
    ],
)  # fmt: skip
def test_a_message_that_breaks_off(
    steps: list[Step], end: list[tuple[Any, ...]], opaque: int
) -> None:
    """What has arrived of it is emitted, and the bytes of a frame that are in no event are
    counted."""
    broken = ((b"half of it",), (b"half",))
    expected = [(*each, "broke off") if each[1:2] in broken else each for each in end]
    events = read(*steps)
    found = brief(events)
    assert [each[:2] if each[1:2] == ("expected",) else each for each in found] == expected
    assert sum(counters(*steps).values()) == opaque
    if opaque:
        assert (unread(events).got, unread(events).is_fault) == ("no more bytes", False)


def test_a_compressed_message_that_breaks_off() -> None:
    """Its bytes up to there are decompressed."""
    data = frame(BINARY, Deflater().compress(b"words"), last=False, reserved=4)
    events = read(("S", data), ("s-eof", b""), opening=DEFLATED)
    assert brief(events) == [("S", b"words", "binary", "broke off"), ("S", "cut", "eof")]


REFUSED: dict[str, tuple[Step, str, bytes]] = {
    "a client without mask": (("C", frame(TEXT, b"x")), "a masked frame", up(TEXT, b"x")),
    "an agent with mask": (
        ("S", frame(TEXT, b"x", key=KEY)), "a frame without mask", frame(TEXT, b"x"),
    ),
    "an unknown opcode": (("S", frame(3)), "an opcode of RFC 6455", frame(PONG)),
    "a reserved bit": (("S", frame(TEXT, reserved=4)), "reserved bits that are 0", frame(TEXT)),
    "a fragment of a ping": (
        ("S", frame(PING, last=False)), "a control frame of at most 125 bytes", frame(PING),
    ),
    "a long ping": (
        ("S", frame(PING, bytes(126))), "a control frame of at most 125 bytes",
        frame(PING, bytes(125)),
    ),
    "a rest without beginning": (
        ("S", frame(CONTINUATION)), "the beginning of a message",
        frame(TEXT, last=False) + frame(CONTINUATION),
    ),
    "a beginning in a message": (
        ("S", frame(TEXT, last=False) + frame(TEXT)), "the rest of a message",
        frame(TEXT, last=False) + frame(PING) + frame(CONTINUATION, last=False),
    ),
    "a size in too many bytes": (
        ("S", frame(TEXT, size=b"\x7e\0\x7d")), "a size in the shortest form",
        frame(TEXT, bytes(126)),
    ),
    "half a close code": (
        ("S", frame(CLOSE, b"\x03")), "a close code that may be sent (RFC 6455 7.4)", frame(CLOSE),
    ),
    "text that is not UTF-8": (
        ("S", frame(TEXT, b"\xff")), "a text message in UTF-8", frame(BINARY, b"\xff"),
    ),
    "half a letter": (
        ("S", frame(TEXT, b"\xc3")), "a text message in UTF-8",
        frame(TEXT, b"\xc3", last=False) + frame(CONTINUATION, b"\xa9"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_frames_that_rfc_6455_forbids(name: str) -> None:
    """Each is named once, and ends the decoding of its direction; the nearest allowed frame is
    not."""
    (who, data), expected, allowed = REFUSED[name]
    other: Step = ("C", up(TEXT, b"on")) if who == "S" else ("S", frame(TEXT, b"on"))
    found = brief(read((who, data), (who, b"more"), other))
    assert [each[:3] for each in found if each[1] == "expected"] == [(who, "expected", expected)]
    assert found[-1][1] == b"on"
    counter = "opaque_to_client" if who == "S" else "opaque_to_agent"
    assert counters((who, data), (who, b"more"))[counter] == len(data) + 4
    assert not [each for each in brief(read((who, allowed))) if each[1] == "expected"]
    assert counter not in counters((who, allowed))


@pytest.mark.parametrize("code", [0, 999, 1004, 1005, 1006, 1015, 5000, 65535])
@pytest.mark.parametrize("who", ["C", "S"])
def test_close_codes_that_no_peer_may_send(code: int, who: str) -> None:
    """Those outside the ranges, and those that only a program tells itself (RFC 6455 7.4)."""
    data = (up if who == "C" else frame)(CLOSE, closing(code))
    assert brief(read((who, data)))[0][-1] == str(code)


@pytest.mark.parametrize("code", [1000, 1003, 1007, 1011, 1012, 1014, 1016, 2999, 3000, 4001, 4999])
def test_close_codes_that_peers_may_send(code: int) -> None:
    """Also those that are not registered: a later specification may define them."""
    assert brief(read(("S", frame(CLOSE, closing(code))))) == [
        ("S", "close", {"code": code, "reason": ""})
    ]


@pytest.mark.parametrize("keeps", [True, False])
def test_compressed_messages(keeps: bool) -> None:
    """With and without context takeover, in both directions, beside messages that are not
    compressed; a restart at each split keeps the window."""
    no = "" if keeps else "; client_no_context_takeover; server_no_context_takeover"
    opening: list[Step] = [
        ("C", asked()),
        ("S", agreed(extensions=f'Permessage-Deflate{no}; client_max_window_bits="12"')),
    ]
    client, agent = Deflater(keeps_window=keeps), Deflater(keeps_window=keeps)
    words = b"words that are repeated, words that are repeated"
    first, second = client.compress(words), client.compress(words)
    assert (len(second) < len(first)) is keeps
    steps: list[Step] = [
        ("C", up(TEXT, first[:9], last=False, reserved=4) + up(CONTINUATION, first[9:])),
        ("S", frame(TEXT, agent.compress(b"answer"), reserved=4) + frame(TEXT, b"plain")),
        ("C", up(TEXT, second, reserved=4)),
        ("S", frame(BINARY, agent.compress(b"answer"), reserved=4)),
    ]
    events = read(*steps, opening=opening)
    assert brief(events) == [
        ("C", words),
        ("S", b"answer"),
        ("S", b"plain"),
        ("C", words),
        ("S", b"answer", "binary"),
    ]
    assert [each.framing for each in events if isinstance(each, Framed)] == [
        "permessage-deflate",
        "permessage-deflate",
        "",
        "permessage-deflate",
        "permessage-deflate",
    ]


def test_a_message_that_ends_with_a_last_block() -> None:
    """Some compressors mark the last block of a message (RFC 7692 7.2.3.4)."""
    stream = zlib.compressobj(wbits=-15)
    data = stream.compress(b"abcabc") + stream.flush() + b"\0"
    later = Deflater().compress(b"next")
    steps: list[Step] = [("S", frame(TEXT, data, reserved=4) + frame(TEXT, later, reserved=4))]
    assert brief(read(*steps, opening=DEFLATED)) == [("S", b"abcabc"), ("S", b"next")]


@pytest.mark.parametrize(
    "data",
    [
        frame(TEXT, b"\xff\xff\xff", reserved=4),
        frame(PING, b"x", reserved=4),
        frame(TEXT, b"x", reserved=2),
        frame(TEXT, b"x", last=False) + frame(CONTINUATION, b"x", reserved=4),
    ],
)
def test_wrong_compression(data: bytes) -> None:
    """Bytes that are not compressed, and the bit of the extension where it must not be."""
    events = read(("S", data), opening=DEFLATED)
    assert [each[1] for each in brief(events)] == ["expected"]
    assert unread(events).is_fault


def test_a_compressed_message_is_bounded() -> None:
    """A bomb stops the decoding of its direction, without blame: it is not wrong. What is not out
    of proportion is decoded."""
    many = RATIO_SLACK // 3
    message = bytes(many)
    good: Step = ("S", frame(BINARY, Deflater().compress(message), reserved=4))
    found = play(ConnectionDecoder(), [*DEFLATED, good])
    assert [each.size for each in found if isinstance(each, Framed)] == [many]
    bomb = Deflater().compress(bytes(RATIO_SLACK * 3))
    bytes_of_it = frame(BINARY, bomb, reserved=4)
    decoder = ConnectionDecoder()
    events = play(decoder, [*DEFLATED, ("S", bytes_of_it)])
    assert not any(isinstance(each, Framed) for each in events)
    event, most = unread(events), RATIO_SLACK + MAX_RATIO * len(bomb)
    assert event.expected == "a message within the recorder's limits for compression"
    assert event.got == f"{len(bomb)} bytes become more than {most}"
    assert not event.is_fault
    assert decoder.counters == {"opaque_to_client": len(bytes_of_it)}


def test_a_long_connection_may_compress_well() -> None:
    """Any number of messages that are within the limit each, as silence or the same answer."""
    deflater = Deflater()
    size = 230_400
    decoder, count = ConnectionDecoder(), 2 * RATIO_SLACK // size
    play(decoder, DEFLATED)
    events: list[WireEvent] = []
    for at in range(count):
        data = frame(BINARY, deflater.compress(bytes(size)), reserved=4)
        decoder.feed(Direction.TO_CLIENT, data, at, events)
    assert [each.size for each in events if isinstance(each, Framed)] == [size] * count


@pytest.mark.parametrize(
    ("protocol", "opcode", "kept"),
    [
        ("a2a.v1", TEXT, TRUNCATED_SIZE + 1),
        ("a2a.v1", BINARY, TRUNCATED_SIZE),
        ("", TEXT, TRUNCATED_SIZE),
        ("a2a.v1, stomp", TEXT, TRUNCATED_SIZE),
    ],
)
def test_what_cannot_be_a2a_is_truncated(protocol: str, opcode: int, kept: int) -> None:
    """Binary messages, and all of a socket without the subprotocol of A2A."""
    content = b"x" * (TRUNCATED_SIZE + 1)
    opening: list[Step] = [("C", asked()), ("S", agreed(protocol))]
    for step in (("C", up(opcode, content)), ("S", frame(opcode, content))):
        events = play(ConnectionDecoder(), [*opening, step])
        (message,) = [each for each in events if isinstance(each, Framed)]
        assert message.data == content[:kept]
        assert (message.size, message.truncated) == (len(content), kept < len(content))


def test_a_restart_in_a_long_compressed_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes of the current message are kept to continue it, up to a limit."""
    monkeypatch.setattr(deflated_messages, "MAX_REPLAYED", 40)
    deflater = Deflater()
    short, long = deflater.compress(b"short"), deflater.compress(bytes(range(256)))
    data = frame(BINARY, short, reserved=4) + frame(BINARY, long, reserved=4)
    for cut in (len(short), len(data) - 20):
        decoder = ConnectionDecoder()
        play(decoder, [*DEFLATED, ("S", data[:cut])])
        events = play(reload(decoder), [("S", data[cut:])])
        assert any(isinstance(each, Undecodable) for each in events) is (cut > 100), cut
    assert "a restart after" in unread(events).got
    assert not unread(events).is_fault


def test_unknown_extensions_are_not_decoded() -> None:
    """Their frames may mean anything."""
    opening: list[Step] = [
        ("C", asked()),
        ("S", agreed(extensions="x-mux; q=1, permessage-deflate")),
    ]
    decoder = ConnectionDecoder()
    events = play(decoder, [*opening, ("C", up(TEXT, b"x"))])
    (switch,) = [each for each in events if isinstance(each, Control)]
    assert switch.detail == {"protocol": "WebSocket with x-mux, permessage-deflate", "stream": 1}
    assert (decoder.protocol, decoder.counters) == ("http/1.1", {"opaque_to_agent": 7})


def test_names_of_extensions() -> None:
    """In several fields and any case; parameters without their values."""
    headers = (
        (b"Sec-WebSocket-Extensions", b"Permessage-Deflate; Client_Max_Window_Bits=9; a"),
        (b"sec-websocket-extensions", b" x ,"),
    )
    assert agreed_extensions(headers) == {
        "permessage-deflate": frozenset({"client_max_window_bits", "a"}),
        "x": frozenset(),
    }
    assert not agreed_extensions(())


# --- another implementation

MESSAGES = st.lists(
    st.one_of(
        st.tuples(st.just("text"), st.lists(st.text(max_size=140), min_size=1, max_size=3)),
        st.tuples(st.just("bytes"), st.lists(st.binary(max_size=200), min_size=1, max_size=3)),
        st.tuples(st.just("ping"), st.binary(max_size=125)),
        st.tuples(st.just("pong"), st.binary(max_size=125)),
    ),
    max_size=8,
)


def send(connection: Connection, kind: str, content: Any) -> bytes:
    """Return a message as `wsproto` sends it."""
    if kind in ("ping", "pong"):
        return connection.send((Ping if kind == "ping" else Pong)(content))
    event: type[Message[Any]] = TextMessage if kind == "text" else BytesMessage
    pieces = [
        event(data=piece, message_finished=number == len(content))
        for number, piece in enumerate(content, 1)
    ]
    return b"".join(connection.send(each) for each in pieces)


def received(connection: Connection, data: bytes) -> list[tuple[Any, ...]]:
    """Return the messages that `wsproto` reads."""
    connection.receive_data(data)
    found: list[tuple[Any, ...]] = []
    parts: list[Any] = []
    event: Event
    for event in connection.events():
        if isinstance(event, Message):
            parts.append(event.data)
            if event.message_finished:
                text = isinstance(event, TextMessage)
                whole = "".join(parts).encode() if text else b"".join(parts)
                found.append((whole, *([] if text else ["binary"])))
                parts = []
        elif isinstance(event, CloseConnection):
            found.append(("close", {"code": event.code, "reason": event.reason or ""}))
    return found


@pytest.mark.parametrize("deflate", [False, True])
@given(MESSAGES, st.booleans(), st.lists(st.integers(1, 400), max_size=5))
@settings(max_examples=80, deadline=None)
def test_wsproto_reads_the_same(
    deflate: bool, messages: list[tuple[str, Any]], from_client: bool, cuts: list[int]
) -> None:
    """Its bytes in any split have the messages that its peer reads."""

    def ends() -> list[Connection]:
        kinds = (ConnectionType.CLIENT, ConnectionType.SERVER)
        if not deflate:
            return [Connection(kind) for kind in kinds]
        made = []
        for kind in kinds:
            extension = PerMessageDeflate()
            extension._enabled = True
            made.append(Connection(kind, [extension]))
        return made

    sender, receiver = ends() if from_client else reversed(ends())
    data = b"".join(send(sender, kind, content) for kind, content in messages)
    data += sender.send(CloseConnection(1000, "done"))
    who = "C" if from_client else "S"
    steps = [*(DEFLATED if deflate else OPENING), (who, data)]
    whole = brief(play(ConnectionDecoder(), steps))
    assert [each[1:] for each in whole if each[1] != "ping"] == received(receiver, data)
    split = play(ConnectionDecoder(), steps, lambda raw: [*range(0, len(raw), 97), *cuts], True)
    assert brief(split) == whole


@pytest.mark.parametrize(
    "unit",
    [
        frame(TEXT, b"x"),
        frame(PING),
        frame(CONTINUATION, last=False),
        frame(CONTINUATION, b"y", last=False),
    ],
)
def test_time_is_linear(unit: bytes) -> None:
    """Whatever the frames and however they are cut."""
    begin = frame(TEXT, b"b", last=False) if unit[0] & 0xF == CONTINUATION else b""

    def measure(count: int, size: int) -> float:
        decoder, out, data = ConnectionDecoder(), [], begin + unit * count
        play(decoder, OPENING)
        start = time.process_time()
        for pos in range(0, len(data), size):
            decoder.feed(Direction.TO_CLIENT, data[pos : pos + size], 9, out)
        return time.process_time() - start

    for size in (1, 65536):
        few = min(measure(4_000, size) for _ in range(3))
        many = min(measure(16_000, size) for _ in range(3))
        assert many < 10 * few + 0.05, size
