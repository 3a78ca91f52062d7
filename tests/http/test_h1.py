"""The scanner finds the ends of heads and bodies in any split, and understands only what is
unambiguous."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable

import pytest

from a2a_proxy.http.h1 import (
    CHUNKED,
    CHUNKS_AT_ONCE,
    MAX_HEAD_BYTES,
    MAX_LINE_BYTES,
    TRAILERS,
    UNTIL_CLOSE,
    ChunkScanner,
    HeadScanner,
    Http1Error,
    Http1Scanner,
    MessagePart,
    body_framing,
    decode_chunked,
    header_field,
    parse_request_head,
    parse_response_head,
)

HEAD = b"POST / HTTP/1.1\r\nHost: a\r\n\r\n"
CHUNKS = b"5\r\nhello\r\nA;x=1\r\n0123456789\r\n1 \t\r\n\n\r\n0\r\nX: y\r\n\r\n"


def ends(data: bytes, framing: int, cuts: Iterable[int] = ()) -> list[tuple[bytes, int]]:
    """The head and the end of the body of each message."""
    scanner, found, where = Http1Scanner(), [], 0
    edges = [0, *cuts, len(data)]
    for start, stop in itertools.pairwise(edges):
        piece, at = data[start:stop], 0
        while at < len(piece):
            part, at = scanner.read_part(piece, at)
            where = start + at
            if (
                part is MessagePart.HEAD_END and scanner.begin_body(framing)
            ) or part is MessagePart.BODY_END:
                found.append((scanner.head, where))
    return found


@pytest.mark.parametrize(
    ("body", "framing"),
    [
        (b"", 0),
        (b"x", 1),
        (b"\r\n\r\n", 4),
        (CHUNKS, CHUNKED),
        (b"0\r\n\r\n", CHUNKED),
        (b"0\r\nX: y\r\n\tz\r\n\r\n", CHUNKED),
        (b"00F\r\n" + b"." * 15 + b"\r\n0\r\n\r\n", CHUNKED),
    ],
)
def test_messages_follow_each_other_in_any_split(body: bytes, framing: int) -> None:
    size = len(HEAD + body)
    data = (HEAD + body) * 2
    expected = [(HEAD, size), (HEAD, 2 * size)]
    assert ends(data, framing) == expected
    assert ends(data, framing, range(1, len(data))) == expected
    for cut in range(1, len(data)):
        assert ends(data, framing, [cut]) == expected


def test_a_body_until_the_end_of_the_connection_has_no_end() -> None:
    scanner = Http1Scanner()
    assert scanner.read_part(HEAD, 0) == (MessagePart.HEAD_END, len(HEAD))
    assert not scanner.begin_body(UNTIL_CLOSE)
    assert scanner.is_until_close
    assert scanner.read_part(HEAD, 3) == (MessagePart.BODY, len(HEAD))


def test_a_scanner_is_between_messages_until_the_first_byte() -> None:
    scanner = Http1Scanner()
    seen = [scanner.is_between_messages]
    for at in range(len(HEAD)):
        scanner.read_part(HEAD[at : at + 1], 0)
        seen.append(scanner.is_between_messages)
    assert seen == [True, *[False] * (len(HEAD) - 1), True]
    assert not scanner.begin_body(1)
    assert not scanner.is_between_messages
    assert scanner.read_part(b"x", 0) == (MessagePart.BODY_END, 1)
    assert scanner.is_between_messages


def test_many_chunks_are_scanned_a_few_at_a_time() -> None:
    scanner, data = Http1Scanner(), b"1\r\nx\r\n" * 10 + b"0\r\n\r\n"
    scanner.read_part(HEAD, 0)
    scanner.begin_body(CHUNKED)
    assert scanner.read_part(data, 0) == (MessagePart.BODY, 6 * CHUNKS_AT_ONCE)
    assert scanner.read_part(data, 6 * CHUNKS_AT_ONCE) == (MessagePart.BODY, 12 * CHUNKS_AT_ONCE)
    assert scanner.read_part(data, 12 * CHUNKS_AT_ONCE) == (MessagePart.BODY_END, len(data))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"1\nx\r\n0\r\n\r\n", "bare LF"),
        (b"1\r\nx\n0\r\n\r\n", "bare LF"),
        (b"1\r\nx\r\n0\r\nX: y\n\r\n", "bare LF"),
        (b"1\r\nxy\r\n0\r\n\r\n", "no line end after a chunk"),
        (b"x\r\n", "not a number"),
        (b"\r\n", "not a number"),
        (b"-1\r\n", "not a number"),
        (b"1 x\r\n", "not a number"),
        (b"1" * 16 + b"\r\n", "not a number"),
        (b"0" * 16 + b"1\r\n", "not a number"),
        (b"1;x\0\r\n", "not a number"),
        (b"1;x\r\r\n", "not a number"),
        (b"0;" + b"x" * MAX_LINE_BYTES + b"\r\n", "too long"),
    ],
)
def test_ambiguous_chunks_are_not_understood(body: bytes, reason: str) -> None:
    for cuts in ((), range(1, len(HEAD + body)) if len(body) < 100 else (len(HEAD) + 10,)):
        with pytest.raises(Http1Error, match=reason):
            ends(HEAD + body, CHUNKED, cuts)


def test_a_line_of_the_chunked_coding_has_at_most_4096_bytes() -> None:
    line = b"1;" + b"x" * (MAX_LINE_BYTES - 4) + b"\r\n"
    data = HEAD + line + b"x\r\n0\r\n\r\n"
    assert ends(data, CHUNKED) == ends(data, CHUNKED, [len(HEAD) + 9]) == [(HEAD, len(data))]
    with pytest.raises(Http1Error, match="too long"):
        ends(data.replace(b"1;", b"1;x"), CHUNKED)


@pytest.mark.parametrize(
    ("wire", "end"),
    [
        (b"a\r\n\r\nb\r\n\r\n", 5),
        (b"a\n\nb\r\n\r\n", 3),
        (b"a\n\r\nb\n\n", 4),
        (b"a\r\n\n\r\n", 4),
        (b"a\r\n\r", 0),
        (b"a\r\r", 0),
        (b"", 0),
    ],
)
def test_the_first_empty_line_ends_a_head(wire: bytes, end: int) -> None:
    """CRLF and bare LF mixed as they like, in any split."""
    for step in range(1, len(wire) + 2):
        scanner, head, at = HeadScanner(5), b"", 0
        while at < len(wire) and not head:
            head, read = scanner.scan(wire[at : at + step], 0)
            at += read
        assert head == wire[:end]
        assert at == (end or len(wire))


def test_a_head_that_is_too_long_begins_at_its_first_byte() -> None:
    scanner = HeadScanner(9)
    assert scanner.scan(b"..a\r\n", 2) == (b"", 5)
    with pytest.raises(Http1Error, match="too long") as caught:
        scanner.scan(b"aaaaaaa\r\n\r\n", 0)
    assert caught.value.start == -3


def head_of(size: int) -> bytes:
    return HEAD[:-2] + b"X: " + b"x" * (size - len(HEAD) - 5) + b"\r\n\r\n"


@pytest.mark.parametrize("cuts", [(), (1,), (MAX_HEAD_BYTES - 3,), (MAX_HEAD_BYTES - 1,)])
def test_a_head_has_at_most_64_kib(cuts: tuple[int, ...]) -> None:
    longest = head_of(MAX_HEAD_BYTES)
    assert len(longest) == MAX_HEAD_BYTES
    assert ends(longest, 0, cuts) == [(longest, MAX_HEAD_BYTES)]
    with pytest.raises(Http1Error, match="too long"):
        ends(head_of(MAX_HEAD_BYTES + 1), 0, cuts)
    with pytest.raises(Http1Error, match="too long"):
        ends(b"x" * 2 * MAX_HEAD_BYTES, 0, cuts)


@pytest.mark.parametrize("end", [b"\n\r\n", b"\r\nHost: a\n\r\n", b"\nHost: a\r\n\r\n"])
def test_a_bare_line_feed_in_a_head_is_not_understood(end: bytes) -> None:
    with pytest.raises(Http1Error, match="bare LF"):
        parse_request_head(b"GET / HTTP/1.1" + end)
    with pytest.raises(Http1Error, match="bare LF"):
        parse_response_head(b"HTTP/1.1 200 OK" + end, to_head=False)


@pytest.mark.parametrize("cuts", [(), (5,), (len(b"GET /status"),)])
def test_a_bare_line_feed_is_refused_before_the_head_ends(cuts: tuple[int, ...]) -> None:
    """A peer may wait for an answer to the line: it must not wait for the end of a head."""
    with pytest.raises(Http1Error, match="a bare LF in a head"):
        ends(b"GET /status\n", 0, cuts)


def test_many_heads_are_found_in_linear_time() -> None:
    """Each head must not be searched for in all that follows."""
    data = b"GET / HTTP/1.1\n\n" * 32_000
    scanner, at, began = HeadScanner(MAX_HEAD_BYTES), 0, time.process_time()
    while at < len(data):
        _, at = scanner.scan(data, at)
    assert time.process_time() - began < 1


def fields(*lines: str) -> bytes:
    return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n"


def test_a_transfer_coding_in_http_1_0_is_not_understood() -> None:
    """RFC 9112 6.1: the receiver may not know the coding."""
    with pytest.raises(Http1Error, match=r"HTTP/1\.0"):
        parse_request_head(b"POST /x HTTP/1.0\r\n" + fields("Transfer-Encoding: chunked"))


@pytest.mark.parametrize(
    ("lines", "framing"),
    [
        ((), None),
        (("Content-Length: 0",), 0),
        (("Content-Length:17",), 17),
        (("content-length: \t" + "9" * 18 + " ",), int("9" * 18)),
        (("Transfer-Encoding: Chunked",), CHUNKED),
        (("X-Content-Length: 5",), None),
    ],
)
def test_the_framing_of_a_message(lines: tuple[str, ...], framing: int | None) -> None:
    request = b"POST /x HTTP/1.1\r\n" + fields(*lines)
    assert parse_request_head(request) == (b"POST", b"/x", 0 if framing is None else framing)
    until = UNTIL_CLOSE if framing is None else framing
    for status in (200, 205, 404, 999):
        head = b"HTTP/1.1 %d OK\r\n" % status + fields(*lines)
        assert parse_response_head(head, False) == (status, until)
        assert parse_response_head(head, True) == (status, 0)
    for status in (100, 101, 199, 204, 304):
        assert parse_response_head(b"HTTP/1.1 %d\r\n" % status + fields(*lines), False) == (
            status,
            0,
        )


def test_the_decoder_accepts_more_codings() -> None:
    """The last coding delimits the body: of a request only `chunked` can, of a response the end of
    the connection too."""
    assert body_framing(None, b"chunked", 0) == body_framing(None, b"chunked", UNTIL_CLOSE)
    assert body_framing(None, b"gzip", UNTIL_CLOSE) == UNTIL_CLOSE
    for length, coding in ((None, b"gzip"), (None, b""), (b"1", b"chunked")):
        with pytest.raises(Http1Error):
            body_framing(length, coding, 0)


@pytest.mark.parametrize(
    "lines",
    [
        ("Content-Length: 1", "Content-Length: 1"),
        ("Transfer-Encoding: chunked", "transfer-encoding: chunked"),
        ("Content-Length: 1", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: gzip, chunked",),
        ("Content-Length: -1",),
        ("Content-Length: ",),
        ("Content-Length: 1x",),
        ("Content-Length: " + "9" * 19,),
        ("Content Length: 1",),
        (" folded",),
        ("Host : a",),
        ("X: a\0b",),
        ("X: a\rb",),
    ],
)
def test_ambiguous_fields_are_not_understood(lines: tuple[str, ...]) -> None:
    with pytest.raises(Http1Error):
        parse_request_head(b"POST / HTTP/1.1\r\n" + fields(*lines))
    with pytest.raises(Http1Error):
        parse_response_head(b"HTTP/1.1 200 OK\r\n" + fields(*lines), False)


@pytest.mark.parametrize(
    "line", ["GET  / HTTP/1.1", "GET / HTTP/2", "GET /", "G(T / HTTP/1.1", "GET / HTTP/1.1 "]
)
def test_other_request_lines_are_not_understood(line: str) -> None:
    with pytest.raises(Http1Error):
        parse_request_head(fields(line))


@pytest.mark.parametrize(
    "line", ["HTTP/1.1 20", "HTTP/1.1 099 x", "HTTP/2 200", "HTTP/1.1 2000", "200 OK"]
)
def test_other_status_lines_are_not_understood(line: str) -> None:
    with pytest.raises(Http1Error):
        parse_response_head(fields(line), False)


def test_a_field_is_found_by_its_whole_name_and_must_be_single() -> None:
    head = HEAD[:-2] + fields("X-Host: b", "Etag:\t w \t")
    assert header_field(head, b"host") == b"a"
    assert header_field(head, b"etag") == b"w"
    assert header_field(head, b"et") is None
    with pytest.raises(Http1Error, match="two host fields"):
        header_field(HEAD[:-2] + fields("HOST: b"), b"host")


def test_chunks_are_joined_without_extensions_and_trailers() -> None:
    assert decode_chunked(CHUNKS) == b"hello0123456789\n"
    assert decode_chunked(b"0\r\n\r\n") == b""


@pytest.mark.parametrize("step", [1, 2, 3, 7, len(CHUNKS)])
@pytest.mark.parametrize("most", [1, 3, 100])
def test_the_places_of_the_data_are_the_same_in_any_split(step: int, most: int) -> None:
    """Up to the trailers, whatever is read at once."""
    chunks, data, read = ChunkScanner(MAX_LINE_BYTES), b"", 0
    doubts: list[tuple[str, str, int]] = []
    for start in range(0, len(CHUNKS), step):
        piece, at = CHUNKS[start : start + step], 0
        while at < len(piece) and chunks.phase is not TRAILERS:
            places: list[tuple[int, int]] = []
            at = chunks.scan(piece, at, places, most)
            assert len(places) <= most
            data += b"".join(piece[first:stop] for first, stop in places)
            doubts += chunks.doubts
            chunks.doubts.clear()
        read += at
    assert data == decode_chunked(CHUNKS)
    assert CHUNKS[read:] == b"X: y\r\n\r\n"
    assert doubts == [("chunk_size_space", "space after the chunk size", 5)]


def test_one_part_has_one_line_of_trailers_at_most() -> None:
    """A caller with a budget can stop between them."""
    scanner, trailers = Http1Scanner(), b"X: y\r\n" * 1000
    scanner.read_part(HEAD, 0)
    scanner.begin_body(CHUNKED)
    assert scanner.read_part(b"0\r\n" + trailers, 0) == (MessagePart.BODY, 9)
    assert scanner.read_part(trailers, 6) == (MessagePart.BODY, 12)


@pytest.mark.parametrize(
    ("framing", "piece", "skips"),
    [
        (CHUNKED, b"5\r\nhello\r\n", True),
        (CHUNKED, b"00A\r\n0123456789\r\n", True),
        (CHUNKED, b"2\r\n\r\n\r\n", True),
        (CHUNKED, b"5\r\nhello\r\n1\r\nx\r\n", False),
        (CHUNKED, b"5\r\nhello", False),
        (CHUNKED, b"5\r\nhello\n\n", False),
        (CHUNKED, b"5 \r\nhello\r\n", False),
        (CHUNKED, b"5;a=b\r\nhello\r\n", False),
        (CHUNKED, b"+5\r\nhello\r\n", False),
        (CHUNKED, b"0\r\n\r\n", False),
        (CHUNKED, b"\r\nhello\r\n", False),
        (CHUNKED, b"\r\n", False),
        (8, b"seven..", True),
        (8, b"eight...", False),
        (UNTIL_CLOSE, b"any", True),
    ],
)
def test_a_skipped_part_leaves_the_scanner_as_a_part_that_is_read(
    framing: int, piece: bytes, skips: bool
) -> None:
    skipping, reading = Http1Scanner(), Http1Scanner()
    for scanner in (skipping, reading):
        assert not scanner.skip_part(HEAD)
        assert scanner.read_part(HEAD, 0) == (MessagePart.HEAD_END, len(HEAD))
        scanner.begin_body(framing)
    assert skipping.skip_part(piece) is skips
    if skips:
        assert reading.read_part(piece, 0) == (MessagePart.BODY, len(piece))
    for rest in (b"1", b"\r\nx\r\n", b"0\r\n\r\n"):
        assert skipping.read_part(rest, 0) == reading.read_part(rest, 0)


def test_a_chunk_is_not_skipped_inside_another() -> None:
    for begun in (b"1", b"20\r\n", b"1\r\nx", b"1\r\nx\r", b"0\r\n"):
        scanner = Http1Scanner()
        scanner.begin_body(CHUNKED)
        scanner.read_part(begun, 0)
        assert not scanner.skip_part(b"5\r\nhello\r\n")
