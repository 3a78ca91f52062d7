"""A response to a request for an agent card. Opens no sockets."""

import msgspec

from a2a_proxy.model.wire import Headers

MAX_CARD_BYTES = 1 << 20
"""Maximum size of a card, bytes."""


class CardResponse(msgspec.Struct, frozen=True):
    """A response to a request for a card."""

    url: str
    """The URL that answered, as it may be printed: without user information and without the query's
    values."""
    path: str
    status: int
    reason: str
    headers: Headers
    body: bytes
    """The body without transfer and content encoding."""
    client: str = ""
    """The host from which the card was requested; empty if it was not fetched."""

    @property
    def is_object(self) -> bool:
        """Whether the response is successful and its body a JSON object."""
        try:
            return self.status == 200 and isinstance(msgspec.json.decode(self.body), dict)
        except (ValueError, RecursionError):
            return False


def describe_text(body: bytes) -> str:
    """Return what a body that is not a JSON object is: `is an HTML page, not an agent card`."""
    if body.lstrip()[:15].lower().startswith((b"<!doctype html", b"<html")):
        return "is an HTML page, not an agent card"
    if not body.strip():
        return "is empty, not an agent card"
    try:
        msgspec.json.decode(body)
    except (ValueError, RecursionError) as wrong:
        return f"is not JSON: {wrong}"
    return "is JSON, but not an object, so it is not an agent card"
