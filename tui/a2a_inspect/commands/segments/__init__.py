"""`a2a-inspect segments`: print conversations as turns, interruptions and hand-offs, with their
latencies."""
