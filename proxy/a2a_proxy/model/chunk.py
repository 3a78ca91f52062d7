"""The input of the observer: captured bytes and connection events, as seen by the relay."""

from __future__ import annotations

from enum import IntEnum

import msgspec


class Direction(IntEnum):
    """The direction in which bytes travel. The client is the side that opened the connection."""

    TO_AGENT = 0
    TO_CLIENT = 1

    @property
    def other(self) -> Direction:
        """The opposite direction."""
        return Direction(1 - self)


class ChunkKind(IntEnum):
    """The kind of a journal record. The numbers are the journal format: never renumber."""

    OPEN = 1
    """A client connected. `data` is JSON: `ConnectionFacts`."""
    DIALED = 2
    """The upstream connection is established (or failed). `data` is JSON: `DialFacts`."""
    DATA = 3
    """Bytes sent by a peer, exactly as they arrived."""
    EOF = 4
    """The sender of this direction will send no more bytes (FIN)."""
    RESET = 5
    """The sender of this direction broke the connection (RST, or an I/O error). `data` is UTF-8
    text, may be empty; `TLS ...` is a reason for users."""
    CLOSED = 6
    """Both sides are closed; the last record of a connection."""
    OURS = 7
    """Bytes created by the proxy (a 502, an UNAVAILABLE), in the direction they were sent."""
    EDIT = 8
    """The proxy changed bytes while relaying them.

    `data` is JSON; the captured copy holds the bytes as sent by the peer.
    """
    LOST = 9
    """Bytes of this direction are missing here. `data` is JSON: `{"bytes": n}`. The connection is
    opaque from here."""
    END = 10
    """The session ended cleanly. Connection 0."""
    LOG = 11
    """Bytes that a stdio agent wrote to stderr."""
    SIGNAL = 12
    """A signal reached the proxy, which passed it on to a stdio agent. `data` is its name in ASCII
    (`SIGTERM`)."""
    EXITED = 13
    """The process of a stdio agent has ended. `data` is JSON: `ExitFacts`."""
    PASSED = 14
    """The bytes of this direction were relayed unread, through a forward proxy. `data` is JSON:
    `PassedFacts`."""


class Chunk(msgspec.Struct, frozen=True, gc=False):
    """One journal record."""

    connection: int
    """Number of the connection within the session, from 1; 0 for the session itself."""
    kind: ChunkKind
    direction: Direction
    """Meaningful for DATA, EOF, RESET, OURS, EDIT, LOST and PASSED; LOG and EXITED go TO_CLIENT,
    SIGNAL goes TO_AGENT."""
    at: int
    """Time the relay saw it: ns since the Unix epoch, never decreasing within a session."""
    data: bytes = b""


class CertificateFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """A certificate that was presented in a TLS handshake."""

    sha256: str
    """The fingerprint, in hexadecimal digits."""
    names: tuple[str, ...] = ()
    """Host names, addresses and URIs that it is for, the first ones; empty if they are not
    known."""
    not_after: str = ""
    """The end of its validity (`2028-11-21T16:39:17Z`); empty if it is not known."""
    verified: bool = False
    """Whether the proxy has verified it."""


class TlsFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of one TLS handshake."""

    version: str
    """`TLSv1.3`."""
    cipher: str
    """`TLS_AES_256_GCM_SHA384`."""
    alpn: str = ""
    """The agreed protocol; empty if none was."""
    server_name: str = ""
    """The host that the client asked for (SNI); empty if it named none."""
    server: CertificateFacts | None = None
    """The server's certificate: the proxy's toward a client, the agent's toward an upstream."""
    client: CertificateFacts | None = None
    """The client's certificate, if it presented one."""


class ClientProcess(msgspec.Struct, frozen=True):
    """The process behind a client connection, on the machine of the proxy."""

    pid: int
    name: str
    """Name of the program or script: `planner`."""
    ports: tuple[int, ...] = ()
    """TCP ports on which the process listens, in ascending order."""

    @property
    def label(self) -> str:
        """The process in words: `planner (pid 71)`."""
        return f"{self.name} (pid {self.pid})"


class ConnectionFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """Facts known when a client connects."""

    client: str
    """The client's address, `host:port`."""
    listen: str
    """The address it connected to, `host:port`."""
    upstream: str
    """The listener's upstream, as the user wrote it, without user info. With stdio: the agent's
    command line."""
    transport: str = "tcp"
    """`tcp`, or `stdio`: the two directions are the agent's stdin and stdout (manual/protocol.md
    "Stdio")."""
    client_process: ClientProcess | None = None
    """The client's process; None if it is unknown."""
    tls: TlsFacts | None = None
    """The TLS handshake with the client; None if it speaks plain text."""
    forwarded: bool = False
    """Whether the client chose the upstream by its request to a forward proxy."""
    deliverer: str = ""
    """The upstream of the agent that delivers a push notification, as the user wrote it, if the
    client is this agent and the upstream its client's webhook."""

    @property
    def client_ports(self) -> tuple[int, ...]:
        """TCP ports on which the client's process listens."""
        return self.client_process.ports if self.client_process is not None else ()


class DialFacts(msgspec.Struct, frozen=True):
    """The outcome of one dial."""

    upstream: str
    """The chosen upstream, `host:port`."""
    peer: str | None = None
    """The address that answered, `host:port`; None if the dial failed."""
    error: str | None = None
    """Why the dial failed; None if it succeeded."""
    tls: TlsFacts | msgspec.UnsetType = msgspec.UNSET
    """The TLS handshake with the upstream; not set without TLS."""


class PassedFacts(msgspec.Struct, frozen=True):
    """Bytes that were relayed unread."""

    bytes: int
    """Their number, in this direction of the whole connection."""
    kind: str
    """What they are: `tls`, which the user can have read by `--intercept`, or `opaque`."""


class ExitFacts(msgspec.Struct, frozen=True):
    """The end of a stdio agent's process: exactly one of the two is set."""

    code: int | None = None
    """The exit code."""
    signal: str | None = None
    """Name of the signal that killed it (`SIGKILL`)."""

    @property
    def description(self) -> str:
        """The end in words: `exited with code 3`, `killed by SIGKILL`."""
        return f"killed by {self.signal}" if self.signal else f"exited with code {self.code}"
