"""Transcripts of the running proxy: console output, and failures that must not stop the traffic."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from a2a_inspect.data.source import RecordingSource
from a2a_inspect.widgets.summary import completeness_words
from a2a_proxy.cli import run as run_module
from a2a_proxy.cli.arguments import ProxyArguments
from a2a_proxy.cli.config import ProxyConfig, proxy_config
from a2a_proxy.cli.run import _QUIET_SECONDS, ProxyRun
from a2a_proxy.model.wire import ChunkKind
from a2a_proxy.recorder.status import RecorderDone, Status
from a2a_proxy.recording.read.reader import Recording
from support_cli import Agent, Proxy, call, run, until, until_dead
from support_cli import agent as plain_agent
from support_journal import read_all

Start = Callable[..., Proxy]


def listening(one: Proxy) -> str:
    return one.addresses()[0]


def ended(one: Proxy) -> list[str]:
    """The lines of calls that are over: one that takes a busy machine more than a second has a line
    before."""
    return [
        line
        for line in one.out.splitlines(keepends=True)
        if line.endswith("\n") and "  live  " not in line
    ]


def test_banner_lines_and_summary(proxy: Start, agent: Agent, tmp_path: Path) -> None:
    """What it does, a line per exchange on stdout, and at Ctrl-C a summary; exit code 0, no journal
    left."""
    one = proxy(
        "--listen", "127.0.0.1:0", "--upstream", agent.upstream, "--record", tmp_path / "r.db"
    )
    address = listening(one)
    call(address)
    call(address, "GetTask")
    until(lambda: len(ended(one)) == 2)
    assert one.stop() == 0
    banner = one.err.splitlines()
    assert re.fullmatch(
        rf"a2a-proxy \S+ listens on {address} and sends to {agent.upstream}", banner[0]
    )
    assert banner[1] == f"recording to {tmp_path / 'r.db'}; credentials are redacted"
    assert banner[2:4] == [f"inspect it: a2a-inspect {tmp_path / 'r.db'}", "stop with Ctrl-C"]
    assert re.fullmatch(
        r"recorded 2 exchanges \(1 ok, 1 error\), \d+ frames, 0 tasks; "
        r"0 findings; capture complete: yes",
        banner[-1],
    )
    first, second = ended(one)
    assert re.match(
        r"\d\d:\d\d:\d\d\.\d{3}  ok       #1 SendMessage  jsonrpc 1\.0  \d+(\.\d)? [mu]?s$", first
    )
    assert re.search(r"error    #2 GetTask  jsonrpc 1\.0  .*TASK_NOT_FOUND -32001", second)
    assert not one.journals


def test_no_control_character_reaches_the_terminal(proxy: Start, agent: Agent) -> None:
    """The agent's error text has escape sequences; the line shows symbols."""
    one = proxy("--listen", "127.0.0.1:0", "--upstream", agent.upstream)
    call(listening(one), "GetTask")
    until(lambda: "GetTask" in one.out)
    one.stop()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", one.out + one.err)
    assert "\u241b[31msuch\u2407 task" in one.out


def test_json_lines(proxy: Start, agent: Agent) -> None:
    """Every line parses, events and their fields have stable names, nothing goes to stderr."""
    one = proxy("--listen", "127.0.0.1:0", "--upstream", agent.upstream, "--log-format", "json")
    address = listening(one)
    call(address)
    until(lambda: '"exchange"' in one.out)
    one.stop()
    events = [json.loads(line) for line in one.out.splitlines()]
    events = [
        event for event in events if event["event"] not in ("stopping", "draining")
    ]  # where it takes its time
    events = [
        event for event in events if not event.get("live")
    ]  # and where a call took longer than a second
    assert [event["event"] for event in events] == ["start", "exchange", "summary"]
    start, exchange, summary = events
    assert start["routes"] == [
        {"listen": [address], "upstream": agent.upstream, "upstream_grpc": None}
    ]
    assert set(start) == {"event", "version", "routes", "recording", "redact"}
    assert (exchange["operation"], exchange["binding"], exchange["dialect"]) == (
        "SendMessage",
        "jsonrpc",
        "1.0",
    )
    assert (exchange["outcome"], exchange["live"], exchange["upstream"]) == (
        "ok",
        False,
        agent.upstream,
    )
    assert exchange["duration_ns"] > 0
    assert summary == {
        "event": "summary",
        "connections": 1,
        "exchanges": 1,
        "ok": 1,
        "error": 0,
        "cut": 0,
        "refused": 0,
        "frames": summary["frames"],
        "tasks": 0,
        "findings": 0,
        "error_findings": 0,
        "warning_findings": 0,
        "complete": True,
        "missing": "",
        "lost_bytes": 0,
    }
    assert one.err == ""


def test_quiet_prints_no_exchange_lines(proxy: Start, agent: Agent) -> None:
    """The summary stays, and counts them."""
    one = proxy("-q", "--listen", "127.0.0.1:0", "--upstream", agent.upstream)
    call(listening(one))
    one.stop()
    assert one.out == ""
    assert "recorded 1 exchange (1 ok)," in one.err


def test_options_by_environment(proxy: Start, agent: Agent, tmp_path: Path) -> None:
    """Flags win over `A2A_PROXY_*`."""
    settings = {
        "A2A_PROXY_LISTEN": "127.0.0.1:0",
        "A2A_PROXY_UPSTREAM": agent.upstream,
        "A2A_PROXY_LOG_FORMAT": "json",
    }
    one = proxy(
        "--record",
        tmp_path / "flag.db",
        A2A_PROXY_RECORD=str(tmp_path / "environment.db"),
        **settings,
    )
    call(listening(one))
    one.stop()
    assert (tmp_path / "flag.db").exists()
    assert not (tmp_path / "environment.db").exists()


def test_the_environment_is_enough_to_start(proxy: Start, agent: Agent) -> None:
    """Nothing is typed at all."""
    one = proxy(A2A_PROXY_LISTEN="127.0.0.1:0", A2A_PROXY_UPSTREAM=agent.upstream)
    call(listening(one))
    assert one.stop() == 0
    assert "recorded 1 exchange" in one.err


def test_the_demo_records_to_the_file_of_the_environment(tmp_path: Path) -> None:
    """As the proxy does."""
    done = run(tmp_path / "state", "a2a-proxy", "demo", A2A_PROXY_RECORD=str(tmp_path / "r.db"))
    assert done.code == 0, done.err
    assert (tmp_path / "r.db").exists()


def test_json_names_each_address(proxy: Start, agent: Agent) -> None:
    """A listener on both loopback addresses is a list of two."""
    one = proxy("--listen", ":0", "--upstream", agent.upstream, "--log-format", "json")
    one.addresses()
    listen = json.loads(one.out.splitlines()[0])["routes"][0]["listen"]
    assert [address.rpartition(":")[0] for address in listen] == ["127.0.0.1", "[::1]"][
        : len(listen)
    ]
    assert isinstance(listen, list)
    one.stop()


def test_the_session_names_both_upstreams(proxy: Start, agent: Agent, tmp_path: Path) -> None:
    """The recording says where HTTP/2 went."""
    route = (
        "--listen",
        "127.0.0.1:0",
        "--upstream",
        agent.upstream,
        "--upstream-grpc",
        "localhost:1",
    )
    one = proxy(*route, "--record", tmp_path / "r.db")
    address = listening(one)
    one.stop()
    with Recording(tmp_path / "r.db") as stored:
        facts = stored.read_sessions()[0].facts
    assert facts.listens == (address,)
    assert facts.upstreams == (f"{agent.upstream} (HTTP/2 to localhost:1)",)


def test_names_of_the_agents_are_recorded_and_listed(
    proxy: Start, agent: Agent, tmp_path: Path
) -> None:
    pair = ("--listen", "127.0.0.1:0", "--upstream", agent.upstream)
    one = proxy(*pair, *pair, "--name", "desk", "--name", "", "--record", tmp_path / "r.db")
    (address, other) = one.addresses()
    call(address)
    one.stop()
    with Recording(tmp_path / "r.db") as stored:
        assert stored.read_sessions()[0].facts.names == ("desk", "")
    listed = run(one.state, "a2a-inspect", "stats", tmp_path / "r.db").out
    assert f"{address} -> desk ({agent.upstream}), {other} -> {agent.upstream}  capture" in listed


def test_an_empty_recording_is_kept_only_if_it_was_named(
    proxy: Start, agent: Agent, tmp_path: Path
) -> None:
    """Without a connection an unnamed recording is deleted, and the summary says that nothing was
    recorded."""
    pair = ("--listen", "127.0.0.1:0", "--upstream", agent.upstream)
    for words, kept in (((), False), (("--record", tmp_path / "r.db"), True)):
        one = proxy(*pair, *words)
        listening(one)
        assert one.stop() == 0
        assert one.err.splitlines()[-1] == "nothing was recorded"
        assert not list((one.state / "recordings").glob("*"))
        assert (tmp_path / "r.db").exists() is kept


def test_a_connection_without_an_exchange_is_kept(proxy: Start, agent: Agent) -> None:
    """Somebody knocked: that is worth a recording."""
    one = proxy("--listen", "127.0.0.1:0", "--upstream", agent.upstream)
    host, _, port = listening(one).rpartition(":")
    (journal,) = one.journals
    with socket.create_connection((host, int(port))):
        until(lambda: any(each.kind is ChunkKind.OPEN for each in read_all(journal)))
    assert one.stop() == 0
    assert "recorded 0 exchanges, " in one.err
    assert len(list((one.state / "recordings").glob("*.db"))) == 1


def test_several_listeners_and_upstreams(proxy: Start, agent: Agent) -> None:
    """Each listener has its upstream, and lines say which."""
    with plain_agent() as second:
        pairs = [
            word
            for up in (agent, second)
            for word in ("--listen", "127.0.0.1:0", "--upstream", up.upstream)
        ]
        one = proxy(*pairs)
        for address in until(lambda: len(one.addresses()) == 2 and one.addresses()):
            call(address)
        until(lambda: len(ended(one)) == 2)
        one.stop()
        assert [re.findall(r"-> (\S+)", line)[0] for line in ended(one)] == [
            agent.upstream,
            second.upstream,
        ]


def test_colours_are_for_terminals_without_no_color(proxy: Start, agent: Agent) -> None:
    """A pseudo terminal gets colours, unless NO_COLOR is set."""
    import pty

    for environ, coloured in (({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True)):
        ours, theirs = pty.openpty()
        one = proxy(
            "--listen", "127.0.0.1:0", "--upstream", agent.upstream, stdout=theirs, **environ
        )
        os.close(theirs)
        call(listening(one))
        output = b""
        while not re.search(rb"ok.* #1 SendMessage", output):
            output += os.read(ours, 4096)
        assert (b"\x1b[32m" in output) is coloured
        one.stop()
        os.close(ours)


def test_a_closed_stdout_does_not_stop_traffic(proxy: Start, agent: Agent) -> None:
    """`a2a-proxy ... | head -1`: traffic, recording, summary and exit code stay as they are."""
    reader, writer = os.pipe()
    one = proxy("--listen", "127.0.0.1:0", "--upstream", agent.upstream, stdout=writer)
    os.close(writer)
    address = listening(one)
    call(address)
    os.read(reader, 1)
    os.close(reader)
    for _ in range(5):
        call(address)
    assert one.stop() == 0
    assert "recorded 6 exchanges" in one.err
    assert "Traceback" not in one.err


def test_a_stalled_stdout_does_not_stop_traffic(proxy: Start, agent: Agent) -> None:
    """Stdout is a full, unread pipe: calls are answered and recorded, and Ctrl-C ends the proxy."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 4096)
    os.set_blocking(writer, True)
    one = proxy("--listen", "127.0.0.1:0", "--upstream", agent.upstream, stdout=writer)
    os.close(writer)
    address = listening(one)
    for _ in range(50):
        call(address)
    assert one.stop() == 0
    assert "recorded 50 exchanges" in one.err
    os.close(reader)


def test_shutdown_waits_for_an_open_stream_and_then_cuts_it(proxy: Start, agent: Agent) -> None:
    """At Ctrl-C open calls get a grace period and the console says so; the summary follows."""
    one = proxy("--listen", "127.0.0.1:0", "--upstream", agent.upstream)
    with call(listening(one), "SendStreamingMessage") as response:
        response.readline()
        assert one.stop() == 0
    assert "stopping: 1 connection still open" in one.err
    assert "recorded 1 exchange" in one.err
    assert re.search(r"cut      #1 SendStreamingMessage", one.out)


def test_a_long_stream_gets_a_line_while_it_runs(proxy: Start, agent: Agent) -> None:
    """`live` after a second, `ok` at its end."""
    one = proxy("--listen", "127.0.0.1:0", "--upstream", agent.upstream)
    with call(listening(one), "SendStreamingMessage") as response:
        response.readline()
        until(lambda: re.search(r"live     #1 SendStreamingMessage  .*submitted  1 event", one.out))
        agent.go_on.set()
        assert b"COMPLETED" in response.read()
    until(
        lambda: re.search(
            r"ok       #1 SendStreamingMessage  .*submitted > completed  2 events", one.out
        )
    )


def test_a_second_ctrl_c_leaves_the_rest_to_recover(
    proxy: Start, agent: Agent, tmp_path: Path
) -> None:
    """The recorder is stopped (SIGSTOP): progress lines, then a second Ctrl-C; `recover` finishes
    the recording."""
    one = proxy(
        "--listen", "127.0.0.1:0", "--upstream", agent.upstream, "--record", tmp_path / "r.db"
    )
    address = listening(one)
    call(address)
    until(lambda: one.out)
    recorder = one.recorder()
    os.kill(recorder, signal.SIGSTOP)
    call(address)
    one.interrupt()
    until(lambda: "Ctrl-C again stops now" in one.err)
    one.interrupt()
    assert one.wait() == 0
    until_dead(recorder)  # until then the session is its own
    assert one.err.splitlines()[-1] == "a2a-proxy: hint: finish with: a2a-inspect recover"
    assert len(one.journals) == 1
    again = proxy("--listen", "127.0.0.1:0", "--upstream", agent.upstream)
    listening(again)
    assert again.err.startswith("a2a-proxy: warning: a session was not recorded to the end\n")
    again.stop()
    done = run(one.state, "a2a-inspect", "recover")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"recovered {tmp_path / 'r.db'}: 2 exchanges")
    assert not one.journals
    with Recording(tmp_path / "r.db") as stored:
        assert [row.how for row in stored.read_sessions()] == ["clean"]
        assert len(list(stored.read_exchanges())) == 2
    assert run(one.state, "a2a-inspect", "recover").out == "nothing to recover\n"


def test_sigterm_leaves_much_to_the_recorder(proxy: Start, agent: Agent, tmp_path: Path) -> None:
    """With a recorder that is far behind (SIGSTOP) the proxy ends within two seconds and says what
    is left. The recorder finishes, and readers wait for it."""
    path = tmp_path / "r.db"
    one = proxy("--listen", "127.0.0.1:0", "--upstream", agent.upstream, "--record", path)
    address = listening(one)
    call(address)
    until(lambda: one.out)
    recorder = one.recorder()
    os.kill(recorder, signal.SIGSTOP)
    for _ in range(20):
        call(address, **{"X-Long": "x" * 60_000})
    began = time.monotonic()
    one.process.send_signal(signal.SIGTERM)
    assert one.wait() == 0
    assert time.monotonic() - began < 4.0  # 1.8 s on a machine that is not busy
    assert re.fullmatch(
        r"a2a-proxy: 1\.\d MiB left to record: the recorder finishes without the proxy, and "
        r"a2a-inspect waits for it",
        one.err.splitlines()[-1],
    )
    os.kill(recorder, signal.SIGCONT)
    done = run(one.state, "a2a-inspect", "check", path)
    assert "no progress" not in done.err
    with Recording(path) as stored:
        assert [row.how for row in stored.read_sessions()] == ["clean"]
        assert len(list(stored.read_exchanges())) == 21
    until(lambda: not one.journals)


def test_a_killed_relay_leaves_an_unclean_session(
    proxy: Start, agent: Agent, tmp_path: Path
) -> None:
    """SIGKILL of the proxy: its recorder finishes by itself and says until when it is complete."""
    one = proxy(
        "--listen", "127.0.0.1:0", "--upstream", agent.upstream, "--record", tmp_path / "r.db"
    )
    call(listening(one))
    until(lambda: one.out)
    one.process.kill()
    one.wait()
    until(lambda: not one.journals)
    listed = run(one.state, "a2a-inspect", "show", tmp_path / "r.db")
    assert "INCOMPLETE: the proxy was killed; complete until 20" in listed.out


def test_help_is_fast_and_imports_little(proxy: Start, agent: Agent, tmp_path: Path) -> None:
    """`--help` needs no asyncio, no SQLite, no gRPC; no argument is the same as `--help`."""
    done = run(tmp_path / "state", "a2a-proxy", "--help", PYTHONPROFILEIMPORTTIME="1")
    assert done.code == 0
    for heavy in ("asyncio", "sqlite3", "grpc", "aiohttp", "google.protobuf"):
        assert not re.search(rf"\| +{re.escape(heavy)}$", done.err, re.MULTILINE), heavy
    assert run(tmp_path / "state", "a2a-proxy").out.splitlines()[0] == done.out.splitlines()[0]
    assert not (tmp_path / "state").exists()
    assert run(tmp_path / "state", "a2a-proxy", "--version").out.startswith("a2a-proxy ")


def a_config(agent: Agent, record: Path | None = None) -> ProxyConfig:
    return proxy_config(
        ProxyArguments(
            listen=("127.0.0.1:0",), upstream=(agent.upstream,), record=record, quiet=True
        )
    )


@pytest.mark.parametrize(
    ("listens", "more", "warning"),
    [
        (("127.0.0.1:0",), (), "on loopback, agent cards may open any port of the agent's host"),
        (
            (":0", "localhost:0"),
            (),
            "on loopback, agent cards may open any port of the agent's host",
        ),
        (
            ("0.0.0.0:0",),
            ("--rewrite-card", "never"),
            "with --rewrite-card never, agent cards open no ports",
        ),
        (("127.0.0.1:0", "0.0.0.0:0"), (), ""),
    ],
)
def test_learn_ports_without_effect_is_a_warning(
    proxy: Start,
    agent: Agent,
    tmp_path: Path,
    listens: tuple[str, ...],
    more: tuple[str, ...],
    warning: str,
) -> None:
    """After the banner, with a hint, and only if no listener is limited by the option."""
    pairs = [word for each in listens for word in ("--listen", each, "--upstream", agent.upstream)]
    one = proxy(*pairs, "--learn-ports", "8001", *more, "--record", tmp_path / "r.db")
    listening(one)
    assert one.stop() == 0
    lines = one.err.splitlines()
    numbers = [number for number, line in enumerate(lines) if "--learn-ports" in line]
    if not warning:
        assert not numbers
        return
    (number,) = numbers
    assert lines[number - 1] == "stop with Ctrl-C"
    assert lines[number] == f"a2a-proxy: warning: --learn-ports has no effect: {warning}"
    assert lines[number + 1].startswith("a2a-proxy: hint: leave ")


@pytest.mark.parametrize(("listen", "warned"), [("127.0.0.1:0", False), ("0.0.0.0:0", True)])
def test_a_forward_proxy(
    proxy: Start, agent: Agent, tmp_path: Path, listen: str, warned: bool
) -> None:
    """The banner has the variable for clients, the lines name each agent, and an open proxy is a
    warning with a hint. The metrics port is no target."""
    one = proxy("--forward", listen, "--metrics", "127.0.0.1:0", "--record", tmp_path / "r.db")
    until(lambda: "metrics: http://" in (one.out + one.err))
    port = re.search(r"as a forward proxy: HTTP_PROXY=http://[0-9.]+:(\d+)", one.out + one.err)
    metrics = re.search(r"metrics: http://([^/]+)/", one.out + one.err)
    assert port is not None
    assert metrics is not None
    body = b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"task-9"}}'
    for target, status in ((agent.upstream, 200), (metrics[1], 502)):
        connection = http.client.HTTPConnection("127.0.0.1", int(port[1]))
        connection.request("POST", f"http://{target}/", body)
        assert connection.getresponse().status == status
        connection.close()
    assert one.stop() == 0
    assert ("open to everybody who reaches this machine" in (one.out + one.err)) is warned
    assert (f"hint: for this machine only: --forward :{port[1]}" in (one.out + one.err)) is warned
    assert any(agent.upstream in line and "GetTask" in line for line in one.out.splitlines())


def test_a_failing_relay_leaves_a_complete_recording(
    agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error comes out, after the journal was recorded to its end."""
    monkeypatch.setenv("A2A_PROXY_STATE", str(tmp_path / "state"))
    config = a_config(agent, tmp_path / "r.db")

    async def work(addresses: list[str]) -> None:
        await asyncio.to_thread(call, addresses[0])
        raise ValueError("the story is wrong")

    async def failing() -> int:
        return await ProxyRun(config, work).run()

    with pytest.raises(ValueError, match="the story is wrong"):
        asyncio.run(failing())
    assert not list((tmp_path / "state" / "journals").iterdir())
    with Recording(tmp_path / "r.db") as stored:
        assert [row.how for row in stored.read_sessions()] == ["clean"]
        assert stored.count_rows().exchanges == 1


DONE = RecorderDone(1, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0)


class SlowToEnd:
    """A supervisor whose recorder says its last word long before its process has ended."""

    unrecorded_bytes = 0

    def __init__(self, heard: Callable[[Status], None]) -> None:
        self.outcome: RecorderDone | None = None
        self._heard = heard

    def drain_journal(self, timeout: float) -> bool:
        if self.outcome is not None:
            return True
        self.outcome = DONE
        self._heard(DONE)
        time.sleep(_QUIET_SECONDS * 1.2)
        return False


class Order:
    """A console that keeps in which order things were said."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def show_status(self, status: Status) -> None:
        self.messages.append(type(status).__name__)

    def show_draining(self, lag: int) -> None:
        self.messages.append("draining")


async def test_the_summary_is_the_last_line(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a line that says how much is left comes late."""
    one = ProxyRun(a_config(agent))
    console = Order()
    monkeypatch.setattr(one, "_console", console)
    assert await one._drain_recorder(SlowToEnd(one._on_status)) == 0  # type: ignore[arg-type]
    assert console.messages == ["draining", "RecorderDone"]


class Halting:
    """A supervisor whose recorder is so far behind at each look, and then done."""

    outcome = DONE

    def __init__(self, *behind: int) -> None:
        self._behind = list(behind)
        self.unrecorded_bytes = 0

    def drain_journal(self, timeout: float) -> bool:
        if not self._behind:
            return True
        self.unrecorded_bytes = self._behind.pop(0)
        return False


async def test_an_unchanged_backlog_is_not_reported_twice(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backlog that does not shrink for seconds is not reported again; a shrinking one is."""
    one = ProxyRun(a_config(agent))
    console = Order()
    monkeypatch.setattr(one, "_console", console)
    monkeypatch.setattr(run_module, "_QUIET_SECONDS", 0)
    monkeypatch.setattr(run_module, "_DRAIN_NOTE_SECONDS", 0)
    assert await one._drain_recorder(Halting(9, 9, 5, 0, 0, 0)) == 0  # type: ignore[arg-type]
    assert console.messages == ["draining"] * 3 + ["RecorderDone"]


def test_two_proxies_write_one_recording(proxy: Start, agent: Agent, tmp_path: Path) -> None:
    """Each has its session in it."""
    words = ("--listen", "127.0.0.1:0", "--upstream", agent.upstream, "--record", tmp_path / "r.db")
    first = proxy(*words)
    address = listening(first)
    (tmp_path / "second").mkdir()
    second = Proxy(tmp_path / "second", *words)
    try:
        other = listening(second)
        for _ in range(3):
            call(address)
            call(other)
        assert (first.stop(), second.stop()) == (0, 0)
    finally:
        second.process.kill()
    with Recording(tmp_path / "r.db") as stored:
        assert [row.how for row in stored.read_sessions()] == ["clean", "clean"]
        assert [len(list(stored.read_exchanges(number))) for number in (1, 2)] == [3, 3]


def test_no_secret_is_written_or_printed(proxy: Start, agent: Agent, tmp_path: Path) -> None:
    """Headers and errors: not on the console, not in the recording, not in the state directory at
    the end."""
    canary = "canary-4f9a8b7c6d5e4f3a2b1c"
    refused = run(
        tmp_path / "state", "a2a-proxy", "-l", ":0", "-u", f"http://user:{canary}@{agent.upstream}"
    )
    assert (refused.code, canary in refused.err) == (2, False)
    one = proxy(
        "--listen", "127.0.0.1:0", "--upstream", agent.upstream, "--record", tmp_path / "r.db"
    )
    address = listening(one)
    call(address, "GetTask", Authorization=f"Bearer {canary}", Cookie=f"session={canary}")
    call(address, "SendMessage", **{"X-API-Key": canary})
    until(lambda: len(ended(one)) == 2)
    one.stop()
    with Recording(tmp_path / "r.db") as stored:
        assert canary not in repr(
            [list(stored.read_exchanges()), list(stored.frames_after(0)), stored.read_sessions()]
        )
        assert "Authorization" in repr(list(stored.read_exchanges()))
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or canary.encode() not in path.read_bytes(), path


async def test_a_recording_that_is_behind_is_said_to_be(
    proxy: Start, agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the console, `ls`, `show`, `check` and the screen's header; and no longer when it has
    caught up."""
    file = tmp_path / "r.db"
    one = proxy("--listen", "127.0.0.1:0", "--upstream", agent.upstream, "--record", file)
    address = listening(one)
    await asyncio.to_thread(call, address)
    until(lambda: one.out)
    os.kill(one.recorder(), signal.SIGSTOP)
    try:
        await asyncio.to_thread(call, address)
        until(lambda: "s behind; the journal" in one.err)
        assert re.search(
            r"\nsession 1 is still being recorded, \d+ s behind: newer exchanges are missing\n",
            listed(one, "ls"),
        )
        assert re.search(r"  being recorded, \d+ s behind\n", listed(one, "show"))
        assert re.search(
            r"the capture is incomplete: being recorded, \d+ s behind", listed(one, "check")
        )
        monkeypatch.setenv("A2A_PROXY_STATE", str(one.state))
        source = RecordingSource(file)
        snapshot = await source.poll()
        assert snapshot is not None
        assert re.fullmatch(r"\d+ s behind", completeness_words(snapshot)[0])
    finally:
        os.kill(one.recorder(), signal.SIGCONT)
    until(lambda: "the recording has caught up" in one.err)
    snapshot = await source.poll()
    assert snapshot is not None
    assert completeness_words(snapshot) == ("", True)
    source.close()
    assert "behind" not in listed(one, "ls")
    one.stop()


def listed(one: Proxy, command: str) -> str:
    return run(one.state, "a2a-inspect", command, one.state.parent / "r.db").out


def test_an_upstream_without_a_listener_is_reported_without_dialling(
    proxy: Start, tmp_path: Path
) -> None:
    """And one that listens is not; no agent sees a connection that no client made."""
    with socket.socket() as silent, socket.socket() as agent:
        silent.bind(("127.0.0.1", 0))
        agent.bind(("127.0.0.1", 0))
        agent.listen()
        agent.settimeout(0.5)
        ports = [each.getsockname()[1] for each in (silent, agent)]
        words = [
            word
            for port in ports
            for word in ("--listen", "127.0.0.1:0", "--upstream", f"localhost:{port}")
        ]
        one = proxy(*words, "--record", tmp_path / "r.db")
        until(lambda: "stop with" in one.err)
        with pytest.raises(TimeoutError):
            agent.accept()
        one.stop()
    warnings = [line for line in one.err.splitlines() if "no process listens" in line]
    where = f"localhost:{ports[0]}"
    assert warnings == [
        (
            f"a2a-proxy: warning: no process listens at {where}: "
            "requests are answered with 502 until one does"
        )
    ]
