"""Cassettes rewritten: formatted, accepted after an edit, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_proxy.recording.cassette.file import open_recording_or_cassette, read_cassette
from a2a_proxy.recording.cassette.importer import MAX_LINE_BYTES
from a2a_proxy.recording.cassette.rewrite import RewriteResult, rewrite_cassette
from a2a_proxy.recording.errors import RecordingError
from support_thin import thin

ROOT = Path(__file__).parents[3]
SAMPLES = sorted((ROOT / "recordings").glob("*.a2a.jsonl"))
DEMO = ROOT / "recordings" / "demo.a2a.jsonl"


@pytest.mark.parametrize(
    "sample", thin(SAMPLES, 4), ids=lambda path: path.name.partition(".a2a")[0]
)
def test_the_samples_are_formatted(sample: Path) -> None:
    """What is committed here is in the one form."""
    assert not rewrite_cassette(sample, check=True).changed


def test_a_cassette_edited_by_hand_is_accepted(tmp_path: Path) -> None:
    """Its digests are recomputed, everything else stays; a second run changes nothing, and `check`
    never writes."""
    path = tmp_path / "e.a2a.jsonl"
    edited = DEMO.read_bytes().replace(b"Lisbon", b"Porto")
    path.write_bytes(edited)
    path.chmod(0o644)
    made = rewrite_cassette(path, check=True)
    assert (made.changed, made.edited) == (True, True)
    assert path.read_bytes() == edited
    rewrite_cassette(path)
    assert path.read_bytes().splitlines()[:-1] == edited.splitlines()[:-1]
    assert path.stat().st_mode & 0o777 == 0o644
    assert rewrite_cassette(path) == RewriteResult(False, False)
    with open_recording_or_cassette(path) as recording, open_recording_or_cassette(DEMO) as before:
        assert recording.read_sessions()[0].how == before.read_sessions()[0].how == "clean"


def test_order_and_spacing_of_lines_are_normalized(tmp_path: Path) -> None:
    """A finding that was put first, members in another order, spaces: it is written as it was
    before."""
    path = tmp_path / "f.a2a.jsonl"
    lines = DEMO.read_bytes().splitlines(keepends=True)
    task = next(line for line in lines if line.startswith(b'{"task"'))
    lines.remove(task)
    lines.insert(1, task.replace(b'","', b'" , "'))
    path.write_bytes(b"".join(lines))
    rewrite_cassette(path)
    assert path.read_bytes() == DEMO.read_bytes()


def test_large_payloads_move_out_of_and_into_the_file(tmp_path: Path) -> None:
    """`blobs` puts them beside the file, its opposite into it; without either they stay where they
    are."""
    path = tmp_path / "b.a2a.jsonl"
    path.write_bytes(DEMO.read_bytes().replace(b"Lisbon", b"L" * 70_000))
    rewrite_cassette(path)
    whole = path.read_bytes()
    rewrite_cassette(path, blobs=True)
    assert list((tmp_path / "blobs").iterdir())
    assert b"LLLL" * 100 not in path.read_bytes()
    assert not rewrite_cassette(path).changed
    rewrite_cassette(path, blobs=False)
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"interactions:\n- request:\n", "is not a cassette"),
        (b'{"log":{"version":"1.2"}}\n', "is not a cassette"),
        (b'{"cassette":"a2a","version":99,"sessions":[]}\n', "written by a newer a2a-proxy"),
        (b'{"cassette":"a2a","version":0,"sessions":[]}\n', "not a cassette"),
        (b'{"cassette":"a2a","version":1,"sessions":[]}\n', "truncated"),
        (b'{"cassette":"a2a","version":1,"sessions":{}}\n{"end":{}}\n', "is not valid"),
        (b'{"cassette":"a2a","version":1,"sessions":[{"uuid":1}]}\n', "is not valid"),
        (b'{"cassette":"a2a",' + b'"a":[' * 5000 + b"\n", "not a JSON object"),
        (b'{"cassette":"a2a","version":' + b"9" * 5000 + b"}\n", "not a JSON object"),
    ],
)
def test_invalid_cassettes_are_refused_and_unchanged(
    tmp_path: Path, data: bytes, message: str
) -> None:
    """Foreign, newer, truncated and hostile files: one message with a hint, and the file stays as
    it was."""
    path = tmp_path / "x.a2a.jsonl"
    path.write_bytes(data)
    with pytest.raises(RecordingError, match=message) as caught:
        rewrite_cassette(path)
    assert caught.value.hint
    assert path.read_bytes() == data


HOSTILE = [
    b'{"exchange":1,"connection":1,"stream":0,"binding":"nonsense","started":0}',
    b'{"exchange":1,"connection":1,"stream":0,"binding":"jsonrpc","started":1e999}',
    b'{"connection":-1,"client":"\\ud800","listen":[],"upstream":"","opened":0}',
    (
        b'{"frame":"event","connection":1,"exchange":1,'
        b'"seq":0,"direction":"to_agent","at":0,"raw_b64":"!"}'
    ),
    (
        b'{"frame":"event","connection":1,"exchange":1,"seq":0,'
        b'"direction":"to_agent","at":0,"blob":"/etc/passwd"}'
    ),
    (
        b'{"frame":"event","connection":1,"exchange":1,"seq":0,'
        b'"direction":"to_agent","at":0,"data":1,"json":"../x"}'
    ),
    b'{"__class__":"os.system","args":["true"]}',
    b'{"session":7,"note":"x","at":0}',
    b"[]",
    b"null",
    b'{"finding":"' + b"A" * 100_000 + b'","severity":"grave","at":0}',
]


@pytest.mark.parametrize("line", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_line_is_refused_with_its_number(tmp_path: Path, line: bytes) -> None:
    """Whatever a line says, it is one clear error, and no recording is made."""
    path = tmp_path / "h.a2a.jsonl"
    lines = DEMO.read_bytes().splitlines()
    path.write_bytes(b"\n".join([lines[0], line, *lines[1:]]) + b"\n")
    with pytest.raises(RecordingError, match="line 2: ") as caught:
        read_cassette(path, tmp_path / "r.a2a.db")
    assert len(caught.value.message) < 1000
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_numbers_out_of_range_are_refused(tmp_path: Path) -> None:
    """It is found when lines are stored, so many at once; the message says so."""
    path = tmp_path / "n.a2a.jsonl"
    path.write_bytes(
        DEMO.read_bytes().replace(
            b'"exchange":1,"connection":1,', b'"exchange":1,"connection":%d,' % 10**30
        )
    )
    with pytest.raises(RecordingError, match="one of the 46 preceding lines is not valid"):
        read_cassette(path, tmp_path / "r.a2a.db")


def test_lines_have_a_length_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line takes more memory than the longest that a recording can have."""
    assert MAX_LINE_BYTES >= 6 * 64 << 20
    monkeypatch.setattr("a2a_proxy.recording.cassette.importer.MAX_LINE_BYTES", 1 << 14)
    path = tmp_path / "l.a2a.jsonl"
    path.write_bytes(DEMO.read_bytes().replace(b"Lisbon", b"L" * (1 << 15)))
    with pytest.raises(RecordingError, match="longer than 0 MiB"):
        read_cassette(path, tmp_path / "r.a2a.db")
