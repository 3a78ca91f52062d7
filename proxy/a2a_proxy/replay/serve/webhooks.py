"""Sender of webhooks: posts them at their place on the task's timeline to the URLs that the clients
registered."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from a2a_proxy.model.values import Dialect
from a2a_proxy.relay.tls import create_client_context
from a2a_proxy.replay.convert.responses import convert_notification
from a2a_proxy.replay.core.player_io import PlayerSend
from a2a_proxy.replay.serve.performance import ReportCallback, WebhookPosted

MAX_TRIES = 3
_RETRY_PAUSES = (0.2, 1.0)
"""Pauses in seconds between tries."""
_TIMEOUT = aiohttp.ClientTimeout(total=5)
_TOKEN_HEADER = "X-A2A-Notification-Token"


class WebhookSender:
    """Posts in order for each receiver; receivers do not wait for each other."""

    def __init__(self, report: ReportCallback) -> None:
        self._report = report
        self._queues: dict[str, asyncio.Queue[PlayerSend]] = {}
        self._workers: set[asyncio.Task[None]] = set()
        self._session: aiohttp.ClientSession | None = None

    def queue_post(self, send: PlayerSend) -> None:
        """Queue a webhook and return at once."""
        where = _receiver_of(send.url)
        if where not in self._queues:
            self._queues[where] = asyncio.Queue()
            self._workers.add(asyncio.create_task(self._post_queued(self._queues[where])))
        self._queues[where].put_nowait(send)

    async def wait_until_posted(self, seconds: float) -> None:
        """Wait until everything is posted, for at most `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                await asyncio.gather(*(queue.join() for queue in self._queues.values()))
        except TimeoutError:
            return

    async def stop(self) -> None:
        """Discard the queued webhooks."""
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    async def _post_queued(self, queue: asyncio.Queue[PlayerSend]) -> None:
        while True:
            send = await queue.get()
            try:
                self._report(await self._post_with_retries(send))
            finally:
                queue.task_done()

    async def _post_with_retries(self, send: PlayerSend) -> WebhookPosted:
        headers = _headers_of_config(send.config)
        dialect = send.push.dialect if send.push is not None else Dialect.UNKNOWN
        body = (
            convert_notification(send.value, dialect)
            if isinstance(send.value, dict)
            else send.value
        )
        status, why = 0, "not an http URL"
        if not _is_http(send.url):
            return WebhookPosted(url=send.url, status=0, tries=0, reason=why)
        for number in range(1, MAX_TRIES + 1):
            try:
                self._session = self._session or aiohttp.ClientSession(
                    connector=aiohttp.TCPConnector(ssl=create_client_context()), timeout=_TIMEOUT
                )
                async with self._session.post(
                    send.url, json=body, headers=headers, allow_redirects=False
                ) as answer:
                    status, why = answer.status, ""
                if status < 500:
                    return WebhookPosted(url=send.url, status=status, tries=number)
            except (aiohttp.ClientError, TimeoutError, ValueError) as error:
                status, why = 0, str(error) or type(error).__name__
            if number < MAX_TRIES:
                await asyncio.sleep(_RETRY_PAUSES[number - 1])
        return WebhookPosted(url=send.url, status=status, tries=MAX_TRIES, reason=why)


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc)


def _receiver_of(url: str) -> str:
    """Return scheme and authority of a URL, or the URL itself if it has none."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else url


def _headers_of_config(config: Any) -> dict[str, str]:
    """Return the headers that the client's configuration requires: its token and its
    authentication."""
    headers: dict[str, str] = {}
    if not isinstance(config, dict):
        return headers
    if isinstance(config.get("token"), str) and config["token"]:
        headers[_TOKEN_HEADER] = config["token"]
    method = config.get("authentication")
    if (
        isinstance(method, dict)
        and isinstance(method.get("credentials"), str)
        and method["credentials"]
    ):
        headers["Authorization"] = f"{method.get('scheme') or 'Bearer'} {method['credentials']}"
    return headers
