"""Decrypted data that `tshark -U 'OSI layer 7'` exports: each packet has tags with its addresses,
then plain bytes.

The packets have no sequence numbers and are in order. Those of HTTP/2 repeat the frame with which
an earlier one ended if that frame was incomplete, so only complete frames are read.
"""

import struct

from a2a_inspect.imports.packet_file import Packet
from a2a_inspect.imports.tcp_segment import Segment, UnreadPacket, format_host

EXPORTED_LINK_TYPE = 252
_DISSECTOR, _SOURCES, _DESTINATIONS, _SOURCE_PORT, _DESTINATION_PORT = (
    12,
    (20, 22),
    (21, 23),
    25,
    26,
)
_OLD_DISSECTOR = 13
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_FRAME_HEAD = 9


class ExportedData:
    """Reads the packets of one file."""

    def __init__(self) -> None:
        self._sent: dict[tuple[str, str], int] = {}
        """Source and destination -> bytes so far."""

    def read_segment(self, packet: Packet) -> Segment | None:
        """Return the data as a segment of a connection, or None if there is none.

        Raises:
            UnreadPacket: the tags are damaged, or name no addresses.
        """
        try:
            tags, data = _read_tags(packet.data)
            source, destination = (
                next(format_host(tags[tag]) for tag in hosts if tag in tags)
                + f":{struct.unpack('>I', tags[port])[0]}"
                for hosts, port in ((_SOURCES, _SOURCE_PORT), (_DESTINATIONS, _DESTINATION_PORT))
            )
        except (struct.error, KeyError, StopIteration, ValueError, RuntimeError) as wrong:
            raise UnreadPacket("exported packet", "without addresses") from wrong
        dissector = tags.get(_DISSECTOR, tags.get(_OLD_DISSECTOR, b"")).rstrip(b"\0")
        data = _complete_frames(data) if dissector == b"http2" else data
        if not data:
            return None
        here, back = (source, destination), (destination, source)
        sequence = self._sent.get(here, 0)
        self._sent[here] = sequence + len(data)
        return Segment(
            at=packet.at,
            source=source,
            destination=destination,
            sequence=sequence % 2**32,
            acknowledged=self._sent.get(back, 0) % 2**32,
            is_syn=False,
            is_fin=False,
            is_reset=False,
            payload=data,
            missing=packet.missing,
        )


def _read_tags(data: bytes) -> tuple[dict[int, bytes], bytes]:
    """Return the tags and the bytes behind them. Raises struct.error."""
    tags: dict[int, bytes] = {}
    at = 0
    while True:
        tag, size = struct.unpack_from(">HH", data, at)
        at += 4 + size
        if not tag:
            return tags, data[at:]
        tags[tag] = data[at - size : at]


def _complete_frames(data: bytes) -> bytes:
    """Return the data without an incomplete frame at its end."""
    end = len(_PREFACE) if data.startswith(_PREFACE) else 0
    while len(data) >= end + _FRAME_HEAD and (
        following := end + _FRAME_HEAD + int.from_bytes(data[end : end + 3])
    ) <= len(data):
        end = following
    return data[:end]
