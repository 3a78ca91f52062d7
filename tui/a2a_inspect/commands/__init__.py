"""Headless commands, one module each. They print to standard output."""
