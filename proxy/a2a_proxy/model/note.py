"""What a person wrote about a place of a recording."""

from __future__ import annotations

import msgspec


class Note(msgspec.Struct, frozen=True):
    """A note or a bookmark, or both; a place has one at most. It is the user's own text: nothing in it is redacted."""

    text: str
    """Empty where the place is only bookmarked."""
    at: int
    """When it was last changed, ns since the epoch."""
    exchange: int = 0
    """0 where it is about the session."""
    seq: int = -1
    """Frame within the exchange, -1 where it is about the whole exchange or session."""
    bookmark: bool = False
