"""The contestants: each started in front of an origin, with its defaults and one worker.

A contestant runs only while it is measured, so that no other backlog uses processor time.
"""

from __future__ import annotations

import contextlib
import http.server
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from origins import authority_file, certificate_file, nginx
from processes import end, free_port, running, start, wait_listening, wait_said
from setup import program

Contestant = Callable[[Path, int], contextlib.AbstractContextManager[int]]
"""(folder, port of the origin) -> a context manager that yields the port to send to."""

FOREIGN = "127.1"
"""A spelling of the loopback address that the proxy does not recognise as such, so that it rewrites
the authority."""

HAPROXY = """global
  nbthread 1
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
listen benchmark
  bind 127.0.0.1:{port}{bind}
  server origin 127.0.0.1:{origin}{server}
"""


@contextlib.contextmanager
def direct(_folder: Path, origin: int) -> Iterator[int]:
    """Run no proxy."""
    yield origin


@contextlib.contextmanager
def a2a_proxy(
    folder: Path, origin: int, upstream: str = "127.0.0.1", *options: str
) -> Iterator[int]:
    """Run this project with a recording, and only the options for the listener, the upstream and
    the recording."""
    with tempfile.TemporaryDirectory(dir=folder) as state:
        port = free_port()
        with _started([*proxy_command(port, f"{upstream}:{origin}", state), *options], port, state):
            yield port


@contextlib.contextmanager
def a2a_proxy_tls(folder: Path, origin: int) -> Iterator[int]:
    """Run this project with TLS on both sides and a recording."""
    with a2a_proxy(
        folder, origin, "https://127.0.0.1", "--tls", "--upstream-ca", str(authority_file(folder))
    ) as port:
        yield port


@contextlib.contextmanager
def a2a_proxy_forward(folder: Path, _origin: int, *options: str) -> Iterator[int]:
    """Run this project as a forward proxy with a recording."""
    with tempfile.TemporaryDirectory(dir=folder) as state:
        port = free_port()
        command = [
            str(Path(sys.executable).with_name("a2a-proxy")),
            "--forward",
            f"127.0.0.1:{port}",
            *options,
        ]
        with _started([*command, "--record", f"{state}/benchmark.a2a.db"], port, state):
            yield port


@contextlib.contextmanager
def a2a_proxy_intercepting(folder: Path, origin: int) -> Iterator[int]:
    """Run this project as a forward proxy that opens TLS to the origin."""
    with a2a_proxy_forward(
        folder, origin, "--intercept", "private", "--upstream-ca", str(authority_file(folder))
    ) as port:
        yield port


@contextlib.contextmanager
def _started(command: list[str], port: int, state: str) -> Iterator[None]:
    log = Path(state) / "stderr"
    process = start(command, log, A2A_PROXY_STATE=state)
    wait_listening(process, port, log)
    wait_said(process, "stop with Ctrl-C", log)
    try:
        yield
    finally:
        end(
            process, signal.SIGTERM, signal.SIGTERM
        )  # the second one skips the rest of the shutdown


def proxy_command(port: int, upstream: str, state: str) -> list[str]:
    """Return the command line of this project."""
    command = [str(Path(sys.executable).with_name("a2a-proxy")), "--listen", f"127.0.0.1:{port}"]
    return [*command, "--upstream", upstream, "--record", f"{state}/benchmark.a2a.db"]


@contextlib.contextmanager
def a2a_proxy_rewriting(folder: Path, origin: int) -> Iterator[int]:
    """Run this project with an upstream that is not recognised as loopback: it rewrites the
    authority of each request."""
    with a2a_proxy(folder, origin, FOREIGN) as port:
        yield port


@contextlib.contextmanager
def a2a_proxy_propagating(folder: Path, origin: int) -> Iterator[int]:
    """Run this project with a `traceparent` of its own in each request."""
    with a2a_proxy(folder, origin, "127.0.0.1", "--propagate") as port:
        yield port


@contextlib.contextmanager
def mitmproxy(folder: Path, origin: int) -> Iterator[int]:
    """Run mitmdump as a reverse proxy."""
    with _mitmproxy(folder, f"http://127.0.0.1:{origin}") as port:
        yield port


@contextlib.contextmanager
def mitmproxy_tls(folder: Path, origin: int) -> Iterator[int]:
    """Run mitmdump as a reverse proxy with TLS on both sides."""
    trusted = f"ssl_verify_upstream_trusted_ca={authority_file(folder)}"
    with _mitmproxy(folder, f"https://127.0.0.1:{origin}", "--set", trusted) as port:
        yield port


@contextlib.contextmanager
def _mitmproxy(folder: Path, upstream: str, *options: str) -> Iterator[int]:
    port = free_port()
    command = [
        str(program("mitmdump")),
        "--mode",
        f"reverse:{upstream}",
        "--set",
        f"confdir={folder}/mitmproxy",
    ]
    command += ["--listen-host", "127.0.0.1", "-p", str(port), *options]
    with running(command, port, folder / "mitmproxy.err"):
        yield port


@contextlib.contextmanager
def nginx_http1(folder: Path, origin: int) -> Iterator[int]:
    """Run nginx `proxy_pass` with persistent connections to the origin."""
    port = free_port()
    to = 'proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection "";'
    with running(_nginx(folder, port, "", origin, to), port, folder / "nginx.err"):
        yield port


@contextlib.contextmanager
def nginx_http2(folder: Path, origin: int) -> Iterator[int]:
    """Run nginx `grpc_pass` with persistent connections to the origin."""
    port = free_port()
    with running(
        _nginx(folder, port, " http2", origin, "grpc_pass grpc://origin;"),
        port,
        folder / "nginx.err",
    ):
        yield port


@contextlib.contextmanager
def nginx_tls(folder: Path, origin: int) -> Iterator[int]:
    """Run nginx `proxy_pass` with TLS on both sides and persistent connections to the origin."""
    port = free_port()
    to = 'proxy_pass https://origin; proxy_http_version 1.1; proxy_set_header Connection "";'
    with running(_nginx_tls(folder, port, " ssl", origin, to, "proxy"), port, folder / "nginx.err"):
        yield port


@contextlib.contextmanager
def nginx_http2_tls(folder: Path, origin: int) -> Iterator[int]:
    """Run nginx `grpc_pass` with TLS on both sides and persistent connections to the origin."""
    port = free_port()
    command = _nginx_tls(folder, port, " ssl http2", origin, "grpc_pass grpcs://origin;", "grpc")
    with running(command, port, folder / "nginx.err"):
        yield port


def _nginx_tls(folder: Path, port: int, kind: str, origin: int, to: str, module: str) -> list[str]:
    """Return the command of an nginx with TLS. It verifies the origin's certificate, as a2a-proxy
    does, but by a name: nginx does not verify addresses."""
    own = certificate_file(folder)
    tls = (
        f"ssl_certificate {own}; ssl_certificate_key {own}; "
        f"{module}_ssl_name localhost; {module}_ssl_verify on;"
    )
    tls += f" {module}_ssl_trusted_certificate {authority_file(folder)}"
    return _nginx(folder, port, f"{kind}; {tls}", origin, to)


def _nginx(folder: Path, port: int, listen: str, origin: int, to: str) -> list[str]:
    keep = "keepalive 256; keepalive_requests 1000000000;"
    upstream = f"  upstream origin {{ server 127.0.0.1:{origin}; {keep} }}\n"
    server = f"  server {{ listen 127.0.0.1:{port}{listen}; location / {{ {to} }} }}"
    return nginx(folder, "nginx", upstream + server)


@contextlib.contextmanager
def haproxy_http1(folder: Path, origin: int) -> Iterator[int]:
    """Run HAProxy in HTTP mode."""
    with _haproxy(folder, origin) as port:
        yield port


@contextlib.contextmanager
def haproxy_http2(folder: Path, origin: int) -> Iterator[int]:
    """Run HAProxy in HTTP mode, with HTTP/2 on both sides."""
    with _haproxy(folder, origin, " proto h2", " proto h2") as port:
        yield port


@contextlib.contextmanager
def haproxy_tls(folder: Path, origin: int) -> Iterator[int]:
    """Run HAProxy in HTTP mode, with TLS on both sides."""
    with _haproxy_tls(folder, origin, "http/1.1") as port:
        yield port


@contextlib.contextmanager
def haproxy_http2_tls(folder: Path, origin: int) -> Iterator[int]:
    """Run HAProxy in HTTP mode, with HTTP/2 and TLS on both sides."""
    with _haproxy_tls(folder, origin, "h2") as port:
        yield port


def _haproxy_tls(
    folder: Path, origin: int, protocol: str
) -> contextlib.AbstractContextManager[int]:
    own, authority = certificate_file(folder), authority_file(folder)
    server = f" ssl verify required ca-file {authority} alpn {protocol}"
    return _haproxy(folder, origin, f" ssl crt {own} alpn {protocol}", server)


@contextlib.contextmanager
def _haproxy(folder: Path, origin: int, bind: str = "", server: str = "") -> Iterator[int]:
    port, path = free_port(), folder / "haproxy.conf"
    path.write_text(HAPROXY.format(port=port, origin=origin, bind=bind, server=server))
    with running([str(program("haproxy")), "-db", "-f", str(path)], port, folder / "haproxy.err"):
        yield port


@contextlib.contextmanager
def nghttpx(folder: Path, origin: int) -> Iterator[int]:
    """Run nghttpx, with HTTP/2 on both sides."""
    port = free_port()
    command = [
        str(program("nghttpx")),
        "--conf=/dev/null",
        f"--frontend=127.0.0.1,{port};no-tls",
        "--workers=1",
    ]
    command += [f"--backend=127.0.0.1,{origin};;proto=h2"]
    with running(command, port, folder / "nghttpx.err"):
        yield port


def rewrites_authority(folder: Path) -> bool:
    """Return whether this build of the project sends the upstream's own name to an upstream that is
    not loopback."""
    seen: list[str] = []

    class Origin(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers["Host"])
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Origin) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            with (
                a2a_proxy_rewriting(folder, server.server_port) as port,
                socket.create_connection(("127.0.0.1", port), 5) as sock,
            ):
                sock.settimeout(5)
                sock.sendall(b"GET / HTTP/1.1\r\nHost: client.example\r\nConnection: close\r\n\r\n")
                sock.recv(1)
        finally:
            server.shutdown()
            thread.join()
    return seen == [f"{FOREIGN}:{server.server_port}"]
