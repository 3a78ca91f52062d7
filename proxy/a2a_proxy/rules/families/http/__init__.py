"""HTTP requests and responses."""

LEFT_OUT: dict[str, str] = {}
