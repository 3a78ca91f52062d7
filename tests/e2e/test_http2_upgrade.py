"""Clients that begin in HTTP/1.1 and offer `h2c`, as `java.net.http` does: the answers, and what is
recorded, with and without a switch."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import threading
from pathlib import Path

import h2.config
import h2.connection
import h2.events
import pytest

from a2a_proxy.recording.read.reader import Recording
from support_peers import PEERS
from support_proxy import inspect, proxy

SECONDS = 60
TASK = {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}


class Agent:
    """Answers in HTTP/1.1, or in HTTP/2 after an offer if it `switches`."""

    def __init__(self, *, switches: bool) -> None:
        self.switches, self.offers = switches, 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            peer = self._listener.accept()[0]
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        with peer, peer.makefile("rb") as lines:
            while line := lines.readline():
                fields = {}
                while (field := lines.readline().strip()) != b"":
                    name, _, value = field.partition(b":")
                    fields[name.lower()] = value.strip()
                body = lines.read(int(fields.get(b"content-length", b"0")))
                kind, answer = self._answer(line.split()[1].decode(), body)
                offer = fields.get(b"http2-settings")
                self.offers += offer is not None
                if offer is None or not self.switches:
                    head = (
                        f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(answer)}"
                    )
                    peer.sendall(f"{head}\r\n\r\n".encode() + answer)
                    continue
                switch = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                peer.sendall(switch + b"Upgrade: h2c\r\n\r\n")
                self._serve_http2(peer, offer, kind, answer)
                return

    def _serve_http2(self, peer: socket.socket, offer: bytes, kind: str, answer: bytes) -> None:
        http2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        http2.initiate_upgrade_connection(offer)
        due: dict[int, tuple[str, bytes]] = {1: (kind, answer)}
        paths: dict[int, str] = {}
        while True:
            for stream, (media, data) in due.items():
                http2.send_headers(stream, [(":status", "200"), ("content-type", media)])
                http2.send_data(stream, data, end_stream=True)
            due = {}
            peer.sendall(http2.data_to_send())
            received = peer.recv(65536)
            if not received:
                return
            for event in http2.receive_data(received):
                if isinstance(event, h2.events.RequestReceived):
                    paths[event.stream_id] = dict(event.headers)[b":path"].decode()
                elif isinstance(event, h2.events.DataReceived):
                    due[event.stream_id] = self._answer(paths[event.stream_id], event.data)

    def _answer(self, path: str, body: bytes) -> tuple[str, bytes]:
        if path.endswith("agent-card.json"):
            interface = {"url": f"{self.url}/", "protocolBinding": "JSONRPC"}
            card = {
                "name": "Switcher",
                "description": "Switches",
                "version": "1",
                "supportedInterfaces": [{**interface, "protocolVersion": "1.0"}],
                "capabilities": {"streaming": True},
                "defaultInputModes": ["text"],
                "defaultOutputModes": ["text"],
                "skills": [],
            }
            return "application/json", json.dumps(card).encode()
        result = {"jsonrpc": "2.0", "id": 1, "result": {"task": TASK}}
        if json.loads(body)["method"] == "SendMessage":
            return "application/json", json.dumps(result).encode()
        working = {**TASK, "status": {"state": "TASK_STATE_WORKING"}}
        update = {"taskId": "t", "contextId": "c", "status": TASK["status"]}
        events = [{"task": working}, {"statusUpdate": update}]
        lines = [json.dumps({**result, "result": event}) for event in events]
        return "text/event-stream", "".join(f"data: {line}\n\n" for line in lines).encode()


def call(url: str) -> list[str]:
    """Return the lines of a client of the JDK."""
    line = ["java", str(PEERS / "system" / "Calls.java"), url]
    ran = subprocess.run(line, capture_output=True, text=True, timeout=SECONDS, check=True)
    return ran.stdout.splitlines()


@pytest.mark.peers
@pytest.mark.parametrize(
    ("switches", "words"), [(True, ()), (False, ()), (True, ("--fault", "drop 1 of * call 99"))]
)
def test_client_of_the_jdk(tmp_path: Path, switches: bool, words: tuple[str, ...]) -> None:
    """The client gets what it gets without the proxy, follows the card to the proxy, and all four
    calls are recorded. With faults the agent gets no offer."""
    if shutil.which("java") is None:
        pytest.skip("java is not on PATH")
    agent = Agent(switches=switches)
    direct = call(agent.url)
    offers, agent.offers = agent.offers, 0
    with proxy(tmp_path, agent.url, "", *words) as between:
        found = call(between.base_url)
        between.stop()
        checked = inspect(between.state, "check", between.recording)
    assert [each.split(" ", 1)[1] for each in found[2:]] == [
        each.split(" ", 1)[1] for each in direct[2:]
    ]
    assert found[1] == f"{between.base_url}/"
    assert offers
    assert bool(agent.offers) is not bool(words)
    versions = {each.split(" ")[0] for each in found[2:]}
    assert versions == {"HTTP_2" if switches and not words else "HTTP_1_1"}
    assert "0 errors" in checked
    with Recording(between.recording) as recording:
        calls = [row.exchange for row in recording.read_exchanges()]
        (session,) = recording.read_sessions()
        kinds = {row.connection.kind for row in recording.read_connections()}
    assert [(each.operation, each.how, each.events) for each in calls] == [
        ("GetAgentCard", "complete", 1),
        ("SendMessage", "complete", 1),
        ("SendStreamingMessage", "complete", 2),
        ("SendMessage", "complete", 1),
    ]
    assert not session.missing_text
    assert ("h2c" in kinds) is (versions == {"HTTP_2"})
