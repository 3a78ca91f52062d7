"""Error mapping."""
