"""The origins behind the proxies: much faster than any proxy, and small."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator
from pathlib import Path

import trustme
from processes import free_port, running
from setup import program

from a2a_proto import from_dict

REQUEST = (
    b'{"jsonrpc":"2.0","id":7,"method":"GetTask",'
    b'"params":{"id":"8f1c7d52-6a0e-4a55-9b1d-3f0e5f6f7a10",'
    b'"historyLength":0}}'
)
ANSWER = (
    '{"jsonrpc":"2.0","id":7,"result":{"id":"8f1c7d52-6a0e-4a55-9b1d-3f0e5f6f7a10","contextId":'
    '"0d2b7c1e-93a4-4a0c-8f53-9f6b0c7d1e22","status":{"state":"TASK_STATE_WORKING",'
    '"timestamp":"2026-11-21T07:00:00Z"}}}'
)
GRPC_METHOD = "lf.a2a.v1.A2AService/GetTask"

NGINX = """daemon off; worker_processes 1; pid {folder}/{name}.pid; error_log {folder}/{name}.log;
events {{ worker_connections 4096; }}
http {{
  access_log off; keepalive_requests 1000000000; keepalive_timeout 1h; server_tokens off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
{servers}
}}
"""


def nginx(folder: Path, name: str, servers: str) -> list[str]:
    """Return the command of an nginx with one worker and these servers."""
    path = folder / f"{name}.conf"
    path.write_text(NGINX.format(folder=folder, name=name, servers=servers))
    return [
        str(program("nginx")),
        "-p",
        str(folder),
        "-e",
        str(folder / f"{name}.log"),
        "-c",
        str(path),
    ]


@contextlib.contextmanager
def http1(folder: Path) -> Iterator[int]:
    """Run nginx with one fixed JSON-RPC answer; yield its port."""
    port = free_port()
    location = f"location / {{ default_type application/json; return 200 '{ANSWER}'; }}"
    servers = f"  server {{ listen 127.0.0.1:{port}; {location} }}"
    with running(nginx(folder, "origin", servers), port, folder / "origin.err"):
        yield port


@contextlib.contextmanager
def https(folder: Path) -> Iterator[int]:
    """Run nginx with TLS and the certificate of `make_certificate`, with one fixed JSON-RPC answer;
    yield its port."""
    own, port = make_certificate(folder), free_port()
    location = f"location / {{ default_type application/json; return 200 '{ANSWER}'; }}"
    tls = f"ssl_certificate {own}; ssl_certificate_key {own};"
    servers = f"  server {{ listen 127.0.0.1:{port} ssl; {tls} {location} }}"
    with running(nginx(folder, "https", servers), port, folder / "https.err"):
        yield port


def make_certificate(folder: Path) -> Path:
    """Create a certificate of `authority_file` for this machine; return its file, which holds the
    key too."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(authority_file(folder)))
    own = certificate_file(folder)
    authority.issue_cert("127.0.0.1", "localhost").private_key_and_cert_chain_pem.write_to_path(
        str(own)
    )
    return own


def authority_file(folder: Path) -> Path:
    """Return the file with the authority of the origins with TLS."""
    return folder / "authority.pem"


def certificate_file(folder: Path) -> Path:
    """Return the file with the certificate of the origins with TLS, which other proxies present
    too."""
    return folder / "certificate.pem"


@contextlib.contextmanager
def http2(folder: Path, *, tls: bool = False) -> Iterator[int]:
    """Run nghttpd with one fixed gRPC answer and trailers, with the certificate of
    `make_certificate` if `tls`; yield its port."""
    port = free_port()
    own = [str(make_certificate(folder))] * 2 if tls else []
    place = folder / "htdocs" / GRPC_METHOD
    place.parent.mkdir(parents=True)
    place.write_bytes(grpc_message("Task", task()))
    command = [str(program("nghttpd")), "-a", "127.0.0.1", "-d", str(folder / "htdocs")]
    command += ["-m", "1000", "--no-content-length", "--trailer", "grpc-status: 0"]
    command += [str(port), *own] if tls else ["--no-tls", str(port)]
    with running(command, port, folder / "nghttpd.err"):
        yield port


def task() -> dict[str, object]:
    """Return the task in the answers of both origins."""
    return {
        "id": "8f1c7d52-6a0e-4a55-9b1d-3f0e5f6f7a10",
        "contextId": "0d2b7c1e-93a4-4a0c-8f53-9f6b0c7d1e22",
        "status": {"state": "TASK_STATE_WORKING"},
    }


def grpc_message(name: str, value: dict[str, object]) -> bytes:
    """Return a message of protocol 1.0 with its gRPC prefix."""
    data = from_dict("1.0", name, value).SerializeToString()
    return struct.pack(">BI", 0, len(data)) + data
