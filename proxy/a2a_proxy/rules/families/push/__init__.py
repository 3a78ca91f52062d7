"""Push notifications."""

LEFT_OUT: dict[str, str] = {}
