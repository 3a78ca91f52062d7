"""Calls over HTTP/1.1: JSON-RPC, REST, cards, and requests that are not A2A. A call is one
request."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from a2a_proxy.drive.plan import PlannedCall
from a2a_proxy.drive.request import CallError, CallTarget, DriveRequest, OpenCall, ReceivedMessage
from a2a_proxy.drive.route import DriveRoutes
from a2a_proxy.model.values import FrameKind
from a2a_proxy.protocol.schema import JSON
from a2a_proxy.wire.sse import SseEvent, SseSplitter

_REQUEST_GAP_SECONDS = 0.003
"""Seconds between two independent requests, because the later one may arrive first over another
connection."""
_SKIPPED_HEADERS = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")


class HttpTransport:
    """All HTTP calls of a drive, over as many connections as needed."""

    def __init__(self, routes: DriveRoutes) -> None:
        self._routes = routes
        self._order = _RequestOrder()
        trace = aiohttp.TraceConfig()
        trace.on_request_headers_sent.append(_on_request_sent)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
            skip_auto_headers=_SKIPPED_HEADERS,
            cookie_jar=aiohttp.DummyCookieJar(),
            trace_configs=[trace],
        )

    def open_call(self, _step: PlannedCall, target: CallTarget, /) -> OpenCall:
        """Return a request like the recorded one."""
        return _HttpCall(self._session, self._routes, target, self._order)

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()


class _RequestOrder:
    """Sends requests in the order in which they were made."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def wait_turn(self) -> Callable[[], None]:
        """Wait until the previous request is sent; the caller calls the returned function when its
        own is."""
        await self._lock.acquire()
        ended = False

        def end() -> None:
            nonlocal ended
            if not ended:
                ended = True
                self._lock.release()

        return end


async def _on_request_sent(
    _session: aiohttp.ClientSession, context: Any, _params: aiohttp.TraceRequestHeadersSentParams
) -> None:
    asyncio.get_running_loop().call_later(_REQUEST_GAP_SECONDS, context.trace_request_ctx)


class _HttpCall:
    def __init__(
        self,
        session: aiohttp.ClientSession,
        routes: DriveRoutes,
        target: CallTarget,
        order: _RequestOrder,
    ) -> None:
        self._order = order
        self._session = session
        self._routes = routes
        self._target = target
        self._request: DriveRequest | None = None

    async def send_message(self, request: DriveRequest) -> None:
        """Store the request; `iter_answers` sends it."""
        self._request = request

    async def half_close(self) -> None:
        """Do nothing: a request ends with its body."""

    async def cancel(self) -> None:
        """Do nothing: the connection is closed when reading stops."""

    async def iter_answers(self) -> AsyncIterator[ReceivedMessage]:
        """Send the request and yield its body, or the events of its stream."""
        assert self._request is not None
        request, speech = self._request, self._target
        base, target = self._routes.http_address(speech, request)
        headers = CIMultiDict(
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers
        )
        headers.setdefault("Host", self._routes.route_of(speech.binding).authority)
        body = request.payload or None
        url = URL(f"{base}{target}", encoded=True)
        under_way = await self._order.wait_turn()
        try:
            async with self._session.request(
                request.method,
                url,
                data=body,
                headers=headers,
                allow_redirects=False,
                trace_request_ctx=under_way,
            ) as response:
                async for message in _read_messages(response):
                    yield message
        except (aiohttp.ClientPayloadError, aiohttp.ServerDisconnectedError):
            return  # the agent broke off; the recording of the drive says how
        except aiohttp.ClientError as wrong:
            raise CallError(str(wrong) or type(wrong).__name__) from wrong
        finally:
            under_way()


async def _read_messages(response: aiohttp.ClientResponse) -> AsyncIterator[ReceivedMessage]:
    if response.content_type != "text/event-stream":
        if body := await response.read():
            yield ReceivedMessage(
                body, JSON, FrameKind.ERROR if response.status >= 400 else FrameKind.RESPONSE
            )
        return
    splitter, events = SseSplitter(), list[SseEvent]()
    async for data in response.content.iter_any():
        splitter.feed(data, time.monotonic_ns(), 0, len(data), events)
        for event in events:
            if event.dispatched:
                yield ReceivedMessage(event.data, JSON, FrameKind.EVENT)
        events.clear()
