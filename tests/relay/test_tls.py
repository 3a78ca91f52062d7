"""TLS toward upstreams: verification, offered protocols, and what a client gets if the handshake
fails."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import json
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import grpc
import grpc.aio
import pytest
import trustme

from a2a_proxy.model.wire import ChunkKind, Direction
from a2a_proxy.relay import connection
from a2a_proxy.relay.listener_state import EditPolicy
from a2a_proxy.relay.route import RouteError, Upstream
from a2a_proxy.relay.tls import CertificateFiles, Tls, Trust, explain_handshake_error
from support_relay import SECONDS, Bench, Story, agent, refusing_port, relaying
from support_tls_peer import DemandingAgent

Play = Callable[[Story], None]
PAST = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
GET = b"GET / HTTP/1.1\r\nHost: proxy:9000\r\n\r\n"


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def ca_file(ca: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ca") / "ca.pem"
    ca.cert_pem.write_to_path(str(path))
    return path


def server_context(cert: trustme.LeafCert, *alpn: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    cert.configure_cert(context)
    if alpn:
        context.set_alpn_protocols(list(alpn))
    return context


async def http_agent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers each request with its own head; keeps the connection."""
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while head := await reader.readuntil(b"\r\n\r\n"):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(head) + head)
    writer.close()


async def ask(bench: Bench, request: bytes = GET) -> tuple[bytes, bytes]:
    """Head and body of the answer."""
    reader, writer = await bench.connect()
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
    body = await reader.readexactly(length)
    writer.close()
    return head, body


def test_the_right_certificate(play: Play, ca: trustme.CA, ca_file: Path) -> None:
    """The agent is reached, offered only http/1.1, told its own name by SNI and Host; the journal
    holds plain text."""
    seen: list[tuple[str | None, str | None]] = []

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(
            (
                writer.get_extra_info("ssl_object").selected_alpn_protocol(),
                names[-1] if names else None,
            )
        )
        await http_agent(reader, writer)

    names: list[str | None] = []

    async def story() -> None:
        context = server_context(ca.issue_cert("localhost"), "h2", "http/1.1")
        context.sni_callback = lambda _socket, name, _context: names.append(name)
        async with (
            agent(note, tls=context) as port,
            relaying(
                f"https://localhost:{port}", editing=EditPolicy(trust=Trust(ca_file))
            ) as bench,
        ):
            head, body = await ask(bench)
            assert head.startswith(b"HTTP/1.1 200")
            assert body == GET  # localhost is this machine: Host stays
            await bench.closed()
            assert bench.journal.data(Direction.TO_AGENT) == GET
            assert bench.journal.data(Direction.TO_CLIENT) == head + body
            assert seen == [("http/1.1", "localhost")]

    play(story())


def expired(ca: trustme.CA) -> trustme.LeafCert:
    return ca.issue_cert("localhost", not_before=PAST, not_after=PAST + datetime.timedelta(days=1))


CERTIFICATES = {
    "wrong host": (
        lambda ca: ca.issue_cert("other.example"),
        "is not for localhost",
        "--upstream-insecure",
    ),
    "common name only": (
        lambda ca: ca.issue_cert(common_name="localhost"),
        "is not for localhost",
        "subjectAltName",
    ),
    "expired": (expired, "has expired", "--upstream-insecure"),
    "unknown ca": (
        lambda _: trustme.CA().issue_cert("localhost"),
        "not trusted on this machine",
        "--upstream-ca FILE",
    ),
}


@pytest.mark.parametrize("case", CERTIFICATES)
def test_wrong_certificates(play: Play, ca: trustme.CA, ca_file: Path, case: str) -> None:
    """The client gets a 502 that names the reason, the user one line with a hint, however often it
    happens."""
    make, said, hint = CERTIFICATES[case]

    async def story() -> None:
        async with (
            agent(http_agent, tls=server_context(make(ca))) as port,
            relaying(
                f"https://localhost:{port}", editing=EditPolicy(trust=Trust(ca_file))
            ) as bench,
        ):
            for _ in range(2):
                head, body = await ask(bench)
                assert head.startswith(b"HTTP/1.1 502")
                assert said in body.decode()
            (note,) = bench.notes
            assert said in note.text
            assert hint in note.hint
            assert bench.journal.data(Direction.TO_CLIENT, kind=ChunkKind.OURS) == head + body

    play(story())


def test_insecure_takes_any_certificate(play: Play) -> None:
    """With --upstream-insecure neither issuer nor name matters."""

    async def story() -> None:
        async with (
            agent(http_agent, tls=server_context(trustme.CA().issue_cert("other.example"))) as port,
            relaying(
                f"https://localhost:{port}", editing=EditPolicy(trust=Trust(insecure=True))
            ) as bench,
        ):
            head, _ = await ask(bench)
            assert head.startswith(b"HTTP/1.1 200")

    play(story())


def test_an_agent_without_tls_is_named(play: Play) -> None:
    """An agent that speaks plain HTTP where TLS is expected is said to be one."""

    async def story() -> None:
        async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        async with (
            agent(plain) as port,
            relaying(
                f"https://localhost:{port}", editing=EditPolicy(trust=Trust(insecure=True))
            ) as bench,
        ):
            head, body = await ask(bench)
            assert head.startswith(b"HTTP/1.1 502")
            assert b"does not speak TLS" in body

    play(story())


async def grpc_call(port: int) -> bytes:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        return await channel.unary_unary("/a.B/Echo")(b"hello", timeout=SECONDS)


@contextlib.asynccontextmanager
async def grpc_agent(ca: trustme.CA) -> AsyncIterator[int]:
    async def echo(request: bytes, context: object) -> bytes:
        return request

    server = grpc.aio.server()
    handlers = {"Echo": grpc.unary_unary_rpc_method_handler(echo)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("a.B", handlers),))
    cert = ca.issue_cert("localhost")
    key, chain = cert.private_key_pem.bytes(), b"".join(pem.bytes() for pem in cert.cert_chain_pems)
    port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(key, chain)]))
    await server.start()
    try:
        yield port
    finally:
        await server.stop(None)


async def test_grpc_over_tls(ca: trustme.CA, ca_file: Path) -> None:
    """A client without TLS reaches a gRPC agent behind TLS; the handshake offers h2."""
    async with (
        grpc_agent(ca) as port,
        relaying(f"https://localhost:{port}", editing=EditPolicy(trust=Trust(ca_file))) as bench,
    ):
        assert await grpc_call(bench.port) == b"hello"


@pytest.mark.parametrize("alpn", [("http/1.1",), ()])
async def test_grpc_to_an_agent_without_http2(
    ca: trustme.CA, ca_file: Path, alpn: tuple[str, ...]
) -> None:
    """The call ends with UNAVAILABLE that names the mismatch, and the user reads
    --upstream-grpc."""
    async with (
        agent(http_agent, tls=server_context(ca.issue_cert("localhost"), *alpn)) as port,
        relaying(f"https://localhost:{port}", editing=EditPolicy(trust=Trust(ca_file))) as bench,
    ):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await grpc_call(bench.port)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        assert "does not speak HTTP/2" in str(caught.value.details())
        (note,) = bench.notes
        assert "--upstream-grpc" in note.hint


def test_a_refused_offer_is_a_mismatch() -> None:
    """Servers that require ALPN answer with an alert; the error explains it."""
    error = ssl.SSLError(
        1, "[SSL: TLSV1_ALERT_NO_APPLICATION_PROTOCOL] tlsv1 alert no application protocol"
    )
    error.reason = "TLSV1_ALERT_NO_APPLICATION_PROTOCOL"
    assert (
        "does not speak HTTP/1.1"
        in explain_handshake_error(error, Upstream.parse("https://agent"), ("http/1.1",)).message
    )


def test_ends_over_tls(play: Play, ca: trustme.CA, ca_file: Path) -> None:
    """The agent's end reaches the client after all bytes; a client that leaves takes its upstream
    connection along."""

    async def bye(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.0 200 OK\r\n\r\n" + b"x" * 300_000)
        writer.close()

    async def story() -> None:
        trust = EditPolicy(trust=Trust(ca_file))
        async with (
            agent(bye, tls=server_context(ca.issue_cert("localhost"))) as port,
            relaying(f"https://localhost:{port}", editing=trust) as bench,
        ):
            reader, writer = await bench.connect()
            writer.write(GET)
            assert (await reader.read()).endswith(b"\r\n\r\n" + b"x" * 300_000)
            writer.close()
            await bench.closed()
        async with (
            agent(http_agent, tls=server_context(ca.issue_cert("localhost"))) as port,
            relaying(f"https://localhost:{port}", editing=trust) as bench,
        ):
            await ask(bench)
            await bench.closed()

    play(story())


def test_an_invalid_ca_file_is_refused(tmp_path: Path) -> None:
    """A missing file and one without certificates are the user's mistakes."""
    for path in (tmp_path / "missing.pem", tmp_path / "empty.pem"):
        if path.name == "empty.pem":
            path.write_text("nothing")
        with pytest.raises(RouteError) as caught:
            Tls(Trust(path)).prepare_contexts()
        assert str(path) in caught.value.message


def test_a_tls_client_without_tls_on_the_listener(play: Play) -> None:
    """Before an https upstream, which would wait for bytes that it can read, it gets an alert and
    the user a line."""

    async def story() -> None:
        async with relaying("https://127.0.0.1:1") as bench:
            for _ in range(2):
                with pytest.raises(ssl.SSLError, match="ALERT_HANDSHAKE_FAILURE"):
                    await asyncio.open_connection(
                        "127.0.0.1", bench.port, ssl=ssl.create_default_context()
                    )
            await bench.closed(2)
            (note,) = bench.notes
            assert (
                note.text
                == f"a client speaks TLS at 127.0.0.1:{bench.port}, which takes plain text only"
            )
            assert note.hint == "to take TLS there: --tls; or let the client use http://"
            assert bench.journal.data(Direction.TO_CLIENT, kind=ChunkKind.OURS)[:1] == b"\x15"
            assert bench.journal.kinds()[:2] == ["OPEN", "DIALED"]

    play(story())


def test_a_tls_client_of_an_agent_that_is_down(play: Play) -> None:
    """TLS passes unread to an upstream without TLS; if it is down, the client gets an alert instead
    of silence."""

    async def story() -> None:
        async with relaying(refusing_port()) as bench:
            with pytest.raises(ssl.SSLError, match="ALERT_HANDSHAKE_FAILURE"):
                await asyncio.open_connection(
                    "127.0.0.1", bench.port, ssl=ssl.create_default_context()
                )
            await bench.closed()

    play(story())


VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


@pytest.mark.parametrize("newest", VERSIONS)
def test_an_agent_that_asks_for_a_certificate(
    play: Play, ca: trustme.CA, ca_file: Path, tmp_path: Path, newest: ssl.TLSVersion
) -> None:
    """It gets the certificate of --upstream-cert. Without one the client gets a 502, and the user
    reads of that option, also with TLS 1.3, where the agent refuses only after the handshake."""
    ca.issue_cert("client.example").private_key_and_cert_chain_pem.write_to_path(
        str(tmp_path / "own.pem")
    )

    async def story() -> None:
        with DemandingAgent(ca, newest) as port:
            own = Trust(ca_file, own=CertificateFiles(tmp_path / "own.pem"))
            async with relaying(
                f"https://localhost:{port}", editing=EditPolicy(trust=own)
            ) as bench:
                _, body = await ask(bench)
                assert b"client.example" in body
                assert bench.notes == []
            post = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + bytes(100000)
            for request in (GET, post):
                async with relaying(
                    f"https://localhost:{port}", editing=EditPolicy(trust=Trust(ca_file))
                ) as bench:
                    head, body = await ask(bench, request)
                    assert head.startswith(b"HTTP/1.1 502 ")
                    await bench.closed()
                    (shown,) = bench.notes
                    words = f"localhost:{port}: the TLS handshake failed: "
                    assert shown.text.startswith(f"no connection to https://{words}")
                    assert words in json.loads(body)["detail"]
                    assert "--upstream-cert FILE" in shown.hint
                    assert shown.loud
                    assert (
                        bench.journal.data(Direction.TO_CLIENT, kind=ChunkKind.OURS) == head + body
                    )
                    assert bench.journal.data(Direction.TO_AGENT) == request
                    assert "RESET to_client" not in bench.journal.kinds()

    play(story())


@pytest.mark.parametrize("newest", VERSIONS)
async def test_grpc_to_an_agent_that_asks_for_a_certificate(
    ca: trustme.CA, ca_file: Path, newest: ssl.TLSVersion
) -> None:
    with DemandingAgent(ca, newest, "h2") as port:
        async with relaying(
            f"https://localhost:{port}", editing=EditPolicy(trust=Trust(ca_file))
        ) as bench:
            with pytest.raises(grpc.aio.AioRpcError, match="the TLS handshake failed: ") as caught:
                await grpc_call(bench.port)
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
            assert "--upstream-cert FILE" in bench.notes[0].hint


def test_a_long_request_to_an_agent_that_asks_for_a_certificate(
    play: Play, ca: trustme.CA, ca_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No response can be made without all of its bytes: the client is reset, and the recording has
    the reason."""
    monkeypatch.setattr(connection, "MAX_BUFFERED", len(GET) - 1)

    async def story() -> None:
        with DemandingAgent(ca, ssl.TLSVersion.TLSv1_3) as port:
            async with relaying(
                f"https://localhost:{port}", editing=EditPolicy(trust=Trust(ca_file))
            ) as bench:
                with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                    await ask(bench)
                await bench.closed()
                (cut,) = [c for c in bench.journal.chunks if c.kind is ChunkKind.RESET]
                assert cut.data.startswith(b"TLS handshake failed: ")
                assert "--upstream-cert FILE" in bench.notes[0].hint

    play(story())
