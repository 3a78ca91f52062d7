"""Requests of `a2a-inspect card`: fetching a card, and one harmless call to each interface that it
declares."""
