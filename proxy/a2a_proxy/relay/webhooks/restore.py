"""Set a push configuration back to the client's webhook: the client's own request is sent to the
agent once more, with the URL that the client wrote."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from a2a_proxy.relay.dial import DialError, dial_upstream
from a2a_proxy.relay.edits.http1_message import decode_content
from a2a_proxy.relay.edits.http1_scan import (
    CHUNKED,
    Http1ScanError,
    Http1Scanner,
    MessagePart,
    decode_chunked,
    parse_response_head,
)
from a2a_proxy.relay.edits.push_config import PushCall, is_failure
from a2a_proxy.relay.route import Upstream
from a2a_proxy.relay.tls import Tls

if TYPE_CHECKING:
    from a2a_proxy.relay.upstream_proxy import UpstreamProxy

RESTORE_SECONDS = 5.0
"""Seconds that one agent may take to answer."""
MAX_ANSWER_BYTES = 1024 * 1024

_CALL = PushCall("create", "jsonrpc")
"""A call of either binding: a success over REST has no member `error` either."""


async def restore_webhook(
    agent: Upstream, request: bytes, tls: Tls, proxy: UpstreamProxy | None
) -> bool:
    """Send a request that creates a configuration, through `proxy` if it leads to the agent. Return
    whether the agent accepted it."""
    answer = _Answer(request)
    try:
        async with asyncio.timeout(RESTORE_SECONDS):
            await dial_upstream(agent, lambda: answer, RESTORE_SECONDS, tls=tls, proxy=proxy)
            return await answer.accepted
    except (DialError, TimeoutError):
        return False
    finally:
        answer.close()


class _Answer(asyncio.Protocol):
    """Sends a request and reads its response."""

    def __init__(self, request: bytes) -> None:
        self.accepted: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._request = request
        self._scanner = Http1Scanner()
        self._body = bytearray()
        self._status = self._framing = 0
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the request."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Read the response up to its end."""
        at = 0
        try:
            while at < len(data) and not self.accepted.done():
                part, end = self._scanner.read_part(data, at)
                if part is MessagePart.HEAD_END:
                    self._on_head()
                elif part is not MessagePart.HEAD:
                    self._body += data[at:end]
                    if len(self._body) > MAX_ANSWER_BYTES:
                        self._settle(False)
                    elif part is MessagePart.BODY_END:
                        self._finish()
                at = end
        except Http1ScanError:
            self._settle(False)

    def eof_received(self) -> bool:
        """End a response that the end of the connection ends."""
        if self._scanner.is_until_close:
            self._finish()
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 (the interface)
        """Give up."""
        self._settle(False)

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.close()

    def _on_head(self) -> None:
        self._status, self._framing = parse_response_head(self._scanner.head, to_head=False)
        if self._scanner.begin_body(self._framing) and self._status >= 200:
            self._settle(self._status < 300)

    def _finish(self) -> None:
        body = decode_chunked(bytes(self._body)) if self._framing == CHUNKED else bytes(self._body)
        payload = decode_content(self._scanner.head, body)
        self._settle(payload is not None and not is_failure(_CALL, self._status, payload))

    def _settle(self, accepted: bool) -> None:
        if not self.accepted.done():
            self.accepted.set_result(accepted)
