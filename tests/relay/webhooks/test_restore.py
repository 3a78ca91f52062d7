"""Push configurations that are set back at the end of the proxy."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from a2a_proxy.relay.edits.edit import ConsoleNote, PushConfig
from a2a_proxy.relay.route import Listen, Upstream
from a2a_proxy.relay.tls import Tls, Trust
from a2a_proxy.relay.upstream_proxy import UpstreamProxy
from a2a_proxy.relay.webhooks import service as service_module
from a2a_proxy.relay.webhooks.registry import WebhookRegistry
from a2a_proxy.relay.webhooks.service import (
    MAX_ANSWER_BYTES,
    MAX_KEPT_BYTES,
    WebhookService,
    restore_webhook,
)
from support_relay import Handler, Story, agent, refusing_port

Play = Callable[[Story], None]
REQUEST = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}"


def answering(answer: bytes, seen: list[bytes], *, close: bool = False) -> Handler:
    """An agent that answers its first bytes, in two pieces."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readexactly(len(REQUEST)))
        writer.write(answer[:20])
        await asyncio.sleep(0.01)
        writer.write(answer[20:])
        if not close:
            await reader.read()
        writer.close()

    return handle


@pytest.mark.parametrize(
    ("answer", "accepted"),
    [
        (b'HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{"result":{}}', True),
        (b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", True),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", True),
        (b'HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{"error":{}}', False),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", False),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 2\r\n\r\n{}", False),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n"
            + bytes(MAX_ANSWER_BYTES + 1),
            False,
        ),
        (b"SSH-2.0-x\n and more of that kind\r\n\r\n", False),
    ],
    ids=["200", "201", "204", "error", "404", "coded", "long", "no HTTP"],
)
def test_what_the_agent_answers_decides(answer: bytes, accepted: bool, play: Play) -> None:
    async def story() -> None:
        seen: list[bytes] = []
        async with agent(answering(answer, seen)) as port:
            found = await restore_webhook(
                Upstream.parse(f"127.0.0.1:{port}"), REQUEST, Tls(Trust()), None
            )
        assert (found, seen) == (accepted, [REQUEST])

    play(story())


def test_answers_that_end_with_the_connection(play: Play) -> None:
    """A complete one, and one that breaks off."""

    async def story() -> None:
        for answer, accepted in (
            (b"HTTP/1.1 200 OK\r\nDate: x\r\n\r\n{}", True),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", False),
        ):
            async with agent(answering(answer, [], close=True)) as port:
                found = await restore_webhook(
                    Upstream.parse(f"127.0.0.1:{port}"), REQUEST, Tls(Trust()), None
                )
            assert found is accepted

    play(story())


def test_agents_that_do_not_answer(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of the proxy waits for a limited time."""
    monkeypatch.setattr(service_module, "RESTORE_SECONDS", 0.2)

    async def story() -> None:
        async with agent(answering(b"", [])) as port:
            for place in (port, refusing_port()):
                assert not await restore_webhook(
                    Upstream.parse(f"127.0.0.1:{place}"), REQUEST, Tls(Trust()), None
                )

    play(story())


@pytest.mark.parametrize("restores", [True, False])
def test_configurations_whose_requests_are_known(
    restores: bool, play: Play, tmp_path: Path
) -> None:
    """Requests are kept only with the option, and only short ones."""

    async def story() -> None:
        seen: list[bytes] = []
        notes: list[ConsoleNote] = []
        registry = WebhookRegistry(tmp_path, lambda: 0.0)
        service = WebhookService(Listen.parse(":0"), "http://p", registry, restores=restores)
        async with agent(answering(b"HTTP/1.1 204 No Content\r\n\r\n", seen)) as port:
            upstream = Upstream.parse(f"127.0.0.1:{port}")
            ends = ("127.0.0.1", "127.0.0.1", "127.0.0.1")
            urls = service.urls_for(
                upstream.text, upstream, set(), ends, notes.append, lambda *_: False
            )
            ours = [
                urls.replace_url("http://client.example/", PushConfig()) or "" for _ in range(3)
            ]
            urls.keep_request(ours[0], REQUEST)
            urls.keep_request(ours[1], bytes(MAX_KEPT_BYTES + 1))
            assert await service.restore_webhooks(Tls(Trust())) == int(restores)
        assert seen == [REQUEST] * restores
        registry.load()
        assert len(registry) == 3 - restores

    play(story())


def test_requests_of_deleted_configurations_make_room(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_module, "MOST_KEPT_REQUESTS", 1)

    async def story() -> None:
        seen: list[bytes] = []
        registry = WebhookRegistry(tmp_path, lambda: 0.0)
        service = WebhookService(Listen.parse(":0"), "http://p", registry, restores=True)
        async with agent(answering(b"HTTP/1.1 204 No Content\r\n\r\n", seen)) as port:
            upstream = Upstream.parse(f"127.0.0.1:{port}")
            ends = ("127.0.0.1", "127.0.0.1", "127.0.0.1")
            urls = service.urls_for(
                upstream.text, upstream, set(), ends, lambda _: None, lambda *_: False
            )
            deleted, kept, late = (
                urls.replace_url("http://client.example/", PushConfig()) or "" for _ in range(3)
            )
            urls.keep_request(deleted, REQUEST)
            urls.discard_url(deleted)
            urls.keep_request(kept, REQUEST)
            urls.keep_request(late, REQUEST)
            assert await service.restore_webhooks(Tls(Trust())) == 1
        assert seen == [REQUEST]
        assert [registry.find(url.rpartition("/")[2]) is None for url in (deleted, kept, late)] == [
            True,
            True,
            False,
        ]

    play(story())


def test_agents_behind_another_proxy(play: Play, tmp_path: Path) -> None:
    """As each call reached them."""
    connect = b"CONNECT agent.test:8000 HTTP/1.1\r\nHost: agent.test:8000\r\n\r\n"
    seen: list[bytes] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readexactly(len(connect)))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        seen.append(await reader.readexactly(len(REQUEST)))
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        await reader.read()
        writer.close()

    async def story() -> None:
        service = WebhookService(
            Listen.parse(":0"), "http://p", WebhookRegistry(tmp_path, lambda: 0.0), restores=True
        )
        upstream, ends = Upstream.parse("agent.test:8000"), ("127.0.0.1", "127.0.0.1", "127.0.0.1")
        urls = service.urls_for(
            upstream.text, upstream, set(), ends, lambda _: None, lambda *_: False
        )
        urls.keep_request(urls.replace_url("http://client.example/", PushConfig()) or "", REQUEST)
        async with agent(handle) as port:
            proxy = UpstreamProxy.parse(f"http://127.0.0.1:{port}")
            assert await service.restore_webhooks(Tls(Trust()), proxy) == 1
        assert seen == [connect, REQUEST]

    play(story())


def test_the_request_of_a_removed_registration_is_not_kept(tmp_path: Path) -> None:
    """It may have credentials."""
    service = WebhookService(
        Listen.parse(":0"), "http://p", WebhookRegistry(tmp_path, lambda: 0.0), restores=True
    )
    upstream, ends = Upstream.parse("127.0.0.1:1"), ("127.0.0.1", "127.0.0.1", "127.0.0.1")
    urls = service.urls_for(upstream.text, upstream, set(), ends, lambda _: None, lambda *_: False)
    config = PushConfig("t", "1")
    replaced, deleted, refused = (
        urls.replace_url("http://client.example/", PushConfig()) or "" for _ in range(3)
    )
    for url in (replaced, deleted, refused):
        urls.keep_request(url, REQUEST)
    counts = [service.kept_count]
    urls.restore_url(replaced, config)
    urls.restore_url(deleted, config)
    counts.append(service.kept_count)
    urls.forget_config(config)
    counts.append(service.kept_count)
    urls.discard_url(refused)
    assert [*counts, service.kept_count] == [3, 2, 1, 0]
