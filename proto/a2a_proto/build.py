"""Compiles the `.proto` files of this package into the descriptor sets next to them. For
developers: needs grpcio-tools.

    python -m a2a_proto.build

Descriptor sets are written without source info and file options and serialised in a fixed order, so
that the same `.proto` text yields the same bytes with every release of protoc.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import grpc_tools
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from grpc_tools import protoc

from a2a_proto.schema_sets import SCHEMA_SETS, SchemaSet

PACKAGE_DIR = Path(__file__).parent
WELL_KNOWN = Path(grpc_tools.__file__).parent / "_proto"


def compile_descriptor_set(schema_set: SchemaSet) -> bytes:
    """Return the descriptor set compiled from the set's `.proto` files. Raises ValueError if protoc
    rejects them."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / "set.binpb"
        arguments = [
            "protoc",
            f"-I{PACKAGE_DIR}",
            f"-I{WELL_KNOWN}",
            "--include_imports",
            f"--descriptor_set_out={out}",
        ]
        if protoc.main([*arguments, SCHEMA_SETS[schema_set].proto]):
            raise ValueError(f"protoc refuses {SCHEMA_SETS[schema_set].proto}")
        made = FileDescriptorSet.FromString(out.read_bytes())
    for file in made.file:
        file.ClearField("options")
        file.ClearField("source_code_info")
    return made.SerializeToString(deterministic=True)


def main() -> None:
    """Write every descriptor set and print which ones changed."""
    for schema_set, source in SCHEMA_SETS.items():
        path, data = PACKAGE_DIR / source.descriptor_path, compile_descriptor_set(schema_set)
        changed = not path.exists() or path.read_bytes() != data
        path.write_bytes(data)
        sys.stdout.write(
            f"{source.descriptor_path}: {len(data)} bytes{', changed' if changed else ''}\n"
        )


if __name__ == "__main__":
    main()
