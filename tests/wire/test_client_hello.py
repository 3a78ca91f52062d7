from __future__ import annotations

import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_proxy.wire.client_hello import (
    MAX_HELLO_BYTES,
    ClientHello,
    ClientHelloReader,
    HelloGap,
    read_client_hello,
)


def hello_of(
    name: str | None, *alpn: str, newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3
) -> bytes:
    """Return the ClientHello that Python's own TLS sends."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode, context.maximum_version = (
        False,
        ssl.CERT_NONE,
        newest,
    )
    if alpn:
        context.set_alpn_protocols(list(alpn))
    sent = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname=name).do_handshake()
    return sent.read()


def split_records(hello: bytes, size: int) -> bytes:
    """Spread the message of one record over records of `size` bytes."""
    body = hello[5:]
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(hello[:3] + len(part).to_bytes(2) + part for part in parts)


def vector(data: bytes, length_size: int = 2) -> bytes:
    return len(data).to_bytes(length_size) + data


def extension(kind: int, data: bytes) -> bytes:
    return kind.to_bytes(2) + vector(data)


def hello_with(extensions: bytes | None, rest: bytes = b"") -> bytes:
    """Return a ClientHello of one record with these extensions; None for a message without any."""
    message = b"\x03\x03" + bytes(32) + vector(b"", 1) + vector(b"\x13\x01") + vector(b"\0", 1)
    message += b"" if extensions is None else vector(extensions)
    return b"\x16\x03\x01" + vector(b"\x01" + vector(message + rest, 3))


def server_name(name: bytes) -> bytes:
    return extension(0, vector(b"\0" + vector(name)))


HELLO = hello_of("Agent.Example.com", "h2", "http/1.1")
READ = ClientHello("agent.example.com", ("h2", "http/1.1"))


@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_the_name_and_the_protocols_are_read(newest: ssl.TLSVersion) -> None:
    assert read_client_hello(hello_of("agent.example.com", "h2", newest=newest)) == ClientHello(
        "agent.example.com", ("h2",)
    )
    assert read_client_hello(hello_of(None, newest=newest)) == ClientHello("", ())
    assert read_client_hello(HELLO + b"more bytes of the connection") == READ


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 100, 16384])
def test_a_message_may_be_spread_over_records(size: int) -> None:
    hello = split_records(HELLO, size)
    assert read_client_hello(hello) == READ
    assert all(read_client_hello(hello[:end]) is HelloGap.INCOMPLETE for end in range(len(hello)))


def test_extensions_are_optional() -> None:
    """A client of TLS 1.2 may send none; unknown ones and other kinds of names are skipped."""
    assert read_client_hello(hello_with(None)) == ClientHello()
    assert read_client_hello(hello_with(b"")) == ClientHello()
    other_name = extension(0, vector(b"\x07" + vector(b"x")))
    grease = extension(0x0A0A, b"anything")
    protocols = extension(16, vector(vector(b"\xea\xea", 1) + vector(b"h2", 1)))
    assert read_client_hello(hello_with(grease + other_name + protocols)) == ClientHello(
        "", ("h2",)
    )


MALFORMED = {
    "plain HTTP": b"GET / HTTP/1.1\r\n",
    "another record type": b"\x17" + HELLO[1:],
    "another major version": b"\x16\x02" + HELLO[2:],
    "another message": HELLO[:5] + b"\x02" + HELLO[6:],
    "an empty record": b"\x16\x03\x01\0\0" + HELLO,
    "a record that is too large": b"\x16\x03\x01\x40\x01" + HELLO[5:],
    "a second record of another type": split_records(HELLO, 100)[:105] + b"\x17\x03\x01\0\x01\x01",
    "a message that is too large": b"\x16\x03\x01\x40\0\x01" + (MAX_HELLO_BYTES - 3).to_bytes(3),
    "a message that ends early": b"\x16\x03\x01"
    + vector(b"\x01" + vector(b"\x03\x03" + bytes(32), 3)),
    "bytes after the extensions": hello_with(b"", b"x"),
    "an extension that is too long": hello_with(b"\0\0\0\xff"),
    "a name with a space": hello_with(server_name(b"agent example")),
    "a name with a null byte": hello_with(server_name(b"agent\0.example")),
    "an empty name": hello_with(server_name(b"")),
    "a name of 254 bytes": hello_with(server_name(b"a" * 254)),
    "bytes after the names": hello_with(extension(0, vector(b"\0" + vector(b"a")) + b"x")),
    "an empty protocol": hello_with(extension(16, vector(vector(b"", 1)))),
    "bytes after the protocols": hello_with(extension(16, vector(vector(b"h2", 1)) + b"x")),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_other_bytes_are_malformed(case: str) -> None:
    assert read_client_hello(MALFORMED[case]) is HelloGap.MALFORMED


def test_a_name_of_253_bytes_is_read() -> None:
    """As long as a name of the DNS can be."""
    assert read_client_hello(hello_with(server_name(b"a" * 253))) == ClientHello("a" * 253)


def test_the_size_is_bounded() -> None:
    """The largest message is read. One in so many records that their headers exceed the bound is
    not waited for."""
    padding = MAX_HELLO_BYTES - len(hello_with(extension(21, b""))) - 5
    largest = split_records(
        hello_with(extension(21, bytes(padding // 2)) + extension(21, bytes(padding // 2 - 4))),
        16384,
    )
    assert MAX_HELLO_BYTES - 10 < len(largest) <= MAX_HELLO_BYTES
    assert read_client_hello(largest) == ClientHello()
    spread = split_records(hello_with(extension(21, bytes(8000))), 1)
    assert read_client_hello(spread[: MAX_HELLO_BYTES - 1]) is HelloGap.INCOMPLETE
    assert read_client_hello(spread) is HelloGap.MALFORMED


@given(st.binary(max_size=300), st.integers(0, len(HELLO)))
def test_no_bytes_raise(garbage: bytes, position: int) -> None:
    """Garbage alone, garbage inside a ClientHello, and a ClientHello that turns into garbage."""
    for data in (
        garbage,
        HELLO[:position] + garbage + HELLO[position:],
        HELLO[:position] + garbage,
    ):
        assert isinstance(read_client_hello(data), ClientHello | HelloGap)


def test_the_work_grows_with_the_bytes_and_not_with_their_pieces() -> None:
    """A client that sends records of one byte, a byte at a time, makes the reader look at no record
    twice."""
    hello = split_records(hello_with(extension(65_000, bytes(5_000))), 1)
    looks = 0

    class Counting(ClientHelloReader):
        def _begin_record(self, data: bytes) -> bool:
            nonlocal looks
            looks += 1
            return super()._begin_record(data)

    reader = Counting()
    for end in range(1, len(hello)):
        assert reader.read(hello[:end]) is HelloGap.INCOMPLETE
    assert reader.read(hello) == ClientHello()
    assert looks <= len(hello)
