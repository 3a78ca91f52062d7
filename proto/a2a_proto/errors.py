"""Errors caused by a peer's bytes. Does not import protobuf, so importing this module is cheap."""


class ParseError(ValueError):
    """The bytes are not a message of the expected type.

    Examples: a truncated message, an invalid key, a string that is not UTF-8, nesting that is too
    deep.
    """


class RenderError(ValueError):
    """The message parses but has no ProtoJSON form.

    Examples: a time outside the years 1 to 9999, a NaN in a Struct, an Any whose type is not in the
    pool.
    """
