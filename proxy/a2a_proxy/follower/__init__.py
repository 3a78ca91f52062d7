"""Followers of a recording, each consumer in a process of its own: hooks, and exporters built in the same way.

`checkpoint` holds the position, `batch_reader` reads the next rows, `process` is the loop, `keeper` starts the process.
"""
