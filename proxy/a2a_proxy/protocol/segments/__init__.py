"""Conversations as segments, turns, interruptions and hand-offs (manual/protocol.md "Segments").

`tracker` builds segments while frames arrive, mostly from their summaries; `measures` computes
turns and latencies from segments; `content` reads texts, tool calls and media from the payloads of
a recording.
"""
