"""Generation."""

LEFT_OUT: dict[str, str] = {
    "A2A-GEN-022": "about webhook deliveries, which are recorded and not judged yet",
}
