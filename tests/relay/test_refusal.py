from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import Callable

import aiohttp
import grpc
import grpc.aio
import h2.config
import h2.connection
import h2.events
import pytest
from hpack import Encoder

from a2a_proxy.http import PREFACE
from a2a_proxy.http.h2 import encode_frame
from a2a_proxy.model.wire import ChunkKind, Direction
from a2a_proxy.relay.problem import percent_encode, unreachable
from a2a_proxy.relay.refusal import (
    Http1Refusal,
    Http2Refusal,
    SilentRefusal,
    TlsRefusal,
    make_refusal,
)
from a2a_proxy.relay.refusal_responder import RefusalResponder
from support_relay import SECONDS, UNKNOWN, Story, refusing_port, relaying, until

Play = Callable[[Story], None]
WHY = "connection refused"
UPSTREAM = "agent.example:9001"
PROBLEM = unreachable(UPSTREAM, WHY)


def fed(refusal: RefusalResponder, pieces: list[bytes]) -> bytes:
    return b"".join(refusal.feed(piece) for piece in pieces)


def splits(wire: bytes) -> list[list[bytes]]:
    """Whole, byte by byte, and cut in two at each place."""
    singles = [wire[index : index + 1] for index in range(len(wire))]
    return [[wire], singles, *([wire[:cut], wire[cut:]] for cut in range(1, len(wire)))]


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "M-SEARCH", "PRI"])
def test_http1_in_every_split(method: str) -> None:
    """One 502 with a problem document; none of its body to a HEAD; silence before the request's
    head is complete."""
    wire = f"{method} /x HTTP/1.1\r\nHost: a\r\n\r\n".encode()
    for pieces in splits(wire):
        refusal = Http1Refusal(PROBLEM)
        assert fed(refusal, pieces[:-1]) == b""
        head, _, body = refusal.feed(pieces[-1]).partition(b"\r\n\r\n")
        assert refusal.is_done
        assert head.startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
        assert b"Connection: close" in head
        if method == "HEAD":
            assert body == b""
        else:
            assert f"Content-Length: {len(body)}".encode() in head
            assert json.loads(body) == {
                "type": "about:blank",
                "title": "Bad Gateway",
                "status": 502,
                "detail": f"a2a-proxy cannot reach the upstream agent {UPSTREAM}: {WHY}",
            }


@pytest.mark.parametrize(
    ("begin", "kind"),
    [
        (b"G", None),
        (b"GET", None),
        (b"GET ", Http1Refusal),
        (PREFACE[:5], None),
        (PREFACE[:-1], None),
        (PREFACE, Http2Refusal),
        (b"\x16\x03\x01", TlsRefusal),
        (b"A" * 40, SilentRefusal),
        (b"\0", SilentRefusal),
    ],
)
def test_the_first_bytes_select_the_responder(begin: bytes, kind: type | None) -> None:
    """The first bytes tell the protocol, or are not enough to tell."""
    found = make_refusal(begin, PROBLEM)
    assert found is None if kind is None else type(found) is kind


def grpc_call() -> tuple[h2.connection.H2Connection, bytes]:
    client = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
    client.initiate_connection()
    client.send_headers(
        1,
        [
            (":method", "POST"),
            (":scheme", "http"),
            (":authority", "a"),
            (":path", "/lf.a2a.v1.A2AService/SendMessage"),
            ("content-type", "application/grpc+proto"),
            ("te", "trailers"),
        ],
    )
    client.send_data(1, b"\0\0\0\0\0", end_stream=True)
    return client, client.data_to_send()


def test_http2_in_every_split() -> None:
    """A gRPC call gets UNAVAILABLE naming the upstream, by frames that an HTTP/2 library
    accepts."""
    _, wire = grpc_call()
    for pieces in splits(wire):
        client, _ = grpc_call()
        events = client.receive_data(fed(Http2Refusal(PROBLEM), pieces))
        (response,) = (event for event in events if isinstance(event, h2.events.ResponseReceived))
        assert response.headers is not None
        fields = dict(response.headers)
        assert fields[b":status"] == b"200"
        assert fields[b"grpc-status"] == b"14"
        assert UPSTREAM.encode() in fields[b"grpc-message"]
        assert any(isinstance(event, h2.events.ConnectionTerminated) for event in events)


def test_http2_settings_are_sent_at_once() -> None:
    """A client that waits for SETTINGS before it sends HEADERS gets them, and its SETTINGS and PING
    are answered."""
    refusal = Http2Refusal(PROBLEM)
    assert refusal.feed(PREFACE) == encode_frame(4, 0, 0, b"")
    assert refusal.feed(
        encode_frame(4, 0, 0, b"") + encode_frame(6, 0, 0, b"12345678")
    ) == encode_frame(4, 1, 0, b"") + encode_frame(6, 1, 0, b"12345678")
    assert (
        refusal.feed(
            encode_frame(4, 1, 0, b"")
            + encode_frame(6, 1, 0, b"12345678")
            + encode_frame(8, 0, 0, b"\0\0\1\0")
        )
        == b""
    )
    assert not refusal.is_done


def test_http2_headers_in_pieces_with_padding_and_priority() -> None:
    """PADDED, PRIORITY and CONTINUATION are read, and several calls at once are all answered before
    GOAWAY."""
    client, _ = grpc_call()
    block = Encoder().encode([(b":method", b"POST"), (b"content-type", b"application/grpc")])
    wire = (
        PREFACE
        + encode_frame(4, 0, 0, b"")
        + encode_frame(1, 0x8 | 0x20, 1, b"\3" + bytes(5) + block[:4] + bytes(3))
        + encode_frame(9, 0x4, 1, block[4:])
        + encode_frame(1, 0x4 | 0x1, 3, Encoder().encode([(b":method", b"GET"), (b":path", b"/")]))
    )
    out = Http2Refusal(PROBLEM).feed(wire)
    client.send_headers(
        3,
        [(":method", "GET"), (":scheme", "http"), (":authority", "a"), (":path", "/")],
        end_stream=True,
    )
    events = client.receive_data(out)
    statuses = [
        dict(event.headers or [])[b":status"]
        for event in events
        if isinstance(event, h2.events.ResponseReceived)
    ]
    assert statuses == [b"200", b"502"]
    assert (
        events.index(next(e for e in events if isinstance(e, h2.events.ConnectionTerminated)))
        == len(events) - 1
    )


@pytest.mark.parametrize(
    ("wire", "code"),
    [
        (encode_frame(1, 0x8, 1, b""), 1),
        (encode_frame(1, 0x8 | 0x4, 1, b"\x09ab"), 1),
        (encode_frame(1, 0x4, 1, b"\xff\xff\xff\xff\xff"), 9),
        (encode_frame(1, 0, 1, b"a") + encode_frame(9, 0, 1, bytes(70_000)), 11),
    ],
)
def test_invalid_http2_ends_in_goaway(wire: bytes, code: int) -> None:
    """What cannot be read ends the connection with the matching error, not with an exception."""
    refusal = Http2Refusal(PROBLEM)
    out = refusal.feed(PREFACE + wire)
    assert refusal.is_done
    assert out.endswith(encode_frame(7, 0, 0, bytes(4) + bytes((0, 0, 0, code))))
    assert refusal.feed(b"more") == b""


@pytest.mark.parametrize("size", [9 + 8, 1 << 16])
def test_http2_frames_are_answered_up_to_a_limit(size: int) -> None:
    """A client that sends thousands of frames gets so many answers, then GOAWAY, whatever it comes
    in."""
    wire = PREFACE + encode_frame(6, 0, 0, bytes(8)) * 5_000
    out = fed(Http2Refusal(PROBLEM), [wire[at : at + size] for at in range(0, len(wire), size)])
    assert out == encode_frame(4, 0, 0, b"") + encode_frame(6, 1, 0, bytes(8)) * 500 + encode_frame(
        7, 0, 0, struct.pack(">II", 0, 11)
    )


def test_grpc_message_encoding() -> None:
    """All but printable ASCII is percent-encoded UTF-8, and so is the percent sign."""
    assert percent_encode("a b%ü\n~") == b"a b%25%C3%BC%0A~"


def test_aiohttp_gets_502(play: Play) -> None:
    """An HTTP client gets the problem document, also for a POST with a body; the copy tells ours
    from theirs."""
    port = refusing_port()

    async def story() -> None:
        async with relaying(port) as bench, aiohttp.ClientSession() as session:
            async with session.post(
                f"http://127.0.0.1:{bench.port}/", json={"method": "SendMessage"}
            ) as response:
                problem = await response.json(content_type="application/problem+json")
                assert response.status == 502
            assert f"127.0.0.1:{port}" in problem["detail"]
            assert "a2a-proxy" in problem["detail"]
            await bench.closed()
            journal = bench.journal
            assert journal.data(Direction.TO_AGENT).startswith(b"POST / HTTP/1.1\r\n")
            assert journal.data(Direction.TO_CLIENT) == b""
            assert journal.data(Direction.TO_CLIENT, kind=ChunkKind.OURS).startswith(
                b"HTTP/1.1 502 "
            )
            kinds = [chunk.kind.name for chunk in journal.chunks]
            assert kinds.index("DATA") < kinds.index("OURS")
            dialed = next(chunk for chunk in journal.chunks if chunk.kind is ChunkKind.DIALED)
            facts = {"upstream": f"127.0.0.1:{port}", "peer": None, "error": "connection refused"}
            assert json.loads(dialed.data) == facts

    play(story())


def test_a_large_upload_gets_502(play: Play) -> None:
    """A client that is still sending reads the answer instead of a reset."""

    async def story() -> None:
        async with relaying(refusing_port()) as bench:
            reader, writer = await bench.connect()
            writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4000000\r\n\r\n")
            for _ in range(40):
                writer.write(bytes(100_000))
                await writer.drain()
            assert (await reader.read()).startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
            writer.close()

    play(story())


def test_an_unresolvable_upstream_is_named(play: Play) -> None:
    """The answer says that the name cannot be resolved."""

    async def story() -> None:
        async with relaying(f"{UNKNOWN}:80") as bench:
            reader, writer = await bench.connect()
            writer.write(b"GET / HTTP/1.0\r\n\r\n")
            answer = await reader.read()
            assert f"cannot resolve {UNKNOWN}".encode() in answer
            writer.close()

    play(story())


def test_an_unknown_protocol_is_closed(play: Play) -> None:
    """Where nothing can be said, the connection ends, and the record tells why."""

    async def story() -> None:
        async with relaying(refusing_port()) as bench:
            reader, writer = await bench.connect()
            writer.write(b"\x05\x01\x00hello")
            assert await reader.read() == b""
            writer.close()
            await bench.closed()
            assert bench.journal.kinds()[:2] == ["OPEN", "DIALED"]

    play(story())


def test_grpc_gets_unavailable(play: Play) -> None:
    """A grpcio client gets UNAVAILABLE with the upstream's name, for unary and streaming calls
    alike."""
    port = refusing_port()

    async def story() -> None:
        async with (
            relaying(port) as bench,
            grpc.aio.insecure_channel(f"127.0.0.1:{bench.port}") as channel,
        ):
            unary = channel.unary_unary("/lf.a2a.v1.A2AService/GetTask", bytes, bytes)
            stream = channel.unary_stream(
                "/lf.a2a.v1.A2AService/SendStreamingMessage", bytes, bytes
            )
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await unary(b"\n\1a", timeout=SECONDS)
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
            details = caught.value.details() or ""
            assert (
                details
                == f"a2a-proxy cannot reach the upstream agent 127.0.0.1:{port}: connection refused"
            )
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                async for _ in stream(b"", timeout=SECONDS):
                    pass
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE

    play(story())


def test_grpc_reaches_an_agent_that_comes_up_later(play: Play) -> None:
    """The refused connection ends, so that the same channel finds the agent once it is there."""

    async def answer(request: bytes, context: object) -> bytes:
        return b"here: " + request

    async def story() -> None:
        port = refusing_port()
        async with (
            relaying(port) as bench,
            grpc.aio.insecure_channel(f"127.0.0.1:{bench.port}") as channel,
        ):
            call = channel.unary_unary("/a.B/C", bytes, bytes)
            with pytest.raises(grpc.aio.AioRpcError):
                await call(b"x", timeout=SECONDS)
            server = grpc.aio.server()
            handler = grpc.unary_unary_rpc_method_handler(answer, bytes, bytes)
            server.add_generic_rpc_handlers(
                (grpc.method_handlers_generic_handler("a.B", {"C": handler}),)
            )
            server.add_insecure_port(f"127.0.0.1:{port}")
            await server.start()
            assert await call(b"x", timeout=SECONDS, wait_for_ready=True) == b"here: x"
            await server.stop(None)

    play(story())


def test_http2_json_gets_502(play: Play) -> None:
    """An HTTP/2 client without gRPC gets 502 and the problem document."""

    async def story() -> None:
        async with relaying(refusing_port()) as bench:
            reader, writer = await bench.connect()
            client = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
            client.initiate_connection()
            head = [(":method", "POST"), (":scheme", "http"), (":authority", "a"), (":path", "/")]
            client.send_headers(1, [*head, ("content-type", "application/json")])
            client.send_data(1, b"{}", end_stream=True)
            writer.write(client.data_to_send())
            events: list[h2.events.Event] = []
            while data := await reader.read(65536):
                events += client.receive_data(data)
            body = b"".join(
                event.data or b"" for event in events if isinstance(event, h2.events.DataReceived)
            )
            assert json.loads(body)["status"] == 502
            writer.close()

    play(story())


def test_the_answer_waits_for_the_first_bytes(play: Play) -> None:
    """Where dialling fails before the client has said anything, it still hears the answer in its
    own protocol."""

    async def story() -> None:
        async with relaying(refusing_port()) as bench:
            reader, writer = await bench.connect()
            await until(lambda: "DIALED" in bench.journal.kinds())
            writer.write(b"GET / HT")
            await asyncio.sleep(0.02)
            writer.write(b"TP/1.1\r\nHost: a\r\n\r\n")
            assert (await reader.read()).startswith(b"HTTP/1.1 502 ")
            writer.close()

    play(story())


@pytest.mark.parametrize(
    ("fields", "waits"),
    [
        (b"Content-Length: 4\r\n", True),
        (b"Content-Length: 0\r\n", False),
        (b"Content-Length: 4\r\nExpect: 100-continue\r\n", False),
        (b"Content-Length: 4\r\nContent-Length: 5\r\n", False),
        (b"Content-Length: 1048577\r\n", False),
        (b"Transfer-Encoding: chunked\r\n", False),
    ],
)
def test_the_answer_waits_for_a_body_with_a_length(fields: bytes, waits: bool) -> None:
    wire = b"POST / HTTP/1.1\r\nHost: a\r\n" + fields + b"\r\n"
    for pieces in splits(wire):
        assert bool(fed(Http1Refusal(PROBLEM), pieces)) is not waits
    if waits:
        for pieces in splits(wire + b"body"):
            refusal = Http1Refusal(PROBLEM)
            assert fed(refusal, pieces[:-1]) == b""
            assert refusal.feed(pieces[-1]).startswith(b"HTTP/1.1 502 ")
            assert refusal.finish() == b""
        refusal = Http1Refusal(PROBLEM)
        refusal.feed(wire + b"bo")
        assert refusal.finish().startswith(b"HTTP/1.1 502 ")
        assert refusal.is_done
        assert refusal.feed(b"dy") == b""


def test_the_recording_has_a_body_that_arrives_later(play: Play) -> None:
    """The answer follows it: clients write the head and the body apart."""

    async def story() -> None:
        async with relaying(refusing_port()) as bench:
            reader, writer = await bench.connect()
            writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n")
            await until(lambda: "DIALED" in bench.journal.kinds())
            await asyncio.sleep(0.02)
            writer.write(b"body")
            assert (await reader.read()).startswith(b"HTTP/1.1 502 ")
            writer.close()
            await bench.closed()
            sent = [
                each.kind
                for each in bench.journal.chunks
                if each.kind in (ChunkKind.DATA, ChunkKind.OURS)
            ]
            assert sent == [ChunkKind.DATA, ChunkKind.DATA, ChunkKind.OURS]

    play(story())


def test_a_client_that_ends_within_its_request_gets_502(play: Play) -> None:
    async def story() -> None:
        async with relaying(refusing_port()) as bench:
            reader, writer = await bench.connect()
            writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbo")
            writer.write_eof()
            assert (await reader.read()).startswith(b"HTTP/1.1 502 ")
            writer.close()

    play(story())
