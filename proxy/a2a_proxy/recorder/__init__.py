"""The recorder: a process of its own that turns the journal into a recording, and its keeper on the relay's side.

`process` is the loop, `status` what it says while it runs, `keeper` starts, listens to and restarts it.
"""
