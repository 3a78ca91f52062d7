"""Several recordings joined live into one session of one recording, in one order and one
numbering."""
