"""The report of `verify` for an agent that does not answer as in the cassette."""

from __future__ import annotations

from pathlib import Path

from a2a_proxy.recording.cassette.file import open_recording_or_cassette, read_cassette
from a2a_proxy.replay.load import load_script
from a2a_proxy.testing.teardown import append_session, count_calls, list_differences

SAMPLES = Path(__file__).parents[2] / "recordings"


def test_values_on_one_side_only_are_named(tmp_path: Path) -> None:
    """Not as a value that is now another one."""
    now = tmp_path / "now.a2a.db"
    read_cassette(SAMPLES / "lossy.a2a.jsonl", now)
    differences = list_differences(SAMPLES / "demo.a2a.jsonl", now)
    [interface] = [line for line in differences if "$.supportedInterfaces[3]" in line]
    assert ": now {" in interface
    assert interface.endswith(", not recorded")
    assert not [line for line in differences if "None" in line]


def test_a_part_is_appended(tmp_path: Path) -> None:
    """Only the calls that `before_record` is true of come behind what was there, and they can be
    replayed."""
    cassette, new = tmp_path / "c.a2a.jsonl", tmp_path / "new.a2a.db"
    cassette.write_bytes((SAMPLES / "demo.a2a.jsonl").read_bytes())
    read_cassette(SAMPLES / "lossy.a2a.jsonl", new)
    assert count_calls(new) == 9
    assert count_calls(new, lambda call: call.operation == "GetTask") == 3
    append_session(new, cassette, lambda call: call.operation == "GetTask")
    with open_recording_or_cassette(cassette) as recording:
        counts = [
            sum(1 for _ in recording.read_exchanges(row.id)) for row in recording.read_sessions()
        ]
        assert sorted(counts) == [3, 7]
        assert load_script(recording).sessions == 2
