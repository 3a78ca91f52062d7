"""Cards, learned routes and hosts through real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable

import aiohttp
import grpc
import grpc.aio
import msgspec
import pytest
from aiohttp import web

from a2a_proxy.http import PREFACE
from a2a_proxy.model.wire import ChunkKind, Direction
from a2a_proxy.relay.listener_state import EditPolicy
from a2a_proxy.relay.server import MAX_LEARNED_LISTENERS
from support_cards import PATH, call, card_agent, fetch, grpc_server, http_agent, urls_of
from support_relay import NO_EDITS, Bench, Story, agent, relaying, until

Play = Callable[[Story], None]


def edits(bench: Bench) -> list[dict[str, object]]:
    return [
        msgspec.json.decode(chunk.data)
        for chunk in bench.journal.chunks
        if chunk.kind is ChunkKind.EDIT
    ]


def test_a_card_is_rewritten_and_recorded_as_received(play: Play) -> None:
    """The client gets the proxy's URL; the journal holds the agent's card, and an EDIT record with
    both URLs."""

    async def story() -> None:
        async with (
            card_agent(("http://localhost:PORT/a", "JSONRPC")) as port,
            relaying(port, editing=EditPolicy()) as bench,
        ):
            assert await urls_of(bench) == [f"http://127.0.0.1:{bench.port}/a"]
            assert f"http://localhost:{port}/a".encode() in bench.journal.data(Direction.TO_CLIENT)
            edit = edits(bench)[-1]
            assert edit["kind"] == "card"
            assert edit["urls"] == [
                [f"http://localhost:{port}/a", f"http://127.0.0.1:{bench.port}/a"]
            ]
            response, _ = await fetch(bench, **{"If-None-Match": '"original"'})
            assert response.status == 200
            assert "original" not in response.headers["ETag"]

    play(story())


def test_an_edit_is_recorded_in_the_direction_of_its_bytes(play: Play) -> None:
    """The records of a request are the client's, those of a card the agent's; each offset is that
    of the message."""

    async def story() -> None:
        async with (
            card_agent(("http://localhost:PORT/a", "JSONRPC")) as port,
            relaying(port, editing=EditPolicy(propagate=True)) as bench,
        ):
            await fetch(bench, **{"If-None-Match": '"original"'})
            chunks = [chunk for chunk in bench.journal.chunks if chunk.kind is ChunkKind.EDIT]
            found = {msgspec.json.decode(chunk.data)["kind"]: chunk.direction for chunk in chunks}
            to_agent = dict.fromkeys(("card-request", "traceparent"), Direction.TO_AGENT)
            assert found == {**to_agent, "card": Direction.TO_CLIENT}
            for chunk in chunks:
                offset = msgspec.json.decode(chunk.data)["offset"]
                begin = b"GET " if chunk.direction is Direction.TO_AGENT else b"HTTP/1.1 200 "
                assert bench.journal.data(chunk.direction)[offset:].startswith(begin)

    play(story())


def test_never_and_keep_host_change_no_byte(play: Play) -> None:
    """With `--rewrite-card never --keep-host` the client gets what the agent sent."""

    async def story() -> None:
        async with (
            card_agent(("http://localhost:PORT/", "JSONRPC")) as port,
            relaying(port, editing=NO_EDITS) as bench,
        ):
            assert await urls_of(bench) == [f"http://localhost:{port}/"]
            assert edits(bench) == []

    play(story())


def test_a_signed_card_arrives_byte_for_byte(play: Play) -> None:
    """And the user is warned, once."""

    async def story() -> None:
        async with (
            card_agent(("http://localhost:PORT/", "JSONRPC"), signed=True) as port,
            relaying(port, editing=EditPolicy()) as bench,
        ):
            for _ in range(2):
                _, body = await fetch(bench)
                assert body in bench.journal.data(Direction.TO_CLIENT)
                assert f"localhost:{port}".encode() in body
            (note,) = bench.notes
            assert note.loud
            assert "--rewrite-card always" in note.hint

    play(story())


def test_further_interfaces_get_listeners(play: Play) -> None:
    """HTTP on other ports of the same host: at most eight, said to the user, and they lead where
    the card says."""

    async def story() -> None:
        async with contextlib.AsyncExitStack() as stack:
            ports = [
                await stack.enter_async_context(card_agent())
                for _ in range(MAX_LEARNED_LISTENERS + 1)
            ]
            listed = [(f"http://localhost:{port}/", "HTTP+JSON") for port in ports]
            port = await stack.enter_async_context(
                card_agent(("http://localhost:PORT/", "JSONRPC"), *listed)
            )
            bench = await stack.enter_async_context(relaying(port, editing=EditPolicy()))
            urls = await urls_of(bench)
            assert urls[0] == f"http://127.0.0.1:{bench.port}/"
            assert urls[-1] == f"http://localhost:{ports[-1]}/"
            assert await urls_of(bench) == urls
            assert len(bench.relay.bound_addresses) == 1 + MAX_LEARNED_LISTENERS
            session = await stack.enter_async_context(aiohttp.ClientSession())
            for number, url in enumerate(urls[1:-1]):
                assert url.startswith("http://127.0.0.1:")
                async with session.get(url + "x") as response:
                    assert response.status == 200
                dialed = [
                    chunk.data for chunk in bench.journal.chunks if chunk.kind is ChunkKind.DIALED
                ]
                assert f":{ports[number]}".encode() in dialed[-1]
            told = [note.text for note in bench.notes]
            assert sum("listening on" in text for text in told) == MAX_LEARNED_LISTENERS
            (last,) = [
                note for note in bench.notes if "not relayed because no port is free" in note.text
            ]
            assert f"127.0.0.1:{ports[-1]}" in last.text
            assert last.hint.endswith(f"--listen :PORT --upstream 127.0.0.1:{ports[-1]}")

    play(story())


def test_a_card_that_names_the_proxy_creates_no_loop(play: Play) -> None:
    """An agent configured with its public address: its card already leads to the proxy."""
    listed: list[dict[str, str]] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        return web.json_response({"name": "a", "supportedInterfaces": listed})

    async def story() -> None:
        async with http_agent(answer) as port, relaying(port, editing=EditPolicy()) as bench:
            listed.append({"url": f"http://localhost:{bench.port}/x", "protocolBinding": "JSONRPC"})
            listed.append({"url": f"localhost:{bench.port}", "protocolBinding": "GRPC"})
            assert await urls_of(bench) == [
                f"http://127.0.0.1:{bench.port}/x",
                f"127.0.0.1:{bench.port}",
            ]
            assert len(bench.relay.bound_addresses) == 1
            _, writer = await bench.connect()
            writer.write(PREFACE)
            await until(lambda: bench.journal.kinds(2)[:2] == ["OPEN", "DIALED"])
            writer.close()
            await bench.closed(2)
            assert bench.relay.stats.total == 2
            dialed = [
                chunk.data for chunk in bench.journal.chunks if chunk.kind is ChunkKind.DIALED
            ]
            assert all(f'"127.0.0.1:{port}"'.encode() in data for data in dialed)

    play(story())


async def test_the_grpc_port_is_learned_from_the_card() -> None:
    """Before the card is seen a gRPC call ends with UNAVAILABLE that names --upstream-grpc; after
    it, it arrives."""
    async with (
        grpc_server() as grpc_port,
        card_agent(
            ("http://localhost:PORT/", "JSONRPC"), (f"localhost:{grpc_port}", "GRPC")
        ) as port,
        relaying(port, editing=EditPolicy()) as bench,
    ):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(bench.port)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        assert "--upstream-grpc" in str(caught.value.details())
        refused = [chunk for chunk in bench.journal.chunks if b"HTTP/2 without TLS" in chunk.data]
        assert refused[0].kind is ChunkKind.DIALED
        assert b"400" in refused[0].data
        assert await urls_of(bench) == [
            f"http://127.0.0.1:{bench.port}/",
            f"127.0.0.1:{bench.port}",
        ]
        assert await call(bench.port) == b"hi"
        assert any("gRPC" in note.text and str(grpc_port) in note.text for note in bench.notes)


async def test_the_flag_wins_over_the_card() -> None:
    """With --upstream-grpc the card's own port for gRPC is not dialed."""
    async with (
        grpc_server() as grpc_port,
        card_agent(("http://localhost:PORT/", "JSONRPC"), ("localhost:1", "GRPC")) as port,
        relaying(port, grpc_port, editing=EditPolicy()) as bench,
    ):
        assert await urls_of(bench) == [
            f"http://127.0.0.1:{bench.port}/",
            f"127.0.0.1:{bench.port}",
        ]
        assert await call(bench.port) == b"hi"


async def test_routes_to_other_hosts_are_not_learned() -> None:
    """A card must not open a way into someone's network."""
    async with (
        card_agent(("http://10.1.2.3:80/", "JSONRPC"), ("10.1.2.3:50051", "GRPC")) as port,
        relaying(port, editing=EditPolicy("always")) as bench,
    ):
        assert await urls_of(bench) == [
            f"http://127.0.0.1:{bench.port}/",
            f"127.0.0.1:{bench.port}",
        ]
        assert len(bench.relay.bound_addresses) == 1
        assert not any(
            b"10.1.2.3" in chunk.data
            for chunk in bench.journal.chunks
            if chunk.kind is ChunkKind.DIALED
        )


@pytest.mark.parametrize("keep", [False, True])
async def test_host_toward_a_remote_upstream(monkeypatch: pytest.MonkeyPatch, keep: bool) -> None:
    """A name that is not this machine's gets its own Host, unless --keep-host."""
    from a2a_proxy.relay import dial, hosts

    async def resolve(_loop: object, _upstream: object) -> list[str]:
        return ["127.0.0.1"]

    async def none(_host: str) -> set[str]:
        return set()

    monkeypatch.setattr(dial, "_resolve_host", resolve)
    monkeypatch.setattr(hosts, "_resolve_names", none)
    async with (
        card_agent() as port,
        relaying(f"agent.example:{port}", editing=EditPolicy(keep_host=keep)) as bench,
    ):
        _, body = await fetch(bench, "/x")
        mine = f"127.0.0.1:{bench.port}"
        assert json.loads(body) == {"host": mine if keep else f"agent.example:{port}"}
        assert [edit["kind"] for edit in edits(bench)] == ([] if keep else ["host"])
        assert f"Host: {mine}".encode() in bench.journal.data(Direction.TO_AGENT)


def test_held_bytes_are_released_when_a_peer_closes(play: Play) -> None:
    """FIN in the middle of a held head or card passes what was held."""

    async def story() -> None:
        got: list[bytes] = []

        async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            got.append(await reader.read())
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{")
            writer.close()

        async with agent(half) as port, relaying(port, editing=EditPolicy()) as bench:
            for request in (b"GET /v1/ca", b"P", f"GET {PATH} HTTP/1.1\r\n\r\n".encode()):
                reader, writer = await bench.connect()
                writer.write(request)
                writer.write_eof()
                assert (await reader.read()).endswith(b"{")
                writer.close()
                assert got.pop() == request

    play(story())


def test_a_slow_card_is_released_unchanged(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is held too long is released by the relay's own timer, and said."""
    monkeypatch.setattr("a2a_proxy.relay.edits.http1.HOLD_SECONDS", 0.05)

    async def story() -> None:
        gone = asyncio.Event()

        async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{")
            await gone.wait()
            writer.write(b"}")
            writer.close()

        async with agent(slow) as port, relaying(port, editing=EditPolicy()) as bench:
            reader, writer = await bench.connect()
            writer.write(f"GET {PATH} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert (await reader.readuntil(b"{")).endswith(b"{")
            gone.set()
            assert await reader.read() == b"}"
            writer.close()
            assert "unchanged" in bench.notes[0].text

    play(story())
