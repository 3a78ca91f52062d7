"""Cassettes (`*.a2a.jsonl`): recordings as JSON lines, for review and version control."""
