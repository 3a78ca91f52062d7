"""The answer to a gRPC call for an agent card, as a message that is edited."""

from __future__ import annotations

from a2a_proxy.relay.edits.edit import CardRewriter
from a2a_proxy.relay.edits.http2_messages import ChangedUrls, EditKind

MAX_GRPC_CARD_BYTES = 32 << 10
"""Bytes of a card that is held."""


class CardEdit:
    """A `MessageEdit` that rewrites the card."""

    kind: EditKind = "card"
    max_bytes = MAX_GRPC_CARD_BYTES

    def __init__(self, rewriter: CardRewriter, form: str, authority: str) -> None:
        """Create the edit; the arguments are those of `CardRewriter`."""
        self._rewriter, self._form, self._authority = rewriter, form, authority

    def rewrite(self, payload: bytes) -> tuple[bytes, ChangedUrls] | None:
        """Return the rewritten card and its changed URLs, or None if it stays unchanged."""
        outcome = self._rewriter(payload, self._form, self._authority)
        return None if outcome.payload is None else (outcome.payload, outcome.urls)

    def fail(self) -> None:
        """Do nothing: a call without a card changes nothing."""
