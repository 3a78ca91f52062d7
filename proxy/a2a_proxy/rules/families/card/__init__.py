"""Agent card."""

LEFT_OUT: dict[str, str] = {
    "A2A-CARD-013": "signatures are looked at (A2A-CARD-012) and not verified yet: that needs the agent's key",
}
