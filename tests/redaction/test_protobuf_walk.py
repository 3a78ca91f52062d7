from __future__ import annotations

import pytest

from a2a_proxy.redaction.protobuf_walk import field_numbers, redact_message

TEXT = b"\x12\x02ab"
"""Field 2, a text."""


@pytest.mark.parametrize(
    "before",
    [b"", b"\x0d" + bytes(4), b"\x09" + bytes(8), b"\x08\x96\x01", b"\x0b\x0c"],
    ids=["nothing", "32 bits", "64 bits", "varint", "group"],
)
def test_fields_of_every_wire_type_are_skipped(before: bytes) -> None:
    assert field_numbers(before + TEXT) == {2}
    assert field_numbers(TEXT + before + b"\x1a\x00") == {2, 3}


@pytest.mark.parametrize(
    "data",
    [
        b"\x02\x02ab",
        b"\x82\x80\x80\x80\x10\x00",
        b"\x0e",
        b"\x0f",
        b"\x12\x03ab",
        b"\x0d\0\0\0",
        b"\x80",
    ],
    ids=[
        "field 0",
        "field 2**29",
        "wire type 6",
        "wire type 7",
        "cut text",
        "cut 32 bits",
        "cut tag",
    ],
)
def test_bytes_that_are_no_message_have_no_fields(data: bytes) -> None:
    assert field_numbers(data) == set()


def test_the_largest_field_number_is_valid() -> None:
    assert field_numbers(b"\xfa\xff\xff\xff\x0f\x00") == {2**29 - 1}


def test_a_nested_message_of_printable_bytes_keeps_its_lengths() -> None:
    """Field 1 of 40 bytes begins with a line feed and `(`, as a text could."""
    nested = b"\x12\x2a\n(" + b"s" * 40
    found, _ = redact_message(
        nested, None, lambda text, _name, _cut: b"label" if text == b"s" * 40 else None
    )
    assert found == b"\x12\x07\n\x05label"


def test_the_first_field_of_an_unknown_message_may_name_the_second() -> None:
    """As in the entry of a map, whose descriptor is unknown."""
    names: list[str | None] = []
    redact_message(b"\n\x03key\x12\x05value", None, lambda _text, name, _cut: names.append(name))
    assert names[-1] == "key"
