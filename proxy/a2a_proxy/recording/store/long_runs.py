"""Long runs of a large payload that are worth storing once: strings in JSON, strings and bytes in
protobuf.

The cuts are heuristic, and correctness does not depend on them: a payload is its remainder with the
pieces put back at their offsets, whatever the pieces are.
"""

MIN_PIECE_BYTES = 4096
"""Minimum length of a run in bytes. The block compressor finds shorter repetitions itself."""

_MAX_DEPTH = 16
_LENGTH_DELIMITED = 2
_FIXED = {1: 8, 5: 4}

Span = tuple[int, int]
"""Offset of the first byte, and offset after the last byte."""


def find_long_runs(payload: bytes) -> list[Span]:
    """Return disjoint spans of at least MIN_PIECE_BYTES bytes, in order."""
    if payload[:1] in (b"{", b"["):
        return _json_strings(payload)
    spans: list[Span] = []
    return spans if _walk_fields(payload, 0, len(payload), 0, spans) else []


def remove_spans(payload: bytes, spans: list[Span]) -> bytes:
    """Return the payload without these spans."""
    kept, at = [], 0
    for start, end in spans:
        kept.append(payload[at:start])
        at = end
    kept.append(payload[at:])
    return b"".join(kept)


def insert_pieces(rest: bytes, pieces: list[tuple[int, bytes]]) -> bytes:
    """Inverse of `remove_spans`: put pieces, each with its offset in the payload, back into the
    remainder."""
    parts: list[bytes] = []
    done = used = 0
    for offset, piece in pieces:
        gap = offset - done
        parts += (rest[used : used + gap], piece)
        used += gap
        done = offset + len(piece)
    parts.append(rest[used:])
    return b"".join(parts)


def _json_strings(payload: bytes) -> list[Span]:
    find = payload.find
    spans: list[Span] = []
    at = find(b'"')
    while at >= 0:
        end = find(b'"', at + 1)
        while end >= 0 and payload[end - 1] == 0x5C and _is_escaped(payload, end):
            end = find(b'"', end + 1)
        if end < 0:
            break
        if end - at > MIN_PIECE_BYTES:
            spans.append((at + 1, end))
        at = find(b'"', end + 1)
    return spans


def _is_escaped(payload: bytes, quote: int) -> bool:
    """Whether an odd number of backslashes precedes the quote."""
    at = quote - 1
    while at >= 0 and payload[at] == 0x5C:
        at -= 1
    return (quote - at) % 2 == 0


def _walk_fields(data: bytes, at: int, end: int, depth: int, spans: list[Span]) -> bool:
    """Walk the protobuf fields in [at, end). Return False, with `spans` unchanged, if the bytes are
    not a message."""
    known = len(spans)
    while at < end:
        tag, at = _read_varint(data, at, end)
        step = _skip_field(data, tag, at, end)
        if step < 0:
            del spans[known:]
            return False
        if tag & 7 == _LENGTH_DELIMITED:
            size, at = _read_varint(data, at, end)
            if size >= MIN_PIECE_BYTES and not (
                depth < _MAX_DEPTH and _walk_fields(data, at, at + size, depth + 1, spans)
            ):
                spans.append((at, at + size))
        at = step
    return True


def _skip_field(data: bytes, tag: int, at: int, end: int) -> int:
    """Return the offset after the field's value, or -1 if the bytes are not a field."""
    if tag < 8:
        return -1
    kind = tag & 7
    if kind == 0:
        value, after = _read_varint(data, at, end)
        return after if value >= 0 else -1
    if kind == _LENGTH_DELIMITED:
        size, at = _read_varint(data, at, end)
        return at + size if 0 <= size <= end - at else -1
    size = _FIXED.get(kind, -1)
    return at + size if 0 <= size <= end - at else -1


def _read_varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Return the value and the offset after it. The value is -1 if the varint is incomplete."""
    value = shift = 0
    while at < end and shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    return -1, end
