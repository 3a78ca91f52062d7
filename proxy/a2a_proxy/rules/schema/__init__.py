"""Checks of payloads against the shapes of A2A objects (`a2a_proto.shapes`): a walk that finds
every schema fault."""
