"""Several recordings as one on the screen: a temporary recording, which a process of its own fills and keeps up."""
