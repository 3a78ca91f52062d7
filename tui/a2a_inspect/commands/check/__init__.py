"""`a2a-inspect check`: today's rules over recordings, for people and for CI."""
