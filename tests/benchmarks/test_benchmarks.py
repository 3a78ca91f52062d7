"""The parts of the benchmark that could give wrong results: the generated journals, and the
arithmetic."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from a2a_proxy import observer as observer_module
from a2a_proxy.capture.journal_reader import JournalReader
from a2a_proxy.cli.otlp import otlp_settings, summarize_export
from a2a_proxy.follower.supervisor import HookReport
from a2a_proxy.model.values import Frame, FrameKind, Observation
from a2a_proxy.observer import Observer
from a2a_proxy.redaction import Redactor
from a2a_proxy.telemetry.span_options import DEFAULT_SPAN_OPTIONS
from support_cli import until, until_dead
from support_inspect import sample
from support_recording import facts

_MESSAGES = {FrameKind.REQUEST, FrameKind.RESPONSE, FrameKind.EVENT}


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> object:
    """Load one of the benchmark's modules: they import each other by plain names."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    before = set(sys.modules)

    def load(name: str) -> ModuleType:
        return importlib.import_module(name)

    yield load
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(
            str(Path(__file__).parent)
        ):
            del sys.modules[name]


@pytest.mark.parametrize(
    ("make", "together", "size"), [("make", 1, 300), ("make", 8, 300), ("make_agent", 1, 290)]
)
def test_every_message_of_a_made_journal_is_an_a2a_frame(module, tmp_path, make, together, size):
    """The recorder is measured with conversations that it decodes completely."""
    made = getattr(module("journals"), make)(tmp_path / "journal", 3_000, together)
    observer, reader = Observer(Redactor(b"k" * 32)), JournalReader(made.folder)
    out: list[Observation] = []
    while chunks := reader.read():
        for chunk in chunks:
            observer.feed(chunk, out)
    frames = [one for one in out if type(one) is Frame]
    assert len(frames) == len(out)
    assert {frame.kind for frame in frames} <= _MESSAGES | {
        FrameKind.END,
        FrameKind.CUT,
        FrameKind.CONTROL,
    }
    messages = [frame for frame in frames if frame.kind in _MESSAGES]
    assert len(messages) == made.messages
    assert all(frame.event for frame in messages)
    assert abs(sum(frame.size for frame in messages) / len(messages) - size) < 30
    ids = [frame.message_id for frame in messages if frame.message_id]
    assert len(set(ids)) == len(ids) > 100


@pytest.mark.parametrize("kind", ["sse", "grpc", "empty"])
def test_every_message_of_many_streams_is_a_frame(module, tmp_path, kind):
    """Of one task, or of many; empty messages are frames too."""
    streams = module("streams")
    records = streams.empty(20_000) if kind == "empty" else getattr(streams, kind)(20, 1, 8)
    made = module("journals").written(tmp_path / "journal", records)
    observer, reader = Observer(Redactor(b"k" * 32)), JournalReader(made.folder)
    out: list[Observation] = []
    while chunks := reader.read():
        for chunk in chunks:
            observer.feed(chunk, out)
    frames = [one for one in out if type(one) is Frame and one.kind in _MESSAGES]
    assert len(frames) == made.messages
    assert made.messages == (20_001 if kind == "empty" else 20 * (1 + 8 + 1))
    assert all(frame.task_id == "t0" for frame in frames if frame.size)


def test_a_program_ends_when_whoever_looks_at_it_is_killed(tmp_path):
    """A benchmark that is killed leaves no process in its terminal."""
    told = tmp_path / "pid"
    program = (
        f"import os, time; open({str(told)!r}, 'w').write(f'{{os.getpid()}}.'); time.sleep(300)"
    )
    looker = (
        "import sys, time, terminal; "
        f"terminal.Terminal([sys.executable, '-c', {program!r}]); time.sleep(300)"
    )
    started = subprocess.Popen([sys.executable, "-c", looker], cwd=Path(__file__).parent)
    until(lambda: told.exists() and told.read_text().endswith("."))
    started.kill()
    started.wait()
    until_dead(int(told.read_text()[:-1]))


def test_a_target_that_was_not_measured_is_neither_met_nor_missed(module):
    """A scenario that this build cannot run is reported as not measured."""
    report = module("report")
    missing = report.Target("x", 2.0, None, why="not in this build")
    assert missing.met is None
    assert "not in this build" in report.table([], [missing], [])
    assert report.Target("x", 2.0, 1.9).met is False
    assert report.Target("x", 2.0, 1.9, at_most=True).met is True


def test_a_row_keeps_all_rounds_and_picks_the_best(module):
    """A row has the best of the rounds, which is the smallest time, and the spread of the
    rounds."""
    row = module("report").row
    assert row("s", "c", "us", [3.0, 2.0], less_is_better=True).best == 2.0
    assert row("s", "c", "requests/s", [3.0, 2.0]).best == 3.0
    assert row("s", "c", "requests/s", [3.0, 2.0]).spread == 1.5


def test_without_rules_the_recorder_does_all_the_rest(module, tmp_path, monkeypatch):
    """The cost of rules is the difference between two runs that read the same frames."""
    made = module("journals").make(tmp_path / "journal", 300, 8)

    def observed() -> list[Observation]:
        observer, reader = observer_module.Observer(Redactor(b"k" * 32)), JournalReader(made.folder)
        out: list[Observation] = []
        while chunks := reader.read():
            for chunk in chunks:
                observer.feed(chunk, out)
        return out

    before = observer_module.Engine
    monkeypatch.setattr(observer_module, "Engine", before)
    judged = observed()
    module("cost").without_rules()
    unjudged = observed()
    assert judged == unjudged, "the traffic is faultless, so rules say nothing about it"
    assert observer_module.Engine is not before


def test_open_tasks_are_counted_in_a_process_of_their_own(module):
    """A thousand tasks use some memory, and at most ten KiB each."""
    assert 0 < module("judging").open_tasks(1000).mib < 10


@pytest.mark.parametrize(("sent", "given_up"), [(3, 0), (1, 0), (1, 2), (0, 1)])
def test_the_last_line_of_an_export_is_understood(module, tmp_path, sent, given_up):
    """Of three calls some were sent and some given up; the rest was not sent."""
    settings = otlp_settings("http://c:4318", "", DEFAULT_SPAN_OPTIONS, frames=False)
    report = HookReport(name="otlp", outcome="slow", calls=sent, errors=given_up, frame=0, log="")
    told, _, _ = summarize_export(
        settings, report, str(sample(tmp_path / "r.a2a.db")), facts(1).uuid
    )
    found = module("standing").last_line(
        f"first\na2a-proxy: warning: {told}\na2a-proxy: hint: more\n"
    )
    assert found == [sent, given_up, 3 - sent - given_up]


def test_an_interval_is_as_wide_as_chance_makes_it(module):
    """Of 18 values the fifth from each end, because 4 heads or fewer of 18 coins are that rare; of
    few values the first and the last."""
    interval = module("exports").interval
    assert interval([float(each) for each in range(18, 0, -1)]) == (5, 14)
    assert [interval([float(each) for each in range(number)]) for number in (1, 5, 6, 9)] == [
        (0, 0),
        (0, 4),
        (0, 5),
        (1, 7),
    ]


def test_a_hook_spins_beside_the_recorder_that_is_measured(module, tmp_path, monkeypatch):
    """It has been called when the clock starts; the recorder still reaches the end of its
    journal."""
    monkeypatch.setenv("A2A_PROXY_STATE", str(tmp_path / "state"))
    journals, beside = module("journals"), module("beside")
    made, first = journals.make(tmp_path / "made", 200, 8), journals.make(tmp_path / "first", 1)
    for hook in ("", "spinning:Spins"):
        assert beside.rate(made, first, tmp_path, hook) > 0
    assert len(list(tmp_path.glob("*-called"))) == 1
    assert not list(tmp_path.glob("*.db"))


@pytest.mark.parametrize("yields", [True, False])
def test_a_recorder_beside_busy_processes_is_measured_to_the_last_event(module, tmp_path, yields):
    """Its recorder yields, or not; the lag at an event is the time since the client received the
    next one."""
    starving = module("starving")
    run = starving.run_stream(tmp_path, 300, 1_000, yields=yields, busy=0)
    assert run.sent_seconds >= 0.2
    assert run.left <= 300
    client = starving._Client(0, 0)
    client.frames = [(10.0, 1), (11.0, 2), (12.0, 30)]
    assert [client.lag_after(recorded, 20.0) for recorded in (0, 1, 2, 29, 30)] == [10, 9, 8, 8, 0]


def test_the_targets_of_the_decoder_fuzz_are_property_tests(module):
    """Each is a function that Hypothesis can call with bytes; the decoders of the relayed protocols
    are among them."""
    found = list(module("decoding").targets())
    for word in (
        "wire/test_http2.py",
        "wire/test_sse.py",
        "wire/test_grpc.py",
        "query/test_parser.py",
        "edits/test_card",
    ):
        assert any(word in each for each in found)
    file, _, name = next(each for each in found if "test_sse" in each).partition("::")
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import test_sse; test_sse.{name}.hypothesis.fuzz_one_input(b'data: 1')",
        ],
        cwd=Path(__file__).parents[1] / Path(file).parent,
        env={"PYTHONPATH": str(Path(__file__).parents[1])},
        check=False,
    )
    assert done.returncode == 0
