"""Reading a recording, or several as one, also while it is written."""
