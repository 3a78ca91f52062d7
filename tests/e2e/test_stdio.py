"""`a2a-proxy stdio` between a client and its agent: both behave as without it, and everything is
recorded."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
from pathlib import Path

import pytest

from a2a_proxy.capture import file_layout
from a2a_proxy.model.values import FrameKind, Severity
from a2a_proxy.model.wire import Direction
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import SessionRow
from support_cli import program, recorder_of, run, until, until_dead
from support_kills import kill
from support_stdio import CARD, Client, Outcome, Story, agent, outcome, request, wrapped

_AS_FAST_SECONDS, _TRIES = 5.0, 4
"""Seconds and attempts, because the machine may be busy with other tests. A relay that waits for a
timer or for its recorder is slower in every attempt."""


def converse(client: Client) -> None:
    """Fetch the card, send one message, open one stream, close stdin."""
    for data, last in (
        (CARD, b'"id": 1'),
        (request(2, "SendMessage", "hello"), b'"id": 2'),
        (request(3, "SendStreamingMessage", "stream"), b"TASK_STATE_COMPLETED"),
    ):
        client.write(data)
        client.expect(last)
    client.close()


def in_pieces(client: Client) -> None:
    """Send both messages in pieces of three bytes."""
    data = CARD + request(2, "SendMessage", "in pieces")
    for start in range(0, len(data), 3):
        client.write(data[start : start + 3])
    client.expect(b'"id": 2')
    client.close()


def at_once(client: Client) -> None:
    """Send three calls in one write and close stdin."""
    client.write(CARD + request(2, "SendStreamingMessage", "a") + request(3, "SendMessage", "b"))
    client.close()


def multibyte(client: Client) -> None:
    client.write(CARD + request(2, "SendMessage", "Grüße, 世界 \U0001f600"))
    client.expect(b'"id": 2')
    client.close()


def large(client: Client) -> None:
    """Send and receive five MiB."""
    client.write(CARD + request(2, "SendMessage", "é" * (5 * 1024 * 1024 // 2)))
    client.expect(b'"id": 2')
    client.close()


def one_call(client: Client) -> None:
    """Send one call to an agent that ends by itself; stdin stays open."""
    client.write(CARD)


def closes(client: Client) -> None:
    client.close()


def terminates(client: Client) -> None:
    client.write(CARD)
    client.expect(b'"id": 1')
    client.process.send_signal(signal.SIGTERM)


OK, GONE = "complete", "agent exited"
"""Expected ends of calls."""
STORIES: list[tuple[str, Story, str, int, list[str]]] = [
    ("conversation", converse, "plain", 0, [OK, OK, OK]),
    ("client writes in pieces", in_pieces, "plain", 0, [OK, OK]),
    ("agent writes in pieces", converse, "chunked", 0, [OK, OK, OK]),
    ("header split over writes", converse, "split-header", 0, [OK, OK, OK]),
    ("several messages in one write", at_once, "joined", 0, [OK, OK, OK]),
    ("multibyte text", multibyte, "plain", 0, [OK, OK]),
    ("5 MB", large, "plain", 0, [OK, OK]),
    ("noise on stderr", converse, "noisy", 0, [OK, OK, OK]),
    ("flood on stderr", converse, "flood", 0, [OK, OK, OK]),
    ("exit code 3", one_call, "exit3", 3, [OK]),
    ("SIGTERM kills", terminates, "plain", -signal.SIGTERM, [OK]),
    ("SIGTERM is handled", terminates, "graceful", 7, [OK]),
    ("client closes stdin", closes, "plain", 0, []),
    ("agent closes stdout", at_once, "closes-stdout", 1, [OK, GONE, GONE]),
    ("agent dies in mid-message", one_call, "dies", -signal.SIGKILL, [GONE]),
    ("garbage between messages", converse, "garbage", 0, [OK, OK, OK]),
]


def _both(folder: Path, story: Story, manner: str, *options: object) -> tuple[Outcome, Outcome]:
    return tuple(  # type: ignore[return-value]  # two of them
        outcome(folder / name, manner, story, *options, proxied=proxied)
        for name, proxied in (("bare", False), ("proxied", True))
    )


FAULTS = {
    "graceful": {"A2A-STDIO-005"},
    "closes-stdout": {"A2A-END-005", "A2A-STDIO-012"},
    "dies": {"A2A-END-005", "A2A-STDIO-012"},
    "garbage": {"A2A-STDIO-005"},
}
"""Rules that these behaviours of agents break; no other rule may report a finding."""

_CASES = pytest.mark.parametrize(
    ("story", "manner", "code", "ends"),
    [each[1:] for each in STORIES],
    ids=[each[0] for each in STORIES],
)


@_CASES
def test_the_proxy_is_invisible_to_client_and_agent(
    tmp_path: Path, story: Story, manner: str, code: int, ends: list[str]
) -> None:
    """Output, errors, exit status and the bytes that the agent received are equal, and the end is
    as fast; the recording has every byte, every line of the log, every call with its end, and the
    expected findings."""
    recording = tmp_path / "recording.a2a.db"
    bare, proxied = _both(tmp_path, story, manner, "--record", recording)
    assert proxied.seen == bare.seen
    assert bare.code == code
    tries = [proxied.seconds]
    while min(tries) >= bare.seconds + _AS_FAST_SECONDS and len(tries) < _TRIES:
        folder = tmp_path / f"try-{len(tries)}"
        tries.append(
            outcome(
                folder, manner, story, "--record", tmp_path / f"{folder.name}.db", proxied=True
            ).seconds
        )
    assert min(tries) < bare.seconds + _AS_FAST_SECONDS
    (row,) = _ended(recording)
    assert (row.how, row.complete) == ("clean", "complete")
    with Recording(recording) as stored:
        assert [each.exchange.how for each in stored.read_exchanges()] == ends
        found = {
            each.finding.rule
            for each in stored.read_findings()
            if each.finding.severity >= Severity.WARNING
        }
        assert found == FAULTS.get(manner, set())
        (connection,) = [each.connection for each in stored.read_connections()]
        assert connection.bytes_to_agent == len(proxied.received)
        assert connection.bytes_to_client == len(proxied.out)
        frames = [each.frame for each in stored.frames_after(0)]
        log = [each.payload for each in frames if each.kind is FrameKind.LOG]
        assert b"".join(log).replace(b"\n", b"") == proxied.err.replace(b"\n", b"")
        for side, data in (
            (Direction.TO_AGENT, proxied.received),
            (Direction.TO_CLIENT, proxied.out),
        ):
            messages = [
                each.payload for each in frames if each.kind in _MESSAGES and each.direction is side
            ]
            assert messages == _contents(data)


_MESSAGES = (FrameKind.REQUEST, FrameKind.RESPONSE, FrameKind.EVENT)


def _contents(data: bytes) -> list[bytes]:
    """Return the complete messages on a pipe."""
    heads = re.finditer(rb"Content-Length: (\d+)\r\n(?:[^\r]+\r\n)*\r\n", data)
    ends = [(head.end(), head.end() + int(head[1])) for head in heads]
    return [data[start:end] for start, end in ends if end <= len(data)]


def _ended(path: Path, count: int = 1) -> list[SessionRow]:
    """Wait until the recording has that many sessions and all have ended; return them."""

    def rows() -> list[SessionRow] | None:
        if not path.exists():
            return None
        with Recording(path) as stored:
            found = stored.read_sessions()
        return found if len(found) == count and all(row.how for row in found) else None

    return list(until(rows))


def test_eight_proxies_create_one_recording(tmp_path: Path) -> None:
    """Each of them creates the file, or finds it created by another one, and writes a session of
    its own."""
    recording, state = tmp_path / "recording.a2a.db", tmp_path / "state"
    command = wrapped(agent(), "--record", recording)
    clients = [Client(command, state) for _ in range(8)]
    for client in clients:
        client.read()
    for client in clients:
        at_once(client)
    assert [client.end()[0] for client in clients] == [0] * 8
    assert len({bytes(client.out) for client in clients}) == 1
    assert not any(client.err for client in clients)
    rows = _ended(recording, 8)
    assert {(row.how, row.complete) for row in rows} == {("clean", "complete")}
    assert len({row.facts.pid for row in rows}) == 8
    until(lambda: not list((state / "journals").iterdir()))


def test_a_killed_recorder_is_replaced_unnoticed(tmp_path: Path) -> None:
    recording = tmp_path / "recording.a2a.db"
    client = Client(wrapped(agent(), "--record", recording), tmp_path / "state")
    client.read()
    client.write(CARD)
    client.expect(b'"id": 1')
    killed = until(lambda: recorder_of(client.process.pid))
    until(recording.exists)
    kill(killed)
    until(lambda: recorder_of(client.process.pid) not in (0, killed))
    client.write(request(2, "SendMessage", "still here"))
    client.expect(b'"id": 2')
    client.close()
    assert client.end()[0] == 0
    assert not client.err
    (row,) = _ended(recording)
    assert (row.how, row.complete) == ("clean", "complete")


def test_the_recorder_does_not_inherit_the_pipes_of_the_client(tmp_path: Path) -> None:
    """It holds none of them open and has a session of its own: it can neither delay the client nor
    receive its signals."""
    client = Client(wrapped(agent()), tmp_path / "state")
    client.read()
    recorder = until(lambda: recorder_of(client.process.pid))
    streams = (client.process.stdin, client.process.stdout, client.process.stderr)
    pipes = {
        os.readlink(f"/proc/self/fd/{stream.fileno()}") for stream in streams if stream is not None
    }
    held = set()
    for name in os.listdir(f"/proc/{recorder}/fd"):
        with contextlib.suppress(OSError):
            held.add(os.readlink(f"/proc/{recorder}/fd/{name}"))
    assert len(pipes) == 3
    assert not pipes & held
    assert os.getsid(recorder) == recorder
    client.close()
    assert client.end()[0] == 0


def test_a_killed_proxy_is_recorded_until_its_death(tmp_path: Path) -> None:
    """The agent ends with it, and the recorder finishes the recording."""
    recording = tmp_path / "recording.a2a.db"
    client = Client(wrapped(agent(), "--record", recording), tmp_path / "state")
    client.read()
    client.write(CARD)
    client.expect(b'"id": 1')
    until(recording.exists)
    client.process.kill()
    assert client.end()[0] == -signal.SIGKILL
    (row,) = _ended(recording)
    assert row.how == "unclean"
    assert "the proxy was killed" in row.complete


def test_what_passed_before_the_kill_of_the_proxy_is_replayed(tmp_path: Path) -> None:
    """A client ends its stdio agent by a kill: answered calls are replayed whole, an open stream up
    to the kill."""
    recording, state = tmp_path / "recording.a2a.db", tmp_path / "state"

    def converse(command: list[str]) -> Client:
        client = Client(command, state)
        client.read()
        client.write(request(1, "SendMessage", "hello"))
        client.expect(b'"id"')
        client.write(request(2, "SendStreamingMessage", "work"))
        client.expect(b"TASK_STATE_WORKING")
        return client

    client = converse(wrapped(agent("stays-open"), "--record", recording))
    client.process.kill()
    assert client.end()[0] == -signal.SIGKILL
    (row,) = _ended(recording)
    assert "the proxy was killed" in row.complete
    replayed = converse([program("a2a-proxy"), "replay", str(recording), "--stdio"])
    assert replayed.end()[0] == 0
    assert _results(replayed.out) == _results(client.out)
    assert len(_results(client.out)) == 3


def _results(out: bytes | bytearray) -> list[object]:
    """Return the results of all whole messages of an output."""
    bodies = [each.partition(b"Content-Length")[0] for each in bytes(out).split(b"\r\n\r\n")[1:]]
    return [json.loads(body)["result"] for body in bodies]


def test_a_session_whose_processes_were_killed_is_recovered(tmp_path: Path) -> None:
    """Proxy and recorder are killed at the same time; the next proxy writes nothing about it to its
    client's pipes."""
    recording, state = tmp_path / "recording.a2a.db", tmp_path / "state"
    client = Client(wrapped(agent(), "--record", recording), state)
    client.read()
    client.write(CARD)
    client.expect(b'"id": 1')
    recorder = until(lambda: recorder_of(client.process.pid))
    kill(client.process.pid, recorder)
    assert client.end()[0] == -signal.SIGKILL
    until_dead(recorder)
    after = Client(wrapped(["true"]), state)
    after.read()
    assert after.end()[0] == 0
    assert not after.out + after.err
    assert f"recovered {recording}: 1 exchange, " in run(state, "a2a-inspect", "recover").out
    (row,) = _ended(recording)
    assert row.how == "unclean"
    with Recording(recording) as stored:
        assert [each.exchange.operation for each in stored.read_exchanges()] == [
            "GetExtendedAgentCard"
        ]


def test_a_session_being_finished_is_no_leftover(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent ends long before its recorder has started."""
    state = tmp_path / "state"
    monkeypatch.setenv("A2A_PROXY_STATE", str(state))
    client = Client(wrapped(["true"]), state)
    client.read()
    assert client.end()[0] == 0

    def finished() -> bool:
        left, journals = file_layout.find_leftovers(), list((state / "journals").iterdir())
        assert not left
        return not journals

    until(finished)
