"""JSON of values that hold file names. In one that is no UTF-8, Python has lone surrogates, which msgspec refuses."""

from __future__ import annotations

import json
from typing import Any

import msgspec


def encode(value: Any) -> bytes:
    """Return `value` as JSON in ASCII or UTF-8, lone surrogates as escapes."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value, str_keys=True), separators=(",", ":")).encode()


def decode(data: bytes, kind: Any) -> Any:
    """Return the value of this type that `encode` was given. Raises msgspec.DecodeError."""
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
