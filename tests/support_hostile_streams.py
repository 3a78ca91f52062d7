"""Hostile connections of a client or an agent, each produced by a function of its own: see
`HOSTILE_STREAMS`."""

from __future__ import annotations

import gzip
import json
import struct
import zlib
from collections.abc import Callable

from a2a_proxy.http import PREFACE
from support_conversation import TO_AGENT, TO_CLIENT, Grpc, Http, Script, frame, prefixed

METHOD = "/lf.a2a.v1.A2AService/SendMessage"
STREAM = "/lf.a2a.v1.A2AService/SendStreamingMessage"
MIB = 1 << 20
RELAY_MIB, RECORDER_MIB = 128, 768
"""Maximum resident memory of the two processes after each connection."""
Made = Callable[[], Script]

HOSTILE_STREAMS: list[Made] = []


def hostile(made: Made) -> Made:
    """Register a connection."""
    HOSTILE_STREAMS.append(made)
    return made


def zeros(size: int, wbits: int = 31) -> bytes:
    """Return that many zero bytes, compressed."""
    packer = zlib.compressobj(9, zlib.DEFLATED, wbits)
    return b"".join(packer.compress(bytes(MIB)) for _ in range(size // MIB)) + packer.flush()


def rpc(method: str = "SendMessage") -> Http:
    return Http().call(
        method, {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]}}
    )


def raw(client: bytes, agent: bytes = b"") -> Script:
    """Return a connection on which both peers send all bytes at once."""
    script = Script().client(client) if client else Script()
    return script.agent(agent) if agent else script


def opened() -> Grpc:
    return Grpc().open(METHOD)


# --- HTTP/2


@hostile
def hpack_bomb() -> Script:
    """A field of 4,000 bytes in the table, then 60,000 references of one byte each: 240 MB."""
    field = b"\x40\x01x\x7f\xa1\x1e" + b"v" * 4000
    block = b"\x83\x86\x84" + field + b"\xbe" * 60_000
    frames = frame(1, 0, 1, block[:16_000])
    rest = [block[at : at + 16_000] for at in range(16_000, len(block), 16_000)]
    frames += b"".join(frame(9, 4 if each is rest[-1] else 0, 1, each) for each in rest)
    return Grpc().client(frames)


@hostile
def continuation_flood() -> Script:
    """A header block in 50,000 CONTINUATION frames without an end."""
    return Grpc().client(
        frame(1, 0, 1, b"\x83") + frame(9, 0, 1, b"") * 25_000 + frame(9, 0, 1, b"\x84") * 25_000
    )


@hostile
def settings_flood() -> Script:
    """15,000 SETTINGS, each acknowledged, and 15,000 pings."""
    setting = frame(4, 0, 0, struct.pack(">HI", 4, 65_535))
    return (
        Grpc()
        .client(setting * 15_000 + frame(6, 0, 0, b"pingping") * 15_000)
        .agent(frame(4, 1, 0, b"") * 15_000)
    )


@hostile
def table_size_flood() -> Script:
    """A table of 4 GiB, and header blocks that change its size 2,000 times."""
    script = Grpc().agent(frame(4, 0, 0, struct.pack(">HI", 1, 0xFFFFFFFF)))
    return script.client(
        b"".join(
            frame(1, 5, 2 * n + 1, b"\x3f\xe1\xff\x03\x20" * 20 + b"\x83") for n in range(2000)
        )
    )


@hostile
def rapid_resets() -> Script:
    """5,000 streams, each reset at once."""
    script = Grpc()
    block = bytes(script.open(METHOD).steps.pop()[2][9:])
    script = Grpc()
    first = b"".join(
        frame(1, 4, 2 * n + 1, block) + frame(3, 0, 2 * n + 1, b"\0\0\0\x08") for n in range(5_000)
    )
    return script.client(first)


@hostile
def zero_windows() -> Script:
    """Windows of 0, updates by 0 and beyond 2^31, and initial windows that make windows
    negative."""
    update = b"".join(
        frame(8, 0, n % 3, struct.pack(">I", size))
        for n, size in enumerate((0, 1 << 31, 0x7FFFFFFF))
    )
    sizes = b"".join(
        frame(4, 0, 0, struct.pack(">HI", 4, size)) for size in (0, 0x7FFFFFFF, 0xFFFFFFFF, 0)
    )
    return opened().client(sizes + update * 500).agent(sizes + update * 500)


@hostile
def large_frames() -> Script:
    """Frames that announce 16 MiB and have less, and one complete frame above the announced
    maximum."""
    return (
        opened()
        .client(frame(0, 0, 1, b"x" * 2 * MIB))
        .agent(b"\xff\xff\xff\0\0\0\0\0\x01" + bytes(MIB))
    )


@hostile
def unknown_frames() -> Script:
    """20,000 frames of unknown types on unknown streams, with reserved bits."""
    return opened().client(
        b"".join(
            frame(10 + n % 240, n % 256, (n << 1) | 1 << 31, b"x" * (n % 9)) for n in range(20_000)
        )
    )


@hostile
def wrong_frames() -> Script:
    """Wrong padding, priorities on the stream itself, PUSH_PROMISE of a client, frames after
    GOAWAY, wrong sizes."""
    frames = [
        frame(0, 8, 1, b"\xff"),
        frame(1, 0x2C, 3, b"\xff\0\0\0\x03\x10\x83"),
        frame(2, 0, 3, b"\0\0\0\x03\x10"),
        frame(5, 4, 1, b"\0\0\0\x02\x83"),
        frame(7, 0, 0, b"\0\0\0\x01\0\0\0\0" + b"d" * 9000),
        frame(4, 0, 1, b"abc"),
        frame(6, 0, 1, b"short"),
        frame(3, 0, 1, b""),
        frame(8, 0, 1, b"\0"),
        frame(0, 0, 0, b"on stream 0"),
        frame(9, 4, 99, b"\x83"),
    ]
    script = opened()
    for each in frames:
        script.client(each).agent(each)
    return script


@hostile
def preface_twice() -> Script:
    """The preface again in place of a frame, in the middle."""
    return (
        opened()
        .client(PREFACE + frame(4, 0, 0, b""))
        .agent(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    )


@hostile
def http2_that_is_answered_in_text() -> Script:
    """An agent that answers in HTTP/1.1 after its SETTINGS."""
    return Grpc().agent(b"HTTP/1.1 400 Bad Request\r\n\r\n").open(METHOD)


@hostile
def http2_many_streams() -> Script:
    """1,000 streams that stay open."""
    script = Grpc()
    for number in range(1_000):
        script.open(METHOD, 2 * number + 1)
    return script


# --- gRPC


@hostile
def grpc_length_of_4_gib() -> Script:
    """Messages that announce 4 GiB and 2 GiB and have few bytes."""
    script = opened().client(frame(0, 0, 1, b"\0\xff\xff\xff\xff" + b"x" * 9000)).respond()
    return script.agent(frame(0, 0, 1, b"\x01\x80\0\0\0" + bytes(9000))).trailers()


@hostile
def grpc_compression_bomb() -> Script:
    """A message of 250 KB that decompresses to 256 MiB."""
    message = prefixed(zeros(256 * MIB), 1)
    script = Grpc().open(STREAM, grpc_encoding="gzip").send(b"").respond(grpc_encoding="gzip")
    for at in range(0, len(message), 16_384):
        script.agent(frame(0, 0, 1, message[at : at + 16_384]))
    return script.trailers()


@hostile
def grpc_flag_lies() -> Script:
    """The compressed flag without an encoding, with another encoding and with noise; undefined
    flags."""
    script = (
        Grpc()
        .open(STREAM, grpc_encoding="identity")
        .send(b"")
        .respond(grpc_encoding="deflate, gzip")
    )
    for flag, data in (
        (1, b"plain"),
        (1, gzip.compress(b"x", mtime=0)),
        (2, b""),
        (255, b"\xff" * 99),
        (1, b""),
    ):
        script.agent(frame(0, 0, 1, prefixed(data, flag)))
    return script.trailers()


@hostile
def grpc_empty_messages() -> Script:
    """5,000 messages of 0 bytes."""
    return (
        Grpc()
        .open(STREAM)
        .send(b"")
        .respond()
        .agent(frame(0, 0, 1, bytes(5) * 500) * 10)
        .trailers()
    )


@hostile
def grpc_trailer_noise() -> Script:
    """A status that is no number, a message with invalid percent-encoding, details with invalid
    base64, each twice."""
    script = opened().respond()
    for status in (2**70, -1):
        script.trailers(
            status, grpc_message="%zz%e2%28\x7f", grpc_status_details_bin="*=*", x_bin=b"\xff\0\n"
        )
    return script


@hostile
def grpc_protobuf_noise() -> Script:
    """Messages nested 20,000 times, endless varints, groups without an end, lengths beyond the
    end."""
    nested = b""
    for _ in range(2_000):
        nested = b"\x0a" + _varint(len(nested)) + nested
    script = Grpc().open(STREAM).send(nested).respond()
    for data in (
        nested,
        b"\x08" + b"\xff" * 5000,
        b"\x0b" * 20_000,
        b"\x0a\xff\xff\xff\xff\x0f",
        b"\x0a\x05\xff\xfe",
    ):
        script.agent(
            b"".join(
                frame(0, 0, 1, prefixed(data)[at : at + 16_384])
                for at in range(0, len(data) + 5, 16_384)
            )
        )
    return script.trailers()


def _varint(value: int) -> bytes:
    found = b""
    while value > 127:
        found, value = found + bytes([value & 127 | 128]), value >> 7
    return found + bytes([value])


# --- HTTP/1.1


def _request(*fields: bytes, line: bytes = b"POST / HTTP/1.1", body: bytes = b"") -> bytes:
    return (
        b"\r\n".join([line, b"Host: agent", b"Content-Type: application/json", *fields, b"", b""])
        + body
    )


_BODY = b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"t"}}'
_LENGTH = b"Content-Length: %d" % len(_BODY)
_OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
_INNER = b"GET /admin HTTP/1.1\r\nHost: agent\r\n\r\n"


@hostile
def smuggling_by_two_framings() -> Script:
    """Content-Length and Transfer-Encoding contradict each other, in both orders."""
    chunks = b"0\r\n\r\n" + _INNER
    both = (b"Content-Length: %d" % len(chunks), b"Transfer-Encoding: chunked")
    return raw(_request(*both, body=chunks) + _request(*both[::-1], body=chunks), _OK * 4)


@hostile
def smuggling_by_two_lengths() -> Script:
    """Two different lengths, a list of lengths, a length with a sign, with blanks, in
    hexadecimal."""
    lengths = (b"4", b"5, 5", b"+5", b"0x5", b"5 5", b"\x0b5", b"-1", b"5_0", b"9" * 40)
    return raw(
        b"".join(_request(_LENGTH, b"Content-Length: " + each, body=_BODY) for each in lengths),
        _OK * 9,
    )


@hostile
def smuggling_by_codings() -> Script:
    """Transfer codings that only some servers read as chunked."""
    forms = (
        b"Transfer-Encoding: xchunked",
        b"Transfer-Encoding : chunked",
        b"Transfer-Encoding:\tchunked",
        b"Transfer-Encoding: identity, chunked",
        b"Transfer-Encoding: chunked, identity",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: x",
        b"Transfer-Encoding\x00: chunked",
        b"X: y\nTransfer-Encoding: chunked",
        b"Transfer-Encoding:\r\n chunked",
    )
    return raw(
        b"".join(_request(each, _LENGTH, body=b"0\r\n\r\n" + _INNER) for each in forms), _OK * 9
    )


@hostile
def bare_line_feeds() -> Script:
    """Lines that end with only LF, only CR, or CR CR LF."""
    head = b"POST / HTTP/1.1\nHost: agent\n" + _LENGTH + b"\n\n" + _BODY
    return raw(
        head + head.replace(b"\n", b"\r") + head.replace(b"\n", b"\r\r\n"),
        _OK.replace(b"\r\n", b"\n") * 3,
    )


@hostile
def folded_lines() -> Script:
    """Folded fields, also before any field."""
    head = b"POST / HTTP/1.1\r\n X: y\r\nHost: agent\r\nA: b\r\n\tc\r\n" + _LENGTH + b"\r\n\r\n"
    return raw(head + _BODY, b"HTTP/1.1 200 OK\r\n folded\r\nContent-Length: 2\r\n 0\r\n\r\n{}")


@hostile
def nul_bytes() -> Script:
    """NUL in the request line, in names, values, the body and the answer."""
    head = _request(b"A\0: b", b"B: \0", _LENGTH, line=b"POST /\0 HTTP/1.1")
    return raw(
        head + _BODY.replace(b"t", b"\0"), _OK.replace(b"{}", b"\0\0").replace(b"OK", b"\0K")
    )


@hostile
def invalid_utf8() -> Script:
    """Invalid UTF-8, lone surrogates and an endless number in path, fields, JSON and events."""
    body = (
        b'{"jsonrpc":"2.0","id":"\xff\xfe","method":"\xc3\x28",'
        b'"params":{"id":"\xed\xa0\x80\\ud800","n":1e99999}}'
    )
    head = _request(
        b"X: \xff", b"Content-Length: %d" % len(body), line=b"POST /\xff\xc0%ff%zz HTTP/1.1"
    )
    event = (
        b"HTTP/1.1 200 \xff\r\nContent-Type: text/event-stream\r\n\r\nid: \xff\ndata: "
        + body
        + b"\n\ndata: \xf0\x9f"
    )
    return raw(head + body, event)


@hostile
def many_fields() -> Script:
    """60,000 fields, and one of 3 MB."""
    fields = b"".join(b"X-%d: y\r\n" % number for number in range(60_000))
    return raw(b"GET / HTTP/1.1\r\n" + fields + b"X: " + b"y" * 3 * MIB + b"\r\n\r\n", _OK)


@hostile
def endless_request_line() -> Script:
    """A request line of 8 MB without an end."""
    return raw(b"GET /" + b"a" * 8 * MIB)


@hostile
def endless_chunk_extensions() -> Script:
    """Chunks of one byte with an extension of 2 MB, and 20,000 with a short one."""
    script = rpc("SendStreamingMessage").stream()
    script.agent(b"1;" + b"x=y;" * (MIB // 2) + b"\r\n:\r\n" + b"1;a=b\r\n:\r\n" * 20_000)
    return script.done()


@hostile
def wrong_chunk_sizes() -> Script:
    """Chunk sizes beyond 2^64, negative, in other digits, and missing."""
    script = rpc("SendStreamingMessage").stream()
    for size in (
        b"5",
        b"fffffffffffffffff0",
        b"-5",
        b"+5",
        b"0x5",
        b"5_0",
        b"",
        b" 5 ",
        b"\xd9\xa5",
    ):
        script.agent(size + b"\r\ndata:\r\n")
    return script.done()


@hostile
def trailer_flood() -> Script:
    """20,000 trailer fields after the last chunk, among them a length and one without a colon."""
    fields = b"".join(b"T-%d: x\r\n" % number for number in range(20_000))
    return (
        rpc("SendStreamingMessage")
        .stream()
        .agent(b"0\r\n" + fields + b"Content-Length: 9\r\nnoise\r\n\r\n")
    )


@hostile
def informational_flood() -> Script:
    """30,000 responses of 1xx before the final one, some with an invalid body."""
    return rpc().agent(
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nContent-Length: 0\r\n\r\n"
        * 15_000
        + _OK
    )


@hostile
def pipelined_requests() -> Script:
    """1,000 tiny requests before the first answer."""
    return raw(
        b"GET /tasks/1 HTTP/1.1\r\nHost: a\r\n\r\n" * 1_000,
        b"HTTP/1.1 204 No Content\r\n\r\n" * 1_000,
    )


@hostile
def answers_without_requests() -> Script:
    """Responses before the requests, and more responses than requests."""
    return Script().agent(_OK * 300).client(_request(_LENGTH, body=_BODY)).agent(_OK * 300)


@hostile
def websocket_upgrade() -> Script:
    """An upgrade to another protocol with status 101."""
    head = _request(
        b"Upgrade: websocket",
        b"Connection: Upgrade",
        b"Sec-WebSocket-Version: 13",
        line=b"GET /ws HTTP/1.1",
    )
    script = raw(
        head,
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    )
    return script.client(b"\x82\xfe\x00\x10" + bytes(range(20))).agent(
        b"\x82\x05hello" + PREFACE + b"\x88\x00"
    )


@hostile
def connect_tunnel() -> Script:
    """CONNECT, followed by HTTP/2 in the tunnel."""
    script = raw(
        b"CONNECT agent:443 HTTP/1.1\r\nHost: agent:443\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"
    )
    return script.client(PREFACE + frame(4, 0, 0, b"")).agent(frame(4, 0, 0, b""))


@hostile
def tls_hello() -> Script:
    """TLS on a port without TLS, answered with an alert."""
    hello = bytes.fromhex("16030100c8010000c40303") + bytes(range(190))
    return raw(hello, b"\x15\x03\x01\x00\x02\x02\x28")


@hostile
def no_protocol() -> Script:
    """Noise in both directions, from the agent first."""
    return (
        Script()
        .agent(b"220 hello\r\n")
        .client(bytes(range(256)) * 2_000)
        .agent(bytes(range(255, -1, -1)) * 2_000)
    )


@hostile
def nothing() -> Script:
    """Both peers close immediately."""
    return Script()


@hostile
def reset_at_once() -> Script:
    """The client connects and resets the connection."""
    return Script().end("reset", TO_AGENT)


@hostile
def reset_in_a_head() -> Script:
    """The agent resets the connection in the middle of a request's head."""
    return raw(b"GET /.well-known/agent-card.js").end("reset", TO_CLIENT)


# --- content


@hostile
def giant_event() -> Script:
    """A line of 66 MiB in an event stream."""
    script = rpc("SendStreamingMessage").stream().agent(b"%x\r\ndata: " % (66 * MIB + 8))
    for _ in range(66):
        script.agent(b"x" * MIB)
    return script.agent(b"\n\n\r\n").done()


@hostile
def event_without_end() -> Script:
    """One event of 300,000 lines, then comments and unknown fields."""
    lines = b"data: x\n" * 100_000 + b":\n" * 100_000 + b"retry: 9\nnoise\nid\n" * 33_000
    return rpc("SendStreamingMessage").stream().chunk(lines).done()


@hostile
def deep_json() -> Script:
    """JSON arrays nested 200,000 times, as a request, an answer and an event."""
    deep = (
        b'{"jsonrpc":"2.0","id":1,"method":"SendMessage","result":'
        + b'{"a":[' * 100_000
        + b"]}" * 100_000
        + b"}"
    )
    http = Http().request("POST /", deep).answer(deep)
    return http.call("SendStreamingMessage", {}).stream().chunk(b"data: " + deep + b"\n\n").done()


@hostile
def wide_json() -> Script:
    """An object with 100,000 members of one name, a number of 50,000 digits, a batch of 5,000
    calls."""
    members = b"{" + b",".join([b'"a":1'] * 100_000) + b"}"
    digits = (
        b'{"jsonrpc":"2.0","id":'
        + b"9" * 50_000
        + b',"method":"GetTask","params":{"n":'
        + b"1" * 50_000
        + b"}}"
    )
    batch = json.dumps(
        [{"jsonrpc": "2.0", "id": n, "method": "GetTask", "params": {}} for n in range(5_000)]
    ).encode()
    return (
        Http()
        .request("POST /", members)
        .answer(digits)
        .request("POST /", digits)
        .answer(batch)
        .request("POST /", batch)
    )


@hostile
def gzip_bomb() -> Script:
    """A body of 250 KB that decompresses to 256 MiB."""
    return rpc().answer(zeros(256 * MIB), content_encoding="gzip")


@hostile
def bombs_in_bombs() -> Script:
    """A body that is compressed three times, and an event stream of 80 MiB in 80 KB."""
    body = gzip.compress(gzip.compress(zeros(64 * MIB), mtime=0), mtime=0)
    script = (
        rpc().answer(body, content_encoding="gzip, gzip, gzip").call("SendStreamingMessage", {})
    )
    return script.stream(content_encoding="deflate").chunk(zeros(80 * MIB, 15)).done()


@hostile
def coding_lies() -> Script:
    """Codings that the body does not have, unknown codings, and a truncated body."""
    http = (
        rpc()
        .answer(b"plain", content_encoding="gzip")
        .call("GetTask", {})
        .answer(b"x", content_encoding="br, x, gzip")
    )
    return http.call("GetTask", {}).answer(
        gzip.compress(bytes(5000), mtime=0)[:20], content_encoding="gzip"
    )


@hostile
def agent_card_noise() -> Script:
    """Responses to a card request that are no card: an array, other types, an empty body, a very
    large body, an endless one."""
    answers = (
        b"[]",
        b'{"url":1,"supportedInterfaces":{"a":[]}}',
        b"",
        b'{"url":"http://[x"}',
        b"\xff\xfe",
    )
    script = Http()
    for body in answers:
        script.request("GET /.well-known/other.json").answer(body)
    return script.request("GET /.well-known/agent-card.jsn").agent(
        b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{"
    )
