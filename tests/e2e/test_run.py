"""`a2a-proxy run` around a system of three processes: a client and two agents of the real SDK, two tasks at once."""

from __future__ import annotations

import json
import re
import shutil
import ssl
import subprocess
from collections import Counter
from pathlib import Path

import pytest
import trustme

from a2a_proxy.model.exchange import Binding
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.telemetry.offline import RecordingExport
from support_cli import SECONDS, Ran, agent, environment, program, run, run_here
from support_otlp import Kept
from support_peers import ENVIRONMENTS, PEERS, missing

_ORDERS = ["a table for two", "twelve red roses"]
"""Texts of the two tasks, which the planner passes on."""
_BINDINGS = {"JSONRPC": Binding.JSONRPC, "HTTP+JSON": Binding.REST, "GRPC": Binding.GRPC}


def run_system(tmp_path: Path, *words: str, proxied: bool = True) -> Ran:
    """Run the system with these arguments, with or without the proxy around it."""
    calls = tmp_path / ("calls" if proxied else "direct")
    calls.mkdir()
    system = [str(ENVIRONMENTS / "sdk1/bin/python"), str(PEERS / "system/system.py"), "--calls", str(calls), *words]
    around = [program("a2a-proxy"), "run", "--record", str(tmp_path / "r.a2a.db"), "--"] if proxied else []
    done = subprocess.run(
        [*around, *system],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=environment(tmp_path / "state"),
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


@pytest.mark.peers
@pytest.mark.parametrize("binding", _BINDINGS)
def test_every_call_of_a_system_is_recorded_with_its_caller(tmp_path: Path, binding: str) -> None:
    """As many calls as the agents counted, each from the right process; output and exit code as without the proxy; the
    planner's calls are below the tasks that they serve in `segments`, `lanes` and traces."""
    if why := missing("sdk1"):
        pytest.skip(why)
    direct = run_system(tmp_path, "--binding", binding, "--exit-code", "3", proxied=False)
    proxied = run_system(tmp_path, "--binding", binding, "--exit-code", "3")
    assert (proxied.code, proxied.out) == (direct.code, direct.out)
    assert (proxied.code, json.loads(proxied.out)) == (3, [f"done: {order}" for order in _ORDERS])
    assert "past the proxy" not in proxied.err
    counted = {name: len((tmp_path / "calls" / name).read_text().splitlines()) for name in ("planner", "worker")}
    assert counted == {"planner": 2, "worker": 2}
    path = tmp_path / "r.a2a.db"
    with Recording(path) as recording:
        connections = {row.connection.id: row.connection for row in recording.read_connections()}
        calls = [row.exchange for row in recording.read_exchanges()]
        sent = [call for call in calls if call.operation == "SendStreamingMessage"]
        handoffs = [row.handoff for row in recording.read_handoffs()]
        texts = {call.id: _text_of(recording, call.id) for call in sent}
        spans = Kept()
        RecordingExport(recording, spans).run(None)
    assert {call.binding for call in sent} == {_BINDINGS[binding]}
    callers = Counter(_caller(connections[call.connection]) for call in sent)
    assert callers == {"system": counted["planner"], "planner": counted["worker"]}
    assert all(_caller(connections[call.connection]) in ("system", "planner") for call in calls)
    assert [(each.kind, each.evidence) for each in handoffs] == [("delegation", "process")] * 2
    served = {call.task_id: call.id for call in sent}
    below = {each.to_exchange: served[each.task_id] for each in handoffs}
    assert sorted(texts[call] for call in below) == _ORDERS
    assert all(texts[call] == texts[of] for call, of in below.items())
    by_call = {
        span.attributes["a2a_proxy.exchange"]: span for span in spans.got if "a2a_proxy.exchange" in span.attributes
    }
    for call, of in below.items():
        (link,) = by_call[call].links
        assert link.context == by_call[of].context
    shown = run_here(tmp_path / "state", "show", path).out
    assert re.findall(r"#(\d+) SendStreamingMessage .* from planner \(pid \d+\)", shown) == [
        str(call) for call in below
    ]
    for call, of in below.items():
        drawn = [json.loads(line) for line in run_here(tmp_path / "state", "lanes", path, str(call), "--json").lines]
        asked = {line["exchange"]: (line["from"], line["to"]) for line in drawn if line.get("kind") == "request"}
        assert asked.keys() == {of, call}
        assert (asked[of][0], asked[call][0]) == ("client", asked[of][1])


def _caller(connection: object) -> str:
    process = connection.client_process  # type: ignore[attr-defined]
    return str(process.name) if process is not None else ""


def _text_of(recording: Recording, exchange: int) -> str:
    (row,) = (row for row in recording.frames_after(0) if row.frame.exchange == exchange and row.frame.seq == 0)
    return next(order for order in _ORDERS if order.encode() in row.frame.payload)


@pytest.mark.peers
def test_calls_past_the_proxy_are_reported(tmp_path: Path) -> None:
    """The planner ignores the proxy: its calls are not recorded, but reported; the client's calls are recorded."""
    if why := missing("sdk1"):
        pytest.skip(why)
    ran = run_system(tmp_path, "--past")
    assert ran.code == 0
    assert "past the proxy: planner (pid " in ran.err
    with Recording(tmp_path / "r.a2a.db") as recording:
        calls = [row.exchange for row in recording.read_exchanges() if row.exchange.operation == "SendStreamingMessage"]
    assert len(calls) == len((tmp_path / "calls/planner").read_text().splitlines())


@pytest.mark.peers
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_calls_of_a_jvm_are_recorded(tmp_path: Path, scheme: str) -> None:
    """`java.net.http`, which reads `JAVA_TOOL_OPTIONS` only; the truststore has the agent's authority too."""
    if shutil.which("java") is None:
        pytest.skip("java is not on PATH")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "own.pem"))
    with agent() as far:
        if scheme == "https":
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            authority.issue_cert("127.0.0.1").configure_cert(context)
            far.server.socket = context.wrap_socket(far.server.socket, server_side=True)
        call = ("java", PEERS / "system/Ask.java", f"{scheme}://{far.upstream}/")
        words = ("run", "--java", "--record", tmp_path / "r.a2a.db", "--", *call)
        ran = run(tmp_path / "state", "a2a-proxy", *words, SSL_CERT_FILE=str(tmp_path / "own.pem"))
    assert (ran.code, ran.out) == (0, "200\n"), ran.err
    with Recording(tmp_path / "r.a2a.db") as recording:
        assert [row.exchange.operation for row in recording.read_exchanges()] == ["SendMessage"]
        assert [_caller(row.connection) for row in recording.read_connections()] == ["Ask"]
