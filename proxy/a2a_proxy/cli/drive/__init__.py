"""`a2a-proxy drive`: send a recording to a live agent through a proxy of its own, and compare the
two.

`a2a-proxy send` sends one call of a recording in the same way, also with another request.
"""
