"""Replay of a recording in time: a clock, and the state of the recording at its time."""
