"""The JSON-RPC envelope."""

LEFT_OUT: dict[str, str] = {}
