"""Latency and waiting times."""

LEFT_OUT: dict[str, str] = {
    "A2A-LAT-009": (
        "bytes are captured on arrival, so a recording does not show when the proxy sent them; the "
        "benchmark measures"
        " the delay of the proxy"
    ),
    "A2A-LAT-010": "a Task after a stream that broke off may show more than its events",
}
