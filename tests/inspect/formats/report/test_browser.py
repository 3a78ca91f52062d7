"""The report in headless Chromium: used by keys with any content, without network requests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from a2a_inspect.commands.export import ExportOptions, export_recording
from support_browser import Browser, Page, browsing, until_true
from support_inspect import MS, changes, exchange, frame, request, status, writer
from support_recording import STARTED, event_frames

pytestmark = pytest.mark.peers
RECORDINGS = Path(__file__).resolve().parents[4] / "recordings"
LOSSY, THREE = RECORDINGS / "lossy.a2a.jsonl", RECORDINGS / "three-agents.a2a.jsonl"
HOSTILE = (
    "</script><script>document.title='owned'</script><img src=http://evil.example/i "
    "onerror=\"document.title='owned'\">"
    "<link rel=stylesheet href=http://evil.example/s><iframe "
    "src=http://evil.example/f></iframe><!--"
)


LANES_IN_SIGHT = """(() => {
  const edge = document.getElementById("diagram").getBoundingClientRect().right;
  return [...document.querySelectorAll("#diagram .lane")].every(
    lane => lane.getBoundingClientRect().right <= edge && lane.scrollWidth <= lane.clientWidth);
})()"""

APART = """(() => {
  const inside = "header > h1, header input, header button, header select";
  const boxes = [...document.querySelectorAll(inside)].map(each => each.getBoundingClientRect());
  const apart = (a, b) =>
    a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
  return boxes.every((a, number) =>
    a.left >= 0 && a.right <= innerWidth && a.height < 48 &&
    boxes.slice(number + 1).every(b => apart(a, b)));
})()"""


class Reader:
    """Somebody who reads the report."""

    def __init__(self, page: Page) -> None:
        self.page = page

    async def opens(self, path: Path, place: str = "") -> float:
        """Seconds until what was asked for is there."""
        began = time.monotonic()
        await self.page.go(f"{path.as_uri()}{place}")
        await until_true(
            lambda: self.page.run("document.documentElement.dataset.ready === 'yes'"),
            "it did not open",
        )
        return time.monotonic() - began

    async def sees(self, *words: str, where: str = "main") -> None:
        async def there() -> bool:
            text = await self.page.run(f"document.querySelector('{where}')?.innerText ?? ''")
            return all(word in text for word in words)

        await until_true(there, f"{words} did not come")

    async def finds(self, number: int, what: str) -> None:
        """Wait until there are so many of it."""

        async def there() -> bool:
            return bool(await self.counts(what) == number)

        await until_true(there, f"there are not {number} of {what}")

    async def counts(self, what: str) -> Any:
        return await self.page.run(f"document.querySelectorAll('{what}').length")


@asynccontextmanager
async def cut_off() -> AsyncIterator[tuple[Browser, list[str]]]:
    """A browser for which every name is a port of this machine, and who came there."""
    came: list[str] = []

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.append((await reader.readline()).decode("latin-1"))
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(hear, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with browsing(f"--host-resolver-rules=MAP * 127.0.0.1:{port}") as browser:
        yield browser, came
    server.close()


def report(recording: Path, folder: Path) -> Path:
    target = folder / f"{recording.stem}.html"
    export_recording(ExportOptions(recording), target, "html")
    return target


def hostile(path: Path) -> Path:
    """A peer that tries."""
    made = writer(path)
    call = exchange(1, operation=HOSTILE, request_headers=((b"X", HOSTILE.encode()),))
    texts = [
        request(1, HOSTILE),
        status(1, 1, HOSTILE),
        frame(1, 2, HOSTILE.encode(), schema="text"),
    ]
    made.write(texts, changes=changes(call))
    made.finish(STARTED + 10_000 * MS)
    return path


async def test_the_report_is_used_by_keys_without_network_requests(tmp_path: Path) -> None:
    """To a finding and its rule, to a payload by a search, onto paper; then a peer that would have
    it otherwise."""
    async with cut_off() as (browser, came):
        page = await browser.page()
        await page.resize(1400, 900)
        reader = Reader(page)
        await reader.opens(report(LOSSY, tmp_path))
        await reader.sees(
            "6 conversations, 9 exchanges, 38 frames, 4 tasks, 2 findings",
            "A2A-GEN-001 Generation gap",
        )
        await reader.sees("#8.4", "generation 4 is missing: 3 is followed by 5")
        await reader.sees(
            "first event: p50", "SendStreamingMessage", "455 ms", "1 exchange ended in an error"
        )
        await reader.sees(
            "submitted > working > completed", "751 ms", "plan (3 chunks, 211 B, complete)"
        )
        await reader.sees("TASK_NOT_FOUND 404", "there is no such task")
        await reader.finds(13, "main .grid tbody tr")
        await page.run("document.getElementById('talks').focus()")
        await page.press(*"jjjjjj", "Enter")
        await reader.sees(
            "generations 1-3 5-6, 4 missed on #8, healed by #9 GetTask at generation 6",
            "status completed",
        )
        await reader.sees("#8.4", "A2A-GEN-001", "#9.1", "A2A-ART-006", where="main > .found")
        await page.run("document.getElementById('diagram').focus()")
        await page.press("e")
        words = "A2A-GEN-001", "generation 4 is missing: 3 is followed by 5", "specification:"
        await reader.sees(*words, where=".detail")
        chosen = (
            "document.getElementById("
            "document.getElementById('diagram').getAttribute('aria-activedescendant'))"
        )
        await until_true(
            lambda: page.run(f"{chosen}?.getAttribute('aria-selected') === 'true'"),
            "no row is chosen",
        )
        assert "A2A-GEN-001" in await page.run(f"{chosen}.getAttribute('aria-label')")
        await page.run("dispatchEvent(new Event('beforeprint'))")
        await reader.finds(12, ".printed .row")
        await page.press("/", *"CUSTARD", "Enter")
        await reader.sees("Search: CUSTARD", "4 places", "#2.4", "#9.1")
        assert (await page.run("document.querySelector('main mark').textContent")) == "custard"
        await page.run("document.querySelector('main li a').click()")
        await reader.sees("Payload", "artifactUpdate", where=".detail")

        await page.run("void (location.hash = '#8.3')")
        await reader.sees("frame #8.3", where=".detail")
        await page.run(
            "document.querySelectorAll('.task details').forEach(each => { each.open = true; })"
        )
        await reader.finds(2, '.task .facts a[href^="#1:"]')
        await page.run("void document.querySelector('.task .facts a[href$=\":9\"]').click()")
        await reader.sees("frame #9.0", where=".detail")
        await page.run("void (location.hash = '#77')")
        await reader.sees("#77 is not in this report", "Overview", "1 exchange ended in an error")
        await page.run("void document.querySelector('main .grid a').click()")
        await reader.sees("frame #2.0", where=".detail")
        await page.resize(360, 740)
        await until_true(lambda: page.run(APART), "the head overlaps on a telephone")
        await page.resize(1400, 900)

        await reader.opens(report(THREE, tmp_path), "#t0")
        await reader.sees(
            "task concierge-task", "task railway-task", "hand-off to", "delegation by traceparent"
        )
        await reader.finds(4, "#diagram .head .lane")
        await reader.finds(2, "#diagram .row.handoff")
        for width in (1280, 800):
            await page.resize(width, 900)
            await until_true(
                lambda: page.run(LANES_IN_SIGHT), f"a lane's name is cut at a width of {width}"
            )

        await reader.opens(report(hostile(tmp_path / "hostile.db"), tmp_path))
        await reader.sees("<iframe src=http://evil.example/f>", "Payload")
        assert await page.run("document.title") == "hostile.db - A2A report"
        assert (
            await reader.counts(
                "img, iframe, object, embed, link:not([rel=icon]), script:not([type]) + script"
            )
            == 0
        )

        assert {each.partition(":")[0] for each in page.requests} <= {"file", "data"}
        assert not page.log
        assert not came
        await page.ask("Page.navigate", url="http://evil.example/")
        assert came, "nobody would have been heard"


@pytest.mark.soak
@pytest.mark.parametrize("per_exchange", [20, 100_000])
async def test_100_000_frames_open_in_three_seconds(per_exchange: int, tmp_path: Path) -> None:
    """As thousands of conversations, and as one."""
    path = tmp_path / "large.db"
    made = writer(path)
    frames = event_frames(100_000, per_exchange=per_exchange)
    for first in range(0, len(frames), 1000):
        some = frames[first : first + 1000]
        calls = {each.exchange: exchange(each.exchange, task_id=each.task_id) for each in some}
        made.write(some, changes=changes(*calls.values()))
    made.finish(STARTED + 1_000_000 * MS)
    target = report(path, tmp_path)
    async with browsing() as browser:
        page = await browser.page()
        reader = Reader(page)
        took = await reader.opens(target, "#t0")
        await reader.sees("#1.0")
        print(f"{target.stat().st_size} bytes open in {took:.2f} s")
        assert took < 3
        await page.run(
            "void page.view.list.choose(1e9)"
        )  # the protocol does not hold on to a promise of the page
        await reader.sees(f"#1.{per_exchange - 1}")
