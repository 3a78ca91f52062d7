"""Canary secrets in every place that holds credentials: no file and no output of the real proxy
contains one."""

from __future__ import annotations

import asyncio
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme

from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.tools.scan import scan_recording
from a2a_proxy.redaction.policy import DEFAULT
from support_hostile_hellos import real_hello
from support_proxy import Proxy, environment, inspect, program, proxy
from support_secrets import (
    CALLS,
    Canaries,
    Forwarded,
    OtherProxy,
    SecretAgent,
    SecretClient,
    everything,
)

SECONDS = 120
KEPT = (
    b"your key redacted-",
    b" is not mine",
    b"theme=redacted-",
    b"page=2",
    b"hooks.example",
    b'realm="house"',
    b"X-House-Pass",
)
"""Text beside the secrets."""


@dataclass(frozen=True)
class Leak:
    """One run with secrets, and its files and output."""

    canary: Canaries
    between: Proxy
    while_recording: list[str]
    """Places whose secret could be read from the files of the recording before the proxy was
    stopped."""
    calls: int = CALLS
    """Number of exchanges that were made."""
    findings: frozenset[str] = frozenset()
    """Findings that are no rule's."""


async def talk(folder: Path, log_format: str, *extra: str) -> Leak:
    """Send all secrets through a proxy, read its files while it runs, and stop it."""
    canary = Canaries()
    async with SecretAgent(canary) as agent:
        upstream, grpc = f"127.0.0.1:{agent.http_port}", f"127.0.0.1:{agent.grpc_port}"
        with proxy(folder, upstream, grpc, *extra, log_format=log_format) as between:
            await SecretClient(canary, between.address).run()
            await asyncio.to_thread(wait_for_calls, between.recording)
            early = canary.found_in(
                b"".join(path.read_bytes() for path in folder.glob("recording*"))
            )
            await asyncio.to_thread(between.stop)
    return Leak(canary, between, early)


async def talk_through_forward_proxy(folder: Path, *extra: str) -> Leak:
    """Send all secrets within TLS that is opened, and others in what only a forward proxy gets."""
    canary, ca = Canaries(), trustme.CA()
    name, unknown = canary.host("name of an agent"), canary.host("name of no host")
    unread = canary.host("name of an unread host", "example")
    certificate, plain_agent = ca.issue_cert(name, unread), SecretAgent(canary)
    ca.cert_pem.write_to_path(str(folder / "ca.pem"))
    presented = ca.issue_cert("client.test")
    presented.private_key_and_cert_chain_pem.write_to_path(str(folder / "presented.pem"))
    user = f"http://user:{canary.plain('credentials for --upstream-proxy')}@127.0.0.1"
    async with OtherProxy() as other, SecretAgent(canary, certificate) as agent, plain_agent:
        words = (
            "--forward",
            "127.0.0.1:0",
            "--intercept",
            "*.test",
            "--upstream-ca",
            str(folder / "ca.pem"),
        )
        words += (
            "--upstream-cert",
            str(folder / "presented.pem"),
            "--upstream-proxy",
            f"{user}:{other.port}",
        )
        with proxy(folder, "", "", *words, *extra) as between:
            way = Forwarded(canary, between.address, (between.state / "ca" / "ca.pem").read_text())
            await SecretClient(
                canary, f"{name}:{agent.http_port}", f"{name}:{agent.grpc_port}", way
            ).run()
            query = f"?token={canary.plain('absolute-form query')}"
            found = await way.ask(
                f"http://{unread}:{plain_agent.http_port}/.well-known/agent.json{query}"
            )
            assert found.startswith(b"HTTP/1.1 200 ")
            refused = f"http://bob:{canary.plain('absolute-form user info')}@{unread}/{query}"
            assert (await way.ask(refused)).startswith(b"HTTP/1.1 400 ")
            assert (await way.ask(f"https://{unknown}:1/")).startswith(b"HTTP/1.1 502 ")
            for host in (
                name,
                unread,
            ):  # the first client ends its handshake, the second is not opened
                tunnel = f"CONNECT {host}:{agent.http_port} HTTP/1.1\r\n\r\n"
                await way.send(tunnel.encode() + real_hello(host))
            await asyncio.to_thread(wait_for_calls, between.recording, CALLS + 2)
            early = canary.found_in(
                b"".join(path.read_bytes() for path in folder.glob("recording*"))
            )
            journal = b"".join(
                path.read_bytes() for path in between.state.glob("journals/*/*.a2aj")
            )
            assert canary.at["authorization"].encode() in journal
            for place in ("Proxy-Authorization", "credentials for --upstream-proxy"):
                assert place not in canary.found_in(journal)
            await asyncio.to_thread(between.stop)
    assert all(b"Proxy-Authorization: Basic " in head for head in other.heads)
    for place, pem in (
        ("key of the agent", certificate.private_key_pem.bytes()),
        ("key of --upstream-cert", presented.private_key_pem.bytes()),
        ("key of the authority", (between.state / "ca" / "authority.pem").read_bytes()),
    ):
        canary.at[place] = pem.decode().splitlines()[2]
    (folder / "presented.pem").unlink()
    (between.state / "ca" / "authority.pem").unlink()
    return Leak(canary, between, early, CALLS + 2, frozenset({"HANDSHAKE"}))


def wait_for_calls(path: Path, calls: int = CALLS) -> None:
    """Wait until all calls are in the recording, which is still being written."""
    with Recording(path) as recording:
        for _ in range(SECONDS * 50):
            if sum(1 for row in recording.read_exchanges() if row.exchange.closed) == calls:
                return
            time.sleep(0.02)
    raise TimeoutError(f"fewer than {calls} calls were recorded")


@pytest.fixture(scope="module", params=["json", "text", "forward"])
def leak(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Leak:
    """A run with the defaults, with text logs or JSON logs, or through a forward proxy."""
    if request.param == "forward":
        return asyncio.run(talk_through_forward_proxy(tmp_path_factory.mktemp("leak")))
    return asyncio.run(talk(tmp_path_factory.mktemp("leak"), request.param))


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Leak:
    """A run with `--redact none`."""
    return asyncio.run(talk(tmp_path_factory.mktemp("kept"), "json", "--redact", "none"))


def test_no_secret_is_readable_during_the_recording(leak: Leak) -> None:
    """The database, its WAL and its SHM hold no secret before the proxy has stopped."""
    assert len(leak.canary.at) > 45
    assert leak.while_recording == []


def test_no_file_holds_a_secret(leak: Leak) -> None:
    """The recording, the state directory and the log hold none after the end."""
    folder = leak.between.recording.parent
    files = [path for path in folder.rglob("*") if path.is_file()]

    assert leak.between.recording in files
    assert {
        str(path): hits for path in files if (hits := leak.canary.found_in(path.read_bytes()))
    } == {}


def test_no_row_or_payload_holds_a_secret(leak: Leak) -> None:
    """Compressed data of the database holds none."""
    stored = everything(leak.between.recording)

    assert b"redacted-" in stored
    assert leak.canary.found_in(stored) == []


def test_the_console_shows_no_secret(leak: Leak) -> None:
    """The proxy prints none, although it prints the errors that contain them."""
    assert "SendMessage" in leak.between.text
    assert "redacted-" in leak.between.text
    assert leak.canary.found_in(leak.between.text.encode()) == []


@pytest.mark.parametrize(
    "words", [["show", "--json"], ["show", "-p"], ["show", "--raw"], ["show"], ["ls"]], ids=" ".join
)
def test_inspect_shows_no_secret(leak: Leak, words: list[str]) -> None:
    """`a2a-inspect` prints none."""
    shown = inspect(leak.between.state, *words, leak.between.recording)

    assert "SendMessage" in shown
    assert leak.canary.found_in(shown.encode()) == []


@pytest.mark.parametrize("words", [["jsonl"], ["otlp", "--content", "--frames"]], ids=" ".join)
def test_no_export_holds_a_secret(leak: Leak, tmp_path: Path, words: list[str]) -> None:
    """The cassette and the spans with their log records hold none."""
    inspect(
        leak.between.state, "export", *words, leak.between.recording, "-o", tmp_path / "exported"
    )
    written = (tmp_path / "exported").read_bytes()

    assert b"redacted-" in written
    assert leak.canary.found_in(written) == []


def test_the_rest_of_the_traffic_is_unchanged(leak: Leak) -> None:
    """Redaction removes the secrets and nothing else."""
    stored = everything(leak.between.recording)

    for part in KEPT:
        assert part in stored
    with Recording(leak.between.recording) as recording:
        assert recording.count_rows().exchanges == leak.calls
        found = {
            row.finding.rule
            for row in recording.read_findings()
            if not row.finding.rule.startswith("A2A-")
        }
    assert found == leak.findings


def test_redacting_nothing_keeps_all_secrets(kept: Leak) -> None:
    """With `--redact none` the recording has every secret as it was sent, so the tests above
    searched for real secrets."""
    missing = kept.canary.at.keys() - set(kept.canary.found_in(everything(kept.between.recording)))

    assert missing == set()


def test_the_scan_finds_all_kept_secrets(kept: Leak, leak: Leak) -> None:
    """A scan finds every secret of a recording that keeps them, and none in one that does not."""
    assert scan_of(leak) == b""
    assert kept.canary.at.keys() - set(kept.canary.found_in(scan_of(kept))) == set()


def scan_of(of: Leak) -> bytes:
    """Return all secrets that a scan of its recording finds; a plus may be a blank, as in a
    query."""
    with Recording(of.between.recording) as recording:
        found = b"\n".join(each.secret for each in scan_recording(recording, DEFAULT).secrets)
    return found + found.replace(b" ", b"+")


def test_user_info_of_an_upstream_is_not_repeated(tmp_path: Path) -> None:
    """An upstream with a password is refused, and the error does not contain the password."""
    line = [
        program("a2a-proxy"),
        "--listen",
        ":0",
        "--upstream",
        "http://me:cAnary7f3Qx9Zk@127.0.0.1:9",
    ]
    done = subprocess.run(
        line, capture_output=True, text=True, timeout=SECONDS, env=environment(tmp_path)
    )

    assert done.returncode == 2
    assert "user information" in done.stderr
    assert "cAnary" not in done.stdout + done.stderr
