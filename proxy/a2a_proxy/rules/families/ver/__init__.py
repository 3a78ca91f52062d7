"""Version negotiation and dialect."""

LEFT_OUT: dict[str, str] = {}
