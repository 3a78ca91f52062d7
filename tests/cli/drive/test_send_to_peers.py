"""Recorded calls sent again to real agents of SDKs: the same answer, and another one for an edited
request."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from support_cli import SECONDS, environment, program
from support_drive import SAMPLES
from support_peers import agent, require_peers
from support_thin import thin

_CASES = [
    ("sdk1", "sdk-1.x-jsonrpc", "parts"),
    ("sdk1", "sdk-1.x-rest", "parts"),
    ("sdk1", "sdk-1.x-grpc", "parts"),
    ("sdk03", "sdk-0.3-jsonrpc", "parts"),
    ("sdk03", "sdk-0.3-rest", "content"),
    ("sdk03", "sdk-0.3-grpc", "content"),
]


@pytest.mark.peers
@pytest.mark.parametrize("case", thin(_CASES, len(_CASES)), ids=str)
def test_a_call_and_a_stream_of_each_binding(case: tuple[str, str, str], tmp_path: Path) -> None:
    """The members are those of the dialect; the difference names the new answer."""
    kind, sample, parts = case
    require_peers(kind)
    path = SAMPLES / f"{sample}.a2a.jsonl"
    with open_recording_or_cassette(path) as recording:
        calls = [row.exchange for row in recording.read_exchanges() if not row.exchange.error]
    places = [
        next(str(call.id) for call in calls if call.operation == name)
        for name in ("SendMessage", "SendStreamingMessage")
    ]
    edit = ("--set", f"message.{parts}[0].text=edited")
    with agent(kind) as far:
        words = ["--upstream", f"127.0.0.1:{far.http}", "--diff"]
        words += ["--upstream-grpc", far.grpc_target] if far.grpc else []
        for place in places:
            for code, summary, more in (
                (0, "same", ()),
                (1, "no behaviour is called edited", edit),
            ):
                line = [program("a2a-proxy"), "send", str(path), place, *words, *more]
                env = environment(tmp_path / "state")
                done = subprocess.run(
                    line, capture_output=True, text=True, timeout=SECONDS, env=env, check=False
                )
                assert (done.returncode, summary in done.stdout) == (code, True), (
                    done.stdout + done.stderr
                )
