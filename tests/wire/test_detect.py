"""Protocol detection from the first bytes of a client."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_proxy.http import PREFACE
from a2a_proxy.wire.detect import MAX_PREFIX, ProtocolKind, detect_protocol

HELLO = bytes.fromhex("1603010200010001fc0303")


@pytest.mark.parametrize(
    ("wire", "kind"),
    [
        (PREFACE + b"\x00\x00\x12", ProtocolKind.H2C),
        (b"GET / HTTP/1.1\r\n", ProtocolKind.HTTP1),
        (b"PRI / HTTP/1.1\r\n", ProtocolKind.HTTP1),
        (b"PUT / HTTP/1.1\r\n", ProtocolKind.HTTP1),
        (b"\r\n\r\nM-SEARCH * HTTP/1.1\r\n", ProtocolKind.HTTP1),
        (HELLO, ProtocolKind.TLS),
        (b"\x16\x03\x01\x00\x04\x02...", ProtocolKind.OPAQUE),
        (b"\x16\x03\x01\x00\x04\x00...", ProtocolKind.OPAQUE),
        (b"\x16\x02", ProtocolKind.OPAQUE),
        (b"SSH-2.0-OpenSSH_9.6 x\r\n", ProtocolKind.OPAQUE),
        (b"*1\r\n$4\r\nPING\r\n", ProtocolKind.OPAQUE),
        (b"get / HTTP/1.1\r\n", ProtocolKind.OPAQUE),
        (b" GET / HTTP/1.1\r\n", ProtocolKind.OPAQUE),
        (b"A" * 40 + b" ", ProtocolKind.OPAQUE),
        (b"\r\n" * MAX_PREFIX + b"GET / ", ProtocolKind.OPAQUE),
        (b"\x00", ProtocolKind.OPAQUE),
    ],
)
def test_kinds(wire: bytes, kind: ProtocolKind) -> None:
    """Told as soon as it is certain, and the same with more bytes."""
    answers = [detect_protocol(wire[:size]) for size in range(len(wire) + 1)]
    certain = next(size for size, answer in enumerate(answers) if answer is not None)
    assert set(answers[certain:]) == {kind}


@pytest.mark.parametrize("wire", [b"", b"P", PREFACE[:-1], b"GET", b"\r\n", HELLO[:5]])
def test_more_is_needed(wire: bytes) -> None:
    """Nothing is guessed."""
    assert detect_protocol(wire) is None


@given(wire=st.binary(min_size=MAX_PREFIX, max_size=MAX_PREFIX + 20))
def test_detection_gives_an_answer_that_later_bytes_do_not_change(wire: bytes) -> None:
    """Within the limit, whatever comes, and the answer does not change."""
    answers = [detect_protocol(wire[:size]) for size in range(len(wire) + 1)]
    certain = next(size for size, answer in enumerate(answers) if answer is not None)
    assert certain <= MAX_PREFIX
    assert set(answers[certain:]) == {answers[-1]}
