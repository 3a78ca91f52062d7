"""Load generators and the number that each returns."""

from __future__ import annotations

import concurrent.futures
import re
import socket
import ssl
import statistics
import subprocess
import sys
import time
from os import environ
from pathlib import Path
from typing import Self

from origins import GRPC_METHOD, REQUEST, grpc_message
from setup import environment, program

HERE = Path(__file__).resolve().parent
CONNECTIONS, STREAMS = 8, 16
_UNITS = {"": 1.0, "k": 1e3, "M": 1e6}


def wrk(folder: Path, port: int, seconds: int, origin: int = 0, *, tls: bool = False) -> float:
    """Return HTTP/1.1 requests per second over 8 keep-alive connections; in absolute form if
    `origin` is a port."""
    script = folder / "post.lua"
    lines = ["wrk.method = 'POST'", f"wrk.body = '{REQUEST.decode()}'"]
    lines.append("wrk.headers['Content-Type'] = 'application/json'")
    if origin:
        lines += [
            f"wrk.path = 'http://127.0.0.1:{origin}/'",
            f"wrk.headers['Host'] = '127.0.0.1:{origin}'",
        ]
    script.write_text("\n".join(lines) + "\n")
    command = [str(program("wrk")), "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "-s", str(script)]
    said = _run([*command, f"{'https' if tls else 'http'}://127.0.0.1:{port}/"])
    if "Non-2xx" in said or "Socket errors" in said:
        raise RuntimeError(f"wrk saw errors: {said}")
    return _number(r"Requests/sec:\s+([\d.]+)(k|M)?", said)


def h2load(folder: Path, port: int, seconds: int, *, tls: bool = False) -> float:
    """Return HTTP/2 requests per second in the form of gRPC, over 8 connections with 16 streams
    each."""
    body = folder / "request.grpc"
    body.write_bytes(grpc_message("GetTaskRequest", {"id": "8f1c7d52-6a0e-4a55-9b1d-3f0e5f6f7a10"}))
    command = [
        str(program("h2load")),
        "-t1",
        f"-c{CONNECTIONS}",
        f"-m{STREAMS}",
        f"-D{seconds}",
        "-d",
        str(body),
    ]
    command += [
        "-H",
        "content-type: application/grpc",
        "-H",
        "te: trailers",
        "-H",
        "a2a-version: 1.0",
    ]
    if tls:
        command.append("--npn-list=h2")  # the ALPN list of a gRPC client
    said = _run([*command, f"{'https' if tls else 'http'}://127.0.0.1:{port}/{GRPC_METHOD}"])
    done = re.search(r"requests: .* (\d+) succeeded, (\d+) failed, (\d+) errored", said)
    codes = re.search(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", said)
    # Requests that are open when the time is over count as failed.
    if (
        not done
        or not codes
        or int(done[3]) > CONNECTIONS * STREAMS
        or any(int(codes[n]) for n in (2, 3, 4))
    ):
        raise RuntimeError(f"h2load saw errors: {said}")
    return _number(r"finished in [^,]*, ([\d.]+)(k|M)? req/s", said)


def tls_connections(port: int, origin: int, seconds: float) -> float:
    """Return new TLS connections per second with one request each, by four threads: to `port`,
    which is the origin or a proxy that leads there."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    until = time.monotonic() + seconds

    def connect() -> int:
        count = 0
        while time.monotonic() < until:
            with socket.create_connection(("127.0.0.1", port), 10) as sock:
                if port != origin:
                    sock.sendall(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % origin)
                    if b" 200 " not in sock.recv(4096)[:13]:
                        raise RuntimeError("the proxy refuses the tunnel")
                with context.wrap_socket(sock, server_hostname="127.0.0.1") as tls:
                    tls.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                    if b" 200 " not in tls.recv(4096)[:13]:
                        raise RuntimeError("the origin cannot be reached")
            count += 1
        return count

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        return sum(each.result() for each in [pool.submit(connect) for _ in range(4)]) / seconds


class Caller:
    """One client on one connection, which sends a request after it has received the previous
    answer."""

    def __init__(self, port: int, size: int = 400) -> None:
        """Create a client whose requests and answers have about `size` bytes each."""
        head = (
            b"POST / HTTP/1.1\r\nHost: agent\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\nX-Fill: "
        )
        head %= len(REQUEST)
        self._request = head + b"-" * (size - len(head) - 4 - len(REQUEST)) + b"\r\n\r\n" + REQUEST
        self._sock = socket.create_connection(("127.0.0.1", port), 10)
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._expected = 0
        self.calls = 0

    def __enter__(self) -> Self:
        self._sock.sendall(self._request)
        self._expected = len(_whole_answer(self._sock))
        self.calls = 1
        return self

    def __exit__(self, *_: object) -> None:
        self._sock.close()

    def ask(self) -> int:
        """Return one round trip, ns."""
        began = time.perf_counter_ns()
        self._sock.sendall(self._request)
        got = len(self._sock.recv(65536))
        while 0 < got < self._expected:
            got += len(self._sock.recv(65536))
        self.calls += 1
        return time.perf_counter_ns() - began

    def steady(self, rate: float, seconds: float) -> list[float]:
        """Return round trips at that many per second, us. A late request is sent at once."""
        took, began = [], time.perf_counter()
        for number in range(round(rate * seconds)):
            if (early := began + number / rate - time.perf_counter()) > 0:
                time.sleep(early)
            took.append(self.ask() / 1000)
        return took


def ping(port: int, seconds: float) -> list[float]:
    """Return round trips on one connection, one after another, in us, sorted."""
    took: list[int] = []
    with Caller(port) as caller:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            took += [caller.ask() for _ in range(50)]
    half = took[len(took) // 5 :]  # the first fifth is warm-up
    return sorted(ns / 1000 for ns in half)


def _whole_answer(sock: socket.socket) -> bytes:
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += sock.recv(65536)
    head, _, body = answer.partition(b"\r\n\r\n")
    found = re.search(rb"(?i)content-length: (\d+)", head)
    if b" 200 " not in head[:13] or found is None:
        raise RuntimeError(f"an unexpected answer: {head!r}")
    while len(body) < int(found[1]):
        body += sock.recv(65536)
    return head + b"\r\n\r\n" + body


def percentiles(sorted_values: list[float]) -> tuple[float, float]:
    """Return p50 and p99."""
    return statistics.median(sorted_values), sorted_values[int(len(sorted_values) * 0.99)]


def grpc_stream(port: int, seconds: float) -> float:
    """Return the messages per second of one gRPC server stream that Python's client (grpc.aio)
    reads."""
    command = [sys.executable, str(HERE / "grpc_stream.py"), "client", str(port), str(seconds)]
    return float(_run(command))


def _run(command: list[str]) -> str:
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=environment(dict(environ)),
        timeout=60,
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {done.stdout}{done.stderr}")
    return done.stdout


def _number(pattern: str, said: str) -> float:
    found = re.search(pattern, said)
    if found is None:
        raise RuntimeError(f"no number in: {said}")
    return float(found[1]) * _UNITS[found[2] or ""]
