"""What follows a recording with a cursor, each consumer in a process of its own: hooks now, exporters the same way.

`ledger` where it is, `reading` what comes next, `process` the loop, `keeper` the side of whoever started it.
"""
