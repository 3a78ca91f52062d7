"""nginx as a TLS front in tests: virtual hosts on one port, each in front of an agent."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from support_debian import debian_environment, require_program
from support_peers import Agent

START_SECONDS = 120.0

CONF = """daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log;
{user}
events {{ worker_connections 1024; }}
http {{
  log_format seen '$ssl_server_name $host $server_protocol $request_method $uri $status';
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  client_max_body_size 0; access_log off;
{servers}
}}
"""
HOST = """  server {{
    listen 127.0.0.1:{port} ssl http2{shared}; server_name {names};
    access_log {folder}/{host}.log seen;
    ssl_certificate {folder}/{host}.pem; ssl_certificate_key {folder}/{host}.pem;
    location / {{
      proxy_pass http://127.0.0.1:{http}; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_buffering off;
    }}
    location ~ A2AService/ {{ grpc_pass grpc://127.0.0.1:{grpc}; }}
  }}
"""


def virtual_host(
    folder: Path, port: int, names: tuple[str, ...], agent: Agent, *, first: bool
) -> str:
    """Return the server block of an agent; its certificate and key are in `NAME.pem`, its log is
    `NAME.log`, with the first name. The first block of a port serves clients that name no host by
    SNI.

    Requests are buffered: otherwise nginx ends a connection without `Connection: close` if the
    agent answers before it has read the body.
    """
    return HOST.format(
        folder=folder,
        port=port,
        host=names[0],
        names=" ".join(names),
        shared=" reuseport" if first else "",  # once per port
        http=agent.http,
        grpc=agent.grpc,
    )


def read_requests(folder: Path, host: str) -> list[list[str]]:
    """Return SNI, host, protocol, method, path and status of each request to a virtual host, in
    order."""
    return [line.split() for line in (folder / f"{host}.log").read_text().splitlines()]


@contextlib.contextmanager
def nginx(folder: Path, port: int, servers: str) -> Iterator[None]:
    """Run nginx with these server blocks, of which one has the port, while the block runs."""
    user = (
        "user root root;" if os.geteuid() == 0 else ""
    )  # otherwise its worker may not enter the folder
    conf, log = folder / "nginx.conf", folder / "error.log"
    conf.write_text(CONF.format(folder=folder, user=user, servers=servers))
    process = subprocess.Popen(
        [require_program("nginx"), "-p", str(folder), "-e", str(log), "-c", str(conf)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=debian_environment(dict(os.environ)),
    )
    try:
        _wait_until_listening(process, port, log)
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_listening(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        time.sleep(0.02)
    raise RuntimeError(f"nginx does not listen: {log.read_text()}")
