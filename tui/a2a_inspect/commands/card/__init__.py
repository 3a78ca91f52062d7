"""The card command: `a2a-inspect card`."""
