"""The A2A protocol as data: `.proto` files, compiled descriptor sets, private descriptor pools.

A *schema set* is one group of message definitions that belong together: `0.3`, `1.0` (with the
generation fields of the 1.1 draft and the live operations of BIDI), `live-1975`, `live-2153`,
and `rpc` for the details of a gRPC status. Every schema set has a descriptor pool of its own.
protobuf's default pool is never used: each process has only one, the A2A SDK registers the same
names there, and the second registration of a name fails.

`a2a_proto.shapes` describes the objects of all dialects, as derived from the descriptors and, for
JSON before 1.0, as tables: members, types, required members, alternatives, spellings.

Importing this package is cheap: protobuf is loaded on first use. The package reads its own
descriptor sets and does no other I/O; `a2a_proto.build`, a developer tool, writes them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from a2a_proto.errors import ParseError, RenderError
from a2a_proto.schema_sets import SCHEMA_SETS, SchemaSet

if TYPE_CHECKING:
    from a2a_proto.bad_text import find_bad_text
    from a2a_proto.live import LivePayload, detect_live, proves_bidi
    from a2a_proto.pools import message_class, parse, pool
    from a2a_proto.render import from_dict, read_status, to_dict, to_json

__all__ = [
    "SCHEMA_SETS",
    "LivePayload",
    "ParseError",
    "RenderError",
    "SchemaSet",
    "detect_live",
    "find_bad_text",
    "from_dict",
    "message_class",
    "parse",
    "pool",
    "proves_bidi",
    "read_status",
    "to_dict",
    "to_json",
]

_MODULE_OF_NAME = {
    "LivePayload": "live",
    "detect_live": "live",
    "find_bad_text": "bad_text",
    "from_dict": "render",
    "message_class": "pools",
    "parse": "pools",
    "pool": "pools",
    "proves_bidi": "live",
    "read_status": "render",
    "to_dict": "render",
    "to_json": "render",
}


def __getattr__(name: str) -> object:
    """Import the module that defines `name` on first access, and cache the value."""
    home = _MODULE_OF_NAME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
