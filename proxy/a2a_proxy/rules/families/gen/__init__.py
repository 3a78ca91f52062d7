"""Generation."""

LEFT_OUT: dict[str, str] = {}
