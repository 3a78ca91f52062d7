"""The decoder of one connection: detects the protocol, then passes everything to the matching
decoder.

Bytes of the agent that arrive before detection (a gRPC server sends SETTINGS at once) are held in
order. A connection that is not HTTP is opaque: its bytes are counted and one `Control` names the
detected kind, no more.
"""

from a2a_proxy.model.saved_state import State
from a2a_proxy.model.values import OPAQUE_COUNTERS
from a2a_proxy.model.wire import Control, Direction, WireEvent
from a2a_proxy.wire.detect import ProtocolKind, detect_protocol
from a2a_proxy.wire.http1 import Http1Decoder
from a2a_proxy.wire.http2 import Http2Decoder
from a2a_proxy.wire.stdio import StdioDecoder

MAX_HELD = 64 << 10
"""Bytes that are held while the protocol is not known."""


class _OpaqueDecoder(State, tag="opaque"):
    """Counts bytes and decodes nothing."""

    counters: dict[str, int] = {}

    def feed(self, direction: Direction, data: bytes, at: int, out: list[WireEvent]) -> None:
        del at, out  # counting needs neither
        name = OPAQUE_COUNTERS[direction]
        self.counters[name] = self.counters.get(name, 0) + len(data)

    def feed_eof(self, direction: Direction, at: int, out: list[WireEvent]) -> None:
        """Do nothing: an end has no meaning here."""

    feed_reset = feed_loss = feed_eof


_Decoder = Http1Decoder | Http2Decoder | StdioDecoder | _OpaqueDecoder
_DECODERS: dict[str, type[_Decoder]] = {
    ProtocolKind.HTTP1: Http1Decoder,
    ProtocolKind.H2C: Http2Decoder,
    ProtocolKind.STDIO: StdioDecoder,
    ProtocolKind.TLS: _OpaqueDecoder,
    ProtocolKind.OPAQUE: _OpaqueDecoder,
}


class ConnectionDecoder(State):
    """Both directions of one connection. Never raises because of a peer's bytes."""

    transport: str = "tcp"
    """`ConnectionFacts.transport`: a pipe is known to be stdio, the protocol of a socket must be
    detected."""
    kind: str = ""
    """`h2c`, `http/1.1`, `stdio`, `tls` or `opaque`; empty while it is not known."""
    _held: list[tuple[str, int, bytes, int]] = []
    """(event, direction, bytes, time in ns) of everything so far, in order, while the kind is not
    known."""
    _client_prefix: bytearray = bytearray()
    """Bytes of the client so far, while the kind is not known."""
    _held_size: int = 0
    _decoder: _Decoder | None = None

    def __post_init__(self) -> None:
        if self.transport == ProtocolKind.STDIO and self._decoder is None:
            self.kind, self._decoder = self.transport, StdioDecoder()

    @property
    def protocol(self) -> str:
        """The kind, or `h2c` or `websocket` after a switch from HTTP/1.1."""
        decoder = self._decoder
        return decoder.protocol if isinstance(decoder, Http1Decoder) else self.kind

    @property
    def stdio(self) -> StdioDecoder | None:
        """The decoder of a pipe, which also takes stderr, signals and the exit; None for a
        socket."""
        return self._decoder if isinstance(self._decoder, StdioDecoder) else None

    @property
    def counters(self) -> dict[str, int]:
        """Counters of wire events too common to report one by one."""
        return self._decoder.counters if self._decoder is not None else {}

    def feed(self, direction: Direction, data: bytes, at: int, out: list[WireEvent]) -> None:
        """Read bytes that arrived at `at` (ns) in one direction and append events to `out`."""
        if self._decoder is not None:
            self._decoder.feed(direction, data, at, out)
            return
        self._held.append(("feed", int(direction), data, at))
        self._held_size += len(data)
        if direction is Direction.TO_AGENT:
            self._client_prefix += data
            if (kind := detect_protocol(self._client_prefix)) is not None:
                self._choose_decoder(kind, direction, at, out)
                return
        if self._held_size > MAX_HELD:
            self._choose_decoder(ProtocolKind.OPAQUE, direction, at, out)

    def feed_ours(self, direction: Direction, data: bytes, at: int, out: list[WireEvent]) -> None:
        """Read bytes that the proxy sent in one direction, between those of the peer."""
        if isinstance(self._decoder, Http1Decoder | Http2Decoder):
            self._decoder.feed_ours(direction, data, at, out)
        else:
            self.feed(direction, data, at, out)

    def feed_eof(self, direction: Direction, at: int, out: list[WireEvent]) -> None:
        """Handle FIN from the sender of this direction."""
        if self._decoder is not None:
            self._decoder.feed_eof(direction, at, out)
        else:
            self._hold_end("eof", direction, at, out)

    def feed_reset(self, direction: Direction, at: int, out: list[WireEvent]) -> None:
        """Handle RST from the sender of this direction."""
        if self._decoder is not None:
            self._decoder.feed_reset(direction, at, out)
        else:
            self._hold_end("reset", direction, at, out)

    def feed_loss(self, direction: Direction, at: int, out: list[WireEvent]) -> None:
        """Handle missing bytes in this direction."""
        if self._decoder is None:
            self._choose_decoder(ProtocolKind.OPAQUE, direction, at, out, looks_like="lost")
        else:
            self._decoder.feed_loss(direction, at, out)

    def _hold_end(self, what: str, direction: Direction, at: int, out: list[WireEvent]) -> None:
        """Hold an end that arrives before detection. If the client ends after sending bytes, the
        kind is opaque."""
        self._held.append((what, int(direction), b"", at))
        if direction is Direction.TO_AGENT and self._held_size:
            self._choose_decoder(ProtocolKind.OPAQUE, direction, at, out)

    def _choose_decoder(
        self,
        kind: ProtocolKind,
        direction: Direction,
        at: int,
        out: list[WireEvent],
        looks_like: str = "",
    ) -> None:
        """Set the kind and pass the held events to its decoder, in order."""
        self.kind = kind.value
        decoder = self._decoder = _DECODERS[kind]()
        if kind is ProtocolKind.TLS or kind is ProtocolKind.OPAQUE:
            out.append(
                Control(
                    direction,
                    at,
                    0,
                    0,
                    "opaque",
                    {"looks_like": looks_like or self._describe_prefix(kind)},
                )
            )
        for what, way, data, when in self._held:
            if what == "feed":
                decoder.feed(Direction(way), data, when, out)
            elif what == "eof":
                decoder.feed_eof(Direction(way), when, out)
            else:
                decoder.feed_reset(Direction(way), when, out)
        self._held = []
        self._client_prefix = bytearray()

    def _describe_prefix(self, kind: ProtocolKind) -> str:
        if kind is ProtocolKind.TLS:
            return "tls"
        return "unknown" if self._client_prefix else "server first"
