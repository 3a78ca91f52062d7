"""The screen in headless Chromium, through the real server: operated by keys, and unreachable for a
page of another origin."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from a2a_proxy.recording.cassette.file import read_cassette
from support_browser import Page, browsing, until, until_true
from support_cli import SECONDS, environment, program
from support_scenes import SAMPLES

pytestmark = pytest.mark.peers
SPY = "navigator.clipboard.writeText = async text => { window.copied = text; }"


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Serve the screen read-only and return its address."""
    path = tmp_path / "demo.a2a.db"
    read_cassette(SAMPLES / "lossy.a2a.jsonl", path)
    words = [program("a2a-inspect"), str(path), "--web"]
    process = subprocess.Popen(
        words,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(tmp_path, A2A_PROXY_CONFIG=str(tmp_path)),
    )
    assert process.stdout is not None
    yield process.stdout.readline().split()[-1]
    process.send_signal(signal.SIGINT)
    assert process.wait(SECONDS) == 0


class Person:
    """A user of the browser."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._read = 0

    async def sees(self, *words: str) -> None:
        """Wait until the text drawn since the last call contains all of these words. Only changes
        are drawn."""
        await until(lambda: all(word in self._drawn() for word in words), f"{words} did not come")
        self._read = len(self._page.received)

    def _drawn(self) -> str:
        return b"".join(self._page.received[self._read :]).decode("utf-8", "replace")

    async def types(self, *keys: str) -> None:
        await self._page.press(*keys)


async def differs(page: Page, before: bytes) -> bool:
    """Wait until the picture differs: it is drawn some time after the data was received."""
    return await page.picture() != before


async def test_the_screen_is_used_in_a_browser(address: str, tmp_path: Path) -> None:
    """The finding and its rule are reached with keys alone and copied to the browser's clipboard;
    nothing is loaded from elsewhere or written."""
    async with browsing() as browser:
        page = await browser.page()
        await page.ask("Page.addScriptToEvaluateOnNewDocument", source=SPY)
        await page.resize(1400, 900)
        await page.go(address)
        person = Person(page)
        await person.sees("SendStreamingMessage", "2 findings", "TASK_NOT_FOUND")
        before = await page.picture()
        await person.types("g", "g", "e")
        await person.sees("Evening: fado")
        await until_true(lambda: differs(page, before), "what was received is not shown")
        await person.types("4")
        await person.sees("A2A-GEN-001", "Generation gap", "The client missed at least one change")
        await person.types("/")
        await person.sees("valid")
        for letter in "err":
            await person.types(letter)
        await person.sees("error", "yes")
        await person.types("Enter")
        await person.sees("1 of 9")
        await person.types("y")
        await person.sees("Copy", "JSON")
        await person.types("i")
        await person.sees("passed to the browser")
        await until_true(
            lambda: page.run("String(window.copied).includes('task')"), "nothing was copied"
        )
        await person.types("x")
        await person.sees("read-only")
        origin = address.rsplit("/", 2)[0]
        assert {each.partition("://")[2].partition("/")[0] for each in page.requests} == {
            origin.partition("://")[2]
        }
        assert not [line for line in page.log if "Content Security Policy" in line]
        await person.types("q")
        await page.run(
            "new Promise(done => setInterval("
            "() => document.body.matches('.-closed') && done(), 20))"
        )
        assert not list(tmp_path.glob("*.jsonl"))


ATTACK = """(async () => {
  const seen = {};
  const say = (name, promise) =>
    promise.then(() => seen[name] = "reached", () => seen[name] = "refused");
  await say("fetch", fetch("ADDRESS"));
  await say("post", fetch("ADDRESS", {method: "POST", body: "x"}));
  await say("script", new Promise((yes, no) => {
    const made = document.createElement("script");
    made.src = "ADDRESSstatic/js/textual.js"; made.onload = yes; made.onerror = no;
    document.head.append(made);
  }));
  await say("socket", new Promise((yes, no) => {
    const made = new WebSocket("ADDRESSws".replace("http", "ws"));
    made.onopen = yes; made.onerror = no;
  }));
  const frame = document.createElement("iframe");
  frame.src = "ADDRESS"; document.body.append(frame);
  await new Promise(done => frame.onload = done);
  return seen;
})()"""


@asynccontextmanager
async def elsewhere() -> AsyncIterator[str]:
    """Serve a page on another port of this machine, which is another origin of the same site."""

    async def answer(_request: web.Request) -> web.Response:
        return web.Response(
            text="<!DOCTYPE html><title>elsewhere</title>", content_type="text/html"
        )

    app = web.Application()
    app.router.add_get("/", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


async def test_a_page_of_another_origin_is_refused(address: str) -> None:
    """It is refused even with the secret, and so is a request with a foreign host name that
    resolves to this machine."""
    async with elsewhere() as other, browsing() as browser:
        page = await browser.page()
        await page.go(other)
        seen = await page.run(ATTACK.replace("ADDRESS", address))
        assert seen == dict.fromkeys(("fetch", "post", "script", "socket"), "refused")
        assert not page.received, "the frame has opened the screen"
        port = address.split(":")[2].partition("/")[0]
        path = address.split("/", 3)[3]
        async with browsing(f"--host-resolver-rules=MAP evil.example 127.0.0.1:{port}") as misled:
            page = await misled.page()
            await page.go(f"http://evil.example/{path}")
            assert (
                await page.run("document.body.innerText")
            ).strip() == f"This server accepts only requests to 127.0.0.1:{port}."
