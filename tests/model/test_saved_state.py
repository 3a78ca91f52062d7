"""What comes back from an encoded state, and what does not."""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from typing import Any

import msgspec
import pytest

from a2a_proxy.model.saved_state import Reference, State, decode_state, encode_state


class Owner(Reference):
    """An object that exists apart from the state."""

    name = "class"


class Kept(State, dict=True):
    """A state with every kind of field that needs more than msgspec."""

    owner: Owner
    queue: deque[tuple[int, bytes]] = msgspec.field(default_factory=deque)
    counts: Counter[str] = msgspec.field(default_factory=Counter)
    hash: Any = None

    def __post_init__(self) -> None:
        self.derived = list(self.queue)


def test_collections_come_back_with_their_types() -> None:
    kept = Kept(Owner(), deque([(1, b"a"), (2, b"b")]), Counter(x=2))
    again = decode_state(encode_state(kept), Kept)
    assert again.queue == kept.queue
    assert again.counts + Counter(x=1) == Counter(x=3)
    assert again.derived == [(1, b"a"), (2, b"b")]


def test_references_and_hashes_are_not_saved() -> None:
    """The owner sets a reference again; a hash stays unknown."""
    kept = Kept(Owner(), hash=hashlib.sha256(b"secret"))
    saved = encode_state(kept)
    again = decode_state(saved, Kept)
    assert len(saved) < 32
    assert type(again.owner) is Owner
    assert again.owner is not kept.owner
    assert again.hash is None


def test_states_are_equal_only_to_themselves() -> None:
    """As objects that change: two decoders with the same bytes are two decoders."""
    kept = Kept(Owner())
    assert kept == kept
    assert kept != decode_state(encode_state(kept), Kept)


def test_an_object_that_cannot_be_saved_is_an_error() -> None:
    with pytest.raises(NotImplementedError):
        encode_state(Kept(Owner(), hash=object()))


@pytest.mark.parametrize("saved", [b"", b"\xc0", b"\x81\xa5owner", b"\x80"])
def test_damaged_bytes_are_rejected(saved: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        decode_state(saved, Kept)
