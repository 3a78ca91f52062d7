"""HTTP layer."""

LEFT_OUT: dict[str, str] = {}
