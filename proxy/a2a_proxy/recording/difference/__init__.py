"""Differences between two payloads, exchanges, tasks or runs.

All modules except `view`, `exchanges` and `runs` are pure.
"""
