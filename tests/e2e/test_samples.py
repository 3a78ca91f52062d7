"""The sample recordings are complete, exact, small, anonymous, and contain what their names
promise."""

from __future__ import annotations

import getpass
import re
import socket
from pathlib import Path

import pytest

from a2a_proxy.model.values import Exchange, FrameKind, Severity
from a2a_proxy.recording.cassette.file import (
    open_recording_or_cassette,
    read_cassette,
    write_cassette,
)
from a2a_proxy.recording.read.reader import Recording
from support_faults import explained
from support_proxy import inspect
from support_thin import thin

FOLDER = Path(__file__).resolve().parents[2] / "recordings"
SAMPLES = sorted([*FOLDER.glob("*.a2a.jsonl"), *FOLDER.glob("frameworks/*.a2a.jsonl")])
MOST_BYTES = 150_000
PLACES = re.compile(rb"/(?:tmp|home|root|work|Users|var|opt|usr)/|\.venv|\.peers|site-packages")
ADDRESS = re.compile(rb"(?<![\d.])\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?![\d.])")
HOST = re.compile(rb"https?://([^/:\"\\]+)")
HOSTS = {
    b"127.0.0.1",
    b"example.com",
    b"developer.mozilla.org",
    b"google.github.io",
    b"langchain.com",
}
DIALECTS = {
    "demo": {"1.0"},
    "lossy": {"1.0", "1.1"},
    "sdk-1.x": {"1.0"},
    "sdk-0.3": {"0.3"},
    "js-three": {"1.0"},
    "js-to-0.3": {"0.3"},
    "concurrent": {"1.0"},
    "dialect-0.1": {"0.1"},
    "dialect-0.2": {"0.2"},
    "dialect-vendor": {"vendor"},
    "live-bidi": {"1.0"},
    "live-1975": {"1.0"},
    "live-2153": {"1.1"},
    "generations": {"1.1"},
    "stdio": {"1.0"},
    "three-agents": {"1.0"},
    "a2akit": {"0.3"},
    "adk": {"1.0", "0.3"},
    "agno": {"0.3"},
    "beeai": {"0.3"},
    "fasta2a": {"1.0", "0.3", "0.1"},
    "handler": {"1.0"},
    "js03": {"0.3"},
    "langgraph": {"1.0", "0.3"},
    "pythona2a": {"0.1", "0.3"},
}
MEANT = {"generations": {"A2A-GEN-001"}, "lossy": {"A2A-GEN-001"}}
"""Rules that a sample breaks on purpose."""

PEERS = {
    "sdk-1.x": "sdk1-to-sdk1",
    "sdk-0.3": "sdk03-to-sdk03",
    "js-three": "js-to-sdk1",
    "js-to-0.3": "js-to-sdk03",
    "dialect-vendor": "vendor-to-vendor",
    "beeai.": "beeai-to-beeai",
    "beeai-jsonrpc": "calls-to-beeai-jsonrpc",
    "handler": "handler-to-sdk1-first HTTP+JSON",
    **{
        f"{name}.": f"calls-to-{name}"
        for name in ("fasta2a", "adk", "agno", "js03", "langgraph", "pythona2a")
    },
    "a2akit.": "calls-to-a2akit",
    "a2akit-rest": "calls-to-a2akit-rest",
}
"""The peers, as named in the manual's table of faults."""

every = pytest.mark.parametrize(
    "sample", SAMPLES, ids=lambda path: path.name.removesuffix(".a2a.jsonl")
)


def exchanges(sample: Path) -> list[Exchange]:
    """Return all calls of a sample."""
    with open_recording_or_cassette(sample) as recording:
        return [row.exchange for row in recording.read_exchanges()]


@every
def test_samples_round_trip_byte_for_byte(sample: Path, tmp_path: Path) -> None:
    """A cassette is converted to a recording, with its digest checked, and back to the same
    bytes."""
    read_cassette(sample, tmp_path / "sample.a2a")
    with Recording(tmp_path / "sample.a2a") as recording:
        write_cassette(recording, tmp_path / sample.name)

    assert (tmp_path / sample.name).read_bytes() == sample.read_bytes()


@every
def test_samples_are_small_and_name_no_machine(sample: Path) -> None:
    """They contain no path, user, host name or address of the machine that recorded them."""
    text = sample.read_bytes()

    assert len(text) < MOST_BYTES
    assert PLACES.findall(text) == []
    assert set(ADDRESS.findall(text)) == {b"127.0.0.1"}
    assert set(HOST.findall(text)) <= HOSTS
    assert socket.gethostname().encode() not in text
    assert f'"{getpass.getuser()}"'.encode() not in text


@every
def test_samples_are_complete_recordings(sample: Path) -> None:
    """They are completely captured, every call is closed and every byte decoded, in the dialect of
    their names."""
    with open_recording_or_cassette(sample) as recording:
        (session,) = recording.read_sessions()
        undecodable = [
            row for row in recording.frames_after(0) if row.frame.kind is FrameKind.UNDECODABLE
        ]
        findings = [row.finding for row in recording.read_findings()]
    (dialects,) = [found for name, found in DIALECTS.items() if sample.name.startswith(name)]
    calls = exchanges(sample)

    assert (session.how, session.complete) == ("clean", "complete")
    assert [exchange.id for exchange in calls if not exchange.closed] == []
    assert {exchange.dialect.value for exchange in calls if exchange.operation} == dialects
    assert undecodable == []
    assert all(finding.rule.startswith("A2A-") for finding in findings)
    meant = MEANT.get(sample.name.removesuffix(".a2a.jsonl"), set())
    pair = next((pair for name, pair in PEERS.items() if sample.name.startswith(name)), "")
    assert {
        finding.rule for finding in findings if finding.severity is Severity.ERROR
    } <= explained(pair) | meant


@pytest.mark.parametrize(
    "sample", thin(SAMPLES, 4), ids=lambda path: path.name.removesuffix(".a2a.jsonl")
)
def test_a_sample_can_be_shown(sample: Path, tmp_path: Path) -> None:
    """`a2a-inspect` accepts a cassette in place of a recording."""
    calls = exchanges(sample)
    listed = inspect(tmp_path, "ls", "--json", sample).splitlines()
    shown = inspect(tmp_path, "show", sample)

    assert len(listed) == len(calls)
    assert all(f"#{exchange.id} " in shown for exchange in calls)


def test_samples_cover_every_binding_and_story() -> None:
    """They cover every binding, and input-required, subscription, cancellation, push, errors and
    aborted streams."""
    calls = [exchange for sample in SAMPLES for exchange in exchanges(sample)]

    assert {exchange.binding.value for exchange in calls} >= {
        "grpc",
        "jsonrpc",
        "rest",
        "card",
        "stdio",
    }
    assert {exchange.operation for exchange in calls} >= {
        "SendMessage",
        "SendStreamingMessage",
        "SubscribeToTask",
        "CancelTask",
        "GetTask",
        "ListTasks",
        "GetExtendedAgentCard",
        "CreateTaskPushNotificationConfig",
        "ListTaskPushNotificationConfigs",
    }
    assert {state for exchange in calls for state in exchange.states} >= {
        "submitted",
        "working",
        "input-required",
        "completed",
        "canceled",
        "failed",
        "rejected",
    }
    assert {exchange.how for exchange in calls} >= {"complete", "agent gone"}


def test_the_readme_names_every_sample() -> None:
    """The content of each cassette is described without opening it."""
    text = (FOLDER / "README.md").read_text()
    named = set(re.findall(r"`([a-z0-9.-]+)`", text.partition("The credentials")[0]))
    full = named | {
        f"sdk-{line}{binding}" for line in ("1.x", "0.3") for binding in ("-rest", "-grpc")
    }

    assert {path.name.removesuffix(".a2a.jsonl") for path in SAMPLES} <= full
