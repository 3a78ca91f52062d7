"""Cutting long runs out of payloads and putting them back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from a2a_proto import from_dict
from a2a_proxy.recording.store.long_runs import (
    MIN_PIECE_BYTES,
    find_long_runs,
    insert_pieces,
    remove_spans,
)

_LONG = "A" * MIN_PIECE_BYTES


def _back(payload: bytes) -> list[bytes]:
    spans = find_long_runs(payload)
    pieces = [payload[start:end] for start, end in spans]
    rest = remove_spans(payload, spans)
    offsets = [start for start, _ in spans]
    assert insert_pieces(rest, list(zip(offsets, pieces, strict=True))) == payload
    assert all(len(piece) >= MIN_PIECE_BYTES for piece in pieces)
    assert len(rest) + sum(map(len, pieces)) == len(payload)
    return pieces


@given(
    st.lists(
        st.binary(max_size=30)
        | st.sampled_from([b'"', b"\\", _LONG.encode(), b'{"', b"\x0a\x80\x20"])
    )
)
def test_any_bytes_come_back(parts: list[bytes]):
    """Whatever is cut, the payload is rebuilt byte for byte."""
    for first in (b"", b"{", b"["):
        _back(first + b"".join(parts))


@given(
    st.lists(
        st.text(max_size=5)
        | st.sampled_from([_LONG, _LONG + '"' + _LONG, _LONG + "\\", "\\" * MIN_PIECE_BYTES])
    )
)
def test_long_strings_of_json_are_cut_whole(values: list[str]):
    """Quotes and backslashes inside a string do not end it."""
    import json

    encoded = [json.dumps(value).encode()[1:-1] for value in values]
    payload = b"[" + b",".join(b'"' + value + b'"' for value in encoded) + b"]"
    assert _back(payload) == [value for value in encoded if len(value) >= MIN_PIECE_BYTES]


def test_long_fields_of_protobuf_are_cut_whole():
    """The text and the bytes of parts, however deep; not the messages around them."""
    parts = [{"text": _LONG}, {"text": "short"}, {"raw": "Q" * (MIN_PIECE_BYTES * 2)}]
    message = from_dict(
        "1.0",
        "StreamResponse",
        {"task": {"id": "t", "artifacts": [{"artifactId": "a", "parts": parts}]}},
    )
    pieces = _back(message.SerializeToString())
    assert pieces[0] == _LONG.encode()
    assert [len(piece) for piece in pieces] == [MIN_PIECE_BYTES, MIN_PIECE_BYTES * 2 * 3 // 4]


def test_payloads_of_short_texts_are_not_cut():
    """A big payload of small texts stays whole."""
    assert find_long_runs(b'{"a":"' + b'b","c":"' * 2000 + b'"}') == []
    assert find_long_runs(b"") == []
