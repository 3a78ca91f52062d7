"""What `verify` says of an agent that does not answer as in the cassette."""

from __future__ import annotations

from pathlib import Path

from a2a_proxy.recording.cassette import read_cassette
from a2a_proxy.testing.after import differences

SAMPLES = Path(__file__).parents[2] / "recordings"


def test_what_is_on_one_side_only_is_said_so(tmp_path: Path) -> None:
    """Not as a value that is now another one."""
    now = tmp_path / "now.a2a.db"
    read_cassette(SAMPLES / "lossy.a2a.jsonl", now)
    told = differences(SAMPLES / "demo.a2a.jsonl", now)
    [interface] = [line for line in told if "$.supportedInterfaces[3]" in line]
    assert ": now {" in interface
    assert interface.endswith(", not recorded")
    assert not [line for line in told if "None" in line]
