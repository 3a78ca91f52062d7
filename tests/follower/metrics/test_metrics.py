"""Prometheus metrics: values, labels, pages and the serving process."""

from __future__ import annotations

import os
import signal
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from a2a_proxy.cli.arguments import ProxyArguments
from a2a_proxy.cli.console import make_console
from a2a_proxy.cli.metrics import MetricsFollower, metrics_listen
from a2a_proxy.follower.metrics.numbers import SessionMetrics
from a2a_proxy.follower.metrics.server import MetricsPages
from a2a_proxy.follower.metrics.session_reader import MetricsSession, RecorderLag
from a2a_proxy.follower.metrics.supervisor import MAX_STARTS, MetricsSupervisor
from a2a_proxy.model.errors import UserError
from a2a_proxy.model.event import TaskState
from a2a_proxy.recorder.process_supervisor import ProcessEnd
from a2a_proxy.recording.cassette.file import open_recording_or_cassette, read_cassette
from a2a_proxy.relay.route import Listen

RECORDINGS = Path(__file__).parents[3] / "recordings"
LOSSY = RECORDINGS / "lossy.a2a.jsonl"
PATIENCE = 60.0


def samples(page: bytes) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Name -> labels and value of each sample, as somebody else's parser reads them."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(page.decode()):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def counted(path: Path) -> dict[str, list[tuple[dict[str, str], float]]]:
    with open_recording_or_cassette(path) as recording:
        session = MetricsSession(recording, recording.read_sessions()[0])
        while session.read_new_rows():
            pass
        first = session.numbers.format_exposition()
        session.read_new_rows()
        strip = [line for line in first.splitlines() if b"_created" not in line]
        assert strip == [
            line
            for line in session.numbers.format_exposition().splitlines()
            if b"_created" not in line
        ]
        return samples(first)


def total(found: list[tuple[dict[str, str], float]], **labels: str) -> float:
    return sum(value for own, value in found if labels.items() <= own.items())


def test_metrics_equal_the_counts_of_the_recording() -> None:
    """Counted once, however often one looks."""
    found = counted(LOSSY)
    with open_recording_or_cassette(LOSSY) as recording:
        exchanges = [row.exchange for row in recording.read_exchanges()]
        frames = [row.frame for row in recording.frames_after(0)]
        findings = [row.finding for row in recording.read_findings()]
        ended = [row.task for row in recording.read_tasks() if TaskState(row.task.state).terminal]
    durations = found["a2a_proxy_operation_duration_seconds_count"]
    assert total(durations) == len(exchanges)
    assert total(durations, status="error") == sum(bool(each.error) for each in exchanges) > 0
    spent = sum(each.closed - each.started for each in exchanges) / 1e9
    assert total(found["a2a_proxy_operation_duration_seconds_sum"]) == pytest.approx(spent)
    assert total(found["a2a_proxy_frames_total"]) == len(frames)
    assert total(found["a2a_proxy_bytes_total"]) == sum(frame.end - frame.start for frame in frames)
    assert total(found["a2a_proxy_findings_total"]) == len(findings) > 0
    gaps = sum(finding.rule == "A2A-GEN-001" for finding in findings)
    assert total(found["a2a_proxy_generation_gaps_total"]) == gaps > 0
    assert total(found["a2a_proxy_task_duration_seconds_count"]) == len(ended) > 0
    assert total(found["a2a_proxy_tasks"], state="completed") == len(ended)
    streams = [each for each in exchanges if each.streaming and each.first_event]
    assert total(found["a2a_proxy_stream_first_event_seconds_count"]) == len(streams) > 0
    assert "a2a_proxy_open_calls" not in found


def test_label_values_are_bounded() -> None:
    """No label names a task, a context, a message or a session."""
    known = {
        "method",
        "binding",
        "upstream",
        "direction",
        "status",
        "state",
        "rule",
        "severity",
        "le",
    }
    found = counted(RECORDINGS / "sdk-1.x-jsonrpc.a2a.jsonl")
    assert {name for each in found.values() for labels, _ in each for name in labels} <= known
    with open_recording_or_cassette(RECORDINGS / "sdk-1.x-jsonrpc.a2a.jsonl") as recording:
        ids = {row.task.task_id for row in recording.read_tasks()} | {
            row.task.context_id for row in recording.read_tasks()
        }
    assert not ids & {
        value for each in found.values() for labels, _ in each for value in labels.values()
    }


def test_zero_series_are_exported_and_losses_never_decrease() -> None:
    """A series that vanishes looks like a proxy that does; a clock that was set back makes no sum
    smaller."""
    numbers = SessionMetrics()
    call = ("SendMessage", "rest", "agent:1")
    for opened, lost in (({call: 2}, 7), ({}, 9), ({}, 9)):
        numbers.record_snapshot(opened, {"working": 1}, lost, 0)
    numbers.record_task_end(-5, "completed", "agent:1")
    found = samples(numbers.format_exposition())

    assert total(found["a2a_proxy_open_calls"], method="SendMessage") == 0
    assert total(found["a2a_proxy_recorder_lost_bytes_total"]) == 9
    assert total(found["a2a_proxy_task_duration_seconds_sum"]) == 0


def test_pages() -> None:
    """Not ready before the first read; then depending on the lag."""
    pages = MetricsPages()
    assert [pages.make_page(path)[0] for path in ("/healthz", "/readyz", "/metrics", "/")] == [
        200,
        503,
        503,
        404,
    ]
    pages.metrics, pages.lacking = b"a 1\n", ""
    assert [pages.make_page(path)[0] for path in ("/healthz?x=1", "/readyz", "/metrics")] == [
        200,
        200,
        200,
    ]
    pages.lacking = "7 bytes were not captured"
    assert pages.make_page("/readyz") == (
        503,
        "text/plain; charset=utf-8",
        b"7 bytes were not captured\n",
    )


def test_recorder_lag_is_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the journal has beyond the position of a running session; segments before it do not
    count."""
    for number, size in ((1, 100), (2, 50), (3, 7)):
        (tmp_path / f"{number:06d}.a2aj").write_bytes(bytes(size))
    with open_recording_or_cassette(LOSSY) as recording:
        row = recording.read_sessions()[0]
        session = MetricsSession(recording, row, tmp_path)
        assert session.measure_lag() == 0  # it has ended
        for position, behind in (((2, 20), 37), (None, 157), ((3, 7), 0), ((4, 0), 0)):
            running = msgspec.structs.replace(row, how="", complete="", position=position)
            monkeypatch.setattr(recording, "read_session", lambda _, running=running: running)
            assert session.measure_lag() == behind
        assert session.capture_gaps() == ""
        lossy = msgspec.structs.replace(row, how="", complete="7 bytes were not captured", lost=7)
        monkeypatch.setattr(recording, "read_session", lambda _: lossy)
        assert session.capture_gaps() == "7 bytes were not captured"


def test_a_stuck_recorder_is_not_ready() -> None:
    """Little behind and moving is well; much for long is not, nor is anything for long without a
    step."""
    progress = RecorderLag(0.0)
    assert [progress.describe_lag(7, (1, at), float(at)) for at in (1, 20, 40)] == ["", "", ""]
    assert [progress.describe_lag(7, (1, 40), float(at)) for at in (45, 50)] == ["", ""]
    assert (
        progress.describe_lag(7, (1, 40), 51.0) == "the recorder makes no progress, 7 bytes behind"
    )
    assert progress.describe_lag(7, (1, 41), 52.0) == ""
    assert progress.describe_lag(0, (1, 48), 53.0) == ""
    assert progress.describe_lag(0, (1, 48), 99.0) == ""  # nothing to do is no fault
    assert progress.describe_lag(5 << 20, (1, 50), 100.0) == ""
    assert progress.describe_lag(5 << 20, (1, 60), 110.0) == "the recorder is 5242880 bytes behind"


def test_the_port_is_closed_once_the_process_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The port is closed as soon as no process will come; before, it is open for the next one."""
    sock = socket.create_server(("127.0.0.1", 0))
    port = sock.getsockname()[1]
    open_then: list[bool] = []
    notes: list[str] = []
    supervisor = MetricsSupervisor([sock], lambda message, _: notes.append(message), pauses=(0.0,))
    monkeypatch.setattr(
        supervisor, "_run_once", lambda: open_then.append(sock.fileno() >= 0) or ProcessEnd(1)
    )
    supervisor.start("r.a2a.db", "uuid", Path("journal"))
    until(lambda: len(notes) == 2)
    assert open_then == [True] * MAX_STARTS
    assert notes[1].endswith("given up; recording continues")
    assert get(port, "/metrics")[0] == 0
    supervisor.close()


@pytest.mark.parametrize("typed", ["9464", "host:x", "a@b:1", "[::1:9"])
def test_invalid_addresses_are_refused(typed: str) -> None:
    """One line that names the option, and an example."""
    with pytest.raises(UserError, match="--metrics") as error:
        metrics_listen(typed)
    assert error.value.hint == "for example: --metrics :9464"


def test_a_missing_package_is_an_error_with_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(UserError, match="needs the extra metrics") as error:
        metrics_listen(":9464")
    assert "a2a-proxy[metrics]" in error.value.hint


async def test_a_port_in_use_is_an_error() -> None:
    """Told before anything begins; nothing stays open."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        metrics = MetricsFollower(
            Listen("127.0.0.1", taken.getsockname()[1]), make_console(ProxyArguments(quiet=True))
        )
        with pytest.raises(UserError, match=r"--metrics: port \d+ is in use"):
            await metrics.bind_port()
        metrics.close()


def get(port: int, path: str) -> tuple[int, bytes]:
    """Status and body; 0 where nobody answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read()
    except OSError:
        return 0, b""


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_killed_metrics_process_is_restarted_on_the_same_port(tmp_path: Path) -> None:
    """Killed, it is started again on the same port and counts from the start; closed, the port is
    free."""
    read_cassette(LOSSY, tmp_path / "r.a2a.db")
    with open_recording_or_cassette(tmp_path / "r.a2a.db") as recording:
        uuid = recording.read_sessions()[0].facts.uuid
    sock = socket.create_server(("127.0.0.1", 0))
    port = sock.getsockname()[1]
    notes: list[str] = []
    supervisor = MetricsSupervisor(
        [sock], lambda message, hint: notes.append(message), pauses=(0.0,)
    )
    supervisor.start(str(tmp_path / "r.a2a.db"), uuid, tmp_path)
    try:
        until(lambda: get(port, "/readyz")[0] == 200)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as answer:
            assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
            before = samples(answer.read())["a2a_proxy_frames_total"]
        first = supervisor.pid
        os.kill(first, signal.SIGKILL)
        until(lambda: supervisor.pid != first)
        until(lambda: get(port, "/metrics")[0] == 200)
        assert samples(get(port, "/metrics")[1])["a2a_proxy_frames_total"] == before
        assert notes == ["the process that serves metrics died (exit code -9); it is restarted"]
    finally:
        supervisor.close()
    assert get(port, "/healthz")[0] == 0
