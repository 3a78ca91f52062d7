"""Agents behind TLS: nginx with two virtual hosts on one port, each in front of an SDK agent, and
wrong certificates.

The names of the virtual hosts are spellings of 127.0.0.1 that every resolver resolves and that no
TLS library takes for addresses: they are sent by SNI and compared with certificates, and the proxy
treats them as remote hosts.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
import trustme

from a2a_proxy.model.values import Binding
from support_nginx import nginx, read_requests, virtual_host
from support_peers import Agent, Transcript, agent, normalise, require_peers, run_client
from support_proxy import Proxy, finished, proxy
from support_relay import refusing_port

BINDINGS = ("jsonrpc", "rest", "grpc")
SCENARIOS = ["card", "unary", "streaming", "input", "cancel", "errors", "big"]
HOSTS = {"127.1": "agent one", "127.0.1": "agent two"}
"""Virtual host -> the name in the card of the agent behind it."""
PAST = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
SECONDS = 120.0

CLOSED = """  server {{
    listen 127.0.0.1:{port} ssl http2 reuseport;
    ssl_certificate {folder}/{name}.pem; ssl_certificate_key {folder}/{name}.pem;
    location / {{ return 204; }}
  }}
"""


@dataclass(frozen=True)
class Front:
    """A running nginx."""

    folder: Path
    port: int
    """Ports of the virtual hosts."""
    agents: dict[str, Agent]
    wrong: dict[str, int]
    """The fault of a certificate -> the port that uses it."""

    @property
    def ca(self) -> Path:
        """The CA of the valid certificates."""
        return self.folder / "ca.pem"

    def requests(self, host: str) -> list[list[str]]:
        """Return SNI, host, protocol, method, path and status of each request to a virtual host, in
        order."""
        return read_requests(self.folder, host)


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """Run nginx in front of two agents, whose cards contain its URLs."""
    require_peers("sdk1")
    folder = tmp_path_factory.mktemp("nginx")
    port, *ports = (
        refusing_port() for _ in range(4)
    )  # kept open for nginx, which shares them by `reuseport`
    wrong = dict(zip(certificates(folder), ports, strict=True))
    with contextlib.ExitStack() as stack:
        agents = {host: stack.enter_context(agent("sdk1", *at(host, port))) for host in HOSTS}
        running = Front(folder, port, agents, wrong)
        servers = [
            virtual_host(folder, port, (host,), one, first=host == next(iter(HOSTS)))
            for host, one in agents.items()
        ]
        servers += [
            CLOSED.format(folder=folder, name=name, port=port) for name, port in wrong.items()
        ]
        stack.enter_context(nginx(folder, port, "".join(servers)))
        yield running


def at(host: str, port: int) -> list[str]:
    """Return the address that an agent advertises."""
    return [
        "--name",
        HOSTS[host],
        "--advertise-http",
        f"https://{host}:{port}",
        "--advertise-grpc",
        f"{host}:{port}",
    ]


def certificates(folder: Path) -> list[str]:
    """Write a CA, the valid certificate of each virtual host, and invalid ones of 127.1; return
    their faults."""
    ca = trustme.CA()
    ca.cert_pem.write_to_path(str(folder / "ca.pem"))
    expired = ca.issue_cert("127.1", not_before=PAST, not_after=PAST + datetime.timedelta(days=1))
    leaves = {host: ca.issue_cert(host) for host in HOSTS}
    leaves |= {"other": ca.issue_cert("other.example"), "expired": expired}
    for name, leaf in leaves.items():
        leaf.private_key_and_cert_chain_pem.write_to_path(str(folder / f"{name}.pem"))
    own = trustme.CA()  # its certificate is self-signed
    (folder / "self.pem").write_bytes(own.private_key_pem.bytes() + own.cert_pem.bytes())
    return ["other", "expired", "self"]


def as_seen(transcripts: list[Transcript], front: Front, host: str) -> dict[str, Any]:
    """Return a client's transcript without the addresses of the agent."""
    text = json.dumps(normalise(transcripts))
    place = f"{host}:{front.port}"
    seen: dict[str, Any] = json.loads(
        text.replace(f"https://{place}", "http://PLACE").replace(place, "PLACE")
    )
    return seen


@pytest.mark.peers
@pytest.mark.parametrize("host", HOSTS)
def test_clients_behave_as_without_tls_and_proxy(front: Front, tmp_path: Path, host: str) -> None:
    """An unmodified SDK client follows the card over all bindings; the virtual host in the card
    answers all calls."""
    other = next(one for one in HOSTS if one != host)
    before = {name: len(front.requests(name)) for name in HOSTS}
    with proxy(
        tmp_path, f"https://{host}:{front.port}", "", "--upstream-ca", str(front.ca)
    ) as between:
        followed = asyncio.run(run_all(between.base_url, "", "--follow-card"))
        recording = finished(between)
    direct = asyncio.run(run_all(front.agents[host].base_url, front.agents[host].grpc_target))
    for binding in BINDINGS:
        assert as_seen(followed[binding], front, host) == as_seen(direct[binding], front, host)
        names = [entry.event["name"] for entry in followed[binding][0].entries]
        assert names == [HOSTS[host]] * 2
    answered = front.requests(host)[before[host] :]
    assert len(front.requests(other)) == before[other]
    assert {(sni, asked) for sni, asked, *_ in answered} == {(host, host)}
    assert {protocol for _, _, protocol, *_ in answered} == {"HTTP/1.1", "HTTP/2.0"}
    with recording:
        exchanges = [row.exchange for row in recording.read_exchanges()]
        assert len(exchanges) == len(answered)
        assert {*BINDINGS, Binding.CARD} == {one.binding for one in exchanges}


async def run_all(base_url: str, target: str, *extra: str) -> dict[str, list[Transcript]]:
    """Run one client per binding at the same time."""
    seen = await asyncio.gather(
        *(run_client("sdk1", one, SCENARIOS, base_url, target, *extra) for one in BINDINGS)
    )
    return dict(zip(BINDINGS, seen, strict=True))


WRONG = {
    "other": ("its certificate is not for 127.1", "use a host name of its subjectAltName"),
    "expired": ("its certificate has expired", "--upstream-insecure"),
    "self": ("its certificate is self-signed", "--upstream-ca FILE"),
}


@pytest.mark.peers
@pytest.mark.parametrize("case", WRONG)
def test_wrong_certificates_are_refused(front: Front, tmp_path: Path, case: str) -> None:
    """HTTP clients receive a 502 and gRPC clients UNAVAILABLE, both with the reason; the console
    prints one line with a hint."""
    said, hint = WRONG[case]
    upstream = f"https://127.1:{front.wrong[case]}"
    with proxy(tmp_path, upstream, "", "--upstream-ca", str(front.ca)) as between:
        for _ in range(2):
            status, kind, body = get(between)
            assert (status, kind) == (502, "application/problem+json")
            assert said in json.loads(body)["detail"]
            code, details = call(between)
            assert code is grpc.StatusCode.UNAVAILABLE
            assert said in details
        between.stop()
        (warning,) = between.said("warning")
    assert warning["message"].startswith(f"no connection to {upstream}: ")
    assert said in warning["message"]
    assert hint in warning["hint"]


@pytest.mark.peers
@pytest.mark.parametrize("case", WRONG)
def test_insecure_accepts_wrong_certificates_with_a_warning(
    front: Front, tmp_path: Path, case: str
) -> None:
    """With --upstream-insecure every certificate is accepted for HTTP and gRPC; the console warns
    at the start."""
    with proxy(
        tmp_path, f"https://127.1:{front.wrong[case]}", "", "--upstream-insecure", log_format="text"
    ) as between:
        assert get(between)[0] == 204
        code, details = call(between)
        assert code is not grpc.StatusCode.UNAVAILABLE, details
        between.stop()
    warning = next(line for line in between.err if "warning" in line)
    assert "certificates of https upstreams are NOT verified" in warning
    assert f"https://127.1:{front.wrong[case]} (certificate not verified)" in between.err[0]


def get(between: Proxy) -> tuple[int, str, bytes]:
    """Fetch the card; return status, media type and body of the response."""
    with contextlib.closing(
        http.client.HTTPConnection(between.address, timeout=SECONDS)
    ) as connection:
        connection.request("GET", "/.well-known/agent-card.json")
        answer = connection.getresponse()
        return answer.status, answer.headers.get_content_type(), answer.read()


def call(between: Proxy) -> tuple[grpc.StatusCode, str]:
    """Call the agent over gRPC and return the error."""
    own = (("grpc.use_local_subchannel_pool", 1),)  # no connection of an earlier, refused call
    with (
        grpc.insecure_channel(between.address, own) as channel,
        pytest.raises(grpc.RpcError) as caught,
    ):
        channel.unary_unary("/lf.a2a.v1.A2AService/GetTask", None, None)(b"", timeout=SECONDS)
    return caught.value.code(), str(caught.value.details())
