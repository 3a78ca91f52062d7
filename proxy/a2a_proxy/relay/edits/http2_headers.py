"""Edits of header blocks: the authority and `traceparent` of requests, and the encoding of
responses that are reordered."""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING, Literal

import msgspec

from a2a_proxy.http.h2 import HeaderBlock, encode_block
from a2a_proxy.http.hpack import (
    FORGET_TABLE,
    Field,
    HeaderMemo,
    HpackError,
    encode_literal,
    encode_literals,
)
from a2a_proxy.protocol.schema import JSON
from a2a_proxy.protocol.trace_context import TraceOrigin, origin_of
from a2a_proxy.relay.edits.card_response import (
    CARD_REQUEST_FIELDS,
    CONDITIONAL_FIELDS,
    OLD_FRAMING,
    is_card_path,
    make_validator,
)

if TYPE_CHECKING:
    from a2a_proxy.relay.edits.push_config import PushCall

ENCODED_LIMIT = 1 << 20
"""Bytes of a header block as literals."""

CARD_METHODS = (b"/GetExtendedAgentCard", b"/GetAgentCard")
_AuthorityKind = Literal["authority", "host"]
_AUTHORITIES: tuple[tuple[_AuthorityKind, bytes], ...] = (
    ("authority", b":authority"),
    ("host", b"host"),
)
_AUTHORITY_NAMES = (b":authority", b"host")
_PARENT, _STATE = b"traceparent", b"tracestate"


class HeaderChange(msgspec.Struct, frozen=True, gc=False):
    """A changed value of a request."""

    kind: _AuthorityKind
    before: bytes
    after: bytes


class RequestHead(msgspec.Struct, frozen=True):
    """A header block of a client."""

    encoded: bytes
    """The block as literals, authority replaced and `traceparent` left out; empty if nothing is
    replaced."""
    changes: tuple[HeaderChange, ...] = ()
    form: str = ""
    """The form of the card that the request asks for (`CardRewriter`); empty if it asks for
    none."""
    authority: str = ""
    """The client's authority for this proxy in a request for a card; empty if the client sent
    none."""
    asked: tuple[str, ...] = ()
    """Names of the fields changed or left out because of the card."""
    push: PushCall | None = None
    """The call, if it concerns push configurations and its messages may be edited."""
    origin: TraceOrigin | None = None
    """The trace context that its next `traceparent` continues; None if it gets no `traceparent`."""
    stateless: bool = False
    """Whether its `tracestate` was left out."""


class ResponseHead(msgspec.Struct):
    """A header block of an agent."""

    fields: list[Field]
    never: Set[int]
    """Indexes of the fields that are never to be indexed."""
    status: bytes
    """The status; empty for trailers."""

    def encode_head(self) -> bytes:
        """Return the block as literals. Raises `HpackError` if they exceed ENCODED_LIMIT."""
        return encode_fields(self.fields, self.never)

    @property
    def editable(self) -> bool:
        """Whether the message after it may be changed: it is gRPC and its length is not
        announced."""
        kinds = [value for name, value in self.fields if name == b"content-type"]
        counted = any(name == b"content-length" for name, _ in self.fields)
        return (
            not counted
            and all(kind.startswith(b"application/grpc") for kind in kinds)
            and bool(kinds)
        )

    def encode_for(self, payload: bytes) -> bytes:
        """Return the block as literals for the body `payload`: new length and validator, no coding.
        Raises `HpackError` as `encode_head` does."""
        left_out = (*OLD_FRAMING, b"content-length")
        fields, never = _without_names(self.fields, self.never, left_out)
        made = [
            (name, make_validator(payload) if name == b"etag" else value) for name, value in fields
        ]
        return encode_fields([*made, (b"content-length", b"%d" % len(payload))], never)

    def get_field(self, name: bytes) -> bytes:
        """Return the first value of a field in lower case, or an empty string."""
        return next((value for each, value in self.fields if each == name), b"").lower()


class LiteralWriter:
    """Sends header blocks that use no dynamic table, and announces this before the first one (RFC
    7541 4.2)."""

    __slots__ = ("began",)

    def __init__(self) -> None:
        self.began = False
        """Whether a block was sent."""

    def make_frames(self, block: HeaderBlock, encoded: bytes) -> bytes:
        """Return the frames of a block with other bytes."""
        if not self.began:
            self.began = True
            encoded = FORGET_TABLE + encoded
        return encode_block(block, encoded)


class RequestHeaders:
    """Header blocks of the client."""

    def __init__(
        self, authority: bytes | None, *, trace: bool, cards: bool = True, webhooks: bool = False
    ) -> None:
        self._authority, self._trace = authority, trace
        self._cards, self._webhooks = cards, webhooks
        self.rewriting = authority is not None or trace
        """Whether all blocks are sent as literals; also from the first request on that could be
        answered without a readable card."""
        self._memo = HeaderMemo(
            self._make_head, lambda head: not head.encoded and not head.form and head.push is None
        )
        self.read, self.apply_settings, self.unchanged = (
            self._memo.read,
            self._memo.apply_settings,
            self._memo.unchanged,
        )

    def _make_head(self, fields: list[Field], never: Set[int]) -> RequestHead:
        named = dict(fields)
        form, called = _card_form(named) if self._cards else ("", "")
        push = _push_call(named) if self._webhooks else None
        asked: tuple[str, ...] = ()
        if form == JSON:
            asked = tuple(name.decode() for name in CARD_REQUEST_FIELDS if name in named)
        if asked and not self.rewriting:
            self.rewriting = True
            self._memo.forget()
        if not self.rewriting:
            return RequestHead(b"", (), form, called, (), push)
        if (
            not fields or fields[0][0][:1] != b":"
        ):  # trailers have no pseudo-fields, no authority and no trace
            return RequestHead(encode_fields(fields, never), (), form, called)
        changes: tuple[HeaderChange, ...] = ()
        if (authority := self._authority) is not None:
            changes = tuple(
                HeaderChange(kind, before, authority)
                for kind, name in _AUTHORITIES
                if (before := named.get(name, authority)) != authority
            )
            fields = [
                field if field[0] not in _AUTHORITY_NAMES else (field[0], authority)
                for field in fields
            ]
        if asked:
            fields, never = _without_names(fields, never, CONDITIONAL_FIELDS)
            fields = [(name, CARD_REQUEST_FIELDS.get(name) or value) for name, value in fields]
        if not self._trace or named.get(b":method") == b"CONNECT":
            encoded = encode_fields(fields, never)
            return RequestHead(encoded, changes, form, called, asked, push)
        begins = origin_of([value for name, value in fields if name == _PARENT])
        left_out = (_PARENT,) if begins.trace else (_PARENT, _STATE)
        encoded = encode_fields(*_without_names(fields, never, left_out))
        stateless = _STATE in left_out and _STATE in named
        return RequestHead(encoded, changes, form, called, asked, push, begins, stateless)


def encode_traceparent(value: str) -> bytes:
    """Return `traceparent` as a literal, to append to a block of literals."""
    return encode_literal((_PARENT, value.encode()))


class ResponseHeaders:
    """Header blocks of the agent: decoded from the first one, and sent as literals once one may be
    overtaken.

    A block that waits for a card may be overtaken by blocks of other streams; its entries in the
    dynamic table would then arrive too late. So from the first waiting block on, the client's table
    is left empty.
    """

    def __init__(self) -> None:
        self._memo = HeaderMemo(_make_response_head, lambda _: self._writer is None)
        self._writer: LiteralWriter | None = None
        self.read, self.apply_settings, self.unchanged = (
            self._memo.read,
            self._memo.apply_settings,
            self._memo.unchanged,
        )

    @property
    def rewriting(self) -> bool:
        """Whether blocks cannot be sent unchanged any more."""
        return self._writer is not None

    def start_rewriting(self) -> None:
        """Send all blocks as literals from the next one on."""
        if self._writer is None:
            self._writer = LiteralWriter()
            self._memo.forget()

    def make_frames(self, block: HeaderBlock, encoded: bytes) -> bytes:
        """Return the frames of the next block to send."""
        assert self._writer is not None
        return self._writer.make_frames(block, encoded)


def encode_fields(fields: list[Field], never: Set[int]) -> bytes:
    """Return fields as literals, those in `never` marked as never to be indexed. Raises
    `HpackError` if they exceed ENCODED_LIMIT."""
    encoded = encode_literals(fields, never)
    if len(encoded) > ENCODED_LIMIT:
        raise HpackError(f"header block of {len(encoded)} bytes, limit {ENCODED_LIMIT}")
    return encoded


def _without_names(
    fields: list[Field], never: Set[int], names: tuple[bytes, ...]
) -> tuple[list[Field], set[int]]:
    """Return the fields of other names, and which of them are never to be indexed."""
    places = [place for place, (name, _) in enumerate(fields) if name not in names]
    return [fields[place] for place in places], {
        new for new, place in enumerate(places) if place in never
    }


def _make_response_head(fields: list[Field], never: Set[int]) -> ResponseHead:
    return ResponseHead(
        fields, never, next((value for name, value in fields if name == b":status"), b"")
    )


def _push_call(fields: dict[bytes, bytes]) -> PushCall | None:
    if b"content-length" in fields or not fields.get(b"content-type", b"").startswith(
        b"application/grpc"
    ):
        return None
    from a2a_proxy.relay.edits.push_config import classify_grpc

    return classify_grpc(fields.get(b":path", b""))


def _card_form(fields: dict[bytes, bytes]) -> tuple[str, str]:
    """Return the form of the card that is requested and the client's authority for it, else empty
    texts."""
    path = fields.get(b":path", b"")
    if path.endswith(CARD_METHODS):
        form = path.split(b"/")[-2].rpartition(b".")[0].decode("latin-1")
    elif fields.get(b":method") == b"GET" and is_card_path(path):
        form = JSON
    else:
        return "", ""
    called = fields.get(b":authority") or fields.get(b"host", b"")
    return form, called.decode("latin-1")
