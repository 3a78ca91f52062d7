"""SSE framing."""

LEFT_OUT: dict[str, str] = {
    "A2A-SSE-012": "A2A-SSE-016 reports data over several lines, with the SDK that cannot read it",
    "A2A-SSE-014": "A2A-SSE-016 reports large events, with the SDK that cannot read them",
}
