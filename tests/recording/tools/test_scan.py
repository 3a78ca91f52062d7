"""The scan for secrets: no finding in clean recordings, and every planted secret found."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.cassette.rewrite import rewrite_cassette
from a2a_proxy.recording.tools.scan import ScanResult, scan_recording
from a2a_proxy.redaction.policy import DEFAULT, policy_of
from a2a_proxy.redaction.scanner import Clue
from support_inspect import changes, exchange, request, writer
from support_thin import thin

RECORDINGS = Path(__file__).parents[3] / "recordings"
SAMPLES = sorted(RECORDINGS.glob("*.a2a.jsonl"))
DEMO = RECORDINGS / "demo.a2a.jsonl"
GRPC = RECORDINGS / "sdk-1.x-grpc.a2a.jsonl"


def scanned(path: Path, *words: str) -> ScanResult:
    with open_recording_or_cassette(path) as recording:
        return scan_recording(recording, policy_of(words) if words else DEFAULT, path)


def put(tmp_path: Path, sample: Path, old: bytes, new: bytes, times: int = 1) -> Path:
    """The sample with something in it, its digests made anew."""
    path = tmp_path / "put.a2a.jsonl"
    data = sample.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new, times))
    rewrite_cassette(path)
    return path


@pytest.mark.parametrize(
    "sample", thin(SAMPLES, 4), ids=lambda path: path.name.partition(".a2a")[0]
)
def test_no_false_alarm_on_the_samples(sample: Path) -> None:
    """They were recorded with redaction: all that is left of secrets are labels."""
    seen = scanned(sample)
    assert seen.secrets == []
    assert seen.values > 20


RANDOM = "Zq8Rk3VtY0pLw7Hs2Nd5Xb9Mc4"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlc2lnbg"


@pytest.mark.parametrize(
    ("text", "secret", "clue"),
    [
        ("my password=hunter2-x is it", "hunter2-x", Clue.LOOK),
        (f"take {RANDOM} with you", RANDOM, Clue.RANDOM),
        (f"a token: {JWT}", JWT, Clue.LOOK),
        ("go to https://me:s3cret-pw@host/", "me:s3cret-pw", Clue.LOOK),
        ("sk-abcdefgh12345678abcd it is", "sk-abcdefgh12345678abcd", Clue.LOOK),
    ],
)
def test_a_credential_in_a_message_is_found(
    tmp_path: Path, text: str, secret: str, clue: Clue
) -> None:
    """In JSON and in protobuf, with its place, what gave it away, and an excerpt that does not tell
    it."""
    for sample, old in ((DEMO, b"Lisbon"), (GRPC, b'"unary"')):
        new = json.dumps(text).encode() if old.startswith(b'"') else text.encode()
        seen = scanned(put(tmp_path, sample, old, new))
        found = seen.secrets[0]
        assert (found.secret.decode(), found.clue) == (secret, clue)
        assert found.place.startswith("#")
        assert "text" in found.where
        assert secret not in found.excerpt
        assert str(len(secret)) in found.excerpt


def test_places_in_several_sessions(tmp_path: Path) -> None:
    """Each with its session: exchanges, frames, and the session itself."""
    path = tmp_path / "r.db"
    for number in (1, 2):
        made = writer(path, number)
        made.write(
            [request(1, f"take {RANDOM} with you")],
            changes=changes(exchange(1, target=f"/?key={RANDOM}")),
        )
        made.close()
    assert {each.place for each in scanned(path).secrets} == {"#1:1", "#1:1.0", "#2:1", "#2:1.0"}


def test_a_known_secret_is_found_elsewhere(tmp_path: Path) -> None:
    """A secret of a header that is repeated in a text, though before it and in base64."""
    path = tmp_path / "two.a2a.jsonl"
    data = DEMO.read_bytes().replace(b"Lisbon", b"say aHVudGVyMi1odW50ZXIy now", 1)
    path.write_bytes(data.replace(b'["Host",', b'["X-API-Key","hunter2-hunter2"],["Host",'))
    rewrite_cassette(path)
    seen = scanned(path)
    assert {(each.clue, each.secret) for each in seen.secrets} == {(Clue.NAME, b"hunter2-hunter2")}
    wheres = {each.where for each in seen.secrets}
    assert "header:x-api-key" in wheres
    assert any("text" in where for where in wheres)


def test_unknown_members_and_notes_are_scanned(tmp_path: Path) -> None:
    """A member that a newer version, or a person, put into a line; and a note."""
    path = tmp_path / "extra.a2a.jsonl"
    lines = DEMO.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines))
    with open_recording_or_cassette(path):
        pass
    extra = lines[2].replace(b"}\n", b',"x-debug":{"password":"hunter2-hunter2"}}\n')
    body = b"".join([*lines[:2], extra, *lines[3:-1]])
    end = json.loads(lines[-1])

    end["sha256"] = hashlib.sha256(body).hexdigest()
    path.write_bytes(body + json.dumps(end, separators=(",", ":")).encode() + b"\n")
    (found,) = scanned(path).secrets
    assert (found.place, found.where, found.secret) == (
        "line 3",
        '$["x-debug"].password',
        b"hunter2-hunter2",
    )


def test_a_policy_adds_and_removes_patterns(tmp_path: Path) -> None:
    """Absence of personal data is proved the same way; what may be there is said."""
    path = put(tmp_path, DEMO, b"Lisbon", b"write to ana@example.org")
    assert scanned(path).secrets == []
    assert next(each.secret for each in scanned(path, "pii").secrets) == b"ana@example.org"
    assert scanned(path, "pii", "keep:regex:.*@example.org").secrets == []
    path = put(tmp_path, DEMO, b"Lisbon", b"the key sk-abcdefgh12345678abcd")
    assert scanned(path).secrets
    assert scanned(path, "keep:regex:sk-abcdefgh.*").secrets == []
