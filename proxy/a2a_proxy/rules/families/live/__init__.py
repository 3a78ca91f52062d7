"""Live bidirectional streams."""

LEFT_OUT: dict[str, str] = {
    "A2A-LIVE-025": "legal; where the subscription tells other events than the live stream it is A2A-STREAM-014",
}
