"""Driving: sends the client side of a recording to a live agent again, each message when its dependencies are met.

`load` and `dependencies` turn a recording into a plan, `ids` replaces recorded identifiers by those of the live agent,
`run` makes the calls over `http`, `grpc` and `stdio`, `compare_policy` decides which differences count. The comparison
itself is `recording.difference`, between the old recording and the recording of the drive.
"""
