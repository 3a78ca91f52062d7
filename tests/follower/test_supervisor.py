"""Real follower processes: which calls a hook gets, and what it may do without harm."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from a2a_proxy.capture.file_layout import STATE_VARIABLE
from a2a_proxy.follower.lag import count_frames_after
from a2a_proxy.follower.supervisor import MAX_STARTS, FollowerSupervisor, SupervisorTiming
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.rules.define.catalogue import all_rules
from support_cli import until, until_dead
from support_hooks import methods, noted, write_hooks
from support_inspect import changes, exchange, request, sample, status, writer
from support_process import state_of
from support_recording import STARTED, facts
from support_rules import record

SECONDS = 120.0


class Kept:
    """A supervisor and what it told."""

    def __init__(self, name: str, recording: Path, **options: Any) -> None:
        self.notes: list[tuple[str, str]] = []
        options.setdefault("timing", SupervisorTiming(pause_seconds=(0.01,)))
        self.supervisor = FollowerSupervisor(
            name, str(recording), lambda *note: self.notes.append(note), **options
        )
        self.supervisor.start()

    def ended(self) -> tuple[str, int, int]:
        """Wait for its end: outcome, calls, errors."""
        assert self.supervisor.wait(SECONDS)
        report = self.supervisor.finish()
        return report.outcome, report.calls, report.errors


@pytest.fixture
def hooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Hooks that a follower finds."""
    environment = write_hooks(tmp_path / "hooks")
    for name, value in {**environment, STATE_VARIABLE: str(tmp_path / "state")}.items():
        monkeypatch.setenv(name, value)
    return environment


@pytest.fixture
def keep(hooks: dict[str, str]) -> Iterator[Callable[..., Kept]]:
    """Starts followers, which end with the test."""
    made: list[Kept] = []

    def start(*words: Any, **options: Any) -> Kept:
        made.append(Kept(*words, **options))
        return made[-1]

    yield start
    for each in made:
        each.supervisor.finish()


def test_a_hook_gets_every_call_of_a_finished_recording(
    keep: Callable[..., Kept], hooks: dict[str, str], tmp_path: Path
) -> None:
    """In order, each once, in a process of its own; the gap with its task and its number."""
    record(tmp_path / "r.db", all_rules()["A2A-GEN-001"].flagged.make_chunks())
    assert keep("noting:Notes", tmp_path / "r.db").ended() == ("done", len(noted(hooks)), 0)
    with Recording(tmp_path / "r.db") as recording:
        counts = recording.count_rows()
        (session,) = recording.read_sessions()
    first, *rest, last = noted(hooks)
    assert (first["method"], first["uuid"], first["recording"]) == (
        "start",
        session.facts.uuid,
        str(tmp_path / "r.db"),
    )
    assert (last["method"], first["pid"] != os.getpid()) == ("close", True)
    names = [call["method"] for call in rest]
    assert names.count("on_frame") == counts.frames
    assert names.count("on_finding") == counts.findings
    assert names.count("on_exchange_end") == 1
    assert all(call["size"][0] == call["size"][1] for call in rest if call["method"] == "on_frame")
    (gap,) = [call for call in rest if call["method"] == "on_gap"]
    assert gap["missing"] == [3]
    assert gap["task"]
    assert names[names.index("on_gap") - 1] == "on_finding"


def test_a_live_recording_is_followed_to_its_end(
    keep: Callable[..., Kept], hooks: dict[str, str], tmp_path: Path
) -> None:
    """What is committed is handed over while the session runs; when it has ended, so does the
    follower."""
    made = writer(tmp_path / "r.db")
    made.open()
    one = keep("noting:Notes", tmp_path / "r.db", session=facts(1).uuid, follow=True)
    until(lambda: methods(hooks) == ["start"])
    made.write([request(1)], changes=changes(exchange(1, closed=0, how="")))
    until(lambda: methods(hooks) == ["start", "on_frame"])
    made.write([status(1, 1, "x")], changes=changes(exchange(1)))
    until(lambda: methods(hooks)[2:] == ["on_frame", "on_exchange_end"])
    made.finish(STARTED + 10**10)
    assert one.ended() == ("done", 5, 0)
    assert methods(hooks)[-1] == "close"
    assert not one.notes


def test_a_follower_has_the_lowest_priority(
    keep: Callable[..., Kept], hooks: dict[str, str], tmp_path: Path
) -> None:
    """The lowest priority there is, for itself and for its session; no terminal of anybody's."""
    made = writer(tmp_path / "r.db")
    made.open()
    one = keep("noting:Notes", tmp_path / "r.db", session=facts(1).uuid, follow=True)
    until(lambda: noted(hooks))
    pid = one.supervisor.pid
    assert noted(hooks)[0]["nice"] == 19
    assert os.getsid(pid) == pid
    if sys.platform == "linux":
        assert os.sched_getscheduler(pid) == os.SCHED_IDLE
        group = Path(f"/proc/{pid}/autogroup")
        grouped = (
            group.exists()
            and Path("/proc/sys/kernel/sched_autogroup_enabled").read_text().strip() == "1"
        )
        assert not grouped or group.read_text().split()[-1] == "19"
        one.supervisor.raise_priority()
        assert not grouped or group.read_text().split()[-1] == "0"


def test_exceptions_of_a_hook_are_counted_and_logged(
    keep: Callable[..., Kept], tmp_path: Path
) -> None:
    """Counted, reported once per kind, with the traceback in the log; calls continue, also after
    `sys.exit`."""
    sample(tmp_path / "r.db")
    one = keep("noting:Fails", tmp_path / "r.db")
    assert one.ended() == ("done", 1 + 9 + 3 + 1, 9 + 1)
    (first, hint), (second, _) = one.notes
    assert first == "hook noting:Fails: on_frame failed: ValueError: no 0"
    assert second == "hook noting:Fails: close failed: SystemExit: not even that"
    assert str(one.supervisor.log) in hint
    text = one.supervisor.log.read_text()
    assert text.count("Traceback") == 2
    assert 'raise ValueError(f"no {frame.seq}")' in text


def test_a_dead_hook_process_is_replaced(
    keep: Callable[..., Kept], hooks: dict[str, str], tmp_path: Path
) -> None:
    """The next process repeats the interrupted call and makes those after it; none of those before
    it."""
    sample(tmp_path / "r.db")
    one = keep("noting:Dies", tmp_path / "r.db")
    outcome, _, errors = one.ended()
    assert (outcome, errors) == ("done", 0)
    frames = [call["at"] for call in noted(hooks) if call["method"] == "on_frame"]
    assert frames == [
        [1, 0],
        [1, 1],
        [1, 2],
        [1, 2],
        [2, 0],
        [2, 1],
        [2, 2],
        [3, 0],
        [3, 1],
        [3, 2],
    ]
    assert methods(hooks).count("start") == 2
    assert methods(hooks).count("on_exchange_end") == 3
    (note,) = one.notes
    assert note[0].startswith("hook noting:Dies died (exit code 3); it is restarted")


def test_a_hook_that_always_dies_is_abandoned(keep: Callable[..., Kept], tmp_path: Path) -> None:
    """After a few restarts; reported at the first and at the last."""
    sample(tmp_path / "r.db")
    one = keep("noting:AlwaysDies", tmp_path / "r.db")
    assert one.ended()[0] == "died"
    assert [note[0].split(";")[0] for note in one.notes] == [
        "hook noting:AlwaysDies died (killed by signal 9)",
        f"hook noting:AlwaysDies died {MAX_STARTS} times (killed by signal 9), given up",
    ]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "broken:Hook",
            (
                "hook broken:Hook cannot be loaded: ModuleNotFoundError: "
                "No module named 'nothing_of_this_name'"
            ),
        ),
        ("noting:Unmade", "hook noting:Unmade cannot be created: RuntimeError: not today"),
        ("noting:Nothing", "hook noting:Nothing has no method to call"),
        ("noting:Awaited", "hook noting:Awaited: on_frame is `async`, and nothing awaits it"),
        ("noting:Nowhere", "hook noting:Nowhere: noting has no Nowhere"),
    ],
)
def test_an_unusable_hook_is_reported_once(
    keep: Callable[..., Kept], tmp_path: Path, name: str, message: str
) -> None:
    """Told once, with a hint, and not tried again."""
    sample(tmp_path / "r.db")
    one = keep(name, tmp_path / "r.db")
    assert one.ended()[0] == "failed"
    ((warning, hint),) = one.notes
    assert warning == message
    assert hint


def test_a_spinning_hook_is_reported_and_ended(
    keep: Callable[..., Kept], hooks: dict[str, str], tmp_path: Path
) -> None:
    """It is reported after a time, killed after the grace period, and the frames it has not seen
    are counted."""
    sample(tmp_path / "r.db")
    one = keep("noting:Spins", tmp_path / "r.db", timing=SupervisorTiming(stuck_seconds=0.1))
    notes = until(lambda: one.notes)
    assert notes[0][0].startswith("a call of hook noting:Spins has not returned for")
    until(lambda: methods(hooks) == ["start", "on_frame"])
    report = one.supervisor.finish()
    assert (report.outcome, report.calls, report.frame) == ("slow", 1, 0)
    assert count_frames_after(str(tmp_path / "r.db"), facts(1).uuid, report.frame) == 9
    until_dead(one.supervisor.pid)


def test_a_hook_is_stopped_between_two_calls(
    keep: Callable[..., Kept], hooks: dict[str, str], tmp_path: Path
) -> None:
    """The call that is being made is finished, and `close` is called."""
    sample(tmp_path / "r.db")
    one = keep("noting:Waits", tmp_path / "r.db")
    until(lambda: "on_frame" in methods(hooks))
    one.supervisor.stop()
    Path(hooks["HOOKED"]).with_name("go").touch()
    assert one.ended() == ("stopped", 3, 0)
    assert methods(hooks) == ["start", "on_frame", "close"]


def test_output_of_a_hook_is_in_its_log(keep: Callable[..., Kept], tmp_path: Path) -> None:
    """A hook need not be derived from anything."""
    sample(tmp_path / "r.db")
    one = keep("noting:Prints", tmp_path / "r.db")
    assert one.ended() == ("done", 9, 0)
    assert (
        one.supervisor.log.read_text().splitlines() == ["printed 0", "printed 1", "printed 2"] * 3
    )


def test_threads_of_a_hook_do_not_delay_the_end(
    keep: Callable[..., Kept], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After all calls the follower does not wait for threads of the hook."""
    monkeypatch.setattr("a2a_proxy.follower.supervisor._EXIT_SECONDS", 0.2)
    sample(tmp_path / "r.db")
    one = keep("noting:Lingers", tmp_path / "r.db")
    assert one.ended() == ("done", 3, 0)
    until_dead(one.supervisor.pid)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such signal for pipes")
def test_a_hook_ends_with_its_parent_process(hooks: dict[str, str], tmp_path: Path) -> None:
    """After SIGKILL of the parent no hook is left, not even one that is stopped by the throttle.

    The throttle of the parent stops the hook whatever share of a processor it gets: on a busy
    machine a process of idle priority gets too little to be stopped for minutes.
    """
    sample(tmp_path / "r.db")
    code = (
        "import sys, time; from a2a_proxy.follower import supervisor as supervisor_module\n"
        "from a2a_proxy.follower.supervisor import FollowerSupervisor\n"
        "supervisor_module._MIN_BUSY_SHARE = 0.0\n"
        "supervisor = FollowerSupervisor('noting:Spins', sys.argv[1], print, follow=True)\n"
        "supervisor.start()\n"
        "while not supervisor.pid: time.sleep(0.01)\n"
        "print(supervisor.pid, flush=True); time.sleep(1000)"
    )
    line = [sys.executable, "-c", code, str(tmp_path / "r.db")]
    with subprocess.Popen(line, stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        until(lambda: "on_frame" in methods(hooks))
        until(lambda: state_of(pid) == "T")
        starter.send_signal(signal.SIGKILL)
    until_dead(pid)


def test_a_recreated_recording_is_followed(
    keep: Callable[..., Kept], hooks: dict[str, str], tmp_path: Path
) -> None:
    """Its recorder writes the rest of the session into a new file of that name: the same instance
    goes on there."""
    made = writer(tmp_path / "r.db")
    made.write([request(1)], changes=changes(exchange(1)))
    one = keep("noting:Notes", tmp_path / "r.db", session=facts(1).uuid, follow=True)
    until(lambda: "on_exchange_end" in methods(hooks))
    for end in ("", "-wal", "-shm"):
        Path(f"{tmp_path}/r.db{end}").unlink()
    again = writer(tmp_path / "r.db")
    again.write([request(2)], changes=changes(exchange(2)))
    again.finish(STARTED + 10**10)
    assert one.ended()[0] == "done"
    assert [call["at"][0] for call in noted(hooks) if call["method"] == "on_frame"] == [1, 2]
    assert methods(hooks).count("start") == 1
