"""gRPC framing and status."""

LEFT_OUT: dict[str, str] = {}
