"""Push notifications."""
