"""SDK clients with nothing but the variables of `a2a-proxy ca env` behave as without the proxy,
over three bindings.

Through `--tls`, to agents behind nginx with two virtual hosts; through `--forward --intercept`, to
the same hosts; and through `--forward`, to an agent without TLS: HTTP of Python in absolute form,
all other by CONNECT.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trustme

from a2a_proxy.recording.read.reader import Recording
from support_account import lines, match, told
from support_nginx import nginx, read_requests, virtual_host
from support_peers import Agent, Transcript, agent, normalise, require_peers, run_client
from support_proxy import Proxy, environment, program, proxy
from support_relay import refusing_port

BINDINGS = ("jsonrpc", "rest", "grpc")
SCENARIOS = [
    "card",
    "streaming",
    "failures",
    "errors",
    "concurrent",
    "unary",
    "parts",
    "input",
    "cancel",
    "push",
    "big",
]
NAMES = ("127.1", "127.0.1")
"""Spellings of 127.0.0.1 that TLS libraries take for host names."""
URLS = ("localhost", "127.0.0.1")
"""The same hosts as the URLs of JavaScript can name them; clients send no SNI for the second."""
KINDS = {"sdk1": ("sdk1", NAMES), "sdk03": ("sdk03", NAMES), "js24": ("sdk1", URLS)}
"""Each client with its agent and the names of the virtual hosts."""
TLS_CALLS = ((0, "jsonrpc"), (0, "grpc"), (1, "rest"), (1, "grpc"))
INTERCEPTED_CALLS = ((0, "rest"), (0, "grpc"), (1, "jsonrpc"), (1, "grpc"))
"""Virtual host and binding: all at the same time, and gRPC to both hosts."""
Key = tuple[int, str]
Seen = dict[Key, list[Transcript]]


@dataclass(frozen=True)
class Call:
    """One client process: its key, the addresses of HTTP and gRPC, and its variables."""

    key: Key
    base_url: str
    target: str
    variables: dict[str, str]


@dataclass(frozen=True)
class Peers:
    """A kind of client, two agents, nginx in front of them, and what the client sees of the first
    agent directly."""

    kind: str
    agents: tuple[Agent, Agent]
    folder: Path
    port: int
    hosts: tuple[str, str]
    """The virtual hosts as this client names them."""
    direct: dict[str, Any]

    def requests(self) -> list[list[list[str]]]:
        """Return the requests to each virtual host so far."""
        return [read_requests(self.folder, name) for name in NAMES]


@pytest.fixture(scope="module", params=KINDS)
def peers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Peers]:
    """Run nginx and two agents, and the client without the proxy."""
    kind: str = request.param
    server, hosts = KINDS[kind]
    require_peers(kind, server)
    folder, port = tmp_path_factory.mktemp("nginx"), refusing_port()
    ca = trustme.CA()
    ca.cert_pem.write_to_path(str(folder / "ca.pem"))
    with contextlib.ExitStack() as stack:
        advertised = [
            ("--advertise-http", f"https://{host}:{port}", "--advertise-grpc", f"{host}:{port}")
            for host in hosts
        ]
        one, two = (stack.enter_context(agent(server, *words)) for words in advertised)
        blocks = []
        # The first block serves clients without SNI, whose URL is 127.0.0.1.
        for names, far in ((("127.0.1", "127.0.0.1"), two), (("127.1", "localhost"), one)):
            leaf = ca.issue_cert(*names)
            leaf.private_key_and_cert_chain_pem.write_to_path(str(folder / f"{names[0]}.pem"))
            blocks.append(virtual_host(folder, port, names, far, first=far is two))
        stack.enter_context(nginx(folder, port, "".join(blocks)))
        seen = run_calls(
            kind, [Call((0, each), one.base_url, one.grpc_target, {}) for each in BINDINGS]
        )
        places = {f"{host}:{port}" for host in hosts}
        direct = {
            binding: as_seen(transcripts, places) for (_, binding), transcripts in seen.items()
        }
        yield Peers(kind, (one, two), folder, port, hosts, direct)


def run_calls(kind: str, calls: list[Call]) -> Seen:
    """Run the clients at the same time."""

    async def run_all() -> list[list[Transcript]]:
        return await asyncio.gather(
            *(
                run_client(
                    kind,
                    call.key[1],
                    SCENARIOS,
                    call.base_url,
                    call.target,
                    variables=call.variables,
                )
                for call in calls
            )
        )

    return dict(zip((call.key for call in calls), asyncio.run(run_all()), strict=True))


def as_seen(transcripts: list[Transcript], places: set[str]) -> dict[str, Any]:
    """Return a client's transcript without the addresses of the agent."""
    text = json.dumps(normalise(transcripts))
    for place in places:
        text = text.replace(place, "PLACE")
    seen: dict[str, Any] = json.loads(text.replace("https://PLACE", "http://PLACE"))
    return seen


def variables_of(running: Proxy, *words: str) -> dict[str, str]:
    """Return the variables of `a2a-proxy ca env`."""
    line, env = [program("a2a-proxy"), "ca", "env", *words], environment(running.state)
    done = subprocess.run(line, capture_output=True, text=True, env=env, check=True)
    exports = (shlex.split(line)[1] for line in done.stdout.splitlines())
    return dict(export.split("=", 1) for export in exports)


def check_transcripts(peers: Peers, seen: Seen, places: set[str]) -> None:
    """Each transcript is the one without the proxy."""
    for (host, binding), transcripts in seen.items():
        assert as_seen(transcripts, places) == peers.direct[binding], (host, binding)


def check_recording(path: Path, seen: Seen) -> None:
    """Each event that a client received is recorded once, and nothing is lost."""
    account = [
        line
        for (_, binding), transcripts in seen.items()
        for line in lines(binding, transcripts, frozenset())
    ]
    with Recording(path) as recording:
        (session,) = recording.read_sessions()
        assert (session.how, session.complete, session.lost) == ("clean", "complete", 0)
        assert [
            row.exchange.id for row in recording.read_exchanges() if not row.exchange.closed
        ] == []
        strangers = match(told(recording), account)
        untold = {
            (line.binding, line.scenario, line.stream): line.untold
            for line in account
            if line.untold
        }
        assert untold == {}, strangers


def check_tls(path: Path, hosts: set[str]) -> None:
    """Both legs of each connection have TLS, and the upstream's certificate was verified for these
    hosts."""
    with Recording(path) as recording:
        tls = [row.connection.tls for row in recording.read_connections()]
    assert all(each is not None and each.client is not None for each in tls)
    upstreams = [each.upstream for each in tls if each is not None and each.upstream is not None]
    assert len(upstreams) == len(tls)
    assert all(each.server is not None and each.server.verified for each in upstreams)
    assert {each.server_name for each in upstreams} == hosts


@pytest.mark.peers
def test_through_tls_to_two_virtual_hosts(peers: Peers, tmp_path: Path) -> None:
    """Two `--tls` ports, one per virtual host: each client gets the agent of its port."""
    before = peers.requests()
    pairs = [
        word
        for name in NAMES
        for word in ("--listen", "127.0.0.1:0", "--upstream", f"https://{name}:{peers.port}")
    ]
    with proxy(
        tmp_path, "", "", *pairs, "--tls", "--upstream-ca", str(peers.folder / "ca.pem")
    ) as between:
        ports = [
            route["listen"][0].rpartition(":")[2] for route in between.said("start")[0]["routes"]
        ]
        places = [f"localhost:{port}" for port in ports]
        variables = variables_of(between)
        seen = run_calls(
            peers.kind,
            [
                Call(key, f"https://{places[key[0]]}", places[key[0]], variables)
                for key in TLS_CALLS
            ],
        )
        between.stop()
    check_transcripts(peers, seen, {*places})
    check_recording(between.recording, seen)
    check_tls(between.recording, {*NAMES})
    for name, old, now in zip(NAMES, before, peers.requests(), strict=True):
        assert {(sni, host) for sni, host, *_ in now[len(old) :]} == {(name, name)}


@pytest.mark.peers
def test_intercepted_to_two_virtual_hosts(peers: Peers, tmp_path: Path) -> None:
    """The clients name the virtual hosts, and find the proxy by their environment."""
    before = peers.requests()
    words = (
        "--forward",
        "127.0.0.1:0",
        "--intercept",
        "private",
        "--upstream-ca",
        str(peers.folder / "ca.pem"),
    )
    with proxy(tmp_path, "", "", *words) as between:
        variables = variables_of(between, "--forward", between.address)
        places = [f"{host}:{peers.port}" for host in peers.hosts]
        seen = run_calls(
            peers.kind,
            [
                Call(key, f"https://{places[key[0]]}", places[key[0]], variables)
                for key in INTERCEPTED_CALLS
            ],
        )
        between.stop()
    check_transcripts(peers, seen, {*places})
    check_recording(between.recording, seen)
    check_tls(between.recording, {host if host != "127.0.0.1" else "" for host in peers.hosts})
    for host, old, now in zip(peers.hosts, before, peers.requests(), strict=True):
        assert {asked for _, asked, *_ in now[len(old) :]} == {host}


@pytest.mark.peers
def test_forwarded_without_tls(peers: Peers, tmp_path: Path) -> None:
    """HTTP of Python in absolute form; gRPC and Node.js by CONNECT."""
    one = peers.agents[0]
    with proxy(tmp_path, "", "", "--forward", "127.0.0.1:0") as between:
        variables = variables_of(between, "--forward", between.address)
        seen = run_calls(
            peers.kind,
            [Call((0, each), one.base_url, one.grpc_target, variables) for each in BINDINGS],
        )
        between.stop()
    check_transcripts(peers, seen, {f"{host}:{peers.port}" for host in peers.hosts})
    check_recording(between.recording, seen)
    with Recording(between.recording) as recording:
        upstreams = {row.connection.upstream for row in recording.read_connections()}
    assert upstreams == {f"127.0.0.1:{one.http}", one.grpc_target}
