"""Stream lifecycle."""
