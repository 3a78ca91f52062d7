"""The recorder as a real process: every row once, over crashes, rotation, locks and damage."""

from __future__ import annotations

import gc
import os
import random
import re
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from a2a_proxy.capture.journal_files import JournalLimits
from a2a_proxy.capture.record_format import RECORD_HEADER
from a2a_proxy.model.values import FrameKind, Observation
from a2a_proxy.model.wire import Chunk, ChunkKind, Direction
from a2a_proxy.protocol.finding_totals import follows_ending
from a2a_proxy.recorder import process
from a2a_proxy.recorder.priority import NICE, Pace
from a2a_proxy.recorder.process import RelayWatch, record_session
from a2a_proxy.recorder.pump import READ_BYTES, JournalPump
from a2a_proxy.recorder.status import (
    ExchangeStatus,
    FindingStatus,
    Line,
    LinesEnd,
    LinesSkipped,
    RecorderFailed,
    RecorderProgress,
    RecorderReady,
    Status,
    TroubleEnded,
    TroubleStarted,
)
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.rules.define.catalogue import all_rules
from support_conversation import Http
from support_observer import (
    START,
    captured,
    grpc_call,
    interleaved,
    of_decoders,
    scripted,
    streaming,
    unary,
)
from support_pipe import Stdio
from support_recorder import SECONDS, Bench, contents, wait_until
from support_secrets import Canaries

Make = Callable[..., Bench]
TINY = JournalLimits(segment_bytes=4096, segment_seconds=60, keep_free=0)


def story(calls: int = 4) -> list[Chunk]:
    """Several connections at once."""
    talks = [scripted(streaming(f"t-{number}", chunks=6), number) for number in range(1, calls)]
    return interleaved(*talks, scripted(unary(), calls), scripted(grpc_call(), calls + 1))


def undisturbed(make: Make, chunks: list[Chunk]) -> dict[str, list[object]]:
    """What one recorder that nobody disturbs makes of it."""
    quiet = make()
    quiet.write(chunks)
    quiet.end()
    quiet.start()
    quiet.finish()
    return contents(quiet.recording)


def test_every_row_is_stored_and_reported_once(bench: Make) -> None:
    """Exchanges, frames, tasks; a line for each exchange; counts in the summary; the journal is
    gone."""
    one = bench()
    one.start()
    one.write(story())
    one.end()
    done = one.finish()
    stored = contents(one.recording)
    assert (done.exchanges, done.frames, done.tasks) == (
        5,
        len(stored["frames"]),
        len(stored["tasks"]),
    )
    counted = [each for each in stored["findings"] if not follows_ending(each)]
    assert (done.missing, done.lost, done.findings) == ("", 0, len(counted))
    assert len(counted) < len(stored["findings"]), "one follows from an ending"
    assert done.ok + done.error + done.cut + done.refused == done.exchanges
    assert stored["sessions"] == [("clean", "complete", 0)]
    assert sorted(
        said.exchange.id for said in one.heard if isinstance(said, ExchangeStatus) and not said.live
    ) == [
        1,
        2,
        3,
        4,
        5,
    ]
    assert {said.upstream for said in one.heard if isinstance(said, ExchangeStatus)} == {
        "agent:8000"
    }
    assert not one.folder.path.exists()


def test_findings_are_reported_before_exchanges_by_severity(bench: Make) -> None:
    """With the operation of their exchange."""
    one = bench()
    one.write(all_rules()["A2A-RPC-002"].flagged.make_chunks())
    one.end()
    one.start()  # all of it is there when it begins: one commit
    one.finish()
    told = [said for said in one.heard if isinstance(said, FindingStatus | ExchangeStatus)]
    findings = [said for said in told if isinstance(said, FindingStatus)]
    assert told[: len(findings)] == findings
    assert "A2A-RPC-002" in {said.finding.rule for said in findings}
    severities = [said.finding.severity for said in findings]
    assert severities == sorted(severities, reverse=True)
    operations = {
        said.exchange.id: said.exchange.operation
        for said in told
        if isinstance(said, ExchangeStatus)
    }
    assert [said.operation for said in findings] == [
        operations[said.finding.exchange] for said in findings
    ]


def test_the_lines_of_each_commit_have_an_end(bench: Make) -> None:
    """Because the console prints the lines then; also the line of a stream that is still open."""
    one = bench()
    one.start()
    chunks = scripted(streaming("t-1"), start=time.time_ns())
    one.write(chunks[:6])
    wait_until(lambda: lines(one) and said_after_lines(one)[:2] == [LinesEnd, RecorderProgress])
    one.write(chunks[6:])
    one.end()
    one.finish()
    assert said_after_lines(one)[:2] == [LinesEnd, RecorderProgress]


def said_after_lines(one: Bench) -> list[type]:
    """The kinds of messages after the last line."""
    last = max(number for number, said in enumerate(one.heard) if isinstance(said, Line))
    return [type(said) for said in one.heard[last + 1 :]]


def test_a_burst_of_calls_is_reported_as_a_whole(bench: Make) -> None:
    """The lines of one commit need more room than the pipe has."""
    one, count = bench(), 1_500
    one.write(
        [
            chunk
            for number in range(1, count + 1)
            for chunk in scripted(unary(f"t-{number}"), number)
        ]
    )
    one.start()
    wait_until(lambda: len(ended(one)) == count)
    one.end()
    one.finish()
    assert [number for number, _ in ended(one)] == list(range(1, count + 1))
    assert not [said for said in one.heard if isinstance(said, LinesSkipped)]


@pytest.mark.parametrize("name", ["vendor", "js_grpc"])
def test_tiny_journal_segments_yield_the_same_recording(bench: Make, name: str) -> None:
    """Decoders are saved and restored at each rotation without visible effect."""
    chunks = captured(name)
    one = bench(limits=TINY)
    one.start()
    one.write(chunks)
    one.end()
    one.finish()
    assert contents(one.recording) == undisturbed(bench, chunks)


def test_killing_recorders_at_random_loses_and_repeats_nothing(bench: Make) -> None:
    """Ten recorders die by SIGKILL, over tiny segments; the recording is that of an undisturbed
    run."""
    chance = random.Random(7)
    chunks = story(40)
    one = bench(limits=TINY)
    one.start()
    step = len(chunks) // 10
    for round_ in range(10):
        one.write(chunks[round_ * step : (round_ + 1) * step])
        time.sleep(
            chance.uniform(0, 0.35)
        )  # the random moment: start-up, decoding, committing, or idle
        one.kill_blamelessly()
    one.write(chunks[10 * step :])
    one.end()
    done = one.finish()
    expected = undisturbed(bench, chunks)
    assert contents(one.recording) == expected
    assert (done.frames, done.exchanges) == (len(expected["frames"]), len(expected["exchanges"]))
    assert not [
        said for said in one.heard if isinstance(said, FindingStatus) and of_decoders(said.finding)
    ]


def test_a_task_continues_over_a_killed_recorder(bench: Make) -> None:
    """A state that recurs after the crash is a change, also if the snapshot is older than the
    crash."""
    http = Http().call("SendStreamingMessage", {"message": {}}, A2A_Version="1.0").stream()
    for number in range(40):
        state = "INPUT_REQUIRED" if number % 2 else "WORKING"
        http.rpc_event(
            {
                "statusUpdate": {
                    "taskId": "t",
                    "contextId": "c",
                    "status": {"state": f"TASK_STATE_{state}"},
                }
            }
        )
    chunks = scripted(http.done())
    one = bench(limits=TINY)
    one.start()
    one.write(chunks[:30])
    settle(one)
    one.kill_recorder()
    one.write(chunks[30:])
    one.end()
    one.finish()
    assert contents(one.recording)["tasks"] == undisturbed(bench, chunks)["tasks"]


def settle(one: Bench) -> None:
    """Until all that was written is recorded."""
    wait_until(lambda: not one.journal.get_stats().queued)
    wait_until(lambda: committed(one) == one.journal.get_stats().position)


def committed(one: Bench) -> tuple[int, int] | None:
    """How far the recording is."""
    with Recording(one.recording) as stored:
        return stored.read_sessions()[0].position


def test_an_open_connection_pins_two_segments_at_most(bench: Make) -> None:
    """It outlives ten, recorders die meanwhile, and older segments and snapshots are deleted while
    it goes on."""
    one = bench(limits=TINY)
    one.start()
    http = Http().call("SendStreamingMessage", {"message": {}}, A2A_Version="1.0").stream()
    for _ in range(300):
        http.rpc_event(
            {
                "statusUpdate": {
                    "taskId": "t",
                    "contextId": "c",
                    "status": {"state": "TASK_STATE_WORKING"},
                }
            }
        )
    chunks = scripted(http)[:-1]
    for index in range(0, len(chunks), 10):
        one.write(chunks[index : index + 10])
        if index in (100, 200):
            one.kill_recorder()
        settle(one)
        wait_until(
            lambda: len(one.segments) <= 2 and len(list(one.folder.path.glob("snapshot-*"))) <= 1
        )
    assert one.journal.get_stats().segments > 10
    one.end()
    one.finish()
    assert len(contents(one.recording)["frames"]) == 301


def test_a_relay_that_died_leaves_an_unclean_session(bench: Make) -> None:
    """Without END, open exchanges are cut by the death of the proxy, and the session says until
    when it is complete."""
    one = bench()
    one.start()
    one.write(scripted(streaming("t-1"))[:-4])
    one.die()
    done = one.finish()
    assert done.missing
    stored = contents(one.recording)
    ((how, complete, lost),) = stored["sessions"]
    assert (how, lost) == ("unclean", 0)
    assert "complete until 2023-11-14" in complete
    assert [connection.how for connection in stored["connections"]] == ["proxy killed"]
    assert [exchange.how for exchange in stored["exchanges"]] == ["proxy killed"]


def test_a_recorder_that_yields_decides_after_few_bytes(
    bench: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside busy processes a megabyte would take it seconds, in which it could not raise its
    priority."""
    one, sizes = bench(), list[int]()
    original = JournalPump.decode_next

    def decode_next(
        pump: JournalPump, out: list[Observation], until: Any = None, max_bytes: int = READ_BYTES
    ) -> bool:
        sizes.append(max_bytes)
        return original(pump, out, until, max_bytes)

    monkeypatch.setattr(JournalPump, "decode_next", decode_next)
    monkeypatch.setattr(Pace, "decide", lambda pace, *_: setattr(pace, "nice", NICE))
    monkeypatch.setattr(process, "set_session_nice", lambda _: True)
    monkeypatch.setattr(process, "restore_priority", lambda: None)
    wake, relay = os.pipe()
    recorder = threading.Thread(
        target=record_session, args=(one.folder.path, wake, lambda *_: True)
    )
    recorder.start()
    one.write(story())
    wait_until(lambda: len(sizes) > 5)
    os.close(relay)
    recorder.join(SECONDS)
    os.close(wake)
    assert sizes[0] == READ_BYTES, "it is not known yet how far it is behind"
    assert set(sizes[1:]) == {1 << 16}


def test_a_second_recorder_leaves_without_harm(bench: Make) -> None:
    """While one is at work another one does not even begin; with the journal gone neither."""
    one = bench()
    one.start()
    one.write(story())
    said: list[Status] = []
    record_session(one.folder.path, -1, lambda status, at: said.append(status))
    assert [type(each) for each in said] == [RecorderFailed]
    one.end()
    one.finish()
    record_session(one.folder.path, -1, lambda status, at: said.append(status))
    assert [type(each) for each in said] == [RecorderFailed, RecorderFailed]
    assert len(contents(one.recording)["exchanges"]) == 5


def test_a_position_changed_by_another_process_ends_the_recorder(bench: Make) -> None:
    """Compare-and-set fails: it stores nothing more, deletes nothing, and says so for good."""
    one = bench()
    one.start()
    one.write(story())
    settle(one)
    before = len(contents(one.recording)["frames"])
    with sqlite3.connect(one.recording) as db:
        db.execute("UPDATE session SET position = position + 1")
    one.write(scripted(unary(), 9))
    wait_until(lambda: one.supervisor.outcome is not None)
    assert isinstance(one.supervisor.outcome, RecorderFailed)
    assert one.segments
    assert len(contents(one.recording)["frames"]) == before


def test_a_locked_recording_is_waited_for(bench: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Said once, tried again, nothing lost."""
    from a2a_proxy.recorder import recording_output

    monkeypatch.setattr(recording_output, "_RETRY_SECONDS", 0.001)
    tries: list[int] = []
    told: list[Status] = []

    def write() -> None:
        tries.append(1)
        if len(tries) < 5:
            raise recording_output.RecordingError("x.db is locked by another program", "close it")

    recording_output.write_with_retries(write, told.append, lambda seconds: True)
    assert len(tries) == 5
    message = "x.db is locked by another program; the journal keeps everything, trying again"
    assert told == [
        TroubleStarted(message, "close it"),
        TroubleEnded("the recording is written again, nothing is missing"),
    ]
    tries.clear()
    with pytest.raises(recording_output.RetriesExhausted):
        recording_output.write_with_retries(write, told.append, lambda seconds: len(tries) < 3)
    assert len(tries) == 3


def test_a_recording_without_room_is_waited_for(bench: Make) -> None:
    """SQLite says that it is full; once there is room again everything is there."""
    one = bench()
    one.start()
    db = sqlite3.connect(one.recording, isolation_level=None)
    db.execute(
        "CREATE TRIGGER full BEFORE INSERT ON exchange BEGIN "
        "SELECT RAISE(ABORT, 'database or disk is full'); END"
    )
    one.write(story())
    wait_until(lambda: any(isinstance(said, TroubleStarted) for said in one.heard))
    db.execute("DROP TRIGGER full")
    db.close()
    one.end()
    one.finish()
    assert contents(one.recording) == undisturbed(bench, story())
    assert len([said for said in one.heard if isinstance(said, TroubleStarted)]) == 1
    assert one.supervisor.restarts == 0


POISON = """
import os
from a2a_proxy.wire.connection import ConnectionDecoder
feed = ConnectionDecoder.feed
def poisoned(self, direction, data, at, out):
    if b"poison" in data:
        os._exit(9)
    feed(self, direction, data, at, out)
ConnectionDecoder.feed = poisoned
"""


def test_a_record_that_crashes_three_recorders_is_skipped(
    bench: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connection is opaque with one finding, everything else is recorded, also after one more
    death."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(POISON)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    bad = (
        Http()
        .call("SendMessage", {"message": {}})
        .answer({"poison": 1})
        .call("SendMessage", {"message": {}})
    )
    one = bench()
    one.start()
    one.write(interleaved(scripted(unary(), 1), scripted(bad, 2), scripted(streaming("t-3"), 3)))
    wait_until(
        lambda: any(
            isinstance(said, FindingStatus) and of_decoders(said.finding) for said in one.heard
        )
    )
    assert one.supervisor.restarts in (
        3,
        4,
    )  # the first death may have come before or after the records ahead of it
    one.kill_recorder()  # the next one reads all of it again, but for the poison
    one.end()
    one.finish()
    stored = contents(one.recording)
    assert [(each.rule, each.connection) for each in stored["findings"] if of_decoders(each)] == [
        ("RECORDER", 2)
    ]
    assert [exchange.how for exchange in stored["exchanges"]] == [
        "complete",
        "connection lost",
        "complete",
    ]


def test_an_unread_status_pipe_does_not_block_the_recorder(bench: Make) -> None:
    """A stuck supervisor does not block the recorder: everything is recorded."""
    one = bench()
    one.start()
    wait_until(lambda: one.heard)  # `start` returns when it has come, not when it was told
    assert isinstance(one.heard[0], RecorderReady)
    stuck = one.heard.append
    import threading

    release = threading.Event()

    def block(said: Status) -> None:
        release.wait(SECONDS)
        stuck(said)

    one.supervisor._on_status = block  # type: ignore[method-assign]
    for number in range(1, 600, 2):
        one.write(scripted(unary(f"t-{number}"), number, START + number * 10**6))
    settle(one)
    release.set()
    one.end()
    assert one.finish().exchanges == 300


def test_a_silent_stream_gets_one_live_line_and_later_ones_for_events(bench: Make) -> None:
    """About a second after its start, though no event comes; later ones only for news."""
    one = bench()
    one.start()
    chunks = scripted(streaming("t-1"), start=time.time_ns())
    one.write(chunks[:6])
    wait_until(lambda: lines(one))
    assert lines(one) == [("t-1", 2)]
    before = len(lines(one))
    one.write(chunks[6:7])
    wait_until(lambda: len(lines(one)) > before)
    one.end()
    one.finish()


def test_an_answer_after_the_client_left_is_not_reported_again(bench: Make) -> None:
    """The agent answers a finished call: the recording has the answer, the line is not repeated."""
    one = bench()
    one.start()
    request, *answer = unary().steps
    script = Http()
    script.steps = [request, ("eof", Direction.TO_AGENT, b""), *answer]
    chunks = scripted(script)
    gone = next(index for index, chunk in enumerate(chunks) if chunk.kind is ChunkKind.EOF) + 1
    one.write(chunks[:gone])
    wait_until(lambda: ended(one))
    assert ended(one) == [(1, "client gone")]
    one.write(chunks[gone:])
    one.end()
    one.finish()
    assert ended(one) == [(1, "client gone")]
    with Recording(one.recording) as recording:
        kinds = [each.frame.kind for each in recording.frames_after(0)]
    assert kinds == [FrameKind.REQUEST, FrameKind.CUT, FrameKind.RESPONSE]


def ended(one: Bench) -> list[tuple[int, str]]:
    return [
        (said.exchange.id, said.exchange.how)
        for said in one.heard
        if isinstance(said, ExchangeStatus) and not said.live
    ]


def lines(one: Bench) -> list[tuple[str, int]]:
    return [
        (said.exchange.task_id, said.exchange.events)
        for said in one.heard
        if isinstance(said, ExchangeStatus) and said.live
    ]


def test_session_records_are_no_exchanges(bench: Make) -> None:
    """An empty session ends clean."""
    one = bench()
    one.start()
    one.end()
    done = one.finish()
    assert (done.frames, done.exchanges, done.missing) == (0, 0, "")
    assert contents(one.recording)["sessions"] == [("clean", "complete", 0)]


def test_lost_bytes_are_in_the_summary_after_a_restart(bench: Make) -> None:
    """The count survives."""
    chunks = scripted(streaming("t-1"))
    chunks.insert(5, Chunk(1, ChunkKind.LOST, chunks[4].direction, chunks[4].at, b'{"bytes":123}'))
    one = bench()
    one.start()
    one.write(chunks)
    settle(one)
    one.kill_recorder()
    one.end()
    assert one.finish().lost == 123
    place = (
        "connection 1: 123 bytes to the client from byte "
        "225 were not captured: the disk was too slow"
    )
    rest = (
        "connection 1: 962 bytes to the client from byte 225 "
        "were not decoded: bytes before them were not captured"
    )
    assert contents(one.recording)["sessions"] == [
        ("clean", f"123 bytes were not captured; {place}; {rest}", 123)
    ]


def test_bytes_after_an_upgrade_make_the_capture_incomplete(bench: Make) -> None:
    """The text of the session names the place, also if a recorder died in between; the reason is
    redacted."""
    script = Http().request("GET /", authorization="Bearer h2c-h2c-h2c-h2c")
    script.agent(
        b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: h2c-h2c-h2c-h2c\r\n\r\n"
    )
    script.client(b"\0\1\2").agent(b"\3")
    one = bench()
    one.start()
    *chunks, closed = scripted(script)
    one.write(chunks)
    settle(one)
    one.kill_recorder()
    one.write([closed])
    one.end()
    missing = one.finish().missing
    assert re.fullmatch(
        r"connection 1: 3 bytes to the agent from byte \d+ were not decoded: "
        r"switched to redacted-\w+; "
        r"connection 1: 1 bytes to the client from byte 73 were not decoded: "
        r"switched to redacted-\w+",
        missing,
    )
    assert contents(one.recording)["sessions"] == [("clean", missing, 0)]


@pytest.mark.parametrize("limits", [None, TINY])
def test_secrets_of_the_command_line_are_redacted_in_agent_output(
    bench: Make, limits: JournalLimits | None
) -> None:
    """Also to a recorder that takes over from one that was killed, with a snapshot or without."""
    canary = Canaries()
    command = (
        "a2a-proxy",
        "stdio",
        "--",
        f"API_KEY={canary.plain('variable')}",
        "agent",
        "--token",
        canary("flag"),
    )
    one = bench(limits=limits, command=command)
    one.start()
    chunks = Stdio("agent").log(f"got {canary('variable')} and {canary('flag')}\n".encode()).chunks
    one.write([*chunks, *story()])
    one.kill_recorder()
    late = Stdio("agent").log(f"{canary('flag')} again, {canary('variable')}\n".encode()).chunks
    one.write(msgspec.structs.replace(chunk, connection=99) for chunk in late)
    one.end()
    one.finish()
    logs = [
        frame.payload for frame in contents(one.recording)["frames"] if frame.kind is FrameKind.LOG
    ]
    assert sum(each.startswith((b"got redacted-", b"redacted-")) for each in logs) == 2
    assert canary.found_in(b"".join(logs)) == []


def test_the_pace_knows_the_bytes_of_each_step(
    bench: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In small steps: their sum is the journal."""
    noted: list[int] = []
    monkeypatch.setattr(Pace, "note_work", lambda _pace, decoded, _work: noted.append(decoded))
    monkeypatch.setattr(process, "READ_BYTES", 2000)
    one = bench()
    chunks = story()
    one.write(chunks)
    one.end()
    one.journal.close(START, SECONDS)
    record_session(one.folder.path, -1, lambda _status, _at: None)
    end = RECORD_HEADER.size
    assert len([each for each in noted if each]) > 3
    assert sum(noted) == sum(len(chunk.data) + RECORD_HEADER.size for chunk in chunks) + end


def test_without_a_relay_there_is_no_end_to_wait_for() -> None:
    """`a2a-inspect recover` reads a journal that nothing writes any more."""
    watch = RelayWatch(-1, 0.0)
    watch.wait_for_data(0)
    assert not watch.is_alive
    assert not watch.sleep_before_retry(0.001)


class _Cycle:
    """Refers to itself, so only a collection frees it."""

    def __init__(self) -> None:
        self.itself = self


def test_garbage_is_collected_between_batches() -> None:
    """Automatic collections are disabled during a batch; the one that is due runs after it, and no
    other."""
    before = gc.get_threshold()
    gc.collect()
    gc.disable()
    try:
        gone = weakref.ref(_Cycle())
        gc.set_threshold(1_000_000)
        process.collect_garbage()
        assert gone() is not None
        gc.set_threshold(1)
        process.collect_garbage()
        assert gone() is None
    finally:
        gc.set_threshold(*before)
        gc.enable()


def test_automatic_collections_are_disabled_while_recording_only(bench: Make) -> None:
    one = bench()
    one.write(story())
    one.end()
    enabled: list[bool] = []
    record_session(one.folder.path, -1, lambda status, at: enabled.append(gc.isenabled()))
    assert False in enabled
    assert gc.isenabled()
