"""The card that a frame carries."""

from __future__ import annotations

from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.state.card_declarations import Json


def read_card(context: RuleContext) -> Json:
    """The card; empty where the payload was cut, and there is nothing to say about it."""
    found = context.body
    return found if isinstance(found, dict) else {}
