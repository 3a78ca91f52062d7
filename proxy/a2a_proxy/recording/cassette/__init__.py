"""Cassettes (`*.a2a.jsonl`): a recording as JSON lines, for review and version control."""
