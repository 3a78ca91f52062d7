"""Shapes of A2A objects on the wire, and a walk over a payload that finds every schema fault."""
