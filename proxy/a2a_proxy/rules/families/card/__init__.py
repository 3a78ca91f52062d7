"""Agent card."""
