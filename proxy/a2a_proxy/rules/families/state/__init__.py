"""Task state machine."""
