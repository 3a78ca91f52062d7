"""Agent card."""

LEFT_OUT: dict[str, str] = {}
