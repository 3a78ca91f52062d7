"""Strings in protobuf messages: replaced with every other byte unchanged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_proto import message_class
from a2a_proxy.relay.edits.protobuf_strings import read_string, replace_fields

STRANGE = b"\xa2\x3f\x01x"
"""Field 1012, which no message has."""


@given(url=st.text(max_size=300), token=st.text(max_size=200), after=st.text(max_size=300))
def test_only_the_string_changes(url: str, token: str, after: str) -> None:
    """The lengths around it are right, unknown fields stay, and replacing it back gives the same
    bytes."""
    request = message_class("1.0", "SendMessageRequest")()
    request.message.message_id = token
    config = request.configuration.task_push_notification_config
    config.id, config.url, config.token = "c", url or "x", token
    request.configuration.history_length = 300
    data = request.SerializeToString() + STRANGE
    edited = replace_fields(data, (3, 2, 4), lambda _: after.encode())
    config.url = after
    new = message_class("1.0", "SendMessageRequest").FromString(edited)
    new.DiscardUnknownFields()
    assert read_string(edited, (3, 2, 4)) == after
    assert (new.configuration.task_push_notification_config.url, new.message.message_id) == (
        after,
        token,
    )
    assert edited.endswith(STRANGE)
    assert replace_fields(edited, (3, 2, 4), lambda _: (url or "x").encode()) == data


def test_an_entry_can_be_the_message_itself() -> None:
    assert replace_fields(b"ab", (), lambda data: data[::-1]) == b"ba"


def test_the_last_of_several_strings_counts() -> None:
    """Parsers keep the last value of a field."""
    assert read_string(b"\x0a\x01a\x0a\x01b", (1,)) == "b"


@pytest.mark.parametrize(
    "data",
    [b"\x0a", b"\x0a\x05ab", b"\x0b", b"\xff" * 12, b"\x00\x01", b"\x09\x01", b"\x0a\xff\xff"],
)
def test_other_bytes_raise(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"protobuf|field|number"):
        replace_fields(data, (1,), lambda content: content + b"x")


@given(st.binary(max_size=200))
def test_random_bytes_raise_nothing_else(data: bytes) -> None:
    try:
        assert replace_fields(data, (3, 2, 4), lambda content: content) == data
        read_string(data, (3, 2))
    except ValueError:
        return
