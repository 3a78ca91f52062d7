"""SSE framing."""

LEFT_OUT: dict[str, str] = {
    "A2A-SSE-012": "the standard allows data over several lines, and clients join them",
    "A2A-SSE-014": "the limits are of single SDKs; their clients fail the stream",
}
