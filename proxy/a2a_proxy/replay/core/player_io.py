"""Input and output of the player: requests from a server, and what to send."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from a2a_proxy.model.values import Binding, Dialect
from a2a_proxy.model.wire import Headers
from a2a_proxy.replay.core.script import LineKind, RecordedPush, ScriptLine

if TYPE_CHECKING:
    from a2a_proxy.replay.core.miss import Miss


class PlayerRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a client, as received."""

    operation: str
    """The 1.0 name from the operation table; for an unknown operation, its path or method on the
    wire."""
    value: Any = msgspec.field(default_factory=dict)
    """The request in canonical form: `protocol.form`."""
    binding: Binding = Binding.GRPC
    dialect: Dialect = Dialect.V1_0
    tenant: str = ""
    headers: Headers = ()
    agent: str = ""
    """The agent whose recorded calls had this base path; empty if there is none or more than
    one."""


class PlayerSend(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to send now, with live identifiers."""

    what: LineKind
    value: Any = None
    """The message or the error in canonical form."""
    line: ScriptLine | None = None
    """The recorded line; None if the replay itself creates the message."""
    status: int = -1
    """gRPC status of an END; -1 if none was recorded (other bindings)."""
    trailers: Headers = ()
    after: int = 0
    """Bytes of the message in `value` that are still sent before a CUT; 0: none."""
    miss: Miss | None = None
    url: str = ""
    """URL of a PUSH, as registered by the client."""
    push: RecordedPush | None = None
    """The recorded webhook of a PUSH."""
    config: Any = None
    """The client's configuration for a PUSH, with its token and authentication."""

    @property
    def is_final(self) -> bool:
        """Whether nothing follows on this call."""
        return self.what in (LineKind.END, LineKind.RESET, LineKind.CUT, LineKind.MISS)
