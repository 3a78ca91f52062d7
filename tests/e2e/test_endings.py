"""Why a call failed or hung, through the real Python and JavaScript SDKs: each cause as a user
makes it, and `a2a-inspect why` with one command.

The clients talk to the real proxy; between the proxy and the agent may be a small gateway.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from support_peers import ENVIRONMENTS, PEERS, Agent, agent, require_peers, run_client
from support_proxy import Proxy, inspect, proxy
from support_relay import refusing_port

pytestmark = pytest.mark.peers
HTTP = ("jsonrpc", "rest")
ALL = (*HTTP, "grpc")
STEP_SECONDS = 60
Endings = dict[tuple[str, str], list[dict[str, Any]]]


class Caller:
    """A client of the Python SDK that makes one call after the other; see `sdk1_caller.py`."""

    def __init__(self, between: Proxy, binding: str, *words: str, base_url: str = "") -> None:
        self.process = subprocess.Popen(
            [
                str(ENVIRONMENTS / "sdk1" / "bin" / "python"),
                str(PEERS / "clients" / "sdk1_caller.py"),
                *("--base-url", base_url or between.base_url, "--grpc", between.address),
                *("--binding", binding, *words),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def begin(self, command: str) -> None:
        """Begin a command."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()

    def end(self) -> dict[str, Any]:
        """Wait for the end of a command, and return its last event."""
        assert self.process.stdout is not None
        event: dict[str, Any] = json.loads(self.process.stdout.readline())
        return event

    def crash(self) -> None:
        """End the process at once."""
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def callers(
    between: Proxy, bindings: tuple[str, ...], *words: str, base_url: str = ""
) -> Iterator[list[Caller]]:
    """Run a client for each binding while the block runs."""
    clients = [Caller(between, each, *words, base_url=base_url) for each in bindings]
    timers = [threading.Timer(STEP_SECONDS, each.crash) for each in clients]
    for timer in timers:
        timer.start()
    try:
        yield clients
    finally:
        for timer, client in zip(timers, clients, strict=True):
            timer.cancel()
            client.crash()


def run(clients: list[Caller], *commands: str) -> list[str]:
    """Run commands, each by all clients at the same time, and return the kinds of the last
    events."""
    kinds = []
    for command in commands:
        for client in clients:
            client.begin(command)
        kinds = [client.end()["kind"] for client in clients]
    return kinds


def answer(status: str, body: str, *headers: str, media: str = "text/html") -> bytes:
    """Return a response of a gateway."""
    fields = (f"Content-Type: {media}", f"Content-Length: {len(body)}", "Connection: close")
    return "\r\n".join((f"HTTP/1.1 {status}", *fields, *headers, "", body)).encode()


class Gateway:
    """Something between proxy and agent: it answers by itself, rewrites a request, or ends a
    connection on which the agent was silent for `idle` seconds. `answer` returns a whole response,
    the request to send on, or None for the request as it is. HTTP/1.1, a connection a request.
    """

    def __init__(
        self,
        agent: Agent,
        answer: Callable[[bytes], bytes | None] = lambda _: None,
        *,
        idle: float | None = None,
    ) -> None:
        self._agent, self._answer, self._idle = agent, answer, idle
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            near = self._listener.accept()[0]
            threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        with near, contextlib.suppress(OSError):
            request = _read_request(near)
            made = self._answer(request)
            if made is not None and made.startswith(b"HTTP/1.1 "):
                near.sendall(made)
                return
            far = socket.create_connection(("127.0.0.1", self._agent.http))
            kept = b"\r\n\r\n"
            far.sendall((made or request).replace(kept, b"\r\nConnection: close" + kept, 1))
            far.settimeout(self._idle)
            with far, contextlib.suppress(OSError):
                while data := far.recv(65536):
                    near.sendall(data)


def _read_request(near: socket.socket) -> bytes:
    request = b""
    while b"\r\n\r\n" not in request:
        request += near.recv(65536)
    head, _, body = request.lower().partition(b"\r\n\r\n")
    size = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
    while len(body) < size:
        body += (more := near.recv(65536))
        request += more
    return request


def why(between: Proxy) -> Endings:
    """Stop the proxy, and return what `a2a-inspect why` says, by operation and cause."""
    between.stop()
    found: Endings = {}
    for line in inspect(between.state, "why", between.recording, "--json").splitlines():
        each = json.loads(line)
        if ending := each["ending"]:
            key = each.get("operation", "connection"), ending["cause"]
            found.setdefault(key, []).append(ending)
    return found


def only(found: Endings) -> dict[str, Any]:
    """Return the only ending."""
    ((ending,),) = found.values()
    return ending


@pytest.fixture(scope="module", name="sdk1")
def run_agent() -> Iterator[Agent]:
    """Run an agent of the Python SDK for all tests that do not end it."""
    require_peers("sdk1", "js")
    with agent("sdk1") as running:
        yield running


def test_agent_that_is_killed(tmp_path: Path) -> None:
    """The stream is cut, the waiting call gets no answer, and the next call finds no agent. All
    end together after equal silences, which is no time-out."""
    require_peers("sdk1")
    with contextlib.ExitStack() as killed:
        running = killed.enter_context(agent("sdk1"))
        with (
            proxy(tmp_path, running.base_url, running.grpc_target) as between,
            callers(between, ALL) as streaming,
            callers(between, ALL) as waiting,
        ):
            run(streaming, "connect", "stream long")
            run(waiting, "connect", "send unary")
            for each in waiting:
                each.begin("send long")
            _wait_for_tasks(between, 3)
            killed.close()
            assert [each.end()["kind"] for each in waiting] == ["error"] * 3
            assert run(streaming, "wait", "get") == ["error"] * 3
            found = why(between)
    assert {key: len(each) for key, each in found.items()} == {
        ("SendMessage", "no-answer"): 3,
        ("SendStreamingMessage", "stream-ended"): 3,
        ("GetTask", "no-connection"): 3,
    }
    assert all(
        "cut off" in each["summary"] for each in found["SendStreamingMessage", "stream-ended"]
    )
    assert {each["actor"] for each in found["GetTask", "no-connection"]} == {"agent"}
    steps = [each["next_step"] for each in found["GetTask", "no-connection"]]
    assert all(each.startswith("start the agent again") for each in steps)


def _wait_for_tasks(between: Proxy, number: int) -> None:
    """Wait until so many requests of SendMessage have been sent and are not answered."""
    for _ in range(STEP_SECONDS):
        lines = inspect(between.state, "ls", between.recording, "--json").splitlines()
        calls = [json.loads(line) for line in lines]
        if sum(each["operation"] == "SendMessage" and not each["how"] for each in calls) >= number:
            return
    raise AssertionError("the calls are not in the recording")


def test_javascript_client_without_an_agent(tmp_path: Path) -> None:
    require_peers("js")
    with proxy(tmp_path, f"http://127.0.0.1:{refusing_port()}") as between:
        with pytest.raises(RuntimeError, match="the js client failed"):
            asyncio.run(run_client("js", "jsonrpc", ["card"], between.base_url, between.address))
        ending = only(why(between))
    lines = [json.loads(line) for line in between.out]
    shown = [each["ending"] for each in lines if each["event"] == "exchange"]
    assert {each["cause"] for each in shown} == {"no-connection"}
    assert ending["cause"] == "no-connection"
    assert ending["next_step"] == "start the agent; if it runs, correct the port of --upstream"
    assert ending["command"].startswith("a2a-inspect card --probe http://127.0.0.1:")


def test_javascript_client_behind_a_gateway(sdk1: Agent, tmp_path: Path) -> None:
    response = answer("502 Bad Gateway", "<h1>Bad Gateway</h1>")
    gateway = Gateway(sdk1, lambda request: response if request.startswith(b"POST") else None)
    with proxy(tmp_path, gateway.url) as between:
        for binding in HTTP:
            run_js = run_client("js", binding, ["streaming"], between.base_url, between.address)
            asyncio.run(run_js)
        found = why(between)
    assert {each["actor"] for each in found["SendStreamingMessage", "answered-between"]} == {
        "something between"
    }


def test_client_with_a_timeout(sdk1: Agent, tmp_path: Path) -> None:
    """One timer ends calls without an answer and silent streams."""
    with (
        proxy(tmp_path, sdk1.base_url) as between,
        callers(between, HTTP, "--timeout", "1.8") as clients,
    ):
        run(clients, "connect", "send long", "stream long", "wait")
        found = why(between)
    assert set(found) == {
        ("SendMessage", "client-timeout"),
        ("SendStreamingMessage", "client-timeout"),
    }
    endings = [each for both in found.values() for each in both]
    assert {(each["confidence"], each["actor"]) for each in endings} == {("high", "client")}


def test_client_that_crashes(sdk1: Agent, tmp_path: Path) -> None:
    """Right after a frame; the command shows the bytes of that frame."""
    with (
        proxy(tmp_path, sdk1.base_url, sdk1.grpc_target) as between,
        callers(between, ALL) as clients,
    ):
        run(clients, "connect")
        for each in clients:
            run([each], "stream long")
            each.crash()
        found = why(between)
    endings = found["SendStreamingMessage", "client-failed"]
    assert len(endings) == len(ALL)
    words = endings[0]["command"].split()
    assert words[0] == "a2a-inspect"
    assert "on it" in inspect(between.state, *words[1:])


def test_calls_that_hang(sdk1: Agent, tmp_path: Path) -> None:
    """The user stops the proxy while the clients wait; a task that was cancelled is no failure."""
    with (
        proxy(tmp_path, sdk1.base_url, sdk1.grpc_target) as between,
        callers(between, ALL) as clients,
        callers(between, ALL) as others,
    ):
        run(clients, "connect", "stream long", "subscribe")
        run(others, "connect", "stream long", "cancel", "wait")
        found = why(between)
        lines = inspect(between.state, "why", between.recording)
    assert {key: len(each) for key, each in found.items()} == {
        ("SendStreamingMessage", "not-recorded"): 3,
        ("SubscribeToTask", "not-recorded"): 3,
    }
    endings = found["SendStreamingMessage", "not-recorded"]
    assert {each["severity"] for each in endings} == {None}
    assert all("nothing from the agent for" in each["summary"] for each in endings)
    assert all(each["next_step"].startswith("call GetTask for ") for each in endings)
    assert "0 of 18 calls did not end well; open or waiting for an answer: 6" in lines


GATEWAY_ANSWERS = {
    "502": (
        answer("502 Bad Gateway", "<h1>Bad Gateway</h1>"),
        "a page of a gateway with status 502",
    ),
    "504": (answer("504 Time-out", "too late", media="text/plain"), "with status 504"),
    "503": (
        answer("503 Busy", '{"error":"no healthy upstream"}', media="application/json"),
        "with status 503",
    ),
    "login": (answer("302 Found", "", "Location: https://login.example/"), "a redirection to http"),
    "page": (answer("200 OK", "<form>sign in</form>"), "a page of a gateway with status 200"),
}
"""By the text of the message: the answer of a gateway, and words of the ending."""


def test_gateway_answers(sdk1: Agent, tmp_path: Path) -> None:
    def respond(request: bytes) -> bytes | None:
        named = [
            name for name in GATEWAY_ANSWERS if f'"text":"{name}"'.encode() in _packed(request)
        ]
        return GATEWAY_ANSWERS[named[0]][0] if named else None

    with (
        proxy(tmp_path, Gateway(sdk1, respond).url) as between,
        callers(between, HTTP) as clients,
    ):
        run(clients, "connect")
        for each in GATEWAY_ANSWERS:
            assert run(clients, f"send {each}") == ["error", "error"]
        found = why(between)
    assert set(found) == {("SendMessage", "answered-between")}
    endings = found["SendMessage", "answered-between"]
    assert {(each["actor"], each["severity"]) for each in endings} == {
        ("something between", "error")
    }
    for _, words in GATEWAY_ANSWERS.values():
        assert sum(words in each["summary"] for each in endings) == len(HTTP), words


def _packed(request: bytes) -> bytes:
    return request.replace(b": ", b":")


def test_gateway_cuts_what_is_silent(sdk1: Agent, tmp_path: Path) -> None:
    """Streams, and calls that are not answered."""
    with (
        proxy(tmp_path, Gateway(sdk1, idle=1.6).url) as between,
        callers(between, HTTP) as clients,
    ):
        run(clients, "connect", *("stream long", "wait", "send long") * 2)
        found = why(between)
    silent = found["SendStreamingMessage", "idle-timeout"]
    unanswered = found["SendMessage", "no-answer"]
    assert {each["actor"] for each in (*silent, *unanswered)} == {"something between"}
    assert all("a time-out of about 1.6 s" in each["summary"] for each in unanswered)


def test_gateway_with_a_prefix_that_the_card_lacks(sdk1: Agent, tmp_path: Path) -> None:
    """The card's owner must act."""
    missing = answer("404 Not Found", "<h1>no</h1>")

    def route(request: bytes) -> bytes | None:
        return None if request.split()[1].startswith(b"/.well-known") else missing

    gateway = Gateway(sdk1, route)
    with proxy(tmp_path, gateway.url) as between, callers(between, HTTP) as clients:
        assert run(clients, "connect", "send unary") == ["error", "error"]
        found = why(between)
    endings = found["SendMessage", "wrong-url"]
    assert {each["actor"] for each in endings} == {"agent"}
    assert all("supportedInterfaces" in each["summary"] for each in endings)
    assert endings[0]["command"] == f"a2a-inspect card --probe {gateway.url}"


def test_client_with_a_wrong_url(sdk1: Agent, tmp_path: Path) -> None:
    """No card is there; the command finds it."""
    with proxy(tmp_path, sdk1.base_url) as between:
        with callers(between, ("jsonrpc",), base_url=f"{between.base_url}/agent") as clients:
            assert run(clients, "connect") == ["error"]
        ending = only(why(between))
    assert (ending["cause"], ending["actor"]) == ("wrong-url", "client")
    assert ending["severity"] == "warning"
    assert inspect(between.state, *ending["command"].split()[1:]).startswith("http")


def test_api_key(sdk1: Agent, tmp_path: Path) -> None:
    """None, a wrong one, the right one."""
    refused = answer("401 Unauthorized", "who?", "WWW-Authenticate: ApiKey")

    def ask(request: bytes) -> bytes | None:
        is_open = b"x-key: right" in request.lower() or request.startswith(b"GET")
        return None if is_open else refused

    with proxy(tmp_path, Gateway(sdk1, ask).url) as between:
        for words in ((), ("--header", "X-Key: wrong-12345678"), ("--header", "X-Key: right")):
            with callers(between, HTTP, *words) as clients:
                run(clients, "connect", "send unary")
        found = why(between)
    assert {key: len(each) for key, each in found.items()} == {
        ("SendMessage", "no-credentials"): 2,
        ("SendMessage", "credentials-refused"): 2,
    }
    assert {each["actor"] for both in found.values() for each in both} == {"client"}


@pytest.mark.parametrize("tls", ["agent", "proxy", "client"])
def test_tls_on_one_side_only(tls: str, sdk1: Agent, tmp_path: Path) -> None:
    """The agent, the proxy's upstream or the client's URL has TLS, the other side has not."""
    base_url = sdk1.base_url
    with contextlib.ExitStack() as stack:
        if tls == "agent":
            base_url = stack.enter_context(_tls_port())
        elif tls == "proxy":
            base_url = base_url.replace("http:", "https:")
        between = stack.enter_context(proxy(tmp_path, base_url))
        url = between.base_url.replace("http:", "https:") if tls == "client" else ""
        clients = stack.enter_context(callers(between, ("jsonrpc",), base_url=url))
        assert run(clients, "connect") == ["error"]
        ending = only(why(between))
    if tls == "agent":
        assert (ending["cause"], ending["confidence"]) == ("no-answer", "low")
        assert ending["remaining"][0] == "the agent speaks TLS on this port"
        assert f"--upstream {base_url.replace('http:', 'https:')}" in ending["next_step"]
        return
    assert ending["cause"] == "wrong-protocol"
    assert ending["actor"] == ("client" if tls == "client" else "something between")
    assert ("--tls" if tls == "client" else "--upstream http://") in ending["next_step"]


@contextlib.contextmanager
def _tls_port() -> Iterator[str]:
    """Run a port that speaks TLS only, and yield its address as http."""
    context = trustme.CA().issue_cert("127.0.0.1")
    ready, stop = threading.Event(), threading.Event()
    ports: list[int] = []

    async def serve() -> None:
        server_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.configure_cert(server_tls)
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0, ssl=server_tls)
        ports.append(server.sockets[0].getsockname()[1])
        ready.set()
        await asyncio.to_thread(stop.wait)
        server.close()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    ready.wait(STEP_SECONDS)
    try:
        yield f"http://127.0.0.1:{ports[0]}"
    finally:
        stop.set()
        thread.join()


def test_ports_of_grpc_and_http_exchanged(sdk1: Agent, tmp_path: Path) -> None:
    with proxy(tmp_path, f"http://{sdk1.grpc_target}") as between:
        with callers(between, ("jsonrpc",)) as clients:
            assert run(clients, "connect") == ["error"]
        ending = only(why(between))
    assert (ending["cause"], ending["severity"]) == ("wrong-protocol", "error")
    assert f"--upstream-grpc {sdk1.grpc_target}" in ending["next_step"]


def test_port_of_http_for_grpc(sdk1: Agent, tmp_path: Path) -> None:
    with (
        proxy(tmp_path, sdk1.base_url, f"127.0.0.1:{sdk1.http}") as between,
        callers(between, ("grpc",)) as clients,
    ):
        assert run(clients, "connect", "send unary") == ["error"]
        ending = only(why(between))
    assert ending["cause"] == "wrong-protocol"
    assert "--upstream-grpc" in ending["next_step"]


def test_client_that_does_not_trust_the_proxy(sdk1: Agent, tmp_path: Path) -> None:
    """No call exists: the connection has the cause."""
    with proxy(tmp_path, sdk1.base_url, "", "--tls") as between:
        url = f"https://localhost:{between.port}"
        with callers(between, ("jsonrpc",), base_url=url) as clients:
            assert run(clients, "connect") == ["error"]
        ending = only(why(between))
        lines = inspect(between.state, "why", between.recording)
    assert (ending["cause"], ending["actor"]) == ("tls-failed", "client")
    assert "a2a-proxy ca env" in ending["next_step"]
    assert "no call was recorded" in lines
