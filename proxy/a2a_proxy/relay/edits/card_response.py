"""The response to a request for an agent card, over any version of HTTP: its paths, its content
coding, and the header fields that change with the card."""

from __future__ import annotations

import zlib
from hashlib import sha256

CARD_PATHS = (
    b"/.well-known/agent-card.json",
    b"/.well-known/agent.json",
    b"/agent/authenticatedExtendedCard",
    b"/v1/card",
    b"/extendedAgentCard",
)
"""Paths of cards (manual/protocol.md "Agent cards"); any prefix may precede them."""
MAX_RESPONSE_BYTES = 1024 * 1024
"""Bytes of a response or a request that are held, its head included."""
MAX_CARD_BYTES = 1024 * 1024
"""Bytes of an unpacked card."""
MOST_TOKENS = 50_000
"""JSON tokens of a card that is rewritten: this many take at most 30 ms without interruption."""
CONDITIONAL_FIELDS = (
    b"if-match",
    b"if-none-match",
    b"if-modified-since",
    b"if-unmodified-since",
    b"if-range",
    b"range",
)
"""Fields of a request that could be answered without the whole card."""
CARD_REQUEST_FIELDS: dict[bytes, bytes | None] = {
    b"accept-encoding": b"identity",
    **dict.fromkeys(CONDITIONAL_FIELDS),
}
"""New values of the fields of a request for a card that have one there; None leaves a field out."""
OLD_FRAMING = (
    b"transfer-encoding",
    b"trailer",
    b"content-encoding",
    b"content-md5",
    b"digest",
    b"content-digest",
    b"repr-digest",
)
"""Fields of a response that are wrong for another body."""
TOO_LARGE, UNKNOWN_CODING, TOO_MANY_MEMBERS = (
    "it is larger than 1 MiB",
    "its content coding is not supported",
    "it has too many members",
)
"""Why a card is not rewritten."""


def is_card_path(target: bytes) -> bool:
    """Return whether a GET of this target asks for a card."""
    return target.partition(b"?")[0].endswith(CARD_PATHS)


def undo_coding(coding: bytes, body: bytes) -> bytes | None:
    """Return the body without its content coding, or None if it cannot be decoded within the
    limits."""
    if coding in (b"", b"identity"):
        return body
    if coding not in (b"gzip", b"x-gzip"):
        return None
    unpack = zlib.decompressobj(31)
    try:
        data = unpack.decompress(body, MAX_CARD_BYTES)
    except zlib.error:
        return None
    return data if unpack.eof else None


def make_validator(payload: bytes) -> bytes:
    """Return an entity tag for a rewritten card, which no agent knows."""
    return b'W/"a2a-proxy-%s"' % sha256(payload).hexdigest()[:32].encode()


def work_of(payload: bytes, tokens: int) -> int:
    """Return the units of an editor's budget that a card of so many tokens takes."""
    return 2 * tokens + (len(payload) >> 4)


def count_tokens(payload: bytes) -> int:
    """Return about how many tokens JSON text has, strings and punctuation."""
    return sum(map(payload.count, (b'"', b",", b"{", b"[")))
