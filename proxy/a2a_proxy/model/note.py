"""A user's note about a place in a recording."""

from __future__ import annotations

from typing import Annotated

import msgspec

from a2a_proxy.model.fields import Encoding, Time


class Note(msgspec.Struct, frozen=True):
    """A note or a bookmark, or both; a place has at most one. The text is the user's own and is not
    redacted."""

    text: Annotated[str, Encoding.TEXT]
    """Empty if the place is only bookmarked."""
    at: Time
    """Time of the last change, ns since the epoch."""
    exchange: int = 0
    """0 if the note is about the session."""
    seq: int = -1
    """Frame within the exchange; -1 if the note is about the whole exchange or session."""
    bookmark: bool = False
