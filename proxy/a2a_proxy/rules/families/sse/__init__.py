"""SSE framing."""

LEFT_OUT: dict[str, str] = {
    "A2A-SSE-014": ("the limits are of single SDKs; their clients fail the stream"),
}
