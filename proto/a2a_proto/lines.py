"""The lines: their names, packages and files. Adding one starts here."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

Line = Literal["0.3", "rc", "1.0", "live-1975", "live-2153", "rpc"]
"""A set of payloads that fits together (manual/protocol.md "Protobuf packages")."""


class Source(NamedTuple):
    """Where the messages of a line are written down."""

    package: str
    """protobuf package of its messages."""
    proto: str
    """The `.proto` file with its top messages, relative to this package; what it imports comes along."""

    @property
    def descriptor_set(self) -> str:
        """The compiled file, relative to this package."""
        return self.proto.removesuffix(".proto") + ".binpb"


LINES: Final[dict[Line, Source]] = {
    "0.3": Source("a2a.v1", "v0_3/a2a.proto"),
    "rc": Source("a2a.v1", "rc/a2a.proto"),
    "1.0": Source("lf.a2a.v1", "v1/a2a.proto"),
    "live-1975": Source("lf.a2a.v1", "live1975/a2a.proto"),
    "live-2153": Source("lf.a2a.v1", "live2153/a2a.proto"),
    "rpc": Source("google.rpc", "rpc/status.proto"),
}
