"""What a user wants spans to say besides what they always say. Pure."""

from __future__ import annotations

from typing import Literal

import msgspec

SpanKind = Literal["internal", "server"]
Compat = Literal["kong", "openinference", "langfuse"]


class SpanOptions(msgspec.Struct, frozen=True):
    """The same for a live export and for one long after, so that both make the same spans."""

    kind: SpanKind = "internal"
    """Of calls. `server` where neither clients nor agents send spans of their own."""
    content: bool = False
    """The text of messages and artifacts as well, as it was recorded."""
    compat: tuple[Compat, ...] = ()
    """Whose names the attributes have as well (`compat`)."""
    segment: int = 0
    """ns after which a call that goes on gets a span, and again (`segments`); 0: one span when it is over."""


DEFAULT_SPAN_OPTIONS = SpanOptions()
