"""Canary secrets in every place that holds credentials: no file and no output of the real proxy contains one."""

from __future__ import annotations

import asyncio
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.tools.scan import scan_recording
from a2a_proxy.redaction.policy import DEFAULT
from support_proxy import Proxy, environment, inspect, program, proxy
from support_secrets import CALLS, Canaries, SecretAgent, SecretClient, everything

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
    """Places whose secret could be read from the files of the recording before the proxy was stopped."""


async def talk(folder: Path, log_format: str, *extra: str) -> Leak:
    """Send all secrets through a proxy, read its files while it runs, and stop it."""
    canary = Canaries()
    async with SecretAgent(canary) as agent:
        upstream, grpc = f"127.0.0.1:{agent.http_port}", f"127.0.0.1:{agent.grpc_port}"
        with proxy(folder, upstream, grpc, *extra, log_format=log_format) as between:
            await SecretClient(canary, between.address).run()
            await asyncio.to_thread(wait_for_calls, between.recording)
            early = canary.found_in(b"".join(path.read_bytes() for path in folder.glob("recording*")))
            await asyncio.to_thread(between.stop)
    return Leak(canary, between, early)


def wait_for_calls(path: Path) -> None:
    """Wait until all calls are in the recording, which is still being written."""
    with Recording(path) as recording:
        for _ in range(SECONDS * 50):
            if sum(1 for row in recording.read_exchanges() if row.exchange.closed) == CALLS:
                return
            time.sleep(0.02)
    raise TimeoutError(f"fewer than {CALLS} calls were recorded")


@pytest.fixture(scope="module", params=["json", "text"])
def leak(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Leak:
    """A run with the defaults, with text logs or JSON logs."""
    return asyncio.run(talk(tmp_path_factory.mktemp("leak"), request.param))


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Leak:
    """A run with --keep-secrets."""
    return asyncio.run(talk(tmp_path_factory.mktemp("kept"), "json", "--keep-secrets"))


def test_no_secret_is_readable_during_the_recording(leak: Leak) -> None:
    """The database, its WAL and its SHM hold no secret before the proxy has stopped."""
    assert len(leak.canary.at) > 45
    assert leak.while_recording == []


def test_no_file_holds_a_secret(leak: Leak) -> None:
    """The recording, the state directory and the log hold none after the end."""
    folder = leak.between.recording.parent
    files = [path for path in folder.rglob("*") if path.is_file()]

    assert leak.between.recording in files
    assert {str(path): hits for path in files if (hits := leak.canary.found_in(path.read_bytes()))} == {}


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


def test_the_cassette_holds_no_secret(leak: Leak, tmp_path: Path) -> None:
    """The exported cassette holds none."""
    inspect(leak.between.state, "export", leak.between.recording, "-o", tmp_path / "c.a2a.jsonl")
    written = (tmp_path / "c.a2a.jsonl").read_bytes()

    assert b"redacted-" in written
    assert leak.canary.found_in(written) == []


def test_the_rest_of_the_traffic_is_unchanged(leak: Leak) -> None:
    """Redaction removes the secrets and nothing else."""
    stored = everything(leak.between.recording)

    for part in KEPT:
        assert part in stored
    with Recording(leak.between.recording) as recording:
        assert recording.count_rows().exchanges == CALLS
        assert not [row for row in recording.read_findings() if not row.finding.rule.startswith("A2A-")]


def test_keep_secrets_keeps_all_secrets(kept: Leak) -> None:
    """With --keep-secrets the recording has every secret as it was sent, so the tests above searched for real
    secrets."""
    missing = kept.canary.at.keys() - set(kept.canary.found_in(everything(kept.between.recording)))

    assert missing == set()


def test_the_scan_finds_all_kept_secrets(kept: Leak, leak: Leak) -> None:
    """A scan finds every secret of a recording that keeps them, and none in one that does not."""
    assert scan_of(leak) == b""
    assert kept.canary.at.keys() - set(kept.canary.found_in(scan_of(kept))) == set()


def scan_of(of: Leak) -> bytes:
    """Return all secrets that a scan of its recording finds; a plus may be a blank, as in a query."""
    with Recording(of.between.recording) as recording:
        found = b"\n".join(each.secret for each in scan_recording(recording, DEFAULT).secrets)
    return found + found.replace(b" ", b"+")


def test_user_info_of_an_upstream_is_not_repeated(tmp_path: Path) -> None:
    """An upstream with a password is refused, and the error does not contain the password."""
    line = [program("a2a-proxy"), "--listen", ":0", "--upstream", "http://me:cAnary7f3Qx9Zk@127.0.0.1:9"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=SECONDS, env=environment(tmp_path))

    assert done.returncode == 2
    assert "user information" in done.stderr
    assert "cAnary" not in done.stdout + done.stderr
