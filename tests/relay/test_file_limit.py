"""The limit of open files, in processes of their own: tests/e2e/test_limits.py does the same with a
proxy."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from a2a_proxy import relay
from a2a_proxy.relay.edits import edit
from a2a_proxy.relay.edits.edit import CardOutcome
from a2a_proxy.relay.listener_state import EditPolicy, ListenerState
from a2a_proxy.relay.route import Listen, Route, Upstream

RAISING = """
import os, resource
from a2a_proxy.relay.file_limit import (
    file_limit_note, is_file_limit, raise_file_limit, require_file_limit
)

resource.setrlimit(resource.RLIMIT_NOFILE, (20, 80))
require_file_limit()
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (80, 80)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 80))
require_file_limit()
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (64, 80)
raise_file_limit()
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (80, 80)
assert "the limit is 80" in file_limit_note().text
try:
    while True:
        os.open(os.devnull, os.O_RDONLY)
except OSError as error:
    assert is_file_limit(error)
assert not is_file_limit(ConnectionRefusedError(111, "refused"))
resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))
try:
    require_file_limit()
except OSError as error:
    assert is_file_limit(error) and "20, 64 are needed" in str(error)
else:
    raise AssertionError
"""
ACCEPTING = """
import asyncio, contextlib, os, resource, socket, sys
from support_relay import forwarding

async def ask(client, request):
    await asyncio.get_running_loop().sock_sendall(client, request)
    return await asyncio.get_running_loop().sock_recv(client, 100)

async def main():
    async with forwarding() as bench:
        clients = [socket.create_connection(("127.0.0.1", bench.port)) for _ in range(50)]
        for client in clients:
            client.setblocking(False)
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (300, limits[1]))
        files = [os.open(os.devnull, os.O_RDONLY) for _ in clients]
        with contextlib.suppress(OSError):
            while True:
                os.open(os.devnull, os.O_RDONLY)
        for each in files:
            os.close(each)
        async with asyncio.timeout(60):
            asking = (ask(client, sys.argv[1].encode()) for client in clients)
            answers = await asyncio.gather(*asking)
        print({answer.partition(b"\\r\\n")[0].decode() for answer in answers})
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)

asyncio.run(main())
"""
LOADED = """
import asyncio, sys, tempfile
from pathlib import Path
from a2a_proxy.faults.live import parse_live_fault
from a2a_proxy.faults.plan import FaultPlan
from a2a_proxy.relay.clock import session_clock
from a2a_proxy.relay.edits.edit import ConsoleNote
from a2a_proxy.relay.listener_state import EditPolicy
from a2a_proxy.relay.route import Listen, Route, Upstream
from a2a_proxy.relay.server import Relay
from a2a_proxy.relay.upstream_proxy import UpstreamProxy
from a2a_proxy.relay.webhooks.registry import WebhookRegistry
from a2a_proxy.relay.webhooks.service import WebhookService

class NoJournal:
    def append(self, *_):
        pass

async def main():
    editing = EditPolicy(faults=FaultPlan([parse_live_fault("stall 1s before 2 of *")]))
    routes = [Route(Listen.parse(":0"), Upstream.parse("127.0.0.1:1"))]
    proxy = UpstreamProxy.parse("proxy:3128")
    relay = Relay(routes, session_clock(), editing, print, [Listen.parse(":0")], proxy=proxy)
    registry = WebhookRegistry(Path(tempfile.mkdtemp()), lambda: 0.0)
    relay.take_deliveries(WebhookService(Listen.parse(":0"), "", registry))
    await relay.bind_listeners()
    relay.accept_connections(NoJournal())
    print(*sys.modules)
    await relay.stop()

asyncio.run(main())
"""
LATER = {"uvloop", "a2a_proto"}
"""Modules that are loaded before there is a relay, and one that takes a second and may fail."""


def run(script: str, *arguments: str) -> str:
    """Return the output of a process that imports from this folder's parent."""
    line = [sys.executable, "-c", script, *arguments]
    folder = Path(__file__).parents[1]
    done = subprocess.run(
        line, cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stderr == ""
    return done.stdout


def test_the_limit_is_raised_and_recognised() -> None:
    run(RAISING)


@pytest.mark.parametrize(
    ("request_line", "answer"),
    [
        ("GET http://127.0.0.1:1/ HTTP/1.1", "HTTP/1.1 502 Bad Gateway"),
        ("CONNECT 127.0.0.1:1 HTTP/1.1", "HTTP/1.1 502 Bad Gateway"),
        ("GET / HTTP/1.1", "HTTP/1.1 400 Bad Request"),
    ],
)
def test_clients_are_answered_without_descriptors(request_line: str, answer: str) -> None:
    """Although they are the first ones, nothing has to be loaded for them."""
    assert run(ACCEPTING, f"{request_line}\r\nHost: a\r\n\r\n") == f"{{{answer!r}}}\n"


def test_all_modules_are_loaded_at_the_start() -> None:
    """Those that functions of the relay import, because a function may run when no module can be
    loaded."""
    loaded = set(run(LOADED).split())
    functions = [
        (path, node)
        for path in Path(relay.__path__[0]).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    imports = [
        (path, node.module if isinstance(node, ast.ImportFrom) else node.names[0].name)
        for path, function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert len(imports) > 10
    assert [found for found in imports if found[1] not in loaded | LATER] == []


def test_a_card_that_needs_a_module_that_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """It stays as it is, and a line says so."""
    notes: list[edit.ConsoleNote] = []
    route = Route(Listen.parse(":0"), Upstream.parse("127.0.0.1:1"))

    def fail(*_: object, **__: object) -> CardOutcome:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("a2a_proxy.relay.listener_state.rewrite_card_urls", fail)
    listener = ListenerState(
        route, EditPolicy(), notes.append, lambda *_: None, lambda *_: False, loopback=True
    )
    assert listener._rewrite_card(False, b"", "lf.a2a.v1", "").payload is None
    assert "Too many open files" in notes[0].text
    assert "ulimit" in notes[0].hint
