"""Driving: the client side of a recording is sent to a live agent again, each message when its time has come.

`load` and `causes` make a plan of a recording, `ids` puts the live agent's identifiers in the place of the recorded
ones, `run` has the calls made over `http`, `grpc` and `stdio`, `verdict` says what of the difference counts. The
comparison itself is `recording.difference`, of the old recording and one of the drive.
"""
