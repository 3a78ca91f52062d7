"""The package in an environment: cheap to import, and independent of protobuf's default pool."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import a2a_proto
from support_peers import ENVIRONMENTS, require_peers

ROOT = Path(__file__).parents[2]

USE = """
import a2a_proto
message = a2a_proto.message_class("1.0", "StreamResponse")()
message.task.id = "t"
message.task.generation = 7
message.task.metadata["a"] = 1
again = a2a_proto.parse("1.0", "StreamResponse", message.SerializeToString())
assert a2a_proto.to_json(again) == '{"task":{"id":"t","metadata":{"a":1},"generation":"7"}}', again
assert a2a_proto.read_status(b"\\x08\\x05")["code"] == 5
"""
"""Our package doing its work."""

TAKEN = """
from google.protobuf import descriptor_pb2, descriptor_pool
for package, file in (
    ("lf.a2a.v1", "a2a.proto"), ("a2a.v1", "v0_3/a2a.proto"), ("google.rpc", "rpc/status.proto")
):
    clash = descriptor_pb2.FileDescriptorProto(name=file, package=package, syntax="proto3")
    for name in ("Task", "StreamResponse", "GetTaskRequest", "Status", "ErrorInfo"):
        clash.message_type.add(name=name).field.add(name="other", number=1, type=5, label=1)
    descriptor_pool.Default().Add(clash)
    task = descriptor_pool.Default().FindMessageTypeByName(package + ".Task")
    assert task.fields[0].name == "other"
"""
"""Somebody else with the same names, and other fields, in the default pool."""

SDKS = {
    "sdk1": """
from a2a.types import a2a_pb2
from a2a.compat.v0_3 import a2a_v0_3_pb2
assert a2a_pb2.Task.FromString(b"\\x0a\\x01t").id == "t"
""",
    "sdk03": """
from a2a.grpc import a2a_pb2
assert a2a_pb2.Task.FromString(b"\\x0a\\x01t").id == "t"
""",
}
"""The A2A SDK doing its work, by the environment that holds it."""


def run(script: str, python: str = sys.executable, **environment: str) -> None:
    """Run a script in a process of its own, our package importable, and fail with what it says."""
    variables = {**os.environ, "PYTHONPATH": str(ROOT / "proto"), **environment}
    done = subprocess.run(
        [python, "-c", script],
        env=variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_import_is_cheap() -> None:
    """Importing the package, and telling live payloads apart, loads no protobuf."""
    run(
        "import sys, a2a_proto\n"
        "assert a2a_proto.detect_live(bytes.fromhex('0A030A0174'), b'') == ''\n"
        "assert 'google.protobuf' not in sys.modules, 'protobuf was loaded'\n"
        "a2a_proto.pool\n"
        "assert 'google.protobuf' in sys.modules"
    )


def test_all_lists_exactly_the_public_names() -> None:
    """What `__all__` lists can be had, and nothing else is made up."""
    for name in a2a_proto.__all__:
        assert getattr(a2a_proto, name) is not None
    with pytest.raises(AttributeError, match="nothing_such"):
        a2a_proto.nothing_such  # noqa: B018


@pytest.mark.parametrize("script", [TAKEN + USE, USE + TAKEN], ids=["theirs first", "ours first"])
def test_names_taken_in_the_default_pool(script: str) -> None:
    """The same names in the default pool, before or after, hurt neither side."""
    run(script)


def test_pure_python_protobuf() -> None:
    """Everything works where protobuf has no compiled parser."""
    run(USE, PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION="python")


@pytest.mark.peers
@pytest.mark.parametrize("sdk", SDKS)
@pytest.mark.parametrize("ours_first", [True, False], ids=["ours first", "theirs first"])
def test_works_in_one_process_with_the_sdk(sdk: str, ours_first: bool) -> None:
    """The A2A SDK and this package work in one process, whichever is imported first."""
    require_peers(sdk)
    python = str(ENVIRONMENTS / sdk / "bin" / "python")
    run(USE + SDKS[sdk] if ours_first else SDKS[sdk] + USE, python)
