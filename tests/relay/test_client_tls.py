"""TLS toward clients: one port takes TLS and plain text; what a client gets, and what the user
reads if it fails."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import socket
import ssl
import time
from collections.abc import Callable
from pathlib import Path

import grpc
import grpc.aio
import msgspec
import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes

from a2a_proxy.certificates.authority import Authority, encode_server, make_key
from a2a_proxy.certificates.contexts import FileContexts, IssuedContexts
from a2a_proxy.model.wire import ChunkKind, ConnectionFacts, DialFacts, Direction, TlsFacts
from a2a_proxy.relay import client_tls
from a2a_proxy.relay.client_tls import ClientTls
from a2a_proxy.relay.listener_state import EditPolicy
from a2a_proxy.relay.tls import CertificateFiles, Trust
from support_relay import NO_EDITS, SECONDS, Bench, Story, agent, echo, relaying, until

Play = Callable[[Story], None]
TO_AGENT, TO_CLIENT = Direction.TO_AGENT, Direction.TO_CLIENT
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.create("test", datetime.datetime.now(datetime.UTC))


@pytest.fixture
def tls(authority: Authority) -> ClientTls:
    return ClientTls(IssuedContexts(authority))


@pytest.fixture
def trusting(authority: Authority) -> ssl.SSLContext:
    """A client that trusts the authority, in the strict mode."""
    context = ssl.create_default_context(cadata=authority.certificate_pem.decode())
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    return context


async def connect(
    bench: Bench, context: ssl.SSLContext, name: str = "localhost"
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", bench.port, ssl=context, server_hostname=name)


def opened(bench: Bench, connection: int = 1) -> TlsFacts | None:
    """The facts of the client's handshake, from the journal."""
    (data,) = [
        c.data
        for c in bench.journal.chunks
        if c.kind is ChunkKind.OPEN and c.connection == connection
    ]
    return msgspec.json.decode(data, type=ConnectionFacts).tls


def dialled(bench: Bench) -> TlsFacts | None:
    (data,) = [c.data for c in bench.journal.chunks if c.kind is ChunkKind.DIALED]
    return msgspec.json.decode(data, type=DialFacts).tls or None


def test_one_port_takes_tls_and_plain_text(
    play: Play, tls: ClientTls, trusting: ssl.SSLContext, authority: Authority
) -> None:
    """The copy holds the plain text of both, and the facts of the handshake."""

    async def story() -> None:
        async with agent(echo) as port, relaying(port, client_tls=tls) as bench:
            for number, encrypted in ((1, True), (2, False), (3, True)):
                reader, writer = await (
                    connect(bench, trusting, "agent.example") if encrypted else bench.connect()
                )
                writer.write(b"x" * 300_000)
                assert await reader.readexactly(300_000) == b"x" * 300_000
                writer.close()
                await bench.closed(number)
                assert (
                    bench.journal.data(TO_AGENT, number)
                    == bench.journal.data(TO_CLIENT, number)
                    == b"x" * 300_000
                )
                facts = opened(bench, number)
                assert (facts is not None) is encrypted
            assert facts is not None
            assert (facts.version, facts.alpn, facts.server_name) == (
                "TLSv1.3",
                "",
                "agent.example",
            )
            assert facts.cipher.startswith("TLS_")
            assert facts.server is not None
            assert facts.server.names == ("agent.example",)
            assert facts.server.not_after.startswith(
                f"{datetime.datetime.now(datetime.UTC) + datetime.timedelta(89):%Y-%m-%dT}"
            )
            assert facts.client is None
            assert bench.notes == []

    play(story())


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_without_a_server_name_the_address_is_certified(
    play: Play, tls: ClientTls, trusting: ssl.SSLContext, address: str
) -> None:
    """Clients send no address as a server name."""

    async def story() -> None:
        async with agent(echo) as port, relaying(port, client_tls=tls) as bench:
            reader, writer = await asyncio.open_connection(address, bench.port, ssl=trusting)
            writer.write(b"hello")
            assert await reader.readexactly(5) == b"hello"
            writer.close()
            await bench.closed()
            facts = opened(bench)
            assert facts is not None
            assert facts.server is not None
            assert (facts.server_name, facts.server.names) == ("", (address,))

    play(story())


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        (("h2", "http/1.1"), "http/1.1"),
        (("http/1.1", "h2"), "http/1.1"),
        (("h2",), "h2"),
        (("other",), None),
        ((), None),
    ],
)
def test_http_1_is_chosen_where_both_are_offered(
    play: Play,
    tls: ClientTls,
    trusting: ssl.SSLContext,
    offered: tuple[str, ...],
    chosen: str | None,
) -> None:
    """Cards are edited there; gRPC offers h2 alone."""
    trusting.set_alpn_protocols(list(offered))

    async def story() -> None:
        async with agent(echo) as port, relaying(port, client_tls=tls) as bench:
            _, writer = await connect(bench, trusting)
            assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == chosen
            writer.close()
            await bench.closed()
            facts = opened(bench)
            assert facts is not None
            assert facts.alpn == (chosen or "")

    play(story())


def test_a_hello_in_pieces(play: Play, tls: ClientTls, trusting: ssl.SSLContext) -> None:
    """Nothing is lost however slowly the client begins."""

    async def story() -> None:
        async with agent(echo) as port, relaying(port, client_tls=tls) as bench:
            to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
            session = trusting.wrap_bio(to_client, to_server, server_hostname="localhost")
            reader, writer = await bench.connect()
            with contextlib.suppress(ssl.SSLWantReadError):
                session.do_handshake()
            hello = to_server.read()
            for size in (1, 1, 4, len(hello)):
                writer.write(hello[:size])
                hello = hello[size:]
                await asyncio.sleep(0.02)
            while True:
                to_client.write(await reader.read(65536))
                try:
                    session.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    pass
            session.write(b"hello")
            writer.write(to_server.read())
            await until(lambda: bench.journal.data(TO_AGENT) == b"hello")
            writer.close()
            await bench.closed()

    play(story())


CARD = (
    b'{"name":"a","url":"http://127.0.0.1:%d/rpc",'
    b'"protocolVersion":"0.3.0","skills":[],"capabilities":{}}'
)


def test_a_card_leads_back_the_way_the_client_came(
    play: Play, tls: ClientTls, trusting: ssl.SSLContext
) -> None:
    """`https` for a client with TLS, and without the port if the client names none; `http` for
    another."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while await reader.readuntil(b"\r\n\r\n"):
                body = CARD % writer.get_extra_info("sockname")[1]
                head = (
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                    b"Content-Length: %d\r\n\r\n" % len(body)
                )
                writer.write(head + body)

    async def url(bench: Bench, host: bytes, context: ssl.SSLContext | None) -> str:
        reader, writer = await (bench.connect() if context is None else connect(bench, context))
        writer.write(b"GET /.well-known/agent-card.json HTTP/1.1\r\nHost: %s\r\n\r\n" % host)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        body = await reader.readexactly(int(head.partition(b"content-length:")[2].split()[0]))
        writer.close()
        found: str = msgspec.json.decode(body)["url"]
        return found

    async def story() -> None:
        async with (
            agent(serve) as port,
            relaying(port, client_tls=tls, editing=EditPolicy()) as bench,
        ):
            assert await url(bench, b"localhost:9", trusting) == "https://localhost:9/rpc"
            assert await url(bench, b"proxy.example", trusting) == "https://proxy.example/rpc"
            assert await url(bench, b"localhost:9", None) == "http://localhost:9/rpc"

    play(story())


def test_tls_on_both_sides(
    play: Play, tls: ClientTls, trusting: ssl.SSLContext, tmp_path: Path
) -> None:
    """The facts of each handshake are those of that side."""
    ca = trustme.CA()
    ca.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("localhost", "127.0.0.1").configure_cert(server)
    server.set_alpn_protocols(["http/1.1"])
    editing = msgspec.structs.replace(NO_EDITS, trust=Trust(tmp_path / "ca.pem"))

    async def story() -> None:
        async with (
            agent(echo, tls=server) as port,
            relaying(f"https://localhost:{port}", client_tls=tls, editing=editing) as bench,
        ):
            reader, writer = await connect(bench, trusting)
            writer.write(GET)
            assert await reader.readexactly(len(GET)) == GET
            writer.close()
            await bench.closed()
            near, far = opened(bench), dialled(bench)
            assert near is not None
            assert far is not None
            assert near.server is not None
            assert far.server is not None
            assert (near.server.names, near.server.verified) == (("localhost",), False)
            assert (far.server.names, far.server.verified) == (("localhost", "127.0.0.1"), True)
            assert (far.alpn, far.server_name, far.client) == ("http/1.1", "localhost", None)
            assert far.server.not_after
            assert len(far.server.sha256) == 64

    play(story())


def test_an_unverified_certificate_is_named_as_such(
    play: Play, tls: ClientTls, trusting: ssl.SSLContext
) -> None:
    """Its fingerprint is known; an address is no server name."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("other.example").configure_cert(server)
    editing = msgspec.structs.replace(NO_EDITS, trust=Trust(insecure=True))

    async def story() -> None:
        async with (
            agent(echo, tls=server) as port,
            relaying(f"https://127.0.0.1:{port}", client_tls=tls, editing=editing) as bench,
        ):
            reader, writer = await connect(bench, trusting)
            writer.write(GET)
            assert await reader.readexactly(len(GET)) == GET
            writer.close()
            await bench.closed()
            far = dialled(bench)
            assert far is not None
            assert far.server is not None
            assert (far.server_name, far.server.verified, len(far.server.sha256)) == ("", False, 64)

    play(story())


async def test_grpc(tls: ClientTls, authority: Authority) -> None:
    """A secure channel reaches an agent without TLS."""

    async def answer(request: bytes, context: object) -> bytes:
        return request

    server = grpc.aio.server()
    handlers = {"Echo": grpc.unary_unary_rpc_method_handler(answer)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("a.B", handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with relaying(port, client_tls=tls) as bench:
        credentials = grpc.ssl_channel_credentials(authority.certificate_pem)
        async with grpc.aio.secure_channel(f"localhost:{bench.port}", credentials) as channel:
            assert await channel.unary_unary("/a.B/Echo")(b"hello", timeout=SECONDS) == b"hello"
        await bench.closed()
        facts = opened(bench)
        assert facts is not None
        assert facts.alpn == "h2"
    await server.stop(None)


# Ends


def test_the_clients_end_reaches_the_agent_after_all_bytes(
    play: Play, tls: ClientTls, trusting: ssl.SSLContext
) -> None:
    received: list[bytes] = []

    async def read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(await reader.read())
        writer.close()

    async def story() -> None:
        async with agent(read) as port, relaying(port, client_tls=tls) as bench:
            _, writer = await connect(bench, trusting)
            writer.write(b"x" * 1_000_000)
            writer.close()
            await bench.closed()
            await until(lambda: bool(received))
            assert received == [b"x" * 1_000_000]

    play(story())


def test_stopping_closes_clients_that_have_not_begun(
    play: Play, tls: ClientTls, trusting: ssl.SSLContext
) -> None:
    """Neither silence nor half of a handshake delays the end."""

    async def story() -> None:
        async with agent(echo) as port, relaying(port, client_tls=tls) as bench:
            clients = [await bench.connect() for _ in range(2)]
            clients[1][1].write(b"\x16\x03\x01\x02\x00\x01\x00")
            await until(lambda: len(bench.relay._handshakes) == 2)
            await asyncio.sleep(0.05)
            began = time.monotonic()
            await bench.relay.stop(5.0)
            for reader, writer in clients:
                with contextlib.suppress(ConnectionError):
                    assert await reader.read() == b""
                writer.close()
            assert time.monotonic() - began < 4
            assert bench.journal.chunks == []

    play(story())


# Handshakes that fail


def blocking_handshake(port: int, context: ssl.SSLContext) -> None:
    """Connect as most clients do, which send an alert if they refuse; asyncio sends none."""
    with (
        socket.create_connection(("127.0.0.1", port)) as sock,
        context.wrap_socket(sock, server_hostname="localhost"),
    ):
        pass


def failing(play: Play, tls: ClientTls, client: Callable[[Bench], object]) -> list[tuple[str, str]]:
    """Run a client whose handshake fails; return the user's lines, with PORT for the port. The
    connection and the reason are recorded, and nothing else."""
    lines: list[tuple[str, str]] = []

    async def story() -> None:
        async with agent(echo) as port, relaying(port, client_tls=tls) as bench:
            await client(bench)  # type: ignore[misc]
            await until(lambda: bool(bench.notes))
            lines.extend(
                (note.text.replace(str(bench.port), "PORT"), note.hint) for note in bench.notes
            )
            assert all(note.loud for note in bench.notes)
            await until(lambda: not bench.relay._handshakes)
            for number in {chunk.connection for chunk in bench.journal.chunks}:
                assert bench.journal.kinds(number) == ["OPEN", "RESET to_agent", "CLOSED"]
                (reason,) = [
                    c.data
                    for c in bench.journal.chunks
                    if c.kind is ChunkKind.RESET and c.connection == number
                ]
                assert reason.startswith(b"TLS handshake failed: ")
            assert bench.journal.data(TO_AGENT) == b""
            assert opened(bench) is None
            assert not bench.relay._connections

    play(story())
    return lines


def test_a_client_that_does_not_trust_the_authority(play: Play, tls: ClientTls) -> None:
    async def client(bench: Bench) -> None:
        for _ in range(2):
            with pytest.raises(ssl.SSLCertVerificationError):
                await asyncio.to_thread(
                    blocking_handshake,
                    bench.port,
                    ssl.create_default_context(cadata=trustme.CA().cert_pem.bytes().decode()),
                )
        await until(lambda: bench.journal.kinds(2)[-1:] == ["CLOSED"])
        reason = bench.journal.data(TO_AGENT, kind=ChunkKind.RESET).decode()
        assert reason.startswith(
            "TLS handshake failed: the client refused the proxy's "
            "certificate for localhost: tlsv1 alert unknown ca; "
        )
        assert "a2a-proxy ca env" in reason

    ((text, hint),) = failing(play, tls, client)
    assert (
        text == "a client of 127.0.0.1:PORT refused the proxy's "
        "certificate for localhost: tlsv1 alert unknown ca"
    )
    assert 'eval "$(a2a-proxy ca env)"' in hint


def test_a_client_that_leaves(play: Play, tls: ClientTls, trusting: ssl.SSLContext) -> None:
    """Node.js, for example, closes the connection without an alert."""

    async def client(bench: Bench) -> None:
        sent = ssl.MemoryBIO()
        with contextlib.suppress(ssl.SSLWantReadError):
            trusting.wrap_bio(ssl.MemoryBIO(), sent, server_hostname="agent.example").do_handshake()
        reader, writer = await bench.connect()
        writer.write(sent.read())
        await reader.read(1)
        writer.close()

    ((text, hint),) = failing(play, tls, client)
    assert (
        text == "a client of 127.0.0.1:PORT closed the connection "
        "during the TLS handshake for agent.example"
    )
    assert hint.startswith("if it does not accept the certificate: ")


@pytest.mark.parametrize("closes", [True, False])
def test_a_hello_that_is_cut_off(
    play: Play, tls: ClientTls, monkeypatch: pytest.MonkeyPatch, closes: bool
) -> None:
    """By the client, or by the limit of time."""
    monkeypatch.setattr(client_tls, "HANDSHAKE_SECONDS", SECONDS if closes else 0.1)

    async def client(bench: Bench) -> None:
        reader, writer = await bench.connect()
        writer.write(b"\x16\x03\x01\x02\x00\x01\x00\x01")
        if closes:
            writer.write_eof()
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()

    ((text, _),) = failing(play, tls, client)
    assert (
        text == "a client of 127.0.0.1:PORT began a TLS "
        "handshake and sent only a part of its ClientHello"
    )


@pytest.mark.parametrize(
    "garbage", [b"\x16garbage, no record", b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\xff"]
)
def test_garbage_gets_an_alert(play: Play, tls: ClientTls, garbage: bytes) -> None:
    async def client(bench: Bench) -> None:
        reader, writer = await bench.connect()
        writer.write(garbage)
        assert await reader.read(7) == b"\x15\x03\x01\0\x02\x02\x32"
        writer.close()

    ((text, _),) = failing(play, tls, client)
    assert (
        text == "a client of 127.0.0.1:PORT sent bytes that begin like TLS and are no ClientHello"
    )


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated:DeprecationWarning")
def test_an_old_version_is_refused(play: Play, tls: ClientTls, trusting: ssl.SSLContext) -> None:
    """With an alert, which names the reason to the client."""
    trusting.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    trusting.maximum_version = ssl.TLSVersion.TLSv1_1
    trusting.set_ciphers("ALL:@SECLEVEL=0")

    async def client(bench: Bench) -> None:
        with pytest.raises(ssl.SSLError, match="ALERT_PROTOCOL_VERSION"):
            await asyncio.to_thread(blocking_handshake, bench.port, trusting)

    ((text, hint),) = failing(play, tls, client)
    assert text.endswith("failed: unsupported protocol")
    assert "TLS 1.2 or 1.3" in hint


def test_a_certificate_that_cannot_be_made(play: Play, authority: Authority) -> None:
    class Full(IssuedContexts):
        def make_context(self, name: str, protocols: tuple[str, ...]) -> client_tls.ServerContext:
            raise OSError(28, "No space left on device")

    async def client(bench: Bench) -> None:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await connect(bench, ssl.create_default_context())

    ((text, _),) = failing(play, ClientTls(Full(authority)), client)
    assert text == "cannot create a certificate for localhost: no space left on device"


def test_a_client_that_is_gone_at_once(play: Play, tls: ClientTls) -> None:
    """With and without a first byte; nothing is worth a line."""

    async def story() -> None:
        async with agent(echo) as port, relaying(port, client_tls=tls) as bench:
            for _ in range(10):
                sock = socket.create_connection(("127.0.0.1", bench.port))
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                sock.close()
            reader, writer = await bench.connect()
            writer.write(b"hello")
            assert await reader.readexactly(5) == b"hello"
            writer.close()
            assert bench.notes == []

    play(story())


# The user's own certificate, and certificates of clients


@pytest.fixture
def own(tmp_path: Path) -> tuple[trustme.CA, CertificateFiles]:
    """A CA of the user, and the files of a certificate for agent.example."""
    ca = trustme.CA()
    leaf = ca.issue_cert("agent.example")
    leaf.cert_chain_pems[0].write_to_path(str(tmp_path / "cert.pem"))
    leaf.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    ca.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    return ca, CertificateFiles(tmp_path / "cert.pem", tmp_path / "key.pem", "--tls")


def test_the_users_own_certificate(play: Play, own: tuple[trustme.CA, CertificateFiles]) -> None:
    """It is presented whatever name the client asks for."""
    ca, files = own

    async def story() -> None:
        context = ssl.create_default_context(cadata=ca.cert_pem.bytes().decode())
        async with (
            agent(echo) as port,
            relaying(port, client_tls=ClientTls(FileContexts(files))) as bench,
        ):
            _, writer = await connect(bench, context, "agent.example")
            with pytest.raises(ssl.SSLCertVerificationError):
                await connect(bench, context, "other.example")
            writer.close()
            await bench.closed()
            facts = opened(bench)
            assert facts is not None
            assert facts.server is not None
            assert facts.server.names == ("agent.example",)

    play(story())


def test_clients_must_present_a_certificate(
    play: Play,
    authority: Authority,
    trusting: ssl.SSLContext,
    own: tuple[trustme.CA, CertificateFiles],
    tmp_path: Path,
) -> None:
    """One of the CA is taken; none, one of another CA, and plain text are refused, each with a
    line."""
    ca, _ = own

    def demand(context: ssl.SSLContext) -> None:
        context.load_verify_locations(tmp_path / "ca.pem")
        context.verify_mode = ssl.CERT_REQUIRED

    tls = ClientTls(IssuedContexts(authority, demand), required=True)

    async def refused(bench: Bench, context: ssl.SSLContext | None) -> None:
        with contextlib.suppress(ssl.SSLError, ConnectionError):
            reader, writer = await (bench.connect() if context is None else connect(bench, context))
            writer.write(GET)
            assert await reader.read() == b""
            writer.close()

    async def story() -> None:
        async with agent(echo) as port, relaying(port, client_tls=tls) as bench:
            await refused(bench, None)
            await refused(bench, trusting)
            trustme.CA().issue_cert("client.example").configure_cert(trusting)
            await refused(bench, trusting)
            await until(lambda: len(bench.notes) == 3)
            texts = [note.text for note in bench.notes]
            assert [text.partition(" 127.")[0] for text in texts] == [
                "a client without TLS was refused at",
                "a client without a certificate was refused at",
                "a client's certificate was refused at",
            ]
            ca.issue_cert("client.example").configure_cert(trusting)
            reader, writer = await connect(bench, trusting)
            writer.write(b"hello")
            assert await reader.readexactly(5) == b"hello"
            writer.close()
            await bench.closed(4)
            facts = opened(bench, 4)
            assert facts is not None
            assert facts.client is not None
            assert (facts.client.names, facts.client.verified) == (("client.example",), True)
            assert len(bench.notes) == 3

    play(story())


ODD_NAMES = b"\x30\x0f\x82\x09localhost\x82\x02\xff\xfe"
"""A certificate's names: localhost, and one that is no text."""


def odd_context(authority: Authority, folder: Path, purpose: int) -> ssl.SSLContext:
    """Return a context that presents a certificate with the odd name."""
    key, now = make_key(), datetime.datetime.now(datetime.UTC)
    names = x509.UnrecognizedExtension(x509.oid.ExtensionOID.SUBJECT_ALTERNATIVE_NAME, ODD_NAMES)
    certificate = (
        x509.CertificateBuilder(serial_number=1)
        .issuer_name(authority.certificate.subject)
        .subject_name(x509.Name([]))
        .public_key(key.public_key())
        .not_valid_before(now - datetime.timedelta(1))
        .not_valid_after(now + datetime.timedelta(1))
        .add_extension(names, critical=True)
        .sign(authority.key, hashes.SHA256())
    )
    (folder / "odd.pem").write_bytes(encode_server(key, certificate))
    (folder / "ca.pem").write_bytes(authority.certificate_pem)
    context = ssl.SSLContext(purpose)
    context.load_verify_locations(folder / "ca.pem")
    context.load_cert_chain(folder / "odd.pem")
    return context


def test_a_client_certificate_that_cannot_be_read(
    play: Play, authority: Authority, tmp_path: Path
) -> None:
    """A line instead of a traceback."""
    odd = odd_context(authority, tmp_path, ssl.PROTOCOL_TLS_CLIENT)

    def demand(context: ssl.SSLContext) -> None:
        context.load_verify_locations(tmp_path / "ca.pem")
        context.verify_mode = ssl.CERT_REQUIRED

    async def client(bench: Bench) -> None:
        with contextlib.suppress(OSError):
            await asyncio.to_thread(blocking_handshake, bench.port, odd)

    ((text, _),) = failing(
        play, ClientTls(IssuedContexts(authority, demand), required=True), client
    )
    assert text == "a client's certificate cannot be read at 127.0.0.1:PORT"


def test_an_agents_certificate_that_cannot_be_read(
    play: Play, authority: Authority, tmp_path: Path
) -> None:
    """The client gets a 502, and the user a line."""
    odd = odd_context(authority, tmp_path, ssl.PROTOCOL_TLS_SERVER)
    editing = msgspec.structs.replace(NO_EDITS, trust=Trust(tmp_path / "ca.pem"))

    async def story() -> None:
        async with (
            agent(echo, tls=odd) as port,
            relaying(f"https://localhost:{port}", editing=editing) as bench,
        ):
            reader, writer = await bench.connect()
            writer.write(GET)
            assert b"its certificate cannot be read" in await reader.read()
            writer.close()
            assert "its certificate cannot be read" in bench.notes[0].text

    play(story())
