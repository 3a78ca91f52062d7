"""The A2A protocol as data: `.proto` files, compiled descriptor sets, private descriptor pools.

A *line* is one set of payloads that fits together: `0.3`, `rc`, `1.0` (with the generation fields of the 1.1 draft and
the live operations of BIDI), `live-1975`, `live-2153`, and `rpc` for the details of a gRPC status. Every line has a
descriptor pool of its own. protobuf's default pool is never touched: it is one per process, the A2A SDK registers the
same names there, and whoever comes second fails.

Importing this package is cheap: protobuf is loaded when something is first used. Nothing here does I/O but to read its
own descriptor sets; `a2a_proto.build`, for developers, writes them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from a2a_proto.errors import ParseError, RenderError
from a2a_proto.lines import SCHEMA_SETS, SchemaSet

if TYPE_CHECKING:
    from a2a_proto.dialect import choose_a2a_v1
    from a2a_proto.live import LivePayload, detect_live, proves_bidi
    from a2a_proto.pools import message_class, parse, pool
    from a2a_proto.render import from_dict, read_status, to_dict, to_json

__all__ = [
    "SCHEMA_SETS",
    "LivePayload",
    "ParseError",
    "RenderError",
    "SchemaSet",
    "choose_a2a_v1",
    "detect_live",
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
    "choose_a2a_v1": "dialect",
    "detect_live": "live",
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
    """Load the module that holds `name` when it is first asked for, and remember the value."""
    home = _MODULE_OF_NAME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
