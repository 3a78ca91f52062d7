"""One recorded call with all data of its other forms. Reading it from a recording is the only I/O
here."""

from typing import Any
from urllib.parse import urlsplit

import msgspec

from a2a_proxy.model.values import Binding, Connection, Exchange, Frame, FrameKind
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.event import decode_payload
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import label_place, make_key

MAX_FRAMES = 2_000
"""Maximum number of frames; longer calls are not converted."""
MAX_BYTES = 8 << 20
"""Maximum bytes of all payloads; larger calls are not converted."""
_REQUEST_KINDS, _RESPONSE_KINDS = (
    (FrameKind.REQUEST,),
    (FrameKind.RESPONSE, FrameKind.EVENT, FrameKind.ERROR),
)
_OMITTED_HEADERS = {
    "accept-encoding",
    "connection",
    "content-length",
    "grpc-accept-encoding",
    "grpc-encoding",
    "host",
    "keep-alive",
    "te",
    "traceparent",
    "tracestate",
    "transfer-encoding",
    "user-agent",
}
"""Headers that the sender of a copied call creates again.

With the old trace context the call would look like part of the old one.
"""


class NotOffered(Exception):
    """Raised if a form of a call is not available; the message is the reason."""


class CopiedCall(msgspec.Struct, frozen=True):
    """An exchange with its frames."""

    session: int
    exchange: Exchange
    connection: Connection
    frames: tuple[Frame, ...]
    is_complete: bool = True
    """Whether all frames were loaded."""

    @property
    def place(self) -> str:
        """The place of the exchange: `#2`."""
        return label_place(self.session, self.exchange.id)

    @property
    def requests(self) -> list[Frame]:
        """Frames sent by the client."""
        return [
            each
            for each in self.frames
            if each.kind in _REQUEST_KINDS and each.direction is Direction.TO_AGENT
        ]

    @property
    def responses(self) -> list[Frame]:
        """Frames sent by the agent."""
        return [
            each
            for each in self.frames
            if each.kind in _RESPONSE_KINDS and each.direction is Direction.TO_CLIENT
        ]

    @property
    def is_tls(self) -> bool:
        """Whether the agent was reached over TLS."""
        return self.connection.upstream.startswith("https:")

    @property
    def authority(self) -> str:
        """Host and port of the agent, as the user named it, except for an interface of the agent on
        another port.

        Raises NotOffered for an agent behind stdio, and for a call on a WebSocket.
        """
        if self.exchange.binding is Binding.WEBSOCKET:
            raise NotOffered("the call was made on a WebSocket")
        if self.exchange.binding is Binding.STDIO or not (
            self.connection.upstream or self.connection.peer
        ):
            raise NotOffered("the agent has no address: it talks over stdin and stdout")
        authority = self.connection.upstream
        if "://" in authority:
            authority = urlsplit(authority).netloc
        peer = self.connection.peer
        if (
            peer
            and authority.rpartition(":")[2].isdecimal()
            and authority.rpartition(":")[2] != peer.rpartition(":")[2]
        ):
            return peer
        return authority or peer

    @property
    def url(self) -> str:
        """Address of an HTTP call without the path. Raises as `authority`."""
        return f"{'https' if self.is_tls else 'http'}://{self.authority}"

    def list_headers(self) -> list[tuple[str, str]]:
        """Return the request headers that belong to the call; secrets are replaced by their
        labels."""
        pairs = (
            (name.decode("latin-1"), value.decode("latin-1"))
            for name, value in self.exchange.request_headers
        )
        return [
            (make_visible(name), make_visible(value))
            for name, value in pairs
            if name.lower() not in _OMITTED_HEADERS and not name.startswith(":")
        ]

    def extra_headers(self) -> dict[str, str]:
        """Return the headers that an SDK or an HTTP library does not set by itself."""
        return {
            name: value
            for name, value in self.list_headers()
            if name.lower() not in ("accept", "content-type")
        }

    def request_value(self) -> Any:
        """Return the first request as plain JSON values. Raises NotOffered if it was not recorded
        as sent."""
        frame = self.first_request()
        value = decode_payload(frame.payload, frame.schema)
        if value is None:
            raise NotOffered("its request cannot be read")
        return value

    def first_request(self) -> Frame:
        """Return the first request. Raises NotOffered if it is missing or incomplete."""
        if not self.requests:
            raise NotOffered("its request was not recorded")
        if self.requests[0].truncated:
            raise NotOffered("only the beginning of its request is in the recording")
        return self.requests[0]


def load_call(recording: Recording, exchange_key: int) -> CopiedCall | None:
    """Read a call; return None if the recording does not have it. Raises RecordingError."""
    row = recording.read_exchange(exchange_key)
    if row is None:
        return None
    known = recording.read_connection(make_key(row.session, row.exchange.connection))
    connection = (
        known.connection
        if known is not None
        else Connection(row.exchange.connection, "", "", "", 0)
    )
    frames: list[Frame] = []
    rest = MAX_BYTES
    for frame_row in recording.read_frames(exchange_key, payloads=False):
        rest -= frame_row.frame.size
        if len(frames) >= MAX_FRAMES or rest < 0:
            return CopiedCall(
                row.session, row.exchange, connection, tuple(frames), is_complete=False
            )
        frames.append(
            msgspec.structs.replace(frame_row.frame, payload=recording.read_payload(frame_row))
        )
    return CopiedCall(row.session, row.exchange, connection, tuple(frames))
