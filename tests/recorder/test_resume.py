"""Where a recorder resumes after its snapshot, the recording or the journal folder was removed."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from a2a_proxy.capture import file_layout
from a2a_proxy.capture.journal_files import JournalLimits
from a2a_proxy.model.wire import Chunk
from a2a_proxy.observer import DECODERS_LOST
from a2a_proxy.recorder.recorder_supervisor import RecorderSupervisor
from a2a_proxy.recorder.status import (
    RecorderDone,
    RecorderFailed,
    RecorderReady,
    Status,
    TroubleEnded,
    TroubleStarted,
)
from a2a_proxy.recording.read.reader import Recording
from support_conversation import Http
from support_observer import interleaved, of_decoders, scripted, streaming, unary
from support_recorder import SECONDS, Bench, contents, wait_until

Make = Callable[..., Bench]
TINY = JournalLimits(segment_bytes=4096, segment_seconds=60, keep_free=0)


def endless(events: int) -> Http:
    """A stream that stays open."""
    http = Http().call("SendStreamingMessage", {"message": {}}, A2A_Version="1.0").stream()
    for _ in range(events):
        http.rpc_event(
            {
                "statusUpdate": {
                    "taskId": "t",
                    "contextId": "c",
                    "status": {"state": "TASK_STATE_WORKING"},
                }
            }
        )
    return http


def written(one: Bench, chunks: list[Chunk], step: int = 10) -> None:
    """Write slowly, so that every segment is recorded before the next."""
    for index in range(0, len(chunks), step):
        one.write(chunks[index : index + step])
        wait_until(lambda: not one.journal.get_stats().queued)
        wait_until(lambda: position(one) == one.journal.get_stats().position)


def position(one: Bench) -> tuple[int, int] | None:
    """How far the recording is; None where there is none."""
    if not one.recording.exists():
        return None
    with Recording(one.recording) as stored:
        return stored.read_sessions()[-1].position if stored.read_sessions() else None


def told(one: Bench, kind: type[Status] = TroubleStarted) -> list[Any]:
    return [said for said in one.heard if isinstance(said, kind)]


def undisturbed(make: Make, chunks: list[Chunk]) -> dict[str, list[Any]]:
    """What one recorder that nobody disturbs makes of it."""
    quiet = make()
    quiet.write(chunks)
    quiet.end()
    quiet.start()
    quiet.finish()
    return contents(quiet.recording)


@pytest.mark.parametrize("damage", [b"\x81\xa8position", b"", b"\x80", None])
def test_an_unreadable_snapshot_makes_open_connections_opaque(
    bench: Make, damage: bytes | None
) -> None:
    """Open connections become opaque with one finding, later ones are read, stored rows stay, also
    after another crash."""
    one = bench(limits=TINY)
    one.start()
    written(
        one, interleaved(scripted(streaming("t-1", chunks=30), 1), scripted(endless(30), 2)[:-1])
    )
    before = contents(one.recording)
    one.supervisor.kill()
    assert one.supervisor.drain_journal(SECONDS)
    snapshots = list(one.folder.path.glob("snapshot-*"))
    assert snapshots  # two, where the recorder was killed before it had deleted the one before
    for snapshot in snapshots:
        snapshot.unlink() if damage is None else snapshot.write_bytes(damage)
    again = RecorderSupervisor(one.folder.path, one.heard.append, pauses=(0.01,))
    assert isinstance(again.start(SECONDS), RecorderReady)
    one.supervisor = again
    one.journal.set_wake_fd(again.wake_write)
    written(one, scripted(endless(40), 2)[-8:])
    written(one, scripted(unary("t-3"), 3)[:3])
    one.kill_recorder()
    one.write(scripted(unary("t-3"), 3)[3:])
    one.end()
    done = one.finish()
    stored = contents(one.recording)
    assert DECODERS_LOST in done.missing
    (finding,) = [each for each in stored["findings"] if of_decoders(each)]
    assert "open connections are opaque from here" in finding.summary
    known = [frame for frame in stored["frames"] if frame.connection < 3]
    assert [frame for frame in known if frame.exchange] == [
        frame for frame in before["frames"] if frame.exchange
    ]
    assert [exchange.how for exchange in stored["exchanges"]] == [
        "complete",
        "connection lost",
        "complete",
    ]
    assert [exchange.id for exchange in stored["exchanges"]] == [1, 2, 3]
    assert [connection.kind for connection in stored["connections"]] == ["http/1.1"] * 3
    assert stored["connections"][1].counters["opaque_to_client"] > 0
    assert {task[1] for task in stored["tasks"]} == {"t", "t-1", "t-3"}


def test_an_unreadable_snapshot_keeps_the_places_of_agents(bench: Make) -> None:
    """A recorder that has lost its decoders reads the cards of the recording: a call belongs to the
    same agent."""
    one = bench(limits=TINY)
    one.start()
    card = {"name": "a", "skills": [], "supportedInterfaces": [{"url": "http://agent:8000/rpc"}]}
    fetch = Http().request("GET /a2a/x/.well-known/agent-card.json").answer(card)
    written(one, [*scripted(fetch, 1), *scripted(streaming("t-1", chunks=30), 2)])
    one.supervisor.kill()
    assert one.supervisor.drain_journal(SECONDS)
    for snapshot in one.folder.path.glob("snapshot-*"):
        snapshot.unlink()
    one.supervisor = RecorderSupervisor(one.folder.path, one.heard.append, pauses=(0.01,))
    assert isinstance(one.supervisor.start(SECONDS), RecorderReady)
    one.journal.set_wake_fd(one.supervisor.wake_write)
    one.write(
        scripted(Http().call("GetTask", {"id": "t-1"}, path="/a2a/x/more").result({"id": "t-1"}), 3)
    )
    one.end()
    one.finish()

    assert [exchange.agent for exchange in contents(one.recording)["exchanges"]] == [
        "agent:8000/a2a/x"
    ] * 3


def test_a_recording_deleted_early_is_written_again_from_the_journal(bench: Make) -> None:
    """Before the first rotation nothing is missing; the console reports it once."""
    chunks = interleaved(
        scripted(streaming("t-1", chunks=20), 1), scripted(streaming("t-2", chunks=20), 2)
    )
    one = bench()
    one.start()
    written(one, chunks[:20], step=20)
    for path in one.recording.parent.glob("recording.a2a.db*"):
        path.unlink()
    written(one, chunks[20:])
    one.end()
    one.finish()
    assert contents(one.recording) == undisturbed(bench, chunks)
    assert [said.message for said in told(one)] == [
        (
            f"the recording {one.recording} was deleted or moved; "
            "a new one is written there with the rest of the journal"
        )
    ]
    assert one.supervisor.restarts == 0


def test_a_recording_deleted_late_begins_with_the_remaining_journal(bench: Make) -> None:
    """Open connections and their exchanges are in the new one, also after a death; the session says
    what it lacks."""
    chunks = interleaved(scripted(endless(80), 1), scripted(streaming("t-2", chunks=30), 2)[:-3])
    one = bench(limits=TINY)
    one.start()
    written(one, chunks[:120])
    one.recording.unlink()
    written(one, chunks[120:125], step=1)
    one.kill_recorder()
    written(one, chunks[125:])
    one.end()
    one.finish()
    stored = contents(one.recording)
    whole = undisturbed(bench, chunks)
    ((how, complete, lost),) = stored["sessions"]
    assert (how, lost) == ("clean", 0)
    assert complete.startswith("begins at 2023-11-14")
    assert stored["connections"] == whole["connections"]
    assert stored["exchanges"] == whole["exchanges"]
    assert stored["frames"] == whole["frames"][-len(stored["frames"]) :]
    assert stored["tasks"] == whole["tasks"]


def test_a_moved_recording_is_complete_and_a_new_one_starts(bench: Make, tmp_path: Path) -> None:
    """The log of the moved one is written into it, and does not get into the new one."""
    one = bench()
    one.start()
    written(one, scripted(streaming("t-1", chunks=20), 1))
    before = contents(one.recording)
    one.recording.rename(tmp_path / "old.db")
    written(one, scripted(unary("t-2"), 2))
    moved = contents(tmp_path / "old.db")
    one.end()
    one.finish()
    del moved["sessions"], before["sessions"]
    assert moved == before
    with sqlite3.connect(one.recording) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert [exchange.id for exchange in contents(one.recording)["exchanges"]] == [1, 2]


def test_a_recording_deleted_after_the_last_byte(bench: Make) -> None:
    """The end notices it too."""
    one = bench()
    one.start()
    written(one, scripted(unary(), 1), step=100)
    one.recording.unlink()
    one.end()
    one.finish()
    assert contents(one.recording) == undisturbed(bench, scripted(unary(), 1))


def test_a_recording_replaced_by_another_gets_the_session_too(bench: Make) -> None:
    """It is added to what is there."""
    other = bench(number=2)
    other.start()
    other.end()
    other.finish()
    one = bench()
    one.start()
    written(one, scripted(unary(), 1), step=100)
    os.replace(other.recording, one.recording)
    written(one, scripted(unary(), 3), step=100)
    one.end()
    one.finish()
    with Recording(one.recording) as stored:
        assert [row.how for row in stored.read_sessions()] == ["clean", "clean"]
        assert [row.exchange.connection for row in stored.read_exchanges(2)] == [1, 3]
    assert "was replaced by another file" in told(one)[0].message


def test_a_recording_replaced_by_a_foreign_file_is_retried(bench: Make) -> None:
    """It is never changed; the console reports it once; once it is gone everything is recorded."""
    one = bench()
    one.start()
    written(one, scripted(unary(), 1), step=100)
    one.recording.unlink()
    one.recording.write_bytes(b"a letter")
    one.write(scripted(unary(), 3))
    wait_until(lambda: one.supervisor.restarts >= 3)
    assert one.recording.read_bytes() == b"a letter"
    assert [said.message for said in told(one, RecorderFailed)] == [
        f"{one.recording} is not a recording"
    ]
    one.recording.unlink()
    one.end()
    one.finish()
    assert [exchange.connection for exchange in contents(one.recording)["exchanges"]] == [1, 3]


def test_an_unwritable_recording_is_abandoned_after_the_relay_ends(bench: Make) -> None:
    """In bounded time, with a hint; the journal stays, and a later recorder finishes it once."""
    one = bench(patience=0.2)
    one.start()
    written(one, scripted(unary(), 1), step=100)
    db = sqlite3.connect(one.recording, isolation_level=None)
    db.execute(
        "CREATE TRIGGER f BEFORE INSERT ON exchange BEGIN "
        "SELECT RAISE(ABORT, 'database or disk is full'); END"
    )
    one.write(scripted(unary(), 3))
    one.die()
    assert one.supervisor.drain_journal(SECONDS)
    failed = one.supervisor.outcome
    assert isinstance(failed, RecorderFailed)
    assert failed.message.endswith("the disk is full; the journal is left for later")
    assert failed.hint == "finish with: a2a-inspect recover"
    one.folder.release_locks()
    assert [left.path for left in file_layout.find_leftovers()] == [one.folder.path]
    db.execute("DROP TRIGGER f")
    db.close()
    later = RecorderSupervisor(one.folder.path, one.heard.append)
    assert isinstance(later.start(SECONDS), RecorderReady)
    later.close_wake_pipe()
    assert later.drain_journal(SECONDS)
    assert isinstance(later.outcome, RecorderDone)
    assert [exchange.id for exchange in contents(one.recording)["exchanges"]] == [1, 2]
    assert not file_layout.find_leftovers()


def test_a_failing_recorder_is_abandoned_after_the_relay_ends(bench: Make) -> None:
    """Also where it cannot even open the recording."""
    one = bench(patience=0.2)
    one.start()
    written(one, scripted(unary(), 1), step=100)
    one.recording.unlink()
    one.recording.write_bytes(b"a letter")
    one.end()
    assert one.supervisor.drain_journal(SECONDS)
    failed = one.supervisor.outcome
    assert failed == RecorderFailed(
        f"{one.recording} is not a recording; the journal is left for later",
        "finish with: a2a-inspect recover",
    )
    assert one.heard[-1] == failed


def test_a_journal_without_room_for_a_snapshot_keeps_its_segments(
    bench: Make, tmp_path: Path
) -> None:
    """It is reported once, no process dies, and the segments are deleted once there is room."""
    one = bench(limits=TINY)
    one.start()
    (one.folder.path / "new-snapshot").mkdir()
    chunks = scripted(endless(60), 1)
    for index in range(0, len(chunks) - 1, 10):
        written(one, chunks[index : index + 10])
    assert len(one.segments) >= 3
    (one.folder.path / "new-snapshot").rmdir()
    wait_until(lambda: (one.write(chunks[-2:-1]), len(one.segments) <= 2)[1])
    one.end()
    one.finish()
    assert len(told(one)) == len(told(one, TroubleEnded)) == 1
    assert one.supervisor.restarts == 0


def test_a_dead_recorder_is_reported(bench: Make) -> None:
    """How it died, and that nothing is lost."""
    one = bench()
    one.start()
    one.kill_recorder()
    wait_until(lambda: told(one))
    one.write(scripted(unary(), 1))
    one.end()
    one.finish()
    (said,) = told(one)
    assert said.message.startswith(
        "the recorder died (killed by signal 9); a new one continues from its position"
    )
    assert said.message.endswith(", nothing is lost")
    assert said.hint.startswith("if it happens again, report it with ")


def test_a_deleted_journal_folder_is_recreated(bench: Make) -> None:
    """The relay makes its folder again, the recorder reads what it had open, and both end as
    ever."""
    chunks = scripted(streaming("t-1", chunks=40), 1)
    one = bench()
    one.start()
    written(one, chunks[:30], step=30)
    shutil.rmtree(one.folder.path)
    written(one, chunks[30:50], step=5)
    assert one.folder.restore_files(one.session)
    written(one, chunks[50:], step=5)
    one.end()
    one.finish()
    assert contents(one.recording) == undisturbed(bench, chunks)
