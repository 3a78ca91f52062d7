"""Several recordings as one on the screen: a temporary recording that a separate process fills and
keeps up to date."""
