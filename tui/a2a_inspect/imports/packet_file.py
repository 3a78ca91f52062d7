"""The packets of a capture file: pcap with times in us or ns, and pcapng with any number of
sections and interfaces.

The layouts of headers and blocks are those of dpkt; its readers are not used, because they know one
interface only and give times as floating-point numbers.
"""

import struct
from collections.abc import Iterator
from typing import Any, BinaryIO

import msgspec
from dpkt import Error, pcap, pcapng

from a2a_proxy.recording.store.row_types import check_time

_SECTION_MAGIC = bytes.fromhex("0a0d0d0a")
"""The first bytes of a section of pcapng."""
_NANOSECOND_MAGICS = (pcap.TCPDUMP_MAGIC_NANO, pcap.PMUDPCT_MAGIC_NANO)
_SWAPPED_MAGICS = (pcap.PMUDPCT_MAGIC, pcap.PMUDPCT_MAGIC_NANO)
_MAX_BLOCK = 16 << 20
"""Bytes of the largest packet or block that is read; a larger length is damage."""
_SECOND = 1_000_000_000
_BLOCK_HEAD = 8
_LITTLE, _BIG = b"\x4d\x3c\x2b\x1a", b"\x1a\x2b\x3c\x4d"
"""The byte-order mark of a section."""
_PARSE_ERRORS = (
    Error,
    struct.error,
    IndexError,
    ValueError,
    TypeError,
    AttributeError,
    OverflowError,
)
"""What dpkt raises for damaged bytes."""


class Packet(msgspec.Struct, frozen=True):
    """One captured packet."""

    at: int
    """Time in ns since the epoch."""
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
        yield from _read_pcapng(stream) if stream.read(4) == _SECTION_MAGIC else _read_pcap(stream)
    except _PARSE_ERRORS as wrong:
        raise DamagedFile(f"the bytes before {stream.tell()} are damaged") from wrong


def _read_pcap(stream: BinaryIO) -> Iterator[Packet]:
    stream.seek(0)
    data = _read_bytes(stream, pcap.FileHdr.__hdr_len__)
    header = pcap.FileHdr(data)
    is_swapped = header.magic in _SWAPPED_MAGICS
    file_header: Any = pcap.LEFileHdr(data) if is_swapped else header
    make_header = pcap.LEPktHdr if is_swapped else pcap.PktHdr
    unit = 1 if header.magic in _NANOSECOND_MAGICS else 1000
    while head := stream.read(make_header.__hdr_len__):
        record: Any = make_header(_check_size(stream, head, make_header.__hdr_len__))
        at = record.tv_sec * _SECOND + record.tv_usec * unit
        data = _read_bytes(stream, record.caplen)
        yield Packet(at, file_header.linktype & 0xFFFF, data, max(record.len - record.caplen, 0))


def _read_pcapng(stream: BinaryIO) -> Iterator[Packet]:
    stream.seek(0)
    is_little = True
    interfaces: list[_Interface] = []
    while head := stream.read(_BLOCK_HEAD):
        _check_size(stream, head, _BLOCK_HEAD)
        if head.startswith(_SECTION_MAGIC):
            mark = _read_bytes(stream, len(_LITTLE))
            if mark not in (_LITTLE, _BIG):
                raise DamagedFile(f"the section before byte {stream.tell()} has no byte order")
            head, is_little, interfaces = head + mark, mark == _LITTLE, []
        kind, size = struct.unpack("<II" if is_little else ">II", head[:_BLOCK_HEAD])
        block = head + _read_bytes(stream, size - len(head))
        if kind == pcapng.PCAPNG_BT_IDB:
            make: Any = (
                pcapng.InterfaceDescriptionBlockLE
                if is_little
                else pcapng.InterfaceDescriptionBlock
            )
            interfaces.append(_read_interface(make(block), is_little=is_little))
        elif kind in (pcapng.PCAPNG_BT_EPB, pcapng.PCAPNG_BT_PB):
            is_old = kind == pcapng.PCAPNG_BT_PB
            make = (
                (pcapng.PacketBlockLE if is_old else pcapng.EnhancedPacketBlockLE)
                if is_little
                else (pcapng.PacketBlock if is_old else pcapng.EnhancedPacketBlock)
            )
            found = make(block)
            yield _make_packet(found, interfaces[found.iface_id], bytes(found.pkt_data))


def _read_interface(block: Any, *, is_little: bool) -> _Interface:
    ticks, offset = 1_000_000, 0
    for option in block.opts:
        if option.code == pcapng.PCAPNG_OPT_IF_TSRESOL:
            exponent = option.data[0]
            ticks = 2 ** (exponent & 0x7F) if exponent & 0x80 else 10**exponent
        elif option.code == pcapng.PCAPNG_OPT_IF_TSOFFSET:
            (offset,) = struct.unpack("<q" if is_little else ">q", option.data)
    return _Interface(block.linktype, ticks, offset)


def _make_packet(block: Any, interface: _Interface, data: bytes) -> Packet:
    ticks = block.ts_high << 32 | block.ts_low
    at = check_time(interface.offset * _SECOND + ticks * _SECOND // interface.ticks)
    return Packet(at, interface.link_type, data, max(block.pkt_len - len(data), 0))


def _read_bytes(stream: BinaryIO, size: int) -> bytes:
    """Return the next `size` bytes. Raises DamagedFile."""
    if not 0 <= size <= _MAX_BLOCK:
        raise DamagedFile(f"the length before byte {stream.tell()} is damaged")
    return _check_size(stream, stream.read(size), size)


def _check_size(stream: BinaryIO, data: bytes, size: int) -> bytes:
    if len(data) < size:
        raise DamagedFile(f"it ends within a packet, at byte {stream.tell()}")
    return data
