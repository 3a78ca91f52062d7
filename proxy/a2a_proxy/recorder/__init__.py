"""The recorder: a separate process that turns the journal into a recording, and its keeper on the relay's side.

`process` is the loop, `status` its status messages, `keeper` starts it and reads its messages. `supervisor` restarts
processes: the recorder, and those of other packages that run next to it.
"""
