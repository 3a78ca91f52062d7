"""Messages on a pipe: every framing, every split, and stray output."""

from __future__ import annotations

import hashlib
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_proxy.model.saved_state import encode_state
from a2a_proxy.model.wire import Control, Cut, Direction, End, Framed, Line, WireEvent
from a2a_proxy.wire.connection import ConnectionDecoder
from a2a_proxy.wire.stdio import StdioDecoder
from a2a_proxy.wire.stdio_reader import MAX_HEADER_BLOCK, MAX_HEADER_LINE, PipeReader
from support_wire import Step, in_every_split, play, reload

CALL = b'{"jsonrpc":"2.0","id":1,"method":"GetTask"}'
TWICE = b"Content-Length: 3\r\nContent-Length: 9\r\n\r\n"
BLOCK = b"Content-Type: a/b"
TEXT = '{"a":"é"}'.encode()
PLAIN = "Content-Length: \x01\r\nContent-Type: application/json\r\n\r\n\0"


def framed(content: bytes, length: int | None = None, *more: bytes, end: bytes = b"\r\n") -> bytes:
    """A message; `length` where it is not that of the content."""
    size = len(content) if length is None else length
    lines = [b"Content-Length: %d" % size, b"Content-Type: application/json", *more, b""]
    return end.join([*lines, b""]) + content


def said(events: list[WireEvent]) -> list[tuple[str, bytes]]:
    """What was read: messages as `message` or how they are broken, and stray lines."""
    found: list[tuple[str, bytes]] = []
    for each in events:
        if isinstance(each, Framed):
            found.append((each.broken or "message", each.data))
        elif isinstance(each, Line):
            found.append(("stray" if each.stray else "log", each.data))
    return found


def read(*data: bytes, eof: bool = True) -> list[WireEvent]:
    """All that the client says, in every split."""
    steps: list[Step] = [("C", piece) for piece in data]
    return in_every_split(StdioDecoder, [*steps, *([("c-eof", b"")] if eof else [])])


def test_messages_in_one_write_have_their_byte_ranges() -> None:
    """Spans with the header block, times, headers and framing."""
    first, second = framed(CALL), framed(TEXT)
    events = read(first + second)
    one, two = [each for each in events if isinstance(each, Framed)]
    assert (one.began, one.at, one.start, one.end) == (1000, 1000, 0, len(first))
    assert (two.start, two.end, two.data, two.size) == (len(first), len(first + second), TEXT, 10)
    assert one.headers == (
        (b"Content-Length", b"%d" % len(CALL)),
        (b"Content-Type", b"application/json"),
    )
    assert {one.framing, two.framing} == {PLAIN}
    assert events[2:] == [
        Control(Direction.TO_AGENT, 2000, len(first + second), len(first + second), "eof", {}),
        End(0, Direction.TO_AGENT, 2000, len(first + second)),
    ]


@pytest.mark.parametrize(
    ("head", "framing"),
    [
        (b"content-type:application/json\r\nCONTENT-LENGTH:10\r\n\r\n", None),
        (b"Content-Length: 10\n\n", None),
        (b"A2A-Version: 1.0\r\nContent-Length: 10\r\nFoo: 1\r\n\r\n", None),
        (b"Foo: 1\r\nContent-Length : 10 \r\n\r\n", None),
        (b"Content-Length: 10\r\nContent-Length: 10\r\n\r\n", None),
        (b"Content-Length: 010\r\n\r\n", "Content-Length: 010\r\n\r\n\0"),
    ],
)
def test_headers_in_any_order_and_case(head: bytes, framing: str | None) -> None:
    """Also with LF alone, without Content-Type, with unknown fields."""
    found = [each for each in read(head + TEXT + framed(CALL)) if isinstance(each, Framed)]
    assert [each.data for each in found] == [TEXT, CALL]
    assert found[0].framing == (framing or head.decode().replace("10", "\x01") + "\0")


def test_lines_of_json() -> None:
    """Newline-delimited, with blanks around, several in one line, and then framed after all."""
    events = read(b"\n " + CALL + b"\r\n\n" + TEXT + TEXT + b"\n" + framed(CALL) + b"[1]")
    assert [each.framing for each in events if isinstance(each, Framed)] == [
        " \0\r\n",
        "\0",
        "\0\n",
        PLAIN,
        "\0",
    ]
    assert [text for kind, text in said(events) if kind == "message"] == [
        CALL,
        TEXT,
        TEXT,
        CALL,
        b"[1]",
    ]
    assert not [each for each in events if isinstance(each, Line)]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"Starting agent\n" + framed(TEXT), [("stray", b"Starting agent"), ("message", TEXT)]),
        (framed(TEXT) + b"INFO: up\nno end",
         [("message", TEXT), ("stray", b"INFO: up"), ("stray", b"no end")]),
        (framed(TEXT) + b"\r\n" + framed(TEXT),
         [("message", TEXT), ("stray", b""), ("message", TEXT)]),
        (b"up...Content-Length: 10\r\n\r\n" + TEXT, [("stray", b"up..."), ("message", TEXT)]),
        (b"[INFO] up\n{x}\n" + framed(TEXT),
         [("stray", b"[INFO] up"), ("stray", b"{x}"), ("message", TEXT)]),
        (TEXT + b"oops\n" + TEXT + b"\n",
         [("message", TEXT), ("stray", b"oops"), ("message", TEXT)]),
        (TEXT + framed(TEXT), [("message", TEXT), ("message", TEXT)]),
        (b"Content-Type: a/b\r\nis it\r\n" + TEXT,
         [("stray", BLOCK), ("stray", b"is it"), ("message", TEXT)]),
        (b"Content-Type: a/b\r\n\r\nhello\n",
         [("stray", b"Content-Type: a/b"), ("stray", b"hello")]),
    ],
)  # fmt: skip
def test_stray_output(data: bytes, expected: list[tuple[str, bytes]]) -> None:
    """Banners, logs, stack traces; the next message is read in any case."""
    assert said(read(data)) == expected


def test_a_stray_line_has_its_byte_range() -> None:
    """Bytes of the pipe, its line end in them."""
    line = next(
        each for each in read(framed(TEXT) + b"oops\r\n" + framed(TEXT)) if isinstance(each, Line)
    )
    start = len(framed(TEXT))
    assert (line.start, line.end, line.framing, line.size) == (start, start + 6, "\0\r\n", 4)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (framed(TEXT, 9) + framed(CALL), [("message", TEXT), ("message", CALL)]),
        (framed(TEXT, 9), [("message", TEXT)]),
        (framed(TEXT, 12) + framed(CALL), [("message", TEXT), ("message", CALL)]),
        (framed(TEXT, 999_999_999) + framed(CALL), [("message", TEXT), ("message", CALL)]),
        (framed(TEXT, 12), [("message", TEXT)]),
        (framed(TEXT, 0) + framed(CALL), [("message", TEXT), ("message", CALL)]),
        (b"Content-Length: x\r\n\r\n" + TEXT + framed(CALL),
         [("message", TEXT), ("message", CALL)]),
        (TWICE + TEXT + framed(CALL), [("message", TEXT), ("message", CALL)]),
        (b"Content-Type: application/json\r\n\r\n" + TEXT + framed(CALL),
         [("message", TEXT), ("message", CALL)]),
        (framed(b'{"a":"', 40) + framed(CALL), [("cut short", b'{"a":"'), ("message", CALL)]),
        (framed(b'{"a":1', 6) + framed(CALL), [("cut short", b'{"a":1'), ("message", CALL)]),
        (framed(b'{"a":1', 6), [("broke off", b'{"a":1')]),
        (framed(b'{"a":1', 20), [("broke off", b'{"a":1')]),
        (framed(b"hello") + framed(CALL), [("message", b"hello"), ("message", CALL)]),
        (framed(b"{a:1}") + framed(CALL), [("message", b"{a:1}"), ("message", CALL)]),
        (framed(TEXT + b"oops\n", 15) + framed(CALL),
         [("message", TEXT), ("stray", b"oops"), ("message", CALL)]),
    ],
)  # fmt: skip
def test_wrong_lengths(data: bytes, expected: list[tuple[str, bytes]]) -> None:
    """Characters counted, too much, nonsense, none: the content is found, and the next message."""
    events = read(data) if len(data) < 200 else play(StdioDecoder(), [("C", data), ("c-eof", b"")])
    assert said(events) == expected
    wrong = next(each for each in events if isinstance(each, Framed))
    right = data.startswith((framed(b"hello")[:18], framed(b"{a:1}")[:18]))
    assert ("\x01" in wrong.framing) == right


def test_trailing_blanks_may_be_counted_in_the_length() -> None:
    """`print(json.dumps(...))` adds a line end, and it may be counted."""
    found = [each for each in read(framed(TEXT + b"\n") + framed(CALL)) if isinstance(each, Framed)]
    assert [(each.data, each.framing) for each in found] == [(TEXT + b"\n", PLAIN), (CALL, PLAIN)]


def test_header_lines_within_strings_are_content() -> None:
    """Only at the end of a line can a header stand, and a JSON string has none."""
    content = b'{"a":"Content-Length: 5\\r\\n",\n"b":"content-type: a/b"}'
    assert said(read(framed(content) + framed(TEXT))) == [("message", content), ("message", TEXT)]


def test_a_block_over_the_limit_is_stray() -> None:
    """Neither a line nor a block grows without end."""
    long = b"Content-Foo: " + b"x" * (MAX_HEADER_LINE + 10) + b"\r\n"
    many = b"Content-Foo: 1\r\n" * (MAX_HEADER_BLOCK // 16 + 1)
    for raw in (long, many):
        steps: list[Step] = [("C", raw + framed(TEXT))]
        events = play(StdioDecoder(), steps)
        assert events == play(
            StdioDecoder(), steps, lambda data: range(0, len(data), 97), restart=True
        )
        *stray, (kind, data) = said(events)
        assert {each for each, _ in stray} == {"stray"}
        assert (kind, data) == ("message", TEXT)


@pytest.mark.parametrize("lines", [False, True])
def test_the_beginning_of_a_large_message_is_kept(lines: bool) -> None:
    """With its true size and hash; the next one is read."""
    content = b'{"a":"' + b"x" * 3000 + b'"}'
    raw = content + b"\n" + TEXT + b"\n" if lines else framed(content) + framed(TEXT)
    for size in (len(raw), 611):
        reader = PipeReader(Direction.TO_CLIENT, limit=2000, keep=100)
        out: list[WireEvent] = []
        for start in range(0, len(raw), size):
            reader.feed(raw[start : start + size], 1, out)
        large, small = out
        assert isinstance(large, Framed)
        assert isinstance(small, Framed)
        assert (large.data, large.size, large.truncated) == (content[:100], len(content), True)
        assert large.sha256 == hashlib.sha256(content).digest()
        assert (small.data, small.truncated) == (TEXT, False)
        assert (large.start, large.end) == (0, small.start)


def test_stderr_is_read_by_lines() -> None:
    """The same lines however it was written; the last one needs no end."""
    raw = b"one\r\ntwo\n\nthr\ree\nlast\r"
    for size in (1, 2, 3, 100):
        decoder, out = StdioDecoder(), list[WireEvent]()
        for start in range(0, len(raw), size):
            decoder.feed_log(raw[start : start + size], 5, out)
            decoder = reload(decoder)
        decoder.on_exit({"code": 3}, 9, out)
        lines = [each for each in out if isinstance(each, Line)]
        assert [each.data for each in lines] == [b"one", b"two", b"", b"thr\ree", b"last\r"]
        assert [each.framing for each in lines] == ["\0\r\n", "\0\n", "\0\n", "\0\n", "\0"]
        assert [(each.start, each.end) for each in lines] == [
            (0, 5),
            (5, 9),
            (9, 10),
            (10, 17),
            (17, 22),
        ]
        assert out[-1] == Control(Direction.TO_CLIENT, 9, 0, 0, "exit", {"code": 3})
        assert decoder.counters == {"stderr_bytes": len(raw)}


def test_decoding_stops_after_lost_bytes() -> None:
    """After missing bytes message boundaries are unknown."""
    steps: list[Step] = [
        ("S", framed(TEXT)[:30]),
        ("s-lost", b""),
        ("S", framed(TEXT)),
        ("s-eof", b""),
    ]
    events = in_every_split(StdioDecoder, steps)
    assert [type(each) for each in events] == [Line, Line, Cut]


def test_partial_input_is_reported_when_the_agent_exits() -> None:
    """Half a message, half a line: the connection ends without an end of the client's side."""
    for data in (framed(TEXT)[:-3], b"half a line"):
        events = in_every_split(StdioDecoder, [("C", data), ("s-lost", b"")])
        assert [(each.direction, type(each)) for each in events] == [
            (Direction.TO_AGENT, Framed if data != b"half a line" else Line),
            (Direction.TO_CLIENT, Cut),
        ]


def test_the_connection_kind_may_be_preset_to_a_pipe() -> None:
    """Its bytes are not asked."""
    decoder = ConnectionDecoder("stdio")
    assert decoder.kind == "stdio"
    assert decoder.stdio is not None
    assert said(play(decoder, [("S", framed(TEXT))])) == [("message", TEXT)]
    assert reload(decoder).stdio is not None
    assert ConnectionDecoder().stdio is None


_PIECES = st.sampled_from(
    [framed(TEXT), framed(TEXT, 9), framed(TEXT, 14), framed(TEXT, 3), CALL + b"\n", b"INFO: x\n",
     b"Content-Length:", b"\r\n", b"\n", b"Content-Type: application/json\r\n", b"{", b'"', b"\\",
     b"}", b"[", b"\xff\x00", TWICE, b"Foo: 1\r\n", b"  ", b"hello", framed(b"hello"),
     framed(TEXT, end=b"\n")]
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.lists(_PIECES | st.binary(max_size=20), max_size=12), st.data())
def test_hostile_bytes_are_read_alike_in_any_split(
    pieces: list[bytes], data: st.DataObject
) -> None:
    """Never raises; every byte is in one event at most; saved and restored at the cuts it says the
    same."""
    raw = b"".join(pieces)
    cuts = data.draw(st.lists(st.integers(0, max(len(raw), 1)), max_size=8))
    steps: list[Step] = [("C", raw), ("c-eof", b"")]
    whole = play(StdioDecoder(), steps)
    assert play(StdioDecoder(), steps, lambda _: cuts, restart=True) == whole
    place = 0
    for each in whole:
        if isinstance(each, Framed | Line):
            assert place <= each.start < each.end
            place = each.end
    assert place <= len(raw)


@pytest.mark.parametrize(
    "data",
    [
        b"{}" * 400_000,
        b"{}" * 400_000 + b"\n",
        b"{" * 800_000 + b"\n",
        b'{"' + b"x" * 800_000,
        b"[INFO] x\n" * 80_000,
    ],
    ids=["values", "a line of values", "brackets", "a string", "log"],
)
def test_hostile_lines_take_linear_time(data: bytes) -> None:
    """In whatever pieces they come: a CPU second is far more than they take."""
    began = time.process_time()
    decoder, out = StdioDecoder(), list[WireEvent]()
    for start in range(0, len(data), 1000):
        decoder.feed(Direction.TO_CLIENT, data[start : start + 1000], 1, out)
    decoder.feed_eof(Direction.TO_CLIENT, 2, out)
    assert time.process_time() - began < 20


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=3000))
def test_held_bytes_are_bounded(data: bytes) -> None:
    """By the limit of a message."""
    reader = PipeReader(Direction.TO_CLIENT, limit=20_000, keep=10)
    for byte in (b"Content-Length: 15000\r\n\r\n", b"{", b"[", b"", b"Content-Type: x/y\r\n\r\n{"):
        for _ in range(40):
            reader.feed(byte + data, 1, [])
            assert len(encode_state(reader)) <= 2 * 20_000 + MAX_HEADER_BLOCK + 1000
