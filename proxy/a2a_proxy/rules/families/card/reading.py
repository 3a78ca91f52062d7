"""The card that a frame carries."""

from __future__ import annotations

from a2a_proxy.rules.declared import Json
from a2a_proxy.rules.see import See


def card_of(see: See) -> Json:
    """The card; empty where the payload was cut, and there is nothing to say about it."""
    found = see.body
    return found if isinstance(found, dict) else {}
