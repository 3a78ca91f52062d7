"""The recorder: a separate process that turns the journal into a recording, and its keeper on the relay's side.

`process` is the loop, `status` its status messages, `keeper` starts it, reads its messages and restarts it.
"""
