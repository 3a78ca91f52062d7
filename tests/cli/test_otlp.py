"""`a2a-proxy --otlp`: spans of live traffic, without delaying it."""

from __future__ import annotations

import dataclasses
import fcntl
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from a2a_inspect.commands.otlp import OtlpExportOptions, export_otlp
from a2a_proxy.cli.arguments import ProxyArguments
from a2a_proxy.cli.config import proxy_config
from a2a_proxy.cli.console import StartInfo, make_console
from a2a_proxy.cli.follower_config import FollowerOptions
from a2a_proxy.cli.followers import Followers, run_followers
from a2a_proxy.cli.otlp import OtlpRunFollower, otlp_settings, summarize_export
from a2a_proxy.follower.checkpoint import CheckpointFile
from a2a_proxy.follower.entry import FollowerJob
from a2a_proxy.follower.histogram_buckets import CALL_BUCKETS
from a2a_proxy.follower.hook_consumer import CallTally
from a2a_proxy.follower.hook_log import HookLog
from a2a_proxy.follower.process import FollowTarget
from a2a_proxy.follower.status import FollowerNotice, Status
from a2a_proxy.follower.supervisor import HookReport
from a2a_proxy.model.errors import UserError
from a2a_proxy.telemetry.__main__ import export_session
from a2a_proxy.telemetry.errors import TelemetryError
from a2a_proxy.telemetry.request_outcome import RequestOutcome
from a2a_proxy.telemetry.retry_sender import RetrySender
from a2a_proxy.telemetry.sdk import SdkBackend
from a2a_proxy.telemetry.settings import encode
from a2a_proxy.telemetry.span_options import DEFAULT_SPAN_OPTIONS, SpanOptions
from a2a_proxy.telemetry.supervisor import checkpoint_path
from a2a_proxy.telemetry.target import otlp_target
from a2a_proxy.telemetry.unsent import send_unsent
from a2a_proxy.telemetry.values import SpanContextIds, SpanKind, SpanValue
from support_cli import Agent, Proxy, call, run, until
from support_inspect import sample
from support_otlp import attributes, http_backend
from support_recording import facts

Start = Callable[..., Proxy]
SPAN = SpanValue(
    name="x",
    kind=SpanKind.INTERNAL,
    context=SpanContextIds("1" * 32, "2" * 16),
    parent=None,
    started=1,
    ended=2,
    attributes={},
)
ENVIRONMENT = {"OTEL_EXPORTER_OTLP_TIMEOUT": "1", "OTEL_METRIC_EXPORT_INTERVAL": "200"}


# its process has the lowest priority there is: beside busy ones it takes a minute to start
@pytest.mark.soak
def test_closed_calls_are_sent_live_and_unsent_ones_later(
    proxy: Start, agent: Agent, tmp_path: Path
) -> None:
    """The first call is sent as it passes; then the backend is in trouble, and the second one is
    not: the proxy says how to send it, and that sends it and nothing else."""
    path = tmp_path / "r.db"
    with http_backend() as received:
        words = ("--record", path, "--otlp", received.endpoint, "--upstream", agent.upstream)
        one = proxy("--listen", "127.0.0.1:0", "--name", "desk", *words, **ENVIRONMENT)
        call(one.addresses()[0])
        until(
            lambda: (
                len(received.spans()) == 1 and "a2a_proxy.operation.duration" in received.metrics()
            )
        )
        received.answers = [503] * 10_000
        refused = received.asked
        call(one.addresses()[0], "GetTask")
        until(lambda: received.asked > refused)
        one.interrupt()
        until(lambda: "waiting for OTLP export" in one.err)
        assert one.stop() == 0
        address = received.endpoint.removeprefix("http://")
        assert (
            f"a2a-proxy: warning: OTLP: 1 call sent to {address}, 1 not sent"
            in one.err.splitlines()
        )
        hint = next(line for line in one.err.splitlines() if "--unsent" in line)
        received.answers = []
        before = len(received.spans())
        done = run(one.state, *hint.partition("with: ")[2].split(" "))
        assert (done.code, done.err) == (0, f"1 call sent to {address}\n")
        assert [span.name for span in received.spans()[before:]] == ["GetTask"]
        assert len({span.span_id for span in received.spans()}) == len(received.spans()) == 2
        assert attributes(received.spans()[0])["a2a_proxy.binding"] == "jsonrpc"
        assert received.services() == {"desk"}


def test_invalid_options_are_refused_before_the_start() -> None:
    plain = ProxyArguments(listen=(":0",), upstream=("a:1",))
    cases: tuple[tuple[dict[str, object], str], ...] = (
        ({"otlp": "ftp://x"}, "is not an OTLP endpoint"),
        ({"otlp_frames": True}, "no effect without --otlp"),
        ({"otlp": "http://localhost:4318", "otlp_segment": "5x"}, "^--otlp-segment: "),
    )
    for changes, message in cases:
        with pytest.raises(UserError, match=message):
            proxy_config(dataclasses.replace(plain, **changes))


def test_the_summary_counts_unsent_spans_and_names_the_command(tmp_path: Path) -> None:
    path = sample(tmp_path / "r.a2a.db")
    settings = otlp_settings("http://c:4318", "", DEFAULT_SPAN_OPTIONS, frames=False)

    def summary_of(sent: int, refused: int) -> tuple[str, str, bool]:
        report = HookReport(
            name="otlp", outcome="slow", calls=sent, errors=refused, frame=0, log=""
        )
        return summarize_export(settings, report, str(path), facts(1).uuid)

    again = (
        f"send them with: a2a-inspect export otlp {path} "
        "--endpoint http://c:4318 --protocol http/protobuf"
    )
    assert summary_of(3, 0) == ("OTLP: 3 calls sent to c:4318", "", False)
    assert summary_of(1, 0) == (
        "OTLP: 1 call sent to c:4318, 2 not sent",
        f"{again} --unsent",
        True,
    )
    secret = otlp_settings("http://me:pw@c:4318", "", DEFAULT_SPAN_OPTIONS, frames=False)
    report = HookReport(name="otlp", outcome="slow", calls=0, errors=0, frame=0, log="")
    assert "pw" not in " ".join(
        map(str, summarize_export(secret, report, str(path), facts(1).uuid))
    )
    assert summary_of(1, 2) == ("OTLP: 1 call sent to c:4318, 2 given up", again, True)


def test_the_export_process_sends_all_spans_and_metrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = sample(tmp_path / "r.a2a.db")
    statuses: list[Status] = []
    before = signal.getsignal(signal.SIGTERM)
    with http_backend() as received, tempfile.TemporaryFile(buffering=0) as file:
        settings = otlp_settings(received.endpoint, "", SpanOptions("server"), frames=True)
        job = FollowerJob(
            encode(settings).decode(),
            FollowTarget(str(path)),
            CheckpointFile(file.fileno()),
            HookLog(2),
            statuses.append,
        )
        try:
            export_session(job)
        finally:
            signal.signal(signal.SIGTERM, before)
    assert [span.kind for span in received.spans()] == [2, 2, 2]
    assert len(received.logs()) == 9
    points = received.metrics()["a2a_proxy.operation.duration"].histogram.data_points
    assert sum(point.count for point in points) == 3
    labels = {pair.key for point in points for pair in point.attributes}
    assert labels == {
        "a2a.method.name",
        "a2a_proxy.binding",
        "a2a_proxy.outcome",
        "server.address",
        "server.port",
    }
    assert {(each["server.address"], each["server.port"]) for each in map(attributes, points)} == {
        ("agent", 8000)
    }
    assert all(tuple(point.explicit_bounds) == CALL_BUCKETS for point in points)
    tasks = received.metrics()["a2a_proxy.tasks"].gauge.data_points
    counts = {attributes(point)["a2a.task.state"]: point.as_int for point in tasks}
    assert (counts["completed"], counts["working"]) == (0, 0)
    [dropped] = received.metrics()["a2a_proxy.recorder.dropped"].sum.data_points
    assert dropped.as_int == 0
    frames = received.metrics()["a2a_proxy.frames"].sum
    assert frames.is_monotonic
    assert sum(point.as_int for point in frames.data_points) == 9
    data = received.metrics()["a2a_proxy.bytes"].sum.data_points
    assert {attributes(point)["a2a_proxy.direction"] for point in data} == {"to agent", "to client"}
    assert statuses == []


def test_unsent_spans_are_sent_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("A2A_PROXY_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    path = sample(tmp_path / "r.a2a.db")
    checkpoint_path(facts(1).uuid).touch()
    with http_backend() as received:
        options = OtlpExportOptions(recording=path, endpoint=received.endpoint, unsent=True)
        received.answers = [503] * 100
        with pytest.raises(UserError, match="accepts nothing"):
            export_otlp(options)
        received.answers = []
        monkeypatch.delenv("OTEL_EXPORTER_OTLP_TIMEOUT")  # a busy machine may take longer to answer
        for _ in range(2):
            export_otlp(options)
    assert len(received.spans()) == 3
    address = received.endpoint.removeprefix("http://")
    assert capfd.readouterr().err == f"3 calls sent to {address}\n0 calls sent to {address}\n"
    with pytest.raises(UserError, match="only with one recording"):
        export_otlp(OtlpExportOptions(recording=path, endpoint="c", where="err", unsent=True))


def test_unsent_skips_recordings_that_a_proxy_still_exports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A2A_PROXY_STATE", str(tmp_path / "state"))
    path = sample(tmp_path / "r.a2a.db")
    settings = otlp_settings("http://127.0.0.1:1", "", DEFAULT_SPAN_OPTIONS, frames=False)
    with checkpoint_path(facts(1).uuid).open("w") as held:
        fcntl.flock(held, fcntl.LOCK_SH)  # as the supervisor does
        with pytest.raises(TelemetryError, match="is sending these spans now"):
            send_unsent(str(path), facts(1).uuid, settings)


def test_the_banner_names_the_backend(capfd: pytest.CaptureFixture[str]) -> None:
    settings = otlp_settings("http://127.0.0.1:1", "", DEFAULT_SPAN_OPTIONS, frames=False)
    console = make_console(ProxyArguments())
    for otlp, words in ((settings, ["spans to 127.0.0.1:1"]), (None, [])):
        followers = Followers(run_followers(FollowerOptions(otlp=otlp), console), console)
        console.show_start(StartInfo("1", [], "r.db", (), spans_to=followers.span_backend))
        console.close()
        assert [line for line in capfd.readouterr().err.splitlines() if "spans" in line] == words
        console = make_console(ProxyArguments())


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
def test_the_first_try_without_an_answer_is_reported(
    protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exporter tries again for 10 seconds by default and returns nothing meanwhile."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "3")
    backend, heard = SdkBackend(otlp_target("http://127.0.0.1:1", protocol, {})), list[str]()

    def notify(status: Status) -> None:
        assert isinstance(status, FollowerNotice)
        heard.append(status.message)

    sender = RetrySender(backend, "c:4318", CallTally(), notify)
    sender.is_stopping = lambda: bool(heard)

    tries: list[RequestOutcome] = []

    def report(outcome: RequestOutcome) -> None:
        tries.append(outcome)
        sender.report_failure(outcome)
        backend.close()

    backend.set_retry_listener(report)
    assert not sender.send_spans({}, [SPAN])
    assert len(tries) == 1
    assert [message.partition(" accepts nothing: ")[0] for message in heard] == ["OTLP: c:4318"]
    assert "refused" in heard[0].lower()


def test_otel_sdk_disabled_turns_the_export_off(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """As all programs with OpenTelemetry do; traffic is relayed all the same."""
    settings = otlp_settings("http://127.0.0.1:1", "", DEFAULT_SPAN_OPTIONS, frames=False)
    console = make_console(ProxyArguments())
    assert [type(each) for each in run_followers(FollowerOptions(otlp=settings), console)] == [
        OtlpRunFollower
    ]
    monkeypatch.setenv("OTEL_SDK_DISABLED", "True")
    assert run_followers(FollowerOptions(otlp=settings), console) == []
    console.close()
    assert capfd.readouterr().err.splitlines() == [
        "a2a-proxy: warning: OTEL_SDK_DISABLED is true: nothing is exported",
        "a2a-proxy: hint: unset it, or leave out --otlp",
    ]
    with pytest.raises(UserError, match="nothing would be sent"):
        export_otlp(
            OtlpExportOptions(
                recording=sample(tmp_path / "r.a2a.db"), endpoint="http://127.0.0.1:1"
            )
        )
