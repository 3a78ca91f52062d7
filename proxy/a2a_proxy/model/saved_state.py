"""The state that outlives the process of the recorder: Structs, which only this module encodes.

A class whose objects are part of that state derives from `State`, and its fields are what is saved.
An attribute that `__post_init__` derives from the fields (`dict=True`) is not saved, nor is a
`Reference`.
"""

import hashlib
from collections import Counter, deque
from typing import Any, TypeVar, get_args, get_origin

import msgspec

_T = TypeVar("_T")
_Hash = type(hashlib.sha256())


class State(msgspec.Struct, eq=False, omit_defaults=True):
    """Base of the classes whose fields are saved. Objects are equal only to themselves."""


class Reference:
    """Base of objects that exist apart from the state that refers to them. Instead of one, an empty
    object is restored, which the owner of the state replaces."""

    __slots__ = ()


def encode_state(state: object) -> bytes:
    """Return the state as msgpack. It may hold credentials."""
    return msgspec.msgpack.encode(state, enc_hook=_to_plain)


def decode_state(saved: bytes, kind: type[_T]) -> _T:
    """Return the state of this type that `encode_state` encoded.

    Raises msgspec.MsgspecError for other bytes.
    """
    return msgspec.msgpack.decode(saved, type=kind, dec_hook=_from_plain)


def _to_plain(value: object) -> object:
    if isinstance(value, deque):
        return list(value)
    if isinstance(value, Reference | _Hash):  # a hash cannot be saved
        return None
    raise NotImplementedError(type(value))


def _from_plain(kind: Any, value: Any) -> object:
    collection = get_origin(kind) or kind
    if collection is deque:
        return deque(msgspec.convert(value, list[get_args(kind)[0]]))  # type: ignore[misc]
    if collection is Counter:
        return Counter(value)
    if issubclass(collection, Reference):
        return object.__new__(collection)
    raise NotImplementedError(kind)
