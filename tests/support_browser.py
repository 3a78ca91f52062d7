"""Chromium without a window, controlled by its DevTools protocol: pages, keys, and the messages
that websockets of a page received."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import os
import tempfile
import time
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp

from support_debian import BROWSER, DEBIAN, debian_environment, require_program

PATIENCE = 60.0
"""Seconds for each step; the machine may be busy."""
_KEYS = {
    "Enter": ("\r", 13),
    "Escape": ("", 27),
    "Tab": ("", 9),
    "ArrowDown": ("", 40),
    "ArrowUp": ("", 38),
}


class Page:
    """One tab of the browser."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session
        self.received: list[bytes] = []
        """What the page's websockets got, message by message."""
        self.log: list[str] = []
        """What the page, or the browser about it, complained of."""
        self.requests: list[str] = []
        """Every address that the page asked for."""

    async def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command of the protocol and return its answer."""
        return await self._browser.ask(method, self._session, **parameters)

    async def run(self, script: str) -> Any:
        """Return the value of an expression in the page, after its promise has been resolved."""
        answer = await self.ask(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def go(self, address: str) -> None:
        """Open an address and wait until the page is loaded."""
        await self.ask("Page.navigate", url=address)
        await until_true(
            lambda: self.run("document.readyState === 'complete'"), f"{address} did not load"
        )

    async def resize(self, width: int, height: int) -> None:
        """Set the size of the window, in pixels."""
        await self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    async def press(self, *keys: str) -> None:
        """Press keys: letters, or key names of the DOM."""
        for key in keys:
            text, code = _KEYS.get(key, (key, 0))
            about = {"key": key, "windowsVirtualKeyCode": code, **({"text": text} if text else {})}
            await self.ask(
                "Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **about
            )
            await self.ask(
                "Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code
            )

    async def picture(self) -> bytes:
        """Return the page as a PNG picture."""
        return base64.b64decode((await self.ask("Page.captureScreenshot"))["data"])

    def hear(self, method: str, about: dict[str, Any]) -> None:
        """Handle an event of the protocol."""
        match method:
            case "Network.webSocketFrameReceived":
                frame = about["response"]
                data = frame["payloadData"]
                self.received.append(
                    base64.b64decode(data) if frame["opcode"] == 2 else data.encode()
                )
            case "Network.requestWillBeSent":
                self.requests.append(about["request"]["url"])
            case "Network.webSocketCreated":
                self.requests.append(about["url"])
            case "Log.entryAdded":
                self.log.append(about["entry"]["text"])
            case "Runtime.exceptionThrown":
                self.log.append(str(about["exceptionDetails"]))


class Browser:
    """A running browser and the one websocket to it."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, host: str) -> None:
        self._socket = socket
        self.host = host
        """Where its protocol is spoken and its developer tools are served, `127.0.0.1:port`."""
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._pages: dict[str, Page] = {}

    async def ask(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        """Send a command of the protocol and return its answer."""
        number = next(self._numbers)
        self._answers[number] = asyncio.get_running_loop().create_future()
        about = {"sessionId": session} if session else {}
        await self._socket.send_json(
            {"id": number, "method": method, "params": parameters, **about}
        )
        return await asyncio.wait_for(self._answers[number], PATIENCE)

    async def page(self) -> Page:
        """Open an empty tab."""
        target = (await self.ask("Target.createTarget", url="about:blank"))["targetId"]
        session = (await self.ask("Target.attachToTarget", targetId=target, flatten=True))[
            "sessionId"
        ]
        page = self._pages[session] = Page(self, session)
        for domain in ("Page", "Network", "Log", "Runtime"):
            await page.ask(f"{domain}.enable")
        return page

    async def listen(self) -> None:
        """Deliver answers and events to their waiting callers until the browser ends."""
        async for message in self._socket:
            said = message.json()
            if "id" in said:
                answer = self._answers.pop(said["id"])
                if not answer.done():
                    answer.set_result(said.get("result") or said.get("error", {}))
            elif said.get("sessionId") in self._pages:
                self._pages[said["sessionId"]].hear(said["method"], said["params"])


@contextlib.asynccontextmanager
async def browsing(*options: str) -> AsyncIterator[Browser]:
    """Run a browser with a profile of its own until the block ends."""
    path = require_program(BROWSER)
    with tempfile.TemporaryDirectory(prefix="a2a-browser-", ignore_cleanup_errors=True) as folder:
        process = await asyncio.create_subprocess_exec(
            *(path, "--no-sandbox", "--remote-debugging-port=0", f"--user-data-dir={folder}"),
            *("--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars"),
            *options,
            stdout=DEVNULL,
            stderr=DEVNULL,
            env=_environment(),
        )
        try:
            address = await _address(Path(folder))
            async with (
                aiohttp.ClientSession() as session,
                session.ws_connect(address, max_msg_size=0) as socket,
            ):
                browser = Browser(socket, address.split("/")[2])
                listening = asyncio.create_task(browser.listen())
                try:
                    yield browser
                finally:
                    listening.cancel()
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _environment() -> dict[str, str]:
    """Return the environment in which an unpacked browser finds its libraries and the rules of an
    unpacked fontconfig."""
    made = debian_environment(dict(os.environ))
    folders = sorted(
        str(folder) for folder in (DEBIAN / "usr" / "lib").glob("*-linux-gnu*/pulseaudio")
    )
    if folders:
        made["LD_LIBRARY_PATH"] = ":".join([made["LD_LIBRARY_PATH"], *folders])
    rules = DEBIAN / "etc" / "fonts"
    return {**made, "FONTCONFIG_PATH": str(rules)} if rules.exists() else made


async def _address(folder: Path) -> str:
    """Return the address on which the browser listens, from the file that it writes."""
    file = folder / "DevToolsActivePort"
    await until(
        lambda: file.exists() and file.read_text().count("\n") >= 1, "the browser did not start"
    )
    port, path = file.read_text().split("\n")[:2]
    return f"ws://127.0.0.1:{port}{path}"


async def until(true: Callable[[], bool], otherwise: str) -> None:
    """Wait until a condition is true."""

    async def ask() -> bool:
        return true()

    await until_true(ask, otherwise)


async def until_true(true: Callable[[], Any], otherwise: str) -> None:
    """Wait until a condition that is a coroutine is true."""
    end = time.monotonic() + PATIENCE
    while not await true():
        assert time.monotonic() < end, otherwise
        await asyncio.sleep(0.05)
