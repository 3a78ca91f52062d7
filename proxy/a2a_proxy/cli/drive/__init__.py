"""`a2a-proxy drive`: send a recording to a live agent through a proxy of its own, and compare the two."""
