"""Private descriptor pools: how each dialect parses bytes, and which unknown fields it keeps."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import descriptor_pool

from a2a_proto import SCHEMA_SETS, ParseError, message_class, parse, pool, to_dict


def test_pool_is_private_and_one_per_line() -> None:
    """Every line has one pool, none of them protobuf's default, which learns nothing from ours."""
    pools = [pool(line) for line in SCHEMA_SETS]
    assert len({id(each) for each in pools}) == len(SCHEMA_SETS)
    assert pool("1.0") is pools[list(SCHEMA_SETS).index("1.0")]
    assert descriptor_pool.Default() not in pools
    with pytest.raises(KeyError):
        descriptor_pool.Default().FindMessageTypeByName("lf.a2a.v1.SendMessageRequest")


def test_names() -> None:
    """Short and full names lead to one class; nested messages and well-known types are found
    too."""
    task = message_class("1.0", "Task")
    assert message_class("1.0", "lf.a2a.v1.Task").DESCRIPTOR is task.DESCRIPTOR
    assert message_class("1.0", "Task") is task
    assert message_class("rpc", "BadRequest.FieldViolation").DESCRIPTOR.name == "FieldViolation"
    assert (
        message_class("0.3", "google.protobuf.Struct").DESCRIPTOR.full_name
        == "google.protobuf.Struct"
    )
    assert message_class("1.0", "google.protobuf.Empty").FromString(b"").ByteSize() == 0


def test_unknown_names() -> None:
    """A line or message that does not exist is the caller's mistake: KeyError, from parse too."""
    with pytest.raises(KeyError):
        pool("2.0")
    with pytest.raises(KeyError):
        parse("1.0", "StreamRequest", b"")


@pytest.mark.parametrize(
    "data",
    [b"\x0a\x05ab", b"\x0a\x01\xff", b"\xff", b"\x0b", b"\x00\x00", b"\x2a\x02" * 200],
    ids=["cut", "not UTF-8", "open key", "open group", "number 0", "wrong nesting"],
)
def test_bad_bytes(data: bytes) -> None:
    """Bytes that are no Task raise the documented error, which says how many they were."""
    with pytest.raises(ParseError, match=rf"^{len(data)} bytes are not a Task of 1\.0$"):
        parse("1.0", "Task", data)


@pytest.mark.parametrize("line", ["0.3", "1.0", "live-1975", "live-2153"])
def test_well_known_types_work(line: Any) -> None:
    """Struct and Timestamp of a private pool behave like those of the default one."""
    task: Any = message_class(line, "Task")()
    task.metadata.update({"a": [1, {"b": None}]})
    task.status.timestamp.FromJsonString("2026-08-12T10:00:00.5Z")
    assert task.metadata["a"][0] == 1
    expected = {
        "metadata": {"a": [1, {"b": None}]},
        "status": {"timestamp": "2026-08-12T10:00:00.500Z"},
    }
    assert to_dict(parse(line, "Task", task.SerializeToString())) == expected


def test_unknown_fields_survive() -> None:
    """What a newer peer adds is carried through a line that does not know it."""
    newer: Any = message_class("live-2153", "StreamResponse")()
    newer.task.id = "t"
    newer.task.timeline.add(generation=3).message.message_id = "m"
    data = newer.SerializeToString()
    older: Any = parse("1.0", "StreamResponse", data)
    assert older.task.id == "t"
    assert older.SerializeToString() == data
    assert parse("live-2153", "StreamResponse", older.SerializeToString()) == newer


def test_configuration_5_goes_by_wire_type() -> None:
    """0x28 is a generation and 0x2A a session offer; the line that means the other keeps it as
    unknown, unharmed."""
    generation, offer = b"\x28\x07", b"\x2a\x06\x0a\x04\x0a\x02a/"
    draft: Any = parse("1.0", "SendMessageConfiguration", generation)
    media: Any = parse("live-1975", "SendMessageConfiguration", offer)
    assert draft.if_generation_match == 7
    assert media.live_session.modalities[0].media_type == "a/"
    for line, data in (("1.0", offer), ("live-1975", generation)):
        other: Any = parse(line, "SendMessageConfiguration", data)  # type: ignore[arg-type]
        assert other.ListFields() == []
        assert other.SerializeToString() == data


def test_explicit_zero_is_seen() -> None:
    """`ifGenerationMatch: 0` is on the wire and not the same as absent."""
    assert to_dict(parse("1.0", "SendMessageConfiguration", b"\x28\x00")) == {
        "ifGenerationMatch": "0"
    }
    assert to_dict(parse("1.0", "SendMessageConfiguration", b"")) == {}


def test_drift_bytes_of_0_3() -> None:
    """Part metadata, file names, icon and history capability of later 0.3 builds are read."""
    part = bytes.fromhex("12 08 0a 03 75 72 69 22 01 6e 22 07 0a 05 0a 01 6b 12 00")
    assert to_dict(parse("0.3", "Part", part)) == {
        "file": {"fileWithUri": "uri", "name": "n"},
        "metadata": {"k": None},
    }
    assert to_dict(parse("0.3", "AgentCard", b"\x92\x01\x01i")) == {"iconUrl": "i"}
    assert to_dict(parse("0.3", "AgentCapabilities", b"\x20\x01")) == {
        "stateTransitionHistory": True
    }


def test_blocking_is_inverted_since_1_0() -> None:
    """Number 4 of the configuration means one thing before 1.0 and the opposite from then on."""
    for line, name in (("0.3", "blocking"), ("1.0", "returnImmediately")):
        assert to_dict(parse(line, "SendMessageConfiguration", b"\x20\x01")) == {name: True}  # type: ignore[arg-type]
