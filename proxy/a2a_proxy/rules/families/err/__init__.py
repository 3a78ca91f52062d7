"""Error mapping."""

LEFT_OUT: dict[str, str] = {}
