"""The process behind the fixtures: runs mock agents and relays on its own event loop, controlled
over a pipe.

It is a process and not a thread because tests use grpc.aio and event loops of their own, the
a2a-sdk has the default protobuf pool, the network guard blocks connections of the process of the
tests, and a test that blocks its interpreter must not block its agent. Measured against a thread,
it starts as fast (the imports take the time), and a call takes no longer, although a relay that can
record it is in between.
"""
