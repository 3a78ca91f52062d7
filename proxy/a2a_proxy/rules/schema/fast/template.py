"""A JSON payload that is the one before with other texts in it: told by comparing bytes, without decoding.

Events of one stream differ in little: the id of a message, what it says, a timestamp. A mould is a payload that was
faultless with those cut out. Another that fills it with plain text is faultless too, for nothing that a check looks at
depends on what the text says; of what a timestamp says it does, so that is looked at again.
"""

from __future__ import annotations

import msgspec

from a2a_proxy.model.frame import EventKind, Frame
from a2a_proxy.rules.facts.partial_decode import StatusSummary

_PLAIN = bytes(byte for byte in range(0x20, 0x7F) if byte not in b'"\\')
"""What stands for itself in a JSON string."""


class PayloadTemplate(msgspec.Struct, gc=False):
    """What the status updates of one stream with a message of one text have in common."""

    head: bytes
    """Up to the id of the message."""
    middle: bytes
    """From there to the text."""
    tail: bytes
    """After the text."""
    named: tuple[str, ...]
    stamp: str = ""

    def fill(self, frame: Frame) -> StatusSummary | None:
        """What the payload shows, where it fits; None: it has to be decoded."""
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
    """The mould of a faultless update; None where its message is not simply one plain text."""
    payload, said, ident = frame.payload, summary.message_content, frame.message_id.encode()
    if frame.event is not EventKind.STATUS or not said or not ident or (ident + said).translate(None, _PLAIN):
        return None
    head, found, rest = payload.partition(b'"%b"' % ident)
    middle, there, tail = rest.partition(b'"%b"' % said)
    if not found or not there or said in head:
        return None
    return PayloadTemplate(head + b'"', b'"' + middle + b'"', b'"' + tail, summary.named_ids, summary.stamp)
