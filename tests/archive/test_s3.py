"""The archive in a bucket, through obstore: interrupted, refused and repeated requests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from a2a_proxy.archive import segment
from a2a_proxy.archive import store as place_module
from a2a_proxy.archive.errors import ArchiveError
from a2a_proxy.archive.restore import restore_recording
from a2a_proxy.archive.search import SegmentQuery, find_segments
from a2a_proxy.archive.store import ArchiveStore
from a2a_proxy.archive.upload import SessionUpload
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.read.reader import Recording
from support_s3 import BUCKET, CUT, Bucket, s3_server

RECORDING = Path(__file__).parents[2] / "recordings" / "demo.a2a.jsonl"
URL = f"s3://{BUCKET}/some where"
VARIABLES = ("ENDPOINT_URL", "ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "REGION")


@pytest.fixture(scope="module")
def recording() -> Iterator[Recording]:
    with open_recording_or_cassette(RECORDING) as recording:
        yield recording


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """For a recording that makes two segments, in a store that is asked twice at most."""
    monkeypatch.setattr(segment, "MAX_ROWS", 20)
    monkeypatch.setattr(place_module, "_RETRIES", {**place_module._RETRIES, "max_retries": 1})
    with s3_server(page=1) as bucket:
        for name, word in zip(VARIABLES, (bucket.endpoint, "x", "y", "us-east-1"), strict=True):
            monkeypatch.setenv(f"AWS_{name}", word)
        yield bucket


def put(recording: Recording) -> int:
    [session] = recording.read_sessions()
    return SessionUpload(ArchiveStore(URL), "here", recording, session).put_segments(
        include_rest=True
    )


def test_a_recording_is_uploaded_and_restored(
    bucket: Bucket, recording: Recording, tmp_path: Path
) -> None:
    """Listings come in pages, and files in ranges."""
    put(recording)
    place = ArchiveStore(URL)

    brought = restore_recording(place, SegmentQuery(since=1), "all", tmp_path / "back.a2a.db")

    assert brought.frames == sum(row.frame.exchange > 0 for row in recording.frames_after(0))
    assert len(find_segments(place, SegmentQuery())) == len(bucket.objects) // 3 == 2


def test_an_upload_killed_between_two_objects_is_resumed(
    bucket: Bucket, recording: Recording
) -> None:
    """Wherever it ended: all of them are there after the next try, those that were there before as
    they were."""
    put(recording)
    whole = bucket.objects.copy()
    for done in range(len(whole)):
        bucket.objects.clear()
        bucket.answers["PUT"] = [*[0] * done, 403]
        with pytest.raises(ArchiveError, match="access is refused"):
            put(recording)
        there = bucket.objects.copy()
        assert len(there) == done
        put(recording)
        assert bucket.objects == whole
        assert there.items() <= whole.items()


@pytest.mark.parametrize("answer", [503, CUT])
def test_slow_and_cut_off_requests_are_retried(
    bucket: Bucket, recording: Recording, answer: int
) -> None:
    """Also where the object is there, and only the answer did not come."""
    bucket.answers["PUT"] = [0, answer]

    put(recording)

    keys = [line.partition(" ")[2] for line in bucket.asked if line.startswith("PUT")]
    assert sorted(bucket.objects) == sorted(set(keys))
    assert len(keys) == len(bucket.objects) + 1


@pytest.mark.parametrize(
    ("method", "answers", "message"),
    [
        ("LIST", [403], ": access is refused (AccessDenied): list manifests"),
        ("PUT", [403], ": access is refused (AccessDenied): put facts/"),
        ("PUT", [503, 503], " cannot be used: it answers 503 (SlowDown)"),
        ("PUT", [CUT, CUT], " cannot be reached"),
    ],
)
def test_a_storage_refusal_is_one_stable_line(
    bucket: Bucket, recording: Recording, method: str, answers: list[int], message: str
) -> None:
    """It is the same line each time: it has no times, and no addresses of requests."""
    bucket.answers[method] = answers
    with pytest.raises(ArchiveError) as wrong:
        put(recording)

    assert wrong.value.message.startswith(f"{URL}{message}")
    assert "127.0.0.1" not in wrong.value.message
