"""The process behind the fixtures: mock agents and relays on a loop of their own, told what to do over a pipe.

A process and not a thread: tests use grpc.aio and event loops of their own, the a2a-sdk has the default protobuf pool,
the network guard stops the process of the tests from connecting to anywhere, and a test that blocks its interpreter
must not block the agent that it talks to. Measured against a thread: it starts as fast (the imports are what takes
time), and a call takes no longer, though a relay that can record it is in between.
"""
