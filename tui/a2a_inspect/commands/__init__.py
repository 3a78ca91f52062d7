"""The headless twin: one module a command. Each prints to stdout and reads recordings only."""
