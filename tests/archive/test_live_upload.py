"""Sessions uploaded into the archive while they are recorded."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from a2a_proxy.archive import upload
from a2a_proxy.archive.destination import ArchiveJob
from a2a_proxy.archive.search import SegmentQuery, find_segments
from a2a_proxy.archive.store import ArchiveStore
from a2a_proxy.archive.upload import LiveUpload
from a2a_proxy.follower.checkpoint import CheckpointFile
from a2a_proxy.follower.status import FollowerNotice, Status
from support_inspect import changes, exchange, request, sample, writer
from support_recording import facts

FRAMES = 9


@pytest.fixture
def ledger() -> Iterator[CheckpointFile]:
    with tempfile.TemporaryFile() as file:
        yield CheckpointFile(file.fileno())


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("POLL_SECONDS", "RETRY_SECONDS", "_END_RETRY_SECONDS"):
        monkeypatch.setattr(upload, name, 0.001)


def run(tmp_path: Path, ledger: CheckpointFile, tell: Callable[[Status], None]) -> str:
    url = (tmp_path / "archive").as_uri()
    recording = sample(tmp_path / "r.a2a.db")
    LiveUpload(ArchiveJob(str(recording), facts(1).uuid, url, "here", 3600.0), ledger, tell).run()
    return url


def test_an_ended_session_is_uploaded_whole(tmp_path: Path, ledger: CheckpointFile) -> None:
    (tmp_path / "archive").mkdir()
    statuses: list[Status] = []

    [manifest] = find_segments(ArchiveStore(run(tmp_path, ledger, statuses.append)), SegmentQuery())

    mark = ledger.read_mark()
    assert (manifest.frames.rows, manifest.cut.over, statuses) == (FRAMES, True, [])
    assert (mark.calls, mark.errors, mark.frame) == (1, 0, manifest.cut.through)


def test_unreachable_storage_is_retried_and_reported_once(
    tmp_path: Path, ledger: CheckpointFile
) -> None:
    tried: list[Status] = []

    def tell(status: Status) -> None:
        tried.append(status)

    def look(ledger_mark: Callable[..., None]) -> Callable[..., None]:
        def marked(mark: upload.CallMark) -> None:
            ledger_mark(mark)
            if mark.errors == 3:
                (tmp_path / "archive").mkdir(exist_ok=True)

        return marked

    ledger.store_mark = look(ledger.store_mark)  # type: ignore[method-assign]
    [manifest] = find_segments(ArchiveStore(run(tmp_path, ledger, tell)), SegmentQuery())

    [message] = tried
    assert isinstance(message, FollowerNotice)
    assert "no such bucket or folder" in message.message
    assert "retried" in message.hint
    assert manifest.frames.rows == FRAMES
    assert ledger.read_mark().errors == 3


def test_a_recreated_recording_is_followed(tmp_path: Path, ledger: CheckpointFile) -> None:
    """The recorder creates the file again if it is deleted while recording."""
    (tmp_path / "archive").mkdir()
    path = tmp_path / "r.a2a.db"
    writer(path).write([request(1)], changes=changes(exchange(1)))
    mark = ledger.store_mark

    def marked(call_mark: upload.CallMark) -> None:
        mark(call_mark)
        if call_mark.calls == 1 and call_mark.frame:
            path.unlink()
            sample(path)

    ledger.store_mark = marked  # type: ignore[method-assign]
    url = (tmp_path / "archive").as_uri()
    LiveUpload(ArchiveJob(str(path), facts(1).uuid, url, "here", 0.0), ledger, lambda _: None).run()

    found = find_segments(ArchiveStore(url), SegmentQuery())
    assert [each.frames.rows for each in found] == [1, FRAMES - 1]
    assert found[-1].cut.over
