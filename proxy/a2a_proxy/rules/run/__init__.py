"""Running the rules over frames and exchanges: the engine, and the checks that let it skip
rules."""
