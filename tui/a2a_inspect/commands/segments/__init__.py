"""`a2a-inspect segments`: conversations as turns, interruptions and hand-offs, with their latencies."""
