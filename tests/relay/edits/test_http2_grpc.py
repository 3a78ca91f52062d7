"""Extended cards over one channel of real gRPC peers (C-core on both ends), an editor between two
sockets."""

from __future__ import annotations

import asyncio
import contextlib
import itertools

import grpc
import grpc.aio
import pytest

from a2a_proxy.model.wire import Direction
from a2a_proxy.relay.edits.edit import CardOutcome, EditPlan
from a2a_proxy.relay.edits.http2 import Http2Editor

CARD = b"the card " * 100
CARDS = 1000
PIECE = bytes(64 << 10)
PIECES = 160
SERVICE = "lf.a2a.v1.A2AService"
WINDOW = [
    ("grpc.http2.lookahead_bytes", 65_535),
    ("grpc.http2.bdp_probe", 0),
    ("grpc.max_receive_message_length", -1),
]


class Agent(grpc.GenericRpcHandler):
    """Answers card calls, and a stream of 10 MB; notes what it is called."""

    def __init__(self):
        self.hosts = set()

    def service(self, details):
        if details.method.endswith("Card"):
            return grpc.unary_unary_rpc_method_handler(self.card)
        return grpc.unary_stream_rpc_method_handler(self.stream)

    async def card(self, request, context):
        self.hosts.add(dict(context.invocation_metadata()).get("x-bin-bin"))
        return CARD

    async def stream(self, request, context):
        for _ in range(PIECES):
            yield PIECE


class Between:
    """An editor between two sockets."""

    def __init__(self, port, plan):
        self.port, self.plan = port, plan
        self.tasks = set()
        self.editors = []

    async def serve(self):
        self.server = await asyncio.start_server(self.accept, "127.0.0.1", 0)
        return self.server.sockets[0].getsockname()[1]

    async def accept(self, reader, writer):
        agent_reader, agent_writer = await asyncio.open_connection("127.0.0.1", self.port)
        editor = Http2Editor(self.plan)
        self.editors.append(editor)
        writers = {Direction.TO_AGENT: agent_writer, Direction.TO_CLIENT: writer}
        both = [
            self.pump(editor, Direction.TO_AGENT, reader, writers),
            self.pump(editor, Direction.TO_CLIENT, agent_reader, writers),
        ]
        await asyncio.gather(*both)

    async def pump(self, editor, direction, reader, writers):
        loop = asyncio.get_running_loop()
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                for sent in editor.feed(direction, data, loop.time()):
                    writers[sent.direction].write(sent.data)
                if (deadline := editor.deadline) is not None:
                    loop.call_at(deadline + 0.01, self.tick, editor, writers)
                await writers[direction].drain()
        writers[direction].close()

    def tick(self, editor, writers):
        for sent in editor.tick(asyncio.get_running_loop().time()):
            writers[sent.direction].write(sent.data)


@pytest.mark.parametrize("authority", [None, b"agent.example:8443"])
@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
async def test_a_thousand_cards_share_a_grpc_channel_with_bulk_data(authority, compression):
    """With a window of 65,535, longer and shorter by turns: every call is answered, every card is a
    rewritten one."""
    turns = itertools.cycle([160, -90, 300, -500, 40])

    def rewrite(payload, form, called):
        assert (payload, form, called) == (CARD, "lf.a2a.v1", f"127.0.0.1:{port}")
        size = next(turns)
        return CardOutcome(payload + b"+" * size if size > 0 else payload[:size])

    agent, server = Agent(), grpc.aio.server(options=WINDOW, compression=compression)
    server.add_generic_rpc_handlers((agent,))
    between = Between(
        server.add_insecure_port("127.0.0.1:0"), EditPlan(authority, rewrite, "127.0.0.1:1")
    )
    await server.start()
    port = await between.serve()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=WINDOW) as channel:
        card = channel.unary_unary(f"/{SERVICE}/GetExtendedAgentCard")
        metadata = (("x-bin-bin", b"\x00\xff\xfe raw"), ("traceparent", "00-1-2-01"))
        lengths = []
        for _ in range(CARDS // 20):
            calls = [card(b"", metadata=metadata, timeout=120) for _ in range(20)]
            lengths += [len(answer) for answer in await asyncio.gather(*calls)]
        pieces = [
            len(piece)
            async for piece in channel.unary_stream(f"/{SERVICE}/SendStreamingMessage")(
                b"", timeout=120
            )
        ]
    assert sorted(lengths) == sorted(
        len(CARD) + size for size in [160, -90, 300, -500, 40] * (CARDS // 5)
    )
    assert pieces == [len(PIECE)] * PIECES
    assert agent.hosts == {b"\x00\xff\xfe raw"}
    (editor,) = between.editors
    assert [fact.kind for fact in editor.take_edits()].count("card") == CARDS
    between.server.close()
    await server.stop(0)
