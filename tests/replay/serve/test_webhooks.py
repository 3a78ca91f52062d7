"""Webhooks are posted to the URL of the current client, retried within bounds and reported."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import trustme
from aiohttp import web

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Binding, Dialect
from a2a_proxy.replay.core.script import (
    LineKind,
    PlayerSend,
    RecordedCall,
    RecordedPush,
    ReplayScript,
    ScriptLine,
    ScriptSide,
)
from a2a_proxy.replay.serve.mock import MAX_TRIES, MockServer, WebhookSender
from a2a_proxy.replay.serve.performance import ReplayReport, WebhookPosted
from support_cards import http_agent

START, MS = 1_700_000_000_000_000_000, 1_000_000
TASK, CONTEXT = "11111111-aaaa-4aaa-8aaa-111111111111", "22222222-bbbb-4bbb-8bbb-222222222222"
SECONDS = 60


class Receiver:
    """Takes notifications; answers with the statuses it was given, then with 200."""

    def __init__(self) -> None:
        self.got: list[tuple[dict[str, str], Any]] = []
        self.statuses: list[int] = []
        self.came = asyncio.Event()

    async def start(self) -> None:
        app = web.Application()
        app.router.add_post("/hook", self._take)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/hook"

    async def stop(self) -> None:
        await self._runner.cleanup()

    async def _take(self, request: web.Request) -> web.Response:
        status = self.statuses.pop(0) if self.statuses else 200
        if status == 200:
            self.got.append((dict(request.headers), await request.json()))
            self.came.set()
        return web.Response(status=status)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    made = Receiver()
    await made.start()
    yield made
    await made.stop()


def status(state: TaskState) -> dict[str, Any]:
    status = {"state": f"TASK_STATE_{state.name}"}
    return {"statusUpdate": {"taskId": TASK, "contextId": CONTEXT, "status": status}}


def asked(url: str, token: str) -> dict[str, Any]:
    """A send that wants to be told at a webhook."""
    config = {
        "url": url,
        "token": token,
        "authentication": {"scheme": "Bearer", "credentials": f"{token}-secret"},
    }
    message = {"messageId": "m-00000001", "role": "ROLE_USER", "parts": [{"text": "go"}]}
    return {"message": message, "configuration": {"taskPushNotificationConfig": config}}


def script() -> ReplayScript:
    """One stream, and one webhook after it."""
    delivered = [(TaskState.WORKING, 1), (TaskState.COMPLETED, 2)]
    lines = tuple(
        ScriptLine(
            number=at,
            side=ScriptSide.AGENT,
            what=LineKind.MESSAGE,
            at=at * MS,
            value=status(state),
            task=TASK,
            state=state,
        )
        for state, at in delivered
    )
    end = ScriptLine(number=3, side=ScriptSide.AGENT, what=LineKind.END, at=3 * MS)
    call = RecordedCall(
        place="#1",
        operation="SendStreamingMessage",
        binding=Binding.JSONRPC,
        dialect=Dialect.V1_0,
        request=asked("http://127.0.0.1:9/then", "token-then"),
        lines=(*lines, end),
        began=START,
        streaming=True,
        status=200,
    )
    push = RecordedPush(
        place="#2",
        at=START + 4 * MS,
        value=status(TaskState.COMPLETED),
        url="127.0.0.1:9/then",
        dialect=Dialect.V1_0,
        task=TASK,
    )
    return ReplayScript(name="made", calls=(call,), pushes=(push,))


async def test_webhooks_are_posted_to_the_current_url(receiver: Receiver) -> None:
    """Not where it went then; with the token and the credentials of now."""
    reports: list[ReplayReport] = []
    mock = MockServer(script(), report=reports.append)
    await mock.start()
    params = asked(receiver.url, "token-now")
    call = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": params}
    async with asyncio.timeout(SECONDS), aiohttp.ClientSession() as http:
        async with http.post(mock.url, json=call, headers={"A2A-Version": "1.0"}) as answer:
            await answer.read()
        await receiver.came.wait()
        while not any(
            isinstance(each, WebhookPosted) for each in reports
        ):  # it has been answered by then
            await asyncio.sleep(0.01)
    await mock.stop()
    ((headers, body),) = receiver.got
    assert body["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert headers["X-A2A-Notification-Token"] == "token-now"
    assert headers["Authorization"] == "Bearer token-now-secret"
    assert [(each.status, each.tries) for each in reports if isinstance(each, WebhookPosted)] == [
        (200, 1)
    ]


async def posted(url: str) -> WebhookPosted:
    """What becomes of one notification."""
    reports: list[ReplayReport] = []
    hooks = WebhookSender(reports.append)
    hooks.queue_post(
        PlayerSend(what=LineKind.PUSH, value=status(TaskState.WORKING), url=url, config={})
    )
    await hooks.wait_until_posted(SECONDS)
    await hooks.stop()
    (one,) = reports
    assert isinstance(one, WebhookPosted)
    return one


async def test_webhooks_are_retried_within_bounds(receiver: Receiver) -> None:
    """A failing receiver gets it later; one that never accepts it is given up."""
    receiver.statuses = [500]
    assert ((one := await posted(receiver.url)).status, one.tries) == (200, 2)
    receiver.statuses = [503] * MAX_TRIES
    assert ((one := await posted(receiver.url)).status, one.tries) == (503, MAX_TRIES)
    receiver.statuses = [404]
    assert ((one := await posted(receiver.url)).status, one.tries) == (404, 1)


@pytest.mark.parametrize(
    "url",
    ["", "file:///etc/passwd", "http://[", "http://127.0.0.1:9/none", "redacted-0123456789ab"],
)
async def test_invalid_webhook_urls_are_reported(url: str) -> None:
    """They are reported and stop nothing."""
    one = await posted(url)
    assert (one.status, bool(one.reason)) == (0, True)


async def test_a_certificate_with_a_common_name_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The receiver gets nothing, although its CA is trusted."""
    ca = trustme.CA()
    ca.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))

    async def take(_: web.Request) -> web.Response:
        return web.Response()

    async with http_agent(take, ca.issue_cert("localhost")) as port:
        assert (await posted(f"https://localhost:{port}")).status == 200
    async with http_agent(take, ca.issue_cert(common_name="localhost")) as port:
        assert "Hostname mismatch" in (await posted(f"https://localhost:{port}")).reason
