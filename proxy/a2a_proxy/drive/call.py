"""One open call to the live agent, whatever carries it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

import msgspec

from a2a_proxy.drive.plan import PlannedCall
from a2a_proxy.drive.request import DriveRequest
from a2a_proxy.drive.target import CallTarget
from a2a_proxy.model.frame import FrameKind


class ReceivedMessage(msgspec.Struct, frozen=True):
    """One message of the live agent."""

    payload: bytes
    schema: str
    kind: FrameKind


class OpenCall(Protocol):
    """One open call. What fails raises LineError."""

    async def send_message(self, request: DriveRequest) -> None:
        """Send a message of the client; the first one opens the call."""

    async def half_close(self) -> None:
        """Half-close: the client has said all."""

    async def cancel(self) -> None:
        """Break off, as a client does that has lost interest."""

    def iter_answers(self) -> AsyncIterator[ReceivedMessage]:
        """What the agent says, until the call is over."""


class CallTransport(Protocol):
    """Opens calls of one binding."""

    def open_call(self, step: PlannedCall, target: CallTarget, /) -> OpenCall:
        """A call like the recorded one; nothing is sent yet."""

    async def close(self) -> None:
        """Let go of all connections."""


class CallError(Exception):
    """The call came to nothing: what happened, in words."""
