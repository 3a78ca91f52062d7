"""Writing a session into a recording in short transactions."""
