"""Clients of many kinds through `--tls`, with nothing but the variables of `a2a-proxy ca env`."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from a2a_proxy.recording.read.reader import Recording
from support_peers import ENVIRONMENTS, Transcript, agent, missing, normalise, run_client
from support_proxy import Proxy, environment, finished, program, proxy

SECONDS = 120
HTTP = "import sys, {module}; print({module}.get(sys.argv[1]).status_code)"
AIOHTTP = """
import aiohttp, asyncio, sys
async def main():
    async with aiohttp.ClientSession() as session, session.get(sys.argv[1]) as answer:
        print(answer.status)
asyncio.run(main())
"""
GRPCIO = """
import grpc, sys
with grpc.secure_channel(sys.argv[2], grpc.ssl_channel_credentials()) as channel:
    try:
        channel.unary_unary("/lf.a2a.v1.A2AService/GetTask")(b"", timeout=60)
    except grpc.RpcError as error:
        print(200 if error.code() is not grpc.StatusCode.UNAVAILABLE else error.details())
"""
NODE_FETCH = "fetch(process.argv[1]).then((answer) => console.log(answer.status))"
GRPC_JS = """
const grpc = require('@grpc/grpc-js');
const client = new grpc.Client(process.argv[2], grpc.credentials.createSsl());
const same = (bytes) => bytes;
client.makeUnaryRequest('/lf.a2a.v1.A2AService/GetTask', same, same, Buffer.alloc(0), (error) => {
  console.log(error.code === grpc.status.UNAVAILABLE ? error.details : 200);
});
"""
SDK = str(ENVIRONMENTS / "sdk1" / "bin" / "python")
CLIENTS = {
    "curl": (["curl", "-sS", "-o", os.devnull, "-w", "%{http_code}", "URL"], "http/1.1"),
    "openssl s_client": (
        [*("openssl", "s_client", "-connect", "PLACE", "-servername", "localhost"), "-alpn", "h2,http/1.1", "-brief"],
        "http/1.1",
    ),
    "httpx": ([SDK, "-c", HTTP.format(module="httpx"), "URL"], "http/1.1"),
    "requests": ([SDK, "-c", HTTP.format(module="requests"), "URL"], "http/1.1"),
    "aiohttp": ([sys.executable, "-c", AIOHTTP, "URL"], "http/1.1"),
    "grpcio": ([sys.executable, "-c", GRPCIO, "URL", "PLACE"], "h2"),
    "Node.js fetch": (["node", "-e", NODE_FETCH, "URL"], "http/1.1"),
    "grpc-js": (["node", "-e", GRPC_JS, "URL", "PLACE"], "h2"),
}
"""Command line and the protocol that is agreed on; manual/tls.md lists the same."""


def run_trusting(running: Proxy, words: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a client as a user does in a shell in which `ca env` was evaluated."""
    place = f"localhost:{running.port}"
    line = [{"URL": f"https://{place}/.well-known/agent-card.json", "PLACE": place}.get(word, word) for word in words]
    script = 'eval "$("$0" ca env)" && exec "$@" < /dev/null'
    return subprocess.run(
        ["/bin/sh", "-c", script, program("a2a-proxy"), *line],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=environment(running.state),
        cwd=ENVIRONMENTS / "js",
        check=False,
    )


@pytest.mark.peers
def test_each_client_accepts_the_certificate(tmp_path: Path) -> None:
    """HTTP clients get the card, gRPC clients an answer of the agent; each by the protocol that fits."""
    if why := missing("sdk1") or missing("js"):
        pytest.skip(why)
    with agent("sdk1") as one, proxy(tmp_path, one.base_url, one.grpc_target, "--tls") as between:
        for name, (words, _) in CLIENTS.items():
            done = run_trusting(between, words)
            assert done.returncode == 0, (name, done.stderr)
            assert name == "openssl s_client" or done.stdout.strip() == "200", (name, done.stdout, done.stderr)
            assert name != "openssl s_client" or "Verification: OK" in done.stderr + done.stdout, done.stderr
        assert seen_in(finished(between)) == {
            name: ("TLSv1.3", alpn, "localhost") for name, (_, alpn) in CLIENTS.items()
        }


BINDINGS = ("jsonrpc", "rest", "grpc")
SCENARIOS = ["card", "unary", "streaming", "input", "cancel", "errors", "big"]


@pytest.mark.peers
@pytest.mark.parametrize("kind", ["sdk1", "sdk03", "js"])
def test_sdk_clients_behave_as_without_the_proxy(tmp_path: Path, kind: str) -> None:
    """Over three bindings, with the certificates of the proxy."""
    server = "sdk03" if kind == "sdk03" else "sdk1"
    if why := missing(kind) or missing(server):
        pytest.skip(why)
    with agent(server) as one:
        with proxy(tmp_path, one.base_url, one.grpc_target, "--tls") as between:
            base_url, target = f"https://{between.address}", between.address
            through = asyncio.run(run_bindings(kind, base_url, target, variables_of(between)))
            recording = finished(between)
        direct = asyncio.run(run_bindings(kind, one.base_url, one.grpc_target, {}))
    for binding in BINDINGS:
        seen = json.loads(json.dumps(normalise(through[binding])).replace("https://PLACE", "http://PLACE"))
        assert seen == normalise(direct[binding])
    with recording:
        plain = [row.connection for row in recording.read_connections() if row.connection.tls is None]
        assert plain == []
        assert {row.exchange.binding for row in recording.read_exchanges()} >= set(BINDINGS)


async def run_bindings(kind: str, base_url: str, target: str, variables: dict[str, str]) -> dict[str, list[Transcript]]:
    """Run one client per binding at the same time."""
    clients = (run_client(kind, one, SCENARIOS, base_url, target, variables=variables) for one in BINDINGS)
    return dict(zip(BINDINGS, await asyncio.gather(*clients), strict=True))


def variables_of(running: Proxy) -> dict[str, str]:
    """Return the variables of `a2a-proxy ca env`."""
    line, env = [program("a2a-proxy"), "ca", "env"], environment(running.state)
    done = subprocess.run(line, capture_output=True, text=True, env=env, check=True)
    words = (shlex.split(line)[1] for line in done.stdout.splitlines())
    return dict(word.split("=", 1) for word in words)


def seen_in(recording: Recording) -> dict[str, tuple[str, str, str]]:
    """Return version, protocol and name of each client's handshake; the clients connected in their order."""
    with recording:
        tls = [row.connection.tls for row in recording.read_connections()]
    found = [each.client for each in tls if each is not None and each.client is not None]
    assert all(each.server is not None and each.server.names == ("localhost",) for each in found)
    return dict(zip(CLIENTS, ((each.version, each.alpn, each.server_name) for each in found), strict=True))
