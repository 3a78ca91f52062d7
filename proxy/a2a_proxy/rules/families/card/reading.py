"""Access to the agent card in a frame."""

from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.state.card_declarations import Json


def read_card(context: RuleContext) -> Json:
    """Return the card of the current frame; empty if the payload is truncated or not an object."""
    found = context.body
    return found if isinstance(found, dict) else {}
