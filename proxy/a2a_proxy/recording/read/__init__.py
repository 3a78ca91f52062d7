"""Reading of a recording, or of several as one, also while it is written."""
