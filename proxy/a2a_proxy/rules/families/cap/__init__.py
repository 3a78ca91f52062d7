"""Capability mismatches."""

LEFT_OUT: dict[str, str] = {}
