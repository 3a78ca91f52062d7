"""A recording shown as it happened: a clock, and what had been seen at its time."""
