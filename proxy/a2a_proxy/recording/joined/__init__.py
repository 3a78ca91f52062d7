"""Several recordings in one session of one recording, kept up with them: one order, one count, hand-offs among them."""
