"""TLS in tunnels of a forward proxy that is opened: what the client and the origin see, and what is
recorded."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import gc
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import msgspec
import pytest
import trustme

from a2a_proxy.certificates.authority import Authority
from a2a_proxy.certificates.contexts import IssuedContexts
from a2a_proxy.http import PREFACE
from a2a_proxy.model.wire import ChunkKind, Direction
from a2a_proxy.relay import tunnel
from a2a_proxy.relay.client_tls import ClientTls
from a2a_proxy.relay.host_patterns import HostPattern, InterceptPolicy
from a2a_proxy.relay.listener_state import EditPolicy
from a2a_proxy.relay.tls import Trust
from a2a_proxy.relay.tunnel import Interception
from support_relay import SECONDS, ForwardBench, Handler, Story, agent, echo, forwarding, until
from support_tls_peer import DemandingAgent

Play = Callable[[Story], None]
GET = b"GET / HTTP/1.1\r\nHost: agent.test\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
PAST = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


@pytest.fixture(scope="module")
def authority() -> Authority:
    """The proxy's authority."""
    return Authority.create("test", datetime.datetime.now(datetime.UTC))


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    """The authority of the origins."""
    return trustme.CA()


@pytest.fixture
def editing(ca: trustme.CA, tmp_path: Path) -> EditPolicy:
    path = tmp_path / "ca.pem"
    ca.cert_pem.write_to_path(str(path))
    return EditPolicy(trust=Trust(path))


def intercepting(
    authority: Authority, *patterns: str, passed: tuple[str, ...] = ()
) -> Interception:
    policy = InterceptPolicy(
        tuple(map(HostPattern.parse, patterns)), tuple(map(HostPattern.parse, passed))
    )
    return Interception(policy, ClientTls(IssuedContexts(authority)))


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(OK)
    writer.close()


def origin(
    cert: trustme.LeafCert, *alpn: str, handler: Handler = answer
) -> asyncio.Future[asyncio.Server]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    cert.configure_cert(context)
    if alpn:
        context.set_alpn_protocols(list(alpn))
    return asyncio.ensure_future(asyncio.start_server(handler, "127.0.0.1", 0, ssl=context))


def port_of(server: asyncio.Server) -> int:
    port: int = server.sockets[0].getsockname()[1]
    return port


def trusting(authority: Authority, *alpn: str) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=authority.certificate_pem.decode())
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    if alpn:
        context.set_alpn_protocols(list(alpn))
    return context


async def tunnelled(bench: ForwardBench, port: int) -> socket.socket:
    """Return a socket in a tunnel to the port."""
    loop = asyncio.get_running_loop()
    sock = socket.create_connection(("127.0.0.1", bench.port))
    sock.setblocking(False)
    await loop.sock_sendall(sock, f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())
    assert (await loop.sock_recv(sock, 1000)).startswith(b"HTTP/1.1 200 ")
    return sock


async def connect(
    bench: ForwardBench, port: int, context: ssl.SSLContext, name: str = "agent.test"
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(
        sock=await tunnelled(bench, port), ssl=context, server_hostname=name
    )


@pytest.mark.parametrize(
    ("offered", "taken", "agreed"),
    [
        (("h2", "http/1.1"), ("http/1.1",), "http/1.1"),
        (("h2", "http/1.1"), ("h2", "http/1.1"), "h2"),
        (("http/1.1",), ("h2", "http/1.1"), "http/1.1"),
        (("h2", "http/1.1"), (), None),
        ((), ("http/1.1",), None),
    ],
)
def test_the_client_gets_what_the_origin_takes(
    play: Play,
    authority: Authority,
    ca: trustme.CA,
    editing: EditPolicy,
    offered: tuple[str, ...],
    taken: tuple[str, ...],
    agreed: str | None,
) -> None:
    """ALPN and server name are those of the client and the origin; the plain text is recorded, with
    both handshakes."""

    async def story() -> None:
        server = await origin(ca.issue_cert("agent.test"), *taken, handler=echo)
        async with forwarding(
            editing=editing, interception=intercepting(authority, "agent.test")
        ) as bench:
            reader, writer = await connect(bench, port_of(server), trusting(authority, *offered))
            assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == agreed
            data = (PREFACE + b"\0\0\0\4\0\0\0\0\0") if agreed == "h2" else GET
            writer.write(data)
            assert await reader.readexactly(len(data)) == data
            writer.close()
            await bench.closed()
            (facts,) = bench.opened()
            assert facts["upstream"] == f"https://agent.test:{port_of(server)}"
            assert facts["tls"].get("alpn", "") == (agreed or "")
            assert facts["tls"]["server_name"] == "agent.test"
            (dialled,) = [
                msgspec.json.decode(c.data)
                for c in bench.journal.chunks
                if c.kind is ChunkKind.DIALED
            ]
            assert dialled["tls"].get("alpn", "") == (agreed or "")
            assert dialled["tls"]["server"]["names"] == ["agent.test"]
            assert (
                bench.journal.data(Direction.TO_AGENT)
                == bench.journal.data(Direction.TO_CLIENT)
                == data
            )
            assert bench.notes == []
        server.close()

    play(story())


def test_grpc_with_tls(
    play: Play,
    authority: Authority,
    ca: trustme.CA,
    editing: EditPolicy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Grpcio with `grpc_proxy`: HTTP/2 to both sides, and the messages are recorded as plain
    text."""
    for name in ("no_grpc_proxy", "no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "")

    async def story() -> None:
        async def handle(request: bytes, _: object) -> bytes:
            return request + b"!"

        cert = ca.issue_cert("localhost")
        server = grpc.aio.server()
        handlers = {"Call": grpc.unary_unary_rpc_method_handler(handle)}
        server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler("test.Service", handlers)]
        )
        pair = (cert.private_key_pem.bytes(), b"".join(pem.bytes() for pem in cert.cert_chain_pems))
        port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([pair]))
        await server.start()
        async with forwarding(
            editing=editing, interception=intercepting(authority, "private")
        ) as bench:
            monkeypatch.setenv("grpc_proxy", f"http://127.0.0.1:{bench.port}")
            trusted = grpc.ssl_channel_credentials(authority.certificate_pem)
            async with grpc.aio.secure_channel(f"localhost:{port}", trusted) as channel:
                call = channel.unary_unary("/test.Service/Call")
                assert await call(b"hello", timeout=SECONDS) == b"hello!"
            (facts,) = bench.opened()
            assert (facts["upstream"], facts["tls"]["alpn"]) == (f"https://localhost:{port}", "h2")
            assert bench.journal.data(Direction.TO_AGENT).startswith(PREFACE)
            assert b"hello!" in bench.journal.data(Direction.TO_CLIENT)
        await server.stop(None)

    play(story())


@pytest.mark.parametrize(
    ("patterns", "passed", "note"),
    [
        (
            ("other.test",),
            (),
            "TLS to agent.test passes unread; to read it: --intercept agent.test",
        ),
        (("private",), ("agent.test",), ""),
        (("*",), ("127.0.0.1",), ""),
    ],
)
def test_other_hosts_pass_unread(
    play: Play,
    authority: Authority,
    ca: trustme.CA,
    patterns: tuple[str, ...],
    passed: tuple[str, ...],
    note: str,
) -> None:
    """End to end: the client sees the origin's certificate. A line only for hosts that no option
    names."""

    async def story() -> None:
        server = await origin(ca.issue_cert("agent.test"))
        client = ssl.create_default_context()
        ca.configure_trust(client)
        async with forwarding(
            interception=intercepting(authority, *patterns, passed=passed)
        ) as bench:
            reader, writer = await connect(bench, port_of(server), client)
            writer.write(GET)
            assert await reader.readexactly(len(OK)) == OK
            writer.close()
            await bench.closed()
            assert not any(chunk.kind is ChunkKind.DATA for chunk in bench.journal.chunks)
            assert [each.text for each in bench.notes] == [note] * bool(note)
        server.close()

    play(story())


@pytest.mark.parametrize(
    ("name", "end", "words"),
    [
        ("agent.test", None, "is issued by a CA that is not trusted on this machine"),
        ("other.test", None, "its certificate is not for agent.test"),
        ("agent.test", PAST, "its certificate has expired"),
    ],
)
def test_an_origin_that_cannot_be_verified(
    play: Play,
    authority: Authority,
    ca: trustme.CA,
    editing: EditPolicy,
    name: str,
    end: datetime.datetime | None,
    words: str,
) -> None:
    """The client gets 502 in words, the user a line with the options that help."""

    async def story() -> None:
        trusted = end is not None or name != "agent.test"
        cert = ca.issue_cert(
            name, not_before=PAST - datetime.timedelta(1) if end else None, not_after=end
        )
        server = await origin(cert, "http/1.1")
        policy = editing if trusted else EditPolicy()
        async with forwarding(
            editing=policy, interception=intercepting(authority, "private")
        ) as bench:
            reader, writer = await connect(bench, port_of(server), trusting(authority, "http/1.1"))
            writer.write(GET)
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 502 ")
            assert words in (await reader.readuntil(b"}")).decode()
            writer.close()
            await bench.closed()
            (note,) = bench.notes
            assert words in note.text
            assert "--upstream-insecure" in note.hint
            assert "to leave it unread: --pass agent.test" in note.hint
        server.close()

    play(story())


@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_an_origin_that_asks_for_a_certificate(
    play: Play, authority: Authority, ca: trustme.CA, editing: EditPolicy, newest: ssl.TLSVersion
) -> None:
    """It may refuse before the client has sent a byte, which gets a 502 in words all the same."""

    async def story() -> None:
        with DemandingAgent(ca, newest, "http/1.1") as port:
            async with forwarding(
                editing=editing, interception=intercepting(authority, "private")
            ) as bench:
                reader, writer = await connect(bench, port, trusting(authority, "http/1.1"))
                await until(lambda: bool(bench.notes))
                writer.write(GET)
                assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 502 ")
                assert "the TLS handshake failed: " in (await reader.readuntil(b"}")).decode()
                writer.close()
                await bench.closed()
                (note,) = bench.notes
                assert "--upstream-cert FILE" in note.hint
                assert "to leave it unread: --pass agent.test" in note.hint

    play(story())


def test_https_in_absolute_form(play: Play, ca: trustme.CA, editing: EditPolicy) -> None:
    """A client that leaves TLS to the proxy: the origin is verified, and nothing needs to be
    opened."""

    async def story() -> None:
        good, bad = (
            await origin(ca.issue_cert("127.0.0.1")),
            await origin(ca.issue_cert("other.test")),
        )
        async with forwarding(editing=editing) as bench:
            reader, writer = await bench.connect()
            for server, status in ((good, b"200"), (bad, b"502")):
                writer.write(f"GET https://127.0.0.1:{port_of(server)}/ HTTP/1.1\r\n\r\n".encode())
                assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 " + status)
                if server is good:
                    assert await reader.readexactly(2) == b"ok"
            writer.close()
            await bench.closed(2)
            assert [facts["upstream"] for facts in bench.opened()] == [
                f"https://127.0.0.1:{port_of(server)}" for server in (good, bad)
            ]
            (note,) = bench.notes
            assert "its certificate is not for 127.0.0.1" in note.text
        good.close()
        bad.close()

    play(story())


def test_a_client_that_refuses_the_certificate(
    play: Play, authority: Authority, ca: trustme.CA, editing: EditPolicy
) -> None:
    """It fails as it should, also the next time; a line says how to trust the proxy and how to
    leave the host alone."""

    async def story() -> None:
        server = await origin(ca.issue_cert("agent.test"))
        async with forwarding(editing=editing, interception=intercepting(authority, "*")) as bench:
            for _ in range(2):
                with pytest.raises(ssl.SSLCertVerificationError):
                    await connect(bench, port_of(server), ssl.create_default_context())
            await asyncio.sleep(0.1)
            (note,) = bench.notes
            assert (
                "agent.test" in note.text
            )  # asyncio's client closes the connection instead of sending its alert
            assert "a2a-proxy ca env" in note.hint
            assert "--pass agent.test" in note.hint
            for number in (1, 2):
                assert bench.journal.kinds(number) == ["OPEN", "RESET to_agent", "CLOSED"]
            assert {facts["upstream"] for facts in bench.opened()} == {
                f"https://agent.test:{port_of(server)}"
            }
            reason = bench.journal.data(Direction.TO_AGENT, kind=ChunkKind.RESET).decode()
            assert reason.startswith("TLS handshake failed: the client ")
            assert "a2a-proxy ca env" in reason
            assert "--pass agent.test" in reason
        server.close()

    play(story())


def test_a_client_hello_in_pieces_without_a_name(
    play: Play, authority: Authority, ca: trustme.CA, tmp_path: Path
) -> None:
    """Without a server name the host of the CONNECT request is certified."""

    async def story() -> None:
        server = await origin(ca.issue_cert("127.0.0.1"))
        path = tmp_path / "ca.pem"
        ca.cert_pem.write_to_path(str(path))
        policy = EditPolicy(trust=Trust(path))
        async with forwarding(
            editing=policy, interception=intercepting(authority, "127.0.0.1")
        ) as bench:
            loop = asyncio.get_running_loop()
            sock = await tunnelled(bench, port_of(server))
            sent, received = ssl.MemoryBIO(), ssl.MemoryBIO()
            client = trusting(authority).wrap_bio(received, sent, server_hostname="127.0.0.1")
            shaken = False
            while not shaken:
                try:
                    client.do_handshake()
                    shaken = True
                except ssl.SSLWantReadError:
                    pass
                data = sent.read()
                for at in range(0, len(data), 100):
                    await loop.sock_sendall(sock, data[at : at + 100])
                    await asyncio.sleep(0.005)
                if not shaken:
                    received.write(await loop.sock_recv(sock, 65536))
            client.write(GET)
            await loop.sock_sendall(sock, sent.read())
            text = b""
            while not text.endswith(OK):
                received.write(await loop.sock_recv(sock, 65536))
                try:
                    text += client.read()
                except ssl.SSLWantReadError:
                    continue
            sock.close()
            await bench.closed()
            assert bench.journal.data(Direction.TO_AGENT) == GET
        server.close()

    play(story())


@pytest.mark.parametrize(
    "begin",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\x16\x03\x01\x00\x06\x01\x00\x00\x02\xff\xff",
    ],
    ids=["cut", "malformed"],
)
def test_a_client_hello_that_cannot_be_read(
    play: Play, authority: Authority, monkeypatch: pytest.MonkeyPatch, begin: bytes
) -> None:
    """Its bytes pass unread, with a line."""
    monkeypatch.setattr(tunnel, "HANDSHAKE_SECONDS", 0.1)

    async def story() -> None:
        async with (
            agent(echo) as port,
            forwarding(interception=intercepting(authority, "*")) as bench,
        ):
            loop = asyncio.get_running_loop()
            sock = await tunnelled(bench, port)
            await loop.sock_sendall(sock, begin)
            assert await loop.sock_recv(sock, 1000) == begin
            sock.close()
            await bench.closed()
            (note,) = bench.notes
            assert (
                "TLS to 127.0.0.1 passes unread: a client sent a ClientHello that is" in note.text
            )

    play(story())


@pytest.mark.parametrize("name", [b"a..b", b".agent.test", b"agent.test..", b"...."])
def test_a_server_name_that_no_certificate_has(
    play: Play, authority: Authority, ca: trustme.CA, name: bytes
) -> None:
    """The client gets an answer, and the user a line; no error is left to the event loop."""

    async def story() -> None:
        errors: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, error: errors.append(error))
        server = await origin(ca.issue_cert("agent.test"))
        async with forwarding(interception=intercepting(authority, "*")) as bench:
            sock = await tunnelled(bench, port_of(server))
            loop, incoming, outgoing = asyncio.get_running_loop(), ssl.MemoryBIO(), ssl.MemoryBIO()
            context = ssl.create_default_context()
            placeholder = "x" * len(name)
            with contextlib.suppress(ssl.SSLWantReadError):
                context.wrap_bio(incoming, outgoing, server_hostname=placeholder).do_handshake()
            await loop.sock_sendall(sock, outgoing.read().replace(placeholder.encode(), name, 1))
            assert (await loop.sock_recv(sock, 1000))[:1] == b"\x16"  # a ServerHello
            sock.close()
            await until(lambda: len(bench.notes) == 2)
            assert f"{name.decode()} is no name" in bench.notes[0].text
            assert "closed the connection during the TLS handshake" in bench.notes[1].text
        server.close()
        gc.collect()
        await asyncio.sleep(0)
        assert errors == []

    play(story())
