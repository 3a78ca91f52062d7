"""Where the text of an artifact chunk is in its JSON."""

from typing import Final

import msgspec

from a2a_proxy.protocol.json_shapes import UNREADABLE_ERRORS

_MAX_PLACE: Final = 2048
"""Bytes around a text that are remembered, at most."""
_decode_text = msgspec.json.Decoder(str).decode


class TextPlace(msgspec.Struct, gc=False):
    """Where the text of an artifact chunk is in its JSON. The next chunk of a stream often differs
    in the text alone."""

    before: bytes
    after: bytes
    clean_at: int = -1
    """Number of changes of the known secrets when both were found to have no secret."""

    def read_text(self, payload: bytes) -> bytes:
        """Return the text of a payload that differs in the text alone; empty if it differs more."""
        before, after = self.before, self.after
        if not (payload.startswith(before) and payload.endswith(after)):
            return b""
        try:
            return _decode_text(payload[len(before) : len(payload) - len(after)]).encode()
        except UNREADABLE_ERRORS:
            return b""


def find_text_place(payload: bytes, text: str) -> TextPlace | None:
    """Return the place of the text of the only part in valid JSON; None if it is escaped in an
    uncommon way, if another member has the same name, or if the payload is large."""
    if len(payload) > _MAX_PLACE + len(text) or payload.count(b'"text":') != 1:
        return None
    before, _, after = payload.partition(msgspec.json.encode(text))
    return TextPlace(before, after) if before.endswith((b'"text":', b'"text": ')) else None
