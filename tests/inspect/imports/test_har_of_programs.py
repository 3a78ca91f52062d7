"""HAR files that mitmproxy and Chromium write of a conversation, compared with the recording of the
same traffic."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from a2a_inspect.commands.import_file import open_import
from a2a_inspect.imports.recording_writer import ImportOptions, write_import
from support_browser import browsing, until_true
from support_cli import until
from support_drive import demo_agent
from support_import import check_equal
from support_proxy import proxy

_MITMDUMP = Path(__file__).parents[3] / ".peers" / "mitmproxy" / "bin" / "mitmdump"
_MESSAGE = {
    "messageId": "m-1",
    "role": "ROLE_USER",
    "parts": [{"text": "Plan a day in Lisboa, às 9"}],
}
_STREAM = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "SendStreamingMessage",
    "params": {"message": _MESSAGE},
}
_UNKNOWN = {"jsonrpc": "2.0", "id": 2, "method": "GetTask", "params": {"id": "no-such-task"}}
_READY = """Promise.all([
    import("/devtools/panels/network/network.js"), import("/devtools/models/logs/logs.js"),
    import("/devtools/models/har/har.js")])
  .then(([network, logs, har]) => Object.assign(window, {log: logs.NetworkLog.NetworkLog, har}))
  .then(() => true)
"""
_FINISHED = (
    "log.instance().requests().filter(each => each.finished && /rpc|card/.test(each.url())).length"
)
_EXPORT = """(async () => {
  let text = "";
  const get = (_, name) => name === "canceled" ? false : () => false;
  const progress = new Proxy({}, {get, set: () => true});
  const stream = {write: async piece => { text += piece; }};
  await har.Writer.Writer.write(stream, log.instance().requests(), {sanitize: false}, progress);
  return text;
})()"""
"""What the export of the network panel calls."""


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A2A_PROXY_STATE", str(tmp_path / "state"))


def post(base: str, body: object) -> bytes:
    """Send a JSON-RPC request and return the whole response."""
    heads = {"Content-Type": "application/json", "A2A-Version": "1.0"}
    request = urllib.request.Request(f"{base}/rpc", json.dumps(body).encode(), heads)
    with urllib.request.urlopen(request, timeout=60) as response:
        data: bytes = response.read()
        return data


@contextlib.contextmanager
def mitmdump(folder: Path, port: int) -> Iterator[int]:
    """Run mitmdump as a reverse proxy; it writes `folder/mitm.har` at its end."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        own = free.getsockname()[1]
    words = [
        "--mode",
        f"reverse:http://127.0.0.1:{port}",
        "--listen-host",
        "127.0.0.1",
        "-p",
        str(own),
    ]
    sets = ["--set", f"hardump={folder}/mitm.har", "--set", f"confdir={folder}/conf"]
    with subprocess.Popen([_MITMDUMP, *words, *sets], stdout=subprocess.DEVNULL) as process:
        try:
            until(lambda: accepts(own))
            yield own
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)


def accepts(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@pytest.mark.soak
@pytest.mark.skipif(
    not _MITMDUMP.exists(), reason="mitmproxy is missing: run `python tests/benchmarks/setup.py`"
)
def test_a_har_of_mitmproxy(tmp_path: Path) -> None:
    """A card, an event stream, a response of REST and an error."""
    with (
        demo_agent() as agent,
        mitmdump(tmp_path, agent.http) as between,
        proxy(
            tmp_path, f"127.0.0.1:{between}", "", "--rewrite-card", "never", "--keep-host"
        ) as recorded,
    ):
        with urllib.request.urlopen(
            f"{recorded.base_url}/.well-known/agent-card.json", timeout=60
        ) as response:
            response.read()
        post(recorded.base_url, _STREAM)
        post(recorded.base_url, _UNKNOWN)
        recorded.stop()
    write_import(open_import(tmp_path / "mitm.har"), tmp_path / "mitm.a2a.db", ImportOptions())
    check_equal(tmp_path / "mitm.a2a.db", recorded.recording)


@pytest.mark.soak
@pytest.mark.peers
async def test_a_har_of_chromium(tmp_path: Path) -> None:
    """A page that calls the agent by `fetch`, saved by the network panel with content."""
    with demo_agent() as agent, proxy(tmp_path, f"127.0.0.1:{agent.http}") as recorded:
        async with browsing("--remote-allow-origins=*", "--disable-web-security") as browser:
            client = await browser.page()
            target = (await browser.ask("Target.getTargets"))["targetInfos"]
            looked_at = next(
                each["targetId"] for each in target if each["type"] == "page" and each["attached"]
            )
            tools = await browser.page()
            front = f"http://{browser.host}/devtools/devtools_app.html"
            await tools.go(f"{front}?ws={browser.host}/devtools/page/{looked_at}&panel=network")
            await tools.run(_READY)

            async def is_attached() -> bool:
                await client.run("fetch('data:,x').then(response => response.text())")
                return bool(await tools.run("log.instance().requests().length"))

            await until_true(is_attached, "the network panel is not attached")
            card = f"{recorded.base_url}/.well-known/agent-card.json"
            await client.run(f"fetch('{card}').then(response => response.text())")
            for body in (_STREAM, _UNKNOWN):
                heads = {"Content-Type": "application/json", "A2A-Version": "1.0"}
                options = {"method": "POST", "headers": heads, "body": json.dumps(body)}
                await client.run(
                    f"fetch('{recorded.base_url}/rpc', "
                    f"{json.dumps(options)}).then(response => response.text())"
                )

            async def all_there() -> bool:
                return bool(await tools.run(_FINISHED) == 3)

            await until_true(all_there, "the network panel lacks calls")
            (tmp_path / "chromium.har").write_text(await tools.run(_EXPORT))
        recorded.stop()
    source = open_import(tmp_path / "chromium.har")
    write_import(source, tmp_path / "chromium.a2a.db", ImportOptions())
    # Chromium does not always list the events of a stream that `fetch` has read.
    has_times = "_eventSourceMessages" in (tmp_path / "chromium.har").read_text()
    assert any("times of single events" in each for each in source.lacks) is not has_times
    check_equal(tmp_path / "chromium.a2a.db", recorded.recording)
