"""Capability mismatches."""
