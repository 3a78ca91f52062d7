"""Latency and flow."""

LEFT_OUT: dict[str, str] = {
    "A2A-LAT-009": (
        "bytes are captured when they arrive, so a recording does not say when they left; the benchmark measures what"
        " the proxy adds"
    ),
}
