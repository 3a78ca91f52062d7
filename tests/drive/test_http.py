"""Calls over HTTP to a small agent."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from a2a_proxy.drive.http import HttpTransport
from a2a_proxy.drive.request import CallTarget, DriveRequest
from a2a_proxy.drive.route import DriveRoute, DriveRoutes
from a2a_proxy.model.values import Binding, Dialect
from support_drive import step


async def test_calls_keep_their_order_on_idle_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one before it waits for a connection of its own."""
    arrived: list[str] = []
    warm = asyncio.Event()

    async def answer(request: web.Request) -> web.Response:
        arrived.append(request.path)
        if request.path == "/warm":
            await warm.wait()
        return web.json_response({})

    async def dialled(*given: Any) -> Any:
        warm.set()
        await first
        await asyncio.sleep(0.05)
        return await dial(*given)

    app = web.Application()
    app.router.add_get("/{any}", answer)
    async with TestServer(app) as server:
        wire = HttpTransport(DriveRoutes(DriveRoute(f"127.0.0.1:{server.port}", "agent:1")))

        async def call(path: str) -> None:
            line = wire.open_call(step(1, 0, 1), CallTarget(Binding.OTHER, Dialect.UNKNOWN, ""))
            await line.send_message(DriveRequest(b"", (), path, "GET"))
            _ = [heard async for heard in line.iter_answers()]

        first = asyncio.ensure_future(call("/warm"))
        async with asyncio.timeout(120):
            while not arrived:
                await asyncio.sleep(0.01)
            connector = wire._session.connector
            assert connector is not None
            dial = connector._create_connection
            monkeypatch.setattr(connector, "_create_connection", dialled)
            second = asyncio.ensure_future(call("/second"))
            await first
            await call("/third")
            await second
        await wire.close()
    assert arrived == ["/warm", "/second", "/third"]
