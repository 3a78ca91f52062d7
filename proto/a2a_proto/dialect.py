"""Distinguishes the two schema sets of package `a2a.v1`: 0.3, and the release candidate of 1.0.

Both use the same package name, so `:path` does not distinguish them (manual/protocol.md "gRPC
fingerprints"). The method does if only one set has it. Otherwise both sets parse the bytes, and the
one with fewer unknown bytes wins.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from google.protobuf.message import DecodeError, Message

from a2a_proto.pools import message_class

A2aV1 = Literal["0.3", "rc"]

_SET_OF_METHOD: Final[dict[str, A2aV1]] = {
    "TaskSubscription": "0.3",
    "GetAgentCard": "0.3",
    # 0.2.2 to 0.2.4, before the names gained `Config`.
    "CreateTaskPushNotification": "0.3",
    "GetTaskPushNotification": "0.3",
    "ListTaskPushNotification": "0.3",
    "SubscribeToTask": "rc",
    "GetExtendedAgentCard": "rc",
}


def choose_a2a_v1(method: str, message_name: str, data: bytes, otherwise: A2aV1 = "0.3") -> A2aV1:
    """Return the schema set of one message.

    `method` is the last segment of `:path`, `message_name` the name of the message type in both
    sets. `otherwise` is returned if the bytes fit both sets or neither, as short text messages do:
    pass the set already known for the peer. Costs at least two parses, so call it only until the
    peer's set is known, not for every message.
    """
    by_method = _SET_OF_METHOD.get(method)
    if by_method is not None:
        return by_method
    old, new = _parse_or_none("0.3", message_name, data), _parse_or_none("rc", message_name, data)
    if old is None or new is None:
        return "0.3" if old is not None else "rc" if new is not None else otherwise
    by_unknown = _discard_unknown_fields(old) - _discard_unknown_fields(new)
    if by_unknown:
        return "0.3" if by_unknown < 0 else "rc"
    return _choose_by_resource_name(old, new) or ("0.3" if _has_structured_part(old) else otherwise)


def _parse_or_none(schema_set: A2aV1, name: str, data: bytes) -> Message | None:
    """Return the message parsed with `schema_set`, or None if it does not parse or the set has no
    such message."""
    try:
        return message_class(schema_set, name).FromString(data)
    except (DecodeError, KeyError):
        return None


def _discard_unknown_fields(message: Message) -> int:
    """Remove the unknown fields from `message`, at any depth, and return their size in bytes."""
    whole = message.ByteSize()
    message.DiscardUnknownFields()
    return whole - message.ByteSize()


def _choose_by_resource_name(old: Message, new: Message) -> A2aV1 | None:
    """Choose by field 1, which in many requests is a resource name (`tasks/{id}`) in 0.3 and a bare
    id in `rc`."""
    field, other = old.DESCRIPTOR.fields_by_number.get(1), new.DESCRIPTOR.fields_by_number.get(1)
    if (
        field is None
        or other is None
        or field.name == other.name
        or field.name not in ("name", "parent")
    ):
        return None
    name: str = getattr(old, field.name)
    # 0.3.0 spells the parent of one binding `task/`.
    return ("0.3" if name.startswith(("tasks/", "task/")) else "rc") if name else None


def _has_structured_part(message: Message) -> bool:
    """Whether a part parses as a file or as data of 0.3. In `rc` the same field holds plain bytes
    or a URL."""
    if message.DESCRIPTOR.name in ("FilePart", "DataPart"):
        return bool(message.ListFields())
    return any(_has_structured_part(child) for child in _child_messages(message))


def _child_messages(message: Message) -> Iterator[Message]:
    """Yield the A2A messages directly inside `message`, except map values, which only agent cards
    have."""
    for field, value in message.ListFields():
        if (
            field.message_type is None
            or field.message_type.file.package != message.DESCRIPTOR.file.package
        ):
            continue
        if isinstance(value, Message):
            yield value
        elif hasattr(value, "append"):
            yield from value
