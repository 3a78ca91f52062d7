"""Rules that detect protocol violations in recorded traffic. Pure: no I/O, and time is an argument."""
