"""`a2a-inspect check`: run today's rules over recordings, with reports for people and for CI."""
