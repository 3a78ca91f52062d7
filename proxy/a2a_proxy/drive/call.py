"""An open call to the live agent, independent of its transport."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

import msgspec

from a2a_proxy.drive.plan import PlannedCall
from a2a_proxy.drive.request import DriveRequest
from a2a_proxy.drive.target import CallTarget
from a2a_proxy.model.values import FrameKind


class ReceivedMessage(msgspec.Struct, frozen=True):
    """One message of the live agent."""

    payload: bytes
    schema: str
    kind: FrameKind


class OpenCall(Protocol):
    """One open call. Its methods raise CallError if the call fails."""

    async def send_message(self, request: DriveRequest) -> None:
        """Send a message of the client; the first one opens the call."""

    async def half_close(self) -> None:
        """Half-close the call: the client sends nothing more."""

    async def cancel(self) -> None:
        """Cancel the call, as a client does that is no longer interested."""

    def iter_answers(self) -> AsyncIterator[ReceivedMessage]:
        """Yield the messages of the agent until the call is over."""


class CallTransport(Protocol):
    """Opens calls of one binding."""

    def open_call(self, step: PlannedCall, target: CallTarget, /) -> OpenCall:
        """Return a call like the recorded one; nothing is sent yet."""

    async def close(self) -> None:
        """Close all connections."""


class CallError(Exception):
    """The call failed; the message says how."""
