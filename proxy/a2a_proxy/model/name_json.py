"""JSON of values that hold file names. Python represents bytes that are not UTF-8 as lone
surrogates, which msgspec rejects."""

import json
from typing import Any

import msgspec


def encode_json(value: Any) -> bytes:
    """Return `value` as JSON in ASCII or UTF-8, with lone surrogates escaped."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value, str_keys=True), separators=(",", ":")).encode()


def decode_json(data: bytes, kind: Any) -> Any:
    """Return the value of type `kind` that `encode_json` encoded. Raises msgspec.DecodeError."""
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            value = None
        if value is None:
            raise
        return msgspec.convert(value, kind, str_keys=True)
