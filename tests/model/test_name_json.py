"""Names of files that are not UTF-8 survive in JSON."""

from __future__ import annotations

import os

import msgspec
import pytest

from a2a_proxy.model.name_json import decode_json, encode_json

NAME = os.fsdecode(b"caf\xe9")


class _Value(msgspec.Struct):
    name: str
    numbers: dict[int, str] = {}


@pytest.mark.parametrize("name", ["plain", "caf\u00e9", NAME, f"{NAME}\u00e9\U0001f600"])
def test_a_name_is_decoded_as_it_was(name: str) -> None:
    value = _Value(name, {1: name})
    data = encode_json(value)
    data.decode("utf-8")
    assert decode_json(data, _Value) == value


def test_names_that_are_utf_8_are_not_escaped() -> None:
    assert encode_json(_Value("caf\u00e9")) == b'{"name":"caf\xc3\xa9","numbers":{}}'
    assert encode_json(_Value(NAME)) == b'{"name":"caf\\udce9","numbers":{}}'


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"null",
        b"[1]",
        b'{"name":1}',
        b'{"numbers":{}}',
        b'{"name":"\\udce9","numbers":1}',
        b"[" * 10**5,
    ],
)
def test_other_values_raise_a_decode_error(data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_json(data, _Value)
