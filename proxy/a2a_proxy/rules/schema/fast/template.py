"""A JSON payload equal to the previous one except for its texts, recognised by comparing bytes, without decoding.

Events of one stream differ only in the message's id, its text and a timestamp. A template is a valid payload with these
removed. Another payload that fills it with plain text is also valid, because no check depends on the text; checks do
depend on the timestamp, so it is checked again.
"""

from __future__ import annotations

import msgspec

from a2a_proxy.model.frame import EventKind, Frame
from a2a_proxy.rules.facts.partial_decode import StatusSummary

_PLAIN = bytes(byte for byte in range(0x20, 0x7F) if byte not in b'"\\')
"""Bytes that represent themselves in a JSON string."""


class PayloadTemplate(msgspec.Struct, gc=False):
    """Common bytes of the status updates of one stream that have a message with one text."""

    head: bytes
    """Bytes before the id of the message."""
    middle: bytes
    """Bytes between the id and the text."""
    tail: bytes
    """Bytes after the text."""
    named: tuple[str, ...]
    stamp: str = ""

    def fill(self, frame: Frame) -> StatusSummary | None:
        """Return the summary of a payload that fits the template; None if it must be decoded."""
        payload, head, middle, tail = frame.payload, self.head, self.middle, self.tail
        if not (payload.startswith(head) and payload.endswith(tail)):
            return None
        ident = frame.message_id.encode()
        begin = len(head) + len(ident)
        text = begin + len(middle)
        if not payload.startswith(ident, len(head)) or not payload.startswith(middle, begin):
            return None
        said = payload[text : len(payload) - len(tail)]
        if not ident or text + len(said) + len(tail) != len(payload) or (ident + said).translate(None, _PLAIN):
            return None
        return StatusSummary(self.stamp, said, False, self.named)


def mould(frame: Frame, summary: StatusSummary) -> PayloadTemplate | None:
    """Return the template of a valid update; None if its message is not a single plain text."""
    payload, said, ident = frame.payload, summary.message_content, frame.message_id.encode()
    if frame.event is not EventKind.STATUS or not said or not ident or (ident + said).translate(None, _PLAIN):
        return None
    head, found, rest = payload.partition(b'"%b"' % ident)
    middle, there, tail = rest.partition(b'"%b"' % said)
    if not found or not there or said in head:
        return None
    return PayloadTemplate(head + b'"', b'"' + middle + b'"', b'"' + tail, summary.named_ids, summary.stamp)
