"""The packets of a capture file: pcap with times in us or ns, and pcapng with any number of
sections and interfaces."""

import struct
from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from a2a_proxy.recording.store.row_types import check_time

_PCAP_MAGICS = {
    bytes.fromhex("d4c3b2a1"): ("<", 1000),
    bytes.fromhex("a1b2c3d4"): (">", 1000),
    bytes.fromhex("4d3cb2a1"): ("<", 1),
    bytes.fromhex("a1b23c4d"): (">", 1),
}
"""The first bytes of a pcap file -> its byte order, and the unit of its times in ns."""
_SECTION_MAGIC = bytes.fromhex("0a0d0d0a")
"""The first bytes of a section of pcapng."""
CAPTURE_MAGICS = (*_PCAP_MAGICS, _SECTION_MAGIC)
"""The first bytes of capture files."""
_BYTE_ORDERS = {bytes.fromhex("4d3c2b1a"): "<", bytes.fromhex("1a2b3c4d"): ">"}
_INTERFACE, _OLD_PACKET, _SIMPLE_PACKET, _PACKET = 1, 2, 3, 6
"""Types of pcapng blocks."""
_TIME_RESOLUTION, _TIME_OFFSET = 9, 14
"""Options of an interface."""
_MAX_BLOCK = 16 << 20
"""Bytes of the largest packet or block that is read; a larger length is damage."""
_SECOND = 1_000_000_000
_BLOCK_HEAD, _BLOCK_END = 8, 4


class Packet(msgspec.Struct, frozen=True):
    """One captured packet."""

    at: int
    """Time in ns since the epoch; -1 if the file has none."""
    link_type: int
    """Type of its outermost header, as libpcap numbers them."""
    data: bytes
    missing: int
    """Bytes at its end that were not captured."""


class DamagedFile(Exception):
    """The file ends within a packet, or has bytes that are no packet; the message says which, and
    where."""


class _Interface(msgspec.Struct, frozen=True):
    link_type: int
    max_packet: int
    """Bytes that are captured of a packet."""
    ticks: int
    """Units of its times per second."""
    offset: int
    """Seconds added to its times."""


def read_packets(stream: BinaryIO) -> Iterator[Packet]:
    """Yield the packets of the file in its order.

    Raises:
        DamagedFile: the rest of the file cannot be read.
    """
    try:
        magic = stream.read(4)
        yield from _read_pcapng(stream) if magic == _SECTION_MAGIC else _read_pcap(stream, magic)
    except (struct.error, LookupError, ValueError, OverflowError) as wrong:
        raise DamagedFile(f"the bytes before {stream.tell()} are damaged") from wrong


def _read_pcap(stream: BinaryIO, magic: bytes) -> Iterator[Packet]:
    order, unit = _PCAP_MAGICS[magic]
    (link_type,) = struct.unpack(f"{order}16xI", _read_bytes(stream, 20))
    head = struct.Struct(f"{order}IIII")
    while data := stream.read(head.size):
        seconds, part, size, whole = head.unpack(_check_size(stream, data, head.size))
        data = _read_bytes(stream, size)
        yield Packet(
            seconds * _SECOND + part * unit, link_type & 0xFFFF, data, max(whole - size, 0)
        )


def _read_pcapng(stream: BinaryIO) -> Iterator[Packet]:
    stream.seek(0)
    order = "<"
    interfaces: list[_Interface] = []
    while head := stream.read(_BLOCK_HEAD):
        _check_size(stream, head, _BLOCK_HEAD)
        if head.startswith(_SECTION_MAGIC):
            mark = _read_bytes(stream, 4)
            if mark not in _BYTE_ORDERS:
                raise DamagedFile(f"the section before byte {stream.tell()} has no byte order")
            head, order, interfaces = head + mark, _BYTE_ORDERS[mark], []
        kind, size = struct.unpack_from(f"{order}II", head)
        block = _read_bytes(stream, size - len(head))[:-_BLOCK_END]
        if kind == _INTERFACE:
            interfaces.append(_read_interface(block, order))
        elif kind == _SIMPLE_PACKET:
            (whole,) = struct.unpack_from(f"{order}I", block)
            interface = interfaces[0]
            data = block[4 : 4 + min(whole, interface.max_packet)]
            yield Packet(-1, interface.link_type, data, max(whole - len(data), 0))
        elif kind in (_PACKET, _OLD_PACKET):
            layout = "IIIII" if kind == _PACKET else "HxxIIII"
            number, high, low, size, whole = struct.unpack_from(f"{order}{layout}", block)
            interface = interfaces[number]
            ticks = (high << 32 | low) * _SECOND // interface.ticks
            data = _check_size(stream, block[20 : 20 + size], size)
            yield Packet(
                check_time(interface.offset * _SECOND + ticks),
                interface.link_type,
                data,
                max(whole - size, 0),
            )


def _read_interface(block: bytes, order: str) -> _Interface:
    link_type, max_packet = struct.unpack_from(f"{order}H2xI", block)
    ticks, offset, at = 1_000_000, 0, 8
    while at < len(block):
        code, size = struct.unpack_from(f"{order}HH", block, at)
        value = block[at + 4 : at + 4 + size]
        at += 4 + size + -size % 4
        if not code:
            break
        if code == _TIME_RESOLUTION:
            exponent = value[0]
            ticks = 2 ** (exponent & 0x7F) if exponent & 0x80 else 10**exponent
        elif code == _TIME_OFFSET:
            (offset,) = struct.unpack(f"{order}q", value)
    return _Interface(link_type, max_packet or _MAX_BLOCK, ticks, offset)


def _read_bytes(stream: BinaryIO, size: int) -> bytes:
    """Return the next `size` bytes. Raises DamagedFile."""
    if not 0 <= size <= _MAX_BLOCK:
        raise DamagedFile(f"the length before byte {stream.tell()} is damaged")
    return _check_size(stream, stream.read(size), size)


def _check_size(stream: BinaryIO, data: bytes, size: int) -> bytes:
    if len(data) < size:
        raise DamagedFile(f"it ends within a packet, at byte {stream.tell()}")
    return data
