"""Running the rules over frames and exchanges: the engine, and what spares it work."""
