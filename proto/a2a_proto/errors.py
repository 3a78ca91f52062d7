"""What can go wrong with a peer's bytes. Knows nothing of protobuf, so that it can be imported for nothing."""

from __future__ import annotations


class ParseError(ValueError):
    """Bytes that are no message of that type.

    Cut short, a bad key, a string that is not UTF-8, nested too deep.
    """


class RenderError(ValueError):
    """A message that parses but has no ProtoJSON form.

    A time outside the years 1 to 9999, a NaN in a Struct, an Any of a type that the pool does not hold.
    """
