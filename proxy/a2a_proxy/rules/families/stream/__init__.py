"""Stream lifecycle."""

LEFT_OUT: dict[str, str] = {}
