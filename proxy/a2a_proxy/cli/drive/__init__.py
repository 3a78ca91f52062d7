"""`a2a-proxy drive`: a recording is sent to a live agent through a proxy of its own, and the two are compared."""
