"""HAR files imported into the network panel of Chromium's developer tools."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from a2a_inspect.formats.chosen import ExportSelection
from a2a_inspect.formats.har import write_har
from a2a_proxy.model.values import FrameKind
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from support_browser import browsing, until_true

pytestmark = [pytest.mark.soak, pytest.mark.peers]
SAMPLES = sorted((Path(__file__).parents[3] / "recordings").glob("*.a2a.jsonl"))
READY = """Promise.all([
    import("/devtools/panels/network/network.js"), import("/devtools/models/logs/logs.js")])
  .then(([network, logs]) => Object.assign(window, {
    panel: network.NetworkPanel.NetworkPanel, log: logs.NetworkLog.NetworkLog,
  })).then(() => true)
"""
IMPORT = """(async text => {
  log.instance().reset(true);
  await panel.instance().networkLogView.onLoadFromFile(new File([text], "story.har"));
  return Promise.all(log.instance().requests().map(async request => ({
    url: request.url(), method: request.requestMethod, status: request.statusCode,
    type: request.resourceType().name(), took: request.duration * 1000, size: request.transferSize,
    asked: await request.requestFormData(),
  })));
})"""
EVENTS = "log.instance().requests().map(request => request.eventSourceMessages().length)"
_EVENTS = (FrameKind.EVENT, FrameKind.ERROR)


async def test_the_network_panel_shows_every_call() -> None:
    """As a fetch with its method, status, time and size; an event stream event by event."""
    async with browsing("--remote-allow-origins=*") as browser:
        looked_at = (await browser.ask("Target.createTarget", url="about:blank"))["targetId"]
        page = await browser.page()
        tools = f"http://{browser.host}/devtools/devtools_app.html"
        await page.go(f"{tools}?ws={browser.host}/devtools/page/{looked_at}&panel=network")
        await page.run(READY)
        for path in SAMPLES:
            text, events = exported(path)
            rows = await page.run(f"{IMPORT}({json.dumps(text)})")
            entries = json.loads(text)["log"]["entries"]
            assert len(rows) == len(entries) > 0
            for row, entry in zip(rows, entries, strict=True):
                check(row, entry)

            async def all_there(wanted: list[int] = events) -> bool:
                return bool(await page.run(EVENTS) == wanted)

            await until_true(
                all_there, f"{path.name}: the events differ"
            )  # they are read after the rows are there


def exported(path: Path) -> tuple[str, list[int]]:
    """The file, and how many events each call's event stream has."""
    stream = io.BytesIO()
    with open_recording_or_cassette(path) as recording:
        write_har(ExportSelection(recording), stream)
        events = [
            sum(each.frame.kind in _EVENTS for each in recording.read_frames(row.key))
            if b"text/event-stream" in dict(row.exchange.response_headers).get(b"Content-Type", b"")
            else 0
            for row in recording.read_exchanges()
        ]
    return stream.getvalue().decode(), events


def check(row: dict[str, Any], entry: dict[str, Any]) -> None:
    request, response = entry["request"], entry["response"]
    assert (row["url"], row["method"], row["status"]) == (
        request["url"],
        request["method"],
        response["status"],
    )
    assert (row["type"], row["size"]) == ("fetch", response["content"]["size"])
    assert row["took"] == pytest.approx(entry["time"], abs=0.01)
    assert (row["asked"] or "") == request.get("postData", {}).get("text", "")
