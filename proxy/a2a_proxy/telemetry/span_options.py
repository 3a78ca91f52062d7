"""User options for the content of spans. No I/O."""

import msgspec

from a2a_proxy.model.option import Compat, SpanKind


class SpanOptions(msgspec.Struct, frozen=True):
    """Options for both live and later exports, so that they build the same spans."""

    kind: SpanKind = "internal"
    """Kind of the spans of calls: `server` if neither clients nor agents send spans of their
    own."""
    content: bool = False
    """Whether to include the text of messages and artifacts, as recorded."""
    compat: tuple[Compat, ...] = ()
    """Tools and conventions whose attribute names are added (`compat`)."""
    segment: int = 0
    """Duration of a segment of an open call in ns (`segments`); 0: one span when the call ends."""


DEFAULT_SPAN_OPTIONS = SpanOptions()
