"""Deliveries through the relay: from a registration to the receiver, and what is refused."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import json
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec
import pytest
import trustme
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived
from h2.settings import SettingCodes, Settings

from a2a_proxy.certificates.authority import Authority
from a2a_proxy.certificates.contexts import IssuedContexts
from a2a_proxy.model.wire import ChunkKind, ConnectionFacts, Direction
from a2a_proxy.relay.client_tls import ClientTls
from a2a_proxy.relay.clock import session_clock
from a2a_proxy.relay.edits.edit import ConsoleNote, PushConfig
from a2a_proxy.relay.listener_state import EditPolicy
from a2a_proxy.relay.route import Listen, Route, Upstream
from a2a_proxy.relay.server import Relay
from a2a_proxy.relay.tls import Trust
from a2a_proxy.relay.webhooks import delivery, delivery_requests
from a2a_proxy.relay.webhooks.registration import Registration
from a2a_proxy.relay.webhooks.registry import WebhookRegistry
from a2a_proxy.relay.webhooks.service import WebhookService
from support_relay import Bench, Handler, MemoryJournal, Story, agent, refusing_port, until
from support_tls_peer import Peer, run_client, tls_agent

Play = Callable[[Story], None]
GRPC = "application/grpc"


class WebhookBench(Bench):
    """A relay with a listener for deliveries."""

    registry: WebhookRegistry

    def register(self, url: str, *sources: str) -> Registration:
        found = self.registry.add(url, "agent:1", sources, PushConfig())
        assert found is not None
        return found

    @property
    def delivery_port(self) -> int:
        return int(self.relay.webhook_addresses[0].rpartition(":")[2])

    async def deliver(self, *requests: bytes) -> bytes:
        """Send requests on one connection, and return all responses."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.delivery_port)
        for request in requests:
            writer.write(request)
        writer.write_eof()
        with contextlib.closing(writer):
            return await reader.read()


@contextlib.asynccontextmanager
async def webhooks(
    folder: Path,
    upstream: int | str,
    client_tls: ClientTls | None = None,
    trust: Trust = Trust(),  # noqa: B008 (frozen)
    *,
    propagate: bool = False,
) -> AsyncIterator[WebhookBench]:
    registry = WebhookRegistry(folder, lambda: 0.0)
    journal, notes = MemoryJournal(), list[ConsoleNote]()
    to = Upstream.parse(upstream if isinstance(upstream, str) else f"127.0.0.1:{upstream}")
    service = WebhookService(Listen.parse(":0"), "", registry)
    editing = EditPolicy("never", keep_host=True, trust=trust, propagate=propagate)
    relay = Relay(
        [Route(Listen.parse(":0"), to)],
        session_clock(),
        editing,
        notes.append,
        client_tls=client_tls,
    )
    relay.take_deliveries(service)
    await relay.bind_listeners()
    relay.accept_connections(journal)
    bench = WebhookBench(relay, journal, notes)
    bench.registry = registry
    try:
        yield bench
    finally:
        await relay.stop()


def receiving(seen: list[bytes], status: bytes = b"204 No Content", name: bytes = b"") -> Handler:
    """A receiver that keeps each request and answers it."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(
                    (head.lower().partition(b"content-length: ")[2] or b"0").partition(b"\r\n")[0]
                )
                seen.append(head + await reader.readexactly(length))
                writer.write(
                    b"HTTP/1.1 %s\r\nX-Name: %s\r\nContent-Length: 0\r\n\r\n" % (status, name)
                )
        writer.close()

    return handle


def post(target: str, body: bytes = b"{}", *fields: str) -> bytes:
    lines = [
        f"POST {target} HTTP/1.1",
        "Host: 127.0.0.1:9100",
        f"Content-Length: {len(body)}",
        *fields,
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def test_a_delivery_reaches_the_receiver(play: Play, tmp_path: Path) -> None:
    """With its own `Host` and path, and everything else as the agent sent it; recorded as such,
    with an edit."""

    async def story() -> None:
        seen: list[bytes] = []
        async with agent(receiving(seen)) as receiver, webhooks(tmp_path, 1) as bench:
            where = f"127.0.0.1:{receiver}"
            key = bench.register(f"http://{where}/hook?x=1", "127.0.0.1").key
            fields = ("X-A2A-Notification-Token: word", "Authorization: Bearer b", "x-odd:  1 ")
            got = await bench.deliver(post(f"/{key}", b'{"a":1}', *fields))
            assert got == b"HTTP/1.1 204 No Content\r\nX-Name: \r\nContent-Length: 0\r\n\r\n"
            expected = post("/hook?x=1", b'{"a":1}', *fields).replace(
                b"127.0.0.1:9100", where.encode()
            )
            assert seen == [expected]
            await bench.closed()
            assert bench.journal.data(Direction.TO_AGENT) == expected
            assert bench.journal.kinds().count("EDIT to_agent") == 1
            facts = msgspec.json.decode(bench.journal.chunks[0].data, type=ConnectionFacts)
            assert (facts.upstream, facts.listen.rpartition(":")[2]) == (
                where,
                str(bench.delivery_port),
            )
            assert facts.deliverer == "agent:1"
            assert key.encode() not in b"".join(chunk.data for chunk in bench.journal.chunks)

    play(story())


def test_any_method_and_a_path_behind_the_key(play: Play, tmp_path: Path) -> None:
    """Validation challenges; below a base with a path, which something between may have left in the
    target."""

    async def story() -> None:
        seen: list[bytes] = []
        async with agent(receiving(seen)) as receiver, webhooks(tmp_path, 1) as bench:
            key = bench.register(f"http://127.0.0.1:{receiver}/hook").key
            for line in (
                f"GET /{key}?validationToken=a%20b",
                f"OPTIONS /{key}/",
                f"PUT /hooks/{key}/a/b?c",
            ):
                await bench.deliver(f"{line} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
            lines = [head.partition(b" HTTP/1.1")[0] for head in seen]
            assert lines == [
                b"GET /hook?validationToken=a%20b",
                b"OPTIONS /hook/",
                b"PUT /hook/a/b?c",
            ]

    play(story())


def test_two_receivers_on_one_connection(play: Play, tmp_path: Path) -> None:
    """Each delivery, its retry too, gets the answer of its receiver; each receiver has a recorded
    connection."""

    async def story() -> None:
        one_seen: list[bytes] = []
        two_seen: list[bytes] = []
        async with (
            agent(receiving(one_seen, b"500 Oops", b"one")) as one,
            agent(receiving(two_seen, name=b"two")) as two,
            webhooks(tmp_path, 1) as bench,
        ):
            first = bench.register(f"http://127.0.0.1:{one}/").key
            second = bench.register(f"http://127.0.0.1:{two}/").key
            keys = (first, first, second)
            got = await bench.deliver(
                *(post(f"/{key}", b'{"n":%d}' % n) for n, key in enumerate(keys))
            )
            assert [part.partition(b"\r\n")[0] for part in got.split(b"X-Name: ")[1:]] == [
                b"one",
                b"one",
                b"two",
            ]
            assert (len(one_seen), len(two_seen)) == (2, 1)
            assert [bench.journal.kinds(number).count("EDIT to_agent") for number in (1, 2)] == [
                2,
                1,
            ]

    play(story())


def test_no_redirect_is_followed(play: Play, tmp_path: Path) -> None:
    """It is the agent's to follow, as without the proxy."""

    async def story() -> None:
        seen: list[bytes] = []
        moved = b"307 Moved\r\nLocation: http://127.0.0.1:1/"
        async with agent(receiving(seen, moved)) as receiver, webhooks(tmp_path, 1) as bench:
            key = bench.register(f"http://127.0.0.1:{receiver}/").key
            got = await bench.deliver(post(f"/{key}"))
            assert got.startswith(b"HTTP/1.1 " + moved)
            assert len(seen) == 1

    play(story())


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/", 404),
        ("/hook", 404),
        ("/" + "0" * 32, 404),
        ("http://127.0.0.1:1/hook", 404),
        ("/KEY/../x", 400),
        ("/KEY/%2e%2e", 400),
        ("/KEY/..;/x", 400),
        ("/KEY/%252e%252e/x", 400),
        ("/OTHER", 403),
    ],
)
def test_refused_deliveries(target: str, status: int, play: Play, tmp_path: Path) -> None:
    """By the proxy itself; nothing is sent anywhere. The path never chooses the receiver."""

    async def story() -> None:
        seen: list[bytes] = []
        async with agent(receiving(seen)) as receiver, webhooks(tmp_path, 1) as bench:
            url = f"http://127.0.0.1:{receiver}/hook"
            keys = {"KEY": bench.register(url).key, "OTHER": bench.register(url, "10.0.0.1").key}
            path = target
            for name, key in keys.items():
                path = path.replace(name, key)
            got = await bench.deliver(post(path))
            problem = json.loads(got.partition(b"\r\n\r\n")[2])
            assert problem["status"] == status
            assert problem["detail"].startswith("a2a-proxy")
            assert (seen, [note.text for note in bench.notes]) == ([], [problem["detail"]])
            assert ("from 127.0.0.1" in problem["detail"]) is (target == "/" + "0" * 32)

    play(story())


def test_a_receiver_that_is_down(play: Play, tmp_path: Path) -> None:
    """The agent gets a 502 of the proxy, which is recorded as such."""

    async def story() -> None:
        async with webhooks(tmp_path, 1) as bench:
            key = bench.register(f"http://127.0.0.1:{refusing_port()}/hook").key
            got = await bench.deliver(post(f"/{key}"))
            assert got.startswith(b"HTTP/1.1 502 ")
            assert b"cannot reach the webhook 127.0.0.1:" in got
            await bench.closed()
            assert bench.journal.data(Direction.TO_CLIENT, kind=ChunkKind.OURS) == got

    play(story())


def test_the_relay_is_no_receiver(play: Play, tmp_path: Path) -> None:
    """A registration that leads to a port of the relay cannot make a loop."""

    async def story() -> None:
        async with webhooks(tmp_path, 1) as bench:
            key = bench.register(f"http://127.0.0.1:{bench.delivery_port}/").key
            assert (await bench.deliver(post(f"/{key}/{key}"))).startswith(b"HTTP/1.1 502 ")

    play(story())


@pytest.mark.parametrize("framing", ["Content-Length: 3000", "Transfer-Encoding: chunked"])
def test_long_deliveries(
    framing: str, play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are cut at a limit, also if their length is not announced."""
    monkeypatch.setattr(delivery_requests, "MAX_DELIVERY_BYTES", 1000)
    monkeypatch.setattr(delivery_requests, "MAX_HEAD_BYTES", 0)

    async def story() -> None:
        seen: list[bytes] = []
        async with agent(receiving(seen)) as receiver, webhooks(tmp_path, 1) as bench:
            key = bench.register(f"http://127.0.0.1:{receiver}/hook").key
            head = f"POST /{key} HTTP/1.1\r\nHost: h\r\n{framing}\r\n\r\n".encode()
            got = await bench.deliver(head + b"bb8\r\n" + b"x" * 3000 + b"\r\n0\r\n\r\n")
            assert b" 413 " in got or (not got and "chunked" in framing)
            assert all(len(request) < 2000 for request in seen)

    play(story())


def test_slow_deliveries(play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that sends nothing, and a receiver that does not answer, hold a connection for a
    limited time."""
    monkeypatch.setattr(delivery, "DELIVERY_SECONDS", 0.05)

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async def story() -> None:
        async with agent(silent) as receiver, webhooks(tmp_path, 1) as bench:
            key = bench.register(f"http://127.0.0.1:{receiver}/hook").key
            for sent in (b"", b"POST", post(f"/{key}")):
                reader, writer = await asyncio.open_connection("127.0.0.1", bench.delivery_port)
                writer.write(sent)
                with contextlib.suppress(ConnectionError):
                    assert await reader.read() == b""
                writer.close()
            await until(lambda: bench.relay.stats.open == 0)

    play(story())


@pytest.mark.parametrize(
    "begin", [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\x00\x05hello"]
)
def test_other_protocols(begin: bytes, play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with webhooks(tmp_path, 1) as bench:
            await bench.deliver(begin)
            assert "which takes HTTP/1.1" in bench.notes[0].text

    play(story())


def test_a_registration_on_its_way(play: Play, tmp_path: Path) -> None:
    """The agent gets the proxy's URL at the address by which it is reached, and may deliver there;
    the client reads its own URL."""

    async def story() -> None:
        seen: list[bytes] = []
        got: list[str] = []

        async with (
            agent(receiving(seen)) as receiver,
            agent(creating(got)) as upstream,
            webhooks(tmp_path, upstream) as bench,
        ):
            url = f"http://127.0.0.1:{receiver}/hook"
            reader, writer = await bench.connect()
            writer.write(
                post("/tasks/t/pushNotificationConfigs", json.dumps({"url": url}).encode())
            )
            body = (await reader.read()).partition(b"\r\n\r\n")[2]
            writer.close()
            assert json.loads(body) == {"taskId": "t", "id": "1", "url": url}
            base, _, key = got[0].rpartition("/")
            assert base == f"http://127.0.0.1:{bench.delivery_port}"
            (known,) = bench.registry.list_live()
            assert (known.key, known.config, known.sources) == (
                key,
                PushConfig("t", "1"),
                ("127.0.0.1", "::1"),
            )
            assert (await bench.deliver(post(f"/{key}"))).startswith(b"HTTP/1.1 204")
            assert seen[0].startswith(b"POST /hook HTTP/1.1\r\n")
            await bench.closed(1)
            assert (
                bench.journal.kinds(1).count("EDIT to_agent")
                == bench.journal.kinds(1).count("EDIT to_client")
                == 1
            )
            assert bench.notes == []

    play(story())


def test_the_url_of_an_agent_s_own_listener_stays(play: Play, tmp_path: Path) -> None:
    """Notifications for a port of the relay pass here anyway."""

    async def story() -> None:
        got: list[bytes] = []

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            got.append(await reader.read())
            writer.close()

        async with agent(answer) as upstream, webhooks(tmp_path, upstream) as bench:
            reader, writer = await bench.connect()
            sent = post(
                "/tasks/t/pushNotificationConfigs", b'{"url":"http://localhost:%d/x"}' % bench.port
            )
            writer.write(sent)
            writer.write_eof()
            await reader.read()
            assert got == [sent]
            writer.close()

    play(story())


def creating(got: list[str]) -> Handler:
    """An agent that creates one configuration, keeps its URL, and answers with it."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0])
        config = json.loads(await reader.readexactly(length))
        got.append(config["url"])
        body = json.dumps({"taskId": "t", "id": "1"} | config).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        writer.close()

    return answer


def test_agent_and_webhook_with_tls(play: Play, tmp_path: Path) -> None:
    """With `--tls` the agent gets an https:// URL; the agent and the webhook have certificates of
    their own."""
    ca = trustme.CA()
    ca.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1", "localhost").configure_cert(server)
    authority = Authority.create("test", datetime.datetime.now(datetime.UTC))
    trusting = ssl.create_default_context(cadata=authority.certificate_pem.decode())
    (folder := tmp_path / "webhooks").mkdir()

    async def story() -> None:
        seen: list[bytes] = []
        got: list[str] = []
        tls, trust = ClientTls(IssuedContexts(authority)), Trust(tmp_path / "ca.pem")
        async with (
            agent(receiving(seen), tls=server) as receiver,
            agent(creating(got), tls=server) as upstream,
            webhooks(folder, f"https://127.0.0.1:{upstream}", tls, trust) as bench,
        ):
            url = f"https://127.0.0.1:{receiver}/hook"
            reader, writer = await bench.connect()
            writer.write(
                post("/tasks/t/pushNotificationConfigs", json.dumps({"url": url}).encode())
            )
            assert json.loads((await reader.read()).partition(b"\r\n\r\n")[2])["url"] == url
            writer.close()
            base, _, key = got[0].rpartition("/")
            assert base == f"https://127.0.0.1:{bench.delivery_port}"
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", bench.delivery_port, ssl=trusting
            )
            for _ in range(2):
                writer.write(post(f"/{key}"))
                assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 204 ")
            writer.close()
            assert len(seen) == 2
            await bench.closed(2)
            facts = msgspec.json.decode(
                next(
                    c.data
                    for c in bench.journal.chunks
                    if c.kind is ChunkKind.OPEN and c.connection == 2
                ),
                type=ConnectionFacts,
            )
            assert facts.tls is not None
            assert bench.journal.kinds(2).count("EDIT to_agent") == 2
            assert bench.notes == []

    play(story())


@pytest.mark.parametrize(
    "ends", ["agent", "agent without close_notify", "receiver", "receiver without close_notify"]
)
def test_the_end_of_a_delivery_over_tls(
    ends: str, play: Play, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The end of one peer reaches the other with its kind, as on a listener for clients: with or
    without close_notify."""
    ca = trustme.CA()
    ca.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    authority = Authority.create("test", datetime.datetime.now(datetime.UTC))
    (folder := tmp_path / "webhooks").mkdir()
    is_clean = "without" not in ends
    response = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nends with the connection"
    received: list[bool] = []

    def receive(peer: Peer) -> None:
        if ends.startswith("agent"):
            received.append(peer.read()[1])
        else:
            peer.read_some()
        if ends != "agent without close_notify":  # with OpenSSL the receiver cannot write any more
            peer.send(response)
        peer.end() if is_clean else peer.cut()
        peer.wait_fin()

    async def story() -> None:
        with tls_agent(ca, receive) as receiver:
            async with webhooks(
                folder, 1, ClientTls(IssuedContexts(authority)), Trust(tmp_path / "ca.pem")
            ) as bench:
                key = bench.register(f"https://localhost:{receiver}/hook").key

                def deliver(peer: Peer) -> None:
                    peer.send(post(f"/{key}"))
                    if ends.startswith("agent"):
                        peer.end() if is_clean else peer.cut()
                    assert peer.read() == (
                        b"" if ends == "agent without close_notify" else response,
                        is_clean,
                    )

                async with asyncio.timeout(3):
                    await run_client(bench.delivery_port, authority, deliver)
                await bench.closed()
        assert received == ([is_clean] if ends.startswith("agent") else [])
        assert not caplog.records

    play(story())


def test_an_agent_that_does_not_trust_the_proxy(play: Play, tmp_path: Path) -> None:
    """The handshake fails, and a line says what to do."""
    authority = Authority.create("test", datetime.datetime.now(datetime.UTC))

    async def story() -> None:
        async with webhooks(tmp_path, 1, ClientTls(IssuedContexts(authority))) as bench:
            with pytest.raises(ssl.SSLError):
                await asyncio.open_connection(
                    "127.0.0.1", bench.delivery_port, ssl=ssl.create_default_context()
                )
            await until(lambda: bool(bench.notes))
            assert "a2a-proxy ca" in bench.notes[0].hint

    play(story())


def test_an_agent_that_is_already_gone_gets_no_urls(play: Play, tmp_path: Path) -> None:
    """Its addresses are not known after a reset right behind the accept."""

    async def story() -> None:
        async with webhooks(tmp_path, 1) as bench:
            ((listener, _),) = bench.relay._sockets
            for extra in ({}, {"sockname": ("127.0.0.1", 1)}):
                gone = asyncio.Transport(extra)
                assert (
                    listener.plan_edits(Upstream.parse("127.0.0.1:1"), "", gone, gone, tls=False)
                    is None
                )
            here = asyncio.Transport({"sockname": ("127.0.0.1", 1), "peername": ("127.0.0.1", 2)})
            plan = listener.plan_edits(Upstream.parse("127.0.0.1:1"), "", here, here, tls=False)
            assert plan is not None
            assert plan.webhooks is not None

    play(story())


def test_an_agent_that_begins_http2_before_its_client(play: Play, tmp_path: Path) -> None:
    """Its windows are those of the messages that are edited: a long one was an error, and ended the
    connection."""
    sent = 200_000

    async def story() -> None:
        got = asyncio.get_running_loop().create_future()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            h2 = H2Connection(H2Configuration(client_side=False))
            h2.local_settings = Settings(
                client=False, initial_values={SettingCodes.INITIAL_WINDOW_SIZE: 1 << 20}
            )
            h2.initiate_connection()
            h2.increment_flow_control_window(1 << 20)
            writer.write(h2.data_to_send())
            total = 0
            while data := await reader.read(1 << 16):
                total += sum(
                    len(event.data)
                    for event in h2.receive_data(data)
                    if isinstance(event, DataReceived)
                )
                writer.write(h2.data_to_send())
                if total >= sent and not got.done():
                    got.set_result(total)
            writer.close()

        async with (
            agent(serve) as port,
            webhooks(tmp_path, port, propagate=True) as bench,
            asyncio.timeout(30),
        ):
            reader, writer = await bench.connect()
            await until(lambda: bench.relay.stats.bytes_to_client > 0)
            h2 = H2Connection()
            h2.initiate_connection()
            writer.write(h2.data_to_send())
            while (
                h2.remote_settings.initial_window_size < sent
                or h2.outbound_flow_control_window < sent
            ):
                h2.receive_data(await reader.read(1 << 16))
            path = "/lf.a2a.v1.A2AService/SendMessage"
            fields = {
                ":method": "POST",
                ":scheme": "http",
                ":path": path,
                ":authority": "a",
                "content-type": GRPC,
            }
            h2.send_headers(1, list(fields.items()))
            message = b"\0" + (sent - 5).to_bytes(4) + bytes(sent - 5)
            for at in range(0, sent, h2.max_outbound_frame_size):
                h2.send_data(1, message[at : at + h2.max_outbound_frame_size])
            writer.write(h2.data_to_send())
            assert await got == sent
            writer.close()

    play(story())
