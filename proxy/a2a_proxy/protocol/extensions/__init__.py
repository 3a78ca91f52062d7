"""Known A2A extensions: their names, their places in a message, and their content in words. No I/O.

For people, outside the hot path. A package adds extensions of its own (manual: extensions.md).

- `uses`: the extensions that a message uses
- `registry`: all known extensions
- `a2ui`, `ap2`: one extension each
- `short_extensions`: latency, secure passport, timestamp, traceability
- `extension`: the description of an extension
- `members`: members of values of any type
"""

from a2a_proxy.protocol.extensions.extension import Extension, ExtensionPayload, Place

__all__ = ["Extension", "ExtensionPayload", "Place"]
