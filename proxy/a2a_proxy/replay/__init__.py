"""A recording played back: `core` decides what to say when, without I/O; `load` makes its script of a recording."""
