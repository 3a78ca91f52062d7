"""The HTTP server: a page, the terminal's files, and a websocket per tab. Every request passes the
gate first."""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import WSCloseCode, WSMsgType, web

from a2a_inspect.app import open_source
from a2a_inspect.web import page
from a2a_inspect.web.gate import RequestGate, new_token
from a2a_inspect.web.tab import Tab, clamp_cells, tab_command
from a2a_proxy.cli.end_signals import end_signals
from a2a_proxy.model.errors import UserError
from a2a_proxy.present.output import print_line

MAX_TABS = 8
"""Maximum number of tabs. Each is a process."""
_MAX_MESSAGE = 256 << 10
"""Maximum bytes of one message from the page: the longest text a user can paste."""
_HEARTBEAT_INTERVAL = 15.0
"""Seconds between heartbeats, which detect that a browser is gone."""

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class WebServer:
    """Serves one recording to the tabs of one user."""

    def __init__(self, title: str, tab_arguments: list[str], gate: RequestGate, token: str) -> None:
        self._title = title
        self._tab_arguments = tab_arguments
        self._gate = gate
        self._token = token
        self._files = page.terminal_files()
        self._tabs: set[web.WebSocketResponse] = set()

    def make_application(self) -> web.Application:
        """Return the aiohttp application."""
        app = web.Application(middlewares=[self._check_request])
        app.on_response_prepare.append(self._add_headers)
        app.on_shutdown.append(self._close_tabs)
        root = f"/{self._token}"
        app.router.add_get(f"{root}/", self._serve_page)
        app.router.add_get(f"{root}/page.css", _text_handler(page.PAGE_STYLE, "text/css"))
        app.router.add_get(f"{root}/page.js", _text_handler(page.PAGE_SCRIPT, "text/javascript"))
        app.router.add_get(f"{root}/ws", self._serve_tab)
        for name in page.FILE_TYPES:
            app.router.add_get(f"{root}/static/{name}", self._file_handler(name))
        return app

    @web.middleware
    async def _check_request(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        websocket = "websocket" in request.headers.get(
            "Upgrade", ""
        ).lower() or request.path.endswith("/ws")
        why = self._gate.refusal_reason(request.headers, request.raw_path, websocket=websocket)
        return web.Response(status=403, text=f"{why}\n") if why else await handler(request)

    async def _add_headers(self, request: web.Request, response: web.StreamResponse) -> None:
        response.headers.update(
            page.response_headers(
                request.host if request.host in self._gate.hosts else self._gate.hosts[0]
            )
        )

    async def _serve_page(self, request: web.Request) -> web.Response:
        return web.Response(
            text=page.page_html(self._title, request.host, self._token), content_type="text/html"
        )

    def _file_handler(self, name: str) -> _Handler:
        async def answer(_request: web.Request) -> web.StreamResponse:
            return web.FileResponse(
                self._files / name, headers={"Content-Type": page.FILE_TYPES[name]}
            )

        return answer

    async def _serve_tab(self, request: web.Request) -> web.StreamResponse:
        if len(self._tabs) >= MAX_TABS:
            return web.Response(status=503, text=f"{MAX_TABS} tabs are open already: close one.\n")
        websocket = web.WebSocketResponse(heartbeat=_HEARTBEAT_INTERVAL, max_msg_size=_MAX_MESSAGE)
        self._tabs.add(websocket)
        try:
            await websocket.prepare(request)
            size = (
                _parse_cells(request.query.get("width"), 80),
                _parse_cells(request.query.get("height"), 24),
            )
            await self._relay_tab(websocket, await Tab.start(self._tab_arguments, *size))
        finally:
            self._tabs.discard(websocket)
        return websocket

    async def _relay_tab(self, websocket: web.WebSocketResponse, tab: Tab) -> None:
        """Relay until either end closes."""

        async def show() -> None:
            with contextlib.suppress(ConnectionError):
                await tab.relay_output(websocket.send_bytes)
            await websocket.close()

        showing = asyncio.create_task(show())
        try:
            async for message in websocket:
                if message.type is WSMsgType.TEXT:
                    await tab.feed(message.data)
        finally:
            showing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await showing
            await asyncio.shield(tab.stop())

    async def _close_tabs(self, _app: web.Application) -> None:
        await asyncio.gather(*(tab.close(code=WSCloseCode.GOING_AWAY) for tab in self._tabs))


def _text_handler(text: str, kind: str) -> _Handler:
    async def answer(_request: web.Request) -> web.StreamResponse:
        return web.Response(text=text, content_type=kind)

    return answer


def _parse_cells(value: str | None, default: int) -> int:
    return (
        clamp_cells(int(value))
        if value and value.isascii() and value.isdigit() and len(value) < 6
        else default
    )


def open_listener(port: int) -> socket.socket:
    """Return a listening socket on the loopback address; port 0 means a free port.

    Raises:
        UserError: the port cannot be used.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as wrong:
        listener.close()
        hint = "choose another port, or leave out --port"
        raise UserError(
            f"port {port} cannot be used: {(wrong.strerror or str(wrong)).lower()}", hint
        ) from wrong
    return listener


def serve_recording(recording: Path, port: int, *, write: bool) -> int:
    """Serve a recording until Ctrl-C; return the exit code.

    Raises:
        UserError: a tab could not show the recording, the extra is not installed, or the port
        cannot be used.
    """
    page.terminal_files()
    source, _keymap = open_source(recording)
    source.close()
    listener = open_listener(port)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve_until_signal(recording, listener, write=write))
    return 0


async def _serve_until_signal(recording: Path, listener: socket.socket, *, write: bool) -> None:
    token = new_token()
    gate = RequestGate(token, listener.getsockname()[1])
    server = WebServer(
        recording.name, tab_command(str(recording.absolute()), write=write), gate, token
    )
    stop = asyncio.Event()
    for number in end_signals():
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    runner = web.AppRunner(server.make_application(), access_log=None)
    await runner.setup()
    try:
        await web.SockSite(runner, listener).start()
        print_line(f"{recording.name} is at http://{gate.hosts[0]}/{token}/", flush=True)
        print_line(
            "Anyone with this address can read the recording. Press Ctrl-C to stop.", flush=True
        )
        await stop.wait()
    finally:
        await runner.cleanup()
