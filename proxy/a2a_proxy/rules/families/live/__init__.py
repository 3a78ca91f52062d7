"""Live (bidirectional) streams."""

LEFT_OUT: dict[str, str] = {
    "A2A-LIVE-025": (
        "it is legal; if a subscription carries other events than the live stream, that is "
        "A2A-STREAM-014"
    ),
    "A2A-LIVE-018": "live streams allow messages while the agent is working",
}
