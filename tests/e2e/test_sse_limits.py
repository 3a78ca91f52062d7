"""The event streams that A2A-SSE-016 names are not read by the SDKs that it names: each is sent to
their clients."""

from __future__ import annotations

import http.server
import json
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from support_peers import ENVIRONMENTS, NODE24, require_peers

pytestmark = pytest.mark.peers

EVENTS = 3
_PYTHON = """
import asyncio, sys, httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
{imports}

async def main():
    count = 0
    async with httpx.AsyncClient(timeout=60) as http:
        card = await A2ACardResolver(http, sys.argv[1]).get_agent_card()
        client = ClientFactory(ClientConfig(httpx_client=http)).create(card)
        try:
            async for _ in client.send_message({message}):
                count += 1
        except Exception:
            pass
    print(count)

asyncio.run(main())
"""
_CLIENTS = {
    "sdk1": _PYTHON.format(
        imports="from a2a.types import Message, Part, Role, SendMessageRequest",
        message="SendMessageRequest(message=Message("
        "message_id='m1', role=Role.ROLE_USER, parts=[Part(text='hi')]))",
    ),
    "sdk03": _PYTHON.format(
        imports="from a2a.types import Message, Part, Role, TextPart",
        message="Message(message_id='m1', role=Role.user, parts=[Part(root=TextPart(text='hi'))])",
    ),
}
_JAVASCRIPT = """
import { ClientFactory } from '@a2a-js/sdk/client';
const client = await new ClientFactory().createFromUrl(process.env.AGENT);
const message = process.env.OLD
  ? { kind: 'message', messageId: 'm1', role: 'user', parts: [{ kind: 'text', text: 'hi' }] }
  : { messageId: 'm1', role: 1, parts: [{ content: { $case: 'text', value: 'hi' } }],
      contextId: '', taskId: '', extensions: [], referenceTaskIds: [] };
let count = 0;
try {
  for await (const _ of client.sendMessageStream({ message, tenant: '' })) count++;
} catch {}
console.log(count);
"""
_IDS = {"taskId": "t1", "contextId": "c1"}


def _results(text: str, *, is_old: bool) -> list[dict[str, Any]]:
    """The events of a task with an artifact."""
    artifact = {
        "artifactId": "a1",
        "parts": [{"text": text} | ({"kind": "text"} if is_old else {})],
    }
    task = {"id": "t1", "contextId": "c1"}
    if is_old:
        return [
            task | {"kind": "task", "status": {"state": "submitted"}},
            _IDS | {"kind": "artifact-update", "artifact": artifact},
            _IDS | {"kind": "status-update", "status": {"state": "completed"}, "final": True},
        ]
    return [
        {"task": task | {"status": {"state": "TASK_STATE_SUBMITTED"}}},
        {"artifactUpdate": _IDS | {"artifact": artifact}},
        {"statusUpdate": _IDS | {"status": {"state": "TASK_STATE_COMPLETED"}}},
    ]


def _body(form: str, request: Any, *, is_old: bool) -> bytes:
    text = {"large": "x" * (5 << 20), "separator": "a\u2028b"}.get(form, "hello")
    end, indent = "\r" if form == "CR" else "\n", 1 if form == "lines" else None
    body = "\ufeff" if form == "BOM" else ""
    for result in _results(text, is_old=is_old):
        value = {"jsonrpc": "2.0", "id": request["id"], "result": result}
        lines = json.dumps(value, ensure_ascii=False, indent=indent).split("\n")
        body += "".join(f"data: {line}{end}" for line in lines) + end
    return body.encode()


class _Agent(http.server.BaseHTTPRequestHandler):
    """An agent at `/VERSION/FORM/`, which sends its stream in that form."""

    def log_message(self, *_: Any) -> None:
        pass

    def _answer(self, media: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", media)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        _, version, form, *_ = self.path.split("/")
        url = f"http://{self.headers['Host']}/{version}/{form}/"
        card: dict[str, Any] = {"name": "x", "description": "x", "version": "1", "skills": []}
        card |= {"capabilities": {"streaming": True}}
        card |= {"defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"]}
        one = {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        old = {"url": url, "preferredTransport": "JSONRPC", "protocolVersion": "0.3.0"}
        card |= old if version == "0.3" else {"supportedInterfaces": [one]}
        self._answer("application/json", json.dumps(card).encode())

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        _, version, form, *_ = self.path.split("/")
        self._answer("text/event-stream", _body(form, request, is_old=version == "0.3"))


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Agent)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client that gives up
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def _count_events(kind: str, url: str) -> int:
    """Return how many events the client of this kind gets."""
    require_peers(kind)
    folder, env = ENVIRONMENTS / kind, {"AGENT": url}
    if kind in _CLIENTS:
        line = [str(folder / "bin" / "python"), "-c", _CLIENTS[kind], url]
    else:
        require_peers("node24")
        line = [str(NODE24), "--input-type=module", "-e", _JAVASCRIPT]
        env |= {"OLD": "1"} if kind == "js03" else {}
    done = subprocess.run(line, capture_output=True, text=True, cwd=folder, env=env, check=True)
    return int(done.stdout)


@pytest.mark.parametrize(
    ("kind", "unread"),
    [
        ("sdk1", {"BOM", "separator"}),
        ("sdk03", {"BOM"}),
        ("js", {"CR", "large"}),
        ("js03", {"CR", "lines"}),
    ],
)
def test_each_form_is_lost_where_the_rule_says_so(kind: str, unread: set[str], origin: str) -> None:
    version = "0.3" if kind in ("sdk03", "js03") else "1.0"
    for form in ("plain", "CR", "lines", "large", "BOM", "separator"):
        is_read = _count_events(kind, f"{origin}/{version}/{form}/") == EVENTS
        assert is_read is (form not in unread), form
