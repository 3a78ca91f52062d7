"""Peers that use OpenSSL as most programs do: blocking, each direction closed by itself."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator

import trustme

from a2a_proxy.certificates.authority import Authority
from support_relay import SECONDS

Act = Callable[["Peer"], None]


class Peer:
    """One end of a TLS connection. `end` says that no bytes follow, `cut` sends FIN alone."""

    def __init__(
        self, sock: socket.socket, context: ssl.SSLContext, *, server: bool = False
    ) -> None:
        self.sock = sock
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server, None if server else "localhost")
        self.read_fin = False
        """Whether the other side has sent FIN."""
        sock.settimeout(SECONDS)
        while not self._attempt(self._tls.do_handshake):
            self._receive()
        self._flush()

    def _attempt(self, action: Callable[[], object]) -> bool:
        try:
            action()
        except ssl.SSLWantReadError:
            return False
        finally:
            self._flush()
        return True

    def _flush(self) -> None:
        if data := self._out.read():
            self.sock.sendall(data)

    def _receive(self) -> None:
        data = self.sock.recv(65536)
        if data:
            self._in.write(data)
        else:
            self.read_fin = True
            self._in.write_eof()

    def send(self, data: bytes) -> None:
        for at in range(0, len(data), 16384):
            self._tls.write(data[at : at + 16384])
            self._flush()

    def end(self) -> None:
        self._attempt(self._tls.unwrap)
        self.sock.shutdown(socket.SHUT_WR)

    def cut(self) -> None:
        self.sock.shutdown(socket.SHUT_WR)

    def read_some(self) -> None:
        while not self._attempt(lambda: self._tls.read(65536)):
            self._receive()

    def read(self) -> tuple[bytes, bool]:
        """Return all bytes of the other side, and whether they ended with close_notify."""
        parts: list[bytes] = []
        while True:
            try:
                part = self._tls.read(65536)
            except ssl.SSLWantReadError:
                self._receive()
                continue
            except ssl.SSLZeroReturnError:
                part = b""
            except ssl.SSLEOFError:
                return b"".join(parts), False
            if not part:
                return b"".join(parts), True
            parts.append(part)

    def wait_fin(self) -> None:
        while not self.read_fin:
            self._receive()


def run_client(port: int, authority: Authority, act: Act) -> asyncio.Future[None]:
    """Run a TLS client in a thread."""

    def run() -> None:
        context = ssl.create_default_context(cadata=authority.certificate_pem.decode())
        with socket.create_connection(("127.0.0.1", port)) as sock:
            act(Peer(sock, context))

    return asyncio.ensure_future(asyncio.to_thread(run))


@contextlib.contextmanager
def tls_agent(ca: trustme.CA, act: Act) -> Iterator[int]:
    """An agent that handles one connection in a thread."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("localhost").configure_cert(context)

    def run() -> None:
        sock, _ = listener.accept()
        with sock:
            act(Peer(sock, context, server=True))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(SECONDS)


class DemandingAgent:
    """Asks for a certificate, answers one request with its names, and refuses with an alert, which
    asyncio does not send."""

    def __init__(self, ca: trustme.CA, newest: ssl.TLSVersion, *alpn: str) -> None:
        self.context = context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ca.issue_cert("localhost", "agent.test").configure_cert(context)
        ca.configure_trust(context)
        context.maximum_version, context.verify_mode = newest, ssl.CERT_REQUIRED
        context.set_alpn_protocols(alpn)

    def __enter__(self) -> int:
        self.server = socket.create_server(("127.0.0.1", 0))
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()
        port: int = self.server.getsockname()[1]
        return port

    def serve(self) -> None:
        while True:
            sock, _ = self.server.accept()
            if sock.recv(1, socket.MSG_PEEK) == b"":
                return
            with (
                sock,
                contextlib.suppress(OSError),
                self.context.wrap_socket(sock, server_side=True) as client,
            ):
                client.recv(65536)
                body = str(client.getpeercert()).encode()
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    def __exit__(self, *_: object) -> None:
        socket.create_connection(self.server.getsockname()).close()
        self.thread.join()
        self.server.close()
