"""Recordings uploaded into an archive and restored from it."""

import datetime
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from a2a_proxy.archive import segment
from a2a_proxy.archive.destination import ID_FILE, check_archive_url, proxy_id
from a2a_proxy.archive.errors import ArchiveError
from a2a_proxy.archive.files import ParquetFiles
from a2a_proxy.archive.manifest import Manifest
from a2a_proxy.archive.restore import restore_recording
from a2a_proxy.archive.rows import times_as_numbers
from a2a_proxy.archive.search import SegmentQuery, find_gone_tables, find_segments
from a2a_proxy.archive.store import ArchiveStore
from a2a_proxy.archive.upload import SessionUpload
from a2a_proxy.model.values import EventKind, Finding, Severity
from a2a_proxy.protocol.completeness import CHOICE_PREFIX
from a2a_proxy.recording.cassette.exporter import Selection
from a2a_proxy.recording.cassette.file import open_recording_or_cassette, write_cassette
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import make_key
from a2a_proxy.recording.write.writer import Writer
from support_inspect import changes, exchange, request, status, writer
from support_recording import STARTED, facts

RECORDINGS = Path(__file__).parents[2] / "recordings"


@pytest.fixture
def place(tmp_path: Path) -> ArchiveStore:
    (tmp_path / "archive").mkdir()
    return ArchiveStore((tmp_path / "archive").as_uri())


def put(place: ArchiveStore, recording: Recording) -> int:
    sessions = recording.read_sessions()
    return sum(
        SessionUpload(place, "here", recording, session).put_segments(include_rest=True)
        for session in sessions
    )


def content(folder: str) -> dict[str, bytes]:
    top = Path(folder.removeprefix("file://"))
    return {
        str(file.relative_to(top)): file.read_bytes() for file in top.rglob("*") if file.is_file()
    }


def cassette(
    recording: Recording, file: Path, keys: set[int] | None = None, what: str = ""
) -> list[Any]:
    """All lines but what the last one says of those before."""
    selection = None if keys is None else Selection(recording, keys, f"{CHOICE_PREFIX}{what}")
    write_cassette(recording, file, selection=selection)
    return [json.loads(line) for line in file.read_bytes().splitlines()]


@pytest.mark.parametrize("rows", [16, 200_000])
def test_a_task_is_restored_as_a_trimmed_recording(
    place: ArchiveStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    """Also where its calls lie in many segments; with the call before it that brought the card of
    its agent."""
    monkeypatch.setattr(segment, "MAX_ROWS", rows)
    with open_recording_or_cassette(RECORDINGS / "lossy.a2a.jsonl") as recording:
        put(place, recording)
        task = next(row.finding.task_id for row in recording.read_findings() if row.finding.task_id)
        calls = [row for row in recording.read_exchanges() if row.exchange.task_id == task]
        before = [
            row for row in recording.frames_after(0) if row.frame.at <= calls[0].exchange.started
        ]
        card = [row.exchange_key for row in before if row.frame.event == EventKind.CARD][-1]
        keys = {card, *(row.key for row in calls)}
        trimmed = cassette(
            recording, tmp_path / "trimmed.a2a.jsonl", keys, "task T, with the agent card before it"
        )

    restore_recording(
        place, SegmentQuery(idents=(("task", task),)), "task T", tmp_path / "back.a2a.db"
    )

    with Recording(tmp_path / "back.a2a.db") as back:
        assert cassette(back, tmp_path / "back.a2a.jsonl") == trimmed


def test_a_second_upload_changes_nothing(place: ArchiveStore) -> None:
    with open_recording_or_cassette(RECORDINGS / "demo.a2a.jsonl") as recording:
        assert put(place, recording) == recording.count_rows().frames
        before = content(place.url)
        assert put(place, recording) == 0

    assert content(place.url) == before
    assert sorted(name.partition("/")[0] for name in before) == ["facts", "frames", "manifests"]


def test_object_names_depend_on_the_recording_only(place: ArchiveStore) -> None:
    """Other versions recognise existing objects by them, so they never change, whatever the bytes
    are."""
    with open_recording_or_cassette(RECORDINGS / "demo.a2a.jsonl") as recording:
        put(place, recording)
        [session] = recording.read_sessions()
        first = next(recording.frames_after(0)).frame.at
    day = datetime.datetime.fromtimestamp(first // 10**9, datetime.UTC).date()
    name = f"dt={day}/proxy=here/seg-{session.facts.uuid.replace('-', '')[:12]}-000001"

    found = sorted(content(place.url))
    assert found == [f"facts/{name}.parquet", f"frames/{name}.parquet", f"manifests/{name}.json"]


@pytest.mark.parametrize("lost", [("manifests",), ("manifests", "frames")])
def test_an_upload_killed_between_two_objects_is_resumed(
    place: ArchiveStore, monkeypatch: pytest.MonkeyPatch, lost: tuple[str, ...]
) -> None:
    """The objects that are there stay, those that are not there come to be the same bytes; also
    where a segment would be cut otherwise by now."""
    with open_recording_or_cassette(RECORDINGS / "demo.a2a.jsonl") as recording:
        monkeypatch.setattr(segment, "MAX_ROWS", 20)
        put(place, recording)
        before = content(place.url)
        for name in before:
            if name.partition("/")[0] in lost and name.partition(".")[0].endswith("000002"):
                (Path(place.url.removeprefix("file://")) / name).unlink()
        assert content(place.url) != before
        monkeypatch.setattr(segment, "MAX_ROWS", 200_000)
        put(place, recording)

    assert content(place.url) == before


def test_a_continuing_session_is_uploaded_incrementally(
    place: ArchiveStore, tmp_path: Path
) -> None:
    """A call that was open comes again when it is over; nothing else does."""
    made = writer(tmp_path / "r.db")
    made.write([request(1)], changes=changes(exchange(1, closed=0, how="")))
    with Recording(tmp_path / "r.db") as recording:
        assert put(place, recording) == 1
        assert put(place, recording) == 0
        made.write([], changes=changes(exchange(1)))
        made.finish(STARTED + 5_000_000_000)
        assert put(place, recording) == 0
        supervisor = SessionUpload(place, "here", recording, recording.read_sessions()[0])
        assert supervisor.is_complete
        whole = cassette(recording, tmp_path / "whole.a2a.jsonl", {make_key(1, 1)}, "all")
    restore_recording(place, SegmentQuery(since=1), "all", tmp_path / "back.a2a.db")
    with Recording(tmp_path / "back.a2a.db") as back:
        assert cassette(back, tmp_path / "back.a2a.jsonl") == whole


def test_a_recreated_recording_is_uploaded_without_gaps_or_repeats(
    place: ArchiveStore, tmp_path: Path
) -> None:
    """It begins where its journal does, so its rows have other numbers; nothing is left out,
    nothing comes twice."""
    for name, numbers in (("before.db", (1, 2)), ("after.db", (2, 3, 4))):
        made = writer(tmp_path / name)
        for number in numbers:
            found = Finding(
                "A2A-SSE-001", Severity.INFO, exchange(number).started, "odd", 1, number, 0
            )
            frames = [request(number), status(number, 1, "Thinking")]
            made.write(frames, [found], changes=changes(exchange(number)))
        with Recording(tmp_path / name) as recording:
            assert put(place, recording) == 4

    brought = restore_recording(place, SegmentQuery(since=1), "all", tmp_path / "back.a2a.db")

    with Recording(tmp_path / "back.a2a.db") as back:
        assert [row.frame.exchange for row in back.frames_after(0)] == [1, 1, 2, 2, 3, 3, 4, 4]
        assert [row.finding.exchange for row in back.read_findings()] == [1, 2, 3, 4]
    assert brought.segments == 2


@pytest.mark.parametrize("table", ["frames", "facts"])
def test_objects_removed_by_a_bucket_rule_are_reported_and_the_rest_restored(
    place: ArchiveStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    """It does not remove the files of a segment at the same moment, and the manifest perhaps
    last."""
    monkeypatch.setattr(segment, "MAX_ROWS", 20)
    with open_recording_or_cassette(RECORDINGS / "generations.a2a.jsonl") as recording:
        frames = put(place, recording)
    first, *others = find_segments(place, SegmentQuery())
    top = Path(place.url.removeprefix("file://"))
    (top / first.cut.object_key(table)).unlink()

    brought = restore_recording(place, SegmentQuery(since=1), "all", tmp_path / "back.a2a.db")

    assert find_gone_tables(place, [first, *others]) == {first.cut.name: [table]}
    assert brought.gone == (first.cut.object_key(table),)
    assert 0 < brought.frames <= frames - (table == "frames") * first.frames.rows
    with Recording(tmp_path / "back.a2a.db") as back:
        assert (
            back.read_sessions()[0].missing_text
            == "files with more frames of it that are missing from the archive: 1"
        )
    for file in top.rglob("*.parquet"):
        file.unlink()
    with pytest.raises(ArchiveError, match="files that may have had it are missing: "):
        restore_recording(place, SegmentQuery(since=1), "all", tmp_path / "none.a2a.db")


def test_a_segment_lists_the_tasks_begun_by_its_end(
    place: ArchiveStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the recording had ended long before it was put: those that began later come
    later."""
    monkeypatch.setattr(segment, "MAX_ROWS", 20)
    with open_recording_or_cassette(RECORDINGS / "generations.a2a.jsonl") as recording:
        put(place, recording)
        tasks = recording.count_rows().tasks
    task_ids = []
    for each in find_segments(place, SegmentQuery()):
        facts = ParquetFiles(place).read(each, "facts", [0], ["kind", "time", "task_id"])
        facts = times_as_numbers(facts.filter(pc.equal(facts.column("kind"), "task")))
        assert each.cut.over or max(facts.column("time").to_pylist(), default=0) <= each.cut.until
        task_ids += facts.column("task_id").to_pylist()

    assert len(set(task_ids)) == tasks


def test_each_row_group_of_facts_is_read_once(
    place: ArchiveStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the calls, their tasks or their connections lead to it."""
    monkeypatch.setattr(segment, "MAX_ROWS", 20)
    with open_recording_or_cassette(RECORDINGS / "generations.a2a.jsonl") as recording:
        put(place, recording)
        task = next(recording.read_tasks()).task.task_id
    asked: list[tuple[str, int]] = []
    read = ParquetFiles.read

    def exchanges_of(
        self: ParquetFiles, manifest: Manifest, table: str, groups: list[int], columns: Any = None
    ) -> pa.Table:
        if "line" in (columns or ()):
            asked.extend((manifest.cut.name, group) for group in groups)
        return read(self, manifest, table, groups, columns)

    monkeypatch.setattr(ParquetFiles, "read", exchanges_of)
    restore_recording(place, SegmentQuery(idents=(("task", task),)), "it", tmp_path / "back.a2a.db")

    assert asked
    assert len(asked) == len(set(asked))


def test_only_matching_segments_are_read(
    place: ArchiveStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a segment that has nothing of the calls of a task not a byte."""
    monkeypatch.setattr(segment, "MAX_ROWS", 20)
    with open_recording_or_cassette(RECORDINGS / "generations.a2a.jsonl") as recording:
        put(place, recording)
        task = next(recording.read_tasks()).task.task_id
    read: list[str] = []
    telling = ArchiveStore(place.url, read.append)
    wanted = SegmentQuery(idents=(("task", task),))
    with_it = {each.cut.name for each in find_segments(telling, wanted)}
    everything = {each.cut.name for each in find_segments(telling, SegmentQuery())}
    read.clear()

    restore_recording(telling, wanted, "it", tmp_path / "back.a2a.db")

    names = [line.split()[1] for line in read if line.startswith("get f")]
    files = {name.partition("/")[2].partition(".")[0] for name in names}
    assert with_it <= files < everything


@pytest.mark.parametrize("what", ["manifest", "frames", "facts", "cut", "newer"])
def test_foreign_and_changed_objects_are_reported(
    place: ArchiveStore, tmp_path: Path, what: str
) -> None:
    with open_recording_or_cassette(RECORDINGS / "demo.a2a.jsonl") as recording:
        put(place, recording)
    [manifest] = find_segments(place, SegmentQuery())
    key = manifest.cut.object_key(
        "manifests" if what in ("manifest", "newer") else "facts" if what == "facts" else "frames"
    )
    file = Path(place.url.removeprefix("file://")) / key
    data = file.read_bytes()
    if what == "newer":
        file.write_bytes(data.replace(b'"version":1', b'"version":9'))
    else:
        file.write_bytes(data[:9] if what == "cut" else b"PAR1" + bytes(len(data) - 8) + b"PAR1")

    with pytest.raises(ArchiveError) as wrong:
        restore_recording(place, SegmentQuery(since=1), "all", tmp_path / "back.a2a.db")

    assert key in wrong.value.message
    assert wrong.value.hint
    assert not (tmp_path / "back.a2a.db").exists()


@pytest.mark.parametrize(
    "url",
    [
        "http://x/y",
        "s3:///x",
        "file://host/x",
        "x",
        "",
        "s3://a?b=1",
        "s3://[",
        "s3://a b/c",
        "s3://ü",
    ],
)
def test_a_url_that_is_no_archive_is_refused(url: str) -> None:
    for look in (check_archive_url, ArchiveStore):
        with pytest.raises(ArchiveError, match="is not the URL of an archive"):
            look(url)


def test_a_command_line_of_no_unicode_is_archived(place: ArchiveStore, tmp_path: Path) -> None:
    """A stdio agent's may have any bytes."""
    made = Writer(tmp_path / "r.a2a.db", facts(1, command=("agent", "\udcff")))
    made.write([request(1)], changes=changes(exchange(1)))
    made.finish(STARTED + 10**9)
    with Recording(tmp_path / "r.a2a.db") as recording:
        assert put(place, recording) == 1

    restore_recording(place, SegmentQuery(since=1), "all", tmp_path / "back.a2a.db")

    with Recording(tmp_path / "back.a2a.db") as back:
        assert back.read_sessions()[0].facts.command == ("agent", "\udcff")


def test_an_invalid_endpoint_is_refused_before_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "localhost:9000")
    for look in (check_archive_url, ArchiveStore):
        with pytest.raises(ArchiveError, match="AWS_ENDPOINT_URL is not a URL") as wrong:
            look("s3://bucket/prefix")
        assert "http://localhost:9000" in wrong.value.hint


def test_a_panic_of_the_storage_library_is_one_error_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its Rust panics, which is no exception of Python's."""
    for name, word in (
        ("ENDPOINT_URL", "http://127.0.0.1:99999"),
        ("ACCESS_KEY_ID", "x"),
        ("SECRET_ACCESS_KEY", "y"),
    ):
        monkeypatch.setenv(f"AWS_{name}", word)
    with pytest.raises(ArchiveError, match=r"s3://bucket cannot be used \(list manifests\)"):
        find_segments(ArchiveStore("s3://bucket"), SegmentQuery())


def test_each_state_directory_has_one_id(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()

    assert proxy_id(tmp_path) == proxy_id(tmp_path) != proxy_id(tmp_path / "other")
    (tmp_path / ID_FILE).write_text("../x\n")
    with pytest.raises(ArchiveError, match="is not a valid id"):
        proxy_id(tmp_path)
