"""The screen in a browser: accepted requests, tabs, and shutdown."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from a2a_inspect.web import page, tab
from a2a_inspect.web.gate import RequestGate, new_token
from a2a_inspect.web.server import WebServer, open_listener
from a2a_proxy.installation import install_hint
from a2a_proxy.model.errors import UserError
from support_cli import SECONDS, environment, program, run, until, until_dead
from support_inspect import sample

TOKEN = "the-secret-of-this-run"
ECHO = """
import os, sys
os.write(1, b"__GANGLION__\\n")
while data := os.read(0, 4096):
    os.write(1, b"D" + len(data).to_bytes(4, "big") + data)
"""
"""Shows every packet as it came."""


class Served:
    """A running server, and a client that says it is whatever a test wants."""

    def __init__(self, port: int, client: aiohttp.ClientSession) -> None:
        self.port = port
        self.client = client
        self.own = f"http://127.0.0.1:{port}"

    async def get(self, path: str = f"/{TOKEN}/", **headers: str) -> tuple[int, str]:
        """Status and text."""
        async with self.client.get(self.own + path, headers=_named(headers)) as answer:
            return answer.status, await answer.text()

    async def refusal(self, path: str = f"/{TOKEN}/ws", **headers: str) -> int:
        """The status with which a websocket is refused."""
        with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
            await self.client.ws_connect(self.own + path, headers=_named(headers))
        return caught.value.status

    async def open(self, size: str = "width=80&height=24") -> aiohttp.ClientWebSocketResponse:
        """A websocket as the own page opens it."""
        return await self.client.ws_connect(f"{self.own}/{TOKEN}/ws?{size}", origin=self.own)


def _named(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


@asynccontextmanager
async def serving(*run: str) -> AsyncIterator[Served]:
    listener = open_listener(0)
    port = listener.getsockname()[1]
    server = WebServer(
        "a.db", list(run) or [sys.executable, "-c", ECHO], RequestGate(TOKEN, port), TOKEN
    )
    runner = web.AppRunner(server.make_application(), access_log=None)
    await runner.setup()
    await web.SockSite(runner, listener).start()
    try:
        async with aiohttp.ClientSession() as client:
            yield Served(port, client)
    finally:
        await runner.cleanup()


async def until_received(socket: aiohttp.ClientWebSocketResponse, words: bytes) -> bytes:
    """What came until these words were in it."""
    got = b""
    while words not in got:
        message = await socket.receive(SECONDS)
        assert message.type is aiohttp.WSMsgType.BINARY, (message, got)
        got += message.data
    return got


async def test_the_own_page_is_accepted() -> None:
    """Page, terminal files and websocket, with nothing that comes from elsewhere and nothing that
    is kept."""
    async with serving() as served:
        status, text = await served.get()
        assert status == 200
        assert f'"ws://127.0.0.1:{served.port}/{TOKEN}/ws"' in text
        assert "http:" not in text
        assert "https:" not in text
        for name in ("page.css", "page.js", *(f"static/{name}" for name in page.FILE_TYPES)):
            async with served.client.get(f"{served.own}/{TOKEN}/{name}") as answer:
                assert answer.status == 200
                assert answer.headers["Cache-Control"] == "no-store"
        for other in (
            "static/js/other.js",
            "static/%2e%2e/server.py",
            "static/js/..%2f..%2fserver.py",
        ):
            assert (await served.get(f"/{TOKEN}/{other}"))[0] == 404
        async with await served.open() as socket:
            await socket.send_str('["stdin", "j"]')
            assert await until_received(socket, b"j") == b"D\0\0\0\1j"


async def test_headers_forbid_foreign_content() -> None:
    """Also of a refusal."""
    async with serving() as served:
        for path in (f"/{TOKEN}/", "/"):
            async with served.client.get(served.own + path) as answer:
                policy = dict(
                    part.split(" ", 1)
                    for part in answer.headers["Content-Security-Policy"].split("; ")
                )
                assert policy["default-src"] == "'none'"
                assert policy["script-src"] == "'self'"
                assert policy["connect-src"] == f"'self' ws://127.0.0.1:{served.port}"
                assert policy["frame-ancestors"] == "'none'"
                assert answer.headers["Referrer-Policy"] == "no-referrer"
                assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    ("path", "headers", "says"),
    [
        ("/", {}, "lacks the secret"),
        ("/ws", {"Origin": "http://127.0.0.1:{port}"}, "lacks the secret"),
        ("/wrong/", {}, "lacks the secret"),
        (f"/{TOKEN[:-1]}/", {}, "lacks the secret"),
        (f"/{TOKEN}x/", {}, "lacks the secret"),
        (f"//{TOKEN}/", {}, "lacks the secret"),
        ("/%C3%A9/", {}, "lacks the secret"),
        (f"/{TOKEN}/", {"Host": "evil.example"}, "accepts only requests to 127.0.0.1"),
        (f"/{TOKEN}/", {"Host": "evil.example:{port}"}, "accepts only requests to 127.0.0.1"),
        (
            f"/{TOKEN}/",
            {"Host": "127.0.0.1.evil.example:{port}"},
            "accepts only requests to 127.0.0.1",
        ),
        (f"/{TOKEN}/", {"Host": "127.0.0.1:1"}, "accepts only requests to 127.0.0.1"),
        (f"/{TOKEN}/", {"Host": ""}, "accepts only requests to 127.0.0.1"),
        (f"/{TOKEN}/", {"Origin": "http://evil.example"}, "another origin"),
        (f"/{TOKEN}/", {"Origin": "null"}, "another origin"),
        (f"/{TOKEN}/", {"Origin": "http://127.0.0.1:1"}, "another origin"),
        (f"/{TOKEN}/", {"Origin": "https://127.0.0.1:{port}"}, "another origin"),
        (f"/{TOKEN}/", {"Origin": "http://localhost:{port}"}, "another origin"),
        (f"/{TOKEN}/", {"Sec_Fetch_Site": "cross-site"}, "another site"),
        (f"/{TOKEN}/", {"Sec_Fetch_Site": "same-site"}, "another site"),
    ],
)
async def test_other_requests_are_refused(path: str, headers: dict[str, str], says: str) -> None:
    """403 with a sentence, for pages and websockets; the answer does not depend on the token."""
    async with serving() as served:
        named = {name: value.format(port=served.port) for name, value in headers.items()}
        status, text = await served.get(path, **named)
        assert (status, says in text) == (403, True), text
        assert await served.refusal(path, **{"Origin": served.own, **named}) == 403


@pytest.mark.parametrize("origin", [{}, {"Origin": "http://evil.example"}, {"Origin": "file://"}])
async def test_a_websocket_of_another_page_is_refused(origin: dict[str, str]) -> None:
    """Also one without an Origin header, which browsers always send."""
    async with serving() as served:
        assert await served.refusal(**origin) == 403
        assert await served.refusal(Host="evil.example", Origin="http://evil.example") == 403


async def test_localhost_is_an_accepted_host() -> None:
    """A tunnel ends there; the page then speaks to the name that it was asked by."""
    async with serving() as served:
        status, text = await served.get(Host=f"localhost:{served.port}")
        assert status == 200
        assert f'"ws://localhost:{served.port}/{TOKEN}/ws"' in text


def test_a_browser_leaves_the_port_of_http_away() -> None:
    """Then as well it is our name."""
    gate = RequestGate(TOKEN, 80)
    for host in ("127.0.0.1", "localhost:80"):
        assert not gate.refusal_reason(
            {"Host": host, "Origin": f"http://{host}"}, f"/{TOKEN}/ws", websocket=True
        )


def test_every_run_has_its_own_secret() -> None:
    """256 bits of it."""
    assert len({new_token() for _ in range(100)}) == 100
    assert len(new_token()) >= 43


async def test_the_number_of_tabs_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is a process; closing one makes room."""
    monkeypatch.setattr("a2a_inspect.web.server.MAX_TABS", 1)
    async with serving() as served:
        async with await served.open() as socket:
            await socket.send_str('["focus"]')
            await until_received(socket, b"focus")
            assert await served.refusal(Origin=served.own) == 503
        again = await _once_there_is_room(served)
        await again.close()


async def _once_there_is_room(served: Served) -> aiohttp.ClientWebSocketResponse:
    async with asyncio.timeout(SECONDS):
        while True:
            try:
                return await served.open()
            except aiohttp.WSServerHandshakeError:
                await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("message", "sent"),
    [
        ('["stdin", "\\u00e4"]', b"D\0\0\0\2\xc3\xa4"),
        (
            '["resize", {"width": 100, "height": 30}]',
            b'M\0\0\0){"type":"resize","width":100,"height":30}',
        ),
        ('["resize", {"width": 1e9, "height": 30}]', b""),
        (
            '["resize", {"width": 1000000, "height": -1}]',
            b'M\0\0\0){"type":"resize","width":1000,"height":1}',
        ),
        ('["focus"]', b'M\0\0\0\x10{"type":"focus"}'),
        ('["quit"]', b""),
        ('["deliver_chunk_request", {"key": "x"}]', b""),
        ('["stdin", 1]', b""),
        ('["stdin"]', b""),
        ("[]", b""),
        ("{}", b""),
        ("", b""),
        ('["stdin", "\\ud800"]', b""),
    ],
)
def test_messages_of_a_page_are_validated(message: str, sent: bytes) -> None:
    """Keys, sizes and focus; all else is nothing."""
    assert tab.packet_from_message(message) == sent


async def test_a_tab_that_does_not_stop_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process is gone when `stop` returns."""
    monkeypatch.setattr("a2a_inspect.web.tab._STOP_TIMEOUT", 0.1)
    stubborn = "import time, signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    made = await tab.Tab.start([sys.executable, "-c", stubborn], 80, 24)
    await made.stop()
    assert made._process.returncode == -signal.SIGKILL


async def test_a_tab_shows_the_recording_and_ends_with_its_application(tmp_path: Path) -> None:
    """The real application: its first picture comes, keys reach it, `q` ends it and with it the
    websocket."""
    command = tab.tab_command(str(sample(tmp_path / "r.db")), write=False)
    async with serving(*command) as served, await served.open() as socket:
        await until_received(socket, b"SendStreamingMessage")
        await socket.send_str('["stdin", "q"]')
        while (message := await socket.receive(SECONDS)).type is aiohttp.WSMsgType.BINARY:
            pass
        assert message.type is aiohttp.WSMsgType.CLOSE


def test_a_tab_ends_with_its_server(tmp_path: Path) -> None:
    """The end of its input is enough."""
    command = tab.tab_command(str(sample(tmp_path / "r.db")), write=False)
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env=environment(tmp_path / "state"),
    )
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(SECONDS) == 0


def test_the_command_serves_and_ends_with_its_tabs(tmp_path: Path) -> None:
    """It says where, answers there, and on Ctrl-C nothing of it is left."""
    words = [program("a2a-inspect"), str(sample(tmp_path / "r.db")), "--web"]
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, text=True, env=environment(tmp_path / "state")
    )
    assert process.stdout is not None
    address = process.stdout.readline().split()[-1]
    child = asyncio.run(_open_a_tab(address, process.pid))
    process.send_signal(signal.SIGINT)
    assert process.wait(SECONDS) == 0
    until_dead(child)


async def _open_a_tab(address: str, server: int) -> int:
    """The process of a tab that is left open."""
    origin = address.rsplit("/", 2)[0]
    async with aiohttp.ClientSession() as client:
        socket = await client.ws_connect(f"{address}ws", origin=origin)
        await until_received(socket, b"SendStreamingMessage")
        children = Path(f"/proc/{server}/task/{server}/children")
        return int(until(lambda: children.read_text().split())[0])


def test_a_port_in_use_is_an_error(tmp_path: Path) -> None:
    """With what to do."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ran = run(tmp_path, "a2a-inspect", sample(tmp_path / "r.db"), "--web", "--port", port)
    assert ran.code == 2
    assert f"error: port {port} cannot be used: address already in use" in ran.err
    assert "hint: choose another port" in ran.err


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error like any other."""
    nothing: Callable[[str], None] = lambda _: None  # noqa: E731
    monkeypatch.setattr("importlib.util.find_spec", nothing)
    with pytest.raises(UserError) as caught:
        page.terminal_files()
    assert caught.value.hint == install_hint("web")


def test_web_options_require_web(tmp_path: Path) -> None:
    """Alone they mean nothing."""
    ran = run(tmp_path, "a2a-inspect", sample(tmp_path / "r.db"), "--write")
    assert ran.code == 2
    assert "--port and --write require --web" in ran.err
