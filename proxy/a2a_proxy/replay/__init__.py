"""Playback of a recording. `core` decides what to send and when, without I/O; `load` builds its script from a
recording."""
