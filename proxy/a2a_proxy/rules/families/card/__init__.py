"""Agent card."""

LEFT_OUT: dict[str, str] = {
    "A2A-CARD-013": "only the form of signatures is checked (A2A-CARD-012); verifying them needs the agent's key",
}
