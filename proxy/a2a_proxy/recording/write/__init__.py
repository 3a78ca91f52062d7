"""Writing of a session to a recording, in short transactions."""
