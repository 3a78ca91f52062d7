"""What the editor makes of header blocks: requests for the agent's authority and a `traceparent`
of ours, responses where their order changed."""

from __future__ import annotations

from collections.abc import Set
from typing import Literal

import msgspec

from a2a_proxy.protocol.trace_context import TraceOrigin, origin_of
from a2a_proxy.relay.edits.hpack_cache import HeaderMemo
from a2a_proxy.relay.edits.hpack_literals import FORGET_TABLE, encode_literal, encode_literals, never_indexed_fields
from a2a_proxy.relay.edits.http2_frames import HeaderBlockFrame, encode_block
from a2a_proxy.wire.hpack_decoder import Field, HpackError

ENCODED_LIMIT = 1 << 20
"""Bytes of a header block as literals."""

CARD_METHODS = (b"/GetExtendedAgentCard", b"/GetAgentCard")

_AuthorityKind = Literal["authority", "host"]
_AUTHORITIES: tuple[tuple[_AuthorityKind, bytes], ...] = (("authority", b":authority"), ("host", b"host"))
_AUTHORITY_NAMES = (b":authority", b"host")
_PARENT, _STATE = b"traceparent", b"tracestate"


class HeaderChange(msgspec.Struct, frozen=True, gc=False):
    """A value of a request that became another."""

    kind: _AuthorityKind
    before: bytes
    after: bytes


class RequestHead(msgspec.Struct, frozen=True):
    """A header block of a client."""

    encoded: bytes
    """The block as literals, authority replaced and `traceparent` left out; empty where nothing is to be replaced."""
    changes: tuple[HeaderChange, ...] = ()
    form: str = ""
    """The protobuf package of a service that is asked for its card, else empty."""
    authority: str = ""
    """What the client called this proxy; empty where it did not say. Only where a card is asked for."""
    origin: TraceOrigin | None = None
    """What its next `traceparent` goes on from; None where it gets none."""
    stateless: bool = False
    """Its `tracestate` was left out."""


class ResponseHead(msgspec.Struct):
    """A header block of an agent."""

    fields: list[Field]
    block: bytes
    status: bytes
    """Empty: trailers."""

    def encoded(self) -> bytes:
        """The block as literals. Raises `HpackError` where they are too many."""
        return encode_fields(self.fields, never_indexed_fields(self.block))

    @property
    def editable(self) -> bool:
        """The message after it may be changed: it is gRPC and nobody counted its bytes."""
        kinds = [value for name, value in self.fields if name == b"content-type"]
        counted = any(name == b"content-length" for name, _ in self.fields)
        return not counted and all(kind.startswith(b"application/grpc") for kind in kinds) and bool(kinds)


class LiteralWriter:
    """Sends header blocks that use no dynamic table, and says so before the first one (RFC 7541 4.2)."""

    __slots__ = ("began",)

    def __init__(self) -> None:
        self.began = False
        """A block was sent."""

    def frames(self, block: HeaderBlockFrame, encoded: bytes) -> bytes:
        """The frames of a block with other bytes."""
        if not self.began:
            self.began = True
            encoded = FORGET_TABLE + encoded
        return encode_block(block, encoded)


class RequestHeaders:
    """Header blocks of the client."""

    def __init__(self, authority: bytes | None, *, trace: bool) -> None:
        self._authority = authority
        self._trace = trace
        self.rewriting = authority is not None or trace
        """All blocks are sent as literals."""
        self._memo = HeaderMemo(self._make_head)
        self.read = self._memo.read
        self.allow = self._memo.allow

    def _make_head(self, fields: list[Field], block: bytes) -> RequestHead:
        named = dict(fields)
        form, called = _card_call_form(named)
        if not self.rewriting:
            return RequestHead(b"", (), form, called)
        never = never_indexed_fields(block)
        if not fields or fields[0][0][:1] != b":":  # trailers have no pseudo-fields, name no authority and no trace
            return RequestHead(encode_fields(fields, never), (), form, called)
        changes: tuple[HeaderChange, ...] = ()
        if (authority := self._authority) is not None:
            changes = tuple(
                HeaderChange(kind, before, authority)
                for kind, name in _AUTHORITIES
                if (before := named.get(name, authority)) != authority
            )
            fields = [field if field[0] not in _AUTHORITY_NAMES else (field[0], authority) for field in fields]
        if not self._trace or named.get(b":method") == b"CONNECT":
            return RequestHead(encode_fields(fields, never), changes, form, called)
        begins = origin_of([value for name, value in fields if name == _PARENT])
        left_out = (_PARENT,) if begins.trace else (_PARENT, _STATE)
        encoded = encode_fields(*_without_names(fields, never, left_out))
        return RequestHead(encoded, changes, form, called, begins, _STATE in left_out and _STATE in named)


def encode_traceparent(value: str) -> bytes:
    """`traceparent` as a literal, to be put behind a block of literals."""
    return encode_literal((_PARENT, value.encode()))


class ResponseHeaders:
    """Header blocks of the agent: followed from the first one, and sent as literals from the moment one is overtaken.

    A block that waits behind a card may be overtaken by blocks of other streams; its entries in the dynamic table would
    then come too late. So from the first one that waits on, the client's table is left empty.
    """

    def __init__(self) -> None:
        self._memo = HeaderMemo(_make_response_head)
        self._writer: LiteralWriter | None = None
        self.read = self._memo.read
        self.allow = self._memo.allow

    @property
    def rewriting(self) -> bool:
        """Blocks cannot be sent as they are any more."""
        return self._writer is not None

    def start_rewriting(self) -> None:
        """From the next block on, all are sent as literals."""
        if self._writer is None:
            self._writer = LiteralWriter()

    def frames(self, block: HeaderBlockFrame, encoded: bytes) -> bytes:
        """The frames of the next block to be sent."""
        assert self._writer is not None
        return self._writer.frames(block, encoded)


def encode_fields(fields: list[Field], never: Set[int]) -> bytes:
    """Fields as literals, those in `never` not to be indexed. Raises `HpackError` where they are too many."""
    encoded = encode_literals(fields, never)
    if len(encoded) > ENCODED_LIMIT:
        raise HpackError(f"header block of {len(encoded)} bytes, limit {ENCODED_LIMIT}")
    return encoded


def _without_names(fields: list[Field], never: Set[int], names: tuple[bytes, ...]) -> tuple[list[Field], set[int]]:
    """The fields of other names, and which of them are never to be indexed."""
    places = [place for place, (name, _) in enumerate(fields) if name not in names]
    return [fields[place] for place in places], {new for new, place in enumerate(places) if place in never}


def _make_response_head(fields: list[Field], block: bytes) -> ResponseHead:
    return ResponseHead(fields, block, next((value for name, value in fields if name == b":status"), b""))


def _card_call_form(fields: dict[bytes, bytes]) -> tuple[str, str]:
    """The package of the service that is asked for its card, and how the client calls it."""
    path = fields.get(b":path", b"")
    if not path.endswith(CARD_METHODS):
        return "", ""
    called = fields.get(b":authority") or fields.get(b"host", b"")
    package = path.split(b"/")[-2].rpartition(b".")[0]
    return package.decode("latin-1"), called.decode("latin-1")
