"""Origins that speak no TLS, or hostile TLS, behind intercepted tunnels and as `https` upstreams:
the client is answered in words, the user gets one line, and others are served."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import functools
import socket
import ssl
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme

from a2a_proxy.certificates.authority import Authority
from a2a_proxy.certificates.contexts import IssuedContexts
from a2a_proxy.relay import connection, tunnel
from a2a_proxy.relay.client_tls import ClientTls
from a2a_proxy.relay.dial import dial_upstream
from a2a_proxy.relay.host_patterns import HostPattern, InterceptPolicy
from a2a_proxy.relay.listener_state import EditPolicy
from a2a_proxy.relay.tls import Trust
from a2a_proxy.relay.tunnel import Interception
from support_relay import SECONDS, Handler, Story, agent, forwarding, relaying

Play = Callable[[Story], None]
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
DIAL_SECONDS = 3.0
CHAIN = 200


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(OK)
    writer.close()


async def send_garbage(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.write(b"\xff\x00garbage\r\n" * 1000)
    await reader.read()
    writer.close()


async def answer_without_tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.write(OK)
    await reader.read()
    writer.close()


async def stay_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while await reader.read(1000):
            pass
    writer.close()


async def close_early(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1000)
    writer.write(b"\x16\x03\x03\x00\x7a\x02")
    writer.close()


async def send_reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1000)
    writer.get_extra_info("socket").setsockopt(
        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
    )
    writer.transport.abort()


HOSTILE_ORIGINS: dict[str, Handler] = {
    "garbage": send_garbage,
    "plain HTTP": answer_without_tls,
    "silence": stay_silent,
    "an early end": close_early,
    "a reset": send_reset,
    "a long chain": answer,
}
"""What an origin does after the ClientHello. `answer` speaks TLS, with more certificates than
OpenSSL verifies."""


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    """The authority of the origins."""
    return trustme.CA(path_length=CHAIN + 1)


@pytest.fixture
def editing(ca: trustme.CA, tmp_path: Path) -> EditPolicy:
    """Trust in that authority."""
    path = tmp_path / "ca.pem"
    ca.cert_pem.write_to_path(str(path))
    return EditPolicy("never", keep_host=True, trust=Trust(path))


@pytest.fixture(autouse=True)
def short_limit(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit the time for origins that never answer."""
    if request.node.callspec.params["how"] in ("garbage", "silence"):
        for module in (connection, tunnel):
            monkeypatch.setattr(
                module, "dial_upstream", functools.partial(dial_upstream, seconds=DIAL_SECONDS)
            )


def context_of(cert: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    cert.configure_cert(context)
    return context


def hostile_context(ca: trustme.CA, how: str) -> ssl.SSLContext | None:
    if how != "a long chain":
        return None
    last = functools.reduce(lambda parent, _: parent.create_child_ca(), range(CHAIN), ca)
    return context_of(last.issue_cert("localhost"))


async def ask(port: int, context: ssl.SSLContext | None, tunnel_to: int = 0) -> tuple[bytes, bytes]:
    """Return the head and the body that a client of the relay gets."""
    async with asyncio.timeout(SECONDS):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        if tunnel_to:
            writer.write(f"CONNECT localhost:{tunnel_to} HTTP/1.1\r\n\r\n".encode())
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        if context is not None:
            await writer.start_tls(context, server_hostname="localhost")
        writer.write(GET)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split()[0])
        body = await reader.readexactly(length)
        writer.close()
    return head, body


@pytest.mark.parametrize("how", HOSTILE_ORIGINS)
def test_behind_an_intercepted_tunnel(
    play: Play, ca: trustme.CA, editing: EditPolicy, how: str
) -> None:
    """Another origin answers meanwhile."""

    async def story() -> None:
        authority = Authority.create("test", datetime.datetime.now(datetime.UTC))
        context = ssl.create_default_context(cadata=authority.certificate_pem.decode())
        policy = InterceptPolicy((HostPattern.parse("private"),), ())
        async with (
            agent(HOSTILE_ORIGINS[how], tls=hostile_context(ca, how)) as hostile,
            agent(answer, tls=context_of(ca.issue_cert("localhost"))) as healthy,
            forwarding(
                editing=editing,
                interception=Interception(policy, ClientTls(IssuedContexts(authority))),
            ) as bench,
        ):
            asked = [ask(bench.port, context, hostile), ask(bench.port, context, hostile)]
            refused, _, served = await asyncio.gather(*asked, ask(bench.port, context, healthy))
            assert refused[0].startswith(b"HTTP/1.1 502 ")
            assert f"cannot reach the upstream agent localhost:{hostile}: ".encode() in refused[1]
            assert served == (OK[:-2], b"ok")
            (note,) = {(each.text, each.hint) for each in bench.notes}
            assert note[0].startswith(f"no connection to https://localhost:{hostile}: ")

    play(story())


@pytest.mark.parametrize("how", HOSTILE_ORIGINS)
def test_as_an_upstream(play: Play, ca: trustme.CA, editing: EditPolicy, how: str) -> None:
    """Each client is answered."""

    async def story() -> None:
        async with (
            agent(HOSTILE_ORIGINS[how], tls=hostile_context(ca, how)) as hostile,
            relaying(f"https://localhost:{hostile}", editing=editing) as bench,
        ):
            for head, body in await asyncio.gather(ask(bench.port, None), ask(bench.port, None)):
                assert head.startswith(b"HTTP/1.1 502 ")
                assert f"cannot reach the upstream agent localhost:{hostile}: ".encode() in body
            (note,) = {(each.text, each.hint) for each in bench.notes}
            assert note[0].startswith(f"no connection to https://localhost:{hostile}: ")

    play(story())
