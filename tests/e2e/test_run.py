"""`a2a-proxy run` around a system of four processes: a client and three agents of the real SDKs,
two tasks at once."""

from __future__ import annotations

import json
import re
import shutil
import signal
import ssl
import subprocess
from collections import Counter
from pathlib import Path

import pytest
import trustme

from a2a_proxy.model.values import Binding, Connection, Exchange
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.telemetry.offline import RecordingExport
from support_cli import SECONDS, Ran, agent, environment, program, run, run_here
from support_otlp import Kept
from support_peers import (
    ENVIRONMENTS,
    NODE24,
    PEERS,
    command,
    normalise,
    require_peers,
    transcripts,
)
from support_peers import agent as peer_agent

_ORDERS = ["a table for two", "twelve red roses"]
"""Texts of the two tasks, which each agent passes on to the next."""
_CALLERS = ["system", "planner", "broker"]
_AGENTS = ["planner", "broker", "worker"]
"""The agents that they call."""
_BINDINGS = {"JSONRPC": Binding.JSONRPC, "HTTP+JSON": Binding.REST, "GRPC": Binding.GRPC}
_SEND = "SendStreamingMessage"


def system_line(tmp_path: Path, *words: str, proxied: bool = True) -> list[str]:
    """Return the command of the system with these arguments, with or without the proxy before
    it."""
    calls = tmp_path / ("calls" if proxied else "direct")
    calls.mkdir()
    peers = [
        "--node",
        str(NODE24),
        "--modules",
        str(ENVIRONMENTS / "js/package.json"),
        "--calls",
        str(calls),
    ]
    system = [
        str(ENVIRONMENTS / "sdk1/bin/python"),
        str(PEERS / "system/system.py"),
        *peers,
        *words,
    ]
    around = (
        [program("a2a-proxy"), "run", "--record", str(tmp_path / "r.a2a.db"), "--"]
        if proxied
        else []
    )
    return [*around, *system]


def run_system(tmp_path: Path, *words: str, proxied: bool = True) -> Ran:
    """Run the system to its end."""
    done = subprocess.run(
        system_line(tmp_path, *words, proxied=proxied),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=environment(tmp_path / "state"),
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def count_calls(folder: Path) -> dict[str, int]:
    """Return the number of calls that each agent counted."""
    return {path.name: len(path.read_text().splitlines()) for path in folder.iterdir()}


@pytest.mark.peers
@pytest.mark.parametrize(
    ("bindings", "code"),
    [("JSONRPC,GRPC,HTTP+JSON", 3), ("HTTP+JSON,GRPC,JSONRPC", 0), ("GRPC,GRPC,GRPC", 0)],
)
def test_every_call_of_a_system_is_recorded_with_its_caller(
    tmp_path: Path, bindings: str, code: int
) -> None:
    """As many calls as the agents counted, each from the right process; output and exit code as
    without the proxy; the calls of an agent are below the tasks that they serve, in `show`, `lanes`
    and traces."""
    require_peers("sdk1", "js24")
    words = ("--bindings", bindings, "--exit-code", str(code))
    direct = run_system(tmp_path, *words, proxied=False)
    proxied = run_system(tmp_path, *words)
    assert (proxied.code, proxied.out) == (direct.code, direct.out)
    assert (proxied.code, json.loads(proxied.out)) == (
        code,
        [f"done: {order}" for order in _ORDERS],
    )
    assert "past the proxy" not in proxied.err
    assert (
        count_calls(tmp_path / "calls")
        == count_calls(tmp_path / "direct")
        == dict.fromkeys(_AGENTS, 2)
    )
    path = tmp_path / "r.a2a.db"
    with Recording(path) as recording:
        connections = {row.connection.id: row.connection for row in recording.read_connections()}
        calls = [row.exchange for row in recording.read_exchanges()]
        handoffs = [row.handoff for row in recording.read_handoffs()]
        sent = {call.id: call for call in calls if call.operation == _SEND}
        texts = {each: _text_of(recording, each) for each in sent}
        spans = Kept()
        RecordingExport(recording, spans).run(None)
    hops = {
        each: _CALLERS.index(_caller(connections[call.connection])) for each, call in sent.items()
    }
    assert Counter(hops.values()) == {0: 2, 1: 2, 2: 2}
    assert all(
        call.binding == _BINDINGS[bindings.split(",")[hops[each]]] for each, call in sent.items()
    )
    assert Counter(
        _caller(connections[call.connection]) for call in calls if call.id not in sent
    ) == dict.fromkeys(_CALLERS, 2)
    assert [(each.kind, each.evidence) for each in handoffs] == [("delegation", "process")] * 4
    served = {call.task_id: each for each, call in sent.items()}
    above = {each.to_exchange: served[each.task_id] for each in handoffs}
    expected = {
        each: caller for each in sent for caller in sent if _is_above(caller, each, hops, texts)
    }
    assert above == expected
    by_call = {
        span.attributes["a2a_proxy.exchange"]: span
        for span in spans.got
        if "a2a_proxy.exchange" in span.attributes
    }
    for call, caller in above.items():
        (link,) = by_call[call].links
        assert link.context == by_call[caller].context
    check_shown(tmp_path, sent, hops, above)


def _is_above(caller: int, call: int, hops: dict[int, int], texts: dict[int, str]) -> bool:
    """Return whether the task of `caller` is the one for which its agent made `call`."""
    return hops[caller] + 1 == hops[call] and texts[caller] == texts[call]


def check_shown(
    tmp_path: Path, sent: dict[int, Exchange], hops: dict[int, int], above: dict[int, int]
) -> None:
    """Check the tree in `show` and `lanes`."""
    path = tmp_path / "r.a2a.db"
    shown = run_here(tmp_path / "state", "show", path).out
    pairs = re.findall(rf"#(\d+) {_SEND} .* from (\w+) \(pid \d+\) to (\w+) ", shown)
    assert {int(call): names for call, *names in pairs} == {
        call: [_CALLERS[hop], _AGENTS[hop]] for call, hop in hops.items()
    }
    to_agents = Counter(re.findall(r"hand-off to (\w+) task .* delegation by process", shown))
    assert to_agents == Counter(_AGENTS[hops[call]] for call in above)
    for first in (call for call, hop in hops.items() if hop == 0):
        chain = [first]
        while below := [call for call, caller in above.items() if caller == chain[-1]]:
            chain += below
        assert len(chain) == len(_CALLERS)
        drawn = [
            json.loads(line)
            for line in run_here(tmp_path / "state", "lanes", path, str(first), "--json").lines
        ]
        asked = {
            line["exchange"]: (line["from"], line["to"])
            for line in drawn
            if line.get("kind") == "request"
        }
        lanes = ["client", *_AGENTS]
        assert asked == {call: (lanes[hops[call]], lanes[hops[call] + 1]) for call in chain}


def _caller(connection: Connection) -> str:
    process = connection.client_process
    return process.name if process is not None else ""


def _text_of(recording: Recording, exchange: int) -> str:
    (row,) = (
        row
        for row in recording.frames_after(0)
        if row.frame.exchange == exchange and row.frame.seq == 0
    )
    return next(order for order in _ORDERS if order.encode() in row.frame.payload)


@pytest.mark.peers
@pytest.mark.parametrize("proxied", [False, True])
def test_a_system_ends_by_the_signal_that_it_gets(tmp_path: Path, proxied: bool) -> None:
    """With the proxy as without it: the agents end with the system, and nothing is lost."""
    require_peers("sdk1", "js24")
    with subprocess.Popen(
        system_line(tmp_path, "--wait", proxied=proxied),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(tmp_path / "state"),
        text=True,
    ) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline()) == [f"done: {order}" for order in _ORDERS]
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, out) == (-signal.SIGTERM, "")
    assert ("recorded 12 exchanges (12 ok)" in err) == proxied, err


@pytest.mark.peers
def test_calls_past_the_proxy_are_reported(tmp_path: Path) -> None:
    """The broker ignores the proxy: its calls are not recorded, but reported; those of the others
    are recorded."""
    require_peers("sdk1", "js24")
    ran = run_system(tmp_path, "--past")
    assert (ran.code, json.loads(ran.out)) == (0, [f"done: {order}" for order in _ORDERS])
    assert set(re.findall(r"past the proxy: (\w+) \(pid \d+\) to 127\.0\.0\.1:\d+", ran.err)) == {
        "broker"
    }
    assert "its environment has no NODE_USE_ENV_PROXY=1\n" in ran.err
    with Recording(tmp_path / "r.a2a.db") as recording:
        connections = {row.connection.id: row.connection for row in recording.read_connections()}
        sent = [
            row.exchange for row in recording.read_exchanges() if row.exchange.operation == _SEND
        ]
    callers = Counter(_caller(connections[call.connection]) for call in sent)
    counted = count_calls(tmp_path / "calls")
    assert callers == {"system": counted["planner"], "planner": counted["broker"]}


@pytest.mark.peers
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_calls_of_a_jvm_are_recorded(tmp_path: Path, scheme: str) -> None:
    """`java.net.http`, which reads `JAVA_TOOL_OPTIONS` only; the truststore has the agent's
    authority too."""
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


_SCENARIOS = ["card", "unary", "streaming", "input", "errors"]
_CLIENTS = {"sdk03": "sdk03", "js24": "sdk1"}
"""Each client with its agent."""


@pytest.mark.peers
@pytest.mark.parametrize("client", _CLIENTS)
def test_other_sdk_clients_as_the_command(tmp_path: Path, client: str) -> None:
    """The Python SDK 0.3, and the JavaScript SDK on Node.js 24: transcripts as without the
    proxy."""
    kind = _CLIENTS[client]
    require_peers(client, kind)
    with peer_agent(kind) as far:
        for binding in ("jsonrpc", "rest", "grpc"):
            where = ["--binding", binding, "--base-url", far.base_url, "--grpc", far.grpc_target]
            line = [*command("client", client), *where, "--scenarios", ",".join(_SCENARIOS)]
            direct = subprocess.run(
                line, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS
            )
            path = tmp_path / f"{binding}.a2a.db"
            ran = run(tmp_path / "state", "a2a-proxy", "run", "--record", path, "--", *line)
            assert (ran.code, direct.returncode) == (0, 0), ran.err
            assert normalise(transcripts(ran.out)) == normalise(transcripts(direct.stdout))
            assert "past the proxy" not in ran.err
            with Recording(path) as recording:
                bindings = {str(row.exchange.binding) for row in recording.read_exchanges()}
                processes = {_caller(row.connection) for row in recording.read_connections()}
            assert bindings == {"card", binding}
            assert processes == {"js_client" if client == "js24" else "sdk03_client"}


_FETCH = """
const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'hello' }] };
const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } });
const headers = { 'Content-Type': 'application/json', 'A2A-Version': '1.0' };
fetch(process.argv[1], { method: 'POST', headers, body })
  .then((answer) => console.log(answer.status));
"""


@pytest.mark.peers
def test_tls_of_an_authority_that_only_node_trusts_is_opened(tmp_path: Path) -> None:
    """By `NODE_EXTRA_CA_CERTS`: the proxy's authority is added, and the proxy trusts the agent's
    authority too."""
    require_peers("node24")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "own.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with agent() as far:
        far.server.socket = context.wrap_socket(far.server.socket, server_side=True)
        line = ("--", NODE24, "-e", _FETCH, f"https://{far.upstream}/")
        words = ("run", "--record", tmp_path / "r.a2a.db", *line)
        ran = run(
            tmp_path / "state", "a2a-proxy", *words, NODE_EXTRA_CA_CERTS=str(tmp_path / "own.pem")
        )
    assert (ran.code, ran.out) == (0, "200\n"), ran.err
    with Recording(tmp_path / "r.a2a.db") as recording:
        assert [row.exchange.operation for row in recording.read_exchanges()] == ["SendMessage"]
