"""Bytes as offset, hexadecimal and text, with one printable character for each byte."""

from collections.abc import Iterator

from a2a_proxy.protocol.text import make_visible

_VISIBLE_BYTES = "".join(make_visible(chr(byte)) if byte < 128 else "·" for byte in range(256))


def hex_row(data: bytes, width: int) -> tuple[str, str]:
    """Return a row of at most `width` bytes in groups of eight, padded to that width, and the row
    as text."""
    groups = "  ".join(f"{data[at : at + 8].hex(' '):23}" for at in range(0, width, 8))
    return groups, "".join(_VISIBLE_BYTES[byte] for byte in data)


def hex_lines(data: bytes) -> Iterator[str]:
    """Yield the hex dump of `data`, 16 bytes per line: `00000010  7b 22 69 64 …  {"id…`."""
    for offset in range(0, len(data), 16):
        yield "  ".join((f"{offset:08x}", *hex_row(data[offset : offset + 16], 16)))
