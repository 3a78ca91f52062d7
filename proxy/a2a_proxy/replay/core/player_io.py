"""What a server tells the player, and what the player gives it to send."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from a2a_proxy.model.exchange import Binding, Dialect
from a2a_proxy.model.wire import Headers
from a2a_proxy.replay.core.script import LineKind, RecordedPush, ScriptLine

if TYPE_CHECKING:
    from a2a_proxy.replay.core.miss import Miss


class PlayerRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a client, as it has come."""

    operation: str
    """The 1.0 name, from the operation table; what the wire said (a path, a method) where that has none."""
    value: Any = msgspec.field(default_factory=dict)
    """The request in canonical form: `protocol.form`."""
    binding: Binding = Binding.GRPC
    dialect: Dialect = Dialect.V1_0
    tenant: str = ""
    headers: Headers = ()


class PlayerSend(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to put on the wire now, ids already mapped."""

    what: LineKind
    value: Any = None
    """The message, or the error, in canonical form."""
    line: ScriptLine | None = None
    """What was recorded; None of what the replay makes itself."""
    status: int = -1
    """Of an END: the gRPC status; -1 where none was recorded (other bindings)."""
    trailers: Headers = ()
    after: int = 0
    """Of a CUT: bytes of the message in `value` that still go out before it; 0: none."""
    miss: Miss | None = None
    url: str = ""
    """Of a PUSH: where to, as the client registered it."""
    push: RecordedPush | None = None
    """Of a PUSH: what was recorded."""
    config: Any = None
    """Of a PUSH: the client's configuration, with its token and its way to authenticate."""

    @property
    def is_final(self) -> bool:
        """Nothing follows it on this call."""
        return self.what in (LineKind.END, LineKind.RESET, LineKind.CUT, LineKind.MISS)
