"""Decodes bytes into wire events: HTTP/1.1, HTTP/2, gRPC, server-sent events, stdio.

Independent of A2A; does no I/O.
"""
