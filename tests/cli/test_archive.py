"""`a2a-proxy --archive`: checks before the start, the archive process, and its summary."""

from pathlib import Path

import pytest

from a2a_proxy.archive.search import SegmentQuery, find_segments
from a2a_proxy.archive.store import ArchiveStore
from a2a_proxy.capture.file_layout import STATE_VARIABLE
from a2a_proxy.cli.archive import (
    ArchiveConfig,
    archive_config,
    make_archive_supervisor,
    summarize_archive,
)
from a2a_proxy.follower.supervisor import HookReport
from a2a_proxy.model.errors import UserError
from support_inspect import sample
from support_recording import facts


def test_a_separate_process_archives_the_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "state"))
    (tmp_path / "archive").mkdir()
    archive = archive_config((tmp_path / "archive").as_uri(), 300.0, "here")
    assert archive is not None
    notes: list[tuple[str, str]] = []
    supervisor = make_archive_supervisor(
        archive, str(sample(tmp_path / "r.a2a.db")), facts(1).uuid, lambda *each: notes.append(each)
    )

    supervisor.start()
    assert supervisor.wait(120)
    report = supervisor.finish()

    assert (report.outcome, report.calls, notes) == ("done", 1, [])
    assert [
        each.cut.proxy for each in find_segments(ArchiveStore(archive.url), SegmentQuery())
    ] == ["here"]


def test_without_a_url_nothing_is_archived() -> None:
    assert archive_config("", 300.0, "") is None


@pytest.mark.parametrize(
    ("url", "name", "message"),
    [
        ("x", "", "is not the URL"),
        ("file:///no/where", "", "no such"),
        ("s3://b", "a/b", "not a valid id"),
        ("", "a", "without"),
    ],
)
def test_an_unusable_archive_is_refused_before_the_start(url: str, name: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as wrong:
        archive_config(url, 300.0, name)

    assert wrong.value.hint


def test_rows_not_yet_archived_are_counted_with_the_command_to_upload_them() -> None:
    archive = ArchiveConfig("s3://b/p", 300.0, "here")
    report = HookReport(name="archive", outcome="slow", calls=2, errors=1, frame=5, log="")

    assert summarize_archive(archive, "r.a2a.db", report, 0) == ("archive s3://b/p: 2 segments", "")
    assert summarize_archive(archive, "r.a2a.db", report, 1234) == (
        "archive s3://b/p: 2 segments; 1,234 frames are not archived yet",
        "archive them with: a2a-inspect archive put r.a2a.db s3://b/p --archive-id here",
    )
