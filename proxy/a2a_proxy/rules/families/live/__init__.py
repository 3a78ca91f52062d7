"""Live bidirectional streams."""

LEFT_OUT: dict[str, str] = {
    "A2A-LIVE-007": "the same as A2A-ID-007, which judges live streams too",
    "A2A-LIVE-016": "the same as A2A-STREAM-014, which compares live streams with one another too",
    "A2A-LIVE-024": "nothing in its messages tells a short uplink call of that proposal from a live stream of another",
    "A2A-LIVE-025": "legal; where the subscription tells other events than the live stream it is A2A-STREAM-014",
}
