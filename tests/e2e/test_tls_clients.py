"""Clients of many kinds through `--tls` and through `--forward --intercept`, with nothing but the
variables of `a2a-proxy ca env`; JVMs, which read none of them, by `a2a-proxy run --java`.

Each client says which protocol (ALPN) and which certificate it saw; the recording says the same.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256

from a2a_proxy.model.values import Connection
from a2a_proxy.recording.read.reader import Recording
from support_nginx import nginx, virtual_host
from support_peers import ENVIRONMENTS, NODE24, PEERS, Agent, agent, require_peers
from support_proxy import Proxy, environment, program, proxy
from support_relay import refusing_port

SECONDS = 120
PROGRAMS = PEERS / "tls"
SDK = str(ENVIRONMENTS / "sdk1" / "bin" / "python")
HTTP = str(PROGRAMS / "http_client.py")
S_CLIENT = 'exec openssl s_client ${HTTPS_PROXY:+-proxy "${HTTPS_PROXY#http://}"} "$@"'
"""The only client that wants its proxy as an argument."""


@dataclass(frozen=True)
class Client:
    """A command line, in which URL and PLACE are replaced, and the protocols that are agreed on."""

    words: tuple[str, ...]
    tls: str
    """Through `--tls`, where cards can be edited if the client takes `http/1.1` at all."""
    intercepted: str
    """With `--intercept`, where nginx takes `h2` if it can."""
    needs: str = ""
    """Program on PATH, or environment."""
    java: bool = False
    """Whether it reads `JAVA_TOOL_OPTIONS` only."""


CLIENTS = {
    "curl": Client(
        ("curl", "-sSv", "-o", os.devnull, "-w", "status: %{http_code}\n%{certs}", "URL"),
        "http/1.1",
        "h2",
        "curl",
    ),
    "openssl s_client": Client(
        (
            *("sh", "-c", S_CLIENT, "s_client", "-connect", "PLACE", "-servername", "localhost"),
            *("-verify_hostname", "localhost", "-verify_return_error", "-alpn", "h2,http/1.1"),
        ),
        "http/1.1",
        "h2",
        "openssl",
    ),
    "httpx": Client((SDK, HTTP, "httpx", "URL"), "http/1.1", "http/1.1"),
    "requests": Client((SDK, HTTP, "requests", "URL"), "http/1.1", "http/1.1"),
    "aiohttp": Client((sys.executable, HTTP, "aiohttp", "URL"), "http/1.1", "http/1.1"),
    "grpcio": Client((SDK, str(PROGRAMS / "grpcio_client.py"), "PLACE"), "h2", "h2"),
    "Node.js 24 fetch": Client(
        (str(NODE24), str(PROGRAMS / "fetch.mjs"), "URL"), "http/1.1", "http/1.1", "node24"
    ),
    "grpc-js": Client((str(NODE24), str(PROGRAMS / "grpc_js.mjs"), "PLACE"), "h2", "h2", "node24"),
    "java.net.http": Client(
        ("java", str(PROGRAMS / "Fetch.java"), "URL"), "http/1.1", "h2", "java", java=True
    ),
}
"""manual/tls.md lists the same."""
NO_CERTIFICATE = {"grpcio"}
"""It verifies the certificate, but does not give it to its caller."""


@dataclass(frozen=True)
class Seen:
    """What one client printed, and its connection; None if the client failed."""

    code: int
    text: str
    connection: Connection | None

    @property
    def status(self) -> str:
        """The HTTP status."""
        return self._find(r"^status: (\d+)$")

    @property
    def protocol(self) -> str:
        """The protocol that the client names."""
        return self._find(r"^(?:protocol:|ALPN protocol:|\* ALPN: server accepted) (\S+)")

    @property
    def certificate(self) -> x509.Certificate:
        """The certificate that the client prints, the first one."""
        return x509.load_pem_x509_certificate(
            self.text[self.text.index("-----BEGIN CERTIFICATE-----") :].encode()
        )

    def _find(self, pattern: str) -> str:
        found = re.search(pattern, self.text, re.MULTILINE)
        return found[1] if found else ""


@dataclass(frozen=True)
class Run:
    """All clients through one way, `tls` or `intercept`, and the authority."""

    way: str
    authority: x509.Certificate
    seen: dict[str, Seen]


def client_missing(client: Client) -> str | None:
    """Return why a client cannot run here, or None if it can."""
    if client.needs not in ("", "node24") and shutil.which(client.needs) is None:
        return f"{client.needs} is not on PATH"
    if client.java:
        modules = subprocess.run(
            ["java", "--list-modules"], capture_output=True, text=True, check=False
        ).stdout
        return (
            None if "jdk.compiler@" in modules else "java is no JDK, and cannot run a source file"
        )
    return None


@pytest.fixture(scope="module", params=["tls", "intercept"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Run the clients one after the other: to an agent through `--tls`, or to nginx before it
    through `--forward`."""
    way: str = request.param
    require_peers("sdk1", "js", "node24")
    folder = tmp_path_factory.mktemp(way)
    with contextlib.ExitStack() as stack:
        far = stack.enter_context(agent("sdk1"))
        if way == "tls":
            between = stack.enter_context(proxy(folder, far.base_url, far.grpc_target, "--tls"))
            place, forward, java = f"localhost:{between.port}", "", ("--pass", "localhost")
        else:
            place = f"localhost:{serve_nginx(stack, folder, far)}"
            java = ("--upstream-ca", str(folder / "ca.pem"))
            between = stack.enter_context(
                proxy(folder, "", "", "--forward", "127.0.0.1:0", "--intercept", "private", *java)
            )
            forward = between.address
        java += ("--record", str(folder / "java.a2a"))
        done = {
            name: run_line(between, command_line(client, place, forward, java))
            for name, client in CLIENTS.items()
            if client_missing(client) is None
        }
        between.stop()
        found = connections(between.recording)
        if forward and "java.net.http" in done:
            found += connections(folder / "java.a2a")  # it came last
        succeeded = [name for name, one in done.items() if one.returncode == 0]
        by_name = dict(zip(succeeded, found, strict=True))
        authority = x509.load_pem_x509_certificate((between.state / "ca" / "ca.pem").read_bytes())
        seen = {
            name: Seen(one.returncode, one.stdout + one.stderr, by_name.get(name))
            for name, one in done.items()
        }
        yield Run(way, authority, seen)


def serve_nginx(stack: contextlib.ExitStack, folder: Path, far: Agent) -> int:
    """Run nginx as `https://localhost` in front of an agent; return its port. Its CA is in
    `ca.pem`."""
    port = refusing_port()
    ca = trustme.CA()
    ca.cert_pem.write_to_path(str(folder / "ca.pem"))
    ca.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(
        str(folder / "localhost.pem")
    )
    stack.enter_context(
        nginx(folder, port, virtual_host(folder, port, ("localhost",), far, first=True))
    )
    return port


def command_line(client: Client, place: str, forward: str, java: tuple[str, ...]) -> list[str]:
    """Return the command that runs a client as a user does: in a shell in which `ca env` was
    evaluated, or JVMs by `run`."""
    values = {"URL": f"https://{place}/.well-known/agent-card.json", "PLACE": place}
    words = [values.get(word, word) for word in client.words]
    if client.java:
        return [program("a2a-proxy"), "run", "--java", *java, "--", *words]
    env = f"ca env --forward {forward}" if forward else "ca env"
    return [
        "/bin/sh",
        "-c",
        f'variables=$("$0" {env}) && eval "$variables" && exec "$@"',
        program("a2a-proxy"),
        *words,
    ]


def run_line(between: Proxy, line: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a client without proxy variables of the tests' own environment."""
    own = {
        name: value
        for name, value in environment(between.state).items()
        if not name.lower().endswith("_proxy")
    }
    return subprocess.run(
        line,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",  # openssl prints the HTTP/2 frames of the server
        timeout=SECONDS,
        env=own,
        cwd=ENVIRONMENTS / "js",
        check=False,
    )


def connections(path: Path) -> list[Connection]:
    """Return the connections of a recording, in their order."""
    with Recording(path) as recording:
        return [row.connection for row in recording.read_connections()]


@pytest.mark.peers
@pytest.mark.parametrize("name", CLIENTS)
def test_each_client_sees_the_certificate_of_the_authority(run: Run, name: str) -> None:
    """Each agrees on the protocol that fits, and accepts a certificate for `localhost` that the
    authority has issued; the recording names the same protocol and fingerprint."""
    client = CLIENTS[name]
    if why := client_missing(client):
        pytest.skip(why)
    seen = run.seen[name]
    assert seen.code == 0, seen.text
    assert seen.status == "200" or "Verify return code: 0 (ok)" in seen.text, seen.text
    protocol = client.intercepted if run.way == "intercept" else client.tls
    assert seen.protocol == protocol, seen.text
    assert seen.connection is not None
    tls = seen.connection.tls
    assert tls is not None
    assert tls.client is not None
    assert tls.client.server is not None
    assert (tls.client.version, tls.client.alpn, tls.client.server_name) == (
        "TLSv1.3",
        protocol,
        "localhost",
    )
    assert tls.client.server.names == ("localhost",)
    if name not in NO_CERTIFICATE:
        leaf = seen.certificate
        leaf.verify_directly_issued_by(run.authority)
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert names.get_values_for_type(x509.DNSName) == ["localhost"]
        assert len(list(names)) == 1
        assert leaf.fingerprint(SHA256()).hex() == tls.client.server.sha256
    if run.way == "intercept":
        assert tls.upstream is not None
        assert tls.upstream.server is not None
        assert (tls.upstream.alpn, tls.upstream.server_name) == (protocol, "localhost")
        assert tls.upstream.server.verified
        assert tls.upstream.server.sha256 != tls.client.server.sha256


@pytest.mark.peers
def test_grpcio_refuses_the_certificate_without_the_variables(tmp_path: Path) -> None:
    """What grpcio does not show: it accepts the certificate because of `ca env`."""
    require_peers("sdk1")
    with proxy(tmp_path, f"127.0.0.1:{refusing_port()}", "", "--tls") as between:
        done = run_line(
            between, [SDK, str(PROGRAMS / "grpcio_client.py"), f"localhost:{between.port}"]
        )
        assert done.returncode != 0
        assert "CERTIFICATE_VERIFY_FAILED" in done.stderr
