"""Conversations cut into segments, turns, interruptions and hand-offs (manual/protocol.md "Segments").

`tracker` cuts while frames come, from what frames tell at a glance; `measures` makes turns and latencies of what was
cut; `content` reads texts, tool calls and media out of payloads, for those who look at a recording.
"""
