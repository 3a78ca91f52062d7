"""Bytes to frames: HTTP/1.1, HTTP/2, gRPC, server-sent events, stdio. Knows nothing of A2A, does no I/O."""
