"""The lines: their names, packages and files. Adding one starts here."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

SchemaSet = Literal["0.3", "rc", "1.0", "live-1975", "live-2153", "rpc"]
"""A set of payloads that fits together (manual/protocol.md "Protobuf packages")."""


class SchemaSource(NamedTuple):
    """Where the messages of a line are written down."""

    package: str
    """protobuf package of its messages."""
    proto: str
    """The `.proto` file with its top messages, relative to this package; what it imports comes along."""

    @property
    def descriptor_path(self) -> str:
        """The compiled file, relative to this package."""
        return self.proto.removesuffix(".proto") + ".binpb"


SCHEMA_SETS: Final[dict[SchemaSet, SchemaSource]] = {
    "0.3": SchemaSource("a2a.v1", "v0_3/a2a.proto"),
    "rc": SchemaSource("a2a.v1", "rc/a2a.proto"),
    "1.0": SchemaSource("lf.a2a.v1", "v1/a2a.proto"),
    "live-1975": SchemaSource("lf.a2a.v1", "live1975/a2a.proto"),
    "live-2153": SchemaSource("lf.a2a.v1", "live2153/a2a.proto"),
    "rpc": SchemaSource("google.rpc", "rpc/status.proto"),
}
