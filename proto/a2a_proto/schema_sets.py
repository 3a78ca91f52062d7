"""The schema sets: their names, packages and files. A new schema set starts here."""

from typing import Final, Literal, NamedTuple

SchemaSet = Literal["0.3", "1.0", "live-1975", "live-2153", "rpc"]
"""Name of a group of message definitions that belong together (manual/protocol.md "Protobuf
packages")."""


class SchemaSource(NamedTuple):
    """Source of the messages of a schema set."""

    package: str
    """The protobuf package of the messages."""
    proto: str
    """The `.proto` file of the top-level messages, relative to this package. Its imports are
    compiled with it."""

    @property
    def descriptor_path(self) -> str:
        """Path of the compiled descriptor set, relative to this package."""
        return self.proto.removesuffix(".proto") + ".binpb"


SCHEMA_SETS: Final[dict[SchemaSet, SchemaSource]] = {
    "0.3": SchemaSource("a2a.v1", "v0_3/a2a.proto"),
    "1.0": SchemaSource("lf.a2a.v1", "v1/a2a.proto"),
    "live-1975": SchemaSource("lf.a2a.v1", "live1975/a2a.proto"),
    "live-2153": SchemaSource("lf.a2a.v1", "live2153/a2a.proto"),
    "rpc": SchemaSource("google.rpc", "rpc/status.proto"),
}
